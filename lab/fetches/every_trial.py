"""Every trial of a run as a table: asked, seen, measured, model and published.

Where trials are many, every cell; of a population, the paper's buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lab.core import published
from lab.core.findings import Cell, Column, Table
from lab.core.reporting import MOST_ROWS
from lab.fetches.asked import asked_columns, order
from lab.fetches.cell_tables import count, extra_note
from lab.fetches.cells import RawRow, asked_of, late, mean
from lab.fetches.record import Record
from lab.fetches.scenario import Raw
from lab.fetches.trial import Trial

Group = tuple[tuple[Cell, ...], Sequence[Record]]
Ends = tuple[tuple[float, str], ...]  # upper end and label of each bucket, ascending

_SEEN = (Column("n", "", "seen"), Column("RTT", "ms", "seen"), Column("BW", "kbit/s", "seen"),
         Column("IW", "", "seen"), Column("first flight", "", "seen"),
         Column("resent", "", "seen"), Column("total", "ms", "measured"),
         Column("latency", "ms", "measured"), Column("total", "ms", "model"),
         Column("diff.", "ms", "model", signed=True), Column("total", "ms", "published", digits=0),
         Column("mark", "", "published", is_text=True),
         Column("verdict", is_text=True, is_filter=True))
_FILED = (Column("part", is_text=True, is_filter=True),
          Column("RTT", "ms", "filed under", is_filter=True),
          Column("BW", "kbit/s", "filed under", is_filter=True),
          Column("IW", "", "asked", is_filter=True), Column("RTT", "ms", "asked"),
          Column("BW", "kbit/s", "asked"), Column("size", "bytes", "asked"))


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
    asked = asked_columns(list(settings))
    groups = [(tuple(cell(trial) for _, cell in asked), group)
              for trial, group in settings.items()]
    table = _rows_table("Every trial" if len(ordered) <= MOST_ROWS else "Every cell", groups,
                        tuple(column for column, _ in asked), published_of)
    return table if raw is None else replace(table, notes=_raw_notes(raw, published_of))


def _raw_notes(raw: Raw, published_of: Mapping[Trial, RawRow]) -> tuple[str, ...]:
    used = {row.mark for row in published_of.values()}
    return (*(f"{defect.mark}: {defect.why}" for defect in raw.defects if defect.mark in used),
            *(extra_note(raw) if published_of else ()))


def _rows_table(title: str, groups: Sequence[Group], asked: tuple[Column, ...],
                published_of: Mapping[Trial, RawRow]) -> Table:
    rows = tuple((*cells, *_seen(group, published_of.get(group[0].trial)))
                 for cells, group in groups[:MOST_ROWS])
    return Table(title, (*asked, *_SEEN), rows,
                 left_out=len(groups) - len(rows)).without_empty()


def _seen(group: Sequence[Record], raw: RawRow | None) -> tuple[Cell, ...]:
    """The cells under _SEEN: of one trial, or means over those of a cell that count."""
    alone = len(group) == 1
    counting = group if alone else [record for record in group if record.counts]
    passed = sum(record.counts for record in group)
    total_ms, model_ms = mean(counting, "total_ms"), mean(counting, "model_ms")
    return ("" if alone else len(group),
            mean(group, "seen_rtt_ms"), mean(group, "seen_bandwidth_kbps"),
            count(mean(group, "seen_initcwnd")), count(mean(group, "seen_first_flight")),
            count(mean(group, "retransmissions")), total_ms, mean(counting, "latency_ms"),
            model_ms, late(total_ms, model_ms),
            "" if raw is None else raw.published_ms, "" if raw is None else raw.mark,
            group[0].outcome if alone else f"{passed}/{len(group)} pass")


# Populations -------------------------------------------------------------------------

def _population_table(records: Sequence[Record]) -> Table:
    """Responses drawn from a population, by the buckets of the paper's Figure 5.

    By RTT and bandwidth, or by RTT alone where that makes too many rows.
    """
    groups = _by_bucket(records, by_bandwidth=True)
    if len(groups) > MOST_ROWS:
        groups = _by_bucket(records, by_bandwidth=False)
    return replace(_rows_table("Every cell", groups, _FILED, {}), notes=(
        "Filed under: the bucket of the paper's Figure 5 that the client belongs to. Asked: the"
        " mean over the networks that were emulated for it. All means carry the shares that the"
        " responses stand for.",))


def _by_bucket(records: Iterable[Record], by_bandwidth: bool) -> list[Group]:
    """The records by part, bucket of RTT, bucket of bandwidth if asked for, and window."""
    rtt_ends, bandwidth_ends = (_ends(published.buckets("paper_figure5.csv", panel))
                                for panel in ("RTT", "BW"))
    cells: dict[tuple[str, int, int, int], list[Record]] = {}
    for record in records:
        trial = record.trial
        rtt_ms = trial.rtt_ms if trial.key_rtt_ms is None else trial.key_rtt_ms
        bandwidth_kbps = (trial.bandwidth_kbps if trial.key_bandwidth_kbps is None
                          else trial.key_bandwidth_kbps)
        key = (trial.part, _place(rtt_ms, rtt_ends),
               _place(bandwidth_kbps, bandwidth_ends) if by_bandwidth else 0, trial.initcwnd)
        cells.setdefault(key, []).append(record)
    return [((part, rtt_ends[rtt][1], bandwidth_ends[bandwidth][1] if by_bandwidth else "",
              initcwnd, *(mean(group, column) for column in
                          ("rtt_ms", "bandwidth_kbps", "response_bytes"))), group)
            for (part, rtt, bandwidth, initcwnd), group in sorted(
                cells.items(), key=lambda each: each[0])]


def _ends(labels: Iterable[str]) -> Ends:
    """Labels are upper ends, the last one's is ">…"."""
    return tuple((float("inf") if label.startswith(">") else float(label),
                  label if label.startswith(">") else f"≤ {label}") for label in labels)


def _place(value: float, ends: Ends) -> int:
    return next((place for place, (end, _) in enumerate(ends) if value <= end), len(ends) - 1)
