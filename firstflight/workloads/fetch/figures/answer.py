"""The answer of a run: one sentence, a short table, and the reasons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from firstflight.base.quantity import in_words
from firstflight.base.stats import Estimate, estimate
from firstflight.base.words import (format_brief, format_interval, format_number, format_range,
                                    join_words)
from firstflight.figures.compare import VARIES_MS
from firstflight.figures.kernel_changes import note_on_windows
from firstflight.figures.reasons import explain_changes, not_measured, reasons
from firstflight.figures.what_ifs import changes_to_explain
from firstflight.findings.claims import WITHIN_PERCENT, WITHIN_POINTS
from firstflight.findings.findings import REQUESTED, Answer, Cell, Column, Finding, Table
from firstflight.setting.draws import note_on_draws
from firstflight.setting.tcp import BY_KERNEL
from firstflight.workloads.fetch.figures.bar_figure import BarFigure
from firstflight.workloads.fetch.figures.cell_tables import changes_table
from firstflight.workloads.fetch.figures.cells import (CellSetting, WindowChange, change_between,
                                                       where)
from firstflight.workloads.fetch.figures.figure import Analysis
from firstflight.workloads.fetch.figures.kernels import kernel_answer, kernel_changes, kernels_table
from firstflight.workloads.fetch.figures.queue_hints import queue_hints
from firstflight.workloads.fetch.figures.reasons import WhatIfs
from firstflight.workloads.fetch.record.record import Record, is_one_draw
from firstflight.workloads.fetch.scenario.figures import FIGURES
from firstflight.workloads.fetch.scenario.scenario import Figure
from firstflight.workloads.fetch.scenario.varied_parameters import requested_columns

MOST_ROWS = 20  # in the table of comparisons
MOST_FIGURES = 3  # in the table of figures
MOST_WINDOWS = 4  # in one sentence
MOST_REASONS = 3  # sentences


def answer_of_run(analysis: Analysis, figures: Sequence[tuple[Figure, Sequence[Finding]]],
                  bars: Sequence[BarFigure], findings: Sequence[Finding]) -> Answer:
    """What is read first: the answer of a finding, of single cells, or of figures of bars.

    figures: the run's figures with their findings. bars: the figures of bars. findings: all of the
    run.
    """
    of_finding = next((made.answer for made in findings if made.answer is not None), None)
    if of_finding is not None:
        return of_finding

    is_question = analysis.scenario.cells
    to_explain = changes_to_explain(analysis.compared, is_question)
    why = explain_changes(to_explain, analysis.what_ifs, among=analysis.compared)[:MOST_REASONS]
    answers = [made[0].sentence for figure, made in figures
               if FIGURES[figure.kind].is_answer and not made[0].missing]
    if answers:
        return Answer(" ".join(answers), notes=tuple(why))

    windows = _windows_that_hold_all(analysis.records)
    # In a part of a scenario, one figure may show all records.
    is_of_bars = not is_question and any(_shows_all(bar_figure, analysis.records)
                                         for bar_figure in bars)
    if analysis.cells and not is_of_bars:
        of_cells = answer_of_cells(analysis.cells, analysis.changes, is_question,
                                   what_ifs=analysis.what_ifs)
        return replace(of_cells, notes=(*of_cells.notes, *windows))
    return Answer(table=figures_table(bars), notes=(*why, *windows, *_tolerance(bars)))


def _shows_all(bar_figure: BarFigure, records: Sequence[Record]) -> bool:
    """Whether a figure shows, or counts as excluded, each record under its windows."""
    windows = bar_figure.windows
    under_its_windows = sum(record.trial.initcwnd in windows for record in records)
    return bar_figure.n + bar_figure.excluded.total == under_its_windows


def _windows_that_hold_all(records: Sequence[Record]) -> tuple[str, ...]:
    """A note where several windows hold the whole response, so that their times are equal."""
    trials = [record.trial for record in records]
    first = next((record for record in records if record.counts and record.header_bytes), None)
    is_one_size = len({(trial.response_bytes, trial.mss) for trial in trials}) == 1
    if first is None or not is_one_size:
        return ()
    if any(trial.before or trial.is_secure or trial.gap_ms for trial in trials):
        return ()

    sent_bytes = first.trial.response_bytes + (first.header_bytes or 0)
    segments = math.ceil(sent_bytes / first.trial.mss)
    windows = sorted({trial.initcwnd for trial in trials if trial.initcwnd >= segments})
    if len(windows) < 2:
        return ()
    names = join_words([str(window) for window in windows])
    return (f"The response is {segments} segment{'s' * (segments > 1)} long: windows of {names}"
            " send it in one flight.",)


def _tolerance(bar_figures: Sequence[BarFigure]) -> tuple[str, ...]:
    """A note on bars and their tolerance; () where nothing was published."""
    if not any(sum(bar_figure.counts.values()) for bar_figure in bar_figures):
        return ()
    return (f"A bar is one bucket of a figure. Its tolerance is {WITHIN_PERCENT:g} % of the"
            f" published value and {WITHIN_POINTS:g} points of the published percentage.",)


# The answer of single cells ----------------------------------------------------------

def answer_of_cells(cells: Sequence[CellSetting], changes: Sequence[WindowChange],
                    is_question: bool, what_ifs: WhatIfs = WhatIfs()) -> Answer:
    """What larger windows change, the largest effect first, and why.

    is_question: whether flags ask. Then there are hints on queues, which a scenario chooses on
    purpose.
    """
    if all(cell.total_ms is None for cell in cells):
        return Answer("No transfer counts, so there is no answer.")

    requested = [cell.requested for cell in cells]
    records = [record for cell in cells for record in cell.records]
    hints = queue_hints(requested, records) if is_question else []
    has_one_draw = is_question and any(len(cell.records) == 1 and is_one_draw(cell.records[0])
                                       for cell in cells)
    notes = (*hints, *note_on_draws([record.trial for record in records], has_one_draw),
             *note_on_windows(requested, "--iw default leaves it to each"))

    of_kernels = kernel_changes(cells)
    if not changes and of_kernels:
        return Answer(kernel_answer(of_kernels), kernels_table(of_kernels, MOST_ROWS), notes)
    if not changes:
        return Answer(_single_window(cells), _times(cells), notes)

    networks = {change.base.requested for change in changes}
    sentence = _one_network(changes) if len(networks) == 1 else _networks(changes, what_ifs)
    if of_kernels:
        sentence = f"{kernel_answer(of_kernels)} {sentence}"

    why = explain_changes(changes_to_explain(changes, is_question), what_ifs, known=sentence)
    if is_question:
        why = [*why[:MOST_REASONS], *not_measured(changes, what_ifs)]
    table = _without_equal(changes_table(changes, MOST_ROWS, what_ifs))
    return Answer(sentence, table, (*why[:MOST_REASONS + 1], *notes))


def _single_window(cells: Sequence[CellSetting]) -> str:
    """The sentence for a single window, where nothing is compared."""
    timed = [cell for cell in cells if cell.total_ms is not None]
    is_uploaded = all(cell.requested.request_bytes for cell in cells)
    window_of = attrgetter("requested.uploading_window" if is_uploaded else "requested.initcwnd")
    windows = sorted({window_of(cell) for cell in timed})
    failed = sorted({window_of(cell) for cell in cells} - {*windows})

    taken = format_range([cell.total_ms for cell in timed], "ms")
    sent = ""
    if len(cells) == 1:
        repeats_ms = [record.total_ms for record in cells[0].counting
                      if record.total_ms is not None]
        if max(repeats_ms) - min(repeats_ms) >= VARIES_MS:
            taken = f"{format_brief(cells[0].total_ms)}{_half(estimate(repeats_ms))} ms"
        sent = _in_flights(cells[0].median, is_uploaded)

    if is_uploaded:
        return _single_upload(cells, windows, taken, sent)
    if cells[0].requested.window_by == BY_KERNEL:
        return f"With the kernel's own initial window a transfer takes {taken}{sent}."
    text = (f"With an initial window of {', '.join(map(str, windows))} segments a transfer takes"
            f" {taken}{sent}.")
    if failed:
        return (f"{text} No transfer with {', '.join(map(str, failed))} counts, so nothing is"
                " compared.")
    return (f"{text} Only one window was measured: compare with others by"
            f" --iw {windows[0]},{2 * windows[0]},{4 * windows[0]}.")


def _in_flights(record: Record | None, is_uploaded: bool) -> str:
    """The flights of a request or a response, such as ", in 2 flights (10+7 segments)"."""
    if record is None:
        return ""
    count, flights = record.response_round_trips, record.response_flights
    if is_uploaded:
        count, flights = record.upload_round_trips, record.upload_flights
    if not flights:
        return ""
    return f", in {count} flight{'s' if count != 1 else ''} ({flights} segments)"


def _single_upload(cells: Sequence[CellSetting], windows: Sequence[int], taken: str,
                   sent: str) -> str:
    """The sentence for a single window of a client whose requests have a body.

    taken: the time, in words. sent: the flights, in words.
    """
    sizes = sorted({cell.requested.request_bytes for cell in cells})
    listed = join_words([in_words(size, "bytes") for size in sizes])
    return (f"With a client's initial window of {', '.join(map(str, windows))} segments a request"
            f" of {listed} and its response take {taken}{sent}. Only one window was measured:"
            f" compare with others by --client-iw {windows[0]},{2 * windows[0]},{4 * windows[0]}.")


def _times(cells: Sequence[CellSetting]) -> Table | None:
    """A table with the time of each cell; None for a single cell."""
    if len(cells) < 2:
        return None
    requested = requested_columns([cell.requested for cell in cells])
    columns = (*(column for column, _ in requested), Column("total time", "ms"))
    rows = []
    for cell in cells:
        rows.append((*(show(cell.requested) for _, show in requested), cell.total_ms))
    return Table("", columns, tuple(rows)).first(MOST_ROWS)


def _one_network(changes: Sequence[WindowChange]) -> str:
    """The sentence for changes in one network.

    Such as "IW 10 → 20 saves 34.6 ms (20 %), from 168 to 133 ms; → 40 saves 46.7 ms (28 %)."
    """
    shown = list(changes)
    if len(changes) > MOST_WINDOWS:
        shown = sorted(changes, key=lambda change: -change.saved_ms)[:MOST_WINDOWS]
    first, *others = sorted(shown, key=lambda change: change.windows[1])
    base, window = first.windows
    text = (f"{_iw(first)} {base} → {window} {_effect(first)}, from"
            f" {format_brief(first.saved.base.value)} to"
            f" {format_brief(first.saved.experiment.value)} ms")
    text += "".join(f"; → {other.windows[1]} {_effect(other)}" for other in others)

    fastest = _fastest(changes)
    if fastest is not None:
        text += f". Of these windows {fastest.windows[1]} is the fastest"
    return f"{text}."


def _fastest(changes: Sequence[WindowChange]) -> WindowChange | None:
    """The change to a window that is surely faster than all other windows.

    None where no window is, and where it is the largest one, as a reader expects.
    """
    best = min(changes, key=lambda change: change.saved.experiment.value)
    largest = max(changes, key=lambda change: change.windows[1])
    if best is largest or best.effect <= 0:
        return None
    others = [change for change in changes if change is not best]
    is_surely = all(change_between(best.experiment, other.experiment).effect < 0
                    for other in others)
    return best if is_surely else None


def _iw(change: WindowChange) -> str:
    """Whose initial window the change is of, in words."""
    return "The client's IW" if change.is_of_client else "IW"


def _without_equal(table: Table) -> Table:
    """The table without the requested columns that have one value in all rows."""
    if len(table.rows) < 2:
        return table
    shown = []  # indices of columns
    for index, column in enumerate(table.columns):
        values = {row[index] for row in table.rows}
        if column.group != REQUESTED or len(values) > 1:
            shown.append(index)
    columns = tuple(table.columns[index] for index in shown)
    rows = []
    for row in table.rows:
        rows.append(tuple(row[index] for index in shown))
    return replace(table, columns=columns, rows=tuple(rows))


def _effect(change: WindowChange) -> str:
    """What a larger window does, such as "saves 34.6 ms (20 %)"."""
    interval = change.saved.absolute.interval
    if not change.effect and interval is None:
        return "changes nothing"
    if not change.effect:
        return f"has no sure effect (95 % interval of the saving {format_interval(interval)} ms)"
    size = _size(change)
    return f"saves {size}" if change.effect > 0 else f"takes {size} longer"


def _size(change: WindowChange) -> str:
    """The saving or loss without its sign, such as "34.6 ± 3.2 ms (20 %)"."""
    return (f"{format_brief(abs(change.saved_ms))}{_half(change.saved.absolute)} ms"
            f" ({format_number(abs(change.saved.percent.value), 0)} %)")


def _half(saved: Estimate) -> str:
    """Half of the interval, such as " ± 3.2"; "" without an interval."""
    if saved.interval is None:
        return ""
    return f" ± {format_brief((saved.interval[1] - saved.interval[0]) / 2)}"


def _networks(changes: Sequence[WindowChange], what_ifs: WhatIfs) -> str:
    """The sentences for changes in several networks.

    They have the largest saving and the largest loss, the greater of the two first, and how many
    comparisons are faster, slower and unchanged.
    """
    ordered = sorted(changes, key=lambda change: change.saved_ms)
    worst, best = ordered[0], ordered[-1]
    ends = [change for change in (best, worst) if change.effect]
    ends.sort(key=lambda change: -abs(change.saved_ms))
    what = "A larger window of the client" if worst.is_of_client else "A larger window"
    if not ends:
        return f"{what} changes nothing in any of {len(changes)} comparisons."
    if len({change.effect for change in ends}) == 1:  # only gains, or only losses
        ends = ends[:1]

    parts = []
    for change in ends:
        size = _size(change)
        place = where(change, changes)
        if change.effect > 0:
            parts.append(f"saves up to {size}, at {place}")
        else:
            why = next((f": {reason.text}" for reason in reasons(change, what_ifs)), "")
            parts.append(f"takes up to {size} longer, at {place}{why}")

    counts = Counter(change.effect for change in changes)
    effects = ((1, "faster"), (-1, "slower"), (0, "unchanged"))
    counted = [f"{counts[sign]} {word}" for sign, word in effects if counts[sign]]
    return (f"{what} {', and '.join(parts)}. Of {len(changes)} comparisons:"
            f" {', '.join(counted)}.")


# The answer of figures ---------------------------------------------------------------

def figures_table(bar_figures: Sequence[BarFigure]) -> Table | None:
    """A row for each figure of bars: what the larger window saves, measured and published."""
    if not bar_figures:
        return None
    heads = (("figure", 9), ("windows", 3), ("saved", 9), ("saved, %", 4), ("published", 2),
             ("published, %", 1))
    columns = tuple(Column(name, is_text=True, rank=rank) for name, rank in heads)
    return Table("", columns, tuple(map(_figure, bar_figures))).without_empty().first(MOST_FIGURES)


def _figure(bar_figure: BarFigure) -> tuple[Cell, ...]:
    """The cells of a figure's row."""
    figure, unit = bar_figure.figure, bar_figure.metric.unit
    bars = [bar for bar in bar_figure.bars if not bar_figure.is_baseline(bar)]
    windows = f"{figure.baseline_initcwnd} → {figure.experiment_initcwnd}"
    published = [bar.published for bar in bars]
    if bar_figure.is_sweep:
        windows = f"{bar_figure.bars[0].label} … {bar_figure.bars[-1].label}"
        published = []  # sources of such figures publish times, not savings
    return (figure.name, windows,
            _span([bar.difference.absolute.value for bar in bars], unit),
            _span([bar.difference.percent.value for bar in bars], "%"),
            _span([known.absolute for known in published], unit),
            _span([known.percent for known in published], "%"))


def _span(values: Sequence[float | None], unit: str) -> str:
    """The smallest and the largest value in words; "" where no value is known."""
    return format_range(values, unit) if any(value is not None for value in values) else ""
