"""How far the numbers of several runs lie apart: lines that agree but for numbers, two states."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from firstflight.commands.virtual.spread import (Row, as_json, line_rows, numbers_of, table,
                                                 two_states)

IPERF3 = "[  5]   0.00-{}  sec  {} MBytes  {} Mbits/sec                  receiver"
# Unimodal distributions, of positive values.
UNIMODAL: dict[str, Callable[[random.Random], float]] = {
    "uniform": lambda draw: draw.uniform(0.0, 100.0),
    "uniform, far from 0": lambda draw: draw.uniform(100.0, 200.0),
    "normal": lambda draw: abs(draw.gauss(50.0, 10.0)),
    "a wide normal": lambda draw: abs(draw.gauss(50.0, 25.0)),
    "exponential": lambda draw: draw.expovariate(0.1),
    "lognormal": lambda draw: draw.lognormvariate(0.0, 1.0),
    "triangular": lambda draw: draw.triangular(0.0, 90.0, 90.0),
    "a sum of dice": lambda draw: float(sum(draw.randrange(6) for _ in range(4))),
    "counts": lambda draw: float(sum(draw.random() < 0.1 for _ in range(200)))}


@pytest.mark.parametrize("runs", [8, 12, 20, 40])
@pytest.mark.parametrize("name", UNIMODAL)
def test_no_states_are_named_where_there_are_none(name: str, runs: int) -> None:
    """At most 1 % of 400 samples of one state; two_states reports 4 in 1000 of 40,000."""
    draw = random.Random(f"{name} {runs}")
    named = sum(bool(two_states([UNIMODAL[name](draw) for _ in range(runs)])) for _ in range(400))
    assert named <= 4


@pytest.mark.parametrize("runs", [16, 20, 40])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_two_states_as_the_known_network_has_them_are_named(runs: int, share: float) -> None:
    """16 to 23 Mbit/s or 65 to 90: so a script of a bridge and a short queue comes out."""
    draw = random.Random(runs)
    named = 0
    for _ in range(100):
        low = round(share * runs)
        values = [draw.uniform(16.0, 23.0) for _ in range(low)] + [
            draw.uniform(65.0, 90.0) for _ in range(runs - low)]
        draw.shuffle(values)
        states = two_states(values)
        if states:
            named += 1
            assert [state.count for state in states] == [low, runs - low]
    assert named == 100


@pytest.mark.parametrize("values", [
    [1.0, 2.0] * 3,  # too few runs
    [9.57] * 8 + [9.58] * 8,  # apart by less than a fifth
    [0.0] * 8 + [1.0] * 8, [2.0] * 6 + [6.0] * 6,  # counts that are apart by less than 5
    [20.0] * 15 + [86.0],  # a state of one run
    [5.0] * 12, [0.0] * 12])
def test_what_is_no_state(values: list[float]) -> None:
    assert two_states(values) == ()


def test_states_have_their_range_and_share() -> None:
    low, high = two_states([20.8, 86.6, 20.9, 20.8, 86.0, 21.0, 20.7, 20.8, 86.1, 20.6])
    assert (low.least, low.largest, low.count, low.share) == (20.6, 21.0, 7, 0.7)
    assert (high.least, high.largest, high.count, high.share) == (86.0, 86.6, 3, 0.3)


def test_no_loss_at_all_is_a_state() -> None:
    low, high = two_states([0.0, 0.0, 51.0, 0.0, 55.0, 0.0, 50.0, 0.0, 53.0, 0.0, 0.0, 52.0])
    assert (low.count, high.count, high.least) == (7, 5, 50.0)


@pytest.mark.parametrize(("line", "form", "values"), [
    (IPERF3.format("10.04", "20.5", "16.8"), "[ {}] {}-{} sec {}Bytes {}bits/sec receiver",
     [5, 0, 10.04, 20.5, 16.8]),
    ("64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=104 ms",
     "{} bytes from 10.0.0.2: icmp_seq={} ttl={} time={} ms", [64, 1, 64, 104]),
    ("rtt min/avg/max/mdev = 40.0/47.2/104.4/19.0 ms", "rtt min/avg/max/mdev = {}/{}/{}/{} ms",
     [40.0, 47.2, 104.4, 19.0]),
    ("local 10.0.0.1 port 36230 connected to 10.0.0.2 port 5201",
     "local 10.0.0.1 port 36230 connected to 10.0.0.2 port 5201", []),
    ("h1-eth0 at aa:bb:0c:1d:2e:3f, s1", "h1-eth0 at aa:bb:0c:1d:2e:3f, s1", []),
    ("took -3.5e-3 s, {x} 12%", "took {} s, (x) {}%", [-0.0035, 12])])
def test_the_numbers_of_a_line(line: str, form: str, values: list[float]) -> None:
    found, numbers = numbers_of(line)
    assert (found, [number.value for number in numbers]) == (form, values)


def test_lines_that_agree_but_for_numbers_make_a_row_for_each_number_that_differs() -> None:
    runs = [[IPERF3.format("10.04", 20.5 + run, 16.8 + run), "5 hosts"] for run in range(3)]
    first, second = line_rows(runs)
    assert first.name == "[ 5] 0.00-10.04 sec _ MBytes # Mbits/sec receiver"
    assert first.values == (20.5, 21.5, 22.5) and second.values == (16.8, 17.8, 18.8)
    assert second.name == "[ 5] 0.00-10.04 sec # MBytes _ Mbits/sec receiver"


def test_a_prefix_that_changes_belongs_to_the_number() -> None:
    (row,) = line_rows([["sent 980 KBytes"], ["sent 1.5 MBytes"], ["sent 2 MBytes"]])
    assert row.name == "sent _Bytes" and row.values == (980 * 1024, 1.5 * 1024 ** 2, 2 * 1024 ** 2)


def test_a_line_that_comes_several_times_is_compared_in_order() -> None:
    rows = line_rows([["a 1", "a 2", "b 7"], ["a 3", "b 8"], ["a 5", "a 6", "b 9"]])
    assert [(row.name, row.values) for row in rows] == [
        ("b _", (7, 8, 9)), ("a _", (1, 3, 5)), ("a _", (2, None, 6))]


def test_a_line_of_one_run_is_no_row() -> None:
    assert line_rows([["only here 1"], ["no number"]]) == []


def test_the_table_has_median_range_each_and_states() -> None:
    rates = (20.8, 86.6, 20.9, 20.8, 86.0, 21.0, 20.7, 20.8, 86.1, 20.6)
    told = table([Row("h1 → h2: goodput", rates, "Mbit/s"),
                  Row("h1 → h2: losses", (0.0,) * 10)],
                 line_rows([[f"{number} Mbit/s"] for number in rates]), len(rates))
    assert "median 20.85 Mbit/s, range 20.6–86.6; each: 20.8 86.6 20.9" in told
    assert "two states: 20.6–21 in 70 % (7 runs), 86–86.6 in 30 % (3 runs)" in told
    assert "losses" not in told and "\n_ Mbit/s\n" in told


def test_the_table_says_where_nothing_differs() -> None:
    assert "printed numbers: none that differ" in table([], [], 8)
    assert "TCP connections: 1, the same in all runs" in table([Row("a", (1.0,) * 8)], [], 8)
    assert "in 8 runs and more" in table([], [], 3)


def test_the_json_has_each_value_and_the_states() -> None:
    (row,) = as_json([Row("rate", (1.0, None, 3.0), "Mbit/s")])
    assert row == {"name": "rate", "unit": "Mbit/s", "median": 2.0, "range": [1.0, 3.0],
                   "each": [1.0, None, 3.0], "states": []}


def test_a_name_from_a_script_has_no_invisible_character() -> None:
    assert "\x1b" not in table([], line_rows([["\x1b[31m1"], ["\x1b[31m2"]]), 2)
