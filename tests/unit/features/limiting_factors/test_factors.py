"""What decided on a cell, limit by limit, from records with what the packets would say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from study.fetches.figures.cells import WindowChange, changes, settings
from study.fetches.figures.limiting_factors import explained, reasons
from study.fetches.verify.limits import CONGESTION_WINDOW, PACING, RECEIVE_WINDOW, SEND_BUFFER
from tests.golden import stored_fetches

LARGE: dict[str, Any] = {"response_bytes": 60_000}
QUIET: dict[str, Any] = {"retransmissions": 0, "lost_segments": 0, "queue_drops": 0,
                         "random_drops": 0, "retransmission_cause": "", "seen_first_flight": 3,
                         "response_round_trips": 3}


def change(base: dict[str, Any] | None = None, larger: dict[str, Any] | None = None,
           rtt_ms: float = 100.0, **trial: Any) -> WindowChange:
    """A cell of the golden run, 1 Mbit/s, with other values."""
    records = [replace(record, header_bytes=61, trial=replace(record.trial, **trial), **{
            **QUIET, **((base if record.trial.initcwnd == 3 else larger) or {})})
        for record in stored_fetches.stored("zhao2019")
        if (record.trial.rtt_ms, record.trial.bandwidth_kbps) == (rtt_ms, 1000)]
    (made,) = changes(settings(records))
    return made


def words(of: WindowChange) -> list[tuple[str, str]]:
    return [(reason.word, reason.text) for reason in reasons(of)]


@pytest.mark.parametrize("limited, word, text", [
    ({"limited_by": SEND_BUFFER, "seen_first_flight": 7}, SEND_BUFFER,
     "the send buffer let 7 of 10 segments leave at first"),
    ({"limited_by": CONGESTION_WINDOW, "seen_first_flight": 3}, CONGESTION_WINDOW,
     "the congestion window let 3 of 10 segments leave at first"),
    ({"limited_by": RECEIVE_WINDOW, "seen_first_flight": 8}, RECEIVE_WINDOW,
     "the receive window let 8 of 10 segments leave at first (set a larger net.ipv4.tcp_rmem)")])
def test_what_limited_the_larger_window_is_named(limited: dict[str, Any], word: str, text: str
                                                 ) -> None:
    said = words(change({"seen_first_flight": 3}, limited, **LARGE))
    assert said[0] == (word, text) and said[1][0] == "not known"


def test_two_limits_stand_in_one_sentence() -> None:
    one = change({"seen_first_flight": 3}, {"limited_by": SEND_BUFFER, "seen_first_flight": 6},
                 **LARGE)
    other = replace(one.experiment.records[0], limited_by=PACING, seen_first_flight=7)
    both = replace(one, experiment=replace(one.experiment,
                                           records=[*one.experiment.records, other]))
    assert words(both)[0] == ("pacing, send buffer", "the pacing and the send buffer let 6.5 of"
                              " 10 segments leave at first")


@pytest.mark.parametrize(("more_bytes", "fits"), [(0, True), (1, False)])
def test_a_response_fits_to_its_last_byte(more_bytes: int, fits: bool) -> None:
    """Three segments hold 4344 bytes, of which the head takes 61."""
    same = {"total_ms": 280.0}
    said = words(change(same, same, response_bytes=3 * 1448 - 61 + more_bytes))
    assert said == ([("response size", "a larger window cannot help: the whole response (3"
                      " segments) left at once with 3")] if fits else [])


def test_losses_keep_a_response_that_fits_open() -> None:
    """What is lost may well be changed by the window."""
    same = {"total_ms": 280.0}
    assert words(change(same, {"random_drops": 1, **same}, response_bytes=3 * 1448 - 61)) == []


LOST = [("queue_drops", "queue", "the queue of 5 packets dropped {} with 3 segments and"
         " {} with 10"),
        ("random_drops", "random loss", "random loss took {} with 3"
         " segments and {} with 10")]


@pytest.mark.parametrize(("column", "word", "text"), LOST)
@pytest.mark.parametrize(("base", "larger", "late_ms", "is_said"), [
    ((0, 900.0), (7, 990.0), 90.0, True), ((2, 990.0), (0, 900.0), -90.0, True),
    ((0, 900.0), (7, 990.0), 73.0, True), ((0, 900.0), (7, 990.0), 71.0, False),
    ((0, 900.0), (7, 810.0), -90.0, False), ((9, 900.0), (1, 990.0), 90.0, False)])
def test_losses_are_the_reason_where_they_took_four_fifths_of_the_difference(
        base: tuple[int, float], larger: tuple[int, float], late_ms: float, is_said: bool,
        column: str, word: str, text: str) -> None:
    """late_ms: what the larger window lost against the model that loses nothing."""
    both = [{column: count, "total_ms": total_ms, "model_ms": 900.0 if count == 0 else
             total_ms - abs(late_ms)} for count, total_ms in (base, larger)]
    said = words(change(both[0], both[1], queue_packets=5, **LARGE))
    if is_said:
        assert said == [(word, text.format(
            f"{base[0]} packets" if base[0] else "no packet", larger[0] or "none"))]
    else:
        assert said[0][0] == "not known" and said[0][1].startswith("the cause is not known; what")


def test_two_kinds_of_loss_have_no_reason() -> None:
    made = change({"total_ms": 900.0, "model_ms": 900.0},
                  {"total_ms": 990.0, "model_ms": 900.0, "queue_drops": 4, "random_drops": 1})
    assert words(made) == [("not known", "the cause is not known; what differs most in the"
                            " packets: packets dropped by the queue, 0 with 3 segments and 4 with"
                            " 10; packets lost at random, 0 with 3 segments and 1 with 10")]


# In sentences -------------------------------------------------------------------------

def test_what_is_the_same_everywhere_is_said_once() -> None:
    one, other = (change({"queue_drops": 0, "total_ms": 900.0 - rtt_ms, "model_ms": 900.0 - rtt_ms},
                         {"queue_drops": 7, "total_ms": 950.0, "model_ms": 900.0 - rtt_ms},
                         rtt_ms=rtt_ms, queue_packets=5, **LARGE) for rtt_ms in (100.0, 200.0))
    line = "the queue of 5 packets dropped no packet with 3 segments and 7 with 10."
    assert explained([one]) == [f"T{line[1:]}"]
    assert explained([one, other]) == [f"Everywhere: {line}"]
    alike = {"total_ms": 900.0, "seen_first_flight": 2}
    fits = change(alike, alike, response_bytes=2000, rtt_ms=500.0)
    assert explained([one, other, fits]) == [
        f"In 2 of 3 comparisons: {line[:-1]} (RTT 200 ms, queue 5 packets, size 60"
        " kB, 3 → 10).",
        "In 1 of 3 comparisons: a larger window cannot help: the whole response (2 segments) left"
        " at once with 3 (RTT 500 ms, queue 1000 packets, size 2 kB, 3 → 10)."]
    assert explained([]) == []


def test_waits_for_a_receive_window_are_counted_where_no_cause_is_known() -> None:
    (found,) = words(change({"receive_window_waits": 0}, {"receive_window_waits": 24}))
    assert "waits for the receive window, 0 with 3 segments and 24 with 10" in found[1]


# Flights ------------------------------------------------------------------------------

FLIGHTS = {"response_flights": "3+6+33", "response_round_trips": 3}


@pytest.mark.parametrize("larger, saved_ms, word", [
    ({"response_flights": "3+6+33", "response_round_trips": 3}, 0.4, "same flights"),
    ({"response_flights": "10+32", "response_round_trips": 2}, 115.0, "round trips"),
    ({"response_flights": "10+32", "response_round_trips": 2}, 144.0, "round trips"),
    ({"response_flights": "10+32", "response_round_trips": 2}, 146.0, "not known"),
    ({"response_flights": "10+32", "response_round_trips": 2}, -90.0, "not known")])
def test_flights_say_why_a_window_saves_time_or_not(larger: dict[str, Any], saved_ms: float,
                                                    word: str) -> None:
    """At 1 Mbit/s a segment takes 12.1 ms: of 100 the link waits 75.8 and 39.4 ms, and none."""
    made = change({"total_ms": 900.0, **FLIGHTS}, {"total_ms": 900.0 - saved_ms, **larger},
                  **LARGE)
    ((said, text),) = words(made)
    assert said == word
    assert word == "not known" or "3+6+33" in text and larger["response_flights"] in text


def test_a_link_that_never_waits_is_the_reason_why_nothing_changes() -> None:
    same = {"total_ms": 900.0}
    ((word, _),) = words(change({**same, "response_flights": "10+32", "response_round_trips": 2},
                                {**same, "response_flights": "42", "response_round_trips": 1},
                                **LARGE))
    assert word == "bandwidth"


def test_of_an_older_run_without_flights_nothing_is_said() -> None:
    older = {"response_round_trips": None}
    assert words(change({"total_ms": 900.0, **older}, {"total_ms": 785.0, **older})) == []


def test_flights_are_no_reason_where_something_was_sent_again() -> None:
    made = change({"total_ms": 900.0, **FLIGHTS}, {
        "total_ms": 785.0, "response_flights": "10+32", "response_round_trips": 2,
        "retransmissions": 1}, **LARGE)
    assert [word for word, _ in words(made)] == ["not known"]


def test_as_many_flights_with_less_in_the_last_are_counted() -> None:
    last = {"response_round_trips": 2}
    (word, text), = words(change({"total_ms": 250.0, "response_flights": "10+18", **last},
                                 {"total_ms": 244.0, "response_flights": "20+8", **last},
                                 bandwidth_kbps=20_000, **LARGE))
    assert word == "round trips" and text.startswith(
        "the response takes 2 flights with either window (10+18 and 20+8), and the link waits"
        " between them 94.5 ms with 3 segments and 88.5 with 10")


@pytest.mark.parametrize(("rtt_ms", "base_ms", "saved_ms", "effect"), [
    (0.2, 0.9, 0.2, 1), (0.2, 1.9, -0.1, -1), (100.0, 417.0, 0.6, 0), (100.0, 5000.0, 40.0, 1),
    (100.0, 5000.0, 9.0, 0), (50.0, 200.5, 0.4, 0), (100.0, 500.0, 5.1, 1)])
def test_an_effect_is_a_hundredth_of_the_time_or_a_tenth_of_a_round_trip(
        rtt_ms: float, base_ms: float, saved_ms: float, effect: int) -> None:
    """In a data centre 0.2 ms are a quarter; of a second over a satellite they are nothing."""
    made = change({"total_ms": base_ms}, {"total_ms": base_ms - saved_ms})
    requested = replace(made.base.requested, rtt_ms=rtt_ms)
    assert replace(made, base=replace(made.base, requested=requested)).effect == effect
