"""Schemas for what a worker may write: the lines of observations.jsonl.

A worker in a guest may run a stranger's scenario. The keys are those that its bench and the
programs on its hosts write (testbed/worker/*.py, client.py, server.py,
testbed/servers/external.py); testbed/messages.py has their types. A new key has to be added here
and there.
"""

from __future__ import annotations

from firstflight.base.untrusted import (Schema, by_name, items, matching, number, optional, read,
                                        table, text, typed_as, whole, yes_or_no)
from firstflight.testbed.messages import Line
from vtime.shared_folder import FILE_NAME

LINE_BYTES = 4 << 20  # of an observation, which usually has a few hundred; more with samples
# Of a trial's packets at one side; a tap holds some 20 MB (testbed/worker/tap.py).
CAPTURE_BYTES = 128 << 20
FILE_BYTES = 256 << 20  # of all files of a trial
REASON_CHARACTERS = 1000
ID_CHARACTERS = 10_000  # with each parameter and several sysctls
URL_CHARACTERS = 2000
MOST_REQUESTS = 20_000  # of a page in a browser
MOST = 1 << 20  # items of a list; the length of a line limits them as well
MOST_NAMES = 10_000  # characters of what a certificate is for: a page has 256 hosts
_SPAN_MS = 1e9

_size = whole()
_port = whole(0, 65535)
_reason = text(REASON_CHARACTERS, cut=True)
_digest = matching(r"[0-9a-f]{64}|")
_word = text(200)
_sizes = items(_size, MOST)


def _span_ms(value: object, where: str) -> float:
    if not 0 <= (span := number(value, where)) <= _SPAN_MS:
        raise ValueError(f"{where} is not a time from 0 to {_SPAN_MS:g} ms")
    return span


def _second(value: object, where: str) -> float:
    """A point in time between 1970 and 9999, or a duration, in seconds."""
    if not 0 <= (second := number(value, where)) < 253_402_300_800:
        raise ValueError(f"{where} is not a time in seconds")
    return second


_times: dict[str, Schema[object]] = dict.fromkeys(
    ("connect_ms", "first_byte_ms", "total_ms"), optional(_span_ms))
_client_socket = table(
    {"initial_window": _size, "congestion_control": _word, "mss": _size, "retransmissions": _size,
     "request_bytes": _size, "request_sha256": _digest})
_any_fetch = table(
    {**_times, "ok": yes_or_no, "error": _reason, "size": _size, "sha256": _digest,
     "port": _port, "exit_status": optional(whole(-255, 255)),
     "http_status": optional(whole(0, 999))},
    {"appconnect_ms": optional(_span_ms), "early_data_bytes": whole(-(1 << 40), 1 << 40),
     "http_version": _word, "socket": _client_socket})


def fetch(value: object, where: str) -> dict[str, object]:
    """The schema of a client's report on one transfer (client.py)."""
    values = _any_fetch(value, where)
    if values["ok"] and not values["total_ms"]:
        raise ValueError(f"{where} succeeded in no time")
    return values


# What the client reports of one object of a page (testbed/hosts/page_client.py).
_download = table(
    {**dict.fromkeys(("named_ms", "start_ms", "first_byte_ms", "end_ms"), optional(_span_ms)),
     "ok": yes_or_no, "error": _reason, "size": _size, "sha256": _digest, "port": _port,
     "connects": _size, "header_bytes": _size})


def _certificate(value: object, where: str) -> list[object]:
    """The schema of a connection's port, and what its certificate is for."""
    port, names = items(lambda item, _: item, 2)(value, where)
    return [_port(port, where), text(MOST_NAMES)(names, where)]


_tls = table({"version": optional(_word), "cipher": _word, "group": _word, "resumed": yes_or_no,
              "library": _word, "hello_bytes": _size, "finished_bytes": _size, "flight": _sizes,
              "tickets": _sizes, "response": _sizes, "window": _size})
# A server's socket when its window was the initial one.
_SOCKET: dict[str, Schema[object]] = {
    "first_buffer_bytes": _size, "pacing_bytes_per_s": whole(0, 1 << 64),
    "is_pacing_limited": yes_or_no}
_response = table(
    {"event": matching("response"), "connection": _size, "client_port": _port,
     "path": text(10_000), "number_on_connection": _size, "initial_window": _size, "mss": _size,
     "request_bytes": _size, "header_bytes": _size, "body_bytes": _size, "sha256": _digest,
     "latency_ms": number, "min_rtt_ms": number, "retransmissions": _size,
     "final_window": _size},
    {"request_body_bytes": _size, "request_sha256": _digest,
     "tls": _tls, "error": _reason, "congestion_control": _word, "reordering": _size,
     "fixed_send_buffer": yes_or_no, "send_buffer_bytes": _size, "has_nagle": yes_or_no,
     **_SOCKET})
# The report on another server than server.py (testbed/servers/external.py).
_other_server = table(
    {"server": _word, "client_port": _port, "sha256": _digest, "initial_window": optional(_size),
     "mss": optional(_size), "fields": items(_word, 10),
     "samples": items(items(_size, 10), MOST)}, {"congestion_control": _word, **_SOCKET})
_no_response = table({}, {"error": _reason})


def server(value: object, where: str) -> dict[str, object]:
    """The schema of a server's report on a response, or of what replaces it."""
    keys = value.keys() if isinstance(value, dict) else ()
    if "event" in keys:
        return _response(value, where)
    if "samples" in keys:
        return _other_server(value, where)
    return _no_response(value, where)


# What a browser reports of a request and of a load (testbed/hosts/browser/client.py).
_request_times: dict[str, Schema[object]] = dict.fromkeys(
    ("start_ms", "connect_ms", "sent_ms", "first_byte_ms", "end_ms"), optional(number))
_request_words: dict[str, Schema[object]] = dict.fromkeys(
    ("method", "kind", "priority", "protocol", "failure"), text(200, cut=True))
_request = table(
    {**_request_times, "url": text(URL_CHARACTERS, cut=True), **_request_words,
     "status": whole(0, 999), "connection": _size, "server_port": _port, "content_bytes": _size,
     "wire_bytes": whole(-MOST), "sha256": _digest, "cached": yes_or_no})
_load_times: dict[str, Schema[object]] = dict.fromkeys(
    ("content_loaded_ms", "load_ms", "paint_ms", "largest_paint_ms"), optional(number))
_load = table(
    {"begun_ns": _size, **_load_times, "dialogs": _size, "phase_ms": number,
     "requests": items(_request, MOST_REQUESTS)})


def served(value: object, where: str) -> list[object]:
    """The schema of a row of what a recorded site answered (testbed/hosts/replay/backend.py)."""
    row = items(lambda item, _: item, len(_SERVED))(value, where)
    if len(row) != len(_SERVED):
        raise ValueError(f"{where} has {len(row)} values instead of {len(_SERVED)}")
    return [schema(item, where) for schema, item in zip(_SERVED, row)]


def records(value: object, where: str) -> list[object]:
    """The schema of a connection's TLS records (testbed/worker/tls_streams.py)."""
    port, runs = pair(value, where)
    read = []
    for run in items(lambda item, _: item, MOST)(runs, where):
        read.append([_size(size, where) for size in pair(run, where)])
    return [_port(port, where), read]


def pair(value: object, where: str) -> list[object]:
    """A list of two. Raises ValueError."""
    both = items(lambda item, _: item, 2)(value, where)
    if len(both) != 2:
        raise ValueError(f"{where} has {len(both)} values instead of 2")
    return both


# The number of the answer, the client's port, method, URL, when the request came and the answer
# left (ns since the epoch), status, and bytes of the body.
_SERVED: tuple[Schema[object], ...] = (
    whole(-1), _port, text(200, cut=True), text(URL_CHARACTERS, cut=True), _size, _size,
    whole(0, 999), _size)
_drops = table(dict.fromkeys(("to_client", "to_server"), by_name(whole(-MOST << 20), 10)))
_place = table({"offset": whole(0, 1 << 50), "bytes": whole(0, CAPTURE_BYTES)},
               {"packets": _size})
FACTS = table({}, {"kernel": _word, "sysctls": by_name(by_name(text(1000), 1000), 1000)})

OBSERVATION = table({"trial": text(ID_CHARACTERS)}, {
    "started_at": _second, "duration_s": _second, "error": _reason, "skipped": _reason,
    "captures": table({}, {"client": _place, "server": _place}),
    "files": by_name(text(500), 10_000, matching(FILE_NAME.pattern)),
    "fetch": fetch, "server": server, "drops": _drops,
    "fetches": items(fetch, MOST), "responses": items(server, MOST),
    "objects": items(_download, MOST), "session_ports": items(_port, 10_000),
    "certificates": items(_certificate, MOST),
    "libcurl": _word, "browser": _word, "load": _load, "served": items(served, MOST_REQUESTS),
    "records": items(records, MOST), "ended_servers": items(_size, 10_000)})
STAGE = table({"stage": matching("ready|alive|done|cannot|broken|failed")},
              {"facts": FACTS, "reason": _reason})


def line(value: object, where: str) -> dict[str, object]:
    """The schema of a line: {"trial": id, …} or {"stage": …}."""
    schema = OBSERVATION if isinstance(value, dict) and "trial" in value else STAGE
    return schema(value, where)


def read_line(content: bytes) -> Line:
    """Read a line of observations.jsonl. Raises ValueError with what is wrong."""
    return read(content, typed_as(Line, line), LINE_BYTES)
