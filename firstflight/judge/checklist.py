"""The one list of checks, of fetches, pages, traces and loads: docs/METHOD.md's table.

A row says what is requested and what is observed. A workload judges by the rows that name it: where
several workloads do, the comparison is a function here, of what the workload saw (judge/seen.py);
else it is the workload's own (Judging).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from firstflight.base.comparison import Comparison
from firstflight.judge import bodies, path, sockets, syns
from firstflight.judge.seen import Seen
from firstflight.runs.results.checks import Check
from firstflight.runs.results.records import Record

# What is judged: a page by curl's library, and one in a browser.
FETCH, PAGE, BROWSER, TRACE, LOAD = WORKLOADS = ("fetch", "page", "browser", "trace", "load")
# What a check looks at.
CONTENT, ON_PATH, ON_HOST, OPTIONS, KERNEL, SENT, LOSSES, TIMES, MODEL, RULES, RUN = (
    "sizes and digests", "the path", "when hosts send", "the SYNs", "TCP_INFO and sockets",
    "segments", "losses", "times", "the model of TCP", "the rules of TCPs", "the run")


@dataclass(frozen=True)
class Listed:
    """A row: one check.

    name: in verdict_reason and on a run's page. looks_at: one of the above. requested, observed:
    what is compared. judges: the workloads. only: under which condition, "" for always.
    compare: the comparison that all of them share; None where each has its own. of_load: which
    connections of a load it judges. exact_only, seldom: as of Check.
    """

    name: str
    looks_at: str
    requested: str
    observed: str
    judges: tuple[str, ...]
    only: str = ""
    compare: Callable[[Seen], Iterable[Comparison]] | None = None
    of_load: str = ""
    exact_only: bool = False
    seldom: bool = False


EVERY, SAMPLED = "all connections", "one port in 128 of the first four hosts"  # of a load
LIST = (
    Listed("exit status", CONTENT, "a client that ends without an error", "its exit status",
           (FETCH,)),
    Listed("HTTP status", CONTENT, "200; in a browser the recorded status",
           "the status that the client reports", (FETCH, BROWSER), seldom=True),
    Listed("HTTP version", CONTENT, "the version of HTTP", "the version that the client reports",
           (FETCH,), "HTTP/2", seldom=True),
    Listed("size", CONTENT, "the size of each response", "bytes received, and bytes sent",
           (FETCH, PAGE, TRACE), compare=bodies.compare_sizes),
    Listed("digest", CONTENT, "the server's content", "SHA-256 as received, and as sent",
           (FETCH, PAGE, TRACE), compare=bodies.compare_digests),
    Listed("contents", CONTENT, "the recorded content",
           "length of what the page got, and SHA-256 where the browser still has it", (BROWSER,),
           seldom=True),
    Listed("bytes", CONTENT, "headers, bodies and TLS's records of each connection",
           "bytes that it carried on the wire", (PAGE, BROWSER)),
    Listed("TLS", CONTENT, "TLS 1.3, chain, key exchange, tickets, a session resumed or not",
           "the server's OpenSSL; of a page also the bytes of its first messages",
           (FETCH, PAGE, BROWSER), "TLS", seldom=True),
    Listed("TLS flight", CONTENT, "the server's first messages", "their bytes on the wire",
           (FETCH,), "TLS", seldom=True),
    Listed("TLS records", CONTENT,
           "records of so many bytes, shorter only where a response ends; over HTTP/2 where the"
           " server has no more to write",
           "the length of each record that left the server", (FETCH, PAGE, BROWSER), "TLS",
           seldom=True),
    Listed("early data", CONTENT, "a request that leaves with the hello",
           "bytes that the server took, their packets, and how soon it answered", (FETCH,),
           "early data", seldom=True),
    Listed("request", CONTENT, "the body of a request",
           "size and SHA-256 as the client sent it and the server received it", (FETCH,),
           "a body", seldom=True),
    Listed("request on the wire", CONTENT, "head and body of each request",
           "bytes that the client sent", (FETCH,), "a body", seldom=True),
    Listed("requests", CONTENT, "the length of the client's requests",
           "bytes that it sent, or that the server received; of a browser what the server answered",
           (FETCH, PAGE, BROWSER, TRACE)),
    Listed("connections", CONTENT,
           "at most so many to a host, each with an object, none while one is free",
           "the connections in the captures", (PAGE,)),
    Listed("capture", CONTENT, "two whole captures", "their bytes", (FETCH,)),
    Listed("no connection", CONTENT, "ARP that gives up", "no packet of IP", (FETCH,),
           "a network that nobody can connect on", seldom=True),
    Listed("path", ON_PATH, "delay, rate, queue and losses",
           "when each packet arrived, to the microsecond; drops by queue and seed, as the network's"
           " counters and the captures have them (HTB: their sum)",
           (FETCH, PAGE, BROWSER, TRACE), compare=path.compare_path, exact_only=True),
    Listed("RTT", ON_PATH, "the RTT", "the handshake less its serialisation", (FETCH, TRACE),
           "packets not judged one by one"),
    Listed("bandwidth", ON_PATH, "the bandwidth", "how far apart the first flight arrived",
           (FETCH,), "packets not judged one by one"),
    Listed("utilisation", ON_PATH, "the bottleneck's bandwidth", "bytes through the bottleneck",
           (LOAD,), of_load="the counters of the bottleneck"),
    Listed("causes", ON_HOST, "data that leave when something came, a timer fired or a pause ended",
           "when each segment of data left; in a browser the server's",
           (FETCH, PAGE, BROWSER, TRACE), exact_only=True),
    Listed("schedule", ON_HOST, "writes when they are due", "when they left", (TRACE,)),
    Listed("acknowledgements", ON_HOST, "no host acknowledges what had not arrived there",
           "each acknowledgement", (PAGE, BROWSER)),
    Listed("TCP options", OPTIONS, "MSS, SACK, time stamps, window scale, ECN, initial receive"
           " window", "each SYN and SYN-ACK", WORKLOADS, compare=syns.compare_all_syns,
           of_load=SAMPLED),
    Listed("initial window", KERNEL, "initcwnd", "TCP_INFO at accept", WORKLOADS,
           compare=sockets.compare_initial_windows, of_load=EVERY),
    Listed("server's socket", KERNEL, "congestion control, send buffer, pacing rate, MSS; of"
           " server.py also Nagle's algorithm and tcp_reordering",
           "the kernel's own record of the socket", (FETCH, PAGE, TRACE),
           compare=sockets.compare_sockets),
    Listed("client's socket", KERNEL, "the client's window, congestion control and MSS",
           "TCP_INFO as its first request leaves", (FETCH,), "a body", seldom=True),
    Listed("segment size", SENT, "the MSS",
           "the longest segment, and shorter ones within a write; of a fetch also that half of them"
           " are full, of a trace TCP_INFO",
           WORKLOADS, compare=syns.compare_segment_size, of_load=SAMPLED),
    Listed("first flight", SENT, "initcwnd",
           "data segments before the first acknowledgement of data; of a load by TCP_INFO",
           (FETCH, PAGE, BROWSER, LOAD), of_load="all connections that fill it"),
    Listed("first flight on the wire", SENT, "initcwnd",
           "data segments before the first acknowledgement of data", (LOAD,),
           of_load=f"{SAMPLED}, of connections without losses"),
    Listed("client's first flight", SENT, "the client's window",
           "segments before the first acknowledgement of a request", (FETCH,), "a body",
           seldom=True),
    Listed("receive window", SENT, "a receive window that stays",
           "the most that is offered: two segments more until the first full one is read",
           (FETCH, TRACE), "such a window", seldom=True),
    Listed("lost packets", LOSSES, "the losses that the network counted, or none",
           "packets that the captures lack", (FETCH, TRACE), "packets not judged one by one"),
    Listed("retransmissions", LOSSES, "a loss or a timer behind each",
           "each retransmission (retransmission_cause)", (FETCH, TRACE)),
    Listed("outage", LOSSES, "an outage that takes data", "lost data segments", (TRACE,),
           "an outage"),
    Listed("order", TIMES, "each object when it is named and a connection is free",
           "when it was named and requested", (PAGE,)),
    Listed("server latency", TIMES, "T_ACK − T_Res1 of the server's clock", "its own capture",
           (FETCH,)),
    Listed("client times", TIMES, "connect, first byte, total of the client's clock",
           "its own capture, to 10 µs (wget's process 0.1 ms more), of a page to 0.3 ms",
           (FETCH, PAGE, BROWSER)),
    Listed("frame phase", TIMES, "the phase of a frame at which the load begins",
           "how long after a frame the browser requested the document, to 1 ms", (BROWSER,),
           exact_only=True, seldom=True),
    Listed("model", MODEL, "the times that the model computes",
           "the total of a fetch; of a page objects on connections that never waited",
           (FETCH, PAGE), exact_only=True),
    Listed("model latency", MODEL, "the latency that the model computes", "T_ACK − T_Res1",
           (FETCH,), exact_only=True),
    Listed("model handshake", MODEL, "the handshake that the model computes",
           "its end, the first byte, the window then, round trips", (FETCH,), "TLS",
           exact_only=True, seldom=True),
    Listed("window", RULES, "what the TCP's rules make of the packets",
           "each sample of cwnd and ssthresh", (TRACE,)),
    Listed("restart", RULES, "the rule after a pause of more than an RTO",
           "the window, and the segments sent", (TRACE,)),
    Listed("servers", RUN, "servers that live to the end", "those that do", (LOAD,),
           of_load="the servers' processes"),
    Listed("arrivals", RUN, "the offered load", "connections that arrived, within 4 σ", (LOAD,),
           of_load=EVERY),
    Listed("failed connections", RUN, "no failure", "connections refused, reset or cut short",
           (LOAD,), of_load=EVERY),
)


class HasSeen(Protocol):
    """Evidence that gives what shared checks look at."""

    @property
    def seen(self) -> Seen: ...


Evidence = TypeVar("Evidence", bound=HasSeen)
RecordKind = TypeVar("RecordKind", bound=Record)


@dataclass(frozen=True)
class Judging(Generic[Evidence, RecordKind]):
    """How a workload judges by a row of the list.

    applies_to: whether it judged a stored record. compare: the workload's own comparison, None for
    the list's.
    """

    applies_to: Callable[[RecordKind], bool]
    compare: Callable[[Evidence], Iterable[Comparison]] | None = None


def checks_of(workload: str, judging: Mapping[str, Judging[Evidence, RecordKind]],
              rows: Iterable[Listed] = LIST) -> tuple[Check[Evidence, RecordKind], ...]:
    """The checks of a workload, in the order of the list.

    judging: by the names of the rows. Raises ValueError where it and the list do not name the same
    checks, and where a check has no comparison.
    """
    listed = {row.name: row for row in rows if workload in row.judges}
    if differing := listed.keys() ^ judging.keys():
        raise ValueError(f"{workload}: in the list or in the workload only: {sorted(differing)}")
    return tuple(Check(name, f"{row.requested}: {row.observed}", _comparing(row, judging[name]),
                       judging[name].applies_to, row.exact_only, row.seldom)
                 for name, row in listed.items())


def _comparing(row: Listed, judging: Judging[Evidence, RecordKind]
               ) -> Callable[[Evidence], Iterable[Comparison]]:
    """A workload's own comparison, or the list's with what the workload saw."""
    if judging.compare is not None:
        return judging.compare
    if row.compare is None:
        raise ValueError(f"{row.name}: nothing is compared")
    return partial(_compare_seen, row.compare)


def _compare_seen(compare: Callable[[Seen], Iterable[Comparison]], evidence: HasSeen
                  ) -> Iterable[Comparison]:
    return compare(evidence.seen)
