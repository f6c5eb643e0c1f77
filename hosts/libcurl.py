"""Fetches with curl's library in the client's own process (pycurl): many thousands of them."""

from __future__ import annotations

import hashlib
import io
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# A connection that is idle for longer libcurl would not use again (CURLOPT_MAXAGE_CONN,
# default 118 s).
KEPT_S = 24 * 3600


def fetch_with_libcurl(urls: list[str], deadline_s: float, folder: Path,
                       think_s: Sequence[float] = (), window_bytes: int = 0
                       ) -> list[dict[str, Any]]:
    """Fetch with libcurl in this process; one answer per URL, in order.

    think_s: how long to wait before each of them; deadline_s is for each.
    window_bytes: the most that the connection advertises, 0 for no limit.
    """
    import pycurl
    handle = pycurl.Curl()
    handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    handle.setopt(pycurl.TIMEOUT_MS, int(deadline_s * 1000))
    handle.setopt(pycurl.USERAGENT, f"curl/{pycurl.version_info()[1]}")  # as long as curl's
    handle.setopt(pycurl.PROXY, "")
    handle.setopt(pycurl.MAXAGE_CONN, KEPT_S)
    body = NarrowBody(handle, window_bytes) if window_bytes else Body(handle)
    if len(urls) == 1:
        handle.setopt(pycurl.HTTPHEADER, ["Connection: close"])
    try:
        answers = []
        for number, url in enumerate(urls):
            if number < len(think_s):
                time.sleep(think_s[number])
            answers.append(libcurl_answer(handle, url, body))
        return answers
    finally:
        handle.close()


class Body:
    """What a transfer brings."""

    def __init__(self, handle: Any) -> None:
        import pycurl
        self.file = io.BytesIO()
        handle.setopt(pycurl.WRITEFUNCTION, self.write)

    def write(self, data: bytes) -> int:
        return self.file.write(data)

    def take(self) -> bytes:
        data, self.file = self.file.getvalue(), io.BytesIO()
        return data


class NarrowBody(Body):
    """The same on a connection that never advertises more than so many bytes.

    The window is clamped (TCP_WINDOW_CLAMP) before it connects and again with
    all that arrives: the kernel sets the clamp anew when it learns how large
    segments are (tcp_measure_rcv_mss).
    """

    def __init__(self, handle: Any, window_bytes: int) -> None:
        import pycurl
        super().__init__(handle)
        self.window_bytes = window_bytes
        self.socket: socket.socket | None = None
        handle.setopt(pycurl.OPENSOCKETFUNCTION, self.open)

    def open(self, _purpose: int, address: Any) -> socket.socket:
        self.socket = socket.socket(address.family, address.socktype, address.protocol)
        self._clamp()
        return self.socket

    def write(self, data: bytes) -> int:
        self._clamp()
        return super().write(data)

    def _clamp(self) -> None:
        if self.socket is not None:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, self.window_bytes)


def libcurl_answer(handle: Any, url: str, body: Body) -> dict[str, Any]:
    """Perform one transfer; what curl's --write-out '%{json}' would say of it."""
    import pycurl
    handle.setopt(pycurl.URL, url)
    status, reason = 0, ""
    try:
        handle.perform()
    except pycurl.error as error:
        status, reason = error.args
    return judged({
        "connect_ms": milliseconds(handle.getinfo(pycurl.CONNECT_TIME)),
        "first_byte_ms": milliseconds(handle.getinfo(pycurl.STARTTRANSFER_TIME)),
        "total_ms": milliseconds(handle.getinfo(pycurl.TOTAL_TIME)),
        "port": handle.getinfo(pycurl.LOCAL_PORT), "exit_status": status,
        "http_status": handle.getinfo(pycurl.RESPONSE_CODE), **digest(body.take())}, reason)


# What is said of a fetch, whatever program made it -----------------------------------

def judged(answer: dict[str, Any], reason: str) -> dict[str, Any]:
    """The answer with ok and error, from curl's exit status and the HTTP status."""
    if answer["exit_status"] != 0:
        return {**answer, "ok": False,
                "error": f"curl {answer['exit_status']}: {reason or 'failed'}"}
    if answer["http_status"] != 200:
        return {**answer, "ok": False, "error": f"HTTP status {answer['http_status']}"}
    return {**answer, "ok": True, "error": ""}


def failure(reason: str) -> dict[str, Any]:
    return {"connect_ms": None, "first_byte_ms": None, "total_ms": None, "port": 0,
            "exit_status": None, "http_status": None, "size": 0, "sha256": "",
            "ok": False, "error": reason}


def taken(body: Path) -> bytes:
    """What a program wrote into a file, which is then deleted."""
    try:
        data = body.read_bytes()
        body.unlink()
    except FileNotFoundError:
        return b""
    return data


def digest(body: bytes) -> dict[str, Any]:
    return {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}


def milliseconds(seconds: float) -> float:
    """curl counts in whole microseconds: three decimals keep them all."""
    return round(float(seconds) * 1000, 3)
