"""The page of one run: its records, and what analysis makes of them, as one HTML file.

The page stands alone: figures, style and script are inside, and nothing is
loaded from anywhere. It depends on the records, run.json and the figures
only, so that building it again gives the same bytes. What is read from files
is escaped by the template (report.html.j2), which alone knows HTML.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lab import (analysis, comparison, population_analysis, published, report_facts,
                 report_page, report_texts as texts, runs, scenario as scenarios, stats, table,
                 time_sequence)
from lab.analysis import Bucket, Panel
from lab.comparison import REPRODUCED, Row
from lab.errors import FirstFlightError
from lab.records import SKIPPED, Record, read_records, record_value
from lab.report_page import ReportError as ReportError
from lab.scenario import LOSS, OF_EXPERIMENT, WINDOW_SWEEP, Scenario, plain
from lab.tcp.predict import CONGESTION_CONTROLS
from lab.trial import Trial

TEMPLATE = "report.html.j2"
MOST_ROWS = 500  # of one table; a browser sorts them at once, and a person has seen enough

Ends = tuple[tuple[float, str], ...]  # upper end and label of each bucket, ascending


# What the template draws ---------------------------------------------------------

@dataclass(frozen=True)
class Column:
    """One column of a table.

    group: the heading above it; is_text: aligned left; is_filter: offered as
    a filter; is_word: a word of lab.comparison, coloured.
    """

    name: str
    unit: str = ""
    group: str = ""
    is_text: bool = False
    is_filter: bool = False
    is_word: bool = False


@dataclass(frozen=True)
class Table:
    """Cells as text, a row per tuple; left_out: how many rows are not shown."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings above the columns, each with the number of columns that it spans."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and spans[-1][0] == column.group:
                spans[-1] = column.group, spans[-1][1] + 1
            else:
                spans.append((column.group, 1))
        return spans if any(name for name, _ in spans) else []

    def has_group(self, name: str) -> bool:
        return any(column.group == name for column in self.columns)


@dataclass(frozen=True)
class Missing:
    """A figure that the run does not cover, and why."""

    title: str
    reason: str


@dataclass(frozen=True)
class Tile:
    """A number that stands out, and what it is."""

    value: str
    meaning: str


@dataclass(frozen=True)
class Picture:
    """One figure: the drawing as a data: address ("" where there is none) and its table.

    says: the figure in a sentence; text: what a reader who cannot see it is
    told, with the numbers.
    """

    name: str
    title: str
    source: str
    says: str
    text: str
    table: Table | None


@dataclass(frozen=True)
class Run:
    """One run folder as it was read."""

    folder: Path
    scenario: Scenario
    records: tuple[Record, ...]
    facts: Mapping[str, Any]

    @property
    def path(self) -> str:
        """The folder as seen from where results are, wherever that is."""
        return f"{self.scenario.name}/{self.folder.resolve().name}"

    @cached_property
    def covered(self) -> tuple[dict[str, Panel], dict[str, str]]:
        """The rows of each figure that the run covers, and why the others have none."""
        panels, missing = {}, {}
        for figure in self.scenario.figures:
            try:
                panels[figure.name] = analysis.panel(self.scenario, figure, self.records)
            except FirstFlightError as error:
                missing[figure.name] = str(error)
        return panels, missing

    @property
    def deterministic(self) -> bool:
        """Whether a fetch without loss is the same whenever it is repeated: virtual time."""
        return self.facts.get("virtual_time") is True

    @property
    def changes(self) -> list[analysis.Change]:
        """What larger windows changed, a line per cell; repeats differ in their seeds too."""
        return analysis.changes(analysis.settings(
            replace(record, trial=replace(record.trial, seed=0))
            for record in sorted(self.records, key=lambda record: _order(record.trial))))


# Reading a run -------------------------------------------------------------------

def scenario_of(folder: Path) -> str:
    """The name of a run's scenario. Raises ReportError where run.json does not say."""
    name = _read_facts(folder / runs.RUN_JSON).get("scenario")
    if not isinstance(name, str):
        raise ReportError(f"{folder / runs.RUN_JSON}: names no scenario; it is not a run of ours,"
                          " or it was stopped before it began")
    return name


def read_run(folder: Path) -> Run:
    """Read run.json and trials.csv. Raises FirstFlightError where they are not whole."""
    name, facts = scenario_of(folder), _read_facts(folder / runs.RUN_JSON)
    scenario = scenarios.load(name)
    records = read_records(folder / runs.TRIALS_CSV)
    if not records:
        raise ReportError(f"{folder / runs.TRIALS_CSV}: holds no trial yet; measure with"
                          f" {analysis.command(scenario, ())}")
    foreign = next((record for record in records if record.trial.scenario != name), None)
    if foreign is not None:
        raise ReportError(f"{folder / runs.TRIALS_CSV}: holds trials of"
                          f" {foreign.trial.scenario!r}, but run.json says {name!r}")
    return Run(folder, scenario, tuple(records), facts)


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # also bytes that are no text
        raise ReportError(f"{path}: is damaged ({error}); measure again with --fresh") from error
    if not isinstance(facts, dict):
        raise ReportError(f"{path}: is not the description of a run")
    return facts


# The page ------------------------------------------------------------------------

def page(run: Run, drawings: Mapping[str, bytes]) -> str:
    """The whole page.

    drawings: PNG files by name of the figure; others than the scenario's are
    shown after them.
    """
    panels, reasons = run.covered
    shown = pictures(run, panels, drawings)
    return report_page.render(
        TEMPLATE, scenario=run.scenario, run_path=run.path, tiles=tiles(run, panels),
        findings=findings(run, panels), pictures=shown,
        missing=missing_figures(run, shown, reasons),
        statements=statements(run, panels.values()),
        changes=changes(run) if not panels else None, trials=trials(run),
        checks=checks(run), failures=failures(run), causes=causes(run),
        charts=time_sequence.charts(run.records, run.folder / "captures"),
        facts=report_facts.provenance(run.facts, run.scenario.name, run.path,
                                      run.scenario.text), sysctls=sysctls(run))


def write(run: Run, drawings: Mapping[str, bytes]) -> Path:
    """Write the page into the run's folder, aside and renamed; return its path."""
    return report_page.write(run.folder, page(run, drawings))


# Findings ------------------------------------------------------------------------

def tiles(run: Run, panels: Mapping[str, Panel]) -> list[Tile]:
    """The numbers that a reader wants first."""
    counting = sum(record.counts for record in run.records)
    found = [Tile(f"{counting} of {len(run.records)}", "transfers verified on the wire")]
    buckets = [bucket for panel in panels.values() for bucket in panel.buckets
               if panel.figure.kind != WINDOW_SWEEP
               or bucket.value != panel.figure.baseline_initcwnd]
    if buckets:
        percents = [bucket.percent for bucket in buckets]
        found.append(Tile(texts.span(percents, "%"), "of the time saved by a larger window"))
        words = Counter(row.word for panel in panels.values()
                        for row in comparison.rows(panel, run.deterministic) if row.word)
        if words:
            found.append(Tile(f"{words[REPRODUCED]} of {words.total()}",
                              "published bars reproduced"))
    emulated_s, wall_s = run.facts.get("emulated_s"), run.facts.get("wall_s")
    if isinstance(emulated_s, (int, float)) and isinstance(wall_s, (int, float)):
        found.append(Tile(f"{texts.duration(emulated_s)} in {texts.duration(wall_s)}",
                          "network time, and the time it took"))
    return found


def findings(run: Run, panels: Mapping[str, Panel]) -> list[str]:
    """What the records say, in a few plain sentences, the most important first."""
    found = [_verified(run)]
    found += [*_reproduced(run, panels.values()), *_held(run, panels.values()),
              *_recovered(panels.values()), *_differences(panels.values())]
    if not panels:
        found += [_change(change) for change in run.changes[:3]]
    found += [*_against_model(run), *_sent_again(run)]
    if run.facts.get("state") != runs.COMPLETE:
        found.append("The run is under way or was interrupted: this page shows what it had"
                     " measured when the page was built.")
    return found


def _verified(run: Run) -> str:
    records = run.records
    counting = sum(record.counts for record in records)
    failed = sum(not record.ok for record in records)
    refused = len(records) - counting - failed
    if counting == len(records):
        return (f"All {len(records)} transfers were verified on the wire: their packets show"
                " the initial window, the RTT and the bandwidth that were asked for.")
    return (f"{counting} of {len(records)} transfers were verified on the wire. Left out of"
            f" every number here: {analysis.Excluded(failed, refused)}.")


def _reproduced(run: Run, panels: Iterable[Panel]) -> list[str]:
    """How many of the published bars came out, in all and by figure."""
    counted = {panel.figure.title: comparison.counts(
        comparison.rows(panel, run.deterministic)) for panel in panels}
    total = sum((Counter(counts) for counts in counted.values()), Counter[str]())
    if not total.total():
        return []
    none = [title for title, counts in counted.items()
            if sum(counts.values()) and not counts[REPRODUCED]]
    text = f"Of the published bars, {comparison.summary({**_NO_WORDS, **total})}"
    if none and len(none) < len(counted):
        text += f"; no bar is reproduced of: {'; '.join(none)}"
    return [f"{text}. {WHAT_WORDS_MEAN}"]


_NO_WORDS = dict.fromkeys(comparison.WORDS, 0)
WHAT_WORDS_MEAN = (
    f"Reproduced means within {comparison.WITHIN_PERCENT:g} % of the published milliseconds and"
    f" {comparison.WITHIN_POINTS:g} points of the published percentage, or that the published"
    " value lies inside our 95 % interval.")


def _held(run: Run, panels: Iterable[Panel]) -> list[str]:
    """Of what was published in words, how much holds, and what does not."""
    said = comparison.said(run.scenario.claims, list(panels))
    if not said:
        return []
    held = sum(each.word == REPRODUCED for each in said)
    text = f"Of {len(said)} published statements, {held} hold here"
    failed = [f"“{each.claim.says}” ({each.found})" for each in said
              if each.word != REPRODUCED]
    return [text + (f"; not so: {'; '.join(failed)}." if failed else ".")]


def _recovered(panels: Iterable[Panel]) -> list[str]:
    """Whether a larger window helps or harms under random loss, beyond what it gains anyway."""
    found = Counter(recovery.word for panel in panels if panel.figure.kind == LOSS
                    for recovery in comparison.recoveries(panel))
    if not found:
        return []
    return [f"Under random loss the larger window gains more than without loss in"
            f" {found[comparison.HELPS]} of {found.total()} bars and less in"
            f" {found[comparison.HARMS]}; the 95 % interval leaves"
            f" {found[comparison.UNDECIDED]} undecided."]


def sentence(panel: Panel) -> str:
    """One figure in a sentence: the range of what is saved, here and published."""
    figure, buckets = panel.figure, panel.buckets
    if figure.kind == WINDOW_SWEEP:
        return _shortest(panel)
    _, unit = quantity(figure.by)
    low = min(buckets, key=lambda bucket: bucket.absolute_ms)
    high = max(buckets, key=lambda bucket: bucket.absolute_ms)
    verb = "save" if low.absolute_ms >= 0 else "change the time, savings counted positive, by"
    text = (f"{figure.experiment_initcwnd} instead of {figure.baseline_initcwnd} segments {verb}"
            f" {texts.short(low.absolute_ms)} ms (at {_at(low, unit)}) to"
            f" {texts.short(high.absolute_ms)} ms (at {_at(high, unit)}),"
            f" {texts.span([bucket.percent for bucket in buckets], '%')}")
    known = [texts.span(values, unit) for values, unit in (
        ([bucket.published_absolute_ms for bucket in buckets], "ms"),
        ([bucket.published_percent for bucket in buckets], "%"))
        if any(value is not None for value in values)]
    text += f"; published are {', '.join(known)}." if known else "."
    recovered = comparison.recoveries(panel) if figure.kind == LOSS else []
    if recovered:
        text += (" Beyond what is saved without loss: "
                 + "; ".join(f"{texts.short(each.part_ms)} ms at {_at(each.bucket, unit)}"
                             f" ({texts.true_minus(table.ends(each.interval_ms))}, {each.word})"
                             for each in recovered) + ".")
    return text


def _shortest(panel: Panel) -> str:
    """A window sweep: which window took the least time, and what was published."""
    best = min(panel.buckets, key=lambda bucket: bucket.experiment_ms)
    windows = ", ".join(bucket.label for bucket in panel.buckets)
    text = (f"Of the windows {windows}, {best.label} took the least time:"
            f" {texts.short(best.experiment_ms)} ms on average, {texts.short(best.absolute_ms)} ms or"
            f" {texts.short(best.percent)} % less than {panel.figure.baseline_initcwnd}")
    known = [(bucket.published_ms, bucket.label) for bucket in panel.buckets
             if bucket.published_ms is not None]
    if known:
        least_ms, label = min(known)
        text += f"; published, {label} took the least, {texts.short(least_ms)} ms"
    return text + "."


def quantity(by: str) -> tuple[str, str]:
    """Name and unit of what a figure's buckets are of."""
    if by == "percentile":
        return by, ""
    return table.QUANTITY_NAMES.get(by, (by.replace("_", " "), ""))


def _at(bucket: Bucket, unit: str) -> str:
    return f"{bucket.label} {unit}".strip()


def _differences(panels: Iterable[Panel]) -> list[str]:
    """Where the numbers are farthest from the published ones, by ratio."""
    ratios = [(bucket.absolute_ms / bucket.published_absolute_ms, panel, bucket)
              for panel in panels for bucket in panel.buckets
              if (bucket.published_absolute_ms or 0) > 0 and bucket.absolute_ms > 0
              and bucket.published_absolute_ms is not None]
    if not ratios:
        return []

    def name(panel: Panel, bucket: Bucket) -> str:
        of, unit = quantity(panel.figure.by)
        return (f"{of} {_at(bucket, unit)}: {texts.short(bucket.absolute_ms)} ms here,"
                f" {texts.short(bucket.published_absolute_ms)} ms published")
    highest = max(ratios, key=lambda each: each[0])
    lowest = min(ratios, key=lambda each: each[0])
    parts = []
    if highest[0] > 1:
        parts.append(f"Farthest above the published value is {name(*highest[1:])}"
                     f" ({highest[0]:.1f} times as much).")
    if lowest[0] < 1:
        parts.append(f"Farthest below is {name(*lowest[1:])} ({lowest[0] * 100:.0f} % of it).")
    return [" ".join(parts)] if parts else []


def _change(change: analysis.Change) -> str:
    asked = change.base.asked
    verb = "less" if change.absolute_ms >= 0 else "more"
    return (f"At an RTT of {plain(asked.rtt_ms)} ms and {plain(asked.bandwidth_kbps)} kbit/s,"
            f" {change.experiment.asked.initcwnd} instead of {asked.initcwnd} segments took"
            f" {texts.short(change.experiment.total_ms)} ms instead of"
            f" {texts.short(change.base.total_ms)} ms: {texts.short(abs(change.absolute_ms))} ms or"
            f" {texts.short(abs(change.percent))} % {verb}.")


def _against_model(run: Run) -> list[str]:
    """How near the model is, where nothing was sent again: elsewhere it does not claim to be."""
    late_ms = [abs(record.total_ms - record.model_ms) for record in run.records
               if record.counts and _is_modelled(record) and not record.trial.loss_percent
               and record.total_ms is not None and record.model_ms is not None]
    if not late_ms or not run.facts.get("virtual_time"):
        return []
    near = sum(each <= 1 for each in late_ms)
    farthest_ms = max(0.01, math.ceil(max(late_ms) * 100 - 1e-6) / 100)
    which = (f"to within {farthest_ms:g} ms" if near == len(late_ms) else
             f"{near} of them to within 1 ms and all to within {farthest_ms:.0f} ms")
    return [f"Of the verified transfers over links that lose nothing, the {len(late_ms)} without a"
            f" retransmission took what the model of TCP computes, {which}."]


def _sent_again(run: Run) -> list[str]:
    """How many transfers repeated segments, and why."""
    again = [record for record in run.records if record.retransmissions]
    if not again:
        return ["No data was retransmitted."]
    lost = sum(bool(record.lost_segments) for record in again)
    after = {0: "none of them because data was lost",
             len(again): "all of them after data was lost"}.get(
                 lost, f"{lost} of them after data was lost")
    return [f"{len(again)} of {len(run.records)} transfers retransmitted data, {after}; the"
            " causes stand under the verdicts."]


# Figures -------------------------------------------------------------------------

def pictures(run: Run, panels: Mapping[str, Panel], drawings: Mapping[str, bytes],
             ) -> list[Picture]:
    """Every figure that the run covers with its table, then drawings that no figure names."""
    shown = []
    for figure in run.scenario.figures:
        panel, drawing = panels.get(figure.name), drawings.get(figure.name)
        if panel is not None or drawing is not None:
            shown.append(Picture(
                figure.name, figure.title, "" if drawing is None else report_page.address(drawing),
                "" if panel is None else sentence(panel),
                figure.title if panel is None else _described(panel),
                None if panel is None else bucket_table(panel, run.deterministic)))
    known = {figure.name for figure in run.scenario.figures}
    return shown + [_other_picture(run, name, drawing)
                    for name, drawing in sorted(drawings.items()) if name not in known]


OTHER_TITLES = {"causes": "What each cause adds", "fig5": "The panels together",
                "joint_average": "RTT and bandwidth together, average data centre",
                "joint_slow": "RTT and bandwidth together, slow data centre"}


def _other_picture(run: Run, name: str, drawing: bytes) -> Picture:
    """A drawing beside the scenario's figures, with a table where it shows measurements."""
    title = OTHER_TITLES.get(name, name.replace("_", " "))
    rows = cause_table(run) if name == "causes" else None
    text = title if rows is None else f"{title}. " + " ".join(
        f"{cells[0]}: {cells[2]} ms saved of {cells[1]} ms." for cells in rows.rows)
    if name == "fig5":
        text += ". Their numbers stand in the tables of the single figures."
    return Picture(name, title, report_page.address(drawing), "", text, rows)


def cause_table(run: Run) -> Table | None:
    """The mean of each step from the clean mechanism to everything; None where not measured."""
    try:
        causes = population_analysis.causes(run.scenario, run.records)
    except FirstFlightError:
        return None
    columns = (Column("causes, one more in each line", is_text=True),
               Column("baseline", "ms", "mean"), Column("saved", "ms", "mean"),
               Column("bars near the published ones"))
    return Table("What each cause adds", columns, tuple(
        (cause.title, texts.number(cause.base_ms), texts.number(cause.absolute_ms),
         f"{cause.within} of {sum(map(len, cause.panels.values()))}") for cause in causes))


def missing_figures(run: Run, shown: Sequence[Picture], reasons: Mapping[str, str],
                    ) -> list[Missing]:
    """The figures of the scenario that the page cannot show, and why."""
    names = {picture.name for picture in shown}
    return [Missing(figure.title, reasons.get(figure.name) or "not drawn; build the page again"
                    f" with ./report.py --scenario {run.scenario.name}")
            for figure in run.scenario.figures if figure.name not in names]


def _described(panel: Panel) -> str:
    """The figure in words and numbers."""
    figure = panel.figure
    name, unit = quantity(figure.by)
    if figure.kind == WINDOW_SWEEP:
        times = "; ".join(
            f"{_at(bucket, unit)}: {texts.short(bucket.experiment_ms)} ms"
            + (f" (published {texts.short(bucket.published_ms)} ms)"
               if bucket.published_ms is not None else "") for bucket in panel.buckets)
        return f"Mean times by initial window. {times}."
    bars = "; ".join(
        f"{_at(bucket, unit)}: {texts.short(bucket.absolute_ms)} ms, {texts.short(bucket.percent)} %"
        + _published_bar(bucket) for bucket in panel.buckets)
    return (f"Bars of the improvement by {name}, {figure.baseline_initcwnd} to"
            f" {figure.experiment_initcwnd} segments. {bars}.")


def _published_bar(bucket: Bucket) -> str:
    parts = [f"{texts.short(value)} {unit}" for value, unit in
             ((bucket.published_absolute_ms, "ms"), (bucket.published_percent, "%"))
             if value is not None]
    return f" (published {', '.join(parts)})" if parts else ""


def bucket_table(panel: Panel, deterministic: bool) -> Table:
    """The numbers of one figure, a row per bucket; columns that hold nothing are left out."""
    figure = panel.figure
    rows = comparison.rows(panel, deterministic)
    windows = figure.kind == WINDOW_SWEEP
    columns = (Column(*quantity(figure.by)), Column("share", "%"), Column("n"),
               Column("left out"), Column(f"IW{figure.baseline_initcwnd}", "ms", "mean"),
               Column("this window" if windows else f"IW{figure.experiment_initcwnd}", "ms",
                      "mean"),
               Column("saved", "ms", "improvement"),
               Column("95 % interval", "ms", "improvement"), Column("saved", "%", "improvement"),
               Column("as published", "%", "improvement"),
               Column("of medians", "ms", "improvement"),
               Column("beyond lossless", "ms", "recovery"),
               Column("95 % interval", "ms", "recovery"),
               Column("word", "", "recovery", is_text=True),
               Column("time", "ms", "published"), Column("saved", "ms", "published"),
               Column("saved", "%", "published"),
               Column("off", "%", "ours less published"),
               Column("off", "points", "ours less published"),
               Column("word", "", "ours less published", is_text=True, is_word=True))
    recovered = ({recovery.bucket.label: recovery for recovery in comparison.recoveries(panel)}
                 if figure.kind == LOSS else {})
    medians = figure.by != "percentile" and any(
        abs(bucket.median_absolute_ms - bucket.absolute_ms) > 0.1 for bucket in panel.buckets)
    shown = tuple(_bucket_cells(panel, row, recovered.get(row.bucket.label), medians)
                  for row in rows)
    averaged = f"; {table.AVERAGED.get(figure.weights)}" if figure.weights else ""
    notes = [f"{table.METRIC_NAMES.get(figure.metric, figure.metric)}; {panel.client},"
             f" {panel.congestion_control}{averaged}"]
    if figure.percent_of == OF_EXPERIMENT:
        notes.append("As published: base / experiment − 1, the source's own percentage; the"
                     " others are parts of the baseline.")
    inside = [row.bucket.label for row in rows
              if row.word == REPRODUCED and "inside the interval" in row.test]
    if inside:
        notes.append(f"Inside our interval, though farther off than the limits: the published"
                     f" value of {', '.join(inside)}.")
    notes += _left_out(panel)
    return _without_empty(Table(figure.title, columns, shown, tuple(notes)))


def _left_out(panel: Panel) -> list[str]:
    """What the buckets lack, those that lack the same in one line."""
    lacking: dict[str, list[str]] = {}
    for bucket in panel.buckets:
        if bucket.excluded.total:
            cells = (f"{bucket.cells} of {bucket.cells_asked} cells count; "
                     if bucket.cells < bucket.cells_asked else "")
            lacking.setdefault(f"{cells}left out: {bucket.excluded}", []).append(bucket.label)
    return [f"{', '.join(labels)}: {what}." for what, labels in lacking.items()]


def _bucket_cells(panel: Panel, row: Row, recovered: comparison.Recovery | None,
                  medians: bool) -> tuple[str, ...]:
    """The cells of one bucket, as bucket_table has its columns."""
    bucket = row.bucket
    printed = panel.figure.percent_of == OF_EXPERIMENT
    return (bucket.label, texts.number(bucket.share_percent, 2), str(bucket.n),
            str(bucket.excluded.total) if panel.excluded.total else "",
            "" if panel.figure.kind == WINDOW_SWEEP else texts.number(bucket.base_ms),
            texts.number(bucket.experiment_ms), texts.number(bucket.absolute_ms),
            texts.true_minus(table.interval(row)), texts.number(bucket.percent),
            texts.number(row.percent) if printed else "",
            texts.number(bucket.median_absolute_ms) if medians else "",
            texts.number(recovered.part_ms) if recovered else "",
            texts.true_minus(table.ends(recovered.interval_ms)) if recovered else "",
            recovered.word if recovered else "", texts.number(bucket.published_ms),
            texts.number(bucket.published_absolute_ms), texts.number(row.published_percent),
            texts.number(row.deviation_percent, 0, signed=True),
            texts.number(row.deviation_points, signed=True), row.word)


def statements(run: Run, panels: Iterable[Panel]) -> Table | None:
    """What was published in words, beside what was found; None where nothing was."""
    said = comparison.said(run.scenario.claims, list(panels))
    if not said:
        return None
    titles = {figure.name: figure.title for figure in run.scenario.figures}
    return Table("Published in words",
                 (Column("statement", is_text=True), Column("figure", is_text=True),
                  Column("found", is_text=True), Column("word", is_text=True, is_word=True)),
                 tuple((each.claim.says, titles[each.claim.figure], each.found, each.word)
                       for each in said))


def changes(run: Run) -> Table | None:
    """What larger windows changed, for a run that covers no figure; None where nothing did."""
    found = run.changes
    if not found:
        return None
    columns = (Column("RTT", "ms", "asked"), Column("BW", "kbit/s", "asked"),
               Column("size", "bytes", "asked"), Column("window", "segments", "asked"),
               Column("from", "ms", "total time"), Column("to", "ms", "total time"),
               Column("saved", "ms", "improvement"), Column("saved", "%", "improvement"),
               Column("n"))
    rows = tuple((plain(change.base.asked.rtt_ms), plain(change.base.asked.bandwidth_kbps),
                  str(change.base.asked.response_bytes),
                  f"{change.base.asked.initcwnd} → {change.experiment.asked.initcwnd}",
                  texts.number(change.base.total_ms), texts.number(change.experiment.total_ms),
                  texts.number(change.absolute_ms), texts.number(change.percent),
                  f"{change.base.n}, {change.experiment.n}") for change in found[:MOST_ROWS])
    return Table("What the larger window changed", columns, rows,
                 left_out=len(found) - len(rows))


# Every trial, or every cell ------------------------------------------------------

def trials(run: Run) -> Table:
    """Asked, seen, measured, model and published, by trial; by cell where trials are many."""
    records = sorted(run.records, key=lambda record: _order(record.trial))
    if len(records) <= MOST_ROWS:
        return _rows_table(run, "Every trial", [(_asked(trial := record.trial, trial.repeat),
                                                [record]) for record in records], ASKED)
    if any(record.trial.part for record in records):
        return _population_table(run, records)
    settings: dict[Trial, list[Record]] = {}
    for record in records:
        settings.setdefault(replace(record.trial, repeat=1, seed=0), []).append(record)
    return _rows_table(run, "Every cell",
                       [(_asked(trial, None), group) for trial, group in settings.items()],
                       ASKED)


ASKED = (Column("part", "", "asked", is_text=True, is_filter=True),
         Column("RTT", "ms", "asked", is_filter=True),
         Column("BW", "kbit/s", "asked", is_filter=True),
         Column("IW", "", "asked", is_filter=True),
         Column("size", "bytes", "asked", is_filter=True),
         Column("loss", "%", "asked", is_filter=True), Column("gap", "ms", "asked"),
         Column("repeat", "", "asked"))
SEEN = (Column("n", "", "seen"), Column("RTT", "ms", "seen"), Column("BW", "kbit/s", "seen"),
        Column("IW", "", "seen"), Column("first flight", "", "seen"),
        Column("resent", "", "seen"), Column("total", "ms", "measured"),
        Column("latency", "ms", "measured"), Column("total", "ms", "model"),
        Column("diff.", "ms", "model"), Column("total", "ms", "published"),
        Column("verdict", is_text=True, is_filter=True))

Group = tuple[tuple[str, ...], Sequence[Record]]
Fetches = tuple[Mapping[Trial, str], dict[str, str]]


def _order(trial: Trial) -> tuple[Any, ...]:
    """As a reader looks for it; windows side by side. Guests finish in any order."""
    return (trial.part, trial.sample, trial.rtt_ms, trial.bandwidth_kbps, trial.response_bytes,
            trial.loss_percent, trial.gap_ms, trial.repeat, trial.initcwnd, trial.id)


def _asked(trial: Trial, repeat: int | None) -> tuple[str, ...]:
    """The cells under ASKED; "" for what does not apply."""
    return (trial.part, plain(trial.rtt_ms), plain(trial.bandwidth_kbps), str(trial.initcwnd),
            str(trial.response_bytes), plain(trial.loss_percent) if trial.loss_percent else "",
            plain(trial.gap_ms) if trial.gap_ms else "", "" if repeat is None else str(repeat))


FILED = (Column("part", is_text=True, is_filter=True),
         Column("RTT", "ms", "filed under", is_filter=True),
         Column("BW", "kbit/s", "filed under", is_filter=True),
         Column("IW", "", "asked", is_filter=True), Column("RTT", "ms", "asked"),
         Column("BW", "kbit/s", "asked"), Column("size", "bytes", "asked"))


def _population_table(run: Run, records: Sequence[Record]) -> Table:
    """Responses drawn from a population, by the buckets of the paper's Figure 5.

    By RTT and bandwidth, or by RTT alone where that makes too many rows.
    """
    groups = _population_cells(records, by_bandwidth=True)
    if len(groups) > MOST_ROWS:
        groups = _population_cells(records, by_bandwidth=False)
    shown = _rows_table(run, "Every cell", groups, FILED)
    return replace(shown, notes=(
        "Filed under: the bucket of the paper's Figure 5 that the client belongs to. Asked: the"
        " mean over the networks that were emulated for it. All means carry the shares that the"
        " responses stand for.", *shown.notes))


def _population_cells(records: Iterable[Record], by_bandwidth: bool) -> list[Group]:
    """The records by part, bucket of RTT, bucket of bandwidth if asked for, and window."""
    rtt_ends = _ends(published.buckets("paper_figure5.csv", "RTT"))
    bandwidth_ends = _ends(published.buckets("paper_figure5.csv", "BW"))
    cells: dict[tuple[str, int, int, int], list[Record]] = {}
    for record in records:
        trial = record.trial
        rtt_ms = trial.rtt_ms if trial.key_rtt_ms is None else trial.key_rtt_ms
        bandwidth_kbps = (trial.bandwidth_kbps if trial.key_bandwidth_kbps is None
                          else trial.key_bandwidth_kbps)
        key = (trial.part, _place(rtt_ms, rtt_ends),
               _place(bandwidth_kbps, bandwidth_ends) if by_bandwidth else 0, trial.initcwnd)
        cells.setdefault(key, []).append(record)
    return [((key[0], rtt_ends[key[1]][1], bandwidth_ends[key[2]][1] if by_bandwidth else "",
              str(key[3]), *(texts.number(_mean(group, column)) for column in
                             ("rtt_ms", "bandwidth_kbps", "response_bytes"))), group)
            for key, group in sorted(cells.items(), key=lambda each: each[0])]


def _ends(labels: Iterable[str]) -> Ends:
    """Labels are upper ends, the last one's is ">…"."""
    return tuple((float("inf") if label.startswith(">") else float(label),
                  label if label.startswith(">") else f"≤ {label}") for label in labels)


def _place(value: float, ends: Ends) -> int:
    return next((place for place, (end, _) in enumerate(ends) if value <= end), len(ends) - 1)


def _rows_table(run: Run, caption: str, groups: Sequence[Group],
                asked_columns: tuple[Column, ...]) -> Table:
    fetched, marks = _published_fetches(run)
    rows = [asked + _seen(run, group, fetched) for asked, group in groups[:MOST_ROWS]]
    notes = [f"{mark}: {why}" for mark, why in marks.items()
             if any(row[-2].endswith(f" {mark}") for row in rows)]
    if fetched and run.scenario.raw is not None and run.scenario.raw.extra_rtts:
        notes.append(f"The published times hold {plain(run.scenario.raw.extra_rtts)} RTT more:"
                     f" {run.scenario.raw.extra_why}.")
    return _without_empty(Table(caption, asked_columns + SEEN, tuple(rows), tuple(notes),
                                left_out=len(groups) - len(rows)))


def _seen(run: Run, group: Sequence[Record], fetched: Mapping[Trial, str],
          ) -> tuple[str, ...]:
    """The cells under SEEN: of one trial, or means over those of a cell that count."""
    alone = len(group) == 1
    counting = group if alone else [record for record in group if record.counts]
    passed = sum(record.counts for record in group)
    total_ms, model_ms = _mean(counting, "total_ms"), _mean(counting, "model_ms")
    return ("" if alone else str(len(group)),
            texts.number(_mean(group, "seen_rtt_ms")), texts.number(_mean(group, "seen_bandwidth_kbps")),
            texts.count(_mean(group, "seen_initcwnd")), texts.count(_mean(group, "seen_first_flight")),
            texts.count(_mean(group, "retransmissions")), texts.number(total_ms),
            texts.number(_mean(counting, "latency_ms")), texts.number(model_ms),
            texts.number(None if total_ms is None or model_ms is None else total_ms - model_ms,
                    signed=True),
            fetched.get(group[0].trial, ""),
            (group[0].verdict if group[0].ok else "failed transfer") if alone
            else f"{passed}/{len(group)} pass")


def _mean(records: Iterable[Record], column: str) -> float | None:
    values = [(value, record.trial.weight) for record in records
              if (value := record_value(record, column)) is not None]
    if not sum(weight for _, weight in values) > 0:
        return None
    return stats.weighted_mean([value for value, _ in values],
                               [weight for _, weight in values])


def _published_fetches(run: Run) -> Fetches:
    """The published raw time of each trial that has one, and what the marks in them mean."""
    raw = run.scenario.raw
    if raw is None:
        return {}, {}
    try:
        cells = {(row.initcwnd, row.rtt_ms, row.bandwidth_kbps):
                 f"{texts.number(row.published_ms, 0)}{f' {row.mark}' if row.mark else ''}"
                 for row in analysis.raw_comparison(run.scenario, run.records)}
        chosen = analysis.of_sweep(run.scenario.sweep(raw.sweep), run.records)
    except FirstFlightError:
        return {}, {}  # the records mix clients: no published time stands beside them
    fetched = {}
    for record in chosen:
        trial = record.trial
        text = cells.get((trial.initcwnd, trial.rtt_ms, trial.bandwidth_kbps))
        if text is not None:
            fetched[trial] = text
    return fetched, {defect.mark: defect.why for defect in raw.defects}


def _without_empty(full: Table) -> Table:
    """The table less the columns that hold nothing."""
    kept = [place for place in range(len(full.columns))
            if any(row[place] not in ("", table.UNKNOWN) for row in full.rows)]
    return replace(full, columns=tuple(full.columns[place] for place in kept),
                   rows=tuple(tuple(row[place] for place in kept) for row in full.rows))


# Verdicts ------------------------------------------------------------------------

@dataclass(frozen=True)
class Kind:
    """One check of lab.verify: its name there, what it compares, and which records it judges."""

    name: str
    meaning: str
    judges: Callable[[Record], bool]


def _is_fetched(record: Record) -> bool:
    return record.verdict != SKIPPED


def _is_on_wire(record: Record) -> bool:
    return record.ok and _is_fetched(record) and not record.verdict_reason.startswith("capture")


def _is_modelled(record: Record) -> bool:
    return (_has_window(record) and not record.retransmissions and not record.lost_segments
            and record.model_ms is not None
            and record.trial.congestion_control in CONGESTION_CONTROLS)


def _has_window(record: Record) -> bool:
    # After a handshake that lost packets the window is one segment by right.
    return _is_on_wire(record) and record.seen_rtt_ms is not None


KINDS = (
    Kind("exit status", "the client ended without an error", _is_fetched),
    Kind("HTTP status", "the server answered 200", _is_fetched),
    Kind("size", "as many bytes as asked for", _is_fetched),
    Kind("digest", "the bytes that the server sent", _is_fetched),
    Kind("capture", "both captures are whole", lambda record: _is_fetched(record) and record.ok),
    Kind("initial window", "the kernel's own word at accept", _has_window),
    Kind("first flight", "segments before the first acknowledgement",
         lambda record: _has_window(record) and record.seen_first_flight is not None),
    Kind("RTT", "the handshake less its serialisation",
         lambda record: _is_on_wire(record) and record.seen_rtt_ms is not None),
    Kind("bandwidth", "the spacing of the first flight at the client",
         lambda record: _is_on_wire(record) and record.seen_bandwidth_kbps is not None),
    Kind("lost packets", "none where the network may lose none",
         lambda record: (_is_on_wire(record) and record.trial.loss_percent == 0
                         and not record.lost_segments)),
    Kind("retransmissions", "each has a loss or a timer behind it", _is_on_wire),
    Kind("server latency", "the server's clock against its capture", _is_on_wire),
    Kind("model", "the client's total time, computed", _is_modelled),
    Kind("model latency", "T_ACK − T_Res1, computed", _is_modelled),
)


def failed_checks(record: Record) -> list[str]:
    """The names of the checks that a record failed, from its verdict_reason."""
    return [part.partition(":")[0] for part in record.verdict_reason.split("; ")
            if ":" in part] if record.verdict_reason else []


def checks(run: Run) -> Table:
    """Each check with how many transfers passed, failed, and were not for it to judge."""
    failed = Counter(name for record in run.records for name in failed_checks(record))
    exact = bool(run.facts.get("virtual_time"))
    rows = []
    for kind in KINDS:
        if kind.name.startswith("model") and not exact:
            continue  # real time is no part of the model's verdict
        judged = sum(kind.judges(record) or kind.name in failed_checks(record)
                     for record in run.records)
        wrong = failed.pop(kind.name, 0)
        rows.append((kind.name, kind.meaning, str(judged - wrong), str(wrong),
                     str(len(run.records) - judged)))
    rows += [(name, "", table.UNKNOWN, str(count), table.UNKNOWN)
             for name, count in sorted(failed.items())]
    return Table("Checks", (Column("check", is_text=True), Column("what", is_text=True),
                            Column("passed"), Column("failed"), Column("not judged")),
                 tuple(rows))


def failures(run: Run) -> Table | None:
    """Every trial that does not count, with its reason; None where all count."""
    failed = sorted((record for record in run.records if not record.counts),
                    key=lambda record: _order(record.trial))
    if not failed:
        return None
    rows = tuple((record.trial.id, record.verdict if record.ok else "failed transfer",
                  record.error or record.verdict_reason or "no reason was recorded")
                 for record in failed[:MOST_ROWS])
    return Table("Trials that do not count",
                 (Column("trial", is_text=True), Column("verdict", is_text=True, is_filter=True),
                  Column("reason", is_text=True)), rows, left_out=len(failed) - len(rows))


def causes(run: Run) -> Table | None:
    """Why segments were sent again, with the number of transfers; None where none was."""
    found: Counter[str] = Counter()
    for record in run.records:
        again = (record.retransmissions or 0) + (record.handshake_retransmissions or 0)
        if not again:
            continue
        for cause in record.retransmission_cause.split("; ") if record.retransmission_cause \
                else ["packets were lost" if record.lost_segments
                      else "packets of the handshake or acknowledgements were lost"]:
            found[cause] += 1
    if not found:
        return None
    rows = sorted(found.items(), key=lambda each: (-each[1], each[0]))
    return Table("Causes of retransmissions", (Column("cause", is_text=True),
                                               Column("transfers")),
                 tuple((cause, str(count)) for cause, count in rows))


# Provenance ----------------------------------------------------------------------

def sysctls(run: Run) -> Table | None:
    """The TCP settings of both hosts; None where run.json has none."""
    hosts = {str(host): report_facts.mapping(values) for host, values in
             sorted(report_facts.mapping(run.facts.get("sysctls")).items())}
    names = sorted({name for values in hosts.values() for name in values})
    if not names:
        return None
    return Table("TCP settings", (Column("sysctl", is_text=True),
                                  *(Column(host, is_text=True) for host in hosts)),
                 tuple((name, *(report_facts.text(values.get(name)) for values in hosts.values()))
                       for name in names))
