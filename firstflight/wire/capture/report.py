"""The report of a capture as findings: links, connections, flows and drops.

`report_capture` makes the findings; findings.render and findings.drawing write them.
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
from firstflight.wire.capture.misplaced import ASSUMED_UNITS
from firstflight.wire.capture.spaces import NamespaceNames
from firstflight.wire.capture.drops import LOSSES, drop_statements
from firstflight.wire.capture.pcapng import MOST_BLOCKS, Capture

MOST_ROWS = 12  # of a table on the page, which then fits on two screens; the CSV files have all
MOST_LINES = 12  # of the table on the terminal
MOST_ALARMS = 10
NAME = "command"  # of the report; the report of a scenario has the scenario's name
# Reasons for drops on arrival that somebody has to configure.
_SET_ON_ARRIVAL = ("TC_INGRESS", "NETFILTER_DROP", "OVS_DROP_METER")
_FAILED = (REFUSED, NOT_ANSWERED, RESET)

_LINKS = (
    Column("what differs", is_text=True),
    Column("from", is_text=True), Column("to", is_text=True), Column("device", is_text=True),
    Column("rate", "kbit/s", "as set"), Column("delay", "ms", "as set", digits=3),
    Column("jitter", "ms", "as set", digits=3), Column("loss", "%", "as set", digits=3),
    Column("queue", "", "as set", is_text=True),
    Column("highest rate", "kbit/s", "as seen", digits=0),
    Column("least delay", "ms", "as seen", digits=3),
    Column("most queued", "packets", "as seen", digits=0),
    Column("dropped by the queue", "packets", "as seen", digits=0),
    Column("lost at random", "packets", "as seen", digits=0),
    Column("longest delay", "ms", "as seen", digits=3),
    Column("sent", "packets", "as seen", digits=0),
    Column("sent", "bytes", "as seen", digits=0, rank=2),
    Column("since", "s", digits=3), Column("set", is_text=True, rank=3))
_LINKS_ON_THE_PAGE = (  # the columns of links that fit on 1280 pixels
    "what differs", "from", "to", "device", "rate", "delay", "loss", "queue", "highest rate",
    "least delay", "longest delay", "most queued", "dropped by the queue", "lost at random")
_CONNECTIONS = (
    Column("number", digits=0), Column("client", is_text=True), Column("server", is_text=True),
    Column("state", is_text=True),
    Column("retransmitted", "segments", digits=0), Column("why", is_text=True, rank=3),
    Column("initial window", "segments", "to client", digits=0),
    Column("initial window", "segments", "to server", digits=0),
    Column("goodput", "kbit/s", digits=0), Column("handshake", "ms", digits=3),
    Column("data", "bytes", "to client", digits=0),
    Column("first flight", "segments", "to client", digits=0),
    Column("data", "bytes", "to server", digits=0),
    Column("first flight", "segments", "to server", digits=0),
    Column("begins", "s", digits=6), Column("takes", "s", digits=6))
_CONNECTIONS_ON_THE_PAGE = (  # the columns of connections; Wireshark shows the rest
    "number", "client", "server", "state", "retransmitted", "why", "initial window",
    "first flight", "data")
# A connection that carried less than this share of the largest one's data has no row where there
# are many connections: the table only counts it.
_SMALL_SHARE = 0.01
_FLOWS = (
    Column("flow", is_text=True), Column("from", is_text=True), Column("to", is_text=True),
    Column("sent", "packets", digits=0), Column("lost", "packets", digits=0),
    Column("sent", "bytes", digits=0), Column("least", "ms", "delay, or RTT of a ping", digits=3),
    Column("mean", "ms", "delay, or RTT of a ping", digits=3),
    Column("longest", "ms", "delay, or RTT of a ping", digits=3))


@dataclass(frozen=True)
class CaptureReport:
    """The report of a capture, and two of its tables with all rows and columns."""

    report: Report
    links: Table
    connections: Table


def report_capture(capture: Capture, facts: Mapping[str, object], path: str, origin_ns: int,
                   show_progress: Callable[[str], None] = lambda what: None) -> CaptureReport:
    """Reports what a capture shows.

    facts: the content of the command's command.json. path: the folder with the command's results.
    origin_ns: the guest's clock when the command began, since the epoch. show_progress: called with
    a text whenever a part is done.
    """
    spaces = NamespaceNames(_list_of(facts, "namespaces"))
    # What a script called in Mininet: which links it made, and which commands it gave.
    capture.calls = read_calls(_list_of(facts, "calls"), _list_of(facts, "command"))
    fields = read_headers(capture)
    directions = observe_links(capture, fields, spaces, show_progress)

    conversations = find_conversations(capture, fields, directions)
    show_progress(f"{len(conversations.connections)} TCP connections")
    connections = _follow_connections(capture, conversations, directions)
    unfollowed = len(conversations.connections) - len(connections)
    excluded = {**conversations.excluded, "connections that could not be followed": unfollowed}

    link_rows = tuple(_link_row(link, origin_ns) for link in directions)
    link_table = Table("Links", _LINKS, link_rows, _link_notes(directions), wraps=True)
    connection_rows = tuple(_connection_row(number, connection, origin_ns)
                            for number, connection in enumerate(connections, start=1))
    connection_table = Table("TCP connections", _CONNECTIONS, connection_rows, _CONNECTION_NOTES,
                             wraps=True)

    alarms = _alarms(capture, directions, spaces)
    command = " ".join(_list_of(facts, "command"))
    report = Report(
        NAME, "What the network really did", "What the network really did",
        source=f"./run.sh --capture -- {command}" if command else "a capture", path=path,
        facts=dict(facts), verified=0, count=0,
        findings=(_links_finding(link_table), *_connections_finding(connection_table, connections),
                  *_flows_finding(conversations), *_drops_finding(capture, directions, spaces)),
        alarms=tuple(alarms), files=("links.csv", "connections.csv", "capture.pcapng"),
        answer=Answer(_summary(directions, connections, conversations), notes=tuple(alarms),
                      table=_short_links(link_table)),
        provenance=_provenance(facts, capture, excluded))
    return CaptureReport(report, link_table, connection_table)


def observed_connections(capture: Capture, facts: Mapping[str, object]
                         ) -> list[ObservedConnection]:
    """The TCP connections of a capture, without the report. facts: as in report_capture."""
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
    """The items of a list in command.json, as text; [] if it has no such list."""
    words = facts.get(name, ())
    return [*map(str, words)] if isinstance(words, Iterable) else []


def _alarms(capture: Capture, directions: Sequence[LinkDirection], spaces: NamespaceNames
            ) -> list[str]:
    """Sentences that a reader must not miss, the most important first."""
    alarms = []
    if capture.is_cut:
        alarms.append("the capture ends within a packet: its file was cut, or not written whole")
    if capture.unread:
        alarms.append(f"{capture.unread} settings of queues and commands are not read: there are"
                      f" more than {MOST_BLOCKS}")
    if capture.is_full:
        alarms.append("the capture was full: what came after is not in it (--capture BYTES)")

    alarms += _alarm_of_units(directions)
    alarms += lines_about_links(capture.calls)
    alarms += lines_about_commands(capture, spaces)
    for link in directions:
        alarms += [f"{link.name} ({link.sender}): {sentence}" for sentence in link.wrong]
    for link in directions:
        alarms += [f"{link.name} ({link.sender}): {sentence}" for sentence in link.advice]

    if len(alarms) > MOST_ALARMS:
        alarms[MOST_ALARMS:] = [f"… and {len(alarms) - MOST_ALARMS} more, in links.csv"]
    return alarms


def _alarm_of_units(directions: Sequence[LinkDirection]) -> list[str]:
    """A line on delays that were probably set without their unit; [] for none."""
    short = [link for link in directions if link.short_delays]
    if not short:
        return []
    number, unit = min(short[0].short_delays)
    places = ", ".join(f"{link.name} ({link.sender})" for link in short[:3])
    more = f" and {len(short) - 3} more" if len(short) > 3 else ""
    return [f"{places}{more}: delay {number} {unit}; did you mean {number} ms? Without a unit tc"
            f" takes {ASSUMED_UNITS[unit]}"]


# Links ----------------------------------------------------------------------------------

def _link_row(link: LinkDirection, origin_ns: int) -> tuple[Cell, ...]:
    """The cells under _LINKS."""
    ends = (link.from_node, link.to_node, link.sender)
    setting = link.setting
    as_set = (None if math.isinf(setting.rate_kbps) else setting.rate_kbps,
              setting.delay_ms or None, setting.jitter_ms or None, setting.loss_percent or None,
              setting.queue_words)
    by_queue = link.queue_drops + link.managed_drops  # by a full queue, and by an AQM
    as_seen = (link.highest_kbps, link.least_ms, link.most_queued, by_queue, link.random_drops,
               link.longest_ms, link.sent, link.sent_bytes)
    since_s = (link.since_ns - origin_ns) / 1e9
    return ("; ".join(link.wrong), *ends, *as_set, *as_seen, since_s,
            _settings_in_words(link, origin_ns))


def _settings_in_words(link: LinkDirection, origin_ns: int) -> str:
    """The settings of a link in order, from the first one that shapes packets on."""
    shaping = [*dropwhile(lambda setting: not setting.is_shaping, link.settings)]
    first, *later = shaping or link.settings or (link.setting,)
    words = [first.words]
    for before, setting in pairwise((first, *later)):
        if before.words != setting.words:
            since_s = (setting.time_ns - origin_ns) / 1e9
            words.append(f"from {since_s:.3f} s: {setting.words}")
    return "; ".join(words)


def _link_notes(directions: Sequence[LinkDirection]) -> tuple[str, ...]:
    """Notes on what the columns of links mean, and on which directions were judged packet by
    packet."""
    judged = [link for link in directions if link.judged]
    notes = ["As set: the last setting under which packets came; links.csv has all. As seen: the"
             " highest rate is the highest over any second, and a delay is the time from a packet's"
             " arrival at the queue until it leaves the link."]

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
    """The links as a terminal shows them: fewer columns and rows, and no notes."""
    names = (("from", ""), ("to", ""), ("rate", "as set"), ("highest rate", "as seen"),
             ("delay", "as set"), ("least delay", "as seen"), ("most queued", "as seen"),
             ("dropped by the queue", "as seen"), ("lost at random", "as seen"))
    return replace(_with_columns(table, lambda column: (column.name, column.group) in names),
                   notes=()).first(MOST_LINES).without_empty()


def _with_columns(table: Table, is_shown: Callable[[Column], bool]) -> Table:
    """The table with the columns that are shown."""
    places = [place for place, column in enumerate(table.columns) if is_shown(column)]
    columns = tuple(table.columns[place] for place in places)
    rows = []
    for row in table.rows:
        rows.append(tuple(row[place] for place in places))
    return replace(table, columns=columns, rows=tuple(rows))


def _links_finding(table: Table) -> Finding:
    """The finding with the first links, and with the columns that fit on the page.

    Directions that differ from their settings come first, then those that dropped most.
    """
    dropped = []
    for cells in zip(table.column("dropped by the queue", "as seen"),
                     table.column("lost at random", "as seen")):
        dropped.append(sum(number for number in cells if isinstance(number, int)))

    order = sorted(range(len(table.rows)),
                   key=lambda row: (not table.rows[row][0], -dropped[row]))
    shown = replace(table, rows=tuple(table.rows[row] for row in order))
    shown = _with_columns(shown, lambda column: (column.name in _LINKS_ON_THE_PAGE
                                                 and column.unit != "bytes"))
    missing = "" if table.rows else "no link between two hosts or switches was made"
    return Finding("links", "Links", (shown.without_empty().first(MOST_ROWS),), missing=missing)


# Connections and flows ------------------------------------------------------------------

_CONNECTION_NOTES = (
    "First flight: the data that left before any of it was acknowledged; where the window ended it,"
    " the initial window.",)


def _connection_row(number: int, connection: ObservedConnection, origin_ns: int
                    ) -> tuple[Cell, ...]:
    """The cells under _CONNECTIONS."""
    ends, causes = connection.ends, connection.retransmitted
    client = f"{ends.client_node} {format_end(ends.client)}"
    server = f"{ends.server_node} {format_end(ends.server)}"
    if ends.nat_ends:
        server += f" (NAT: {', '.join(map(format_end, ends.nat_ends))})"
    why = "; ".join(f"{count} × {cause}" for cause, count in causes.most_common(3))

    to_client, to_server = connection.to_client, connection.to_server
    flight_to_client, window_to_client = _first_flight(to_client)
    flight_to_server, window_to_server = _first_flight(to_server)
    begins_s = (connection.begun_ns - origin_ns) / 1e9
    takes_s = (connection.ended_ns - connection.begun_ns) / 1e9
    return (number, client, server, connection.state, causes.total(), why, window_to_client,
            window_to_server, connection.main.goodput_kbps, connection.handshake_ms,
            to_client.bytes, flight_to_client, to_server.bytes, flight_to_server, begins_s, takes_s)


def _first_flight(direction: Direction) -> tuple[Cell, Cell]:
    """The first flight in segments, and the initial window if that limited it, otherwise None."""
    flight = direction.first_flight
    if flight is None or not flight.bytes:
        return None, None
    return flight.segments, flight.segments if flight.is_window else None


def _connections_finding(table: Table, connections: Sequence[ObservedConnection]
                         ) -> Iterable[Finding]:
    """The finding with the connections on the page; none without connections.

    Connections that failed come first, then those that carried most. Where there are many, small
    ones without retransmissions are left out, and the table says how many.
    """
    least_bytes = 0.0
    if len(connections) > MOST_ROWS:
        least_bytes = _SMALL_SHARE * max(connection.main.bytes for connection in connections)
    kept = [number for number, connection in enumerate(connections) if connection.state in _FAILED
            or connection.retransmitted or connection.main.bytes >= least_bytes]
    kept.sort(key=lambda number: (connections[number].state not in _FAILED,
                                  -connections[number].main.bytes))

    shown = replace(_with_columns(table, lambda column: column.name in _CONNECTIONS_ON_THE_PAGE),
                    hidden_rows=len(connections) - len(kept),
                    picked="that failed, retransmitted or carried most")
    rows = tuple(shown.rows[number] for number in kept)
    if rows:
        yield Finding("connections", "TCP connections",
                      (replace(shown, rows=rows).without_empty().first(MOST_ROWS),))


def _flows_finding(conversations: Conversations) -> Iterable[Finding]:
    """The finding with UDP and pings; none without any."""
    table = Table("UDP and pings", _FLOWS, tuple(map(_flow_row, conversations.flows)))
    if table.rows:
        yield Finding("flows", "UDP and pings", (table.without_empty().first(MOST_ROWS),))


def _flow_row(flow: Flow) -> tuple[Cell, ...]:
    """The cells under _FLOWS."""
    sender, receiver = format_end(flow.sender), format_end(flow.receiver)
    if flow.kind == "ping":  # has addresses and no ports
        sender, receiver = flow.sender[0], flow.receiver[0]

    delays_ms: tuple[Cell, ...] = (None, None, None)
    if flow.came:
        delays_ms = (flow.least_ms, flow.sum_ms / flow.came, flow.longest_ms)
    return (flow.kind, f"{flow.from_node} {sender}", f"{flow.to_node} {receiver}",
            flow.sent, flow.sent - flow.came, flow.bytes, *delays_ms)


def _drops_finding(capture: Capture, directions: Sequence[LinkDirection], spaces: NamespaceNames
                   ) -> Iterable[Finding]:
    """The finding with the links' remarks and with drops outside of them; none without any."""
    statements = []
    for link in directions:
        statements += [Statement(f"{link.name} ({link.sender}):", f"{remark}.")
                       for remark in link.remarks]
    statements += drop_statements(capture, directions, spaces)
    if statements:
        yield Finding("drops", "What else was dropped or unused, and why",
                      statements=tuple(statements))


# In words -------------------------------------------------------------------------------

def _summary(directions: Sequence[LinkDirection], connections: Sequence[ObservedConnection],
             conversations: Conversations) -> str:
    """The answer in a few sentences: links, losses, connections and pings."""
    if not directions:
        return "The command made no link between two hosts or switches."
    sentences = [_outcome(directions), _largest_loss(directions), _refused(directions),
                 _connections_in_words(connections), _pings_in_words(conversations.flows)]
    return " ".join(filter(None, sentences))


def _connections_in_words(connections: Sequence[ObservedConnection]) -> str:
    """How many TCP connections there were, failed or retransmitted; "" for none."""
    if not connections:
        return ""
    # A connection that was reset after it carried data did its work.
    states = Counter(connection.state for connection in connections
                     if connection.state != RESET or not connection.main.bytes)
    failed = [state for state in _FAILED if states[state]]
    if len(connections) == 1:
        words = ["One TCP connection", *failed]
    else:
        words = [f"{len(connections)} TCP connections",
                 *(f"{states[state]} {state}" for state in failed)]

    retransmitted = sum(connection.retransmitted.total() for connection in connections)
    ending = ""
    if retransmitted == 1:
        ending = "; one segment was retransmitted"
    elif retransmitted:
        ending = f"; {retransmitted} segments were retransmitted"
    return f"{', '.join(words)}{ending}."


def _pings_in_words(flows: Sequence[Flow]) -> str:
    """How long pings took, and how many were not answered; "" without pings."""
    pings = [flow for flow in flows if flow.kind == "ping"]
    answered = [flow for flow in pings if flow.came]
    sent = sum(flow.sent for flow in pings)
    unanswered = sent - sum(flow.came for flow in pings)

    sentences = []
    if answered:
        times_ms = [flow.least_ms for flow in answered] + [flow.longest_ms for flow in answered]
        sentences.append(f"Pings took {format_range(times_ms, 'ms')}.")
    if unanswered > 0:
        sentences.append(f"{unanswered} of {sent} pings were not answered.")
    return " ".join(sentences)


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
    by_queue = link.queue_drops + link.managed_drops
    losses = ((by_queue, "by its queue"), (link.random_drops, "at random"))
    how = [f"{count} {words}" for count, words in losses if count]
    return (f"Most were lost at {link.name} ({link.sender}; {link.setting.words}):"
            f" {', '.join(how)}.")


def _refused(directions: Sequence[LinkDirection]) -> str:
    """Drops on arrival by policing or a filter, at the host with most of them; "" for none."""
    drops = [(link.dropped_on_arrival[reason], reason, link.receiver)
             for link in directions for reason in _SET_ON_ARRIVAL]
    count, reason, receiver = max(drops)
    if not count:
        return ""
    return (f"{count} {_were(count)} dropped on arrival at {receiver}:"
            f" {LOSSES[reason]} ({reason}).")


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _provenance(facts: Mapping[str, object], capture: Capture, excluded: Mapping[str, int]
                ) -> tuple[Fact, ...]:
    """Facts on the command, its kernel, the time that it took, and the packets of the report."""
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
