"""Judges traces: compares the request with what the packets and TCP_INFO show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import mode

from firstflight.base.comparison import Comparison
from firstflight.base.errors import FirstFlightError
from firstflight.judge.checklist import TRACE, Judging, checks_of
from firstflight.judge.path import compute_deliveries
from firstflight.judge.sending import compare_retransmissions
from firstflight.judge.verdict import is_whole, judged_record
from firstflight.net.link import MANAGED
from firstflight.net.path import LEAST_TIMEOUT_US
from firstflight.net.segments import frames_of
from firstflight.runs.results import checks
from firstflight.setting.tcp import MOST_BEYOND_FIXED, MOST_IN_A_SYN_BYTES
from firstflight.testbed.messages import Observation, ObservedTrial
from firstflight.wire.delivery.packet_path import PATH
from firstflight.wire.exchange import count_early_data, read_exchange
from firstflight.wire.offers import is_on
from firstflight.wire.retransmissions import explain_retransmissions
from firstflight.workloads.trace.agreed import (compare_causes, compare_requests,
                                                 compare_segment_size)
from firstflight.workloads.trace.record import TraceEvidence, TraceRecord, record_of
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.view import view_of
from firstflight.workloads.trace.window import WINDOW_FILE, parse

RTT_TOLERANCE_MS = 3.0  # in real time
JITTER_SIGMAS = 4.0  # netem's table of the normal distribution ends here (iproute2, netem/normal.c)
# How late a write may be on the wire, in virtual time and in real time.
MOST_LATE_MS, MOST_LATE_REAL_MS = 0.05, 10.0
MOST_RESTARTS = 3  # differing restarts that a verdict names


def judge_trace(trial: TraceTrial, observed: ObservedTrial, exact: bool,
                sysctls: Mapping[str, str] = {}, known_kernel: bool = True) -> TraceRecord:
    """The record of one trial.

    exact: in virtual time, where windows are judged to the segment. sysctls: those of both hosts
    that the scenario changes. known_kernel: whether the kernel follows the rules of
    workloads.trace.rules as far as is known; if not, they judge nothing.
    """
    def judge() -> TraceRecord:
        evidence = replace(_evidence(trial, observed, exact),
                           client_sysctls=trial.host_settings(sysctls), known_kernel=known_kernel)
        return checks.give_verdict(record_of(evidence), checks.failures(CHECKS, evidence))

    failure = _failure(observed.content)
    return judged_record(TraceRecord, trial, observed.content, failure, judge)


def _evidence(trial: TraceTrial, observed: ObservedTrial, exact: bool) -> TraceEvidence:
    """The evidence of an observed trial.

    Raises FirstFlightError where captures or samples are missing or damaged.
    """
    client, server = frames_of(observed.client_pcap, observed.server_pcap)
    exchange = read_exchange(client, server)
    if WINDOW_FILE not in observed.files:
        raise FirstFlightError(f"the worker brought back no {WINDOW_FILE}")
    samples = parse(observed.files[WINDOW_FILE], WINDOW_FILE)
    path = compute_deliveries(trial, client, server) if exact else None
    tick_ns = round(observed.content.get("started_at", 0) * 1e9) if exact else 0
    return TraceEvidence(view_of(trial, exchange, samples, tick_ns), observed.content, exact, path,
                         tick_ns=tick_ns)


def _failure(observation: Observation) -> str:
    """Why the trial itself failed, as the worker reported it; "" where it did not."""
    if observation.get("error"):
        return observation["error"]
    fetches = observation.get("fetches", ())
    if not fetches:
        return "the worker reported no transfer"
    failed = next((fetch for fetch in fetches if not fetch["ok"]), None)
    if failed is not None:
        return failed["error"] or "the transfer failed"
    count = len(observation.get("responses", ()))
    if count != len(fetches):
        return f"the server reported {count} responses of {len(fetches)}"
    return ""


# What is compared --------------------------------------------------------------------

def _compare_rtt(evidence: TraceEvidence) -> Iterator[Comparison]:
    """In real time the handshake has about the RTT that the trial sets."""
    if evidence.seen_rtt_ms is not None and evidence.path is None:
        allowed_ms = RTT_TOLERANCE_MS + JITTER_SIGMAS * evidence.trial.jitter_ms
        yield Comparison(abs(evidence.seen_rtt_ms - evidence.trial.rtt_ms) <= allowed_ms,
                         f"{evidence.seen_rtt_ms:.3f} ms", f"{evidence.trial.rtt_ms:g} ms")


def _compare_receive_window(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare the receive window of most samples with the one that the trial sets.

    It need not grow from its initial size to the one that is set. The kernel rounds, so a part of a
    segment may be missing. Where segments are short the window shrinks, and the largest sample has
    to reach the initial size. If the window was too large at first, the last sample counts.
    """
    trial = evidence.trial
    if not trial.receive_window:
        return
    windows = [sample.send_window_bytes / trial.mss for sample in evidence.view.samples]
    usual, last = mode(windows), windows[-1]
    most = _most_segments(evidence)
    least = min(trial.initrwnd, most)

    reached = max(windows) if _has_short_segments(evidence) else usual
    is_large_enough = reached > least - 1
    is_small_enough = min(usual, last) < most + max(_extra_segments(evidence), 0.1)
    requested = f"{most:g}" if least == most else f"{least:g} to {most:g}"
    yield Comparison(is_large_enough and is_small_enough, f"{usual:.2f} segments", requested)


def _has_short_segments(evidence: TraceEvidence) -> bool:
    """Whether a quarter of the segments or more hold less than half of the MSS.

    They take more memory than they bring data, and the kernel learns that (tcp_measure_rcv_mss).
    """
    sends = evidence.view.sends
    short = [segment for segment in sends if 2 * segment.payload_bytes < evidence.trial.mss]
    return 4 * len(short) >= len(sends)


def _most_segments(evidence: TraceEvidence) -> float:
    """The receive window that the trial sets, in segments.

    Without window scaling it is at most what the header's field holds.
    """
    trial = evidence.trial
    if is_on(evidence.client_sysctls, "window_scaling"):
        return trial.receive_window
    return min(trial.receive_window, MOST_IN_A_SYN_BYTES / trial.mss)


def _extra_segments(evidence: TraceEvidence) -> int:
    """By how many segments the window may exceed the one that is set.

    0 if there is enough data and all of it arrives in order. The client sets its window again
    whenever it reads (NarrowBody of testbed.hosts.transfers). Data that arrives before its turn
    cannot be read yet, and TCP does not take back a window that it has offered.
    """
    trial = evidence.trial
    early = count_early_data(evidence.view.exchange.at_client)
    is_short = trial.size_bytes < (1 + MOST_BEYOND_FIXED) * trial.mss
    return MOST_BEYOND_FIXED * (early + 1) if early or is_short else 0


def _compare_lost_packets(evidence: TraceEvidence) -> Iterator[Comparison]:
    """In real time no packet is lost where nothing may be."""
    if _may_lose_nothing(evidence.trial) and evidence.path is None:
        exchange = evidence.view.exchange
        lost = len(exchange.lost_to_client) + len(exchange.lost_to_server)
        yield Comparison(lost == 0, f"{lost}", "none")


def _compare_retransmissions(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Without losses there has to be none; otherwise a loss, a timer or disorder explains each."""
    exchange, trial = evidence.view.exchange, evidence.trial
    if _may_lose_nothing(trial):
        count = len(exchange.retransmissions)
        yield Comparison(count == 0, f"{count}", "none")
    elif not trial.disorder and evidence.known_kernel:
        least_ms = trial.rto_min_ms or LEAST_TIMEOUT_US / 1000
        yield from compare_retransmissions(
            explain_retransmissions(exchange, least_timeout_ms=least_ms))


def _may_lose_nothing(trial: TraceTrial) -> bool:
    """Whether neither links, queues, outages nor chance may drop a packet."""
    return not (trial.may_lose or trial.outage_to_ms or trial.is_random
                or trial.qdisc in MANAGED)


def _compare_outage(evidence: TraceEvidence) -> Iterator[Comparison]:
    """An outage has to lose data: the scenario sets its time so that it does."""
    if _wants_losses(evidence.trial):
        lost = len(evidence.view.exchange.lost_data)
        yield Comparison(lost > 0, f"{lost} data segments lost in it",
                         "one or more (in real time the outage may come too late)")


def _wants_losses(trial: TraceTrial) -> bool:
    """Whether the outage has to lose data: nothing else in the trial may."""
    return trial.outage_to_ms > 0 and not trial.may_lose


def _compare_schedule(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Writes with nothing outstanding before them leave when they are due, unless TCP paces."""
    if evidence.trial.paces:
        return
    late_ms = evidence.view.lateness_ms(0.0 if evidence.exact else 2 * evidence.trial.rtt_ms)
    if late_ms is not None:
        most_ms = MOST_LATE_MS if evidence.exact else MOST_LATE_REAL_MS
        yield Comparison(late_ms <= most_ms, f"{late_ms:.3f} ms late", f"at most {most_ms:g}")


def _compare_window(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Each sample that the rules cover has the cwnd and ssthresh that they require."""
    if not (evidence.exact and evidence.rules_judge):
        return
    wrong = evidence.replayed.mismatches
    observed = f"{len(wrong)} of {evidence.replayed.checked} samples differ"
    if wrong:
        first = wrong[0]
        observed += (f", first at {evidence.view.seconds(first.time_ns):.4f} s: cwnd and ssthresh"
                     f" {first.observed}, by the rules {first.rule}")
    yield Comparison(not wrong, observed, "none")


def _compare_restarts(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Restarts have the window and the flight that the rules require. Compares those that differ.
    """
    if not (evidence.exact and evidence.rules_judge):
        return
    differing = [restart for restart in evidence.replayed.restarts if not restart.agrees]
    for restart in differing[:MOST_RESTARTS]:
        at_s = evidence.view.seconds(restart.time_ns)
        yield Comparison(False, f"{restart.after}, {restart.flight} segments sent",
                         f"{restart.rule}, {restart.may_send}", name=f"restart at {at_s:.3f} s")


def _is_estimated(record: TraceRecord) -> bool:
    """Whether RTT and losses were judged by estimates, since no packet was judged by itself."""
    return is_whole(record) and PATH not in record.judged_by.split()


# A record does not say whether it was measured in virtual time. In real time its samples may differ
# from the rules, and it passes all the same: then the last two checks judged nothing.
CHECKS = checks_of(TRACE, {
    "size": Judging(is_whole),
    "digest": Judging(is_whole),
    "path": Judging(lambda record: PATH in record.judged_by.split()),
    "RTT": Judging(lambda record: _is_estimated(record) and record.seen_rtt_ms is not None,
                   _compare_rtt),
    "requests": Judging(is_whole, compare_requests),
    "causes": Judging(lambda record: PATH in record.judged_by.split(), compare_causes),
    "schedule": Judging(lambda record: (is_whole(record) and bool(record.trial.writes)
                                        and not record.trial.paces), _compare_schedule),
    "TCP options": Judging(is_whole),
    "segment size": Judging(is_whole, compare_segment_size),
    "initial window": Judging(is_whole),
    "server's socket": Judging(is_whole),
    "receive window": Judging(
        lambda record: is_whole(record) and record.trial.receive_window > 0,
        _compare_receive_window),
    "lost packets": Judging(
        lambda record: _is_estimated(record) and _may_lose_nothing(record.trial),
        _compare_lost_packets),
    "retransmissions": Judging(
        lambda record: is_whole(record) and not record.trial.disorder, _compare_retransmissions),
    "outage": Judging(lambda record: is_whole(record) and _wants_losses(record.trial),
                      _compare_outage),
    "window": Judging(lambda record: bool(record.rule_checked) and not record.rule_wrong,
                      _compare_window),
    "restart": Judging(lambda record: bool(record.judged_restarts) and not record.rule_wrong,
                       _compare_restarts),
})
