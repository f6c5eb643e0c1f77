"""The one list of all checks of fetches, pages, traces and loads, as docs/METHOD.md's table has it.

A row says what is requested and what is observed. A workload judges by the rows that name it. Where
several workloads compare alike, the comparison is a function of judge/ that takes shared evidence
(judge/shared_evidence.py). Otherwise the workload has a comparison of its own (Judging).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from firstflight.base.comparison import Comparison
from firstflight.judge import bodies, path, sockets, syns
from firstflight.judge.shared_evidence import SharedEvidence
from firstflight.runs.results.checks import Check
from firstflight.runs.results.records import Record

# What is judged. A page that curl's library loads and one in a browser have different checks.
FETCH, PAGE, BROWSER, TRACE, LOAD = WORKLOADS = ("fetch", "page", "browser", "trace", "load")
# What a check looks at.
CONTENT, ON_PATH, ON_HOST, OPTIONS, KERNEL, SENT, LOSSES, TIMES, MODEL, RULES, RUN = (
    "sizes and digests", "the path", "when hosts send", "the SYNs", "TCP_INFO and sockets",
    "segments", "losses", "times", "the model of TCP", "the rules of TCPs", "the run")


@dataclass(frozen=True)
class Listed:
    """A row of the list: one check."""

    name: str  # stands in verdict_reason and on a run's page
    looks_at: str  # one of CONTENT to RUN
    requested: str
    observed: str  # what is compared with the requested
    judges: tuple[str, ...]  # the workloads that have the check
    only: str = ""  # the condition under which a trial has the check; "" for always
    # The comparison that all these workloads share; None where each has its own.
    compare: Callable[[SharedEvidence], Iterable[Comparison]] | None = None
    of_load: str = ""  # which connections of a load the check judges
    exact_only: bool = False  # as in runs.results.checks.Check
    seldom: bool = False  # as in runs.results.checks.Check


# The connections of a load that a check judges.
EVERY, SAMPLED = "all connections", "one port in 128 of the first four hosts"
LIST = (
    Listed("exit status", CONTENT, "a client that ends without an error",
           observed="its exit status", judges=(FETCH,)),
    Listed("HTTP status", CONTENT, "200; in a browser the recorded status",
           observed="the status that the client reports", judges=(FETCH, BROWSER), seldom=True),
    Listed("HTTP version", CONTENT, "the version of HTTP",
           observed="the version that the client reports", judges=(FETCH,), only="HTTP/2",
           seldom=True),
    Listed("size", CONTENT, "the size of each response",
           observed="bytes received, and bytes sent", judges=(FETCH, PAGE, TRACE),
           compare=bodies.compare_sizes),
    Listed("digest", CONTENT, "the server's content",
           observed="SHA-256 as received, and as sent", judges=(FETCH, PAGE, TRACE),
           compare=bodies.compare_digests),
    Listed("contents", CONTENT, "the recorded content",
           observed="length of what the page got, and SHA-256 where the browser still has it",
           judges=(BROWSER,), seldom=True),
    Listed("bytes", CONTENT, "headers, bodies and TLS's records of each connection",
           observed="bytes that it carried on the wire", judges=(PAGE, BROWSER)),
    Listed("TLS", CONTENT, "TLS 1.3, chain, key exchange, tickets, a session resumed or not",
           observed="the server's OpenSSL; of a page also the bytes of its first messages",
           judges=(FETCH, PAGE, BROWSER), only="TLS", seldom=True),
    Listed("TLS flight", CONTENT, "the server's first messages",
           observed="their bytes on the wire", judges=(FETCH,), only="TLS", seldom=True),
    Listed("TLS records", CONTENT,
           "records of so many bytes, shorter only where a response ends; over HTTP/2 where the"
           " server has no more to write",
           observed="the length of each record that left the server", judges=(FETCH, PAGE, BROWSER),
           only="TLS", seldom=True),
    Listed("early data", CONTENT, "a request that leaves with the hello",
           observed="bytes that the server took, their packets, and how soon it answered",
           judges=(FETCH,), only="early data", seldom=True),
    Listed("request", CONTENT, "the body of a request",
           observed="size and SHA-256 as the client sent it and the server received it",
           judges=(FETCH,), only="a body", seldom=True),
    Listed("request on the wire", CONTENT, "head and body of each request",
           observed="bytes that the client sent", judges=(FETCH,), only="a body", seldom=True),
    Listed("requests", CONTENT, "the length of the client's requests",
           observed="bytes that it sent, or that the server received; of a browser what the server"
                    " answered", judges=(FETCH, PAGE, BROWSER, TRACE)),
    Listed("connections", CONTENT,
           "at most so many to a host, each with an object, none while one is free",
           observed="the connections in the captures", judges=(PAGE,)),
    Listed("capture", CONTENT, "two whole captures",
           observed="their bytes", judges=(FETCH,)),
    Listed("no connection", CONTENT, "ARP that gives up",
           observed="no packet of IP", judges=(FETCH,), only="a network that nobody can connect on",
           seldom=True),
    Listed("path", ON_PATH, "delay, rate, queue and losses",
           observed="when each packet arrived, to the microsecond; drops by queue and seed, as the"
                    " network's counters and the captures have them (HTB: their sum)",
           judges=(FETCH, PAGE, BROWSER, TRACE), compare=path.compare_path, exact_only=True),
    Listed("RTT", ON_PATH, "the RTT",
           observed="the handshake less its serialisation", judges=(FETCH, TRACE),
           only="packets not judged one by one"),
    Listed("bandwidth", ON_PATH, "the bandwidth",
           observed="how far apart the first flight arrived", judges=(FETCH,),
           only="packets not judged one by one"),
    Listed("utilisation", ON_PATH, "the bottleneck's bandwidth",
           observed="bytes through the bottleneck", judges=(LOAD,),
           of_load="the counters of the bottleneck"),
    Listed("causes", ON_HOST, "data that leave when something came, a timer fired or a pause ended",
           observed="when each segment of data left; in a browser the server's",
           judges=(FETCH, PAGE, BROWSER, TRACE), exact_only=True),
    Listed("schedule", ON_HOST, "writes when they are due",
           observed="when they left", judges=(TRACE,)),
    Listed("acknowledgements", ON_HOST, "no host acknowledges what had not arrived there",
           observed="each acknowledgement", judges=(PAGE, BROWSER)),
    Listed("TCP options", OPTIONS,
           "MSS, SACK, time stamps, window scale, ECN, initial receive window",
           observed="each SYN and SYN-ACK", judges=WORKLOADS, compare=syns.compare_all_syns,
           of_load=SAMPLED),
    Listed("initial window", KERNEL, "initcwnd",
           observed="TCP_INFO at accept", judges=WORKLOADS, compare=sockets.compare_initial_windows,
           of_load=EVERY),
    Listed("server's socket", KERNEL,
           "congestion control, send buffer, pacing rate, MSS; of server.py also Nagle's algorithm"
           " and tcp_reordering",
           observed="the kernel's own record of the socket", judges=(FETCH, PAGE, TRACE),
           compare=sockets.compare_sockets),
    Listed("client's socket", KERNEL, "the client's window, congestion control and MSS",
           observed="TCP_INFO as its first request leaves", judges=(FETCH,), only="a body",
           seldom=True),
    Listed("segment size", SENT, "the MSS",
           observed="the longest segment, and shorter ones within a write; of a fetch also that"
                    " half of them are full, of a trace TCP_INFO", judges=WORKLOADS,
           compare=syns.compare_segment_size, of_load=SAMPLED),
    Listed("first flight", SENT, "initcwnd",
           observed="data segments before the first acknowledgement of data; of a load by TCP_INFO",
           judges=(FETCH, PAGE, BROWSER, LOAD), of_load="all connections that fill it"),
    Listed("first flight on the wire", SENT, "initcwnd",
           observed="data segments before the first acknowledgement of data", judges=(LOAD,),
           of_load=f"{SAMPLED}, of connections without losses"),
    Listed("client's first flight", SENT, "the client's window",
           observed="segments before the first acknowledgement of a request", judges=(FETCH,),
           only="a body", seldom=True),
    Listed("receive window", SENT, "a receive window that stays",
           observed="the most that is offered: two segments more until the first full one is read",
           judges=(FETCH, TRACE), only="such a window", seldom=True),
    Listed("lost packets", LOSSES, "the losses that the network counted, or none",
           observed="packets that the captures lack", judges=(FETCH, TRACE),
           only="packets not judged one by one"),
    Listed("retransmissions", LOSSES, "a loss or a timer behind each",
           observed="each retransmission (retransmission_cause)", judges=(FETCH, TRACE)),
    Listed("outage", LOSSES, "an outage that takes data",
           observed="lost data segments", judges=(TRACE,), only="an outage"),
    Listed("order", TIMES, "each object when it is named and a connection is free",
           observed="when it was named and requested", judges=(PAGE,)),
    Listed("server latency", TIMES, "T_ACK − T_Res1 of the server's clock",
           observed="its own capture", judges=(FETCH,)),
    Listed("client times", TIMES, "connect, first byte, total of the client's clock",
           observed="its own capture, to 10 µs (wget's process 0.1 ms more), of a page to 0.3 ms",
           judges=(FETCH, PAGE, BROWSER)),
    Listed("frame phase", TIMES, "the phase of a frame at which the load begins",
           observed="how long after a frame the browser requested the document, to 1 ms",
           judges=(BROWSER,), exact_only=True, seldom=True),
    Listed("model", MODEL, "the times that the model computes",
           observed="the total of a fetch; of a page objects on connections that never waited",
           judges=(FETCH, PAGE), exact_only=True),
    Listed("model latency", MODEL, "the latency that the model computes",
           observed="T_ACK − T_Res1", judges=(FETCH,), exact_only=True),
    Listed("model handshake", MODEL, "the handshake that the model computes",
           observed="its end, the first byte, the window then, round trips", judges=(FETCH,),
           only="TLS", exact_only=True, seldom=True),
    Listed("window", RULES, "what the TCP's rules make of the packets",
           observed="each sample of cwnd and ssthresh", judges=(TRACE,)),
    Listed("restart", RULES, "the rule after a pause of more than an RTO",
           observed="the window, and the segments sent", judges=(TRACE,)),
    Listed("servers", RUN, "servers that live to the end",
           observed="those that do", judges=(LOAD,), of_load="the servers' processes"),
    Listed("arrivals", RUN, "the offered load",
           observed="connections that arrived, within 4 σ", judges=(LOAD,), of_load=EVERY),
    Listed("failed connections", RUN, "no failure",
           observed="connections refused, reset or cut short", judges=(LOAD,), of_load=EVERY),
)


class HasSharedEvidence(Protocol):
    """A workload's evidence, which has the part that shared checks look at."""

    @property
    def shared(self) -> SharedEvidence: ...


Evidence = TypeVar("Evidence", bound=HasSharedEvidence)
RecordKind = TypeVar("RecordKind", bound=Record)


@dataclass(frozen=True)
class Judging(Generic[Evidence, RecordKind]):
    """How a workload judges by a row of the list."""

    applies_to: Callable[[RecordKind], bool]  # whether the check judged a stored record
    # The workload's own comparison; None for the list's.
    compare: Callable[[Evidence], Iterable[Comparison]] | None = None


def checks_of(workload: str, judging: Mapping[str, Judging[Evidence, RecordKind]],
              rows: Iterable[Listed] = LIST) -> tuple[Check[Evidence, RecordKind], ...]:
    """The checks of a workload, in the order of the list.

    judging: how the workload judges by each row, by the row's name. Raises ValueError where
    `judging` and the list do not name the same checks, and where a check has no comparison.
    """
    listed = {row.name: row for row in rows if workload in row.judges}
    if differing := listed.keys() ^ judging.keys():
        raise ValueError(f"{workload}: in the list or in the workload only: {sorted(differing)}")

    checks = []
    for name, row in listed.items():
        comparison = _comparison_of(row, judging[name])
        checks.append(Check(name, f"{row.requested}: {row.observed}", comparison,
                            applies_to=judging[name].applies_to, exact_only=row.exact_only,
                            seldom=row.seldom))
    return tuple(checks)


def _comparison_of(row: Listed, judging: Judging[Evidence, RecordKind]
                   ) -> Callable[[Evidence], Iterable[Comparison]]:
    """The comparison of a row: the workload's own, or else the one that the row has.

    Raises ValueError where neither has one.
    """
    if judging.compare is not None:
        return judging.compare
    if row.compare is None:
        raise ValueError(f"{row.name}: nothing is compared")
    return partial(_compare_shared, row.compare)


def _compare_shared(compare: Callable[[SharedEvidence], Iterable[Comparison]],
                    evidence: HasSharedEvidence) -> Iterable[Comparison]:
    return compare(evidence.shared)
