"""--fail-if: judges the conditions by what was measured, and chooses the exit status."""

from __future__ import annotations

from firstflight.base import errors
from firstflight.commands import export
from firstflight.commands.conditions import Source, UndeterminedError
from firstflight.commands.request import Output


def judge(output: Output, source: Source, was_read: bool) -> int:
    """Print whether each condition holds; return the exit status.

    source: gives the numbers that the conditions name. was_read: whether the report, which was
    printed before, was read. Raises UndeterminedError where a condition cannot be judged; by then
    the other conditions are printed.
    """
    lines, is_met, undetermined = [], False, None
    for condition in output.conditions:
        try:
            holds, line = condition.holds(source)
        except UndeterminedError as error:
            undetermined = undetermined or error
            continue
        is_met = is_met or holds
        lines.append(line)

    if lines:
        was_read = export.print_text(output, "\n".join(lines)) and was_read
    if undetermined:
        raise undetermined
    if is_met:
        return errors.CONDITION
    return errors.OK if was_read else errors.UNREAD
