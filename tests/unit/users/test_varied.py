"""Conditions that the file does not have are varied, and decide what window is recommended."""

from __future__ import annotations

import pytest

from firstflight.findings.findings import Answer, Finding
from firstflight.runs.scenario_file import parse
from firstflight.study.fetches import KIND
from firstflight.study.users import varied
from firstflight.study.users.findings import users_findings
from firstflight.study.users.varied import Choice
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from tests.unit.fetches.small import FEW_USERS


def varied_finding(slower_in: str = "", least: int = 32, slower_group: int | None = None
                   ) -> tuple[Finding, list[Choice]]:
    """The finding on 80 users of two groups, and the choices for all of them and for each group.

    least: from this window on, users save two of five round trips. slower_in: a condition under
    which a window of 32 takes longer. slower_group: a group for which 32 takes longer.
    """
    rows = 80
    columns = {"group": [row % 2 for row in range(rows)], "times": [1] * rows,
               "rtt_ms": [20 + row for row in range(rows)],
               "bandwidth_kbps": [9000] * rows, "response_bytes": [60000] * rows}
    text = (FEW_USERS.partition("groups")[0].replace("[10, 32]", "[10, 20, 32]")
            + 'groups = ["near", "far"]\nassumed_kbps = 9000\nunknown = ["queue", "kept"]\n'
            + "\n".join(f"{name} = {column}" for name, column in columns.items()))
    made = KIND.study(parse("users_of_x", text))

    def total_ms(trial: Trial) -> float:
        round_trips = 3 if trial.initcwnd >= least else 5
        if trial.initcwnd == 32 and trial.part == slower_in:
            round_trips = 9
        elif trial.initcwnd == 32 and trial.sample % 2 == slower_group:
            # The group's 99th percentile becomes 2.4 % longer, which is more than MOST_P99_SHARE.
            # That of all users becomes 1.4 % longer, which is less.
            return trial.rtt_ms * 5.12
        return trial.rtt_ms * round_trips

    records = [Record(trial, True, total_ms=total_ms(trial), retransmissions=0, queue_drops=0,
                      verdict="pass") for trial in made.trials]
    (finding,), _ = users_findings(made.scenario, made.scenario.users, records)
    return finding, list(varied.choices(made.scenario.users, records).values())


def varied_answer(slower_in: str = "", least: int = 32, slower_group: int | None = None
                  ) -> tuple[Answer, list[Choice]]:
    """The answer of varied_finding, and its choices."""
    finding, choices = varied_finding(slower_in, least, slower_group)
    assert finding.answer is not None
    return finding.answer, choices


def test_a_window_that_is_chosen_under_every_condition_has_its_command() -> None:
    answer, choices = varied_answer()
    assert [choice.initcwnd for choice in choices] == [32, 32, 32]
    assert "initcwnd 32" in answer.command


@pytest.mark.parametrize(("part", "found_by"), [
    ("users_queue", "minrtt"), ("users_kept", "$connection_requests"),
    ("users_half", "delivery_rate"), ("users_double", "delivery_rate")])
def test_a_window_that_harms_under_one_condition_is_not_recommended(part: str, found_by: str
                                                                    ) -> None:
    answer, choices = varied_answer(slower_in=part)
    assert [choice.initcwnd for choice in choices] == [None, None, None]
    assert choices[0].deciding == [part] and answer.command == ""
    assert [note for note in answer.notes if found_by in note]


def test_a_smaller_window_that_saves_as_much_is_chosen_where_a_larger_one_harms() -> None:
    answer, choices = varied_answer(slower_in="users_queue", least=20)
    assert [choice.initcwnd for choice in choices] == [20, 20, 20]
    assert "initcwnd 20" in answer.command


def test_a_window_that_harms_a_group_without_a_route_of_its_own_is_not_chosen_for_all() -> None:
    answer, choices = varied_answer(slower_group=0)
    assert [choice.initcwnd for choice in choices] == [None, 10, 32]
    assert answer.command == "" and any("far (32)" in note for note in answer.notes)


@pytest.mark.parametrize(("slower_in", "least", "chosen"), [
    ("", 32, "32"), ("users_queue", 20, "20"), ("users_queue", 32, "No window")])
def test_the_context_of_the_figure_has_the_chosen_window(
        slower_in: str, least: int, chosen: str) -> None:
    finding, _ = varied_finding(slower_in, least)
    assert finding.chart is not None
    assert chosen in finding.chart.context[-1]
