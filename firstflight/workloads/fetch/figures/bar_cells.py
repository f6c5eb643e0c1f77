"""The published bars of a figure, and the cells of each bar with their weights.

Some sources print base / experiment − 1. Their percentages are converted when they are read. The
conversion is exact (findings.difference.of_baseline).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from firstflight.base.typed import typed_number
from firstflight.base.words import plain
from firstflight.findings.bar import Bar
from firstflight.findings.claims import Published
from firstflight.findings.difference import of_baseline, percent_of
from firstflight.runs.results.cells import grouped
from firstflight.scenario import published
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars
from firstflight.workloads.fetch.record.record import Record, quantity
from firstflight.workloads.fetch.scenario.figures import check_joint_labels
from firstflight.workloads.fetch.scenario.scenario import (JOINT, OF_EXPERIMENT, Axis, Figure,
                                                           Scenario)
from firstflight.workloads.fetch.scenario.sweep import CellKey, Sweep, bucket_value, cell_key
from firstflight.workloads.fetch.trial import Trial

JOINT_SHARES = "joint_shares.csv"  # in paper/, computed by paper.draw.bucket_shares


def sign_of(metric: str) -> int:
    """1 where less of the metric is better, -1 where more is."""
    return -1 if quantity(metric).more_is_better else 1


def published_bars(figure: Figure) -> dict[str, Published]:
    """The figure's published bars by label, with percentages of the baseline.

    Where the figure has other windows than the published ones, its bars have no values.
    """
    if not figure.published:
        return {}
    printed = published.buckets(figure.published, figure.panel)
    if figure.other_windows:
        return dict.fromkeys(printed, Published())
    if figure.percent_of != OF_EXPERIMENT:
        return printed

    sign, converted = sign_of(figure.metric), {}
    for label, bar in printed.items():
        percent = None if bar.percent is None else of_baseline(bar.percent, sign)
        converted[label] = replace(bar, percent=percent)
    return converted


def beside_baseline(bar_figure: BarFigure) -> tuple[Bar, ...]:
    """The bars. In a window sweep, published levels become improvements on the baseline's level."""
    base = next((bar.published for bar in bar_figure.bars if bar_figure.is_baseline(bar)),
                Published())
    bars = []
    for bar in bar_figure.bars:
        known, sign = bar.published, bar.difference.sign
        if base.level is not None and known.level is not None and known is not base:
            improvement = replace(
                known, absolute=sign * (base.level - known.level),
                percent=percent_of(base.level, known.level, sign), error=base.error + known.error)
            bar = replace(bar, published=improvement)
        bars.append(bar)
    return tuple(bars)


ByCell = dict[tuple[CellKey, int], list[Record]]


def by_cell(scenario: Scenario, figure: Figure, windows: Sequence[int],
            records: Sequence[Record], is_whole: bool = True) -> tuple[list[Record], ByCell]:
    """The records of the figure's sweep, and these records by cell and window.

    is_whole: whether the whole scenario was measured. Raises NoBars where a cell was not measured
    under all windows, or in a part of a scenario where no cell was.
    """
    sweep = scenario.sweep(figure.sweep)
    cells = sweep.cells
    chosen = of_sweep(sweep, records)
    by_cell_and_window = grouped(
        chosen, lambda record: (cell_key(record.trial), record.trial.initcwnd))
    missing = []
    for cell in cells:
        if not all((cell, initcwnd) in by_cell_and_window for initcwnd in windows):
            missing.append(cell)
    if not missing or (not is_whole and len(missing) < len(cells)):
        return chosen, by_cell_and_window

    named = [f"RTT {plain(cell.rtt_ms)} ms at {plain(cell.bandwidth_kbps)} kbit/s"
             for cell in missing[:3]]
    if len(missing) > 3:
        named.append("…")
    raise NoBars(f"{len(missing)} of {len(cells)} cells ({', '.join(named)}) of {scenario.name}"
                 f" {figure.name} were not measured; measure with {_command(scenario, missing)}")


def of_sweep(sweep: Sweep, records: Iterable[Record]) -> list[Record]:
    """The records of a sweep's trials.

    A run may have another client than the sweep names. Raises NoBars where it has several.
    """
    cells = set(sweep.cells)

    def is_of_sweep(trial: Trial) -> bool:
        return not trial.part and trial.initcwnd in sweep.initcwnd and cell_key(trial) in cells

    by_client = grouped([record for record in records if is_of_sweep(record.trial)],
                        lambda record: record.trial.client)
    if sweep.client in by_client or not by_client:
        return by_client.get(sweep.client, [])
    if len(by_client) > 1:
        raise NoBars(f"the records mix {' and '.join(sorted(by_client))} in sweep {sweep.name!r};"
                     " measure again with --fresh")
    return next(iter(by_client.values()))


def _command(scenario: Scenario, cells: Sequence[CellKey]) -> str:
    """The command line that measures the cells."""
    line = f"./run.sh --scenario {scenario.name}"
    if all(set(cells).issuperset(sweep.cells) for sweep in scenario.sweeps):
        return line
    rtts_ms = dict.fromkeys(cell.rtt_ms for cell in cells)
    rates_kbps = dict.fromkeys(cell.bandwidth_kbps for cell in cells)
    rtts = ",".join(typed_number(rtt_ms, "ms") for rtt_ms in rtts_ms)
    rates = ",".join(typed_number(rate_kbps, "kbit/s") for rate_kbps in rates_kbps)
    return f"{line} --rtt {rtts} --bw {rates}"


# For each bucket, its cells with their weights.
WeightedCells = list[list[tuple[CellKey, float]]]


def weighted_cells(scenario: Scenario, figure: Figure, axis: Axis) -> WeightedCells:
    """The cells of each bucket of the axis, with their weights: shares in percent, or 1.

    Raises UsageError where the axes do not fit the joint distribution.
    """
    if figure.weights == JOINT:
        return _joint_cells(scenario, figure, axis)
    weights = scenario.axis(figure.weights) if figure.weights else None

    def weight_of(cell: CellKey) -> float:
        if weights is None:
            return 1.0
        return weights.share_percent(bucket_value(figure.weights, cell)) or 0.0

    by_value = grouped(scenario.sweep(figure.sweep).cells,
                       lambda cell: bucket_value(figure.by, cell))
    buckets = []
    for value in axis.values:
        buckets.append([(cell, weight_of(cell)) for cell in by_value.get(value, ())])
    return buckets


def _joint_cells(scenario: Scenario, figure: Figure, axis: Axis) -> WeightedCells:
    """The cells of each BDP bucket, weighted by the joint distribution of RTT and bandwidth.

    A cell stands for all responses of its RTT bucket and its bandwidth bucket. Their BDPs can lie
    in several BDP buckets. Then the cell is in all of these. Raises UsageError where the axes are
    not the paper's.
    """
    check_joint_labels(scenario, scenario.name)
    columns = ("RTT", "BW", "BDP", "share")
    shares = {(row["RTT"], row["BW"], row["BDP"]): published.number(row, "share", JOINT_SHARES)
              for row in published.rows(published.path_of(JOINT_SHARES), columns)}
    rtts, bandwidths = scenario.axis("rtt_ms"), scenario.axis("bandwidth_kbps")
    assert rtts is not None and bandwidths is not None  # the check has looked

    buckets: WeightedCells = []
    for label in axis.labels:
        bucket = []
        for cell in scenario.sweep(figure.sweep).cells:
            place = rtts.label(cell.rtt_ms), bandwidths.label(cell.bandwidth_kbps), label
            if shares.get(place):
                bucket.append((cell, 100 * shares[place]))
        buckets.append(bucket)
    return buckets
