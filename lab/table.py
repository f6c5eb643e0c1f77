"""Plain-text tables for the terminal: aligned columns, units in the header, n beside every mean."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab import analysis, comparison
from lab.analysis import (Change, Excluded, MissingCells, NothingCounts, Panel, RawRow,
                          Setting)
from lab.comparison import Row
from lab.records import Record
from lab.scenario import (JOINT, LOSS, OF_EXPERIMENT, WINDOW_SWEEP, Figure, Raw, Scenario,
                          plain)

MAX_WIDTH = 110  # characters; a table that needs more is hard to read in a terminal
UNKNOWN = "–"

QUANTITY_NAMES = {"rtt_ms": ("RTT", "ms"), "bandwidth_kbps": ("BW", "kbit/s"),
                  "bdp_bytes": ("BDP", "bytes"), "response_bytes": ("size", "bytes"),
                  "response_segments": ("size", "segments"), "percentile": ("of", "responses"),
                  "loss_percent": ("loss", "%"), "initcwnd": ("IW", "")}
AVERAGED = {"rtt_ms": "averaged over RTT by the paper's shares",
            "bandwidth_kbps": "averaged over bandwidth by the paper's shares",
            "response_bytes": "averaged over response sizes by the paper's shares",
            JOINT: "averaged over their joint distribution",
            "": "one network a bar"}
METRIC_NAMES = {"total_ms": "the client's total time, handshake included",
                "latency_ms": "the server's T_ACK − T_Res1"}


def of_scenario(scenario: Scenario, records: Sequence[Record],
                deterministic: bool = False) -> str:
    """All tables of a whole scenario; a figure that lacks cells says so in its place.

    deterministic: see lab.comparison.rows.
    """
    parts = [textwrap.fill(f"{scenario.name}: {scenario.claim}", MAX_WIDTH),
             of_records(records)]
    panels = []
    for figure in scenario.figures:
        try:
            panel = analysis.panel(scenario, figure, records)
        except (MissingCells, NothingCounts) as error:
            parts.append(f"no table: {error}")
            continue
        panels.append(panel)
        parts.append(of_panel(scenario, panel, deterministic))
    parts += [of_said(comparison.said(scenario.claims, panels))] if scenario.claims else []
    if scenario.raw is not None:
        parts.append(of_raw(scenario.raw, analysis.raw_comparison(scenario, records)))
    counted = comparison.counts(row for panel in panels
                                for row in comparison.rows(panel, deterministic))
    parts += [f"bars: {comparison.summary(counted)}"] if sum(counted.values()) else []
    return "\n\n".join(parts) + "\n"


def of_cells(records: Sequence[Record]) -> str:
    """What a partial run asked, saw and measured, then what the windows changed."""
    settings = analysis.settings(records)
    parts = [of_records(records), of_settings(settings)]
    changes = analysis.changes(settings)
    if changes:
        parts.append(of_changes(changes))
    return "\n\n".join(parts) + "\n"


def of_records(records: Sequence[Record]) -> str:
    """One line: how many trials, how many of them count, and why the others do not."""
    counting = sum(record.counts for record in records)
    failed = sum(not record.ok for record in records)
    line = f"{counting} of {len(records)} trials verified on the wire"
    if counting < len(records):
        line += f"; left out: {Excluded(failed, len(records) - counting - failed)}"
    return line


@dataclass(frozen=True)
class Column:
    """A column of a figure's table; of those that do not fit, the lowest `rank` goes first."""

    name: str
    unit: str
    cells: list[str]
    rank: int = 9


def of_panel(scenario: Scenario, panel: Panel, deterministic: bool = False) -> str:
    """One figure, a line per bar; "paper" is what was published, and the word what it means."""
    figure = panel.figure
    rows = comparison.rows(panel, deterministic)
    columns = (_window_columns(panel, rows) if figure.kind == WINDOW_SWEEP
               else _improvement_columns(panel, rows))
    if figure.kind == LOSS:
        columns += _recovery_columns(panel)
    columns += _published_columns(panel, rows)
    title = (f"{scenario.name} {figure.name}: {figure.title}\n"
             f"{METRIC_NAMES[figure.metric]}; {panel.client}, {panel.congestion_control};"
             f" {averaged(scenario, figure)}")
    notes = [f"bucket {bucket.label}: {bucket.cells} of {bucket.cells_asked} cells count"
             f" ({bucket.excluded})" for bucket in panel.buckets if bucket.excluded.total]
    words = comparison.summary(comparison.counts(rows))
    return "\n".join([title, _fitting(columns), *notes, *([words] if words else [])])


def averaged(scenario: Scenario, figure: Figure) -> str:
    """What a bar of the figure is a mean of."""
    if scenario.population(figure.sweep) is not None:
        return "a population of clients and responses, by its weights"
    return AVERAGED[figure.weights]


def _improvement_columns(panel: Panel, rows: Sequence[Row]) -> list[Column]:
    figure, buckets = panel.figure, panel.buckets
    name, unit = QUANTITY_NAMES[figure.by]
    columns = [Column(name, unit, [bucket.label for bucket in buckets])]
    if any(bucket.share_percent is not None for bucket in buckets):
        columns.append(Column("share", "%", [number(bucket.share_percent, 2)
                                             for bucket in buckets], 3))
    columns.append(Column("n", "", [str(bucket.n) for bucket in buckets]))
    if panel.excluded.total:
        columns.append(Column("left", "out", [str(bucket.excluded.total) for bucket in buckets]))
    columns += [Column(f"IW{figure.baseline_initcwnd}", "ms",
                       [number(bucket.base_ms) for bucket in buckets], 2),
                Column(f"IW{figure.experiment_initcwnd}", "ms",
                       [number(bucket.experiment_ms) for bucket in buckets], 2)]
    columns += _improved_columns(panel, rows)
    if any(abs(bucket.median_absolute_ms - bucket.absolute_ms) > 0.1 for bucket in buckets):
        columns += [Column("of medians", "ms", [number(bucket.median_absolute_ms)
                                                for bucket in buckets], 1),
                    Column("", "%", [number(bucket.median_percent) for bucket in buckets], 0)]
    return columns


def _window_columns(panel: Panel, rows: Sequence[Row]) -> list[Column]:
    buckets = panel.buckets
    name, unit = QUANTITY_NAMES[panel.figure.by]
    columns = [Column(name, unit, [bucket.label for bucket in buckets]),
               Column("n", "", [str(bucket.n) for bucket in buckets])]
    if panel.excluded.total:
        columns.append(Column("left", "out", [str(bucket.excluded.total) for bucket in buckets]))
    columns.append(Column("time", "ms", [number(bucket.experiment_ms) for bucket in buckets]))
    if any(abs(bucket.experiment_median_ms - bucket.experiment_ms) > 0.1 for bucket in buckets):
        columns.append(Column("median", "ms", [number(bucket.experiment_median_ms)
                                               for bucket in buckets], 1))
    if any(bucket.published_ms is not None for bucket in buckets):
        columns.append(Column("paper", "ms", [number(bucket.published_ms) for bucket in buckets]))
    return columns + _improved_columns(panel, rows)


def _improved_columns(panel: Panel, rows: Sequence[Row]) -> list[Column]:
    columns = [Column("improved", "ms", [number(row.bucket.absolute_ms) for row in rows])]
    if any(row.bucket.absolute_interval_ms or row.exact for row in rows):
        columns.append(Column("95 % interval", "ms", [interval(row) for row in rows]))
    columns.append(Column("", "%", [number(row.bucket.percent) for row in rows]))
    if panel.figure.percent_of == OF_EXPERIMENT:
        columns.append(Column("% as", "printed", [number(row.percent) for row in rows]))
    return columns


def _recovery_columns(panel: Panel) -> list[Column]:
    found = {recovery.bucket.label: recovery for recovery in comparison.recoveries(panel)}
    if not found:
        return []
    cells = [found.get(bucket.label) for bucket in panel.buckets]
    return [Column("beyond", "lossless", [number(cell.part_ms) if cell else UNKNOWN
                                          for cell in cells]),
            Column("95 % interval", "ms", [ends(cell.interval_ms) if cell else UNKNOWN
                                           for cell in cells]),
            Column("recovery", "", [cell.word if cell else UNKNOWN for cell in cells])]


def _published_columns(panel: Panel, rows: Sequence[Row]) -> list[Column]:
    if not any(row.word for row in rows):
        return []
    return [Column("paper", "ms", [number(row.bucket.published_absolute_ms) for row in rows]),
            Column("paper", "%", [number(row.published_percent) for row in rows]),
            Column("", "", [row.word or UNKNOWN for row in rows])]


def _fitting(columns: Sequence[Column]) -> str:
    """As many of the columns as fit in MAX_WIDTH."""
    kept = list(columns)
    while True:
        text = aligned([(column.name, column.unit) for column in kept],
                       list(zip(*(column.cells for column in kept))))
        lowest = min(column.rank for column in kept)
        if lowest == 9 or max(map(len, text.splitlines())) <= MAX_WIDTH:
            return text
        kept = [column for column in kept if column.rank > lowest]


def of_said(found: Sequence[comparison.Said]) -> str:
    """What the source says in words, beside what was found."""
    return "\n".join(["said in words:", *(textwrap.fill(
        f'{said.word}: "{said.claim.says}" ({said.claim.figure}: {said.found})', MAX_WIDTH,
        initial_indent="  ", subsequent_indent="    ") for said in found)])


def interval(row: Row) -> str:
    """The 95 % interval of a bar's improvement, "exact" where repeats cannot differ."""
    if row.exact:
        return "exact"
    return ends(row.bucket.absolute_interval_ms)


def ends(of: tuple[float, float] | None, digits: int = 1) -> str:
    return f"{number(of[0], digits)} … {number(of[1], digits)}" if of else UNKNOWN


def of_settings(settings: Sequence[Setting]) -> str:
    """Asked, seen and measured side by side; a footnote for each cause and each reason."""
    headers = [("asked", "RTT ms"), ("BW", "kbit/s"), ("IW", ""), ("size", "bytes"),
               ("seen", "RTT ms"), ("BW", "kbit/s"), ("IW", ""), ("first", "flight"),
               ("total", "ms"), ("model", "ms"), ("diff.", "ms"), ("latency", "ms"),
               ("re-", "sent"), ("verdict", "pass/n")]
    notes: dict[str, int] = {}
    rows = []
    for row in settings:
        marks = "".join(f" [{notes.setdefault(note, len(notes) + 1)}]"
                        for note in (*row.causes, *row.reasons))
        asked = row.asked
        rows.append([plain(asked.rtt_ms), plain(asked.bandwidth_kbps), str(asked.initcwnd),
                     str(asked.response_bytes), number(row.seen_rtt_ms),
                     number(row.seen_bandwidth_kbps), _count(row.seen_initcwnd),
                     _count(row.seen_first_flight), number(row.total_ms),
                     number(row.model_ms), number(row.deviation_ms, signed=True),
                     number(row.latency_ms), _count(row.retransmissions),
                     f"{row.n}/{row.n + row.excluded.total}{marks}"])
    lines = [textwrap.fill(f"[{position}] {note}", MAX_WIDTH, subsequent_indent="    ")
             for note, position in notes.items()]
    return "\n".join([aligned(headers, rows, left_columns=(len(headers) - 1,)), *lines])


def of_changes(changes: Sequence[Change]) -> str:
    """What larger windows changed, a line per cell and window."""
    headers = [("RTT", "ms"), ("BW", "kbit/s"), ("size", "bytes"), ("initial", "window"),
               ("from", "ms"), ("to", "ms"), ("improved", "ms"), ("", "%"), ("n", "")]
    return aligned(headers, [[
        plain(change.base.asked.rtt_ms), plain(change.base.asked.bandwidth_kbps),
        str(change.base.asked.response_bytes),
        f"{change.base.asked.initcwnd} → {change.experiment.asked.initcwnd}",
        number(change.base.total_ms), number(change.experiment.total_ms),
        number(change.absolute_ms), number(change.percent),
        f"{change.base.n}, {change.experiment.n}"] for change in changes])


def of_raw(raw: Raw, rows: Sequence[RawRow]) -> str:
    """A grid per window, RTT down, bandwidth across: measured / published, in ms."""
    counts = sorted({row.n for row in rows})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    parts = [f"every cell beside the published one (paper/{raw.file}): measured / published, ms;"
             f" n = {n} here, 1 there"]
    for initcwnd in sorted({row.initcwnd for row in rows}):
        cells = {(row.rtt_ms, row.bandwidth_kbps): row
                 for row in rows if row.initcwnd == initcwnd}
        bandwidths = list(dict.fromkeys(bandwidth for _, bandwidth in cells))
        rtts = list(dict.fromkeys(rtt for rtt, _ in cells))
        headers = [(f"IW{initcwnd}", "RTT ms"),
                   *((plain(bandwidth), "kbit/s") for bandwidth in bandwidths)]
        parts.append(aligned(headers, [[plain(rtt), *(
            _raw_cell(cells[rtt, bandwidth]) for bandwidth in bandwidths)] for rtt in rtts]))
    used = {row.mark for row in rows}
    parts.append("\n".join([*(f"{defect.mark}: {defect.why}" for defect in raw.defects
                              if defect.mark in used), *_raw_summary(raw, rows)]))
    return "\n".join(parts)


def _raw_cell(row: RawRow) -> str:
    return f"{number(row.measured_ms, 0)}/{number(row.published_ms, 0)}{row.mark or ' '}"


def _raw_summary(raw: Raw, rows: Sequence[RawRow]) -> list[str]:
    lines = []
    if raw.extra_rtts:
        lines.append(f"published times hold {plain(raw.extra_rtts)} RTT more: {raw.extra_why}")
    summary = analysis.raw_summary(rows)
    if summary is not None:
        without = " without it" if raw.extra_rtts else ""
        lines.append(f"the {summary.compared} comparable cells differ{without} by"
                     f" {number(summary.median_ms)} ms (median), {number(summary.largest_ms)} ms"
                     " at most")
    return lines


# Text --------------------------------------------------------------------------

def number(value: float | None, digits: int = 1, signed: bool = False) -> str:
    """A number with fixed decimals, "–" for none, and never "-0.0"."""
    if value is None:
        return UNKNOWN
    rounded = round(value, digits) + 0.0
    return f"{rounded:{'+' if signed else ''}.{digits}f}"


def _count(value: float | None) -> str:
    """A mean of counts: whole where it is."""
    return number(value, 0 if value is None or value == int(value) else 1)


def aligned(headers: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]],
            left_columns: Sequence[int] = ()) -> str:
    """Columns two spaces apart, right-aligned but for left_columns.

    headers: (name, unit) of each column, on two lines.
    """
    lines = [[name for name, _ in headers], [unit for _, unit in headers],
             *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    return "\n".join("  ".join(
        text.ljust(width) if column in left_columns else text.rjust(width)
        for column, (text, width) in enumerate(zip(line, widths))).rstrip() for line in lines)
