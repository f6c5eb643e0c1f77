"""5,000 crossed pairs of transfers whose causes are known: no sentence names another one.

The model has the time of each; what a queue, random loss, a lost handshake, jitter or anything else
took is added to it, and counted apart from the product's columns. What no packet shows does not
fall together with a loss: a verdict judges when each packet left and came.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace

from model.predict import predict
from model.transfer import Transfer
from study.fetches.figures.cells import CellSetting, WindowChange, changes
from study.fetches.figures.limiting_factors import reasons
from study.fetches.verify.record import Record
from tests.golden import stored_fetches

PAIRS, NETWORKS = 5000, 60
ONE = next(iter(stored_fetches.stored("zhao2019")))
WINDOWS = (1, 2, 3, 4, 10, 16, 30)
# Of the reasons that give one: which part of a transfer's time they say it was.
PART = {"queue": "queue", "random loss": "random", "handshake, lost": "handshake",
        "flights": "model"}


@dataclass(frozen=True)
class Known:
    """A transfer, and what took its time, in ms."""

    record: Record
    parts: dict[str, float]


def network(draw: random.Random) -> list[Known]:
    """The same response under every window."""
    trial = replace(ONE.trial, rtt_ms=round(draw.uniform(5, 300), 1), initrwnd=500,
                    bandwidth_kbps=round(10 ** draw.uniform(2.5, 5)),
                    response_bytes=round(10 ** draw.uniform(2.5, 5.2)))
    segments = -(-(trial.response_bytes + 61) // trial.mss)
    made = []
    for window in WINDOWS:
        said = predict(Transfer(
            rtt_ms=trial.rtt_ms, bandwidth_kbps=trial.bandwidth_kbps,
            uplink_kbps=trial.bandwidth_kbps, initcwnd=window, initrwnd=500,
            response_bytes=trial.response_bytes + 61, request_bytes=90))
        left, flight, flights = segments, window, list[int]()
        while left:
            flights.append(min(left, flight))
            left, flight = left - flights[-1], 2 * flight
        shown = len(flights) == said.response_round_trips and len(flights) <= 8
        made.append(Known(replace(
            ONE, trial=replace(trial, initcwnd=window), header_bytes=61, total_ms=said.total_ms,
            model_ms=said.total_ms, connect_ms=said.connect_ms, limited_by="",
            retransmission_cause="", lost_segments=0,
            seen_first_flight=min(window, segments), retransmissions=0,
            handshake_retransmissions=0, queue_drops=0, random_drops=0, uplink_queue_drops=0,
            response_round_trips=said.response_round_trips,
            response_flights="+".join(map(str, flights)) if shown else ""),
            {"model": said.total_ms}))
    return made


def disturbed(known: Known, draw: random.Random) -> Known:
    """With none, one or two things that took time, and are seen, or not."""
    record, parts = known.record, dict(known.parts)
    seen = draw.sample(("none", "queue", "random", "handshake", "jitter"), draw.choice((1, 1, 2)))
    for what in draw.choice((seen, seen, ["other"])):
        took_ms = 0.0 if what == "none" else draw.uniform(-0.1, 1) * draw.choice((10, 200, 1000))
        count = draw.randint(1, 50)
        if what == "handshake":
            count, took_ms = 1, 1000.0
            assert record.connect_ms is not None
            record = replace(record, handshake_retransmissions=1,
                             connect_ms=record.connect_ms + took_ms)
        elif what == "queue":
            record = replace(record, queue_drops=count, retransmissions=count)
        elif what == "random":
            record = replace(record, random_drops=count, retransmissions=count)
        elif what == "jitter":
            record = replace(record, retransmissions=count, retransmission_cause="jitter")
        assert record.total_ms is not None
        took_ms = max(took_ms, 1 - record.total_ms)
        record = replace(record, total_ms=record.total_ms + took_ms)
        parts[what] = parts.get(what, 0.0) + took_ms
    return Known(record, parts)


def wrong(change: WindowChange, base: Known, larger: Known) -> list[str]:
    """What was said and is not so, by what took the time and by the columns themselves."""
    false = []
    difference = sum(base.parts.values()) - sum(larger.parts.values())
    for reason in reasons(change):
        if part := PART.get(reason.kind):
            took_ms = base.parts.get(part, 0.0) - larger.parts.get(part, 0.0)
            if not 0.799 <= took_ms / difference <= 1.251:
                false.append(f"{reason.text}: {took_ms} of {difference}")
        if "cannot help" in reason.text and larger.parts["model"] != base.parts["model"]:
            false.append(reason.text)
        columns = {"flights": "response_round_trips", "queue": "queue_drops",
                   "random loss": "random_drops", "handshake, lost": "handshake_retransmissions"}
        if column := columns.get(reason.kind):
            counted = re.search(r"(\d+) \w+ with \d+ segments and (\d+) with", reason.text)
            assert counted is not None, reason.text
            if [*map(int, counted.groups())] != [getattr(each.record, column)
                                                 for each in (base, larger)]:
                false.append(reason.text)
    return false


def test_no_sentence_names_a_cause_that_was_none() -> None:
    draw = random.Random(39)
    networks = [network(draw) for _ in range(NETWORKS)]
    false, said = [], set[str]()
    for _ in range(PAIRS):
        base, larger = (disturbed(known, draw) for known in sorted(
            draw.sample(draw.choice(networks), 2), key=lambda known: known.record.trial.initcwnd))
        (change,) = changes([CellSetting(known.record.trial, [known.record])
                             for known in (base, larger)])
        false += wrong(change, base, larger)
        said |= {reason.kind for reason in reasons(change)}
    assert not false
    assert said == {*PART, "fits", "same flights", "bandwidth", "not known"}
