"""What a load scenario found: the tables of its figures, and what became of each claim."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.comparison import DIRECTION_ONLY, NOT_REPRODUCED, REPRODUCED
from lab.findings import Finding, Statement, Table
from lab.load import analysis
from lab.load.analysis import (Distribution, Estimate, Gain, Line, MissingRuns, Point,
                               Runs)
from lab.load.record import PERCENTILES, LoadRecord, percentile_column
from lab.load.scenario import (ALIKE, DECK, DISTRIBUTION, GAIN, HIT, LESS, MIX, Claim,
                               LoadScenario, describe)

UNKNOWN = "–"
MINUS = "−"
ALIKE_PERCENT = 5.0  # two values that a source calls alike
AXIS_NAMES = {"load": "offered load", "response_bytes": "response", "queue_bdp": "buffer",
              "connections": "connections at once", "variant": "sender and queue",
              "window": "initial window"}
QUANTITY_NAMES = {"mean_ms": "the mean completion time", "p50_ms": "the median completion time",
                  "p99_ms": "the 99th percentile", "hit_mean_ms": "the mean of transfers with a"
                  " retransmission", "retransmission_percent": "the retransmission rate"}


def findings(scenario: LoadScenario, records: Sequence[LoadRecord], folder: Path) -> list[Finding]:
    """One for each figure; one that lacks runs says so in place of its tables."""
    found = []
    for figure in scenario.figures:
        claims = [claim for claim in scenario.claims if claim.figure == figure.name]
        try:
            runs = Runs.of(figure, records, folder)
            answers = ANSWERS[figure.kind](runs) if figure.kind in ANSWERS else ()
            found.append(Finding(figure.name, figure.title, tables(runs), (
                *(statement(runs, claim) for claim in claims), *answers)))
        except MissingRuns as error:
            found.append(Finding(figure.name, figure.title, (
                Table("", ("not measured",), ((str(error),),)),)))
    return found


def tables(runs: Runs) -> tuple[Table, ...]:
    """The tables of a figure, by its kind."""
    kind = runs.figure.kind
    if kind == DISTRIBUTION:
        return (percentile_table(analysis.distributions(runs)),
                percentile_table(analysis.distributions(runs, with_handshake=False),
                                 "The same without the handshake"), run_table(runs))
    if kind == MIX:
        return mix_tables(runs)
    if kind == GAIN:
        return (gain_table(runs),)
    if kind == HIT:
        return (hit_table(runs),)
    assert kind == DECK
    return deck_tables(runs)


# A part of a scenario ----------------------------------------------------------

def of_cells(records: Sequence[LoadRecord]) -> Finding:
    """Of whatever runs there are: a line a run, and what the windows changed in each cell."""
    ordered = sorted(records, key=lambda record: (_cell(record), record.trial.repeat))
    rows = [(record.trial.id, str(record.arrivals), str(record.completed), str(record.failed),
             str(record.unfinished), *(UNKNOWN if value is None else f"{value:.{digits}f}"
                                       for value, digits in (
                                           (record.mean_ms, 0), (record.p50_ms, 0),
                                           (record.p90_ms, 0), (record.p99_ms, 0),
                                           (record.retransmission_percent, 3),
                                           (record.offered_load, 4), (record.utilisation, 4))),
             record.verdict, record.error or record.verdict_reason) for record in ordered]
    runs_table = Table("", (
        "run", "arrivals", "completed", "failed", "open", "mean ms", "p50", "p90", "p99",
        "retransmitted %", "offered", "utilisation", "verdict", ""), tuple(rows))
    changes = tuple(_changes([record for record in ordered if record.counts]))
    change_table = Table("What the windows change", (
        "", "mean, ms", "instead of", "saved, %", "saved of p50, %", "of p99, %"), changes)
    return Finding("runs", "what was asked, and what came of it",
                   (runs_table, change_table) if changes else (runs_table,))


def _cell(record: LoadRecord) -> tuple[str, ...]:
    """What a run shares with those of other windows and seeds."""
    trial = record.trial
    return tuple(map(str, (trial.part, trial.rtt_ms, trial.bandwidth_kbps, trial.queue_packets,
                           trial.load, trial.response_bytes, trial.connections,
                           analysis.variant(trial))))


def _changes(records: Sequence[LoadRecord]) -> Iterator[tuple[str, ...]]:
    """A row for each window but the smallest, cell by cell."""
    for cell, group in itertools.groupby(records, _cell):
        windows: dict[str, dict[int, LoadRecord]] = {}
        for record in group:
            windows.setdefault(record.trial.window, {})[record.trial.repeat] = record
        base, *others = sorted(windows, key=_window_order)
        for other in others:
            mean, middle, last = (analysis.gain(windows[base], windows[other], quantity)
                                  for quantity in ("mean_ms", "p50_ms", "p99_ms"))
            if mean is not None:
                yield (f"IW {other} instead of {base}: {cell[0]}, load {cell[4]}, {cell[5]} B,"
                       f" queue {cell[3]}",
                       estimated(mean.experiment), estimated(mean.base),
                       *(UNKNOWN if gain is None else estimated(gain.percent, 1)
                         for gain in (mean, middle, last)))


def _window_order(window: str) -> tuple[int, int]:
    """Windows by size, then mixes."""
    parts = window.split("+")
    return len(parts), int(parts[0].partition("*")[0])


# Tables ------------------------------------------------------------------------

def percentile_table(found: Sequence[Distribution], title: str = "") -> Table:
    """Completion times by percentile, and what each changes against the first."""
    base = found[0]
    columns = [("mean", None), *((f"p{percentile:g}", percentile) for percentile in PERCENTILES)]
    rows = []
    for each in found:
        rows.append((f"{each.name}, ms", str(each.count), *(
            estimated(each.mean if percentile is None else each.percentiles[percentile])
            for _, percentile in columns)))
    for each in found[1:]:
        gains = [each.gain_over(base, percentile) for _, percentile in columns]
        rows.append((f"{each.name} saves, %", "", *(
            UNKNOWN if gain is None else estimated(gain.percent, 1) for gain in gains)))
    return Table(title or "Completion time (SYN to last byte) by percentile",
                 ("", "n", *(name for name, _ in columns)), tuple(rows),
                 f"± is the 95 % interval over {base.mean.n} independent seeds"
                 if base.mean.n > 1 else "one seed: no interval")


def run_table(runs: Runs) -> Table:
    """What the runs themselves were like, by window."""
    rows = []
    for window in runs.figure.windows:
        found = runs.at(window)

        def of(quantity: str, digits: int = 0, factor: float = 1.0) -> str:
            return estimated(_scaled(analysis.over_seeds(found, quantity), factor), digits)

        rows.append((analysis.window_label(window), str(len(found)), of("offered_load", 2, 100),
                     of("utilisation", 2, 100), of("queue_mean_packets"),
                     _highest(found, "queue_max_packets"), of("drop_percent", 3),
                     of("retransmission_percent", 3), of("hit_percent", 2),
                     _total(found, "unfinished"), _total(found, "failed")))
    note = f"{runs.left_out} runs are left out: their verdict failed" if runs.left_out else ""
    return Table("The runs", ("", "seeds", "offered load %", "utilisation %", "queue mean, packets",
                              "queue max", "dropped %", "retransmitted %",
                              "transfers hit %", "unfinished", "failed"), tuple(rows), note)


def mix_tables(runs: Runs) -> tuple[Table, ...]:
    """Each group of every mix beside the unmixed runs, and how fair the mix is."""
    alone = [window for window in runs.figure.windows if "+" not in window]
    mixes = [window for window in runs.figure.windows if "+" in window]
    unmixed = {distribution.name: distribution for distribution in analysis.distributions(runs)
               if not distribution.name.startswith("mix")}
    made = []
    fairness = []
    for window in mixes:
        groups = analysis.groups_of_mix(runs, window)
        made.append(percentile_table([*unmixed.values(), *groups],
                                     f"{analysis.window_label(window)} beside unmixed runs"))
        for group in groups:
            own = unmixed.get(group.name.removesuffix(" in the mix"))
            change = own and group.gain_over(own, None)
            fairness.append((
                group.name, estimated(group.mean),
                estimated(change.percent, 1, signed=True) if change else UNKNOWN,
                f"{group.rate_kbps:.0f}", estimated(group.retransmission, 3)))
        index = analysis.jain([group.rate_kbps for group in groups])
        fairness.append((f"Jain's index of {analysis.window_label(window)}", "", "",
                         f"{index:.4f}", ""))
    for window in alone:
        own = unmixed[analysis.window_label(window)]
        fairness.append((f"{own.name}, unmixed", estimated(own.mean), "", f"{own.rate_kbps:.0f}",
                         estimated(own.retransmission, 3)))
    return (*made, Table(
        "Fairness", ("", "mean, ms", "saved by the mix, %", "rate of a transfer, kbit/s",
                     "retransmitted %"), tuple(fairness),
        "Jain's index is over the groups' mean rates (response bits over completion time): 1 is"
        " even, 0.5 is all for one of two. Saved by the mix: against everybody with that"
        " window."), run_table(runs))


def gain_table(runs: Runs) -> Table:
    """What a larger window changes, along the figure's axis."""
    figure, base = runs.figure, runs.figure.windows[0]
    rows = []
    for line in analysis.lines(runs):
        for point in line.points:
            of = _place(runs, line, point)[0]
            where = [describe(figure.by, point.x)] if figure.by != "window" else []
            series = [describe(figure.series, line.series)] if figure.series else []
            rows.append((of, *series, *where, estimated(point.mean.base),
                         estimated(point.mean.experiment), estimated(point.mean.absolute),
                         estimated(point.mean.percent, 1),
                         estimated(point.p99.percent, 1) if point.p99 else UNKNOWN,
                         estimated(point.retransmission.base, 3),
                         estimated(point.retransmission.experiment, 3)))
    axes = [AXIS_NAMES[axis] for axis in (figure.series, figure.by)
            if axis and axis != "window"]
    return Table(f"Against IW {base}", (
        "", *axes, f"IW {base} mean, ms", "mean, ms", "saved, ms", "saved, %", "saved of p99, %",
        f"IW {base} retransmits, %", "retransmits, %"), tuple(rows),
        f"{runs.left_out} runs are left out: their verdict failed" if runs.left_out else "")


def hit_table(runs: Runs) -> Table:
    """Transfers that retransmitted."""
    base, experiment = runs.figure.windows[:2]
    rows = []
    for hit in analysis.hits(runs):
        rows.append((describe(runs.figure.by, hit.x), f"{hit.base_share_percent:.2f}",
                     f"{hit.experiment_share_percent:.2f}",
                     *_gain_cells(hit.own), *_gain_cells(hit.same), str(hit.same_count)))
    return Table("Transfers that retransmitted", (
        AXIS_NAMES[runs.figure.by], f"hit, IW {base} %", f"IW {experiment} %",
        f"own: IW {base}, ms", f"IW {experiment}, ms", "saved, %",
        f"same: IW {base}, ms", f"IW {experiment}, ms", "saved, %", "n"), tuple(rows),
        "own: the mean over the transfers that each window hit, other transfers for each, as the"
        " deck shows it; same: over the arrivals that either window hit, the same for both.")


def deck_tables(runs: Runs) -> tuple[Table, ...]:
    """The deck's table: average and percentiles of both windows, improvement, retransmissions."""
    from lab.load import published
    base, experiment = analysis.distributions(runs)[:2]
    made = [deck_table(base, experiment)]
    if runs.figure.published:
        made.append(published.deck_table(runs.figure.published))
    return (*made, run_table(runs))


DECK_PERCENTILES = (50, 75, 90, 99)


def deck_table(base: Distribution, experiment: Distribution) -> Table:
    """Ours, printed as the deck prints its own."""
    gains = [experiment.gain_over(base, percentile) for percentile in (None, *DECK_PERCENTILES)]

    def row(each: Distribution) -> tuple[str, ...]:
        return (each.name, estimated(each.mean, 1),
                *(estimated(each.percentiles[percentile]) for percentile in DECK_PERCENTILES),
                f"{each.retransmission.value:.2f}")

    return Table("Here", ("", "Avg.", *map(str, DECK_PERCENTILES), "Retrans. %"), (
        row(experiment), row(base),
        ("Impr., ms", *(_gain_text(gain, False) for gain in gains),
         f"{experiment.retransmission.value - base.retransmission.value:+.2f}"),
        ("% Impr.", *(_gain_text(gain, True) for gain in gains), "")))


# Answers and claims --------------------------------------------------------------------------

def mix_answers(runs: Runs) -> tuple[Statement, ...]:
    """What a mix does to each of its groups, and what a comparison within it would say."""
    alone = {each.name: each for each in analysis.distributions(runs)}
    answers = []
    for window in (window for window in runs.figure.windows if "+" in window):
        groups = analysis.groups_of_mix(runs, window)
        owns = [alone.get(group.name.removesuffix(" in the mix")) for group in groups]
        for group, own in zip(groups, owns):
            change = own and group.gain_over(own, None)
            if own and change:
                verb = "less" if change.percent.value > 0 else "more"
                answers.append(Statement(
                    f"{group.name} against everybody with {own.name}:",
                    f"{_unsigned(change.percent)} % {verb} on average, from"
                    f" {estimated(change.base)} to {estimated(change.experiment)} ms."))
        for group, own in zip(groups[1:], owns[1:]):
            within = group.gain_over(groups[0], None)
            apart = own.gain_over(owns[0], None) if own and owns[0] else None
            if within and apart and own and owns[0]:
                answers.append(Statement(
                    f"How much {own.name} saves of the mean against {owns[0].name}:",
                    f"{estimated(within.percent, 1)} % by a comparison within the mix,"
                    f" {estimated(apart.percent, 1)} % between runs where everybody has it."))
    return tuple(answers)


def hit_answers(runs: Runs) -> tuple[Statement, ...]:
    """What the same arrivals took, those that either window hit."""
    base, experiment = runs.figure.windows[:2]
    parts = [f"{estimated(hit.same.percent, 1)} % at {describe(runs.figure.by, hit.x)}"
             for hit in analysis.hits(runs) if hit.same is not None]
    return (Statement(
        f"But a larger window hits other transfers, too. Of the same arrivals, hit under either"
        f" window, IW {experiment} saves against IW {base}:", ", ".join(parts) + "."),)


def gain_answers(runs: Runs) -> tuple[Statement, ...]:
    """Where the gain turns to loss: cells whose interval lies below zero."""
    base = runs.figure.windows[0]
    worse: dict[str, list[str]] = {"mean": [], "99th percentile": []}
    for line in analysis.lines(runs):
        for point in line.points:
            where = ", ".join(_place(runs, line, point))
            for name, gain in (("mean", point.mean), ("99th percentile", point.p99)):
                if gain is not None and gain.absolute.sign < 0:
                    worse[name].append(f"{where} ({estimated(gain.percent, 1)} %)")
    return tuple(Statement(f"Where a larger window than {base} makes the {name} longer:",
                           "; ".join(cells) + "." if cells else
                           "in no cell whose 95 % interval excludes zero.")
                 for name, cells in worse.items())


def _place(runs: Runs, line: Line, point: Point) -> list[str]:
    """The window of a point and its place on the axes, in words."""
    figure = runs.figure
    window = int(point.x if figure.by == "window" else line.window)
    words = [f"IW {window}"]
    if figure.by == "connections":
        words[0] += f" × {point.x} = {window * point.x} at once"
    for axis, value in ((figure.series, line.series), (figure.by, point.x)):
        if axis and axis not in ("window", "connections"):
            name = "" if axis == "variant" else f"{AXIS_NAMES[axis]} "
            words.append(name + describe(axis, value))
    return words


ANSWERS = {MIX: mix_answers, HIT: hit_answers, GAIN: gain_answers}


def _unsigned(found: Estimate) -> str:
    return estimated(found, 1).lstrip(MINUS)


def statement(runs: Runs, claim: Claim) -> Statement:
    """What became of a claim: reproduced where every cell has what it expects.

    A cell has it where the 95 % interval of the difference lies on that side
    (with one seed: the difference itself), or, for "alike", where the
    difference is below ALIKE_PERCENT of the base. Direction only: the mean
    over the cells has it, not every cell.
    """
    gains = _gains(runs, claim)
    if not gains:
        return Statement(claim.says, "no run measured it.", NOT_REPRODUCED)
    held = [_holds(claim.expects, gain) for gain in gains]
    mean_percent = sum(gain.percent.value for gain in gains) / len(gains)
    if claim.expects == ALIKE:
        leaning = abs(mean_percent) <= ALIKE_PERCENT
    else:
        leaning = mean_percent > 0 if claim.expects == LESS else mean_percent < 0
    word = REPRODUCED if all(held) else DIRECTION_ONLY if leaning else NOT_REPRODUCED
    return Statement(claim.says, _found(claim, gains, held), word)


def _gains(runs: Runs, claim: Claim) -> list[Gain]:
    if any(" in " in each for each in claim.compares):
        return _group_gains(runs, claim)
    figure = runs.figure
    axes = [axis for axis in (figure.by, figure.series) if axis and axis != "window"]
    places = [{}] if not axes else [
        dict(zip(axes, values))
        for values in itertools.product(*(runs.values(axis) for axis in axes))]
    gains = []
    for place in places:
        if any(axis in claim.where and value not in claim.where[axis]
               for axis, value in place.items()):
            continue
        first, second = (runs.at(window, **place) for window in claim.compares)
        gain = analysis.gain(first, second, claim.quantity)
        if gain is not None:
            gains.append(gain)
    return gains


def _group_gains(runs: Runs, claim: Claim) -> list[Gain]:
    """For a claim on a part of a mix: of its mean, or of a percentile."""
    percentile = None if claim.quantity == "mean_ms" else next(
        each for each in PERCENTILES if percentile_column(each) == claim.quantity)

    def named(window: str) -> Distribution:
        part, _, mix = window.partition(" in ")
        if not mix:
            return analysis.unmixed(runs, window)
        return next(group for group in analysis.groups_of_mix(runs, mix)
                    if group.name == f"IW {part} in the mix")

    base, experiment = (named(window) for window in claim.compares)
    gain = experiment.gain_over(base, percentile)
    return [gain] if gain is not None else []


def _holds(expects: str, gain: Gain) -> bool:
    if expects == ALIKE:
        return abs(gain.percent.value) <= ALIKE_PERCENT
    sign = gain.absolute.sign if gain.absolute.n > 1 else (
        (gain.absolute.value > 0) - (gain.absolute.value < 0))
    return sign == (1 if expects == LESS else -1)


def _found(claim: Claim, gains: Sequence[Gain], held: Sequence[bool]) -> str:
    """The numbers behind a word, in a sentence."""
    base, experiment = claim.compares
    name = QUANTITY_NAMES.get(claim.quantity, claim.quantity)
    unit = "%" if claim.quantity.endswith("_percent") else "ms"
    digits = 3 if unit == "%" else 0
    lowest = min(gains, key=lambda gain: gain.percent.value)
    highest = max(gains, key=lambda gain: gain.percent.value)
    changes = [f"from {estimated(gain.base, digits)} to"
               f" {estimated(gain.experiment, digits)} {unit}"
               for gain in dict.fromkeys((lowest, highest))]
    where = "" if len(gains) == 1 else f" in {sum(held)} of {len(gains)} cells"
    expected = {LESS: "falls", ALIKE: f"stays within {ALIKE_PERCENT:g} %"}.get(claim.expects,
                                                                              "rises")
    return (f"{name} {expected if any(held) else 'does not ' + _plain(expected)} with IW"
            f" {experiment} instead of {base}{where}: {', '.join(changes)}."
            + (f" {claim.why}" if claim.why else ""))


def _plain(verb: str) -> str:
    return {"falls": "fall", "rises": "rise"}.get(verb, verb.replace("stays", "stay"))


# Numbers as text -------------------------------------------------------------------

def estimated(found: Estimate | None, digits: int = 0, signed: bool = False) -> str:
    """"1205 ± 3"; UNKNOWN for None."""
    if found is None:
        return UNKNOWN
    sign = "+" if signed else ""
    value = f"{found.value:{sign}.{digits}f}"
    if found.interval is not None:
        value += f" ± {(found.interval[1] - found.interval[0]) / 2:.{digits}f}"
    return value.replace("-", MINUS)


def _gain_text(gain: Gain | None, percent: bool) -> str:
    if gain is None:
        return UNKNOWN
    return estimated(gain.percent if percent else gain.absolute, 1)


def _gain_cells(gain: Gain | None) -> tuple[str, str, str]:
    if gain is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    return estimated(gain.base), estimated(gain.experiment), estimated(gain.percent, 1)


def _scaled(found: Estimate | None, factor: float) -> Estimate | None:
    if found is None:
        return None
    return Estimate(found.value * factor, None if found.interval is None else
                    (found.interval[0] * factor, found.interval[1] * factor), found.n)


def _total(records: dict[int, LoadRecord], quantity: str) -> str:
    return str(sum(getattr(record, quantity) or 0 for record in records.values()))


def _highest(records: dict[int, LoadRecord], quantity: str) -> str:
    return str(max((getattr(record, quantity) or 0 for record in records.values()), default=0))
