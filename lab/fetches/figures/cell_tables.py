"""Tables of trials: every one of a run, single cells, and published raw values beside ours.

Of many trials there is a row for every cell; of a population, for the paper's buckets.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.core import stats
from lab.core.findings.findings import Cell, Column, Finding, Table
from lab.core.run.reporting import MOST_ROWS
from lab.core.scenario import published
from lab.core.words import number, plain
from lab.fetches.figures.panels import counting
from lab.fetches.figures.buckets import of_sweep
from lab.fetches.figures.cells import CellSetting, WindowChange, asked_of, mean, reasons
from lab.fetches.scenario.scenario import Raw, Scenario
from lab.fetches.scenario.sweep import bucket_value
from lab.fetches.scenario.trial import Trial
from lab.fetches.scenario.varied_parameters import REQUESTED, requested_columns, order, shown
from lab.fetches.verify import notes
from lab.fetches.verify.record import Record

Group = tuple[tuple[Cell, ...], Sequence[Record]]

_SEEN = (Column("RTT", "ms", "observed"), Column("BW", "kbit/s", "observed"),
         Column("IW", "", "observed"), Column("first flight", "", "observed", rank=2),
         Column("retrans.", "", "observed"),
         Column("dropped by queue", "", "observed"), Column("lost at random", "", "observed"),
         Column("dropped by uplink's queue", "", "observed"))
_OF_CELL = (*_SEEN, Column("total", "ms"), Column("model", "ms", rank=1),
            Column("diff.", "ms", signed=True), Column("latency", "ms", rank=3),
            Column("verdict", "pass/n", is_text=True))
_OF_TRIAL = (Column("n", "", "observed"), *_SEEN, Column("total", "ms", "measured"),
             Column("latency", "ms", "measured"), Column("total", "ms", "model"),
             Column("diff.", "ms", "model", signed=True),
             Column("total", "ms", "published", digits=0),
             Column("mark", "", "published", is_text=True),
             Column("first flight limited by", is_text=True, is_filter=True),
             Column("verdict", is_text=True, is_filter=True))
_FILED = (Column("part", is_text=True, is_filter=True),
          Column("RTT", "ms", "filed under", is_filter=True),
          Column("BW", "kbit/s", "filed under", is_filter=True),
          Column("IW", "", "requested", is_filter=True), Column("RTT", "ms", "requested"),
          Column("BW", "kbit/s", "requested"), Column("size", "bytes", "requested"))


def _seen(records: Sequence[Record]) -> tuple[Cell, ...]:
    """The cells under _SEEN. What was seen is worth telling of a failed verdict too."""
    return (mean(records, "seen_rtt_ms"), mean(records, "seen_bandwidth_kbps"),
            *(_count(mean(records, column)) for column in
              ("seen_initcwnd", "seen_first_flight", "retransmissions")),
            *(_count(mean(records, column)) or "" for column in
              ("queue_drops", "random_drops", "uplink_queue_drops")))


def _count(value: float | None) -> float | int | None:
    """A mean of counts: whole where it is."""
    return int(value) if value is not None and value == int(value) else value


def _times(records: Sequence[Record]) -> tuple[float | None, ...]:
    """Means in ms: total, latency, the model's total, and ours less the model's."""
    total_ms, latency_ms, model_ms = (mean(records, column) for column in
                                      ("total_ms", "latency_ms", "model_ms"))
    late_ms = None if total_ms is None or model_ms is None else total_ms - model_ms
    return total_ms, latency_ms, model_ms, late_ms


# Cells -------------------------------------------------------------------------------

def cells_finding(settings: Sequence[CellSetting], changes: Sequence[WindowChange]) -> Finding:
    """What was requested of each cell, what was observed, and what the windows changed."""
    tables = [*([changes_table(changes, MOST_ROWS)] if changes else []), _settings(settings)]
    return Finding("cells", "What larger windows changed, and every cell", tables=tuple(tables))


def _settings(settings: Sequence[CellSetting]) -> Table:
    """A footnote for each cause of retransmissions, each limit and each reason not to count."""
    requested = requested_columns([row.requested for row in settings])
    footnotes: dict[str, int] = {}
    rows = []
    for row in settings[:MOST_ROWS]:
        found = dict.fromkeys((*(record.retransmission_cause for record in row.records),
                               *map(notes.limit, row.records), *(
            record.error or record.verdict_reason for record in row.records
            if not record.counts)))
        marks = "".join(f" [{footnotes.setdefault(note, len(footnotes) + 1)}]"
                        for note in found if note)
        total_ms, latency_ms, model_ms, late_ms = _times(row.counting)
        rows.append((*(cell(row.requested) for _, cell in requested), *_seen(row.records), total_ms,
                     model_ms, late_ms, latency_ms,
                     f"{len(row.counting)}/{len(row.records)}{marks}"))
    return Table("Every cell", (*(column for column, _ in requested), *_OF_CELL), tuple(rows),
                 tuple(f"[{place}] {note}" for note, place in footnotes.items()),
                 len(settings) - len(rows)).without_empty(unknown=False)


def changes_table(changes: Sequence[WindowChange], most: int) -> Table:
    """A row for each comparison; of more than `most` those with the largest effect."""
    shown = changes
    if len(changes) > most:
        kept = {id(change) for change in sorted(
            changes, key=lambda change: -abs(change.absolute_ms))[:most]}
        shown = [change for change in changes if id(change) in kept]
    requested = requested_columns([change.base.requested for change in changes],
                                  without=("initcwnd",))
    columns = (*(column for column, _ in requested), Column("window", "segments", REQUESTED),
               Column("from", "ms", "total time", rank=4),
               Column("to", "ms", "total time", rank=5), Column("improved", "ms"),
               Column("improved", "%"),
               Column("n", rank=1), Column("from", "", "flights", is_text=True, rank=2),
               Column("to", "", "flights", is_text=True, rank=2),
               Column("limiting factor", is_text=True, is_filter=True, rank=3))
    table = Table("What the larger window changed", columns, tuple(
        (*(show(change.base.requested) for _, show in requested),
         f"{change.base.requested.initcwnd} → {change.experiment.requested.initcwnd}",
         change.base_ms, change.experiment_ms, change.saved_ms, change.percent,
         f"{len(change.base.counting)}, {len(change.experiment.counting)}",
         _flights(change.base), _flights(change.experiment),
         ", ".join(dict.fromkeys(reason.word for reason in reasons(change))))
        for change in shown)).without_empty()
    return replace(table, left_out=len(changes) - len(shown))


def _flights(cell: CellSetting) -> str:
    """Of its first transfer that counts; where chance decides, others may differ."""
    return next((record.response_flights for record in cell.counting), "")


# Every trial -------------------------------------------------------------------------

def trials_table(records: Sequence[Record], raw: Raw | None,
                 published_of: Mapping[Trial, RawRow]) -> Table:
    """raw: of the scenario; published_of: the published raw value of each trial that has one."""
    ordered = sorted(records, key=lambda record: order(record.trial))
    if len(ordered) > MOST_ROWS and any(record.trial.part for record in ordered):
        return _population_table(ordered)
    settings: dict[Trial, list[Record]] = {}
    for record in ordered:
        trial = record.trial if len(ordered) <= MOST_ROWS else asked_of(record.trial)
        settings.setdefault(trial, []).append(record)
    requested = requested_columns(list(settings))
    groups = [(tuple(cell(trial) for _, cell in requested), group)
              for trial, group in settings.items()]
    return _rows_table("Every trial" if len(ordered) <= MOST_ROWS else "Every cell", groups,
                       tuple(column for column, _ in requested), published_of,
                       _raw_notes(raw, published_of.values()) if raw is not None else ())


def _rows_table(title: str, groups: Sequence[Group], requested: tuple[Column, ...],
                published_of: Mapping[Trial, RawRow], remarks: Iterable[str]) -> Table:
    rows = tuple((*cells, *_of_trial(group, published_of.get(group[0].trial)))
                 for cells, group in groups[:MOST_ROWS])
    limits = dict.fromkeys(note for _, group in groups for note in map(notes.limit, group)
                           if note)
    return Table(title, (*requested, *_OF_TRIAL), rows, (*remarks, *limits),
                 len(groups) - len(rows)).without_empty()


def _of_trial(group: Sequence[Record], raw: RawRow | None) -> tuple[Cell, ...]:
    """The cells under _OF_TRIAL: of one trial, or means over those of a cell that count."""
    alone = len(group) == 1
    counting = [record for record in group if record.counts]
    return ("" if alone else len(group), *_seen(group), *_times(group if alone else counting),
            "" if raw is None else raw.published_ms, "" if raw is None else raw.mark,
            ", ".join(dict.fromkeys(word for record in group for word in notes.limits(record))),
            group[0].outcome if alone else f"{len(counting)}/{len(group)} pass")


def _population_table(records: Sequence[Record]) -> Table:
    """Responses drawn from a population, by the buckets of the paper's Figure 5.

    By RTT and bandwidth, or by RTT alone where that makes too many rows.
    """
    groups = _by_bucket(records, by_bandwidth=True)
    if len(groups) > MOST_ROWS:
        groups = _by_bucket(records, by_bandwidth=False)
    return _rows_table("Every cell", groups, _FILED, {}, (
        "Filed under: the bucket of the paper's Figure 5 that the client belongs to. Asked: the"
        " mean over the networks that were emulated for it. All means carry the shares that the"
        " responses stand for.",))


def _by_bucket(records: Iterable[Record], by_bandwidth: bool) -> list[Group]:
    """The records by part, bucket of RTT, bucket of bandwidth if requested, and window."""
    rtts, bandwidths = (list(published.shares(by)) for by in ("rtt_ms", "bandwidth_kbps"))
    cells: dict[tuple[str, int, int, int], list[Record]] = {}
    for record in records:
        trial = record.trial
        rtt_ms = trial.rtt_ms if trial.key_rtt_ms is None else trial.key_rtt_ms
        bandwidth_kbps = (trial.bandwidth_kbps if trial.key_bandwidth_kbps is None
                          else trial.key_bandwidth_kbps)
        key = (trial.part, _place(rtt_ms, rtts),
               _place(bandwidth_kbps, bandwidths) if by_bandwidth else 0, trial.initcwnd)
        cells.setdefault(key, []).append(record)
    return [((part, _upper(rtts[rtt]), _upper(bandwidths[bandwidth]) if by_bandwidth else "",
              initcwnd, *(mean(group, column) for column in
                          ("rtt_ms", "bandwidth_kbps", "response_bytes"))), group)
            for (part, rtt, bandwidth, initcwnd), group in sorted(
                cells.items(), key=lambda each: each[0])]


def _place(value: float, labels: Sequence[str]) -> int:
    """Which bucket a value falls into. Labels are upper ends, the last one's is ">…"."""
    return bisect_left([float(label) for label in labels[:-1]], value)


def _upper(label: str) -> str:
    return label if label.startswith(">") else f"≤ {label}"


# Published raw values ----------------------------------------------------------------

@dataclass(frozen=True)
class RawRow:
    """One published raw value beside ours. Times in ms.

    measured_ms: mean of what counts, None where nothing does; n: how many.
    comparable_ms: the published value without the round trips that it holds
    besides; None where the published value has a defect, which mark then names.
    """

    initcwnd: int
    rtt_ms: float
    bandwidth_kbps: float
    n: int
    measured_ms: float | None
    published_ms: float
    comparable_ms: float | None
    mark: str


def raw_rows(scenario: Scenario, raw: Raw,
             records: Sequence[Record]) -> tuple[list[RawRow], dict[Trial, RawRow]]:
    """Every published raw value, in the order of its file; and by the trials that are its like.

    Raises NoPanel where the records mix clients.
    """
    chosen: dict[tuple[int, float, float], list[Record]] = {}
    for record in of_sweep(scenario.sweep(raw.sweep), records):
        trial = record.trial
        chosen.setdefault((trial.initcwnd, trial.rtt_ms, trial.bandwidth_kbps), []).append(record)
    rows, of_trial = [], {}
    for fetch in published.fetches(raw.file):
        own = chosen.get((fetch.initcwnd, fetch.rtt_ms, fetch.bandwidth_kbps), [])
        values = [value for _, value in counting(own, raw.metric)[0]]
        mark = next((defect.mark for defect in reversed(raw.defects)
                     if bucket_value(defect.by, fetch) in defect.values), "")
        rows.append(RawRow(
            fetch.initcwnd, fetch.rtt_ms, fetch.bandwidth_kbps, len(values),
            sum(values) / len(values) if values else None, fetch.total_ms,
            None if mark else fetch.total_ms - raw.extra_rtts * fetch.rtt_ms, mark))
        of_trial.update({record.trial: rows[-1] for record in own})
    return rows, of_trial


def raw_finding(raw: Raw, rows: Sequence[RawRow]) -> Finding:
    """A grid for each window, RTT down, bandwidth across: measured / published, in ms."""
    counts = sorted({row.n for row in rows})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    tables = [_grid(initcwnd, [row for row in rows if row.initcwnd == initcwnd])
              for initcwnd in sorted({row.initcwnd for row in rows})]
    remarks = (*_raw_notes(raw, rows), *_differences(raw, rows))
    return Finding("raw", f"every cell beside the published one (paper/{raw.file}): measured /"
                   f" published, ms; n = {n} here, 1 there",
                   tables=(*tables[:-1], replace(tables[-1], notes=remarks)))


def _grid(initcwnd: int, rows: Sequence[RawRow]) -> Table:
    cells = {(row.rtt_ms, row.bandwidth_kbps):
             f"{number(row.measured_ms, 0)}/{number(row.published_ms, 0)}{row.mark or ' '}"
             for row in rows}
    bandwidths = list(dict.fromkeys(bandwidth for _, bandwidth in cells))
    return Table(f"IW{initcwnd}", (Column("RTT", "ms"), *(
        Column(plain(bandwidth), "kbit/s") for bandwidth in bandwidths)), tuple(
            (shown(rtt), *(cells[rtt, bandwidth] for bandwidth in bandwidths))
            for rtt in dict.fromkeys(rtt for rtt, _ in cells)))


def _raw_notes(raw: Raw, rows: Iterable[RawRow]) -> list[str]:
    """What the marks mean, and that published times hold round trips that ours do not."""
    used = {row.mark for row in rows}
    lines = [f"{defect.mark}: {defect.why}" for defect in raw.defects if defect.mark in used]
    if used and raw.extra_rtts:
        lines.append(f"The published times hold {plain(raw.extra_rtts)} RTT more:"
                     f" {raw.extra_why}.")
    return lines


def _differences(raw: Raw, rows: Iterable[RawRow]) -> list[str]:
    """Ours against the comparable published values: median and largest of |difference|."""
    off_ms = [abs(row.measured_ms - row.comparable_ms) for row in rows
              if row.measured_ms is not None and row.comparable_ms is not None]
    if not off_ms:
        return []
    without = " without it" if raw.extra_rtts else ""
    median_ms = stats.weighted_quantile(off_ms, [1.0] * len(off_ms), 0.5)
    return [f"The {len(off_ms)} comparable cells differ{without} by {number(median_ms)} ms"
            f" (median), {number(max(off_ms))} ms at most."]


def causes_table(records: Sequence[Record]) -> Table | None:
    """Why segments were retransmitted, with the number of transfers; None where none was."""
    found: Counter[str] = Counter(cause for record in records for cause in _causes_of(record))
    if not found:
        return None
    rows: Any = tuple(sorted(found.items(), key=lambda each: (-each[1], each[0])))
    return Table("Causes of retransmissions", (Column("cause", is_text=True),
                                               Column("transfers")), rows)


def _causes_of(record: Record) -> list[str]:
    if not (record.retransmissions or record.handshake_retransmissions):
        return []
    if record.retransmission_cause:
        return record.retransmission_cause.split("; ")
    if not record.lost_segments:
        return ["packets of the handshake or acknowledgements were lost"]
    drops = ((record.queue_drops, "the queue dropped packets"),
             (record.random_drops, "packets were lost at random"))
    return [cause for count, cause in drops if count] or ["packets were lost"]
