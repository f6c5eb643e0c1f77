"""What a scenario of kind load may not say, and how places on its axes are written."""

from __future__ import annotations

from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.study.load.analysis import describe, name_of, named
from firstflight.study.load.scenario import apply, expand
from tests.unit.load.test_scenario import claim, figure, made


@pytest.mark.parametrize("axis, value, place, with_name", [
    ("response_bytes", 50_000, "50 kB", "response 50 kB"),
    ("response_bytes", 1500, "1.5 kB", "response 1.5 kB"),
    ("queue_bdp", 0.5, "0.5 BDP", "buffer 0.5 BDP"), ("load", 0.95, "0.95", "offered load 0.95"),
    ("connections", 4, "4", "connections at once 4"),
    ("variant", "cubic, droptail", "cubic, droptail", "cubic, droptail")])
def test_a_place_on_an_axis_is_said_with_its_unit(axis: str, value: Any, place: str,
                                                  with_name: str) -> None:
    assert describe(axis, value) == place and named(axis, value) == with_name
    assert name_of(axis)


# What may be said, beside what may not ---------------------------------------------------

UNEVEN = [[3, 0.9], [10, 0.1]]


@pytest.mark.parametrize("changes, taken", [
    ({"compares": ["3", "10 in 3*0.9+10*0.1"], "quantity": "p999_ms"}, True),
    ({"compares": ["3 in 3*0.9+10*0.1", "10 in 3*0.9+10*0.1"]}, True),
    ({"compares": ["3", "16 in 3*0.9+10*0.1"]}, False), ({"compares": ["3 in 3", "10"]}, False),
    ({"compares": ["3", "10 in 3*0.9+10*0.1"], "quantity": "retransmission_percent"}, False),
    ({"compares": ["3", "3*0.9+10*0.1"], "quantity": "retransmission_percent"}, True),
    ({"quantity": "failed"}, True), ({"quantity": "error"}, False), ({"quantity": "ok"}, False),
    ({"quantity": "seen_initcwnd"}, False), ({"compares": ["3", "10", "3"]}, False),
    ({"compares": "310"}, False)])
def test_a_claim_compares_windows_or_parts_of_a_mix_of_its_figure(changes: dict[str, Any],
                                                                 taken: bool) -> None:
    tables = claim(**changes)
    tables["figure"][0].update(kind="mix", windows=["3", "10", "3*0.9+10*0.1"])
    if taken:
        assert made(tables, mixes=[UNEVEN]).claims[0].quantity == changes.get("quantity", "mean_ms")
    else:
        with pytest.raises(UsageError, match='\\[\\[claim\\]\\] "s": (compares|quantity)'):
            made(tables, mixes=[UNEVEN])


@pytest.mark.parametrize("where, read", [
    ({"load": 0.5}, (("load", (0.5,)),)),
    ({"load": [0.5, 0.75], "window": "3"}, (("load", (0.5, 0.75)), ("window", ("3",))))])
def test_where_a_claim_holds_is_one_value_or_some(where: Any, read: Any) -> None:
    assert made(claim(where=where)).claims[0].where == read
    assert made(claim()).claims[0].where == ()


@pytest.mark.parametrize("changes, taken", [
    ({"sweep": "only", "windows": ["3", "10"]}, True),
    ({"sweep": "only", "windows": ["3", "16"]}, False),
    ({"sweep": "other", "windows": ["3", "16"]}, True),
    ({"sweep": ["only", "other"], "windows": ["10", "16"]}, True),
    ({"sweep": ["only", "none"], "windows": ["3", "10"]}, False),
    ({"kind": "distribution", "by": "load"}, True), ({"kind": "hit", "series": "load"}, True),
    ({"series": "size"}, False)])
def test_a_figure_shows_windows_of_its_sweeps(changes: dict[str, Any], taken: bool) -> None:
    tables = {**figure(**changes), "sweep": [{"name": "only"}, {"name": "other",
                                                                "initcwnd": [3, 16]}]}
    if taken:
        assert len(made(tables).figures) == 1
    else:
        with pytest.raises(UsageError, match='\\[\\[figure\\]\\] "f": (sweep|windows|series)'):
            made(tables)


def test_a_place_that_two_values_make_is_measured_once() -> None:
    """The mean of sizes stands for every size that is asked for."""
    trials = expand(made(sizes="web_search", response_bytes=[5000, 9000], repeat=1), NOTHING, 1)
    assert [trial.window for trial in trials] == ["3", "10"]
    assert len({trial.response_bytes for trial in trials}) == 1


def test_a_network_that_is_asked_for_is_that_of_every_client() -> None:
    far = {"population": [{"name": "far", "clients": [[0.25, 300, 512, 1], [0.75, 100, 0, 0]]}]}
    scenario = made(far, population="far", mixes=[UNEVEN])
    changed = apply(scenario, Overrides({"rtt_ms": [50], "bandwidth_kbps": [777]}, 3))
    (sweep,) = changed.sweeps
    assert (sweep.rtt_ms, sweep.bandwidth_kbps, sweep.repeat) == (50, 777, 3)
    assert [link.rtt_ms for link in sweep.links] == [50, 50]
    assert [link.kbps for link in sweep.links] == [512, 0] and sweep.mixes
    narrower = apply(scenario, Overrides({"initcwnd": [7]}))
    assert narrower.sweeps[0].windows == (((7, 1.0),),)
    assert [link.rtt_ms for link in narrower.sweeps[0].links] == [300, 100]
    assert apply(scenario, NOTHING) == scenario
