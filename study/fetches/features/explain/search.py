"""How much of somebody's own number the window can be, and what else would make up the rest.

Each candidate is a change of one thing alone: what is changed is searched for by measuring, until
a transfer takes as long as the number that somebody has observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from base.errors import UsageError
from base.words import number, plain, short
from findings.quantities import QUANTITIES
from runs.kinds import Overrides
from runs.results.cells import Cells
from study.fetches.scenario.sweep import cell_of
from study.fetches.scenario.trial import Trial
from study.fetches.verify.record import Record

LOSSES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # %, at random
LOSS_REPEAT = 5
NEAR = 0.02  # of the time: near enough
MOST_ROUNDS = 4
# Takes a question's lists of values; gives the mean time in ms by the value of `by`, of those
# that count.
Ask = Callable[[Overrides, str], Mapping[float, float]]


@dataclass(frozen=True)
class Times:
    """Mean times in ms by window, of one network; base: of the smallest window."""

    trial: Trial
    by_window: Mapping[int, float]

    @property
    def base(self) -> int:
        return min(self.by_window)

    @property
    def best(self) -> int:
        return min(self.by_window, key=lambda window: (self.by_window[window], window))

    @property
    def base_ms(self) -> float:
        return self.by_window[self.base]

    @property
    def saved_ms(self) -> float:
        return self.base_ms - self.by_window[self.best]


def check(trials: Sequence[Trial]) -> None:
    """Raises UsageError where the trials are of several networks or responses."""
    if len({cell_of(trial) for trial in trials}) > 1:
        raise UsageError("--explain: a time belongs to one network and one response: give one"
                         " value of each flag except --iw")


def times(records: Sequence[Record]) -> Times | None:
    """The mean of each window; None where none counts."""
    means = mean_times(records, "initcwnd")
    known = (record.trial for record in records if record.counts and record.total_ms is not None)
    return Times(next(known), dict(sorted(means.items()))) if means else None


def mean_times(records: Sequence[Record], by: str) -> dict[Any, float]:
    """The mean times in ms by the values of a quantity, of those that count."""
    return {value: mean_ms for (value,), cell in Cells(records).by(by).items()
            if (mean_ms := cell.mean("total_ms")) is not None}


def of_window(observed_ms: float, times: Times) -> str:
    """Which part of the number is the window's, in a sentence."""
    base = f"{short(times.base_ms)} ms with IW {times.base}"
    if len(times.by_window) == 1:
        part = "Only one window was measured, so nothing says what a larger one saves: add --iw"
        part = f"{part} {times.base},{2 * times.base},{4 * times.base}."
    elif times.saved_ms > 0:
        part = (f"The window can be at most {short(times.saved_ms)} ms of it: IW {times.best} takes"
                f" {short(times.by_window[times.best])} ms.")
    else:
        part = "None of it is the window: no larger one is faster."
    if observed_ms <= times.base_ms * (1 + NEAR):
        return (f"Your {short(observed_ms)} ms are no longer than what this path takes, {base}:"
                f" nothing is left to explain. {part}")
    return (f"Of your {short(observed_ms)} ms this path takes {base}. {part} The other"
            f" {short(observed_ms - times.base_ms)} ms have another cause.")


def causes(observed_ms: float, times: Times, requested: Overrides, ask: Ask) -> Iterator[str]:
    """What would make up the rest, each alone: a line for each, as soon as it is known."""
    trial = times.trial
    only = replace(requested, lists={**requested.lists, "initcwnd": [times.base]})
    wire_bits = 8 * trial.response_bytes
    yield from _searched("bandwidth_kbps", "kbit/s instead of", trial.bandwidth_kbps, only, ask,
                         observed_ms, start=wire_bits / observed_ms, falls=True)
    yield from _searched("rtt_ms", "ms instead of", trial.rtt_ms, only, ask, observed_ms,
                         start=trial.rtt_ms * observed_ms / times.base_ms, falls=False)
    if not trial.loss_percent:
        yield _lossy(observed_ms, ask(replace(only, repeat=LOSS_REPEAT, lists={
            **only.lists, "loss_percent": list(LOSSES)}), "loss_percent"))
    window_bytes = trial.response_bytes * trial.rtt_ms / observed_ms
    if trial.mss <= window_bytes < trial.response_bytes:
        yield (f"a receive window that stays at {number(window_bytes / 1000, 0)} kB (computed:"
               " bytes × RTT / time)")
    yield f"a server that answers {short(observed_ms - times.base_ms)} ms later (--think)"


def _searched(name: str, than: str, now: float, only: Overrides, ask: Ask, observed_ms: float, *,
              start: float, falls: bool) -> Iterator[str]:
    """The value with which a transfer takes so long; falls: more of it takes less time."""
    limits, value = QUANTITIES[name], start
    for _ in range(MOST_ROUNDS):
        tried = float(f"{min(max(value, limits.lowest), limits.highest):.3g}")
        took = ask(replace(only, lists={**only.lists, name: [tried]}), name).get(tried)
        if took is None:
            return
        if abs(took / observed_ms - 1) <= NEAR:
            break
        value = tried * (took / observed_ms if falls else observed_ms / took)
    yield f"{limits.what} of {plain(tried)} {than} {plain(now)}: {short(took)} ms"


def _lossy(observed_ms: float, by_loss: Mapping[float, float]) -> str:
    """Between which of the shares the number lies."""
    known = sorted(by_loss.items())
    above = next((mean for mean in known if mean[1] >= observed_ms), None)
    below = [mean for mean in known
             if mean[1] < observed_ms and (above is None or mean[0] < above[0])]

    def percents(mean: tuple[float, float]) -> str:
        return f"{plain(mean[0])} % ({short(mean[1])} ms)"

    if above is None:
        return f"random loss: {f'not even with {percents(known[-1])}' if known else 'not known'}"
    of_ten = f"means of {LOSS_REPEAT} transfers"
    if not below:
        return f"random loss of {percents(above)} or less; {of_ten}"
    return f"random loss between {percents(below[-1])} and {percents(above)}; {of_ten}"
