"""Chooses the what-if trials that would show why a larger window changed a time, or did not.

A what-if trial is a requested trial without some of its limits (setting.limits), with the same
seed. Which limits are lifted depends on what the larger window does: see figures.reasons.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Generic

from firstflight.figures.window_changes import (SAME_PART, CellSetting, Reason, WindowChange,
                                                mean, saved_between)
from firstflight.net.link import MANAGED
from firstflight.runs.kinds import R, T
from firstflight.runs.results.cells import grouped
from firstflight.setting import draws
from firstflight.setting.limits import Limit, limits_of, without
from firstflight.setting.seeds import netem_seed

EXPLAINED_SHARE = 0.8  # the least part of a change that vanishes without the limit that causes it
# A limit is named with the reason if the savings with and without it differ by this share of the
# larger saving.
MOST_OF = 0.5
MOST_TRIALS = 40  # what-if trials for the reasons of a short answer, without their repeats
# What-if trials for a reason that is not known otherwise may take so many times as long as the
# requested trials.
LONGER = 3
# Where chance affects a what-if trial, it is repeated: at least so often, and until half its 95 %
# interval is at most this share of the effect. The first pair holds for a reason that is not known
# otherwise, the second one for what only adds to a known reason.
LEAST_REPEATS, SURE_SHARE = 5, 0.1
LEAST_ADDED, ADDED_SHARE = 3, 0.25


@dataclass(frozen=True)
class WhatIfs(ABC, Generic[T, R]):
    """The what-if trials of a run, and what its workload knows of limits and round trips."""

    IDLE: ClassVar[str] = ""  # the column of how long the link was idle, "" for none
    # What-if trials may take so long in guests, besides a time that follows from the requested
    # trials: if they only add to a known reason, and if the reason is not known otherwise.
    SECONDS: ClassVar[float] = 2.0
    LONG_SECONDS: ClassVar[float] = 4.0
    records: Sequence[R] = ()  # of the what-if trials
    sysctls: Mapping[str, str] = field(default_factory=dict)  # the scenario's, of all of its trials

    @abstractmethod
    def every_limit(self, trial: T) -> Sequence[Limit[T]]:
        """All limits that are considered, whether the trial has them or not."""

    @abstractmethod
    def cell_of(self, trial: T) -> T:
        """The trial without what distinguishes its repeats."""

    @abstractmethod
    def cost_s(self, trial: T) -> float:
        """A rough estimate of how long a trial takes in a guest."""

    def between(self, base: CellSetting[T, R], experiment: CellSetting[T, R]
                ) -> WindowChange[T, R]:
        """What the experiment changes compared with the base.

        Raises ValueError where one of them has no mean.
        """
        base_trial: Any = base.requested
        experiment_trial: Any = experiment.requested
        windows = (base_trial.initcwnd, experiment_trial.initcwnd)
        return WindowChange(base, experiment, saved_between(base, experiment), windows)

    @abstractmethod
    def sent(self, change: WindowChange[T, R]) -> str:
        """What was sent in how many round trips under both windows, in words."""

    @abstractmethod
    def same(self, change: WindowChange[T, R]) -> Reason:
        """The reason where no limit hides a saving."""

    @abstractmethod
    def where(self, change: WindowChange[T, R], changes: Sequence[WindowChange[T, R]]) -> str:
        """What distinguishes a comparison from the others."""

    def accounted(self, change: WindowChange[T, R]) -> str:
        """Why a larger window saves nothing, if packets alone show it; "" if they do not."""
        return ""

    def cannot_differ(self, change: WindowChange[T, R]) -> bool:
        """Whether both windows send the same under any limits."""
        return False

    def has_dropped(self, record: R) -> bool:
        """Whether a queue dropped packets."""
        return bool(getattr(record, "queue_drops"))

    def is_one_draw(self, record: R) -> bool:
        """Whether a microsecond more of RTT may change the time a lot (setting.draws)."""
        return False

    def is_drawn(self, change: WindowChange[T, R]) -> bool:
        """Whether each repeat of a comparison is one draw."""
        return any(self.is_one_draw(record) for cell in (change.base, change.experiment)
                   for record in cell.counting)

    def is_sure(self, change: WindowChange[T, R]) -> bool:
        """Whether a comparison is more than one draw."""
        return len(change.repeats) > 1 or not self.is_drawn(change)

    def limits(self, trial: T) -> tuple[Limit[T], ...]:
        """The limits that a trial has, in the order of every_limit."""
        return limits_of(trial, self.every_limit(trial))

    @cached_property
    def _cells(self) -> dict[T, CellSetting[T, R]]:
        """The cells of the what-if trials, by what cell_of returns."""
        cells: dict[Any, list[R]] = grouped(
            self.records, lambda record: self.cell_of(_trial(record)))
        return {trial: CellSetting(trial, records) for trial, records in cells.items()}

    def change(self, change: WindowChange[T, R], limits: Collection[Limit[T]]
               ) -> WindowChange[T, R] | None:
        """The same windows compared without some limits; None where no such trials count."""
        if not limits:
            return change
        base, experiment = (self._cells.get(self.cell_of(without(cell.requested, limits)))
                            for cell in (change.base, change.experiment))
        if (base is None or experiment is None
                or base.total_ms is None or experiment.total_ms is None):
            return None
        return self.between(base, experiment)

    def over_repeats_of(self, change: WindowChange[T, R], lifted: WindowChange[T, R]
                        ) -> WindowChange[T, R]:
        """The comparison over only the repeats that the what-if comparison `lifted` has.

        All repeats where `lifted` has a single one.
        """
        repeats = lifted.repeats
        if len(repeats) < 2 or not {*repeats} < {*change.repeats}:
            return change
        return self.between(change.base.of_repeats(repeats), change.experiment.of_repeats(repeats))


def _trial(record: Any) -> Any:
    return record.trial


def tolerance_ms(change: WindowChange[T, R]) -> float:
    """The saving up to which a change counts as none.

    It is half of the 95 % interval, or 1 % of the time if that is more.
    """
    return max(change.half_ms, SAME_PART * change.saved.base.value)


def may_be_chance(change: WindowChange[T, R]) -> bool:
    """Whether chance may hide what the window does: the interval is wide, and includes zero."""
    interval = change.saved.absolute.interval
    return (interval is not None and interval[0] <= 0 <= interval[1]
            and change.half_ms > SAME_PART * change.saved.base.value)


def sign(change: WindowChange[T, R]) -> int:
    """1 where the larger window saves time, −1 where it takes longer, 0 for no change."""
    if abs(change.saved_ms) <= tolerance_ms(change):
        return 0
    return 1 if change.saved_ms > 0 else -1


def idle_saved_ms(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]) -> float | None:
    """How much less the link is idle with the larger window; None in runs without idle times."""
    if not what_ifs.IDLE:
        return None
    base_ms = mean(change.base.counting, what_ifs.IDLE)
    experiment_ms = mean(change.experiment.counting, what_ifs.IDLE)
    if base_ms is None or experiment_ms is None:
        return None
    return base_ms - experiment_ms


def is_round_trips(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]) -> bool:
    """Whether the link was idle less by as much as the larger window saves."""
    saved_ms = idle_saved_ms(change, what_ifs)
    return saved_ms is not None and abs(saved_ms - change.saved_ms) <= tolerance_ms(change)


def is_mostly_round_trips(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]) -> bool:
    """Whether the link was idle less by most of what the larger window saves."""
    saved_ms = idle_saved_ms(change, what_ifs)
    return saved_ms is not None and saved_ms >= MOST_OF * change.saved_ms


# What to measure -----------------------------------------------------------------------

def what_if_trials(changes: Iterable[WindowChange[T, R]], what_ifs: WhatIfs[T, R]) -> list[T]:
    """The what-if trials to measure next for the reasons of these comparisons, in their order.

    An effect whose reason is not known comes first, and takes all the rounds that it needs before
    anything that only adds to a known reason. Effects of other sizes come before one that was
    measured in another comparison already. A comparison gets all trials that its reason needs now,
    or none. Of trials that only add to a known reason it gets as many as there is time for.

    All what-if trials of a run, those measured already included, are limited in number: to
    MOST_TRIALS or twice the requested trials, whichever is more, repeats aside. They are limited in
    time, too. For a reason that is not known they may take LONGER times as long as the requested
    trials, and LONG_SECONDS more. To add to a known reason, they may take as long as the requested
    trials, and SECONDS more.
    """
    changes = [*changes]
    measured = {_trial(record) for record in what_ifs.records}
    requested = {_trial(record) for change in changes for cell in (change.base, change.experiment)
                 for record in cell.records}
    requested_s = sum(map(what_ifs.cost_s, requested))
    most_cells = max(MOST_TRIALS, 2 * len({what_ifs.cell_of(trial) for trial in requested}))
    cells = {what_ifs.cell_of(trial) for trial in measured}
    wanted: dict[T, None] = {}
    is_searched = False
    total_s = sum(map(what_ifs.cost_s, measured))
    for change in _in_order_of_need(changes, what_ifs):
        adds = is_known(change, what_ifs)
        if adds and is_searched:
            continue
        sets = _limits_to_lift(change, what_ifs)
        most_s = (what_ifs.SECONDS + requested_s if adds else
                  what_ifs.LONG_SECONDS + LONGER * requested_s)

        # Each batch has some sets of limits. All of its trials are measured now, or none of them.
        if adds:
            batches = [[limits] for limits in _by_difference(change, sets, what_ifs)]
        else:
            compared = [limits for limits in sets if what_ifs.change(change, limits) is not None]
            not_compared = [limits for limits in sets if limits not in compared]
            # A set that was compared already may lack repeats only, and can do without.
            batches = [not_compared, *([limits] for limits in compared)]

        for batch in batches:
            trials = [trial for limits in batch for trial in _trials(change, limits, what_ifs)
                      if trial not in measured and trial not in wanted]
            cost_s = sum(map(what_ifs.cost_s, trials))
            with_these = cells | {what_ifs.cell_of(trial) for trial in trials}
            if len(with_these) <= most_cells and total_s + cost_s <= most_s:
                wanted |= dict.fromkeys(trials)
                total_s, cells = total_s + cost_s, with_these
                is_searched |= bool(trials) and _is_unknown(change, what_ifs)
    return list(wanted)


def _in_order_of_need(changes: Sequence[WindowChange[T, R]], what_ifs: WhatIfs[T, R]
                      ) -> list[WindowChange[T, R]]:
    """The comparisons in the order in which what-if trials are measured for them.

    Effects whose reason is not known come first, then all others. Within both, one comparison of
    each size comes before a second one of that size.
    """
    met: Counter[tuple[float, float]] = Counter()
    places: list[tuple[bool, int]] = []
    for change in changes:
        times_ms = round(change.saved.base.value, 1), round(change.saved.experiment.value, 1)
        places.append((not _is_unknown(change, what_ifs), met[times_ms]))
        met[times_ms] += 1
    order = sorted(range(len(changes)), key=places.__getitem__)
    return [changes[place] for place in order]


def _is_unknown(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]) -> bool:
    """Whether there is an effect whose reason only what-if trials show."""
    return sign(change) != 0 and not is_known(change, what_ifs)


def is_known(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]) -> bool:
    """Whether the reason is known without what-if trials, which only add to it."""
    return sign(change) > 0 and is_round_trips(change, what_ifs)


def changes_to_explain(changes: Sequence[WindowChange[T, R]],
                       is_question: bool) -> Sequence[WindowChange[T, R]]:
    """The comparisons to explain; the largest changes come first.

    A question by flags has all its comparisons explained. A scenario has only its largest saving
    and its largest harm explained.
    """
    if is_question or not changes:
        return sorted(changes, key=lambda change: -abs(change.saved_ms))
    best = max(changes, key=lambda change: change.saved_ms)
    worst = min(changes, key=lambda change: change.saved_ms)
    does_harm = sign(worst) < 0 and worst is not best
    return [best, worst] if does_harm else [best]


def _trials(change: WindowChange[T, R], limits: Sequence[Limit[T]], what_ifs: WhatIfs[T, R]
            ) -> list[T]:
    """Trials of both windows without these limits: one each, or several where chance decides.

    A trial that only adds to a known reason has LEAST_ADDED repeats first, and more once these show
    how much it varies. A trial that turns out to be one draw is repeated with other RTTs, queues
    and seeds (_drawn_again).
    """
    repeats = change.repeats
    if not _is_chance(without(change.experiment.requested, limits), change.experiment):
        repeats = repeats[:1]
    if not is_known(change, what_ifs):
        enough = _enough_repeats(change, LEAST_REPEATS, SURE_SHARE * abs(change.saved_ms))
    elif (lifted := what_ifs.change(change, limits)) is None:
        enough = LEAST_ADDED
    else:
        narrow_ms = ADDED_SHARE * max(abs(change.saved_ms), abs(lifted.saved_ms))
        enough = max(_enough_repeats(change, LEAST_ADDED, narrow_ms),
                     _enough_repeats(lifted, LEAST_ADDED, narrow_ms))
    kept = {*repeats[:enough]}
    trials = [without(trial, limits) for cell in (change.base, change.experiment)
              for trial in cell.trials if trial.repeat in kept]
    return trials if len(kept) > 1 else [*trials, *_drawn_again(change, trials, limits, what_ifs)]


def _drawn_again(change: WindowChange[T, R], trials: Sequence[Any], limits: Sequence[Limit[T]],
                 what_ifs: WhatIfs[T, R]) -> list[Any]:
    """These what-if trials with other RTTs, queues and seeds; [] unless they are one draw.

    They may be one draw although the requested trials are not: without some limit a queue drops
    packets that dropped none before.
    """
    lifted = what_ifs.change(change, limits)
    if not limits or lifted is None or not what_ifs.is_drawn(lifted):
        return []
    narrow_ms = ADDED_SHARE * max(abs(change.saved_ms), abs(lifted.saved_ms))
    repeats = min(draws.REPEATS, _enough_repeats(lifted, LEAST_REPEATS, narrow_ms))
    again = []
    for trial in trials:
        for repeat in range(trial.repeat + 1, trial.repeat + repeats):
            seed = netem_seed(trial.seed, repeat)
            network = draws.draw_network(trial.rtt_ms, trial.queue_packets, seed)
            again.append(replace(trial, repeat=repeat, seed=seed, **network))
    return again


def _is_chance(lifted: Any, cell: CellSetting[T, R]) -> bool:
    """Whether chance affects a what-if trial. cell: the setting that it lifts limits of.

    An endless queue drops nothing, so that no microsecond decides; BBR still draws when it probes.
    """
    has_queue = "queue" not in lifted.what_if.split("_")
    is_drawn = cell.is_drawn and (has_queue or lifted.is_bbr)
    return bool(lifted.is_random or is_drawn)


def _enough_repeats(change: WindowChange[T, R], least: int, narrow_ms: float) -> int:
    """How many repeats make half a comparison's interval narrow_ms at most; no fewer than least."""
    narrow_ms = max(narrow_ms, SAME_PART * change.saved.base.value)
    return max(least, math.ceil(len(change.repeats) * (change.half_ms / narrow_ms) ** 2))


def _by_difference(change: WindowChange[T, R], sets: Sequence[Sequence[Limit[T]]],
                   what_ifs: WhatIfs[T, R]) -> list[Sequence[Limit[T]]]:
    """The sets of limits in another order.

    Sets that were never measured come first, then those that change the saving most.
    """
    def difference_ms(limits: Sequence[Limit[T]]) -> float:
        lifted = what_ifs.change(change, limits)
        if lifted is None:
            return math.inf
        return abs(lifted.saved_ms - what_ifs.over_repeats_of(change, lifted).saved_ms)

    return sorted(sets, key=difference_ms, reverse=True)


def _limits_to_lift(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]
                    ) -> Sequence[Sequence[Limit[T]]]:
    """The sets of limits to lift, whether they were measured already or not."""
    if may_be_chance(change) or what_ifs.cannot_differ(change):
        return []
    limits = what_ifs.limits(change.experiment.requested)
    alone = [(limit,) for limit in limits]
    if sign(change) == 0:
        lifted = what_ifs.change(change, limits)
        hides = lifted is not None and sign(lifted) > 0
        return [limits, *(all_but_one(limits) if hides else []), *alone]
    if is_known(change, what_ifs):
        return [(limit,) for limit in raisable(change, what_ifs)]
    return suspects(change, what_ifs)


def suspects(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]
              ) -> list[tuple[Limit[T], ...]]:
    """The sets of limits that may cause a change, as far as they are needed, likely ones first.

    Each limit that may do harm comes first, then each other limit, then pairs of limits that may do
    harm. The next of these groups is tried only if the one before was measured and has no cause.
    """
    every_limit = what_ifs.limits(change.experiment.requested)
    harmful = [limit for limit in every_limit if limit.may_harm]
    others = [limit for limit in raisable(change, what_ifs) if limit not in harmful]
    groups: list[list[tuple[Limit[T], ...]]] = [
        [(limit,) for limit in harmful], [(limit,) for limit in others],
        list(combinations(harmful, 2))]
    tried: list[tuple[Limit[T], ...]] = []
    for group in groups:
        tried += group
        is_measured = all(what_ifs.change(change, limits) is not None for limits in group)
        if not is_measured or causes(change, group, what_ifs):
            break
    return tried


def raisable(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]) -> list[Limit[T]]:
    """The limits besides the bandwidth that may decide how much a larger window saves.

    A fifo that dropped nothing decides nothing.
    """
    requested: Any = change.experiment.requested
    has_dropped = any(what_ifs.has_dropped(record) for cell in (change.base, change.experiment)
                      for record in cell.counting)
    may_drop = has_dropped or requested.qdisc in MANAGED
    return [limit for limit in what_ifs.limits(requested)
            if limit.tag != "bandwidth" and (may_drop or limit.tag != "queue")]


def all_but_one(limits: Sequence[Limit[T]]) -> list[tuple[Limit[T], ...]]:
    """For each limit, all other limits; [] for a single limit, which has no others to lift."""
    if len(limits) < 2:
        return []
    return [tuple(other for other in limits if other is not limit) for limit in limits]


def causes(change: WindowChange[T, R], tried: Iterable[tuple[Limit[T], ...]],
            what_ifs: WhatIfs[T, R]) -> list[tuple[Limit[T], ...]]:
    """The limits each of which accounts for at least EXPLAINED_SHARE of the change.

    A change vanishes if the slower window becomes faster, or the faster one slower. Where lifting
    some limits does the former, limits that only do the latter are no cause.
    """
    found, of_slower = [], []
    for limits in tried:
        lifted = what_ifs.change(change, limits)
        if lifted is None or not what_ifs.is_sure(lifted):
            continue
        own = what_ifs.over_repeats_of(change, lifted)
        if lifted.saved_ms * sign(change) <= (1 - EXPLAINED_SHARE) * own.saved_ms * sign(change):
            found.append(limits)
            faster_by_ms = _slower_ms(own, own) - _slower_ms(own, lifted)
            if faster_by_ms >= MOST_OF * abs(own.saved_ms):
                of_slower.append(limits)
    return of_slower or found


def _slower_ms(judged: WindowChange[T, R], timed: WindowChange[T, R]) -> float:
    """The time in `timed` of the window that is slower in `judged`."""
    is_base_slower = judged.saved_ms > 0
    return (timed.saved.base if is_base_slower else timed.saved.experiment).value
