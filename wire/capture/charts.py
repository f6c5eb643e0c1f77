"""Charts of a capture: throughput by link, the slowest link's queue and RTT, one connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy

from base.words import short
from findings.charts import Line, LineChart, Mark, Plot, Timeline
from wire.capture.connections import ObservedConnection, Seen
from wire.capture.conversations import Conversations, written
from wire.capture.links import LinkDirection, queued
from wire.capture.pcapng import Numbers

MOST_CURVES = 6
_MOST_RTTS = 3  # connections
_BINS = 200  # of what is drawn over time
_LEAST_BIN_NS = 10_000_000
_MOST_MARKS = 400  # of a timeline: more would be one bar
_LEAST_WAIT_NS = 1_000_000  # of a packet: with less nobody sees a queue


def waiting_ns(link: LinkDirection) -> Numbers:
    """How long each packet that left was in the queue beyond the delay and its own bytes."""
    wait = link.packets.time_ns - link.due_ns()[1]
    return numpy.maximum(wait[~link.packets.is_dropped], 0)


def slowest(directions: Sequence[LinkDirection]) -> LinkDirection | None:
    """The one where packets waited longest, all together; None where they did nowhere."""
    sums = [(int(waits.sum()), -place) for place, link in enumerate(directions)
            if link.receiver and link.most_queued and not link.setting.jitter_ms
            and (waits := waiting_ns(link)).max(initial=0) >= _LEAST_WAIT_NS]
    return directions[-max(sums)[1]] if sums else None


def bottleneck_chart(link: LinkDirection, connections: Mapping[int, ObservedConnection],
                     talks: Conversations, origin_ns: int) -> LineChart:
    """Its queue over time, and under it the RTT of the largest connections, and of pings.

    connections: those that pass it, by number.
    """
    times, counts = queued(link.packets)
    begin, end = int(times[0]), int(times[-1])
    bin_ns = max(_LEAST_BIN_NS, (end - begin) // _BINS + 1)
    most = numpy.zeros((end - begin) // bin_ns + 1, numpy.int64)
    # A bin has at least what was there when it began.
    last = numpy.searchsorted(times, begin + numpy.arange(len(most)) * bin_ns, "right") - 1
    most = numpy.maximum(most, counts[last])
    numpy.maximum.at(most, (times - begin) // bin_ns, counts)
    middles = (begin - origin_ns + (numpy.arange(len(most)) + 0.5) * bin_ns) / 1e9
    queue = Line("", tuple(middles.tolist()), tuple(map(float, most)), look=1, style="curve")
    rtts = list[Line]()
    largest = sorted(connections.items(), key=lambda pair: -pair[1].main.bytes)
    for number, connection in largest[:_MOST_RTTS]:
        seen = connection.at_server if connection.is_to_client else connection.at_client
        rtts.append(_means(f"TCP connection {number}", *_rtts(seen), bin_ns, origin_ns, len(rtts)))
    pings = sorted((flow for flow in talks.flows if flow.kind == "ping" and flow.delays_ms),
                   key=lambda flow: -len(flow.delays_ms))[:1]
    rtts += [_means(f"ping from {flow.from_node}", numpy.array(flow.sent_ns),
                    numpy.array(flow.delays_ms), bin_ns, origin_ns, len(rtts)) for flow in pings]
    x_ends = float(middles[0]), float(max(middles[-1], middles[0] + bin_ns / 1e9))
    plots = [Plot("seconds of the command's clock", "packets queued", (queue,), x_ends=x_ends,
                  title=f"{link.name} ({link.sender})")]
    if rtts := [line for line in rtts if line.x]:
        plots.append(Plot("seconds of the command's clock", "RTT (ms)", tuple(rtts), x_ends=x_ends,
                          legend=True))
    limit = link.setting.queue_words
    return LineChart("The slowest link: its queue and round-trip times",
                     (f"most in {short(bin_ns / 1e6)} ms, with those that propagate"
                      f"{f'; it holds {limit}' if limit else ''}; RTT: means",),
                     columns=(tuple(plots),))


def _rtts(seen: Seen) -> tuple[Numbers, Numbers]:
    """When segments left, and ms until they were acknowledged; none that waited for another one."""
    data = numpy.flatnonzero(seen.own & (seen.payload_bytes > 0))
    highest = numpy.maximum.accumulate(numpy.insert(seen.end[data], 0, 1))[:-1]
    is_fresh = seen.seq[data] >= highest
    again, data = data[~is_fresh], data[is_fresh]
    acks = numpy.flatnonzero(~seen.own & (seen.ack >= 0))
    place = numpy.searchsorted(numpy.maximum.accumulate(seen.ack[acks]), seen.end[data])
    data, acked = data[place < len(acks)], acks[place[place < len(acks)]]
    alone = numpy.searchsorted(again, data) == numpy.searchsorted(again, acked)
    data, acked = data[alone], acked[alone]
    return seen.time_ns[data], (seen.time_ns[acked] - seen.time_ns[data]) / 1e6


def _means(name: str, times: Numbers, values: Numbers, bin_ns: int, origin_ns: int, look: int
           ) -> Line:
    if not len(times):
        return Line(name, (), ())
    bins, place = numpy.unique((times - origin_ns) // bin_ns, return_inverse=True)
    means = numpy.bincount(place, values) / numpy.bincount(place)
    return Line(name, tuple(((bins + 0.5) * bin_ns / 1e9).tolist()), tuple(means.tolist()),
                look=look, style="curve")


def throughput(directions: Sequence[LinkDirection], origin_ns: int, title: str) -> LineChart | None:
    """Over time, of the directions that carried most and the slowest; None without any.

    origin_ns: time zero.
    """
    first = slowest(directions)
    busiest = sorted((link for link in directions if link.sent and link.receiver),
                     key=lambda link: (link is not first, -link.sent_bytes))
    shown = busiest[:MOST_CURVES]
    if not shown:
        return None
    begin = min(int(link.packets.time_ns[0]) for link in shown)
    end = max(int(link.packets.time_ns[-1]) for link in shown)
    bin_ns = max(_LEAST_BIN_NS, (end - begin) // _BINS + 1)
    count = (end - begin) // bin_ns + 1
    names = Counter(link.name for link in directions)
    lines = []
    for look, link in enumerate(shown):
        sent = ~link.packets.is_dropped
        sums = numpy.bincount((link.packets.time_ns[sent] - begin) // bin_ns,
                              link.wire_bytes[sent], minlength=count)
        name = link.name if names[link.name] == 1 else f"{link.name} ({link.sender})"
        lines.append(Line(name, tuple(
            ((begin - origin_ns + (numpy.arange(count) + 0.5) * bin_ns) / 1e9).tolist()),
            tuple((sums * 8e3 / bin_ns).tolist()), look=look, style="curve"))
    plot = Plot("seconds of the command's clock", "Mbit/s", tuple(lines), zero=True)
    more = len(busiest) - len(shown)
    context = f"sums of {short(bin_ns / 1e6)} ms; the table has the highest rate of a second"
    return LineChart(title, (context + (f"; the slowest and those that carried most of"
                                        f" {len(busiest)} directions" if more > 0 else ""),),
                     columns=((plot,),), legend=True)


def timeline(number: int, connection: ObservedConnection) -> Timeline:
    """The packets of a connection's main direction, as captured at the side that sent it."""
    to_client, direction = connection.is_to_client, connection.main
    seen, other = ((connection.at_server, connection.at_client) if to_client else
                   (connection.at_client, connection.at_server))
    came = ~other.own
    arrived = set(zip(other.seq[came].tolist(), other.end[came].tolist()))
    data = numpy.flatnonzero(seen.own & (seen.payload_bytes > 0))
    until = int(data[_MOST_MARKS]) if len(data) > _MOST_MARKS else len(seen.own)
    marks, highest = list[Mark](), 1
    for place in data[:_MOST_MARKS].tolist():
        begin, end = int(seen.seq[place]), int(seen.end[place])
        kind: Literal["data", "again", "lost"] = (
            "again" if begin < highest else "data" if (begin, end) in arrived else "lost")
        marks.append(Mark(kind, (int(seen.time_ns[place]) - connection.begun_ns) / 1e6, begin, end))
        highest = max(highest, end)
    points, offered, acknowledged = list[tuple[float, float]](), list[tuple[float, float]](), 1
    for place in numpy.flatnonzero(~seen.own[:until]).tolist():
        if seen.ack[place] >= acknowledged:
            acknowledged = int(seen.ack[place])
            ms = (int(seen.time_ns[place]) - connection.begun_ns) / 1e6
            points.append((ms, acknowledged))
            offered.append((ms, acknowledged + int(seen.window[place])))
    last_ms = max(marks[-1].time_ms, points[-1][0] if points else 0.0)
    sender, receiver = connection.ends.client, connection.ends.server
    if to_client:
        sender, receiver = receiver, sender
    part = "" if len(marks) < _MOST_MARKS else f" (the first {_MOST_MARKS} segments)"
    return Timeline(f"{number}: {written(sender)} to {written(receiver)}{part}",
                    f"{len(marks)} packets with data,"
                    f" {direction.retransmitted.total() or 'none'} retransmitted",
                    tuple(marks), tuple(points), last_ms * 1.02, highest * 1.02, tuple(offered))
