"""How much of somebody's own number the window can be, and what else would make up the rest.

Each candidate is a change of one thing alone: what is changed is searched for by measuring, until
a transfer takes as long as the number that somebody has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from lab.core.errors import UsageError
from lab.core.run.kinds import Overrides
from lab.core.scenario.quantities import QUANTITIES
from lab.core.words import number, plain, short
from lab.fetches.scenario.sweep import cell_of
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record

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
        raise UsageError("--explain: a number is of one network and one response: give one value of"
                         " each flag but --iw")


def times(records: Sequence[Record]) -> Times | None:
    """The mean of each window; None where none counts."""
    counting = [record for record in records if record.counts and record.total_ms is not None]
    if not counting:
        return None
    return Times(counting[0].trial, {window: fmean([
        record.total_ms for record in counting
        if record.trial.initcwnd == window and record.total_ms is not None])
        for window in sorted({record.trial.initcwnd for record in counting})})


def of_window(seen_ms: float, found: Times) -> str:
    """Which part of the number is the window's, in a sentence."""
    base = f"{short(found.base_ms)} ms with IW {found.base}"
    if len(found.by_window) == 1:
        part = "Only one window was measured, so nothing says what a larger one saves: add --iw"
        part = f"{part} {found.base},{2 * found.base},{4 * found.base}."
    elif found.saved_ms > 0:
        part = (f"The window can be at most {short(found.saved_ms)} ms of it: IW {found.best} takes"
                f" {short(found.by_window[found.best])} ms.")
    else:
        part = "None of it is the window: no larger one is faster."
    if seen_ms <= found.base_ms * (1 + NEAR):
        return (f"Your {short(seen_ms)} ms are no longer than what this path takes, {base}: nothing"
                f" is left to explain. {part}")
    return (f"Of your {short(seen_ms)} ms this path takes {base}. {part} The other"
            f" {short(seen_ms - found.base_ms)} ms have another cause.")


def causes(seen_ms: float, found: Times, requested: Overrides, ask: Ask) -> Iterator[str]:
    """What would make up the rest, each alone: a line for each, as soon as it is known."""
    trial = found.trial
    only = replace(requested, lists={**requested.lists, "initcwnd": [found.base]})
    wire_bits = 8 * trial.response_bytes
    yield from _searched("bandwidth_kbps", "kbit/s instead of", trial.bandwidth_kbps, only, ask,
                         seen_ms, start=wire_bits / seen_ms, falls=True)
    yield from _searched("rtt_ms", "ms instead of", trial.rtt_ms, only, ask, seen_ms,
                         start=trial.rtt_ms * seen_ms / found.base_ms, falls=False)
    if not trial.loss_percent:
        yield _lossy(seen_ms, ask(replace(only, repeat=LOSS_REPEAT, lists={
            **only.lists, "loss_percent": list(LOSSES)}), "loss_percent"))
    window_bytes = trial.response_bytes * trial.rtt_ms / seen_ms
    if trial.mss <= window_bytes < trial.response_bytes:
        yield (f"a receive window that stays at {number(window_bytes / 1000, 0)} kB (computed:"
               " bytes × RTT / time)")
    yield f"a server that answers {short(seen_ms - found.base_ms)} ms later (--think)"


def _searched(name: str, than: str, now: float, only: Overrides, ask: Ask, seen_ms: float, *,
              start: float, falls: bool) -> Iterator[str]:
    """The value with which a transfer takes so long; falls: more of it takes less time."""
    limits, value = QUANTITIES[name], start
    for _ in range(MOST_ROUNDS):
        tried = float(f"{min(max(value, limits.lowest), limits.highest):.3g}")
        took = ask(replace(only, lists={**only.lists, name: [tried]}), name).get(tried)
        if took is None:
            return
        if abs(took / seen_ms - 1) <= NEAR:
            break
        value = tried * (took / seen_ms if falls else seen_ms / took)
    yield f"{limits.what} of {plain(tried)} {than} {plain(now)}: {short(took)} ms"


def _lossy(seen_ms: float, by_loss: Mapping[float, float]) -> str:
    """Between which of the shares the number lies."""
    known = sorted(by_loss.items())
    above = next((each for each in known if each[1] >= seen_ms), None)
    below = [each for each in known if each[1] < seen_ms and (above is None or each[0] < above[0])]

    def percents(each: tuple[float, float]) -> str:
        return f"{plain(each[0])} % ({short(each[1])} ms)"

    if above is None:
        return f"random loss: {f'not even with {percents(known[-1])}' if known else 'not known'}"
    of_ten = f"means of {LOSS_REPEAT} transfers"
    if not below:
        return f"random loss of {percents(above)} or less; {of_ten}"
    return f"random loss between {percents(below[-1])} and {percents(above)}; {of_ten}"
