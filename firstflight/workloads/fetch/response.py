"""The response of a trial: what the client fetches, and in which writes the server sends it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from firstflight.base.quantity import OWN_WINDOW
from firstflight.base.words import format_lossless
from firstflight.parameters import default


@dataclass(frozen=True, kw_only=True)
class ResponseParameters:
    """What the client fetches, and how the server writes it.

    response_bytes: size of the body, without headers.
    request_bytes: size of the body of each request, 0 for a request without one.
    client_initcwnd: the client's initial window in segments, 0 for the kernel's own.
    burst_bytes, gap_ms: a response in two stages: the headers and this much of the body at once,
        the rest after the back-end's time. 0 for one write.
    earlier_bytes: body of a response fetched before on the same connection; 0 for a new
        connection.
    kept: how many responses of the same size were fetched before, instead of that one.
    idle_ms: the client's pause after them.

    Three parameters in which published set-ups differ:

    head: sizes of the writes of the headers, such as "17+38+2".
    nagle: "on" or "off".
    framing: "close" where the end of the connection ends the body.
    """

    client: str
    response_bytes: int
    request_bytes: int = default("request_bytes")
    client_initcwnd: int = default("client_initcwnd")
    burst_bytes: int = 0
    gap_ms: float = default("gap_ms")
    earlier_bytes: int = 0
    kept: int = default("kept")
    idle_ms: float = default("idle_ms")
    head: str = default("head")
    nagle: str = default("nagle")
    framing: str = default("framing")

    @property
    def before(self) -> tuple[int, ...]:
        """Sizes in bytes of the bodies fetched before on the same connection."""
        if self.earlier_bytes:
            return (self.earlier_bytes,)
        return (self.response_bytes,) * self.kept

    @property
    def uploading_window(self) -> int:
        """The window with which the client begins, in segments."""
        return self.client_initcwnd or OWN_WINDOW

    @property
    def writes(self) -> tuple[int, ...]:
        """Sizes in bytes of the writes of the headers; () where the body's write has them."""
        return tuple(map(int, filter(None, self.head.split("+"))))

    @property
    def write_options(self) -> list[str]:
        """How all responses are written, as parts of a query for server.py."""
        options = []
        if self.head:
            options.append(f"head={','.join(map(str, self.writes))}")
        if self.nagle == "on":
            options.append("nagle=1")
        if self.framing == "close":
            options.append("until_close=1")
        return options

    @property
    def stages(self) -> list[str]:
        """The two stages of the response, as parts of a query; [] for one write."""
        if not self.gap_ms:
            return []
        return [f"burst={self.burst_bytes}&gap_ms={format_lossless(self.gap_ms)}"]


def segments_at_once(writes: tuple[int, ...], total_bytes: int, mss: int, nagle: bool,
                     receive_bytes: int) -> int:
    """How many segments of a response can leave before any acknowledgement.

    Without Nagle's algorithm each write of the headers is a segment. With it, the first partial
    segment leaves, and later data waits until it fills segments (tcp_minshall_check). The last
    segment leaves with the FIN.

    writes: the sizes of the headers' writes, which come before the body. total_bytes: headers and
    body. receive_bytes: what the client has room for.
    """
    of_headers = writes[:1] if nagle else writes
    rest = total_bytes - sum(of_headers)
    sizes = [*of_headers, *([mss] * (rest // mss))]
    if rest % mss:
        sizes.append(rest % mss)
    return sum(end <= receive_bytes for end in accumulate(sizes))
