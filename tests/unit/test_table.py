"""Text tables: aligned, within the width of a terminal, honest about what is left out."""

from __future__ import annotations

import re
from dataclasses import replace

from lab import table
from lab.records import Record
from lab.scenario import Scenario


def repeated(records: list[Record]) -> list[Record]:
    return [replace(record, trial=replace(record.trial, repeat=repeat),
                    total_ms=(record.total_ms or 0) * (1 + repeat / 50))
            for record in records for repeat in range(1, 6)]


def test_a_whole_scenario(scenario: Scenario, stored: list[Record]) -> None:
    text = table.of_scenario(scenario, stored)
    assert "128 of 128 trials verified on the wire" in text
    for figure in scenario.figures:
        assert figure.title in text
    line = next(line for line in text.splitlines() if line.split()[:2] == ["100", "48.36"])
    assert line.split() == ["100", "48.36", "16", "361.5", "282.6", "78.9", "21.8", "88.2",
                            "26.9", "21.8", "5.2", "direction", "only"]
    assert "3008/4012" in text and "6011/2203f" in text
    assert "ARP gives up" in text and "60 comparable cells" in text


def test_nothing_is_wider_than_a_terminal(scenario: Scenario, stored: list[Record]) -> None:
    slow = [replace(record, total_ms=(record.total_ms or 0) * 10, model_ms=123456.7,
                    seen_bandwidth_kbps=7000.123) for record in repeated(stored)]
    for text in (table.of_scenario(scenario, stored), table.of_cells(stored),
                 table.of_scenario(scenario, repeated(stored)), table.of_cells(slow)):
        lines = text.splitlines()
        assert max(map(len, lines)) <= table.MAX_WIDTH, max(lines, key=len)
        assert all(line == line.rstrip() for line in lines)


def test_intervals_appear_with_repeats(scenario: Scenario, stored: list[Record]) -> None:
    assert "95 % interval" not in table.of_scenario(scenario, stored)
    text = table.of_scenario(scenario, repeated(stored))
    assert "95 % interval" in text and " … " in text and "n = 5 here, 1 there" in text


def test_what_is_left_out_is_counted(scenario: Scenario, stored: list[Record]) -> None:
    records = [replace(record, ok=False, error="curl 28: timed out", total_ms=None,
                       verdict="skipped") if number == 5 else record
               for number, record in enumerate(stored)]
    records[40] = replace(records[40], verdict="fail", verdict_reason="seen RTT 90, asked 100")
    text = table.of_scenario(scenario, records)
    assert "126 of 128 trials verified on the wire; left out: 1 failed transfer, 1 failed" in text
    assert "7 of 8 cells count (1 failed transfer, 1 record without its counterpart)" in text
    cells = table.of_cells(records)
    for note in ("curl 28: timed out", "seen RTT 90, asked 100"):
        mark = re.search(rf"^(\[\d+\]) {note}$", cells, re.MULTILINE)
        assert mark and f"0/1 {mark[1]}" in cells


def test_a_figure_without_its_cells_says_how_to_get_them(scenario: Scenario,
                                                         stored: list[Record]) -> None:
    text = table.of_scenario(scenario, stored[:4])
    assert text.count("no table: ") == 3 and "./run.sh --scenario zhao2019 --rtt" in text
    assert "–/2203f" in text


def test_a_single_bucket(stored: list[Record]) -> None:
    pair = [replace(record, model_ms=(record.total_ms or 0) - 0.04, retransmissions=1,
                    retransmission_cause="RTO below the serialisation of the window")
            for record in stored if record.trial.rtt_ms == 100
            and record.trial.bandwidth_kbps == 1000]
    text = table.of_cells(pair)
    assert "1/1 [1]" in text and "[1] RTO below the serialisation" in text
    assert "+0.0" in text and "-0.0" not in text
    assert text.splitlines()[-1].split() == [
        "100", "1000", "9000", "3", "→", "10", "356.0", "279.7", "76.3", "21.4", "1,", "1"]


def test_records_without_any_measurement(stored: list[Record]) -> None:
    text = table.of_cells([Record(trial=stored[0].trial, ok=False, error="killed")])
    assert "0 of 1 trials" in text and "–" in text and "[1] killed" in text
    assert "0 of 0 trials" in table.of_cells([])


def test_aligned_columns() -> None:
    assert table.aligned([("RTT", "ms"), ("why", "")], [["5", "a"], ["5000", "bcd"]], (1,)) == (
        " RTT  why\n  ms\n   5  a\n5000  bcd")
    assert table.number(-0.04) == "0.0" and table.number(None) == "–"
    assert table.number(-0.04, signed=True) == "+0.0" and table.number(2.25, 0) == "2"
