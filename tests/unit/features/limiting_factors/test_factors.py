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


def change(base: dict[str, Any] | None = None, larger: dict[str, Any] | None = None,
           rtt_ms: float = 100.0, **trial: Any) -> WindowChange:
    """A cell of the golden run, 1 Mbit/s, with other values."""
    records = [replace(record, header_bytes=61, trial=replace(record.trial, **trial), **(
        (base if record.trial.initcwnd == 3 else larger) or {}))
        for record in stored_fetches.stored("zhao2019")
        if (record.trial.rtt_ms, record.trial.bandwidth_kbps) == (rtt_ms, 1000)]
    (made,) = changes(settings(records))
    return made


def words(of: WindowChange) -> list[tuple[str, str]]:
    return [(reason.word, reason.text) for reason in reasons(of)]


@pytest.mark.parametrize("limited, word, text", [
    ({"limited_by": SEND_BUFFER, "seen_first_flight": 7}, SEND_BUFFER,
     "the send buffer let 7.0 of 10 segments leave at first"),
    ({"limited_by": CONGESTION_WINDOW, "seen_first_flight": 3}, CONGESTION_WINDOW,
     "the congestion window let 3.0 of 10 segments leave at first"),
    ({"limited_by": RECEIVE_WINDOW, "seen_first_flight": 8}, RECEIVE_WINDOW,
     "the client's receive window, 27 segments, lets only 8 of 10 leave at first: a larger"
     " window cannot help further (set a larger net.ipv4.tcp_rmem)")])
def test_what_limited_the_larger_window_is_named(limited: dict[str, Any], word: str, text: str
                                                 ) -> None:
    assert words(change({"seen_first_flight": 3}, limited, **LARGE)) == [(word, text)]


def test_two_limits_stand_in_one_sentence() -> None:
    one = change({"seen_first_flight": 3}, {"limited_by": SEND_BUFFER, "seen_first_flight": 6},
                 **LARGE)
    other = replace(one.experiment.records[0], limited_by=PACING, seen_first_flight=7)
    both = replace(one, experiment=replace(one.experiment,
                                           records=[*one.experiment.records, other]))
    assert words(both) == [("pacing, send buffer", "the pacing and the send buffer let 6.5 of 10"
                            " segments leave at first")]


@pytest.mark.parametrize("more_ms, decides", [(-0.01, True), (0.01, False)])
def test_the_bandwidth_decides_where_it_takes_three_fifths_of_the_time(more_ms: float,
                                                                       decides: bool) -> None:
    """60,000 bytes and 42 headers of 66 at 1 Mbit/s: 502.2 ms, and 0.6 of 837 ms."""
    sending_ms = (60_000 + 42 * 66) * 8 / 1000
    base = sending_ms / 0.6 + more_ms
    made = change({"total_ms": base}, {"total_ms": 500.0}, **LARGE)
    said = [("bandwidth", f"the bandwidth decides: 502 of {base:.0f} ms is the time that the link"
             " needs for the bytes, which no window changes")]
    assert words(made) == (said if decides else [])


@pytest.mark.parametrize(("more_bytes", "fits"), [(0, True), (1, False)])
def test_a_response_fits_to_its_last_byte(more_bytes: int, fits: bool) -> None:
    """Three segments hold 4344 bytes, of which the head takes 61."""
    times = {"total_ms": 280.0}, {"total_ms": 280.0 if fits else 180.0}
    said = words(change(*times, response_bytes=3 * 1448 - 61 + more_bytes))
    assert said[0][1] == ("a larger window cannot help: the whole response (3 segments) fits in 3"
                          if fits else "10 segments hold the whole response (4 segments): a larger"
                          " window cannot help further")


def test_random_losses_keep_a_response_that_fits_open() -> None:
    """What is lost may well be changed by the window."""
    fits = change(None, {"random_drops": 1}, response_bytes=2000)
    assert words(fits)[0][1].startswith("10 segments hold the whole response (2 segments)")
    same = {"total_ms": 200.0}
    assert words(change(same, same, response_bytes=1000))[0] == (
        "response size", "a larger window cannot help: the whole response (1 segment) fits in 3")


@pytest.mark.parametrize("base, larger, saved_ms, text", [
    (0, 7, -90, "7 packets with 10 segments and none with 3"),
    (0, 7, 90, "7 packets with 10 segments and none with 3, and still it was faster"),
    (2, 0, 90, "none with 10 segments and 2 with 3"),
    (9, 1, -90, "1 packet with 10 segments and 9 with 3: fewer, but the first loss ends slow"
     " start, and came before the window had grown"),
    (1.5, 2.5, -90, "2.5 packets with 10 segments and 1.5 with 3")])
def test_what_the_queue_dropped_is_named_as_far_as_it_explains_the_time(
        base: float, larger: float, saved_ms: float, text: str) -> None:
    made = change({"queue_drops": base, "total_ms": 900.0},
                  {"queue_drops": larger, "total_ms": 900.0 - saved_ms}, queue_packets=5, **LARGE)
    assert words(made) == [("queue", f"the queue of 5 packets dropped {text}")]


def test_without_headers_seen_nothing_is_said_of_the_size() -> None:
    made = change()
    blind = replace(made, base=replace(made.base, records=[
        replace(record, header_bytes=None) for record in made.base.records]), experiment=replace(
            made.experiment, records=[replace(record, header_bytes=None)
                                      for record in made.experiment.records]))
    assert words(blind) == []


# In sentences -------------------------------------------------------------------------

def test_what_is_the_same_everywhere_is_said_once() -> None:
    one, other = (change({"queue_drops": 0, "total_ms": 900.0 - rtt_ms},
                         {"queue_drops": 7, "total_ms": 950.0}, rtt_ms=rtt_ms, queue_packets=5,
                         **LARGE) for rtt_ms in (100.0, 200.0))
    line = "the queue of 5 packets dropped 7 packets with 10 segments and none with 3."
    assert explained([one]) == [f"T{line[1:]}"]
    assert explained([one, other]) == [f"Everywhere: {line}"]
    fits = change({"total_ms": 900.0}, {"total_ms": 900.0}, response_bytes=2000, rtt_ms=500.0)
    assert explained([one, other, fits]) == [
        f"In 2 of 3 comparisons: {line[:-1]} (RTT 200 ms, queue 5 packets, size 60"
        " kB, 3 → 10).",
        "In 1 of 3 comparisons: a larger window cannot help: the whole response (2 segments) fits"
        " in 3 (RTT 500 ms, queue 1000 packets, size 2 kB, 3 → 10)."]
    assert explained([]) == []


def test_a_receive_window_that_held_later_flights_back_is_named() -> None:
    """As the one that held the first one back, but not besides it."""
    found = words(change({"receive_window_waits": 0}, {"receive_window_waits": 24}))
    assert (RECEIVE_WINDOW, "the client's receive window, 27 segments at first, held later flights"
            " back 24 times with 10 segments and none with 3 (set a larger initrwnd)") in found
    both = words(change({}, {"receive_window_waits": 24, "limited_by": RECEIVE_WINDOW,
                             "seen_first_flight": 7}))
    assert [word for word, _ in both].count(RECEIVE_WINDOW) == 1
    assert not any(word == RECEIVE_WINDOW for word, _ in words(change()))


# Why nothing changed ------------------------------------------------------------------

FLIGHTS = {"response_flights": "3+6+33", "response_round_trips": 3}


@pytest.mark.parametrize("larger, saved_ms, word", [
    ({"response_flights": "10+20+12", "response_round_trips": 3}, 0.4, "same flights"),
    ({"response_flights": "10+32", "response_round_trips": 2}, 90.0, "round trips"),
    ({"response_flights": "10+32", "response_round_trips": 2}, 0.0, "bandwidth")])
def test_flights_say_why_a_window_saves_time_or_not(larger: dict[str, Any], saved_ms: float,
                                                    word: str) -> None:
    """Fewer flights and no faster: the link sent without a pause under either window."""
    made = change({"total_ms": 900.0, **FLIGHTS}, {"total_ms": 900.0 - saved_ms, **larger},
                  **LARGE)
    ((said, text),) = words(made)
    assert said == word
    assert word == "bandwidth" or "3+6+33" in text and larger["response_flights"] in text


def test_random_loss_is_the_reason_where_the_larger_window_is_slower() -> None:
    slower = change({"total_ms": 600.0, "random_drops": 1},
                    {"total_ms": 700.0, "random_drops": 4}, **LARGE)
    assert words(slower) == [("random loss", "random loss took 4 packets of a transfer with 10"
                              " segments and 1 with 3")]
    faster = change({"total_ms": 900.0, "random_drops": 1},
                    {"total_ms": 700.0, "random_drops": 4}, **LARGE)
    assert "random loss" not in dict(words(faster))


def test_earlier_responses_are_named() -> None:
    same = {"total_ms": 100.0}
    assert words(change(same, same, kept=1))[0][0] == "earlier responses"


@pytest.mark.parametrize(("flights", "word"), [("12+30", "earlier responses"),
                                               ("3+6+12", "same flights")])
def test_after_an_idle_time_the_window_is_earlier_responses_where_it_stayed(flights: str,
                                                                            word: str) -> None:
    """Linux begins again from the initial window, unless tcp_slow_start_after_idle is 0."""
    same = {"total_ms": 700.0, "response_flights": flights, "response_round_trips": 2}
    assert words(change(same, same, kept=1, idle_ms=5000.0, bandwidth_kbps=10_000,
                        **LARGE))[0][0] == word


def test_as_many_flights_with_less_in_the_last_are_not_fewer_flights() -> None:
    last = {"response_round_trips": 2}
    (word, text), = words(change({"total_ms": 250.0, "response_flights": "10+18", **last},
                                 {"total_ms": 240.0, "response_flights": "20+8", **last},
                                 bandwidth_kbps=20_000, **LARGE))
    assert word == "last flight" and text.startswith(
        "the response takes 2 flights with either window (10+18 and 20+8)")


@pytest.mark.parametrize(("rtt_ms", "base_ms", "saved_ms", "effect"), [
    (0.2, 0.9, 0.2, 1), (0.2, 1.9, -0.1, -1), (100.0, 417.0, 0.6, 0), (100.0, 5000.0, 40.0, 1),
    (100.0, 5000.0, 9.0, 0), (50.0, 200.5, 0.4, 0), (100.0, 500.0, 5.1, 1)])
def test_an_effect_is_a_hundredth_of_the_time_or_a_tenth_of_a_round_trip(
        rtt_ms: float, base_ms: float, saved_ms: float, effect: int) -> None:
    """In a data centre 0.2 ms are a quarter; of a second over a satellite they are nothing."""
    made = change({"total_ms": base_ms}, {"total_ms": base_ms - saved_ms})
    requested = replace(made.base.requested, rtt_ms=rtt_ms)
    assert replace(made, base=replace(made.base, requested=requested)).effect == effect
