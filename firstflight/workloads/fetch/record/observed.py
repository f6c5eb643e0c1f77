"""Observed: what client, server, packets and qdiscs show of one trial."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from firstflight.judge.syns import mss_of
from firstflight.model.transfer import CONGESTION_CONTROLS
from firstflight.net.link import MANAGED
from firstflight.net.path import STAMP_MS
from firstflight.net.segments import MS, Segment
from firstflight.setting.server import OWN
from firstflight.testbed.messages import Drops, Fetch, Response
from firstflight.wire.delivery.host import Pauses, find_uncaused
from firstflight.wire.delivery.packet_path import Delivery
from firstflight.wire.exchange import (Exchange, bandwidth_after_burst, observed_rtt_ms,
                                           upload_flight)
from firstflight.wire.flights import split_into_flights
from firstflight.wire.messages import Early, Messages
from firstflight.wire.retransmissions import Retransmission, explain_retransmissions
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.record.transfers import wire_bytes

# How late a write after a pause may be: server.py waits in whole milliseconds, and may wait twice.
_PAUSE_MS = 2.0
# The most standard deviations of jitter: netem's table of the normal distribution ends there
# (iproute2, netem/normal.c).
JITTER_SIGMAS = 4.0
# After a pause both buckets of HTB are full, and at most this many packets leave unshaped.
HTB_UNSHAPED_PACKETS = 3
INSTANT_NS = 10_000  # segments no further apart left at once; pacing is slower
# Values of judged_by besides PATH: the moments at which hosts send, and the model of TCP.
HOST, TCP = "host", "TCP"


def _completed_ns(arrived: Iterable[Segment]) -> int:
    """When the last data arrived that had not arrived before, in ns."""
    received: set[int] = set()
    last_ns = 0
    for segment in arrived:
        if segment.payload_bytes and segment.end not in received:
            received.add(segment.end)
            last_ns = segment.time_ns
    return last_ns


@dataclass(frozen=True)
class Tolerances:
    """How far observations may be from what was requested.

    Where a tolerance has a time in ms and a share of the requested value, the larger one counts.
    """

    rtt_ms: float
    rtt_share: float
    bandwidth_share: float
    spacing_ms: float  # from the first to the last segment of a flight
    latency_ms: float
    latency_share: float
    model_ms: float | None  # None where the model does not judge
    model_share: float
    client_ms: float  # of the client's clock
    client_share: float
    process_ms: float  # how long a process may take to start and to end


# In virtual time computing takes no time. What remains is rounding, and a microsecond of the
# guest's clock for each failed system call (um_udelay). The client's clock is within 8 µs of its
# capture.
EXACT = Tolerances(rtt_ms=0.05, rtt_share=0.001, bandwidth_share=0.001, spacing_ms=STAMP_MS,
                   latency_ms=0.05, latency_share=0.0, model_ms=1.0, model_share=0.001,
                   client_ms=0.01, client_share=0.0, process_ms=0.1)
# In real time timers fire late and processors are busy.
REAL_TIME = Tolerances(rtt_ms=3.0, rtt_share=0.03, bandwidth_share=0.05, spacing_ms=1.0,
                       latency_ms=2.0, latency_share=0.02, model_ms=None, model_share=0.0,
                       client_ms=5.0, client_share=0.05, process_ms=250.0)


@dataclass(frozen=True)
class Observed:
    """What was observed of one trial."""

    trial: Trial
    # The reports of the client (client.py) and the server (server.py). Of a server that reports
    # nothing, testbed/servers/external.py has a report. Both are empty where the transfer failed.
    fetch: Fetch
    report: Response
    exchange: Exchange | None  # the packets of the transfer; None where they cannot be read
    tolerances: Tolerances
    sysctls: Mapping[str, str]  # those that the scenario changes from testbed.network.tcp_sysctls
    # The counters of the qdiscs (testbed.worker.fetches), {} where a guest reports none.
    drops: Drops = field(default_factory=dict)
    # The messages in the packets; None where the server reports its own.
    messages: Messages | None = None
    early: Early | None = None  # accepted early data
    # Lost packets of all connections, by direction; None where there is one connection.
    lost_in_all: Mapping[str, int] | None = None
    # What the path did with each packet, to the client and to the server; None where packets are
    # not judged one by one, as in real time.
    path: tuple[Delivery, Delivery] | None = None
    # The length of each TLS record that the server sent, by the client's port.
    records: Mapping[int, Sequence[int]] = field(default_factory=dict)
    # In virtual time, the tick of the kernel's clock at which the trial began; 0 for unknown.
    tick_ns: int = 0
    known_kernel: bool = True  # whether its kernel's source is unchanged

    @cached_property
    def mss(self) -> int:
        """The payload of a full segment, bytes: more than requested without time stamps."""
        return mss_of(self.trial, self.sysctls, self.sysctls)

    @property
    def has_report(self) -> bool:
        """Whether the server reported what it did, as server.py does."""
        return "latency_ms" in self.report

    @property
    def accepted_early_bytes(self) -> int | None:
        """How many bytes of early data the server accepted; None where none was requested."""
        return self.fetch.get("early_data_bytes") if self.trial.early_data_bytes else None

    # What the packets show -----------------------------------------------------------

    @property
    def wire(self) -> Exchange:
        """The exchange. Callers make sure that there is one."""
        assert self.exchange is not None
        return self.exchange

    @property
    def first_flight(self) -> int | None:
        """How many data segments left before the first acknowledgement of data.

        Segments that left after the server's pause count, too. None for no segment.
        """
        flight = len(self.wire.first_flight)
        if self.first_ack_may_be_late and self.trial.congestion_control in CONGESTION_CONTROLS:
            flight -= len(self._timer_segments)
        if not self.trial.before and flight < self.trial.server_window:
            flight += len(self._paused_writes)
        return flight or None

    @property
    def first_burst(self) -> int | None:
        """How many segments of the first flight left at the instant of the first segment."""
        flight = self.wire.first_flight
        return sum(segment.time_ns - flight[0].time_ns <= INSTANT_NS for segment in flight) or None

    @property
    def link_idle_ms(self) -> float | None:
        """How long the link to the client was idle while the client waited for its response.

        Each packet that arrived meanwhile kept the link busy, as long as its bytes take. If the
        request has a body, the time that the link to the server sent it is not idle either. None
        where the client reports no time, or where HTB shapes, since its packets leave in bursts.
        """
        total_ms = self.fetch.get("total_ms")
        arrived = [segment for segment in self.wire.at_client if segment.to_client]
        if total_ms is None or not arrived or self.trial.htb_burst_bytes:
            return None

        if self.trial.before or self.trial.resumed:  # the clock starts later than the connection
            last_ns = _completed_ns(arrived)
            first_ns = last_ns - round(total_ms * MS)
        else:
            first_ns = self.wire.at_client[0].time_ns
            last_ns = first_ns + round(total_ms * MS)

        # The client's clock has microseconds. The packet that stops the clock counts.
        down_kbps = self.trial.down_kbps
        busy_ms = sum(segment.frame_bytes * 8 / down_kbps for segment in arrived
                      if first_ns < segment.time_ns <= last_ns + INSTANT_NS)
        if self.trial.request_bytes:
            uploaded = (segment for segment in self.wire.at_server
                        if segment.payload_bytes and not segment.to_client)
            busy_ms += sum(segment.frame_bytes * 8 / self.trial.up_kbps for segment in uploaded
                           if first_ns < segment.time_ns <= last_ns)
        return max(0.0, total_ms - busy_ms)

    @property
    def first_ack_may_be_late(self) -> bool:
        """Whether more than the RTT decides when the first of two writes is acknowledged."""
        trial, wire = self.trial, self.wire
        if not trial.gap_ms or trial.before or trial.is_secure:
            return False
        is_unmodelled = trial.congestion_control not in CONGESTION_CONTROLS
        return bool(is_unmodelled or trial.disorder or trial.qdisc in MANAGED
                    or wire.lost_to_client or wire.lost_to_server)

    @cached_property
    def rtt_ms(self) -> float | None:
        """The RTT by the handshake, without serialisation; None where it lost a packet."""
        # Token buckets and cake send the first packet at once, and pause after it.
        up_kbps, down_kbps = self.trial.up_kbps, self.trial.down_kbps
        if self.trial.htb_burst_bytes:
            up_kbps = down_kbps = math.inf
        elif self.trial.qdisc in MANAGED:
            down_kbps = math.inf
        return observed_rtt_ms(self.wire, up_kbps, down_kbps)

    @property
    def rtt_allowed_ms(self) -> float:
        """How far the observed RTT may be from the requested one."""
        allowed_ms = max(self.tolerances.rtt_ms, self.tolerances.rtt_share * self.trial.rtt_ms)
        return allowed_ms + JITTER_SIGMAS * self.trial.jitter_ms

    @property
    def bandwidth_kbps(self) -> float | None:
        """The bandwidth by the spacing of the first flight; None where jitter changes it."""
        if self.trial.disorder:
            return None
        if self.trial.htb_burst_bytes:
            return bandwidth_after_burst(self.wire, HTB_UNSHAPED_PACKETS)
        if self.trial.qdisc == "cake":  # it pauses after a packet, for as long as the packet takes
            return bandwidth_after_burst(self.wire, 0)
        return self.wire.bandwidth_kbps

    @cached_property
    def retransmissions(self) -> tuple[Retransmission, ...]:
        """All retransmissions. Each has its cause, if the cause is known."""
        with_causes = []
        for sent in explain_retransmissions(self.wire, self.arp_wait_ms):
            if sent.cause is None and self.trial.disorder:
                sent = replace(sent, cause=self.trial.disorder)
            with_causes.append(sent)
        return tuple(with_causes)

    @property
    def arp_wait_ms(self) -> float:
        """How long the client waited for the reply to its ARP request: an RTT, or 0."""
        return self.trial.rtt_ms if self.trial.arp_ms else 0.0

    @cached_property
    def flights(self) -> list[list[Segment]]:
        """The flights of the server's messages up to its Finished; [] without TLS."""
        if not self.flight_bytes:
            return []
        return split_into_flights(self.wire.at_server, 0, self.flight_bytes)

    @property
    def flight_bytes(self) -> int | None:
        """The bytes of the server's messages up to its Finished; None where they are not known."""
        if "tls" in self.report:
            return sum(self.report["tls"]["flight"])
        if self.messages is None:
            return None
        return self.messages.flight_bytes or None

    @property
    def window_after_handshake(self) -> int | None:
        """The server's window by TCP_INFO, when the client's Finished had arrived."""
        if "tls" in self.report:
            return self.report["tls"]["window"]
        if not self.messages or not self.messages.flight_bytes:
            return None
        return next((window for _, received, window in self.report["samples"]
                     if received >= self.messages.before_request_bytes), None)

    @property
    def is_paced(self) -> bool:
        """Whether the server's segments are paced, by BBR or by fq."""
        return (self.trial.congestion_control not in CONGESTION_CONTROLS
                or self.trial.qdisc == "fq")

    @property
    def may_wait(self) -> bool:
        """Whether a response may leave later than it is written: after tickets, or with pacing."""
        return "tls" in self.report or self.is_paced

    @property
    def latency_ms(self) -> float | None:
        """T_ACK − T_Res1, by the server's report or by the packets.

        The packets decide where the server reports nothing. They also decide where the response
        waited for tickets or pacing, and the server noticed too late that it had left.
        """
        reported = self.report.get("latency_ms")
        wire = self.exchange.latency_ms if self.exchange is not None else None
        if self.messages is not None:
            return wire
        if reported is None or wire is None or not self.may_wait:
            return reported
        allowed_ms = max(self.tolerances.latency_ms, self.tolerances.latency_share * wire)
        return wire if wire - reported > allowed_ms else reported

    @cached_property
    def response_flights(self) -> list[list[Segment]]:
        """The flights in which the response left, which is the connection's last one."""
        if self.messages is not None:
            return split_into_flights(self.wire.at_server, self.messages.start, self.messages.end)
        size = wire_bytes(self.report)
        if not size:
            return []
        ends = (segment.end for segment in self.wire.at_server if segment.to_client)
        end = max(ends, default=1) - 1
        return split_into_flights(self.wire.at_server, end - size, end)

    @cached_property
    def upload_first_flight(self) -> int | None:
        """How many data segments the client sent before the first acknowledgement of any.

        None where requests have no body.
        """
        return len(upload_flight(self.wire)) if self.trial.request_bytes else None

    @cached_property
    def request_flights(self) -> list[list[Segment]]:
        """The flights in which the last request left; [] for a request without a body."""
        if not self.trial.request_bytes:
            return []
        size = self.trial.request_bytes + self.report.get("request_bytes", 0)
        ends = (segment.end for segment in self.wire.at_client if not segment.to_client)
        end = max(ends, default=1) - 1
        return split_into_flights(self.wire.at_client, max(end - size, 0), end, to_client=False)

    @property
    def retransmission_cause(self) -> str:
        """Why data or the handshake was retransmitted although nothing was lost.

        "" where nothing was retransmitted without a loss.
        """
        # Retransmitted requests and FINs do not count: they come before or after all data.
        counted = self.wire.syns + self.wire.syn_acks + self.wire.retransmissions
        return "; ".join(dict.fromkeys(sent.cause for sent in self.retransmissions
                                       if sent.cause and sent.segment in counted))

    @cached_property
    def _paused_writes(self) -> tuple[Segment, ...]:
        """Segments that look like a timer's, but left when the server's back-end answered."""
        return tuple(segment for segment in self.wire.probes
                     if 0 <= self._after_pause_ms(segment) <= _PAUSE_MS
                     and segment.time_ns < self.wire.first_flight_end_ns)

    @property
    def _timer_segments(self) -> tuple[Segment, ...]:
        """Segments of the first flight that a timer sent, since they left after both writes."""
        return tuple(segment for segment in self.wire.first_flight
                     if self._after_pause_ms(segment) > _PAUSE_MS)

    def _after_pause_ms(self, segment: Segment) -> float:
        """How long after the back-end's answer a segment left.

        Negative where it left before the answer, or where there is no pause.
        """
        start_ns = self.wire.response_start_ns
        if not self.trial.gap_ms or start_ns is None:
            return -math.inf
        return (segment.time_ns - start_ns) / 1e6 - self.trial.gap_ms

    # Drops -----------------------------------------------------------------------------

    @property
    def queue_drops(self) -> int | None:
        """How many packets to the client the queue dropped.

        Without counters, these are all lost packets. With random loss, they are then not known:
        None.
        """
        if self.drops:
            return self._htb_drops[0] if self._htb_drops else self.drops["to_client"]["queue"]
        return None if self.trial.loss_percent else len(self.wire.lost_to_client)

    @property
    def random_drops(self) -> int | None:
        """How many packets to the client were lost at random; None without counters."""
        if not self.drops:
            return None
        return self._htb_drops[1] if self._htb_drops else self.drops["to_client"]["random"]

    @property
    def _htb_drops(self) -> tuple[int, int] | None:
        """How many packets to the client the queue dropped, and how many were lost at random.

        The packets show it where HTB shapes, since netem then counts both together. None where the
        counters distinguish the two, or packets are not judged one by one.
        """
        if not (self.trial.htb_burst_bytes and self.trial.loss_percent and self.path):
            return None
        to_client, _ = self.path
        return len(to_client.queue_drops), len(to_client.random_drops)

    @property
    def uplink_queue_drops(self) -> int | None:
        """How many packets to the server the queue dropped."""
        return self.drops["to_server"]["queue"] if self.drops else len(self.wire.lost_to_server)

    @property
    def lost_packets(self) -> str:
        """Lost packets of the connection, such as "to client: 2 data, 1 FIN; to server: 1 ACK"."""
        ways = []
        for way, lost in (("to client", self.wire.lost_to_client),
                          ("to server", self.wire.lost_to_server)):
            if lost:
                kinds = Counter(packet.kind for packet in lost)
                counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
                ways.append(f"{way}: {counted}")
        return "; ".join(ways)

    # Why a host sent -----------------------------------------------------------------

    @property
    def shows_causes(self) -> bool:
        """Whether the packets explain when each data packet has to leave.

        They do not where the sender paces, nor with a user's own server, nor with a patched kernel,
        which may have other timers: SUSS, for example, paces slow start by one.
        """
        trial = self.trial
        return (self.path is not None and self.exchange is not None and self.tick_ns > 0
                and self.known_kernel and trial.server != OWN and not trial.paces)

    @cached_property
    def uncaused(self) -> tuple[Segment, ...]:
        """Data segments that left although nothing at their host caused it."""
        if not self.shows_causes:
            return ()
        trial = self.trial
        return find_uncaused(self.wire, self.tick_ns, Pauses(
            round(trial.gap_ms * MS), round(trial.idle_ms * MS)))

    @property
    def begun_ns(self) -> int | None:
        """How long after tick_ns the client's first packet left; None where that is not known."""
        for segment in self.wire.at_client:
            if not segment.to_client:
                return segment.time_ns - self.tick_ns if self.tick_ns else None
        return None
