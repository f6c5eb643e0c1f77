"""Cells weighted by the joint distribution of RTT and bandwidth: weights = "joint" of a figure."""

from __future__ import annotations

from lab.core.errors import UsageError
from lab.core.scenario import published
from lab.fetches.figures.buckets import WeightedCells
from lab.fetches.figures.panels import check_same_values
from lab.fetches.scenario.scenario import JOINT, Axis, Figure, Scenario

SHARES = "joint_shares.csv"  # of paper/: paper.draw.bucket_shares computed them


def check(scenario: Scenario, figure: Figure, where: str) -> None:
    """Weights from the joint distribution: RTT and bandwidth have axes, and BDP the buckets."""
    if figure.by != "bdp_bytes":
        raise UsageError(f'{where}: weights = "{JOINT}" needs by = "bdp_bytes"')
    sweep = scenario.sweep(figure.sweep)
    for by in published.SHARES_PANELS:
        axis = scenario.axis(by)
        if axis is None:
            raise UsageError(f'{where}: there is no [[axis]] with by = "{by}"')
        if by != "bdp_bytes":
            check_same_values(axis.values, sweep, by, where)
    if sweep.cell_count > len(sweep.networks):
        raise UsageError(f'{where}: weights = "{JOINT}" takes one response size and loss rate')
    _check_labels(scenario, where)


def _check_labels(scenario: Scenario, where: str) -> None:
    for by in published.SHARES_PANELS:
        axis, known = scenario.axis(by), tuple(published.shares(by))
        if axis and axis.labels != known:
            raise UsageError(f"{where}: the axis of {by} has the buckets {', '.join(axis.labels)};"
                             f" the joint distribution has {', '.join(known)}")


def joint_cells(scenario: Scenario, figure: Figure, axis: Axis) -> WeightedCells:
    """The cells of every BDP bucket, weighted by the joint distribution of RTT and bandwidth.

    A cell stands for the responses of its RTT bucket and its bandwidth
    bucket. Some of them are in one BDP bucket and some in the next, so that a
    cell can enter several. Raises UsageError where the axes are not the paper's.
    """
    _check_labels(scenario, scenario.name)
    shares = {(row["RTT"], row["BW"], row["BDP"]): published.number(row, "share", SHARES)
              for row in published.rows(published.path_of(SHARES), ("RTT", "BW", "BDP", "share"))}
    rtts, bandwidths = (known for by in ("rtt_ms", "bandwidth_kbps")
                        if (known := scenario.axis(by)) is not None)  # both: the check has looked
    return [[(cell, 100 * share) for cell in scenario.sweep(figure.sweep).cells
             if (share := shares.get((rtts.label(cell.rtt_ms),
                                      bandwidths.label(cell.bandwidth_kbps), label)))]
            for label in axis.labels]
