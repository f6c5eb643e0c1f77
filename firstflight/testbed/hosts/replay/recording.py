"""A recording of a site: its answers, in one file, and which of them answers a request.

The file is made by this project (workloads.page.site) and read in a guest, so that nothing in a
guest reads a HAR or a folder. It has a line of JSON, then the bodies one after another:

    {"url": "https://page.test/index.html", "origins": [["https://page.test", 0], …],
     "answers": [[0, "GET", "/index.html", 200, [["content-type", "text/html"]], 1234, 0.0], …]}

An origin is [scheme://host, group]: origins of one group share connections. An answer is [origin,
method, target, status, headers, bytes of the body, ms until the server answers]; behind them comes
the text of the request's body, where it had one.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

MOST_HEAD_BYTES = 64 << 20
GZIP, BROTLI = "gzip", "br"  # codings of bodies
MOST_TEXT_BYTES = 2000  # of a request's body that is kept as text
_WORD = re.compile(r"[\w.%+-]+")


@dataclass(frozen=True)
class Answer:
    """A recorded answer."""

    origin: int  # the number of its origin
    method: str
    target: str  # path and query
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes  # as it is transferred
    wait_ms: float = 0.0  # until the server answers
    request_text: str = ""  # the body of its request, "" for none (see recorded_text)

    @cached_property
    def content(self) -> bytes:
        """The body as a page reads it, without its compression."""
        coding = dict(self.headers).get("content-encoding")
        if coding == BROTLI:
            import brotli  # a guest, which only sends it, has none
            content: bytes = brotli.decompress(self.body)
            return content
        return gzip.decompress(self.body) if coding == GZIP else self.body


@dataclass(frozen=True)
class Origin:
    """A host under a scheme."""

    name: str  # like "https://page.test"
    group: int  # origins of one group share connections

    @property
    def host(self) -> str:
        """The name of the host, without a port."""
        return urlsplit(self.name).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.name)
        return parts.port or (443 if self.is_secure else 80)

    @property
    def is_secure(self) -> bool:
        return self.name.startswith("https:")


@dataclass(frozen=True)
class Recording:
    """What a site answered."""

    url: str  # of the page to load
    origins: tuple[Origin, ...]
    answers: tuple[Answer, ...]

    def pack(self) -> bytes:
        """The recording as a file."""
        answers = []
        for answer in self.answers:
            row = [answer.origin, answer.method, answer.target, answer.status, answer.headers,
                   len(answer.body), answer.wait_ms]
            if answer.request_text:
                row.append(answer.request_text)
            answers.append(row)
        origins = [[origin.name, origin.group] for origin in self.origins]
        head = {"url": self.url, "origins": origins, "answers": answers}

        line = json.dumps(head, separators=(",", ":")).encode("ascii") + b"\n"
        return b"".join([line, *(answer.body for answer in self.answers)])

    @cached_property
    def by_place(self) -> Mapping[tuple[int, str, str], Sequence[int]]:
        """The numbers of the answers by origin, method and path without query, in their order."""
        numbers: dict[tuple[int, str, str], list[int]] = {}
        for number, answer in enumerate(self.answers):
            place = answer.origin, answer.method, _path(answer.target)
            numbers.setdefault(place, []).append(number)
        return numbers

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The numbers of the origins by their names."""
        return {origin.name: number for number, origin in enumerate(self.origins)}


def unpack(content: bytes) -> Recording:
    """The reverse of Recording.pack. Raises ValueError where the file is damaged."""
    end = content.find(b"\n", 0, MOST_HEAD_BYTES)
    try:
        head: dict[str, Any] = json.loads(content[:end])
        origins = tuple(Origin(str(name), int(group)) for name, group in head["origins"])
        answers = tuple(_answers(head["answers"], content, end + 1))
        return Recording(str(head["url"]), origins, answers)
    except (KeyError, TypeError, IndexError, ValueError, RecursionError) as error:
        raise ValueError(f"the recording is damaged ({error})") from error


def read(path: Path) -> Recording:
    """Read a recording from a file. Raises ValueError, OSError."""
    return unpack(path.read_bytes())


def _answers(rows: Sequence[Any], content: bytes, at: int) -> Iterator[Answer]:
    """The answers of a file's rows, whose bodies begin at a place of its content."""
    for origin, method, target, status, headers, size, wait_ms, *rest in rows:
        (text,) = rest or ("",)
        if at + size > len(content):
            raise ValueError("it ends too soon")
        yield Answer(
            origin, method, target, status=status,
            headers=tuple((name, value) for name, value in headers),
            body=content[at:at + size], wait_ms=wait_ms, request_text=str(text))
        at += size


# Which answer -----------------------------------------------------------------------------

class Replay:
    """The answers of one load of the page.

    What was recorded more than once is answered in the order of the recording, and its last answer
    is repeated. A request whose parameters differ from all recorded ones gets the answer of the
    same path that shares the most of them (as WebPageReplay does: pages send random numbers and
    dates).
    Where the recorded requests of an address differ in their bodies, the answer whose request had
    the most similar body is chosen.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.given: dict[int, int] = {}  # how often each answer was given

    def find(self, origin: str, method: str, target: str, body: bytes = b"") -> int | None:
        """The number of the answer to a request, None where nothing like it was recorded."""
        number = self.recording.numbers.get(origin)
        if number is None:
            return None
        candidates = self.recording.by_place.get((number, method, _path(target)), ())
        if not candidates and method == "HEAD":
            candidates = self.recording.by_place.get((number, "GET", _path(target)), ())
        if not candidates:
            return None

        exact = [place for place in candidates
                 if self.recording.answers[place].target == target]
        nearest = exact or self._nearest(candidates, target)
        chosen = self._next(self._with_body(nearest, body))
        self.given[chosen] = self.given.get(chosen, 0) + 1
        return chosen

    def _nearest(self, candidates: Sequence[int], target: str) -> list[int]:
        """The candidates that share the most parameters with a target."""
        wanted = set(_parameters(target))
        shared: dict[int, float] = {}
        for place in candidates:
            recorded = set(_parameters(self.recording.answers[place].target))
            shared[place] = len(wanted & recorded) / max(1, len(wanted | recorded))
        most = max(shared.values())
        return [place for place in candidates if shared[place] == most]

    def _with_body(self, candidates: Sequence[int], body: bytes) -> Sequence[int]:
        """The candidates whose recorded request had the most similar body."""
        texts = {place: self.recording.answers[place].request_text for place in candidates}
        if len(set(texts.values())) == 1:
            return candidates

        wanted_text = recorded_text(body)
        wanted = set(_WORD.findall(wanted_text))
        shared: dict[int, float] = {}
        for place, text in texts.items():
            recorded = set(_WORD.findall(text))
            shared[place] = len(wanted & recorded) / max(1, len(wanted | recorded))
            if text == wanted_text:
                shared[place] = 2.0  # more than similar ones
        most = max(shared.values())
        return [place for place in candidates if shared[place] == most]

    def _next(self, candidates: Sequence[int]) -> int:
        """The first one that was not given yet, or the last one."""
        return next((place for place in candidates if place not in self.given), candidates[-1])


def recorded_text(body: bytes) -> str:
    """The body of a request as recordings keep it: its text, or its digest where it is long."""
    if len(body) > MOST_TEXT_BYTES:
        return hashlib.sha256(body).hexdigest()
    return body.decode("utf-8", "replace")


def _path(target: str) -> str:
    return target.partition("?")[0]


def _parameters(target: str) -> list[tuple[str, str]]:
    return parse_qsl(target.partition("?")[2], keep_blank_values=True)
