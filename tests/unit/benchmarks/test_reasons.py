"""How reasons of random questions are judged by what other questions measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.outside.random_questions import FASTEST_PAGE, LATE, SHARED, Question
from benchmarks.outside.reasons import Judge, Saving

NONE, TIME, HARM = (Saving(of_ms=100.0, saved_ms=saved_ms, half_ms=0.0)
                    for saved_ms in (0.0, 20.0, -20.0))
PAGE = Question("page", {"--rtt": "12", "--bw": "1M", "--http": "2", "--queue": "15"},
                ("bandwidth", "queue", SHARED))
CHAIN = "certificate chain"


@pytest.mark.parametrize(("with_queue_alone", "faults"), [
    (NONE, []), (TIME, ["with queue alone it saves time"])])
def test_what_a_page_always_has_is_lifted_with_what_it_requests(
        with_queue_alone: Saving, faults: list[str]) -> None:
    """Without all limits, a page over HTTP/2 is also without its certificate chain, and without
    the names that it looks up late.
    """
    judge = Judge(PAGE, NONE, Path("unused"))
    others = frozenset({"bandwidth", SHARED, LATE, CHAIN})
    judge.known |= {others: with_queue_alone, others | {"queue"}: TIME, frozenset({"queue"}): NONE}
    assert [*judge.faults("queue")] == faults


def test_a_limit_without_which_the_larger_window_harms_is_no_fault() -> None:
    judge = Judge(PAGE, NONE, Path("unused"))
    judge.known[frozenset({"queue"})] = HARM
    assert [*judge.faults("queue")] == []


def test_a_page_without_a_bandwidth_is_slow_enough_for_its_verdict() -> None:
    assert PAGE.without("bandwidth")["--bw"] == FASTEST_PAGE
    fetch = Question("fetch", {"--rtt": "12", "--bw": "1M"}, ("bandwidth",))
    assert fetch.without("bandwidth")["--bw"] == "10G"


def test_nothing_saved_is_right_only_if_no_limit_alone_hides_a_saving() -> None:
    """Without all limits nothing is saved, and without the bandwidth alone nothing or 20 ms."""
    for without_bandwidth, of_same, of_bandwidth in (
            (NONE, [], ["without all limits it saves nothing"]),
            (TIME, ["without bandwidth it saves 20.0 ms"], [])):
        judge = Judge(Question("fetch", {"--rtt": "12", "--bw": "1M"}, ("bandwidth",)), NONE,
                      Path("unused"))
        judge.known |= {frozenset({"bandwidth"}): without_bandwidth, frozenset({"queue"}): NONE,
                        frozenset({"bandwidth", "queue"}): NONE}
        assert [*judge.faults("same flights")] == of_same
        assert [*judge.faults("bandwidth")] == of_bandwidth
