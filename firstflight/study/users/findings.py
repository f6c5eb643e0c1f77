"""Findings on a sample of users: the windows, and which of the operator's options is faster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy

from firstflight.base.words import format_interval, format_number, join_words
from firstflight.figures.compare import Row, difference, resampled_users
from firstflight.findings.difference import Difference
from firstflight.findings.findings import (Answer, Cell, Column, Finding, Interval, Statement,
                                           Table, Tile)
from firstflight.study.users import analysis, recommendation, varied, window_commands
from firstflight.study.users.analysis import Measured, Outcome
from firstflight.study.users.recommendation import in_words
from firstflight.study.users.varied import ALL, Choice
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.scenario.users import PART, Option, UserSample

FIRST, OTHER = "first", "other"  # the option of a row in a comparison


def users_findings(scenario: Scenario, users: UserSample,
                   records: Sequence[Record]) -> tuple[list[Finding], tuple[Tile, ...]]:
    """The finding for each option, that on all options first; and tiles with the windows."""
    made, choices = [], {}
    for place, option in enumerate(users.options):
        finding, chosen = recommendation.recommended(scenario, users, records, option)
        made.append(finding)
        if chosen:
            choices[place] = chosen

    tiles = tuple(_tile(users.options[place], chosen[ALL]) for place, chosen in choices.items())
    if len(made) == 1:
        answer = made[0].answer
        if answer is not None:
            values: dict[str, object] = {
                **_values(users, users.options[0], choices[0]), "options": []}
            made = [replace(made[0], answer=replace(answer, values=values))]
        return made, tiles

    chosen_options = []
    for place, chosen in choices.items():
        option = users.options[place]
        under = varied.with_option(records, option)
        by_part = {part: analysis.measured(users, under, part) for part in users.parts}
        chosen_options.append(_ChosenOption(option, chosen, by_part))
    if not chosen_options:
        return made, tiles
    without_answer = [replace(finding, answer=None) for finding in made]
    return [_comparison(scenario, users, chosen_options), *without_answer], tiles


def _tile(option: Option, choice: Choice) -> Tile:
    words = f", with {in_words(option)}" if option else ""
    if choice.initcwnd is None:
        return Tile("no window", f"holds whatever the file leaves open{words}")
    return Tile(f"{choice.initcwnd} segments", f"the window that the rule chooses{words}")


def _values(users: UserSample, option: Option, choices: Mapping[str, Choice]
            ) -> dict[str, object]:
    """The windows with an option as JSON; null where none holds."""
    choice = choices[ALL]
    saved = None
    if choice.initcwnd is not None:
        saved = choice.whole.outcome(choice.initcwnd).saved.absolute
    return {**option, "recommended_iw": choice.initcwnd, "baseline_iw": users.baseline_initcwnd,
            "saved_ms": saved and saved.value, "saved_interval_ms": saved and saved.interval,
            "groups": {name: of_group.initcwnd for name, of_group in choices.items()
                       if name != ALL}}


# Options of the operator -----------------------------------------------------------------

@dataclass(frozen=True)
class _ChosenOption:
    """An option, its windows by group, and what was measured with it by part."""

    option: Option
    choices: Mapping[str, Choice]
    measured: Mapping[str, Measured]

    @property
    def words(self) -> str:
        return in_words(self.option)

    @property
    def choice(self) -> Choice:
        """Its window for all users together."""
        return self.choices[ALL]

    @property
    def initcwnd(self) -> int:
        """Its own window; the baseline where none holds."""
        return self.choice.initcwnd or self.choice.baseline

    @property
    def users(self) -> int:
        """How many users were measured with it."""
        return self.choice.whole.users

    def outcome(self, window: int) -> Outcome:
        """What it does to all users under a window, with the values of the file and the flags."""
        return self.choice.whole.outcome(window)

    def saved(self, base: _ChosenOption, window: int, base_window: int,
              part: str = PART) -> Difference:
        """How much faster it is than another option, over the users that count with both."""
        own, of_base = self.measured[part], base.measured[part]
        users, in_base, in_own = numpy.intersect1d(of_base.user, own.user, return_indices=True)

        rows = _rows(FIRST, users, weights=of_base.weight[in_base],
                     totals_ms=of_base.total_ms[base_window][in_base])
        rows += _rows(OTHER, users, weights=own.weight[in_own],
                      totals_ms=own.total_ms[window][in_own])
        return difference(rows, FIRST, OTHER, resampled_users)


def _rows(option: str, users: Iterable[int], weights: Iterable[float],
          totals_ms: Iterable[float]) -> list[Row]:
    """A row of a comparison for each user. option: FIRST or OTHER."""
    return [Row(None, option, int(user), weight=float(weight), value=float(total_ms))
            for user, weight, total_ms in zip(users, weights, totals_ms)]


def _comparison(scenario: Scenario, users: UserSample,
                options: Sequence[_ChosenOption]) -> Finding:
    """Which option is faster, each with its own window."""
    base, *others = options
    changes = [other.saved(base, other.initcwnd, base.initcwnd) for other in others]
    windows = [_window_in_words(users, option) for option in options]
    compared = [_change_in_words(base, other, change) for other, change in zip(others, changes)]
    commands, why_none = _commands(users, options)

    own = _own_windows_table(options, changes)
    notes = (*recommendation.doubts(users),
             *(note for other, change in zip(others, changes)
               for note in _other_conditions(users, base, other, change)),
             *_unsaid(users, options), why_none, recommendation.HOW_TO_SET if commands else "")
    sentence = " ".join((f"{scenario.head.source}.", *windows, *compared))
    names = join_words([option.words for option in options])
    windows_of_all = {option.choice.initcwnd for option in options}
    values: dict[str, object] = {
        "recommended_iw": windows_of_all.pop() if len(windows_of_all) == 1 else None,
        "baseline_iw": users.baseline_initcwnd,
        "options": [_values(users, option.option, option.choices) for option in options]}
    return Finding(
        "options", f"Which is faster for these users: {names}",
        (own, _same_windows_table(users, options)),
        (*(Statement(f"Which window with {option.words}?",
                     recommendation.choice_in_words(users, option.choice)) for option in options),
         *(Statement(f"Is {other.words} faster than {base.words}?", words)
           for other, words in zip(others, compared))),
        answer=Answer(sentence, own, tuple(filter(None, notes)), "\n".join(commands),
                      values))


def _window_in_words(users: UserSample, option: _ChosenOption) -> str:
    sentence = recommendation.choice_in_words(users, option.choice)
    return f"With {option.words}, {sentence[0].lower()}{sentence[1:]}"


def _unsaid(users: UserSample, options: Sequence[_ChosenOption]) -> list[str]:
    """The remarks on what the file does not say; those that all options have stand once."""
    remarks = {option.words: varied.remarks(users, option.choice) for option in options}
    counts: Counter[str] = Counter()
    for those in remarks.values():
        counts.update(set(those))
    shared = [remark for remark in remarks[options[0].words] if counts[remark] == len(remarks)]

    own = []
    for words, those in remarks.items():
        own += [f"With {words}: {remark}" for remark in those if remark not in shared]
    return [*own, *shared]


def _change_in_words(base: _ChosenOption, other: _ChosenOption, change: Difference) -> str:
    """Whether an option is faster than the first one, each with its window."""
    saved, interval = change.absolute, format_interval(change.absolute.interval)
    if not saved.value and saved.interval == (0, 0):
        return (f"{other.words} with {other.initcwnd} segments takes as long as {base.words} with"
                f" {base.initcwnd}, {format_number(change.base.value)} ms.")
    if saved.sign == 0:
        return (f"{other.words} with {other.initcwnd} segments is not significantly faster or"
                f" slower than {base.words} with {base.initcwnd}: it saves"
                f" {format_number(saved.value)} ms of {format_number(change.base.value)} (95 %"
                f" interval {interval} ms).")
    compared = "less" if saved.sign > 0 else "longer"
    return (f"{other.words} with {other.initcwnd} segments takes"
            f" {format_number(abs(saved.value))} ms {compared} than {base.words} with"
            f" {base.initcwnd}, of {format_number(change.base.value)} ms (95 % interval of what"
            f" it saves: {interval} ms).")


def _other_conditions(users: UserSample, base: _ChosenOption, other: _ChosenOption,
                      change: Difference) -> list[str]:
    """A note on conditions, left open by the file, that change which option is faster; else []."""
    differing = []
    for part in other.measured:
        if part == PART or part not in base.measured:
            continue
        saved = other.saved(base, other.initcwnd, base.initcwnd, part).absolute
        if saved.sign != change.absolute.sign:
            differing.append(f"{varied.condition_in_words(part, users)} it saves"
                             f" {format_number(saved.value, signed=True)} ms"
                             f" ({format_interval(saved.interval)})")
    if not differing:
        return []
    return [f"Whether {other.words} is faster than {base.words} depends on what the file does not"
            f" say: {'; '.join(differing)}."]


def _commands(users: UserSample, options: Sequence[_ChosenOption]) -> tuple[list[str], str]:
    """The commands where all options have the same windows; else why there are none."""
    first, *others = (recommendation.windows_of(option.choices) for option in options)
    if all(windows == first for windows in others):
        return window_commands.commands(first, users.baseline_initcwnd), ""
    return [], ("The windows differ: for its command repeat this with one of them alone; what was"
                " measured is used again.")


def _own_windows_table(options: Sequence[_ChosenOption],
                       changes: Sequence[Difference]) -> Table:
    """Each option with its own window."""
    rows: list[tuple[Cell, ...]] = []
    for option, change in zip(options, (None, *changes)):
        outcome = option.outcome(option.initcwnd)
        saved: tuple[Cell, ...] = ("", "", "") if change is None else _saved(change)
        rows.append((option.words, option.users, option.initcwnd, outcome.mean_ms,
                     outcome.p99_ms, *saved, outcome.retransmitted_percent))
    return Table("", (
        Column("with", is_text=True), Column("measured"), Column("IW"),
        Column("mean", "ms", "time to the last byte"), Column("p99", "ms", "time to the last byte"),
        Column("mean", "ms", "saved", signed=True), Column("95 % interval", "ms", "saved", rank=1),
        Column("mean", "%", "saved", signed=True),
        Column("retransmitted", "% of segments", digits=2, rank=2)), tuple(rows))


def _same_windows_table(users: UserSample, options: Sequence[_ChosenOption]) -> Table:
    """Each option under each window, compared with the first option under the same one."""
    base = options[0]
    rows: list[tuple[Cell, ...]] = []
    for window in sorted(users.initcwnd):
        for option in options:
            saved: tuple[Cell, ...] = (("", "", "") if option is base else
                                       _saved(option.saved(base, window, window)))
            outcome = option.outcome(window)
            rows.append((window, option.words, outcome.mean_ms, outcome.p99_ms, *saved))
    return Table("Under the same window", (
        Column("IW", is_filter=True), Column("with", is_text=True, is_filter=True),
        Column("mean", "ms", "time to the last byte"), Column("p99", "ms", "time to the last byte"),
        Column("mean", "ms", "saved", signed=True), Column("95 % interval", "ms", "saved"),
        Column("mean", "%", "saved", signed=True)), tuple(rows))


def _saved(change: Difference) -> tuple[Cell, ...]:
    interval = change.absolute.interval
    return (change.absolute.value, "" if interval is None else Interval(*interval),
            change.percent.value)
