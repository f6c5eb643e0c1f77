"""What a command's network really did, as findings: links, connections, flows, and what is special.

`reported` makes all of it of a capture; lab.render and drawing write it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import Any, Literal

from lab.capture.connections import NOTHING, Direction, ObservedConnection, observed
from lab.capture.conversations import Conversations, Flow, conversations, written
from lab.capture.links import LinkDirection, links, wire_bytes
from lab.capture.notes import notes
from lab.capture.pcapng import Capture
from lab.core.findings.charts import Line, LineChart, Mark, Plot, Timeline
from lab.core.findings.findings import Answer, Cell, Column, Fact, Finding, Report, Table, Tile
from lab.core.words import duration, short, span
from lab.tcp.wire.flights import acknowledged_and_offered
from net.headers import SYN

MOST_ROWS = 200  # of a table on the page; the CSV files have all
MOST_TIMELINES = 2
MOST_ALARMS = 40
MOST_LINES = 12  # of what the terminal has
MOST_CURVES = 6
NAME = "command"
_BINS = 200  # of the throughput over time
_LEAST_BIN_NS = 10_000_000
_MOST_MARKS = 400  # of a timeline: more would be one bar

_LINKS = (
    Column("from", is_text=True), Column("to", is_text=True), Column("device", is_text=True),
    Column("rate", "kbit/s", "as set"), Column("delay", "ms", "as set", 3),
    Column("jitter", "ms", "as set", 3), Column("loss", "%", "as set", 3),
    Column("queue", "", "as set", is_text=True),
    Column("highest rate", "kbit/s", "as seen", 0), Column("least delay", "ms", "as seen", 3),
    Column("longest delay", "ms", "as seen", 3), Column("most queued", "packets", "as seen", 0),
    Column("sent", "packets", "as seen", 0), Column("sent", "bytes", "as seen", 0, rank=2),
    Column("dropped by the queue", "packets", "as seen", 0),
    Column("lost at random", "packets", "as seen", 0),
    Column("since", "s", digits=3), Column("set", is_text=True, rank=3),
    Column("what differs", is_text=True))
_CONNECTIONS = (
    Column("number", digits=0), Column("begins", "s", digits=6), Column("client", is_text=True),
    Column("server", is_text=True), Column("handshake", "ms", digits=3),
    Column("takes", "s", digits=6), Column("goodput", "kbit/s", digits=0),
    Column("limited by", is_text=True), Column("retransmitted", "segments", digits=0),
    Column("why", is_text=True, rank=3), Column("data", "bytes", "to client", 0),
    Column("first flight", "segments", "to client", 0),
    Column("initial window", "segments", "to client", 0),
    Column("data", "bytes", "to server", 0), Column("first flight", "segments", "to server", 0),
    Column("initial window", "segments", "to server", 0), Column("state", is_text=True))
_FLOWS = (
    Column("flow", is_text=True), Column("from", is_text=True), Column("to", is_text=True),
    Column("sent", "packets", digits=0), Column("lost", "packets", digits=0),
    Column("sent", "bytes", digits=0), Column("least", "ms", "delay, or RTT of a ping", 3),
    Column("mean", "ms", "delay, or RTT of a ping", 3),
    Column("longest", "ms", "delay, or RTT of a ping", 3))


@dataclass(frozen=True)
class Reported:
    """The report of a capture, and two of its tables whole."""

    report: Report
    links: Table
    connections: Table


def reported(capture: Capture, facts: Mapping[str, Any], path: str, origin_ns: int,
             chosen: int = 0) -> Reported:
    """All that a capture shows.

    facts: command.json of the command; path: of its folder. origin_ns: when its clock began.
    chosen: the number of a connection whose packets are drawn; 0 for those with most data.
    """
    directions = links(capture)
    talks = conversations(capture, directions)
    connections = [connection for packets in talks.connections
                   if (connection := observed(packets))]
    excluded = {**talks.excluded, "connections that could not be followed":
                len(talks.connections) - len(connections)}
    wrong = [f"{link.name} ({link.sender}): {what}" for link in directions for what in link.wrong]
    if capture.is_full:
        wrong.insert(0, "the capture was full: what came after is not in it (--capture BYTES)")
    if capture.is_cut:
        wrong.insert(0, "the capture ends within a packet: its file was cut, or not written whole")
    if len(wrong) > MOST_ALARMS:
        wrong[MOST_ALARMS:] = [f"… and {len(wrong) - MOST_ALARMS} more, in links.csv"]
    link_table = Table("Links, both directions", _LINKS, tuple(
        _link_row(link, origin_ns) for link in directions), _link_notes(directions))
    connection_table = Table("TCP connections", _CONNECTIONS, tuple(
        _connection_row(number, connection, origin_ns)
        for number, connection in enumerate(connections, start=1)))
    command = " ".join(map(str, facts.get("command", ())))
    report = Report(
        NAME, "What the network really did", "What the network really did",
        f"./run.sh --capture -- {command}" if command else "a capture", path, dict(facts), 0, 0,
        (_links_finding(directions, link_table, origin_ns), _connections_finding(connection_table),
         _flows_finding(talks), _notes_finding(capture, directions, talks)),
        alarms=tuple(wrong), files=("links.csv", "connections.csv", "capture.pcapng"),
        timelines=_timelines(connections, chosen), wire=(
            "Packets of a connection, as the host saw them that sent most: each bar is data, from"
            " its first to its last byte, at the moment it left; the line is what the other side"
            " has acknowledged. ./run.sh --report FOLDER --connection NUMBER draws another one."),
        tiles=_tiles(directions, connections), answer=Answer(
            _sentence(directions, connections, talks), notes=tuple(wrong[:MOST_LINES]),
            table=_short_links(link_table)),
        provenance=_provenance(facts, capture, excluded))
    return Reported(report, link_table, connection_table)


# Links ----------------------------------------------------------------------------------

def _finite(number: float) -> float | None:
    return None if math.isinf(number) else number


def _link_row(link: LinkDirection, origin_ns: int) -> tuple[Cell, ...]:
    setting = link.setting
    return (link.from_node, link.to_node, link.sender, _finite(setting.rate_kbps),
            setting.delay_ms or None, setting.jitter_ms or None, setting.loss_percent or None,
            setting.queue_words, link.highest_kbps, link.least_ms, link.longest_ms,
            link.most_queued, link.sent, link.sent_bytes,
            link.queue_drops + link.managed_drops, link.random_drops,
            (link.since_ns - origin_ns) / 1e9, _settings_in_words(link, origin_ns),
            "; ".join(link.wrong))


def _settings_in_words(link: LinkDirection, origin_ns: int) -> str:
    """How a link was set, in order; what came before its first limit is left out."""
    limited = [*dropwhile(lambda setting: not setting.is_shaping, link.settings)]
    first, *later = limited or link.settings or (link.setting,)
    return "; ".join([first.words, *(
        f"from {(setting.time_ns - origin_ns) / 1e9:.3f} s: {setting.words}"
        for setting in later)])


def _link_notes(directions: Sequence[LinkDirection]) -> tuple[str, ...]:
    judged = [link for link in directions if link.judged]
    notes = ["As set: what the kernel said of the queues when the last packet had passed. As seen:"
             " by each packet; the highest rate is over a second, a delay is from coming to the"
             " queue until leaving the link. Where a link was set anew meanwhile, the row has its"
             " last setting and the delays under it, and links.csv has all settings."]
    if judged:
        notes.append(
            f"{sum(link.judged for link in judged)} packets of {len(judged)} directions were"
            " compared one by one with when their queue has to let them go, or to drop them;"
            f" the largest difference was {max(link.worst_us for link in judged):.1f} µs.")
    unjudged = sorted({link.unjudged for link in directions if link.unjudged})
    if unjudged:
        count = sum(1 for link in directions if link.unjudged)
        notes.append(f"Of {count} directions only rate, delay and losses were compared:"
                     f" {'; '.join(unjudged[:4])}.")
    return tuple(notes)


def _short_links(table: Table) -> Table:
    """What a terminal shows."""
    names = (("from", ""), ("to", ""), ("rate", "as set"), ("highest rate", "as seen"),
             ("delay", "as set"), ("least delay", "as seen"), ("most queued", "as seen"),
             ("dropped by the queue", "as seen"), ("lost at random", "as seen"))
    places = [next(place for place, column in enumerate(table.columns)
                   if (column.name, column.group) == name) for name in names]
    return replace(table, columns=tuple(table.columns[place] for place in places), notes=(),
                   rows=tuple(tuple(row[place] for place in places)
                              for row in table.rows)).first(MOST_LINES).without_empty()


def _links_finding(directions: Sequence[LinkDirection], table: Table, origin_ns: int) -> Finding:
    chart = throughput(directions, origin_ns, "Throughput by link")
    text = "; ".join(f"{link.name}: {link.sent_bytes} bytes" for link in directions[:6])
    return Finding("links", "Links", (table.without_empty().first(MOST_ROWS),), chart=chart,
                   text=f"Throughput of each link over time. {text}.",
                   missing="" if directions else "no link between two hosts or switches was made")


# Connections and flows ------------------------------------------------------------------

def _connection_row(number: int, connection: ObservedConnection, origin_ns: int
                    ) -> tuple[Cell, ...]:
    packets, main, causes = connection.packets, connection.main, connection.retransmitted
    why = "; ".join(f"{count} × {cause}" for cause, count in causes.most_common(3))
    return (number, (connection.begun_ns - origin_ns) / 1e9,
            f"{packets.client_node} {written(packets.client)}",
            f"{packets.server_node} {written(packets.server)}", connection.handshake_ms,
            (connection.ended_ns - connection.begun_ns) / 1e9, main.goodput_kbps, _limit(main),
            causes.total(), why, connection.to_client.bytes, *_flight(connection.to_client),
            connection.to_server.bytes, *_flight(connection.to_server), connection.state)


def _flight(direction: Direction) -> tuple[Cell, Cell]:
    """The first flight, and the initial window where that ended it."""
    flight = direction.first_flight
    if flight is None or not flight.bytes:
        return None, None
    return flight.segments, flight.segments if flight.at_once else None


def _limit(direction: Direction) -> str:
    name = direction.limited_by
    return f"{name} {100 * direction.shares[name]:.0f} %" if name else ""


def _connections_finding(table: Table) -> Finding:
    notes = ("First flight: the data that left before any of it was acknowledged. Where the window"
             " ended it, it is the initial window; else there was no more to send.",
             f"Limited by: what held the data back for the longest part of the time; {NOTHING}:"
             " all had been sent.")
    return Finding("connections", "TCP connections",
                   (replace(table, notes=notes).without_empty().first(MOST_ROWS),),
                   missing="" if table.rows else "there was none")


def _flows_finding(talks: Conversations) -> Finding:
    table = Table("UDP and pings", _FLOWS, tuple(map(_flow_row, talks.flows)))
    return Finding("flows", "UDP and pings", (table.without_empty().first(MOST_ROWS),),
                   missing="" if table.rows else "there was none")


def _flow_row(flow: Flow) -> tuple[Cell, ...]:
    delays = flow.delays_ms
    sender, receiver = ((flow.sender[0], flow.receiver[0]) if flow.kind == "ping" else
                        (written(flow.sender), written(flow.receiver)))
    measured = (min(delays), sum(delays) / len(delays), max(delays)) if delays else (None,) * 3
    return (flow.kind, f"{flow.from_node} {sender}", f"{flow.to_node} {receiver}",
            len(flow.sent_ns), len(flow.sent_ns) - len(delays), flow.bytes, *measured)


def _notes_finding(capture: Capture, directions: Sequence[LinkDirection], talks: Conversations
                   ) -> Finding:
    statements = tuple(notes(capture, directions, talks))
    return Finding("remarks", "What real machines would do otherwise", statements=statements,
                   missing="" if statements else "nothing special was seen")


def _timelines(connections: Sequence[ObservedConnection], chosen: int) -> tuple[Timeline, ...]:
    numbered = sorted(enumerate(connections, start=1), key=lambda pair: -pair[1].main.bytes)
    shown = [pair for pair in numbered if pair[0] == chosen or not chosen][:MOST_TIMELINES]
    return tuple(timeline(number, connection) for number, connection in shown
                 if connection.main.bytes)


def _tiles(directions: Sequence[LinkDirection], connections: Sequence[ObservedConnection]
           ) -> tuple[Tile, ...]:
    right = sum(1 for link in directions if not link.wrong)
    retransmitted = sum(connection.retransmitted.total() for connection in connections)
    return (Tile(f"{right} of {len(directions)}", "directions of links as set"),
            Tile(str(sum(link.sent for link in directions)), "packets that left a link's queue"),
            Tile(str(sum(link.drops for link in directions)), "dropped or lost"),
            Tile(str(len(connections)), "TCP connections"),
            Tile(str(retransmitted), "segments retransmitted"))


# In words -------------------------------------------------------------------------------

def _sentence(directions: Sequence[LinkDirection], connections: Sequence[ObservedConnection],
              talks: Conversations) -> str:
    if not directions:
        return "The command made no link between two hosts or switches."
    wrong = [link for link in directions if link.wrong]
    drops = sum(link.queue_drops + link.managed_drops for link in directions)
    lost = sum(link.random_drops for link in directions)
    packets = sum(link.sent for link in directions) + drops + lost
    if wrong:
        sentence = f"{len(wrong)} of {len(directions)} directions of links did not do what was set"
    elif any(link.setting.is_shaping for link in directions):
        sentence = f"All {len(directions)} directions of links did what was set"
    else:
        sentence = f"No rate, delay or loss was set on the {len(directions)} directions of links"
    sentence += (f": of {packets} packets {drops} {_were(drops)} dropped by queues and {lost}"
             f" {_were(lost)} lost at random.")
    if connections:
        limit = _limit(max((connection.main for connection in connections),
                           key=lambda main: main.bytes))
        several = len(connections) > 1
        sentence += f" {f'{len(connections)} TCP connections' if several else 'One TCP connection'}"
        sentence += (f"; {'the largest' if several else 'it'} was limited by {limit} of its time."
                     if limit else ".")
    pings = [delay for flow in talks.flows if flow.kind == "ping" for delay in flow.delays_ms]
    if pings:
        sentence += f" Pings took {span(pings, 'ms')}."
    return sentence


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _provenance(facts: Mapping[str, Any], capture: Capture, excluded: Mapping[str, int]
                ) -> tuple[Fact, ...]:
    lines = [Fact("command", " ".join(map(str, facts.get("command", ()))) or "not known"),
            Fact("kernel", f"{facts.get('kernel_origin', 'not known')}, in virtual time")]
    if isinstance(facts.get("virtual_s"), float) and isinstance(facts.get("wall_s"), float):
        lines.append(Fact("time", f"{duration(facts['virtual_s'])} of virtual time in"
                                 f" {duration(facts['wall_s'])}"))
    lines.append(Fact("packets", f"{len(capture.packets)}, each once for each device that sent it"))
    if rest := [f"{count} {name}" for name, count in sorted(excluded.items()) if count]:
        lines.append(Fact("excluded", ", ".join(rest)))
    return tuple(lines)


# Charts: throughput by link over time, and the packets of a connection ----------------

def throughput(directions: Sequence[LinkDirection], origin_ns: int, title: str) -> LineChart | None:
    """Over time, of the directions that carried most; None without any. origin_ns: time zero."""
    busiest = sorted((link for link in directions if link.sent), key=lambda link: -link.sent_bytes)
    shown = busiest[:MOST_CURVES]
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
                          tuple(total * 8e3 / bin_ns for total in sums), look=look, style="curve"))
    plot = Plot("seconds of the command's clock", "Mbit/s", tuple(lines), zero=True)
    more = len(busiest) - len(shown)
    context = f"sums of {short(bin_ns / 1e6)} ms"
    return LineChart(title, (context + (f"; the {MOST_CURVES} directions of {len(busiest)} that"
                                        " carried most" if more > 0 else ""),),
                     columns=((plot,),), legend=True)


def timeline(number: int, connection: ObservedConnection) -> Timeline:
    """The packets of a connection's main direction, as captured at the side that sent it."""
    to_client, direction, wire = connection.is_to_client, connection.main, connection.wire
    at_sender, at_receiver = ((wire.at_server, wire.at_client) if to_client else
                              (wire.at_client, wire.at_server))
    arrived = {(s.seq, s.end) for s in at_receiver if s.to_client == to_client}
    scale = next((s.scale for s in at_sender if s.flags & SYN and s.to_client != to_client), 0)
    sent = [s for s in at_sender if s.to_client == to_client and s.payload_bytes]
    if len(sent) > _MOST_MARKS:
        at_sender = at_sender[:at_sender.index(sent[_MOST_MARKS])]
    marks, highest = list[Mark](), 1
    for segment in sent[:_MOST_MARKS]:
        kind: Literal["data", "again", "lost"] = (
            "again" if segment.seq < highest else
            "data" if (segment.seq, segment.end) in arrived else "lost")
        marks.append(Mark(kind, (segment.time_ns - connection.begun_ns) / 1e6, segment.seq,
                          segment.end))
        highest = max(highest, segment.end)
    points, offered = acknowledged_and_offered(at_sender, to_client, connection.begun_ns, scale)
    last_ms = max(marks[-1].time_ms, points[-1][0] if points else 0.0)
    sender, receiver = connection.packets.client, connection.packets.server
    if to_client:
        sender, receiver = receiver, sender
    part = "" if len(marks) < _MOST_MARKS else f" (the first {_MOST_MARKS} segments)"
    return Timeline(f"{number}: {written(sender)} to {written(receiver)}{part}",
                    f"{len(marks)} packets with data,"
                    f" {direction.retransmitted.total() or 'none'} retransmitted",
                    tuple(marks), tuple(points), last_ms * 1.02, highest * 1.02, tuple(offered))
