"""The evidence of one trial: what was said and seen of it, and what the model makes of that.

Nothing is believed because it was configured: records and verdicts are read
off here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from lab.core.checks import Compared
from lab.core.words import exact
from lab.fetches import buffers, setups
from lab.fetches.secured import asked_bytes, secure_of, wire_bytes
from lab.fetches.tolerances import Tolerances
from lab.fetches.transfers import transfer_of
from lab.fetches.trial import Trial
from lab.tcp.exchange import Exchange, bandwidth_behind, clock_phases_ns, seen_rtt_ms
from lab.tcp.flights import flights
from lab.tcp.packets import MSS, Segment
from lab.tcp.predict import Prediction, predict
from lab.tcp.receiver import receive_window
from lab.tcp.retransmissions import Retransmission, explain
from lab.tcp.transfer import CONGESTION_CONTROLS, Transfer

# server.py waits for its back-end in whole milliseconds, and may start to twice.
_PAUSE_MS = 2.0
# curl's and wget's own time is less: what is further off may be due to the clock's phase.
_NEAR_MS = 0.1
# Those that the model follows, and those that a transfer without losses does not notice.
MODELLED_SYSCTLS = frozenset((buffers.RECEIVE, buffers.SEND, *(f"net.ipv4.tcp_{name}" for name in (
    "slow_start_after_idle", "early_retrans", "recovery", "frto", "reordering"))))
# netem's table of the normal distribution ends there (iproute2, netem/normal.c).
JITTER_SIGMAS = 4.0
# After a pause both buckets of HTB are full: so many packets leave unshaped, at most.
HTB_UNSHAPED_PACKETS = 3
OVERTAKEN = "packets that jitter let overtake each other look lost (RACK, duplicate ACKs)"


@dataclass(frozen=True)
class Evidence:
    """What there is of one trial.

    fetch, said: what the client and the server reported (client.py,
    server.py), nothing where the transfer failed. exchange: what the packets
    say, None where they cannot be read. sysctls: what the scenario set
    otherwise than engines.kernel.TCP_SYSCTLS. drops: what the bench's qdiscs
    counted (engines.fetch_bench), {} in runs before it did.
    """

    trial: Trial
    fetch: Mapping[str, Any]
    said: Mapping[str, Any]
    exchange: Exchange | None
    tolerances: Tolerances
    sysctls: Mapping[str, str]
    drops: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    # What the packets say ------------------------------------------------------------

    @property
    def wire(self) -> Exchange:
        """The exchange, where there is one."""
        assert self.exchange is not None
        return self.exchange

    @property
    def first_flight(self) -> int | None:
        """Segments before the first acknowledgement of data, paused ones included."""
        flight = len(self.wire.first_flight)
        if not self.trial.before and flight < self.trial.server_window:
            flight += len(self._paused_writes)
        return flight or None

    @property
    def expected_first_flight(self) -> int:
        """As many as the windows let leave, the small segment of a write by itself included.

        A part of a segment may fill the receive window up (tcp_mss_split_point).
        """
        trial = self.trial
        if not trial.head or trial.gap_ms or trial.before:
            return self.prediction.first_flight
        room = receive_window(trial.client_window)
        whole = setups.segments_at_once(
            trial.writes, self.said["header_bytes"] + trial.response_bytes, trial.mss,
            trial.nagle == "on", room)
        fills = max((segment.end for segment in self.wire.first_flight), default=0) == 1 + room
        return min(trial.server_window, whole + fills)

    @cached_property
    def rtt_ms(self) -> float | None:
        # Token buckets and cake send the first packet at once, and wait after it.
        trial, shaped_by_htb = self.trial, self.trial.htb_burst_bytes > 0
        return seen_rtt_ms(
            self.wire, math.inf if shaped_by_htb else trial.up_kbps,
            math.inf if shaped_by_htb or trial.qdisc in ("fq_codel", "cake") else trial.down_kbps)

    @property
    def rtt_allowed_ms(self) -> float:
        """How far the RTT seen may be from the one asked."""
        return (max(self.tolerances.rtt_ms, self.tolerances.rtt_share * self.trial.rtt_ms)
                + JITTER_SIGMAS * self.trial.jitter_ms)

    @property
    def bandwidth_kbps(self) -> float | None:
        """From the spacing of the first flight at the client, which jitter spreads."""
        if self.trial.jitter_ms:
            return None
        if self.trial.htb_burst_bytes:
            return bandwidth_behind(self.wire, HTB_UNSHAPED_PACKETS)
        return self.wire.bandwidth_kbps

    @cached_property
    def retransmissions(self) -> tuple[Retransmission, ...]:
        """All that was sent again, with its cause as far as there is one."""
        return tuple(replace(found, cause=OVERTAKEN)
                     if found.cause is None and self.trial.jitter_ms else found
                     for found in explain(self.wire, self.asked_ms))

    @property
    def asked_ms(self) -> float:
        """How long the client asked for the server's address: as long as an RTT."""
        return self.trial.rtt_ms if self.trial.arp_ms else 0.0

    @cached_property
    def flights(self) -> list[list[Segment]]:
        """The server's messages up to its Finished, by round trips; none without TLS."""
        return flights(self.wire.at_server, 0, sum(self.said["tls"]["flight"])) \
            if "tls" in self.said else []

    @property
    def response_round_trips(self) -> int | None:
        """Flights in which the response left, the last that the server sent."""
        size = wire_bytes(self.said)
        end = max((s.end for s in self.wire.at_server if s.to_client), default=1) - 1
        return len(flights(self.wire.at_server, end - size, end)) or None if size else None

    @property
    def retransmission_cause(self) -> str:
        """Why data or the handshake was sent again although nothing was lost."""
        # A FIN sent again comes after all data, and the request before it.
        counted = self.wire.syns + self.wire.syn_acks + self.wire.retransmissions
        return "; ".join(dict.fromkeys(found.cause for found in self.retransmissions
                                       if found.cause and found.segment in counted))

    @cached_property
    def _paused_writes(self) -> tuple[Segment, ...]:
        """Lone segments that look like a timer's and left when the server's back-end answered."""
        if not self.trial.gap_ms or self.wire.response_start_ns is None:
            return ()
        due_ns = self.wire.response_start_ns + round(self.trial.gap_ms * 1e6)
        return tuple(segment for segment in self.wire.probes
                     if 0 <= segment.time_ns - due_ns <= _PAUSE_MS * 1e6)

    # What was dropped ----------------------------------------------------------------

    @property
    def queue_drops(self) -> int | None:
        """Packets towards the client; without counters, all losses where chance takes none."""
        if self.drops:
            return self.drops["to_client"]["queue"]
        return None if self.trial.loss_percent else len(self.wire.lost_to_client)

    @property
    def random_drops(self) -> int | None:
        return self.drops["to_client"]["random"] if self.drops else None

    # What the model says -------------------------------------------------------------

    @property
    def transfer(self) -> Transfer:
        """What the model needs to know of a transfer that succeeded."""
        trial = self.trial
        header_bytes, request_bytes = self.said["header_bytes"], self.said["request_bytes"]
        earlier: dict[str, Any] = {}
        if trial.before:
            # The same request and headers, but for the sizes that they name.
            digits = len(str(trial.before[0])) - len(str(trial.response_bytes))
            path = (f"?burst={trial.burst_bytes}&gap_ms={exact(trial.gap_ms)}" if trial.gap_ms
                    else "")
            earlier = {"earlier_bytes": trial.before[0] + header_bytes + digits,
                       "earlier_request_bytes": request_bytes + digits - len(path)}
        secure = secure_of(self.said)
        writes = tuple(self.said["tls"]["response"]) if secure is not None else ()
        return transfer_of(trial, self.sysctls, header_bytes, request_bytes, secure, writes,
                           **earlier)

    @cached_property
    def prediction(self) -> Prediction:
        """The model's word on the transfer.

        Where the times disagree the model is asked again with the phase of the
        kernel's clock that the packets tell, the one nearest to where trials
        begin: without it predictions can be shared among repeats.
        """
        first = predict(self.transfer)
        seen = self.fetch.get("total_ms"), self.said.get("latency_ms")
        if all(time is not None and abs(time - predicted_ms) <= _NEAR_MS for time, predicted_ms
               in zip(seen, (self._total_ms(first), first.latency_ms))):
            return first
        phases_ns = clock_phases_ns(self.wire)
        if phases_ns is None:
            return first
        nearest_ns = min(max(self.transfer.clock_phase_ns, phases_ns[0]), phases_ns[1])
        return predict(replace(self.transfer, clock_phase_ns=nearest_ns))

    @property
    def model_ms(self) -> float | None:
        return self._total_ms(self.prediction) if self.is_modelled else None

    @property
    def model_latency_ms(self) -> float | None:
        return self.prediction.latency_ms if self.is_modelled else None

    @property
    def model_appconnect_ms(self) -> float | None:
        return self.prediction.appconnect_ms or None if self.is_modelled else None

    @property
    def model_first_byte_ms(self) -> float | None:
        return self.prediction.first_byte_ms if self.is_modelled else None

    @property
    def model_retransmissions(self) -> int:
        return self.prediction.retransmissions if self.is_modelled else 0

    @property
    def may_lose(self) -> bool:
        """Whether loss is asked for, or the queue is too short to hold it all.

        What was sent again, and the model does not know of, comes on top.
        """
        again = len(self.wire.retransmissions) + self.wire.handshake_retransmissions
        return (self.trial.loss_percent > 0 or not self._is_followed
                or self.prediction.peak_queue + again > self.trial.queue_packets)

    def against(self, prediction: Prediction) -> list[Compared]:
        """Total time and latency against the model; none where it does not know all of it."""
        if not self._is_comparable(prediction):
            return []
        return [self._near(self.fetch.get("total_ms"), self._total_ms(prediction)),
                self._near(self.said.get("latency_ms"), prediction.latency_ms)]

    def handshake_against(self, prediction: Prediction) -> list[Compared]:
        """The end of TLS's handshake, the first byte, the server's window, against the model."""
        if "tls" not in self.said or not self._is_comparable(prediction):
            return []
        window, predicted = self.said["tls"]["window"], prediction.window_after_handshake
        trips, computed = len(self.flights), prediction.handshake_round_trips
        return [self._near(self.fetch.get("appconnect_ms"), prediction.appconnect_ms),
                self._near(self.fetch.get("first_byte_ms"), prediction.first_byte_ms),
                Compared(window == predicted, f"a window of {window} segments", f"{predicted}"),
                Compared(trips == computed, f"{trips} round trips", f"{computed}")]

    def _is_comparable(self, prediction: Prediction) -> bool:
        again = len(self.wire.retransmissions)
        return not (self.tolerances.model_ms is None or not self.is_modelled
                    or self.wire.lost_to_client or self.wire.lost_to_server
                    or (again and again != prediction.retransmissions))

    def _near(self, seen: float | None, predicted_ms: float) -> Compared:
        """A time that the model predicts, within its tolerance."""
        late_ms = (math.nan if seen is None else seen) - predicted_ms
        allowed = max(self.tolerances.model_ms or 0.0, self.tolerances.model_share * predicted_ms)
        return Compared(abs(late_ms) <= allowed, f"{late_ms + predicted_ms:.3f} ms",
                        f"{predicted_ms:.3f} ms")

    @property
    def is_modelled(self) -> bool:
        return (self.exchange is not None and bool(self.said) and not self.trial.jitter_ms
                and self._is_followed and not self._repeats_its_request)

    @property
    def _repeats_its_request(self) -> bool:
        """Whether the client's timer sent again, over TLS; the model does so with HTTP alone."""
        end = asked_bytes(self.said)
        return any(segment.payload_bytes and segment.seq <= end
                   for segment in self.wire.client_retransmissions)

    @property
    def _is_followed(self) -> bool:
        """Whether the model knows such senders, queues and settings."""
        trial = self.trial
        return (trial.congestion_control in CONGESTION_CONTROLS and trial.qdisc == "fifo"
                and trial.mss == MSS and len(trial.before) <= 1 and not trial.idle_ms
                and not (trial.htb_burst_bytes or trial.arp_ms or trial.head)
                and not (trial.chain_bytes and trial.gap_ms)
                and (trial.nagle, trial.framing) == ("off", "length")
                and self.sysctls.keys() <= MODELLED_SYSCTLS)

    def _total_ms(self, prediction: Prediction) -> float:
        # wget tells no times: its total is that of the process, earlier fetches included.
        return prediction.total_ms + (
            prediction.started_ms if self.trial.client == "wget" else 0.0)
