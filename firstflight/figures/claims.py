"""Claims beside what was measured: what is common to all workloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from firstflight.figures.compare import Expected
from firstflight.findings.claims import DIRECTION, REBUILT, REPRODUCED
from firstflight.findings.findings import Statement
from firstflight.scenario.claims import ALIKE, LESS, MORE, Claim
from firstflight.scenario.figure_kinds import Figure

C = TypeVar("C", bound=Claim)
SIGNS = {LESS: 1, MORE: -1, ALIKE: 0}  # of a base less an experiment


def claims_on(figure: Figure, claims: Sequence[C]) -> tuple[C, ...]:
    """The claims on a figure."""
    return tuple(claim for claim in claims if claim.figure == figure.name)


def expected_of(claim: Claim, in_points: bool = False) -> Expected:
    """What a claim expects of the second of two. in_points: its metric is a percentage."""
    sign = SIGNS[claim.expects]
    if claim.expects == ALIKE and claim.within is not None:
        return Expected(sign, within=claim.within, is_absolute=True)
    if claim.expects == ALIKE or claim.published is None:
        return Expected(sign)

    within = claim.within or 0.0
    if not claim.published:  # no difference was published
        return Expected(0, within=within, is_absolute=in_points)
    return Expected(sign, claim.published, within, is_absolute=in_points)


def as_read(claim: Claim, statement: Statement) -> Statement:
    """The statement on a claim, with what the file says of the claim itself.

    "reproduced" becomes "rebuilt" where the file puts the number in, and "direction" if only an
    abstract was read.
    """
    outcome = statement.outcome
    measured = " ".join(filter(None, (statement.measured, claim.why)))
    if claim.rebuilt and outcome == REPRODUCED:
        outcome = REBUILT
    if claim.abstract_only and outcome == REPRODUCED:
        outcome = DIRECTION
        measured = f"{measured} Only the abstract of the source was read."
    return replace(statement, outcome=outcome, measured=measured)
