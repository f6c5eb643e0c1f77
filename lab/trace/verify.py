"""Judges traces: what was asked, beside what the packets and TCP_INFO show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from statistics import mode
from typing import Any

from lab.errors import FirstFlightError
from lab.records import FAIL, PASS, SKIPPED
from lab.tcp.exchange import read_exchange, seen_rtt_ms
from lab.trace.scenario import TraceTrial
from lab.trace.records import TraceRecord
from lab.trace.replay import Replay, replay
from lab.trace.view import View, view_of
from lab.verify import Check
from lab.trace.window import parse

WINDOW_FILE = "window.csv"
RTT_TOLERANCE_MS = {True: 0.05, False: 3.0}  # in virtual time, in real time
ON_TIME_MS = {True: 0.05, False: 10.0}  # a write is on the wire so soon after it was due


def judge(trial: TraceTrial, observation: dict[str, Any], client_pcap: bytes,
          server_pcap: bytes, files: dict[str, bytes], exact: bool) -> TraceRecord:
    """The record of one trial. exact: in virtual time, where the rules are judged to the segment."""
    record = TraceRecord(trial, ok=True, measured_at=_time(observation))
    if observation.get("skipped"):
        return replace(record, verdict=SKIPPED, verdict_reason=observation["skipped"])
    reason = _failure(observation)
    if reason:
        return replace(record, ok=False, error=reason)
    try:
        exchange = read_exchange(client_pcap, server_pcap)
        samples = parse(files[WINDOW_FILE].decode(), WINDOW_FILE)
        if not samples:
            return replace(record, ok=False, error="the server took no sample of the window")
        view = view_of(trial, exchange, samples)
    except (FirstFlightError, KeyError) as error:
        return replace(record, ok=False, error=str(error))
    replayed = replay(trial, exchange, samples)
    record = replace(record, **_measured(view, replayed, observation))
    failed = [check for check in _checks(record, view, replayed, observation, exact)
              if not check.passed]
    return replace(record, verdict=FAIL if failed else PASS,
                   verdict_reason="; ".join(map(str, failed)))


def _failure(observation: dict[str, Any]) -> str:
    if observation.get("error"):
        return str(observation["error"])
    fetches = observation.get("fetches") or []
    if not fetches:
        return "the worker reported no transfer"
    failed = next((fetch for fetch in fetches if not fetch["ok"]), None)
    if failed is not None:
        return str(failed["error"] or "the transfer failed")
    if len(observation.get("responses") or []) != len(fetches):
        return (f"the server reported {len(observation.get('responses') or [])} responses of"
                f" {len(fetches)}")
    return ""


def _measured(view: View, replayed: Replay, observation: dict[str, Any]) -> dict[str, Any]:
    exchange, last = view.exchange, observation["responses"][-1]
    trial = view.trial
    restarts = replayed.restarts
    return {
        "connect_ms": observation["fetches"][0]["connect_ms"], "latency_ms": last["latency_ms"],
        "finish_ms": view.finish_s() * 1000,
        "seen_initcwnd": observation["responses"][0]["initial_window"],
        "seen_rtt_ms": seen_rtt_ms(exchange, trial.uplink_kbps, trial.bandwidth_kbps),
        "data_segments": len(view.sends), "retransmissions": len(exchange.retransmissions),
        "lost_segments": len(exchange.lost_data), "timeouts": view.timeouts(),
        "longest_rtt_ms": view.longest_rtt_ms(), "largest_window": view.largest_window(),
        "restarts": len(restarts),
        "restart_windows": " ".join(str(restart.after[0]) for restart in restarts),
        "last_window": view.sample_at(view.last_request_s()).cwnd,
        "last_retransmissions": view.retransmissions(view.last_request_s()),
        "samples": len(view.samples), "rule_checked": replayed.checked,
        "rule_unjudged": replayed.unjudged, "rule_wrong": len(replayed.mismatches)}


def _checks(record: TraceRecord, view: View, replayed: Replay, observation: dict[str, Any],
            exact: bool) -> list[Check]:
    trial = record.trial
    return [*_integrity(trial, observation), *_network(record, view, exact),
            *_schedule(view, exact), *(_rules(view, replayed) if exact else [])]


def _integrity(trial: TraceTrial, observation: dict[str, Any]) -> list[Check]:
    checks = []
    asked = [int(path[1:].partition("?")[0]) for path in trial.paths.split()]
    for fetch, said, size in zip(observation["fetches"], observation["responses"], asked):
        checks += [
            Check("size", fetch["size"] == said["body_bytes"] == size,
                  f"{fetch['size']} bytes of {said['body_bytes']} sent", f"{size}"),
            Check("digest", fetch["sha256"] == said["sha256"], f"{fetch['sha256'][:12]}…",
                  f"{said['sha256'][:12]}… as sent")]
    return checks


def _network(record: TraceRecord, view: View, exact: bool) -> list[Check]:
    trial = record.trial
    checks = [Check("initial window", record.seen_initcwnd == trial.initcwnd,
                    f"{record.seen_initcwnd} segments", f"{trial.initcwnd}"),
              Check("segment size", view.samples[0].mss == trial.mss,
                    f"{view.samples[0].mss} bytes", f"{trial.mss}")]
    if record.seen_rtt_ms is not None:
        checks.append(Check("RTT", abs(record.seen_rtt_ms - trial.rtt_ms)
                            <= RTT_TOLERANCE_MS[exact], f"{record.seen_rtt_ms:.3f} ms",
                            f"{trial.rtt_ms:g} ms"))
    if trial.receive_window:
        # Nearly always: the first acknowledgement may advertise a segment more. The kernel
        # rounds, so that a part of a segment may be missing.
        usual = mode(sample.send_window_bytes for sample in view.samples) / trial.mss
        checks.append(Check("receive window",
                            trial.receive_window - 1 < usual < trial.receive_window + 0.1,
                            f"{usual:.2f} segments", f"{trial.receive_window}"))
    if not trial.may_lose and not trial.outage_to_ms:
        lost = len(view.exchange.lost_to_client) + len(view.exchange.lost_to_server)
        checks.append(Check("lost packets", lost == 0, f"{lost}", "none"))
        checks.append(Check("retransmissions", not record.retransmissions,
                            f"{record.retransmissions}", "none"))
    if trial.outage_to_ms:
        lost = len(view.exchange.lost_data)
        checks.append(Check("outage", lost > 0, f"{lost} data segments lost in it",
                            "one or more (in real time it comes when it can)"))
    return checks


def _schedule(view: View, exact: bool) -> list[Check]:
    """Writes that found nothing outstanding are on the wire when they were due."""
    late = view.lateness_ms(0.0 if exact else 2 * view.trial.rtt_ms)
    if late is None:
        return []
    return [Check("schedule", late <= ON_TIME_MS[exact], f"{late:.3f} ms late",
                  f"at most {ON_TIME_MS[exact]:g}")]


def _rules(view: View, replayed: Replay) -> list[Check]:
    checks = []
    wrong: Sequence[Any] = replayed.mismatches
    first = ""
    if wrong:
        first = (f", first at {view.seconds(wrong[0].time_ns):.4f} s: cwnd and ssthresh"
                 f" {wrong[0].seen}, by the rules {wrong[0].rule}")
    checks.append(Check("window", not wrong, f"{len(wrong)} of {replayed.checked} samples"
                        f" differ{first}", "none"))
    odd = [restart for restart in replayed.restarts if not restart.agrees]
    for restart in odd[:3]:
        checks.append(Check(f"restart at {view.seconds(restart.time_ns):.3f} s", False,
                            f"{restart.after}, {restart.flight} segments sent",
                            f"{restart.rule}, {restart.may_send}"))
    return checks


def _time(observation: dict[str, Any]) -> str:
    if "started_at" not in observation:
        return ""
    started = datetime.fromtimestamp(observation["started_at"], timezone.utc)
    return started.isoformat(timespec="milliseconds")
