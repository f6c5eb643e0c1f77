"""Cells weighted by the joint distribution of RTT and bandwidth: weights = "joint" of a figure."""

from __future__ import annotations

from lab.core.errors import FirstFlightError, UsageError
from lab.core.scenario import published
from lab.fetches.figures.buckets import WeightedCells
from lab.fetches.figures.panels import check_same_values
from lab.fetches.scenario.scenario import JOINT, Axis, Figure, Scenario


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
    for by in published.SHARES_PANELS:
        axis, known = scenario.axis(by), tuple(published.shares(by))
        if axis and axis.labels != known:
            raise UsageError(f"{where}: the axis of {by} has the buckets {', '.join(axis.labels)};"
                             f" the joint distribution has {', '.join(known)}")


def joint_cells(scenario: Scenario, figure: Figure, axis: Axis) -> WeightedCells:
    """The cells of every BDP bucket, weighted by the joint distribution of RTT and bandwidth.

    A cell stands for the responses of its RTT bucket and its bandwidth
    bucket. Some of them are in one BDP bucket and some in the next, so that a
    cell can enter several. Raises FirstFlightError where the axes are not the paper's.
    """
    import numpy

    from lab.fetches.features.population.joint import average_datacenter  # imports numpy

    joint, cells = average_datacenter(), scenario.sweep(figure.sweep).cells
    axes = [known for by in ("rtt_ms", "bandwidth_kbps", "bdp_bytes")
            if (known := scenario.axis(by)) is not None]  # all: the check has looked
    for own, marginal in zip(axes, joint.marginals):
        if own.labels != marginal.labels:
            raise FirstFlightError(f"{scenario.name}: the axis of {own.by} has the buckets"
                                   f" {', '.join(own.labels)}; the joint distribution has"
                                   f" {', '.join(marginal.labels)}")
    of_rtt, of_bandwidth, of_product = (
        marginal.bucket(values) for marginal, values in
        zip(joint.marginals, (joint.rtt_ms, joint.bandwidth_kbps, joint.bdp_bytes)))
    shares = numpy.zeros([len(own.values) for own in axes])
    numpy.add.at(shares, (of_rtt[:, None], of_bandwidth[None, :], of_product), joint.share)
    rtts, bandwidths, _ = axes
    weighted = [[(cell, float(shares[rtts.values.index(cell.rtt_ms),
                                     bandwidths.values.index(cell.bandwidth_kbps), bucket]))
                 for cell in cells] for bucket in range(len(axis.values))]
    return [[(cell, weight * 100) for cell, weight in bucket if weight > 0]
            for bucket in weighted]
