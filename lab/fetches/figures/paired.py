"""Responses that were measured under several windows, paired: what differs is the window.

Intervals come from resampling clients, not responses, since the responses of one client share
its network (a cluster bootstrap, Efron and Tibshirani 1993, section 8.5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy
from numpy.typing import NDArray

from lab.core.findings.charts import Sample
from lab.core.scenario.curves import Numbers
from lab.fetches.figures.buckets import NoPanel, sign_of
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record

Rows = dict[int, Record]  # of one response, by window
Windows = tuple[int, int]  # the baseline's and the experiment's
PAPER_SEGMENT_BYTES = 1430  # the paper's footnote 1


@dataclass(frozen=True)
class Paired:
    """Responses of one part measured under two windows, one row each.

    weight, base_weight (in the baseline's week), base, experiment (the figure's
    metric), all of shape (n,); trials: n of them, under the baseline's window;
    client: a number per client, shape (n,), 0 … clients − 1. sign: see
    buckets.Bucket. unpaired: a trial of each response that lacks a counting
    record of either window.
    """

    weight: Numbers
    base_weight: Numbers
    base: Numbers
    experiment: Numbers
    trials: tuple[Trial, ...]
    client: NDArray[numpy.intp]
    sign: int
    unpaired: tuple[Trial, ...]

    @property
    def clients(self) -> int:
        """Those that are drawn from: up to the last of them in these rows."""
        return int(self.client.max()) + 1

    def only(self, inside: NDArray[numpy.bool_]) -> Paired:
        """The rows where `inside`, of shape (n,), is true, and nothing unpaired."""
        return Paired(self.weight[inside], self.base_weight[inside], self.base[inside],
                      self.experiment[inside], tuple(compress(self.trials, inside)),
                      self.client[inside], self.sign, ())

    @property
    def side_by_side(self) -> bool:
        """Whether both windows were measured in the same week."""
        return bool((self.weight == self.base_weight).all())

    def samples(self, windows: Windows) -> tuple[Sample, Sample]:
        base, experiment = windows
        return (Sample(f"IW {base}", self.base, self.base_weight),
                Sample(f"IW {experiment}", self.experiment, self.weight))


def quantity_of(by: str, trials: Sequence[Trial]) -> Numbers:
    """What an axis of the paper buckets trials by, in the unit of its name, shape (n,)."""
    rtt_ms, bandwidth_kbps, size_bytes = (
        numpy.array([float(getattr(trial, name) or 0) for trial in trials])
        for name in ("key_rtt_ms", "key_bandwidth_kbps", "response_bytes"))
    known: dict[str, Numbers] = {
        "rtt_ms": rtt_ms, "bandwidth_kbps": bandwidth_kbps,
        "bdp_bytes": rtt_ms * bandwidth_kbps / 8,
        "response_segments": numpy.ceil(size_bytes / PAPER_SEGMENT_BYTES)}
    return known[by]


class Responses:
    """The records of populations by part, response and window."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._by_part: dict[str, dict[int, Rows]] = {}
        for record in records:
            trial = record.trial
            if trial.part:
                self._by_part.setdefault(trial.part, {}).setdefault(
                    trial.sample, {})[trial.initcwnd] = record

    def of(self, part: str, windows: Sequence[int]) -> list[Record]:
        """The records of a part that count under some windows."""
        return [record for rows in self._by_part.get(part, {}).values()
                for initcwnd, record in rows.items() if initcwnd in windows and record.counts]

    def by_sample(self, part: str) -> Mapping[int, Rows]:
        """The records of a part, by response and window."""
        return self._by_part.get(part, {})

    def pair(self, part: str, windows: Windows, metric: str) -> Paired:
        """The responses of a part that count under both windows. Raises NoPanel: see pair_of."""
        return pair_of(part, self.by_sample(part), windows, metric)


def pair_of(part: str, measured: Mapping[int, Rows], windows: Windows, metric: str) -> Paired:
    """The responses that count under both windows, of records by response.

    Raises NoPanel where none was measured or none counts.
    """
    base, experiment = windows
    chosen = {sample: rows for sample, rows in sorted(measured.items())
              if base in rows or experiment in rows}
    if not chosen:
        raise NoPanel(f"nothing of population '{part}' was measured; measure with"
                      " ./run.sh --scenario with this scenario's name")
    both = {sample: (rows[base], rows[experiment]) for sample, rows in chosen.items()
            if base in rows and experiment in rows
            and _usable(rows[base], metric) and _usable(rows[experiment], metric)}
    if not both:
        raise NoPanel(f"no response of '{part}' counts under both windows, {base} and"
                      f" {experiment}")
    trials = [first.trial for first, _ in both.values()]
    clients = [(trial.key_rtt_ms, trial.key_bandwidth_kbps) for trial in trials]
    numbers = {client: number for number, client in enumerate(dict.fromkeys(clients))}
    return Paired(
        weight=numpy.array([second.trial.weight for _, second in both.values()]),
        base_weight=numpy.array([trial.weight for trial in trials]),
        base=numpy.array([getattr(first, metric) for first, _ in both.values()]),
        experiment=numpy.array([getattr(second, metric) for _, second in both.values()]),
        trials=tuple(trials), client=numpy.array([numbers[client] for client in clients]),
        sign=sign_of(metric),
        unpaired=tuple((rows.get(base) or rows[experiment]).trial
                       for sample, rows in chosen.items() if sample not in both))


def _usable(record: Record, metric: str) -> bool:
    return record.counts and getattr(record, metric) is not None
