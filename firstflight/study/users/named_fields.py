"""Reads rows whose values have names: CSV, JSON lines, LTSV, key=value, the W3C's extended log.

A field is a round-trip time only if its name says so, or if --rtt-field does. Operators add any
field to a log, often the duration of a request. These names are known, in capitals or not:

    rtt, tcpinfo_rtt, rtt_us, fc_rtt    in µs, as nginx's $tcpinfo_rtt (ngx_http_core_module) and
                                        HAProxy's fc_rtt(us)
    socket_tcpi_rtt, tcpi_rtt           in µs, Fastly's client.socket.tcpi_rtt
    rtt_ms                              in ms
    ClientTCPRTTMs                      in ms, in Cloudflare's Logpush (http_requests); 0 over QUIC
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from firstflight.base import untrusted
from firstflight.base.errors import UsageError
from firstflight.base.words import nearest, nearest_or_known
from firstflight.study.users.rows import (BOT, EMPTY_LINE, EMPTY_RESPONSE, LATER_REQUEST, QUIC,
                                          Row, Skipped, UserTable, collect, group_of, value_of)
from firstflight.workloads.fetch.scenario.requested_users import RttField

COLUMNS = ("rtt_ms", "bandwidth_kbps", "response_bytes", "group", "weight",
           "connection_requests", "connection")
MOST_SHOWN = 200  # characters of a list of names in a message
MOST_JSON_BYTES = 1 << 16  # of a line
MOST_JSON_PARTS = 1000  # lists and tables of a line
CLOUDFLARE = "clienttcprttms"
# For each known name, in lower case: the quantity that it stands for, and the factor from its unit
# to the quantity's.
NAMES: Mapping[str, tuple[str, float]] = {
    **dict.fromkeys(("rtt", "tcpinfo_rtt", "rtt_us", "fc_rtt", "socket_tcpi_rtt", "tcpi_rtt"),
                    ("rtt_ms", 1e-3)),
    **dict.fromkeys(("rtt_ms", CLOUDFLARE), ("rtt_ms", 1.0)),
    "bandwidth_kbps": ("bandwidth_kbps", 1.0),
    **dict.fromkeys(("response_bytes", "body_bytes_sent", "bytes_sent", "bytes", "sc-bytes",
                     "edgeresponsebytes", "resp_body_size", "response_body_size"),
                    ("response_bytes", 1.0)),
    **dict.fromkeys(("group", "server_name", "country", "clientcountry"), ("group", 1.0)),
    "weight": ("weight", 1.0),
    # The field is 1 where a request is the first one of its connection. nginx has the first name,
    # HAProxy the second.
    **dict.fromkeys(("connection_requests", "http_first_req"), ("request", 1.0)),
    # What distinguishes connections: a number (nginx's $connection, Envoy's %CONNECTION_ID%), or
    # the client's address with its port, in one field or two.
    **dict.fromkeys(("connection", "connection_id", "conn_id"), ("connection", 1.0)),
    **dict.fromkeys(("client", "remote_address", "downstream_remote_address", "remote_addr",
                     "client_ip", "clientip", "client_addr", "src", "c-ip"), ("address", 1.0)),
    **dict.fromkeys(("remote_port", "client_port", "clientsrcport", "clientport", "src_port",
                     "c-port"), ("port", 1.0)),
    **dict.fromkeys(("status", "sc-status", "status_code", "response_code", "resp_status",
                     "edgeresponsestatus"), ("status", 1.0)),
    **dict.fromkeys(("user_agent", "http_user_agent", "agent", "cs(user-agent)",
                     "clientrequestuseragent"), ("agent", 1.0))}
# A word of a user agent that is no user. Cubot makes telephones.
_BOT = re.compile(r"(?<!\bcu)bot\b|crawl|spider|slurp|scanner", re.IGNORECASE)
# The statuses "no content" and "not modified": a log counts only the header of such a response
# (RFC 9110, 6.4.1).
_WITHOUT_BODY = ("204", "304")
UNITS = {1e-3: "µs", 1.0: "ms"}  # by the factor to ms
# An address with a port. IPv6 needs its brackets here: without them it may end in digits, too.
_WITH_PORT = re.compile(r"(?:[0-9.]{7,15}|\[[0-9A-Fa-f:.]+\]):\d{1,5}")
# A value, such as the protocol, that says that a request came over QUIC.
_OF_QUIC = re.compile(r"http/3(?:\.0)?|h3(?:-\d+)?|quic", re.IGNORECASE)
_PAIR = re.compile(r'(?:^|[\s",;])(?P<name>[A-Za-z_][\w.-]{0,60})="?(?P<value>[^\s",;]*)')
_LABEL = re.compile(r"[A-Za-z_][\w.-]{0,60}:")
# Labels of ltsv.org that NAMES does not have, and the name in NAMES that means the same.
_OF_LTSV = {"size": "bytes"}


@dataclass(frozen=True)
class NamedRtt:
    """The field that has the round-trip time."""

    name: str
    to_ms: float  # the factor from its unit to ms

    @property
    def words(self) -> str:
        return f"{self.name} in {UNITS[self.to_ms]}"


def rtt_of(names: Iterable[str], what: str, where: str, chosen: RttField | None) -> NamedRtt:
    """The field that has the round-trip time. Raises UsageError where none of the fields has it.

    names: of the fields. what: the format of the file, for messages. where: the file's name.
    chosen: the field that --rtt-field names, None without the flag.
    """
    known = list(names)
    if chosen is not None:
        if chosen.name not in known:
            raise UsageError(f"{where}: --rtt-field: {what} has no field {chosen.name!r}"
                             f"{nearest(chosen.name, known)}; its fields: {_listed(known)}")
        return NamedRtt(chosen.name, chosen.to_ms)
    name = name_of("rtt_ms", known)
    if name:
        return NamedRtt(name, NAMES[name.lower()][1])
    raise UsageError(f"{where}: {what} of these fields has no round-trip time (rtt, rtt_ms,"
                     f" tcpinfo_rtt, ClientTCPRTTMs): {_listed(known)}{_what_to_do(known)}")


def _what_to_do(names: Sequence[str]) -> str:
    """What a user can do where no name is known to be a round-trip time: the end of a message."""
    if "EdgeStartTimestamp" in names:
        return "; Cloudflare's Logpush has ClientTCPRTTMs"
    if "time-taken" in names:
        return "; CloudFront and IIS log none: take the output of ss -tin, or CSV"
    likely = next((name for name in names if "rtt" in name.lower()), "")
    if likely:
        return (f"; if it is {likely}, say so with its unit: --rtt-field {likely}:us or {likely}:ms"
                " (Fastly's client.socket.tcpi_rtt is in us)")
    return "; add one, as nginx's $tcpinfo_rtt, or name it: --rtt-field NAME:us"


def _listed(names: Sequence[str]) -> str:
    """The names in at most MOST_SHOWN characters; names like a round-trip time come first."""
    ordered = sorted(names, key=lambda name: "rtt" not in name.lower())
    words = ", ".join(ordered) or "none"
    return words if len(words) <= MOST_SHOWN else f"{words[:MOST_SHOWN].rpartition(', ')[0]}, …"


def name_of(quantity: str, names: Iterable[str]) -> str:
    """The first of the names that NAMES takes for this quantity; "" if there is none."""
    for name in names:
        known_quantity, _ = NAMES.get(name.lower(), ("", 0.0))
        if known_quantity == quantity:
            return name
    return ""


def row_of(values: Mapping[str, object], rtt: NamedRtt) -> Row:
    """The row that named values make. Raises Skipped, with the row's connection, if it is unfit.

    values: by their names. rtt: the field that has the round-trip time.
    """
    connection = connection_of(values)
    try:
        return _row_of(values, rtt)._replace(connection=connection)
    except Skipped as why:
        why.connection = connection
        raise


def connection_of(values: Mapping[str, object]) -> str:
    """What distinguishes a row's connection from the others; "" where the row does not say.

    It is the connection's number, or the client's address and port.
    """
    def text(quantity: str) -> str:
        name = name_of(quantity, values)
        return str(values[name]).strip() if name and values[name] is not None else ""

    number = text("connection")
    # In some logs a field of this name has the header Connection, such as "keep-alive".
    if any(map(str.isdigit, number)):
        return number
    address, port = text("address"), text("port")
    if address and port:
        return f"{address} {port}"
    return address if _WITH_PORT.fullmatch(address) else ""


def _row_of(values: Mapping[str, object], rtt: NamedRtt) -> Row:
    """The row without its connection. Raises Skipped."""
    def value(quantity: str) -> float | None:
        name = name_of(quantity, values)
        what = "a weight" if quantity == "weight" else name
        number = value_of(_text(values[name]), what) if name else None
        return None if number is None else number * NAMES[name.lower()][1]

    agent = name_of("agent", values)
    if agent and _BOT.search(str(values[agent])):
        raise Skipped(BOT)
    request = value("request")
    if request not in (None, 1):
        raise Skipped(LATER_REQUEST)

    group, weight = name_of("group", values), value("weight")
    measured = value_of(_text(values.get(rtt.name)), rtt.name)
    if not measured and _is_quic(values, rtt, measured):
        raise Skipped(QUIC)

    status = name_of("status", values)
    if status and _text(values[status]) in _WITHOUT_BODY:
        raise Skipped(EMPTY_RESPONSE)
    size = value("response_bytes")
    # Only a file that was made for --users calls the size response_bytes; no server's log does.
    is_log = name_of("response_bytes", values) != "response_bytes"
    if size == 0 and is_log:
        raise Skipped(EMPTY_RESPONSE)
    if not measured:
        raise Skipped("without an RTT")

    return Row(measured * rtt.to_ms, value("bandwidth_kbps"), size,
               group=group_of(_text(values[group]) if group else None),
               weight=1.0 if weight is None else weight, is_first=request == 1)


def _is_quic(values: Mapping[str, object], rtt: NamedRtt, measured: float | None) -> bool:
    """Whether a row came over QUIC, for which no round-trip time of TCP is logged.

    measured: the value of the field that has the round-trip time.
    """
    if rtt.name.lower() == CLOUDFLARE and measured == 0:
        return True
    return any(isinstance(value, str) and _OF_QUIC.fullmatch(value) for value in values.values())


def _text(value: object) -> str:
    """A value as text; "" for None. Raises Skipped for what is neither a number nor text."""
    if value is None:
        return ""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    raise Skipped("with a value that is neither a number nor text")


# Formats -------------------------------------------------------------------------------
#
# Parameters of all readers: where: the file's name, for messages. chosen: the field that
# --rtt-field names, None without the flag. first_requests: only the first request of each
# connection is usable. first: the file's first line, which is the first of `lines`, too.

def read_csv(lines: Iterable[str], where: str, chosen: RttField | None = None,
             first_requests: bool = False) -> UserTable:
    """Read a CSV whose first line has the names of the columns.

    Columns with unknown names are ignored, except where the file has a column rtt_ms: such a file
    was made for --users, and an unknown name in it is a mistake. Raises UsageError.
    """
    reader = csv.reader(line for line in lines if not line.startswith("#"))
    try:
        names = [name.strip() for name in next(reader, [])]
        is_made_for_users = "rtt_ms" in names and chosen is None
        for name in names:
            if is_made_for_users and name not in COLUMNS:
                raise UsageError(f"{where}: unknown column {name!r}"
                                 f"{nearest_or_known(name, COLUMNS)}")
        rtt = rtt_of(names, "CSV", where, chosen)

        def parse(cells: list[str]) -> Row:
            if not cells:
                raise Skipped(EMPTY_LINE)
            return row_of(dict(zip_longest(names, cells[:len(names)])), rtt)

        return collect(reader, parse, "CSV", where, rtt_from=rtt.words,
                       first_requests=first_requests)
    except csv.Error as error:
        raise UsageError(f"{where}: line {reader.line_num}: {error}") from error


def read_json(first: str, lines: Iterable[str], where: str,
              chosen: RttField | None = None, first_requests: bool = False) -> UserTable:
    """Read lines of one JSON object each, as nginx and Cloudflare's Logpush write them."""
    try:
        names = _object(first)
    except Skipped as why:
        raise UsageError(f"{where}: its first line begins as JSON, and is a row {why}") from None
    rtt = rtt_of(names, "JSON", where, chosen)
    return collect(lines, lambda line: row_of(_object(line), rtt), "JSON", where,
                   rtt_from=rtt.words, first_requests=first_requests)


def _object(line: str) -> dict[str, object]:
    """The values of a line that is a JSON object. Raises Skipped for any other line."""
    try:
        if line.count("[") + line.count("{") > MOST_JSON_PARTS:
            raise ValueError("lists and tables without end")
        # No value is checked here: most are never used, and checking all takes most of the time.
        value = untrusted.read(line.encode(), lambda value, where: value, MOST_JSON_BYTES)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Skipped("that is no JSON object")
    return value


def read_w3c(names: Sequence[str], lines: Iterable[str], where: str,
             chosen: RttField | None = None, first_requests: bool = False) -> UserTable:
    """Read the W3C's extended log format, whose line #Fields: has the names of the values.

    Spaces or tabs stand between values.
    """
    rtt = rtt_of(names, "a W3C log", where, chosen)

    def parse(line: str) -> Row:
        values = line.split()
        if len(values) != len(names):
            raise Skipped("in another format than #Fields")
        return row_of(dict(zip(names, values)), rtt)

    return collect(content(lines), parse, "a W3C log", where, rtt_from=rtt.words,
                   first_requests=first_requests)


def is_ltsv(line: str) -> bool:
    """Whether a line has labelled values between tabs (ltsv.org)."""
    parts = line.rstrip("\r\n").split("\t")
    return len(parts) > 1 and all(_LABEL.match(part) for part in parts)


def read_ltsv(first: str, lines: Iterable[str], where: str,
              chosen: RttField | None = None, first_requests: bool = False) -> UserTable:
    """Read LTSV: a label and a value with a colon between them, and tabs between such pairs."""
    rtt = rtt_of(_labelled(first), "LTSV", where, chosen)
    return collect(content(lines), lambda line: row_of(_labelled(line), rtt), "LTSV",
                   where, rtt_from=rtt.words, first_requests=first_requests)


def _labelled(line: str) -> dict[str, object]:
    """The values of a line of LTSV, by the names that NAMES has."""
    pairs = (part.partition(":") for part in line.rstrip("\r\n").split("\t"))
    return {_OF_LTSV.get(label, label): value for label, _, value in pairs}


def pairs_of(line: str) -> dict[str, object]:
    """The values of name=value in a line, as logfmt has them and nginx's log_format may."""
    return {match["name"]: match["value"] for match in _PAIR.finditer(line)}


def read_pairs(first: str, lines: Iterable[str], where: str,
               unnamed_values: Callable[[str], dict[str, object]], chosen: RttField | None = None,
               first_requests: bool = False) -> UserTable:
    """Read lines with name=value in them.

    unnamed_values: returns the values of a line that stand without a name, by the names that they
    have in NAMES.
    """
    rtt = rtt_of(pairs_of(first), "a log", where, chosen)

    def parse(line: str) -> Row:
        values = {**unnamed_values(line), **pairs_of(line)}
        size = name_of("response_bytes", values)
        if rtt.name not in values or not size:
            raise Skipped("in another format than the first line")
        if values[size] in ("", "-"):
            raise Skipped(EMPTY_RESPONSE)
        return row_of(values, rtt)

    return collect(content(lines), parse, f"a log with {rtt.name}= by name", where,
                   rtt_from=rtt.words, first_requests=first_requests)


def content(lines: Iterable[str]) -> Iterator[str]:
    """The lines that are no comments."""
    return (line for line in lines if not line.startswith("#"))
