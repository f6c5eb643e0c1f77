"""Files about users: a CSV of ours, nginx's access log, or the output of ss -tin.

nginx writes `$tcpinfo_rtt` in microseconds (ngx_http_core_module). Two log
formats are known; the first is nginx's own "combined" with the RTT behind it:

    log_format combined_rtt '$remote_addr - $remote_user [$time_local] "$request" $status '
                            '$body_bytes_sent "$http_referer" "$http_user_agent" $tcpinfo_rtt';
    log_format rtt 'rtt=$tcpinfo_rtt bytes=$body_bytes_sent group=$server_name';

`ss -tin` prints of each connection `rtt:<mean>/<deviation>` in ms,
`delivery_rate <n>bps` and `bytes_acked:<n>` (iproute2, misc/ss.c).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

from base import files
from base.errors import UsageError
from base.removed import REMOVED
from base.words import nearest
from study.fetches.features.users.rows import (EMPTY_RESPONSE, EVERYBODY, Row, Skipped, Users,
                                               collect, group_of, value_of)

COLUMNS = ("rtt_ms", "bandwidth_kbps", "response_bytes", "group", "weight")
KNOWN = ("a CSV file with the columns rtt_ms,bandwidth_kbps,response_bytes[,group][,weight];"
         " nginx's access log with $tcpinfo_rtt and $body_bytes_sent; the output of ss -tin")
SNIFFED = 4  # bytes that distinguish a capture from a text
CAPTURES = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1",
            b"\x0a\x0d\x0d\x0a")  # pcap in µs and ns, either order of bytes; pcapng
SHOWN = 100  # characters of a first line that is not understood

# No part of it may stand for what the next one begins with: that takes the square of a line.
_COMBINED = re.compile(r'\S+ \S+ [^"]*\[[^]["]*\] "[^"]*" (?P<status>\d{3}) (?P<bytes>\d+|-) '
                       r'"[^"]*" "[^"]*" "?(?P<rtt>\d+|-)"?')
_NAMED = re.compile(r'(?:^|[\s"])(?P<name>rtt|bytes|group)="?(?P<value>[^\s"]*)')
_SS_HEAD = re.compile(r"State\s+Recv-Q|(?:tcp\s+)?[A-Z0-9-]+\s+\d+\s+\d+\s")
_SS_RTT = re.compile(r"(?:^|\s)rtt:(?P<rtt>[\d.]+)/")
_SS_RATE = re.compile(r"\bdelivery_rate (?P<rate>[\d.]+)(?P<unit>[KMG]?)bps")
_SS_BYTES = re.compile(r"\bbytes_acked:(?P<bytes>\d+)")
_SI = {"": 1e-3, "K": 1.0, "M": 1e3, "G": 1e6}  # to kbit/s; ss counts in thousands


def read_file(path: Path) -> Users:
    """The usable rows of a file, whatever its format. Raises UsageError."""
    try:
        with files.opened(path) as file:
            first = file.read(SNIFFED)
            file.seek(0)
            if first in CAPTURES:
                raise UsageError(f"{path}: is a capture; {REMOVED['a capture']}")
            return read(files.lines(file), str(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def read(lines: Iterable[str], where: str) -> Users:
    """The rows of a text file, whichever of the formats it has. Raises UsageError."""
    stream = iter(lines)
    first = next((line for line in stream if line.strip() and not line.startswith("#")), "")
    rest = chain([first], stream)
    if "rtt_ms" in first.split("\n")[0].replace('"', "").replace(" ", "").split(","):
        return _csv(rest, where)
    if _SS_HEAD.match(first):
        return collect(rest, _ss, "the output of ss -tin", where, {
            "bandwidth_kbps": "delivery_rate of the kernel: what the connection reached, at most"
                              " the bandwidth"})
    for parse, form in ((_combined, "nginx's combined log with $tcpinfo_rtt"),
                        (_named, "a log with rtt=$tcpinfo_rtt and bytes=$body_bytes_sent")):
        if _understands(parse, first):
            return collect(filter(str.strip, rest), parse, form, where)
    shown = first.strip()
    if not shown:
        raise UsageError(f"{where}: is empty")
    raise UsageError(f"{where}: is in no format that is known; its first line is"
                     f" {shown[:SHOWN]!r}. Known: {KNOWN}")


def _understands(parse: Callable[[str], Row], line: str) -> bool:
    try:
        parse(line)
    except Skipped as why:
        return str(why) == EMPTY_RESPONSE
    return True


# Each format -------------------------------------------------------------------------

def _csv(lines: Iterable[str], where: str) -> Users:
    reader = csv.DictReader(line for line in lines if not line.startswith("#"))
    try:
        reader.fieldnames = names = [name.strip() for name in reader.fieldnames or ()]
        for name in names:
            if name not in COLUMNS:
                raise UsageError(f"{where}: unknown column {name!r}{nearest(name, COLUMNS)}; known:"
                                 f" {', '.join(COLUMNS)}")
        return collect(reader, _csv_row, "CSV", where)
    except csv.Error as error:
        raise UsageError(f"{where}: line {reader.line_num}: {error}") from error


def _csv_row(row: dict[str, str]) -> Row:
    rtt_ms, bandwidth_kbps, response_bytes = (value_of(row.get(name) or "", name)
                                              for name in COLUMNS[:3])
    if rtt_ms is None:
        raise Skipped("without an RTT")
    weight = value_of(row.get("weight") or "1", "a weight")
    return Row(rtt_ms, bandwidth_kbps, response_bytes, group_of(row.get("group")),
               1.0 if weight is None else weight)


def _combined(line: str) -> Row:
    match = _COMBINED.match(line)
    if match is None:
        raise Skipped("in another format than the first line")
    return _response(match["rtt"], match["bytes"])


def _named(line: str) -> Row:
    values = {match["name"]: match["value"] for match in _NAMED.finditer(line)}
    if not {"rtt", "bytes"} <= values.keys():
        raise Skipped("in another format than the first line")
    return _response(values["rtt"], values["bytes"], group_of(values.get("group")))


def _response(rtt_us: str, sent_bytes: str, group: str = EVERYBODY) -> Row:
    microseconds, size = value_of(rtt_us, "an RTT"), value_of(sent_bytes, "a size")
    if not size:
        raise Skipped(EMPTY_RESPONSE)
    if not microseconds:
        raise Skipped("without an RTT")
    return Row(microseconds / 1000, None, size, group)


def _ss(line: str) -> Row | None:
    """A connection is a line with its addresses, which are not looked at, and one with its TCP."""
    rtt, size, rate = (form.search(line) for form in (_SS_RTT, _SS_BYTES, _SS_RATE))
    if rtt is None:
        return None
    kbps = value_of(rate["rate"], "a delivery_rate") if rate else None
    return Row(value_of(rtt["rtt"], "an RTT"),
               kbps * _SI[rate["unit"]] if rate and kbps is not None else None,
               value_of(size["bytes"], "a size") if size else None)
