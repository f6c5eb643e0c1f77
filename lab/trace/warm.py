"""A warm connection: what a think time does to the next response, by initial window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lab.core.findings.charts import Line, LineChart, Plot
from lab.core.findings.findings import Cell, Column, Finding, Rounded, Statement, Table
from lab.core.words import plain
from lab.trace.record import TraceRecord
from lab.trace.scenario import Curve, Figure, TraceScenario

ALIKE_MS = 0.5  # responses that differ by less take the same time
ROW_INCHES = 2.5

ByThinkTime = dict[float, dict[int, TraceRecord]]  # think time (s) → initial window → record


def by_think_time(records: Iterable[TraceRecord], curve: Curve) -> ByThinkTime:
    """The records of one trace and TCP that count, in the order of their think times."""
    found: ByThinkTime = {}
    for record in records:
        trial = record.trial
        if ((trial.trace, trial.tcp) == (curve.trace, curve.tcp) and trial.think_s is not None
                and record.counts):
            found.setdefault(trial.think_s, {})[trial.initcwnd] = record
    return {think_s: found[think_s] for think_s in sorted(found)}


def windows_of(measured: ByThinkTime) -> list[int]:
    """The initial windows that were measured, the smallest first."""
    return sorted({window for line in measured.values() for window in line})


@dataclass(frozen=True)
class Shown:
    """One column of the figure: the label of its axis, and what is drawn."""

    label: str
    of: Callable[[TraceRecord], float]


SHOWN = (Shown("latency (ms)", lambda record: record.latency_ms or 0.0),
         Shown("window at the restart (segments)", lambda record: record.last_window or 0),
         Shown("segments sent again for it", lambda record: record.last_retransmissions or 0))


def finding(scenario: TraceScenario, figure: Figure, records: Sequence[TraceRecord],
            context: str) -> Finding:
    """A table for each curve of a figure, the answer, and its chart."""
    note = scenario.head.note
    measured = [by_think_time(records, curve) for curve in figure.curves]
    tables = [_table(curve, each) for curve, each in zip(figure.curves, measured)]
    if note:
        tables[-1] = replace(tables[-1], notes=(note,))
    return Finding(
        figure.name, figure.title, tuple(tables),
        tuple(_answer(curve, each) for curve, each in zip(figure.curves, measured)),
        chart=_chart(scenario, figure, measured, records, context))


def _table(curve: Curve, measured: ByThinkTime) -> Table:
    windows = windows_of(measured)
    rows: list[tuple[Cell, ...]] = [
        (Rounded(think_s, len(plain(think_s).partition(".")[2])),
         *(_cell(line.get(window)) for window in windows)) for think_s, line in measured.items()]
    return Table(
        f"{curve.trace}, {curve.tcp}: latency of the response in ms (window at its start →"
        " segments sent again)",
        (Column("think time", "s"),
         *(Column(f"IW {window}") for window in windows)), tuple(rows))


def _cell(record: TraceRecord | None) -> Cell:
    if record is None or record.latency_ms is None:
        return None
    again = f" → {record.last_retransmissions}" if record.last_retransmissions else ""
    return f"{record.latency_ms:.1f} ({record.last_window or 0}{again})"


# The answer --------------------------------------------------------------------------

def _answer(curve: Curve, measured: ByThinkTime) -> Statement:
    """Each initial window against the next smaller one, in words with figures."""
    windows = windows_of(measured)
    asked = ("When does a larger initial window pay on a warm connection"
             f" ({curve.trace}, {curve.tcp})?")
    parts = [part for smaller, larger in zip(windows, windows[1:])
             for part in _against(measured, smaller, larger)]
    never = "Never: all initial windows take the same time after every think time"
    return Statement(asked, ("; ".join(parts) or never) + ".")


def _against(measured: ByThinkTime, smaller: int, larger: int) -> list[str]:
    """After which think times the larger window is faster, and after which slower."""
    times = {think_s: (line[smaller].latency_ms or 0.0, line[larger].latency_ms or 0.0)
             for think_s, line in measured.items() if smaller in line and larger in line}
    parts = []
    for word, sign in (("faster", 1), ("slower", -1)):
        found = [think_s for think_s, (small_ms, large_ms) in times.items()
                 if sign * (small_ms - large_ms) > ALIKE_MS]
        if found:
            small_ms, large_ms = times[found[-1]]
            parts.append(f"IW {larger} is {word} than IW {smaller} {_when(found, list(times))}"
                         f" ({large_ms:.1f} instead of {small_ms:.1f} ms after"
                         f" {plain(found[-1])} s)")
    return parts


def _when(found: Sequence[float], all_thinks: Sequence[float]) -> str:
    if len(found) == len(all_thinks):
        return "after every think time"
    if list(found) == list(all_thinks[-len(found):]):
        return f"from {plain(found[0])} s of thinking on"
    return f"after {', '.join(map(plain, found))} s of thinking"


# The chart ---------------------------------------------------------------------------

def _chart(scenario: TraceScenario, figure: Figure, measured: Sequence[ByThinkTime],
           records: Sequence[TraceRecord], context: str) -> LineChart:
    """A row for each curve, and a column for each of SHOWN."""
    titles = [f"{scenario.tcp(curve.tcp).title}, {scenario.trace(curve.trace).title}"
              for curve in figure.curves]
    counted = sum(record.counts for record in records)
    left_out = len(records) - counted
    return LineChart(
        figure.title, (context,),
        f"{counted} connections verified on the wire{'' if left_out else ', none left out'}",
        f"{left_out} left out" if left_out else "",
        columns=tuple(tuple(_plot(shown, each, title if shown is SHOWN[0] else "",
                                  each is measured[-1])
                            for each, title in zip(measured, titles)) for shown in SHOWN),
        height_inches=ROW_INCHES * len(measured), legend=True, palette="ordered")


def _plot(shown: Shown, measured: ByThinkTime, title: str, is_last: bool) -> Plot:
    lines = []
    for look, window in enumerate(windows_of(measured)):
        points = {think_s: shown.of(line[window]) for think_s, line in measured.items()
                  if window in line}
        lines.append(Line(f"IW {window}", tuple(points), tuple(points.values()), look=look))
    top = max([1.0, *(value for line in lines for value in line.y)])
    return Plot("think time (s)" if is_last else "", shown.label, tuple(lines), title,
                ticks=tuple((think_s, plain(think_s)) for think_s in measured),
                x_scale="log", y_ends=(0, 1.08 * top), whole=True)
