"""A cell's trial is the same in any list: what the worker is told of it, and what TCP is set to."""

from __future__ import annotations

import random
from typing import Any

import pytest

from firstflight.parameters import NETWORK, PARAMETERS, RESPONSE, TCP
from firstflight.runs.kinds import NOTHING, Overrides, Study
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND
from firstflight.study.questions import question
from tests.parameters import another

# Values to draw lists from. The client and whose programs run are the question's.
VALUES: dict[str, tuple[Any, ...]] = {
    "rtt_ms": (1, 20.5, 100, 3000), "bandwidth_kbps": (56, 1000, 20_000.5, 10_000_000),
    "uplink_kbps": (28, 1000), "queue": ("1", "100", "50ms", "0.5bdp"),
    "qdisc": ("fifo", "fq", "fq_codel", "cake"), "loss_percent": (0, 1, 5), "jitter_ms": (0, 2),
    "initcwnd": (1, 10, 44, 45, 64, 910, 911, 3000), "initrwnd": (2, 44, 45, 64, 400, 3000),
    "congestion_control": ("cubic", "reno", "bbr"), "mss": (1448, 536),
    "response_bytes": (1, 9000, 183_173), "gap_ms": (0, 50), "kept": (1, 2), "idle_ms": (0, 500)}
# Those of TLS and of servers go with few others, and bursts only with losses.
VALUES |= {name: (row.default, another(row, row.default)) for name, row in PARAMETERS.items()
           if row.quantity.flag and row.subject in (NETWORK, TCP, RESPONSE)
           and name not in (*VALUES, "loss_burst")}


def requested(lists: dict[str, list[Any]]) -> Study:
    made: Study = KIND.study_of(
        question.scenario("own", Overrides(lists, client="libcurl", repeat=2)), NOTHING, 7)
    return made


def told(of: Study) -> dict[Trial, tuple[Any, ...]]:
    """By trial, what the worker gets of it, and what is set for the whole run."""
    return {trial: (trial.job(), sorted(of.head.sysctls.items())) for trial in of.trials}


@pytest.mark.parametrize("seed", range(12))
def test_a_trial_is_the_same_in_any_list(seed: int) -> None:
    draw = random.Random(seed)
    lists = {name: draw.sample(values, draw.randint(1, min(3, len(values))))
             for name, values in VALUES.items()
             if name == "initcwnd" or draw.random() < 0.4}
    whole = told(requested(lists))
    if "idle_ms" in lists or "kept" not in lists:
        lists.setdefault("kept", [1] if any(lists.get("idle_ms", ())) else [0])
    parts: dict[Trial, tuple[Any, ...]] = {}
    split = max(lists, key=lambda name: len(lists[name]))
    for value in lists[split]:
        parts |= told(requested({**lists, split: [value]}))
    assert parts == whole
    assert len(whole) >= len(lists["initcwnd"]) * 2
