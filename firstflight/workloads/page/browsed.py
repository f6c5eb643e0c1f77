"""Judges pages that were loaded in a browser: compares what it reports with packets and server.

The browser finds the page's requests itself, so none is requested by a trial. Its times are
compared with the packets, its contents with the recording, and its requests with those that the
server had.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from firstflight.base.comparison import Comparison
from firstflight.base.errors import FirstFlightError
from firstflight.judge import records, sending, tls
from firstflight.judge.checklist import BROWSER, Judging, checks_of
from firstflight.judge.path import delivered
from firstflight.judge.verdict import examples, is_whole, judged_record
from firstflight.net.segments import MS, CaptureError, Segment, frames_of
from firstflight.runs.results import checks
from firstflight.testbed import site_store
from firstflight.testbed.hosts.browser.frames import FRAME_MS
from firstflight.testbed.hosts.replay.recording import Answer, Recording
from firstflight.testbed.messages import BrowserLoad, BrowserRequest, Download, ObservedTrial
from firstflight.wire.delivery.host import uncaused
from firstflight.workloads.page import order, verify
from firstflight.workloads.page.record import FILE, PageEvidence, PageRecord, file_of, record_of
from firstflight.workloads.page.timing import ConnectionTimes, new_data
from firstflight.workloads.page.trial import PageTrial

REQUESTS_FILE = "requests.csv"  # of each trial: what the browser reports of each request
NOT_RECORDED = -1
LEAST_TICKET_BYTES = 200  # of a ticket of OpenSSL's, which has 250 and more
MOST_RESUMED_BYTES = 600  # of ServerHello, extensions and Finished, without certificates
PHASE_MS = 1.0  # between the phase that is requested and that of the document's request
READ_MS = 1.0  # from the last byte's arrival until the browser has read a response
CLIENT_WINDOW = 10  # segments of the client's kernel (TCP_INIT_CWND)
PROXIED_BYTES = 8192  # that nginx at least has of a longer answer when it writes
_CHARSETS = ("utf-8-sig", "cp1252")


class Served(NamedTuple):
    """A row of what the server answered (testbed/hosts/replay/backend.py); times in ns."""

    answer: int
    port: int
    method: str
    url: str
    came_ns: int
    left_ns: int
    status: int
    body_bytes: int


@dataclass(frozen=True)
class Matched:
    """A request of the browser's, and how the server answered it; None where it had none."""

    request: BrowserRequest
    served: Served | None

    @property
    def is_over(self) -> bool:
        """Whether it was answered over the network, and whole."""
        return (self.served is not None and not self.request["failure"]
                and not self.request["cached"] and self.request["sent_ms"] is not None
                and self.request["end_ms"] is not None)


@dataclass(frozen=True)
class BrowsedEvidence(PageEvidence):
    """What was observed of a page in a browser. extra: requests that the server alone knows."""

    matched: Sequence[Matched] = ()
    extra: Sequence[Served] = ()

    @property
    def load(self) -> BrowserLoad:
        return self.observation["load"]


def judge_browsed(trial: PageTrial, observed: ObservedTrial, exact: bool,
                  sysctls: Mapping[str, str] = MappingProxyType({}), known_kernel: bool = True
                  ) -> tuple[PageRecord, Mapping[str, bytes]]:
    """Judge one load; return its record, and the files to keep, by name.

    exact, sysctls, known_kernel: as of verify.judge_page.
    """
    files = dict(observed.files)

    def judge() -> PageRecord:
        evidence = _evidence(trial, observed, exact, sysctls, known_kernel)
        failed = checks.failures(CHECKS, evidence)
        files.update({FILE: file_of(evidence), REQUESTS_FILE: requests_file(evidence)})
        return checks.give_verdict(_record_of(evidence), failed)

    failure = observed.content.get("error") or ("" if "load" in observed.content else
                                                "the worker reported no load")
    return judged_record(PageRecord, trial, observed.content, failure, judge), files


def _evidence(trial: PageTrial, observed: ObservedTrial, exact: bool, sysctls: Mapping[str, str],
              known_kernel: bool) -> BrowsedEvidence:
    """The evidence of an observed load. Raises CaptureError where something is missing."""
    load = observed.content["load"]
    served = [Served(*row) for row in observed.content.get("served", ())]
    matched, extra = match(load["requests"], served)
    over = [each for each in matched if each.is_over]
    if not over or load["load_ms"] is None:
        raise CaptureError("the browser reports no request that was answered")

    content = observed.content.copy()
    content["objects"] = list(_downloads(over))
    client, server = frames_of(observed.client_pcap, observed.server_pcap)
    path = delivered(trial, client, server) if exact else None
    tick_ns = round(content.get("started_at", 0) * 1e9) if exact else 0
    evidence = BrowsedEvidence.of_frames(trial, content, exact, client, server, path, tick_ns)
    missing = {each["port"] for each in evidence.objects} - evidence.exchanges.keys()
    if missing:
        raise CaptureError(f"the captures lack {len(missing)} of the connections that the server"
                           " reports")
    return replace(evidence, sysctls=trial.host_settings(sysctls), known_kernel=known_kernel,
                   load_ms=load["load_ms"], matched=matched, extra=extra)


def match(requests: Sequence[BrowserRequest], served: Sequence[Served]
          ) -> tuple[list[Matched], list[Served]]:
    """The browser's requests with the server's answers, and the answers that are left.

    Requests of one method and URL are matched in their order.
    """
    waiting: dict[tuple[str, str], list[Served]] = defaultdict(list)
    for each in served:
        waiting[each.method, each.url].append(each)
    matched = []
    for request in requests:
        same = waiting[request["method"], request["url"]]
        is_cached = request["cached"]
        matched.append(Matched(request, same.pop(0) if same and not is_cached else None))
    return matched, [each for left in waiting.values() for each in left]


def _downloads(over: Sequence[Matched]) -> Iterator[Download]:
    """The requests as objects of a page, whose first one is its document."""
    opened: set[int] = set()
    for request, served in ((each.request, each.served) for each in over):
        assert served is not None
        is_first = served.port not in opened
        opened.add(served.port)
        yield {"ok": True, "error": "", "size": served.body_bytes, "sha256": request["sha256"],
               "port": served.port, "connects": int(is_first), "header_bytes": 0,
               "named_ms": request["start_ms"], "start_ms": request["sent_ms"],
               "first_byte_ms": request["first_byte_ms"] or request["end_ms"],
               "end_ms": request["end_ms"]}


def _record_of(evidence: BrowsedEvidence) -> PageRecord:
    load = evidence.load
    document = next((each.request for each in evidence.matched if each.is_over
                     and not 300 <= each.request["status"] < 400), None)
    return replace(
        record_of(evidence), queued_ms=None,
        first_byte_ms=document["first_byte_ms"] if document else None,
        document_ms=document["end_ms"] if document else None,
        content_loaded_ms=load["content_loaded_ms"],
        paint_ms=load["paint_ms"], largest_paint_ms=load["largest_paint_ms"],
        requests=len(evidence.matched),
        not_recorded=sum(each.served is not None and each.served.answer == NOT_RECORDED
                         for each in evidence.matched))


# The requests over time -----------------------------------------------------------------

_COLUMNS = ("number", "start_ms", "sent_ms", "first_byte_ms", "end_ms", "status", "protocol",
            "priority", "kind", "connection", "body_bytes", "content_bytes", "recorded", "cached",
            "failure", "method", "url")


def requests_file(evidence: BrowsedEvidence) -> bytes:
    """requests.csv: a row for each request of the browser, in their order.

    connection: by the order of SYNs, from 1; 0 for none.
    """
    place = {port: number for number, port in enumerate(evidence.connections, start=1)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for number, each in enumerate(evidence.matched, start=1):
        request, served = each.request, each.served
        times = (request["start_ms"], request["sent_ms"], request["first_byte_ms"],
                 request["end_ms"])
        writer.writerow((
            number, *("" if at_ms is None else f"{at_ms:.3f}" for at_ms in times),
            request["status"], request["protocol"], request["priority"], request["kind"],
            place.get(served.port, 0) if served else 0, served.body_bytes if served else 0,
            request["content_bytes"], int(served is not None and served.answer != NOT_RECORDED),
            int(request["cached"]), request["failure"], request["method"], request["url"]))
    return text.getvalue().encode("utf-8", "replace")


# The checks ------------------------------------------------------------------------------

@lru_cache(maxsize=4)
def _recording(digest: str) -> Recording:
    try:
        return site_store.get(digest)
    except site_store.SiteMissing as fault:
        raise FirstFlightError(str(fault)) from fault


def _compare_requests(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """Each request that was answered over the network had an answer, and each answer a request."""
    lost = [each.request["url"] for each in evidence.matched
            if each.served is None and each.request["status"] and not each.request["cached"]
            and not each.request["failure"]]
    yield Comparison(not lost, f"{len(lost)} requests that the server did not have"
                     f"{examples(lost)}", "none")
    extra = [each.url for each in evidence.extra]
    yield Comparison(not extra, f"{len(extra)} answers that the browser did not report"
                     f"{examples(extra)}", "none")


def _compare_status(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    wrong = [f"{each.request['url']} {each.request['status']} instead of {each.served.status}"
             for each in evidence.matched if each.is_over and each.served is not None
             and each.request["status"] != each.served.status]
    yield Comparison(not wrong, f"{len(wrong)} of another status{examples(wrong)}", "none")


def _compare_contents(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """What the page got is what was recorded: by its length, and by SHA-256 where the browser
    still had it."""
    recorded = _recording(evidence.trial.site).answers
    wrong = []
    for each in evidence.matched:
        if not each.is_over or each.served is None or each.served.answer == NOT_RECORDED:
            continue
        answer, request = recorded[each.served.answer], each.request
        expected = len(answer.content) if each.served.body_bytes else 0
        if request["content_bytes"] not in (expected, 0 if 300 <= request["status"] < 400
                                            else expected):
            wrong.append(f"{request['url']} {request['content_bytes']} bytes instead of"
                         f" {expected}")
        elif request["sha256"] and each.served.body_bytes and (
                request["sha256"] not in digests_of(answer)):
            wrong.append(f"{request['url']} of another SHA-256")
    yield Comparison(not wrong, f"{len(wrong)} other contents{examples(wrong)}", "none")


@lru_cache(maxsize=1 << 12)
def digests_of(answer: Answer) -> frozenset[str]:
    """The SHA-256 of an answer's content, and of its text in UTF-8, as browsers return texts."""
    kind = dict(answer.headers).get("content-type", "")
    named = kind.partition("charset=")[2].partition(";")[0].strip("\"' ")
    found = {answer.content}
    for charset in filter(None, (named, *_CHARSETS)):
        try:
            found.add(answer.content.decode(charset, "replace").encode())
        except LookupError:
            continue
    return frozenset(hashlib.sha256(content).hexdigest() for content in found)


def _compare_bytes(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """Each connection carried the bodies of its answers, and more: headers, frames, records."""
    for number, connection in enumerate(evidence.connections.values(), start=1):
        bodies = sum(loaded.report["size"] for loaded in connection.objects)
        carried = connection.sent_end - 1
        yield Comparison(carried >= bodies, f"{carried} bytes on connection {number}",
                         f"{bodies} or more")


def _compare_handshakes(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """The server's first messages have the chain, unless the browser resumes a session of the page.

    A further connection resumes one over HTTP/1.1, by a ticket of an earlier connection.
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
        for each in tls.compare_flight(trial, connection.flight_bytes, None):
            yield replace(each, name=name)


def _in_order_of_handshakes(evidence: BrowsedEvidence) -> list[tuple[int, ConnectionTimes]]:
    """The connections over TLS with their numbers, as their handshakes ended: a loss may delay one.
    """
    ended = [(connection.finished.time_ns, number, connection) for number, connection in enumerate(
        evidence.connections.values(), start=1) if connection.finished is not None]
    return [(number, connection) for _, number, connection in sorted(
        ended, key=lambda each: each[0])]


def _compare_tls_records(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """Compare the records of each connection: full, but where an answer ends or pauses.

    Over HTTP/2 nginx may send a frame of its own for each answer.
    """
    trial, sizes = evidence.trial, defaultdict[int, list[int]](list)
    for row in evidence.observation.get("served", ()):
        served = Served(*row)
        sizes[served.port].append(served.body_bytes)
    for number, (port, connection) in enumerate(evidence.connections.items(), start=1):
        if connection.finished is None:
            continue
        most_short = (tls.tickets_of(trial) + records.SETTINGS_RECORDS + len(sizes[port])
                      + records.most_flushes(sizes[port], PROXIED_BYTES))
        sent = records.between(evidence.records.get(port, ()), connection.flight_bytes,
                               connection.sent_end)
        yield from records.compare_filled(sent, trial.record_bytes, most_short,
                                          f"TLS records of connection {number}")


def _compare_times(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    wrong = list(_time_faults(evidence, verify.CLIENT_MS[evidence.exact]))
    yield Comparison(not wrong, f"{len(wrong)} times that no packet has{examples(wrong)}", "none")


def _time_faults(evidence: BrowsedEvidence, allowed_ms: float) -> Iterator[str]:
    """Times that the browser reports and its packets do not show, in words.

    A request leaves when data leaves, or is held by the client's window; a response begins and ends
    when data arrives, and no sooner than as many bytes had come as the handshake and its
    connection's finished responses have. The end may be READ_MS later: the browser reads a large
    response in parts.
    """
    begun_ns = evidence.load["begun_ns"]
    wire_bytes = [each.request["wire_bytes"] for each in evidence.matched if each.is_over]
    for connection in evidence.connections.values():
        sent = new_data(connection.exchange.at_client)
        tickets = LEAST_TICKET_BYTES * evidence.trial.tickets
        is_new = connection.flight_bytes >= evidence.trial.chain_bytes
        finished = connection.flight_bytes + (tickets if is_new else 0)
        for loaded in sorted(connection.objects, key=lambda each: each.time_ms("end_ms")):
            finished += max(loaded.report["size"], wire_bytes[loaded.number - 1])
            name = f"request {loaded.number}"
            start_ms = loaded.time_ms("start_ms")
            start_ns = begun_ns + round(start_ms * MS)
            has_left = any(abs(segment.time_ns - start_ns) <= allowed_ms * MS for segment in sent)
            if not has_left and not is_held(connection.exchange.at_client, start_ns,
                                               allowed_ms):
                yield f"{name} sent at {start_ms:.3f}"
            for what, later_ms in (("first_byte_ms", 0.0), ("end_ms", READ_MS)):
                at_ns = begun_ns + round(loaded.time_ms(what) * MS)
                if order.near(connection, at_ns, allowed_ms, later_ms) is None:
                    yield f"{name} {what} {loaded.time_ms(what):.3f}"
            end_ns = begun_ns + round((loaded.time_ms("end_ms") + allowed_ms) * MS)
            if arrived_bytes(connection, end_ns) < finished:
                yield f"{name} ended at {loaded.time_ms('end_ms'):.3f}, before its last byte came"


def is_held(at_client: Sequence[Segment], start_ns: int, allowed_ms: float) -> bool:
    """Whether the client's window holds a request back from then until something arrives.

    at_client: the segments of a connection. The window has CLIENT_WINDOW segments, or more: until
    so many are on their way, TCP sends at once.
    """
    sent = new_data(at_client)
    came = [segment for segment in at_client if segment.to_client]
    acknowledged = max((segment.ack or 0 for segment in came if segment.time_ns <= start_ns),
                       default=0)
    under_way = [segment for segment in sent
                 if segment.time_ns <= start_ns and segment.end > acknowledged]
    following = next((segment for segment in sent if segment.time_ns > start_ns), None)
    return (len(under_way) >= CLIENT_WINDOW and following is not None
            and any(abs(segment.time_ns - following.time_ns) <= allowed_ms * MS
                    for segment in came))


def arrived_bytes(connection: ConnectionTimes, at_ns: int) -> int:
    """How many bytes had arrived without a gap by a time."""
    ends, times = connection.steps
    return max((end for end, came_ns in zip(ends, times) if came_ns <= at_ns), default=1) - 1


def _compare_phase(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """The document was requested at the phase of a frame that the trial requests."""
    requested_ms = evidence.trial.phase_ms
    if requested_ms is None:
        return
    later_ms = (evidence.load["phase_ms"] - requested_ms) % FRAME_MS
    yield Comparison(min(later_ms, FRAME_MS - later_ms) <= PHASE_MS,
                     f"{evidence.load['phase_ms']:.3f} ms after a frame",
                     f"{requested_ms:.3f} ms, to {PHASE_MS:g} ms")


def _compare_causes(evidence: BrowsedEvidence) -> Iterator[Comparison]:
    """The server sends when a packet came, an answer was due, or a timer fired.

    What a page requests, and when, its scripts decide; so only the server is judged.
    """
    is_judged = evidence.path is not None and evidence.tick_ns and evidence.known_kernel
    if not is_judged or evidence.trial.paces:
        return
    answered: dict[int, list[int]] = defaultdict(list)
    for each in evidence.matched:
        if each.served is not None:
            answered[each.served.port].append(each.served.left_ns)
    found: list[Segment] = []
    for port, exchange in evidence.exchanges.items():
        came = next((each for each in exchange.at_server if not each.to_client), None)
        causes = [] if came is None else [came._replace(time_ns=at_ns) for at_ns in answered[port]]
        at_server = sorted((*causes, *exchange.at_server), key=lambda each: each.time_ns)
        found += uncaused(at_server, True, evidence.tick_ns, more_ns=order.NGINX_NS)
    yield sending.uncaused(
        [f"at {(each.time_ns - evidence.begun_ns) / MS:.3f} ms" for each in found])


CHECKS = checks_of(BROWSER, {
    **verify.SHARED,
    "HTTP status": Judging(is_whole, _compare_status),
    "contents": Judging(is_whole, _compare_contents),
    "bytes": Judging(is_whole, _compare_bytes),
    "TLS": Judging(lambda record: is_whole(record) and record.trial.is_secure,
                   _compare_handshakes),
    "TLS records": Judging(lambda record: is_whole(record) and record.trial.is_secure,
                           _compare_tls_records),
    "requests": Judging(is_whole, _compare_requests),
    "causes": Judging(verify.is_sent, _compare_causes),
    "client times": Judging(is_whole, _compare_times),
    "frame phase": Judging(
        lambda record: is_whole(record) and record.trial.phase_ms is not None, _compare_phase),
})
