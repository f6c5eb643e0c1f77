"""Pictures of a capture: throughput by link over time, and the packets of a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lab.capture.connections import Direction, Observed
from lab.capture.exchanges import written
from lab.capture.links import Link, wire_bytes
from lab.core.findings.charts import Line, LineChart, Mark, Plot, Timeline
from lab.core.words import short
from lab.tcp.packets import SYN

MOST_LINES = 6
_BINS = 200
_LEAST_BIN_NS = 10_000_000
_MOST_MARKS = 400  # of a timeline: more would be one bar


def throughput(found: Sequence[Link], origin_ns: int, title: str) -> LineChart | None:
    """Of the directions that carried most; None where nothing did. origin_ns: where time begins."""
    busiest = sorted((link for link in found if link.sent), key=lambda link: -link.sent_bytes)
    shown = busiest[:MOST_LINES]
    if not shown:
        return None
    times = [packet.time_ns for link in shown for packet in link.packets]
    begin, end = min(times), max(times)
    bin_ns = max(_LEAST_BIN_NS, (end - begin) // _BINS + 1)
    count = (end - begin) // bin_ns + 1
    lines = []
    for look, link in enumerate(shown):
        sums = [0] * count
        for packet in link.packets:
            if not packet.reason:
                sums[(packet.time_ns - begin) // bin_ns] += wire_bytes(packet)
        lines.append(Line(link.name, tuple((begin - origin_ns + (place + 0.5) * bin_ns) / 1e9
                                           for place in range(count)),
                          tuple(each * 8e3 / bin_ns for each in sums), look=look, style="curve"))
    plot = Plot("seconds of the command's clock", "Mbit/s", tuple(lines), zero=True)
    more = len(busiest) - len(shown)
    context = f"sums of {short(bin_ns / 1e6)} ms"
    return LineChart(title, (context + (f"; the {MOST_LINES} directions of {len(busiest)} that"
                                        " carried most" if more > 0 else ""),),
                     columns=((plot,),), legend=True)


def main_direction(seen: Observed) -> tuple[bool, Direction]:
    """Where most data went, True for to the client, and what was seen of it."""
    to_client = seen.to_client.bytes >= seen.to_server.bytes
    return to_client, seen.to_client if to_client else seen.to_server


def timeline(number: int, seen: Observed) -> Timeline | None:
    """The packets of a connection as the side saw them that sent most; None without data."""
    to_client, direction = main_direction(seen)
    if seen.wire is None or not direction.bytes:
        return None
    at_sender = seen.wire.at_server if to_client else seen.wire.at_client
    arrived = {(s.seq, s.end) for s in (seen.wire.at_client if to_client else
                                        seen.wire.at_server) if s.to_client == to_client}
    scale = next((s.scale for s in at_sender if s.flags & SYN and s.to_client != to_client), 0)
    marks: list[Mark] = []
    points: list[tuple[float, float]] = []
    offered: list[tuple[float, float]] = []
    highest = acknowledged = 1
    for segment in at_sender:
        ms = (segment.time_ns - seen.begun_ns) / 1e6
        if segment.to_client == to_client and segment.payload_bytes:
            if len(marks) == _MOST_MARKS:
                break
            kind: Literal["data", "again", "lost"] = (
                "again" if segment.seq < highest else
                "data" if (segment.seq, segment.end) in arrived else "lost")
            marks.append(Mark(kind, ms, segment.seq, segment.end))
            highest = max(highest, segment.end)
        elif segment.to_client != to_client and segment.ack is not None \
                and segment.ack >= acknowledged:
            acknowledged = segment.ack
            points.append((ms, acknowledged))
            offered.append((ms, acknowledged + (segment.window << scale)))
    last_ms = max(marks[-1].time_ms, points[-1][0] if points else 0.0)
    sender, receiver = seen.packets.client, seen.packets.server
    if to_client:
        sender, receiver = receiver, sender
    whole = "" if len(marks) < _MOST_MARKS else f" (the first {_MOST_MARKS} segments)"
    words = f"{sum(direction.again.values())} retransmitted" if direction.again else \
        "none retransmitted"
    return Timeline(f"{number}: {written(sender)} to {written(receiver)}{whole}",
                    f"{len(marks)} packets with data, {words}", tuple(marks), tuple(points),
                    last_ms * 1.02, highest * 1.02, tuple(offered))

