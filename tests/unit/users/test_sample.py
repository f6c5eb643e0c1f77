"""The trials that are drawn of users, and the scenario that is written for them."""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from pathlib import Path

import pytest

from firstflight.base.errors import UsageError
from firstflight.findings.quantities import QUANTITIES
from firstflight.runs.scenario_file import parse
from firstflight.study.fetches import read_scenario
from firstflight.study.registry import fetches_of
from firstflight.study.users import logs
from firstflight.study.users.rows import UserTable
from firstflight.study.users.sample import scenario
from firstflight.workloads.fetch.scenario.requested_users import Requested
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.trial import Trial

PATH = Path("My log.csv")


def users_of(rows: list[str]) -> UserTable:
    """Users of a CSV file with these rows: RTT, bandwidth, response size, group, weight."""
    return logs.read(["rtt_ms,bandwidth_kbps,response_bytes,group,weight\n",
                      *(f"{row}\n" for row in rows)], "a file")


def read_back(made: Scenario) -> Scenario:
    """The scenario as it is read from its own text."""
    return read_scenario(parse(made.name, made.head.text))


def trials_of(users: UserTable, requested: Requested, seed: int = 1) -> list[dict[str, object]]:
    """The fields of each trial by name."""
    study = fetches_of(scenario(users, requested, PATH, seed), False, 1)
    return [{field.name: getattr(trial, field.name) for field in fields(trial)}
            for trial in study.trials]


def test_as_many_trials_as_rows_measure_each_row_once() -> None:
    users = users_of([f"{20 + number},1000,{1000 + number},,1" for number in range(50)])
    trials = trials_of(users, Requested((10, 32), trials=50))
    assert sorted(trial["rtt_ms"] for trial in trials
                  if trial["initcwnd"] == 10 and trial["part"] == "users") == [
        20 + number for number in range(50)]
    assert {trial["weight"] for trial in trials} == {1 / 50}
    assert [trial["initcwnd"] for trial in trials[:4]] == [10, 32, 10, 32]


def test_rows_have_trials_with_their_share_of_the_weight() -> None:
    users = users_of(["20,1000,9000,near,3", "200,1000,9000,far,1"])
    trials = trials_of(users, Requested((10,), trials=100))
    assert {(trial["rtt_ms"], round(float(str(trial["weight"])), 2)) for trial in trials} == {
        (20, 0.75), (200, 0.25)}


def test_a_seed_draws_the_same_users_again_and_another_seed_others() -> None:
    users = users_of([f"{20 + number},1000,9000,,1" for number in range(500)])
    first, same, other = (trials_of(users, Requested((10,), trials=7), seed) for seed in (1, 1, 2))
    assert first == same
    assert [trial["rtt_ms"] for trial in first] != [trial["rtt_ms"] for trial in other]


def test_a_file_without_bandwidths_is_refused_without_a_flag_and_a_note_names_the_flags_value(
        ) -> None:
    users = users_of(["20,,9000,,1"])
    with pytest.raises(UsageError, match="1 of 1 rows have no bandwidth_kbps; give it with --bw"):
        scenario(users, Requested(), PATH, 1)
    made = scenario(users, Requested(given={"bandwidth_kbps": 5000.0}), PATH, 1)
    assert made.name == "users_of_my_log"
    assert "1 of 1 rows have the 5000 of the command line" in made.head.note


def test_network_flags_apply_to_every_user() -> None:
    users = users_of(["20,1000,9000,,1", "80,2000,9000,,1"])
    made = scenario(users, Requested((10,), defaults={"queue": "50ms", "loss_percent": 1.0,
                                                  "uplink_kbps": 300.0}), PATH, 1)
    trials = [trial for trial in fetches_of(made, False, 1).trials if trial.part == "users"]
    assert [trial.uplink_kbps for trial in trials] == [300, 300]
    assert len({trial.seed for trial in trials}) == 2, "losses are drawn for each user"
    assert trials[0].queue_packets < trials[1].queue_packets, "50 ms of a faster link is more"


def test_strings_of_a_users_file_cannot_break_out_of_the_scenarios_toml() -> None:
    users = users_of(['20,1000,9000,"a""]\ninitcwnd = [99] #",1'.replace("\n", " ")])
    made = scenario(users, Requested((10,)), Path('x"\\.csv'), 1)
    assert made.users is not None and made.users.initcwnd == (10,)
    assert made.users.groups == ('a"] initcwnd = [99] #',)
    assert read_back(made) == made


@pytest.mark.parametrize("name", ["\U0001f4f1.csv", "a\nb = 1.csv", "a\x7fb.csv", "\udc80.csv"])
def test_a_users_file_may_have_any_name_and_its_title_stays_printable(name: str) -> None:
    made = scenario(users_of(["20,1000,9000,,1"]), Requested((10,)), Path(name), 1)
    assert read_back(made) == made
    assert made.head.title.isprintable()
    shown = {"a\nb = 1.csv": "a b = 1.csv", "a\x7fb.csv": "a b.csv", "\udc80.csv": " .csv"}
    assert made.head.title == f"Which initial window for the users of {shown.get(name, name)}?"


WHOLE = """# Which initial window for the users of My log.csv?

title = "Which initial window for the users of My log.csv?"
source = "My log.csv: 3 rows read as the output of ss -tin; the RTT is rtt in ms: \
median 37.5 ms, 20.1 to 150.0"
note = "bandwidth_kbps: delivery_rate of the kernel: what the connection reached, at most the \
bandwidth; bandwidth_kbps: 1 of 3 rows have the 5000.5 of the command line"

[defaults]
uplink = [300]
queue = ["1bdp"]
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


def test_the_written_scenario_has_all_that_was_requested_and_read() -> None:
    users = logs.read(["State Recv-Q Send-Q\n",
                       "rtt:37.5/4 bytes_acked:48211 delivery_rate 3.2Mbps\n",
                       "rtt:150/20 bytes_acked:9211 delivery_rate 812Kbps\n",
                       "rtt:20.1234/1 bytes_acked:100\n"], "a file")
    flags: dict[str, str | float] = {"queue": "bdp", "uplink_kbps": 300.0,
                                     "congestion_control": "reno"}
    requested = Requested((32, 20, 16), 6, {"bandwidth_kbps": 5000.5}, flags)
    made = scenario(users, requested, PATH, 1)
    assert made.head.text == WHOLE
    assert read_back(made) == made


def test_users_of_an_assumed_bandwidth_are_measured_with_half_and_double_of_it() -> None:
    """The second user's bandwidth is known. Half of the least allowed bandwidth is not measured."""
    rows = ["20,,9000,,1", "40,3200,48211,,1"]

    def trials(kbps: float) -> list[Trial]:
        made = scenario(users_of(rows), Requested((10, 20), 20, {"bandwidth_kbps": kbps},
                                                  {"queue": "bdp", "kept": 0}), PATH, 1)
        return list(fetches_of(made, False, 1).trials)

    measured = trials(1000.0)
    assert {(trial.part, trial.rtt_ms, trial.bandwidth_kbps) for trial in measured} == {
        ("users", 20, 1000), ("users", 40, 3200), ("users_half", 20, 500),
        ("users_double", 20, 2000)}
    assert len(measured) == 2 * 4
    seeds = {trial.sample: trial.seed for trial in measured}
    assert all(seeds[trial.sample] == trial.seed for trial in measured), "one seed for each user"
    least = QUANTITIES["bandwidth_kbps"].lowest
    assert {trial.part for trial in trials(least)} == {"users", "users_double"}


# varied: by condition, packets of the queue and previous responses.
@pytest.mark.parametrize(("flags", "varied"), [
    ({}, {"users_queue": (20, 0), "users_kept": (100, 1)}),
    ({"queue": "100"}, {"users_kept": (100, 1)}), ({"kept": 0}, {"users_queue": (20, 0)}),
    ({"queue": "50", "kept": 1}, {})])
def test_an_unknown_queue_or_kept_connection_is_measured_with_another_value(
        flags: dict[str, str | float], varied: dict[str, tuple[int, int]]) -> None:
    made = scenario(users_of(["20,1000,9000,,1"]), Requested((10,), 20, {}, flags), PATH, 1)
    assert read_back(made) == made
    trials = [trial for trial in fetches_of(made, False, 1).trials if trial.part != "users"]
    assert {trial.part: (trial.queue_packets, trial.kept) for trial in trials} == varied


def test_a_file_of_first_requests_leaves_only_the_queue_unknown() -> None:
    lines = ["rtt_ms,bandwidth_kbps,response_bytes,connection_requests\n", "20,1000,9000,1\n",
             "40,1000,9000,2\n", "60,1000,9000,1\n"]
    users = logs.read(lines, "a file")
    assert users.rtt_ms.tolist() == [20, 60] and users.are_first_requests
    assert users.skipped == {"on connections that were in use": 1}
    made = scenario(users, Requested((10,)), PATH, 1).users
    assert made is not None and made.unknown == ("queue",)
    unnumbered = logs.read([line.replace(",1\n", ",\n") for line in lines], "a file")
    assert not unnumbered.are_first_requests, "rows without a number may be later requests"


def test_each_row_has_trials_in_proportion_to_its_weight() -> None:
    """Madow's systematic sampling: a row with a share w of the weight gets n·w of n trials.

    n·w is rounded up or down.
    """
    weights = [1.0, 2.5, 0.5, 4.0]
    users = users_of([f"{20 + 10 * place},1000,9000,,{weight}" for place, weight
                      in enumerate(weights)])
    for count, seed in product((7, 8, 80), range(1, 5)):
        sampled = scenario(users, Requested((10,), count), PATH, seed).users
        assert sampled is not None and sum(sampled.times) == count

        times = dict(zip(sampled.rtt_ms, sampled.times))
        for place, weight in enumerate(weights):
            share = count * weight / sum(weights)
            assert abs(times.get(20 + 10 * place, 0) - share) < 1
