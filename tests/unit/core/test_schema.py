"""Tables read as dataclasses: what is accepted, and how each fault is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from firstflight.base.errors import UsageError
from firstflight.runs import schema
from firstflight.runs.schema import key


@dataclass(frozen=True)
class Example:
    """One field of each sort."""

    name: str = key(reader=schema.file_name)
    rtt_ms: tuple[float, ...] = key()
    initcwnd: int = key()
    kind: Literal["plain", "fancy"] = "plain"
    warm: bool = False
    baseline: int | None = key(None, quantity="initcwnd")
    loss: tuple[float, ...] = key((0.0,), name="loss_percent", reader=schema.one_or_more(
        schema.number("loss_percent")))
    by: str = "rtt_ms"
    values: tuple[float, ...] = key((), quantity_in="by")
    labels: tuple[str, ...] = ()
    place: int = key(0, absent=True)

    def check(self, where: str) -> None:
        if self.baseline == self.initcwnd:
            raise UsageError(f"{where}: compares {self.initcwnd} with itself")


LEAST: dict[str, Any] = {"name": "a", "rtt_ms": [20, 50], "initcwnd": 10}


def test_a_table_becomes_the_dataclass() -> None:
    made = schema.read(Example, LEAST, "here")
    assert made == Example("a", (20.0, 50.0), 10)
    made = schema.read(Example, {
        **LEAST, "kind": "fancy", "warm": True, "baseline": 3, "loss_percent": 2,
        "by": "initcwnd", "values": [3, 10], "labels": ["x"]}, "here",
        place=7)
    assert made == Example("a", (20.0, 50.0), 10, "fancy", True, 3, (2.0,), "initcwnd", (3, 10),
                           ("x",), 7)


def test_the_class_is_the_list_of_keys() -> None:
    assert schema.keys_of(Example) == (
        "name", "rtt_ms", "initcwnd", "kind", "warm", "baseline", "loss_percent", "by", "values",
        "labels")


@pytest.mark.parametrize(("change", "words"), [
    ({"initcwmd": 3}, "here: unknown key 'initcwmd' (did you mean 'initcwnd'?); known: name, "),
    ({"place": 3}, "here: unknown key 'place'"),
    ({"loss": 3}, "here: unknown key 'loss'"),
    ({"name": 3}, "here: name has to be a string, it is 3"),
    ({"name": "../a"}, "here: name becomes a file name: a-z, 0-9 and _ only"),
    ({"rtt_ms": 20}, "here: rtt_ms: has to be a list of numbers, it is 20"),
    ({"rtt_ms": []}, "here: rtt_ms: has to be a list of numbers, it is []"),
    ({"rtt_ms": [20, 20.0]}, "here: rtt_ms: has a value twice"),
    ({"rtt_ms": [20, -1]}, "here: rtt_ms: an RTT of -1 ms is out of range"),
    ({"initcwnd": "3"}, "here: initcwnd: '3' is not a number"),
    ({"initcwnd": 3.5}, "here: initcwnd: 3.5 is not a whole number"),
    ({"kind": "fanci"}, "here: kind: unknown 'fanci' (did you mean 'fancy'?); known: plain,"),
    ({"warm": 1}, "here: warm has to be true or false, it is 1"),
    ({"baseline": 0}, "here: baseline: an initial window of 0 segments"),
    ({"baseline": 10}, "here: compares 10 with itself"),
    ({"loss_percent": [0, 101]}, "here: loss_percent: a loss rate of 101 %"),
    ({"by": "initcwnd", "values": [0]}, "here: values: an initial window of 0 segments"),
    ({"labels": [1]}, "here: labels has to be a string, it is 1"),
])
def test_a_fault_names_table_and_key(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        schema.read(Example, {**LEAST, **change}, "here")
    assert str(caught.value).startswith(words) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", LEAST)
def test_a_required_key_is_missed(name: str) -> None:
    with pytest.raises(UsageError, match=f"^here: {name} is missing$"):
        schema.read(Example, {key: value for key, value in LEAST.items() if key != name}, "here")


def test_tables_have_defaults_and_names() -> None:
    raw = {"net": [{"name": "a"}, {"name": "b", "initcwnd": 3}]}
    first, second = schema.read_tables(Example, raw, "net", "file",
                                       defaults={"rtt_ms": [1], "initcwnd": 10})
    assert (first.initcwnd, second.initcwnd) == (10, 3)
    assert schema.read_tables(Example, {}, "net", "file") == ()


@pytest.mark.parametrize(("tables", "words"), [
    ([LEAST, LEAST], 'file: [[net]] "a": there are two of them'),
    ([{"name": 3}], "file: [[net]] 1: name has to be a string"),
    ([{**LEAST, "colour": 1}], "file: [[net]] \"a\": unknown key 'colour'"),
    ({"a": 1}, "file: net has to be tables, [[net]]"),
    ([1], "file: net has to be tables, [[net]]"),
])
def test_faults_of_tables(tables: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        schema.read_tables(Example, {"net": tables}, "net", "file")
    assert str(caught.value).startswith(words)


def test_a_table_that_is_none() -> None:
    assert schema.table({}, "defaults", "file") == {}
    with pytest.raises(UsageError, match=r"file: defaults has to be a table, \[defaults\]"):
        schema.table({"defaults": [1]}, "defaults", "file")


def test_lists_may_repeat_or_be_empty_where_that_is_said() -> None:
    share = schema.number("shares_percent")
    assert schema.values(share, distinct=False)([50, 50], "here") == (50, 50)
    assert schema.values(share, empty=True)([], "here") == ()


@pytest.mark.parametrize("name", ["", "cu bic", "; rm", "a" * 16, 3])
def test_what_no_algorithm_is_called(name: Any) -> None:
    with pytest.raises(UsageError, match="here: .* is not the name of an algorithm"):
        schema.number("congestion_control")(name, "here")
