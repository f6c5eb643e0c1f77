"""--fail-if: a condition on what is measured, for CI and for git bisect.

    total_ms(10) > 300                          the mean with an initial window of 10
    total_ms(3) - total_ms(10) < 50             what the larger window saves
    retransmissions > 0                         the mean of all trials
    total_ms(10, rtt=200, cc=bbr) > 300         of the trials with these values of --rtt and --cc

A column of docs/REFERENCE.md stands for its mean over the verified trials, in the column's unit.
Parentheses choose the trials: by their initial window in segments, and by values of flags. A value
is typed as behind its flag, in quotes if it is neither a word nor a number (bw='10M'). Such means,
numbers, +, -, * and / stand on each side of one comparison.

A condition is read before anything is measured, and no part of it is run as Python. One that cannot
be computed ends with status 3, as a verdict that failed does.

Commands that answer with other numbers have names for these: recommended_iw of --users, iw of
--probe. Where only a bound of a number is known, a condition is decided if both ends agree.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from firstflight.base.errors import VERDICT, FirstFlightError, UsageError
from firstflight.base.words import nearest
from firstflight.findings.quantities import FLAGS
from firstflight.runs.kinds import AnyStudy
from firstflight.runs.results.records import Record, columns_of, trial_class, value_of
from firstflight.runs.schema import hints_of

MOST_CHARACTERS = 200
MOST_VALUES = 10  # that a message names
_COMPARED: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt, ast.LtE: operator.le}
_COMPUTED: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv}
_NUMBERS = (int, float, int | None, float | None)  # types of the columns that have a mean


class Mean(NamedTuple):
    """The mean of a column over some trials."""

    column: str
    # The initial window of these trials; None for any.
    initcwnd: int | None = None
    # Flags and the values that these trials have of them, as they are typed.
    where: tuple[tuple[str, str], ...] = ()

    def covers(self, trial: object) -> bool:
        """Whether a trial belongs to it."""
        if self.initcwnd is not None and _window_of(trial) != self.initcwnd:
            return False
        return all(getattr(trial, column_of(flag), None) == value_as_typed(flag, typed)
                   for flag, typed in self.where)


def _window_of(trial: object) -> int | None:
    """The initial window of a trial; None for a mix of several."""
    return None if getattr(trial, "mix", ()) else getattr(trial, "initcwnd", None)


class Source(Protocol):
    """Where a condition's numbers come from."""

    def ends(self, mean: Mean) -> tuple[float, float]:
        """The least and the largest value that it may have. Raises UndeterminedError."""


@dataclass(frozen=True)
class OfRecords:
    """Means over the verified trials of a run."""

    records: Sequence[Record]

    def ends(self, mean: Mean) -> tuple[float, float]:
        values = [value for record in self.records if record.counts and mean.covers(record.trial)
                  and (value := value_of(record, mean.column)) is not None]
        if not values:
            raise UndeterminedError("no verified trial has a value of it")
        average = math.fsum(values) / len(values)
        return average, average


class UndeterminedError(FirstFlightError):
    """A condition without an answer. It must not be read as one that does not hold."""

    exit_status = VERDICT


@dataclass(frozen=True)
class Condition:
    """One condition; text: as it was typed."""

    text: str
    left: ast.expr
    comparison: ast.cmpop
    right: ast.expr

    @property
    def means(self) -> list[Mean]:
        """The numbers that it names."""
        return list(_means((self.left, self.right)))

    def check(self, study: AnyStudy, named: Collection[str] = ()) -> None:
        """Refuse a condition on what the study does not measure. Raises UsageError.

        named: names of numbers that are no columns, and that no window selects.
        """
        hints = {**hints_of(study.kind.record), **hints_of(trial_class(study.kind.record))}
        columns = [name for name in columns_of(study.kind.record) if hints[name] in _NUMBERS]
        windows = sorted({window for window in map(_window_of, study.trials)
                          if window is not None})
        self._check_differences(study.kind.record.DIFFERENCES)

        for mean in self.means:
            column, window, where = mean
            if column not in (*columns, *named):
                raise UsageError(f"--fail-if {self.text!r}: {study.head.name} has no column of"
                                 f" numbers {column!r}{nearest(column, (*named, *columns))}")
            if window is not None and column in named:
                raise UsageError(f"--fail-if {self.text!r}: {column} is a number for all windows:"
                                 f" write {column} without ({window})")

            if window is not None and window not in windows:
                raise UsageError(f"--fail-if {self.text!r}: {study.head.name} measures no initial"
                                 f" window of {window}, but"
                                 f" {', '.join(map(str, windows)) or 'mixes of several'}")

            for flag, typed in where:
                self._check_value(study, flag, typed)
            if where and not any(map(mean.covers, study.trials)):
                raise UsageError(f"--fail-if {self.text!r}: no trial of {study.head.name} has all"
                                 " of these values")

    def _check_differences(self, columns: Collection[str]) -> None:
        """Refuse one of these columns in anything but a difference of two windows.

        Raises UsageError.
        """
        # "a(3) < a(10)" compares two windows, too: it is "a(3) - a(10) < 0".
        moved_to_one_side = ast.BinOp(self.left, ast.Sub(), self.right)
        for mean in _outside_differences(moved_to_one_side):
            if mean.column in columns:
                raise UsageError(f"--fail-if {self.text!r}: {mean.column} is known only to a frame"
                                 " of the browser, so a condition has to compare two windows: write"
                                 f" {mean.column}(3) - {mean.column}(10) < 50")

    def check_names(self, named: Collection[str], what: str) -> None:
        """Refuse a condition on other numbers than these, without selectors. Raises UsageError."""
        for mean in self.means:
            if mean.column not in named:
                raise UsageError(f"--fail-if {self.text!r}: {what} has no number {mean.column!r}"
                                 f"{nearest(mean.column, named)}: it has {', '.join(named)}")
            if mean.initcwnd is not None or mean.where:
                raise UsageError(f"--fail-if {self.text!r}: {what} has one {mean.column}: write it"
                                 " without parentheses")

    def _check_value(self, study: AnyStudy, flag: str, typed: str) -> None:
        """Refuse a flag's value that no trial has. Raises UsageError."""
        name = column_of(flag)
        values = {getattr(trial, name) for trial in study.trials if hasattr(trial, name)}
        if not values:
            raise UsageError(f"--fail-if {self.text!r}: {study.head.name} has no {flag}")
        if value_as_typed(flag, typed) not in values:
            listed = ", ".join(sorted(map(str, values))[:MOST_VALUES])
            raise UsageError(f"--fail-if {self.text!r}: {study.head.name} measures no {flag} of"
                             f" {typed}, but {listed}")

    def holds(self, source: Source) -> tuple[bool, str]:
        """Whether it holds, and both sides in a line. Raises UndeterminedError without a value."""
        sides = self._sides(source, 0)
        holds = _COMPARED[type(self.comparison)](*sides)
        if _COMPARED[type(self.comparison)](*self._sides(source, 1)) != holds:
            raise UndeterminedError(f"--fail-if {self.text!r}: only a bound is known, which does"
                                    " not decide it")
        left, right = sides
        return holds, (f"--fail-if {self.text}: {'holds' if holds else 'does not hold'}"
                       f" ({left:.6g} against {right:.6g})")

    def _sides(self, source: Source, end: int) -> tuple[float, float]:
        """Both sides; end: 0 for the least value of each number, 1 for the largest."""
        left, right = (self._value(side, source, end) for side in (self.left, self.right))
        for side, value in ((self.left, left), (self.right, right)):
            if not math.isfinite(value):
                raise UndeterminedError(f"--fail-if {self.text!r}: {ast.unparse(side)} is not a"
                                        " number that can be compared")
        return left, right

    def _value(self, expression: ast.expr, source: Source, end: int) -> float:
        if isinstance(expression, ast.Constant):
            return float(expression.value)
        if isinstance(expression, ast.UnaryOp):
            return -self._value(expression.operand, source, end)
        if isinstance(expression, ast.BinOp):
            left, right = (self._value(side, source, end)
                           for side in (expression.left, expression.right))

            try:
                return _COMPUTED[type(expression.op)](left, right)
            except ZeroDivisionError:
                raise UndeterminedError(f"--fail-if {self.text!r}: divides by a mean of 0"
                                        ) from None

        (mean,) = _means((expression,))
        try:
            return source.ends(mean)[end]
        except UndeterminedError as error:
            raise UndeterminedError(f"--fail-if {self.text!r}: {ast.unparse(expression)}: {error}"
                                    ) from None


def read(text: str) -> Condition:
    """A condition as it was typed. Raises ValueError with what is wrong."""
    text = text.strip()
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"a condition has at most {MOST_CHARACTERS} characters")
    if not text.isprintable():  # it stands in lines that go to a terminal
        raise ValueError(f"{text!r} has characters that cannot be printed, or several lines")

    try:
        # Python's compiler warns of what looks odd in a program, which this is not.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        parsed = None

    if (not isinstance(parsed, ast.Compare) or len(parsed.ops) != 1
            or type(parsed.ops[0]) not in _COMPARED):
        raise ValueError(f"{text!r} is not a condition such as 'total_ms(10) > 300': two sides, and"
                         " one of > >= < <= between them")

    condition = Condition(text, parsed.left, parsed.ops[0], parsed.comparators[0])
    if not condition.means:
        raise ValueError(f"{text!r} names no column of trials.csv")
    for mean in condition.means:
        for flag, typed in mean.where:
            value_as_typed(flag, typed)
    return condition


def column_of(flag: str) -> str:
    """The trial's field that a flag, without its dashes, sets. Raises ValueError."""
    known = {quantity.flag.lstrip("-").replace("-", "_"): name for name, quantity in FLAGS.items()}
    if flag not in known:
        raise ValueError(f"{flag!r} is no flag of a network, TCP or a response"
                         f"{nearest(flag, known)}: write rtt=200 for --rtt 200")
    # A length in ms or BDP becomes packets, by the link.
    return "queue_packets" if flag == "queue" else known[flag]


def value_as_typed(flag: str, typed: str) -> object:
    """The value of a flag as the command line reads it. Raises ValueError."""
    name = column_of(flag)
    if name == "queue_packets":
        if not typed.isdecimal():
            raise ValueError(f"queue={typed} is not a number of packets, as trials.csv has it")
        return int(typed)
    values: list[object] = FLAGS[name].listed(typed)
    if len(values) != 1:
        raise ValueError(f"{flag}={typed} is not one value")
    return values[0]


def _means(expressions: Sequence[ast.expr]) -> Iterator[Mean]:
    """The means that expressions name. Raises ValueError."""
    for expression in expressions:
        if isinstance(expression, ast.BinOp) and type(expression.op) in _COMPUTED:
            yield from _means((expression.left, expression.right))
        elif isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.USub):
            yield from _means((expression.operand,))
        elif isinstance(expression, ast.Name):
            yield Mean(expression.id)
        elif isinstance(expression, ast.Call) and (mean := _selected_mean(expression)):
            yield mean
        elif not _is_number(expression):
            raise ValueError(f"{ast.unparse(expression)!r} is neither a number nor a column such as"
                             " total_ms or total_ms(10)")


def _selected_mean(call: ast.Call) -> Mean | None:
    """The mean that total_ms(10, rtt=200) names; None where a call has another form."""
    if not isinstance(call.func, ast.Name) or len(call.args) > 1:
        return None
    if not call.args and not call.keywords:
        return None

    window = None
    for argument in call.args:
        if not isinstance(argument, ast.Constant) or type(argument.value) is not int:
            return None
        window = argument.value
    # total_ms(**x) has no name there: ** is then refused, as a flag that nobody knows.
    where = tuple((keyword.arg or "**", _typed(keyword.value)) for keyword in call.keywords)
    return Mean(call.func.id, window, where)


def _is_number(expression: ast.expr) -> bool:
    """Whether an expression is a finite number as it is written."""
    return (isinstance(expression, ast.Constant) and type(expression.value) in (int, float)
            and math.isfinite(expression.value))


def _outside_differences(expression: ast.expr) -> Iterator[Mean]:
    """The means in an expression that stand outside every difference of two windows."""
    if isinstance(expression, ast.UnaryOp):
        yield from _outside_differences(expression.operand)
    elif not isinstance(expression, ast.BinOp):
        yield from _means((expression,))
    elif not _is_window_difference(expression):
        yield from _outside_differences(expression.left)
        yield from _outside_differences(expression.right)


def _is_window_difference(expression: ast.BinOp) -> bool:
    """Whether an expression is as total_ms(3) - total_ms(10): one mean, under two windows."""
    sides = expression.left, expression.right
    if not isinstance(expression.op, ast.Sub) or not all(
            isinstance(side, (ast.Name, ast.Call)) for side in sides):
        return False
    first, second = _means(sides)
    if first.initcwnd is None or second.initcwnd is None:
        return False
    return first._replace(initcwnd=None) == second._replace(initcwnd=None)


def _typed(value: ast.expr) -> str:
    """A selector's value as on the command line: a number, a word, or what is in quotes."""
    if isinstance(value, ast.Constant) and type(value.value) in (int, float, str):
        return str(value.value)
    return ast.unparse(value)
