"""What a scenario of kind load may not say, and how places on its axes are written."""

from __future__ import annotations

from typing import Any

import pytest

from lab.core.errors import UsageError
from lab.load.runs import describe, name_of, named
from tests.unit.load.test_scenario import claim, figure, made


@pytest.mark.parametrize("tables, defaults, message", [
    (figure(by=""), {}, '"f": by: unknown \'\''), (figure(kind="gain", by=None), {}, "by"),
    ({"figure": [{key: value for key, value in figure()["figure"][0].items() if key != "by"}]},
     {}, '"f": by is missing; known: load, response_bytes, queue_bdp, connections, variant,'
     " window"),
    (figure(windows=["3"]), {}, "windows has to be a list of two or more, the baseline first"),
    (claim(where=0.5), {}, "where has to be a table like {load = [0.5]}"),
    (claim(compares=["3"]), {}, "compares has to be two windows"),
    ({"sweep": [{"name": "only", "clients": 0}]}, {}, "clients")])
def test_what_is_wrong_is_told_with_its_place(tables: dict[str, Any], defaults: dict[str, Any],
                                              message: str) -> None:
    with pytest.raises(UsageError) as refused:
        made(tables, **defaults)
    assert message in str(refused.value)


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
