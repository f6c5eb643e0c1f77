"""A warm connection: what a think time does to the next response, by initial window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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


def finding(figure: Figure, records: Sequence[TraceRecord], note: str) -> Finding:
    """Tables of one figure, a table for each of its curves, and the answer. note: under the last."""
    tables = []
    for curve in figure.curves:
        measured = rows(records, curve.trace, curve.tcp)
        windows = sorted({window for line in measured.values() for window in line})
        tables.append(Table(
            f"{curve.trace}, {curve.tcp}: latency of the response in ms (window at its start →"
            " segments sent again)",
            ("think time, s", *(f"IW {window}" for window in windows)),
            tuple((plain(think_s), *(_cell(line.get(window)) for window in windows))
                  for think_s, line in measured.items()),
            note if curve == figure.curves[-1] else ""))
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
    """Each initial window against the next smaller one, in words with figures."""
    measured = rows(records, trace, tcp)
    windows = sorted({window for line in measured.values() for window in line})
    asked = f"When does a larger initial window pay on a warm connection ({trace}, {tcp})?"
    parts = [part for smaller, larger in zip(windows, windows[1:])
             for part in _against(measured, smaller, larger)]
    if not parts:
        return Statement(asked, "Never: all initial windows take the same time after every"
                                " think time.")
    return Statement(asked, "; ".join(parts) + ".")


def _against(measured: Mapping[float, Mapping[int, TraceRecord]], smaller: int,
             larger: int) -> list[str]:
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
