"""Files about users: CSV, JSON lines, logs with named fields, W3C logs, or the output of ss -tin.

What has names is read by study.users.named_fields. `ss -tin` prints of each connection
`rtt:<mean>/<deviation>` in ms, `delivery_rate <n>bps` and `bytes_acked:<n>` (iproute2, misc/ss.c).
Traffic Server's tcpinfo plugin logs `<time> <event> <client> <server> <rtt in µs>`
(plugins/tcpinfo/tcpinfo.cc).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from firstflight.base import inflated
from firstflight.base.errors import UsageError
from firstflight.base.removed import REMOVED
from firstflight.study.users import named_fields, servers
from firstflight.study.users.named_fields import (NamedRtt, content, is_ltsv, name_of, pairs_of,
                                                  row_of, rtt_of)
from firstflight.study.users.rows import ANOTHER_EVENT, Row, Skipped, UserTable, collect, value_of
from firstflight.workloads.fetch.scenario.requested_users import RttField

KNOWN = ("CSV with a header, such as rtt_ms,response_bytes; JSON, an object a line; a log with"
         " rtt=$tcpinfo_rtt; the output of ss -tin; or --rtt-field N for a field of a log")
SNIFFED = 4  # bytes that distinguish a capture from a text
CAPTURES = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1",
            b"\x0a\x0d\x0d\x0a")  # pcap in µs and ns, either order of bytes; pcapng
MOST_READ, MOST_LINES = 300_000, 10_000_000  # lines of a file: that are read, that it may have
FEWER = "; keep its head and one line in ten: awk 'NR == 1 || NR % 10 == 0'"
MOST_INFLATED = 1 << 30  # bytes: ten million lines of a log
# What `ss -tin` says that is an estimate.
OF_SS = {"bandwidth_kbps": "delivery_rate of the kernel: what the connection reached, at most the"
                           " bandwidth"}
SHOWN = 100  # characters of a first line that is not understood

_HAR = re.compile(r'\{\s*"log":\s*\{')
# A field of a log: in quotes, brackets or braces (HAProxy's captured headers), or up to a space.
_FIELD = re.compile(r'"[^"]*"|\[[^][]*\]|\{[^{}]*\}|[^\s"[]\S*')
_AGENT = re.compile(r' "[^"]*" "(?P<agent>[^"]*)"')  # behind what COMBINED matches
# HAProxy: the client's address and port, and the time when the connection or request came; in its
# httplog frontend, server and times, then the status and the bytes with their header.
_HAPROXY = re.compile(r"(?:^|\s)(?P<client>[0-9A-Fa-f:.]{2,45}:\d{1,5}) \[\d\d/\w{3}/\d{4}:"
                      r"(?:[^]\s]*\] \S+ \S+/\S+ [-+\d/]+ (?P<status>\d{3}) \+?(?P<bytes>\d+) )?")
# A header that HAProxy captured, as a user agent begins: a product and its version.
_CAPTURED = re.compile(r"[{|](?P<agent>[\w.+-]+/\d[^{}|]*)")
_NUMBERED = "an RTT"  # the name of a field that has a number
_SS_HEAD = re.compile(r"State\s+Recv-Q|(?:tcp\s+)?[A-Z0-9-]+\s+\d+\s+\d+\s")
_SS_RTT = re.compile(r"(?:^|\s)rtt:(?P<rtt>[\d.]+)/")
_SS_RATE = re.compile(r"\bdelivery_rate (?P<rate>[\d.]+)(?P<unit>[KMG]?)bps")
_SS_BYTES = re.compile(r"\bbytes_acked:(?P<bytes>\d+)")
_SI = {"": 1e-3, "K": 1.0, "M": 1e3, "G": 1e6}  # to kbit/s; ss counts in thousands
_TCPINFO = re.compile(r"\d{8}\.\d\dh\d\dm\d\ds (?P<event>(?:ssn|txn)_(?:start|close)|send_resp_hdr)"
                      r" \S+ \S+ (?P<rtt>\d+)(?: |$)")
_TCPINFO_HEAD = "timestamp event client server rtt"


def read_file(path: Path, rtt_field: RttField | None = None,
              first_requests: bool = False) -> UserTable:
    """The usable rows of a file, whatever its format. Raises UsageError.

    Of a file with more than MOST_READ lines evenly fewer are read, and of these it is not known
    which are the first ones of their connections. first_requests: only these are usable.
    """
    try:
        with inflated.opened(path, MOST_INFLATED) as file:
            if file.read(SNIFFED) in CAPTURES:
                raise UsageError(f"{path}: is a capture; {REMOVED['a capture']}")

        found = inflated.lines(path, MOST_READ, MOST_LINES, MOST_INFLATED)
        with closing(found.lines):
            if first_requests and found.one_in > 1:
                raise UsageError(f"{path}: has more than {MOST_READ:,} lines; --first-requests"
                                 f" needs all lines of a time: keep the last, tail -n"
                                 f" {MOST_READ}")
            users = read(found.lines, str(path), rtt_field, first_requests)
    except OSError as error:
        cure = FEWER if "more than" in str(error.strerror) else ""
        raise UsageError(f"{path}: cannot be read: {error.strerror}{cure}") from error

    if found.one_in == 1:
        return users
    return replace(users, format=f"{users.format}, one line in {found.one_in} of the file's")


def _first_line(lines: Iterator[str]) -> tuple[str, str]:
    """What stands behind #Fields: (W3C), and the first line that is no comment; "" for none."""
    fields = ""
    for line in lines:
        if line.startswith("#Fields:"):
            fields = line.partition(":")[2]
        if line.strip() and not line.startswith("#"):
            return fields, line
    return fields, ""


def read(lines: Iterable[str], where: str, rtt_field: RttField | None = None,
         first_requests: bool = False) -> UserTable:
    """The rows of a text file, whichever of the formats it has. Raises UsageError."""
    stream = iter(lines)
    fields, first = _first_line(stream)
    rest = chain([first], stream)
    if not first.strip():
        raise UsageError(f"{where}: is empty")
    if _HAR.match(first) or first.strip() == "{" and ".har" in Path(where).suffixes:
        raise UsageError(f"{where}: is a HAR, a browser's record of a page, which is for --page;"
                         " --users takes a log of users")

    if rtt_field is not None and rtt_field.number:
        return collect(content(rest), partial(_at_field, rtt_field), "a log", where,
                       rtt_from=f"field {rtt_field.number} in {rtt_field.unit}",
                       first_requests=first_requests)
    if fields:
        return named_fields.read_w3c(fields.split(), rest, where, rtt_field, first_requests)

    server = servers.log_of(first)
    if first.startswith("{") and (server is None or rtt_field is not None):
        return named_fields.read_json(first, rest, where, rtt_field, first_requests)
    head = [name.strip().strip('"') for name in first.strip().split(",")]
    if "rtt_ms" in head or len(head) > 1 and name_of("rtt_ms", head) or (
            rtt_field is not None and rtt_field.name in head):
        return named_fields.read_csv(head, rest, where, rtt_field, first_requests)
    if is_ltsv(first):
        return named_fields.read_ltsv(first, rest, where, rtt_field, first_requests)

    if first_requests and (first.startswith(_TCPINFO_HEAD) or _TCPINFO.match(first)
                           or _SS_HEAD.match(first)):
        raise UsageError(f"{where}: --first-requests: a row of it is a connection, not a request;"
                         " leave the flag out")
    if first.startswith(_TCPINFO_HEAD) or _TCPINFO.match(first):
        return _traffic_server(rest, where)
    if _SS_HEAD.match(first):
        return collect(rest, _ss, "the output of ss -tin", where, estimated=OF_SS,
                       rtt_from="rtt in ms")

    if rtt_field is not None or _has_named_rtt(first):
        return named_fields.read_pairs(first, rest, where, _of_line, rtt_field,
                                       first_requests=first_requests)
    if server is not None:
        raise UsageError(f"{where}: looks like {server.name}, in which no field is named as a"
                         f" round-trip time; {server.cure}{_last_number(first)}")
    if any("rtt" in name.lower() for name in pairs_of(first)):
        rtt_of(pairs_of(first), "a log", where, None)
    raise UsageError(f"{where}: is in no format that is known; its first line is"
                     f" {first.strip()[:SHOWN]!r}. Known: {KNOWN}")


def _last_number(line: str) -> str:
    """Which field a number at the end of a line is: where an RTT without a name often stands."""
    fields = _FIELD.findall(line)
    value = fields[-1].strip('"')
    return f" (the last one, {value}, is field {len(fields)})" if value.isdecimal() else ""


def _has_named_rtt(line: str) -> bool:
    """Whether a line has a round-trip time and a size by name=value, or in the combined format."""
    values = {**_of_line(line), **pairs_of(line)}
    return bool(name_of("rtt_ms", pairs_of(line)) and name_of("response_bytes", values))


# Fields of a log -----------------------------------------------------------------------

def _of_line(line: str) -> dict[str, object]:
    """What a line has without names: of the combined format, or of HAProxy's log."""
    haproxy = _HAPROXY.search(line)
    if haproxy is None:
        return _of_combined(line)
    values: dict[str, object] = {"connection": haproxy["client"]}
    if haproxy["status"]:
        values.update(status=haproxy["status"], bytes=haproxy["bytes"])
    if agent := _CAPTURED.search(line, haproxy.end()):
        values["agent"] = agent["agent"]
    return values


def _of_combined(line: str) -> dict[str, object]:
    """The size, version of HTTP and user agent in a line of the combined format, by names."""
    match = servers.COMBINED.match(line)
    if match is None:
        return {}
    size = match["bytes"].replace("-", "0")
    agent = _AGENT.match(line, match.end() - 1)
    return {"remote_addr": line.partition(" ")[0], "status": match["status"], "bytes": size,
            "protocol": match["request"].rpartition(" ")[2],
            "agent": agent["agent"] if agent else ""}


def _at_field(rtt_field: RttField, line: str) -> Row:
    """Read a log whose RTT is the field of this number, and whose size is the combined format's.
    """
    fields = _FIELD.findall(line)
    if not 0 < rtt_field.number <= len(fields):
        raise Skipped(f"of fewer than {rtt_field.number} fields")
    values = _of_line(line)
    values[_NUMBERED] = fields[rtt_field.number - 1].strip('"')
    return row_of(values, NamedRtt(_NUMBERED, rtt_field.to_ms))


def _traffic_server(lines: Iterable[str], where: str) -> UserTable:
    """Read the log of tcpinfo: of each connection one event, that of the first row."""
    event = ""

    def parse(line: str) -> Row:
        nonlocal event
        match = _TCPINFO.match(line)
        if match is None:
            raise Skipped("in another format than tcpinfo's")
        event = event or match["event"]
        if match["event"] != event:
            raise Skipped(ANOTHER_EVENT)
        return row_of({"rtt": match["rtt"]}, NamedRtt("rtt", 1e-3))

    rows = (line for line in content(lines) if not line.startswith(_TCPINFO_HEAD))
    return collect(rows, parse, "Traffic Server's tcpinfo", where, rtt_from="rtt in µs")


def _ss(line: str) -> Row | None:
    """Read the output of ss: a line of addresses, which is skipped, then a line on TCP."""
    rtt, size, rate = (form.search(line) for form in (_SS_RTT, _SS_BYTES, _SS_RATE))
    if rtt is None:
        return None
    kbps = value_of(rate["rate"], "a delivery_rate") if rate else None
    return Row(value_of(rtt["rtt"], "an RTT"),
               kbps * _SI[rate["unit"]] if rate and kbps is not None else None,
               value_of(size["bytes"], "a size") if size else None)
