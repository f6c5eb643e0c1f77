"""benchmarks.outside.reasons holds an answer against what was measured without its limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.outside import reasons

QUESTION = reasons.Question(100, 1000, 60_000, (3, 10), 10, 50, "fifo", "cubic", 0)
ROWS = [{"total_ms": "500.0"}, {"total_ms": "500.0"}]
ALONE = "The receive window: without any limit 10 segments save 90.0 ms, and it alone takes that away."
TOGETHER = ("Several limits together (receive window, bandwidth and queue): without any limit 10"
            " segments save 90.0 ms, and none of them alone takes that away.")


@pytest.mark.parametrize(("sentence", "put_back_ms", "is_wrong"), [
    (ALONE, 0.0, False), (ALONE, 90.0, True), (TOGETHER, 90.0, False), (TOGETHER, 0.0, True)])
def test_an_answer_of_limits_is_held_against_each_that_is_put_back(
        sentence: str, put_back_ms: float, is_wrong: bool,
        monkeypatch: pytest.MonkeyPatch) -> None:
    everything = QUESTION
    for limit in QUESTION.limits():
        everything = everything.without(limit)
    monkeypatch.setattr(reasons, "saved", lambda question, _: (
        90.0 if question == everything else put_back_ms, 5.0))
    assert bool(reasons.wrong(QUESTION, "hides", sentence, ROWS, Path())) == is_wrong
