"""What figures of traces show: points and steps in seconds and segments, ready to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.records import PASS, SKIPPED
from lab.trace import warm
from lab.trace.findings import Views, title_of
from lab.trace.records import TraceRecord
from lab.trace.scenario import Figure, TraceScenario
from lab.trace.view import View
from lab.trace.window import INFINITE

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class TracePanel:
    """One curve of a figure. Times in seconds after the request, the rest in segments.

    sent, again: data sent for the first time, and again; acked: the
    acknowledged sequence number, a step at each point. window, ssthresh,
    in_flight: steps; ssthresh only where it is finite. rtt: smoothed, in ms. absent: why there is
    nothing to draw, "" if there is.
    """

    title: str
    sent: Points
    again: Points
    acked: Points
    window: Points
    ssthresh: Points
    in_flight: Points
    rtt: Points
    absent: str = ""
    flagged: bool = False


@dataclass(frozen=True)
class TraceFigure:
    """from_s, to_s: what is shown; rtt: whether the RTT is; checked, wrong: samples that were
    compared with the rules, and differ."""

    name: str
    title: str
    source: str
    panels: tuple[TracePanel, ...]
    from_s: float
    to_s: float
    checked: int
    wrong: int
    rtt: bool


@dataclass(frozen=True)
class WarmLine:
    """Latency in ms, window at the restart in segments, retransmissions, by think time in s."""

    initcwnd: int
    think_s: list[float]
    latency_ms: list[float]
    window: list[float]
    retransmissions: list[float]


@dataclass(frozen=True)
class WarmPanel:
    title: str
    lines: tuple[WarmLine, ...]


@dataclass(frozen=True)
class WarmFigure:
    name: str
    title: str
    source: str
    panels: tuple[WarmPanel, ...]
    counted: int
    left_out: int


def figures(scenario: TraceScenario, records: Sequence[TraceRecord], views: Views
            ) -> list[TraceFigure | WarmFigure]:
    """All figures of a scenario. Raises FirstFlightError where a file is missing."""
    return [_warm_figure(scenario, figure, records) if figure.kind == "warm"
            else _trace_figure(scenario, figure, views) for figure in scenario.figures]


def _trace_figure(scenario: TraceScenario, figure: Figure, views: Views) -> TraceFigure:
    panels = []
    for curve in figure.curves:
        record = views.record(curve)
        title = title_of(scenario, figure, record.trial)
        view = views.of(curve)
        if view is None:
            why = ("skipped: " if record.verdict == SKIPPED and record.ok else "failed: ")
            panels.append(TracePanel(title, [], [], [], [], [], [], [],
                                     why + (record.error or record.verdict_reason)))
        else:
            panels.append(_panel(title, view, record.verdict != PASS))
    ends = [panel.acked[-1][0] for panel in panels if panel.acked]
    chosen = [views.record(curve) for curve in figure.curves]
    return TraceFigure(
        figure.name, figure.title, scenario.source, tuple(panels), figure.from_s,
        figure.to_s or 1.02 * max(ends, default=1.0),
        sum(record.rule_checked or 0 for record in chosen),
        sum(record.rule_wrong or 0 for record in chosen), figure.rtt)


def _panel(title: str, view: View, flagged: bool) -> TracePanel:
    mss = view.trial.mss
    again = {id(segment) for segment in view.exchange.retransmissions}
    sent: Points = []
    repeated: Points = []
    for segment in view.sends:
        point = view.seconds(segment.time_ns), (segment.end - 1) / mss
        (repeated if id(segment) in again else sent).append(point)
    acked: Points = [(0.0, 0.0)]
    last = max((segment.end for segment in view.sends), default=1)
    for group in view.groups:
        number = (min(group.ack or 1, last) - 1) / mss  # the FIN is no data
        if number > acked[-1][1]:
            acked.append((view.seconds(group.time_ns), number))
    times = [view.seconds(sample.time_ns) for sample in view.samples]
    return TracePanel(
        title, sent, repeated, acked,
        [(time_s, sample.cwnd) for time_s, sample in zip(times, view.samples)],
        [(time_s, sample.ssthresh) for time_s, sample in zip(times, view.samples)
         if sample.ssthresh != INFINITE],
        [(time_s, sample.in_flight) for time_s, sample in zip(times, view.samples)],
        [(time_s, sample.rtt_us / 1000) for time_s, sample in zip(times, view.samples)],
        flagged=flagged)


def _warm_figure(scenario: TraceScenario, figure: Figure, records: Sequence[TraceRecord]
                 ) -> WarmFigure:
    panels = []
    for curve in figure.curves:
        table = warm.rows(records, curve.trace, curve.tcp)
        windows = sorted({window for line in table.values() for window in line})
        panels.append(WarmPanel(
            f"{scenario.tcp(curve.tcp).title}, "
            f"{next(trace for trace in scenario.traces if trace.name == curve.trace).title}",
            tuple(_warm_line(window, table) for window in windows)))
    counted = sum(record.verdict == PASS for record in records)
    return WarmFigure(figure.name, figure.title, scenario.source, tuple(panels), counted,
                      len(records) - counted)


def _warm_line(initcwnd: int, table: dict[float, dict[int, TraceRecord]]) -> WarmLine:
    measured = [(think_s, line[initcwnd]) for think_s, line in table.items() if initcwnd in line]
    return WarmLine(initcwnd, [think_s for think_s, _ in measured],
                    [record.latency_ms or 0.0 for _, record in measured],
                    [warm.window_of(record) for _, record in measured],
                    [record.last_retransmissions or 0 for _, record in measured])
