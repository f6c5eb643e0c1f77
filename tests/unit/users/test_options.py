"""Options of the operator, such as congestion controls: the window and the saving of each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from firstflight.findings.findings import Answer, Finding
from firstflight.runs.scenario_file import parse
from firstflight.study.fetches import KIND
from firstflight.study.users.findings import users_findings
from firstflight.study.users.sample import scenario
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.requested_users import Requested
from firstflight.workloads.fetch.trial import Trial
from tests.unit.fetches.small import FEW_USERS
from tests.unit.users.test_sample import PATH, read_back, trials_of, users_of

ROWS = 60


def findings_of(round_trips: Callable[[Trial], float], unknown: str = "", lost: int = 0
                ) -> tuple[Answer, list[Finding]]:
    """The answer and all findings on 60 users with CUBIC and with BBR.

    round_trips: of a trial. unknown: a line of the file. lost: how many records do not count.
    """
    columns = {"group": [0] * ROWS, "times": [1] * ROWS,
               "rtt_ms": [20 + row for row in range(ROWS)],
               "bandwidth_kbps": [9000] * ROWS, "response_bytes": [60000] * ROWS}
    head = FEW_USERS.partition("groups")[0].replace('"cubic"', '["cubic", "bbr"]')
    made = KIND.study(parse("users_of_x", f'{head}groups = [""]\n{unknown}\n' + "\n".join(
        f"{name} = {column}" for name, column in columns.items())))
    records = [Record(trial, True, total_ms=trial.rtt_ms * round_trips(trial), retransmissions=0,
                      queue_drops=0, verdict="fail" if place < lost else "pass")
               for place, trial in enumerate(made.trials)]
    findings, _ = users_findings(made.scenario, made.scenario.users, records)
    answer, = (finding.answer for finding in findings if finding.answer is not None)
    return answer, findings


def saved_ms(answer: Answer) -> float:
    """What the second option saves in ms. Asserts that the first option has no number."""
    assert answer.table is not None
    first, second = answer.table.column("mean", "saved")
    assert first == ""
    return float(str(second))


def test_each_combination_of_options_is_measured_with_all_windows_and_users() -> None:
    users = users_of([f"{20 + number},1000,9000,,1" for number in range(5)])
    requested = Requested((10, 32), 5, {}, {
        "congestion_control": ("cubic", "bbr"), "kernel": ("default", "mine"),
        "queue": "50", "kept": 0})
    made = scenario(users, requested, PATH, 1)
    assert read_back(made) == made
    assert made.users is not None and made.users.count == 2 * 5 * 2 * 2
    measured = {(trial["rtt_ms"], trial["initcwnd"], trial["congestion_control"], trial["kernel"])
                for trial in trials_of(users, requested)}
    assert len(measured) == made.users.count
    ids = [trial.id for trial in made.users.trials("x", 1)]
    assert len(set(ids)) == len(ids)


def test_each_option_has_its_own_window_and_its_saving_against_the_first() -> None:
    """With BBR 32 segments save one of 3 round trips, which take 49.5 ms in the mean."""
    answer, findings = findings_of(
        lambda trial: 2 if (trial.congestion_control, trial.initcwnd) == ("bbr", 32) else 3)
    assert answer.table is not None
    assert answer.table.column("with") == ["cubic", "bbr"]
    assert answer.table.column("IW") == [10, 32]
    assert answer.table.column("mean", "time to the last byte") == pytest.approx([148.5, 99.0])
    assert saved_ms(answer) == pytest.approx(49.5)
    assert [finding.name for finding in findings] == ["options", "windows_cubic", "windows_bbr"]
    assert answer.command == "", "the windows differ"


def test_an_answer_has_a_command_where_all_options_have_one_window() -> None:
    answer, _ = findings_of(lambda trial: (2 if trial.initcwnd == 32 else 3)
                            + (0.5 if trial.congestion_control == "bbr" else 0))
    assert answer.table is not None and answer.table.column("IW") == [32, 32]
    assert saved_ms(answer) == pytest.approx(-24.75)
    assert "initcwnd 32" in answer.command


def test_options_are_compared_by_the_users_that_count_with_both() -> None:
    """The first user, with the shortest RTT of 20 ms, does not count with CUBIC."""
    answer, _ = findings_of(lambda trial: 3 if trial.congestion_control == "cubic" else 2, lost=1)
    mean_rtt_ms = sum(range(21, 20 + ROWS)) / (ROWS - 1)
    assert answer.table is not None
    assert answer.table.column("measured") == [ROWS - 1, ROWS]
    assert saved_ms(answer) == pytest.approx(mean_rtt_ms)


def test_an_unknown_condition_that_decides_between_options_is_named() -> None:
    def round_trips(trial: Trial) -> float:
        faster = "bbr" if trial.part == "users_queue" else "cubic"
        return 2 if trial.congestion_control == faster else 3

    answer, _ = findings_of(round_trips, 'unknown = ["queue"]')
    note, = (note for note in answer.notes if "depends on what the file does not say" in note)
    assert "with a queue of 20 packets it saves +49.5 ms" in note
    same, _ = findings_of(lambda trial: 2 if trial.congestion_control == "bbr" else 3,
                          'unknown = ["queue"]')
    assert not [note for note in same.notes if "depends on" in note]
