"""Makes the record of a trial with its verdict. The trial was measured, failed, or was skipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from firstflight.base.errors import FirstFlightError
from firstflight.runs.results.records import SKIPPED, Record
from firstflight.testbed.messages import Observation, started_at

R = TypeVar("R", bound=Record)
NAMED = 3  # examples that a verdict's reason has at most
_MOST_CHARACTERS = 100  # of an example


def examples(found: Sequence[str]) -> str:
    """The first few of what was found, in brackets; "" where nothing was."""
    if not found:
        return ""
    shown = [words[:_MOST_CHARACTERS] for words in found[:NAMED]]
    if len(found) > NAMED:
        shown.append("…")
    return f" ({', '.join(shown)})"


def is_whole(record: Record) -> bool:
    """Whether all of a trial arrived, so that its checks judged it."""
    return record.ok and record.verdict != SKIPPED


def skipped_record(kind: type[R], trial: Any, observation: Observation) -> R | None:
    """The record of a trial that the machine cannot measure; None if it was measured."""
    if not observation.get("skipped"):
        return None
    return kind(trial, True, verdict=SKIPPED, verdict_reason=observation["skipped"],
                measured_at=started_at(observation))


def judged_record(kind: type[R], trial: Any, observation: Observation, failure: str,
                  judge: Callable[[], R]) -> R:
    """The record of a trial, whether it was measured, failed or was skipped.

    kind: the class of the record. failure: why the transfer failed; "" if it did not. judge:
    returns the record with its verdict; if it raises FirstFlightError, the trial has failed for
    that reason.
    """
    skipped = skipped_record(kind, trial, observation)
    if skipped is not None:
        return skipped

    measured_at = started_at(observation)
    try:
        if not failure:
            return replace(judge(), measured_at=measured_at)
    except FirstFlightError as fault:
        failure = str(fault)
    return kind(trial, False, failure, measured_at=measured_at)
