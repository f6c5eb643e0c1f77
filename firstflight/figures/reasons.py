"""Why a larger window changed a time, or why it did not: accounted for or measured, never guessed.

A saving consists of round trips where the link was idle for as much less time: the saving is then
accounted for. Any other reason is measured: the same trials run again, with the same seed, without
some of their limits (figures.what_ifs). Which limits are lifted depends on what the larger window
does:

- Its effect may be chance, since the interval includes zero. Nothing is lifted. The answer says how
  many repeats would decide.
- It saves round trips. Each limit but the bandwidth is lifted alone. The answer says what the
  larger window saves without the limit, where that differs.
- It saves time that idle time does not account for, or it takes longer. The queue, random loss,
  jitter and pacing are lifted, one by one. The reason is the limit that accounts for at least four
  fifths of the change. Where none does, each other limit is lifted, then two of the first ones
  together.
- It changes nothing. All limits are lifted together, and each alone. If the larger window saves
  time without all limits, all but one are lifted: the reason is each limit that alone takes the
  saving away again. If the larger window takes longer without a limit, that limit protects.

Where chance decides, a what-if trial is repeated until its interval is a tenth of the effect, or as
often as the requested trials were. A what-if trial that only adds to round trips is measured three
times first, and then until its interval is a quarter of the effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from firstflight.base.words import format_number, join_words, plain
from firstflight.figures.what_ifs import (MOST_OF, WhatIfs, all_but_one, causes, idle_saved_ms,
                                          is_known, is_mostly_round_trips, may_be_chance, raisable,
                                          sign, suspects, tolerance_ms)
from firstflight.figures.window_changes import SAME_PART, CellSetting, Reason, WindowChange
from firstflight.runs.kinds import R, T
from firstflight.setting.limits import Limit

MOST_PROPOSED = 10_000  # repeats that an answer proposes
# Kinds of reasons.
NOT_FOUND = "not found"  # the reason says only what was tried
CHANCE = "may be chance"
IN_PART = ", in part"  # ends the kind of a reason whose what-if trials were not all measured


# Reasons -------------------------------------------------------------------------------

def reasons(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]) -> list[Reason]:
    """Why the larger window changed the time, or did not; [] where the reason was not measured."""
    if may_be_chance(change):
        return [_chance(change)]
    if sign(change) == 0:
        return _why_unchanged(change, what_ifs)
    if is_known(change, what_ifs):
        return [_round_trips(change, what_ifs)]

    lifted = suspects(change, what_ifs)
    for count in (1, 2):  # limits that are lifted together
        tried = [limits for limits in lifted if len(limits) == count]
        if found := causes(change, tried, what_ifs):
            return [_cause(change, found, what_ifs)]
    if sign(change) > 0 and is_mostly_round_trips(change, what_ifs):
        return [_round_trips(change, what_ifs)]
    return _not_found(change, lifted, what_ifs)


def explain_changes(changes: Sequence[WindowChange[T, R]], what_ifs: WhatIfs[T, R],
                    known: str = "", among: Sequence[WindowChange[T, R]] = ()) -> list[str]:
    """A sentence for each kind of reason, with the numbers of its largest effect.

    Kinds with larger effects come first. Kinds of which not all was measured come last. known: a
    text whose reasons are not repeated. among: all comparisons of the run, if only some of them are
    explained.
    """
    by_kind: dict[str, list[tuple[WindowChange[T, R], Reason]]] = {}
    for change in sorted(changes, key=lambda change: -abs(change.saved_ms)):
        for reason in reasons(change, what_ifs):
            if reason.kind == NOT_FOUND and len(among or changes) > 1:
                continue  # one odd network among many says nothing about the others
            if reason.text not in known:
                by_kind.setdefault(reason.kind, []).append((change, reason))

    lines = []
    for kind in sorted(by_kind, key=lambda kind: kind.endswith(IN_PART)):
        of_kind = by_kind[kind]
        change, reason = of_kind[0]
        line = reason.text[0].upper() + reason.text[1:]
        if len(among or changes) > 1:
            line += f" ({what_ifs.where(change, among or changes)})"
        line += "."
        if len(of_kind) > 1:
            same = "The same holds for" if kind == CHANCE else "The reason is the same in"
            line += f" {same} {len(of_kind)} of {len(changes)} comparisons."
        lines.append(line)
    return lines


def not_measured(changes: Sequence[WindowChange[T, R]], what_ifs: WhatIfs[T, R]) -> list[str]:
    """A sentence on how many comparisons have no reason; [] where all have one."""
    without_one = sum(not reasons(change, what_ifs) and not what_ifs.accounted(change)
                      for change in changes)
    if not without_one:
        return []
    which = (f" of {without_one} of {len(changes)} comparisons" if len(changes) > 1 else "")
    return [f"The reason{which} is not measured: its what-if trials would take too long, or were"
            " left out."]


def _chance(change: WindowChange[T, R]) -> Reason:
    """The reason of an effect that may be chance: how many repeats would decide.

    It assumes that their mean is the same. The interval becomes narrower with the square root of
    their number, and has to become narrower than the effect.
    """
    low, high = change.saved.absolute.interval or (0.0, 0.0)
    _, window = change.windows
    what = f"what {window} segments change may be chance"
    needed = math.inf
    if change.saved_ms:
        needed = len(change.repeats) * (change.half_ms / abs(change.saved_ms)) ** 2
    if needed > MOST_PROPOSED:
        most_ms = format_number(max(-low, high), 1)
        return Reason(CHANCE, f"{what}, and more than {MOST_PROPOSED:,} repeats would be needed to"
                      f" know: they change {most_ms} ms at most", CHANCE)

    # Rounded up to two digits.
    step = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    repeats = plain(math.ceil(needed / step) * step)
    size = format_number(abs(change.saved_ms), 1)
    stays = f"save {size} ms" if change.saved_ms > 0 else f"take {size} ms longer"
    return Reason(CHANCE, f"{what}: some {repeats} repeats would decide, if they {stays} on"
                  f" average, too (--repeat {repeats})", CHANCE)


def _round_trips(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]) -> Reason:
    """The reason that the saving is round trips.

    It says what the window would save without each limit, where that differs.
    """
    text = (f"{what_ifs.sent(change)}, and the link is idle"
            f" {format_number(idle_saved_ms(change, what_ifs), 1)} ms less")
    names = ["round trips"]
    not_measured: list[Limit[T]] = []
    for limit in raisable(change, what_ifs):
        lifted = what_ifs.change(change, (limit,))
        if lifted is None or not what_ifs.is_sure(lifted):
            not_measured.append(limit)
            continue
        if not differs(lifted, change, what_ifs):
            continue
        own_ms = what_ifs.over_repeats_of(change, lifted).saved_ms
        if abs(lifted.saved_ms - own_ms) > MOST_OF * max(lifted.saved_ms, own_ms):
            names.append(limit.name)
        text += f"; with {limit.without} {_effect(change.windows, lifted)}"
    if not_measured and what_ifs.records:
        text += f"; for want of time too little was measured with {_without(not_measured)}"
    label = ", ".join(names)
    return Reason(label, text, kind=f"{label}{IN_PART}" if not_measured else label)


def differs(lifted: WindowChange[T, R], change: WindowChange[T, R], what_ifs: WhatIfs[T, R]
            ) -> bool:
    """Whether a window saves another time without a limit, and not by chance.

    lifted: the change without the limit.
    """
    own = what_ifs.over_repeats_of(change, lifted)  # over the repeats that `lifted` has, too
    by_chance_ms = math.hypot(lifted.half_ms, own.half_ms)
    most_same_ms = max(SAME_PART * change.saved.base.value, by_chance_ms)
    return abs(lifted.saved_ms - own.saved_ms) > most_same_ms


# Where nothing changed -----------------------------------------------------------------

def _why_unchanged(change: WindowChange[T, R], what_ifs: WhatIfs[T, R]) -> list[Reason]:
    """The reason that a larger window changed nothing; [] where no reason was measured."""
    if what_ifs.cannot_differ(change):
        return [what_ifs.same(change)]
    limits = what_ifs.limits(change.experiment.requested)
    all_lifted = what_ifs.change(change, limits)
    if all_lifted is None:
        return []

    alone = [(limit, lifted) for limit in limits
             if (lifted := what_ifs.change(change, (limit,))) is not None]
    sure = [(limit, lifted) for limit, lifted in alone if what_ifs.is_sure(lifted)]
    protecting = [(limit, lifted) for limit, lifted in sure if sign(lifted) < 0]
    if protecting:
        _, window = change.windows
        return [_protection(window, protecting)]
    if sign(all_lifted) <= 0:
        freeing = [(limit,) for limit, lifted in sure if sign(lifted) > 0]
        return [_cause(change, freeing, what_ifs) if freeing else what_ifs.same(change)]
    return _hidden_saving(change, limits, all_lifted, what_ifs)


def _protection(window: int, protecting: Sequence[tuple[Limit[T], WindowChange[T, R]]]) -> Reason:
    """The reason that some limits protect: a window takes longer without them.

    protecting: each of these limits, and the change without it.
    """
    cases = join_words([f"with {limit.without} {window} segments take"
                        f" {format_number(-lifted.saved_ms, 1)} ms longer"
                        for limit, lifted in protecting])
    names = _names([limit for limit, _ in protecting])
    protect = "protects" if len(protecting) == 1 else "protect"
    return Reason(names, f"the {names} {protect}: {cases}", f"protects: {names}")


def _hidden_saving(change: WindowChange[T, R], limits: Sequence[Limit[T]],
                   all_lifted: WindowChange[T, R], what_ifs: WhatIfs[T, R]) -> list[Reason]:
    """The reason that limits hide a saving: each that alone takes the saving away again.

    all_lifted: the change without all limits, which saves time. [] where not all was measured.
    """
    # Of a single limit there are no other ones to lift: with it, the change is the requested one.
    with_one = [(limit, what_ifs.change(change, others))
                for limit, others in zip(limits, all_but_one(limits) or [()])]
    if any(lifted is None for _, lifted in with_one):
        return []

    saved = format_number(all_lifted.saved_ms, 1)
    gain = f"with {_without(limits)} {change.windows[1]} segments save {saved} ms"
    hiding = []
    for limit, lifted in with_one:
        if lifted is not None and sign(lifted) <= 0:
            taken_ms = all_lifted.saved_ms - lifted.saved_ms
            if taken_ms > max(tolerance_ms(all_lifted), lifted.half_ms):
                hiding.append(limit)
    if not hiding:
        names = _names(limits)
        return [Reason(names, f"several limits together ({names}): {gain}, and none of them alone"
                       " takes that away", "hide together")]
    names = _names(hiding)
    takes = "each alone takes that away" if len(hiding) > 1 else "it alone takes that away"
    return [Reason(names, f"the {names}: {gain}, and {takes}", f"hides: {names}")]


# Harm, and savings that idle time does not account for ---------------------------------

def _cause(change: WindowChange[T, R], causes: Sequence[tuple[Limit[T], ...]],
           what_ifs: WhatIfs[T, R]) -> Reason:
    """The reason that limits are the cause, with what the window would do without them.

    causes: sets of limits, each of which is lifted together.
    """
    cases = join_words([f"with {_without(limits)} {_effect(change.windows, lifted)}"
                        for limits in causes
                        if (lifted := what_ifs.change(change, limits)) is not None])
    names = " or ".join(_names(limits) for limits in causes)
    return Reason(names, f"the {names}: {cases}", f"cause: {names}")


def _not_found(change: WindowChange[T, R], tried: Sequence[tuple[Limit[T], ...]],
               what_ifs: WhatIfs[T, R]) -> list[Reason]:
    """The reason where no limit is the cause: what each limit does that was lifted.

    [] where no limit was lifted.
    """
    cases = [f"with {_without(limits)} {_effect(change.windows, lifted)}" for limits in tried
             if (lifted := what_ifs.change(change, limits)) is not None]
    if not cases:
        return []
    return [Reason("not found", f"no single reason was found: {join_words(cases)}",
                   kind=NOT_FOUND)]


def _effect(windows: tuple[int, int], lifted: WindowChange[T, R]) -> str:
    """What the larger window does without some limits: "10 segments save 34.6 ms".

    windows: of base and experiment. lifted: the change without the limits.
    """
    base, window = windows
    if may_be_chance(lifted):
        return f"what {window} segments change may be chance"
    if sign(lifted) == 0:
        return f"{window} segments take as long as {base}"
    saved_ms = lifted.saved_ms
    return (f"{window} segments save {format_number(saved_ms, 1)} ms" if saved_ms > 0 else
            f"{window} segments take {format_number(-saved_ms, 1)} ms longer")


def _names(limits: Iterable[Limit[T]]) -> str:
    return join_words([limit.name for limit in limits])


def _without(limits: Iterable[Limit[T]]) -> str:
    return join_words([limit.without for limit in limits])


def range_of(cell: CellSetting[T, R], column: str) -> str:
    """The values of a column of counts in the records that count: "4", or "3 to 5"."""
    values = {getattr(record, column) or 0 for record in cell.counting}
    least, most = min(values, default=0), max(values, default=0)
    return f"{least}" if least == most else f"{least} to {most}"
