"""The findings of arithmetic: the sums and the printed means, what follows and what does not."""

from __future__ import annotations

from collections.abc import Sequence

from lab.arithmetic.analysis import Bounded, BucketMeans, Sums, sums_of
from lab.arithmetic.scenario import Arithmetic
from lab.core.findings.charts import Line, LineChart, Plot
from lab.core.findings.findings import Cell, Column, Finding, Interval, Statement, Table, Tile
from lab.core.words import number, short

ASIDE = 0.08  # of the distance between panels: the two windows beside each other
UNDECIDED = (
    "Why the two weeks differ cannot be decided from the paper. Other people may have used the data"
    " center, or some may have been sent to another one. Or the estimates of RTT and bandwidth,"
    " which name the buckets, may change with the window. More responses that are far and slow at"
    " once would fit: far makes a bandwidth-delay product larger and slow makes it smaller, and"
    " the panel of the products shows no difference. It does not follow that a bar is wrong.")


def findings(scenario: Arithmetic) -> tuple[Finding, ...]:
    sums = tuple(map(sums_of, scenario.panels))
    return (_adding_up(scenario, sums), *(_one_panel(scenario, panel) for panel in sums))


def tiles(scenario: Arithmetic) -> tuple[Tile, ...]:
    """How many panels add up with each window."""
    sums = tuple(map(sums_of, scenario.panels))
    return tuple(Tile(f"{sum(agree)} of {len(agree)}",
                      f"panels add up to the printed mean with {initcwnd} segments")
                 for initcwnd, agree in (
                     (scenario.experiment_initcwnd, [panel.experiment_agrees for panel in sums]),
                     (scenario.baseline_initcwnd, [panel.baseline_agrees for panel in sums])))


# The sums beside the means -----------------------------------------------------------

def _adding_up(scenario: Arithmetic, sums: Sequence[Sums]) -> Finding:
    return Finding(
        "sums", "Each panel's buckets added up, and the printed mean",
        (_sums_table(scenario, sums), _savings_table(sums)),
        (*_questions(scenario, sums), Statement("What cannot be decided?", UNDECIDED)),
        text="For each panel, the sum of share times latency less the printed mean, with each"
             f" window. {_answer(scenario, sums, _differing(sums))}",
        chart=_chart(scenario, sums))


def _differing(sums: Sequence[Sums]) -> list[Sums]:
    """The panels whose buckets cannot be what the printed baseline is the mean of."""
    return [panel for panel in sums if not panel.baseline_agrees]


def _sums_table(scenario: Arithmetic, sums: Sequence[Sums]) -> Table:
    windows = (f"IW {scenario.experiment_initcwnd}", f"IW {scenario.baseline_initcwnd}")
    columns = [Column("panel", is_text=True), Column("data center", is_text=True),
               Column("shares", "%", digits=2, rank=1)]
    for window in windows:
        columns += [Column("sum", "ms", window), Column("rounding allows", "ms", window),
                    Column("printed", "ms", window, digits=0),
                    Column("diff.", "ms", window, signed=True)]
    return Table("", tuple(columns), tuple(
        (panel.printed.title, panel.printed.data_center, panel.shares_percent,
         *_compared(panel.experiment, panel.printed_experiment),
         *_compared(panel.baseline, panel.printed_baseline)) for panel in sums),
        ("Sum: of share × mean latency of the bucket. With the baseline's window the latency is"
         " the saving in ms / the saving in percent; with the other window it is that less the"
         " saving in ms.",))


def _compared(summed: Bounded, printed: Bounded) -> tuple[Cell, ...]:
    return (summed.value, Interval(summed.low, summed.high), printed.value,
            summed.value - printed.value)


def _savings_table(sums: Sequence[Sums]) -> Table:
    """The two parts of the printed difference (analysis.Sums)."""
    return Table(
        "What was saved: by the window, and by other shares of the buckets in the other week",
        (Column("panel", is_text=True), Column("data center", is_text=True),
         Column("printed", "ms", "saved", digits=0),
         Column("same shares", "ms", "saved"), Column("other shares", "ms", "saved", signed=True),
         Column("other shares", "% of it", "saved", digits=0)),
        tuple((panel.printed.title, panel.printed.data_center, panel.printed_saving_ms,
               panel.same_shares_saving_ms, panel.other_shares_ms,
               panel.other_shares_percent) for panel in sums))


def _questions(scenario: Arithmetic, sums: Sequence[Sums]) -> tuple[Statement, ...]:
    off_ms = [abs(panel.experiment.value - panel.printed_experiment.value) for panel in sums
              if panel.experiment_agrees]
    differing = _differing(sums)
    return (
        Statement(f"Do the buckets add up to the printed mean with"
                  f" {scenario.experiment_initcwnd} segments?",
                  f"In {len(off_ms)} of {len(sums)} panels: off by"
                  f" {number(max(off_ms, default=0.0))} ms at most, which rounding explains."),
        Statement(f"And with {scenario.baseline_initcwnd} segments?",
                  f"In {len(sums) - len(differing)} of {len(sums)} panels. "
                  + " ".join(f"{panel.printed.title} at {panel.printed.data_center}:"
                             f" {short(panel.baseline.value)} ms, the paper prints"
                             f" {panel.printed_baseline.value:.0f}; rounding explains"
                             f" {number(panel.baseline.error)} ms." for panel in differing)),
        Statement("What follows?", _answer(scenario, sums, differing)))


def _answer(scenario: Arithmetic, sums: Sequence[Sums], differing: Sequence[Sums]) -> str:
    """What follows, with the numbers that it rests on."""
    if not differing:
        return (f"The buckets add up to the printed means with both windows: {len(sums)} of"
                f" {len(sums)} panels.")
    centers = dict.fromkeys(panel.printed.data_center for panel in differing)
    parts = " ".join(_other_shares([panel for panel in differing
                                    if panel.printed.data_center == center]) for center in centers)
    return (f"The simplest reading: the printed shares are those of the week with"
            f" {scenario.experiment_initcwnd} segments, and the week with"
            f" {scenario.baseline_initcwnd} had more responses in the buckets that take long."
            f" {parts}")


def _other_shares(sums: Sequence[Sums]) -> str:
    """Of one data center: how much of the printed saving the window did not make."""
    others = [f"{number(panel.other_shares_ms)} ms by {panel.printed.title}"
              f" ({panel.other_shares_percent:.0f} %)" for panel in sums]
    return (f"At {sums[0].printed.data_center} the paper prints {sums[0].printed_saving_ms:.0f} ms"
            f" as saved; {' or '.join(others)} of it came from who was measured, not from the"
            " window.")


def _chart(scenario: Arithmetic, sums: Sequence[Sums]) -> LineChart:
    """Sum less printed mean, with the ends that rounding allows."""
    def line(name: str, place: float, look: int, pairs: Sequence[tuple[Bounded, Bounded]]) -> Line:
        return Line(name, tuple(at + place for at in range(len(pairs))),
                    tuple(summed.value - printed.value for summed, printed in pairs),
                    tuple((summed.low - printed.high, summed.high - printed.low)
                          for summed, printed in pairs), look, "points")

    ticks = tuple((float(at), f"{panel.printed.title}\n{panel.printed.data_center}")
                  for at, panel in enumerate(sums))
    plot = Plot("", "sum of the buckets less printed mean (ms)", (
        line(f"{scenario.experiment_initcwnd} segments", -ASIDE, 1,
             [(panel.experiment, panel.printed_experiment) for panel in sums]),
        line(f"{scenario.baseline_initcwnd} segments", ASIDE, 2,
             [(panel.baseline, panel.printed_baseline) for panel in sums])),
        ticks=ticks, x_ends=(-0.5, len(sums) - 0.5), zero=True)
    return LineChart(
        scenario.head.title, ("Share × latency of every bucket, added up, less the mean that the"
                              " paper prints. 0: the two agree.",),
        "Computed from the printed numbers; nothing is measured · bars: what rounding and reading"
        " allow, all on one side", columns=((plot,),), legend=True)


# One panel, for a calculator ---------------------------------------------------------

def _one_panel(scenario: Arithmetic, panel: Sums) -> Finding:
    experiment, baseline = (f"IW {scenario.experiment_initcwnd}",
                            f"IW {scenario.baseline_initcwnd}")
    columns = (Column("up to", panel.printed.unit, is_text=True),
               Column("share", "%", "printed", digits=2),
               Column("saved", "ms", "printed", digits=2),
               Column("saved", "%", "printed", digits=2),
               Column(baseline, "ms", "latency"), Column(experiment, "ms", "latency"),
               Column(baseline, "ms", "share × latency", digits=2),
               Column(experiment, "ms", "share × latency", digits=2))
    rows = tuple(map(_bucket_row, panel.buckets))
    return Finding(panel.printed.name,
                   f"{panel.printed.title} at {panel.printed.data_center}, bucket by bucket",
                   (Table("", columns, (*rows, (
                       "sum", panel.shares_percent, "", "", "", "", panel.baseline.value,
                       panel.experiment.value))),))


def _bucket_row(bucket: BucketMeans) -> tuple[Cell, ...]:
    printed = bucket.published
    return (printed.label, printed.responses_percent, printed.absolute_ms, printed.percent,
            bucket.baseline.value, bucket.experiment.value,
            bucket.share.value * bucket.baseline.value,
            bucket.share.value * bucket.experiment.value)
