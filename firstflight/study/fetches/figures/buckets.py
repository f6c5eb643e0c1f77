"""What is behind each bar of a figure: its cells with their weights, and what was published.

Some sources print base / experiment − 1; their percentages are converted where they
are read, which is exact (findings.difference.of_baseline).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from firstflight.base.words import plain
from firstflight.findings.bar import Bar, Published
from firstflight.findings.difference import of_baseline, percent_of
from firstflight.findings.quantities import quantity
from firstflight.runs.results.cells import grouped
from firstflight.study.fetches.figures.bar_figure import BarFigure, NoPanel
from firstflight.study.fetches.scenario.figures import check_joint_labels
from firstflight.study.fetches.scenario.scenario import JOINT, OF_EXPERIMENT, Axis, Figure, Scenario
from firstflight.study.fetches.scenario.sweep import Cell, Sweep, bucket_value, cell_of
from firstflight.study.fetches.verify.record import Record
from firstflight.study.scenario import published

JOINT_SHARES = "joint_shares.csv"  # of paper/: paper.draw.bucket_shares computed them


def sign_of(metric: str) -> int:
    """1 where less of the metric is better, -1 where more is."""
    return -1 if quantity(metric).more_is_better else 1


def published_bars(figure: Figure) -> dict[str, Published]:
    """The figure's published bars by label, percentages as parts of the baseline.

    Of other windows than the published ones the bars have no values.
    """
    if not figure.published:
        return {}
    printed = published.buckets(figure.published, figure.panel)
    if figure.other_windows:
        return dict.fromkeys(printed, Published())
    if figure.percent_of != OF_EXPERIMENT:
        return printed
    return {label: bar if bar.percent is None else replace(
        bar, percent=of_baseline(bar.percent, sign_of(figure.metric)))
        for label, bar in printed.items()}


def beside_baseline(panel: BarFigure) -> tuple[Bar, ...]:
    """The bars; of a window sweep, each published value as an improvement on the baseline's."""
    base = next((bar.published for bar in panel.bars if panel.is_baseline(bar)), Published())
    made = []
    for bar in panel.bars:
        own, sign = bar.published, bar.difference.sign
        if base.level is not None and own.level is not None and own is not base:
            bar = replace(bar, published=replace(
                own, absolute=sign * (base.level - own.level),
                percent=percent_of(base.level, own.level, sign), error=base.error + own.error))
        made.append(bar)
    return tuple(made)


ByCell = dict[tuple[Cell, int], list[Record]]


def by_cell(scenario: Scenario, figure: Figure, windows: Sequence[int],
            records: Sequence[Record], is_whole: bool = True) -> tuple[list[Record], ByCell]:
    """The records of the figure's sweep, also by cell and window.

    Raises NoPanel where a cell was not measured; of a part of a scenario, where none was.
    """
    sweep = scenario.sweep(figure.sweep)
    chosen, cells = of_sweep(sweep, records), sweep.cells
    made = grouped(chosen, lambda record: (cell_of(record.trial), record.trial.initcwnd))
    missing = [cell for cell in cells
               if any((cell, initcwnd) not in made for initcwnd in windows)]
    if missing and (is_whole or len(missing) == len(cells)):
        named = ", ".join(f"RTT {plain(cell.rtt_ms)} ms at {plain(cell.bandwidth_kbps)} kbit/s"
                          for cell in missing[:3]) + (", …" if len(missing) > 3 else "")
        raise NoPanel(f"{len(missing)} of {len(cells)} cells ({named}) of {scenario.name}"
                      f" {figure.name} were not measured; measure with"
                      f" {_command(scenario, missing)}")
    return chosen, made


def of_sweep(sweep: Sweep, records: Iterable[Record]) -> list[Record]:
    """The records whose trial the sweep asks for.

    A run may have been made with another client than the sweep names; then
    all of its records have to agree. Raises NoPanel.
    """
    cells = set(sweep.cells)
    made = grouped([record for record in records if not (trial := record.trial).part
                    and trial.initcwnd in sweep.initcwnd and cell_of(trial) in cells],
                   lambda record: record.trial.client)
    if sweep.client in made or not made:
        return made.get(sweep.client, [])
    if len(made) > 1:
        raise NoPanel(f"the records mix {' and '.join(sorted(made))} in sweep {sweep.name!r};"
                      " measure again with --fresh")
    return next(iter(made.values()))


def _command(scenario: Scenario, cells: Sequence[Cell]) -> str:
    """The command line that measures the cells."""
    line = f"./run.sh --scenario {scenario.name}"
    if {cell for sweep in scenario.sweeps for cell in sweep.cells} <= set(cells):
        return line
    rtts, bandwidths = (",".join(map(plain, dict.fromkeys(values))) for values in
                        zip(*((cell.rtt_ms, cell.bandwidth_kbps) for cell in cells)))
    return f"{line} --rtt {rtts} --bw {bandwidths}"


WeightedCells = list[list[tuple[Cell, float]]]  # of each bucket


def weighted_cells(scenario: Scenario, figure: Figure, axis: Axis) -> WeightedCells:
    """The cells of every bucket of the axis, each with its weight: a share in percent, or 1."""
    if figure.weights == JOINT:
        return _joint_cells(scenario, figure, axis)
    cells = scenario.sweep(figure.sweep).cells
    members = [[cell for cell in cells if bucket_value(figure.by, cell) == value]
               for value in axis.values]
    if not figure.weights:
        return [[(cell, 1.0) for cell in bucket] for bucket in members]
    weights = scenario.axis(figure.weights)
    assert weights is not None  # the reader of the scenario has looked
    return [[(cell, weights.share_percent(bucket_value(figure.weights, cell)) or 0.0)
             for cell in bucket] for bucket in members]


def _joint_cells(scenario: Scenario, figure: Figure, axis: Axis) -> WeightedCells:
    """The cells of every BDP bucket, weighted by the joint distribution of RTT and bandwidth.

    A cell stands for the responses of its RTT bucket and its bandwidth
    bucket. Some of them are in one BDP bucket and some in the next, so that a
    cell can enter several. Raises UsageError where the axes are not the paper's.
    """
    check_joint_labels(scenario, scenario.name)
    columns = ("RTT", "BW", "BDP", "share")
    shares = {(row["RTT"], row["BW"], row["BDP"]): published.number(row, "share", JOINT_SHARES)
              for row in published.rows(published.path_of(JOINT_SHARES), columns)}
    rtts, bandwidths = (known for by in ("rtt_ms", "bandwidth_kbps")
                        if (known := scenario.axis(by)) is not None)  # both: the check has looked
    return [[(cell, 100 * share) for cell in scenario.sweep(figure.sweep).cells
             if (share := shares.get((rtts.label(cell.rtt_ms),
                                      bandwidths.label(cell.bandwidth_kbps), label)))]
            for label in axis.labels]
