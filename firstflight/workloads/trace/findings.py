"""The findings of traces: tables, the source's claims with what was measured, and charts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from firstflight.base.words import plain
from firstflight.figures.claims import SIGNS, claims_on, expected_of, qualify
from firstflight.figures.compare import exact
from firstflight.figures.judging import judge
from firstflight.figures.making import Maker, all_findings, make_figures
from firstflight.figures.shared import format_named, shared_values, verdict_lines
from firstflight.findings.charts import Line, LineChart, Plot, TraceChart, TraceRow
from firstflight.findings.claims import NOT_MEASURED, NOT_REPRODUCED, ComparedNumber
from firstflight.findings.findings import Cell, Column, Finding, Rounded, Statement, Table
from firstflight.runs.kinds import RunData
from firstflight.runs.results.cells import Cells
from firstflight.runs.results.records import PASS, SKIPPED
from firstflight.scenario.claims import IS
from firstflight.workloads.trace.analysis import Views, row_of
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.scenario import TraceClaim, TraceCurve, TraceFigure, TraceScenario
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.view import METRICS
from firstflight.workloads.trace.window import INFINITE, format_ssthresh

# The fields of the network that stand below a figure's title where they do not vary.
FIXED = ("rtt_ms", "bandwidth_kbps", "queue_packets", "initcwnd")
TCP = Column("TCP", is_text=True)


def findings(scenario: TraceScenario, run: RunData[TraceRecord]) -> tuple[Finding, ...]:
    """A finding for each figure. Raises FirstFlightError where a file of the run is missing."""
    measured = TraceRun(scenario, Views(run.records, run.folder))
    return tuple(all_findings(make_figures(measured, scenario.figures, MAKERS)))


@dataclass(frozen=True)
class TraceRun:
    """A run with its scenario: what the figures are made of."""

    scenario: TraceScenario
    views: Views


def _window(measured: TraceRun, figure: TraceFigure) -> list[Finding]:
    """The window of each curve over time, with its restarts, and the claims on them."""
    scenario, views = measured.scenario, measured.views
    tables = (_overview(scenario, figure, views), *_restarts(scenario, figure, views))
    statements = tuple(qualify(claim, _statement(scenario, figure, claim, views))
                       for claim in claims_on(figure, scenario.claims))
    return [Finding(figure.name, figure.title, tables, statements,
                    chart=_chart(scenario, figure, views))]


def scenario_of_part(scenario: TraceScenario, records: Sequence[TraceRecord]) -> TraceScenario:
    """The scenario with what can be shown of a run on another network than the scenario's.

    It has no claims, since the source's sentences are about another network. Figures with a curve
    that was not measured are left out.
    """
    windows: dict[str, dict[int, None]] = {}
    for record in records:
        windows.setdefault(record.trial.trace, {})[record.trial.initcwnd] = None
    sweeps = tuple(replace(sweep, initcwnd=tuple(windows.get(sweep.name, sweep.initcwnd)))
                   for sweep in scenario.sweeps)

    def is_measured(curve: TraceCurve) -> bool:
        return any(curve.is_of(record.trial) for record in records)

    figures = tuple(replace(figure, title=f"{figure.title} (except what the command line gives)")
                    for figure in scenario.figures if all(map(is_measured, figure.curves)))
    return replace(scenario, claims=(), sweeps=sweeps, figures=figures)


def summary(records: Sequence[TraceRecord]) -> tuple[str, ...]:
    """Lines with the traces by verdict, traces that did not pass, and what the rules judged."""
    checked, wrong = _judged_samples(records)
    restarts = sum(record.judged_restarts or 0 for record in records if record.verdict == PASS)
    return (*verdict_lines(records, "traces"),
            "window samples that equal the TCP's rules, to the segment:"
            f" {checked - wrong} of {checked}",
            "restarts after more than an RTO with the window and flight that the rule requires:"
            f" {restarts}")


def _judged_samples(records: Sequence[TraceRecord]) -> tuple[int, int]:
    """How many samples of the window were compared with the rules, and how many of them differ."""
    return (sum(record.rule_checked or 0 for record in records),
            sum(record.rule_wrong or 0 for record in records))


def title_of(scenario: TraceScenario, figure: TraceFigure, trial: TraceTrial) -> str:
    """The name of a curve within its figure: its TCP, and what else differs."""
    title = _title(scenario, figure, trial.trace, trial.tcp)
    alike = {(curve.trace, curve.tcp) for curve in figure.curves
             if _title(scenario, figure, curve.trace, curve.tcp) == title}
    if len(alike) > 1:
        title += f" ({trial.trace}, {trial.tcp})"
    has_several_windows = len(scenario.sweep(trial.trace).initcwnd) > 1
    return f"{title}, IW {trial.initcwnd}" if has_several_windows else title


def _title(scenario: TraceScenario, figure: TraceFigure, trace: str, tcp: str) -> str:
    """A curve's title as the file has it; two curves may share one."""
    sweep = scenario.sweep(trace)
    tcp_title, trace_title = sweep.tcp(tcp).title, sweep.title
    has_several_traces = len({curve.trace for curve in figure.curves}) > 1
    if trace_title and has_several_traces:
        return f"{tcp_title}, {trace_title}"
    return tcp_title


# Tables ------------------------------------------------------------------------------

def _overview(scenario: TraceScenario, figure: TraceFigure, views: Views) -> Table:
    """A row for each trace of a figure: what was sent and lost, and how the rules judged it."""
    columns = (TCP, *map(Column, ("segments", "lost", "retransmitted", "timeouts",
                                  "largest window")),
               Column("longest RTT", "ms"), Column("finished", "s", digits=3),
               Column("in recovery, not judged"), Column("window as its rules say"))

    records_by_curve = [views.repeats(curve) for curve in figure.curves]
    records = [record for of_curve in records_by_curve for record in of_curve]
    repeats = max(map(len, records_by_curve))
    rows = [(title_of(scenario, figure, record.trial), *_cells(record)) for record in records]
    if repeats > 1:
        columns = (*columns[:1], Column("repeat"), *columns[1:])
        rows = [(title, record.trial.repeat, *cells)
                for record, (title, *cells) in zip(records, rows)]
    return Table("", columns, tuple(rows), _notes(scenario, figure, records, repeats))


def _cells(record: TraceRecord) -> tuple[Cell, ...]:
    """The cells of _overview after the title."""
    if record.verdict == SKIPPED or not record.ok:
        # Only the last column has something.
        return (*[None] * 8, "skipped" if record.ok else "failed")
    checked, wrong = _judged_samples([record])
    finish_s = record.finish_ms and record.finish_ms / 1000
    judged = f"{checked - wrong} of {checked} samples" if checked else "at restarts"
    return (record.data_segments, record.lost_segments, record.retransmissions, record.timeouts,
            record.largest_window, record.longest_rtt_ms, finish_s, record.rule_unjudged, judged)


def _notes(scenario: TraceScenario, figure: TraceFigure, records: Sequence[TraceRecord],
           repeats: int) -> tuple[str, ...]:
    """The notes below the table of a figure. repeats: how often each curve was measured."""
    parts = [scenario.head.note] if scenario.head.note and figure is scenario.figures[0] else []
    if repeats > 1:
        parts.append(f"Of {repeats} repeats the first is drawn, and claims are tested on it.")
    parts += [f"{record.trial.id}: {record.verdict if record.ok else 'failed'}:"
              f" {record.error or record.verdict_reason}."
              for record in records if not record.counts]
    return (" ".join(parts),) if parts else ()


def _restarts(scenario: TraceScenario, figure: TraceFigure, views: Views) -> list[Table]:
    """A table of every idle time of more than an RTO: what TCP did, and what the rule requires.

    [] where there is no such idle time.
    """
    rows: list[tuple[Cell, ...]] = []
    for view, at_s, restart in views.restarts(figure):
        cwnd, ssthresh = restart.rule or (None, None)
        rows.append((
            title_of(scenario, figure, view.trial), at_s, restart.idle, restart.rto,
            f"{restart.before[0]} → {restart.after[0]}", cwnd,
            f"{format_ssthresh(restart.before[1])} → {format_ssthresh(restart.after[1])}",
            format_ssthresh(INFINITE) if ssthresh == INFINITE else ssthresh, restart.flight))
    columns = (TCP, Column("at", "s", digits=3), Column("idle", "ms"), Column("RTO", "ms"),
               *map(Column, ("window", "by rule", "ssthresh", "by rule", "sent at once")))
    return [Table("After idle times of more than an RTO:", columns, tuple(rows))] if rows else []


# Claims ------------------------------------------------------------------------------

def _statement(scenario: TraceScenario, figure: TraceFigure, claim: TraceClaim,
               views: Views) -> Statement:
    """What the traces show of a claim, and its result."""
    metric = METRICS[claim.metric]
    numbers: list[float] = []
    parts: list[str] = []
    for curve in reversed(claim.compares):
        record, view = views.record(curve), views.view(curve)
        title = title_of(scenario, figure, record.trial)
        if view is None or record.verdict != PASS:
            return Statement(
                claim.says, f"undetermined, {title} does not count ({record.why_not}).",
                NOT_MEASURED if record.verdict == SKIPPED else NOT_REPRODUCED)
        numbers.append(metric.value(view, claim.at_s))
        parts.append(f"{title}: {metric.words(numbers[-1])}")

    outcome, published = _judge_claim(claim, numbers)
    repeats = max(len(views.repeats(curve)) for curve in claim.compares)
    which = f" (the first of {repeats} repeats)" if repeats > 1 else ""
    observed = f"{'; '.join(parts)}{metric.when(claim.at_s)}"
    return Statement(claim.says, f"{observed}{published}{which}.", outcome)


def _judge_claim(claim: TraceClaim, numbers: Sequence[float]) -> tuple[str, str]:
    """The result of a claim, and the end of its sentence, which has the published number.

    numbers: of the second curve, then of the base; or of the only curve.
    """
    if claim.expects == IS and claim.published is not None:
        (measured,), published = numbers, plain(claim.published)
        outcome = ComparedNumber(measured, claim.published, claim.within or 0.0,
                                 (measured, measured)).result
        return outcome, f", {published} put in" if claim.rebuilt else f", published {published}"

    second, base = numbers
    change = exact(base, second)  # every repeat of a trace gives the same
    outcome = judge(expected_of(claim), change).outcome
    if claim.published is None:
        return outcome, ""
    percent = SIGNS[claim.expects] * change.percent.value
    return outcome, f": {percent:.0f} % {claim.expects}, published {plain(claim.published)} %"


# Charts ------------------------------------------------------------------------------

def context_of(trials: Iterable[TraceTrial]) -> tuple[str, ...]:
    """The line below a figure's title: what all its curves have in common, with units."""
    common = [format_named(name, value).removesuffix(" segments")
              for name, value in shared_values(trials, FIXED).items()]
    return (": ".join(filter(None, ("real Linux TCP", ", ".join(common)))),)


def _chart(scenario: TraceScenario, figure: TraceFigure, views: Views) -> TraceChart:
    """A row of plots for each curve; for a curve without a record that counts, why it has none."""
    records = [views.record(curve) for curve in figure.curves]
    rows = []
    for curve, record in zip(figure.curves, records):
        title, view = title_of(scenario, figure, record.trial), views.view(curve)
        if view is not None:
            rows.append(row_of(title, view, flagged=record.verdict != PASS))
        else:
            absent = f"{'skipped' if record.ok else 'failed'}: {record.why_not}"
            rows.append(TraceRow(title, absent=absent))

    ends_s = [row.acked[-1][0] for row in rows if row.acked]
    sequence_s = None
    if figure.sequence_to_s:
        sequence_s = figure.sequence_from_s, figure.sequence_to_s
    checked, wrong = _judged_samples(records)
    return TraceChart(
        figure.title, context_of(record.trial for record in records),
        f"{checked} samples of the window compared with the rules of each TCP, to the segment",
        alarm=f"{wrong} samples of the window differ from the rules" if wrong else "",
        rows=tuple(rows), from_s=figure.from_s,
        to_s=figure.to_s or 1.02 * max(ends_s, default=1.0), rtt=figure.rtt, sequence_s=sequence_s)


# A warm connection: what a think time does to the next response --------------------

ALIKE_MS = 0.5  # responses that differ by less take the same time
ROW_INCHES = 1.9  # the height of a row of plots

ByThinkTime = dict[float, dict[int, TraceRecord]]  # think time (s) → initial window → record


def by_think_time(records: Sequence[TraceRecord], curve: TraceCurve) -> ByThinkTime:
    """The records of one trace and TCP that count, in the order of their think times."""
    of_curve = Cells(records).counting.at(trace=curve.trace, tcp=curve.tcp, repeat=1).by("think_s")
    found = {}
    for think_s in sorted(think_s for think_s, in of_curve if think_s is not None):
        cell = of_curve[think_s,]
        found[think_s] = {record.trial.initcwnd: record for record in cell.records}
    return found


def windows_of(measured: ByThinkTime) -> list[int]:
    """The initial windows that were measured, the smallest first."""
    return sorted({window for line in measured.values() for window in line})


# The columns of the figure: the label of each one's axis, and the value that is drawn.
WARM_COLUMNS: dict[str, Callable[[TraceRecord], float]] = {
    "latency (ms)": lambda record: record.latency_ms or 0.0,
    "window (segments)": lambda record: record.last_window or 0}


def _warm(measured_run: TraceRun, figure: TraceFigure) -> list[Finding]:
    """The last response after each think time: a table for each curve, an answer, and a chart."""
    scenario, records = measured_run.scenario, measured_run.views.records
    measured = [by_think_time(records, curve) for curve in figure.curves]
    tables = list(map(_warm_table, figure.curves, measured))
    answers = tuple(map(_warm_answer, figure.curves, measured))

    notes = [scenario.head.note] if scenario.head.note else []
    repeats = max((record.trial.repeat for record in records), default=1)
    if repeats > 1:
        notes.append(f"Of {repeats} repeats the first is shown; trials.csv has all.")
    if notes:
        tables[-1] = replace(tables[-1], notes=tuple(notes))
    chart = _warm_chart(scenario, figure, measured, records=records)
    return [Finding(figure.name, figure.title, tuple(tables), statements=answers, chart=chart)]


def _warm_table(curve: TraceCurve, measured: ByThinkTime) -> Table:
    """A row for each think time, a column for each initial window."""
    windows = windows_of(measured)
    rows: list[tuple[Cell, ...]] = []
    for think_s, line in measured.items():
        decimals = len(plain(think_s).partition(".")[2])
        rows.append((Rounded(think_s, decimals),
                     *(_warm_cell(line.get(window)) for window in windows)))
    return Table(
        f"{curve.trace}, {curve.tcp}: latency of the response in ms (window at its start →"
        " segments retransmitted)",
        (Column("think time", "s"), *(Column(f"IW {window}") for window in windows)), tuple(rows))


def _warm_cell(record: TraceRecord | None) -> Cell:
    """The latency, with window and retransmissions; None where the response was not measured."""
    if record is None or record.latency_ms is None:
        return None
    retransmitted = f" → {record.last_retransmissions}" if record.last_retransmissions else ""
    return f"{record.latency_ms:.1f} ({record.last_window or 0}{retransmitted})"


def _warm_answer(curve: TraceCurve, measured: ByThinkTime) -> Statement:
    """Compare each initial window with the next smaller one, in a sentence with numbers."""
    windows = windows_of(measured)
    question = ("When is a larger initial window faster on a kept connection"
                f" ({curve.trace}, {curve.tcp})?")
    parts: list[str] = []
    for smaller, larger in zip(windows, windows[1:]):
        parts += _compare_windows(measured, smaller, larger)
    never = "Never: all initial windows take the same time after every think time"
    return Statement(question, f"{'; '.join(parts) or never}.")


def _compare_windows(measured: ByThinkTime, smaller: int, larger: int) -> list[str]:
    """After which think times the larger window is faster, and after which slower, in words.

    [] where both windows always take the same time.
    """
    latencies_ms = {think_s: (line[smaller].latency_ms or 0.0, line[larger].latency_ms or 0.0)
                    for think_s, line in measured.items() if smaller in line and larger in line}
    parts = []
    for word, sign in (("faster", 1), ("slower", -1)):
        thinks = [think_s for think_s, (small_ms, large_ms) in latencies_ms.items()
                  if sign * (small_ms - large_ms) > ALIKE_MS]
        if thinks:
            small_ms, large_ms = latencies_ms[thinks[-1]]
            when = _when(thinks, list(latencies_ms))
            parts.append(f"IW {larger} is {word} than IW {smaller} {when}"
                         f" ({large_ms:.1f} instead of {small_ms:.1f} ms after"
                         f" {plain(thinks[-1])} s)")
    return parts


def _when(thinks: Sequence[float], all_thinks: Sequence[float]) -> str:
    """After which of all think times something holds, in words. Times are in seconds."""
    if len(thinks) == len(all_thinks):
        return "after every think time"
    if list(thinks) == list(all_thinks[-len(thinks):]):
        return f"from a think time of {plain(thinks[0])} s on"
    return f"after a think time of {' or '.join(map(plain, thinks))} s"


def _warm_chart(scenario: TraceScenario, figure: TraceFigure, measured: Sequence[ByThinkTime],
                records: Sequence[TraceRecord]) -> LineChart:
    """A row for each curve, and a column for each of WARM_COLUMNS."""
    titles = []
    for curve in figure.curves:
        sweep = scenario.sweep(curve.trace)
        titles.append(f"{sweep.tcp(curve.tcp).title}, {sweep.title}")

    columns: list[tuple[Plot, ...]] = []
    for label in WARM_COLUMNS:
        top = _warm_top(label, measured)
        plots = [_warm_plot(label, by_time, is_last=by_time is measured[-1], top=top)
                 for by_time in measured]
        if not columns:  # a row's title stands above its first plot
            plots = [replace(plot, title=title) for plot, title in zip(plots, titles)]
        columns.append(tuple(plots))

    excluded = sum(not record.counts for record in records)
    return LineChart(
        figure.title, context_of(record.trial for record in records),
        "At the right: the window when the response begins.",
        alarm=f"{excluded} excluded" if excluded else "", columns=tuple(columns),
        plot_inches=ROW_INCHES, legend=True, palette="ordered")


def _warm_top(label: str, measured: Sequence[ByThinkTime]) -> float:
    """The top of a column's axis, which all of its rows share."""
    values: list[float] = []
    for by_time in measured:
        for line in by_time.values():
            values += map(WARM_COLUMNS[label], line.values())
    return max(values, default=1.0)


def _warm_plot(label: str, measured: ByThinkTime, is_last: bool, top: float) -> Plot:
    """A line for each initial window. is_last: whether it is the lowest of its column."""
    lines = []
    for look, window in enumerate(windows_of(measured)):
        points = {think_s: WARM_COLUMNS[label](line[window]) for think_s, line in measured.items()
                  if window in line}
        lines.append(Line(f"IW {window}", tuple(points), tuple(points.values()), look=look,
                          window=window))
    return Plot("think time (s)" if is_last else "", label, tuple(lines),
                ticks=tuple((think_s, plain(think_s)) for think_s in measured),
                x_scale="log", y_ends=(0, 1.08 * top), whole=True)


MAKERS: dict[str, Maker[TraceRun, TraceFigure]] = {"window": _window, "warm": _warm}
