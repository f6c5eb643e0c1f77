"""Reads and checks scenarios/*.toml; lab.scenario tells what stands in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import UsageError
from lab.scenario import (BUCKETED, CLIENTS, DRAWN_KINDS, JOINT, KINDS, LOSS, METRICS, OF_BASELINE,
                          OF_EXPERIMENT, WINDOW_SWEEP, Axis, Claim,
                          Defect, Figure, Raw, Scenario, Sweep, bucket_value)
from lab.toml_file import (QUANTITIES, SHARES_TOLERANCE_PERCENT, checked_numbers, claim_line,
                           congestion_control_name, file_name_of, known_keys, number_of,
                           numbers_of, one_of, plain, read_toml, sysctls_of, table_of, tables_of,
                           text_of, value_of)
from lab.trial import Trial

if TYPE_CHECKING:
    from lab.draws import Population

SCENARIO_KEYS = ("kind", "title", "source", "sysctls", "defaults", "sweep", "axis", "figure",
                 "claim", "raw", "population")
DEFAULT_KEYS = ("response_bytes", "initcwnd", "initrwnd", "congestion_control", "client",
                "repeat", "repeat_with_loss", "queue_packets", "loss_percent", "uplink")
SWEEP_KEYS = ("name", "rtt_ms", "bandwidth_kbps", "pairs") + DEFAULT_KEYS
AXIS_KEYS = ("by", "values", "labels", "shares_percent")
FIGURE_KEYS = tuple(column.name for column in fields(Figure))
CLAIM_KEYS = ("figure", "says", "larger", "equal", "highest_percent")
RAW_KEYS = ("file", "sweep", "metric", "extra_rtts", "extra_why", "defect")
DEFECT_KEYS = ("by", "values", "mark", "why")


def read(path: Path) -> Scenario:
    """The scenario of one file, named like it. Raises UsageError."""
    file = f"scenarios/{path.name}"
    text, raw = read_toml(path)
    scenario = _scenario(path.stem, raw, text, file)
    for figure in scenario.figures:
        _check_figure(scenario, figure, f'{file}: [[figure]] "{figure.name}"')
    for claim in scenario.claims:
        _check_claim(scenario, claim, f'{file}: [[claim]] "{claim.says}"')
    return scenario


def _scenario(name: str, raw: dict[str, Any], text: str, file: str) -> Scenario:
    known_keys(raw, SCENARIO_KEYS, file)
    defaults = table_of(raw, "defaults", file)
    known_keys(defaults, DEFAULT_KEYS, f"{file}: [defaults]")
    sysctls = sysctls_of(raw, file)
    sweeps = tuple(_sweep({**defaults, **table}, where)
                   for table, where in tables_of(raw, "sweep", "name", SWEEP_KEYS, file))
    populations = _populations(raw, file)
    if not sweeps and not populations:
        raise UsageError(f"{file}: has no [[sweep]] and no [[population]], so nothing to measure")
    axes = tuple(_axis(table, where)
                 for table, where in tables_of(raw, "axis", "by", AXIS_KEYS, file))
    figures = tuple(_figure(table, where)
                    for table, where in tables_of(raw, "figure", "name", FIGURE_KEYS, file))
    return Scenario(name=name, title=text_of(raw, "title", file), claim=claim_line(text, file),
                    source=text_of(raw, "source", file), sysctls=sysctls, sweeps=sweeps,
                    axes=axes, figures=figures,
                    raw=_raw(raw["raw"], sweeps, f"{file}: [raw]") if "raw" in raw else None,
                    text=text, populations=populations,
                    like=_like(name, defaults, f"{file}: [defaults]") if populations else None,
                    claims=tuple(_claim_of(table, where) for table, where in
                                 tables_of(raw, "claim", "says", CLAIM_KEYS, file)))


def _populations(raw: dict[str, Any], file: str) -> tuple[Population, ...]:
    if "population" not in raw:
        return ()
    from lab import draws  # imports numpy: only for those that draw
    return draws.read(raw["population"], file)


def _like(name: str, defaults: dict[str, Any], where: str) -> Trial:
    """A trial with what the populations of a file do not draw themselves."""
    filled = {"rtt_ms": [1], "bandwidth_kbps": [1], "initcwnd": [1], "response_bytes": [1],
              "repeat": 1, "name": "populations", "uplink": "same", **defaults}
    return next(iter(_sweep(filled, where).trials(name, 1)))


def _sweep(table: dict[str, Any], where: str) -> Sweep:
    uplink = value_of(table, "uplink", where)
    return Sweep(
        name=text_of(table, "name", where), networks=_networks(table, where),
        initcwnd=numbers_of(table, "initcwnd", where),
        response_bytes=numbers_of(table, "response_bytes", where),
        initrwnd=number_of(table, "initrwnd", where),
        congestion_control=congestion_control_name(value_of(table, "congestion_control", where), where),
        client=one_of(value_of(table, "client", where), CLIENTS, f"{where}: client"),
        repeat=number_of(table, "repeat", where), repeat_with_loss=number_of(
            table, "repeat_with_loss" if "repeat_with_loss" in table else "repeat", where),
        queue_packets=number_of(table, "queue_packets", where),
        loss_percent=_loss(table, where),
        uplink_kbps=None if uplink == "same" else number_of(table, "uplink", where))


def _loss(table: dict[str, Any], where: str) -> tuple[float, ...]:
    if isinstance(table.get("loss_percent"), list):
        return numbers_of(table, "loss_percent", where)
    return (number_of(table, "loss_percent", where),)


def _networks(table: dict[str, Any], where: str) -> tuple[tuple[float, float], ...]:
    if "pairs" not in table:
        return tuple((rtt, bandwidth) for rtt in numbers_of(table, "rtt_ms", where)
                     for bandwidth in numbers_of(table, "bandwidth_kbps", where))
    if "rtt_ms" in table or "bandwidth_kbps" in table:
        raise UsageError(f"{where}: has pairs, so it cannot have rtt_ms or bandwidth_kbps")
    pairs = table["pairs"]
    if not isinstance(pairs, list) or not pairs or not all(
            isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise UsageError(f"{where}: pairs has to be a list of [rtt_ms, bandwidth_kbps]")
    networks = tuple((QUANTITIES["rtt_ms"].check(rtt, f"{where}: pairs"),
                      QUANTITIES["bandwidth_kbps"].check(bandwidth, f"{where}: pairs"))
                     for rtt, bandwidth in pairs)
    return tuple(dict.fromkeys(networks))


def _axis(table: dict[str, Any], where: str) -> Axis:
    by = one_of(value_of(table, "by", where), BUCKETED, f"{where}: by")
    values = checked_numbers(value_of(table, "values", where), by, f"{where}: values")
    labels = table.get("labels", [plain(value) for value in values])
    shares = table.get("shares_percent", [])
    for key, given in (("labels", labels), ("shares_percent", shares)):
        if not isinstance(given, list) or (given and len(given) != len(values)):
            count = len(given) if isinstance(given, list) else "no list of"
            raise UsageError(f"{where}: {count} {key} for {len(values)} values")
    if not all(isinstance(label, str) for label in labels):
        raise UsageError(f"{where}: labels have to be strings")
    checked = [QUANTITIES["shares_percent"].check(share, f"{where}: shares_percent")
               for share in shares]
    if checked and abs(sum(checked) - 100) > SHARES_TOLERANCE_PERCENT:
        raise UsageError(f"{where}: shares_percent sum to {sum(checked):.2f}, not to 100 ±"
                         f" {SHARES_TOLERANCE_PERCENT:g}")
    return Axis(by=by, values=values, labels=tuple(labels), shares_percent=tuple(checked))


def _figure(table: dict[str, Any], where: str) -> Figure:
    name = file_name_of(table, where)
    kind = one_of(value_of(table, "kind", where), KINDS, f"{where}: kind")
    by = one_of(value_of(table, "by", where), BUCKETED, f"{where}: by")
    for one_kind, quantity in ((WINDOW_SWEEP, "initcwnd"), (LOSS, "loss_percent")):
        if kind == one_kind and by != quantity:
            raise UsageError(f'{where}: a figure of kind "{kind}" has by = "{quantity}"')
    if by == "initcwnd" and kind != WINDOW_SWEEP:
        raise UsageError(f'{where}: by = "initcwnd" needs kind = "{WINDOW_SWEEP}"')
    baseline_initcwnd = _window(table, "baseline_initcwnd", where)
    return Figure(
        name=name, title=text_of(table, "title", where), kind=kind,
        sweep=text_of(table, "sweep", where), by=by,
        weights=text_of(table, "weights", where, ""), baseline_initcwnd=baseline_initcwnd,
        experiment_initcwnd=baseline_initcwnd if kind == WINDOW_SWEEP
        else _window(table, "experiment_initcwnd", where),
        metric=one_of(value_of(table, "metric", where), METRICS, f"{where}: metric"),
        published=text_of(table, "published", where, ""),
        panel=text_of(table, "panel", where, ""),
        percent_of=one_of(table.get("percent_of", OF_BASELINE), (OF_BASELINE, OF_EXPERIMENT),
                          f"{where}: percent_of"))


def _claim_of(table: dict[str, Any], where: str) -> Claim:
    said = [key for key in ("larger", "equal", "highest_percent") if key in table]
    if len(said) != 1:
        raise UsageError(f"{where}: has to have one of larger, equal and highest_percent")
    pairs: dict[str, tuple[str, ...]] = {}
    for key in ("larger", "equal"):
        labels = table.get(key, [])
        if not isinstance(labels, list) or len(labels) not in (0, 2) or not all(
                isinstance(label, str) for label in labels):
            raise UsageError(f"{where}: {key} has to be the labels of two bars")
        pairs[key] = tuple(labels)
    return Claim(figure=text_of(table, "figure", where), says=text_of(table, "says", where),
                 larger=pairs["larger"], equal=pairs["equal"],
                 highest_percent=QUANTITIES["shares_percent"].check(
                     table["highest_percent"], f"{where}: highest_percent")
                 if "highest_percent" in table else None)


def _check_claim(scenario: Scenario, claim: Claim, where: str) -> None:
    figures = {figure.name: figure for figure in scenario.figures}
    figure = figures[one_of(claim.figure, list(figures), f"{where}: figure")]
    for label in (*claim.larger, *claim.equal):
        one_of(label, scenario.axis_of(figure).labels, f"{where}: bar")


def _window(table: dict[str, Any], key: str, where: str) -> int:
    return int(QUANTITIES["initcwnd"].check(value_of(table, key, where), f"{where}: {key}"))


def _raw(table: dict[str, Any], sweeps: Sequence[Sweep], where: str) -> Raw:
    if not isinstance(table, dict):
        raise UsageError(f"{where}: has to be a table")
    known_keys(table, RAW_KEYS, where)
    defects = []
    for row, row_where in tables_of(table, "defect", "mark", DEFECT_KEYS, where):
        by = one_of(value_of(row, "by", row_where), BUCKETED, f"{row_where}: by")
        defects.append(Defect(
            by=by, values=checked_numbers(value_of(row, "values", row_where), by,
                                           f"{row_where}: values"),
            mark=text_of(row, "mark", row_where), why=text_of(row, "why", row_where)))
    extra_rtts = table.get("extra_rtts", 0)
    if isinstance(extra_rtts, bool) or not isinstance(extra_rtts, (int, float)):
        raise UsageError(f"{where}: extra_rtts: {extra_rtts!r} is not a number")
    return Raw(file=text_of(table, "file", where),
               sweep=one_of(value_of(table, "sweep", where), [sweep.name for sweep in sweeps],
                             f"{where}: sweep"),
               metric=one_of(value_of(table, "metric", where), METRICS, f"{where}: metric"),
               extra_rtts=float(extra_rtts), extra_why=text_of(table, "extra_why", where, ""),
               defects=tuple(defects))


def _check_figure(scenario: Scenario, figure: Figure, where: str) -> None:
    """Whether the figure's sweep, axes and windows fit together; raises UsageError."""
    drawn = scenario.population(figure.sweep)
    if drawn is not None:
        one_of(figure.kind, DRAWN_KINDS, f"{where}: kind")
        for initcwnd in (figure.baseline_initcwnd, figure.experiment_initcwnd):
            if initcwnd not in drawn.initcwnd:
                raise UsageError(f"{where}: population {drawn.name!r} has no initcwnd {initcwnd}")
        return
    one_of(figure.sweep, [sweep.name for sweep in scenario.sweeps], f"{where}: sweep")
    sweep = scenario.sweep(figure.sweep)
    for initcwnd in (figure.baseline_initcwnd, figure.experiment_initcwnd):
        if initcwnd not in sweep.initcwnd:
            raise UsageError(f"{where}: sweep {sweep.name!r} has no initcwnd {initcwnd}")
    if figure.kind == WINDOW_SWEEP:
        if len(sweep.cells) > 1 or figure.weights:
            raise UsageError(f"{where}: compares windows in one network; sweep {sweep.name!r}"
                             f" has {len(sweep.cells)}")
        return
    if figure.weights == JOINT:
        _check_joint(scenario, figure, where)
        return
    counts: dict[float, int] = {}
    for cell in sweep.cells:
        value = bucket_value(figure.by, cell)
        counts[value] = counts.get(value, 0) + 1
    axis = scenario.axis_of(figure)
    _same_values(axis.values, counts, f"{where}: {figure.by}", sweep.name)
    if not figure.weights:
        if max(counts.values()) > 1:
            raise UsageError(f"{where}: several cells fall in one bucket of {figure.by};"
                             " say by which axis they are weighted")
        return
    if figure.weights == figure.by:
        raise UsageError(f"{where}: weights: has to be another axis than by")
    weights = scenario.axis(figure.weights)
    if weights is None or not weights.shares_percent:
        raise UsageError(f"{where}: weights: there is no [[axis]] with"
                         f' by = "{figure.weights}" and shares_percent')
    weighted = [bucket_value(figure.weights, cell) for cell in sweep.cells]
    _same_values(weights.values, weighted, f"{where}: {figure.weights}", sweep.name)


def _check_joint(scenario: Scenario, figure: Figure, where: str) -> None:
    """Weights from the joint distribution: RTT and bandwidth have axes, and BDP the buckets."""
    if figure.by != "bdp_bytes":
        raise UsageError(f'{where}: weights = "{JOINT}" needs by = "bdp_bytes"')
    sweep = scenario.sweep(figure.sweep)
    for by in ("rtt_ms", "bandwidth_kbps", "bdp_bytes"):
        axis = scenario.axis(by)
        if axis is None:
            raise UsageError(f'{where}: there is no [[axis]] with by = "{by}"')
        if by != "bdp_bytes":
            _same_values(axis.values, [bucket_value(by, cell) for cell in sweep.cells],
                         f"{where}: {by}", sweep.name)
    if len({(cell.response_bytes, cell.loss_percent) for cell in sweep.cells}) > 1:
        raise UsageError(f'{where}: weights = "{JOINT}" takes one response size and loss rate')


def _same_values(axis: Iterable[float], sweep: Iterable[float], where: str, name: str) -> None:
    odd = sorted(set(axis) ^ set(sweep))
    if odd:
        raise UsageError(f"{where}: the axis and sweep {name!r} differ in"
                         f" {', '.join(plain(value) for value in odd)}")
