"""The requests of a browser's loads, as requests.csv has them, and what differs among loads.

The times of all loads of one setting under one window have to agree to SAME_LOADS_MS, whatever the
phase of the frame in which a load begins. Only paints wait for a frame.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from firstflight.base.errors import FirstFlightError
from firstflight.base.words import format_brief, visible_line
from firstflight.runs.kinds import is_drawn
from firstflight.runs.measuring import read_trial_file, trial_file_path
from firstflight.workloads.page.analysis import PAGE, SAME_LOADS_MS, Setting
from firstflight.workloads.page.browser_requests import REQUESTS_FILE
from firstflight.workloads.page.record import MOST_FILE_MS, PageRecord

MOST_NAME = 60  # characters of a URL in a sentence
# The times that have to be equal, by column: what happens at that time. Of a load, and of each
# request.
_OF_LOAD = {PAGE: "its load event", "first_byte_ms": "its first byte",
            "content_loaded_ms": "DOMContentLoaded"}
_OF_REQUEST = {"start_ms": "begins", "sent_ms": "leaves", "first_byte_ms": "has its first byte",
               "end_ms": "ends"}


class LoadedRequest(NamedTuple):
    """A request of one load; times in ms after the document's request, None for unknown."""

    number: int  # in the order of requests
    start_ms: float | None
    sent_ms: float | None
    first_byte_ms: float | None
    end_ms: float | None
    connection: int  # by the order of SYNs, from 1; 0 for none
    method: str
    url: str

    @property
    def host(self) -> str:
        """The host in the URL, "" where the URL has none."""
        try:
            return visible_line(urlsplit(self.url).hostname or "")
        except ValueError:
            return ""

    @property
    def name(self) -> str:
        """The URL without its scheme, cut to MOST_NAME characters."""
        shown = visible_line(self.url.partition("://")[2] or self.url)
        return shown if len(shown) <= MOST_NAME else f"{shown[:MOST_NAME - 1]}…"


def read_requests(content: bytes, where: str) -> list[LoadedRequest]:
    """Read the content of requests.csv. Raises FirstFlightError where it is damaged.

    where: the file in messages.
    """
    try:
        rows = csv.DictReader(io.StringIO(content.decode("utf-8")))
        requests = [LoadedRequest(
            number=int(row["number"]), start_ms=_time(row["start_ms"]),
            sent_ms=_time(row["sent_ms"]), first_byte_ms=_time(row["first_byte_ms"]),
            end_ms=_time(row["end_ms"]), connection=int(row["connection"]), method=row["method"],
            url=row["url"]) for row in rows]
    except (UnicodeDecodeError, csv.Error, ValueError, KeyError, TypeError) as error:
        raise FirstFlightError(f"{where}: is damaged ({error}); measure again with --fresh"
                               ) from error

    for request in requests:
        times_ms = request.start_ms, request.sent_ms, request.first_byte_ms, request.end_ms
        if not all(at_ms is None or abs(at_ms) < MOST_FILE_MS for at_ms in times_ms):
            raise FirstFlightError(f"{where}: is damaged (a time is out of range); measure again"
                                   " with --fresh")
    return requests


def _time(cell: str) -> float | None:
    return float(cell) if cell else None


def requests_of(folder: Path, record: PageRecord) -> list[LoadedRequest]:
    """The requests of a load in a run's folder. Raises FirstFlightError where they are missing."""
    path = trial_file_path(folder, record.trial.id, REQUESTS_FILE)
    return read_requests(read_trial_file(path), str(path))


def difference(folder: Path, records: Sequence[PageRecord]) -> str:
    """What differs most among loads of one setting under one window, in words; "" for nothing.

    Loads on drawn networks, and with random losses or jitter, are not compared. Raises
    FirstFlightError where a file is missing.
    """
    compared = [record for record in records if record.counts and not is_drawn(record.trial)]
    if len(compared) < 2 or compared[0].trial.is_random:
        return ""
    first, *others = compared
    first_requests = _by_name(requests_of(folder, first))
    most_ms, words = SAME_LOADS_MS, ""
    for other in others:
        numbers = first.trial.repeat, other.trial.repeat
        requests = _by_name(requests_of(folder, other))
        missing = _missing(first_requests, requests, numbers) or _missing(
            requests, first_requests, numbers[::-1])
        if missing:
            return missing

        differences = (*_request_differences(first_requests, requests),
                       *_load_differences(first, other))
        for later_ms, event in differences:
            if abs(later_ms) > most_ms:
                most_ms = abs(later_ms)
                later = "later" if later_ms > 0 else "earlier"
                words = (f"{event} {format_brief(most_ms)} ms {later} in load {numbers[1]} than in"
                         f" load {numbers[0]}")
    return words


# The requests of a load by method, URL, and how many requests with both came before. The URL is
# without its query, which may contain the time of the day.
RequestsByName = Mapping[tuple[str, str, int], LoadedRequest]


def _by_name(requests: Iterable[LoadedRequest]) -> RequestsByName:
    earlier: Counter[tuple[str, str]] = Counter()
    named = {}
    for request in requests:
        name = request.method, request.url.partition("?")[0]
        named[(*name, earlier[name])] = request
        earlier[name] += 1
    return named


def _missing(requests: RequestsByName, others: RequestsByName, numbers: tuple[int, int]) -> str:
    """The first request that another load lacks, in words; "" for none.

    numbers: of the load with `requests`, and of the load with `others`.
    """
    for name, request in requests.items():
        if name not in others:
            return f"{request.name} is requested in load {numbers[0]} and not in load {numbers[1]}"
    return ""


def _request_differences(first: RequestsByName, other: RequestsByName
                         ) -> Iterator[tuple[float, str]]:
    """How many ms later each time of each request is in another load, and what happens then."""
    for name, request in first.items():
        for column, event in _OF_REQUEST.items():
            first_ms, other_ms = getattr(request, column), getattr(other[name], column)
            if first_ms is not None and other_ms is not None:
                yield other_ms - first_ms, f"request {request.number} ({request.name}) {event}"


def _load_differences(first: PageRecord, other: PageRecord) -> Iterator[tuple[float, str]]:
    """How many ms later each time of another load is, and what happens then."""
    for column, event in _OF_LOAD.items():
        first_ms, other_ms = getattr(first, column), getattr(other, column)
        if first_ms is not None and other_ms is not None:
            yield other_ms - first_ms, f"{event} comes"


def notes(folder: Path, setting: Setting, place: str) -> list[str]:
    """A sentence on each window whose loads differ; [] where all are alike, or without a browser.

    place: names the setting in front of each sentence; "" for the only setting.
    """
    if not setting.trial.site:
        return []
    lines = []
    for times in setting.counting:
        words = difference(folder, times.records)
        if words:
            lines.append(f"{place}the page does not load the same each time with {times.window}:"
                         f" {words}; its times are means of {len(times.records)} loads.")
    return [f"{line[0].upper()}{line[1:]}" for line in lines]
