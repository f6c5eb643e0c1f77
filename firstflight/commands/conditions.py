"""--fail-if: a condition on what is measured, for CI and for git bisect.

    total_ms(10) > 300                          the mean with an initial window of 10
    total_ms(3) - total_ms(10) < 50             what the larger window saves
    retransmissions > 0                         the mean of all trials

A column of docs/REFERENCE.md stands for its mean over the verified trials, in the column's unit; in
parentheses the initial window, in segments, of the trials that are meant. Such means, numbers, +,
-, * and / stand on each side of one comparison. It is read before anything is measured; nothing
of it is run as Python. A condition that cannot be computed ends with status 3, as a verdict that
failed does.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from firstflight.base.errors import VERDICT, FirstFlightError, UsageError
from firstflight.base.words import nearest
from firstflight.runs.kinds import Study
from firstflight.runs.results.records import Record, columns_of, hints_of, trial_class, value_of

MOST_CHARACTERS = 200
_COMPARED: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt, ast.LtE: operator.le}
_COMPUTED: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv}
_NUMBERS = (int, float, int | None, float | None)


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

    def check(self, study: Study) -> None:
        """Refuse a condition on what the study does not measure. Raises UsageError."""
        hints = {**hints_of(study.kind.record), **hints_of(trial_class(study.kind.record))}
        known = [name for name in columns_of(study.kind.record) if hints[name] in _NUMBERS]
        windows = sorted({trial.initcwnd for trial in study.trials if hasattr(trial, "initcwnd")})
        for column, window in _means((self.left, self.right)):
            if column not in known:
                raise UsageError(f"--fail-if {self.text!r}: {study.head.name} has no column of"
                                 f" numbers {column!r}{nearest(column, known)}")
            if window is not None and window not in windows:
                raise UsageError(f"--fail-if {self.text!r}: {study.head.name} measures no initial"
                                 f" window of {window}, but"
                                 f" {', '.join(map(str, windows)) or 'one for each connection'}")

    def holds(self, records: Sequence[Record]) -> tuple[bool, str]:
        """Whether it holds, and both sides in a line. Raises UndeterminedError without a value."""
        left, right = (self._value(side, records) for side in (self.left, self.right))
        for side, value in ((self.left, left), (self.right, right)):
            if not math.isfinite(value):
                raise UndeterminedError(f"--fail-if {self.text!r}: {ast.unparse(side)} is not a"
                                        " number that can be compared")
        holds = _COMPARED[type(self.comparison)](left, right)
        return holds, (f"--fail-if {self.text}: {'holds' if holds else 'does not hold'}"
                       f" ({left:.6g} against {right:.6g})")

    def _value(self, expression: ast.expr, records: Sequence[Record]) -> float:
        if isinstance(expression, ast.Constant):
            return float(expression.value)
        if isinstance(expression, ast.UnaryOp):
            return -self._value(expression.operand, records)
        if isinstance(expression, ast.BinOp):
            left, right = (self._value(side, records)
                           for side in (expression.left, expression.right))
            try:
                return _COMPUTED[type(expression.op)](left, right)
            except ZeroDivisionError:
                raise UndeterminedError(f"--fail-if {self.text!r}: divides by a mean of 0"
                                        ) from None
        ((column, window),) = _means((expression,))
        values = [value for record in records if record.counts
                  and (window is None or value_of(record, "initcwnd") == window)
                  and (value := value_of(record, column)) is not None]
        if not values:
            raise UndeterminedError(f"--fail-if {self.text!r}: no verified trial has a value of"
                                    f" {ast.unparse(expression)}")
        return fmean(values)


def read(text: str) -> Condition:
    """A condition as it was typed. Raises ValueError with what is wrong."""
    text = text.strip()
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"a condition has at most {MOST_CHARACTERS} characters")
    if not text.isprintable():  # it stands in lines that go to a terminal
        raise ValueError(f"{text!r} has characters that cannot be printed, or several lines")
    try:
        with warnings.catch_warnings():  # of Python's compiler, about words that are none of ours
            warnings.simplefilter("ignore")
            parsed = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        parsed = None
    if (not isinstance(parsed, ast.Compare) or len(parsed.ops) != 1
            or type(parsed.ops[0]) not in _COMPARED):
        raise ValueError(f"{text!r} is not a condition such as 'total_ms(10) > 300': two sides, and"
                         " one of > >= < <= between them")
    condition = Condition(text, parsed.left, parsed.ops[0], parsed.comparators[0])
    if not list(_means((condition.left, condition.right))):
        raise ValueError(f"{text!r} names no column of trials.csv")
    return condition


def _means(expressions: Sequence[ast.expr]) -> Iterator[tuple[str, int | None]]:
    """The means that expressions name: a column, and the window or None. Raises ValueError."""
    for each in expressions:
        if isinstance(each, ast.BinOp) and type(each.op) in _COMPUTED:
            yield from _means((each.left, each.right))
        elif isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.USub):
            yield from _means((each.operand,))
        elif isinstance(each, ast.Name):
            yield each.id, None
        elif (isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
              and len(each.args) == 1 and not each.keywords
              and isinstance(each.args[0], ast.Constant) and type(each.args[0].value) is int):
            yield each.func.id, each.args[0].value
        elif not (isinstance(each, ast.Constant) and type(each.value) in (int, float)
                  and math.isfinite(each.value)):
            raise ValueError(f"{ast.unparse(each)!r} is neither a number nor a column such as"
                             " total_ms or total_ms(10)")
