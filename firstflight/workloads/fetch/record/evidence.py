"""Evidence: what was observed of one trial, and what the model computes of it.

Records and verdicts are made from an Evidence, never from the configuration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from firstflight.base.comparison import Comparison
from firstflight.base.words import format_lossless
from firstflight.judge.path import counted_drops
from firstflight.judge.shared_evidence import Body, ConnectionEvidence, SharedEvidence
from firstflight.model.predict import Prediction, first_flight, predict, count_unacknowledged
from firstflight.model.receiver import receive_window
from firstflight.model.transfer import CONGESTION_CONTROLS, Transfer
from firstflight.net.headers import MSS
from firstflight.net.link import MANAGED
from firstflight.parameters import default
from firstflight.setting.server import OWN
from firstflight.setting.tcp import (MOST_BEYOND_FIXED, MOST_IN_A_SYN_BYTES, RECEIVE, SEND,
                                     buffer_sizes)
from firstflight.wire.delivery.packet_path import PATH
from firstflight.wire.exchange import clock_phases_ns, nearest_phase_ns, server_rtt_us
from firstflight.workloads.fetch.response import segments_at_once
from firstflight.workloads.fetch.record.observed import HOST, TCP, Observed
from firstflight.workloads.fetch.record.transfers import (more_digits, secure_of, transfer_of,
                                                          upload_writes)

# How far a time may be from the model's for the prediction to be taken as it is. curl and wget need
# less time themselves. A larger deviation may come from the phase of the clock.
_NEAR_MS = 0.1
# The longest transfer that the model computes, about 100 MB. Longer ones would take it seconds.
MOST_SEGMENTS = 75_000
# With smaller segments over TLS the model deviates by up to 0.13 %.
LEAST_SECURE_MSS = 256
# Sysctls that the model follows, or that do not change a transfer without losses.
MODELLED_SYSCTLS = frozenset((RECEIVE, SEND, *(f"net.ipv4.tcp_{name}" for name in (
    "slow_start_after_idle", "early_retrans", "recovery", "frto", "reordering"))))


@dataclass(frozen=True)
class Evidence(Observed):
    """What was observed of a trial, and what the model computes of it."""

    @property
    def expected_first_flight(self) -> tuple[int, int]:
        """The smallest and the largest first flight that the windows allow, in segments.

        They differ where the windows alone do not decide on the second of two writes. They also
        differ where the sender paces: an acknowledgement may arrive before the whole window has
        left, and only TCP_INFO shows the window.

        The small segment of a short write counts. A partial segment may fill up the receive window
        (tcp_mss_split_point).
        """
        if not self.is_paced:
            return self._first_flight
        _, most = self._first_flight
        return 1, most

    @property
    def _first_flight(self) -> tuple[int, int]:
        """The smallest and the largest first flight of a sender that does not pace."""
        trial = self.trial
        if self.first_ack_may_be_late:
            return self._first_flight_of_two_writes
        if not trial.head or trial.gap_ms or trial.before:
            # The prediction is needed for more than the flight, unless packets are disordered.
            is_predicted = self._is_followed and not trial.disorder
            flight = (self.prediction.first_flight if is_predicted
                      else first_flight(self.transfer))
            # Losses, reordering and other queues move acknowledgements and timers, and a partial
            # segment may fill a buffer. Then the flight has one segment more or less.
            is_moved = bool(trial.disorder or trial.qdisc in MANAGED or self.is_paced
                            or self.wire.lost_to_client or self.wire.lost_to_server)
            tolerance = 1 if is_moved else 0
            return max(flight - tolerance, 1), flight + tolerance

        buffers = buffer_sizes(trial.with_buffers(self.sysctls), RECEIVE)
        room = receive_window(trial.client_window, buffers, trial.syn_mss,
                              self.transfer.window_unit)
        fitting = segments_at_once(
            trial.writes, self.report["header_bytes"] + trial.response_bytes, self.mss,
            nagle=trial.nagle == "on", receive_bytes=room)
        flight_end = max((segment.end for segment in self.wire.first_flight), default=0)
        if flight_end == 1 + room:  # a partial segment filled up the receive window
            fitting += 1
        segments = min(trial.server_window, fitting)
        return segments, segments

    @property
    def _first_flight_of_two_writes(self) -> tuple[int, int]:
        """The same where losses or jitter decide when the first of two writes is acknowledged.

        The packets show whether it was acknowledged before the second write. If it was not, both
        writes are one flight, up to the window. If a timer retransmitted before the second write,
        the retransmissions use a part of the window.
        """
        trial = self.trial
        start_ns = self.wire.response_start_ns or 0
        second_write_ns = start_ns + round(trial.gap_ms * 1e6)
        least, most, both = self._unacknowledged_writes
        if self.is_paced:
            return least, trial.server_window + 1  # a timer's segment looks like a paced one
        if self.wire.first_flight_end_ns < second_write_ns:
            return least, most
        was_retransmitted = any(start_ns < segment.time_ns < second_write_ns for segment
                                in (*self.wire.retransmissions, *self.wire.probes))
        return least if was_retransmitted else min(both), max(both)

    @property
    def _unacknowledged_writes(self) -> tuple[int, int, list[int]]:
        """The smallest and the largest first write, and the sizes of both writes together.

        All are in segments. The sizes depend on the RTT of the handshake, which the packets show
        within bounds. It decides how large batches are (tcp_tso_autosize), and so whether the last
        few segments wait (tcp_tso_should_defer).
        """
        firsts, both = [], []
        for handshake_us in dict.fromkeys(server_rtt_us(self.wire) or (None,)):
            transfer = replace(self.transfer, handshake_us=handshake_us)
            first, together = count_unacknowledged(transfer)
            firsts.append(max(first, 1))
            both.append(max(first, together, 1))  # the second write may be empty
        return min(firsts), max(firsts), both

    @cached_property
    def transfer(self) -> Transfer:
        """The trial as the model's Transfer. It exists only for a transfer that succeeded."""
        trial = self.trial
        header_bytes, request_bytes = self.report["header_bytes"], self.report["request_bytes"]
        secure = secure_of(self.report)
        writes = tuple(self.report["tls"]["response"]) if secure is not None else ()
        requested = transfer_of(trial, self.sysctls, header_bytes, request_bytes=request_bytes,
                                secure=secure, writes=writes)
        observed: dict[str, Any] = {"mss": self.mss}
        # The SYN shows the window scale; without the option windows are not scaled (RFC 7323, 2.2).
        if self.exchange is not None and self.exchange.syns:
            observed["window_scale"] = self.exchange.syns[0].scale
        return replace(requested, **observed, **self._earlier(header_bytes, request_bytes))

    def _earlier(self, header_bytes: int, request_bytes: int) -> dict[str, Any]:
        """The fields of Transfer for earlier responses; {} where there are none.

        header_bytes, request_bytes: of the measured response and its request.
        """
        trial = self.trial
        if not trial.before:
            return {}

        digits = more_digits(trial)
        earlier_request = request_bytes + digits
        if trial.gap_ms:  # earlier requests do not ask for two writes
            gap_ms = format_lossless(trial.gap_ms)
            earlier_request -= len(f"?burst={trial.burst_bytes}&gap_ms={gap_ms}")
        return {"earlier_bytes": trial.before[0] + header_bytes + digits,
                "earlier_request_bytes": earlier_request,
                "earlier_writes": upload_writes(earlier_request, trial.request_bytes),
                "earlier_count": len(trial.before)}

    @cached_property
    def prediction(self) -> Prediction:
        """The model's prediction of the transfer.

        The first prediction assumes a usual phase of the kernel's clock, so that repeats share the
        prediction. Where its times do not agree, the model computes again with a phase that the
        packets show: the one nearest to the start of the connection.
        """
        first = predict(self.transfer)
        observed = [self.fetch.get("total_ms"), self.latency_ms]
        predicted = [self._total_ms(first), first.latency_ms]
        if "tls" in self.report:  # the first record may come before or after a retransmission
            observed += [self.fetch.get("first_byte_ms"), self.fetch.get("appconnect_ms")]
            predicted += [first.first_byte_ms, first.appconnect_ms]
        if all(time is not None and abs(time - predicted_ms) <= _NEAR_MS
               for time, predicted_ms in zip(observed, predicted)):
            return first

        phases_ns = clock_phases_ns(self.wire)
        if phases_ns is None:
            return first
        # Phases count from the beginning of the trial, since timers of seconds have a coarser grid.
        begun_ns = self.begun_ns or self.transfer.clock_phase_ns
        return predict(replace(self.transfer, clock_phase_ns=nearest_phase_ns(
            phases_ns, begun_ns)))

    @property
    def model_ms(self) -> float | None:
        """The client's total time by the model. Here and below None: the model does not cover it.
        """
        return self._total_ms(self.prediction) if self.is_modelled else None

    @property
    def model_latency_ms(self) -> float | None:
        """The latency at the server by the model."""
        return self.prediction.latency_ms if self.is_modelled else None

    @property
    def model_appconnect_ms(self) -> float | None:
        """The end of TLS's handshake by the model; None without TLS, too."""
        return (self.prediction.appconnect_ms or None) if self.is_modelled else None

    @property
    def model_first_byte_ms(self) -> float | None:
        """The time to the first byte by the model."""
        return self.prediction.first_byte_ms if self.is_modelled else None

    @property
    def model_retransmissions(self) -> int:
        """How many segments of data the server retransmits by the model; 0 where it covers nothing.
        """
        return self.prediction.retransmissions if self.is_modelled else 0

    @property
    def may_lose(self) -> bool:
        """Whether loss is requested, or the queue may be too short for the transfer.

        The model computes the longest queue. All retransmissions are added to it.
        """
        retransmitted = (len(self.wire.retransmissions) + self.wire.handshake_retransmissions
                         + len(self.wire.client_retransmissions))
        return (self.trial.loss_percent > 0 or not self._is_followed
                or self.prediction.peak_queue + retransmitted > self.trial.path.down.queue_packets)

    @property
    def judged_by(self) -> str:
        """Which of PATH, HOST and TCP judge the trial, separated by spaces."""
        words = {PATH: self.path is not None, HOST: self.shows_causes,
                 TCP: self.is_comparable}
        return " ".join(word for word, judges in words.items() if judges)

    @cached_property
    def shared(self) -> SharedEvidence:
        """The evidence for the checks that all workloads share."""
        trial, fetch, report = self.trial, self.fetch, self.report
        connections = []
        if self.exchange is not None:
            connections.append(ConnectionEvidence(self.exchange, reports=(report,),
                                                  initial_window=self._initial_window))
        body = Body(fetch["size"], report.get("body_bytes", trial.response_bytes),
                    trial.response_bytes, sha256=fetch["sha256"], sent_sha256=report["sha256"],
                    source="as it came at first" if trial.own_server else "as sent")
        return SharedEvidence(
            trial, connections, client_sysctls=self.sysctls, server_sysctls=self.sysctls,
            is_exact=self.tolerances.model_ms is not None, path=self.path,
            drops=counted_drops(trial, self.drops), bodies=(body,), nagle=trial.nagle,
            knows_server=trial.server != OWN)

    @property
    def _initial_window(self) -> int | None:
        """The server's initial window by TCP_INFO; the first flight where that came too late."""
        window = self.report["initial_window"]
        return self.first_flight if window is None else window

    # Comparisons with the model -------------------------------------------------------

    def compare_total(self) -> list[Comparison]:
        """Compare the client's total time with the model's; [] where the model does not judge."""
        if not self.is_comparable:
            return []
        return [self.compare_time(self.fetch.get("total_ms"), self._total_ms(self.prediction))]

    def compare_latency(self) -> list[Comparison]:
        """Compare the latency with the model's; [] where the model does not judge."""
        if not self.is_comparable:
            return []
        return [self.compare_time(self.latency_ms, self.prediction.latency_ms)]

    @cached_property
    def is_comparable(self) -> bool:
        """Whether the transfer has to take the times that the model computes."""
        return (self.tolerances.model_ms is not None and self.is_modelled
                and not (self.wire.lost_to_client or self.wire.lost_to_server)
                and len(self.wire.retransmissions) in (0, self.prediction.retransmissions)
                and (not self.trial.request_bytes or self.client_retransmissions
                     == self.prediction.client_retransmissions))

    def compare_time(self, observed: float | None, predicted_ms: float) -> Comparison:
        """Compare a time in ms with the model's. A missing time does not pass."""
        deviation_ms = (math.nan if observed is None else observed) - predicted_ms
        allowed = max(self.tolerances.model_ms or 0.0, self.tolerances.model_share * predicted_ms)
        return Comparison(abs(deviation_ms) <= allowed, f"{deviation_ms + predicted_ms:.3f} ms",
                          f"{predicted_ms:.3f} ms")

    @property
    def client_retransmissions(self) -> int:
        """How many data segments the client retransmitted."""
        return sum(1 for segment in self.wire.client_retransmissions if segment.payload_bytes)

    @cached_property
    def is_modelled(self) -> bool:
        """Whether the model covers the transfer as it was observed, except for losses."""
        return (self.exchange is not None and not self.trial.disorder
                and self._is_followed and not self._repeats_its_hello)

    @property
    def _repeats_its_hello(self) -> bool:
        """Whether the client's timer retransmitted its hello, which the model does not cover."""
        end = self.report["tls"]["hello_bytes"] if "tls" in self.report else 0
        return any(segment.payload_bytes and segment.seq <= end
                   for segment in self.wire.client_retransmissions)

    @cached_property
    def _is_followed(self) -> bool:
        """Whether the model covers the trial's server, sender, queue and settings."""
        trial = self.trial
        requests = 1 + len(trial.before)
        segments = ((sum(trial.before) + trial.response_bytes) // trial.mss
                    + requests * trial.request_bytes // MSS)
        knows_kernel = trial.kernel == default("kernel") or self.tolerances.model_ms is not None
        knows_tls = not (trial.gap_ms or trial.mss < LEAST_SECURE_MSS)
        return (self.has_report and trial.congestion_control in CONGESTION_CONTROLS
                and segments <= MOST_SEGMENTS
                and trial.is_modelled
                and knows_kernel
                and (knows_tls or not trial.chain_bytes)
                and self.sysctls.keys() <= MODELLED_SYSCTLS and not self._nearly_needs_a_scale)

    @property
    def _nearly_needs_a_scale(self) -> bool:
        """Whether a receive window that stays fits into 16 bits, but not with two segments more.

        Until the client has read its first data, it offers two segments more (NarrowBody of
        testbed.hosts.http_client). The model does not know what happens where 16 bits do not hold
        that window.
        """
        most = self.trial.most_window_bytes
        return 0 < most <= MOST_IN_A_SYN_BYTES < most + MOST_BEYOND_FIXED * self.trial.mss

    def _total_ms(self, prediction: Prediction) -> float:
        """The client's total time by a prediction."""
        if self.trial.client == "wget":
            # wget reports no times: its total is that of the process, earlier fetches included.
            return prediction.started_ms + prediction.total_ms
        return prediction.total_ms
