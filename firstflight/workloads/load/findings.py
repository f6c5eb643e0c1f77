"""The findings of a load scenario: its figures, and the result of each claim."""

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
from firstflight.workloads.load.analysis import Distribution, GainPoint, Hit, Runs, describe
from firstflight.workloads.load.record import PERCENTILES, LoadRecord, percentile_column
from firstflight.workloads.load.scenario import (DECK_FILE, Compared, LoadClaim, LoadFigure,
                                                 LoadScenario)


def findings(scenario: LoadScenario, run: RunData[LoadRecord]) -> tuple[Finding, ...]:
    """A finding for each figure, or the runs that it lacks. Raises FirstFlightError."""
    made = make_figures(LoadRun(scenario.claims, run), scenario.figures, MAKERS)
    return (*all_findings(made), *kernel_findings(run.records))


def kernel_findings(records: Sequence[LoadRecord]) -> tuple[Finding, ...]:
    """What further kernels changed; () where there was one."""
    return kernel_changes.findings(tables.kernel_changes(records), "mean")


def partial(records: Sequence[LoadRecord]) -> Finding:
    """The finding of a part of a scenario: a row for each run, and what windows changed."""
    changes = tables.changes(records)
    return Finding("runs", "what was requested, and what was measured",
                   (tables.each_run(records), *([changes] if changes.rows else [])))


@dataclass(frozen=True)
class LoadRun:
    """What figures are made of: a run, and the claims of its scenario."""

    claims: Sequence[LoadClaim]
    run: RunData[LoadRecord]


def _of_runs(show: Callable[[Runs], Finding]) -> Maker[LoadRun, LoadFigure]:
    """A maker of figures, by what shows the runs of one; with the results of its claims."""
    def make(measured: LoadRun, figure: LoadFigure) -> Sequence[Finding]:
        runs = Runs.of_figure(figure, measured.run.records, measured.run.folder)
        shown = show(runs)
        statements = tuple(statement(runs, claim)
                           for claim in claims_on(figure, measured.claims))
        return [replace(shown, statements=(*statements, *shown.statements),
                        published=published.source(DECK_FILE) if figure.published else "")]
    return make


# Kinds of figures ----------------------------------------------------------------------

def _content(runs: Runs, tables: Sequence[Table], chart: Chart,
             answers: Sequence[Statement] = ()) -> Finding:
    """The finding of a figure, without the results of its claims."""
    return Finding(runs.figure.name, runs.figure.title, tuple(tables), statements=tuple(answers),
                   chart=chart)


def _distribution(runs: Runs) -> Finding:
    distributions = analysis.distributions(runs)
    without = analysis.distributions(runs, with_handshake=False)
    return _content(runs, (
        tables.percentiles(distributions),
        tables.percentiles(without, "The same without the handshake"),
        tables.runs_themselves(runs)), charts.distribution(runs, distributions))


def _deck(runs: Runs) -> Finding:
    distributions = analysis.distributions(runs)
    theirs = [tables.deck_table(runs.figure.published)] if runs.figure.published else []
    return _content(runs, (tables.deck(*distributions[:2]), *theirs, tables.runs_themselves(runs)),
                    charts.deck(runs, distributions))


def _mix(runs: Runs) -> Finding:
    """The groups of mixes, against unmixed runs and against each other."""
    mixes = analysis.mixes(runs)
    compared: list[Table] = []
    answers: list[Statement | None] = []
    for window, groups in mixes.groups.items():
        compared.append(tables.percentiles([*mixes.alone.values(), *groups],
                                           f"{mixes.labels[window]} compared with unmixed runs"))
        first, *others = groups
        answers += [_against_own(group, mixes.alone.get(group.window.name)) for group in groups]
        answers += [_within(first, group, mixes.alone) for group in others]
    return _content(runs, (*compared, tables.fairness(mixes), tables.runs_themselves(runs)),
                    charts.mix(runs, mixes), answers=list(filter(None, answers)))


def _against_own(group: Distribution, own: Distribution | None) -> Statement | None:
    """A group against the runs where everybody has its window; None where one is missing."""
    change = None if own is None else group.gain_over(own)
    if own is None or change is None:
        return None
    verb = "less" if change.percent.value > 0 else "more"
    return Statement(f"{group.name} against everybody with {own.name}:",
                     f"{estimated(change.percent, 1).lstrip(MINUS)} % {verb} on average, from"
                     f" {estimated(change.base)} to {estimated(change.experiment)} ms.")


def _within(first: Distribution, group: Distribution,
            alone: dict[str, Distribution]) -> Statement | None:
    """The saving by a comparison within the mix, and by one between unmixed runs."""
    base, own = alone.get(first.window.name), alone.get(group.window.name)
    if base is None or own is None:
        return None
    within, apart = group.gain_over(first), own.gain_over(base)
    if within is None or apart is None:
        return None
    return Statement(f"How much {own.name} saves of the mean against {base.name}:",
                     f"{estimated(within.percent, 1)} % by a comparison within the mix,"
                     f" {estimated(apart.percent, 1)} % between runs where everybody has it.",
                     numbers=(Rounded(within.percent, 1), Rounded(apart.percent, 1)))


def _hit(runs: Runs) -> Finding:
    hits = analysis.hits(runs)
    return _content(runs, (tables.hits(runs, hits),), charts.hit(runs, hits),
                    (_hit_answer(runs, hits),))


def _hit_answer(runs: Runs, hits: Sequence[Hit]) -> Statement:
    """The saving for the arrivals that either window hit."""
    base, experiment = runs.figure.windows[:2]
    parts = [f"{estimated(hit.same.percent, 1)} % at {describe(runs.figure.by, hit.x)}"
             for hit in hits if hit.same is not None]
    return Statement(
        "With a larger window other transfers retransmit. For the arrivals that retransmit under"
        f" either window, IW {experiment} saves, compared with IW {base}:",
        (", ".join(parts) or "nothing was hit") + ".")


def _gain(runs: Runs) -> Finding:
    points = analysis.points(runs)
    return _content(runs, (tables.gains(runs, points),), charts.gain(runs, points),
                    _gain_answers(runs, points))


def _gain_answers(runs: Runs, points: Sequence[GainPoint]) -> tuple[Statement, ...]:
    """The cells where a larger window takes longer: their interval lies below zero."""
    worse: dict[str, list[str]] = {"mean": [], "99th percentile": []}
    for point in points:
        where = ", ".join(tables.where(runs, point))
        for name, gain in (("mean", point.mean), ("99th percentile", point.p99)):
            if gain is not None and gain.absolute.sign < 0:
                worse[name].append(f"{where} (by {estimated(gain.percent, 1).lstrip(MINUS)} %)")

    nowhere = "undetermined: one seed has no interval."
    if any(point.mean.absolute.interval for point in points):
        nowhere = "in no cell, by its 95 % interval."
    return tuple(Statement(f"Where a larger window than {runs.figure.windows[0]} makes the {name}"
                           " longer:", f"{'; '.join(cells)}." if cells else nowhere)
                 for name, cells in worse.items())


MAKERS = {"distribution": _of_runs(_distribution), "mix": _of_runs(_mix),
          "gain": _of_runs(_gain), "hit": _of_runs(_hit), "percentiles": _of_runs(_deck)}


# Claims --------------------------------------------------------------------------

def statement(runs: Runs, claim: LoadClaim) -> Statement:
    """The result of a claim: the worst one of its cells."""
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
    only = dict(claim.where)
    shown = [axis for axis in (runs.figure.by, runs.figure.down) if axis not in ("", "window")]
    gains = []
    for values in itertools.product(*(runs.values(axis) for axis in shown)):
        place = dict(zip(shown, values))
        if all(value in only.get(axis, (value,)) for axis, value in place.items()):
            first, second = (runs.at(compared.window, **place) for compared in claim.compares)
            gains.append(analysis.gain(first, second, claim.metric))
    return [gain for gain in gains if gain is not None]


def _group_gains(runs: Runs, claim: LoadClaim) -> list[Difference]:
    """The difference of a claim on a group of a mix, of the mean or a percentile; [] without one.
    """
    percentile = next((percentile for percentile in PERCENTILES
                       if percentile_column(percentile) == claim.metric), None)

    def distribution_of(compared: Compared) -> Distribution:
        if compared.part is None:
            return analysis.whole(runs, compared.window)
        return next(group for group in analysis.groups_of_mix(runs, compared.window)
                    if group.window.largest == compared.part)

    base, experiment = map(distribution_of, claim.compares)
    gain = experiment.gain_over(base, percentile)
    return [gain] if gain is not None else []


def _measured(claim: LoadClaim, gains: Sequence[Difference]) -> str:
    """The numbers behind a result, in a sentence."""
    unit, digits = ("%", 3) if claim.is_in_points else ("ms", 0)
    lowest = min(gains, key=lambda gain: gain.percent.value)
    highest = max(gains, key=lambda gain: gain.percent.value)
    changes = [f"from {estimated(gain.base, digits)} to"
               f" {estimated(gain.experiment, digits)} {unit}"
               for gain in dict.fromkeys((lowest, highest))]
    if claim.published is not None:
        difference = f"{estimated(highest.percent, 1).lstrip(MINUS)} %"
        if claim.is_in_points:
            difference = f"{estimated(highest.absolute, 2).lstrip(MINUS)} points"
        changes.append(f"{difference}, where {plain(claim.published)} ±"
                       f" {plain(claim.within or 0)} were published")

    outcomes = [judge(Expected(SIGNS[claim.expects]), gain).outcome for gain in gains]
    count = sum(outcome in (REPRODUCED, DIRECTION) for outcome in outcomes)
    does, is_not_shown, does_not = VERBS[claim.expects]
    if count:
        verb, where = does, f" in {count} of {len(gains)} cells"
    else:
        verb = is_not_shown if UNDECIDED in outcomes else does_not
        where = f" in any of {len(gains)} cells"
    if len(gains) == 1:
        where = ""
    base, experiment = (compared.words for compared in claim.compares)
    return (f"{of_column(claim.metric).what} {verb} with IW"
            f" {experiment} instead of {base}{where}: {', '.join(changes)}.")


# Of a claim that some cells have, that is undecided, and that no cell has.
VERBS = {LESS: ("falls", "is not shown to fall", "does not fall"),
         MORE: ("rises", "is not shown to rise", "does not rise"),
         ALIKE: (f"stays within {ALIKE_PERCENT:g} %",
                 f"is not shown to stay within {ALIKE_PERCENT:g} %",
                 f"does not stay within {ALIKE_PERCENT:g} %")}


# Numbers as text -------------------------------------------------------------------

def estimated(estimate: Estimate, digits: int = 0) -> str:
    """An estimate in words, such as "1205 ± 3"."""
    value = format_number(estimate.value, digits)
    if estimate.interval is None:
        return value
    return f"{value} ± {format_number((estimate.interval[1] - estimate.interval[0]) / 2, digits)}"
