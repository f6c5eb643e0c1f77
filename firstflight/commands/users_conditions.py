"""Conditions of --fail-if on --users: the recommended window, and means over users.

    recommended_iw > 10                     another window than Linux's holds for all users
    recommended_iw(cc=bbr) > 10             the same for BBR, where --cc has several values
    total_ms(10) - total_ms(32) < 20        what the larger window saves, in the mean of all users
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstflight.base.errors import UsageError
from firstflight.base.stats import weighted_mean
from firstflight.commands.conditions import Condition, Mean, UndeterminedError, column_of
from firstflight.findings.quantities import FLAGS
from firstflight.runs.kinds import AnyStudy
from firstflight.runs.results.records import value_of

if TYPE_CHECKING:
    from firstflight.workloads.fetch.record.record import Record
    from firstflight.workloads.fetch.scenario.users import UserSample

RECOMMENDED = "recommended_iw"


def check_conditions(conditions: Sequence[Condition], study: AnyStudy) -> None:
    """Refuse conditions that name what is not measured of these users. Raises UsageError."""
    several = {name for option in study.scenario.users.options for name in option}
    for condition in conditions:
        condition.check(study, [RECOMMENDED])

        for mean in condition.means:
            if mean.column != RECOMMENDED:
                continue

            given = {column_of(flag) for flag, _ in mean.where}
            if useless := given - several:
                flag = FLAGS[useless.pop()].flag.lstrip("-")
                raise UsageError(f"--fail-if {condition.text!r}: {RECOMMENDED} is selected by what"
                                 f" has several values, not by {flag}")
            if missing := several - given:
                flag = FLAGS[min(missing)].flag
                raise UsageError(f"--fail-if {condition.text!r}: {flag} has several values: name"
                                 f" one, such as {RECOMMENDED}({flag.lstrip('-')}=bbr)")


@dataclass(frozen=True)
class OfUsers:
    """The recommended window, and means of columns over the users, by their weights."""

    users: UserSample
    records: Sequence[Record]

    def ends(self, mean: Mean) -> tuple[float, float]:
        """The least and the largest value that a number may have; here both are the number.

        mean: the number as a condition names it. Raises UndeterminedError where it is not known.
        """
        from firstflight.study.users import varied
        if mean.column != RECOMMENDED:
            from firstflight.workloads.fetch.scenario.users import PART
            records = [record for record in self.records if record.trial.part == PART
                       and record.counts and mean.covers(record.trial)]
            value = weighted_mean_of(records, mean.column)
            return value, value
        records = [record for record in self.records if mean.covers(record.trial)]
        choices = varied.choices(self.users, records)
        initcwnd = choices[varied.ALL].initcwnd if choices else None
        if initcwnd is None:
            raise UndeterminedError("no window holds for all users with all that the file does not"
                                    " say")
        return initcwnd, initcwnd


def weighted_mean_of(records: Sequence[Record], column: str) -> float:
    """The mean of a column by the weight of each user. Raises UndeterminedError without values."""
    known = [(value, record.trial.weight) for record in records
             if (value := value_of(record, column)) is not None]
    if not known:
        raise UndeterminedError("no verified trial has a value of it")
    return weighted_mean(*zip(*known))
