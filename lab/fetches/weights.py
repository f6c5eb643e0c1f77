"""Which records belong to a sweep, and which of its cells a bucket is made of, by weight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lab.core.errors import FirstFlightError
from lab.core.words import plain
from lab.fetches.buckets import NoPanel
from lab.fetches.record import Record
from lab.fetches.scenario import JOINT, Axis, Figure, Scenario
from lab.fetches.sweep import Cell, Sweep, bucket_value, cell_of

ByCell = dict[tuple[Cell, int], list[Record]]



def by_cell(scenario: Scenario, figure: Figure, windows: Sequence[int],
            records: Sequence[Record]) -> tuple[list[Record], ByCell]:
    """The records of the figure's sweep, also by cell and window. Raises NoPanel."""
    sweep = scenario.sweep(figure.sweep)
    chosen = of_sweep(sweep, records)
    made: ByCell = {}
    for record in chosen:
        made.setdefault((cell_of(record.trial), record.trial.initcwnd), []).append(record)
    missing = [cell for cell in sweep.cells
               if any((cell, initcwnd) not in made for initcwnd in windows)]
    if missing:
        named = ", ".join(f"RTT {plain(cell.rtt_ms)} ms at {plain(cell.bandwidth_kbps)} kbit/s"
                          for cell in missing[:3]) + (", …" if len(missing) > 3 else "")
        raise NoPanel(f"{len(missing)} of {len(sweep.cells)} cells ({named}) of {scenario.name}"
                      f" {figure.name} were not measured; measure with"
                      f" {_command(scenario, missing)}")
    return chosen, made


def of_sweep(sweep: Sweep, records: Iterable[Record]) -> list[Record]:
    """The records whose trial the sweep asks for.

    A run may have been made with another client than the sweep names; then
    all of its records have to agree. Raises NoPanel.
    """
    cells = set(sweep.cells)
    made: dict[str, list[Record]] = {}
    for record in records:
        trial = record.trial
        if not trial.part and trial.initcwnd in sweep.initcwnd and cell_of(trial) in cells:
            made.setdefault(trial.client, []).append(record)
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


def weighted_cells(scenario: Scenario, figure: Figure,
                   axis: Axis) -> list[list[tuple[Cell, float]]]:
    """The cells of every bucket of the axis, each with its weight: a share in percent, or 1."""
    cells = scenario.sweep(figure.sweep).cells
    if figure.weights == JOINT:
        return _joint_cells(scenario, cells, axis)
    members = [[cell for cell in cells if bucket_value(figure.by, cell) == value]
               for value in axis.values]
    if not figure.weights:
        return [[(cell, 1.0) for cell in bucket] for bucket in members]
    weights = _axis(scenario, figure.weights)
    return [[(cell, weights.share_percent(bucket_value(figure.weights, cell)) or 0.0)
             for cell in bucket] for bucket in members]


def _axis(scenario: Scenario, by: str) -> Axis:
    axis = scenario.axis(by)
    assert axis is not None  # the reader of the scenario has looked
    return axis


def _joint_cells(scenario: Scenario, cells: Sequence[Cell],
                 axis: Axis) -> list[list[tuple[Cell, float]]]:
    """The cells of every BDP bucket, weighted by the joint distribution of RTT and bandwidth.

    A cell stands for the responses of its RTT bucket and its bandwidth
    bucket. Some of them are in one BDP bucket and some in the next, so that a
    cell can enter several. Raises FirstFlightError where the axes are not the paper's.
    """
    import numpy

    from lab.fetches.joint import average_datacenter

    joint = average_datacenter()
    axes = [_axis(scenario, by) for by in ("rtt_ms", "bandwidth_kbps", "bdp_bytes")]
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
