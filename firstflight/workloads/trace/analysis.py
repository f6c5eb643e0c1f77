"""Reads a run's traces: the view of each, what figures show of it, and its restarts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import Points, TraceRow
from firstflight.runs.results.records import SKIPPED
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.replay import Restart
from firstflight.workloads.trace.scenario import TraceCurve, TraceFigure
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.view import View, read_view
from firstflight.workloads.trace.window import INFINITE


class Views:
    """The traces of one run, by curve; each is read once."""

    def __init__(self, records: Sequence[TraceRecord], folder: Path) -> None:
        self.records, self.folder = records, folder
        self.views: dict[str, View] = {}  # by the id of the trial

    def record(self, curve: TraceCurve) -> TraceRecord:
        """The record of a curve's trial, the first of its repeats.

        Raises FirstFlightError where it was not measured.
        """
        for record in self.records:
            if curve.is_of(record.trial) and record.trial.repeat == 1:
                return record
        raise FirstFlightError(f"{curve.trace}/{curve.tcp} was not measured")

    def repeats(self, curve: TraceCurve) -> list[TraceRecord]:
        """All repeats of a curve's trial, the first one first. Raises as record() does."""
        first = self.record(curve)
        found = [record for record in self.records if without_repeat(record.trial)
                 == without_repeat(first.trial)]
        return sorted(found, key=lambda record: record.trial.repeat)

    def view(self, curve: TraceCurve) -> View | None:
        """The trace of a curve; None where the trial was skipped, or its transfer failed.

        Raises FirstFlightError where one of its files is missing.
        """
        record = self.record(curve)
        if not record.ok or record.verdict == SKIPPED:
            return None
        trial = record.trial
        if trial.id not in self.views:
            self.views[trial.id] = read_view(trial, self.folder)
        return self.views[trial.id]

    def restarts(self, figure: TraceFigure) -> Iterator[tuple[View, float, Restart]]:
        """Yield each restart of TCP after an idle time of more than an RTO that a figure shows.

        Yields the trace, the end of the idle time in s, and the restart.
        """
        for view in filter(None, map(self.view, figure.curves)):
            for restart in view.replayed.restarts:
                at_s = view.seconds(restart.time_ns)
                if not figure.to_s or figure.from_s <= at_s <= figure.to_s:
                    yield view, at_s, restart


def without_repeat(trial: TraceTrial) -> TraceTrial:
    """What all repeats of a trial have in common."""
    return replace(trial, repeat=1, seed=0)


def row_of(title: str, view: View, flagged: bool) -> TraceRow:
    """A trace as its figure shows it. flagged: its verdict failed."""
    mss = view.trial.mss
    retransmissions = {id(segment) for segment in view.exchange.retransmissions}
    sent: list[tuple[float, float]] = []
    retransmitted: list[tuple[float, float]] = []
    for segment in view.sends:
        point = view.seconds(segment.time_ns), (segment.end - 1) / mss
        (retransmitted if id(segment) in retransmissions else sent).append(point)

    timed = [(view.seconds(sample.time_ns), sample) for sample in view.samples]
    return TraceRow(
        title, sent, retransmitted, _acknowledged(view),
        window=[(time_s, sample.cwnd) for time_s, sample in timed],
        ssthresh=[(time_s, sample.ssthresh) for time_s, sample in timed
                  if sample.ssthresh != INFINITE],
        in_flight=[(time_s, sample.in_flight) for time_s, sample in timed],
        rtt_ms=[(time_s, sample.rtt_us / 1000) for time_s, sample in timed], flagged=flagged)


def _acknowledged(view: View) -> Points:
    """The acknowledged segments over time: a point whenever their number grows."""
    acknowledged = [(0.0, 0.0)]
    # The SYN takes the first sequence number, and the FIN the one after the last byte of data.
    end_of_data = max(segment.end for segment in view.sends)
    for group in view.groups:
        number = (min(group.ack or 1, end_of_data) - 1) / view.trial.mss
        if number > acknowledged[-1][1]:
            acknowledged.append((view.seconds(group.time_ns), number))
    return acknowledged
