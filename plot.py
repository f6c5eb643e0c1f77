#!/usr/bin/env python3
"""Draw the figures of scenarios from their newest results: analysis rows → figures/.

The only place that imports matplotlib. Nothing is computed here but where
things stand on the paper. Figures are drawn on Agg without pyplot, with fixed
margins and plain-text ticks: that is what makes it fast.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from lab import analysis, comparison, errors, runs, scenario as scenarios
from lab.analysis import Bucket, MissingCells, Panel
from lab.comparison import Recovery
from lab.command_line import Parser, run_main
from lab.errors import FirstFlightError
from lab.records import Record, read_records
from lab.scenario import JOINT, LOSS, OF_EXPERIMENT, WINDOW_SWEEP, Scenario
from lab.study import FETCHES, LOAD, TRACE, kind_of, newest_whole

PROJECT = Path(__file__).resolve().parent
FORMATS = ("png", "svg", "pdf")
# Dates would make two drawings of the same data differ.
METADATA: dict[str, dict[str, None]] = {"png": {}, "svg": {"Date": None},
                                        "pdf": {"CreationDate": None}}

WIDTH_INCHES, HEIGHT_INCHES, DPI = 9.6, 5.6, 150
AXES = (0.085, 0.225, 0.83, 0.575)  # left, bottom, width, height, as parts of the figure
BAR_WIDTH = 0.36  # of the distance between buckets
# Two colours of Okabe and Ito (2008) that differ in every kind of colour vision, and in grey;
# the text beside them is darker, to be read on white.
ABSOLUTE, ABSOLUTE_TEXT = "#0072B2", "#005A8E"
PERCENT, PERCENT_TEXT = "#E69F00", "#8F6200"
INK, FAINT, ALARM = "#222222", "#666666", "#B00020"
TINY, SMALL, MEDIUM, LARGE = 7.0, 7.5, 9.0, 12.0  # points

BUCKET_NAMES = {"rtt_ms": "RTT (ms)", "bandwidth_kbps": "Bandwidth (kbit/s)",
                "bdp_bytes": "Bandwidth-delay product (bytes)",
                "response_bytes": "Response (bytes)",
                "loss_percent": "Random loss towards the client (%)",
                "initcwnd": "Initial window (segments)",
                "response_segments": "Response (segments of 1430 bytes, up to)",
                "percentile": "Percentile of the latency"}
AVERAGED = {"rtt_ms": "RTT by the paper's shares",
            "bandwidth_kbps": "bandwidth by the paper's shares",
            "bdp_bytes": "bandwidth-delay products by the paper's shares",
            "response_bytes": "response sizes by the paper's shares",
            JOINT: "the joint distribution of RTT and bandwidth"}
METRIC_NAMES = {"total_ms": "{client}'s total time, handshake included",
                "latency_ms": "latency at the server, T_ACK − T_Res1"}


def draw(scenario: Scenario, records: Sequence[Record], figures_dir: Path,
         formats: Sequence[str] = ("png",), kernel: str = "") -> list[Path]:
    """Draw every figure of the scenario; return the files, <scenario>_<figure>.<format>.

    A figure with a bar of which nothing counts is told and left out. kernel:
    release of the kernel that was measured, "" if not known. Raises
    MissingCells before anything is drawn, FirstFlightError where a file
    cannot be written.
    """
    panels, faults = analysis.drawable(scenario, records)
    for fault in faults:
        say(f"not drawn: {fault}")
    paths = []
    for panel in panels:
        with matplotlib.rc_context(plain_settings()):
            drawn = figure_of(scenario, panel, kernel)
            for form in formats:
                paths.append(save(drawn, figures_dir,
                                  f"{scenario.name}_{panel.figure.name}.{form}", form))
    if scenario.populations:
        for name, drawn in population_figures(scenario, records, panels).items():
            paths += [save(drawn, figures_dir, f"{scenario.name}_{name}.{form}", form)
                      for form in formats]
    return paths


def population_figures(scenario: Scenario, records: Sequence[Record],
                       panels: Sequence[Panel]) -> dict[str, Figure]:
    """By name: Figure 5 on one page, the causes, and the joint distributions."""
    from lab import draws, population_analysis
    import plot_population
    with matplotlib.rc_context(plain_settings()):
        made = {"fig5": plot_population.page(
            [panel for panel in panels if panel.figure.published == population_analysis.FIGURE5],
            f"{scenario.title}: Figure 5")}
        causes = population_analysis.causes(scenario, records)
        if causes:
            made["causes"] = plot_population.causes_figure(
                causes, "What each cause adds to Figure 5")
        for datacenter in dict.fromkeys(each.datacenter for each in scenario.populations):
            made[f"joint_{datacenter}"] = plot_population.joint_figure(
                draws.DATACENTERS[datacenter](), f"RTT and bandwidth, {datacenter} data centre")
    return made


def figure_of(scenario: Scenario, panel: Panel, kernel: str) -> Figure:
    """The drawing of a panel, by its kind."""
    if panel.figure.kind == WINDOW_SWEEP:
        return window_figure(scenario, panel, kernel)
    return improvement_figure(scenario, panel, kernel)


def plain_settings() -> dict[str, object]:
    """matplotlib's own settings, whatever the user's matplotlibrc says."""
    settings = {key: matplotlib.rcParamsDefault[key] for key in
                ("font.family", "font.sans-serif", "font.size", "axes.linewidth",
                 "axes.edgecolor", "axes.facecolor", "figure.facecolor", "savefig.facecolor",
                 "savefig.bbox", "savefig.dpi", "text.usetex", "hatch.linewidth",
                 "lines.linewidth", "patch.linewidth", "axes.unicode_minus")}
    return {**settings, "svg.hashsalt": "first-flight"}


def save(drawn: Figure, folder: Path, name: str, form: str) -> Path:
    """Write aside, then rename, so that a figure is whole at any moment."""
    path, aside = folder / name, folder / f".{name}"
    try:
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        drawn.savefig(aside, format=form, dpi=DPI, metadata=METADATA[form])
        aside.replace(path)
    except OSError as error:
        raise FirstFlightError(f"{path}: cannot be written: {error.strerror or error}") from error
    runs.give_to_invoking_user(folder if made else path)
    return path


# The improvement figure ----------------------------------------------------------

@dataclass(frozen=True)
class Scale:
    """The left axis (ms): logarithmic, or passing zero and linear up to ±1 ms, or all over."""

    low: float
    high: float
    passes_zero: bool
    linear: bool = False

    @property
    def bottom(self) -> float:
        """Where bars begin."""
        return 0.0 if self.passes_zero else self.low


def improvement_figure(scenario: Scenario, panel: Panel, kernel: str) -> Figure:
    """Grouped bars per bucket like the paper's Figure 5: ms on the left, percent on the right."""
    drawn = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), dpi=DPI)
    FigureCanvasAgg(drawn)
    left = drawn.add_axes(AXES)
    right = left.twinx()
    scale = absolute_scale(panel.buckets, linear=panel.figure.kind == LOSS)
    set_absolute_axis(left, scale)
    set_percent_axis(right, panel.buckets, zero_height(left, scale),
                     least=0.5 if scale.linear else 5.0)
    draw_bars(left, right, panel.buckets, scale.bottom)
    draw_published(left, right, panel.buckets)
    set_bucket_axis(left, panel)
    write_titles(drawn, scenario, panel, kernel)
    add_legend(drawn, panel)
    return drawn


def absolute_scale(buckets: Iterable[Bucket], linear: bool = False) -> Scale:
    """Logarithmic where all is positive, else passing zero so that nothing is hidden.

    linear: for differences around zero, whose intervals are to be compared.
    """
    values = [value for bucket in buckets
              for value in (bucket.absolute_ms, bucket.published_absolute_ms,
                            *(bucket.absolute_interval_ms or ())) if value is not None]
    low, high = min(values), max(values)
    if linear:
        room = 0.12 * max(high - min(low, 0.0), 1.0)
        return Scale(min(low, 0.0) - room, max(high, 0.0) + room, True, linear=True)
    if low >= 0.1:
        # From 1 ms like the paper, or less: the shortest bar keeps a visible height.
        return Scale(min(10.0 ** math.floor(math.log10(low * 0.7)), 1.0), high * 1.6, False)
    return Scale(min(low * 1.6, -0.25), max(high * 1.6, 10.0), True)


def set_absolute_axis(axes: Axes, scale: Scale) -> None:
    ticks = [sign * 10.0 ** power for power in range(-2, 9) for sign in (-1, 1)]
    if scale.linear:
        step = tick_step(scale.high - scale.low)
        ticks = [tick * step for tick in range(-20, 21)]
        axes.axhline(0, color=INK, linewidth=0.8)
    elif scale.passes_zero:
        axes.set_yscale("symlog", linthresh=1, linscale=0.9)  # 0 to 1 as long as 1 to 10
        ticks = [0.0, *(tick for tick in ticks if abs(tick) >= 1)]
        axes.axhline(0, color=INK, linewidth=0.8)
    else:
        axes.set_yscale("log")
    axes.set_ylim(scale.low, scale.high)
    axes.yaxis.set_major_locator(FixedLocator(
        [tick for tick in ticks if scale.low <= tick <= scale.high]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
    axes.set_ylabel("Absolute improvement (ms)", color=ABSOLUTE_TEXT, fontsize=MEDIUM)
    axes.tick_params(axis="y", colors=ABSOLUTE_TEXT, labelsize=MEDIUM)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)


def tick_step(span: float) -> float:
    """1, 2 or 5 times a power of ten that divides the span into at most nine parts."""
    steps = (factor * 10.0 ** power for power in range(-3, 12) for factor in (1, 2, 5))
    return next(step for step in steps if span / step <= 9)


def zero_height(axes: Axes, scale: Scale) -> float:
    """Where bars begin, as a part of the height of the axes."""
    if not scale.passes_zero:
        return 0.0
    low, zero, high = axes.yaxis.get_transform().transform([scale.low, 0.0, scale.high])
    return float((zero - low) / (high - low))


def set_percent_axis(axes: Axes, buckets: Iterable[Bucket], zero: float, least: float) -> None:
    """The right axis, its zero at the same height as the left axis' zero; `least` fits above."""
    values = [value for bucket in buckets
              for value in (bucket.percent, bucket.published_percent,
                            *(bucket.percent_interval or ())) if value is not None]
    high = max(max(values), least) * 1.12
    if zero > 0:
        high = max(high, -min(values) * 1.12 * (1 - zero) / zero)
    low = -high * zero / (1 - zero)
    axes.set_ylim(low, high)
    step = tick_step(high - low)
    axes.yaxis.set_major_locator(FixedLocator(
        [tick * step for tick in range(-20, 21) if low <= tick * step <= high]))
    axes.set_ylabel("Improvement (% of the baseline)", color=PERCENT_TEXT, fontsize=MEDIUM)
    axes.tick_params(axis="y", colors=PERCENT_TEXT, labelsize=MEDIUM)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))


def draw_bars(left: Axes, right: Axes, buckets: Sequence[Bucket], bottom: float) -> None:
    """Two bars a bucket, with their 95 % intervals where there are any."""
    places = range(len(buckets))
    left.bar([place - BAR_WIDTH / 2 for place in places],
             [bucket.absolute_ms - bottom for bucket in buckets], BAR_WIDTH, bottom=bottom,
             color=ABSOLUTE)
    right.bar([place + BAR_WIDTH / 2 for place in places],
              [bucket.percent for bucket in buckets], BAR_WIDTH, color=PERCENT)
    for place, bucket in enumerate(buckets):
        for axes, side, ends in ((left, -1, bucket.absolute_interval_ms),
                                 (right, 1, bucket.percent_interval)):
            if wide(ends):
                axes.plot([place + side * BAR_WIDTH / 2] * 2, ends, color=INK, linewidth=1.2,
                          marker="_", markersize=6)


def draw_published(left: Axes, right: Axes, buckets: Sequence[Bucket]) -> None:
    """The published values as open markers, each over its bar."""
    for axes, side, marker, values in (
            (left, -1, "o", [bucket.published_absolute_ms for bucket in buckets]),
            (right, 1, "D", [bucket.published_percent for bucket in buckets])):
        known = [(place + side * BAR_WIDTH / 2, value) for place, value in enumerate(values)
                 if value is not None]
        if known:
            axes.plot(*zip(*known), **published_style(marker))


def published_style(marker: str) -> dict[str, object]:
    """White inside, so that the marker shows on a bar and beside it."""
    return {"linestyle": "none", "marker": marker, "markersize": 6.5 if marker == "o" else 5.5,
            "markerfacecolor": "white", "markeredgecolor": INK, "markeredgewidth": 1.3,
            "clip_on": False, "zorder": 5}


def set_bucket_axis(axes: Axes, panel: Panel) -> None:
    """Below: bucket, the two values, n. Above: the share of responses."""
    buckets = panel.buckets
    axes.set_xlim(*bar_ends(len(buckets)))
    axes.xaxis.set_major_locator(FixedLocator(range(len(buckets))))
    axes.xaxis.set_major_formatter(FuncFormatter(
        lambda place, _: buckets[round(place)].label))
    axes.tick_params(axis="x", labelsize=MEDIUM, length=3, top=True, colors=INK)
    for place, bucket in enumerate(buckets):
        write_at(axes, place - 0.03, -0.09, f"{short(bucket.absolute_ms)} ms", ABSOLUTE_TEXT,
                 "right", TINY)
        write_at(axes, place + 0.03, -0.09, f"{short(bucket.percent)} %", PERCENT_TEXT, "left",
                 TINY)
        write_at(axes, place, -0.14, f"n = {bucket.n}", FAINT)
        if bucket.excluded.total:
            write_at(axes, place, -0.185, f"{bucket.excluded.total} left out", ALARM)
        if bucket.share_percent is not None:
            write_at(axes, place, 1.025, f"{bucket.share_percent:.2f} %", INK)
    middle = (len(buckets) - 1) / 2
    if any(bucket.share_percent is not None for bucket in buckets):
        write_at(axes, middle, 1.07, "share of the paper's responses", FAINT)
    recoveries = comparison.recoveries(panel) if panel.figure.kind == LOSS else []
    write_recoveries(axes, buckets, recoveries)
    write_at(axes, middle, -0.25 if panel.excluded.total else -0.215,
             BUCKET_NAMES[panel.figure.by], INK, size=MEDIUM)


def bar_ends(count: int) -> tuple[float, float]:
    """The ends of the axis of bars, wide enough that a few bars are not broad blocks."""
    margin = max(0.5, (5 - count) / 2)
    return -margin, count - 1 + margin


def write_recoveries(axes: Axes, buckets: Sequence[Bucket],
                     recoveries: Sequence[Recovery]) -> None:
    """Above each bar with loss: what the larger window gains beyond the lossless network."""
    for recovery in recoveries:
        low, high = recovery.interval_ms
        place = buckets.index(recovery.bucket)
        write_at(axes, place, 1.065, f"beyond lossless: {short(recovery.part_ms)} ms", INK)
        write_at(axes, place, 1.025, f"{short(low)} … {short(high)} ms: {recovery.word}", FAINT)


def write_at(axes: Axes, place: float, height: float, text: str, color: str,
             align: str = "center", size: float = SMALL) -> None:
    """Text beside the axes: place on the axis of buckets, height as a part of the axes'."""
    axes.text(place, height, text, color=color, fontsize=size, horizontalalignment=align,
              verticalalignment="center", transform=axes.get_xaxis_transform())


def short(value: float) -> str:
    """One decimal where it matters, a true minus sign, and never a negative zero."""
    digits = 1 if abs(value) < 99.95 else 0
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def write_titles(drawn: Figure, scenario: Scenario, panel: Panel, kernel: str) -> None:
    figure = panel.figure
    metric = METRIC_NAMES[figure.metric].format(client=panel.client)
    over = f", averaged over {AVERAGED[figure.weights]}" if figure.weights else ""
    left_out = f"; left out: {panel.excluded}" if panel.excluded.total else "; none left out"
    windows = ("" if figure.kind == WINDOW_SWEEP else
               f": {figure.baseline_initcwnd} → {figure.experiment_initcwnd} segments")
    drawn.text(0.5, 0.965, f"{figure.title}{windows}", fontsize=LARGE, weight="bold",
               color=INK, ha="center", va="center")
    drawn.text(0.5, 0.926, f"real Linux TCP{f' (kernel {kernel})' if kernel else ''},"
               f" {panel.congestion_control}; {metric}{over}", fontsize=MEDIUM, color=INK,
               ha="center", va="center")
    drawn.text(0.5, 0.892, f"{panel.n} trials verified on the wire{left_out}", fontsize=MEDIUM,
               color=ALARM if panel.excluded.total else INK, ha="center", va="center")


def add_legend(drawn: Figure, panel: Panel) -> None:
    """Under the axes, where no bar is."""
    publisher = "in the paper" if panel.figure.published.startswith("paper_") else "by them"
    converted = ", as a part of the baseline" if panel.figure.percent_of == OF_EXPERIMENT else ""
    handles: list[Artist] = [Patch(color=ABSOLUTE, label="measured here, ms (left axis)"),
                             Patch(color=PERCENT, label="measured here, % (right axis)")]
    if any(bucket.published_absolute_ms is not None for bucket in panel.buckets):
        handles.append(Line2D([], [], **published_style("o"), label=f"published {publisher}, ms"))
    if any(bucket.published_percent is not None for bucket in panel.buckets):
        handles.append(Line2D([], [], **published_style("D"),
                              label=f"published {publisher}, %{converted}"))
    if any(wide(bucket.absolute_interval_ms) for bucket in panel.buckets):
        handles.append(Line2D([], [], color=INK, marker="|", label="95 % interval"))
    place_legend(drawn, handles)


def wide(ends: tuple[float, float] | None) -> bool:
    """Whether an interval is more than the one value that every repeat gave."""
    return ends is not None and ends[1] - ends[0] > comparison.NARROW_MS


def place_legend(drawn: Figure, handles: list[Artist]) -> None:
    drawn.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.008),
                 ncol=len(handles), frameon=False, fontsize=8, handletextpad=0.5,
                 columnspacing=1.6)


# Times against windows -------------------------------------------------------------

def window_figure(scenario: Scenario, panel: Panel, kernel: str) -> Figure:
    """A bar per initial window like the paper's Figure 2, its time in ms."""
    buckets = panel.buckets
    drawn = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), dpi=DPI)
    FigureCanvasAgg(drawn)
    axes = drawn.add_axes(AXES)
    axes.bar(range(len(buckets)), [bucket.experiment_ms for bucket in buckets], 2 * BAR_WIDTH,
             color=ABSOLUTE)
    for place, bucket in enumerate(buckets):
        if wide(bucket.experiment_interval_ms):
            axes.plot([place] * 2, bucket.experiment_interval_ms, color=INK, linewidth=1.2,
                      marker="_", markersize=6)
    published = [(place, bucket.published_ms) for place, bucket in enumerate(buckets)
                 if bucket.published_ms is not None]
    if published:
        axes.plot(*zip(*published), **published_style("o"))
    set_time_axis(axes, buckets)
    set_window_axis(axes, panel)
    write_titles(drawn, scenario, panel, kernel)
    handles: list[Artist] = [Patch(color=ABSOLUTE, label="measured here")]
    if published:
        handles.append(Line2D([], [], **published_style("o"), label="published by them"
                              if not panel.figure.published.startswith("paper_")
                              else "published in the paper"))
    place_legend(drawn, handles)
    return drawn


def set_time_axis(axes: Axes, buckets: Sequence[Bucket]) -> None:
    """From zero: the bars' lengths are then the times."""
    high = 1.12 * max(value for bucket in buckets for value in (
        bucket.experiment_ms, bucket.published_ms, *(bucket.experiment_interval_ms or ()))
        if value is not None)
    axes.set_ylim(0, high)
    step = tick_step(high)
    axes.yaxis.set_major_locator(FixedLocator([tick * step for tick in range(20)
                                               if tick * step <= high]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylabel("Mean time (ms)", color=ABSOLUTE_TEXT, fontsize=MEDIUM)
    axes.tick_params(axis="y", colors=ABSOLUTE_TEXT, labelsize=MEDIUM)
    axes.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)


def set_window_axis(axes: Axes, panel: Panel) -> None:
    """Below: window, time, improvement over the baseline, n."""
    buckets = panel.buckets
    axes.set_xlim(*bar_ends(len(buckets)))
    axes.xaxis.set_major_locator(FixedLocator(range(len(buckets))))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: buckets[round(place)].label))
    axes.tick_params(axis="x", labelsize=MEDIUM, length=3, colors=INK)
    for place, bucket in enumerate(buckets):
        baseline = bucket.value == panel.figure.baseline_initcwnd
        write_at(axes, place - (0 if baseline else 0.03), -0.09,
                 f"{short(bucket.experiment_ms)} ms", ABSOLUTE_TEXT,
                 "center" if baseline else "right", TINY)
        if not baseline:
            write_at(axes, place + 0.03, -0.09, f"{short(-bucket.percent)} %", PERCENT_TEXT,
                     "left", TINY)
        write_at(axes, place, -0.14, f"n = {bucket.n}", FAINT)
        if bucket.excluded.total:
            write_at(axes, place, -0.185, f"{bucket.excluded.total} left out", ALARM)
    write_at(axes, (len(buckets) - 1) / 2, -0.25 if panel.excluded.total else -0.215,
             BUCKET_NAMES[panel.figure.by], INK, size=MEDIUM)


# Finding the run to draw ---------------------------------------------------------

def find_run(scenario: Scenario, results: Path) -> tuple[Path, list[Record]]:
    """The newest run that covers every figure of the scenario, and its records.

    The latest one may be of a single bucket, or under way. Raises
    FirstFlightError that names the command where no run covers them.
    """
    home = results / scenario.name
    folders = dict.fromkeys(folder.resolve() for folder in
                            (home / "latest", *runs.newest_first(home))
                            if (folder / runs.TRIALS_CSV).is_file())
    lacking = ""
    for folder in folders:
        records = read_records(folder / runs.TRIALS_CSV)
        try:
            analysis.drawable(scenario, records)
        except MissingCells as error:
            lacking = lacking or f"in {folder.name}, {error.lacking}"
            continue
        if lacking:
            say(f"drawing {folder.name}: {lacking}")
        return folder, records
    reason = f"no run covers the figures; {lacking}" if lacking else "there is no run to draw"
    raise FirstFlightError(f"{home}: {reason}; measure the whole scenario with"
                           f" {analysis.command(scenario, ())}")


def kernel_of(folder: Path) -> str:
    """Release of the kernel that the run measured, "" where run.json does not say."""
    facts = runs.read_facts(folder)
    kernel = facts.get("kernel", "")
    if not kernel and facts.get("engine") == "host" and isinstance(facts.get("machine"), dict):
        kernel = facts["machine"].get("kernel", "")
    return kernel if isinstance(kernel, str) else ""


def draw_findings(name: str, folder: Path, figures_dir: Path,
                  formats: Sequence[str]) -> list[Path]:
    """Draw what a scenario that is not of fetches found; return the files."""
    with matplotlib.rc_context(plain_settings()):
        return [save(drawn, figures_dir, f"{name}_{figure}.{form}", form)
                for figure, drawn in finding_figures(name, folder).items() for form in formats]


def finding_figures(name: str, folder: Path) -> dict[str, Figure]:
    """By the name of the finding."""
    if kind_of(name) == LOAD:
        import plot_load
        return plot_load.figures(name, folder)
    if kind_of(name) == TRACE:
        import plot_trace
        return plot_trace.figures(name, folder)
    raise FirstFlightError(f"{name}: there is nothing to draw of {folder}")


def draw_newest(name: str, arguments: argparse.Namespace) -> None:
    """Draw one scenario and print the paths. Raises FirstFlightError."""
    if kind_of(name) != FETCHES:
        whole = newest_whole(name, arguments.results)
        for path in draw_findings(name, whole, arguments.figures, arguments.format):
            print(path)
        return
    scenario = scenarios.load(name)
    folder, records = find_run(scenario, arguments.results)
    for path in draw(scenario, records, arguments.figures, arguments.format, kernel_of(folder)):
        print(path)


def formats_of(text: str) -> tuple[str, ...]:
    formats = tuple(dict.fromkeys(text.lower().split(",")))
    unknown = [form for form in formats if form not in FORMATS]
    if unknown:
        raise argparse.ArgumentTypeError(f"'{unknown[0]}' is none of {', '.join(FORMATS)}")
    return formats


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="plot.py", description="Draw the figures of scenarios from their newest results.",
        allow_abbrev=False)
    parser.add_argument("--scenario", nargs="+", metavar="NAME",
                        help="what to draw (default: every scenario that has results)")
    parser.add_argument("--results", type=Path, default=PROJECT / "results", metavar="DIR",
                        help="where results are (default results)")
    parser.add_argument("--figures", type=Path, default=PROJECT / "figures", metavar="DIR",
                        help="where figures go (default figures)")
    parser.add_argument("--format", type=formats_of, default=("png",), metavar="png,svg,pdf",
                        help="which files to write (default png)")
    return parser.parse_args(argv)


def say(message: str) -> None:
    print(f"plot.py: {message}", file=sys.stderr)


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    chosen = arguments.scenario or [name for name in scenarios.names()
                                    if (arguments.results / name).is_dir()]
    if not chosen:
        say(f"{arguments.results}: no results to draw; measure with ./run.sh")
        return errors.FAILED
    status = errors.OK
    for name in chosen:
        try:
            draw_newest(name, arguments)
        except FirstFlightError as error:
            say(str(error))
            status = status or error.exit_status
    return status


if __name__ == "__main__":
    run_main("plot.py", main)
