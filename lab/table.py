"""Plain-text tables for the terminal: aligned columns, units in the header, n beside every mean."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from lab import analysis
from lab.analysis import (Bucket, Change, Excluded, MissingCells, NothingCounts, Panel,
                          RawRow, Setting)
from lab.records import Record
from lab.scenario import Raw, Scenario, plain

MAX_WIDTH = 110  # characters; a table that needs more is hard to read in a terminal
UNKNOWN = "–"

QUANTITY_NAMES = {"rtt_ms": ("RTT", "ms"), "bandwidth_kbps": ("BW", "kbit/s"),
                  "bdp_bytes": ("BDP", "bytes"), "response_bytes": ("size", "bytes")}
METRIC_NAMES = {"total_ms": "the client's total time, handshake included",
                "latency_ms": "the server's T_ACK − T_Res1"}


def of_scenario(scenario: Scenario, records: Sequence[Record]) -> str:
    """All tables of a whole scenario; a figure that lacks cells says so in its place."""
    parts = [textwrap.fill(f"{scenario.name}: {scenario.claim}", MAX_WIDTH),
             of_records(records)]
    for figure in scenario.figures:
        try:
            parts.append(of_panel(scenario, analysis.improvement(scenario, figure, records)))
        except (MissingCells, NothingCounts) as error:
            parts.append(f"no table: {error}")
    if scenario.raw is not None:
        parts.append(of_raw(scenario.raw, analysis.raw_comparison(scenario, records)))
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


def of_panel(scenario: Scenario, panel: Panel) -> str:
    """One improvement figure, a line per bucket; "paper" is what was published there."""
    figure = panel.figure
    name, unit = QUANTITY_NAMES[figure.by]
    base, experiment = f"IW{figure.baseline_initcwnd}", f"IW{figure.experiment_initcwnd}"
    headers = [(name, unit), ("share", "%"), ("n", ""), ("left", "out"), (base, "ms"),
               (experiment, "ms"), ("improved", "ms"), ("", "%"), ("of medians", "ms"),
               ("", "%"), ("paper", "ms"), ("paper", "%")]
    intervals = any(bucket.absolute_interval_ms for bucket in panel.buckets)
    if intervals:
        headers.insert(8, ("95 % interval", "ms"))
    rows = [_bucket_cells(bucket, intervals) for bucket in panel.buckets]
    title = (f"{scenario.name} {figure.name}: {figure.title}\n"
             f"{METRIC_NAMES[figure.metric]}; {panel.client}, {panel.congestion_control}; "
             + (f"every bucket averaged over {QUANTITY_NAMES[figure.weights][0]} by the"
                " paper's shares" if figure.weights else "one network a bucket"))
    notes = [f"bucket {bucket.label}: {bucket.cells} of {bucket.cells_asked} cells count"
             f" ({bucket.excluded})" for bucket in panel.buckets if bucket.excluded.total]
    return "\n".join([title, aligned(headers, rows), *notes])


def _bucket_cells(bucket: Bucket, intervals: bool) -> list[str]:
    cells = [bucket.label, number(bucket.share_percent, 2), str(bucket.n),
             str(bucket.excluded.total), number(bucket.base_ms), number(bucket.experiment_ms),
             number(bucket.absolute_ms), number(bucket.percent),
             number(bucket.median_absolute_ms), number(bucket.median_percent),
             number(bucket.published_absolute_ms), number(bucket.published_percent)]
    if intervals:
        ends = bucket.absolute_interval_ms
        cells.insert(8, f"{number(ends[0])} … {number(ends[1])}" if ends else UNKNOWN)
    return cells


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
