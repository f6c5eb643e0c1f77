"""What traces found: tables, the source's sentences beside what was measured, and one word for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.trace import warm
from lab.comparison import DIRECTION_ONLY, NOT_REPRODUCED, REPRODUCED
from lab.errors import FirstFlightError
from lab.findings import Finding, Statement, Table
from lab.records import PASS, SKIPPED
from lab.toml_file import plain
from lab.trace.scenario import Claim, Curve, Figure, TraceScenario, TraceTrial
from lab.trace.records import TraceRecord
from lab.trace.view import View, stored
from lab.trace.window import INFINITE


@dataclass(frozen=True)
class Metric:
    """How a metric of a claim is read off a trace, and its unit behind a number."""

    of: Callable[[View, float], float]
    unit: str
    digits: int = 0
    past: str = ""  # what the number is, in a sentence

    def words(self, value: float) -> str:
        """The value with its unit, as a sentence has it."""
        number = limit(int(value)) if value == INFINITE else f"{value:.{self.digits}f}"
        unit = self.unit.removesuffix("s") if number == "1" and len(self.unit) > 2 else self.unit
        return f"{self.past} {number}{unit}".strip()


METRICS = {
    "window": Metric(View.window, " segments", past="a window of"),
    "ssthresh": Metric(View.ssthresh, " segments", past="an ssthresh of"),
    "burst": Metric(View.burst, " segments", past="at once"),
    "finish_s": Metric(View.finish_s, " s", 3, "finished after"),
    "lasts_s": Metric(View.lasts_s, " s", 3, "took"),
    "retransmissions": Metric(View.retransmissions, " segments", past="retransmitted"),
    "lost": Metric(View.lost, " segments", past="lost"),
    "timeouts": Metric(View.timeouts, " timeouts"),
    "rtt_ms": Metric(View.rtt_ms, " ms", past="a smoothed RTT of"),
    "longest_rtt_ms": Metric(View.longest_rtt_ms, " ms", past="an RTT of up to"),
    "largest_window": Metric(View.largest_window, " segments", past="a window of up to"),
}


def findings(scenario: TraceScenario, records: Sequence[TraceRecord], folder: Path,
             ) -> list[Finding]:
    """One finding for each figure. Raises FirstFlightError where a file is missing."""
    views = Views(records, folder)
    return [_finding(scenario, figure, views) for figure in scenario.figures]


class Views:
    """The traces of one run by curve, each read once."""

    def __init__(self, records: Sequence[TraceRecord], folder: Path) -> None:
        self.records, self.folder = records, folder
        self.read: dict[str, View] = {}

    def record(self, curve: Curve) -> TraceRecord:
        """Raises FirstFlightError where it was not measured."""
        for record in self.records:
            if curve.is_of(record.trial):
                return record
        raise FirstFlightError(f"{curve.trace}/{curve.tcp} was not measured")

    def view(self, record: TraceRecord) -> View:
        if record.trial.id not in self.read:
            self.read[record.trial.id] = stored(record.trial, self.folder)
        return self.read[record.trial.id]

    def of(self, curve: Curve) -> View | None:
        """None where there is nothing to see: the kernel lacks it, or the transfer failed."""
        record = self.record(curve)
        if not record.ok or record.verdict == SKIPPED:
            return None
        return self.view(record)


def _finding(scenario: TraceScenario, figure: Figure, views: Views) -> Finding:
    if figure.kind == "warm":
        return warm.finding(figure, views.records, scenario.note)
    statements = tuple(_statement(scenario, claim, views) for claim in scenario.claims
                       if claim.figure == figure.name)
    tables = [_overview(scenario, figure, views), *_restarts(scenario, figure, views)]
    return Finding(figure.name, figure.title, tuple(tables), statements)


# Tables ------------------------------------------------------------------------

def _overview(scenario: TraceScenario, figure: Figure, views: Views) -> Table:
    rows = []
    for curve in figure.curves:
        record = views.record(curve)
        rows.append((title_of(scenario, figure, record.trial), *_cells(record)))
    return Table("", ("TCP", "segments", "lost", "sent again", "timeouts", "largest window",
                      "longest RTT, ms", "finished, s", "in recovery, not judged",
                      "window as its rules say"),
                 tuple(rows), _note(scenario, views, figure))


def _cells(record: TraceRecord) -> tuple[str, ...]:
    if record.verdict == SKIPPED or not record.ok:
        return ("–",) * 8 + ("skipped" if record.ok else "failed",)
    checked, wrong = record.rule_checked or 0, record.rule_wrong or 0
    judged = f"{checked - wrong} of {checked} samples" if checked else "at restarts"
    return (f"{record.data_segments}", f"{record.lost_segments}", f"{record.retransmissions}",
            f"{record.timeouts}", f"{record.largest_window}", f"{record.longest_rtt_ms or 0:.1f}",
            f"{(record.finish_ms or 0) / 1000:.3f}", f"{record.rule_unjudged}", judged)


def _note(scenario: TraceScenario, views: Views, figure: Figure) -> str:
    parts = [scenario.note] if scenario.note and figure is scenario.figures[0] else []
    for curve in figure.curves:
        record = views.record(curve)
        word = "failed" if not record.ok else record.verdict
        if word != PASS:
            parts.append(f"{record.trial.id}: {word}: {record.error or record.verdict_reason}.")
    return " ".join(parts)


def _restarts(scenario: TraceScenario, figure: Figure, views: Views) -> list[Table]:
    """Every idle time of more than an RTO: what was done, and what the rule says."""
    rows = []
    for curve in figure.curves:
        view = views.of(curve)
        if view is None:
            continue
        for restart in view.replayed().restarts:
            at_s = view.seconds(restart.time_ns)
            if figure.to_s and not figure.from_s <= at_s <= figure.to_s:
                continue
            rule = restart.rule
            rows.append((title_of(scenario, figure, view.trial), f"{at_s:.3f}", f"{restart.idle}",
                         f"{restart.rto}", f"{restart.before[0]} → {restart.after[0]}",
                         f"{rule[0]}" if rule else "–",
                         f"{limit(restart.before[1])} → {limit(restart.after[1])}",
                         limit(rule[1]) if rule else "–", f"{restart.flight}"))
    if not rows:
        return []
    return [Table("After idle times of more than an RTO:",
                  ("TCP", "at, s", "idle, ms", "RTO, ms", "window", "by rule", "ssthresh",
                   "by rule", "sent at once"), tuple(rows))]


def limit(ssthresh: int) -> str:
    return "∞" if ssthresh == INFINITE else str(ssthresh)


def title_of(scenario: TraceScenario, figure: Figure, trial: TraceTrial) -> str:
    """Names a curve among those of its figure: by its TCP, and what else differs."""
    tcp = scenario.tcp(trial.tcp).title
    trace = next(trace for trace in scenario.traces if trace.name == trial.trace)
    several = len({curve.trace for curve in figure.curves}) > 1
    title = f"{tcp}, {trace.title}" if several and trace.title else tcp
    return f"{title}, IW {trial.initcwnd}" if len(trace.initcwnd) > 1 else title


# Claims ------------------------------------------------------------------------

def _statement(scenario: TraceScenario, claim: Claim, views: Views) -> Statement:
    metric = METRICS[claim.metric]
    numbers: list[float] = []
    parts: list[str] = []
    figure = next(figure for figure in scenario.figures if figure.name == claim.figure)
    for curve in (claim.first, *([claim.second] if claim.second else [])):
        record = views.record(curve)
        title = title_of(scenario, figure, record.trial)
        view = views.of(curve)
        if view is None or record.verdict != PASS:
            why = record.error or record.verdict_reason
            return Statement(claim.says, f"not to be told, {title} does not count ({why}).",
                             NOT_REPRODUCED if record.verdict != SKIPPED else "not measured")
        value = metric.of(view, claim.at_s)
        numbers.append(value)
        parts.append(f"{title}: {metric.words(value)}")
    at = f" at {plain(claim.at_s)} s" if claim.metric in ("window", "ssthresh", "burst", "rtt_ms") else ""
    word, more = _judged(claim, numbers)
    return Statement(claim.says, "; ".join(parts) + at + more + ".", word)


def _judged(claim: Claim, numbers: Sequence[float]) -> tuple[str, str]:
    """The word, and what else is to be said."""
    first, second = numbers[0], numbers[-1]
    if claim.relation == "larger":
        return (REPRODUCED if first > second else NOT_REPRODUCED), ""
    if claim.relation == "smaller":
        return (REPRODUCED if first < second else NOT_REPRODUCED), ""
    if claim.relation == "equal":
        return (REPRODUCED if abs(first - second) <= claim.within else NOT_REPRODUCED), ""
    assert claim.published is not None
    if claim.relation == "percent_smaller":
        percent = (second - first) / second * 100 if second else 0.0
        word = (REPRODUCED if abs(percent - claim.published) <= claim.within
                else DIRECTION_ONLY if percent * claim.published > 0 else NOT_REPRODUCED)
        return word, f": {percent:.0f} % less, published {plain(claim.published)} %"
    word = REPRODUCED if abs(first - claim.published) <= claim.within else NOT_REPRODUCED
    return word, f", published {plain(claim.published)}"
