"""The report of a capture as findings: links, connections, flows and drops.

`report_capture` makes them; findings.render and findings.drawing write them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise

from firstflight.base.words import format_duration, format_range
from firstflight.findings.findings import (Answer, Cell, Column, Fact, Finding, Report, Statement,
                                           Table)
from firstflight.wire.capture.calls import read_calls
from firstflight.wire.capture.commands import lines_about_commands
from firstflight.wire.capture.connections import (NOT_ANSWERED, REFUSED, RESET, Direction,
                                                  ObservedConnection, observe_connections)
from firstflight.wire.capture.conversations import (Conversations, Flow, find_conversations,
                                                    format_end)
from firstflight.wire.capture.fields import read_headers
from firstflight.wire.capture.direction import LinkDirection
from firstflight.wire.capture.ignored import lines_about_links
from firstflight.wire.capture.links import observe_links
from firstflight.wire.capture.misplaced import WITHOUT_UNIT
from firstflight.wire.capture.spaces import NamespaceNames
from firstflight.wire.capture.drops import LOSSES, drop_statements
from firstflight.wire.capture.pcapng import MOST_BLOCKS, Capture

MOST_ROWS = 12  # of a table on the page, which then fits on two screens; the CSV files have all
MOST_ALARMS = 10
# Reasons for drops on arrival that somebody has to configure.
_SET_ON_ARRIVAL = ("TC_INGRESS", "NETFILTER_DROP", "OVS_DROP_METER")
MOST_LINES = 12  # of the answer on the terminal
NAME = "command"

_LINKS = (
    Column("what differs", is_text=True),
    Column("from", is_text=True), Column("to", is_text=True), Column("device", is_text=True),
    Column("rate", "kbit/s", "as set"), Column("delay", "ms", "as set", 3),
    Column("jitter", "ms", "as set", 3), Column("loss", "%", "as set", 3),
    Column("queue", "", "as set", is_text=True),
    Column("highest rate", "kbit/s", "as seen", 0), Column("least delay", "ms", "as seen", 3),
    Column("most queued", "packets", "as seen", 0),
    Column("dropped by the queue", "packets", "as seen", 0),
    Column("lost at random", "packets", "as seen", 0), Column("longest delay", "ms", "as seen", 3),
    Column("sent", "packets", "as seen", 0), Column("sent", "bytes", "as seen", 0, rank=2),
    Column("since", "s", digits=3), Column("set", is_text=True, rank=3))
_ON_THE_PAGE = (  # the columns of links that fit on 1280 pixels
    "what differs", "from", "to", "device", "rate", "delay", "loss", "queue", "highest rate",
    "least delay", "longest delay", "most queued", "dropped by the queue", "lost at random")
_CONNECTIONS = (
    Column("number", digits=0), Column("client", is_text=True), Column("server", is_text=True),
    Column("state", is_text=True),
    Column("retransmitted", "segments", digits=0), Column("why", is_text=True, rank=3),
    Column("initial window", "segments", "to client", 0),
    Column("initial window", "segments", "to server", 0),
    Column("goodput", "kbit/s", digits=0), Column("handshake", "ms", digits=3),
    Column("data", "bytes", "to client", 0), Column("first flight", "segments", "to client", 0),
    Column("data", "bytes", "to server", 0), Column("first flight", "segments", "to server", 0),
    Column("begins", "s", digits=6), Column("takes", "s", digits=6))
_OF_CONNECTIONS = ("number", "client", "server", "state", "retransmitted", "why", "initial window",
                   "first flight", "data")  # on the page; Wireshark shows the rest
_SMALL = 0.01  # where connections are many, one with less of the largest one's data only counts
_FLOWS = (
    Column("flow", is_text=True), Column("from", is_text=True), Column("to", is_text=True),
    Column("sent", "packets", digits=0), Column("lost", "packets", digits=0),
    Column("sent", "bytes", digits=0), Column("least", "ms", "delay, or RTT of a ping", 3),
    Column("mean", "ms", "delay, or RTT of a ping", 3),
    Column("longest", "ms", "delay, or RTT of a ping", 3))


@dataclass(frozen=True)
class CaptureReport:
    """The report of a capture, and two tables of it in full."""

    report: Report
    links: Table
    connections: Table


def report_capture(capture: Capture, facts: Mapping[str, object], path: str, origin_ns: int,
                   proceed: Callable[[str], None] = lambda what: None) -> CaptureReport:
    """The report of a capture.

    facts: the command's command.json. path: of its folder. origin_ns: when its clock began.
    proceed: called with texts about the progress.
    """
    spaces = NamespaceNames(_list_of(facts, "namespaces"))
    capture.calls = read_calls(_list_of(facts, "calls"), _list_of(facts, "command"))
    fields = read_headers(capture)
    directions = observe_links(capture, fields, spaces, proceed)

    conversations = find_conversations(capture, fields, directions)
    proceed(f"{len(conversations.connections)} TCP connections")
    connections = _follow_connections(capture, conversations, directions)
    unfollowed = len(conversations.connections) - len(connections)
    excluded = {**conversations.excluded, "connections that could not be followed": unfollowed}

    link_rows = tuple(_link_row(link, origin_ns) for link in directions)
    link_table = Table("Links", _LINKS, link_rows, _link_notes(directions), wraps=True)
    connection_rows = tuple(_connection_row(number, connection, origin_ns)
                            for number, connection in enumerate(connections, start=1))
    connection_table = Table("TCP connections", _CONNECTIONS, connection_rows, _CONNECTION_NOTES,
                             wraps=True)

    wrong = _alarms(capture, directions, spaces)
    command = " ".join(_list_of(facts, "command"))
    report = Report(
        NAME, "What the network really did", "What the network really did",
        source=f"./run.sh --capture -- {command}" if command else "a capture", path=path,
        facts=dict(facts), verified=0, count=0,
        findings=(_links_finding(link_table), *_connections_finding(connection_table, connections),
                  *_flows_finding(conversations), *_drops_finding(capture, directions, spaces)),
        alarms=tuple(wrong), files=("links.csv", "connections.csv", "capture.pcapng"),
        answer=Answer(_sentence(directions, connections, conversations),
                      notes=tuple(wrong[:MOST_LINES]), table=_short_links(link_table)),
        provenance=_provenance(facts, capture, excluded))
    return CaptureReport(report, link_table, connection_table)


def observed_connections(capture: Capture, facts: Mapping[str, object]
                         ) -> list[ObservedConnection]:
    """The TCP connections of a capture only. facts: the command's command.json."""
    fields = read_headers(capture)
    directions = observe_links(capture, fields, NamespaceNames(_list_of(facts, "namespaces")))
    return _follow_connections(capture, find_conversations(capture, fields, directions), directions)


def _follow_connections(capture: Capture, conversations: Conversations,
                        directions: Sequence[LinkDirection]) -> list[ObservedConnection]:
    """The connections of which at least one host is known."""
    if conversations.tcp is None:
        return []
    followed = observe_connections(conversations.connections, conversations.tcp, directions,
                                   capture.data)
    return [connection for connection in followed if connection]


def _list_of(facts: Mapping[str, object], name: str) -> list[str]:
    """A list in command.json; [] if it has none."""
    words = facts.get(name, ())
    return [*map(str, words)] if isinstance(words, Iterable) else []


def _alarms(capture: Capture, directions: Sequence[LinkDirection], spaces: NamespaceNames
            ) -> list[str]:
    """What a reader must not miss, the most important first."""
    wrong = [f"{link.name} ({link.sender}): {what}" for link in directions for what in link.wrong]
    wrong += [f"{link.name} ({link.sender}): {what}" for link in directions for what in link.advice]
    wrong[:0] = [*lines_about_links(capture.calls), *lines_about_commands(capture, spaces)]

    short = [link for link in directions if link.short_delays]
    if short:
        number, unit = min(short[0].short_delays)
        places = ", ".join(f"{link.name} ({link.sender})" for link in short[:3])
        wrong.insert(0, f"{places}{f' and {len(short) - 3} more' if len(short) > 3 else ''}: delay"
                        f" {number} {unit}; did you mean {number} ms? Without a unit tc takes"
                        f" {WITHOUT_UNIT[unit]}")

    if capture.is_full:
        wrong.insert(0, "the capture was full: what came after is not in it (--capture BYTES)")
    if capture.unread:
        wrong.insert(0, f"{capture.unread} settings of queues and commands are not read: there are"
                        f" more than {MOST_BLOCKS}")
    if capture.is_cut:
        wrong.insert(0, "the capture ends within a packet: its file was cut, or not written whole")

    if len(wrong) > MOST_ALARMS:
        wrong[MOST_ALARMS:] = [f"… and {len(wrong) - MOST_ALARMS} more, in links.csv"]
    return wrong


# Links ----------------------------------------------------------------------------------

def _link_row(link: LinkDirection, origin_ns: int) -> tuple[Cell, ...]:
    setting = link.setting
    return ("; ".join(link.wrong), link.from_node, link.to_node, link.sender,
            None if math.isinf(setting.rate_kbps) else setting.rate_kbps,
            setting.delay_ms or None, setting.jitter_ms or None,
            setting.loss_percent or None,
            setting.queue_words, link.highest_kbps, link.least_ms, link.most_queued,
            link.queue_drops + link.managed_drops, link.random_drops, link.longest_ms, link.sent,
            link.sent_bytes,
            (link.since_ns - origin_ns) / 1e9, _settings_in_words(link, origin_ns))


def _settings_in_words(link: LinkDirection, origin_ns: int) -> str:
    """The settings of a link in order, without those before its first limit."""
    limited = [*dropwhile(lambda setting: not setting.is_shaping, link.settings)]
    first, *later = limited or link.settings or (link.setting,)
    return "; ".join([first.words, *(
        f"from {(setting.time_ns - origin_ns) / 1e9:.3f} s: {setting.words}"
        for before, setting in pairwise((first, *later)) if before.words != setting.words)])


def _link_notes(directions: Sequence[LinkDirection]) -> tuple[str, ...]:
    judged = [link for link in directions if link.judged]
    notes = ["As set: the last setting under which packets came; links.csv has all. As seen: the"
             " highest rate is over a second, a delay from coming to the queue until leaving the"
             " link."]

    if judged:
        notes.append(
            f"{sum(link.judged for link in judged)} packets of {len(judged)} directions were"
            " compared one by one with what their queue has to do; the largest difference was"
            f" {max(link.worst_us for link in judged):.1f} µs.")

    unjudged = sorted({link.unjudged for link in directions if link.unjudged})
    if unjudged:
        count = sum(1 for link in directions if link.unjudged)
        notes.append(f"Of {count} directions only rate, delay and losses were compared:"
                     f" {'; '.join(unjudged[:4])}.")
    return tuple(notes)


def _short_links(table: Table) -> Table:
    """The columns and rows that a terminal shows."""
    names = (("from", ""), ("to", ""), ("rate", "as set"), ("highest rate", "as seen"),
             ("delay", "as set"), ("least delay", "as seen"), ("most queued", "as seen"),
             ("dropped by the queue", "as seen"), ("lost at random", "as seen"))
    return replace(_with_columns(table, lambda column: (column.name, column.group) in names),
                   notes=()).first(MOST_LINES).without_empty()


def _with_columns(table: Table, is_shown: Callable[[Column], bool]) -> Table:
    """Some columns of a table."""
    places = [place for place, column in enumerate(table.columns) if is_shown(column)]
    columns = tuple(table.columns[place] for place in places)
    rows = []
    for row in table.rows:
        rows.append(tuple(row[place] for place in places))
    return replace(table, columns=columns, rows=tuple(rows))


def _links_finding(table: Table) -> Finding:
    """Directions that differ from their settings come first, then those that dropped most."""
    dropped = []
    for cells in zip(table.column("dropped by the queue", "as seen"),
                     table.column("lost at random", "as seen")):
        dropped.append(sum(number for number in cells if isinstance(number, int)))
    order = sorted(range(len(table.rows)),
                   key=lambda row: (not table.rows[row][0], -dropped[row]))
    shown = replace(table, rows=tuple(table.rows[row] for row in order))
    shown = _with_columns(shown, lambda column: (column.name in _ON_THE_PAGE
                                                 and column.unit != "bytes"))
    return Finding("links", "Links", (shown.without_empty().first(MOST_ROWS),), missing="" if
                   table.rows else "no link between two hosts or switches was made")


# Connections and flows ------------------------------------------------------------------

_CONNECTION_NOTES = (
    "First flight: the data that left before any of it was acknowledged; where the window ended it,"
    " the initial window.",)


def _connection_row(number: int, connection: ObservedConnection, origin_ns: int
                    ) -> tuple[Cell, ...]:
    ends, main, causes = connection.ends, connection.main, connection.retransmitted
    why = "; ".join(f"{count} × {cause}" for cause, count in causes.most_common(3))
    also = f" (NAT: {', '.join(map(format_end, ends.also))})" if ends.also else ""
    (flight, window), (other_flight, other_window) = (
        _flight(side) for side in (connection.to_client, connection.to_server))
    return (number, f"{ends.client_node} {format_end(ends.client)}",
            f"{ends.server_node} {format_end(ends.server)}{also}", connection.state,
            causes.total(), why, window, other_window, main.goodput_kbps,
            connection.handshake_ms, connection.to_client.bytes, flight,
            connection.to_server.bytes, other_flight, (connection.begun_ns - origin_ns) / 1e9,
            (connection.ended_ns - connection.begun_ns) / 1e9)


def _flight(direction: Direction) -> tuple[Cell, Cell]:
    """The first flight, and the initial window if that limited it."""
    flight = direction.first_flight
    if flight is None or not flight.bytes:
        return None, None
    return flight.segments, flight.segments if flight.at_once else None


def _connections_finding(table: Table, connections: Sequence[ObservedConnection]
                         ) -> Iterable[Finding]:
    """Connections that carried data, failed or lost packets; of many, small ones are counted."""
    least = (0.0 if len(connections) <= MOST_ROWS else
             _SMALL * max(connection.main.bytes for connection in connections))
    kept = [number for number, connection in enumerate(connections) if connection.state in _FAILED
            or connection.retransmitted or connection.main.bytes >= least]
    kept.sort(key=lambda number: (connections[number].state not in _FAILED,
                                  -connections[number].main.bytes))
    shown = replace(_with_columns(table, lambda column: column.name in _OF_CONNECTIONS),
                    hidden_rows=len(connections) - len(kept),
                    picked="that failed, retransmitted or carried most")
    rows = tuple(shown.rows[number] for number in kept)
    if rows:
        yield Finding("connections", "TCP connections",
                      (replace(shown, rows=rows).without_empty().first(MOST_ROWS),))


def _flows_finding(conversations: Conversations) -> Iterable[Finding]:
    table = Table("UDP and pings", _FLOWS, tuple(map(_flow_row, conversations.flows)))
    if table.rows:
        yield Finding("flows", "UDP and pings", (table.without_empty().first(MOST_ROWS),))


def _flow_row(flow: Flow) -> tuple[Cell, ...]:
    sender, receiver = ((flow.sender[0], flow.receiver[0]) if flow.kind == "ping" else
                        (format_end(flow.sender), format_end(flow.receiver)))
    measured = ((flow.least_ms, flow.sum_ms / flow.came, flow.longest_ms) if flow.came
                else (None,) * 3)
    return (flow.kind, f"{flow.from_node} {sender}", f"{flow.to_node} {receiver}",
            flow.sent, flow.sent - flow.came, flow.bytes, *measured)


def _drops_finding(capture: Capture, directions: Sequence[LinkDirection], spaces: NamespaceNames
                   ) -> Iterable[Finding]:
    statements = (*(Statement(f"{link.name} ({link.sender}):", f"{remark}.")
                    for link in directions for remark in link.remarks),
                  *drop_statements(capture, directions, spaces))
    if statements:
        yield Finding("drops", "What else was dropped or unused, and why", statements=statements)


# In words -------------------------------------------------------------------------------

def _sentence(directions: Sequence[LinkDirection], connections: Sequence[ObservedConnection],
              conversations: Conversations) -> str:
    if not directions:
        return "The command made no link between two hosts or switches."

    sentence = f"{_outcome(directions)}{_largest_loss(directions)}{_refused(directions)}"
    if connections:
        states = Counter(connection.state for connection in connections
                         if connection.state != RESET or not connection.main.bytes)
        several = len(connections) > 1
        bad = ", ".join(f"{states[state]} {state}" if several else state for state in _FAILED
                        if states[state])
        sentence += f" {f'{len(connections)} TCP connections' if several else 'One TCP connection'}"
        again = sum(connection.retransmitted.total() for connection in connections)
        sentence += f", {bad}" if bad else ""
        if again > 1:
            sentence += f"; {again} segments were retransmitted."
        else:
            sentence += "; one segment was retransmitted." if again else "."

    pings = [flow for flow in conversations.flows if flow.kind == "ping"]
    sent, came = sum(flow.sent for flow in pings), sum(flow.came for flow in pings)
    if came:
        took = [ms for flow in pings if flow.came for ms in (flow.least_ms, flow.longest_ms)]
        sentence += f" Pings took {format_range(took, 'ms')}."
    if sent > came:
        sentence += f" {sent - came} of {sent} pings were not answered."
    return sentence


def _outcome(directions: Sequence[LinkDirection]) -> str:
    """How many directions of links did what was set, and how many packets were lost."""
    wrong = [link for link in directions if link.wrong]
    untested = sum(link.is_untested and not link.wrong for link in directions)
    dropped = sum(link.queue_drops + link.managed_drops for link in directions)
    lost = sum(link.random_drops for link in directions)
    packets = sum(link.sent for link in directions) + dropped + lost

    if wrong:
        sentence = f"{len(wrong)} of {len(directions)} directions of links did not do what was set"
    elif untested:
        sentence = (f"{len(directions) - untested} of {len(directions)} directions of links did"
                    " what was set")
    elif any(link.setting.is_shaping for link in directions):
        sentence = f"All {len(directions)} directions of links did what was set"
    else:
        sentence = f"No rate, delay or loss was set on the {len(directions)} directions of links"

    if untested:
        sentence += (f", and on {untested} nothing shows what was set, since no packet of a program"
                     " came")
    return (f"{sentence}: of {packets} packets {dropped} {_were(dropped)} dropped by queues and"
            f" {lost} {_were(lost)} lost at random.")


def _largest_loss(directions: Sequence[LinkDirection]) -> str:
    """The link that lost most, its settings and the kind of losses; "" without losses."""
    link = max(directions, key=lambda link: link.drops)
    if not link.drops:
        return ""
    how = [f"{count} {words}" for count, words in (
        (link.queue_drops + link.managed_drops, "by its queue"), (link.random_drops, "at random"))
        if count]
    return (f" Most were lost at {link.name} ({link.sender}; {link.setting.words}):"
            f" {', '.join(how)}.")


def _refused(directions: Sequence[LinkDirection]) -> str:
    """Drops on arrival by policing or a filter, at the host with most of them; "" for none."""
    count, reason, receiver = max(
        (link.dropped_behind[reason], reason, link.receiver) for link in directions
        for reason in _SET_ON_ARRIVAL)
    return (f" {count} {_were(count)} dropped on arrival at {receiver}:"
            f" {LOSSES[reason]} ({reason}).") if count else ""


_FAILED = (REFUSED, NOT_ANSWERED, RESET)


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _provenance(facts: Mapping[str, object], capture: Capture, excluded: Mapping[str, int]
                ) -> tuple[Fact, ...]:
    lines = [Fact("command", " ".join(_list_of(facts, "command")) or "not known"),
            Fact("kernel", f"{facts.get('kernel_origin', 'not known')}, in virtual time")]
    virtual_s, wall_s = facts.get("virtual_s"), facts.get("wall_s")
    if isinstance(virtual_s, float) and isinstance(wall_s, float):
        lines.append(Fact("time", f"{format_duration(virtual_s)} of virtual time in"
                                  f" {format_duration(wall_s)}"))
    lines.append(Fact("packets", f"{capture.packets.size}, each once for each device that sent it"))
    if rest := [f"{count} {name}" for name, count in sorted(excluded.items()) if count]:
        lines.append(Fact("excluded", ", ".join(rest)))
    return tuple(lines)
