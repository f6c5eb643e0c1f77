"""Reads HAR files (HTTP Archive format 1.2), in which browsers save pages.

Sizes, hosts, times and which object named which are read. Nothing else is kept: no content, cookie,
URL or header. The file may come from anywhere, so any value may be missing or of another type.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from urllib.parse import urljoin, urlsplit

from firstflight.base.errors import UsageError
from firstflight.base.words import join_words
from firstflight.study.page import har_file
from firstflight.study.page.har_file import NAMER, table, tables
from firstflight.study.page.objects import MOST_HOSTS, PageObject

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?\d*(?:Z|([+-])(\d\d):?(\d\d))?")
_WITHOUT_SIZE, _CACHED, _FAILED, _INLINE, _SOCKET, _OTHER = (
    "without a size", "from the cache", "that failed", "that nothing was requested for (data:,"
    " blob:)", "of a WebSocket", "of another page or kind")
_SCHEMES = {"data:": _INLINE, "blob:": _INLINE, "about:": _INLINE, "ws:": _SOCKET, "wss:": _SOCKET}
_SWITCHED, _NOT_MODIFIED = 101, 304  # status codes
_HTTP = re.compile(r"(?:http/|h)([123])(?:[.-]\w{1,5})?", re.IGNORECASE)
NO_SIZES = ("no entry of it has a size (response.bodySize, content.size): the network panels of"
            " Chrome, Edge and Firefox save them")

WITHOUT_TLS = "Measured without TLS, whose handshake takes each connection another round trip."


@dataclass(frozen=True)
class SavedPage:
    """A page as a HAR has it.

    note: what of the HAR is excluded or measured differently, in words; "" for nothing. http: the
    version of HTTP by which most of its objects came, "" for unknown; http_note: a note on that.
    """

    objects: tuple[PageObject, ...]
    note: str = ""
    http: str = ""
    http_note: str = ""


@dataclass
class _Entry:
    """One entry. Times in ms since the epoch.

    namer: the URL of the object that named it, "" for unknown. redirect: where it leads, "" for
    none. receive_ms, end_ms: when its first and last byte had come. connection: Chrome's name of
    its connection, "" for unknown. http: "1.1", "2", "3", or "" for unknown.
    """

    url: str
    namer: str
    host: str
    size_bytes: int
    start_ms: float
    receive_ms: float
    end_ms: float
    is_redirect: bool
    redirect: str
    connection: str
    http: str


def read(content: bytes, where: str) -> SavedPage:
    """Read the page of a HAR. where: its name in messages. Raises UsageError in one line."""
    log = har_file.read(content, where)
    page: Mapping[str, object] = next(iter(tables(log.get("pages"))), {})
    excluded: Counter[str] = Counter()
    is_firefox = table(log, "creator").get("name") == "Firefox"
    entries = [entry for item in log["entries"]
               if (entry := _entry(item, page.get("id"), excluded, is_firefox)) is not None]
    if not entries:
        why = NO_SIZES if excluded[_WITHOUT_SIZE] else "it has no entry that was fetched"
        raise UsageError(f"{where}: {why}")
    entries.sort(key=lambda entry: entry.start_ms)
    document = next((place for place, entry in enumerate(entries) if not entry.is_redirect), 0)
    if document:
        excluded["that led to the document (redirects)"] += document
    entries = entries[document:]
    hosts = _hosts(entries)
    if (count := len(set(hosts.values()))) > MOST_HOSTS:
        raise UsageError(f"{where}: a page of {count} hosts; at most {MOST_HOSTS} fit")
    screen_ms = _screen_ms(page, entries)
    http, http_note = _http(entries)
    note = " ".join(filter(None, (_note(excluded), WITHOUT_TLS if any(
        host.startswith("https:") for host in hosts) else "")))
    return SavedPage(_objects(entries, hosts, screen_ms), note, http, http_note)


def _hosts(entries: Sequence[_Entry]) -> dict[str, int]:
    """A number for each host, 0 for the document's. Hosts that share a connection share a number.
    """
    numbers: dict[str, int] = {}
    of_connection: dict[str, int] = {}
    for entry in entries:
        new = len(set(numbers.values()))
        number = numbers.setdefault(entry.host, of_connection.get(entry.connection, new))
        if entry.connection:
            of_connection.setdefault(entry.connection, number)
    return numbers


def _http(entries: Sequence[_Entry]) -> tuple[str, str]:
    """The version of HTTP by which most objects came, "" for unknown, and a note on it."""
    versions = Counter(entry.http for entry in entries)
    newer = versions["2"] + versions["3"]
    if newer > versions["1.1"]:
        over_3 = f" ({versions['3']} over HTTP/3)" if versions["3"] else ""
        return "2", f"{newer} of its {len(entries)} objects came over HTTP/2{over_3}"
    names = [entry.connection for entry in entries]
    closes = len(names) > 1 and all(names) and len(set(names)) == len(names)
    return ("1.1" if versions["1.1"] else ""), (
        "Each of the HAR's connections carried one object; here connections are used again."
        if closes else "")


def _objects(entries: Sequence[_Entry], hosts: Mapping[str, int], screen_ms: float
             ) -> tuple[PageObject, ...]:
    """The objects in the order in which they began."""
    latest: dict[str, int] = {}  # by URL: the number of the last entry that began before
    leading: dict[str, int] = {}  # by URL: the number of the redirect to it
    found: list[PageObject] = []
    for number, entry in enumerate(entries, start=1):
        by = leading.pop(entry.url, 0) or latest.get(entry.namer, 1) if found else 0
        at_byte = 0 if not by else _named_at(entries[by - 1], entry.start_ms)
        found.append(PageObject(entry.size_bytes, by, at_byte, host=hosts[entry.host],
                                is_early=entry.end_ms <= screen_ms))
        latest[entry.url] = number
        if entry.redirect:
            leading[entry.redirect] = number
    return tuple(found)


def _named_at(namer: _Entry, start_ms: float) -> int:
    """How many bytes of an object had come when it named another one, at start_ms.

    Its bytes are taken to come evenly between its first and its last one.
    """
    if start_ms >= namer.end_ms or namer.end_ms <= namer.receive_ms:
        return namer.size_bytes if start_ms >= namer.receive_ms else 0
    share = max(0.0, start_ms - namer.receive_ms) / (namer.end_ms - namer.receive_ms)
    return round(share * namer.size_bytes)


def _note(excluded: Mapping[str, int]) -> str:
    parts = [f"{count} {why}" for why, count in excluded.items() if count]
    return f"Entries of the HAR that are excluded: {join_words(parts)}." if parts else ""


# One entry -----------------------------------------------------------------------------

def _entry(item: object, page_id: object, excluded: Counter[str], is_firefox: bool
           ) -> _Entry | None:
    """Read an entry. None for what is no object of the page; its reason is counted in excluded."""
    request, response = table(item, "request"), table(item, "response")
    if is_firefox and _number(response.get("bodySize")) > 0:  # it counts the headers as well
        response = {**response, "_transferSize": response["bodySize"], "bodySize": -1}
    entry: Mapping[str, object] = item if isinstance(item, dict) else {}
    url = request.get("url")
    why = _why_excluded(entry, response, url, page_id)
    if why or not isinstance(url, str):
        excluded[why] += 1
        return None
    size, status = _size(response), _number(response.get("status"))
    start_ms = _time_ms(entry.get("startedDateTime"))
    took_ms = max(0.0, _number(entry.get("time"), 0.0))
    receive_ms = min(max(0.0, _number(table(entry, "timings").get("receive"), 0.0)), took_ms)
    is_redirect = 300 <= status < 400 and status != _NOT_MODIFIED
    return _Entry(_plain(url), _plain(str(entry.get(NAMER))), _origin(url), max(1, size), start_ms,
                  start_ms + took_ms - receive_ms, start_ms + took_ms, is_redirect,
                  _target(url, response) if is_redirect else "", _name(entry.get("_connectionId")),
                  _version(request, response))


def _why_excluded(entry: Mapping[str, object], response: Mapping[str, object], url: object,
                  page_id: object) -> str:
    """Why an entry is no object of the page; "" where it is one."""
    if not isinstance(url, str) or (
            page_id is not None and entry.get("pageref", page_id) != page_id):
        return _OTHER
    if not url.startswith(("http://", "https://")):
        return _SCHEMES.get(url[:url.find(":") + 1], _OTHER)
    status, came = _number(response.get("status")), _number(response.get("_transferSize"))
    if status == _SWITCHED:
        return _SOCKET
    if not 100 <= status < 600 or response.get("_error") and came <= 0:
        return _FAILED
    has_content = _number(table(response, "content").get("size")) > 0
    if entry.get("_fromCache") or response.get("_fetchedViaServiceWorker") or came == 0 or (
            came < 0 and status != _NOT_MODIFIED and has_content
            and _number(response.get("bodySize")) == 0):
        return _CACHED
    return "" if _size(response) >= 0 else _WITHOUT_SIZE


def _target(url: str, response: Mapping[str, object]) -> str:
    """The URL to which a redirect leads; "" for unknown."""
    target = response.get("redirectURL")
    try:
        return _plain(urljoin(url, target)) if isinstance(target, str) and target else ""
    except ValueError:
        return ""


def _name(value: object) -> str:
    """The name of a connection, "" for none, which Chrome writes as "0"."""
    return value if isinstance(value, str) and value != "0" else ""


def _version(request: Mapping[str, object], response: Mapping[str, object]) -> str:
    """The version of HTTP: "1.1", "2", "3", or "" for unknown. Browsers write h2 or http/2.0."""
    for value in (response.get("httpVersion"), request.get("httpVersion")):
        match = _HTTP.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            return {"1": "1.1", "2": "2", "3": "3"}[match[1]]
    return ""


def _size(response: Mapping[str, object]) -> int:
    """Bytes of the body on the wire; -1 for unknown.

    Chrome and Firefox save all bytes that were transferred; over HTTP/2 Chrome's headers have an
    unknown size. The body is then taken to be at most as long as its content: a compression that
    saves nothing adds only a few bytes.
    """
    content = table(response, "content")
    body, size = _number(response.get("bodySize")), _number(content.get("size"))
    if body >= 0:
        return int(body)
    transferred = _number(response.get("_transferSize"))
    if transferred > 0:
        came = max(0.0, transferred - max(0.0, _number(response.get("headersSize"), 0.0)))
        return int(came if size < 0 else min(came, size))
    return -1 if size < 0 else int(max(0.0, size - max(0.0, _number(content.get("compression"),
                                                                    0.0))))


def _plain(url: str) -> str:
    """The URL without its fragment."""
    return url.partition("#")[0]


def _origin(url: str) -> str:
    """Scheme, host and port of a URL: objects that have them in common share connections."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"


def _screen_ms(page: Mapping[str, object], entries: Sequence[_Entry]) -> float:
    """The time of onContentLoad in ms since the epoch; -inf for unknown."""
    after_ms = _number(table(page, "pageTimings").get("onContentLoad"))
    if after_ms <= 0:
        return -math.inf
    begun_ms = _time_ms(page.get("startedDateTime"))
    return (begun_ms or entries[0].start_ms) + after_ms


# Values of any type ----------------------------------------------------------------------

def _number(value: object, absent: float = -1.0) -> float:
    """A finite number below 10¹² in size; `absent` for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return absent
    return float(value) if abs(value) < 1e12 else absent


def _time_ms(value: object) -> float:
    """A time of ISO 8601 in ms since the epoch; 0 for what is no such time."""
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
