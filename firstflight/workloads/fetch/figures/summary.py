"""Sentences, with numbers, on what the records of a run and the bars of a figure show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter

from firstflight.base.words import format_brief, format_range
from firstflight.findings import claims
from firstflight.findings.bar import Bar
from firstflight.findings.claims import (NOT_REPRODUCED, REPRODUCED, UNDECIDED, WITHIN_PERCENT,
                                         WITHIN_POINTS)
from firstflight.findings.difference import Excluded
from firstflight.findings.findings import write_counts
from firstflight.runs.kinds import RunData
from firstflight.workloads.fetch.figures.bar_figure import BarFigure
from firstflight.workloads.fetch.figures.recovery import sentence_of_figure, sentence_of_run
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.verify import notes
from firstflight.workloads.fetch.verify.integrity import is_modelled

WHAT_RESULTS_MEAN = (
    f"Reproduced means that our whole 95 % interval is within {WITHIN_PERCENT:g} % of the published"
    f" milliseconds and {WITHIN_POINTS:g} points of the published percentage. Undecided means that"
    " only a part of the interval is: more data would decide.")


# Sentences on a run ------------------------------------------------------------------

def summary(records: Sequence[Record]) -> str:
    """A line on how many trials count, and why others do not."""
    counting, excluded = _counted(records)
    line = f"{counting} of {len(records)} trials verified on the wire"
    if expected := _expected(records):
        line += f", {expected} failed as expected"
    return f"{line}; excluded: {excluded}" if excluded.total else line


def _counted(records: Sequence[Record]) -> tuple[int, Excluded]:
    """How many records count, and how many do not, by reason."""
    counting = sum(record.counts for record in records)
    failed_transfers = sum(not record.ok and not record.failed_as_expected for record in records)
    skipped = sum(record.was_skipped for record in records)
    excluded = len(records) - counting - _expected(records)
    failed_verdicts = excluded - failed_transfers - skipped
    return counting, Excluded(failed_transfers=failed_transfers, failed_verdicts=failed_verdicts,
                              skipped=skipped)


def _expected(records: Sequence[Record]) -> int:
    """How many fetches failed as expected."""
    return sum(record.failed_as_expected for record in records)


def run_sentences(run: RunData[Record], judged: Sequence[BarFigure]) -> list[str]:
    """Sentences on a run, the most important first. judged: the run's figures of bars."""
    return [_verified(run.records), *notes.run_notes(run.records), *_reproduced(judged),
            *_statements(judged), *sentence_of_run(judged), *_largest_deviations(judged),
            *_against_model(run), *_retransmissions(run.records)]


def _verified(records: Sequence[Record]) -> str:
    """A sentence on how many transfers were verified, and why others were not."""
    counting, excluded = _counted(records)
    if excluded.total:
        return (f"{counting} of {len(records)} transfers were verified on the wire. Excluded from"
                f" every number here: {excluded}.")

    window = "the initial window"
    if any(map(notes.is_limited, records)):
        window = "the initial window or what else limited the first flight"
    expected = _expected(records)
    sentence = (f"All {len(records) - expected} transfers were verified on the wire: their packets"
                f" show {window}, the RTT and the bandwidth that were requested.")
    if expected:
        sentence += f" {expected} more failed as expected: none of their packets left the client."
    return sentence


def _reproduced(judged: Sequence[BarFigure]) -> list[str]:
    """Sentences on the outcomes of published bars, and on figures without a reproduced bar.

    Figures that are held out have a sentence of their own: no parameter was chosen by them.
    """
    sentences: list[str] = []
    for held_out, which in ((False, ""), (True, " held out (no parameter was chosen by them)")):
        bar_figures = [bar_figure for bar_figure in judged
                       if bar_figure.figure.held_out == held_out]
        total = sum((Counter(bar_figure.counts) for bar_figure in bar_figures), Counter[str]())
        if not total:
            continue
        sentence = f"Of the published bars{which}, {claims.summarize_counts(total)}"
        without_reproduced = [
            bar_figure.figure.title for bar_figure in bar_figures
            if sum(bar_figure.counts.values()) and not bar_figure.counts[REPRODUCED]]
        if without_reproduced and len(without_reproduced) < len(bar_figures):
            sentence += f"; none is reproduced in: {'; '.join(without_reproduced)}"
        sentences.append(f"{sentence}.")

    if sentences:
        sentences[-1] += f" {WHAT_RESULTS_MEAN}"
    return sentences


def _statements(judged: Sequence[BarFigure]) -> list[str]:
    """A sentence on the outcomes of published statements, and on those not reproduced; or []."""
    statements = [statement for bar_figure in judged for statement in bar_figure.statements]
    if not statements:
        return []
    outcomes = Counter(statement.outcome for statement in statements)
    sentence = f"Of {len(statements)} published statements: {write_counts(outcomes)}"
    for outcome, words in ((NOT_REPRODUCED, "not reproduced"),
                           (UNDECIDED, "too few data to decide")):
        quoted = [f"“{statement.text}” ({statement.measured})" for statement in statements
                  if statement.outcome == outcome]
        if quoted:
            sentence += f"; {words}: {'; '.join(quoted)}"
    return [f"{sentence}."]


def _largest_deviations(bar_figures: Iterable[BarFigure]) -> list[str]:
    """Sentences on the bars farthest above and below the published values, by their ratio."""
    bars = [(bar_figure, bar) for bar_figure in bar_figures if not bar_figure.is_sweep
            for bar in bar_figure.bars]
    ratios = []
    for bar_figure, bar in bars:
        published = bar.published.absolute or 0
        ours = bar.difference.absolute.value
        unit = bar_figure.metric.unit
        if published > 0 and ours > 0:
            ratios.append((ours / published,
                           f"{bar_figure.by.head} {bar_figure.name_of(bar)}: {format_brief(ours)}"
                           f" {unit} here, {format_brief(published)} {unit} published"))
    if not ratios:
        return []

    highest, above = max(ratios, key=itemgetter(0))
    lowest, below = min(ratios, key=itemgetter(0))
    parts = []
    if highest > 1:
        parts.append(f"Farthest above the published value is {above} ({highest:.1f} times as"
                     " much).")
    if lowest < 1:
        parts.append(f"Farthest below is {below} ({lowest * 100:.0f} % of it).")
    return [" ".join(parts)] if parts else []


def _against_model(run: RunData[Record]) -> list[str]:
    """A sentence on how near the model's times are; [] in real time.

    It is about the transfers that the model covers and chance does not affect.
    """
    counting = [record for record in run.records if record.counts]
    deviations_ms = [abs(record.total_ms - record.model_ms) for record in counting
                     if is_modelled(record) and not record.trial.is_random
                     and record.total_ms is not None and record.model_ms is not None]
    if not deviations_ms or not run.exact:
        return []

    near = sum(deviation_ms <= 1 for deviation_ms in deviations_ms)
    # Rounded up to hundredths; 1e-6 of one keeps a number of hundredths from going up.
    largest_ms = max(0.01, math.ceil(max(deviations_ms) * 100 - 1e-6) / 100)
    which = f"{near} of them to within 1 ms and all to within {largest_ms:.0f} ms"
    if near == len(deviations_ms):
        which = f"to within {largest_ms:g} ms"
    return [f"{len(deviations_ms)} of {len(counting)} verified transfers lost nothing, with nothing"
            f" left to chance: they took as long as the model of TCP computes, {which}."]


def _retransmissions(records: Sequence[Record]) -> list[str]:
    """A sentence on how many transfers retransmitted data, and how many of them lost data."""
    retransmitting = [record for record in records if record.retransmissions]
    if not retransmitting:
        return ["No data was retransmitted."]
    lost = [record for record in retransmitting if record.lost_segments]
    how_many = "all" if len(lost) == len(retransmitting) else len(lost) or "none"
    counted = f"{how_many} of them lost data"
    by_queue = sum(bool(record.queue_drops) for record in lost)
    if by_queue:
        counted += f" (the queue dropped packets in {by_queue})"
    return [f"{len(retransmitting)} of {len(records)} transfers retransmitted data, {counted}; the"
            " causes are with the verdicts."]


# Sentences on a figure ---------------------------------------------------------------

def figure_sentence(bar_figure: BarFigure) -> str:
    """A sentence on one figure: the range of the improvements, measured and published."""
    if bar_figure.is_sweep:
        return " ".join([_best_window(bar_figure), *bar_figure.remarks])

    absolutes = [bar.published.absolute for bar in bar_figure.bars]
    percents = [bar.published.percent for bar in bar_figure.bars]
    published = []
    for values, unit in ((absolutes, bar_figure.metric.unit), (percents, "%")):
        if any(value is not None for value in values):
            published.append(format_range(values, unit))
    sentence = _range_of_bars(bar_figure)
    if published:
        sentence += f"; published: {', '.join(published)}"
    return " ".join([f"{sentence}.", *sentence_of_figure(bar_figure), *bar_figure.remarks])


def _range_of_bars(bar_figure: BarFigure) -> str:
    """A sentence on the smallest and the largest improvement, without its full stop."""
    figure, bars, metric = bar_figure.figure, bar_figure.bars, bar_figure.metric
    windows = f"{figure.experiment_initcwnd} instead of {figure.baseline_initcwnd} segments"
    if not any(bar.difference.absolute.value for bar in bars):
        in_any = f" in any of {len(bars)} bars" if len(bars) > 1 else ""
        return f"{windows} change nothing{in_any}"

    def saved(bar: Bar) -> float:
        return bar.difference.absolute.value

    low, high = min(bars, key=saved), max(bars, key=saved)
    ends = dict.fromkeys(f"{format_brief(saved(end))} {metric.unit} (at {bar_figure.name_of(end)})"
                         for end in (low, high))
    verb = "gain" if metric.more_is_better else "save"
    percents = format_range([bar.difference.percent.value for bar in bars], "%")
    minus = " (a minus is a loss)" if saved(low) < 0 else ""
    return f"{windows} {verb} {' to '.join(ends)}, {percents}{minus}"


def _best_window(bar_figure: BarFigure) -> str:
    """A sentence on a window sweep: which window was the best, measured and published."""
    unit, sign = bar_figure.metric.unit, bar_figure.bars[0].difference.sign
    took = f"had the {'least' if sign > 0 else 'most'} {bar_figure.metric.head}"
    if unit == "ms":
        took = "took the least time"
    best = min(bar_figure.bars, key=lambda bar: sign * bar.difference.experiment.value)
    change = best.difference
    mean = f"{format_brief(change.experiment.value)} {unit} on average"
    *windows, last = (bar.label for bar in bar_figure.bars)
    listed = f"{', '.join(windows)} and {last}" if windows else last
    sentence = f"Of the windows {listed}, a window of {best.label} {took}: {mean}"
    if len({format_brief(bar.difference.experiment.value) for bar in bar_figure.bars}) == 1:
        sentence = f"The windows {listed} give the same: {mean}"
    elif not bar_figure.is_baseline(best):
        sentence += (f", {format_brief(change.absolute.value)} {unit} or"
                     f" {format_brief(change.percent.value)} %"
                     f" {'less' if sign > 0 else 'more'} than"
                     f" {bar_figure.figure.baseline_initcwnd}")

    # With the sign, the least value is the best one.
    published = [(sign * bar.published.level, bar.label) for bar in bar_figure.bars
                 if bar.published.level is not None]
    if published:
        level, label = min(published)
        sentence += (f"; published: {label} {took.removesuffix(' time')},"
                     f" {format_brief(sign * level)} {unit}")
    return f"{sentence}."
