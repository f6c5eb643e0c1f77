"""Conditions of --fail-if: on means of a run, on the recommended window, and on a probe."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import NamedTuple

import pytest

from firstflight.base import errors
from firstflight.base.errors import FirstFlightError
from firstflight.commands import conditions, fail_if, flags, probe
from firstflight.commands.conditions import OfRecords
from firstflight.commands.request import Output
from firstflight.commands.users_conditions import RECOMMENDED, OfUsers
from firstflight.probe import verdict
from firstflight.runs.kinds import Overrides, Study
from firstflight.runs.results.records import FAIL, PASS
from firstflight.runs.scenario_file import parse
from firstflight.study import registry
from firstflight.study.fetches import KIND
from firstflight.workloads.fetch.record.record import Record
from tests.golden import probed
from tests.unit.fetches.small import FEW_USERS

STUDY: Study = registry.own_question("own", Overrides({"initcwnd": [3, 10]}, repeat=2))
RECORDS = [Record(trial, ok=True, verdict=PASS, total_ms=1000.0 / trial.initcwnd + trial.repeat,
                  retransmissions=0) for trial in STUDY.trials]


@pytest.mark.parametrize(("text", "holds"), [
    ("total_ms(10) > 101", True), ("total_ms(10) > 101.5", False), ("total_ms(10) >= 101.5", True),
    ("total_ms(3) - total_ms(10) < 234", True), ("total_ms(3) - total_ms(10) < 233", False),
    ("(total_ms(3) - total_ms(10)) / total_ms(3) * 100 > 69", True),
    ("retransmissions > 0", False), ("-total_ms <= -200", True), ("100 < total_ms", True)])
def test_a_condition_compares_means(text: str, holds: bool) -> None:
    condition = conditions.read(text)
    condition.check(STUDY)
    assert condition.holds(OfRecords(RECORDS))[0] is holds


NETWORKS: Study = registry.own_question("own", Overrides({
    "initcwnd": [10], "rtt_ms": [20, 200], "congestion_control": ["cubic", "bbr"],
    "bandwidth_kbps": [10_000.0]}, repeat=1))


@pytest.mark.parametrize(("text", "mean_ms"), [
    ("total_ms(10)", 120), ("total_ms(10, rtt=200)", 210), ("total_ms(rtt='0.2s')", 210),
    ("total_ms(rtt=20, cc=bbr)", 40), ("total_ms(cc='cubic')", 110),
    ("total_ms(iw=10, bw='10M')", 120)])
def test_flags_in_parentheses_select_trials(text: str, mean_ms: float) -> None:
    records = [Record(trial, ok=True, verdict=PASS, total_ms=trial.rtt_ms + 20 * (
        trial.congestion_control == "bbr")) for trial in NETWORKS.trials]
    for comparison in (">=", "<="):
        condition = conditions.read(f"{text} {comparison} {mean_ms}")
        condition.check(NETWORKS)
        assert condition.holds(OfRecords(records))[0]


@pytest.mark.parametrize(("text", "words"), [
    ("total_ms(rtt=50) > 1", "measures no rtt of 50, but 20.0, 200.0"),
    ("total_ms(10, iw=3) > 1", "measures no iw of 3, but 10"),
    ("total_ms(cc=reno) > 1", "measures no cc of reno, but bbr, cubic")])
def test_a_value_that_no_trial_has_is_refused(text: str, words: str) -> None:
    with pytest.raises(FirstFlightError, match=words):
        conditions.read(text).check(NETWORKS)


def test_a_combination_of_values_that_no_trial_has_is_refused() -> None:
    bbr_at_20_ms_or_cubic = [trial for trial in NETWORKS.trials
                             if (trial.rtt_ms == 20) == (trial.congestion_control == "bbr")]
    study = replace(NETWORKS, trials=bbr_at_20_ms_or_cubic)
    with pytest.raises(FirstFlightError, match="has all of these values"):
        conditions.read("total_ms(rtt=20, cc=cubic) > 1").check(study)


@pytest.mark.parametrize(("text", "words"), [
    ("total_ms(rt=50) > 1", "'rt' is no flag .*did you mean 'rtt'"),
    ("total_ms(rtt=soon) > 1", "soon"), ("total_ms(rtt='20,200') > 1", "is not one value"),
    ("total_ms(queue='50ms') > 1", "not a number of packets"), ("total_ms(**x) > 1", "no flag")])
def test_an_unknown_flag_or_an_invalid_value_in_parentheses_is_refused(text: str, words: str
                                                                       ) -> None:
    with pytest.raises(ValueError, match=words):
        conditions.read(text)


def test_the_line_of_a_condition_has_both_sides() -> None:
    assert conditions.read(" total_ms(10) > 300 ").holds(OfRecords(RECORDS))[1] == (
        "--fail-if total_ms(10) > 300: does not hold (101.5 against 300)")


@pytest.mark.parametrize("text", [
    "", "total_ms", "total_ms(10)", "1 < 2", "1 < total_ms < 3", "total_ms == 3", "total_ms > ",
    "total_ms > 'x'", "total_ms(10.5) > 1", "total_ms(a) > 1", "total_ms() > 1",
    "total_ms(3, 4) > 1", "total_ms ** 2 > 1", "__import__('os').system('id') > 2",
    "total_ms.real > 1", "total_ms[0] > 1", "True < total_ms", "(lambda: 1)() > total_ms",
    "total_ms > 1e400", "1e400 - 1e400 < total_ms", "total_ms > 1if total_ms else 2",
    "total_ms\n> 1", "total_ms > 1 # \x1b[2J", "total_ms \u202e> 1",
    "total_ms > 1" + " " * 200 + "+ 1", "(" * 90 + "total_ms > 1", "-" * 190 + "total_ms > 1 1"])
def test_a_text_that_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="condition|neither a number nor a column|names no column"
                       "|cannot be printed") as refused:
        conditions.read(text)
    assert str(refused.value).isprintable()


def test_only_verified_trials_count() -> None:
    records = [replace(record, verdict=PASS if record.trial.repeat == 2 else FAIL)
               for record in RECORDS]
    assert conditions.read("total_ms(10) >= 102").holds(OfRecords(records))[0]
    with pytest.raises(FirstFlightError, match=r"total_ms\(10\): no verified trial has a value"):
        conditions.read("total_ms(10) > 1").holds(OfRecords([]))


@pytest.mark.parametrize(("text", "words"), [
    ("total_ms / retransmissions > 1", "divides by a mean of 0"),
    ("total_ms * 1e200 * 1e200 - total_ms * 1e200 * 1e200 > 1", "is not a number"),
    ("1 > total_ms * 1e200 * 1e200", "is not a number")])
def test_a_condition_that_cannot_be_computed_is_undetermined(text: str, words: str) -> None:
    with pytest.raises(conditions.UndeterminedError, match=words) as ended:
        conditions.read(text).holds(OfRecords(RECORDS))
    assert ended.value.exit_status == errors.VERDICT


def test_pythons_warnings_about_a_condition_are_not_printed() -> None:
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        with pytest.raises(ValueError, match="is not a condition"):
            conditions.read("total_ms > 1if total_ms else 2")
    assert not noted


# Bounds, users and probes ---------------------------------------------------------------

class Between(NamedTuple):
    """A source of which every mean is only known to lie between these bounds."""

    least: float
    most: float

    def ends(self, mean: conditions.Mean) -> tuple[float, float]:
        return self.least, self.most


@pytest.mark.parametrize(("text", "holds"), [
    ("iw < 10", False), ("iw >= 12", True), ("iw < 20", None), ("20 > iw", None),
    ("iw < 41", True), ("-iw > -12", False), ("iw * 2 > 60", None)])
def test_a_bound_decides_only_where_both_ends_agree(text: str, holds: bool | None) -> None:
    condition = conditions.read(text)
    if holds is not None:
        assert condition.holds(Between(12, 40))[0] is holds
        return
    with pytest.raises(conditions.UndeterminedError, match="only a bound is known"):
        condition.holds(Between(12, 40))


def test_conditions_after_an_undetermined_one_are_still_printed(capsys: pytest.CaptureFixture[str]
                                                                ) -> None:
    texts = ["iw > 20", "iw > 10"]
    output = Output(conditions=[conditions.read(text) for text in texts])
    with pytest.raises(conditions.UndeterminedError, match="iw > 20"):
        fail_if.judge(output, Between(12, 40), was_read=True)
    assert "--fail-if iw > 10: holds" in capsys.readouterr().out


def test_means_over_users_have_their_weights_and_not_the_varied_conditions() -> None:
    """Three users take 60, 600 and 900 ms, and the third counts twice: 615 ms.

    Trials with another queue take ten times as long.
    """
    made = KIND.study(parse("users_of_x", FEW_USERS.replace(
        "groups", 'unknown = ["queue"]\ngroups')))
    records = [Record(trial, True, verdict=PASS, retransmissions=0, queue_drops=0,
                      total_ms=trial.rtt_ms * (3 if trial.part == "users" else 30))
               for trial in made.trials]
    condition = conditions.read("total_ms(10) >= 615")
    condition.check(made, [RECOMMENDED])
    source = OfUsers(made.scenario.users, records)
    assert condition.holds(source)[1].endswith("holds (615 against 615)")
    assert conditions.read("recommended_iw >= 10").holds(source)[0]


@pytest.mark.parametrize("control", ["cubic", "bbr"])
def test_the_recommended_window_of_an_option_is_selected_by_its_flag(control: str) -> None:
    """With one congestion control, 60 users save one of three round trips by 32 segments."""
    rows = 60
    columns = {"group": [0] * rows, "times": [1] * rows, "rtt_ms": list(range(20, 80)),
               "bandwidth_kbps": [9000] * rows, "response_bytes": [60000] * rows}
    made = KIND.study(parse("users_of_x", FEW_USERS.partition("groups")[0].replace(
        '"cubic"', '["cubic", "bbr"]') + 'groups = [""]\n' + "\n".join(
        f"{name} = {column}" for name, column in columns.items())))
    records = []
    for trial in made.trials:
        saves = (trial.congestion_control, trial.initcwnd) == (control, 32)
        records.append(Record(trial, True, verdict=PASS, retransmissions=0, queue_drops=0,
                              total_ms=trial.rtt_ms * (2 if saves else 3)))
    source = OfUsers(made.scenario.users, records)
    for name in ("cubic", "bbr"):
        condition = conditions.read(f"recommended_iw(cc={name}) > 10")
        condition.check(made, [RECOMMENDED])
        assert condition.holds(source)[0] is (name == control)


def test_a_condition_on_a_recommended_window_is_undetermined_where_there_is_none() -> None:
    made = KIND.study(parse("users_of_x", FEW_USERS))
    with pytest.raises(conditions.UndeterminedError, match="no window holds"):
        conditions.read("recommended_iw > 10").holds(OfUsers(made.scenario.users, []))


@pytest.mark.parametrize(("name", "iw", "ends"), [
    ("ten segments, and the response goes on", 10, (10, 10)),
    ("the response is in it", 10, (10, None)), ("a receive window", 11, (11, None)),
    ("three segments before", 7, (7, 10)), ("the response, after three segments", 7, (7, None)),
    ("counted", 10, (10, None)), ("counted, slowly", 11, (None, 11)),
    ("counted, slowly, with a small response", None, (None, None))])
def test_the_values_of_a_probe_have_the_known_bounds_of_its_window(
        name: str, iw: int | None, ends: tuple[int | None, int | None]) -> None:
    probed_window = verdict.judge_probe(probed.PROBES[name])
    values = probe.values_of(probed_window)
    assert (values["iw_least"], values["iw_most"]) == ends == probed_window.window_range
    least, most = ends
    assert values["iw"] == iw and values["at_least"] is (most is None)
    assert values["at_most"] is (least is None or most not in (None, least))
    assert values["at_most"] or values["at_least"] or probed_window.is_window


@pytest.mark.parametrize(("name", "condition", "status"), [
    ("ten segments, and the response goes on", "iw < 20", errors.CONDITION),
    ("ten segments, and the response goes on", "iw < 10", errors.OK),
    ("the response is in it", "iw < 10", errors.OK),
    ("three segments before", "iw > 10", errors.OK)])
def test_a_probe_ends_with_the_status_of_its_condition(
        name: str, condition: str, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    request = flags.parse(["--probe", "http://192.0.2.1/x", "--fail-if", condition,
                           "--export", "json", "-"])
    shown = verdict.judge_probe(probed.PROBES[name])
    assert probe.show(shown, "http://192.0.2.1/x", request.output) == status
    printed = capsys.readouterr()
    values = json.loads(printed.out)
    assert values["url"] == "http://192.0.2.1/x" and values["iw"] in (7, 10)
    assert "first flight: 10 segments" in printed.err and condition in printed.err


def test_a_condition_on_a_probe_is_undetermined_where_only_a_bound_is_known() -> None:
    output = Output(conditions=[conditions.read("iw < 20")])
    shown = verdict.judge_probe(probed.PROBES["the response is in it"])
    with pytest.raises(conditions.UndeterminedError, match="only a bound is known"):
        probe.show(shown, "http://192.0.2.1/x", output)
