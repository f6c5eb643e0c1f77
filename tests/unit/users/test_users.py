"""The recommendation: its rule, what users gain and lose; and the sample of users."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy
import pytest

from firstflight.base.errors import UsageError
from firstflight.findings.charts import LineChart
from firstflight.findings.findings import Answer
from firstflight.findings.quantities import QUANTITIES
from firstflight.runs.scenario_file import parsed
from firstflight.study.fetches.figures.bar_cells import published_bars
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.scenario.users import UserSample, content, order
from firstflight.study.fetches.study import KIND, read_scenario
from firstflight.study.fetches.verify import verify
from firstflight.study.registry import fetches_of
from firstflight.study.users import analysis, findings, logs, varied, window_commands
from firstflight.study.users.analysis import Measured, recommend
from firstflight.study.users.findings import first_answer, users_findings
from firstflight.study.users.requested import Requested
from firstflight.study.users.rows import UserTable
from firstflight.study.users.sample import scenario
from firstflight.study.users.varied import Choice
from tests.golden import stored, stored_fetches
from tests.golden.answers import COUNT, found_users, spread
from tests.unit.fetches.small import FEW_USERS


def test_a_window_that_saves_time_is_set() -> None:
    chosen = recommend(found_users(spread(20, 40)), 10)
    assert chosen.initcwnd == 32
    best = chosen.outcomes[1]
    assert best.saved.absolute.value == pytest.approx(30) and best.gain_percent == 100
    assert best.saved.absolute.interval is not None
    low, high = best.saved.absolute.interval
    standard_error = float(numpy.std(spread(20, 40))) / COUNT ** 0.5
    assert 30 - low == pytest.approx(1.96 * standard_error, rel=0.2)
    assert high - 30 == pytest.approx(1.96 * standard_error, rel=0.2)


@pytest.mark.parametrize("again", [0.19, 0.21])
def test_the_bound_of_retransmissions(again: float) -> None:
    """Half a point of 40 segments is 0.2 of a segment."""
    chosen = recommend(found_users(spread(20, 40), again=again), 10).initcwnd
    assert chosen == (32 if again < 0.2 else 10)


def test_of_windows_as_good_as_the_best_the_smallest() -> None:
    one = found_users(spread(20, 40))
    three = replace(one, total_ms={**one.total_ms, 20: one.total_ms[32] + 2.0},
                    retransmitted={**one.retransmitted, 20: one.retransmitted[10]},
                    queue_drops={**one.queue_drops, 20: one.queue_drops[10]})
    assert recommend(three, 10).initcwnd == 20
    slower = replace(three, total_ms={**three.total_ms, 20: one.total_ms[32] + 4.0})
    assert recommend(slower, 10).initcwnd == 32


@pytest.mark.parametrize(("worst_ms", "chosen"), [(306.0, 32), (306.1, 10)])
def test_the_bound_of_the_99th_percentile(worst_ms: float, chosen: int) -> None:
    """Two per cent more than 300 ms, of the three slowest of 200."""
    saved = numpy.where(numpy.arange(COUNT) < 3, 300 - worst_ms, 40.0)
    assert recommend(found_users(saved), 10).initcwnd == chosen


@pytest.mark.parametrize(("saved_ms", "chosen"), [(3.0, 10), (3.2, 32)])
def test_what_is_under_a_hundredth_of_the_mean_is_as_good(saved_ms: float, chosen: int) -> None:
    """Of 297 ms, however sure it is."""
    assert recommend(found_users(spread(saved_ms - 0.1, saved_ms - 0.1)), 10).initcwnd == chosen


def three_users() -> tuple[Scenario, UserSample, list[Record]]:
    """Three users of two groups; the far ones gain from the larger window."""
    made = KIND.study(parsed("users_of_x", FEW_USERS))
    records = [Record(trial, True, total_ms=trial.rtt_ms * (3 if trial.initcwnd == 10
                                                            or trial.response_bytes < 10_000
                                                            else 2),
                      retransmissions=0, queue_drops=0, verdict="pass") for trial in made.trials]
    return made.scenario, made.scenario.users, records


def test_what_the_queue_dropped_is_told_of_each_window() -> None:
    """Apart from what was sent again, and by how many users each stands for."""
    made, users, records = three_users()
    records = [replace(record, queue_drops=6 if (record.trial.rtt_ms, record.trial.initcwnd)
                       == (300, 32) else 0) for record in records]
    outcomes = users_findings(made, users, records)[0][0].tables[0]
    drops = dict(zip(zip(outcomes.column("users"), outcomes.column("IW")),
                     outcomes.column("queue drops")))
    assert drops == {("all", 10): 0, ("all", 32): 3, ("near", 10): 0, ("near", 32): 0,
                     ("192.0.2.0/24", 10): 0, ("192.0.2.0/24", 32): 4}
    assert set(outcomes.column("retransmitted")) == {0}


def test_groups_have_a_choice_of_their_own() -> None:
    findings, tiles = users_findings(*three_users())
    outcomes, choice, commands = findings[0].tables
    assert choice.column("users") == ["all", "near", "192.0.2.0/24"]
    assert choice.column("IW") == [10, 10, 32], "of three users together the interval holds 0"
    assert "all responses fit in 10 segments" in str(choice.column("why")[1])
    means = dict(zip(zip(outcomes.column("users"), outcomes.column("IW")),
                     outcomes.column("mean", "time to the last byte")))
    assert means["all", 10] == pytest.approx((60 + 600 + 2 * 900) / 4)
    assert means["192.0.2.0/24", 32] == pytest.approx((400 + 2 * 600) / 3)
    assert any("ip route add 192.0.2.0/24" in str(row[1]) for row in commands.rows)
    assert tiles[0].value == "10 segments"
    assert "the bottleneck's queue holds 100 packets" in findings[0].statements[3].measured


def test_a_user_without_a_counting_record_is_left_out_under_every_window() -> None:
    made, users, records = three_users()
    records[0] = replace(records[0], verdict="fail")
    measured = analysis.measured(users, records)
    assert measured.excluded == 1 and len(measured.weight) == 2
    findings, _ = users_findings(made, users, records)
    assert findings[0].tables[1].notes == ("No user of these groups counts under every window:"
                                           " near.",)
    chart = findings[0].chart
    assert isinstance(chart, LineChart) and chart.alarm == "1 user excluded: a verdict failed"
    assert chart.legend, "all of them, and the group that is left"
    records[-1] = replace(records[-1], verdict="fail")
    chart = users_findings(made, users, records)[0][0].chart
    assert isinstance(chart, LineChart) and chart.alarm.startswith("2 users excluded")
    lost = [replace(record, verdict="fail") for record in records]
    assert users_findings(made, users, lost)[0][0].missing


@pytest.mark.parametrize(("name", "prefix"), [
    ("192.0.2.0/24", True), ("2001:db8::/32", True), ("192.0.2.1", False), ("mobile", False),
    ("192.0.2.0/24; rm -rf /", False), ("fe80::%$(reboot)/64", False), ("fe80::%`id`/64", False)])
def test_only_a_prefix_becomes_a_command(name: str, prefix: bool) -> None:
    assert window_commands.is_prefix(name) is prefix
    windows = {"all": 32, name: 16}
    told = str(window_commands.table(windows, 10).rows)
    assert (name in told) is prefix
    assert (name in str(window_commands.commands(windows, 10))) is prefix


@pytest.mark.parametrize(("windows", "routes"), [
    ((32, 16, 32), ["change", "add 192.0.2.0/25"]), ((10, 10, 16), ["add 192.0.2.128/25"]),
    ((10, 10, 10), []), ((None, 10, 16), ["add 192.0.2.128/25"]), ((None, None, None), [])])
def test_a_prefix_has_a_route_only_where_its_window_is_another(
        windows: tuple[int | None, ...], routes: list[str]) -> None:
    named = dict(zip(("all", "192.0.2.0/25", "192.0.2.128/25"), windows))
    commands = window_commands.commands(named, 10)
    assert len(commands) == len(routes)
    assert all(route in command for command, route in zip(commands, routes))


def sampled(initcwnd: str = "[10, 32]", rows: int = 60) -> Any:
    columns = {"group": [0] * rows, "times": [1] * rows,
               "rtt_ms": [20 + row for row in range(rows)],
               "bandwidth_kbps": [9000] * rows, "response_bytes": [60000] * rows}
    head = FEW_USERS.partition("groups")[0].replace("[10, 32]", initcwnd)
    return KIND.study(parsed("users_of_x", head + 'groups = [""]\n' + "\n".join(
        f"{name} = {column}" for name, column in columns.items())))


def test_what_is_measured_first_does_not_depend_on_how_much_is_measured() -> None:
    few, many = sampled(), sampled("[10, 32, 64]", 90)
    first = [content(trial) for trial in sorted(few.trials, key=order)]
    kept = {*first}
    assert [each for trial in sorted(many.trials, key=order)
            if (each := content(trial)) in kept] == first
    rtts = [trial.rtt_ms for trial in sorted(few.trials, key=order)]
    assert rtts[::2] == rtts[1::2]  # the windows of one user follow each other
    assert 30 < sum(rtts[:40]) / 40 - 20 + 8 < 45  # as if drawn, of small and large RTTs


@pytest.mark.parametrize("field", ["rtt_ms", "bandwidth_kbps", "response_bytes", "initcwnd", "seed",
                                   "loss_percent", "queue_packets", "congestion_control"])
def test_what_differs_in_the_network_is_another_content(field: str) -> None:
    trial = sampled().trials[0]
    value = getattr(trial, field)
    other = replace(trial, **{field: "bbr" if isinstance(value, str) else value + 1})
    assert content(other) != content(trial)
    assert content(replace(trial, sample=7, weight=0.5, scenario="y", part="")) == content(trial)


def test_a_first_answer_names_its_interval_and_how_many_rows_it_rests_on() -> None:
    study = sampled()
    records = [Record(trial, ok=True, verdict="pass", total_ms=300.0 - (
        trial.initcwnd == 32) * (20 + trial.sample % 5)) for trial in study.trials]
    said = first_answer(study.scenario.users, records[:80])
    assert said.startswith("so far, by 40 of 60 rows: 32 segments, which saves 22.0 ms (95 %"
                           " interval 21.")
    assert first_answer(study.scenario.users, records[:30]) == ""
    same = [replace(record, total_ms=300.0) for record in records]
    assert first_answer(study.scenario.users, same).startswith("so far, by 60 of 60 rows: 10 segm")


@pytest.mark.parametrize(("rtt_ms", "times", "doubted"), [
    (73.7, 1, ""), (0.2, 1, "No Internet path has a median round trip of 0.20 ms"),
    (73_700.0, 1, "No Internet path has a median"), (73.7, 0, "Only 1 different users")])
def test_what_no_internet_path_has_and_too_few_are_said_first(rtt_ms: float, times: int,
                                                             doubted: str) -> None:
    rows = 40 if times else 1
    made = KIND.study(parsed("users_of_x", FEW_USERS)).scenario.users
    doubts = findings._doubts(replace(made, rtt_ms=(rtt_ms,) * rows, times=(1,) * rows))
    assert [doubted in line for line in doubts] == ([True] if doubted else [])


# What users gain and lose, by hand, and windows told by a quantity of which more is better ---

def measured() -> Measured:
    """Four users, of whom the third stands for two and is slower with the larger window."""
    base, larger = numpy.array([100.0, 200.0, 300.0, 400.0]), numpy.array([90, 199.5, 310, 300.0])
    zero, weight = numpy.zeros(4), numpy.array([1.0, 1.0, 2.0, 1.0])
    return Measured({10: base, 32: larger}, {10: zero, 32: numpy.array([0.0, 0, 1, 3])},
                    {10: zero, 32: numpy.array([0.0, 5, 0, 0])}, weight,
                    numpy.array([0, 0, 1, 1]), numpy.array([5.0, 10, 20, 30]), 0)


def test_shares_are_by_weight() -> None:
    """Of five, two gain more than a millisecond (10 and 100), two lose 10, one is the same."""
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


def test_one_group_alone() -> None:
    other = measured().only(1)
    assert other.total_ms[32].tolist() == [310, 300] and other.weight.tolist() == [2, 1]
    assert other.segments.tolist() == [20, 30] and other.excluded == 0
    with pytest.raises(ValueError, match="no user counts under every window"):
        recommend(measured().only(7), 10)


def test_a_percentage_of_the_experiment_is_another_where_more_is_better() -> None:
    """24 % of the experiment's time are 24 / 124 of the baseline's; of a goodput, 24 / 76."""
    figure = next(each for each in stored_fetches.scenario("marrama2012").figures
                  if each.name == "fig5_rtt")
    assert figure.percent_of == "experiment"
    for metric, percent in (("total_ms", 100 * 24 / 124), ("goodput_kbps", 100 * 24 / 76)):
        assert published_bars(replace(figure, metric=metric))["500"].percent == pytest.approx(
            percent)
    assert published_bars(replace(figure, percent_of="baseline"))["500"].percent == 24
    assert published_bars(replace(figure, published="")) == {}


def test_what_a_server_says_is_told_as_the_servers() -> None:
    trial = stored.load("iw10")
    assert trial.said("server", error="no such path").judge().error == "server: no such path"
    assert verify._failure({"error": "no network"}) == "no network"


# The sample: every part has its share, and the file says what was measured ------------

PATH = Path("My log.csv")


def users_of(rows: list[str]) -> UserTable:
    return logs.read(["rtt_ms,bandwidth_kbps,response_bytes,group,weight\n",
                      *(f"{row}\n" for row in rows)], "a file")


def read_back(made: Scenario) -> Scenario:
    """The scenario that its text is read as."""
    return read_scenario(parsed(made.name, made.head.text))


def trials_of(users: UserTable, requested: Requested, seed: int = 1) -> list[dict[str, object]]:
    study = fetches_of(scenario(users, requested, PATH, seed), False, 1)
    return [{each.name: getattr(trial, each.name) for each in fields(trial)}
            for trial in study.trials]


def test_as_many_trials_as_rows_measure_each_row_once() -> None:
    users = users_of([f"{20 + number},1000,{1000 + number},,1" for number in range(50)])
    trials = trials_of(users, Requested((10, 32), trials=50))
    assert sorted(each["rtt_ms"] for each in trials
                  if each["initcwnd"] == 10 and each["part"] == "users") == [
        20 + number for number in range(50)]
    assert {each["weight"] for each in trials} == {1 / 50}
    assert [each["initcwnd"] for each in trials[:4]] == [10, 32, 10, 32]


def test_weights_and_groups_get_their_share() -> None:
    users = users_of(["20,1000,9000,near,3", "200,1000,9000,far,1"])
    trials = trials_of(users, Requested((10,), trials=100))
    assert {(each["rtt_ms"], round(float(str(each["weight"])), 2)) for each in trials} == {
        (20, 0.75), (200, 0.25)}


def test_a_seed_gives_the_same_and_another_seed_others() -> None:
    users = users_of([f"{20 + number},1000,9000,,1" for number in range(500)])
    one, same, other = (trials_of(users, Requested((10,), trials=7), seed) for seed in (1, 1, 2))
    assert one == same and [each["rtt_ms"] for each in one] != [each["rtt_ms"] for each in other]


def test_what_the_file_lacks_is_asked_for_and_told() -> None:
    users = users_of(["20,,9000,,1"])
    with pytest.raises(UsageError, match="1 of 1 rows have no bandwidth_kbps; give it with --bw"):
        scenario(users, Requested(), PATH, 1)
    made = scenario(users, Requested(given={"bandwidth_kbps": 5000.0}), PATH, 1)
    assert made.name == "users_of_my_log"
    assert "1 of 1 rows have the 5000 of the command line" in made.head.note


def test_the_network_of_the_command_line_is_everybodys() -> None:
    users = users_of(["20,1000,9000,,1", "80,2000,9000,,1"])
    made = scenario(users, Requested((10,), defaults={"queue": "50ms", "loss_percent": 1.0,
                                                  "uplink_kbps": 300.0}), PATH, 1)
    trials = [trial for trial in fetches_of(made, False, 1).trials if trial.part == "users"]
    assert [trial.uplink_kbps for trial in trials] == [300, 300]
    assert len({trial.seed for trial in trials}) == 2, "each loses packets of its own"
    assert trials[0].queue_packets < trials[1].queue_packets, "50 ms of each link's own rate"


def test_strings_of_a_file_cannot_leave_their_place() -> None:
    users = users_of(['20,1000,9000,"a""]\ninitcwnd = [99] #",1'.replace("\n", " ")])
    made = scenario(users, Requested((10,)), Path('x"\\.csv'), 1)
    assert made.users is not None and made.users.initcwnd == (10,)
    assert made.users.groups == ('a"] initcwnd = [99] #',)
    assert read_back(made) == made


@pytest.mark.parametrize("name", ["\U0001f4f1.csv", "a\nb = 1.csv", "a\x7fb.csv", "\udc80.csv"])
def test_any_name_of_a_file_is_told(name: str) -> None:
    made = scenario(users_of(["20,1000,9000,,1"]), Requested((10,)), Path(name), 1)
    assert read_back(made) == made
    assert made.head.title.isprintable()
    seen = {"a\nb = 1.csv": "a b = 1.csv", "a\x7fb.csv": "a b.csv", "\udc80.csv": " .csv"}
    assert made.head.title == f"Which initial window for the users of {seen.get(name, name)}?"


WHOLE = """# Which initial window for the users of My log.csv?

title = "Which initial window for the users of My log.csv?"
source = "My log.csv: 3 rows read as the output of ss -tin; the RTT is rtt in ms: \
median 37.5 ms, 20.1 to 150.0"
note = "bandwidth_kbps: delivery_rate of the kernel: what the connection reached, at most the \
bandwidth; bandwidth_kbps: 1 of 3 rows have the 5000.5 of the command line"

[defaults]
uplink = [300]
queue_packets = ["1bdp"]
loss_percent = [0]
congestion_control = ["reno"]
system = ["here"]
client = "libcurl"

[users]
initcwnd = [32, 20, 16]
baseline_initcwnd = 16
groups = [""]
rtt_ms = [20.123, 37.5, 150]
bandwidth_kbps = [5000.5, 3200, 812]
response_bytes = [100, 48211, 9211]
times = [2, 2, 2]
group = [0, 0, 0]
assumed_kbps = 5000.5
unknown = ["kept"]
"""


def test_the_file_says_all_that_was_asked_and_known() -> None:
    users = logs.read(
        ["State Recv-Q Send-Q\n", "rtt:37.5/4 bytes_acked:48211 delivery_rate 3.2Mbps\n",
                       "rtt:150/20 bytes_acked:9211 delivery_rate 812Kbps\n",
                       "rtt:20.1234/1 bytes_acked:100\n"], "a file")
    made = scenario(users, Requested((32, 20, 16), 6, {"bandwidth_kbps": 5000.5}, {
        "queue": "bdp", "uplink_kbps": 300.0, "congestion_control": "reno"}), PATH, 1)
    assert made.head.text == WHOLE
    assert read_back(made) == made


def test_users_of_an_assumed_bandwidth_are_measured_with_half_and_double_of_it() -> None:
    """Of one user it is known; half of the least bandwidth that can be measured is left out."""
    rows = ["20,,9000,,1", "40,3200,48211,,1"]

    def trials(kbps: float) -> list[Trial]:
        made = scenario(users_of(rows), Requested((10, 20), 20, {"bandwidth_kbps": kbps},
                                                  {"queue": "bdp", "kept": 0}), PATH, 1)
        return list(fetches_of(made, False, 1).trials)

    measured = trials(1000.0)
    assert {(each.part, each.rtt_ms, each.bandwidth_kbps) for each in measured} == {
        ("users", 20, 1000), ("users", 40, 3200), ("users_half", 20, 500),
        ("users_double", 20, 2000)}
    assert len(measured) == 2 * 4
    users = {each.sample: each.seed for each in measured}
    assert all(users[each.sample] == each.seed for each in measured), "the same random numbers"
    least = QUANTITIES["bandwidth_kbps"].lowest
    assert {each.part for each in trials(least)} == {"users", "users_double"}


@pytest.mark.parametrize(("given", "varied"), [
    ({}, {"users_queue": (20, 0), "users_kept": (100, 1)}),
    ({"queue": "100"}, {"users_kept": (100, 1)}), ({"kept": 0}, {"users_queue": (20, 0)}),
    ({"queue": "50", "kept": 1}, {})])
def test_what_neither_file_nor_flags_say_is_measured_with_another_value(
        given: dict[str, str | float], varied: dict[str, tuple[int, int]]) -> None:
    made = scenario(users_of(["20,1000,9000,,1"]), Requested((10,), 20, {}, given), PATH, 1)
    assert read_back(made) == made
    trials = [each for each in fetches_of(made, False, 1).trials if each.part != "users"]
    assert {each.part: (each.queue_packets, each.kept) for each in trials} == varied


def test_a_file_of_first_requests_leaves_only_the_queue_unsaid() -> None:
    lines = ["rtt_ms,bandwidth_kbps,response_bytes,connection_requests\n", "20,1000,9000,1\n",
             "40,1000,9000,2\n", "60,1000,9000,1\n"]
    users = logs.read(lines, "a file")
    assert users.rtt_ms.tolist() == [20, 60] and users.are_first_requests
    assert users.skipped == {"on connections that were in use": 1}
    made = scenario(users, Requested((10,)), PATH, 1).users
    assert made is not None and made.unknown == ("queue",)
    other = logs.read([line.replace(",1\n", ",\n") for line in lines], "a file")
    assert not other.are_first_requests, "the file does not say it of these"


# What the file does not say decides --------------------------------------------------

def varied_answer(slower_in: str = "", least: int = 32, slower_group: int | None = None
                  ) -> tuple[Answer, list[Choice]]:
    """The answer on 80 users of two groups, to whom windows from `least` on save two in five.

    slower_in: a part in which 32 takes longer. slower_group: 32 takes longer for this one.
    """
    rows = 80
    columns = {"group": [row % 2 for row in range(rows)], "times": [1] * rows,
               "rtt_ms": [20 + row for row in range(rows)],
               "bandwidth_kbps": [9000] * rows, "response_bytes": [60000] * rows}
    text = (FEW_USERS.partition("groups")[0].replace("[10, 32]", "[10, 20, 32]")
            + 'groups = ["near", "far"]\nassumed_kbps = 9000\nunknown = ["queue", "kept"]\n'
            + "\n".join(f"{name} = {column}" for name, column in columns.items()))
    made = KIND.study(parsed("users_of_x", text))

    def total_ms(trial: Trial) -> float:
        round_trips = 3 if trial.initcwnd >= least else 5
        if trial.initcwnd == 32 and trial.part == slower_in:
            round_trips = 9
        elif trial.initcwnd == 32 and trial.sample % 2 == slower_group:
            return trial.rtt_ms * 5.12  # more than the bound for the group, less for all
        return trial.rtt_ms * round_trips

    records = [Record(trial, True, total_ms=total_ms(trial), retransmissions=0, queue_drops=0,
                      verdict="pass") for trial in made.trials]
    (finding,), _ = users_findings(made.scenario, made.scenario.users, records)
    assert finding.answer is not None
    return finding.answer, list(varied.choices(made.scenario.users, records).values())


def test_a_window_that_holds_whatever_the_file_does_not_say_has_its_command() -> None:
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


def test_a_smaller_window_that_is_as_good_holds_in_spite_of_harm_by_a_larger_one() -> None:
    answer, choices = varied_answer(slower_in="users_queue", least=20)
    assert [choice.initcwnd for choice in choices] == [20, 20, 20]
    assert "initcwnd 20" in answer.command


def test_a_group_without_a_route_of_its_own_forbids_what_harms_it() -> None:
    answer, choices = varied_answer(slower_group=0)
    assert [choice.initcwnd for choice in choices] == [None, 10, 32]
    assert answer.command == "" and any("far (32)" in note for note in answer.notes)


def test_a_part_of_the_weight_has_that_part_of_the_trials() -> None:
    """Madow's systematic sampling: of n trials a weight w gets n·w, rounded up or down."""
    weights = [1.0, 2.5, 0.5, 4.0]
    users = users_of([f"{20 + 10 * place},1000,9000,,{weight}" for place, weight
                      in enumerate(weights)])
    for count in (7, 8, 80):
        for seed in range(1, 5):
            sampled = scenario(users, Requested((10,), count), PATH, seed).users
            assert sampled is not None
            times = sampled.times
            assert sum(times) == count
            assert all(abs(each - count * weight / 8) < 1 for each, weight in zip(times, weights)
                       ) or len(times) < 4
