"""What the records say, in plain sentences with numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from firstflight.base.words import format_brief, format_range
from firstflight.findings import claims
from firstflight.findings.claims import (NOT_REPRODUCED, REPRODUCED, UNDECIDED, WITHIN_PERCENT,
                                         WITHIN_POINTS)
from firstflight.findings.difference import Excluded
from firstflight.findings.findings import listed
from firstflight.runs.kinds import RunData
from firstflight.study.fetches.figures.bar_figure import BarFigure
from firstflight.study.fetches.figures.recovery import sentence_of_figure, sentence_of_run
from firstflight.study.fetches.verify import notes
from firstflight.study.fetches.verify.integrity import is_modelled
from firstflight.study.fetches.verify.record import Record

WHAT_RESULTS_MEAN = (
    f"Reproduced means that our whole 95 % interval is within {WITHIN_PERCENT:g} % of the published"
    f" milliseconds and {WITHIN_POINTS:g} points of the published percentage. Undecided means that"
    " only a part of the interval is: more data would decide.")


# Of a run ----------------------------------------------------------------------------

def summary(records: Sequence[Record]) -> str:
    """How many trials there are, how many of them count, and why the others do not."""
    counting, excluded = _counted(records)
    line = f"{counting} of {len(records)} trials verified on the wire"
    if expected := _expected(records):
        line += f", {expected} failed as expected"
    return f"{line}; excluded: {excluded}" if excluded.total else line


def _counted(records: Sequence[Record]) -> tuple[int, Excluded]:
    counting = sum(record.counts for record in records)
    failed = sum(not record.ok and not record.failed_as_expected for record in records)
    skipped = sum(record.was_skipped for record in records)
    wrong = len(records) - counting - failed - skipped - _expected(records)
    return counting, Excluded(failed, wrong, skipped=skipped)


def _expected(records: Sequence[Record]) -> int:
    """How many fetches failed as expected."""
    return sum(record.failed_as_expected for record in records)


def run_sentences(run: RunData, judged: Sequence[BarFigure]) -> list[str]:
    """The most important first."""
    return [_verified(run.records), *notes.run_notes(run.records), *_reproduced(judged),
            *_held(judged), *sentence_of_run(judged), *_differences(judged), *_against_model(run),
            *_sent_again(run.records)]


def _verified(records: Sequence[Record]) -> str:
    counting, excluded = _counted(records)
    if not excluded.total:
        window = ("the initial window or what else limited the first flight"
                  if any(map(notes.is_limited, records)) else "the initial window")
        expected = _expected(records)
        failed = (f" {expected} more failed as expected: none of their packets left the client."
                  if expected else "")
        return (f"All {len(records) - expected} transfers were verified on the wire: their packets"
                f" show {window}, the RTT and the bandwidth that were requested.{failed}")
    return (f"{counting} of {len(records)} transfers were verified on the wire. Excluded from"
            f" every number here: {excluded}.")


def _reproduced(judged: Sequence[BarFigure]) -> list[str]:
    """How many of the published bars came out, in all, and of which figures none did.

    Those that no parameter was chosen by are counted apart.
    """
    sentences: list[str] = []
    for held_out, which in ((False, ""), (True, " held out (no parameter was chosen by them)")):
        panels = [panel for panel in judged if panel.figure.held_out == held_out]
        total = sum((Counter(panel.counts) for panel in panels), Counter[str]())
        none = [panel.figure.title for panel in panels
                if sum(panel.counts.values()) and not panel.counts[REPRODUCED]]
        text = f"Of the published bars{which}, {claims.summary(total)}" if total else ""
        if text and none and len(none) < len(panels):
            text += f"; none is reproduced in: {'; '.join(none)}"
        sentences += [f"{text}."] if text else []
    return [*sentences[:-1], f"{sentences[-1]} {WHAT_RESULTS_MEAN}"] if sentences else []


def _held(judged: Sequence[BarFigure]) -> list[str]:
    """How many published statements have which result, and which are not reproduced."""
    statements = [statement for panel in judged for statement in panel.statements]
    if not statements:
        return []
    text = (f"Of {len(statements)} published statements:"
            f" {listed(Counter(statement.word for statement in statements))}")
    for word, what in ((NOT_REPRODUCED, "not so"), (UNDECIDED, "too few data to decide")):
        these = [f"“{statement.says}” ({statement.found})" for statement in statements
                 if statement.word == word]
        text += f"; {what}: {'; '.join(these)}" if these else ""
    return [f"{text}."]


def _differences(panels: Iterable[BarFigure]) -> list[str]:
    """Where the numbers are farthest from the published ones, by ratio."""
    ratios = [(ours / published,
               f"{panel.by.head} {panel.named(bar)}: {format_brief(ours)}"
               f" {panel.metric.unit} here,"
               f" {format_brief(published)} {panel.metric.unit} published")
              for panel in panels if not panel.is_sweep for bar in panel.bars
              if (published := bar.published.absolute or 0) > 0
              and (ours := bar.difference.absolute.value) > 0]
    if not ratios:
        return []
    (highest, above), (lowest, below) = (choose(ratios, key=lambda ratio: ratio[0])
                                         for choose in (max, min))
    parts = []
    if highest > 1:
        parts.append(f"Farthest above the published value is {above} ({highest:.1f} times as"
                     " much).")
    if lowest < 1:
        parts.append(f"Farthest below is {below} ({lowest * 100:.0f} % of it).")
    return [" ".join(parts)] if parts else []


def _against_model(run: RunData) -> list[str]:
    """How near the model is, in the transfers that it has to know: chance decides on none."""
    counting = sum(record.counts for record in run.records)
    late_ms = [abs(record.total_ms - record.model_ms) for record in run.records
               if record.counts and is_modelled(record) and not record.trial.is_random
               and record.total_ms is not None and record.model_ms is not None]
    if not late_ms or not run.exact:
        return []
    near = sum(difference <= 1 for difference in late_ms)
    farthest_ms = max(0.01, math.ceil(max(late_ms) * 100 - 1e-6) / 100)
    which = (f"to within {farthest_ms:g} ms" if near == len(late_ms) else
             f"{near} of them to within 1 ms and all to within {farthest_ms:.0f} ms")
    return [f"{len(late_ms)} of {counting} verified transfers lost nothing, with nothing left to"
            f" chance: they took as long as the model of TCP computes, {which}."]


def _sent_again(records: Sequence[Record]) -> list[str]:
    """How many transfers repeated segments, and why."""
    again = [record for record in records if record.retransmissions]
    if not again:
        return ["No data was retransmitted."]
    lost = [record for record in again if record.lost_segments]
    counted = {0: "none of them lost data", len(again): "all of them lost data"}.get(
        len(lost), f"{len(lost)} of them lost data")
    by_queue = sum(bool(record.queue_drops) for record in lost)
    counted += f" (the queue dropped packets in {by_queue})" if by_queue else ""
    return [f"{len(again)} of {len(records)} transfers retransmitted data, {counted}; the"
            " causes are with the verdicts."]


# Of a figure -------------------------------------------------------------------------

def figure_sentence(panel: BarFigure) -> str:
    """One figure in a sentence: the range of what is saved, here and published."""
    if panel.is_sweep:
        return " ".join([_best_window(panel), *panel.remarks])
    figure, bars, unit = panel.figure, panel.bars, panel.metric.unit
    low, high = (choose(bars, key=lambda bar: bar.difference.absolute.value)
                 for choose in (min, max))
    ends = dict.fromkeys(f"{format_brief(end.difference.absolute.value)} {unit}"
                         f" (at {panel.named(end)})" for end in (low, high))
    saved = "gain" if panel.metric.more_is_better else "save"
    windows = f"{figure.experiment_initcwnd} instead of {figure.baseline_initcwnd} segments"
    text = (f"{windows} {saved}"
            f" {' to '.join(ends)},"
            f" {format_range([bar.difference.percent.value for bar in bars], '%')}"
            f"{' (a minus is a loss)' if low.difference.absolute.value < 0 else ''}")
    known = [format_range(values, its_unit) for values, its_unit in (
        ([bar.published.absolute for bar in bars], unit),
        ([bar.published.percent for bar in bars], "%"))
        if any(value is not None for value in values)]
    if not any(bar.difference.absolute.value for bar in bars):
        text = f"{windows} change nothing{f' in any of {len(bars)} bars' if len(bars) > 1 else ''}"
    text += f"; published: {', '.join(known)}." if known else "."
    return " ".join([text, *sentence_of_figure(panel), *panel.remarks])


def _best_window(panel: BarFigure) -> str:
    """A window sweep: which window was the best, and what was published."""
    unit, sign = panel.metric.unit, panel.bars[0].difference.sign
    took = ("took the least time" if unit == "ms" else
            f"had the {'least' if sign > 0 else 'most'} {panel.metric.head}")
    best = min(panel.bars, key=lambda bar: sign * bar.difference.experiment.value)
    change = best.difference
    mean = f"{format_brief(change.experiment.value)} {unit} on average"
    *windows, last = (bar.label for bar in panel.bars)
    listed = f"{', '.join(windows)} and {last}" if windows else last
    text = f"Of the windows {listed}, a window of {best.label} {took}: {mean}"
    if len({format_brief(bar.difference.experiment.value) for bar in panel.bars}) == 1:
        text = f"The windows {listed} give the same: {mean}"
    elif not panel.is_baseline(best):
        text += (f", {format_brief(change.absolute.value)} {unit} or"
                 f" {format_brief(change.percent.value)} %"
                 f" {'less' if sign > 0 else 'more'} than {panel.figure.baseline_initcwnd}")
    known = [(sign * level, bar.label) for bar in panel.bars
             if (level := bar.published.level) is not None]
    if known:
        level, label = min(known)
        text += (f"; published: {label} {took.removesuffix(' time')},"
                 f" {format_brief(sign * level)} {unit}")
    return text + "."
