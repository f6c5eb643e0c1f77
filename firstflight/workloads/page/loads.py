"""The requests of a browser's loads, as requests.csv has them, and what differs among loads.

Loads of one setting under one window have to be equal to SAME_LOADS_MS, whatever the phase of the
frame in which they begin. Only paints wait for a frame.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
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
# Times of a load that have to be equal, and what happens then.
_OF_LOAD = {PAGE: "its load event", "first_byte_ms": "its first byte",
            "content_loaded_ms": "DOMContentLoaded"}
_OF_REQUEST = {"start_ms": "begins", "sent_ms": "leaves", "first_byte_ms": "has its first byte",
               "end_ms": "ends"}


class LoadedRequest(NamedTuple):
    """A request of one load; times in ms after the document's request, None for unknown.

    number: in the order of requests. connection: by the order of SYNs, from 1; 0 for none.
    """

    number: int
    start_ms: float | None
    sent_ms: float | None
    first_byte_ms: float | None
    end_ms: float | None
    connection: int
    method: str
    url: str

    @property
    def host(self) -> str:
        """The host of its URL, "" where that has none."""
        try:
            return visible_line(urlsplit(self.url).hostname or "")
        except ValueError:
            return ""

    @property
    def name(self) -> str:
        """Its URL without the scheme, cut."""
        shown = visible_line(self.url.partition("://")[2] or self.url)
        return shown if len(shown) <= MOST_NAME else f"{shown[:MOST_NAME - 1]}…"


def read_requests(content: bytes, where: str) -> list[LoadedRequest]:
    """The requests of requests.csv. Raises FirstFlightError where it is damaged."""
    try:
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8"))))
        found = [LoadedRequest(
            number=int(row["number"]), start_ms=_time(row["start_ms"]),
            sent_ms=_time(row["sent_ms"]), first_byte_ms=_time(row["first_byte_ms"]),
            end_ms=_time(row["end_ms"]), connection=int(row["connection"]), method=row["method"],
            url=row["url"]) for row in rows]
    except (UnicodeDecodeError, csv.Error, ValueError, KeyError, TypeError) as error:
        raise FirstFlightError(f"{where}: is damaged ({error}); measure again with --fresh"
                               ) from error
    times = [at_ms for each in found for at_ms in each[1:5] if at_ms is not None]
    if not all(abs(at_ms) < MOST_FILE_MS for at_ms in times):
        raise FirstFlightError(f"{where}: is damaged (a time is out of range); measure again with"
                               " --fresh")
    return found


def _time(cell: str) -> float | None:
    return float(cell) if cell else None


def requests_of(folder: Path, record: PageRecord) -> list[LoadedRequest]:
    """The requests of a load in a run's folder. Raises FirstFlightError where they are missing."""
    path = trial_file_path(folder, record.trial.id, REQUESTS_FILE)
    return read_requests(read_trial_file(path), str(path))


def difference(folder: Path, records: Sequence[PageRecord]) -> str:
    """What differs most among loads of one setting under one window, in words; "" for nothing.

    Loads on drawn networks are not compared. Raises FirstFlightError where a file is missing.
    """
    same = [record for record in records if record.counts and not is_drawn(record.trial)]
    if len(same) < 2 or same[0].trial.is_random:
        return ""
    first, *others = same
    listed = _by_name(requests_of(folder, first))
    most_ms, words = SAME_LOADS_MS, ""
    for other in others:
        which = f"in load {other.trial.repeat} than in load {first.trial.repeat}"
        requests = _by_name(requests_of(folder, other))
        for name in [*listed, *requests]:
            if name not in listed or name not in requests:
                return (f"{(listed.get(name) or requests[name]).name} is requested in load"
                        f" {(first if name in listed else other).trial.repeat} and not in load"
                        f" {(other if name in listed else first).trial.repeat}")
        for by_ms, what in (*_of_requests(listed, requests), *_of_loads(first, other)):
            if abs(by_ms) > most_ms:
                most_ms = abs(by_ms)
                later = "later" if by_ms > 0 else "earlier"
                words = f"{what} {format_brief(most_ms)} ms {later} {which}"
    return words


def _by_name(requests: Iterable[LoadedRequest]) -> dict[tuple[str, str, int], LoadedRequest]:
    """Requests by method, URL, and how often that was requested before.

    Without the URL's parameters, which may have the time of the day.
    """
    before: Counter[tuple[str, str]] = Counter()
    found = {}
    for each in requests:
        name = (each.method, each.url.partition("?")[0])
        found[(*name, before[name])] = each
        before[name] += 1
    return found


def _of_requests(first: dict[tuple[str, str, int], LoadedRequest],
                 other: dict[tuple[str, str, int], LoadedRequest]
                 ) -> Iterable[tuple[float, str]]:
    """How much later each time of each request is in another load, and what happens then."""
    for name, request in first.items():
        for column, what in _OF_REQUEST.items():
            times = [getattr(each, column) for each in (request, other[name])]
            if None not in times:
                yield times[1] - times[0], f"request {request.number} ({request.name}) {what}"


def _of_loads(first: PageRecord, other: PageRecord) -> Iterable[tuple[float, str]]:
    for column, what in _OF_LOAD.items():
        times = [getattr(each, column) for each in (first, other)]
        if None not in times:
            yield times[1] - times[0], f"{what} comes"


def notes(folder: Path, setting: Setting, place: str) -> list[str]:
    """A sentence on each window whose loads differ; [] where a browser loads the page the same.

    place: the setting in front of each sentence, "" for the only one.
    """
    lines = []
    for times in setting.counting if setting.trial.site else ():
        if words := difference(folder, times.records):
            lines.append(f"{place}the page does not load the same each time with {times.window}:"
                         f" {words}; its times are means of {len(times.records)} loads.")
    return [f"{line[0].upper()}{line[1:]}" for line in lines]
