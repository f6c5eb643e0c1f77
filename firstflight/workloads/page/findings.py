"""The findings of pages: tables, the answer, and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from firstflight.base.quantity import in_words
from firstflight.base.words import format_brief, plain
from firstflight.figures import kernel_changes
from firstflight.figures.kernel_changes import kernel_answer, note_on_windows
from firstflight.figures.making import Maker, NothingToShow, all_findings, make_figures
from firstflight.figures.shared import format_named, shared_values, verdict_lines
from firstflight.findings.charts import (FilmChart, ObjectBar, ObjectChart, ObjectPanel, PageBar,
                                         PageChart)
from firstflight.findings.findings import Answer, Cell, Column, Finding, Rounded, Statement, Table
from firstflight.parameters import PARAMETERS, default
from firstflight.runs.kinds import RunData
from firstflight.runs.results.records import PASS
from firstflight.setting.draws import note_on_draws
from firstflight.setting.server import HERE, HTTP_2
from firstflight.workloads.page import analysis, browser_findings, film, loads
from firstflight.workloads.page import reasons as page_reasons
from firstflight.workloads.page.analysis import PAGE, Setting, WindowTimes, setting_of
from firstflight.workloads.page.browser_findings import paint_tables
from firstflight.workloads.page.record import ObjectTimes, PageRecord, is_one_draw
from firstflight.workloads.page.scenario import METRICS, PageFigure, PageScenario
from firstflight.workloads.page.sentences import MOST_NAMED, notes, sentence
from firstflight.workloads.page.trial import OF_SETTING, PageTrial

NAME = Column("", is_text=True)


def findings(scenario: PageScenario, run: RunData[PageRecord]) -> tuple[Finding, ...]:
    """A finding for each figure. Raises FirstFlightError where a file of the run is missing."""
    made = all_findings(make_figures(PageRun(scenario, run), scenario.figures, MAKERS))
    changes = analysis.kernel_changes(analysis.group_settings(run.records), titles_of(scenario))
    return (*made, *kernel_changes.findings(changes, "page"))


@dataclass(frozen=True)
class PageRun:
    """A run with its scenario: what the figures are made of."""

    scenario: PageScenario
    run: RunData[PageRecord]

    def settings(self, figure: PageFigure) -> list[Setting]:
        """The settings of a figure's sweep. Raises NothingToShow where no page counts."""
        settings = analysis.group_settings(self.run.records, figure.sweep)
        if not any(setting.counting for setting in settings):
            raise NothingToShow(f"{figure.name}: no page counts")
        return settings


def summary(records: Sequence[PageRecord]) -> tuple[str, ...]:
    """How many pages have each verdict, and how many objects the model predicts, in words."""
    modelled = sum(record.model_objects or 0 for record in records if record.verdict == PASS)
    objects = sum(len(record.trial.requested) for record in records if record.verdict == PASS)
    lines = [*verdict_lines(records, "pages")]
    if objects:
        lines.append(
            f"objects that the model of TCP predicts: {modelled} of {objects}; the others come"
            " over connections that share the queue, over HTTP/2, or after another one over TLS")
    return tuple(lines)


def titles_of(scenario: PageScenario) -> dict[str, str]:
    """The titles of the sweeps, by name."""
    return {sweep.name: sweep.title for sweep in scenario.sweeps}


# Fields that context_of writes in its own words, or never. It writes all others by format_named.
_IN_CONTEXT = ("rtt_ms", "bandwidth_kbps", "uplink_kbps", "queue_packets", "loss_percent", "http",
               "server", "congestion_control", "initrwnd")


def context_of(scenario: PageScenario, trials: Sequence[PageTrial]) -> tuple[str, ...]:
    """The scenario's source, and the parameters that all trials share: the lines below a title."""
    first = trials[0]
    columns = [PARAMETERS[name].field for name in OF_SETTING]
    shared = shared_values(trials, (*columns, "connections", "page"))
    parts = []
    if "page" in shared and len({trial.client for trial in trials}) == 1:
        parts.append(_content(first))

    if "rtt_ms" in shared:
        parts.append(f"RTT {plain(first.rtt_ms)} ms")
    if "bandwidth_kbps" in shared:
        parts.append(in_words(first.bandwidth_kbps, "kbit/s"))
    if "uplink_kbps" in shared and first.uplink_kbps != first.bandwidth_kbps:
        parts.append(f"uplink {in_words(first.uplink_kbps, 'kbit/s')}")
    if "queue_packets" in shared:
        parts.append(f"queue {first.queue_packets} packets")
    if "loss_percent" in shared and first.loss_percent:
        parts.append(f"loss {plain(first.loss_percent)} %")

    for name in columns:
        if name in _IN_CONTEXT or name not in shared:
            continue
        if shared[name] != (HERE if name == "system" else default(name)):
            parts.append(format_named(name, shared[name]))
    if "http" in shared and "connections" in shared:
        parts.append(_http(first))
    return scenario.head.source, ", ".join(parts)


def _content(trial: PageTrial) -> str:
    """What a trial loads, and how large that is, in words."""
    kilobytes = f"{plain(round(trial.size_bytes / 1000))} kB"
    if trial.site:
        return f"a recorded site of {kilobytes}, in Chromium"
    return f"{len(trial.requested)} objects, {kilobytes}"


def _http(trial: PageTrial) -> str:
    """The version of HTTP, and how many connections it has where these may vary, in words."""
    if trial.http == HTTP_2:
        return "HTTP/2"
    if trial.site:
        return "HTTP/1.1"
    return f"HTTP/1.1, {trial.connections} connection{'s' if trial.connections > 1 else ''} a host"


# The time of the page by window -----------------------------------------------------

def times_table(settings: Sequence[Setting], names: Sequence[str],
                why: Mapping[PageTrial, str] = {}) -> Table:
    """A table with a row for each setting and window.

    names: what distinguishes each setting. why: the reason of each change, by the cell of the
    larger window.
    """
    rows: list[tuple[Cell, ...]] = []
    for setting, name in zip(settings, names):
        for times in setting.windows.values():
            cell = replace(setting_of(setting.trial), initcwnd=times.window)
            rows.append((name, times.window, *_cells(setting, times), why.get(cell, "")))

    columns = (NAME, Column("IW", digits=0), Column("first byte", "ms"), Column("document", "ms"),
               Column("content loaded", "ms", rank=5), Column("first paint", "ms", rank=6),
               Column("largest paint", "ms", rank=6), Column("first screen", "ms", rank=5),
               Column("page", "ms"),
               Column("earlier", "ms", signed=True), Column("earlier", "%", signed=True),
               Column("connections", digits=0, rank=4), Column("dropped", digits=0, rank=6),
               Column("retransmitted", digits=0, rank=3), Column("link idle", "ms", rank=2),
               Column("reason", is_text=True, is_filter=True, rank=7))
    return Table("", columns, tuple(rows)).without_empty()


def _cells(setting: Setting, times: WindowTimes) -> tuple[Cell, ...]:
    """The cells of a row between its window and its reason."""
    if not times.records:
        return (None,) * 13  # as many as are returned below
    dropped = [(record.queue_drops or 0) + (record.random_drops or 0) for record in times.records]
    retransmitted = times.mean("retransmissions") or 0.0
    decimals = 0 if len(dropped) == 1 else 1
    columns = ("first_byte_ms", "document_ms", "content_loaded_ms", "paint_ms", "largest_paint_ms",
               "first_screen_ms")
    return (*map(times.mean, columns), times.page, *_earlier_cells(setting, times),
            times.mean("opened_connections"), Rounded(sum(dropped) / len(dropped), decimals),
            Rounded(retransmitted, decimals), times.mean("idle_ms"))


def _earlier_cells(setting: Setting, times: WindowTimes, metric: str = PAGE) -> tuple[Cell, Cell]:
    """How much earlier a time is than with the first window, in ms and %.

    Both are empty in the first window's own row, and None where no pair of repeats counts.
    """
    if times is next(iter(setting.windows.values())):
        return "", ""
    saved = setting.saved(times.window, metric)
    return (None, None) if saved is None else (saved.absolute, saved.percent)


def _times(measured: PageRun, figure: PageFigure) -> list[Finding]:
    """One time of each page, such as that of the whole page, a bar for each window."""
    scenario, settings = measured.scenario, measured.settings(figure)
    names = analysis.labels(settings, titles_of(scenario))
    windows = tuple(dict.fromkeys(window for setting in settings for window in setting.windows))
    excluded = sum(times.excluded for setting in settings for times in setting.windows.values())
    groups = []
    for setting, name in zip(settings, names):
        bars = tuple(_bar(setting, window, figure.metric) for window in windows)
        groups.append((name, bars))

    chart = PageChart(
        figure.title, context_of(scenario, [setting.trial for setting in settings])[1:],
        "Below each bar: its time, or how much earlier that is than with the first"
        " window; in parentheses where the interval of that holds zero.",
        alarm=f"{excluded} excluded" if excluded else "", windows=windows, groups=tuple(groups),
        y_label=METRICS[figure.metric])
    if figure.metric != PAGE:
        table = metric_table(settings, names, figure.metric)
        return [Finding(figure.name, figure.title, (table,), chart=chart)]

    words = sentence(settings, names)
    why = page_reasons.labels(scenario, measured.run)
    tables = (times_table(settings, names, why), *paint_tables(settings, names))
    return [Finding(figure.name, figure.title, tables,
                    (Statement("What does a larger window change?", words),), words, chart=chart)]


def metric_table(settings: Sequence[Setting], names: Sequence[str], metric: str) -> Table:
    """A table of one time by setting and window, and of how much earlier it is.

    names: what distinguishes each setting.
    """
    rows: list[tuple[Cell, ...]] = []
    for setting, name in zip(settings, names):
        for times in setting.counting:
            rows.append((name, times.window, times.estimate(metric),
                         *_earlier_cells(setting, times, metric)))
    return Table("", (NAME, Column("IW", digits=0), Column(METRICS[metric], "ms"),
                      Column("earlier", "ms", signed=True), Column("earlier", "%", signed=True)),
                 tuple(rows)).without_empty(unknown=False)


def _bar(setting: Setting, window: int, metric: str = PAGE) -> PageBar | None:
    """The bar of one window; None where no record has the time.

    Only a bar of the whole page has the document's part in it.
    """
    times = setting.windows.get(window)
    height = times.estimate(metric) if times is not None else None
    if times is None or height is None:
        return None
    is_base = times is next(iter(setting.windows.values()))
    saved = None if is_base else setting.saved(window, metric)
    ends = None if saved is None else saved.absolute.interval
    is_whole = metric == PAGE
    return PageBar(
        height, document_ms=(times.mean("document_ms") or 0.0) if is_whole else 0.0,
        first_screen_ms=times.mean("first_screen_ms") if is_whole else None,
        percent=None if saved is None else saved.percent.value, n=len(times.records),
        excluded=times.excluded, unsure=ends is not None and ends[0] <= 0 <= ends[1])


# The answer ---------------------------------------------------------------------------

def answer(scenario: PageScenario, run: RunData[PageRecord]) -> Answer:
    """The answer to a question: a sentence or two, the times, and what packets show of the reason.
    """
    settings = [setting for setting in analysis.group_settings(run.records) if setting.counting]
    if not settings:
        return Answer()
    names = analysis.labels(settings, titles_of(scenario))
    changes = analysis.kernel_changes(settings, titles_of(scenario))
    sentences = [kernel_answer(changes)]
    if not changes or len(settings[0].windows) > 1:
        sentences.append(sentence(settings, names))

    lines = [*page_reasons.sentences(scenario, run)]
    _, network = context_of(scenario, [setting.trial for setting in settings])
    if network:
        lines.append(f"Measured with {network}.")
    for setting, name in list(zip(settings, names))[:MOST_NAMED]:
        lines += loads.notes(run.folder, setting, f"{name}: " if name else "")
        lines += notes(setting, name)
    trials = [record.trial for record in run.records]
    draws_wanted = any(sweep.repeat_with_drops for sweep in scenario.sweeps)
    lines += note_on_draws(trials, draws_wanted and any(map(_is_one_draw, settings)))
    lines += note_on_windows(trials, "--iw default with one response leaves it to each")
    lines.append(scenario.head.note)

    table = times_table(settings, names, page_reasons.labels(scenario, run))
    return Answer(" ".join(filter(None, sentences)), table.first(20), tuple(filter(None, lines)))


def _is_one_draw(setting: Setting) -> bool:
    """Whether pages of a setting met a queue that drops, and were measured once."""
    return any(len(times.records) == 1 and is_one_draw(times.records[0])
               for times in setting.counting)


# The waterfall --------------------------------------------------------------------------

def _shown_windows(measured: PageRun, figure: PageFigure) -> tuple[Setting, list[WindowTimes]]:
    """The setting that a waterfall or a film strip shows, and under which windows.

    The setting is the first one with a page that counts. Where the figure names no window, the
    first and the last window that count are shown.
    """
    setting = next(setting for setting in measured.settings(figure) if setting.counting)
    counting = {times.window: times for times in setting.counting}
    first, last = setting.counting[0].window, setting.counting[-1].window
    requested = figure.windows or dict.fromkeys((first, last))
    return setting, [counting[window] for window in requested if window in counting]


def _waterfall(measured: PageRun, figure: PageFigure) -> list[Finding]:
    """Each object over time, under one or two windows."""
    scenario, folder = measured.scenario, measured.run.folder
    setting, shown = _shown_windows(measured, figure)
    windows, means, panels, ends_ms = [], [], [], []
    for times in shown or setting.counting[:1]:
        record = times.records[0]
        objects = analysis.objects_of(folder, record)
        windows.append(times.window)
        means.append(analysis.mean_parts(objects, analysis.parse_times(record, objects)))
        panels.append(_panel(folder, record, objects))
        ends_ms += [record.page_ms or 0.0, *(loaded.end_ms for loaded in objects)]

    words = analysis.waterfall_sentence(windows, means, pages=len(setting.counting[0].records))
    columns = (Column("IW", digits=0), Column("no connection is free", "ms"),
               Column("waits for its first byte", "ms"), Column("is received", "ms"))
    table = Table("Mean of all objects but the document", columns,
                  tuple((window, *parts) for window, parts in zip(windows, means)))
    chart = ObjectChart(figure.title, context_of(scenario, [setting.trial])[1:], "",
                        panels=tuple(panels), to_ms=max(ends_ms))
    return [Finding(figure.name, figure.title, (table,), sentence=words, chart=chart)]


def _panel(folder: Path, record: PageRecord, objects: Sequence[ObjectTimes]) -> ObjectPanel:
    """The waterfall of one page: a row for each object, and marks when the page's parts are there.
    """
    if record.trial.site:
        return browser_findings.panel(folder, record)

    bars = []
    for loaded, parse_ms in zip(objects, analysis.parse_times(record, objects)):
        bars.append(ObjectBar(loaded.named_ms, loaded.named_ms + parse_ms, loaded.start_ms,
                              first_byte_ms=loaded.first_byte_ms, end_ms=loaded.end_ms,
                              opens=loaded.is_first))

    label = "document and page are there"  # of all marks
    if record.first_screen_ms:
        label = "document, first screen and page are there"
    marks = [(record.document_ms or 0.0, label)]
    marks += [(at_ms, label) for at_ms in (record.first_screen_ms, record.page_ms) if at_ms]
    title = (f"Initial window {record.trial.initcwnd}: document"
             f" {format_brief(record.document_ms)} ms, page {format_brief(record.page_ms)} ms")
    return ObjectPanel(title, tuple(bars), tuple(marks))


# The film strip -------------------------------------------------------------------------

def _filmstrip(measured: PageRun, figure: PageFigure) -> list[Finding]:
    """Pictures of the first load under one or two windows."""
    scenario, run = measured.scenario, measured.run
    setting, shown = _shown_windows(measured, figure)
    records = [times.records[0] for times in shown]
    strips = tuple(filter(None, (film.strip_of(run.folder, record) for record in records)))
    if not strips:
        raise NothingToShow(f"{figure.name}: no load has pictures")

    rows = [(record.trial.initcwnd, record.paint_ms, record.largest_paint_ms, record.page_ms)
            for record in records]
    columns = (Column("IW", digits=0), Column("first contentful paint", "ms"),
               Column("largest contentful paint", "ms"), Column("load", "ms"))
    table = Table("Times of the load that was filmed", columns, tuple(rows))
    foot = ("Each picture: the first frame from that moment on, of the first of"
            f" {len(setting.counting[0].records)} loads.")
    chart = FilmChart(figure.title, context_of(scenario, [setting.trial])[1:], foot,
                      strips=strips)
    return [Finding(figure.name, figure.title, (table,), chart=chart)]


MAKERS: dict[str, Maker[PageRun, PageFigure]] = {
    "times": _times, "waterfall": _waterfall, "filmstrip": _filmstrip}
