"""What stands behind a fitted population, as stored beside the scenario.

scenarios/fits/<scenario>.json holds the mechanism that it is of, hold-outs, how the bars
change along each parameter, each mechanism off in turn, and what else was tried. All of it is
simulated, by a program of the fit that the commit FITTED_BY has as paper/fit; what a run
measured stands in its figures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from lab.core.errors import UsageError
from lab.core.findings.charts import Line, LineChart, Plot
from lab.core.findings.findings import Cell, Column, Finding, Table
from lab.core.scenario import scenario_file
from lab.core.scenario.published import SHARES_PANELS
from lab.core.scenario.scenario_file import SCENARIOS
from lab.core.words import plain
from lab.fetches.scenario.population import Population, Populations
from lab.fetches.scenario.scenario import Scenario

FITS = SCENARIOS / "fits"
FITTED_BY = "c688d26e"  # the last commit with the program of the fit
FIGURE5 = tuple(SHARES_PANELS.values())
FREE_WITHIN, FREE_LOSS = 1, 0.5  # so many bars fewer, so much farther: the paper cannot say

@dataclass(frozen=True)
class Sources:
    """What the parameters of a scenario rest on: scenarios/fits/<scenario>.toml, kept by hand.

    rests_on: (from, which numbers) by the parameter; of_their_own: the same by population and
    parameter, where another population than the explained one has a value of its own; farthest: of
    rtt_at_most_ms. numbers: published ones, how many, and what they were used for. correlated,
    retransmitted: notes; "{simulated}" stands for what the evidence found.
    """

    rests_on: Mapping[str, tuple[str, str]]
    of_their_own: Mapping[tuple[str, str], tuple[str, str]]
    farthest: tuple[str, str]
    numbers: tuple[tuple[str, int, str], ...]
    correlated: str
    retransmitted: str

    @property
    def fitted_to(self) -> int:
        """How many numbers the parameters were fitted to."""
        return sum(count for _, count, used in self.numbers if used.startswith("fitted"))


def sources(name: str) -> Sources:
    """Of a scenario with stored evidence. Raises UsageError."""
    where = f"scenarios/fits/{name}.toml"
    raw = scenario_file.read(FITS / f"{name}.toml", where).raw
    try:
        return Sources(
            {parameter: _pair(entry) for parameter, entry in raw["rests_on"].items()},
            {(population, parameter): _pair(entry)
             for population, own in raw["of_their_own"].items()
             for parameter, entry in own.items()},
            _pair(raw["farthest"]),
            tuple((entry["what"], entry["count"], entry["used"]) for entry in raw["numbers"]),
            raw["correlated"], raw["retransmitted"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{where}: lacks something, or has it otherwise: {error}") from None


def _pair(value: Any) -> tuple[str, str]:
    first, second = value
    return str(first), str(second)


def stored(name: str) -> dict[str, Any] | None:
    """The stored evidence of a scenario, None without any. Raises UsageError."""
    path = FITS / f"{name}.json"
    if not path.is_file():
        return None
    try:
        fit = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"scenarios/fits/{path.name}: {error}") from None
    return dict(fit)


def belongs(fit: dict[str, Any], made: Population) -> bool:
    """Whether the evidence is of these parameters."""
    of_today = json.loads(json.dumps(asdict(made.mechanism)))
    return bool(fit["mechanism"] == of_today)


def fit_findings(scenario: Scenario, drawn: Populations) -> list[Finding]:
    """Three: what was fitted to what, how far each parameter is fixed, what each mechanism does."""
    made = drawn.explained
    fit = stored(scenario.name) if made else None
    if made is None or fit is None:
        return []
    known = sources(scenario.name)
    if not belongs(fit, made) or any((other.name, name) not in known.of_their_own
                                     for other, name in _of_their_own(drawn, made, known)):
        why = ("the parameters have changed since: write it anew in a working tree of commit"
               f" {FITTED_BY}, with /usr/bin/python3 -m paper.fit evidence")
        return [Finding("fit", "What was fitted to what", missing=why)]
    return [_fitted(drawn, made, fit, known), _profiles(made, fit), _without(fit)]


# What was fitted to what -------------------------------------------------------------

def _fitted(drawn: Populations, made: Population, fit: dict[str, Any],
            known: Sources) -> Finding:
    own = _of_their_own(drawn, made, known)
    rows: list[tuple[Cell, ...]] = [
        (name, _rendered(getattr(made.mechanism, name)), *source, free(fit, name))
        for name, source in known.rests_on.items()]
    rows += [(f"{name}, {other.title}", _rendered(getattr(other.mechanism, name)),
              *known.of_their_own[other.name, name], "") for other, name in own]
    rows += [(f"rtt_at_most_ms, {other.title}", _rendered(other.rtt_at_most_ms),
              *known.farthest, "")
             for other in drawn.populations if other.rtt_at_most_ms]
    again = ", ".join(f"{percent:g} % with {share:g}" for share, percent in fit["slow_losses"])
    parameters = Table("Parameters", (
        Column("parameter", is_text=True), Column("value", is_text=True),
        Column("from", is_text=True), Column("which numbers", is_text=True, rank=1),
        Column("does the paper fix it?", is_text=True)), tuple(rows), (
            f"Free: between these values the count of Figure 5 changes by {FREE_WITHIN} at most and"
            f" the distance by less than {FREE_LOSS:g}, the other parameters as they are.",
            known.retransmitted.replace("{simulated}", again)))
    from_where = [str(row[2]) for row in rows]
    own_by_hand = [other.title for other, name in own
                   if known.of_their_own[other.name, name][0] == "by hand"]
    fitted, whose = from_where.count("fitted"), ", ".join(dict.fromkeys(own_by_hand))
    by_hand = from_where.count("by hand") - len(own_by_hand)
    met = known.fitted_to
    freedom = Table("How much was free", (Column("what", is_text=True), Column("how many")), (
        ("parameters fitted", fitted), ("parameters set by hand", by_hand),
        (f"parameters set by hand, of {whose}'s own", len(own_by_hand)),
        ("numbers that they were fitted to", met)), (known.correlated,))
    numbers = Table("Numbers that they meet", (
        Column("numbers", is_text=True), Column("how many"), Column("used", is_text=True)),
        known.numbers, (f"{fitted} parameters are fitted to {met} correlated numbers: they are"
                        " compatible with the paper, and do not predict it.",))
    sentence = (f"{fitted} parameters are fitted to {met} correlated numbers, {by_hand} more are"
                f" set by hand, and {len(own_by_hand)} of {whose}'s own: compatible with the"
                " paper, not predicted.")
    holdouts, predicted = _holdouts(fit)
    return Finding("fit", "What was fitted to what", (parameters, freedom, numbers, holdouts),
                   sentence=f"{sentence} {predicted}")


def _holdouts(fit: dict[str, Any]) -> tuple[Table, str]:
    """What was fitted to the rest predicts, and of what was held out how much, in a sentence."""
    rows: list[tuple[Cell, ...]] = []
    counts: dict[tuple[str, int], list[str]] = {}
    for holdout in fit["holdouts"]:
        for what, near, count in holdout["predicts"]:
            rows.append((holdout["fitted_on"], what, near, count,
                         "yes" if holdout["held_out"] else "no"))
            if holdout["held_out"]:
                counts.setdefault((what, count), []).append(str(near))
    counted = "; ".join(f"{what} {', '.join(near)} of {count}"
                        for (what, count), near in counts.items())
    return Table("Predicted by what was fitted to the rest (simulated)", (
        Column("fitted on", is_text=True), Column("predicted", is_text=True),
        Column("near"), Column("of"), Column("held out", is_text=True)), tuple(rows), (
            "Held out: no parameter was chosen by looking at it.",)), (
                f"Held out and predicted, fit by fit: {counted}.")


def _of_their_own(drawn: Populations, made: Population,
                  known: Sources) -> list[tuple[Population, str]]:
    """Which parameters another population has otherwise than the explained one."""
    return [(other, name) for other in drawn.populations for name in known.rests_on
            if getattr(other.mechanism, name) != getattr(made.mechanism, name)]


def _rendered(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(plain, value))
    return plain(value)


def free(fit: dict[str, Any], name: str) -> str:
    """The span of a parameter in which the bars hardly change, "" where none was followed."""
    rows = fit["profiles"].get(name)
    if not rows:
        return ""
    near, least = fit["as_fitted"]["figure5"], fit["as_fitted"]["loss"]
    inside = [value for value, count, loss in rows
              if count >= near - FREE_WITHIN and loss <= least + FREE_LOSS]
    low, high = min(inside, default=rows[len(rows) // 2][0]), max(
        inside, default=rows[len(rows) // 2][0])
    if low == high:
        return "yes"
    at_ends = [low == rows[0][0], high == rows[-1][0]]
    word = "no, free" if all(at_ends) else "roughly, free"
    return f"{word} from {low:.3g} to {high:.3g}{' or more' if at_ends[1] else ''}"


# Along each parameter ----------------------------------------------------------------

def _profiles(made: Population, fit: dict[str, Any]) -> Finding:
    """Small multiples: the count of Figure 5 along each parameter."""
    plots = [_profile(name, rows, getattr(made.mechanism, name))
             for name, rows in fit["profiles"].items()]
    queue = [[float(packets), float(near)] for packets, near in fit["queue"]]
    plots.append(replace(_profile("queue_packets", queue, made.mechanism.queue_packets),
                         y_label="of Figure 2", y_ends=(0.0, 5.5)))
    columns = tuple(tuple(plots[start::3]) for start in range(3))
    text = " ".join(f"{name}: {', '.join(f'{count} at {value:.3g}' for value, count, _ in rows)}."
                    for name, rows in fit["profiles"].items())
    return Finding(
        "identifiable", "How far the paper fixes each parameter", text=text,
        sentence="How many of Figure 5's 22 bars are near along each parameter, the others as"
                 " they are; simulated. A flat line is a parameter that the paper does not fix.",
        chart=LineChart("How far the paper fixes each parameter", (
            "How many of Figure 5's 22 bars are near, along one parameter, the others as fitted.",
            f"Simulated, {fit['sample']['responses']} responses; a flat line is free."),
            "The coloured dot is the value that is used; of queue_packets, bars of Figure 2.",
            columns=columns, height_inches=8.4))


def _profile(name: str, rows: list[list[float]], value: float) -> Plot:
    x = tuple(float(row[0]) for row in rows)
    used = min(rows, key=lambda row: abs(row[0] - value))
    return Plot(name, "bars near", (
        Line("near", x, tuple(float(row[1]) for row in rows)),
        Line("used", (float(used[0]),), (float(used[1]),), look=2, style="points")),
        y_ends=(0.0, 22.0))


# Off, and tried ----------------------------------------------------------------------

def _without(fit: dict[str, Any]) -> Finding:
    counts = [Column(group, "", "Figure 5, near") for group in FIGURE5]
    head = (*counts, Column("all", "", "Figure 5, near"), Column("IW3", "ms", "mean"),
            Column("IW10", "ms", "mean"))

    def row(row_of: dict[str, Any]) -> tuple[Cell, ...]:
        return (*(row_of["near"][group] for group in FIGURE5), row_of["figure5"], row_of["base_ms"],
                row_of["experiment_ms"])

    off: list[tuple[Cell, ...]] = [("as fitted", *row(fit["as_fitted"]), "")]
    off += [(row_of["without"], *row(row_of), row_of["figure2"]) for row_of in fit["ablation"]]
    tried: list[tuple[Cell, ...]] = [(row_of["what"], *row(row_of)) for row_of in fit["tried"]]
    queue = ", ".join(f"{near} with {packets}" for packets, near in fit["queue"])
    return Finding("without", "Each mechanism off in turn, and what else was tried", (
        Table("Without it", (Column("without", is_text=True), *head,
                             Column("Figure 2", "", "near, of 5")), tuple(off),
              ("Simulated; nothing is fitted again.",
               f"Figure 2's gains that are near, by the packets that the queue holds: {queue}.")),
        Table("What else was tried, at the best of the strengths tried",
              (Column("tried", is_text=True), *head), tuple(tried), (
                  "Simulated; nothing is fitted again. A connection that begins anew after idle"
                  " time is the same as no kept connections, above. Not tried: several connections"
                  " at once.",))),
        sentence="Without it, bars near of 22: " + "; ".join(
            f"{row_of['without']} {row_of['figure5']}" for row_of in fit["ablation"]) + ".")
