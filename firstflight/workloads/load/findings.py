"""Makes the findings of a load scenario: its figures, and the result of each claim."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from firstflight.base.stats import Estimate
from firstflight.base.words import MINUS, format_number, plain
from firstflight.figures import kernel_changes
from firstflight.figures.claims import SIGNS, claims_on, expected_of, qualify
from firstflight.figures.judging import ALIKE_PERCENT, Expected, judge
from firstflight.figures.making import Maker, all_findings, make_figures
from firstflight.findings.charts import Chart
from firstflight.findings.claims import (DIRECTION, NOT_MEASURED, REPRODUCED, UNDECIDED,
                                         worst)
from firstflight.findings.difference import Difference
from firstflight.findings.findings import Finding, Rounded, Statement, Table
from firstflight.findings.quantities import of_column
from firstflight.runs.kinds import RunData
from firstflight.scenario import published
from firstflight.scenario.claims import ALIKE, LESS, MORE
from firstflight.workloads.load import analysis, charts, tables
from firstflight.workloads.load.analysis import Distribution, GainPoint, Hit, Runs, format_value
from firstflight.workloads.load.record import PERCENTILES, LoadRecord, percentile_column
from firstflight.workloads.load.scenario import (DECK_FILE, Compared, LoadClaim, LoadFigure,
                                                 LoadScenario)


def findings(scenario: LoadScenario, run: RunData[LoadRecord]) -> tuple[Finding, ...]:
    """The findings of each figure, or which runs the figure lacks. Raises FirstFlightError."""
    made = make_figures(LoadRun(scenario.claims, run), scenario.figures, MAKERS)
    return (*all_findings(made), *kernel_findings(run.records))


def kernel_findings(records: Sequence[LoadRecord]) -> tuple[Finding, ...]:
    """A finding on what the other kernels changed; () if only one kernel was measured."""
    return kernel_changes.findings(tables.kernel_changes(records), "mean")


def finding_of_part(records: Sequence[LoadRecord]) -> Finding:
    """The finding where only a part of a scenario was measured: its runs, and their windows."""
    changes = tables.changes(records)
    return Finding("runs", "what was requested, and what was measured",
                   (tables.each_run(records), *([changes] if changes.rows else [])))


@dataclass(frozen=True)
class LoadRun:
    """A run and the claims of its scenario, from which figures are made."""

    claims: Sequence[LoadClaim]
    run: RunData[LoadRecord]


def _maker(show: Callable[[Runs], Finding]) -> Maker[LoadRun, LoadFigure]:
    """A maker that gathers a figure's runs, shows them, and adds the results of its claims.

    show: tables, chart and statements of one kind of figure.
    """
    def make(measured: LoadRun, figure: LoadFigure) -> Sequence[Finding]:
        runs = Runs.of_figure(figure, measured.run.records, measured.run.folder)
        shown = show(runs)
        results = [judge_claim(runs, claim) for claim in claims_on(figure, measured.claims)]
        source = published.source(DECK_FILE) if figure.published else ""
        return [replace(shown, statements=(*results, *shown.statements), published=source)]
    return make


# Kinds of figures ----------------------------------------------------------------------

def _finding(runs: Runs, of_figure: Sequence[Table], chart: Chart,
             answers: Sequence[Statement] = ()) -> Finding:
    """The finding of a figure, without the results of its claims. of_figure: its tables."""
    return Finding(runs.figure.name, runs.figure.title, tuple(of_figure),
                   statements=tuple(answers), chart=chart)


def _distribution(runs: Runs) -> Finding:
    """A figure of completion times under each window, with and without the handshake."""
    distributions = analysis.distributions(runs)
    without_handshake = analysis.distributions(runs, with_handshake=False)
    of_figure = (
        tables.percentiles(distributions),
        tables.percentiles(without_handshake, "The same without the handshake"),
        tables.runs_by_window(runs))
    return _finding(runs, of_figure, charts.distribution(runs, distributions))


def _deck(runs: Runs) -> Finding:
    """A figure of two windows: a table in the form of the deck's, and the table of the deck."""
    distributions = analysis.distributions(runs)
    of_figure = [tables.deck(*distributions[:2])]
    if runs.figure.published:
        of_figure.append(tables.published_deck(runs.figure.published))
    of_figure.append(tables.runs_by_window(runs))
    return _finding(runs, of_figure, charts.deck(runs, distributions))


def _mix(runs: Runs) -> Finding:
    """A figure of the groups of mixes, against unmixed runs and against each other."""
    mixes = analysis.mixes(runs)
    compared: list[Table] = []
    answers: list[Statement | None] = []
    for window, groups in mixes.groups.items():
        compared.append(tables.percentiles([*mixes.alone.values(), *groups],
                                           f"{mixes.labels[window]} compared with unmixed runs"))
        first, *others = groups
        answers += [_effect_of_mixing(group, mixes.alone.get(group.window.name))
                    for group in groups]
        answers += [_saving_both_ways(first, group, mixes.alone) for group in others]
    of_figure = (*compared, tables.fairness(mixes), tables.runs_by_window(runs))
    return _finding(runs, of_figure, charts.mix(runs, mixes),
                    answers=list(filter(None, answers)))


def _effect_of_mixing(group: Distribution, unmixed: Distribution | None) -> Statement | None:
    """A group of a mix against runs where everybody has its window; None where they are missing."""
    change = None if unmixed is None else group.gain_over(unmixed)
    if unmixed is None or change is None:
        return None
    verb = "less" if change.percent.value > 0 else "more"
    size = format_estimate(change.percent, 1).lstrip(MINUS)
    return Statement(f"{group.name} against everybody with {unmixed.name}:",
                     f"{size} % {verb} on average, from {format_estimate(change.base)} to"
                     f" {format_estimate(change.experiment)} ms.")


def _saving_both_ways(first: Distribution, group: Distribution,
                      alone: dict[str, Distribution]) -> Statement | None:
    """A window's saving, compared within the mix and between unmixed runs; None without these.

    first: the group that has the smallest window. alone: unmixed runs, by window.
    """
    base, experiment = alone.get(first.window.name), alone.get(group.window.name)
    if base is None or experiment is None:
        return None
    within_mix, between_runs = group.gain_over(first), experiment.gain_over(base)
    if within_mix is None or between_runs is None:
        return None
    return Statement(f"How much {experiment.name} saves of the mean against {base.name}:",
                     f"{format_estimate(within_mix.percent, 1)} % by a comparison within the mix,"
                     f" {format_estimate(between_runs.percent, 1)} % between runs where everybody"
                     " has it.",
                     numbers=(Rounded(within_mix.percent, 1), Rounded(between_runs.percent, 1)))


def _hit(runs: Runs) -> Finding:
    """A figure of transfers that retransmit, along an axis."""
    hits = analysis.hits(runs)
    return _finding(runs, (tables.hits(runs, hits),), charts.hit(runs, hits),
                    answers=(_hit_answer(runs, hits),))


def _hit_answer(runs: Runs, hits: Sequence[Hit]) -> Statement:
    """The statement on the saving for the arrivals that retransmit under either window."""
    base, experiment = runs.figure.windows[:2]
    parts = [f"{format_estimate(hit.same.percent, 1)} % at {format_value(runs.figure.by, hit.x)}"
             for hit in hits if hit.same is not None]
    return Statement(
        "With a larger window other transfers retransmit. For the arrivals that retransmit under"
        f" either window, IW {experiment} saves, compared with IW {base}:",
        (", ".join(parts) or "nothing was hit") + ".")


def _gain(runs: Runs) -> Finding:
    """A figure of what larger windows change, along an axis."""
    points = analysis.points(runs)
    return _finding(runs, (tables.gains(runs, points),), charts.gain(runs, points),
                    answers=_gain_answers(runs, points))


def _gain_answers(runs: Runs, points: Sequence[GainPoint]) -> tuple[Statement, ...]:
    """Statements on the cells where a larger window takes longer, by its interval."""
    worse: dict[str, list[str]] = {"mean": [], "99th percentile": []}
    for point in points:
        where = ", ".join(tables.where(runs, point))
        for name, gain in (("mean", point.mean), ("99th percentile", point.p99)):
            if gain is not None and gain.absolute.sign < 0:
                size = format_estimate(gain.percent, 1).lstrip(MINUS)
                worse[name].append(f"{where} (by {size} %)")

    have_intervals = any(point.mean.absolute.interval for point in points)
    none_worse = ("in no cell, by its 95 % interval." if have_intervals else
                  "undetermined: one seed has no interval.")
    base = runs.figure.windows[0]
    return tuple(Statement(f"Where a larger window than {base} makes the {name} longer:",
                           f"{'; '.join(cells)}." if cells else none_worse)
                 for name, cells in worse.items())


MAKERS = {"distribution": _maker(_distribution), "mix": _maker(_mix), "gain": _maker(_gain),
          "hit": _maker(_hit), "percentiles": _maker(_deck)}


# Claims --------------------------------------------------------------------------

def judge_claim(runs: Runs, claim: LoadClaim) -> Statement:
    """The result of a claim: the worst of its cells' results."""
    gains = _gains(runs, claim)
    if not gains:
        return Statement(claim.says, "no run measured it.", NOT_MEASURED)
    expected = expected_of(claim, claim.is_in_points)
    outcome = worst(judge(expected, gain).outcome for gain in gains)
    return qualify(claim, Statement(claim.says, _measured(claim, gains), outcome))


def _gains(runs: Runs, claim: LoadClaim) -> list[Difference]:
    """The difference in each cell of the claim."""
    if claim.is_of_groups:
        return _group_gains(runs, claim)
    allowed = dict(claim.where)
    axes = [axis for axis in (runs.figure.by, runs.figure.down) if axis not in ("", "window")]
    values_of = [[value for value in runs.values(axis) if value in allowed.get(axis, (value,))]
                 for axis in axes]

    gains = []
    for values in itertools.product(*values_of):
        place = dict(zip(axes, values))
        base, experiment = (runs.at(compared.window, **place) for compared in claim.compares)
        gain = analysis.gain(base, experiment, claim.metric)
        if gain is not None:
            gains.append(gain)
    return gains


def _group_gains(runs: Runs, claim: LoadClaim) -> list[Difference]:
    """The difference of a claim on a group of a mix: of a percentile or the mean; [] without one.
    """
    percentile = next((percentile for percentile in PERCENTILES
                       if percentile_column(percentile) == claim.metric), None)

    def distribution_of(compared: Compared) -> Distribution:
        if compared.part is None:
            return analysis.all_connections(runs, compared.window)
        return next(group for group in analysis.groups_of_mix(runs, compared.window)
                    if group.window.largest == compared.part)

    base, experiment = map(distribution_of, claim.compares)
    gain = experiment.gain_over(base, percentile)
    return [gain] if gain is not None else []


def _measured(claim: LoadClaim, gains: Sequence[Difference]) -> str:
    """The numbers behind a result, in a sentence."""
    outcomes = [judge(Expected(SIGNS[claim.expects]), gain).outcome for gain in gains]
    holding = sum(outcome in (REPRODUCED, DIRECTION) for outcome in outcomes)
    verbs = VERBS[claim.expects]
    if holding:
        verb, cells = verbs.holds, f" in {holding} of {len(gains)} cells"
    else:
        verb = verbs.is_open if UNDECIDED in outcomes else verbs.fails
        cells = f" in any of {len(gains)} cells"
    if len(gains) == 1:
        cells = ""

    base, experiment = (compared.words for compared in claim.compares)
    return (f"{of_column(claim.metric).what} {verb} with IW {experiment} instead of {base}{cells}:"
            f" {', '.join(_changes(claim, gains))}.")


def _changes(claim: LoadClaim, gains: Sequence[Difference]) -> list[str]:
    """The smallest and the largest change, and what was published of the largest."""
    unit, digits = ("%", 3) if claim.is_in_points else ("ms", 0)
    smallest = min(gains, key=lambda gain: gain.percent.value)
    largest = max(gains, key=lambda gain: gain.percent.value)
    changes = [f"from {format_estimate(gain.base, digits)} to"
               f" {format_estimate(gain.experiment, digits)} {unit}"
               for gain in dict.fromkeys((smallest, largest))]
    if claim.published is None:
        return changes

    difference = f"{format_estimate(largest.percent, 1).lstrip(MINUS)} %"
    if claim.is_in_points:
        difference = f"{format_estimate(largest.absolute, 2).lstrip(MINUS)} points"
    changes.append(f"{difference}, where {plain(claim.published)} ±"
                   f" {plain(claim.within or 0)} were published")
    return changes


@dataclass(frozen=True)
class Verbs:
    """What a metric does, as a sentence says it."""

    holds: str  # where the claim holds in some cells
    is_open: str  # where it holds in none, and more seeds might show it
    fails: str  # where it holds in none


VERBS = {LESS: Verbs("falls", "is not shown to fall", "does not fall"),
         MORE: Verbs("rises", "is not shown to rise", "does not rise"),
         ALIKE: Verbs(f"stays within {ALIKE_PERCENT:g} %",
                      f"is not shown to stay within {ALIKE_PERCENT:g} %",
                      f"does not stay within {ALIKE_PERCENT:g} %")}


# Numbers as text -------------------------------------------------------------------

def format_estimate(estimate: Estimate, digits: int = 0) -> str:
    """An estimate in words, such as "1205 ± 3"."""
    value = format_number(estimate.value, digits)
    if estimate.interval is None:
        return value
    low, high = estimate.interval
    return f"{value} ± {format_number((high - low) / 2, digits)}"
