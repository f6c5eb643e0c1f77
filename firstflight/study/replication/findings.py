"""The findings on a published set-up: what each cause of its numbers adds, and the numbers.

Each number has three *sides*: as it was published, as a clean run has it, and as its authors
measured it, with all causes switched on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Literal

from firstflight.findings.charts import Line, LineChart, Plot, StepChart, WaterfallStep
from firstflight.findings.claims import NOT_REPRODUCED, REPRODUCED
from firstflight.findings.findings import (Cell, Column, Finding, Report, Rounded, Statement, Table,
                                           Tile)
from firstflight.runs import reporting
from firstflight.runs.kinds import RunData, Study
from firstflight.study.replication.analysis import (Item, Measured, bars, by_group, counts, items,
                                                    read_levels)
from firstflight.workloads.fetch.figures import summary
from firstflight.workloads.fetch.figures.bar_figure import NoBars
from firstflight.workloads.fetch.figures.cell_tables import causes_table, trials_table
from firstflight.workloads.fetch.figures.claims import judge_bars
from firstflight.workloads.fetch.figures.raw_cells import published_cells
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.causes import AsPublished
from firstflight.workloads.fetch.scenario.scenario import Figure, Scenario
from firstflight.workloads.fetch.trial import Trial

SIDES = ("published", "clean", "as they measured it")
TITLE = "Why their numbers are what they are"
# The distance between the sides of a bar, as a share of that between bars. Where an axis has fewer
# than FEW_BARS, the sides are as close to each other as among so many.
ASIDE, FEW_BARS = 0.26, 6
LEAST = 1.0  # the lower end of a logarithmic axis, in the unit of the axis
AGREES, DIFFERS, CONSTANT = "agrees", "differs", "a constant"


def report(study: Study[Scenario, Trial, Record], scenario: Scenario, setup: AsPublished,
           run: RunData[Record]) -> Report:
    """The report of a run: the causes, and the figures with the three sides of each number."""
    findings, sentences, tiles = replication_findings(scenario, setup, run.records, run.exact)
    return reporting.report_of(
        study, run, findings, summary=(summary.summary(run.records),),
        sentences=(*sentences, *summary.run_sentences(run, ())), tiles=tiles,
        trials=trials_table(run.records), causes=causes_table(run.records))


def replication_findings(scenario: Scenario, setup: AsPublished, records: Sequence[Record],
                         exact: bool) -> tuple[list[Finding], list[str], list[Tile]]:
    """The findings on a set-up, the sentences of the summary, and the tiles of the page.

    exact: measured in virtual time.
    """
    levels = read_levels(scenario, setup, records, exact)
    try:
        every = items(scenario, levels)
        cells = published_cells(scenario, records)
    except NoBars as error:
        return [Finding("causes", TITLE, missing=str(error))], [], []

    counted = [item for item in every if not item.constant]
    constants = _constants(setup, [item for item in every if item.constant], len(every))
    agree = counts(counted)  # at each level
    groups, context = by_group(setup, agree), "real Linux TCP"

    made = [_causes(setup, agree, groups, total=len(counted), context=context,
                    constants=constants, of_statements=cells is None and bool(scenario.claims))]
    made += [_figure(scenario, figure, levels, context) for figure in scenario.figures]
    if cells is not None:
        made.append(_cells(every, cells.raw.file, context))

    sentence = f"Of {len(counted)} published numbers {agree[0]} agree with the clean run."
    for name, count in groups:
        sentence += f" {name[0].upper()}{name[1:]}: {count}."
    if constants:
        sentence += f" {constants.text} {constants.measured}"
    tiles = [Tile(f"{groups[0][1]} of {len(counted)}",
                  f"published numbers agree, {groups[0][0]}; {agree[0]} clean")]
    return made, [sentence], tiles


def _constants(setup: AsPublished, items: Sequence[Item], total: int) -> Statement | None:
    """A statement on the published numbers that are constants; None if there are none.

    items: of these numbers (Item.constant). total: how many numbers were published.
    """
    if not items:
        return None
    switches = dict(chain.from_iterable(cause.switches for cause in setup.causes))
    constant_ms = switches["failed_ms"]
    return Statement("Published numbers that are no time of a transfer:", f"{len(items)} of {total}"
                     " are what their script wrote down for a fetch that never connected. They are"
                     f" counted apart: {counts(items)[-1]} agree with the constant,"
                     f" {constant_ms:g} ms.", numbers=(Rounded(len(items), 0),))


# Causes ------------------------------------------------------------------------------

def _causes(setup: AsPublished, agree: Sequence[int], groups: Sequence[tuple[str, int]], total: int,
            context: str, constants: Statement | None, of_statements: bool) -> Finding:
    """Each cause in turn, with how many of the numbers agree once it is switched on, too.

    agree: how many agree at each level. groups: as by_group returns them. constants: the statement
    on the numbers that are counted apart. of_statements: whether statements were published, and no
    numbers; the report counts their results where they stand.
    """
    title = f"{TITLE}: {total} of them, cause by cause"
    clean = "none: the clean run"

    rows: list[tuple[Cell, ...]] = [(clean, "", "", "", agree[0], None)]
    steps = [WaterfallStep(clean, agree[0], "start")]
    for cause, before, count in zip(setup.causes, agree, agree[1:]):
        rows.append((cause.name, cause.known, cause.where, cause.in_words, count, count - before))
        steps.append(WaterfallStep(f"{cause.name} ({cause.known})", count, cause.known))
    columns = (Column("cause", is_text=True), Column("known by", is_text=True),
               Column("where", is_text=True, rank=1), Column("switches on", is_text=True, rank=0),
               Column(f"agree of {total}"), Column("more", signed=True))
    says = tuple(f"{cause.name} ({cause.known}; {cause.where}): {cause.says}"
                 for cause in setup.causes)
    table = Table("Causes, one more in each line", columns, tuple(rows), says)

    counts = tuple((name, count, total, 100 * count / total)
                   for name, count in ((clean, agree[0]), *groups))
    summed = Table("Agreement, by how the causes are known", (
        Column("causes", is_text=True), Column("agree"), Column("of"), Column("", "%")), counts,
        (_bounds(setup),))

    # Causes that are only calibrated or inferred never make a number "reproduced".
    _, certain = groups[0]
    outcomes = {} if of_statements else {REPRODUCED: certain, NOT_REPRODUCED: total - certain}
    chart = StepChart(title, (context,), steps=tuple(steps), most=total,
                      foot=f"{constants.text} {constants.measured}" if constants else "",
                      axis=f"published numbers that agree, of {total}; {_bounds(setup)}")
    return Finding("causes", TITLE, tables=(summed, table),
                   statements=(constants,) if constants else (), bars=outcomes, chart=chart)


def _bounds(setup: AsPublished) -> str:
    """When a number agrees, in words."""
    points = f", and {setup.within_points:g} points" if setup.within_points else ""
    return f"a number agrees within {setup.within_percent:g} % or {setup.within_ms:g} ms{points}"


# A figure with three sides -------------------------------------------------------------

def _figure(scenario: Scenario, figure: Figure, levels: Sequence[Measured],
            context: str) -> Finding:
    """The three sides of each bar of a figure, and the statements on the figure."""
    rows, bar_figure = bars(figure, levels), levels[-1].bar_figures[figure.name]
    unit, of_times = bar_figure.metric.unit, bar_figure.is_sweep
    # For each unit, the three sides of each row.
    by_unit = [(unit, [_sides(row, 0) for row in rows])]
    if not of_times:
        by_unit.append(("%", [_sides(row, 1) for row in rows]))

    columns = [Column(bar_figure.by.head, bar_figure.by.unit)]
    for side in SIDES:
        columns += [Column("", its_unit, side) for its_unit, _ in by_unit]
    columns += [Column("clean", is_text=True), Column("as they measured it", is_text=True)]
    cells: list[tuple[Cell, ...]] = []
    for row_number, row in enumerate(rows):
        numbers: list[Cell] = []
        for side_number in range(len(SIDES)):
            numbers += [values[row_number][side_number] for _, values in by_unit]
        cells.append((row.label, *numbers, _word(row, 0), _word(row, -1)))
    table = Table(figure.title, tuple(columns), tuple(cells)).without_empty()

    labels = [row.label for row in rows]
    plots = []
    for its_unit, values in by_unit:
        axis = f"{'time' if of_times else 'saved'} ({its_unit})"
        is_logarithmic = not of_times and its_unit != "%"
        plots.append(_plot(bar_figure.by.axis, axis, labels, values, is_logarithmic))
    on_logarithms = [line for plot in plots if plot.y_ends for line in plot.lines]
    is_below = any(LEAST in line.y for line in on_logarithms)

    title = figure.title if of_times else (
        f"{figure.title}, saved by {figure.experiment_initcwnd} instead of"
        f" {figure.baseline_initcwnd} segments")
    chart = LineChart(title, (context,),
                      f"Points at {LEAST:g} {unit} lie there, or below." if is_below else "",
                      columns=(tuple(plots),), legend=True)
    return Finding(figure.name, figure.title, tables=(table,),
                   statements=_statements(scenario, figure, levels), chart=chart)


def _plot(x_label: str, y_label: str, labels: Sequence[str],
          values: Sequence[Sequence[float | None]], is_log: bool) -> Plot:
    """The sides of each bar as points next to each other. Sides without a point have no line.

    values: the three sides of each bar. is_log: whether the y axis is logarithmic; smaller values
    are then drawn at LEAST.
    """
    aside = ASIDE * min(1.0, len(labels) / FEW_BARS)
    lines = []
    for side, name in enumerate(SIDES):
        x: list[float] = []
        y: list[float] = []
        for place, sides in enumerate(values):
            value = sides[side]
            if value is not None:
                x.append(place + aside * (side - 1))  # the middle side stands at the bar's tick
                y.append(max(value, LEAST) if is_log else value)
        if x:
            style: Literal["points", "published"] = "points" if side else "published"
            lines.append(Line(name, tuple(x), tuple(y), look=side, style=style))

    ticks = tuple((float(place), label) for place, label in enumerate(labels))
    if not is_log:
        return Plot(x_label, y_label, tuple(lines), ticks=ticks, zero=True)
    highest = max((value for line in lines for value in line.y), default=LEAST)
    return Plot(x_label, y_label, tuple(lines), ticks=ticks, y_scale="log",
                y_ends=(LEAST, 2 * highest))


def _sides(row: Item, which: int) -> tuple[float | None, float | None, float | None]:
    """The number as published, clean, and with all causes.

    which: 0 for the number in the metric's unit, 1 for the percentage.
    """
    return (row.published_numbers[which], row.numbers_at(0)[which], row.numbers_at(-1)[which])


def _word(row: Item, level: int) -> str:
    """Whether our number agrees at a level, in a word; "" where no number was published."""
    if row.published_numbers == (None, None):
        return ""
    if row.constant and level == -1:
        return CONSTANT
    return AGREES if row.agrees[level] else DIFFERS


def _statements(scenario: Scenario, figure: Figure,
                levels: Sequence[Measured]) -> tuple[Statement, ...]:
    """The published statements on a figure, clean and with all causes."""
    def judge(level: Measured) -> Sequence[Statement]:
        bar_figure = level.bar_figures[figure.name]
        return judge_bars(bar_figure, scenario.claims, level.exact).statements

    statements = []
    for clean, last in zip(judge(levels[0]), judge(levels[-1])):
        measured = f"{last.measured}; clean: {clean.measured}"
        statements.append(Statement(last.text, measured, last.outcome))
    return tuple(statements)


# Raw values ----------------------------------------------------------------------------

EVERY_CELL = "Every cell: published, clean, and as they measured it"


def _cells(rows: Sequence[Item], file: str, context: str) -> Finding:
    """The table of all published raw values next to ours, and the chart of ours divided by theirs.
    """
    title = f"Measured here, as a part of each published value of paper/{file}"
    columns = (Column("cell", is_text=True), Column("", "ms", SIDES[0]),
               Column("", "ms", SIDES[1]), Column("", "ms", SIDES[2]),
               Column("clean", is_text=True, is_filter=True),
               Column("as they measured it", is_text=True, is_filter=True))
    cells = tuple((row.label, *_sides(row, 0), _word(row, 0), _word(row, -1)) for row in rows)
    clean = Line(SIDES[1], *_ratios(rows, 0), look=1, style="published")
    with_causes = Line(SIDES[2], *_ratios(rows, -1), style="points")
    plot = Plot("published total time (ms)", "measured / published", (clean, with_causes),
                x_scale="log", y_scale="log", limit=(1.0, "as published"))
    return Finding("cells", EVERY_CELL, tables=(Table(EVERY_CELL, columns, cells),),
                   chart=LineChart(title, (context,), columns=((plot,),), legend=True))


def _ratios(rows: Sequence[Item], level: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The published times in ms, ascending, and our times at a level divided by them."""
    points = []
    for row in rows:
        published_ms, _ = row.published_numbers
        ms, _ = row.numbers_at(level)
        if published_ms and ms is not None:
            points.append((published_ms, ms / published_ms))
    points.sort()
    return tuple(x for x, _ in points), tuple(y for _, y in points)
