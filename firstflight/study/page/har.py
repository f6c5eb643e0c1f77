"""HAR files: what a browser saved of a page, read for sizes, hosts and who named what.

(HTTP Archive format 1.2.) Nothing else of a HAR is kept: no content, no cookie, no URL, no header.
It comes from anywhere, so each of its values may be missing or of another type.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit

from firstflight.base.errors import UsageError
from firstflight.base.words import join_words
from firstflight.study.page.objects import MOST_HOSTS, PageObject

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?\d*(?:Z|([+-])(\d\d):?(\d\d))?")
_WITHOUT_SIZE, _CACHED, _FAILED, _OTHER = (
    "without a size", "from the cache", "that failed", "of another page or kind")
NO_SIZES = ("no entry of it has a size (response.bodySize, content.size): the network panels of"
            " Chrome, Edge and Firefox save them")


@dataclass(frozen=True)
class SavedPage:
    """A page as a HAR has it. note: what of the HAR is left out, in words, "" for nothing."""

    objects: tuple[PageObject, ...]
    note: str = ""


@dataclass
class _Entry:
    """One entry: times in ms since the epoch; end_ms: when all of it was there."""

    url: str
    namer: str  # the URL of what requested it, "" for unknown
    host: str
    size_bytes: int
    start_ms: float
    receive_ms: float  # when its first byte had come
    end_ms: float
    is_redirect: bool


def read(content: bytes, where: str) -> SavedPage:
    """The page of a HAR. Raises UsageError in one line."""
    log = _table(_parsed(content, where), "log")
    raw = log.get("entries")
    if not isinstance(raw, list):
        raise UsageError(f"{where}: is not a HAR file: it has no log.entries")
    page: Mapping[str, object] = next(iter(_tables(log.get("pages"))), {})
    left_out: Counter[str] = Counter()
    entries = [entry for item in raw
               if (entry := _entry(item, page.get("id"), left_out)) is not None]
    if not entries:
        why = NO_SIZES if left_out[_WITHOUT_SIZE] else "it has no entry that was fetched"
        raise UsageError(f"{where}: {why}")
    entries.sort(key=lambda entry: entry.start_ms)
    document = next((place for place, entry in enumerate(entries) if not entry.is_redirect), 0)
    if document:
        left_out["that led to the document (redirects)"] += document
    entries = entries[document:]
    hosts = {host: number for number, host in enumerate(dict.fromkeys(
        entry.host for entry in entries))}
    if len(hosts) > MOST_HOSTS:
        raise UsageError(f"{where}: a page of {len(hosts)} hosts; at most {MOST_HOSTS} fit")
    screen_ms = _screen_ms(page, entries)
    return SavedPage(_objects(entries, hosts, screen_ms), _note(left_out))


def _objects(entries: Sequence[_Entry], hosts: Mapping[str, int], screen_ms: float
             ) -> tuple[PageObject, ...]:
    """The objects in the order in which they began."""
    latest: dict[str, int] = {}  # by URL, the number of the last entry that began before
    found: list[PageObject] = []
    for number, entry in enumerate(entries, start=1):
        by = latest.get(entry.namer, 1) if found else 0
        at_byte = 0 if not by else _named_at(entries[by - 1], entry.start_ms)
        found.append(PageObject(entry.size_bytes, by, at_byte, host=hosts[entry.host],
                                is_early=entry.end_ms <= screen_ms))
        latest[entry.url] = number
    return tuple(found)


def _named_at(namer: _Entry, start_ms: float) -> int:
    """How much of an object had come when another one was requested, in bytes: as time passed."""
    if start_ms >= namer.end_ms or namer.end_ms <= namer.receive_ms:
        return namer.size_bytes if start_ms >= namer.receive_ms else 0
    share = max(0.0, start_ms - namer.receive_ms) / (namer.end_ms - namer.receive_ms)
    return round(share * namer.size_bytes)


def _note(left_out: Mapping[str, int]) -> str:
    parts = [f"{count} {why}" for why, count in left_out.items() if count]
    return f"Of the HAR's entries are left out: {join_words(parts)}." if parts else ""


# One entry -----------------------------------------------------------------------------

def _entry(item: object, page_id: object, left_out: Counter[str]) -> _Entry | None:
    """None for what is no object of the page, which is counted with its reason."""
    request, response = _table(item, "request"), _table(item, "response")
    entry: Mapping[str, object] = item if isinstance(item, dict) else {}
    url = request.get("url")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")) or (
            page_id is not None and entry.get("pageref", page_id) != page_id):
        left_out[_OTHER] += 1
        return None
    status = _number(response.get("status"))
    if not 100 <= status < 600:
        left_out[_FAILED] += 1
        return None
    if entry.get("_fromCache") or response.get("_fetchedViaServiceWorker") \
            or _number(response.get("_transferSize")) == 0:
        left_out[_CACHED] += 1
        return None
    size = _size(response)
    if size < 0:
        left_out[_WITHOUT_SIZE] += 1
        return None
    start_ms = _time_ms(entry.get("startedDateTime"))
    took_ms = max(0.0, _number(entry.get("time"), 0.0))
    receive_ms = min(max(0.0, _number(_table(entry, "timings").get("receive"), 0.0)), took_ms)
    return _Entry(_plain(url), _namer(entry, request), _origin(url), max(1, size), start_ms,
                  start_ms + took_ms - receive_ms, start_ms + took_ms, 300 <= status < 400)


def _size(response: Mapping[str, object]) -> int:
    """Bytes of the body on the wire; -1 where nothing says.

    Firefox has them as bodySize; Chrome has all that was transferred, and leaves bodySize at -1.
    """
    content = _table(response, "content")
    body = _number(response.get("bodySize"))
    if body >= 0:
        return int(body)
    transferred = _number(response.get("_transferSize"))
    if transferred > 0:
        return int(max(0.0, transferred - max(0.0, _number(response.get("headersSize"), 0.0))))
    size = _number(content.get("size"))
    return -1 if size < 0 else int(max(0.0, size - max(0.0, _number(content.get("compression"),
                                                                    0.0))))


def _namer(entry: Mapping[str, object], request: Mapping[str, object]) -> str:
    """The URL of what requested it: Chrome's initiator, or what the request refers to."""
    initiator = _table(entry, "_initiator")
    frames = _tables(_table(initiator, "stack").get("callFrames"))
    urls = [initiator.get("url"), *(frame.get("url") for frame in frames[:1]),
            *(header.get("value") for header in _tables(request.get("headers"))
              if str(header.get("name")).lower() == "referer")]
    return next((_plain(url) for url in urls if isinstance(url, str) and url), "")


def _plain(url: str) -> str:
    return url.partition("#")[0]


def _origin(url: str) -> str:
    """Scheme, host and port, which share connections."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"


def _screen_ms(page: Mapping[str, object], entries: Sequence[_Entry]) -> float:
    """When the content was there (onContentLoad), ms since the epoch; -inf where nothing says."""
    after_ms = _number(_table(page, "pageTimings").get("onContentLoad"))
    if after_ms <= 0:
        return -math.inf
    begun_ms = _time_ms(page.get("startedDateTime"))
    return (begun_ms or entries[0].start_ms) + after_ms


# Values of any type ----------------------------------------------------------------------

def _parsed(content: bytes, where: str) -> object:
    """Raises UsageError."""
    try:
        # A float of thousands of digits is infinite, an int a fault.
        return json.loads(content.decode("utf-8-sig"), parse_int=float)
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: is not UTF-8 text: {error}") from error
    except RecursionError:
        raise UsageError(f"{where}: has tables or lists too deep in each other") from None
    except ValueError as error:
        raise UsageError(f"{where}: is not whole JSON, or cut off: {error}") from error


def _table(value: object, name: str) -> Mapping[str, object]:
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _tables(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _number(value: object, absent: float = -1.0) -> float:
    """A finite number, `absent` for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return absent
    return float(value) if abs(value) < 1e12 else absent


def _time_ms(value: object) -> float:
    """A moment of ISO 8601 in ms since the epoch, 0 for what is none."""
    match = _TIME.fullmatch(value) if isinstance(value, str) and len(value) < 60 else None
    if match is None:
        return 0.0
    moment, fraction, sign, hours, minutes = match.groups()
    try:
        at = datetime.fromisoformat(moment).replace(tzinfo=timezone.utc).timestamp()
        ahead = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)).total_seconds()
    except (ValueError, OverflowError):
        return 0.0
    return (at + float(fraction or 0) - (ahead if sign == "+" else -ahead)) * 1000
