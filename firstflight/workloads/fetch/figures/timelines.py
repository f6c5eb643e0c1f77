"""Makes timelines of kept captures: what was sent, acknowledged, lost and retransmitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import combinations
from operator import itemgetter
from pathlib import Path
from typing import Literal

from firstflight.base import reading
from firstflight.base.words import format_brief, plain
from firstflight.findings.charts import Mark, PacketsChart, Timeline
from firstflight.findings.findings import Finding
from firstflight.net.segments import CaptureError, Segment, client_ports
from firstflight.runs.kinds import RunData
from firstflight.runs.measuring import CAPTURES, capture_path
from firstflight.runs.results.cells import grouped
from firstflight.setting.draws import NOT_DRAWN
from firstflight.testbed.hosts.tls_records import sealed_sizes
from firstflight.wire.exchange import Exchange, read_exchange
from firstflight.wire.flights import acknowledgements_and_window_ends
from firstflight.workloads.fetch.figures.figure import Analysis, heading
from firstflight.workloads.fetch.record.record import Record, own_window
from firstflight.workloads.fetch.scenario.scenario import Figure
from firstflight.workloads.fetch.scenario.varied_parameters import setting_words
from firstflight.workloads.fetch.trial import Trial

# Parameters that each title names.
IN_TITLE = ("rtt_ms", "bandwidth_kbps", "response_bytes", "chain_bytes")
ROOM_MS, ROOM_BYTES = 1.03, 1.05  # the axes end at these multiples of the last packet's values

CapturedTrial = tuple[Record, Exchange]  # a record with the packets of its two captures


def timelines(records: Sequence[Record], folder: Path) -> tuple[Timeline, ...]:
    """Timelines of two trials with captures in the run's `folder`, the smaller window first.

    The two trials differ in the window only. Of several such pairs, it is the one whose times
    differ most (by_effect). Where there is no such pair, the two trials differ in another
    parameter, such as the queueing discipline or the kernel, but not in RTT, bandwidth or sizes.
    Without any pair there is a single timeline, and without captures none.
    """
    names = {path.name for path in (folder / CAPTURES).glob("*.pcap")}
    captured = [record for record in records
                if capture_path(folder, record.trial.id, "client").name in names]
    ordered = by_effect(captured)
    first = next(_readable(ordered, folder), None)
    if first is None:
        return ()

    first_record, _ = first
    others = [record for record in ordered if record.trial != first_record.trial]
    under_other_windows = [record for record in others if _without_window(record.trial)
                           == _without_window(first_record.trial)]
    candidates = [*under_other_windows, *_with_one_difference(first_record, others)]
    second = next(_readable(candidates, folder), None)
    chosen = [first, second] if second else [first]
    chosen.sort(key=lambda captured: captured[0].trial.initcwnd)

    last_ms = max(_elapsed_ms(exchange)[-1] for _, exchange in chosen)
    last_byte = max(segment.end_with_fin for _, exchange in chosen for segment in exchange.at_server
                    if segment.to_client)
    trials = [record.trial for record in records]
    compared = [record for record, _ in chosen]
    result = []
    for record, exchange in chosen:
        result.append(_timeline(record, exchange, title=_title(record, compared, trials),
                                to_ms=last_ms * ROOM_MS, to_bytes=last_byte * ROOM_BYTES))
    return tuple(result)


def by_effect(records: Sequence[Record]) -> list[Record]:
    """The records in pairs of two windows; the pair whose times differ most is the first.

    A cell has one pair: the two windows whose times differ most, or the smallest ones of several
    such pairs. After the pairs come all other records, those with the longest TLS handshake first.
    """
    pairs: list[tuple[float, Record, Record]] = []
    by_window = sorted(records, key=lambda record: record.trial.initcwnd)
    for in_cell in grouped(by_window, lambda record: _without_window(record.trial)).values():
        of_two_windows = []
        for first, second in combinations(in_cell, 2):
            if first.trial.initcwnd != second.trial.initcwnd:
                of_two_windows.append((_apart_ms(first, second), first, second))
        if of_two_windows:
            pairs.append(max(of_two_windows, key=itemgetter(0)))
    pairs.sort(key=itemgetter(0), reverse=True)

    ordered = [record for _, *pair in pairs for record in pair]
    paired = {record.trial for record in ordered}
    others = [record for record in records if record.trial not in paired]
    others.sort(key=lambda record: -(record.handshake_round_trips or 0))
    return ordered + others


def _apart_ms(first: Record, second: Record) -> float:
    """How far apart the times of two records are."""
    return abs((first.total_ms or 0.0) - (second.total_ms or 0.0))


def _without_window(trial: Trial) -> Trial:
    """The trial with window 1. It is equal for trials that differ in the window only."""
    return replace(trial, initcwnd=1)


def _with_one_difference(first: Record, others: Sequence[Record]) -> list[Record]:
    """The other records that differ from the first one in a single parameter.

    The parameter is not the window, RTT, bandwidth or a size. The records whose times differ most
    from the first one's come first.
    """
    names = [column.name for column in fields(first.trial)
             if column.name not in (*NOT_DRAWN, "seed")]
    found = []
    for record in others:
        differing = [name for name in names
                     if getattr(record.trial, name) != getattr(first.trial, name)]
        if len(differing) == 1 and differing[0] not in (*IN_TITLE, "initcwnd", "repeat"):
            found.append(record)
    return sorted(found, key=lambda record: -_apart_ms(record, first))


def _readable(records: Iterable[Record], folder: Path) -> Iterator[CapturedTrial]:
    """The records whose captures can be read, each with its exchange."""
    for record in records:
        yield from _read_captures(record, folder)


def _read_captures(record: Record, folder: Path) -> list[CapturedTrial]:
    """The record with its exchange; [] where the captures cannot be read, or have no data."""
    trial = record.trial
    try:
        client_pcap = reading.content(capture_path(folder, trial.id, "client"))
        server_pcap = reading.content(capture_path(folder, trial.id, "server"))
        ports = client_ports(server_pcap)
        exchange = read_exchange(client_pcap, server_pcap, ports[-1] if ports else 0,
                                 _response_bytes(record))
    except (OSError, CaptureError):
        return []
    if not any(segment.to_client and segment.payload_bytes for segment in exchange.at_server):
        return []
    return [(record, exchange)]


def _response_bytes(record: Record) -> int:
    """The size of the response on the network, with headers and TLS; 0 where it is not known."""
    if record.header_bytes is None:
        return 0
    text_bytes = record.header_bytes + record.trial.response_bytes
    if not record.trial.chain_bytes:
        return text_bytes
    return sum(sealed_sizes(text_bytes, record.trial.record_bytes))


def _start_ns(exchange: Exchange) -> int:
    """When the first packet was captured, at either host."""
    return min(segment.time_ns for segment in exchange.at_client + exchange.at_server)


def _elapsed_ms(exchange: Exchange) -> list[float]:
    """When each packet passed the server, counted from the client's first packet."""
    start_ns = _start_ns(exchange)
    return [(segment.time_ns - start_ns) / 1e6 for segment in exchange.at_server]


def _kind(record: Record, exchange: Exchange, segment: Segment, end: int
          ) -> Literal["handshake", "ticket", "data", "retransmitted", "lost"]:
    """The kind of a segment. end: the sequence number after the connection's last data."""
    if segment in exchange.retransmissions:
        return "retransmitted"
    if segment in exchange.lost_to_client:
        return "lost"
    if not record.flight_bytes:
        return "data"
    if segment.end <= 1 + record.flight_bytes:
        return "handshake"
    return "ticket" if segment.end <= end - _response_bytes(record) else "data"


def _title(record: Record, compared: Sequence[Record], trials: Sequence[Trial]) -> str:
    """The title of a timeline, such as "IW10: RTT 100 ms, 1000 kbit/s, 9000 bytes".

    Before the colon stands in what the compared timelines differ. After it stand the parameters of
    IN_TITLE, and in what all trials of the run differ.
    """
    trial = record.trial
    default_window = own_window([record])
    window = f"IW {default_window}" if default_window else f"IW{trial.initcwnd}"
    path = (f"RTT {plain(trial.rtt_ms)} ms, {plain(trial.bandwidth_kbps)} kbit/s,"
            f" {trial.response_bytes} bytes")
    if trial.chain_bytes:
        path += f" behind a chain of {trial.chain_bytes}"

    without = (*IN_TITLE, "repeat")
    varied = setting_words(trial, trials, differing=True, without=without)
    of_compared = [record_of_timeline.trial for record_of_timeline in compared]
    differing = setting_words(trial, of_compared, differing=True, without=without)
    shared = [word for word in varied if word not in differing]
    if differing:
        return f"{', '.join(differing)}: {', '.join([path, window, *shared])}"
    return f"{window}: {', '.join([path, *shared])}"


def _timeline(record: Record, exchange: Exchange, title: str, to_ms: float, to_bytes: float
              ) -> Timeline:
    """The timeline of one transfer. to_ms, to_bytes: the ends of the axes."""
    timed = [(segment, ms) for segment, ms in zip(exchange.at_server, _elapsed_ms(exchange))
             if segment.to_client and segment.payload_bytes]
    end = max(segment.end for segment, _ in timed)  # of data, since a FIN counts as one byte
    marks = tuple(Mark(_kind(record, exchange, segment, end), ms, segment.seq, segment.end)
                  for segment, ms in timed)

    scale = next((segment.scale for segment in exchange.syns), 0)
    points, offered = acknowledgements_and_window_ends(
        exchange.at_server, to_client=True, origin_ns=_start_ns(exchange), scale=scale)
    end_ms = next((ms for ms, byte in points if byte >= end), None)
    acknowledged = "not all acknowledged"
    if end_ms is not None:
        acknowledged = f"all acknowledged at {format_brief(end_ms)} ms"
    text = (f"{len(marks)} data segments, {len(exchange.first_flight)} of them in the first flight,"
            f" {len(exchange.retransmissions)} retransmitted, {len(exchange.lost_data)} lost;"
            f" {acknowledged}")
    return Timeline(title, text, marks, tuple(points), to_ms=to_ms, to_bytes=to_bytes,
                    offered=tuple(offered), end_ms=end_ms)


def packets(analysis: Analysis, figure: Figure) -> list[Finding]:
    """A figure of one or two transfers over time; [] for a run that kept no packets."""
    if not analysis.timelines:
        return []
    sentence = " ".join(f"{timeline.title}: {timeline.text}." for timeline in analysis.timelines)
    chart = PacketsChart(figure.title, heading(analysis.records), timelines=analysis.timelines)
    return [Finding(figure.name, figure.title, sentence=sentence, chart=chart)]


def run_timelines(run: RunData[Record]) -> tuple[Timeline, ...]:
    """The timelines of a run's kept captures."""
    return timelines(run.records, run.folder)
