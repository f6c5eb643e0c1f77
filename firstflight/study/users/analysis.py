"""Recommends a window for users, by the latency of each group under each window.

Every user was measured under each window, so comparisons are paired: only the window differs.
Intervals are 95 %, from resampling users.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy

from firstflight.base.resampling import statistics
from firstflight.base.words import format_interval
from firstflight.figures.compare import Row, difference, resampled_users
from firstflight.findings.difference import Difference
from firstflight.net.headers import MSS
from firstflight.workloads.fetch.figures.drawn_bars import responses_of
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.users import PART, UserSample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from firstflight.base.resampling import Numbers

PERCENTILES = (50, 95, 99)
NOISE_PART = 0.01  # of the best mean: a window with a mean this near is as good
WORST_P99_PART = 0.02  # a window may lengthen the 99th percentile by this share at most
WORST_RETRANSMITTED_POINTS = 0.5  # and may raise the retransmitted share by so many points
ONLY_WINDOW = "no other window was measured"
SAME_MS = 1.0  # a user who is faster by less counts as "the same"


@dataclass(frozen=True)
class Measured:
    """The users that count under every window.

    total_ms, retransmitted, queue_drops: for each window of shape (n,). weight, group: of shape
    (n,). segments: of the response, shape (n,). excluded: how many users lack a record that counts
    under some window. user: the number of each in the sample, shape (n,).
    """

    total_ms: Mapping[int, Numbers]
    retransmitted: Mapping[int, Numbers]
    queue_drops: Mapping[int, Numbers]
    weight: Numbers
    group: NDArray[numpy.intp]
    segments: Numbers
    excluded: int
    user: NDArray[numpy.intp]

    def only(self, group: int) -> Measured:
        """The users of one group."""
        inside = self.group == group

        def cut(columns: Mapping[int, Numbers]) -> dict[int, Numbers]:
            return {window: column[inside] for window, column in columns.items()}

        return Measured(
            cut(self.total_ms), cut(self.retransmitted), cut(self.queue_drops),
            weight=self.weight[inside], group=self.group[inside],
            segments=self.segments[inside], excluded=0, user=self.user[inside])


@dataclass(frozen=True)
class Outcome:
    """What one window does to some users; times in ms.

    saved: what it saves of the baseline's mean. to_best: what the best window saves of this one's
    mean. gain_percent, lose_percent: shares of users that are faster or slower than with the
    baseline by more than SAME_MS.
    """

    initcwnd: int
    percentiles_ms: tuple[float, ...]
    saved: Difference
    to_best: Difference
    retransmitted_percent: float
    queue_drops: float
    gain_percent: float
    lose_percent: float

    @property
    def mean_ms(self) -> float:
        return self.saved.experiment.value

    @property
    def p99_ms(self) -> float:
        return self.percentiles_ms[-1]


@dataclass(frozen=True)
class Recommendation:
    """The window that the rule chooses, and why.

    fits_percent: responses that fit the baseline. holding: the windows that are as good as the best
    and do no harm. harm: what each of the other windows makes worse, in words.
    """

    initcwnd: int
    why: str
    outcomes: tuple[Outcome, ...]
    fits_percent: float
    users: int
    holding: frozenset[int]
    harm: Mapping[int, str]

    def outcome(self, initcwnd: int) -> Outcome:
        """What this window does."""
        return next(outcome for outcome in self.outcomes if outcome.initcwnd == initcwnd)

    def why_of(self, initcwnd: int, baseline: int) -> str:
        """The reason for another window than the rule's, by the same numbers."""
        return _why(self.outcome(initcwnd), self.outcome(baseline), self.outcomes,
                    self.fits_percent)


def measured(users: UserSample, records: Sequence[Record], part: str = PART) -> Measured:
    """The users whose records count under every window.

    part: of SCALES; users whose bandwidth is known are the same in each.
    """
    def counts(rows: Mapping[int, Record]) -> bool:
        return all(window in rows and rows[window].counts and rows[window].total_ms is not None
                   for window in users.initcwnd)

    by_user = {**responses_of(PART, records), **responses_of(part, records)}
    whole = {sample: rows for sample, rows in sorted(by_user.items()) if counts(rows)}

    def column(name: str, window: int) -> Numbers:
        return numpy.array([float(getattr(rows[window], name) or 0) for rows in whole.values()])

    def columns(name: str) -> dict[int, Numbers]:
        return {window: column(name, window) for window in users.initcwnd}

    trials = [rows[users.initcwnd[0]].trial for rows in whole.values()]
    segments = [math.ceil(trial.response_bytes / MSS) for trial in trials]
    return Measured(
        columns("total_ms"), columns("retransmissions"), columns("queue_drops"),
        weight=numpy.array([trial.weight for trial in trials]),
        group=numpy.array([users.group[sample] for sample in whole], dtype=numpy.intp),
        segments=numpy.array(segments, dtype=float),
        excluded=len(users.rtt_ms) - len(whole), user=numpy.array([*whole], dtype=numpy.intp))


def recommend(users: Measured, baseline: int) -> Recommendation:
    """The smallest window that is as good as the best, and does no harm.

    As good: its mean is within NOISE_PART of the best mean, or the interval of the difference
    includes zero. No harm: p99 is at most WORST_P99_PART longer than the baseline's, and
    retransmissions are at most WORST_RETRANSMITTED_POINTS more. Raises ValueError without users.
    """
    if not len(users.weight):
        raise ValueError("no user counts under every window")

    outcomes = _outcomes(users, baseline)
    base = next(outcome for outcome in outcomes if outcome.initcwnd == baseline)
    fits = 100 * float(users.weight @ (users.segments <= baseline) / users.weight.sum())

    harm = {outcome.initcwnd: _harm(outcome, base) for outcome in outcomes}
    harmless = [outcome for outcome in outcomes if not harm[outcome.initcwnd]]
    good = [outcome for outcome in harmless if _as_good(outcome, outcomes)]
    chosen = good[0] if good else max(harmless, key=lambda outcome: outcome.saved.absolute.value)
    if chosen.saved.absolute.sign <= 0 and chosen is not base:
        chosen = base

    return Recommendation(
        chosen.initcwnd, _why(chosen, base, outcomes, fits), outcomes, fits_percent=fits,
        users=len(users.weight),
        holding=frozenset(outcome.initcwnd for outcome in (*good, chosen)),
        harm={window: words for window, words in harm.items() if words})


def _as_good(outcome: Outcome, outcomes: Sequence[Outcome]) -> bool:
    best_ms = min(other.mean_ms for other in outcomes)
    longer = outcome.to_best.absolute
    return longer.sign <= 0 or longer.value <= NOISE_PART * best_ms


def _harm(outcome: Outcome, base: Outcome) -> str:
    """What a window makes worse than the bounds allow, in words; "" for nothing."""
    if outcome.p99_ms > (1 + WORST_P99_PART) * base.p99_ms:
        return f"p99 becomes {outcome.p99_ms:.0f} ms instead of {base.p99_ms:.0f}"
    more = outcome.retransmitted_percent - base.retransmitted_percent
    if more > WORST_RETRANSMITTED_POINTS:
        return (f"{outcome.retransmitted_percent:.2f} % of segments are retransmitted instead of"
                f" {base.retransmitted_percent:.2f}")
    return ""


def _why(chosen: Outcome, base: Outcome, outcomes: Sequence[Outcome], fits: float) -> str:
    """The reason in words, with the numbers that decided."""
    best = min(outcomes, key=lambda outcome: outcome.mean_ms)
    harmed = [f"{outcome.initcwnd} does harm: {harm}" for outcome in outcomes
              if (harm := _harm(outcome, base))]

    if len(outcomes) == 1:
        reasons = [ONLY_WINDOW]
    elif chosen is base and fits > 100 - 1e-9:
        reasons = [f"all responses fit in {base.initcwnd} segments"]
    elif chosen is base and best is base:
        reasons = ["none of the other windows measured is faster"]
    elif chosen is base and (best.saved.absolute.sign <= 0 or _as_good(base, outcomes)):
        reasons = [_too_little(best, base)]
    elif chosen is base:
        reasons = ["every window that saves time does harm"]
    else:
        reasons = [f"it saves {chosen.saved.absolute.value:.1f} ms of {base.mean_ms:.1f}"]
        if best.initcwnd > chosen.initcwnd:
            reasons.append(f"{best.initcwnd} would save {best.saved.absolute.value:.1f} ms")
    return "; ".join([*reasons, *harmed])


def _too_little(best: Outcome, base: Outcome) -> str:
    """Why the fastest window is not recommended: it saves too little, or perhaps nothing."""
    absolute = best.saved.absolute
    saved = f"the best, {best.initcwnd}, saves {absolute.value:.1f} ms of {base.mean_ms:.1f}"
    if absolute.sign > 0:
        return f"no window saves as much as {100 * NOISE_PART:g} % of the time: {saved}"
    return (f"no window saves more than noise: {saved}, 95 % interval"
            f" {format_interval(absolute.interval)} ms")


# Numbers -----------------------------------------------------------------------------

def _outcomes(users: Measured, baseline: int) -> tuple[Outcome, ...]:
    weight, windows = users.weight, sorted(users.total_ms)
    numbers = range(len(weight))
    table = []
    for window in windows:
        rows = zip(numbers, weight.tolist(), users.total_ms[window].tolist())
        table += [Row(None, window, *row) for row in rows]

    def mean(values: Numbers) -> float:
        return float(weight @ values / weight.sum())

    best = min(windows, key=lambda window: mean(users.total_ms[window]))
    shares = [percent / 100 for percent in PERCENTILES]
    sent = float(weight @ users.segments)
    made = []
    for window in windows:
        total_ms = users.total_ms[window]
        saved_ms = users.total_ms[baseline] - total_ms
        is_faster = (saved_ms > SAME_MS).astype(float)
        is_slower = (saved_ms < -SAME_MS).astype(float)
        made.append(Outcome(
            window, tuple(map(float, statistics(total_ms, [weight], shares)[0])),
            saved=difference(table, baseline, window, resampled_users),
            to_best=difference(table, window, best, resampled_users),
            retransmitted_percent=100 * float(weight @ users.retransmitted[window]) / sent,
            queue_drops=mean(users.queue_drops[window]),
            gain_percent=100 * mean(is_faster), lose_percent=100 * mean(is_slower)))
    return tuple(made)
