"""The requests of a page in a browser: the browser's report of each, and the server's."""

from __future__ import annotations

import csv
import io
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from firstflight.testbed.messages import BrowserRequest, Download, Observation

REQUESTS_FILE = "requests.csv"  # of each trial: what the browser reports of each request
NOT_RECORDED = -1  # in the place of an answer's number in the recording


class Served(NamedTuple):
    """A request that reached the server, and its answer, as testbed/hosts/replay/backend.py notes.
    """

    answer: int  # the number of the answer in the recording, or NOT_RECORDED
    port: int  # of the client
    method: str
    url: str
    came_ns: int  # when the request had arrived
    left_ns: int  # when the answer left
    status: int
    body_bytes: int


@dataclass(frozen=True)
class Matched:
    """The browser's report of a request, and the server's."""

    request: BrowserRequest
    served: Served | None  # None where no such request reached the server

    @property
    def has_arrived(self) -> bool:
        """Whether the whole answer came over the network."""
        request = self.request
        came_over_network = self.served is not None and not request["cached"]
        is_whole = request["sent_ms"] is not None and request["end_ms"] is not None
        return came_over_network and is_whole and not request["failure"]


def served_of(observation: Observation) -> list[Served]:
    """The requests that reached the server, as the worker reports them."""
    return [Served(*row) for row in observation.get("served", ())]


def match(requests: Sequence[BrowserRequest], served: Sequence[Served]
          ) -> tuple[list[Matched], list[Served]]:
    """Each of the browser's requests with the server's answer, and the answers that are left.

    Several requests with one method and URL have their answers in the order of both lists.
    """
    unmatched: dict[tuple[str, str], deque[Served]] = defaultdict(deque)
    for answered in served:
        unmatched[answered.method, answered.url].append(answered)

    matched = []
    for request in requests:
        candidates = unmatched[request["method"], request["url"]]
        has_answer = bool(candidates) and not request["cached"]
        matched.append(Matched(request, candidates.popleft() if has_answer else None))
    return matched, [*chain.from_iterable(unmatched.values())]


def downloads_of(arrived: Sequence[Matched]) -> Iterator[Download]:
    """Requests whose answers arrived, as the objects of a page. The first one is its document."""
    opened: set[int] = set()
    for matched in arrived:
        request, served = matched.request, matched.served
        assert served is not None
        is_first = served.port not in opened
        opened.add(served.port)
        yield {"ok": True, "error": "", "size": served.body_bytes, "sha256": request["sha256"],
               "port": served.port, "connects": int(is_first), "header_bytes": 0,
               "named_ms": request["start_ms"], "start_ms": request["sent_ms"],
               "first_byte_ms": request["first_byte_ms"] or request["end_ms"],
               "end_ms": request["end_ms"]}


def is_redirect(request: BrowserRequest) -> bool:
    """Whether the answer to a request leads to another URL."""
    return 300 <= request["status"] < 400


_COLUMNS = ("number", "start_ms", "sent_ms", "first_byte_ms", "end_ms", "status", "protocol",
            "priority", "kind", "connection", "body_bytes", "content_bytes", "recorded", "cached",
            "failure", "method", "url")


def requests_file(requests: Sequence[Matched], ports: Iterable[int]) -> bytes:
    """The content of requests.csv: a row for each request of the browser, in their order.

    ports: the client's ports in the order of their SYNs, which numbers the connections from 1 on.
    The column connection is 0 where a request used none of them.
    """
    numbers = {port: number for number, port in enumerate(ports, start=1)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for number, matched in enumerate(requests, start=1):
        request, served = matched.request, matched.served
        times_ms = (request["start_ms"], request["sent_ms"], request["first_byte_ms"],
                    request["end_ms"])
        times = ["" if at_ms is None else f"{at_ms:.3f}" for at_ms in times_ms]

        connection, body_bytes, is_recorded = 0, 0, False
        if served is not None:
            connection, body_bytes = numbers.get(served.port, 0), served.body_bytes
            is_recorded = served.answer != NOT_RECORDED
        writer.writerow((
            number, *times, request["status"], request["protocol"], request["priority"],
            request["kind"], connection, body_bytes, request["content_bytes"], int(is_recorded),
            int(request["cached"]), request["failure"], request["method"], request["url"]))
    return text.getvalue().encode("utf-8", "replace")
