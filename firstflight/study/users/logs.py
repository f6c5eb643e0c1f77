"""Files about users: CSV, JSON lines, logs with named fields, W3C logs, or the output of ss -tin.

What has names is read by study.users.named_fields. `ss -tin` prints of each connection
`rtt:<mean>/<deviation>` in ms, `delivery_rate <n>bps` and `bytes_acked:<n>` (iproute2, misc/ss.c).
Traffic Server's tcpinfo plugin logs `<time> <event> <client> <server> <rtt in µs>`
(plugins/tcpinfo/tcpinfo.cc).
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Iterator, Sequence
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
MOST_LINES = 10_000_000  # of a file
MOST_READ = 300_000  # lines of a file, evenly among all that it has
FEWER = "; keep its head and one line in ten: awk 'NR == 1 || NR % 10 == 0'"
MOST_INFLATED = 1 << 30  # bytes: ten million lines of a log
# Quantities that `ss -tin` only estimates, and how the kernel does.
ESTIMATED_BY_SS = {"bandwidth_kbps": "delivery_rate of the kernel: what the connection reached, at"
                                     " most the bandwidth"}
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
_NUMBERED = "an RTT"  # what a row's values and its messages call the field of --rtt-field N
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
    """Read the usable rows of a file, whatever its format. Raises UsageError.

    first_requests: only the first request of each connection is usable. Of a file with more than
    MOST_READ lines one line in so many is read, and nobody knows which requests were first.
    """
    try:
        with inflated.opened(path, MOST_INFLATED) as file:
            if file.read(SNIFFED) in CAPTURES:
                raise UsageError(f"{path}: is a capture; {REMOVED['a capture']}")

        text = inflated.lines(path, MOST_READ, MOST_LINES, MOST_INFLATED)
        with closing(text.lines):
            if first_requests and text.one_in > 1:
                raise UsageError(f"{path}: has more than {MOST_READ:,} lines; --first-requests"
                                 " needs lines that follow each other: keep the last ones, tail -n"
                                 f" {MOST_READ}")
            users = read(text.lines, str(path), rtt_field, first_requests)
    except OSError as error:
        cure = FEWER if error.errno == errno.EFBIG else ""
        raise UsageError(f"{path}: cannot be read: {error.strerror}{cure}") from error

    if text.one_in == 1:
        return users
    return replace(users, format=f"{users.format}, one line in {text.one_in} of the file's")


def _first_line(lines: Iterator[str]) -> tuple[str, str]:
    """The fields that #Fields: names (W3C), and the first line that is no comment; else ""."""
    fields = ""
    for line in lines:
        if line.startswith("#Fields:"):
            fields = line.partition(":")[2]
        if line.strip() and not line.startswith("#"):
            return fields, line
    return fields, ""


def read(lines: Iterable[str], where: str, rtt_field: RttField | None = None,
         first_requests: bool = False) -> UserTable:
    """Read the usable rows of a text, by the format of its first line. Raises UsageError.

    where: the name of the text in messages.
    """
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

    server = servers.recognise_log(first)
    if first.startswith("{") and (server is None or rtt_field is not None):
        return named_fields.read_json(first, rest, where, rtt_field, first_requests)
    head = [name.strip().strip('"') for name in first.strip().split(",")]
    if _is_csv_head(head, rtt_field):
        return named_fields.read_csv(rest, where, rtt_field, first_requests)
    if is_ltsv(first):
        return named_fields.read_ltsv(first, rest, where, rtt_field, first_requests)

    is_tcpinfo = first.startswith(_TCPINFO_HEAD) or _TCPINFO.match(first) is not None
    is_ss = _SS_HEAD.match(first) is not None
    if first_requests and (is_tcpinfo or is_ss):
        raise UsageError(f"{where}: --first-requests: a row of it is a connection, not a request;"
                         " leave the flag out")
    if is_tcpinfo:
        return _read_tcpinfo(rest, where)
    if is_ss:
        return collect(rest, _read_ss_line, "the output of ss -tin", where,
                       estimated=ESTIMATED_BY_SS, rtt_from="rtt in ms")

    if rtt_field is not None or _has_named_rtt(first):
        return named_fields.read_pairs(first, rest, where, _unnamed_values, rtt_field,
                                       first_requests=first_requests)
    if server is not None:
        raise UsageError(f"{where}: looks like {server.name}, in which no field is named as a"
                         f" round-trip time; {server.cure}{_last_number(first)}")
    if any("rtt" in name.lower() for name in pairs_of(first)):
        rtt_of(pairs_of(first), "a log", where, None)  # raises, and says which names are known
    raise UsageError(f"{where}: is in no format that is known; its first line is"
                     f" {first.strip()[:SHOWN]!r}. Known: {KNOWN}")


def _is_csv_head(names: Sequence[str], rtt_field: RttField | None) -> bool:
    """Whether these are columns of a CSV, by one that is a round-trip time.

    A name alone, such as rtt, may begin a file of any kind; rtt_ms is ours.
    """
    if "rtt_ms" in names or rtt_field is not None and rtt_field.name in names:
        return True
    return len(names) > 1 and name_of("rtt_ms", names) != ""


def _last_number(line: str) -> str:
    """The number of a line's last field, in words; "" unless the field is a number itself.

    People often append the RTT to a log's format without a name.
    """
    fields = _FIELD.findall(line)
    value = fields[-1].strip('"')
    return f" (the last one, {value}, is field {len(fields)})" if value.isdecimal() else ""


def _has_named_rtt(line: str) -> bool:
    """Whether a line has a round-trip time and a size by name=value, or in the combined format."""
    values = {**_unnamed_values(line), **pairs_of(line)}
    return bool(name_of("rtt_ms", pairs_of(line)) and name_of("response_bytes", values))


# Fields of a log -----------------------------------------------------------------------

def _unnamed_values(line: str) -> dict[str, object]:
    """The values that a line of HAProxy's log, or of the combined format, has by their place.

    Their keys are the names that named_fields knows.
    """
    haproxy = _HAPROXY.search(line)
    if haproxy is None:
        return _combined_values(line)
    values: dict[str, object] = {"connection": haproxy["client"]}
    if haproxy["status"]:
        values.update(status=haproxy["status"], bytes=haproxy["bytes"])
    if agent := _CAPTURED.search(line, haproxy.end()):
        values["agent"] = agent["agent"]
    return values


def _combined_values(line: str) -> dict[str, object]:
    """The address, status, size, version of HTTP and user agent in a line of the combined format.

    {} for a line in another one.
    """
    match = servers.COMBINED.match(line)
    if match is None:
        return {}
    size = match["bytes"].replace("-", "0")
    agent = _AGENT.match(line, match.end() - 1)
    return {"remote_addr": line.partition(" ")[0], "status": match["status"], "bytes": size,
            "protocol": match["request"].rpartition(" ")[2],
            "agent": agent["agent"] if agent else ""}


def _at_field(rtt_field: RttField, line: str) -> Row:
    """The row of a line whose RTT is the field with this number. Raises Skipped.

    The other values stand where the combined format, or HAProxy's log, has them.
    """
    fields = _FIELD.findall(line)
    if not 0 < rtt_field.number <= len(fields):
        raise Skipped(f"of fewer than {rtt_field.number} fields")
    values = _unnamed_values(line)
    values[_NUMBERED] = fields[rtt_field.number - 1].strip('"')
    return row_of(values, NamedRtt(_NUMBERED, rtt_field.to_ms))


def _read_tcpinfo(lines: Iterable[str], where: str) -> UserTable:
    """Read the log of Traffic Server's tcpinfo. Raises UsageError.

    It may have several events of a connection. Only rows of the first row's event are used, so that
    each connection counts once.
    """
    event = ""

    def parse_line(line: str) -> Row:
        nonlocal event
        match = _TCPINFO.match(line)
        if match is None:
            raise Skipped("in another format than tcpinfo's")
        event = event or match["event"]
        if match["event"] != event:
            raise Skipped(ANOTHER_EVENT)
        return row_of({"rtt": match["rtt"]}, NamedRtt("rtt", 1e-3))

    rows = (line for line in content(lines) if not line.startswith(_TCPINFO_HEAD))
    return collect(rows, parse_line, "Traffic Server's tcpinfo", where, rtt_from="rtt in µs")


def _read_ss_line(line: str) -> Row | None:
    """The connection that a line of `ss -tin` describes; None for a line of addresses.

    ss prints two lines of each connection: its addresses, then what TCP knows. Raises Skipped.
    """
    rtt = _SS_RTT.search(line)
    if rtt is None:
        return None

    bandwidth_kbps = None
    if rate := _SS_RATE.search(line):
        rate_in_unit = value_of(rate["rate"], "a delivery_rate")
        if rate_in_unit is not None:
            bandwidth_kbps = rate_in_unit * _SI[rate["unit"]]

    size = _SS_BYTES.search(line)
    return Row(value_of(rtt["rtt"], "an RTT"), bandwidth_kbps,
               value_of(size["bytes"], "a size") if size else None)
