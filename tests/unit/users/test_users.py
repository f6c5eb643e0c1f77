"""The recommendation of a window for users: its rule, its commands, gains and losses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy
import pytest

from firstflight.findings.charts import LineChart
from firstflight.runs.scenario_file import parse
from firstflight.study.fetches import KIND
from firstflight.study.users import analysis, recommendation, window_commands
from firstflight.study.users.analysis import Measured, recommend
from firstflight.study.users.findings import users_findings
from firstflight.study.users.recommendation import first_answer
from firstflight.workloads.fetch.figures.bar_cells import published_bars
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.scenario.users import UserSample, content, order
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify import verify
from tests.golden import stored, stored_fetches
from tests.golden.answers import COUNT, found_users, spread
from tests.unit.fetches.small import FEW_USERS


def test_a_window_that_saves_time_is_recommended_with_its_interval() -> None:
    chosen = recommend(found_users(spread(20, 40)), 10)
    assert chosen.initcwnd == 32
    best = chosen.outcomes[1]
    assert best.saved.absolute.value == pytest.approx(30) and best.gain_percent == 100
    assert best.saved.absolute.interval is not None
    low, high = best.saved.absolute.interval
    standard_error = float(numpy.std(spread(20, 40))) / COUNT ** 0.5
    assert 30 - low == pytest.approx(1.96 * standard_error, rel=0.2)
    assert high - 30 == pytest.approx(1.96 * standard_error, rel=0.2)


@pytest.mark.parametrize("again", [0.19, 0.21])  # retransmitted segments of a user
def test_a_window_that_retransmits_half_a_point_more_is_not_recommended(again: float) -> None:
    """Half a point of 40 segments is 0.2 of a segment."""
    chosen = recommend(found_users(spread(20, 40), again=again), 10).initcwnd
    assert chosen == (32 if again < 0.2 else 10)


def test_the_smallest_of_the_windows_as_good_as_the_best_is_recommended() -> None:
    """A window of 20 takes 2 ms more than 32, which is as good, or 4 ms more, which is not."""
    of_two = found_users(spread(20, 40))
    of_three = replace(of_two, total_ms={**of_two.total_ms, 20: of_two.total_ms[32] + 2.0},
                       retransmitted={**of_two.retransmitted, 20: of_two.retransmitted[10]},
                       queue_drops={**of_two.queue_drops, 20: of_two.queue_drops[10]})
    assert recommend(of_three, 10).initcwnd == 20
    slower = replace(of_three, total_ms={**of_three.total_ms, 20: of_two.total_ms[32] + 4.0})
    assert recommend(slower, 10).initcwnd == 32


@pytest.mark.parametrize(("worst_ms", "chosen"), [(306.0, 32), (306.1, 10)])
def test_a_window_with_a_99th_percentile_2_percent_longer_is_not_recommended(worst_ms: float,
                                                                             chosen: int) -> None:
    """The three slowest of 200 users take 2 % more than 300 ms, or a little more than that."""
    saved = numpy.where(numpy.arange(COUNT) < 3, 300 - worst_ms, 40.0)
    assert recommend(found_users(saved), 10).initcwnd == chosen


@pytest.mark.parametrize(("saved_ms", "chosen"), [(3.0, 10), (3.2, 32)])
def test_a_saving_under_a_hundredth_of_the_mean_recommends_no_larger_window(saved_ms: float,
                                                                            chosen: int) -> None:
    """A hundredth of the mean of 297 ms is 2.97 ms, and every user saves the same."""
    assert recommend(found_users(spread(saved_ms - 0.1, saved_ms - 0.1)), 10).initcwnd == chosen


def three_users() -> tuple[Scenario, UserSample, list[Record]]:
    """Three users of two groups. With the larger window, large responses save a round trip."""
    made = KIND.study(parse("users_of_x", FEW_USERS))
    records = []
    for trial in made.trials:
        saves = trial.initcwnd == 32 and trial.response_bytes >= 10_000
        records.append(Record(trial, True, total_ms=trial.rtt_ms * (2 if saves else 3),
                              retransmissions=0, queue_drops=0, verdict="pass"))
    return made.scenario, made.scenario.users, records


def test_queue_drops_are_reported_for_each_window_by_the_users_weight() -> None:
    """Drops are not retransmissions. A row counts as often as it stands for users."""
    made, users, records = three_users()
    for place, record in enumerate(records):
        is_hit = (record.trial.rtt_ms, record.trial.initcwnd) == (300, 32)
        records[place] = replace(record, queue_drops=6 if is_hit else 0)
    outcomes = users_findings(made, users, records)[0][0].tables[0]
    drops = dict(zip(zip(outcomes.column("users"), outcomes.column("IW")),
                     outcomes.column("queue drops")))
    assert drops == {("all", 10): 0, ("all", 32): 3, ("near", 10): 0, ("near", 32): 0,
                     ("192.0.2.0/24", 10): 0, ("192.0.2.0/24", 32): 4}
    assert set(outcomes.column("retransmitted")) == {0}


def test_each_group_has_a_recommendation_of_its_own() -> None:
    findings, tiles = users_findings(*three_users())
    outcomes, choice, commands = findings[0].tables
    assert choice.column("users") == ["all", "near", "192.0.2.0/24"]
    assert choice.column("IW") == [10, 10, 32], "the interval of all three users contains 0"
    assert "all responses fit in 10 segments" in str(choice.column("why")[1])
    means = dict(zip(zip(outcomes.column("users"), outcomes.column("IW")),
                     outcomes.column("mean", "time to the last byte")))
    assert means["all", 10] == pytest.approx((60 + 600 + 2 * 900) / 4)
    assert means["192.0.2.0/24", 32] == pytest.approx((400 + 2 * 600) / 3)
    assert any("ip route add 192.0.2.0/24" in str(row[1]) for row in commands.rows)
    assert tiles[0].value == "10 segments"
    assert "the bottleneck's queue holds 100 packets" in findings[0].statements[3].measured


def test_a_user_without_a_counting_record_is_excluded_under_every_window() -> None:
    made, users, records = three_users()
    records[0] = replace(records[0], verdict="fail")
    measured = analysis.measured(users, records)
    assert measured.excluded == 1 and len(measured.weight) == 2
    findings, _ = users_findings(made, users, records)
    assert findings[0].tables[1].notes == ("No user of these groups counts under every window:"
                                           " near.",)
    chart = findings[0].chart
    assert isinstance(chart, LineChart) and chart.alarm == "1 user excluded: a verdict failed"
    assert chart.legend, "there are lines for all users and for the group that is left"
    records[-1] = replace(records[-1], verdict="fail")
    chart = users_findings(made, users, records)[0][0].chart
    assert isinstance(chart, LineChart) and chart.alarm.startswith("2 users excluded")
    lost = [replace(record, verdict="fail") for record in records]
    assert users_findings(made, users, lost)[0][0].missing


@pytest.mark.parametrize(("name", "prefix"), [
    ("192.0.2.0/24", True), ("2001:db8::/32", True), ("192.0.2.1", False), ("mobile", False),
    ("192.0.2.0/24; rm -rf /", False), ("fe80::%$(reboot)/64", False), ("fe80::%`id`/64", False)])
def test_only_a_group_that_is_a_prefix_has_a_command(name: str, prefix: bool) -> None:
    assert window_commands.is_prefix(name) is prefix
    windows = {"all": 32, name: 16}
    assert (name in str(window_commands.table(windows, 10).rows)) is prefix
    assert (name in str(window_commands.commands(windows, 10))) is prefix


@pytest.mark.parametrize(("windows", "routes"), [
    ((32, 16, 32), ["change", "add 192.0.2.0/25"]), ((10, 10, 16), ["add 192.0.2.128/25"]),
    ((10, 10, 10), []), ((None, 10, 16), ["add 192.0.2.128/25"]), ((None, None, None), [])])
def test_a_prefix_has_a_route_only_where_its_window_differs(windows: tuple[int | None, ...],
                                                            routes: list[str]) -> None:
    named = dict(zip(("all", "192.0.2.0/25", "192.0.2.128/25"), windows))
    commands = window_commands.commands(named, 10)
    assert len(commands) == len(routes)
    assert all(route in command for command, route in zip(commands, routes))


def sampled(initcwnd: str = "[10, 32]", rows: int = 60) -> Any:
    """A study of this many users, whose RTTs are 20, 21, … ms."""
    columns = {"group": [0] * rows, "times": [1] * rows,
               "rtt_ms": [20 + row for row in range(rows)],
               "bandwidth_kbps": [9000] * rows, "response_bytes": [60000] * rows}
    head = FEW_USERS.partition("groups")[0].replace("[10, 32]", initcwnd)
    return KIND.study(parse("users_of_x", head + 'groups = [""]\n' + "\n".join(
        f"{name} = {column}" for name, column in columns.items())))


def test_the_order_of_trials_does_not_depend_on_how_many_are_measured() -> None:
    few, many = sampled(), sampled("[10, 32, 64]", 90)
    first = [content(trial) for trial in sorted(few.trials, key=order)]
    among_many = [content(trial) for trial in sorted(many.trials, key=order)]
    assert [trial for trial in among_many if trial in {*first}] == first

    rtts_ms = [trial.rtt_ms for trial in sorted(few.trials, key=order)]
    assert rtts_ms[::2] == rtts_ms[1::2]  # both windows of a user follow each other
    assert 42 < sum(rtts_ms[:40]) / 40 < 57  # the first 20 of 60 users have near the mean RTT


@pytest.mark.parametrize("field", ["rtt_ms", "bandwidth_kbps", "response_bytes", "initcwnd", "seed",
                                   "loss_percent", "queue_packets", "congestion_control"])
def test_trials_that_differ_in_the_network_differ_in_content(field: str) -> None:
    trial = sampled().trials[0]
    value = getattr(trial, field)
    other = replace(trial, **{field: "bbr" if isinstance(value, str) else value + 1})
    assert content(other) != content(trial)
    assert content(replace(trial, sample=7, weight=0.5, scenario="y", part="")) == content(trial)


def test_a_first_answer_has_its_interval_and_the_number_of_rows_so_far() -> None:
    study = sampled()

    def total_ms(trial: Trial) -> float:
        return 300.0 - (20 + trial.sample % 5 if trial.initcwnd == 32 else 0)

    records = [Record(trial, ok=True, verdict="pass", total_ms=total_ms(trial))
               for trial in study.trials]
    answer = first_answer(study.scenario.users, records[:80])
    assert answer.startswith("so far, by 40 of 60 rows: 32 segments, which saves 22.0 ms (95 %"
                             " interval 21.")
    assert first_answer(study.scenario.users, records[:30]) == ""
    equal = [replace(record, total_ms=300.0) for record in records]
    assert first_answer(study.scenario.users, equal).startswith("so far, by 60 of 60 rows: 10 segm")


@pytest.mark.parametrize(("rtt_ms", "times", "doubted"), [
    (73.7, 1, ""), (0.2, 1, "No Internet path has a median round trip of 0.20 ms"),
    (73_700.0, 1, "No Internet path has a median"), (73.7, 0, "Only 1 different users")])
def test_an_implausible_rtt_and_too_few_users_are_doubted(rtt_ms: float, times: int,
                                                          doubted: str) -> None:
    rows = 40 if times else 1
    made = KIND.study(parse("users_of_x", FEW_USERS)).scenario.users
    doubts = recommendation.doubts(replace(made, rtt_ms=(rtt_ms,) * rows, times=(1,) * rows))
    assert [doubted in line for line in doubts] == ([True] if doubted else [])


# Gains and losses of users, computed by hand, and published percentages -------------------------

def measured() -> Measured:
    """Four rows, of which the third stands for two users, who are slower with 32 segments."""
    none = numpy.zeros(4)
    return Measured(
        total_ms={10: numpy.array([100.0, 200.0, 300.0, 400.0]),
                  32: numpy.array([90, 199.5, 310, 300.0])},
        retransmitted={10: none, 32: numpy.array([0.0, 0, 1, 3])},
        queue_drops={10: none, 32: numpy.array([0.0, 5, 0, 0])},
        weight=numpy.array([1.0, 1.0, 2.0, 1.0]), group=numpy.array([0, 0, 1, 1]),
        segments=numpy.array([5.0, 10, 20, 30]), excluded=0, user=numpy.arange(4))


def test_gains_losses_and_percentiles_count_users_by_weight() -> None:
    """Of five users two gain more than a millisecond (10 and 100 ms), and two lose 10 ms."""
    found = recommend(measured(), 10)
    base, larger = found.outcomes
    assert (larger.gain_percent, larger.lose_percent) == (40, 40)
    assert (base.gain_percent, base.lose_percent) == (0, 0)
    assert larger.mean_ms == pytest.approx((90 + 199.5 + 620 + 300) / 5)
    assert larger.saved.absolute.value == pytest.approx((10 + 0.5 - 20 + 100) / 5)
    assert larger.retransmitted_percent == pytest.approx(100 * (2 + 3) / (5 + 10 + 40 + 30))
    assert larger.queue_drops == 1 and found.fits_percent == 40
    assert larger.percentiles_ms == (300, 310, 310) and base.percentiles_ms == (300, 400, 400)
    assert larger.to_best.absolute.value == 0 and base.to_best.absolute.value == pytest.approx(
        larger.saved.absolute.value)


def test_the_selection_of_a_group_has_its_times_weights_and_segments() -> None:
    of_group = measured().only(1)
    assert of_group.total_ms[32].tolist() == [310, 300] and of_group.weight.tolist() == [2, 1]
    assert of_group.segments.tolist() == [20, 30] and of_group.excluded == 0
    with pytest.raises(ValueError, match="no user counts under every window"):
        recommend(measured().only(7), 10)


def test_a_published_percentage_of_the_experiment_becomes_one_of_the_baseline() -> None:
    """24 % of the experiment's time are 24 / 124 of the base's; of a goodput they are 24 / 76."""
    figure = next(figure for figure in stored_fetches.scenario("marrama2012").figures
                  if figure.name == "fig5_rtt")
    assert figure.percent_of == "experiment"
    for metric, percent in (("total_ms", 100 * 24 / 124), ("goodput_kbps", 100 * 24 / 76)):
        assert published_bars(replace(figure, metric=metric))["500"].percent == pytest.approx(
            percent)
    assert published_bars(replace(figure, percent_of="baseline"))["500"].percent == 24
    assert published_bars(replace(figure, published="")) == {}


def test_an_error_of_the_server_is_reported_as_the_servers() -> None:
    trial = stored.load("iw10")
    assert trial.said("server", error="no such path").judge().error == "server: no such path"
    assert verify._failure({"error": "no network"}) == "no network"
