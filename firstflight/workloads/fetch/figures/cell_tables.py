"""Tables of single cells, of all trials of a run, and of the causes of retransmissions."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from firstflight.figures.reasons import reasons
from firstflight.figures.window_changes import mean
from firstflight.findings.findings import REQUESTED, Cell, Column, Finding, Table
from firstflight.runs.reporting import MOST_ROWS
from firstflight.runs.results.cells import grouped
from firstflight.scenario.published import shares
from firstflight.workloads.fetch.figures.cells import (CellSetting, WindowChange, largest_changes,
                                                       without_repeat)
from firstflight.workloads.fetch.figures.kernels import kernel_changes, kernels_table
from firstflight.workloads.fetch.figures.raw_cells import PublishedCell, PublishedCells
from firstflight.workloads.fetch.figures.reasons import WhatIfs
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.varied_parameters import order, requested_columns
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify import notes

# The first cells of a row, and the records that the row is about.
Group = tuple[tuple[Cell, ...], Sequence[Record]]

_OBSERVED = (Column("RTT", "ms", "observed"), Column("BW", "kbit/s", "observed"),
         Column("IW", "", "observed"), Column("first flight", "", "observed", rank=2),
         Column("retrans.", "", "observed"),
         Column("dropped by queue", "", "observed"), Column("lost at random", "", "observed"),
         Column("dropped by uplink's queue", "", "observed"))
_OF_CELL = (*_OBSERVED, Column("total", "ms"), Column("model", "ms", rank=1),
            Column("diff.", "ms", signed=True), Column("latency", "ms", rank=3),
            Column("total", "ms", "published", digits=0),
            Column("mark", "", "published", is_text=True),
            Column("verdict", "pass/n", is_text=True))
_OF_TRIAL = (Column("n", "", "observed"), *_OBSERVED, Column("total", "ms", "measured"),
             Column("latency", "ms", "measured"), Column("total", "ms", "model"),
             Column("diff.", "ms", "model", signed=True),
             Column("total", "ms", "published", digits=0),
             Column("mark", "", "published", is_text=True),
             Column("first flight limited by", is_text=True, is_filter=True),
             Column("verdict", is_text=True, is_filter=True))


def _observed(records: Sequence[Record]) -> tuple[Cell, ...]:
    """The cells under _OBSERVED: means over all records, with those whose verdict failed."""
    counts = [_count(mean(records, column))
              for column in ("seen_initcwnd", "seen_first_flight", "retransmissions")]
    # A cell without a drop is empty.
    drops = [_count(mean(records, column)) or ""
             for column in ("queue_drops", "random_drops", "uplink_queue_drops")]
    return (mean(records, "seen_rtt_ms"), mean(records, "seen_bandwidth_kbps"), *counts, *drops)


def _count(value: float | None) -> float | int | None:
    """A mean of counts, as an integer if it is a whole number."""
    return int(value) if value is not None and value == int(value) else value


def _times(records: Sequence[Record]) -> tuple[float | None, ...]:
    """Means in ms: total, latency, the model's total, and the total less the model's."""
    total_ms = mean(records, "total_ms")
    latency_ms = mean(records, "latency_ms")
    model_ms = mean(records, "model_ms")
    deviation_ms = None if total_ms is None or model_ms is None else total_ms - model_ms
    return total_ms, latency_ms, model_ms, deviation_ms


# Cells -------------------------------------------------------------------------------

def cells_finding(settings: Sequence[CellSetting], changes: Sequence[WindowChange],
                  what_ifs: WhatIfs = WhatIfs(), published: PublishedCells | None = None
                  ) -> Finding:
    """The tables of what larger windows changed, and of every cell as requested and observed.

    published: values of single cells (raw_cells.published_cells).
    """
    tables = []
    if changes:
        tables.append(changes_table(changes, MOST_ROWS, what_ifs))
    of_kernels = kernel_changes(settings)
    if of_kernels:
        tables.append(kernels_table(of_kernels, MOST_ROWS))
    tables.append(_settings(settings, published))
    return Finding("cells", "What larger windows changed, and every cell", tables=tuple(tables))


def _settings(settings: Sequence[CellSetting], published: PublishedCells | None) -> Table:
    """A row for each cell, with footnotes: why data was retransmitted, limits, exclusions."""
    requested = requested_columns([row.requested for row in settings])
    footnotes: dict[str, int] = {}
    shown_published: list[PublishedCell] = []
    rows: list[tuple[Cell, ...]] = []
    for row in settings[:MOST_ROWS]:
        marks = "".join(f" [{footnotes.setdefault(note, len(footnotes) + 1)}]"
                        for note in _cell_notes(row.records))
        total_ms, latency_ms, model_ms, deviation_ms = _times(row.counting)
        known = published.of_trial.get(row.records[0].trial) if published else None
        if known is not None:
            shown_published.append(known)
        rows.append((*(show(row.requested) for _, show in requested), *_observed(row.records),
                     total_ms, model_ms, deviation_ms, latency_ms,
                     known.published_ms if known else "", known.mark if known else "",
                     f"{len(row.counting)}/{len(row.records)}{marks}"))

    columns = (*(column for column, _ in requested), *_OF_CELL)
    lines = [f"[{number}] {note}" for note, number in footnotes.items()]
    if published is not None:
        lines += published.explain_marks(shown_published)
    return Table("Every cell", columns, tuple(rows), notes=tuple(lines),
                 hidden_rows=len(settings) - len(rows)).without_empty(unknown=False)


def _cell_notes(records: Sequence[Record]) -> Iterable[str]:
    """Why the records of a cell retransmitted, what limited them, and why some do not count."""
    causes = [record.retransmission_cause for record in records]
    excluded = [record.error or record.verdict_reason for record in records if not record.counts]
    return filter(None, dict.fromkeys((*causes, *map(notes.limit_note, records), *excluded)))


def changes_table(changes: Sequence[WindowChange], most: int, what_ifs: WhatIfs) -> Table:
    """A row for each comparison; of more than `most`, for those with the largest effect."""
    shown = largest_changes(changes, most)
    requested = requested_columns([change.base.requested for change in changes],
                                  without=("initcwnd", *(change.varied for change in changes)))
    is_of_client = any(change.is_of_client for change in changes)
    columns = (*(column for column, _ in requested),
               Column("client's window" if is_of_client else "window", "segments", REQUESTED),
               Column("from", "ms", "total time", rank=4),
               Column("to", "ms", "total time", rank=5), Column("improved", "ms"),
               Column("improved", "%"), Column("n", rank=1),
               Column("from", "", "flights", is_text=True, rank=2),
               Column("to", "", "flights", is_text=True, rank=2),
               Column("reason", is_text=True, is_filter=True, rank=3))

    rows = []
    for change in shown:
        cells = [show(change.base.requested) for _, show in requested]
        windows = " → ".join(map(str, change.windows))
        saved = change.saved
        n = f"{len(change.base.counting)}, {len(change.experiment.counting)}"
        labels = dict.fromkeys(reason.label for reason in reasons(change, what_ifs))
        why = ", ".join(filter(None, labels)) or what_ifs.accounted(change)
        rows.append((*cells, windows, saved.base.value, saved.experiment.value, saved.absolute,
                     saved.percent.value, n, *_flights(change), why))

    table = Table("What the larger window changed", columns, tuple(rows)).without_empty()
    return replace(table, hidden_rows=len(changes) - len(shown), picked="with the largest change")


def _flights(change: WindowChange) -> list[str]:
    """The flights of the transfers with the median time, under base and experiment."""
    column = "upload_flights" if change.is_of_client else "response_flights"
    medians = change.base.median, change.experiment.median
    return ["" if median is None else getattr(median, column) for median in medians]


# Every trial -------------------------------------------------------------------------

def repeats_cells(cells: Sequence[CellSetting], records: Sequence[Record]) -> bool:
    """Whether the table of all trials would repeat the table of these cells."""
    return bool(cells) and (len(records) > MOST_ROWS or len(records) == len(cells))


def trials_table(records: Sequence[Record], published: PublishedCells | None = None) -> Table:
    """A row for each trial. If there are many: for each cell, or each bucket of a population.

    published: values of single cells (raw_cells.published_cells).
    """
    ordered = sorted(records, key=lambda record: order(record.trial))
    is_long = len(ordered) > MOST_ROWS
    if is_long and any(record.trial.part for record in ordered):
        return _drawn_table(ordered)

    def row_of(record: Record) -> Trial:
        return without_repeat(record.trial) if is_long else record.trial

    by_row = grouped(ordered, row_of)
    requested = requested_columns(list(by_row))
    groups = []
    for trial, group in by_row.items():
        groups.append((tuple(show(trial) for _, show in requested), group))
    return rows_table("Every cell" if is_long else "Every trial",
                      tuple(column for column, _ in requested), groups, published=published)


def rows_table(title: str, requested: tuple[Column, ...], groups: Sequence[Group],
               published: PublishedCells | None = None, notes_before: Iterable[str] = ()) -> Table:
    """A row for each group. The group's first cells stand under the columns `requested`.

    published: as in trials_table.
    """
    of_trial = {} if published is None else published.of_trial
    rows = tuple((*cells, *_of_trial(group, of_trial.get(group[0].trial)))
                 for cells, group in groups[:MOST_ROWS])
    marks = () if published is None else published.explain_marks(of_trial.values())
    records = chain.from_iterable(group for _, group in groups)
    limits = filter(None, dict.fromkeys(map(notes.limit_note, records)))
    return Table(title, (*requested, *_OF_TRIAL), rows, notes=(*notes_before, *marks, *limits),
                 hidden_rows=len(groups) - len(rows)).without_empty()


def _of_trial(group: Sequence[Record], published: PublishedCell | None) -> tuple[Cell, ...]:
    """The cells under _OF_TRIAL, of one trial or of several.

    Times of several trials are means over those that count.
    """
    known: tuple[Cell, ...] = ("", "")  # the published time, and its mark
    if published is not None:
        known = published.published_ms, published.mark
    limits = ", ".join(dict.fromkeys(word for record in group for word in notes.limits(record)))
    if len(group) == 1:
        return ("", *_observed(group), *_times(group), *known, limits, group[0].outcome)
    counting = [record for record in group if record.counts]
    return (len(group), *_observed(group), *_times(counting), *known, limits,
            f"{len(counting)}/{len(group)} pass")


# Retransmissions ----------------------------------------------------------------------

def causes_table(records: Sequence[Record]) -> Table | None:
    """The causes of retransmissions, with how many transfers had each; None without any."""
    counts: Counter[str] = Counter(cause for record in records for cause in _causes_of(record))
    if not counts:
        return None
    columns = (Column("cause", is_text=True), Column("transfers"))
    rows: Any = tuple(sorted(counts.items(), key=lambda counted: (-counted[1], counted[0])))
    return Table("Causes of retransmissions", columns, rows)


def _causes_of(record: Record) -> list[str]:
    """Why the transfer retransmitted, in words; [] where it did not."""
    if not (record.retransmissions or record.handshake_retransmissions):
        return []
    if record.retransmission_cause:
        return record.retransmission_cause.split("; ")
    if not record.lost_segments:
        return ["packets of the handshake or acknowledgements were lost"]
    drops = ((record.queue_drops, "the queue dropped packets"),
             (record.random_drops, "packets were lost at random"))
    return [cause for count, cause in drops if count] or ["packets were lost"]


# Responses drawn from a population ---------------------------------------------------

_FILED = (Column("part", is_text=True, is_filter=True),
          Column("RTT", "ms", "filed under", is_filter=True),
          Column("BW", "kbit/s", "filed under", is_filter=True),
          Column("IW", "", "requested", is_filter=True), Column("RTT", "ms", "requested"),
          Column("BW", "kbit/s", "requested"), Column("size", "bytes", "requested"))


def _drawn_table(records: Sequence[Record]) -> Table:
    """A row for each bucket of the paper's Figure 5, for responses drawn from a population.

    A bucket is one of RTT and bandwidth, or of RTT alone where these would be too many.
    """
    groups = _by_bucket(records, by_bandwidth=True)
    if len(groups) > MOST_ROWS:
        groups = _by_bucket(records, by_bandwidth=False)
    return rows_table("Every cell", _FILED, groups, notes_before=(
        "Filed under: the bucket of the paper's Figure 5 that the client belongs to. Requested: the"
        " mean over the networks that were emulated for it. All means are weighted by the shares"
        " that the responses stand for.",))


def _by_bucket(records: Iterable[Record], by_bandwidth: bool) -> list[Group]:
    """The records grouped by population, bucket and window.

    by_bandwidth: whether a bucket is one of RTT and bandwidth, not of RTT alone.
    """
    rtts, bandwidths = list(shares("rtt_ms")), list(shares("bandwidth_kbps"))
    rtt_ends, bandwidth_ends = _ends(rtts), _ends(bandwidths)

    def bucket(record: Record) -> tuple[str, int, int, int]:
        trial = record.trial
        rtt_ms = trial.rtt_ms if trial.key_rtt_ms is None else trial.key_rtt_ms
        bandwidth_kbps = (trial.bandwidth_kbps if trial.key_bandwidth_kbps is None
                          else trial.key_bandwidth_kbps)
        return (trial.part, bisect_left(rtt_ends, rtt_ms),
                bisect_left(bandwidth_ends, bandwidth_kbps) if by_bandwidth else 0, trial.initcwnd)

    groups: list[Group] = []
    by_bucket = grouped(records, bucket)
    for part, rtt, bandwidth, initcwnd in sorted(by_bucket):
        group = by_bucket[part, rtt, bandwidth, initcwnd]
        filed = (part, _upper(rtts[rtt]), _upper(bandwidths[bandwidth]) if by_bandwidth else "")
        means = [mean(group, column) for column in ("rtt_ms", "bandwidth_kbps", "response_bytes")]
        groups.append(((*filed, initcwnd, *means), group))
    return groups


def _ends(labels: Sequence[str]) -> list[float]:
    """The upper ends of buckets, but for the last one, which is open (">…")."""
    return [float(label) for label in labels[:-1]]


def _upper(label: str) -> str:
    """The label of a bucket, with a sign where it is the bucket's upper end."""
    return label if label.startswith(">") else f"≤ {label}"
