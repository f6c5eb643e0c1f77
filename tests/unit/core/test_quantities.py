"""Quantities: ranges, and the words in which a value is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from base.errors import UsageError
from findings.quantities import FLAGS, QUANTITIES, quantity
from findings.quantity import Quantity


@pytest.mark.parametrize("known", QUANTITIES.values(), ids=QUANTITIES)
def test_limits_themselves_are_allowed_and_nothing_beyond(known: Quantity) -> None:
    for end, sign in ((known.lowest, -1), (known.highest, 1)):
        if math.isfinite(end):
            assert known.check(end, "here") == end
            with pytest.raises(UsageError, match="^here: .*out of range; it can be"):
                known.check(end + sign, "here")


@pytest.mark.parametrize(("name", "value", "words"), [
    ("rtt_ms", 0, "here: an RTT of 0 ms is out of range; it can be 0.1 to 100000 ms; over longer"
                  " ones Linux's timers give the connection up (measured: from 101 s on)"),
    ("rtt_ms", "20", "here: '20' is not a number"),
    ("rtt_ms", True, "here: True is not a number"),
    ("rtt_ms", math.nan, "here: nan is not a finite number"),
    ("rtt_ms", math.inf, "here: inf is not a finite number"),
    ("initcwnd", 3.5, "here: 3.5 is not a whole number"),
    ("initcwnd", 16**300, "here: a number of 301 hexadecimal digits is out of range"),
    ("jitter_ms", 15_000, "here: a jitter of 15000 ms is out of range; it can be 0, or 0.001 to 2147"
     " ms (netem holds no more nanoseconds than 31 bits, and tc whole microseconds)"),
    ("loss_percent", 1e-8, "here: a loss rate of 1e-08 % is out of range; it can be 0, or 0.0001 to"
     " 99 %"),
    ("load", 2, "here: an offered load of 2 is out of range; it can be 0.001 to 1 (over 1 the"
                " queue only grows, and no run is long enough)"),
])
def test_a_value_is_refused_in_one_line(name: str, value: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        QUANTITIES[name].check(value, "here")
    assert str(caught.value) == words


def test_whole_quantities_are_int_and_others_float() -> None:
    assert isinstance(QUANTITIES["initcwnd"].check(10.0, "here"), int)
    assert isinstance(QUANTITIES["rtt_ms"].check(20, "here"), float)


def test_words_for_people() -> None:
    assert QUANTITIES["rtt_ms"].axis == "RTT (ms)"
    assert QUANTITIES["bandwidth_kbps"].axis == "Bandwidth (kbit/s)"
    assert quantity("not_listed").axis == "Not listed"
    assert quantity("not_listed").check(-1e9, "here") == -1e9


def test_flags_are_told_apart() -> None:
    flags = [known.flag for known in FLAGS.values()]
    assert len(set(flags)) == len(flags) and "--rtt" in flags
    assert all(known.flag_help for known in FLAGS.values())
