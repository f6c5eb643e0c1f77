"""Schedules as the scenario writes them, and as the server and the verdict read them."""

from __future__ import annotations

from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.runs import scenario_file, schema
from firstflight.study.trace.scenario import Schedule, Write, expand, read_scenario
from firstflight.study.trace.trial import due_times_s
from firstflight.testbed.hosts.server.http import parse_writes

MSS = 1000


@pytest.mark.parametrize("write", [
    Write(0.0, 5), Write(2.4, None, 6, 3.5, 0.02), Write(0.045, 1, None, 2.2, 0.01),
    Write(0.0, 36, None, 10.0, 0.2), Write(1.0, 7, None, 1.0005, 0.0005),
    Write(0.0, 1, None, 0.3, 0.1)])
def test_both_sides_read_a_schedule_alike(write: Write) -> None:
    text = write.text(MSS)
    heard = parse_writes(text)
    assert len(heard) == write.count
    assert sum(size for _, size in heard) == write.count * write.bytes_each(MSS) > 0
    assert [due_ms / 1000 for due_ms, _ in heard] == pytest.approx(due_times_s(text))
    assert heard[-1][0] / 1000 == pytest.approx(write.last_s)


def test_a_trial_knows_when_its_schedule_ends() -> None:
    trials = {trial.id: trial for trial
              in expand(read_scenario(scenario_file.find("handley1999_idle")))}
    trial = trials["periods-cwv-iw1"]
    assert trial.schedule_s == 5.8 and trial.deadline_s > 120
    assert due_times_s(trial.schedule)[-1] == 5.8


def schedule(**tables: Any) -> Schedule:
    return schema.read(Schedule, {"name": "one", **tables}, "here")


BACKWARDS, TOO_MANY = "time goes backwards", "more than 50000 writes"


@pytest.mark.parametrize(("writes", "refused"), [
    # What ends at 0.75 s, as the end itself is no time of it.
    ([{"at_s": 0, "until_s": 1, "every_s": 0.25, "bytes": 5}, {"at_s": 0.75, "bytes": 5}], ""),
    ([{"at_s": 0, "until_s": 1, "every_s": 0.25, "bytes": 5}, {"at_s": 0.74, "bytes": 5}], BACKWARDS),
    ([{"at_s": 1, "bytes": 5}, {"at_s": 1, "bytes": 5}], ""),
    ([{"at_s": 1, "until_s": 1, "every_s": 0.25, "bytes": 5}], BACKWARDS),
    ([{"at_s": 1, "until_s": 1.001, "every_s": 0.25, "bytes": 5}], ""),
    ([{"at_s": 0, "until_s": 50, "every_s": 0.001, "bytes": 5}], ""),
    ([{"at_s": 0, "until_s": 49, "every_s": 0.001, "bytes": 5},
      *[{"at_s": 50, "bytes": 5}] * 1001], TOO_MANY)])
def test_time_goes_on_and_there_is_an_end_of_writes(writes: list[dict[str, float]],
                                                    refused: str) -> None:
    if not refused:
        assert len(schedule(writes=writes).writes) == len(writes)
    else:
        with pytest.raises(UsageError, match=refused):
            schedule(writes=writes)


def test_writes_are_one_path_and_requests_one_each() -> None:
    written = schedule(writes=[{"at_s": 0.5, "segments": 3}, {
        "at_s": 1, "until_s": 2, "every_s": 0.25, "bytes": 70}])
    assert written.paths(MSS) == ("/3280?at=500:3000;1000..2000/250:70",)
    assert (written.size_bytes(MSS), written.thinks_s(7), written.is_about_thinking) == (
        3280, [0.0], False)
    requested = schedule(requests=[{"bytes": 70}, {"bytes": 5, "think_s": 1.5},
                               {"bytes": 9, "think_s": "each"}])
    assert requested.paths(MSS) == ("/70?", "/5?", "/9?")
    assert (requested.size_bytes(MSS), requested.is_about_thinking) == (84, True)
    assert (requested.thinks_s(7), requested.thinks_s(None)) == ([0.0, 1.5, 7], [0.0, 1.5, 0.0])


def test_the_times_of_a_schedule_are_those_of_its_writes() -> None:
    assert due_times_s("") == []
    assert due_times_s("500:3000;1000..2000/250:70;2000..2001/5:1") == [
        0.5, 1.0, 1.25, 1.5, 1.75, 2.0]


@pytest.mark.parametrize(("wrong", "words"), [
    ({}, "either writes or requests"),
    ({"writes": [{"at_s": 0, "bytes": 5}], "requests": [{"bytes": 5}]}, "either writes or"),
    *(({"writes": writes}, "writes has to be a list of tables") for writes in ([5], [], 5)),
    ({"requests": {}}, "list of tables"),
    *(({"writes": [{"at_s": 0, **sizes}]}, "writes 1: has to have either bytes or segments")
      for sizes in ({}, {"bytes": 5, "segments": 1})),
    ({"writes": [{"at_s": 0, "bytes": 5, "until_s": 1}]}, "until_s and every_s go together"),
    ({"writes": [{"at_s": 0, "bytes": 5}, {"at_s": 0, "bytes": 5, "every_s": 1}]},
     "writes 2: until_s and every_s go together")])
def test_what_is_no_schedule(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=f"^here.*{words}"):
        schedule(**wrong)
