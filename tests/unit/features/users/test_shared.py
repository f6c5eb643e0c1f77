"""Your users beside others on a link: the scenario says what was asked, and holds no address."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest

from base.errors import UsageError
from runs.kinds import Study
from study.fetches.features.users.requested import Requested
from study.fetches.features.users.shared import NETWORKS, scenario, size_points
from study.load.trial import LoadTrial
from study.registry import study_of
from tests.unit.features.users.test_sample import users_of

PATH = Path("My log.csv")
ASKED = Requested((16, 10, 32), shared_kbps=20000.0, load=0.9)


def study(rows: list[str], requested: Requested = ASKED) -> Study:
    made = study_of(scenario(users_of(rows), requested, PATH, 1))
    assert isinstance(made, Study)
    return made


def test_every_network_has_a_host_of_yours_and_one_of_the_others() -> None:
    made = study([f"{20 + 10 * place},{1000 * (place + 1)},{9000 + place},,1" for place in range(30)])
    by_window = {trial.window: trial for trial in made.trials}
    assert list(by_window) == ["10+10", "16+10", "32+10"] and len(made.trials) == 3 * 4
    assert made.scenario.figures[0].windows == ("10+10", "16+10", "32+10")
    for window, trial in by_window.items():
        hosts = trial.hosts
        assert len(hosts) == 2 * NETWORKS and sum(host.share for host in hosts) == pytest.approx(1)
        assert [host.initcwnd for host in hosts[0::2]] == [int(window[:2])] * NETWORKS
        assert [host.initcwnd for host in hosts[1::2]] == [10] * NETWORKS
        for yours, other in zip(hosts[0::2], hosts[1::2]):
            assert (yours.rtt_ms, yours.kbps, yours.share) == (other.rtt_ms, other.kbps, other.share)
        # One host stands for many users, who do not wait for each other on a link of their own.
        assert {host.kbps for host in hosts} == {0.0}
        assert (trial.load, trial.bandwidth_kbps, trial.queue_packets) == (0.9, 20000, 273)
    arrivals = [[each["seed"] for each in trial.job()["traffic"]] for trial in by_window.values()]
    assert arrivals[0] == arrivals[1] == arrivals[2], "the same arrivals under every window"


@pytest.mark.parametrize(("flags", "queue", "said"), [
    ({"queue": "20", "qdisc": "fq_codel"}, (20, "fq_codel", False), "holds 20 packets"),
    ({"queue": "0.5bdp", "qdisc": "fq"}, (133, "droptail", True), "holds 133 packets"),
    ({"queue": "1", "jitter_ms": 3.0}, (1, "droptail", False),
     "holds 1 packets. --jitter: not of this scenario, of the other one only")])
def test_the_queue_is_the_one_that_is_named(flags: dict[str, Any], queue: tuple[int, str, bool],
                                            said: str) -> None:
    made = study(["160,1000,9000,,1"], replace(ASKED, defaults={"loss_percent": 2.0, **flags}))
    trial = made.trials[0]
    assert isinstance(trial, LoadTrial)
    assert (trial.queue_packets, trial.queue, trial.paced) == queue
    assert {host.loss_percent for host in trial.hosts} == {2.0}
    assert made.head.note.endswith(said)


def test_sizes_are_those_of_the_file() -> None:
    made = study([f"20,1000,{size},,1" for size in (500, 9000, 60000)])
    points = made.trials[0].size_points
    assert points[0] == (0, 500) and points[-1] == (1, 60000)
    assert {size for _, size in points} == {500, 9000, 60000}
    assert 1900 < made.trials[0].expected_arrivals[0] < 2150
    weighted = size_points(numpy.array([9.0, 1.0, 5.0]), numpy.array([1.0, 98.0, 1.0]))
    assert [size for _, size in weighted] == [1.0] * 20 + [9.0]


def test_what_was_assumed_is_told() -> None:
    made = study(["20,1000,9000,,1"])
    assert "Half of the connections are your users', half of others, who keep 10" in made.head.note
    assert "20000 kbit/s, is offered 90 %" in made.head.note
    assert made.head.name == "users_of_my_log_shared"
    assert made.head.title == "The users of My log.csv beside others on one link"
    with pytest.raises(UsageError, match="have no bandwidth_kbps; give it with --bw"):
        study(["20,,9000,,1"])


WHOLE = """# What do larger windows for the users of My log.csv cost others on a link of 2000.5 kbit/s?
kind = "load"
title = "The users of My log.csv beside others on one link"
source = "My log.csv: 3 rows read as CSV; median RTT 80.0 ms"
note = "Half of the connections are your users', half of others, who keep 10 segments; both \
have the RTTs and sizes of the file, and links of their own that are faster than the shared \
one. That carries 2000.5 kbit/s, is offered 90 %, and its queue holds 100 packets"

[defaults]
bandwidth_kbps = 2000.5
rtt_ms = 80
queue_bdp = [7.498125468632842]
queue = ["droptail"]
load = [0.9]
response_bytes = [9000]
sizes = [[0, 500], [0.05, 500], [0.1, 500], [0.15, 500], [0.2, 500], [0.25, 500], [0.3, 9000], \
[0.35, 9000], [0.4, 9000], [0.45, 9000], [0.5, 9000], [0.55, 9000], [0.6, 9000], [0.65, 9000], \
[0.7, 9000], [0.75, 9000], [0.8, 60000], [0.85, 60000], [0.9, 60000], [0.95, 60000], [1, 60000]]
connections = [1]
initrwnd = 150
congestion_control = ["reno"]
paced = [false]
servers = 1
duration_s = 224
warmup_s = 34
cooldown_s = 17
repeat = 4
mixes = [[[10, 0.5], [10, 0.5]], [[16, 0.5], [10, 0.5]], [[150, 0.5], [10, 0.5]]]

[[population]]
name = "users"
clients = [[0.16666666666666666, 20, 0, 0], [0.5, 80, 0, 0], [0.3333333333333333, 200, 0, 0]]

[[sweep]]
name = "shared"
population = "users"

[[figure]]
name = "shared"
title = "What larger windows cost others, My log.csv"
kind = "share"
sweep = "shared"
windows = ["10+10", "16+10", "150+10"]
"""


def test_the_file_says_all_that_was_asked() -> None:
    """A median of 80 ms; clients by their weight; 2000 connections of 18.7 kB in 77.5 % of it."""
    users = users_of(["20,1000,500,,1", "80,2000,9000,,2", "200,3000,60000,,1"])
    requested = Requested((16, 10, 150), shared_kbps=2000.5, load=0.9,
                  defaults={"congestion_control": "reno"})
    assert scenario(users, requested, PATH, 1).text == WHOLE
    requested = replace(requested, windows=(3, 5), defaults=None)
    defaults = scenario(users, requested, PATH, 1).raw["defaults"]
    assert (defaults["congestion_control"], defaults["initrwnd"]) == (["cubic"], 100)


@pytest.mark.parametrize("kbps, duration_s", [(10.0, 900), (1e6, 20)])
def test_a_run_is_neither_too_short_nor_too_long(kbps: float, duration_s: float) -> None:
    users = users_of(["20,1000,9000,,1"])
    file = scenario(users, replace(ASKED, shared_kbps=kbps), PATH, 1)
    assert file.raw["defaults"]["duration_s"] == duration_s
