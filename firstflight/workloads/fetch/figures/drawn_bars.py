"""The bars of a drawn population's figures: the paper's bars, percentiles and window means.

Every response was measured under each initial window, so two windows differ by the window only:
the comparison is paired. Where the baseline had a week of its own, a response has another weight in
that week (rows.Row.baseline_weight). Then the bar compares the two weeks, as the paper did. That is
not a paired comparison, so the bar has the paired one, too.

Means have the weights of the draw (paper/draw.py). Intervals come from resampling clients, not
responses, since the responses of one client share its network.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

import numpy

from firstflight.base.words import plain
from firstflight.figures.compare import Row, Rows, resampled_clients, resampled_quantiles
from firstflight.findings.bar import Bar
from firstflight.findings.claims import Published
from firstflight.findings.difference import Difference, Excluded
from firstflight.workloads.fetch.figures.bar_cells import published_bars, sign_of
from firstflight.workloads.fetch.figures.bar_figure import BarFigure, NoBars, Sample
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.population import Populations, percentile_of
from firstflight.workloads.fetch.scenario.scenario import Figure
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify import notes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from firstflight.scenario.curves import Numbers

ByWindow = dict[int, Record]  # the records of one response
Responses = dict[int, ByWindow]  # the responses of one population, by their number
Windows = tuple[int, int]  # baseline and experiment
PAPER_SEGMENT_BYTES = 1430  # the size of a segment in the paper (footnote 1)


@dataclass(frozen=True)
class Paired:
    """Responses of one population, measured under two windows."""

    # For each window a row for each response, in the same order. The unit of a row is the number of
    # the client. Its weight is that of the response under this window, and its value the metric's.
    rows: Mapping[int, Rows]
    trials: tuple[Trial, ...]  # the trial of each response under the baseline
    sign: int  # as in Difference
    # One trial of each response that does not count under both windows.
    alone: tuple[Trial, ...]

    @cached_property
    def clients(self) -> int:
        """How many clients resampling draws from: the largest number in the rows, plus one."""
        return 1 + max(int(row.unit) for side in self.rows.values() for row in side)

    def only(self, inside: NDArray[numpy.bool_]) -> Paired:
        """The responses for which `inside`, of shape (n,), is true, without the unpaired ones."""
        rows = {window: list(compress(side, inside)) for window, side in self.rows.items()}
        return Paired(rows, tuple(compress(self.trials, inside)), self.sign, alone=())

    def difference(self, windows: Windows, clients: int) -> Difference:
        """What the second window changes in the mean. clients: how many resampling draws from."""
        base, experiment = (self.rows[window] for window in windows)
        change = resampled_clients(base, experiment, self.sign, clients=clients)
        return replace(change, excluded=Excluded(unpaired=len(self.alone)))

    def mean(self, window: int) -> float:
        """The weighted mean under a window."""
        sample = self.sample(window)
        return float(numpy.average(sample.values, weights=sample.weights))

    def share_percent(self, inside: NDArray[numpy.bool_], window: int) -> float:
        """The share of the weight under a window that the responses `inside` have."""
        weight = numpy.array([row.weight for row in self.rows[window]])
        return 100 * float(weight[inside].sum() / weight.sum())

    def sample(self, window: int) -> Sample:
        """The values under a window, with their weights."""
        rows = self.rows[window]
        return Sample(window, [row.value for row in rows], [row.weight for row in rows])


def quantity_of(by: str, trials: Sequence[Trial]) -> Numbers:
    """The quantity of each trial by which an axis of the paper has buckets, shape (n,)."""
    rtt_ms = numpy.array([float(trial.key_rtt_ms or 0) for trial in trials])
    bandwidth_kbps = numpy.array([float(trial.key_bandwidth_kbps or 0) for trial in trials])
    size_bytes = numpy.array([float(trial.response_bytes) for trial in trials])
    known: dict[str, Numbers] = {
        "rtt_ms": rtt_ms, "bandwidth_kbps": bandwidth_kbps,
        "bdp_bytes": rtt_ms * bandwidth_kbps / 8,
        "response_segments": numpy.ceil(size_bytes / PAPER_SEGMENT_BYTES)}
    return known[by]


def responses_by_part(records: Iterable[Record]) -> Mapping[str, Responses]:
    """The records of each population, by response and window; {} of one without records."""
    by_part: defaultdict[str, Responses] = defaultdict(dict)
    for record in records:
        trial = record.trial
        by_part[trial.part].setdefault(trial.sample, {})[trial.initcwnd] = record
    return by_part


def pair_of(part: str, responses: Responses, windows: Windows, metric: str) -> Paired:
    """The responses of a population that count under both windows.

    Raises NoBars where none was measured or none counts.
    """
    base, experiment = windows
    pairs, alone = [], []
    for _, records in sorted(responses.items()):
        measured = [records[window] for window in windows if window in records]
        counting = [record for record in measured
                    if record.counts and getattr(record, metric) is not None]
        if len(counting) == len(windows):
            pairs.append(counting)
        elif measured:
            alone.append(measured[0].trial)
    if not pairs and not alone:
        raise NoBars(f"nothing of population '{part}' was measured; measure with"
                     " ./run.sh --scenario with this scenario's name")
    if not pairs:
        raise NoBars(f"no response of '{part}' counts under both windows, {base} and {experiment}")

    trials = [first.trial for first, _ in pairs]
    clients = [(trial.key_rtt_ms, trial.key_bandwidth_kbps) for trial in trials]
    numbers = {client: number for number, client in enumerate(dict.fromkeys(clients))}
    rows: dict[int, list[Row]] = {}
    for place, window in enumerate(windows):
        rows[window] = [Row(None, window, unit=numbers[client], weight=pair[place].trial.weight,
                            value=getattr(pair[place], metric))
                        for client, pair in zip(clients, pairs)]
    return Paired(rows, tuple(trials), sign_of(metric), alone=tuple(alone))


# Figures -----------------------------------------------------------------------------

def bar_figures(drawn: Populations, figures: Iterable[Figure],
                records: Sequence[Record]) -> tuple[dict[str, BarFigure], dict[str, str]]:
    """Figures of bars by name, and by name why other figures have no bars."""
    made, missing = {}, {}
    by_part = responses_by_part(records)
    for figure in figures:
        try:
            made[figure.name] = bar_figure(drawn, figure, by_part[figure.sweep])
        except NoBars as error:
            missing[figure.name] = str(error)
    return made, missing


def bar_figure(drawn: Populations, figure: Figure, responses: Responses) -> BarFigure:
    """The bars of a population's figure: buckets, percentiles or windows.

    Raises NoBars where a bar has no response that counts.
    """
    client = drawn.template.client
    congestion_control: str = drawn.template.lists["congestion_control"][0]
    if figure.is_of_windows:
        measured = dict.fromkeys(initcwnd for records in responses.values() for initcwnd in records)
        windows = tuple(measured) or (figure.baseline_initcwnd,)
        bars, samples = window_bars(responses, figure, windows)
        return BarFigure(figure, tuple(bars), client, congestion_control, samples=samples,
                         remarks=_remarks(responses, windows))

    pair = figure.baseline_initcwnd, figure.experiment_initcwnd
    remarks = _remarks(responses, pair)
    paired = pair_of(figure.sweep, responses, pair, metric=figure.metric)
    if figure.by != "percentile":
        bars = bars_of(paired, pair, figure.by, published=published_bars(figure))
        return BarFigure(figure, tuple(bars), client, congestion_control,
                         samples=tuple(map(paired.sample, pair)), remarks=remarks)

    if figure.bandwidth_at_most_kbps:
        bandwidths_kbps = quantity_of("bandwidth_kbps", paired.trials)
        paired = paired.only(bandwidths_kbps <= figure.bandwidth_at_most_kbps)
        if not paired.trials:
            raise NoBars("no response is of a client with at most"
                         f" {plain(figure.bandwidth_at_most_kbps)} kbit/s")
    bars = percentile_bars(paired, pair, published_bars(figure))
    # All percentiles have the same records, which count once.
    return BarFigure(figure, tuple(bars), client, congestion_control,
                     fetch_count=bars[0].difference.n,
                     fetches_excluded=bars[0].difference.excluded,
                     samples=tuple(map(paired.sample, pair)), remarks=remarks)


def _remarks(responses: Responses, windows: Sequence[int]) -> tuple[str, ...]:
    """What limited the responses that count under these windows, in sentences."""
    counting = []
    for records in responses.values():
        counting += [record for initcwnd, record in records.items()
                     if initcwnd in windows and record.counts]
    return notes.limiting_notes(counting)


def bars_of(paired: Paired, windows: Windows, by: str,
            published: Mapping[str, Published]) -> list[Bar]:
    """A bar for each published bucket. Raises NoBars where one has no response.

    The label of a bucket is its upper end. The last bucket may be open (">5000").
    """
    ends = [float(label) for label in published if not label.startswith(">")]
    bucket = numpy.searchsorted(ends, quantity_of(by, paired.trials), side="left")
    bucket_of_alone = numpy.searchsorted(ends, quantity_of(by, paired.alone), side="left")

    bars = []
    for index, (label, known) in enumerate(published.items()):
        inside = bucket == index
        if not inside.any():
            raise NoBars(f"no response fell into the bucket '{label}'")
        # The open bucket has no upper end: a value beyond all others stands for it.
        value = ends[index] if index < len(ends) else ends[-1] * 2
        change = paired.only(inside).difference(windows, paired.clients)
        excluded = Excluded(unpaired=int((bucket_of_alone == index).sum()))
        bars.append(Bar(label, replace(change, excluded=excluded), known, value=value,
                        share_percent=paired.share_percent(inside, windows[1])))
    return bars


def percentile_bars(paired: Paired, windows: Windows, published: Mapping[str, Published]
                    ) -> list[Bar]:
    """A bar for the mean and for each percentile of the paper's table, "mean", "p50", …"""
    shares = [percentile_of(label) for label in published]
    base, experiment = (paired.rows[window] for window in windows)
    changes = resampled_quantiles(base, experiment, paired.sign, clients=paired.clients,
                                  shares=shares)
    excluded = Excluded(unpaired=len(paired.alone))
    bars = []
    for (label, known), share, change in zip(published.items(), shares, changes):
        bars.append(Bar(label, replace(change, excluded=excluded), known,
                        value=100 * (share or 0.0)))
    return bars


def window_bars(responses: Responses, figure: Figure,
                windows: Sequence[int]) -> tuple[list[Bar], tuple[Sample, ...]]:
    """A bar for each window: the mean over responses that count under this and the baseline.

    The samples are those of the windows.
    """
    known = published_bars(figure)
    bars, samples = [], []
    for window in windows:
        pair = figure.baseline_initcwnd, window
        paired = pair_of(figure.sweep, responses, pair, metric=figure.metric)
        change = paired.difference(pair, paired.clients)
        # A bar's n counts the fetches under its window. The baseline's fetches are in another bar.
        bars.append(Bar(str(window), replace(change, n=change.n // 2),
                        known.get(str(window), Published()), value=float(window)))
        samples.append(paired.sample(window))
    return bars, tuple(samples)
