"""Checks what the hosts of a trace sent: segments, requests, and why data left."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.judge import sending, syns
from firstflight.judge.requests import compare_length, request_bytes
from firstflight.net.segments import MS, Segment
from firstflight.testbed.network.commands import urls_of
from firstflight.wire.delivery.host import PAUSE_LATE_NS, SERVER_LATE_NS, Pauses, find_uncaused_of
from firstflight.wire.exchange import first_mss
from firstflight.workloads.trace.record import TraceEvidence


def compare_segment_size(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare the MSS of the server's socket, and the longest segment that left."""
    by_options = syns.mss_of(evidence.trial, evidence.client_sysctls, evidence.server_sysctls)
    # A small window of the client bounds the MSS that the socket has before it sends.
    expected = first_mss(evidence.view.exchange, by_options)
    mss = evidence.view.samples[0].mss
    yield Comparison(mss == expected, f"{mss} bytes", f"{expected}")
    yield from syns.compare_segment_size(evidence.shared)


def compare_requests(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare the length of each request, as server.py received it."""
    job = evidence.trial.job()
    urls = urls_of(job)
    for url, response in zip(urls, evidence.observation["responses"]):
        if "request_bytes" in response:
            yield from compare_length(response["request_bytes"], request_bytes(
                url, job["client"], closes=len(urls) == 1))


def compare_causes(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare the data that left without a cause with none.

    A cause is a packet that came, a timer that fired, a write that was due, or a pause that ended.
    A server that paces sends by a timer, so only its late answers are judged. Nothing is judged
    with a kernel of changed source, which may have other timers.
    """
    if evidence.path is None or not evidence.tick_ns or not evidence.known_kernel:
        return
    pauses = Pauses(client_ns={round(think_s * 1e9) for think_s in evidence.trial.thinks_s})
    exchange, trial = evidence.view.exchange, evidence.trial
    without_cause = [*sending.late_answers(trial, exchange),
                     *find_uncaused_of(exchange.at_client, to_client=False,
                                       tick_ns=evidence.tick_ns, pauses=pauses)]
    if not trial.paces:
        without_cause += find_uncaused_of(_with_writes(evidence), to_client=True,
                                          tick_ns=evidence.tick_ns, pauses=pauses)
    yield sending.compare_uncaused(
        [f"at {(segment.time_ns - evidence.view.start_ns) / MS:.3f} ms"
         for segment in without_cause])


def _with_writes(evidence: TraceEvidence) -> list[Segment]:
    """The server's segments, and copies of the first request that cause its writes.

    A copy arrives whenever a write is due. A timer of server.py may be a few µs late
    (wire.delivery.host), so further copies arrive until the latest time at which it may fire. They
    are SERVER_LATE_NS apart, which is how long a packet counts as a cause.
    """
    at_server, view = evidence.view.exchange.at_server, evidence.view
    request = next(segment for segment in at_server
                   if not segment.to_client and segment.payload_bytes)
    copies = []
    for due_s in evidence.trial.due_s:
        due_ns = view.start_ns + round(due_s * 1e9)
        for late_ns in range(0, PAUSE_LATE_NS, SERVER_LATE_NS):
            copies.append(request._replace(time_ns=due_ns + late_ns))
    return sorted((*copies, *at_server), key=lambda segment: segment.time_ns)
