"""Judges traces: compares the request with what the packets and TCP_INFO show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import mode

from firstflight.base.comparison import Comparison
from firstflight.base.errors import FirstFlightError
from firstflight.judge.checklist import TRACE, Judging, checks_of
from firstflight.judge.path import delivered
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
ON_TIME_MS = {True: 0.05, False: 10.0}  # a write is on the wire so soon after it was due
MOST_RESTARTS = 3  # of those that differ, in one reason


def judge_trace(trial: TraceTrial, observed: ObservedTrial, exact: bool,
                sysctls: Mapping[str, str] = {}, known_kernel: bool = True) -> TraceRecord:
    """The record of one trial.

    exact: in virtual time, where the rules are judged to the segment. sysctls: those of both hosts
    that the scenario changes. known_kernel: whether the rules are those of its kernel; if not, they
    do not judge.
    """
    def judge() -> TraceRecord:
        evidence = replace(_evidence(trial, observed, exact),
                           client_sysctls=trial.host_settings(sysctls), known_kernel=known_kernel)
        return checks.give_verdict(record_of(evidence), checks.failures(CHECKS, evidence))

    failure = _failure(observed.content)
    return judged_record(TraceRecord, trial, observed.content, failure, judge)


def _evidence(trial: TraceTrial, observed: ObservedTrial, exact: bool) -> TraceEvidence:
    """Raises FirstFlightError where captures or samples are missing or damaged."""
    client, server = frames_of(observed.client_pcap, observed.server_pcap)
    exchange = read_exchange(client, server)
    if WINDOW_FILE not in observed.files:
        raise FirstFlightError(f"the worker brought back no {WINDOW_FILE}")
    samples = parse(observed.files[WINDOW_FILE], WINDOW_FILE)
    path = delivered(trial, client, server) if exact else None
    tick_ns = round(observed.content.get("started_at", 0) * 1e9) if exact else 0
    return TraceEvidence(view_of(trial, exchange, samples, tick_ns), observed.content, exact, path,
                         tick_ns=tick_ns)


def _failure(observation: Observation) -> str:
    if observation.get("error"):
        return observation["error"]
    fetches = observation.get("fetches", ())
    if not fetches:
        return "the worker reported no transfer"
    failed = next((fetch for fetch in fetches if not fetch["ok"]), None)
    if failed is not None:
        return failed["error"] or "the transfer failed"
    count = len(observation.get("responses", ()))
    return ("" if count == len(fetches) else
            f"the server reported {count} responses of {len(fetches)}")


# What is compared --------------------------------------------------------------------

def _compare_rtt(evidence: TraceEvidence) -> Iterator[Comparison]:
    if evidence.seen_rtt_ms is not None and evidence.path is None:
        allowed_ms = RTT_TOLERANCE_MS + JITTER_SIGMAS * evidence.trial.jitter_ms
        yield Comparison(abs(evidence.seen_rtt_ms - evidence.trial.rtt_ms) <= allowed_ms,
                         f"{evidence.seen_rtt_ms:.3f} ms", f"{evidence.trial.rtt_ms:g} ms")


def _compare_receive_window(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare the window of most samples, or of the last one where it had grown too far at first.

    The kernel rounds, so that a part of a segment may be missing. A window that begins smaller need
    not grow to the most, and becomes smaller where segments are short.
    """
    trial = evidence.trial
    if trial.receive_window:
        windows = [sample.send_window_bytes / trial.mss for sample in evidence.view.samples]
        usual, last = mode(windows), windows[-1]
        most = _most_segments(evidence)
        least = min(trial.initrwnd, most)
        largest = max(windows) if _are_short(evidence) else usual
        allowed = most + max(_beyond_most(evidence), 0.1)
        yield Comparison(least - 1 < largest and min(usual, last) < allowed,
                         f"{usual:.2f} segments",
                         f"{most:g}" if least == most else f"{least:g} to {most:g}")


def _are_short(evidence: TraceEvidence) -> bool:
    """Whether a quarter of the segments hold less than half of the MSS.

    They take more memory than they bring, and the kernel learns that (tcp_measure_rcv_mss).
    """
    sends = evidence.view.sends
    short = [segment for segment in sends if 2 * segment.payload_bytes < evidence.trial.mss]
    return 4 * len(short) >= len(sends)


def _most_segments(evidence: TraceEvidence) -> float:
    """The receive window that is asked for, or what a header holds where windows have no scale."""
    trial = evidence.trial
    scales = is_on(evidence.client_sysctls, "window_scaling")
    return (trial.receive_window if scales else
            min(trial.receive_window, MOST_IN_A_SYN_BYTES / trial.mss))


def _beyond_most(evidence: TraceEvidence) -> int:
    """By how many segments the window may exceed that in the end.

    By none where enough data comes, and all in order. What comes before its turn cannot be read,
    and the client asks for its window again only as it reads (NarrowBody of
    testbed.hosts.transfers). What it has offered it does not take back.
    """
    trial = evidence.trial
    early = count_early_data(evidence.view.exchange.at_client)
    is_short = trial.size_bytes < (1 + MOST_BEYOND_FIXED) * trial.mss
    return MOST_BEYOND_FIXED * (early + 1) if early or is_short else 0


def _compare_lost_packets(evidence: TraceEvidence) -> Iterator[Comparison]:
    if _may_lose_nothing(evidence.trial) and evidence.path is None:
        exchange = evidence.view.exchange
        lost = len(exchange.lost_to_client) + len(exchange.lost_to_server)
        yield Comparison(lost == 0, f"{lost}", "none")


def _compare_retransmissions(evidence: TraceEvidence) -> Iterator[Comparison]:
    """None where nothing may be lost; else each has a loss, a timer or disorder behind it."""
    exchange, trial = evidence.view.exchange, evidence.trial
    if _may_lose_nothing(trial):
        count = len(exchange.retransmissions)
        yield Comparison(count == 0, f"{count}", "none")
    elif not trial.disorder and evidence.known_kernel:
        least_ms = trial.rto_min_ms or LEAST_TIMEOUT_US / 1000
        yield from compare_retransmissions(
            explain_retransmissions(exchange, least_timeout_ms=least_ms))


def _may_lose_nothing(trial: TraceTrial) -> bool:
    return not (trial.may_lose or trial.outage_to_ms or trial.is_random
                or trial.qdisc in MANAGED)


def _compare_outage(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Data was lost, as the file wants it; on another network than the file's nothing may be."""
    if _wants_losses(evidence.trial):
        lost = len(evidence.view.exchange.lost_data)
        yield Comparison(lost > 0, f"{lost} data segments lost in it",
                         "one or more (in real time it comes when it can)")


def _wants_losses(trial: TraceTrial) -> bool:
    return trial.outage_to_ms > 0 and not trial.may_lose


def _compare_schedule(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Writes that found nothing outstanding are on the wire when they were due, if none paces."""
    if evidence.trial.paces:
        return
    late_ms = evidence.view.lateness_ms(0.0 if evidence.exact else 2 * evidence.trial.rtt_ms)
    if late_ms is not None:
        yield Comparison(late_ms <= ON_TIME_MS[evidence.exact], f"{late_ms:.3f} ms late",
                         f"at most {ON_TIME_MS[evidence.exact]:g}")


def _compare_window(evidence: TraceEvidence) -> Iterator[Comparison]:
    if not (evidence.exact and evidence.rules_judge):
        return
    wrong = evidence.replayed.mismatches
    first = (f", first at {evidence.view.seconds(wrong[0].time_ns):.4f} s: cwnd and ssthresh"
             f" {wrong[0].observed}, by the rules {wrong[0].rule}") if wrong else ""
    yield Comparison(not wrong,
                     f"{len(wrong)} of {evidence.replayed.checked} samples differ{first}",
                   "none")


def _compare_restarts(evidence: TraceEvidence) -> Iterator[Comparison]:
    odd = [restart for restart in evidence.replayed.restarts if not restart.agrees]
    judges = evidence.exact and evidence.rules_judge
    for restart in odd[:MOST_RESTARTS] if judges else ():
        yield Comparison(False, f"{restart.after}, {restart.flight} segments sent",
                         f"{restart.rule}, {restart.may_send}",
                         f"restart at {evidence.view.seconds(restart.time_ns):.3f} s")


def _is_estimated(record: TraceRecord) -> bool:
    """Whether RTT and losses were, since no packet was judged by itself."""
    return is_whole(record) and PATH not in record.judged_by.split()


# Whether it was in virtual time a record does not hold: in real time samples may differ from the
# rules without a verdict, and then neither of the last two has judged.
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
