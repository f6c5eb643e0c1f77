"""What is said of steps in words: one word, by the trials that were measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.findings.claims import DIRECTION, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED
from firstflight.runs import scenario_file
from firstflight.runs.kinds import RunData, Study
from firstflight.runs.results.records import FAIL
from firstflight.study.fetches.figures import steps
from firstflight.study.fetches.scenario.scenario import Claim
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.record import Record
from tests.golden import stored
from tests.unit.features.steps.test_steps import made

CLIFFS = KIND.study(scenario_file.find("chou2026_cliffs"))
GOOD = stored.load("https").judge()


def records(of: Study) -> list[Record]:
    """As the server sends: as much as the window allows, and the rest a round trip later."""
    found = []
    for trial in of.trials:
        segments = 1 + trial.chain_bytes // trial.mss
        found.append(replace(GOOD, trial=trial, flight_segments=segments,
                             handshake_round_trips=1 + (segments > trial.initcwnd)))
    return found


CLAIM = Claim("rounds", "s", more_where=("flight_segments", "initcwnd"))


def changed(some: list[Record], chain_bytes: int, **changes: Any) -> list[Record]:
    """As if the trial with this chain under ten segments had measured otherwise."""
    place = next(place for place, record in enumerate(some)
                 if (record.trial.initcwnd, record.trial.chain_bytes) == (10, chain_bytes))
    return [*some[:place], replace(some[place], **changes), *some[place + 1:]]


def test_what_is_said_is_tested_on_every_trial(tmp_path: Path) -> None:
    some = records(CLIFFS)
    statement = steps.tested(CLAIM, "handshake_round_trips", some)
    assert statement.word == REPRODUCED and statement.found == (
        "in 16 of 45 trials the number of segments of a server's handshake is larger than an initial"
        " window: 16 of these have more round trips than 1, and 0 of the others.")
    report = CLIFFS.report(RunData(tmp_path, {"virtual_time": True}, some))
    (told,) = (each for finding in report.findings if finding.name == "rounds"
               for each in finding.statements)
    assert told.found.startswith(statement.found) and told.word == DIRECTION  # its abstract alone was read


@pytest.mark.parametrize(("chain_bytes", "changes", "word", "words"), [
    (30000, {"handshake_round_trips": 1}, DIRECTION, "15 of these"),
    (2000, {"handshake_round_trips": 2}, DIRECTION, "1 of the others"),
    (2000, {"flight_segments": 11}, DIRECTION, "in 17 of 45"),
    (2000, {"verdict": FAIL}, NOT_MEASURED, "1 of 45 trials do not count"),
    (2000, {"flight_segments": None}, NOT_MEASURED, "1 of 45 trials do not count")])
def test_a_tampered_trial_changes_the_word(chain_bytes: int, changes: Any, word: str,
                                           words: str) -> None:
    statement = steps.tested(CLAIM, "handshake_round_trips",
                             changed(records(CLIFFS), chain_bytes, **changes))
    assert statement.word == word and words in statement.found


@pytest.mark.parametrize(("flights", "word", "words"), [
    ((9, 10), REPRODUCED, "in 2 of 2 trials"), ((9, 11), NOT_REPRODUCED, "in 1 of 2 trials"),
    ((9, None), NOT_MEASURED, "1 of 2 trials do not count")])
def test_no_trial_may_pass_a_column_of_its_own(flights: tuple[int | None, ...], word: str,
                                               words: str) -> None:
    claim = Claim("flights", "s", at_most="initcwnd")
    some = [replace(GOOD, trial=replace(GOOD.trial, initcwnd=10), flight_segments=flight)
            for flight in flights]
    statement = steps.tested(claim, "flight_segments", some)
    assert statement.word == word and words in statement.found


def test_more_where_nothing_is_more_cannot_be_told() -> None:
    like = replace(GOOD, trial=replace(GOOD.trial, initcwnd=10))
    backwards = [replace(like, flight_segments=flight, handshake_round_trips=trips)
                 for flight, trips in ((1, 2), (90, 1))]
    assert steps.tested(CLAIM, "handshake_round_trips", backwards).word == NOT_REPRODUCED
    alone = steps.tested(CLAIM, "handshake_round_trips", [replace(like, flight_segments=90)])
    assert alone.word == NOT_MEASURED and alone.found.startswith("undetermined: ")
    assert alone.found.endswith("is larger than an initial window in 1 of 1 trials.")


@pytest.mark.parametrize(("lines", "words"), [
    ('figure = "steps"', "has to have one of larger, most, equal, highest_percent, at_most and"),
    ('figure = "steps"\nat_most = "total_ms"\nequal = ["a", "b"]', "has to have one of"),
    ('figure = "steps"\nat_most = "nothing"', "unknown 'nothing'"),
    ('figure = "steps"\nmore_where = ["total_ms"]', "has to be two columns"),
    ('figure = "steps"\nlarger = ["small", "large"]', "'steps' is of kind 'steps'")])
def test_a_claim_that_makes_no_sense_is_refused(tmp_path: Path, lines: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        made(tmp_path, ("[[axis]]", f'[[claim]]\nsays = "s"\n{lines}\n[[axis]]'))
