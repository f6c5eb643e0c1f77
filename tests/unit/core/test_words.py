"""Numbers and names as people read them."""

from __future__ import annotations

import math

import pytest

from firstflight.base import command_line, words


def test_what_is_not_to_be_seen_becomes_a_space() -> None:
    assert words.visible_line("a\x1b[2Jb\nc\td\u202ee\ud800f\x9bg\ufffeh") == "a [2Jb c d e f g h"
    assert words.visible_line("10\u00a0ms – “x” ≤ −1 … →") == "10\u00a0ms – “x” ≤ −1 … →"
    assert words.visible_line("a\u061cb\u00adc\U000e0041d\ufff9e") == "a b c d e"


def test_what_is_printed_shows_the_escapes_of_invisible_characters(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert words.escaped("a\tb\nc\u202ed\x9b\u2028é") == "a\tb\nc\\u202ed\\u009b\\u2028é"
    command_line.say("run.sh: \x1b[2J\u0085x")
    assert command_line.print_while_read("claim \u202e") and capsys.readouterr() == (
        "claim \\u202e\n", "run.sh: \\u001b[2J\\u0085x\n")
    tomllib = pytest.importorskip("tomllib")
    hidden = "x\u202e\x7f\U000e0041"
    assert tomllib.loads(f"a = {words.format_toml(hidden)}")["a"] == hidden


@pytest.mark.parametrize("value, written", [
    (3.0, "3"), (0.1, "0.1"), (1e14, "100000000000000"), (1e15, "1e+15"), (2.50, "2.5"),
    (-4.0, "-4"), (1 / 3, "0.3333333333")])
def test_a_number_as_people_write_it(value: float, written: str) -> None:
    assert words.plain(value) == written


@pytest.mark.parametrize("value, written", [
    (100.00001, "100.00001"), (1e-7, "0.0000001"), (1e22, "10000000000000000000000"),
    (5.0, "5"), (0.1 + 0.2, "0.30000000000000004"), (math.inf, "inf"), (-math.inf, "-inf"),
    (200.0, "200")])
def test_every_digit_and_no_exponent(value: float, written: str) -> None:
    assert words.format_lossless(value) == written and float(written) == value


@pytest.mark.parametrize("value, digits, signed, written", [
    (None, 1, False, "–"), (-0.04, 1, False, "0.0"), (-0.06, 1, False, "−0.1"),
    (0.06, 1, True, "+0.1"), (1234.5, 0, False, "1234"), (2.345, 2, False, "2.35"),
    (-0.04, 1, True, "+0.0")])
def test_fixed_decimals(value: float | None, digits: int, signed: bool, written: str) -> None:
    assert words.format_number(value, digits, signed) == written


@pytest.mark.parametrize("value, written", [
    (99.9, "99.9"), (99.94, "99.9"), (99.96, "100"), (-99.96, "−100"), (None, "–"), (0.0, "0.0")])
def test_a_decimal_where_it_matters(value: float | None, written: str) -> None:
    assert words.format_brief(value) == written


@pytest.mark.parametrize("value, written", [(3.0, "3"), (3.25, "3.2"), (None, "–")])
def test_a_mean_of_counts(value: float | None, written: str) -> None:
    assert words.format_count(value) == written


def test_an_interval_and_a_span() -> None:
    assert words.format_interval((12.0, 14.53)) == "12.0 … 14.5"
    assert words.format_interval((-1.0, 2.0), 0) == "−1 … 2" and words.format_interval(None) == "–"
    assert words.format_range([5.0, None, 2.0, 120.4], "ms") == "2.0 to 120 ms"
    assert words.format_range([2.01, 2.04], "ms") == "2.0 ms"


@pytest.mark.parametrize("seconds, written", [
    (3.21, "3.2 s"), (119.9, "120 s"), (120, "2 min"), (7190, "120 min"), (7200, "2.0 h"),
    (9000, "2.5 h")])
def test_a_duration(seconds: float, written: str) -> None:
    assert words.format_duration(seconds) == written


@pytest.mark.parametrize("text, tight", [
    ("it took 5 ms or 3 % more", "it took 5\u00a0ms or 3\u00a0% more"),
    ("1 ± 2 s", "1\u00a0±\u00a02\u00a0s"), ("5 msgs and 6 s/x", "5 msgs and 6 s/x"),
    ("10 segments, 3 kbit/s", "10\u00a0segments, 3\u00a0kbit/s"), ("a ms", "a ms")])
def test_numbers_hold_to_their_units(text: str, tight: str) -> None:
    assert words.keep_units_together(text) == tight


def test_a_known_word_that_is_near() -> None:
    assert words.nearest("zhao2091", ["marrama2012", "zhao2019"]) == " (did you mean 'zhao2019'?)"
    assert words.nearest("x", iter(["zhao2019"])) == "" == words.nearest("x", [])
