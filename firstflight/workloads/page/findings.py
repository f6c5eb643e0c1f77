"""The findings of pages: tables, the answer, and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from firstflight.base.quantity import in_words
from firstflight.base.words import join_words, plain, format_brief
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
from firstflight.workloads.page.analysis import PAGE, SAME_MS, Setting, WindowTimes, setting_of
from firstflight.workloads.page.browser_findings import browser_notes, paint_tables
from firstflight.workloads.page.record import ObjectTimes, PageRecord, is_one_draw
from firstflight.workloads.page.scenario import METRICS, PageFigure, PageScenario
from firstflight.workloads.page.trial import OF_SETTING, PageTrial

MOST_NAMED = 4  # settings that one sentence names
NAME = Column("", is_text=True)


def findings(scenario: PageScenario, run: RunData[PageRecord]) -> tuple[Finding, ...]:
    """A finding for each figure. Raises FirstFlightError where a file of the run is missing."""
    made = all_findings(make_figures(PageRun(scenario, run), scenario.figures, MAKERS))
    changes = analysis.kernel_changes(analysis.settings(run.records), titles_of(scenario))
    return (*made, *kernel_changes.findings(changes, "page"))


@dataclass(frozen=True)
class PageRun:
    """What figures are made of."""

    scenario: PageScenario
    run: RunData[PageRecord]

    def settings(self, figure: PageFigure) -> list[Setting]:
        """The settings of a figure's sweep. Raises NothingToShow where no page counts."""
        settings = analysis.settings(self.run.records, figure.sweep)
        if not any(setting.counting for setting in settings):
            raise NothingToShow(f"{figure.name}: no page counts")
        return settings


def summary(records: Sequence[PageRecord]) -> tuple[str, ...]:
    """How many pages have each verdict, and how many objects the model predicts, in words."""
    modelled = sum(record.model_objects or 0 for record in records if record.verdict == PASS)
    objects = sum(len(record.trial.requested) for record in records if record.verdict == PASS)
    return (*verdict_lines(records, "pages"),
            *([f"objects that the model of TCP predicts: {modelled} of {objects}; the others come"
               " over connections that share the queue, over HTTP/2, or after another one over TLS"]
              if objects else []))


def titles_of(scenario: PageScenario) -> dict[str, str]:
    """The titles of the sweeps, by name."""
    return {sweep.name: sweep.title for sweep in scenario.sweeps}


# What the line below a figure's title has in words of its own, or not at all.
_IN_CONTEXT = ("rtt_ms", "bandwidth_kbps", "uplink_kbps", "queue_packets", "loss_percent", "http",
               "server", "congestion_control", "initrwnd")


def context_of(scenario: PageScenario, trials: Sequence[PageTrial]) -> tuple[str, ...]:
    """The source, and what is below a figure's title: the parameters that its pages share."""
    first = trials[0]
    columns = [PARAMETERS[name].field for name in OF_SETTING]
    shared = shared_values(trials, (*columns, "connections", "page"))
    others = [name for name in columns if name not in _IN_CONTEXT and name in shared
              and shared[name] != (HERE if name == "system" else default(name))]
    is_one_client = len({trial.client for trial in trials}) == 1
    parts = []
    if "page" in shared and is_one_client:
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
    parts += [format_named(name, shared[name]) for name in others]
    if "http" in shared and "connections" in shared:
        parts.append(_http(first))
    return scenario.head.source, ", ".join(parts)


def _content(trial: PageTrial) -> str:
    kilobytes = f"{plain(round(trial.size_bytes / 1000))} kB"
    if trial.site:
        return f"a recorded site of {kilobytes}, in Chromium"
    return f"{len(trial.requested)} objects, {kilobytes}"


def _http(trial: PageTrial) -> str:
    if trial.http == HTTP_2:
        return "HTTP/2"
    if trial.site:
        return "HTTP/1.1"
    return f"HTTP/1.1, {trial.connections} connection{'s' if trial.connections > 1 else ''} a host"


# The time of the page by window -----------------------------------------------------

def times_table(settings: Sequence[Setting], names: Sequence[str],
                why: Mapping[PageTrial, str] = {}) -> Table:
    """A row for each setting and window. names: of the settings. why: as of reasons.labels."""
    rows: list[tuple[Cell, ...]] = []
    for setting, name in zip(settings, names):
        for times in setting.windows.values():
            cell = replace(setting_of(setting.trial), initcwnd=times.window)
            rows.append((name, times.window, *_cells(setting, times), why.get(cell, "")))
    columns = (NAME, Column("IW", digits=0), Column("first byte", "ms"), Column("document", "ms"),
               Column("content loaded", "ms", rank=5), Column("first paint", "ms", rank=6),
               Column("largest paint", "ms", rank=6),
               Column("first screen", "ms", rank=5), Column("page", "ms"),
               Column("earlier", "ms", signed=True), Column("earlier", "%", signed=True),
               Column("connections", digits=0, rank=4), Column("dropped", digits=0, rank=6),
               Column("retransmitted", digits=0, rank=3), Column("link idle", "ms", rank=2),
               Column("reason", is_text=True, is_filter=True, rank=7))
    return Table("", columns, tuple(rows)).without_empty()


def _cells(setting: Setting, times: WindowTimes) -> tuple[Cell, ...]:
    """The cells of a window behind its name, but for the reason."""
    if not times.records:
        return (None,) * 13
    dropped = [(record.queue_drops or 0) + (record.random_drops or 0) for record in times.records]
    decimals = 0 if len(dropped) == 1 else 1
    columns = ("first_byte_ms", "document_ms", "content_loaded_ms", "paint_ms", "largest_paint_ms",
               "first_screen_ms")
    return (*map(times.mean, columns), times.page, *_earlier_cells(setting, times),
            times.mean("opened_connections"),
            Rounded(sum(dropped) / len(dropped), decimals),
            Rounded(times.mean("retransmissions") or 0.0, decimals), times.mean("idle_ms"))


def _earlier_cells(setting: Setting, times: WindowTimes, metric: str = PAGE) -> tuple[Cell, Cell]:
    """How much earlier a time is than with the first window, in ms and %; nothing of the first."""
    if times is next(iter(setting.windows.values())):
        return "", ""
    saved = setting.saved(times.window, metric)
    return (None, None) if saved is None else (saved.absolute, saved.percent)


def _times(measured: PageRun, figure: PageFigure) -> list[Finding]:
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
    """One time by setting and window, and how much earlier it is. names: of the settings."""
    rows: list[tuple[Cell, ...]] = []
    for setting, name in zip(settings, names):
        for times in setting.counting:
            rows.append((name, times.window, times.estimate(metric),
                         *_earlier_cells(setting, times, metric)))
    return Table("", (NAME, Column("IW", digits=0), Column(METRICS[metric], "ms"),
                      Column("earlier", "ms", signed=True), Column("earlier", "%", signed=True)),
                 tuple(rows)).without_empty(unknown=False)


def _bar(setting: Setting, window: int, metric: str = PAGE) -> PageBar | None:
    """The bar of one window; without the document's part where it shows no whole page."""
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
    """The answer: one sentence, the times, and what the packets show about the reason."""
    settings = [setting for setting in analysis.settings(run.records) if setting.counting]
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


def sentence(settings: Sequence[Setting], names: Sequence[str]) -> str:
    """What the window changes, over all settings in which two windows count."""
    compared = [(setting, name) for setting, name in zip(settings, names)
                if len(setting.counting) > 1]
    if not compared:
        times = settings[0].counting[0]
        return (f"With {times.window} segments the page is there after"
                f" {format_brief(times.page.value)} ms, its document after"
                f" {format_brief(times.mean('document_ms'))} ms.")
    if len(compared) == 1:
        return f"{_change(compared[0][0])}."
    if len(compared) <= MOST_NAMED:
        return f"{'; '.join(f'{name}: {_short_change(setting)}' for setting, name in compared)}."
    return _of_many(compared)


def _of_many(compared: Sequence[tuple[Setting, str]]) -> str:
    """The largest and smallest change by the largest window, where it differs significantly."""
    windows = {(setting.counting[0].window, setting.counting[-1].window) for setting, _ in compared}
    which = "the largest instead of the smallest window"
    if len(windows) == 1:
        base, largest = windows.pop()
        which = f"{largest} instead of {base} segments"

    changed = []
    for setting, name in compared:
        saved = setting.saved(setting.counting[-1].window)
        if saved is not None and (saved.absolute.interval is None or saved.absolute.sign):
            changed.append((saved.percent.value, name))
    if not changed:
        return f"With {which}, the page changes significantly in none of {len(compared)} settings."

    ends = [f"{format_brief(abs(percent))} % {'earlier' if percent >= 0 else 'later'} ({name})"
            for percent, name in dict.fromkeys((max(changed), min(changed)))]
    unsure = len(compared) - len(changed)
    rest = ""
    if unsure:
        rest = f"; in {unsure} of {len(compared)} settings it does not differ significantly"
    return f"With {which}, the page is there {' to '.join(ends)}{rest}."


def _change(setting: Setting) -> str:
    """What the fastest window changes for one page, in a sentence."""
    base, *others = setting.counting
    if all(abs(times.page.value - base.page.value) <= SAME_MS for times in others):
        windows = join_words([str(times.window) for times in setting.counting])
        return (f"No window changes the page: with {windows} it takes"
                f" {format_brief(base.page.value)} ms")

    unsure = _unsure(setting)
    if unsure:
        return unsure
    fastest = setting.fastest
    if fastest is base:
        return _base_is_fastest(setting)

    saved_ms = base.page.value - fastest.page.value
    document_ms = (base.mean("document_ms") or 0.0) - (fastest.mean("document_ms") or 0.0)
    half, which = _half(setting, fastest.window), ""
    # Whether another window is faster is another comparison, with an interval of its own.
    if len(others) > 1 and not half:
        windows = join_words([str(times.window) for times in setting.counting])
        which = f", the fastest of {windows}"
    return (f"With {fastest.window} instead of {base.window} segments{which}, the page is there"
            f" {format_brief(saved_ms)}{half} ms earlier, after {format_brief(fastest.page.value)}"
            f" instead of {format_brief(base.page.value)} ms"
            f" ({format_brief(saved_ms / base.page.value * 100)} %); its document"
            f" {_earlier(document_ms)}")


def _base_is_fastest(setting: Setting) -> str:
    """How much later the page is with the larger windows, in a sentence."""
    base, *others = setting.counting
    unsure = [times for times in others
              if not setting.effect(times.window) and _half(setting, times.window)]
    slower = join_words([_later(setting, times) for times in others if times not in unsure])
    rest = ""
    if unsure:
        windows = join_words([str(times.window) for times in unsure])
        rest = f"; with {windows} it does not differ significantly"
    return (f"{base.window} segments are the fastest: the page is there after"
            f" {format_brief(base.page.value)} ms, and {slower}{rest}")


def _unsure(setting: Setting) -> str:
    """A sentence where no window differs significantly from the first one; "" where one does."""
    base, *others = setting.counting
    parts = []
    for times in others:
        saved = setting.saved(times.window)
        if saved is None:
            continue
        if saved.absolute.interval is None or saved.absolute.sign:
            return ""
        saved_ms = saved.absolute.value
        parts.append(f"{format_brief(abs(saved_ms))}{_half(setting, times.window)} ms"
                     f" {'earlier' if saved_ms > 0 else 'later'} with {times.window}")
    if not parts:
        return ""
    return (f"No window differs significantly from {base.window} segments, with which the page"
            f" takes {format_brief(base.page.value)} ms: it is there {join_words(parts)}")


def _half(setting: Setting, window: int) -> str:
    """Half of the interval of what a window saves, such as " ± 3.2"; "" without one."""
    saved = setting.saved(window)
    if saved is None or saved.absolute.interval is None:
        return ""
    low, high = saved.absolute.interval
    return f" ± {format_brief((high - low) / 2)}"


def _later(setting: Setting, times: WindowTimes) -> str:
    """How much later the page is there with a window that is no faster than the baseline."""
    later_ms = times.page.value - setting.counting[0].page.value
    if abs(later_ms) <= SAME_MS:
        return f"at the same time with {times.window}"
    return f"{format_brief(later_ms)}{_half(setting, times.window)} ms later with {times.window}"


def _earlier(saved_ms: float) -> str:
    if abs(saved_ms) <= SAME_MS:
        return "at the same time"
    return f"{format_brief(abs(saved_ms))} ms {'earlier' if saved_ms > 0 else 'later'}"


def _short_change(setting: Setting) -> str:
    base, fastest = setting.counting[0], setting.fastest
    if not any(abs(times.page.value - base.page.value) > SAME_MS for times in setting.counting):
        return f"no window changes the page, which takes {format_brief(base.page.value)} ms"
    if unsure := _unsure(setting):
        return f"{unsure[0].lower()}{unsure[1:]}"
    if fastest is base:
        most = max(times.page.value for times in setting.counting) - base.page.value
        return (f"{base.window} segments are the fastest, {format_brief(base.page.value)} ms, and"
                f" others take up to {format_brief(most)} ms more")
    saved = base.page.value - fastest.page.value
    return (f"{fastest.window} instead of {base.window} segments save"
            f" {format_brief(saved)}{_half(setting, fastest.window)} of"
            f" {format_brief(base.page.value)} ms"
            f" ({format_brief(saved / base.page.value * 100)} %)")


def notes(setting: Setting, name: str) -> list[str]:
    """What the packets of a setting show: drops, idle time, and whether the link is the limit."""
    place = f"{name}: " if name else ""
    counting = setting.counting
    lines = []
    drops = [(times.window, times.mean("queue_drops") or 0.0) for times in counting]
    if any(dropped for _, dropped in drops):
        average = "on average " if any(len(times.records) > 1 for times in counting) else ""
        named = [f"{format_brief(dropped).removesuffix('.0')} packets with {window}"
                 if dropped else f"none with {window}" for window, dropped in drops]
        lines.append(f"{place}the queue drops {average}{join_words(named)}.")
    if counting[0].records[0].trial.site:
        lines += browser_notes(setting, place)
    idle = join_words([f"{format_brief(times.mean('idle_ms'))} of"
                       f" {format_brief(times.page.value)} ms with {times.window}"
                       for times in counting])
    lines.append(f"{place}the link to the client sends nothing for {idle}.")
    full = [times for times in counting if 1 - times.idle_share >= analysis.BUSY]
    if full:
        windows = join_words([str(times.window) for times in full])
        least = format_brief(min(1 - times.idle_share for times in full) * 100)
        lines.append(f"{place}with {windows} the link is never free for long from the first byte on"
                    f" ({'at least ' if len(full) > 1 else ''}{least} % of the time it sends):"
                    " its bandwidth is the limit.")
    return [f"{note[0].upper()}{note[1:]}" for note in lines]


def _is_one_draw(setting: Setting) -> bool:
    """Whether its pages met a queue that drops, and were measured once."""
    return any(len(times.records) == 1 and is_one_draw(times.records[0])
               for times in setting.counting)


# The waterfall --------------------------------------------------------------------------

def _waterfall(measured: PageRun, figure: PageFigure) -> list[Finding]:
    scenario, run = measured.scenario, measured.run
    setting = next(setting for setting in measured.settings(figure) if setting.counting)
    counting = {times.window: times for times in setting.counting}
    requested = figure.windows or tuple(dict.fromkeys((next(iter(counting)), list(counting)[-1])))
    shown = [counting[window] for window in requested if window in counting] or setting.counting[:1]
    pages = [(times, analysis.objects_of(run.folder, times.records[0])) for times in shown]
    parts = [analysis.mean_parts(objects, analysis.parse_times(times.records[0], objects))
             for times, objects in pages]
    words = analysis.waterfall_sentence([times.window for times, _ in pages], parts,
                                        pages=len(setting.counting[0].records))
    table = Table("Mean of all objects but the document", (
        Column("IW", digits=0), Column("no connection is free", "ms"),
        Column("waits for its first byte", "ms"), Column("is received", "ms")),
        tuple((times.window, *part) for (times, _), part in zip(pages, parts)))
    chart = ObjectChart(
        figure.title, context_of(scenario, [setting.trial])[1:], "",
        panels=tuple(_panel(run.folder, times, objects) for times, objects in pages),
        to_ms=max(at_ms for times, objects in pages
                  for at_ms in (times.records[0].page_ms or 0.0,
                                *(each.end_ms for each in objects))))
    return [Finding(figure.name, figure.title, (table,), sentence=words, chart=chart)]


def _panel(folder: Path, times: WindowTimes, objects: Sequence[ObjectTimes]) -> ObjectPanel:
    record = times.records[0]
    if record.trial.site:
        return browser_findings.panel(folder, record)
    document = format_brief(record.document_ms)
    marks = [(record.document_ms or 0.0, "document, first screen and page are there"
              if record.first_screen_ms else "document and page are there")]
    marks += [(at_ms, marks[0][1]) for at_ms in (record.first_screen_ms, record.page_ms) if at_ms]
    return ObjectPanel(
        f"Initial window {times.window}: document {document} ms,"
        f" page {format_brief(record.page_ms)} ms",
        tuple(ObjectBar(each.named_ms, each.named_ms + parse_ms, each.start_ms,
                        each.first_byte_ms, each.end_ms, each.is_first)
              for each, parse_ms in zip(objects, analysis.parse_times(record, objects))),
        tuple(marks))


# The film strip -------------------------------------------------------------------------

def _filmstrip(measured: PageRun, figure: PageFigure) -> list[Finding]:
    scenario, run = measured.scenario, measured.run
    setting = next(setting for setting in measured.settings(figure) if setting.counting)
    counting = {times.window: times.records[0] for times in setting.counting}
    requested = figure.windows or tuple(dict.fromkeys((next(iter(counting)), list(counting)[-1])))
    records = [counting[window] for window in requested if window in counting]
    strips = [strip for record in records if (strip := film.strip_of(run.folder, record))]
    if not strips:
        raise NothingToShow(f"{figure.name}: no load has pictures")
    table = Table("Times of the load that was filmed", (
        Column("IW", digits=0), Column("first contentful paint", "ms"),
        Column("largest contentful paint", "ms"), Column("load", "ms")),
        tuple((record.trial.initcwnd, record.paint_ms, record.largest_paint_ms, record.page_ms)
              for record in records))
    chart = FilmChart(
        figure.title, context_of(scenario, [setting.trial])[1:],
        "Each picture: the first frame from that moment on, of the first of"
        f" {len(setting.counting[0].records)} loads.", strips=tuple(strips))
    return [Finding(figure.name, figure.title, (table,), chart=chart)]


MAKERS: dict[str, Maker[PageRun, PageFigure]] = {
    "times": _times, "waterfall": _waterfall, "filmstrip": _filmstrip}
