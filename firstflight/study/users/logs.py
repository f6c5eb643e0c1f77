"""Files about users: CSV, JSON lines, logs with named fields, W3C logs, or the output of ss -tin.

A field is a round-trip time only if its name says so (a header, a key, `rtt=`), or if --rtt-field
does. Operators add any field to nginx's and Apache's combined format, often the duration of a
request. Known names, in any case:

    rtt, tcpinfo_rtt, rtt_us, fc_rtt    in µs, as nginx's $tcpinfo_rtt (ngx_http_core_module) and
                                        HAProxy's fc_rtt(us)
    rtt_ms, ClientTCPRTTMs              in ms, the latter of Cloudflare's Logpush (http_requests)

`ss -tin` prints of each connection `rtt:<mean>/<deviation>` in ms,
`delivery_rate <n>bps` and `bytes_acked:<n>` (iproute2, misc/ss.c).
"""

from __future__ import annotations

import csv
import errno
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from firstflight.base import files, untrusted
from firstflight.base.errors import UsageError
from firstflight.base.removed import REMOVED
from firstflight.base.words import nearest
from firstflight.study.users.requested import RttField
from firstflight.study.users.rows import (EMPTY_RESPONSE, EVERYBODY, Row, Skipped, UserTable,
                                          collect, group_of, value_of)

COLUMNS = ("rtt_ms", "bandwidth_kbps", "response_bytes", "group", "weight")
KNOWN = ("CSV with a header, such as rtt_ms,response_bytes; JSON, an object a line; a log with"
         " rtt=$tcpinfo_rtt; the output of ss -tin; or --rtt-field N for a field of a log")
SNIFFED = 4  # bytes that distinguish a capture and a compressed file from a text
CAPTURES = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1",
            b"\x0a\x0d\x0d\x0a")  # pcap in µs and ns, either order of bytes; pcapng
GZIP = b"\x1f\x8b"
MOST_INFLATED = 1 << 30  # characters of a compressed file: ten million lines of a log
SHOWN = 100  # characters of a first line that is not understood

# Names in lower case: the quantity that each is, and what makes its unit of it.
NAMES: Mapping[str, tuple[str, float]] = {
    **dict.fromkeys(("rtt", "tcpinfo_rtt", "rtt_us", "fc_rtt"), ("rtt_ms", 1e-3)),
    **dict.fromkeys(("rtt_ms", "clienttcprttms"), ("rtt_ms", 1.0)),
    "bandwidth_kbps": ("bandwidth_kbps", 1.0),
    **dict.fromkeys(("response_bytes", "body_bytes_sent", "bytes_sent", "bytes", "sc-bytes",
                     "edgeresponsebytes"), ("response_bytes", 1.0)),
    **dict.fromkeys(("group", "server_name", "country", "clientcountry"), ("group", 1.0)),
    "weight": ("weight", 1.0)}
UNITS = {1e-3: "µs", 1.0: "ms"}

# A field of a log: in quotes, in brackets, or up to a space.
_FIELD = re.compile(r'"[^"]*"|\[[^][]*\]|[^\s"[]\S*')
# No part of it may stand for what the next one begins with: that takes the square of a line.
_COMBINED = re.compile(r'\S+ \S+ [^"]*\[[^]["]*\] "[^"]*" (?P<status>\d{3})'
                       r' (?P<bytes>\d+|-)(?: |$)')
_NAMED = re.compile(r'(?:^|[\s"])(?P<name>rtt|bytes|group)="?(?P<value>[^\s"]*)')
_SS_HEAD = re.compile(r"State\s+Recv-Q|(?:tcp\s+)?[A-Z0-9-]+\s+\d+\s+\d+\s")
_SS_RTT = re.compile(r"(?:^|\s)rtt:(?P<rtt>[\d.]+)/")
_SS_RATE = re.compile(r"\bdelivery_rate (?P<rate>[\d.]+)(?P<unit>[KMG]?)bps")
_SS_BYTES = re.compile(r"\bbytes_acked:(?P<bytes>\d+)")
_SI = {"": 1e-3, "K": 1.0, "M": 1e3, "G": 1e6}  # to kbit/s; ss counts in thousands
# Logs without a round-trip time, by how their lines look, and what to do about it.
_NO_RTT: Sequence[tuple[str, re.Pattern[str], str]] = (
    ("the log of an AWS load balancer",
     re.compile(r"(?:https?|h2|wss?|grpcs) \d{4}-\d\d-\d\dT\S+ app/"),
     "its fields cannot be changed: take the output of ss -tin, or CSV, from what the users"
     " connect to"),
    ("HAProxy's log", re.compile(r"\S.*? \[\d\d/\w{3}/\d{4}:[\d:.]+\] \S+ \S+/\S+ [-+\d]+/[-+\d]+"),
     "add rtt=%[fc_rtt(us)] bytes=%B to its log-format"),
    ("a log in the common or combined format", _COMBINED,
     "nginx: add rtt=$tcpinfo_rtt to its log_format; Apache knows none: take the output of"
     " ss -tin. If one of its fields is $tcpinfo_rtt, say which: --rtt-field N"))


def read_file(path: Path, rtt_field: RttField | None = None) -> UserTable:
    """The usable rows of a file, whatever its format. Raises UsageError."""
    try:
        with files.opened(path) as file:
            first = file.read(SNIFFED)
            file.seek(0)
            if first in CAPTURES:
                raise UsageError(f"{path}: is a capture; {REMOVED['a capture']}")
            lines = _inflated(file) if first.startswith(GZIP) else files.lines(file)
            return read(lines, str(path), rtt_field)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UsageError(f"{path}: is a damaged gzip file: {error}") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def _inflated(file: BinaryIO) -> Iterator[str]:
    """The lines of a compressed text. Raises OSError where these are too many."""
    count = 0
    for line in files.lines(cast(BinaryIO, gzip.GzipFile(fileobj=file))):
        count += len(line)
        if count > MOST_INFLATED:
            raise OSError(errno.EFBIG, f"it has more than {MOST_INFLATED >> 20} MB when it is"
                                       " inflated")
        yield line


def read(lines: Iterable[str], where: str, rtt_field: RttField | None = None) -> UserTable:
    """The rows of a text file, whichever of the formats it has. Raises UsageError."""
    stream, fields = iter(lines), ""
    first = ""
    for line in stream:
        if line.startswith("#Fields:"):
            fields = line.partition(":")[2]
        if line.strip() and not line.startswith("#"):
            first = line
            break
    rest = chain([first], stream)
    if not first.strip():
        raise UsageError(f"{where}: is empty")
    if rtt_field is not None:
        return collect(filter(_is_content, rest), partial(_at_field, rtt_field),
                       "a log", where, rtt_from=f"field {rtt_field.number} in {rtt_field.unit}")
    if fields:
        return _w3c(fields.split(), rest, where)
    if first.startswith("{"):
        return _json(first, rest, where)
    head = [name.strip().strip('"') for name in first.strip().split(",")]
    if "rtt_ms" in head or len(head) > 1 and _name_of("rtt_ms", head):
        return _csv(head, rest, where)
    if _SS_HEAD.match(first):
        return collect(rest, _ss, "the output of ss -tin", where, {
            "bandwidth_kbps": "delivery_rate of the kernel: what the connection reached, at most"
                              " the bandwidth"}, rtt_from="rtt in ms")
    if _understands(_named, first):
        return collect(filter(_is_content, rest), _named, "a log with rtt= by name", where,
                       rtt_from="rtt in µs")
    for what, pattern, advice in _NO_RTT:
        if pattern.match(first):
            raise UsageError(f"{where}: looks like {what}, in which no field is named as a"
                             f" round-trip time; {advice}")
    raise UsageError(f"{where}: is in no format that is known; its first line is"
                     f" {first.strip()[:SHOWN]!r}. Known: {KNOWN}")


def _is_content(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _understands(parse: Callable[[str], Row], line: str) -> bool:
    try:
        parse(line)
    except Skipped as why:
        return str(why) == EMPTY_RESPONSE
    return True


# Named fields --------------------------------------------------------------------------

def _name_of(quantity: str, names: Iterable[str]) -> str:
    """The first of the names that is known to be this quantity, "" for none."""
    return next((name for name in names if NAMES.get(name.lower(), ("",))[0] == quantity), "")


def _rtt_from(names: Iterable[str], what: str, where: str) -> str:
    """The name of the RTT's field, and its unit. Raises UsageError where there is none."""
    known = list(names)
    name = _name_of("rtt_ms", known)
    if not name:
        hint = ("; Cloudflare's Logpush has ClientTCPRTTMs" if "EdgeStartTimestamp" in known else
                "; CloudFront and IIS log none: take the output of ss -tin, or CSV"
                if "time-taken" in known else "; add one, as nginx's $tcpinfo_rtt")
        raise UsageError(f"{where}: {what} of these fields has no round-trip time"
                         f" (rtt, rtt_ms, tcpinfo_rtt, ClientTCPRTTMs):"
                         f" {', '.join(known)[:SHOWN]}{hint}")
    return f"{name} in {UNITS[NAMES[name.lower()][1]]}"


def _row_of(values: Mapping[str, object]) -> Row:
    """A row by the names of its values. Raises Skipped."""
    def value(quantity: str) -> float | None:
        name = _name_of(quantity, values)
        what = "a weight" if quantity == "weight" else name
        number = value_of(_text(values[name]), what) if name else None
        return None if number is None else number * NAMES[name.lower()][1]

    group, weight = _name_of("group", values), value("weight")
    size = value("response_bytes")
    if size == 0 and _name_of("response_bytes", values) != "response_bytes":  # of a log
        raise Skipped(EMPTY_RESPONSE)
    rtt_ms = value("rtt_ms")
    if not rtt_ms:
        raise Skipped("without an RTT")
    return Row(rtt_ms, value("bandwidth_kbps"), size,
               group_of(_text(values[group]) if group else None), 1.0 if weight is None else weight)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    raise Skipped("with a value that is neither a number nor text")


def _csv(head: Sequence[str], lines: Iterable[str], where: str) -> UserTable:
    """Read a CSV; columns with unknown names are ignored in files of other programs."""
    reader = csv.DictReader(line for line in lines if not line.startswith("#"))
    try:
        reader.fieldnames = names = [name.strip() for name in reader.fieldnames or ()]
        for name in names if "rtt_ms" in names else ():
            if name not in COLUMNS:
                raise UsageError(f"{where}: unknown column {name!r}{nearest(name, COLUMNS)}; known:"
                                 f" {', '.join(COLUMNS)}")
        return collect(reader, lambda row: _row_of({name: row.get(name) for name in names}), "CSV",
                       where, rtt_from=_rtt_from(names, "CSV", where))
    except csv.Error as error:
        raise UsageError(f"{where}: line {reader.line_num}: {error}") from error


def _json(first: str, lines: Iterable[str], where: str) -> UserTable:
    """Read lines of one JSON object each, as nginx and Cloudflare's Logpush write them."""
    try:
        names = _object(first)
    except Skipped as why:
        raise UsageError(f"{where}: its first line begins as JSON, and is a row {why}") from None
    return collect(filter(str.strip, lines), lambda line: _row_of(_object(line)), "JSON", where,
                   rtt_from=_rtt_from(names, "JSON", where))


def _object(line: str) -> dict[str, object]:
    try:
        value = untrusted.read(line.encode(), untrusted.anything(), files.MOST_LINE_CHARACTERS * 4)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Skipped("that is no JSON object")
    return value


def _w3c(names: Sequence[str], lines: Iterable[str], where: str) -> UserTable:
    """Read the W3C's extended log format: #Fields: has the names, between spaces or tabs."""
    def parse(line: str) -> Row:
        values = line.split()
        if len(values) != len(names):
            raise Skipped("in another format than #Fields")
        return _row_of(dict(zip(names, values)))

    return collect(filter(_is_content, lines), parse, "a W3C log", where,
                   rtt_from=_rtt_from(names, "a W3C log", where))


# Fields of a log -----------------------------------------------------------------------

def _named(line: str) -> Row:
    """Read a log with rtt=. The size is bytes=, or the field of the combined format."""
    values = {match["name"]: match["value"] for match in _NAMED.finditer(line)}
    combined = _COMBINED.match(line)
    if "rtt" not in values or "bytes" not in values and combined is None:
        raise Skipped("in another format than the first line")
    size = values["bytes"] if combined is None or "bytes" in values else combined["bytes"]
    return _response(values["rtt"], 1e-3, size, values.get("group"))


def _at_field(rtt_field: RttField, line: str) -> Row:
    """Read a log whose RTT is the field of this number, and whose size is the combined format's."""
    fields = _FIELD.findall(line)
    if not 0 < rtt_field.number <= len(fields):
        raise Skipped(f"of fewer than {rtt_field.number} fields")
    combined = _COMBINED.match(line)
    return _response(fields[rtt_field.number - 1].strip('"'), rtt_field.to_ms,
                     combined["bytes"] if combined else None)


def _response(rtt: str, to_ms: float, sent_bytes: str | None, group: str | None = EVERYBODY) -> Row:
    value = value_of(rtt, "an RTT")
    size = None if sent_bytes is None else value_of(sent_bytes, "a size")
    if sent_bytes is not None and not size:
        raise Skipped(EMPTY_RESPONSE)
    if not value:
        raise Skipped("without an RTT")
    return Row(value * to_ms, None, size, group_of(group))


def _ss(line: str) -> Row | None:
    """Read the output of ss: a line of addresses, which is skipped, then a line on TCP."""
    rtt, size, rate = (form.search(line) for form in (_SS_RTT, _SS_BYTES, _SS_RATE))
    if rtt is None:
        return None
    kbps = value_of(rate["rate"], "a delivery_rate") if rate else None
    return Row(value_of(rtt["rtt"], "an RTT"),
               kbps * _SI[rate["unit"]] if rate and kbps is not None else None,
               value_of(size["bytes"], "a size") if size else None)
