"""Figures of traces, drawn from stored data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

import plot
import plot_trace
from lab.records import PASS
from lab.trace import curves, findings, warm
from lab.trace.file import load
from lab.trace.records import TraceRecord
from lab.trace.scenario import TraceTrial
from tests.golden import stored_trace


def drawn_from(records: list[TraceRecord]) -> Figure:
    (shown,) = curves.figures(stored_trace.scenario(), records,
                              findings.Views(records, stored_trace.RUN))
    assert isinstance(shown, curves.TraceFigure)
    with matplotlib.rc_context(plot.plain_settings()):
        return plot_trace.trace_page(shown, "")


def texts(drawn: Figure) -> list[str]:
    """All that is written on it."""
    inside = [text for axes in drawn.axes
              for text in (axes.get_title(loc="left"), *(each.get_text() for each in axes.texts))]
    return inside + [each.get_text() for each in drawn.texts]


def test_a_row_for_each_tcp_with_its_window() -> None:
    drawn = drawn_from(stored_trace.records())
    assert len(drawn.axes) == 12
    linux = drawn.axes[1]
    assert max(linux.lines[0].get_ydata()) == 36
    assert linux.get_ylabel() == "segments" and drawn.axes[0].get_ylabel() == "segment"
    assert any(text.startswith("skipped: this kernel has no") for text in texts(drawn))
    assert "41 samples of the window compared with the rules of each TCP, to the segment" \
        in texts(drawn)


def test_a_failed_verdict_is_told_on_the_figure() -> None:
    records = stored_trace.records()
    flagged = [replace(records[0], verdict="fail", rule_wrong=2), *records[1:]]
    told = texts(drawn_from(flagged))
    assert "Linux (its verdict failed)" in told
    assert any(text.endswith("to the segment, 2 differ") for text in told)


def test_the_same_data_give_the_same_picture(tmp_path: Path) -> None:
    paths = [plot.save(drawn_from(stored_trace.records()), tmp_path, f"{number}.png", "png")
             for number in (1, 2)]
    assert paths[0].read_bytes() == paths[1].read_bytes()


# A warm connection, from records ----------------------------------------------------

def warm_records() -> list[TraceRecord]:
    """As if latency were 100 ms for each halving of a window of 64 below 16."""
    def record(trial: TraceTrial) -> TraceRecord:
        halvings = int(trial.think_s or 0) if trial.validation else 0
        window = max(64 >> min(halvings, 6), trial.initcwnd)
        return TraceRecord(trial, True, latency_ms=100.0 + (200.0 if window < 16 else 0.0),
                           last_window=window, last_retransmissions=0, verdict=PASS)
    return [record(trial) for trial in load("handley1999_warm").trials()]


def test_the_answer_names_think_times_and_windows() -> None:
    records = warm_records()
    scenario = load("handley1999_warm")
    (finding,) = findings.findings(scenario, records, Path("/nonexistent"))
    on, off, *_ = finding.statements
    assert on.found == ("IW 16 is faster than IW 10 from 3 s of thinking on (100.0 instead of"
                        " 300.0 ms after 300 s).")
    assert off.found.startswith("Never")
    assert finding.tables[0].rows[-1] == ("300", "300.0 (3)", "300.0 (10)", "100.0 (16)",
                                          "100.0 (32)")


def test_what_does_not_count_is_left_out() -> None:
    records = warm_records()
    first = records[0]
    records[0] = replace(first, verdict="fail")
    table = warm.rows(records, first.trial.trace, first.trial.tcp)
    assert first.trial.initcwnd not in table[first.trial.think_s or 0.0]
    scenario = load("handley1999_warm")
    (shown,) = curves.figures(scenario, records, findings.Views(records, Path("/nonexistent")))
    assert isinstance(shown, curves.WarmFigure) and shown.left_out == 1
    with matplotlib.rc_context(plot.plain_settings()):
        drawn = plot_trace.warm_page(shown, "")
    assert "127 connections verified on the wire, 1 left out" in texts(drawn)
    assert len(drawn.axes) == 12


@pytest.mark.parametrize("name", ["latency", "window", "again"])
def test_a_line_for_each_initial_window(name: str) -> None:
    records = warm_records()
    (shown,) = curves.figures(load("handley1999_warm"), records,
                              findings.Views(records, Path("/nonexistent")))
    assert isinstance(shown, curves.WarmFigure)
    drawn = plot_trace.warm_page(shown, "")
    place = ("latency", "window", "again").index(name)
    assert len(drawn.axes[place].lines) == 4
