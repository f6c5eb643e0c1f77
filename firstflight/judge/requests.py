"""Checks how long a client's requests are. Their headers are known, but for a version's digits.

A longer request takes longer on a slow uplink, and no other check would see it: the model of TCP
takes the length from the packets, where it judges at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from firstflight.base.comparison import Comparison
from firstflight.testbed.hosts.tls_records import RECORD_OVERHEAD_BYTES

# The headers that each of our clients sends besides Host and those of the connection, without the
# digits of the client's version.
_CURL = "User-Agent: curl/\r\nAccept: */*\r\n"
HEADERS = {"curl": _CURL, "libcurl": _CURL,
           "wget": "User-Agent: Wget/\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"}
_KEEPS_CONNECTION = {"wget": "Connection: Keep-Alive\r\n"}
_CLOSES_CONNECTION = "Connection: close\r\n"
CLOSE_NOTIFY_BYTES = 2 + RECORD_OVERHEAD_BYTES  # an alert of TLS has 2 bytes
# Over HTTP/2 a client of curl's library begins with its preface, its settings and a larger window
# (RFC 9113, 3.4 and 6.5). It acknowledges the server's settings, and at the end it sends GOAWAY.
_PREFACE_BYTES = 24 + 27 + 13
_SETTINGS_ACK_BYTES, _GOAWAY_BYTES = 9, 17
_AROUND_REQUESTS_BYTES = (_PREFACE_BYTES + _SETTINGS_ACK_BYTES + _GOAWAY_BYTES
                          + 3 * RECORD_OVERHEAD_BYTES)
# A frame of headers has a head of 9 bytes, an index or two bytes before each of six fields, and
# */* for Accept.
_AROUND_FIELDS_BYTES = 9 + 2 * 6 + 3
# The digits and points of a client's version.
LEAST_VERSION_BYTES, MOST_VERSION_BYTES = len("1.2.3"), len("10.11.12")


def request_bytes(url: str, client: str, closes: bool, body_bytes: int = 0) -> tuple[int, int]:
    """The least and the most bytes of a request's head over HTTP/1.1.

    closes: whether the connection ends after the request. body_bytes: the size of its body; 0 for
    a GET.
    """
    parts = urlsplit(url)
    path = parts.path
    if parts.query:
        path += f"?{parts.query}"
    method, length = "GET", ""
    if body_bytes:
        method, length = "POST", f"Content-Length: {body_bytes}\r\n"
    connection = _CLOSES_CONNECTION if closes else _KEEPS_CONNECTION.get(client, "")
    text = (f"{method} {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{HEADERS[client]}"
            f"{connection}{length}\r\n")
    return len(text) + LEAST_VERSION_BYTES, len(text) + MOST_VERSION_BYTES


def compare_length(observed: int, expected: tuple[int, int]) -> Iterator[Comparison]:
    """Compare the bytes of one request, or of several together, with the least and the most."""
    least, most = expected
    yield Comparison(least <= observed <= most, f"{observed} bytes", f"{least} to {most}")


def most_bytes_over_http_2(fields: Iterable[tuple[str, str, str]]) -> int:
    """The most bytes of all requests of a connection over HTTP/2, in records of TLS.

    fields: the path, the host and the client's name of each request. Headers are compressed, so
    that none is longer than its text.
    """
    most = _AROUND_REQUESTS_BYTES + CLOSE_NOTIFY_BYTES
    for texts in fields:
        most += RECORD_OVERHEAD_BYTES + _AROUND_FIELDS_BYTES + sum(map(len, texts))
    return most
