"""Reads the file of a HAR in bounded memory and time. Keeps of each entry only what a page needs.

The file may come from anywhere, so any value may be missing or of another type. What is kept is in
tables of the same names as in the file. Only numbers, truth values and texts are kept; any other
value counts as missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from firstflight.base import large_json
from firstflight.base.errors import UsageError

MOST_ENTRIES = 20_000  # a page that was saved for hours has some thousands
BESIDE = ("creator", "browser", "pages")  # keys of the log, beside its entries, that are kept whole
# The keys that are kept of an entry, and of each table in it.
OF_ENTRY = ("startedDateTime", "time", "pageref", "connection", "_bytesIn", "_connectionId",
            "_fetchType", "_final_base_page", "_fromCache", "_is_base_page", "_objectSize",
            "_ip_addr", "_protocol", "_resourceType", "_socket", "_wasAborted", "_wasFulfilled",
            "serverIPAddress")
OF_REQUEST = ("method", "url", "httpVersion")
OF_RESPONSE = ("status", "httpVersion", "redirectURL", "bodySize", "headersSize", "_charlesStatus",
               "_error", "_failureText", "_fetchedViaServiceWorker", "_transferSize",
               "fromDiskCache", "fromPrefetchCache", "fromServiceWorker")
OF_CONTENT = ("size", "compression", "mimeType")
OF_TIMINGS = ("blocked", "dns", "connect", "send", "wait", "receive")
OF_CACHE = {"beforeRequest", "afterRequest"}  # kept without their values
OF_HEADERS = ("content-encoding", "content-length", "location")  # of the response
NAMER = "namer"  # a key that kept entries have in addition: the URL of the object that named it
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?\d*(?:Z|([+-])(\d\d):?(\d\d))?")
_MOST_STACKS = 20  # stacks of calls, each the cause of the one before, that are followed
# Characters that are kept of a text which is not ASCII. What a page needs is ASCII: URLs, numbers.
_MOST_FOREIGN = 200


def read(content: bytes, where: str) -> Mapping[str, Any]:
    """The log of a HAR with its entries, a list. where: its name in messages. Raises UsageError."""
    try:
        found = large_json.read(content, ("log", "entries"), _keep_entry, MOST_ENTRIES, BESIDE)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error
    if found is None:
        raise UsageError(f"{where}: is not a HAR file: it has no log.entries")
    return {**found.beside, "entries": found.items}


def _keep_entry(item: object) -> dict[str, object]:
    """Copy what is kept of an entry."""
    entry: Mapping[str, object] = item if isinstance(item, dict) else {}
    request, response = table(entry, "request"), table(entry, "response")
    kept_response = _values(response, OF_RESPONSE)
    kept_response["content"] = _values(table(response, "content"), OF_CONTENT)
    kept_response["headers"] = _headers(response)

    kept = _values(entry, OF_ENTRY)
    kept["request"] = _values(request, OF_REQUEST)
    kept["response"] = kept_response
    kept["cache"] = dict.fromkeys(OF_CACHE & table(entry, "cache").keys())
    kept["timings"] = _values(table(entry, "timings"), OF_TIMINGS)
    kept[NAMER] = _namer(entry, request)
    return kept


def _headers(response: Mapping[str, object]) -> dict[str, object]:
    """The values of the headers in OF_HEADERS, by the header's name in lower case."""
    named = {str(header.get("name")).lower(): header.get("value")
             for header in tables(response.get("headers"))}
    return _values(named, OF_HEADERS)


def _values(values: Mapping[str, object], names: Sequence[str]) -> dict[str, object]:
    """The values of these names that are numbers, truth values or texts."""
    kept = {}
    for name in names:
        value = values.get(name)
        if isinstance(value, (bool, int, float, str)):
            kept[name] = _cut_foreign(value)
    return kept


def _cut_foreign(value: object) -> object:
    """A value as it is, or the beginning of a text that is not ASCII."""
    return value[:_MOST_FOREIGN] if isinstance(value, str) and not value.isascii() else value


def _namer(entry: Mapping[str, object], request: Mapping[str, object]) -> object:
    """The URL of the object that named this one, "" for unknown.

    It stands in Chrome's _initiator, which other programs write as a text, or in the request's
    Referer.
    """
    initiator = table(entry, "_initiator")
    urls = [entry.get("_initiator"), initiator.get("url")]

    stack = table(initiator, "stack")
    for _ in range(_MOST_STACKS):  # from a promise or a timer to the stack that started it
        urls += [frame.get("url") for frame in tables(stack.get("callFrames"))[:1]]
        stack = table(stack, "parent")

    urls += [header.get("value") for header in tables(request.get("headers"))
             if str(header.get("name")).lower() == "referer"]
    return next((_cut_foreign(url) for url in urls if isinstance(url, str) and url), "")


def table(value: object, name: str) -> Mapping[str, object]:
    """The table of this name in a table, {} where there is none."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def tables(value: object) -> list[Mapping[str, object]]:
    """The tables in a list; [] where the value is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def number(value: object, absent: float = -1.0) -> float:
    """A finite number below 10¹² in size; `absent` for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return absent
    return float(value) if abs(value) < 1e12 else absent


def time_ms(value: object) -> float:
    """A time of ISO 8601 in ms since the epoch; 0 for what is no such time."""
    match = _TIME.fullmatch(value) if isinstance(value, str) and len(value) < 60 else None
    if match is None:
        return 0.0
    moment, fraction, sign, hours, minutes = match.groups()
    try:
        local_s = datetime.fromisoformat(moment).replace(tzinfo=timezone.utc).timestamp()
        zone_s = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)).total_seconds()
    except (ValueError, OverflowError):
        return 0.0
    if sign == "-":
        zone_s = -zone_s
    return (local_s + float(fraction or 0) - zone_s) * 1000
