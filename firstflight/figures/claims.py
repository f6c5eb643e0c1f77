"""Tests claims against what was measured: what all workloads share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from firstflight.figures.judging import Expected
from firstflight.findings.claims import DIRECTION, REBUILT, REPRODUCED
from firstflight.findings.findings import Statement
from firstflight.scenario.claims import ALIKE, LESS, MORE, Claim
from firstflight.scenario.figure_kinds import Figure

C = TypeVar("C", bound=Claim)
SIGNS = {LESS: 1, MORE: -1, ALIKE: 0}  # the sign of base − experiment that a claim expects


def claims_on(figure: Figure, claims: Sequence[C]) -> tuple[C, ...]:
    """The claims on a figure."""
    return tuple(claim for claim in claims if claim.figure == figure.name)


def expected_of(claim: Claim, in_points: bool = False) -> Expected:
    """What a claim expects of its experiment, compared with its base.

    in_points: whether the claim's metric is a percentage, whose differences are in points.
    """
    sign = SIGNS[claim.expects]
    if claim.expects == ALIKE and claim.within is not None:
        return Expected(sign, within=claim.within, is_absolute=True)
    if claim.expects == ALIKE or claim.published is None:
        return Expected(sign)

    within = claim.within or 0.0
    if claim.published == 0:  # the source reports that nothing differs
        return Expected(0, within=within, is_absolute=in_points)
    return Expected(sign, claim.published, within, is_absolute=in_points)


def qualify(claim: Claim, statement: Statement) -> Statement:
    """The statement on a claim, with the reservations that the scenario file states.

    "reproduced" becomes "rebuilt" if the scenario itself puts the number in, and "direction" if
    only the source's abstract was read. The file's explanation (`why`) follows the measured values.
    """
    outcome = statement.outcome
    measured = " ".join(filter(None, (statement.measured, claim.why)))
    if claim.rebuilt and outcome == REPRODUCED:
        outcome = REBUILT
    if claim.abstract_only and outcome == REPRODUCED:
        outcome = DIRECTION
        measured = f"{measured} Only the abstract of the source was read."
    return replace(statement, outcome=outcome, measured=measured)
