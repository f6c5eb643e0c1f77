"""What others than the window decided is told: in tables, sentences, on figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.findings.findings import Report
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.verify import notes
from firstflight.study.fetches.verify.record import Record
from tests.golden import stored_fetches

LIMITED = ("In 1 of 128 transfers another cause than the initial window limited the first"
           " flight: the receive window in 1 (as few as 7 of 10 segments).")
DROPPED = "The queue dropped 3 packets in 1 of 128 transfers, apart from random loss."


def met(stored: list[Record], **columns: object) -> list[Record]:
    """The run, its first fetch with a window of 10 as if it had met this."""
    place = next(place for place, record in enumerate(stored) if record.trial.initcwnd == 10
                 and not record.retransmission_cause)
    return [*stored[:place], replace(stored[place], **columns), *stored[place + 1:]]  # type: ignore[arg-type]


def limited(stored: list[Record]) -> list[Record]:
    return met(stored, limited_by="receive window", seen_first_flight=7)


def dropping(stored: list[Record]) -> list[Record]:
    return met(stored, queue_drops=3, random_drops=1, lost_segments=4, retransmissions=4)


def of_figures(report: Report) -> list[str]:
    """The sentence and the notes of each figure with a chart."""
    return [text for found in report.findings if found.chart for text in
            (found.sentence, " ".join(found.tables[0].notes))]


@pytest.mark.parametrize(("change", "told"), [(limited, LIMITED), (dropping, DROPPED)])
def test_a_run_and_its_figures_tell(stored: list[Record], change: object, told: str) -> None:
    records = change(stored)  # type: ignore[operator]
    report = stored_fetches.report("zhao2019", records)
    assert told in report.summary and told in report.sentences
    texts = of_figures(report)
    assert len(texts) == 6 and all(told in text for text in texts)
    assert not any(told in text for text in of_figures(stored_fetches.whole_report("zhao2019")))


def test_what_does_not_count_is_not_told_of_a_figure(stored: list[Record]) -> None:
    records = met(stored, limited_by="receive window", verdict="fail", verdict_reason="RTT: x")
    assert not any("receive window" in text for text in of_figures(
        stored_fetches.report("zhao2019", records)))


def test_the_verdict_names_the_limit_with_numbers(stored: list[Record]) -> None:
    note = "10 requested, first flight 7: limited by the receive window"
    records = limited(stored)
    place = next(place for place, record in enumerate(records) if record.limited_by)
    records[place] = replace(records[place], trial=replace(records[place].trial, initrwnd=7))
    report = stored_fetches.report("zhao2019", records, whole=False)
    cells = report.findings[0].tables[1]
    (own,) = [each for each in cells.notes if each.endswith(note)]
    assert cells.column("verdict").count(f"1/1 {own.partition(' 10')[0]}") == 1
    whole = stored_fetches.report("zhao2019", limited(stored)).trials
    assert whole is not None and note in whole.notes
    assert whole.column("first flight limited by").count("receive window") == 1
    assert "what else limited the first flight" in report.sentences[0]


@pytest.mark.parametrize(("limited_by", "initrwnd", "told"), [
    ("", 27, ""), ("response size", 27, ""), ("first write", 27, ""),
    ("receive window", 27, "limited by the receive window"),
    ("send buffer", 27, "limited by the send buffer"),
    ("repeated handshake", 27, "limited by the repeated handshake"),
])
def test_each_limit_in_words(stored: list[Record], limited_by: str, initrwnd: int,
                             told: str) -> None:
    record = replace(stored[0], limited_by=limited_by, seen_first_flight=2,
                     trial=replace(stored[0].trial, initcwnd=10, initrwnd=initrwnd))
    assert notes.limit_note(record) == (f"10 requested, first flight 2: {told}" if told else "")
    assert notes.is_limited(record) == bool(told)


def test_losses_of_the_queue_stand_apart_from_random_ones(stored: list[Record],
                                                          scenario: Scenario) -> None:
    report = stored_fetches.report("zhao2019", dropping(stored), whole=False)
    whole = stored_fetches.report("zhao2019", dropping(stored)).trials
    assert report.trials is None, "it would repeat the table of cells"
    for table in (report.findings[0].tables[1], whole):
        assert table is not None
        for name, count in (("dropped by queue", 3), ("lost at random", 1)):
            assert [cell for cell in table.column(name, "observed") if cell != ""] == [count]
    assert report.causes is not None and {
        ("packets were lost at random", 1), ("the queue dropped packets", 1)
    } <= set(report.causes.rows)
    assert any("(the queue dropped packets in 1)" in each for each in report.sentences)
    plain = stored_fetches.report("zhao2019", stored, whole=False).findings[0].tables[1]
    assert "dropped by queue" not in [column.name for column in plain.columns]


def test_a_window_sweep_tells_it_too() -> None:
    run = [replace(record, limited_by="receive window", seen_first_flight=27)
           if record.trial.initcwnd == 42 else record
           for record in stored_fetches.stored("tselentis2013")]
    sweeps = [found.sentence for found in stored_fetches.report("tselentis2013", run).findings
              if "42" in found.sentence and "took the least time" in found.sentence]
    assert sweeps and all("the receive window in " in sentence for sentence in sweeps)


def test_later_flights_that_waited_are_told_with_the_windows() -> None:
    usual = stored_fetches.stored("zhao2019")
    waited = met(usual, receive_window_waits=24, least_offered_segments=44.4,
                 most_offered_segments=232.3)
    assert notes.limiting_notes(usual) == ()
    assert notes.limiting_notes(waited) == (
        "In 1 of 128 transfers later flights waited up to 24 times for the client's receive"
        " window.",)
    assert "later flights waited once for" in notes.limiting_notes(
        met(usual, receive_window_waits=1, least_offered_segments=9, most_offered_segments=9))[0]
    (record,) = (each for each in waited if each.receive_window_waits)
    assert notes.limit_note(record) == (
        "10 requested, later flights waited 24 times for the client's receive window of 44.4 to"
        " 232.3 segments")
    assert notes.limits(record) == ["receive window, later"]
    first = replace(record, limited_by="receive window", seen_first_flight=7)
    assert notes.limits(first) == ["receive window"] and "first flight 7" in notes.limit_note(first)
