"""Judges pages that were loaded in a browser: compares what it reports with packets and server.

The browser finds itself what to request, so a trial has no list of objects. The times that the
browser reports are compared with the packets, its contents with the recording, and its requests
with the requests that reached the server.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import MappingProxyType

from firstflight.base.comparison import Comparison
from firstflight.base.errors import FirstFlightError
from firstflight.judge import records, sending, tls
from firstflight.judge.checklist import BROWSER, Judging, checks_of
from firstflight.judge.verdict import examples, is_whole, judged_record
from firstflight.net.segments import MS, CaptureError, Segment
from firstflight.runs.results import checks
from firstflight.testbed import site_store
from firstflight.testbed.hosts.browser.frames import FRAME_MS
from firstflight.testbed.hosts.replay.recording import Answer, Recording
from firstflight.testbed.messages import BrowserLoad, ObservedTrial
from firstflight.wire.delivery.host import find_uncaused_of
from firstflight.workloads.page import order, verify
from firstflight.workloads.page.browser_requests import (NOT_RECORDED, REQUESTS_FILE, Matched,
                                                         Served, downloads_of, is_redirect, match,
                                                         requests_file, served_of)
from firstflight.workloads.page.record import FILE, PageEvidence, PageRecord, file_of, record_of
from firstflight.workloads.page.timing import ConnectionTimes, Loaded, new_data
from firstflight.workloads.page.trial import PageTrial

# In a resumed session the server sends no certificates: its messages up to its Finished are small.
MOST_RESUMED_BYTES = 600
PHASE_MS = 1.0  # the most between the requested phase and that of the document's request
READ_MS = 1.0  # the most from the last byte's arrival until the browser has read a response
CLIENT_WINDOW = 10  # segments: the initial window of the client's kernel (TCP_INIT_CWND)
PROXIED_BYTES = 8192  # nginx has at least so many bytes of a longer answer when it writes
# Charsets of texts whose header names none, or a wrong one.
_CHARSETS = ("utf-8-sig", "cp1252")


@dataclass(frozen=True)
class BrowsedEvidence(PageEvidence):
    """What was observed of a page in a browser."""

    matched: Sequence[Matched] = ()  # the browser's requests, in their order
    extra: Sequence[Served] = ()  # requests that reached the server and the browser does not report

    @property
    def load(self) -> BrowserLoad:
        """What the browser reports of the load."""
        return self.observation["load"]

    @cached_property
    def arrived(self) -> list[Matched]:
        """The requests whose answers came over the network: the objects of the page."""
        return [matched for matched in self.matched if matched.has_arrived]


def judge_browsed(trial: PageTrial, observed: ObservedTrial, exact: bool,
                  sysctls: Mapping[str, str] = MappingProxyType({}), known_kernel: bool = True
                  ) -> tuple[PageRecord, Mapping[str, bytes]]:
    """Judge one load; return its record, and the files to keep, by name.

    exact, sysctls, known_kernel: as in verify.judge_page.
    """
    files = dict(observed.files)

    def judge() -> PageRecord:
        evidence = _evidence(trial, observed, exact, sysctls, known_kernel)
        failed = checks.failures(CHECKS, evidence)
        files[FILE] = file_of(evidence)
        files[REQUESTS_FILE] = requests_file(evidence.matched, ports=evidence.connections)
        return checks.give_verdict(_record_of(evidence), failed)

    failure = observed.content.get("error") or ""
    if not failure and "load" not in observed.content:
        failure = "the worker reported no load"
    return judged_record(PageRecord, trial, observed.content, failure, judge), files


def _evidence(trial: PageTrial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
              known_kernel: bool) -> BrowsedEvidence:
    """The evidence of an observed load. Raises CaptureError where something is missing."""
    load = observed.content["load"]
    matched, extra = match(load["requests"], served_of(observed.content))
    arrived = [request for request in matched if request.has_arrived]
    if not arrived or load["load_ms"] is None:
        raise CaptureError("the browser reports no request that was answered")

    content = observed.content.copy()
    content["objects"] = list(downloads_of(arrived))
    evidence = BrowsedEvidence.of_captures(trial, replace(observed, content=content), exact)
    missing = len(evidence.missing_ports)
    if missing:
        raise CaptureError(f"the captures lack {missing} of the connections that the server"
                           " reports")
    return replace(evidence, sysctls=trial.host_settings(sysctls), known_kernel=known_kernel,
                   load_ms=load["load_ms"], matched=matched, extra=extra)


def _record_of(evidence: BrowsedEvidence) -> PageRecord:
    """The record of a load, before its verdict.

    The document of the page is the first answer that is no redirect.
    """
    load = evidence.load
    requests = [matched.request for matched in evidence.arrived]
    document = next((request for request in requests if not is_redirect(request)), None)
    not_recorded = sum(matched.served is not None and matched.served.answer == NOT_RECORDED
                       for matched in evidence.matched)
    return replace(
        record_of(evidence), queued_ms=None,
        first_byte_ms=document["first_byte_ms"] if document else None,
        document_ms=document["end_ms"] if document else None,
        content_loaded_ms=load["content_loaded_ms"],
        paint_ms=load["paint_ms"], largest_paint_ms=load["largest_paint_ms"],
        requests=len(evidence.matched), not_recorded=not_recorded)


# The checks ------------------------------------------------------------------------------

@lru_cache(maxsize=4)
def _recording(digest: str) -> Recording:
    """The stored site of a trial. Raises FirstFlightError where it is missing."""
    try:
        return site_store.get(digest)
    except site_store.SiteMissing as fault:
        raise FirstFlightError(str(fault)) from fault


def _compare_requests(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """Each answer that the browser reports came from the server, and it reports all of these."""
    lost = []
    for matched in evidence.matched:
        request = matched.request
        has_answer = request["status"] and not request["cached"] and not request["failure"]
        if has_answer and matched.served is None:
            lost.append(request["url"])
    yield Comparison(not lost, f"{len(lost)} requests that the server did not have"
                     f"{examples(lost)}", "none")

    extra = [served.url for served in evidence.extra]
    yield Comparison(not extra, f"{len(extra)} answers that the browser did not report"
                     f"{examples(extra)}", "none")


def _compare_status(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """The browser reports the status that the server sent."""
    wrong = []
    for matched in evidence.arrived:
        request, served = matched.request, matched.served
        if served is not None and request["status"] != served.status:
            wrong.append(f"{request['url']} {request['status']} instead of {served.status}")
    yield Comparison(not wrong, f"{len(wrong)} of another status{examples(wrong)}", "none")


def _compare_contents(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """The contents that the page got are those that were recorded.

    Their lengths are compared, and a SHA-256 where the browser still had the content. A browser
    may report no content of a redirect.
    """
    recorded = _recording(evidence.trial.site).answers
    wrong = []
    for matched in evidence.arrived:
        request, served = matched.request, matched.served
        if served is None or served.answer == NOT_RECORDED:
            continue
        answer, got_bytes = recorded[served.answer], request["content_bytes"]
        expected_bytes = len(answer.content) if served.body_bytes else 0
        lacks_content = is_redirect(request) and not got_bytes
        has_digest = bool(request["sha256"]) and served.body_bytes > 0

        if got_bytes != expected_bytes and not lacks_content:
            wrong.append(f"{request['url']} {got_bytes} bytes instead of {expected_bytes}")
        elif has_digest and request["sha256"] not in digests_of(answer):
            wrong.append(f"{request['url']} of another SHA-256")
    yield Comparison(not wrong, f"{len(wrong)} other contents{examples(wrong)}", "none")


@lru_cache(maxsize=1 << 12)
def digests_of(answer: Answer) -> frozenset[str]:
    """Each SHA-256 that a browser may report of an answer's content.

    A browser returns a text in UTF-8, whatever the charset in which it came.
    """
    content_type = dict(answer.headers).get("content-type", "")
    named_charset = content_type.partition("charset=")[2].partition(";")[0].strip("\"' ")
    contents = {answer.content}
    for charset in filter(None, (named_charset, *_CHARSETS)):
        try:
            contents.add(answer.content.decode(charset, "replace").encode())
        except LookupError:  # the header names an unknown charset
            continue
    return frozenset(hashlib.sha256(content).hexdigest() for content in contents)


def _compare_bytes(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """Each connection carried at least the bodies of its answers.

    How many bytes headers, frames of HTTP/2, and TLS add is not known.
    """
    for number, connection in enumerate(evidence.connections.values(), start=1):
        bodies = sum(loaded.report["size"] for loaded in connection.objects)
        carried = connection.sent_end - 1
        yield Comparison(carried >= bodies, f"{carried} bytes on connection {number}",
                         f"{bodies} or more")


def _compare_handshakes(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """The server's first messages have the chain, unless the browser resumes a session.

    Over HTTP/1.1 a further connection may resume a session, by a ticket from a connection whose
    handshake ended earlier.
    """
    trial = evidence.trial
    has_session = False
    for number, connection in _in_order_of_handshakes(evidence):
        name = f"TLS of connection {number}"
        if has_session and connection.flight_bytes < trial.chain_bytes:
            yield Comparison(connection.flight_bytes <= MOST_RESUMED_BYTES,
                             f"{connection.flight_bytes} bytes on the wire of a resumed session",
                             f"at most {MOST_RESUMED_BYTES}", name)
            continue
        has_session = True
        for comparison in tls.compare_flight(trial, connection.flight_bytes, None):
            yield comparison._replace(name=name)


def _in_order_of_handshakes(evidence: BrowsedEvidence) -> list[tuple[int, ConnectionTimes]]:
    """The connections over TLS with their numbers, in the order in which their handshakes ended.

    That is not the order of their SYNs where a loss delays one.
    """
    by_end: list[tuple[int, int, ConnectionTimes]] = []
    for number, connection in enumerate(evidence.connections.values(), start=1):
        if connection.finished is not None:
            by_end.append((connection.finished.time_ns, number, connection))
    by_end.sort(key=lambda ended: ended[0])
    return [(number, connection) for _, number, connection in by_end]


def _compare_tls_records(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """The records of each connection are full, except where an answer ends or pauses.

    Over HTTP/2 nginx may send a frame of its own for each answer.
    """
    trial, sizes = evidence.trial, defaultdict[int, list[int]](list)
    for served in served_of(evidence.observation):
        sizes[served.port].append(served.body_bytes)

    for number, (port, connection) in enumerate(evidence.connections.items(), start=1):
        if connection.finished is None:
            continue
        short_of_answers = len(sizes[port]) + records.most_flushes(sizes[port], PROXIED_BYTES)
        most_short = tls.tickets_of(trial) + records.SETTINGS_RECORDS + short_of_answers
        lengths = evidence.records.get(port, ())
        sent = records.records_between(lengths, connection.flight_bytes, connection.sent_end)
        yield from records.compare_filled(sent, trial.record_bytes, most_short,
                                          f"TLS records of connection {number}")


def _compare_times(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """Packets show each time that the browser reports."""
    wrong = list(_time_faults(evidence, verify.CLIENT_MS[evidence.exact]))
    yield Comparison(not wrong, f"{len(wrong)} times that no packet has{examples(wrong)}", "none")


def _time_faults(evidence: BrowsedEvidence, allowed_ms: float) -> Iterator[str]:
    """The times that the browser reports and no packet shows, in words."""
    wire_bytes = [matched.request["wire_bytes"] for matched in evidence.arrived]
    for connection in evidence.connections.values():
        least_bytes = _handshake_bytes(evidence.trial, connection)
        for loaded in sorted(connection.objects, key=lambda loaded: loaded.time_ms("end_ms")):
            least_bytes += max(loaded.report["size"], wire_bytes[loaded.number - 1])
            for fault in _faults_of(evidence, connection, loaded, least_bytes=least_bytes,
                                    allowed_ms=allowed_ms):
                yield f"request {loaded.number} {fault}"


def _handshake_bytes(trial: PageTrial, connection: ConnectionTimes) -> int:
    """The least number of bytes that the server sends before its first answer.

    These are its messages up to its Finished, and tickets.
    """
    if connection.flight_bytes < trial.chain_bytes:  # a resumed session may have no ticket
        return connection.flight_bytes
    least_ticket_bytes, _ = records.TICKET_BYTES
    return connection.flight_bytes + least_ticket_bytes * trial.tickets


def _faults_of(evidence: BrowsedEvidence, connection: ConnectionTimes, loaded: Loaded, *,
               least_bytes: int, allowed_ms: float) -> Iterator[str]:
    """The times of one request that no packet shows, in words.

    A request leaves when data leaves, unless the client's window holds it back. A response begins
    and ends when data arrives. The end may be READ_MS later: the browser reads a large response in
    parts. least_bytes: how many bytes have to arrive on the connection before the response ends.
    """
    begun_ns, at_client = evidence.load["begun_ns"], connection.exchange.at_client
    start_ms = loaded.time_ms("start_ms")
    start_ns = begun_ns + round(start_ms * MS)
    has_left = any(abs(segment.time_ns - start_ns) <= allowed_ms * MS
                   for segment in connection.sent)
    if not has_left and not is_held(at_client, start_ns, allowed_ms):
        yield f"sent at {start_ms:.3f}"

    for name, later_ms in (("first_byte_ms", 0.0), ("end_ms", READ_MS)):
        at_ns = begun_ns + round(loaded.time_ms(name) * MS)
        if order.arrival_near(connection, at_ns, allowed_ms, later_ms=later_ms) is None:
            yield f"{name} {loaded.time_ms(name):.3f}"

    end_ms = loaded.time_ms("end_ms")
    if arrived_bytes(connection, begun_ns + round((end_ms + allowed_ms) * MS)) < least_bytes:
        yield f"ended at {end_ms:.3f}, before its last byte came"


def is_held(at_client: Sequence[Segment], start_ns: int, allowed_ms: float) -> bool:
    """Whether the client's window holds a request back from start_ns until something arrives.

    at_client: the segments of a connection. The window has at least CLIENT_WINDOW segments: until
    so many are on their way, TCP sends at once.
    """
    sent = new_data(at_client)
    came = [segment for segment in at_client if segment.to_client]
    acknowledged = max((segment.ack or 0 for segment in came if segment.time_ns <= start_ns),
                       default=0)
    under_way = [segment for segment in sent
                 if segment.time_ns <= start_ns and segment.end > acknowledged]
    following = next((segment for segment in sent if segment.time_ns > start_ns), None)
    if len(under_way) < CLIENT_WINDOW or following is None:
        return False
    return any(abs(segment.time_ns - following.time_ns) <= allowed_ms * MS for segment in came)


def arrived_bytes(connection: ConnectionTimes, at_ns: int) -> int:
    """How many bytes had arrived without a gap by a time."""
    ends, times = connection.steps
    # The sequence number of the first byte is 1.
    return ends[bisect_right(times, at_ns) - 1] - 1


def _compare_phase(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """The document was requested in that phase of a frame which the trial asks for."""
    requested_ms = evidence.trial.phase_ms
    if requested_ms is None:
        return
    later_ms = (evidence.load["phase_ms"] - requested_ms) % FRAME_MS
    yield Comparison(min(later_ms, FRAME_MS - later_ms) <= PHASE_MS,
                     f"{evidence.load['phase_ms']:.3f} ms after a frame",
                     f"{requested_ms:.3f} ms, to {PHASE_MS:g} ms")


def _compare_causes(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """The server sends when a packet came, an answer was due, or a timer fired.

    Only the server is judged: a page's scripts decide what the browser requests, and when.
    """
    is_judged = evidence.path is not None and evidence.tick_ns and evidence.known_kernel
    if not is_judged or evidence.trial.paces:
        return
    due_ns: dict[int, list[int]] = defaultdict(list)  # by port: when answers left the backend
    for matched in evidence.matched:
        if matched.served is not None:
            due_ns[matched.served.port].append(matched.served.left_ns)

    without_cause: list[Segment] = []
    for port, exchange in evidence.exchanges.items():
        # An answer that is due counts as a packet that arrives at that time: a copy of the first
        # packet from the client stands for it.
        came = next((segment for segment in exchange.at_server if not segment.to_client), None)
        causes = [] if came is None else [came._replace(time_ns=at_ns) for at_ns in due_ns[port]]
        at_server = sorted((*causes, *exchange.at_server), key=lambda segment: segment.time_ns)
        without_cause += find_uncaused_of(at_server, True, evidence.tick_ns, more_ns=order.NGINX_NS)
    yield sending.compare_uncaused([f"at {(segment.time_ns - evidence.begun_ns) / MS:.3f} ms"
                                    for segment in without_cause])


def _has_phase(record: PageRecord) -> bool:
    """Whether the whole page arrived, and its trial asks for a phase of a frame."""
    return is_whole(record) and record.trial.phase_ms is not None


_JUDGED: dict[str, Judging[BrowsedEvidence, PageRecord]] = {
    **verify.SHARED,
    "HTTP status": Judging(is_whole, _compare_status),
    "contents": Judging(is_whole, _compare_contents),
    "bytes": Judging(is_whole, _compare_bytes),
    "TLS": Judging(verify.is_whole_and_secure, _compare_handshakes),
    "TLS records": Judging(verify.is_whole_and_secure, _compare_tls_records),
    "requests": Judging(is_whole, _compare_requests),
    "causes": Judging(verify.judges_path, _compare_causes),
    "client times": Judging(is_whole, _compare_times),
    "frame phase": Judging(_has_phase, _compare_phase),
}
CHECKS = checks_of(BROWSER, _JUDGED)
