"""The verdict on one trial: is what was measured what was asked for?

Nothing is believed because it was configured. The initial window, the RTT,
the bandwidth, losses and retransmissions are looked up in the packets of that
very trial; the transfer's size and digest are compared with the server's; and
in virtual time every trial that retransmits nothing must take what
lab.tcp.predict computes, to the millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from lab.records import FAIL, PASS, SKIPPED, Record
from lab.tcp.exchange import Exchange, clock_phase_ns, read_exchange, seen_rtt_ms
from lab.tcp.packets import HEADER_BYTES, SYN_BYTES, CaptureError, Segment
from lab.tcp.path import STAMP_MS
from lab.tcp.predict import CONGESTION_CONTROLS, Prediction, Transfer, predict
from lab.tcp.retransmissions import Retransmission, explain
from lab.trial import Trial

# server.py waits for its back-end in whole milliseconds, and may start to twice.
_PAUSE_MS = 2.0


@dataclass(frozen=True)
class Tolerances:
    """How far what was seen may be from what was asked: the larger of ms and share.

    model_ms is None where the model is no part of the verdict.
    """

    rtt_ms: float
    rtt_share: float
    bandwidth_share: float
    spacing_ms: float
    latency_ms: float
    latency_share: float
    model_ms: float | None
    model_share: float


# Virtual time: computing takes none, what remains is rounding.
EXACT = Tolerances(rtt_ms=0.05, rtt_share=0.001, bandwidth_share=0.001, spacing_ms=STAMP_MS,
                   latency_ms=0.05, latency_share=0.0, model_ms=1.0, model_share=0.001)
# Real time: timers fire late and processors are busy.
REAL_TIME = Tolerances(rtt_ms=3.0, rtt_share=0.03, bandwidth_share=0.05, spacing_ms=1.0,
                       latency_ms=2.0, latency_share=0.02, model_ms=None, model_share=0.0)


@dataclass(frozen=True)
class Check:
    """One comparison; seen and asked are words for the reader."""

    name: str
    passed: bool
    seen: str
    asked: str

    def __str__(self) -> str:
        return f"{self.name}: seen {self.seen}, asked {self.asked}"


def judge(trial: Trial, observation: dict[str, Any], client_pcap: bytes, server_pcap: bytes,
          *, exact: bool, sysctls: Mapping[str, str] | None = None) -> Record:
    """The record of a trial: its measurements, what the wire says, and the verdict.

    observation: one line of the worker (engines/worker.py); client_pcap and
    server_pcap: the trial's packets. exact: whether time was virtual. sysctls:
    what the scenario set otherwise than engines.kernel.TCP_SYSCTLS.
    """
    record = Record(trial=trial, ok=False, measured_at=_time(observation))
    failure = _failure(observation)
    if failure:
        return replace(_with_wire(record, observation, client_pcap, server_pcap),
                       error=failure, verdict=SKIPPED)
    fetch, said = observation["fetch"], observation["server"]
    record = replace(record, ok=True, **_measured(fetch, said))
    broken = [check for check in _integrity(trial, fetch, said) if not check.passed]
    if broken:
        return replace(record, ok=False, error=_reason(broken), verdict=FAIL,
                       verdict_reason=_reason(broken))
    try:
        exchange = _exchange(observation, client_pcap, server_pcap)
    except CaptureError as error:
        return replace(record, verdict=FAIL, verdict_reason=f"capture: {error}")
    return _judged(record, exchange, EXACT if exact else REAL_TIME, sysctls or {})


def _judged(record: Record, exchange: Exchange, tolerances: Tolerances,
            sysctls: Mapping[str, str]) -> Record:
    transfer = replace(transfer_of(record), restart_after_idle=sysctls.get(
        "net.ipv4.tcp_slow_start_after_idle", "1") != "0")
    prediction = predicted(transfer, record, exchange, tolerances)
    again = explain(exchange)
    record = replace(record, **_seen(record.trial, exchange, again))
    if record.trial.congestion_control in CONGESTION_CONTROLS:
        record = replace(record, model_ms=_predicted_total_ms(record.trial, prediction),
                         model_latency_ms=prediction.latency_ms)
    failed = [check for check in (
        *_window_checks(record, exchange, prediction),
        *_link_checks(record, exchange, tolerances),
        *_loss_checks(record, exchange, again, prediction),
        _latency_check(record, tolerances),
        *_model_checks(record, exchange, prediction, tolerances)) if not check.passed]
    return replace(record, verdict=FAIL if failed else PASS, verdict_reason=_reason(failed))


def predicted(transfer: Transfer, record: Record, exchange: Exchange,
              tolerances: Tolerances) -> Prediction:
    """The model's word on a record's transfer.

    Where the record disagrees the model is asked again with the phase of the
    kernel's clock that the packets tell: it moves only long responses, and
    without it predictions can be shared among repeats.
    """
    prediction = predict(transfer)
    agrees = all(check.passed for check in _model_checks(record, exchange, prediction, EXACT))
    if not agrees and tolerances.model_ms is not None:
        phase_ns = clock_phase_ns(exchange)
        if phase_ns is not None:
            prediction = predict(replace(transfer, clock_phase_ns=phase_ns))
    return prediction


def _predicted_total_ms(trial: Trial, prediction: Prediction) -> float:
    # wget tells no times: its total is that of the process, earlier fetches included.
    started_ms = prediction.started_ms if trial.client == "wget" else 0.0
    return started_ms + prediction.total_ms


def transfer_of(record: Record) -> Transfer:
    """What the model needs to know of a record whose transfer succeeded."""
    trial = record.trial
    header_bytes, request_bytes = record.header_bytes or 0, record.request_bytes or 0
    earlier: dict[str, Any] = {}
    if trial.earlier_bytes:
        # The same request and headers, but for the sizes that they name.
        digits = len(str(trial.earlier_bytes)) - len(str(trial.response_bytes))
        path = f"?burst={trial.burst_bytes}&gap_ms={trial.gap_ms:g}" if trial.gap_ms else ""
        earlier = {"earlier_bytes": trial.earlier_bytes + header_bytes + digits,
                   "earlier_request_bytes": request_bytes + digits - len(path)}
    return Transfer(rtt_ms=trial.rtt_ms, bandwidth_kbps=trial.bandwidth_kbps,
                    uplink_kbps=trial.uplink_kbps, initcwnd=trial.initcwnd,
                    initrwnd=trial.initrwnd, congestion_control=trial.congestion_control,
                    response_bytes=header_bytes + trial.response_bytes,
                    request_bytes=request_bytes, gap_ms=trial.gap_ms,
                    burst_bytes=header_bytes + trial.burst_bytes, **earlier)


def _failure(observation: dict[str, Any]) -> str:
    """Why there is nothing to judge, "" if there is."""
    if observation.get("error"):
        return str(observation["error"])
    fetch, said = observation.get("fetch"), observation.get("server")
    if not fetch:
        return "the worker reported no fetch"
    if not fetch["ok"]:
        return str(fetch["error"] or "the fetch failed")
    if not said or "latency_ms" not in said:
        return f"the server reported no response: {(said or {}).get('error') or 'no reason'}"
    if said.get("error"):
        return f"server: {said['error']}"
    return ""


def _measured(fetch: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    return {"connect_ms": fetch["connect_ms"], "first_byte_ms": fetch["first_byte_ms"],
            "total_ms": fetch["total_ms"], "latency_ms": said["latency_ms"],
            "header_bytes": said["header_bytes"], "request_bytes": said["request_bytes"],
            "seen_initcwnd": said["initial_window"]}


def _with_wire(record: Record, observation: dict[str, Any], client_pcap: bytes,
               server_pcap: bytes) -> Record:
    """What the wire says of a failed transfer, as far as there is anything on it."""
    try:
        exchange = _exchange(observation, client_pcap, server_pcap)
    except CaptureError:
        return record
    return replace(record, **_seen(record.trial, exchange, explain(exchange)))


def _exchange(observation: dict[str, Any], client_pcap: bytes, server_pcap: bytes) -> Exchange:
    for side, packets in (("client", client_pcap), ("server", server_pcap)):
        expected = observation.get("captures", {}).get(side, {}).get("bytes", len(packets))
        if len(packets) != expected:
            raise CaptureError(f"{side} capture has {len(packets)} of {expected} bytes")
    said, fetch = observation.get("server") or {}, observation.get("fetch") or {}
    response_bytes = said.get("header_bytes", 0) + said.get("body_bytes", 0)
    return read_exchange(client_pcap, server_pcap,
                         int(said.get("client_port") or fetch.get("port") or 0), response_bytes)


def _seen(trial: Trial, exchange: Exchange, again: tuple[Retransmission, ...]
          ) -> dict[str, Any]:
    # A FIN sent again comes after all data, and the request before it.
    counted = exchange.syns + exchange.syn_acks + exchange.retransmissions
    flight = len(exchange.first_flight)
    if not trial.earlier_bytes and flight < trial.initcwnd:
        flight += len(_paused_writes(trial, exchange))
    return {"wire_latency_ms": exchange.latency_ms, "seen_first_flight": flight or None,
            "seen_rtt_ms": seen_rtt_ms(exchange, trial.uplink_kbps, trial.bandwidth_kbps),
            "seen_bandwidth_kbps": exchange.bandwidth_kbps,
            "retransmissions": len(exchange.retransmissions),
            "handshake_retransmissions": exchange.handshake_retransmissions,
            "lost_segments": len(exchange.lost_data),
            "retransmission_cause": "; ".join(dict.fromkeys(
                found.cause for found in again
                if found.cause and found.segment in counted))}


def _paused_writes(trial: Trial, exchange: Exchange) -> tuple[Segment, ...]:
    """Lone segments that look like a timer's and left when the server's back-end answered."""
    if not trial.gap_ms or exchange.response_start_ns is None:
        return ()
    due_ns = exchange.response_start_ns + trial.gap_ms * 1e6
    return tuple(segment for segment in exchange.probes
                 if 0 <= segment.time_ns - due_ns <= _PAUSE_MS * 1e6)


def _window_checks(record: Record, exchange: Exchange, prediction: Prediction) -> list[Check]:
    """Initial window and first flight.

    Left out where SYN-ACKs were lost and repeated: then the window is one
    segment by right (RFC 6928 section 2, tcp_init_transfer).
    """
    if exchange.handshake_was_lost and len(exchange.syn_acks) > 2:
        return []
    asked = record.trial.initcwnd
    checks = [Check("initial window", record.seen_initcwnd == asked,
                    f"{record.seen_initcwnd} segments", f"{asked}")]
    if record.seen_first_flight is not None:
        checks.append(Check("first flight", record.seen_first_flight == prediction.first_flight,
                            f"{record.seen_first_flight} segments",
                            f"{prediction.first_flight}"))
    return checks


def _link_checks(record: Record, exchange: Exchange, tolerances: Tolerances) -> list[Check]:
    checks = []
    trial = record.trial
    if record.seen_rtt_ms is not None:
        allowed = max(tolerances.rtt_ms, tolerances.rtt_share * trial.rtt_ms)
        checks.append(Check("RTT", abs(record.seen_rtt_ms - trial.rtt_ms) <= allowed,
                            f"{record.seen_rtt_ms:.3f} ms", f"{trial.rtt_ms:g} ms"))
    if record.seen_bandwidth_kbps is not None:
        # Compared as times: over a short flight a tick of the clock is a
        # larger share than over a long one.
        seen_ms = exchange.flight_arrivals[-1].ms_after(exchange.flight_arrivals[0])
        asked_ms = seen_ms * record.seen_bandwidth_kbps / trial.bandwidth_kbps
        allowed = max(tolerances.spacing_ms, tolerances.bandwidth_share * asked_ms)
        checks.append(Check("bandwidth", abs(seen_ms - asked_ms) <= allowed,
                            f"{record.seen_bandwidth_kbps:.2f} kbit/s",
                            f"{trial.bandwidth_kbps:g} kbit/s"))
    return checks


def _loss_checks(record: Record, exchange: Exchange, again: tuple[Retransmission, ...],
                 prediction: Prediction) -> list[Check]:
    checks = []
    lost = len(exchange.lost_to_client) + len(exchange.lost_to_server)
    if is_lossless(record.trial, prediction):
        checks.append(Check("lost packets", lost == 0, f"{lost}", "none"))
    unexplained = [found.segment for found in again if found.cause is None]
    names = ", ".join(f"{s.seq}–{s.end_with_fin}" for s in unexplained[:5])
    checks.append(Check("retransmissions", not unexplained,
                        f"{len(unexplained)} without loss or a timer to explain them ({names})",
                        "none"))
    return checks


def is_lossless(trial: Trial, prediction: Prediction) -> bool:
    """Whether nothing may be lost: no random loss, and a queue that holds it all."""
    return trial.loss_percent == 0 and prediction.peak_queue <= trial.queue_packets


def _model_checks(record: Record, exchange: Exchange, prediction: Prediction,
                  tolerances: Tolerances) -> list[Check]:
    """Total time and latency against the model, where it knows all that happened."""
    lost = exchange.lost_to_client or exchange.lost_to_server
    if (tolerances.model_ms is None or lost or exchange.retransmissions
            or record.trial.congestion_control not in CONGESTION_CONTROLS):
        return []
    checks = []
    slack_ms = _handshake_slack_ms(record.trial, exchange)
    if record.trial.gap_ms:
        slack_ms += _PAUSE_MS
    total_ms = _predicted_total_ms(record.trial, prediction)
    # New data that a probe sends beyond the window arrives sooner, if anything.
    may_be_early = len(exchange.probes) > len(_paused_writes(record.trial, exchange))
    for name, seen, predicted_ms in (("model", record.total_ms, total_ms),
                                     ("model latency", record.latency_ms,
                                      prediction.latency_ms)):
        late_ms = (math.nan if seen is None else seen) - predicted_ms
        allowed = slack_ms + max(tolerances.model_ms, tolerances.model_share * predicted_ms)
        agrees = late_ms <= allowed and (late_ms >= -allowed or may_be_early)
        checks.append(Check(name, agrees, f"{late_ms + predicted_ms:.3f} ms",
                            f"{predicted_ms:.3f} ms"))
    return checks


def _latency_check(record: Record, tolerances: Tolerances) -> Check:
    """The server's own T_ACK − T_Res1 against that of the capture."""
    server, wire = record.latency_ms or math.nan, record.wire_latency_ms or math.nan
    allowed = max(tolerances.latency_ms, tolerances.latency_share * wire)
    return Check("server latency", abs(server - wire) <= allowed,
                 f"{server:.3f} ms", f"{wire:.3f} ms as on the wire")


def _handshake_slack_ms(trial: Trial, exchange: Exchange) -> float:
    """What SYNs and SYN-ACKs that were sent again can delay others by at most.

    Each is serialised before what queues behind it, and so is the
    acknowledgement that a repeated SYN-ACK is answered with.
    """
    syns, syn_acks = len(exchange.syns) - 1, len(exchange.syn_acks) - 1
    up_bytes = max(0, syns) * SYN_BYTES + max(0, syn_acks) * HEADER_BYTES
    down_bytes = max(0, syn_acks) * SYN_BYTES
    return up_bytes * 8 / trial.uplink_kbps + down_bytes * 8 / trial.bandwidth_kbps


def _integrity(trial: Trial, fetch: dict[str, Any], said: dict[str, Any]) -> list[Check]:
    status = fetch.get("http_status")
    return [Check("exit status", fetch.get("exit_status") == 0, f"{fetch.get('exit_status')}",
                  "0"),
            Check("HTTP status", status in (200, None), f"{status}", "200"),  # wget tells none
            Check("size", fetch["size"] == trial.response_bytes == said["body_bytes"],
                  f"{fetch['size']} bytes of {said['body_bytes']} sent",
                  f"{trial.response_bytes}"),
            Check("digest", fetch["sha256"] == said["sha256"], f"{fetch['sha256'][:12]}…",
                  f"{said['sha256'][:12]}… as sent")]


def _time(observation: dict[str, Any]) -> str:
    """When the trial started, by the measuring kernel's clock; ISO 8601, UTC."""
    if "started_at" not in observation:
        return ""
    started = datetime.fromtimestamp(observation["started_at"], timezone.utc)
    return started.isoformat(timespec="milliseconds")


def _reason(checks: list[Check]) -> str:
    return "; ".join(map(str, checks))
