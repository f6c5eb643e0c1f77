"""The first half of docs/ONE_TRIAL.md: a stored trial packet by packet, and what was checked.

The programs that judge a trial compute all that the page shows: firstflight/wire/ reads and
explains the packets, and firstflight/workloads/fetch/verify makes the record. Here the numbers are
put into sentences.
`/usr/bin/python3 -m tests.golden.documents` writes the document again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from firstflight.base.words import format_lossless, format_number
from firstflight.net.path import serialised_ms
from firstflight.net.segments import MS, Segment
from firstflight.net.tc import normal_distribution
from firstflight.wire.delivery.host import CLIENT_LATE_NS, SERVER_LATE_NS, find_uncaused
from firstflight.wire.delivery.packet_path import TOLERANCE_NS, deliveries
from firstflight.wire.exchange import Exchange, read_exchange
from firstflight.wire.retransmissions import explain_retransmissions
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.observed import EXACT, INSTANT_NS
from firstflight.workloads.fetch.record.transfers import wire_bytes
from tests.golden import stored

NAME = "queue_timer"  # the stored trial: it is short, and a timer sent two of its packets
MOST_ROWS = 20  # of the table of packets, which a reader goes through one by one
DIGITS = 3  # decimals of a time in ms


@dataclass(frozen=True)
class Row:
    """Packets of one kind that left a host at once.

    number: of the row in the table, from 1. sent: the packets in the sender's capture.
    arrived_ns: when each came to the other host.
    """

    number: int
    sent: tuple[Segment, ...]
    arrived_ns: tuple[int, ...]


def key(segment: Segment) -> tuple[bool, int, int]:
    """The key of a packet of this trial, which is the same in both captures."""
    return segment.to_client, segment.identification, segment.seq


def rows_of(exchange: Exchange) -> list[Row]:
    """The rows of all packets in the order of their departure.

    Raises KeyError for a packet that did not arrive.
    """
    at_client, at_server = exchange.at_client, exchange.at_server
    received = [*(segment for segment in at_client if segment.to_client),
                *(segment for segment in at_server if not segment.to_client)]
    sent = [*(segment for segment in at_client if not segment.to_client),
            *(segment for segment in at_server if segment.to_client)]
    arrived_ns = {key(segment): segment.time_ns for segment in received}

    sent.sort(key=lambda segment: segment.time_ns)
    groups = (tuple(group) for _, group in groupby(sent, lambda segment: (
        segment.to_client, segment.kind, segment.time_ns // INSTANT_NS)))
    return [Row(number, group, tuple(arrived_ns[key(segment)] for segment in group))
            for number, group in enumerate(groups, start=1)]


def reason(row: Row, rows: Sequence[Row], exchange: Exchange) -> str:
    """Why a row's packets left when they did: a timer, or another row that had just arrived.

    Raises ValueError if neither explains it.
    """
    first = row.sent[0]
    if row.number == 1:
        return "curl opens the connection"
    if first in exchange.probes:
        return "**timer**: tail loss probe with new data"
    for retransmission in explain_retransmissions(exchange):
        if retransmission.segment == first:
            return f"**timer**: {retransmission.cause}"
    late_ns = SERVER_LATE_NS if first.to_client else CLIENT_LATE_NS
    to_this_host = [other for other in rows if other.sent[0].to_client != first.to_client]
    just_arrived = [(arrived_ns, other) for other in to_this_host
                    for arrived_ns in other.arrived_ns
                    if 0 <= first.time_ns - arrived_ns <= late_ns]
    if not just_arrived:
        raise ValueError(f"row {row.number}: nothing explains it")

    last_ns, cause = max(just_arrived, key=lambda arrival: arrival[0])
    count = len(cause.arrived_ns)
    place = "" if count == 1 else f", {cause.arrived_ns.index(last_ns) + 1} of {count},"
    return f"row {cause.number}{place} arrived"


def describe_packets(row: Row) -> str:
    """The kind of a row's packets and Wireshark's numbers, such as "data 1–1448" or "ACK 1449"."""
    first, last = row.sent[0], row.sent[-1]
    if first.payload_bytes:
        return f"{first.kind} {first.seq}–{last.end - 1}{' + FIN' if last.is_fin else ''}"
    if first.kind != "ACK" or first.ack is None:
        return first.kind
    is_duplicate = any(end <= first.ack for _, end in first.sacked)  # RFC 2883
    return f"{first.kind} {first.ack}{', D-SACK' if is_duplicate else ''}"


def table(rows: Sequence[Row], exchange: Exchange) -> Iterator[str]:
    """The lines of the table, in Markdown; times are from the first packet on."""
    def ms(time_ns: int) -> str:
        return format_number((time_ns - exchange.at_client[0].time_ns) / MS, DIGITS)

    yield "| row | left, ms | to | arrived, ms | bytes | what | why it left then |"
    yield "|--:|--:|---|--:|--:|---|---|"
    for row in rows:
        sizes = [segment.frame_bytes for segment in row.sent]
        bytes_ = " + ".join(map(str, sizes))
        if len(sizes) > 1 and len({*sizes}) == 1:
            bytes_ = f"{len(sizes)} × {sizes[0]}"
        yield (f"| {row.number} | {ms(row.sent[0].time_ns)} |"
               f" {'client' if row.sent[0].to_client else 'server'} |"
               f" {', '.join(map(ms, row.arrived_ns))} | {bytes_} | {describe_packets(row)} |"
               f" {reason(row, rows, exchange)} |")


def page() -> str:
    """The text of this half. Raises ValueError if the trial does not show what the text explains.
    """
    trial = stored.load(NAME)
    record, report = trial.judge(), trial.observation["server"]
    exchange = read_exchange(trial.client, trial.server, report["client_port"],
                             wire_bytes(report))
    rows = rows_of(exchange)
    if record.verdict != "pass" or record.judged_by.split() != ["path", "host", "TCP"] or (
            len(rows) > MOST_ROWS):
        raise ValueError(f"{NAME}: {record.verdict} {record.judged_by}, {len(rows)} rows")
    requested = trial.trial
    return "\n".join([
        "# One trial, packet by packet", "",
        f"A stored trial: curl fetches {requested.response_bytes} bytes with an initial window of"
        f" {requested.initcwnd} segments, at an RTT of {format_lossless(requested.rtt_ms)} ms and"
        f" {format_lossless(requested.bandwidth_kbps)} kbit/s. The link is so slow that two"
        " timers of TCP fire although nothing is lost."
        " `/usr/bin/python3 -m tests.golden.documents` writes this page with the programs that"
        " judge every trial. The packets are in"
        f" `tests/golden/trials/{NAME}`; Wireshark reads them.", "",
        "Time 0 is the first SYN. Packets that left together have one row. Bytes are those of the"
        " frame, with Ethernet's header. Numbers of data and ACKs are relative, as Wireshark shows"
        " them: ACK 1449 acknowledges 1448 bytes. D-SACK reports that a packet came twice.", "",
        *table(rows, exchange), "",
        f"The {report['header_bytes']} bytes of headers come first, so the response ends at byte"
        f" {report['header_bytes'] + requested.response_bytes}. The verdict is **{record.verdict}**"
        " ([METHOD](METHOD.md#verification) has all checks).", "",
        *path_check(trial, rows), "", *host_check(trial, rows, exchange), "",
        *tcp_check(record), ""])


def path_check(trial: stored.Stored, rows: Sequence[Row]) -> Iterator[str]:
    path = deliveries(trial.client, trial.server, trial.trial.path, normal_distribution)
    yield "## Path: did each packet arrive when it had to?"
    yield ""
    yield ("The check takes when a packet left, and the link: a delay, then a queue, then the time"
           " of its bytes. It knows nothing of TCP.")
    yield ""
    place = next(place for place, row in enumerate(rows) if row.sent[0].kind == "data")
    before, row, link = rows[place - 1], rows[place], trial.trial.path.down
    first = row.sent[0]
    begun_ns = rows[0].sent[0].time_ns
    left_ms, free_ms, came_ms = ((time_ns - begun_ns) / MS for time_ns in (
        first.time_ns, before.arrived_ns[-1], row.arrived_ns[0]))
    takes_ms = serialised_ms(first.frame_bytes, link.rate_kbps)
    yield (f"Row {row.number}, for example: its first packet left at"
           f" {format_number(left_ms, DIGITS)} ms"
           f" and was at the link {format_lossless(link.delay_ms)} ms later."
           f" Row {before.number} was on the link until {format_number(free_ms, DIGITS)} ms."
           f" {first.frame_bytes} bytes then take {format_number(takes_ms, DIGITS)} ms, so it has"
           f" to arrive at {format_number(free_ms + takes_ms, DIGITS)} ms. It arrived at"
           f" {format_number(came_ms, DIGITS)} ms.")
    yield ""
    for way, delivery in zip(("client", "server"), path):
        yield (f"- To the {way}: {delivery.sent} packets, of which the queue dropped"
               f" {len(delivery.queue_drops)} and random loss {len(delivery.random_drops)}."
               f" {len(delivery.deviations)} differ. The largest difference is"
               f" {delivery.worst_ns} ns; {TOLERANCE_NS / 1000:g} µs early and"
               f" {path[0].late_ns / 1000:.0f} µs late are allowed.")


def host_check(trial: stored.Stored, rows: Sequence[Row], exchange: Exchange) -> Iterator[str]:
    tick_ns = round(trial.observation["started_at"] * 1e9)
    data = [segment for row in rows for segment in row.sent if segment.payload_bytes]
    # If ticks were half a millisecond later, packets that only a tick explains would lack a cause.
    by_timer = find_uncaused(exchange, tick_ns + MS // 2)
    timed = [row for row in rows if row.sent[0] in by_timer]
    uncaused = find_uncaused(exchange, tick_ns)
    yield "## Host: had something happened when data left?"
    yield ""
    yield (f"The check takes each packet with data, {len(data)} here, and looks for a packet that"
           " its host had just received (at most"
           f" {SERVER_LATE_NS // 1000} µs before at the server,"
           f" {CLIENT_LATE_NS // 1000} µs at the client). It found one for"
           f" {len(data) - len(by_timer)}. The others left on a tick of the kernel's timers, of"
           " which there is one each millisecond: "
           + " and ".join(f"row {row.number}" for row in timed)
           + f". Without a cause: {len(uncaused)}.")


def tcp_check(record: Record) -> Iterator[str]:
    yield "## TCP: did the whole transfer take as long as TCP has to?"
    yield ""
    yield ("A [model](METHOD.md#the-model-of-tcp) computes the transfer from what was"
           " requested alone. It may differ"
           f" by {EXACT.model_ms:g} ms or {EXACT.model_share * 100:g} %, whichever is more.")
    yield ""
    yield "| | computed | observed |"
    yield "|---|--:|--:|"
    yield (f"| initial window, segments; requested, and by the kernel | {record.trial.initcwnd} |"
           f" {record.seen_initcwnd} |")
    yield f"| total, by curl's clock, ms | {record.model_ms:.3f} | {record.total_ms:.3f} |"
    yield (f"| latency, first byte to last acknowledgement, ms | {record.model_latency_ms:.3f} |"
           f" {record.latency_ms:.3f} |")
    yield f"| retransmissions | {record.model_retransmissions} | {record.retransmissions} |"
