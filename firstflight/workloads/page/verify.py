"""Judges pages: compares what was requested with the packets of all connections."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from firstflight.base.comparison import Comparison
from firstflight.judge import syns
from firstflight.judge.checklist import PAGE, Judging, checks_of
from firstflight.judge.sending import compare_uncaused, late_answers
from firstflight.judge.verdict import examples, is_whole, judged_record
from firstflight.net.segments import MS, CaptureError
from firstflight.runs.results import checks
from firstflight.setting.server import HTTP_1
from firstflight.testbed.messages import Observation, ObservedTrial
from firstflight.wire.delivery.host import is_near_tick
from firstflight.wire.delivery.packet_path import PATH
from firstflight.workloads.page import habits, order
from firstflight.workloads.page.handshakes import compare_bytes, compare_handshakes
from firstflight.workloads.page.predicted import predict_objects
from firstflight.workloads.page.requests import compare_requests
from firstflight.workloads.page.record import FILE, PageEvidence, PageRecord, file_of, record_of
from firstflight.workloads.page.timing import ConnectionTimes, unfounded_acks
from firstflight.workloads.page.tls_records import compare_tls_records
from firstflight.workloads.page.trial import PageTrial

# The most between a packet and the time that the client reports for it: in virtual time, and in
# real time.
CLIENT_MS = {True: 0.3, False: 20.0}
# An object may deviate from the model by so many ms, or by this share of its predicted time.
MODEL_MS = 1.0
MODEL_SHARE = 0.001
SURE_SEGMENTS = 43  # any client's first window has room for so many: 64 kB less what it keeps free


def judge_page(trial: PageTrial, observed: ObservedTrial, exact: bool,
               sysctls: Mapping[str, str] = MappingProxyType({}), known_kernel: bool = True
               ) -> tuple[PageRecord, Mapping[str, bytes]]:
    """Judge one trial; return its record, and the files to keep, by name.

    exact: whether it was measured in virtual time. sysctls: those that the scenario sets.
    known_kernel: whether the model was checked against the trial's kernel. Where it was not, the
    model's times are recorded but not judged, and causes of data are not judged either.
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
    evidence = PageEvidence.of_captures(trial, observed, exact)
    missing = len(evidence.missing_ports)
    if missing or not evidence.exchanges:
        raise CaptureError(f"the captures lack {missing or 'all'} of the connections that the"
                           " client reports")
    for port, exchange in evidence.exchanges.items():
        if not exchange.syns:
            raise CaptureError(f"the client's capture lacks the SYN of port {port}")

    evidence = replace(evidence, sysctls=trial.host_settings(sysctls), known_kernel=known_kernel)
    return replace(evidence, predicted=predict_objects(evidence))


def _failure(trial: PageTrial, observation: Observation) -> str:
    """Why the page was not loaded, in words; "" where it was."""
    if observation.get("error"):
        return observation["error"]
    objects = observation.get("objects", ())
    if len(objects) != len(trial.requested):
        return f"the worker reported {len(objects)} objects of {len(trial.requested)}"

    failed = [number for number, loaded in enumerate(objects, start=1) if not loaded["ok"]]
    if failed:
        error = objects[failed[0] - 1]["error"] or "it failed"
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return f"object {failed[0]}: {error}{more}"

    for number, loaded in enumerate(objects, start=1):
        times_ms = (loaded["named_ms"], loaded["start_ms"], loaded["first_byte_ms"],
                    loaded["end_ms"])
        if None in times_ms:
            return f"object {number}: the client reported no times"
    return ""


# The checks ----------------------------------------------------------------------------

def _compare_acknowledgements(evidence: PageEvidence) -> Iterator[Comparison]:
    """No host acknowledges what has not arrived."""
    wrong = []
    for exchange in evidence.all_exchanges.values():
        wrong += [f"{segment.ack} at {(segment.time_ns - evidence.begun_ns) / MS:.3f} ms"
                  for segment in unfounded_acks(exchange)]
    yield Comparison(not wrong, f"{len(wrong)} of what had not arrived{examples(wrong)}", "none")


def _compare_first_flight(evidence: PageEvidence) -> Iterator[Comparison]:
    """The first flight is at most the window, and fills it where the first response is long enough.

    Segments that a timer sends are allowed beyond the window: a tail loss probe has new data. The
    client's SYN gives the client's first window in 16 bits, so the client may allow less.
    """
    window = evidence.trial.initcwnd
    for number, connection in enumerate(evidence.connections.values(), start=1):
        exchange = connection.exchange
        if exchange.handshake_retransmissions or not connection.objects:
            continue
        timed = 0  # segments that a timer may have sent
        if evidence.tick_ns:
            timed = sum(is_near_tick(segment.time_ns - evidence.tick_ns)
                        for segment in exchange.first_flight)

        flight, least = len(exchange.first_flight), _least_first_flight(evidence, connection)
        expected = f"{least}" if least == window else f"{least} to {window}"
        yield Comparison(least <= flight <= window + timed, f"{flight} segments", expected,
                         f"first flight of connection {number}")


def _least_first_flight(evidence: PageEvidence, connection: ConnectionTimes) -> int:
    """The fewest segments that a connection's first flight may have; 0 where that is not known."""
    trial, exchange = evidence.trial, connection.exchange
    # Over HTTP/2 without TLS the length of the first response is not known.
    if trial.http != HTTP_1 and not trial.is_secure:
        return 0
    # What a pacer spreads may be acknowledged before all of the window has left.
    if trial.paces or exchange.lost_to_client or exchange.retransmissions or exchange.probes:
        return 0
    first_bytes = connection.flight_bytes or connection.starts[1] - 1
    mss = syns.mss_of(trial, evidence.sysctls, evidence.sysctls)
    client_segments = min(trial.initrwnd - 2, SURE_SEGMENTS)  # with a margin of two
    return min(trial.initcwnd, client_segments, math.ceil(first_bytes / mss))


def _compare_connections(evidence: PageEvidence) -> Iterator[Comparison]:
    """There are no more connections to a host than allowed, and none without an object."""
    trial = evidence.trial
    ports_by_host: dict[int, set[int]] = {}
    for loaded, requested in zip(evidence.objects, trial.requested):
        host = trial.carrier_of(requested.host)
        ports_by_host.setdefault(host, set()).add(loaded["port"])

    for host, ports in ports_by_host.items():
        yield Comparison(len(ports) <= trial.most_connections,
                         f"{len(ports)} to host {host}", f"{trial.most_connections} at most")
        for other, ports_of_other in ports_by_host.items():
            if other > host:
                yield Comparison(ports.isdisjoint(ports_of_other),
                                 f"one for hosts {host} and {other}", "one of each")

    used = {loaded["port"] for loaded in evidence.objects}
    yield Comparison(used == evidence.exchanges.keys(),
                     f"{len(evidence.exchanges)} in the captures", f"{len(used)} with objects")
    yield from habits.compare_reuse(evidence, _allowed_ms(evidence))


def _compare_causes(evidence: PageEvidence) -> Iterator[Comparison]:
    """Each host sends when it has a cause, and no answer is late."""
    if evidence.path is None or not evidence.tick_ns or not evidence.known_kernel:
        return
    trial = evidence.trial
    thinks_ns = {round(requested.think_ms * MS) for requested in trial.requested
                 if requested.think_ms}
    without_cause = order.uncaused_data(evidence)
    for exchange in evidence.exchanges.values():
        without_cause += late_answers(trial, exchange, thinks_ns)
    yield compare_uncaused([f"at {(segment.time_ns - evidence.begun_ns) / MS:.3f} ms"
                            for segment in without_cause])


def _compare_times(evidence: PageEvidence) -> Iterator[Comparison]:
    """Packets show each time that the client reports."""
    wrong = list(order.time_faults(evidence, _allowed_ms(evidence)))
    yield Comparison(not wrong, f"{len(wrong)} times that no packet has{examples(wrong)}", "none")


def _compare_order(evidence: PageEvidence) -> Iterator[Comparison]:
    """Each object is requested in its turn."""
    wrong = list(order.order_faults(evidence, _allowed_ms(evidence)))
    yield Comparison(not wrong, f"{len(wrong)} objects out of turn{examples(wrong)}", "none")


def _allowed_ms(evidence: PageEvidence) -> float:
    """How far a time that the client reports may be from its packet."""
    busy_ns = order.reading_ns(evidence) + order.connecting_ns(evidence)
    return CLIENT_MS[evidence.exact] + busy_ns / MS


def _compare_model(evidence: PageEvidence) -> Iterator[Comparison]:
    """Each object that the model covers ends when the model says."""
    if not evidence.exact or not evidence.known_kernel:
        return
    for number, observed_ms, model_ms in evidence.predicted:
        allowed_ms = max(MODEL_MS, MODEL_SHARE * model_ms)
        yield Comparison(abs(observed_ms - model_ms) <= allowed_ms, f"{observed_ms:.3f} ms",
                         f"{model_ms:.3f} ms", f"model of object {number}")


def judges_path(record: PageRecord) -> bool:
    """Whether each packet of a page was judged by its path."""
    return PATH in record.judged_by.split()


def is_whole_and_secure(record: PageRecord) -> bool:
    """Whether all of a page arrived over TLS."""
    return is_whole(record) and record.trial.is_secure


def has_window(record: PageRecord) -> bool:
    """Whether TCP_INFO gave an initial window."""
    return bool(record.seen_initcwnd)


def _is_modelled(record: PageRecord) -> bool:
    return bool(record.model_objects)


# The checks that pages fetched by curl's library and pages in a browser share.
SHARED: dict[str, Judging[Any, PageRecord]] = {
    "path": Judging(judges_path),
    "acknowledgements": Judging(is_whole, _compare_acknowledgements),
    "TCP options": Judging(is_whole),
    "segment size": Judging(is_whole),
    "initial window": Judging(has_window),
    "first flight": Judging(is_whole, _compare_first_flight),
}
_JUDGED: dict[str, Judging[PageEvidence, PageRecord]] = {
    **SHARED,
    "size": Judging(is_whole),
    "digest": Judging(is_whole),
    "bytes": Judging(is_whole, compare_bytes),
    "TLS": Judging(is_whole_and_secure, compare_handshakes),
    "TLS records": Judging(is_whole_and_secure, compare_tls_records),
    "requests": Judging(is_whole, compare_requests),
    "connections": Judging(is_whole, _compare_connections),
    "order": Judging(is_whole, _compare_order),
    "causes": Judging(judges_path, _compare_causes),
    "server's socket": Judging(has_window),
    "client times": Judging(is_whole, _compare_times),
    "model": Judging(_is_modelled, _compare_model),
}
CHECKS = checks_of(PAGE, _JUDGED)
