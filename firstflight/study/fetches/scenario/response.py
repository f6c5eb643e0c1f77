"""The response of a trial: who fetches what, and in which writes the server sends it."""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.base.words import format_lossless
from firstflight.parameters import default


@dataclass(frozen=True, kw_only=True)
class ResponseParameters:
    """What the client fetches, and how the server writes it.

    response_bytes: size of the body; headers come on top.
    burst_bytes, gap_ms: a response in two stages: headers and this much of the
        body at once, the rest after the back-end's time; gap_ms 0 for one write.
    earlier_bytes: body of a response fetched before on the same connection;
        0 for a connection of its own. kept: so many responses like the one that
        counts, in its place; idle_ms: the client's pause after them.

    What published set-ups did otherwise:

    head: the sizes of the headers' writes, "17+38+2"; nagle: "on" or "off".
    framing: "close" where the connection's end is the body's.
    """

    client: str
    response_bytes: int
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
        """The bodies that are fetched first on the same connection, in bytes."""
        return (self.earlier_bytes,) if self.earlier_bytes else (self.response_bytes,) * self.kept

    @property
    def writes(self) -> tuple[int, ...]:
        """The sizes of the headers' writes, () where they leave with the body."""
        return tuple(map(int, filter(None, self.head.split("+"))))

    @property
    def write_options(self) -> list[str]:
        """How all its responses are written, for the query of a path (server.py)."""
        return [*([f"head={','.join(map(str, self.writes))}"] if self.head else []),
                *(["nagle=1"] if self.nagle == "on" else []),
                *(["until_close=1"] if self.framing == "close" else [])]

    @property
    def stages(self) -> list[str]:
        """The two stages of the response that counts, likewise; [] for one write."""
        if not self.gap_ms:
            return []
        return [f"burst={self.burst_bytes}&gap_ms={format_lossless(self.gap_ms)}"]


def segments_at_once(writes: tuple[int, ...], total_bytes: int, mss: int, nagle: bool,
                     receive_bytes: int) -> int:
    """Segments that a response in several writes is at first, as far as the client has room.

    With Nagle's algorithm the first partial segment leaves, and what is written
    behind it waits until it fills segments (tcp_minshall_check); the last one goes
    with the FIN. Without it each write of the headers is a segment.
    """
    alone = writes[:1] if nagle else writes
    rest = total_bytes - sum(alone)
    ends: list[int] = []
    for size in (*alone, *([mss] * (rest // mss)), *([rest % mss] if rest % mss else [])):
        ends.append((ends[-1] if ends else 0) + size)
    return sum(end <= receive_bytes for end in ends)
