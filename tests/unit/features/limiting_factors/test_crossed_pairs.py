"""5,000 crossed pairs of transfers whose causes are known: no sentence names another one.

Neither do those of a run's summary, its notes, and the hints on queues.

The model has the time of each; what a queue, random loss, a lost handshake, jitter or anything else
took is added to it, and counted apart from the product's columns. What no packet shows does not
fall together with a loss: a verdict judges when each packet left and came.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from model.predict import predict
from model.transfer import Transfer
from study.fetches.figures.cells import CellSetting, WindowChange, changes
from study.fetches.figures.limiting_factors import queue_hints, reasons
from study.fetches.figures.summary import _sent_again
from study.fetches.verify.notes import limiting_notes
from study.fetches.verify.record import Record
from tests.golden import stored_fetches

PAIRS, NETWORKS = 5000, 60
NONE = {"no": "0", "none": "0"}
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
    burst: int


def network(draw: random.Random) -> list[Known]:
    """The same response under every window."""
    trial = replace(ONE.trial, rtt_ms=round(draw.uniform(5, 300), 1), initrwnd=500,
                    bandwidth_kbps=round(10 ** draw.uniform(2.5, 5)), queue_from="",
                    queue_packets=round(10 ** draw.uniform(0, 3)),
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
            {"model": said.total_ms}, min(window, segments)))
    paced = draw.random() < 0.3  # after ten segments, as bbr
    return [known if not paced else Known(replace(
        known.record, first_burst_segments=min(10, known.burst)), known.parts, min(10, known.burst))
        for known in made]


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
    return Known(record, parts, known.burst)


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
            counted = re.search(r"(\d+|no) \w+ with \d+ segments and (\d+|none) with"
                                r"|(\d+) flights with either window", reason.text)
            assert counted is not None, reason.text
            first, second, both = counted.groups()
            if [NONE.get(word, word) for word in (first or both, second or both)] != [
                    str(getattr(each.record, column)) for each in (base, larger)]:
                false.append(reason.text)
        if reason.kind == "pacing":
            at_once = re.findall(r"(\d+) of (?:the )?(\d+)", reason.text)
            if [(int(burst), int(flight)) for burst, flight in at_once] != [
                    (each.burst, each.record.seen_first_flight) for each in (base, larger)] or all(
                        burst == flight for burst, flight in at_once):
                false.append(reason.text)
    return false


def counted(pair: Sequence[Known]) -> list[str]:
    """What notes, summary and hints count, by a count of their own."""
    records = [known.record for known in pair]
    lost = {"queue": [known for known in pair if known.record.queue_drops]}
    sum_queue = sum(known.record.queue_drops or 0 for known in pair)
    sentences = []
    if lost["queue"]:
        packets = f"{sum_queue} packet{'s' if sum_queue > 1 else ''}"
        sentences.append(f"The queue dropped {packets} in {len(lost['queue'])} of 2 transfers, apart"
                         " from random loss.")
    again = [record for record in records if record.retransmissions]
    if not again:
        sentences.append("No data was retransmitted.")
    else:  # no record here has lost_segments
        sentences.append(f"{len(again)} of 2 transfers retransmitted data, none of them lost data;"
                         " the causes are with the verdicts.")
    return sentences


def hints(pair: Sequence[Known]) -> int:
    """How many hints on queues there are to be: by drops at a queue of less than half a BDP."""
    trial = pair[0].record.trial
    bdp = trial.rtt_ms * trial.bandwidth_kbps / 8 / (trial.mss + 66)
    return ((trial.queue_packets < bdp / 2 and any(known.record.queue_drops for known in pair))
            + (trial.queue_packets > 5 * bdp and trial.response_bytes / trial.mss > 5 * bdp))


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
        records = [base.record, larger.record]
        told = [*limiting_notes(records), *_sent_again(records)]
        false += {*told} ^ {*counted([base, larger])}
        hinted = queue_hints([record.trial for record in records], records)
        false += hinted if len(hinted) != hints([base, larger]) else []
        said |= {"hint"} if hinted else set()
        said |= {reason.kind for reason in reasons(change)}
    assert not false
    assert said == {*PART, "fits", "same flights", "bandwidth", "not known", "pacing", "hint"}
