"""Two parts of the clients on one link: what the window of the first does to the second."""

from __future__ import annotations

from dataclasses import dataclass

from lab.core.stats import Estimate
from lab.load.analysis import Distribution, Gain, distribution
from lab.load.runs import MissingRuns, Runs


@dataclass(frozen=True)
class Shared:
    """What one window of the first part of the clients does to both parts of a link.

    first, second: what each part saves of the mean against the baseline of
    all; first_p99, second_p99: of the 99th percentile, None where it is not known.
    retransmission: of the second part's bytes, %.
    """

    initcwnd: int
    count: int
    first: Gain
    second: Gain
    first_p99: Gain | None
    second_p99: Gain | None
    retransmission: Estimate


def found(runs: Runs) -> list[Shared]:
    """For a figure of kind share, the baseline with itself first.

    The parts have hosts of their own, whose arrivals are the same under every window.
    """
    base, made = parts(runs, runs.figure.windows[0]), []
    for window in runs.figure.windows:
        own = parts(runs, window)
        (first, second), (first_p99, second_p99) = (
            [each.gain_over(before, place) for each, before in zip(own, base)]
            for place in (None, 99.0))
        if first is None or second is None:
            raise MissingRuns(f"{runs.figure.name}: the window {window} lacks a seed; measure"
                              " again with --fresh")
        made.append(Shared(int(window.partition("+")[0]), own[1].count, first, second,
                           first_p99, second_p99, own[1].retransmission))
    return made


def parts(runs: Runs, window: str) -> list[Distribution]:
    """The two parts of a mix by their places, as both may have one window."""
    return [distribution(f"part {place + 1}", window, {
        repeat: runs.connections(record).of_hosts(
            set(range(place, len(record.trial.hosts), 2)))
        for repeat, record in runs.at(window).items()}) for place in range(2)]
