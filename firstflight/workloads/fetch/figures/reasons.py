"""Why a larger window changed a time, or why it did not: accounted for or measured, never guessed.

A saving is accounted for where the link was idle for that much less: it is round trips. Any other
reason is measured: the same trials run again, with the same seed, without some of their limits
(workloads.fetch.scenario.what_if). Which limits are lifted depends on what the larger window does:

- It saves round trips: each limit but the bandwidth is lifted alone. The answer says what the
  larger window saves without it, where that differs.
- It saves time that idle time does not account for: the queue, random loss, jitter and pacing are
  lifted, one by one. The reason is what takes the saving away.
- It changes nothing: all limits are lifted together. If the larger window saves time then, the
  reason is each limit that alone takes the saving away again. Each limit is also lifted alone: if
  the larger window then takes longer, that limit protects.
- It takes longer: the queue, random loss, jitter and pacing are lifted, one by one. The reason is
  what accounts for at least four fifths of the harm; where none does alone, two of them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from firstflight.base.words import join_words, format_number
from firstflight.net.link import MANAGED
from firstflight.workloads.fetch.figures.cells import (SAME_PART, CellSetting, Reason, WindowChange,
                                                       change_between, mean, settings, where,
                                                       without_repeat)
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.scenario.what_if import BY_TAG, Limit, limits_of, without

EXPLAINED_SHARE = 0.8  # of a harm, at least, is gone without the limit that causes it
HARMFUL = tuple(BY_TAG[tag] for tag in ("queue", "loss", "jitter", "pacing"))
QUEUE = BY_TAG["queue"]
BANDWIDTH = BY_TAG["bandwidth"]
# A limit without which a saving differs by this share of the larger one is named beside the reason.
MOST_OF = 0.5
MOST_TRIALS = 40  # measured for the reasons of one answer
MOST_SECONDS = 2.0
# What a trial costs in a guest: to start its programs, and for each packet with its ACK.
TRIAL_S, PACKET_S = 0.02, 0.00006
NOT_FOUND = "not found"  # the kind of a reason that only says what was tried
MOST_REPEATS = 5  # of a what-if trial that chance affects

Limits = tuple[Limit, ...]  # in the order of what_if.LIMITS


@dataclass(frozen=True)
class WhatIfs:
    """The what-if trials of a run."""

    records: Sequence[Record] = ()

    @cached_property
    def _cells(self) -> dict[Trial, CellSetting]:
        return {cell.requested: cell for cell in settings(self.records)}

    def change(self, change: WindowChange, limits: Limits) -> WindowChange | None:
        """The same windows compared without some limits; None where no such trials count."""
        if not limits:
            return change
        base, experiment = (self._cells.get(without_repeat(without(cell.requested, limits)))
                            for cell in (change.base, change.experiment))
        if (base is None or experiment is None
                or base.total_ms is None or experiment.total_ms is None):
            return None
        return change_between(base, experiment)


def tolerance_ms(change: WindowChange) -> float:
    """A smaller saving may be none: half its 95 % interval, or 1 % of the time if that is more."""
    interval = change.saved.absolute.interval
    half_ms = (interval[1] - interval[0]) / 2 if interval is not None else 0.0
    return max(half_ms, SAME_PART * change.saved.base.value)


def may_be_chance(change: WindowChange) -> bool:
    """Whether what is drawn hides what the window does: its interval is wide, and holds zero."""
    interval = change.saved.absolute.interval
    return (interval is not None and interval[0] <= 0 <= interval[1]
            and interval[1] - interval[0] > 2 * SAME_PART * change.saved.base.value)


def sign(change: WindowChange) -> int:
    """1 where the larger window saves time, −1 where it takes longer, 0 for no change."""
    if abs(change.saved_ms) <= tolerance_ms(change):
        return 0
    return 1 if change.saved_ms > 0 else -1


# What to measure -----------------------------------------------------------------------

def what_if_trials(changes: Iterable[WindowChange], what_ifs: WhatIfs) -> list[Trial]:
    """The what-if trials to measure next for the reasons of these comparisons, in their order.

    A comparison gets all trials that it needs now, or none. With those measured already they are
    MOST_TRIALS at most, and take MOST_SECONDS at most.
    """
    measured = {record.trial for record in what_ifs.records}
    wanted: dict[Trial, None] = {}
    total_s = sum(map(_cost_s, measured))
    for change in changes:
        trials = [trial for limits in _limits_to_lift(change, what_ifs)
                  for trial in _trials(change, limits)
                  if trial not in measured and trial not in wanted]
        cost_s = sum(map(_cost_s, trials))
        if (len(measured) + len(wanted) + len(trials) <= MOST_TRIALS
                and total_s + cost_s <= MOST_SECONDS):
            wanted |= dict.fromkeys(trials)
            total_s += cost_s
    return list(wanted)


def _cost_s(trial: Trial) -> float:
    """A rough estimate of how long a trial takes in a guest."""
    return TRIAL_S + PACKET_S * (
        trial.response_bytes + sum(trial.before)
        + trial.request_bytes * (1 + len(trial.before))) / trial.mss


def changes_to_explain(changes: Sequence[WindowChange],
                       is_question: bool) -> Sequence[WindowChange]:
    """The comparisons to explain, those that change most first.

    All comparisons of a question by flags; of a scenario the largest saving and the largest harm.
    """
    if is_question or not changes:
        return sorted(changes, key=lambda change: -abs(change.saved_ms))
    best = max(changes, key=lambda change: change.saved_ms)
    worst = min(changes, key=lambda change: change.saved_ms)
    return [best, *([worst] if sign(worst) < 0 else [])]


def _trials(change: WindowChange, limits: Limits) -> Iterator[Trial]:
    """Trials of both windows without these limits: one each, or several where chance decides."""
    repeats = range(MOST_REPEATS)
    for cell in (change.base, change.experiment):
        for _, record in zip(repeats, cell.records):
            trial = without(record.trial, limits)
            yield trial
            # Without a limit of the queue nothing is dropped, and one trial is enough.
            if not (trial.is_random or cell.is_drawn and QUEUE not in limits):
                break


def _limits_to_lift(change: WindowChange, what_ifs: WhatIfs) -> list[Limits]:
    """The sets of limits to lift, those measured already included."""
    if may_be_chance(change):
        return []
    limits = limits_of(change.experiment.requested)
    alone = [(limit,) for limit in limits]
    if sign(change) == 0:
        return [limits, *_all_but_one(limits), *alone]
    if sign(change) > 0 and is_round_trips(change):
        return [(limit,) for limit in _raisable(change)]
    harmful = tuple(limit for limit in limits if limit in HARMFUL)
    slower = change if sign(change) < 0 else _swapped(change)
    singles: list[Limits] = [(limit,) for limit in harmful]
    is_known = all(what_ifs.change(slower, single) is not None for single in singles)
    if is_known and not _causes(slower, singles, what_ifs):
        return [*singles, *combinations(harmful, 2)]
    return singles


def _raisable(change: WindowChange) -> Limits:
    """The limits besides the bandwidth that may decide how much a larger window saves.

    A fifo that dropped nothing decides nothing.
    """
    requested = change.experiment.requested
    has_dropped = any(record.queue_drops for cell in (change.base, change.experiment)
                      for record in cell.counting)
    may_drop = has_dropped or requested.qdisc in MANAGED
    return tuple(limit for limit in limits_of(requested)
                 if limit is not BANDWIDTH and (may_drop or limit is not QUEUE))


def _all_but_one(limits: Limits) -> list[Limits]:
    """All limits but one, for each of them; [] for a single limit: nothing would be lifted."""
    return [tuple(other for other in limits if other is not limit) for limit in limits
            ] if len(limits) > 1 else []


def _swapped(change: WindowChange) -> WindowChange:
    return change_between(change.experiment, change.base)


# Reasons -------------------------------------------------------------------------------

def reasons(change: WindowChange, what_ifs: WhatIfs) -> list[Reason]:
    """Why the larger window changed the time, or did not.

    [] where it was not measured why, and where there may be nothing to explain.
    """
    if may_be_chance(change):
        return []
    if sign(change) == 0:
        return _why_unchanged(change, what_ifs)
    if sign(change) > 0 and is_round_trips(change):
        return [_round_trips(change, what_ifs)]
    harmful: Limits = tuple(limit for limit in limits_of(change.experiment.requested)
                            if limit in HARMFUL)
    slower = change if sign(change) < 0 else _swapped(change)
    for together in (1, 2):
        tried = list(combinations(harmful, together))
        if causes := _causes(slower, tried, what_ifs):
            return [_cause(change, causes, what_ifs)]
    return _not_found(change, [*combinations(harmful, 1), *combinations(harmful, 2)], what_ifs)


def explained(changes: Sequence[WindowChange], what_ifs: WhatIfs, known: str = "",
              among: Sequence[WindowChange] = ()) -> list[str]:
    """A sentence for each kind of reason, with the numbers of its largest effect.

    Kinds with larger effects come first. known: text with reasons that are not repeated. among: all
    comparisons, of which only some are explained.
    """
    by_kind: dict[str, list[tuple[WindowChange, Reason]]] = {}
    for change in sorted(changes, key=lambda change: -abs(change.saved_ms)):
        for reason in reasons(change, what_ifs):
            if reason.kind == NOT_FOUND and len(among or changes) > 1:
                continue  # one odd network among many says nothing about the others
            if reason.text not in known:
                by_kind.setdefault(reason.kind, []).append((change, reason))
    lines = []
    for same in by_kind.values():
        change, reason = same[0]
        text = reason.text[0].upper() + reason.text[1:]
        place = f" ({where(change, among or changes)})" if len(among or changes) > 1 else ""
        others = (f" The reason is the same in {len(same)} of {len(changes)} comparisons."
                  if len(same) > 1 else "")
        lines.append(f"{text}{place}.{others}")
    return lines


def idle_saved_ms(change: WindowChange) -> float | None:
    """How much less the link is idle with the larger window; None in runs without idle times."""
    idle_ms = [mean(cell.counting, "link_idle_ms") for cell in (change.base, change.experiment)]
    return None if idle_ms[0] is None or idle_ms[1] is None else idle_ms[0] - idle_ms[1]


def is_round_trips(change: WindowChange) -> bool:
    """Whether the link was idle less by as much as the larger window saves."""
    saved_ms = idle_saved_ms(change)
    return saved_ms is not None and abs(saved_ms - change.saved_ms) <= tolerance_ms(change)


def _round_trips(change: WindowChange, what_ifs: WhatIfs) -> Reason:
    text = (f"{_flights(change)}, and the link is idle"
            f" {format_number(idle_saved_ms(change), 1)} ms less")
    names = ["round trips"]
    for limit in _raisable(change):
        lifted, other_ms = what_ifs.change(change, (limit,)), tolerance_ms(change)
        if lifted is None or abs(lifted.saved_ms - change.saved_ms) <= other_ms:
            continue
        larger_ms = max(lifted.saved_ms, change.saved_ms)
        if abs(lifted.saved_ms - change.saved_ms) > MOST_OF * larger_ms:
            names.append(limit.name)
        base, window = change.windows
        text += f"; with {limit.without} {_effect(window, base, lifted)}"
    label = ", ".join(names)
    return Reason(label, text, label)


def _flights(change: WindowChange) -> str:
    """How many flights handshake and response, or a request, take under both windows, in words.

    What one transfer sent is that with the median time; the counts name all that occur.
    """
    cells = change.base, change.experiment
    base, window = change.windows
    sent, what = ("upload", "request") if change.is_of_client else ("response", "response")
    medians = [cell.median for cell in cells]
    listed = [getattr(median, f"{sent}_flights") if median is not None else ""
              for median in medians]
    handshakes = [_range(cell, "handshake_round_trips") for cell in cells]
    counts = [_range(cell, f"{sent}_round_trips") for cell in cells]

    before = (f"the handshake takes {_flights_of(handshakes[0])} with {base} segments"
              f" and {handshakes[1]} with {window}, and "
              if handshakes[0] != handshakes[1] else "")
    if counts[0] == counts[1]:
        both = listed[0] if listed[0] == listed[1] else f"{listed[0]} and {listed[1]}"
        return f"{before}the {what} takes {_flights_of(counts[0])} with either window" + (
            f" ({both} segment{'s' * (both != '1')}{_at_the_median(cells)})" if both else "")
    return (f"{before}the {what} takes {_flights_of(counts[0])} with {base} segments"
            f" ({listed[0]}) and {counts[1]} with {window}"
            f" ({listed[1]}{_at_the_median(cells)})")


def _range(cell: CellSetting, column: str) -> str:
    """The values of a column of counts over the transfers that count: "4", or "3 to 5"."""
    values = {getattr(record, column) or 0 for record in cell.counting}
    least, most = min(values, default=0), max(values, default=0)
    return f"{least}" if least == most else f"{least} to {most}"


def _flights_of(counted: str) -> str:
    return f"{counted} flight" if counted == "1" else f"{counted} flights"


def _at_the_median(cells: Iterable[CellSetting]) -> str:
    """Which transfer's flights are listed, where not all have the same."""
    varies = any(len({record.response_flights for record in cell.counting}) > 1 for cell in cells)
    return ", where the time is the median" if varies else ""


# Where nothing changed -----------------------------------------------------------------

def _why_unchanged(change: WindowChange, what_ifs: WhatIfs) -> list[Reason]:
    limits = limits_of(change.experiment.requested)
    all_lifted = what_ifs.change(change, limits)
    if all_lifted is None:
        return []
    window = change.windows[1]
    alone = [(limit, lifted) for limit in limits
             if (lifted := what_ifs.change(change, (limit,))) is not None]
    protecting = [(limit, lifted) for limit, lifted in alone if sign(lifted) < 0]
    if protecting:
        cases = join_words([f"with {limit.without} {window} segments take"
                                 f" {format_number(-lifted.saved_ms, 1)} ms longer"
                                 for limit, lifted in protecting])
        names = _names([limit for limit, _ in protecting])
        return [Reason(names, f"the {names} protect{'s' * (len(protecting) == 1)}: {cases}",
                       f"protects: {names}")]
    if sign(all_lifted) <= 0:
        return [_same_flights(change)]
    saved = format_number(all_lifted.saved_ms, 1)
    gain = f"with {_without(limits)} {window} segments save {saved} ms"
    hiding = [limit for limit, others in zip(limits, _all_but_one(limits) or [()])
              if (back := what_ifs.change(change, others)) is not None and sign(back) <= 0
              and all_lifted.saved_ms - back.saved_ms > tolerance_ms(all_lifted)]
    if hiding:
        names = _names(hiding)
        takes = "each alone takes that away" if len(hiding) > 1 else "it alone takes that away"
        return [Reason(names, f"the {names}: {gain}, and {takes}", f"hides: {names}")]
    names = _names(limits)
    return [Reason(names, f"several limits together ({names}): {gain}, and none of them alone"
                   " takes that away", "hide together")]


def why_equal(change: WindowChange) -> str:
    """Why a larger window saves nothing, as far as the flights and the idle time of the link show
    without a what-if trial; "" where they do not, or where something changed.
    """
    if sign(change) != 0:
        return ""
    column = "upload_round_trips" if change.is_of_client else "response_round_trips"
    medians = change.base.median, change.experiment.median
    before, after = (getattr(median, column) if median is not None else None
                     for median in medians)
    if before is None or after is None:
        return ""
    if before == 1 == after:
        return "fits one flight"
    return "link busy" if after < before and is_round_trips(change) else ""


def _same_flights(change: WindowChange) -> Reason:
    """The reason where no limit hides a saving: what both windows sent."""
    counts = {_range(cell, "response_round_trips") for cell in (change.base, change.experiment)}
    label = "same flights" if len(counts) == 1 else "no round trip less"
    return Reason(label, _flights(change), label)


# Harm, and savings that idle time does not account for ---------------------------------

def _causes(slower: WindowChange, tried: Iterable[Limits], what_ifs: WhatIfs) -> list[Limits]:
    """The limits each of which accounts for at least EXPLAINED_SHARE of the lost time."""
    return [limits for limits in tried if (lifted := what_ifs.change(slower, limits)) is not None
            and lifted.saved_ms >= (1 - EXPLAINED_SHARE) * slower.saved_ms]


def _cause(change: WindowChange, causes: Sequence[Limits], what_ifs: WhatIfs) -> Reason:
    base, window = change.windows
    cases = join_words([f"with {_without(limits)} {_effect(window, base, lifted)}"
                             for limits in causes
                             if (lifted := what_ifs.change(change, limits)) is not None])
    names = " or ".join(_names(limits) for limits in causes)
    return Reason(names, f"the {names}: {cases}", f"cause: {names}")


def _not_found(change: WindowChange, tried: Sequence[Limits], what_ifs: WhatIfs) -> list[Reason]:
    """The effect of every limit that was lifted, where none is the reason; [] where none was."""
    base, window = change.windows
    cases = [f"with {_without(limits)} {_effect(window, base, lifted)}" for limits in tried
             if (lifted := what_ifs.change(change, limits)) is not None]
    if not cases:
        return []
    return [Reason("not found", f"no single reason was found: {join_words(cases)}",
                   NOT_FOUND)]


def _effect(window: int, base: int, lifted: WindowChange) -> str:
    saved_ms = lifted.saved_ms
    if sign(lifted) == 0:
        return f"{window} segments take as long as {base}"
    return (f"{window} segments save {format_number(saved_ms, 1)} ms" if saved_ms > 0 else
            f"{window} segments take {format_number(-saved_ms, 1)} ms longer")


def _names(limits: Iterable[Limit]) -> str:
    return join_words([limit.name for limit in limits])


def _without(limits: Limits) -> str:
    return join_words([limit.without for limit in limits])
