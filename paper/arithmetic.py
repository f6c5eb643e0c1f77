"""The paper's own arithmetic: what its printed buckets add up to, and its printed means.

    /usr/bin/python3 -m paper.arithmetic        writes docs/results/paper_arithmetic.md

Nothing is measured. A bucket prints its share s of the responses, what was saved a in ms, and the
same p in percent of the baseline. Its mean latency is then a/p with three segments and a/p - a with
ten, and a population's mean is the sum of s times the latency. That both means take the same shares
is what separates the window from a change of who was measured (standardisation; Kitagawa
1955, "Components of a difference between two rates", JASA 50).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from base import files
from base.words import number, short
from findings.findings import Cell, Column, Finding, Interval, Statement, Table
from findings.render import markdown
from study.scenario import published
from study.scenario.published import PublishedBucket

PAGE = files.PROJECT / "docs" / "results" / "paper_arithmetic.md"
HEAD = """\
[All results, and what the words mean](../RESULTS.md)

# The paper's own arithmetic: do its buckets add up to its means?

The paper's buckets add up to its mean for ten segments, but not for three: a third of the saving that
it prints may come from other users in the other week.

Dukkipati, Refice, Cheng, Chu, Herbert, Agarwal, Jain, Sutin 2010, 'An Argument for Increasing TCP's
Initial Congestion Window', CCR 40(3). Nothing is measured: every number is computed from what the
paper prints. Ten segments were in use in one week and three in another, at the same data center.
`/usr/bin/python3 -m paper.arithmetic` writes this page.
"""


class Panel(NamedTuple):
    """A published panel: its file in paper/, the panel of it, the unit of its buckets' names."""

    name: str
    title: str
    file: str
    panel: str
    unit: str
    data_center: str


PANELS = (
    Panel("rtt", "Figure 5, RTT", "paper_figure5.csv", "RTT", "ms", "AvgDC"),
    Panel("bw", "Figure 5, bandwidth", "paper_figure5.csv", "BW", "kbit/s", "AvgDC"),
    Panel("bdp", "Figure 5, BDP", "paper_figure5.csv", "BDP", "bytes", "AvgDC"),
    Panel("size", "Figure 7, response size", "paper_figure7.csv", "", "segments", "AvgDC"),
    Panel("slowdc_bw", "Figure 6, bandwidth", "paper_figure6.csv", "", "kbit/s", "SlowDC"))

# How exactly the numbers in paper/*.csv are known, by their first lines:
# shares are printed with two decimals, means as whole ms, bars were read.
SHARE_POINTS = 0.005
SAVED_PART = 0.0013
PERCENT_POINTS = 0.007
MEAN_MS = 0.5


class Bounded(NamedTuple):
    """A value in ms with the least and the most that it may be, all errors on one side."""

    value: float
    low: float
    high: float

    def meets(self, other: Bounded) -> bool:
        """Whether one number may be both."""
        return self.low <= other.high and other.low <= self.high


class BucketMeans(NamedTuple):
    """Of one bucket its share (of 1), and the mean latency with each window in ms."""

    share: float
    baseline: float
    experiment: float


@dataclass(frozen=True)
class Sums:
    """A panel added up, beside the means that are printed of its data center."""

    panel: Panel
    buckets: tuple[PublishedBucket, ...]
    experiment: Bounded
    baseline: Bounded
    printed_experiment: Bounded
    printed_baseline: Bounded

    @property
    def shares_percent(self) -> float:
        return sum(bucket.responses_percent or 0.0 for bucket in self.buckets)

    @property
    def printed_saving_ms(self) -> float:
        return self.printed_baseline.value - self.printed_experiment.value

    @property
    def same_shares_saving_ms(self) -> float:
        """What the window saves where both windows have the printed shares."""
        return self.baseline.value - self.experiment.value

    @property
    def other_shares_ms(self) -> float:
        """The rest of the printed saving."""
        return self.printed_saving_ms - self.same_shares_saving_ms

    @property
    def other_shares_percent(self) -> float:
        return 100 * self.other_shares_ms / self.printed_saving_ms


def add_up(panel: Panel, buckets: Iterable[PublishedBucket], means: Mapping[str, str]) -> Sums:
    """A panel added up. means: the two that are printed of its data center, by their columns."""
    parts = tuple(buckets)
    ends = [[derive_means(bucket, side) for bucket in parts] for side in (0, -1, 1)]
    return Sums(panel, parts,
                Bounded(*(sum(mean.share * mean.experiment for mean in end) for end in ends)),
                Bounded(*(sum(mean.share * mean.baseline for mean in end) for end in ends)),
                *(Bounded(mean, mean - MEAN_MS, mean + MEAN_MS) for mean in
                  (float(means["experiment_ms"]), float(means["baseline_ms"]))))


def derive_means(bucket: PublishedBucket, side: int = 0) -> BucketMeans:
    """The latencies behind an improvement: a/p, and a/p - a, which grow with a and fall with p.

    side: -1 and 1 for the least and the most that what is printed may stand for.
    """
    share, saved_ms, percent = bucket.responses_percent, bucket.absolute_ms, bucket.percent
    assert share is not None and saved_ms is not None and percent is not None
    saved_ms *= 1 + side * SAVED_PART
    baseline_ms = 100 * saved_ms / (percent - side * PERCENT_POINTS)
    return BucketMeans((share + side * SHARE_POINTS) / 100, baseline_ms, baseline_ms - saved_ms)


# The page ------------------------------------------------------------------------------

UNDECIDED = (
    "Why the two weeks differ cannot be decided from the paper. Other people may have used the data"
    " center, or some may have been sent to another one. Or the estimates of RTT and bandwidth,"
    " which name the buckets, may change with the window. More responses from clients that are"
    " both far and slow would fit: distance makes a bandwidth-delay product larger, a slow link"
    " makes it smaller, and the panel of the products shows no difference. No bar has to be wrong.")


def page(panels: Sequence[Sums]) -> str:
    findings = (show_sums(panels), *map(show_buckets, panels))
    return "\n\n".join([HEAD.rstrip(), *(paragraph for finding in findings for paragraph in
                                          markdown.section("paper_arithmetic", finding))]) + "\n"


def show_sums(panels: Sequence[Sums]) -> Finding:
    """The sums beside the means that are printed, and what follows."""
    columns = [Column("panel", is_text=True), Column("data center", is_text=True),
               Column("shares", "%", digits=2)]
    for window in ("IW 10", "IW 3"):
        columns += [Column("sum", "ms", window), Column("rounding allows", "ms", window),
                    Column("printed", "ms", window, digits=0),
                    Column("diff.", "ms", window, signed=True)]
    sums = Table("", tuple(columns), tuple(
        (sums.panel.title, sums.panel.data_center, sums.shares_percent,
         *compare(sums.experiment, sums.printed_experiment),
         *compare(sums.baseline, sums.printed_baseline)) for sums in panels),
        ("Sum: share × mean latency of each bucket, added up. With three segments the latency is"
         " the saving in ms divided by the saving in percent. With ten segments it is this latency"
         " less the saving in ms.",))
    savings = Table(
        "What was saved: by the window, and by other shares of the buckets in the other week",
        (Column("panel", is_text=True), Column("data center", is_text=True),
         Column("printed", "ms", "saved", digits=0), Column("same shares", "ms", "saved"),
         Column("other shares", "ms", "saved", signed=True),
         Column("other shares", "% of it", "saved", digits=0)),
        tuple((sums.panel.title, sums.panel.data_center, sums.printed_saving_ms,
               sums.same_shares_saving_ms, sums.other_shares_ms, sums.other_shares_percent)
              for sums in panels))
    off_ms = [abs(sums.experiment.value - sums.printed_experiment.value) for sums in panels
              if sums.experiment.meets(sums.printed_experiment)]
    differing = [sums for sums in panels if not sums.baseline.meets(sums.printed_baseline)]
    return Finding(
        "sums", "Each panel's buckets added up, and the printed mean", (sums, savings), (
            Statement("Do the buckets add up to the printed mean with 10 segments?",
                      f"In {len(off_ms)} of {len(panels)} panels: the sums deviate by"
                      f" {number(max(off_ms, default=0.0))} ms at most, which rounding explains."),
            Statement("And with 3 segments?",
                      f"In {len(panels) - len(differing)} of {len(panels)} panels. " + " ".join(
                          f"{sums.panel.title} at {sums.panel.data_center}:"
                          f" {short(sums.baseline.value)} ms, the paper prints"
                          f" {sums.printed_baseline.value:.0f}; rounding explains"
                          f" {number(largest_error(sums.baseline))} ms." for sums in differing)),
            Statement("What follows?", what_follows(differing, len(panels))),
            Statement("What cannot be decided?", UNDECIDED)))


def largest_error(summed: Bounded) -> float:
    return max(summed.high - summed.value, summed.value - summed.low)


def compare(summed: Bounded, printed: Bounded) -> tuple[Cell, ...]:
    return (summed.value, Interval(summed.low, summed.high), printed.value,
            summed.value - printed.value)


def what_follows(differing: Sequence[Sums], panels: int) -> str:
    """With the numbers that it rests on. differing: which cannot be what is printed."""
    if not differing:
        return (f"The buckets add up to the printed means with both windows: {panels} of {panels}"
                " panels.")
    parts = ["The simplest reading: the printed shares are those of the week with 10 segments, and"
             " the week with 3 had more responses in the buckets that take long."]
    for center in dict.fromkeys(sums.panel.data_center for sums in differing):
        there = [sums for sums in differing if sums.panel.data_center == center]
        others = [f"{number(sums.other_shares_ms)} ms ({sums.other_shares_percent:.0f} %, by"
                  f" {sums.panel.title})" for sums in there]
        parts.append(f"At {center} the paper prints a saving of"
                     f" {there[0].printed_saving_ms:.0f} ms. Of this {' or '.join(others)} came from"
                     " other users, not from the window.")
    return " ".join(parts)


def show_buckets(sums: Sums) -> Finding:
    """One panel, for a calculator."""
    rows: list[tuple[Cell, ...]] = []
    for bucket in sums.buckets:
        share, baseline_ms, experiment_ms = derive_means(bucket)
        rows.append((bucket.label, bucket.responses_percent, bucket.absolute_ms, bucket.percent,
                     baseline_ms, experiment_ms, share * baseline_ms, share * experiment_ms))
    rows.append(("sum", sums.shares_percent, "", "", "", "", sums.baseline.value,
                 sums.experiment.value))
    return Finding(sums.panel.name,
                   f"{sums.panel.title} at {sums.panel.data_center}, bucket by bucket",
                   (Table("", (Column("up to", sums.panel.unit, is_text=True),
                               Column("share", "%", "printed", digits=2),
                               Column("saved", "ms", "printed", digits=2),
                               Column("saved", "%", "printed", digits=2),
                               Column("IW 3", "ms", "latency"), Column("IW 10", "ms", "latency"),
                               Column("IW 3", "ms", "share × latency", digits=2),
                               Column("IW 10", "ms", "share × latency", digits=2)),
                          tuple(rows)),))


def add_up_all() -> list[Sums]:
    means = {row["data_center"]: row for row in published.rows(
        published.path_of("paper_means.csv"), ("data_center", "experiment_ms", "baseline_ms"))}
    return [add_up(panel, published.buckets(panel.file, panel.panel).values(),
                    means[panel.data_center]) for panel in PANELS]


def main(output: Path = PAGE) -> None:
    print(files.write(output, page(add_up_all())))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
