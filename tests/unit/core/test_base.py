"""Numbers and names as text, quantities, statistics, and the progress that a run shows."""

from __future__ import annotations

import math
import os
import pty
import queue
import random
import select
import statistics

import pytest
from hypothesis import example, given, strategies

from firstflight.base import progress, stats, terminal, typed, words
from firstflight.base.errors import UsageError
from firstflight.base.progress import Progress
from firstflight.findings.quantities import QUANTITIES, of_column, quantity
from tests.running import HANGS_S


def test_visible_line_replaces_invisible_characters_by_spaces() -> None:
    assert words.visible_line("a\x1b[2Jb\nc\td\u202ee\ud800f\x9bg\ufffeh") == "a [2Jb c d e f g h"
    assert words.visible_line("10\u00a0ms – “x” ≤ −1 … →") == "10\u00a0ms – “x” ≤ −1 … →"
    assert words.visible_line("a\u061cb\u00adc\U000e0041d\ufff9e") == "a b c d e"


def test_escaped_shows_invisible_characters_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    assert words.escaped("a\tb\nc\u202ed\x9b\u2028é") == "a\tb\nc\\u202ed\\u009b\\u2028é"
    terminal.say("run.sh: \x1b[2J\u0085x")
    assert terminal.print_while_read("claim \u202e") and capsys.readouterr() == (
        "claim \\u202e\n", "run.sh: \\u001b[2J\\u0085x\n")
    tomllib = pytest.importorskip("tomllib")
    hidden = "x\u202e\x7f\U000e0041"
    assert tomllib.loads(f"a = {words.format_toml(hidden)}")["a"] == hidden


@pytest.mark.parametrize("value, written", [
    (3.0, "3"), (0.1, "0.1"), (1e14, "100000000000000"), (1e15, "1e+15"), (2.50, "2.5"),
    (-4.0, "-4"), (1 / 3, "0.3333333333")])
def test_plain_writes_a_number_as_people_do(value: float, written: str) -> None:
    assert words.plain(value) == written


@given(strategies.floats(allow_nan=False))
@example(5.0)
@example(1e22)
def test_format_lossless_keeps_every_digit_and_has_no_exponent(value: float) -> None:
    written = words.format_lossless(value)
    assert float(written) == value and "e" not in written and not written.endswith((".", ".0"))


@pytest.mark.parametrize("value, digits, signed, written", [
    (None, 1, False, "–"), (-0.04, 1, False, "0.0"), (-0.06, 1, False, "−0.1"),
    (0.06, 1, True, "+0.1"), (1234.5, 0, False, "1234"), (2.345, 2, False, "2.35"),
    (-0.04, 1, True, "+0.0")])
def test_format_number_writes_so_many_decimals(value: float | None, digits: int, signed: bool,
                                               written: str) -> None:
    assert words.format_number(value, digits, signed) == written


@pytest.mark.parametrize("value, written", [
    (99.9, "99.9"), (99.94, "99.9"), (99.96, "100"), (-99.96, "−100"), (None, "–"), (0.0, "0.0")])
def test_format_brief_writes_a_decimal_only_for_small_numbers(value: float | None,
                                                              written: str) -> None:
    assert words.format_brief(value) == written


@pytest.mark.parametrize("value, written", [(3.0, "3"), (3.25, "3.2"), (None, "–")])
def test_format_count_writes_a_mean_of_counts(value: float | None, written: str) -> None:
    assert words.format_count(value) == written


def test_intervals_and_ranges_are_written_with_their_ends() -> None:
    assert words.format_interval((12.0, 14.53)) == "12.0 … 14.5"
    assert words.format_interval((-1.0, 2.0), 0) == "−1 … 2" and words.format_interval(None) == "–"
    assert words.format_range([5.0, None, 2.0, 120.4], "ms") == "2.0 to 120 ms"
    assert words.format_range([2.01, 2.04], "ms") == "2.0 ms"


@pytest.mark.parametrize("seconds, written", [
    (3.21, "3.2 s"), (119.9, "120 s"), (120, "2 min"), (7190, "120 min"), (7200, "2.0 h"),
    (9000, "2.5 h")])
def test_format_duration_writes_seconds_minutes_and_hours(seconds: float, written: str) -> None:
    assert words.format_duration(seconds) == written


@pytest.mark.parametrize("text, tight", [
    ("it took 5 ms or 3 % more", "it took 5\u00a0ms or 3\u00a0% more"),
    ("1 ± 2 s", "1\u00a0±\u00a02\u00a0s"), ("5 msgs and 6 s/x", "5 msgs and 6 s/x"),
    ("10 segments, 3 kbit/s", "10\u00a0segments, 3\u00a0kbit/s"), ("a ms", "a ms")])
def test_a_number_and_its_unit_are_joined_by_a_no_break_space(text: str, tight: str) -> None:
    assert words.keep_units_together(text) == tight


def test_nearest_names_the_known_word_that_was_meant() -> None:
    assert words.nearest("zhao2091", ["marrama2012", "zhao2019"]) == " (did you mean 'zhao2019'?)"
    assert words.nearest("x", iter(["zhao2019"])) == "" == words.nearest("x", [])


def test_a_typo_is_answered_by_the_near_word_alone_and_another_word_by_all() -> None:
    known = ["rtt_ms", "queue", "qdisc"]
    assert words.nearest_or_known("rtt_mss", known) == " (did you mean 'rtt_ms'?)"
    assert words.nearest_or_known("x", known) == "; known: rtt_ms, queue, qdisc"
    assert words.nearest_or_known("x", []) == "; known: none"


# Quantities: their words and ranges are in golden/rendered ----------------------------

def test_whole_quantities_are_int_and_others_float() -> None:
    assert isinstance(QUANTITIES["initcwnd"].check(10.0, "here"), int)
    assert isinstance(QUANTITIES["rtt_ms"].check(20, "here"), float)


@pytest.mark.parametrize(("name", "value", "words"), [
    ("rtt_ms", math.inf, "inf is not a finite number"),
    ("loss_percent", 1e-8,
     "a loss rate of 1e-08 % is out of range; it can be 0, or 0.0001 to 99 %")])
def test_a_value_that_is_infinite_or_in_a_gap_of_the_range_is_refused(
        name: str, value: float, words: str) -> None:
    with pytest.raises(UsageError, match=f"^here: {words}$"):
        QUANTITIES[name].check(value, "here")


def test_a_column_that_is_no_quantity_is_named_by_its_words_and_has_no_range() -> None:
    assert of_column("not_listed").axis == "Not listed"
    assert of_column("not_listed").check(-1e9, "here") == -1e9


def test_a_misspelt_name_is_no_quantity() -> None:
    with pytest.raises(KeyError, match="rtt_msec"):
        quantity("rtt_msec")


# Statistics ---------------------------------------------------------------------------

def test_weighted_statistics_agree_with_the_unweighted() -> None:
    generator = random.Random(2)
    for count in range(1, 12):
        values = [generator.uniform(-5, 5) for _ in range(count)]
        for weight in (0.1, 1e9 / 3):
            ones = [weight] * count
            assert stats.weighted_mean(values, ones) == pytest.approx(statistics.fmean(values))
            assert stats.weighted_quantile(values, ones, 0.5) == pytest.approx(
                statistics.median(values))
    assert stats.weighted_quantile([1, 2, 3], [98, 1, 1], 0.5) == 1
    assert stats.weighted_quantile([1, 2, 3], [0, 1, 0], 0.0) == 2
    assert stats.weighted_quantile([1, 2, 3], [1, 1, 1], 1.0) == 3
    for refused in (lambda: stats.weighted_mean([], []),
                    lambda: stats.weighted_mean([1], [0]),  # no weight
                    lambda: stats.weighted_mean([1, 2], [1]),  # a weight is missing
                    lambda: stats.weighted_quantile([1], [1], 2)):  # a share over 1
        with pytest.raises(ValueError):
            refused()


def test_resampling_in_portions_of_any_size_draws_the_same_numbers(
        monkeypatch: pytest.MonkeyPatch) -> None:
    values = [float(value) for value in stats.generator(3).normal(100, 20, 37)]
    pairs = [(value, value / 2) for value in values]

    def drawn() -> list[float]:
        means = stats.resampled_means([values, values[:5]], [1.0, 2.0], stats.generator(1))
        both = stats.resampled_pairs([pairs, pairs[:5]], [1.0, 2.0], stats.generator(1))
        return [*means.tolist(), *both[0].tolist(), *both[1].tolist()]

    whole = drawn()
    for at_once in (10, 1000):
        monkeypatch.setattr(stats, "AT_ONCE", at_once)
        assert drawn() == pytest.approx(whole, rel=1e-12)


def test_a_resampled_mean_weights_its_strata() -> None:
    """Strata that do not vary give their weighted mean, whatever is drawn."""
    means = stats.resampled_means([[1.0] * 3, [4.0] * 2], [1.0, 2.0], stats.generator(1), 7)
    assert means.shape == (7,) and set(means) == {3.0}
    base, other = stats.resampled_pairs([[(1.0, 10.0)] * 3, [(4.0, 40.0)] * 2], [1.0, 2.0],
                                        stats.generator(1), 7)
    assert set(base.round(9)) == {3.0} and set(other.round(9)) == {30.0}
    assert len(stats.resampled_means([[1.0, 2.0]], [1.0], stats.generator(1))) == stats.RESAMPLES


def test_a_percentile_interval_leaves_equally_many_values_on_both_sides() -> None:
    values = stats.generator(1).permutation(1001).astype(float)
    assert stats.percentile_interval(values) == pytest.approx((25, 975))
    assert stats.percentile_interval(values, 0.5) == pytest.approx((250, 750))


def test_an_estimate_has_students_interval() -> None:
    assert stats.estimate([4.0]) == stats.Estimate(4.0, None, 1)
    made = stats.estimate([1.0, 2.0, 3.0, 6.0])
    # Half of it is t(0.975, 3) = 3.1824 times 2.1602, the standard deviation, over the root of 4.
    assert made.value == 3.0 and made.n == 4
    assert made.interval == pytest.approx((3 - 3.4374, 3 + 3.4374), abs=1e-3)
    with pytest.raises(ValueError, match="no values"):
        stats.estimate([])


@pytest.mark.parametrize("interval, sign", [
    (None, 0), ((0.1, 2.0), 1), ((0.0, 2.0), 0), ((-2.0, -0.1), -1), ((-2.0, 0.0), 0),
    ((-1.0, 1.0), 0)])
def test_an_estimate_has_a_sign_only_where_its_interval_excludes_0(
        interval: tuple[float, float] | None, sign: int) -> None:
    assert stats.Estimate(1.0, interval).sign == sign


def test_a_scaled_estimate_scales_its_interval() -> None:
    assert stats.Estimate(2.0, (1.0, 4.0), 3).scaled(10) == stats.Estimate(20.0, (10.0, 40.0), 3)
    assert stats.Estimate(2.0).scaled(0.5) == stats.Estimate(1.0)


# Progress -----------------------------------------------------------------------------

def test_off_a_terminal_progress_is_a_line_at_intervals(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(progress, "say", lines.put)
    monkeypatch.setattr(progress, "PLAIN_INTERVAL_S", 1000.0)
    with Progress(5, 2, "zhao2019") as shown:
        assert lines.get_nowait() == "zhao2019: 3 of 5 trials to measure"
        shown.step()
    assert shown.done == 3 and lines.empty() and not shown.reporter.is_alive()

    monkeypatch.setattr(progress, "PLAIN_INTERVAL_S", 0.001)
    with Progress(5, 2, "zhao2019"):  # no trial ends here, and lines come nevertheless
        assert lines.get(timeout=HANGS_S).endswith("to measure")
        for _ in range(2):
            assert lines.get(timeout=HANGS_S) == "zhao2019: 2 of 5 trials"
    assert capsys.readouterr().err == ""


def test_a_line_of_progress_has_the_time_left_once_a_trial_has_ended() -> None:
    shown = Progress(10, 2, "zhao2019")
    assert shown.line(30.0) == "zhao2019: 2 of 10 trials"
    shown.step("3 machines")
    assert shown.line(30.0) == "zhao2019: 3 of 10 trials, 3 machines, about 4 min left"
    shown.step()  # two in half a minute, since two of the four were there before
    assert shown.line(30.0) == "zhao2019: 4 of 10 trials, about 90.0 s left"
    shown.done = 10
    assert shown.line(30.0) == "zhao2019: 10 of 10 trials"


def test_a_line_of_progress_has_no_time_left_after_a_few_of_many_trials() -> None:
    """The first trials of a population waited half a minute for their guest to start."""
    shown = Progress(31_780, 0, "dukkipati2010")
    shown.done = 162
    assert shown.line(30.0) == "dukkipati2010: 162 of 31780 trials"
    shown.done = 3178
    assert shown.line(30.0).endswith(", about 4 min left")


def test_progress_writes_nothing_where_it_is_quiet_or_has_nothing_to_measure(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "PLAIN_INTERVAL_S", 0.001)
    for shown in (Progress(0, 0, "nothing"), Progress(5, 0, "zhao2019", quiet=True)):
        with shown as same:
            assert same is shown
            shown.step()
            assert not shown.reporter.is_alive()
    assert capsys.readouterr().err == ""


def shown_on(terminal: int) -> bytes:
    """The bytes that were written to a terminal. Fails where none come within 10 s."""
    assert select.select([terminal], [], [], 10)[0], "the terminal shows nothing"
    return os.read(terminal, 4096)


def test_on_a_terminal_the_bar_is_erased_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, terminal = pty.openpty()
    with os.fdopen(terminal, "w", buffering=1) as stream, os.fdopen(ours, "rb"):
        monkeypatch.setattr("sys.stderr", stream)
        with Progress(5, 2, "zhao2019") as shown:
            begun = shown_on(ours)
            assert b"zhao2019:  40%" in begun and b"2/5" in begun
            assert shown.bar is not None
            shown.bar.mininterval = 0
            shown.step()
            assert b"3/5" in shown_on(ours) and b"trial" in begun
        ended = shown_on(ours)
        assert b"to measure" not in begun and ended
        assert ended.replace(b"\r", b"").strip() == b""


@pytest.mark.parametrize("value", [1, 9.6, 20, 55.9, 56, 1500, 10_000_000])
@pytest.mark.parametrize("unit", ["kbit/s", "ms", "bytes"])
def test_a_number_that_is_written_as_it_is_typed_is_read_as_the_same_number(
        value: float, unit: str) -> None:
    word, = typed.expand_range(typed.typed_number(value, unit), unit, whole=False)
    assert typed.number(word, unit) == value
