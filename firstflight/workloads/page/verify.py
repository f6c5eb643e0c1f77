"""Judges pages: compares what was requested with the packets of all connections."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from firstflight.base.comparison import Comparison
from firstflight.judge import syns
from firstflight.judge.checklist import PAGE, Judging, checks_of
from firstflight.judge.path import delivered
from firstflight.judge.sending import late_answers, uncaused
from firstflight.judge.verdict import examples, is_whole, judged_record
from firstflight.net.segments import MS, CaptureError, frames_of
from firstflight.runs.results import checks
from firstflight.setting.server import HTTP_1
from firstflight.testbed.messages import Observation, ObservedTrial
from firstflight.wire.delivery.host import is_near_tick
from firstflight.wire.delivery.packet_path import PATH
from firstflight.workloads.page import habits, order
from firstflight.workloads.page.handshakes import compare_bytes, compare_handshakes
from firstflight.workloads.page.predicted import predicted
from firstflight.workloads.page.requests import compare_requests
from firstflight.workloads.page.record import FILE, PageEvidence, PageRecord, file_of, record_of
from firstflight.workloads.page.timing import unfounded_acks
from firstflight.workloads.page.tls_records import compare_tls_records
from firstflight.workloads.page.trial import PageTrial

CLIENT_MS = {True: 0.3, False: 20.0}  # from a packet to the time that the client reports for it
MODEL_MS, MODEL_SHARE = 1.0, 0.001
SURE_SEGMENTS = 43  # fit into any client's first window: 64 kB less the part that it keeps free


def judge_page(trial: PageTrial, observed: ObservedTrial, exact: bool,
               sysctls: Mapping[str, str] = MappingProxyType({}), known_kernel: bool = True
               ) -> tuple[PageRecord, Mapping[str, bytes]]:
    """Judge one trial; return its record, and the files to keep, by name.

    exact: measured in virtual time. sysctls: those that the scenario sets. known_kernel: whether
    the model was checked against its kernel; otherwise the model's times are recorded and do not
    judge, and nor does why data left.
    """
    files = dict(observed.files)

    def judge() -> PageRecord:
        evidence = _evidence(trial, observed, exact, sysctls, known_kernel)
        record = checks.give_verdict(record_of(evidence), checks.failures(CHECKS, evidence))
        files[FILE] = file_of(evidence)
        return record

    failure = _failure(trial, observed.content)
    return judged_record(PageRecord, trial, observed.content, failure, judge), files


def _evidence(trial: PageTrial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
              known_kernel: bool) -> PageEvidence:
    """The evidence of an observed trial. Raises CaptureError where a capture lacks something."""
    client, server = frames_of(observed.client_pcap, observed.server_pcap)
    path = delivered(trial, client, server) if exact else None
    tick_ns = round(observed.content.get("started_at", 0) * 1e9) if exact else 0
    evidence = PageEvidence.of_frames(trial, observed.content, exact, client, server, path,
                                      tick_ns)
    missing = {each["port"] for each in evidence.objects} - evidence.exchanges.keys()
    if missing or not evidence.exchanges:
        raise CaptureError(f"the captures lack {len(missing) or 'all'} of the connections that the"
                           " client reports")
    for connection in evidence.connections.values():
        if not connection.exchange.syns:
            raise CaptureError("the client's capture lacks the SYN of port"
                               f" {connection.exchange.client_port}")
    evidence = replace(evidence, sysctls=trial.host_settings(sysctls), known_kernel=known_kernel)
    return replace(evidence, predicted=predicted(evidence))


def _failure(trial: PageTrial, observation: Observation) -> str:
    """Why the page was not loaded, in words; "" where it was."""
    if observation.get("error"):
        return observation["error"]
    objects = observation.get("objects", ())
    if len(objects) != len(trial.requested):
        return f"the worker reported {len(objects)} objects of {len(trial.requested)}"
    failed = [(number, each) for number, each in enumerate(objects, start=1) if not each["ok"]]
    if failed:
        number, each = failed[0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return f"object {number}: {each['error'] or 'it failed'}{more}"
    timeless = next((number for number, each in enumerate(objects, start=1)
                     if None in (each["named_ms"], each["start_ms"], each["first_byte_ms"],
                                 each["end_ms"])), 0)
    return f"object {timeless}: the client reported no times" if timeless else ""


# The checks ----------------------------------------------------------------------------

def _compare_acknowledgements(evidence: PageEvidence) -> Iterator[Comparison]:
    wrong = [f"{segment.ack} at {(segment.time_ns - evidence.begun_ns) / MS:.3f} ms"
             for exchange in evidence.every.values() for segment in unfounded_acks(exchange)]
    yield Comparison(not wrong, f"{len(wrong)} of what had not arrived{examples(wrong)}", "none")


def _compare_first_flight(evidence: PageEvidence) -> Iterator[Comparison]:
    """The first flight is at most the window, and as large where the first response fills it.

    What a timer sends beyond the window does not count: a tail loss probe has new data. The
    client's SYN gives its first window in 16 bits, so the client may allow less.
    """
    trial = evidence.trial
    for number, connection in enumerate(evidence.connections.values(), start=1):
        exchange = connection.exchange
        most = min(trial.initcwnd, trial.initrwnd - 2, SURE_SEGMENTS)
        timed = sum(evidence.tick_ns > 0 and is_near_tick(segment.time_ns - evidence.tick_ns)
                    for segment in exchange.first_flight)
        flight = len(exchange.first_flight)
        if exchange.handshake_retransmissions or not connection.objects:
            continue
        least = 0
        # What a pacer spreads may be acknowledged before all of the window has left.
        if ((trial.http == HTTP_1 or trial.is_secure) and not trial.paces
                and not exchange.lost_to_client
                and not exchange.retransmissions and not exchange.probes):
            first_bytes = connection.flight_bytes or connection.starts[1] - 1
            mss = syns.mss_of(trial, evidence.sysctls, evidence.sysctls)
            least = min(most, math.ceil(first_bytes / mss))
        yield Comparison(least <= flight <= trial.initcwnd + timed, f"{flight} segments",
                         f"{least} to {trial.initcwnd}" if least != trial.initcwnd else f"{least}",
                         f"first flight of connection {number}")


def _compare_connections(evidence: PageEvidence) -> Iterator[Comparison]:
    """No more connections to a host than allowed, and none without an object."""
    trial = evidence.trial
    by_host: dict[int, set[int]] = {}
    for each, requested in zip(evidence.objects, trial.requested):
        by_host.setdefault(trial.carrier_of(requested.host), set()).add(each["port"])
    for host, ports in by_host.items():
        yield Comparison(len(ports) <= trial.most_connections,
                         f"{len(ports)} to host {host}", f"{trial.most_connections} at most")
        for other, of_other in by_host.items():
            if other > host:
                yield Comparison(not ports & of_other, f"one for hosts {host} and {other}",
                                 "one of each")
    used = {each["port"] for each in evidence.objects}
    yield Comparison(used == evidence.exchanges.keys(),
                     f"{len(evidence.exchanges)} in the captures", f"{len(used)} with objects")
    yield from habits.compare_reuse(evidence, _allowed_ms(evidence))


def _compare_causes(evidence: PageEvidence) -> Iterator[Comparison]:
    if evidence.path is None or not evidence.tick_ns or not evidence.known_kernel:
        return
    thinks_ns = {round(each.think_ms * MS) for each in evidence.trial.requested if each.think_ms}
    found = [*order.uncaused_data(evidence),
             *(segment for exchange in evidence.exchanges.values()
               for segment in late_answers(evidence.trial, exchange, thinks_ns))]
    yield uncaused([f"at {(each.time_ns - evidence.begun_ns) / MS:.3f} ms" for each in found])


def _compare_times(evidence: PageEvidence) -> Iterator[Comparison]:
    wrong = list(order.time_faults(evidence, _allowed_ms(evidence)))
    yield Comparison(not wrong, f"{len(wrong)} times that no packet has{examples(wrong)}", "none")


def _compare_order(evidence: PageEvidence) -> Iterator[Comparison]:
    wrong = list(order.order_faults(evidence, _allowed_ms(evidence)))
    yield Comparison(not wrong, f"{len(wrong)} objects out of turn{examples(wrong)}", "none")


def _allowed_ms(evidence: PageEvidence) -> float:
    """How far a time that the client reports may be from its packet."""
    busy_ns = order.reading_ns(evidence) + order.connecting_ns(evidence)
    return CLIENT_MS[evidence.exact] + busy_ns / MS


def _compare_model(evidence: PageEvidence) -> Iterator[Comparison]:
    judges = evidence.exact and evidence.known_kernel
    for each in evidence.predicted if judges else ():
        allowed_ms = max(MODEL_MS, MODEL_SHARE * each.model_ms)
        yield Comparison(abs(each.observed_ms - each.model_ms) <= allowed_ms,
                         f"{each.observed_ms:.3f} ms", f"{each.model_ms:.3f} ms",
                         f"model of object {each.number}")


def is_sent(record: PageRecord) -> bool:
    return PATH in record.judged_by.split()


# What is judged alike of a page by curl's library and of one in a browser.
SHARED: dict[str, Judging[PageEvidence, PageRecord]] = {
    "path": Judging(is_sent),
    "acknowledgements": Judging(is_whole, _compare_acknowledgements),
    "TCP options": Judging(is_whole),
    "segment size": Judging(is_whole),
    "initial window": Judging(lambda record: bool(record.seen_initcwnd)),
    "first flight": Judging(is_whole, _compare_first_flight),
}
_JUDGED: dict[str, Judging[PageEvidence, PageRecord]] = {
    **SHARED,
    "size": Judging(is_whole),
    "digest": Judging(is_whole),
    "bytes": Judging(is_whole, compare_bytes),
    "TLS": Judging(lambda record: is_whole(record) and record.trial.is_secure,
                   compare_handshakes),
    "TLS records": Judging(lambda record: is_whole(record) and record.trial.is_secure,
                           compare_tls_records),
    "requests": Judging(is_whole, compare_requests),
    "connections": Judging(is_whole, _compare_connections),
    "order": Judging(is_whole, _compare_order),
    "causes": Judging(is_sent, _compare_causes),
    "server's socket": Judging(lambda record: bool(record.seen_initcwnd)),
    "client times": Judging(is_whole, _compare_times),
    "model": Judging(lambda record: bool(record.model_objects), _compare_model),
}
CHECKS = checks_of(PAGE, _JUDGED)
