"""What is said of steps in words: one word, by the trials that were measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from base.errors import UsageError
from findings.claims import DIRECTION, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED
from findings.findings import Statement
from runs import scenario_file
from runs.kinds import RunData, Study
from runs.results.records import FAIL
from study.fetches.figures import steps
from study.fetches.scenario.scenario import Claim
from study.fetches.study import KIND
from study.fetches.verify.record import Record
from tests.golden import stored
from tests.unit.features.steps.test_steps import made

QUIC = KIND.study(scenario_file.find("quic_amplification"))
GOOD = stored.load("quic").judge()
LIMIT = {"x25519": 3600, "x25519mlkem768": 7200}


def records(of: Study) -> list[Record]:
    """As nginx answers: as much as it may at once, and the rest a round trip later."""
    found = []
    for trial in of.trials:
        flight, limit = trial.chain_bytes + 600, LIMIT[trial.key_share]
        found.append(replace(GOOD, trial=trial, flight_bytes=flight, allowed_bytes=limit,
                             unvalidated_bytes=min(flight, limit), appconnect_ms=100.0,
                             handshake_round_trips=1 + (flight > limit)))
    return found


def said(some: list[Record], folder: Path) -> dict[str, Statement]:
    report = QUIC.report(RunData(folder, {"virtual_time": True}, some))
    return {finding.name: each for finding in report.findings for each in finding.statements}


def changed(some: list[Record], chain_bytes: int, **changes: Any) -> list[Record]:
    """As if the trial with X25519 over QUIC of this chain had measured otherwise."""
    place = next(place for place, record in enumerate(some) if (
        record.trial.http, record.trial.key_share, record.trial.chain_bytes)
        == ("3", "x25519", chain_bytes))
    return [*some[:place], replace(some[place], **changes), *some[place + 1:]]


def test_what_is_said_of_quic_is_tested_on_every_trial(tmp_path: Path) -> None:
    some = records(QUIC)
    told = said(some, tmp_path)
    assert {name: each.word for name, each in told.items()} == {"at_once": REPRODUCED,
                                                                "rounds": REPRODUCED}
    assert told["rounds"].found == (
        "in 17 of 36 trials what a server's handshake sends is larger than what it may send at"
        " once: 17 of these have more round trips than 1, and 0 of the others.")
    assert told["at_once"].found.startswith("in 36 of 36 trials")


@pytest.mark.parametrize(("chain_bytes", "changes", "name", "word", "words"), [
    (8000, {"unvalidated_bytes": 3601}, "at_once", NOT_REPRODUCED, "in 35 of 36 trials"),
    (8000, {"allowed_bytes": 3599}, "at_once", NOT_REPRODUCED, "in 35 of 36 trials"),
    (8000, {"handshake_round_trips": 1}, "rounds", DIRECTION, "16 of these"),
    (2000, {"handshake_round_trips": 2}, "rounds", DIRECTION, "1 of the others"),
    (2000, {"flight_bytes": 3601}, "rounds", DIRECTION, "in 18 of 36"),
    (2000, {"verdict": FAIL}, "rounds", NOT_MEASURED, "1 of 36 trials do not count"),
    (2000, {"flight_bytes": None}, "rounds", NOT_MEASURED, "1 of 36 trials do not count")])
def test_a_tampered_trial_changes_the_word(tmp_path: Path, chain_bytes: int, changes: Any,
                                           name: str, word: str, words: str) -> None:
    told = said(changed(records(QUIC), chain_bytes, **changes), tmp_path)
    assert told[name].word == word and words in told[name].found
    (other,) = told.keys() - {name}
    assert told[other].word in (REPRODUCED, NOT_MEASURED)


def test_a_capture_that_breaks_the_limit_is_no_trial_that_counts() -> None:
    claim = Claim("at_once", "s", at_most="allowed_bytes")
    assert steps.tested(claim, "unvalidated_bytes", [GOOD]).word == REPRODUCED
    small = stored.load("quic").requested(chain_bytes=3000).judge()
    assert steps.tested(claim, "unvalidated_bytes", [GOOD, small]).word == NOT_MEASURED


def test_more_where_nothing_is_more_cannot_be_told() -> None:
    claim = Claim("rounds", "s", more_where=("flight_bytes", "allowed_bytes"))
    backwards = [replace(GOOD, flight_bytes=flight, handshake_round_trips=trips)
                 for flight, trips in ((100, 2), (9000, 1))]
    assert steps.tested(claim, "handshake_round_trips", backwards).word == NOT_REPRODUCED
    alone = steps.tested(claim, "handshake_round_trips", [GOOD])
    assert alone.word == NOT_MEASURED and alone.found.startswith("undetermined: ")
    assert alone.found.endswith("is larger than what it may send at once in 1 of 1 trials.")


@pytest.mark.parametrize(("lines", "words"), [
    ('figure = "steps"', "has to have one of larger, equal, highest_percent, at_most and"),
    ('figure = "steps"\nat_most = "total_ms"\nequal = ["a", "b"]', "has to have one of"),
    ('figure = "steps"\nat_most = "nothing"', "unknown 'nothing'"),
    ('figure = "steps"\nmore_where = ["total_ms"]', "has to be two columns"),
    ('figure = "steps"\nlarger = ["small", "large"]', "'steps' is of kind 'steps'")])
def test_a_claim_that_makes_no_sense_is_refused(tmp_path: Path, lines: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        made(tmp_path, ("[[axis]]", f'[[claim]]\nsays = "s"\n{lines}\n[[axis]]'))
