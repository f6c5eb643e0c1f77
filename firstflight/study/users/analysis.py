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
from firstflight.workloads.fetch.figures.drawn_bars import responses_by_part
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.users import PART, UserSample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from firstflight.base.resampling import Numbers

PERCENTILES = (50, 95, 99)
# A window is as good as the best one if its mean is longer by no more than this share.
NOISE_SHARE = 0.01
# A window does harm if it makes the 99th percentile longer by more than this share,
MOST_P99_SHARE = 0.02
# or if it retransmits more of the segments, by more than so many percentage points.
MOST_RETRANSMITTED_POINTS = 0.5
ONLY_WINDOW = "no other window was measured"
SAME_MS = 1.0  # a user who is faster by less counts as "the same"


@dataclass(frozen=True)
class Measured:
    """The users that count under every window, as arrays of shape (users,)."""

    # By window: the time to the last byte, and segments that were retransmitted or that a queue
    # dropped.
    total_ms: Mapping[int, Numbers]
    retransmitted: Mapping[int, Numbers]
    queue_drops: Mapping[int, Numbers]
    # The same under every window: how much a user counts, the index of his group in
    # UserSample.groups, and how many segments his response has.
    weight: Numbers
    group: NDArray[numpy.intp]
    segments: Numbers
    # How many users are left out, since under some window they have no record that counts.
    excluded: int
    # The index of each user in the columns of UserSample.
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
    """What one window does to some users."""

    initcwnd: int
    # The time to the last byte at each of PERCENTILES.
    percentiles_ms: tuple[float, ...]
    # The baseline's mean less the mean under this window, in ms.
    saved: Difference
    # The mean under this window less the mean under the best one, in ms.
    to_best: Difference
    retransmitted_percent: float  # of all segments
    queue_drops: float  # segments of a user, in the mean
    # Shares of users that are faster or slower than with the baseline by more than SAME_MS.
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
    """The window that the rule chooses, and why."""

    initcwnd: int
    why: str
    # One for each window, by size.
    outcomes: tuple[Outcome, ...]
    # The share of responses that fit into the baseline window.
    fits_percent: float
    # How many users were compared.
    users: int
    # The windows that are as good as the best and do no harm; initcwnd is one of them.
    holding: frozenset[int]
    # By each window that does harm: what it makes worse, in words.
    harm: Mapping[int, str]

    def outcome(self, initcwnd: int) -> Outcome:
        """What this window does."""
        return next(outcome for outcome in self.outcomes if outcome.initcwnd == initcwnd)

    def why_of(self, initcwnd: int, baseline: int) -> str:
        """The reason for a window that was chosen instead of the rule's, by the same numbers."""
        return _why(self.outcome(initcwnd), self.outcome(baseline), self.outcomes,
                    self.fits_percent)


def measured(users: UserSample, records: Sequence[Record], part: str = PART) -> Measured:
    """The users whose records count under every window.

    part: a key of UserSample.parts. A user whom this part does not measure keeps his records of
    PART, as a user does whose bandwidth is known.
    """
    def counts(by_window: Mapping[int, Record]) -> bool:
        return all(window in by_window and by_window[window].counts
                   and by_window[window].total_ms is not None for window in users.initcwnd)

    by_part = responses_by_part(records)
    by_user = {**by_part[PART], **by_part[part]}
    counted = {user: by_window for user, by_window in sorted(by_user.items())
               if counts(by_window)}

    def column(name: str, window: int) -> Numbers:
        values = [getattr(by_window[window], name) for by_window in counted.values()]
        return numpy.array([float(value or 0) for value in values])

    def columns(name: str) -> dict[int, Numbers]:
        return {window: column(name, window) for window in users.initcwnd}

    any_window = users.initcwnd[0]  # weight and response are the same under all windows
    trials = [by_window[any_window].trial for by_window in counted.values()]
    segments = [math.ceil(trial.response_bytes / MSS) for trial in trials]
    return Measured(
        columns("total_ms"), columns("retransmissions"), columns("queue_drops"),
        weight=numpy.array([trial.weight for trial in trials]),
        group=numpy.array([users.group[user] for user in counted], dtype=numpy.intp),
        segments=numpy.array(segments, dtype=float),
        excluded=len(users.rtt_ms) - len(counted),
        user=numpy.array([*counted], dtype=numpy.intp))


def recommend(users: Measured, baseline: int) -> Recommendation:
    """The smallest window that is as good as the best, and does no harm.

    A window is as good if its mean is within NOISE_SHARE of the best mean, or if the interval of
    their difference includes zero. It does no harm if its 99th percentile is longer than the
    baseline's by MOST_P99_SHARE at most, and if it retransmits MOST_RETRANSMITTED_POINTS more at
    most. Where no harmless window is as good, the rule chooses the harmless one that saves most.
    The baseline stays where the chosen window saves nothing for certain. Raises ValueError without
    users.
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
    """Whether a window is as good as the best of all windows."""
    best_ms = min(other.mean_ms for other in outcomes)
    longer = outcome.to_best.absolute
    return longer.sign <= 0 or longer.value <= NOISE_SHARE * best_ms


def _harm(outcome: Outcome, base: Outcome) -> str:
    """What a window makes worse than the bounds allow, in words; "" for nothing."""
    if outcome.p99_ms > (1 + MOST_P99_SHARE) * base.p99_ms:
        return f"p99 becomes {outcome.p99_ms:.0f} ms instead of {base.p99_ms:.0f}"
    more = outcome.retransmitted_percent - base.retransmitted_percent
    if more > MOST_RETRANSMITTED_POINTS:
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
        return f"no window saves as much as {100 * NOISE_SHARE:g} % of the time: {saved}"
    return (f"no window saves more than noise: {saved}, 95 % interval"
            f" {format_interval(absolute.interval)} ms")


# Numbers -----------------------------------------------------------------------------

def _outcomes(users: Measured, baseline: int) -> tuple[Outcome, ...]:
    """What each window does, from the smallest to the largest."""
    weight, windows = users.weight, sorted(users.total_ms)
    numbers = range(len(weight))
    table = []
    for window in windows:
        times_ms = users.total_ms[window].tolist()
        for row in zip(numbers, weight.tolist(), times_ms):
            table.append(Row(None, window, *row))

    def mean(values: Numbers) -> float:
        return float(weight @ values / weight.sum())

    best = min(windows, key=lambda window: mean(users.total_ms[window]))
    ranks = [percent / 100 for percent in PERCENTILES]
    all_segments = float(weight @ users.segments)
    outcomes = []
    for window in windows:
        total_ms = users.total_ms[window]
        saved_ms = users.total_ms[baseline] - total_ms
        is_faster = (saved_ms > SAME_MS).astype(float)
        is_slower = (saved_ms < -SAME_MS).astype(float)

        (percentiles_ms,) = statistics(total_ms, [weight], ranks)
        retransmitted = float(weight @ users.retransmitted[window])
        outcomes.append(Outcome(
            window, tuple(map(float, percentiles_ms)),
            saved=difference(table, baseline, window, resampled_users),
            to_best=difference(table, window, best, resampled_users),
            retransmitted_percent=100 * retransmitted / all_segments,
            queue_drops=mean(users.queue_drops[window]),
            gain_percent=100 * mean(is_faster), lose_percent=100 * mean(is_slower)))
    return tuple(outcomes)
