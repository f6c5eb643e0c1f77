"""Makes the tables of load findings, and those of the deck: Google's slides for IETF 78."""

from __future__ import annotations

from collections.abc import Sequence

from firstflight.base.stats import Estimate
from firstflight.base.words import plain
from firstflight.figures.kernel_changes import KernelChange
from firstflight.findings.difference import Difference
from firstflight.findings.findings import Cell, Column, Rounded, Table
from firstflight.findings.quantities import quantity
from firstflight.runs.results.cells import Cells
from firstflight.scenario import published
from firstflight.setting.kernels import KERNEL, pair_words
from firstflight.workloads.load import analysis
from firstflight.workloads.load.analysis import (MEAN_AND_PERCENTILES, BySeed, Distribution,
                                                 GainPoint, Hit, Mixes, Runs, format_named,
                                                 format_value, name_of)
from firstflight.workloads.load.record import PERCENTILES, LoadRecord
from firstflight.workloads.load.scenario import DECK_COLUMNS, DECK_FILE, deck_rows
from firstflight.workloads.load.traffic import segments_of

TEXT = Column("", is_text=True)  # a column without a head
DECK_PERCENTILES = (None, 50, 75, 90, 99)  # the deck's columns; None stands for the mean
# The fields in which the runs of a cell are equal; only window and seed differ.
CELL = ("part", "rtt_ms", "bandwidth_kbps", "queue_packets", "load", "response_bytes",
        "connections", "variant", *KERNEL,
        "loss_percent", "loss_burst", "jitter_ms", "initrwnd", "mss", "sysctl")
# Fields of CELL that a row always names.
ALWAYS_NAMED = ("part", "load", "response_bytes", "queue_packets")


def percentiles(distributions: Sequence[Distribution], title: str = "") -> Table:
    """Completion times by percentile, and what each distribution saves against the first."""
    base, *others = distributions
    rows: list[tuple[Cell, ...]] = [
        (f"{distribution.name}, ms", distribution.count,
         *map(distribution.at, MEAN_AND_PERCENTILES))
        for distribution in distributions]
    for other in others:
        saved = [saved_percent(other.gain_over(base, percentile))
                 for percentile in MEAN_AND_PERCENTILES]
        rows.append((f"{other.name} saves, %", "", *saved))

    heads = ("n", "mean", *(f"p{percentile:g}" for percentile in PERCENTILES))
    note = "one seed: no interval"
    if base.mean.n > 1:
        note = f"± is the 95 % interval over {base.mean.n} independent seeds"
    return Table(title or "Completion time (SYN to last byte) by percentile",
                 (TEXT, *(Column(head, digits=0) for head in heads)), tuple(rows), notes=(note,))


def saved_percent(gain: Difference | None) -> Rounded | None:
    """The saving in percent, for a column that has other numbers too."""
    return None if gain is None else Rounded(gain.percent, 1)


def runs_by_window(runs: Runs) -> Table:
    """Load, queue, losses and failures of the runs: a row for each window."""
    rows: list[tuple[Cell, ...]] = []
    for window in runs.figure.windows:
        by_seed = runs.at(window)
        records = by_seed.values()
        rows.append((runs.window(window).label, len(by_seed),
                     _over_seeds(by_seed, "offered_load", factor=100),
                     _over_seeds(by_seed, "utilisation", factor=100),
                     _over_seeds(by_seed, "queue_mean_packets"),
                     max(record.queue_max_packets or 0 for record in records),
                     _over_seeds(by_seed, "drop_percent"),
                     _over_seeds(by_seed, "retransmission_percent"),
                     _over_seeds(by_seed, "hit_percent"),
                     sum(record.unfinished or 0 for record in records),
                     sum(record.failed or 0 for record in records)))

    columns = (
        TEXT, Column("seeds", digits=0), Column("offered load", "%", digits=2),
        Column("utilisation", "%", digits=2), Column("queue mean", "packets", digits=0),
        Column("queue max", digits=0), Column("dropped", "%", digits=3),
        Column("retransmitted", "%", digits=3), Column("transfers hit", "%", digits=2),
        Column("unfinished", digits=0), Column("failed", digits=0))
    return Table("The runs", columns, tuple(rows), notes=runs.exclusion_notes)


def _over_seeds(records: BySeed, name: str, factor: float = 1) -> Estimate | None:
    """The mean of a column over the seeds, times a factor."""
    estimate = analysis.over_seeds([getattr(record, name) for record in records.values()])
    return None if estimate is None else estimate.scaled(factor)


def fairness(mixes: Mixes) -> Table:
    """A table of the groups of each mix, compared with unmixed runs, and of how fair the mix is."""
    rows: list[tuple[Cell, ...]] = []
    for window, groups in mixes.groups.items():
        for group in groups:
            unmixed = mixes.alone.get(group.window.name)
            change = None if unmixed is None else group.gain_over(unmixed)
            rows.append((group.name, group.mean, change.percent if change else None,
                         group.rate_kbps, group.retransmission))
        rows.append((f"Jain's index of {mixes.labels[window]}", "", "",
                     Rounded(analysis.jain([group.rate_kbps for group in groups]), 4), ""))
    rows += [(f"{unmixed.name}, unmixed", unmixed.mean, "", unmixed.rate_kbps,
              unmixed.retransmission) for unmixed in mixes.alone.values()]

    columns = (
        TEXT, Column("mean", "ms", digits=0), Column("saved by the mix", "%", signed=True),
        Column("rate of a transfer", "kbit/s", digits=0),
        Column("retransmitted", "%", digits=3))
    note = ("Jain's index of the groups' mean rates (response bits over completion time): 1 if all"
            " are equal, 0.5 if one of two has everything. Saved by the mix: compared with the run"
            " where everybody has that window.")
    return Table("Fairness", columns, tuple(rows), notes=(note,))


def gains(runs: Runs, points: Sequence[GainPoint]) -> Table:
    """A table of what larger windows change, along the figure's axis."""
    figure, base = runs.figure, runs.figure.windows[0]
    shown = [axis for axis in (figure.down, figure.by) if axis and axis != "window"]
    rows: list[tuple[Cell, ...]] = []
    for point in points:
        at = {figure.down: point.series, figure.by: point.x}
        rows.append((where(runs, point)[0], *(format_value(axis, at[axis]) for axis in shown),
                     point.mean.base, point.mean.experiment, point.mean.absolute,
                     point.mean.percent, point.p99.percent if point.p99 else None,
                     point.retransmission.base, point.retransmission.experiment))
    columns = (
        TEXT, *(Column(name_of(axis)) for axis in shown),
        Column(f"IW {base} mean", "ms", digits=0), Column("mean", "ms", digits=0),
        Column("saved", "ms", digits=0), Column("saved", "%"), Column("saved of p99", "%"),
        Column(f"IW {base} retransmits", "%", digits=3), Column("retransmits", "%", digits=3))
    return Table(f"Against IW {base}", columns, tuple(rows), notes=runs.exclusion_notes)


def where(runs: Runs, point: GainPoint) -> list[str]:
    """The window of a point and its values on the axes, in words.

    On an axis of connections at once, the words say how many segments leave in the first flights,
    such as "IW 10 × 4 = 40 at once". Where responses are shorter than the window, fewer segments
    leave than the product, so there is no equals sign: "IW 64 × 4: 148 at once".
    """
    figure = runs.figure
    window = runs.window(point.window or point.x)
    words = [window.label]
    if figure.by == "connections":
        segments = min(window.largest, _largest_response(runs))
        sign = ":" if segments < window.largest else " ="
        words[0] += f" × {point.x}{sign} {segments * point.x} at once"

    for axis, value in ((figure.down, point.series), (figure.by, point.x)):
        if axis not in ("", "window", "connections"):
            words.append(format_named(axis, value))
    return words


def _largest_response(runs: Runs) -> int:
    """How many segments the largest response has, which is the most that can leave at once."""
    return max(segments_of(record.trial.size_curve[-1][1], record.trial.mss)
               for record in runs.records)


def hits(runs: Runs, measured: Sequence[Hit]) -> Table:
    """A row for each point: transfers that retransmitted, under both windows."""
    base, experiment = (f"IW {window}" for window in runs.figure.windows[:2])

    def columns(group: str) -> tuple[Column, ...]:
        return (Column(base, "ms", group, digits=0), Column(experiment, "ms", group, digits=0),
                Column("saved", "%", group))

    heads = (Column(name_of(runs.figure.by), is_text=True),
             Column(base, "%", "hit", digits=2), Column(experiment, "%", "hit", digits=2),
             *columns("own"), *columns("same"), Column("n", digits=0))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (format_value(runs.figure.by, hit.x), hit.share.base.value, hit.share.experiment.value,
         *_cells(hit.own), *_cells(hit.same), hit.same_count)
        for hit in measured)
    note = ("own: the mean over the transfers that retransmitted under this window, as in the deck;"
            " they are not the same under both windows. same: the mean over the arrivals that"
            " retransmitted under either window.")
    return Table("Transfers that retransmitted", heads, rows, notes=(note,))


def _cells(gain: Difference | None) -> tuple[Estimate | None, ...]:
    """The cells of a group of columns: both means, and what is saved in percent."""
    if gain is None:
        return (None, None, None)
    return (gain.base, gain.experiment, gain.percent)


def deck(base: Distribution, experiment: Distribution) -> Table:
    """The measured numbers, in the form of the deck's table."""
    def row(distribution: Distribution) -> tuple[Cell, ...]:
        return (distribution.name, *map(distribution.at, DECK_PERCENTILES),
                distribution.retransmission.value)

    columns = (TEXT, Column("Avg."),
               *(Column(str(percentile), digits=0) for percentile in DECK_PERCENTILES[1:]),
               Column("Retrans. %", digits=2))
    changes = [experiment.gain_over(base, percentile) for percentile in DECK_PERCENTILES]
    saved_ms = [None if change is None else Rounded(change.absolute, 1) for change in changes]
    retransmitted = experiment.retransmission.value - base.retransmission.value
    return Table("Here", columns, (
        row(experiment), row(base),
        ("Impr., ms", *saved_ms, Rounded(retransmitted, 2, signed=True)),
        ("% Impr.", *map(saved_percent, changes), "")))


def published_deck(name: str) -> Table:
    """One published table: windows 10 and 3, improvement in ms and percent. Raises UsageError."""
    rows: list[tuple[Cell, ...]] = []
    for row in deck_rows(name):
        rows.append((row["row"], *(_as_printed(row, column) for column in DECK_COLUMNS)))
    columns = (TEXT, *map(Column, DECK_COLUMNS))
    return Table(f"Published: {name}", columns, tuple(rows)).without_empty()


def _as_printed(row: dict[str, str], column: str) -> Cell:
    """A number with the decimals that it was published with; "" where there is none."""
    if not row[column]:
        return ""
    decimals = len(row[column].partition(".")[2])
    return Rounded(published.number(row, column, DECK_FILE), decimals)


# A part of a scenario ----------------------------------------------------------

def each_run(records: Sequence[LoadRecord]) -> Table:
    """A row for each run."""
    columns = (
        Column("run", is_text=True), Column("arrivals", digits=0), Column("completed", digits=0),
        Column("failed", digits=0), Column("open", digits=0), Column("mean", "ms", digits=0),
        Column("p50", digits=0), Column("p90", digits=0), Column("p99", digits=0),
        Column("retransmitted", "%", digits=3), Column("offered", digits=4),
        Column("utilisation", digits=4), Column("verdict", is_text=True), TEXT)
    rows = tuple(
        (record.trial.id, record.arrivals, record.completed, record.failed, record.unfinished,
         record.mean_ms, record.p50_ms, record.p90_ms, record.p99_ms,
         record.retransmission_percent, record.offered_load, record.utilisation,
         record.outcome, record.error or record.verdict_reason)
        for record in sorted(records, key=_order))
    return Table("", columns, rows)


def changes(records: Sequence[LoadRecord]) -> Table:
    """A table of what each larger window of a cell changes against the smallest window."""
    counting = Cells(sorted(records, key=_order)).counting
    # Axes that distinguish the cells, besides those that are always named.
    varied = [axis for axis in CELL if axis not in ALWAYS_NAMED and len(counting.values(axis)) > 1]
    rows: list[tuple[Cell, ...]] = []
    for cell in counting.by(*CELL).values():
        trial = cell.records[0].trial
        words = [f"{trial.part}, load {plain(trial.load)}, {trial.response_bytes} B",
                 f"queue {trial.queue_packets}"]
        words += [f"{format_named(axis, getattr(trial, axis))} {quantity(axis).unit}".rstrip()
                  for axis in varied]
        place = ", ".join(words)

        windows = {window: _by_seed(of_window)
                   for (window,), of_window in cell.by("window").items()}
        base, *others = sorted(windows, key=lambda window: _by_size(windows[window]))
        for other in others:
            mean, p50, p99 = (analysis.gain(windows[base], windows[other], name)
                              for name in ("mean_ms", "p50_ms", "p99_ms"))
            if mean is not None:
                rows.append((f"IW {other} instead of {base}: {place}", mean.experiment, mean.base,
                             mean.percent, p50.percent if p50 else None,
                             p99.percent if p99 else None))

    columns = (TEXT, Column("mean", "ms", digits=0), Column("instead of", digits=0),
               Column("saved", "%"), Column("saved of p50", "%"), Column("of p99", "%"))
    return Table("What the windows change", columns, tuple(rows))


def _by_seed(cell: Cells[LoadRecord]) -> BySeed:
    """The records of a cell under one window, by repeat."""
    return {record.trial.repeat: record for record in cell.records}


def _by_size(of_window: BySeed) -> tuple[int, int]:
    """The key by which windows are sorted: by size, and mixes after single windows."""
    parts = next(iter(of_window.values())).trial.requested_window.parts
    return len(parts), parts[0].initcwnd


def kernel_changes(records: Sequence[LoadRecord]) -> list[KernelChange]:
    """What each other kernel changes in the mean time of a cell, under each window."""
    axes = [axis for axis in (*CELL, "window") if axis not in KERNEL]
    counting = Cells(sorted(records, key=_order)).counting
    varied = [axis for axis in axes if len(counting.values(axis)) > 1]
    changes = []
    for cell in counting.by(*axes).values():
        trial = cell.records[0].trial
        place = ", ".join(format_named(axis, getattr(trial, axis)) for axis in varied)
        base, *others = cell.by(*KERNEL).values()
        for other in others:
            saved = analysis.gain(_by_seed(base), _by_seed(other), "mean_ms")
            if saved is not None:
                pair = pair_words(base.records[0].trial, other.records[0].trial)
                changes.append(KernelChange(pair, place, saved))
    return changes


def _order(record: LoadRecord) -> tuple[tuple[str, ...], int]:
    """The key by which records are sorted: by cell, then by repeat."""
    return tuple(str(getattr(record.trial, axis)) for axis in CELL), record.trial.repeat
