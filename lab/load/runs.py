"""The runs of one figure: which they are, what is read of their files, where they stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from lab.core.errors import FirstFlightError
from lab.core.run.measuring import file_of, kept
from lab.core.scenario.quantities import quantity
from lab.core.words import plain
from lab.load.connections import FILE, QUEUE_FILE, Connections, read, read_bottleneck
from lab.load.record import LoadRecord
from lab.load.scenario import Figure

Numbers = NDArray[numpy.float64]

QUEUE_SMOOTHED_S = 2.0


class MissingRuns(FirstFlightError):
    """A figure lacks runs; its text says which."""


@dataclass(frozen=True)
class Runs:
    """The runs of one figure: those that count, by window and seed.

    folder: the run folder; left_out: runs that do not count. _read: by id,
    the connections read so far, since several of a figure's numbers ask.
    """

    figure: Figure
    folder: Path
    records: tuple[LoadRecord, ...]
    left_out: int
    _read: dict[str, Connections] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, figure: Figure, records: Iterable[LoadRecord], folder: Path) -> Runs:
        """Raises MissingRuns where a window of the figure has none that counts."""
        mine = [record for record in records if record.trial.part in figure.sweeps
                and record.trial.window in figure.windows]
        counting = tuple(record for record in mine if record.counts)
        missing = [window for window in figure.windows
                   if not any(record.trial.window == window for record in counting)]
        if missing:
            raise MissingRuns(f"{figure.name}: no run with the window {missing[0]} counts;"
                              " measure the whole scenario again with --fresh")
        return cls(figure, folder, counting, len(mine) - len(counting))

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said of runs that do not count, if there are any."""
        are = "run is" if self.left_out == 1 else "runs are"
        return (f"{self.left_out} {are} left out: not measured, or not verified",
                ) if self.left_out else ()

    def values(self, axis: str) -> list[Any]:
        """The values on an axis, in the order of the file; "" alone for no axis."""
        return list(dict.fromkeys(getattr(record.trial, axis) if axis else ""
                                  for record in self.records))

    def at(self, window: str, **places: Any) -> dict[int, LoadRecord]:
        """The runs with a window at a place on some axes, by repeat.

        Raises MissingRuns where several cells share the place.
        """
        found: dict[int, LoadRecord] = {}
        for record in self.records:
            trial = record.trial
            if trial.window == window and all(getattr(trial, axis) == value
                                              for axis, value in places.items() if axis):
                if trial.repeat in found:
                    raise MissingRuns(f"{self.figure.name}: several runs fall on one place; say"
                                      " by which axis they differ (by, series)")
                found[trial.repeat] = record
        return found

    def connections(self, record: LoadRecord) -> Connections:
        """The connections of a run that count. Raises FirstFlightError."""
        trial = record.trial
        if trial.id not in self._read:
            path = file_of(self.folder, trial.id, FILE)
            self._read[trial.id] = read(kept(path), str(path)).counted(trial.counted_s)
        return self._read[trial.id]

    def queue(self, record: LoadRecord) -> tuple[Numbers, Numbers]:
        """The bottleneck's queue: times in s, and the mean of QUEUE_SMOOTHED_S in packets.

        Raises FirstFlightError.
        """
        path = file_of(self.folder, record.trial.id, QUEUE_FILE)
        seen = read_bottleneck(kept(path), str(path))
        bins = (seen.time_s / QUEUE_SMOOTHED_S).astype(int)
        counts = numpy.maximum(numpy.bincount(bins), 1)
        means = numpy.bincount(bins, weights=seen.queue_packets) / counts
        return (numpy.arange(len(means)) + 0.5) * QUEUE_SMOOTHED_S, means


# The axes of figures, for readers ------------------------------------------------------

def name_of(axis: str) -> str:
    """In the head of a column, and at an axis."""
    known = quantity(axis)
    return known.label or known.head


def describe(axis: str, value: Any) -> str:
    """A place on an axis for a reader: "50 kB", "0.95", "2 BDP"."""
    if axis == "response_bytes":
        return f"{plain(value / 1000)} kB"
    if axis == "queue_bdp":
        return f"{plain(value)} BDP"
    return plain(value) if isinstance(value, (int, float)) else str(value)


def named(axis: str, value: Any) -> str:
    """A place with its axis's name, where the value alone does not say it: "buffer 2 BDP"."""
    name = "" if axis == "variant" else f"{name_of(axis)} "
    return name + describe(axis, value)
