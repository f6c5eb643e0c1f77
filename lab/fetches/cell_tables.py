"""Findings of single cells: those of a run that covers no figure, and published raw values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.core.findings import Cell, Column, Finding, Table
from lab.core.reporting import MOST_ROWS
from lab.core.words import number, plain
from lab.fetches.asked import asked_columns, shown
from lab.fetches.cells import Change, RawRow, Setting, raw_summary
from lab.fetches.scenario import Raw

_SEEN = (Column("RTT", "ms", "seen"), Column("BW", "kbit/s", "seen"), Column("IW", "", "seen"),
         Column("first flight", "", "seen", rank=2), Column("resent", "", "seen"),
         Column("total", "ms"), Column("model", "ms", rank=1),
         Column("diff.", "ms", signed=True), Column("latency", "ms", rank=3),
         Column("verdict", "pass/n", is_text=True))


def cells_finding(settings: Sequence[Setting], changes: Sequence[Change]) -> Finding:
    """What each cell was asked, seen and measured, and what the windows changed."""
    tables = [_settings(settings), *([_changes(changes)] if changes else [])]
    return Finding("cells", "Every cell: asked, seen and measured", tables=tuple(tables))


def _settings(settings: Sequence[Setting]) -> Table:
    """A footnote for each cause of retransmissions and each reason why a record does not count."""
    asked = asked_columns([row.asked for row in settings])
    notes: dict[str, int] = {}
    rows = []
    for row in settings[:MOST_ROWS]:
        marks = "".join(f" [{notes.setdefault(note, len(notes) + 1)}]"
                        for note in (*row.causes, *row.reasons))
        rows.append((
            *(cell(row.asked) for _, cell in asked), row.seen_rtt_ms, row.seen_bandwidth_kbps,
            count(row.seen_initcwnd), count(row.seen_first_flight), count(row.retransmissions),
            row.total_ms, row.model_ms, row.late_ms, row.latency_ms,
            f"{row.n}/{row.n + row.excluded.total}{marks}"))
    return Table("", (*(column for column, _ in asked), *_SEEN), tuple(rows),
                 tuple(f"[{place}] {note}" for note, place in notes.items()),
                 len(settings) - len(rows))


def count(value: float | None) -> float | int | None:
    """A mean of counts: whole where it is."""
    return int(value) if value is not None and value == int(value) else value


def _changes(changes: Sequence[Change]) -> Table:
    asked = asked_columns([change.base.asked for change in changes], without=("initcwnd",))
    columns = (*(column for column, _ in asked), Column("window", "segments", "asked"),
               Column("from", "ms", "total time"), Column("to", "ms", "total time"),
               Column("improved", "ms"), Column("improved", "%"), Column("n"))
    return Table("What the larger window changed", columns, tuple(
        (*(cell(change.base.asked) for _, cell in asked),
         f"{change.base.asked.initcwnd} → {change.experiment.asked.initcwnd}",
         change.base.total_ms, change.experiment.total_ms, change.absolute_ms, change.percent,
         f"{change.base.n}, {change.experiment.n}") for change in changes)).first(MOST_ROWS)


# Published raw values ----------------------------------------------------------------

def raw_finding(raw: Raw, rows: Sequence[RawRow]) -> Finding:
    """A grid for each window, RTT down, bandwidth across: measured / published, in ms."""
    counts = sorted({row.n for row in rows})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    windows = sorted({row.initcwnd for row in rows})
    tables = [_grid(initcwnd, [row for row in rows if row.initcwnd == initcwnd],
                    _raw_notes(raw, rows) if initcwnd == windows[-1] else ())
              for initcwnd in windows]
    return Finding("raw", f"every cell beside the published one (paper/{raw.file}): measured /"
                   f" published, ms; n = {n} here, 1 there", tables=tuple(tables))


def _grid(initcwnd: int, rows: Sequence[RawRow], notes: Sequence[str]) -> Table:
    cells: Mapping[tuple[float, float], RawRow] = {
        (row.rtt_ms, row.bandwidth_kbps): row for row in rows}
    bandwidths = list(dict.fromkeys(bandwidth for _, bandwidth in cells))
    rtts = list(dict.fromkeys(rtt for rtt, _ in cells))
    made: list[tuple[Cell, ...]] = [
        (shown(rtt), *(_raw_cell(cells[rtt, bandwidth]) for bandwidth in bandwidths))
        for rtt in rtts]
    return Table(f"IW{initcwnd}", (Column("RTT", "ms"), *(
        Column(plain(bandwidth), "kbit/s") for bandwidth in bandwidths)), tuple(made),
        tuple(notes))


def _raw_cell(row: RawRow) -> str:
    return f"{number(row.measured_ms, 0)}/{number(row.published_ms, 0)}{row.mark or ' '}"


def _raw_notes(raw: Raw, rows: Sequence[RawRow]) -> list[str]:
    used = {row.mark for row in rows}
    lines = [f"{defect.mark}: {defect.why}" for defect in raw.defects if defect.mark in used]
    lines += extra_note(raw)
    summary = raw_summary(rows)
    if summary is not None:
        without = " without it" if raw.extra_rtts else ""
        lines.append(f"The {summary.compared} comparable cells differ{without} by"
                     f" {number(summary.median_ms)} ms (median), {number(summary.largest_ms)} ms"
                     " at most.")
    return lines


def extra_note(raw: Raw) -> list[str]:
    """That published times hold round trips that ours do not."""
    return ([f"The published times hold {plain(raw.extra_rtts)} RTT more: {raw.extra_why}."]
            if raw.extra_rtts else [])
