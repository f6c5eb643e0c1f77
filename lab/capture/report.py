"""What a command's network really did, as findings: links, connections, flows, and what is special.

`report` makes all of it of a capture; lab.render and drawing write it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.capture.charts import main_direction, throughput, timeline
from lab.capture.connections import NOTHING, Direction, Observed, observed
from lab.capture.exchanges import Exchanges, Flow, exchanges, written
from lab.capture.links import Link, links
from lab.capture.pcapng import Capture
from lab.capture.remarks import remarks
from lab.core.findings.findings import Answer, Cell, Column, Fact, Finding, Report, Table, Tile
from lab.core.results.records import to_text
from lab.core.words import duration, span

MOST_ROWS = 200  # of a table on the page; the CSV files have all
MOST_TIMELINES = 2
MOST_ALARMS = 40
MOST_LINES = 12  # of what the terminal has
NAME = "command"

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
    """The report of a capture, and its two tables whole, as CSV."""

    report: Report
    links_csv: str
    connections_csv: str


def reported(capture: Capture, facts: Mapping[str, Any], path: str, origin_ns: int,
             chosen: int = 0) -> Reported:
    """All that a capture says.

    facts: command.json of the command; path: of its folder. origin_ns: when its clock began.
    chosen: the number of a connection whose packets are drawn; 0 for those with most data.
    """
    found = links(capture)
    talked = exchanges(capture, found)
    seen = [each for packets in talked.connections if (each := observed(packets))]
    left_out = talked.left_out + type(talked.left_out)(
        {"connections that could not be followed": len(talked.connections) - len(seen)})
    wrong = [f"{link.name} ({link.sender}): {what}" for link in found for what in link.wrong]
    if capture.is_full:
        wrong.insert(0, "the capture was full: what came after is not in it (--capture BYTES)")
    if len(wrong) > MOST_ALARMS:
        wrong[MOST_ALARMS:] = [f"… and {len(wrong) - MOST_ALARMS} more, in links.csv"]
    link_table = Table("Links, both directions", _LINKS, tuple(
        _link_row(link, origin_ns) for link in found), _link_notes(found))
    connection_table = Table("TCP connections", _CONNECTIONS, tuple(
        _connection_row(number, each, origin_ns) for number, each in enumerate(seen, start=1)))
    command = " ".join(map(str, facts.get("command", ())))
    report = Report(
        NAME, "What the network really did", "What the network really did",
        f"./run.sh --capture -- {command}" if command else "a capture", path, dict(facts), 0, 0,
        (_links_finding(found, link_table, origin_ns), _connections_finding(connection_table),
         _flows_finding(talked), _remarks_finding(capture, found, talked)),
        alarms=tuple(wrong), files=("links.csv", "connections.csv", "capture.pcapng"),
        timelines=_timelines(seen, chosen), wire=(
            "Packets of a connection, as the host saw them that sent most: each bar is data, from"
            " its first to its last byte, at the moment it left; the line is what the other side"
            " has acknowledged. ./run.sh --report FOLDER --connection NUMBER draws another one."),
        tiles=_tiles(found, seen), answer=Answer(
            _sentence(found, seen, talked), notes=tuple(wrong[:MOST_LINES]),
            table=_short_links(link_table)),
        provenance=_provenance(facts, capture, left_out))
    return Reported(report, csv_of(link_table), csv_of(connection_table))


# Links ----------------------------------------------------------------------------------

def _finite(number: float) -> float | None:
    return None if math.isinf(number) else number


def _link_row(link: Link, origin_ns: int) -> tuple[Cell, ...]:
    setting = link.setting
    return (link.from_node, link.to_node, link.sender, _finite(setting.rate_kbps),
            setting.delay_ms or None, setting.jitter_ms or None, setting.loss_percent or None,
            setting.queue_words, link.highest_kbps, link.least_ms if link.sent else None,
            link.longest_ms if link.sent else None, link.most_queued, link.sent, link.sent_bytes,
            link.queue_drops + link.managed_drops, link.random_drops,
            (link.since_ns - origin_ns) / 1e9, setting.words, "; ".join(link.wrong))


def _link_notes(found: Sequence[Link]) -> tuple[str, ...]:
    judged = [link for link in found if link.judged]
    notes = ["As set: what the kernel said of the queues when the last packet had passed. As seen:"
             " by each packet; the highest rate is over a second, a delay is from coming to the"
             " queue until leaving the link."]
    if judged:
        notes.append(
            f"{sum(link.judged for link in judged)} packets of {len(judged)} directions were"
            " compared one by one with when their queue has to let them go, or to drop them;"
            f" the largest difference was {max(link.worst_us for link in judged):.1f} µs.")
    unjudged = sorted({link.unjudged for link in found if link.unjudged})
    if unjudged:
        count = sum(1 for link in found if link.unjudged)
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


def _links_finding(found: Sequence[Link], table: Table, origin_ns: int) -> Finding:
    chart = throughput(found, origin_ns, "Throughput by link")
    text = "; ".join(f"{link.name}: {link.sent_bytes} bytes" for link in found[:6])
    return Finding("links", "Links", (table.without_empty().first(MOST_ROWS),), chart=chart,
                   text=f"Throughput of each link over time. {text}.",
                   missing="" if found else "no link between two hosts or switches was made")


# Connections and flows ------------------------------------------------------------------

def _connection_row(number: int, seen: Observed, origin_ns: int) -> tuple[Cell, ...]:
    packets, (_, main) = seen.packets, main_direction(seen)
    again = seen.to_client.again + seen.to_server.again
    why = "; ".join(f"{count} × {cause}" for cause, count in again.most_common(3))
    return (number, (seen.begun_ns - origin_ns) / 1e9,
            f"{packets.client_node} {written(packets.client)}",
            f"{packets.server_node} {written(packets.server)}", seen.handshake_ms,
            (seen.ended_ns - seen.begun_ns) / 1e9, main.goodput_kbps, _limit(main),
            sum(again.values()), why, seen.to_client.bytes, *_flight(seen.to_client),
            seen.to_server.bytes, *_flight(seen.to_server), seen.state)


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


def _flows_finding(talked: Exchanges) -> Finding:
    table = Table("UDP and pings", _FLOWS, tuple(map(_flow_row, talked.flows)))
    return Finding("flows", "UDP and pings", (table.without_empty().first(MOST_ROWS),),
                   missing="" if table.rows else "there was none")


def _flow_row(flow: Flow) -> tuple[Cell, ...]:
    delays = flow.delays_ms
    sender, receiver = ((flow.sender[0], flow.receiver[0]) if flow.what == "ping" else
                        (written(flow.sender), written(flow.receiver)))
    measured = (min(delays), sum(delays) / len(delays), max(delays)) if delays else (None,) * 3
    return (flow.what, f"{flow.from_node} {sender}", f"{flow.to_node} {receiver}",
            len(flow.sent_ns), len(flow.sent_ns) - len(delays), flow.bytes, *measured)


def _remarks_finding(capture: Capture, found: Sequence[Link], talked: Exchanges) -> Finding:
    statements = tuple(remarks(capture, found, talked))
    return Finding("remarks", "What real machines would do otherwise", statements=statements,
                   missing="" if statements else "nothing special was seen")


def _timelines(seen: Sequence[Observed], chosen: int) -> tuple[Any, ...]:
    numbered = list(enumerate(seen, start=1))
    if chosen:
        shown = [each for each in numbered if each[0] == chosen]
    else:
        shown = sorted(numbered, key=lambda each: -main_direction(each[1])[1].bytes)
    made = (timeline(*each) for each in shown[:MOST_TIMELINES])
    return tuple(each for each in made if each)


def _tiles(found: Sequence[Link], seen: Sequence[Observed]) -> tuple[Tile, ...]:
    right = sum(1 for link in found if not link.wrong)
    again = sum(sum((each.to_client.again + each.to_server.again).values()) for each in seen)
    return (Tile(f"{right} of {len(found)}", "directions of links as set"),
            Tile(str(sum(link.sent for link in found)), "packets that left a link's queue"),
            Tile(str(sum(link.drops for link in found)), "dropped or lost"),
            Tile(str(len(seen)), "TCP connections"),
            Tile(str(again), "segments retransmitted"))


# In words -------------------------------------------------------------------------------

def _sentence(found: Sequence[Link], seen: Sequence[Observed], talked: Exchanges) -> str:
    if not found:
        return "The command made no link between two hosts or switches."
    wrong = [link for link in found if link.wrong]
    drops, lost = (sum(getattr(link, name) for link in found)
                   for name in ("queue_drops", "random_drops"))
    drops += sum(link.managed_drops for link in found)
    packets = sum(link.sent for link in found) + drops + lost
    if wrong:
        said = f"{len(wrong)} of {len(found)} directions of links did not do what was set"
    elif any(link.setting.is_shaping for link in found):
        said = f"All {len(found)} directions of links did what was set"
    else:
        said = f"No rate, delay or loss was set on the {len(found)} directions of links"
    said += (f": of {packets} packets {drops} {_were(drops)} dropped by queues and {lost}"
             f" {_were(lost)} lost at random.")
    if seen:
        longest = max(seen, key=lambda each: main_direction(each)[1].bytes)
        limit = _limit(main_direction(longest)[1])
        many = f"{len(seen)} TCP connections" if len(seen) > 1 else "One TCP connection"
        said += f" {many}" + (
            f"; {'the largest' if len(seen) > 1 else 'it'} was limited by {limit}"
            " of its time." if limit else ".")
    pings = [delay for flow in talked.flows if flow.what == "ping" for delay in flow.delays_ms]
    if pings:
        said += f" Pings took {span(pings, 'ms')}."
    return said


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _provenance(facts: Mapping[str, Any], capture: Capture, left_out: Mapping[str, int]
                ) -> tuple[Fact, ...]:
    told = [Fact("command", " ".join(map(str, facts.get("command", ()))) or "not known"),
            Fact("kernel", f"{facts.get('kernel_origin', 'not known')}, in virtual time")]
    if isinstance(facts.get("virtual_s"), float) and isinstance(facts.get("wall_s"), float):
        told.append(Fact("time", f"{duration(facts['virtual_s'])} of its clock in"
                                 f" {duration(facts['wall_s'])}"))
    told.append(Fact("packets", f"{len(capture.packets)}, each once for each device that sent it"))
    if rest := [f"{count} {name}" for name, count in sorted(left_out.items()) if count]:
        told.append(Fact("left out", ", ".join(rest)))
    return tuple(told)


def csv_of(table: Table) -> str:
    """A whole table; a column's name is followed by its unit."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow("_".join(filter(None, (
        column.name.replace(" ", "_"), {"%": "percent"}.get(column.unit, column.unit.replace(
            "kbit/s", "kbps")), column.group.replace(" ", "_") if column.group != "as seen" else ""
    ))) for column in table.columns)
    for row in table.rows:
        writer.writerow(to_text(cell) if isinstance(cell, str) else
                        "" if cell is None else f"{cell:.12g}" if isinstance(cell, float) else cell
                        for cell in row)
    return text.getvalue()
