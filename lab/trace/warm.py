"""A warm connection: what a think time does to the next response, by initial window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lab.findings import Finding, Statement, Table
from lab.records import PASS
from lab.toml_file import plain
from lab.trace.scenario import Figure
from lab.trace.records import TraceRecord

ALIKE_MS = 0.5  # responses that differ by less take the same time


def rows(records: Iterable[TraceRecord], trace: str, tcp: str
         ) -> dict[float, dict[int, TraceRecord]]:
    """The records that count, by think time (s) and initial window."""
    table: dict[float, dict[int, TraceRecord]] = {}
    for record in records:
        trial = record.trial
        if (trial.trace, trial.tcp) == (trace, tcp) and trial.think_s is not None \
                and record.verdict == PASS:
            table.setdefault(trial.think_s, {})[trial.initcwnd] = record
    return {think_s: table[think_s] for think_s in sorted(table)}


def finding(figure: Figure, records: Sequence[TraceRecord]) -> Finding:
    """Tables of one figure, a table for each of its curves, and the answer."""
    tables = []
    for curve in figure.curves:
        measured = rows(records, curve.trace, curve.tcp)
        windows = sorted({window for line in measured.values() for window in line})
        tables.append(Table(
            f"{curve.trace}, {curve.tcp}: latency of the response in ms (window at its start →"
            " segments sent again)",
            ("think time, s", *(f"IW {window}" for window in windows)),
            tuple((plain(think_s), *(_cell(line.get(window)) for window in windows))
                  for think_s, line in measured.items())))
    return Finding(figure.name, figure.title, tuple(tables), tuple(
        _answer(records, curve.trace, curve.tcp) for curve in figure.curves))


def _cell(record: TraceRecord | None) -> str:
    if record is None:
        return "–"
    again = f" → {record.last_retransmissions}" if record.last_retransmissions else ""
    return f"{record.latency_ms or 0:.1f} ({window_of(record)}{again})"


def window_of(record: TraceRecord) -> int:
    """With which window the last response began."""
    return record.last_window or 0


def _answer(records: Sequence[TraceRecord], trace: str, tcp: str) -> Statement:
    """From which think time on which windows differ, in words with figures."""
    measured = rows(records, trace, tcp)
    asked = f"When does a larger initial window pay on a warm connection ({trace}, {tcp})?"
    pays = []
    for think_s, line in measured.items():
        times = {window: record.latency_ms or 0.0 for window, record in line.items()}
        worst, best = max(times.values()), min(times.values())
        if worst - best > ALIKE_MS:
            fastest = min(window for window, time_ms in times.items() if time_ms - best <= ALIKE_MS)
            slowest = next(window for window, time_ms in times.items() if time_ms == worst)
            pays.append((think_s, slowest, worst, fastest, best))
    if not pays:
        return Statement(asked, "Never: all initial windows take the same time after every"
                                " think time.")
    first, last = pays[0], pays[-1]
    alike = [think_s for think_s in measured if think_s not in [row[0] for row in pays]]
    early = (f"After {', '.join(map(plain, alike))} s of thinking all take the same. "
             if alike else "")
    return Statement(asked, early + (
        f"From {plain(first[0])} s on it matters: there IW {first[1]} takes {first[2]:.1f} ms and"
        f" IW {first[3]} {first[4]:.1f}; after {plain(last[0])} s IW {last[1]} takes"
        f" {last[2]:.1f} ms and IW {last[3]} {last[4]:.1f}."))
