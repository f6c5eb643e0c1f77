"""What a scenario with populations shows beside its figures.

The paper's Figure 5 on one page, what each cause adds to it, and the joint
distributions of RTT and bandwidth that clients are drawn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from lab.core.charts import BarChart, BarPage, GridChart, Line, LineChart, Plot
from lab.core.claims import WITHIN_PERCENT, WITHIN_POINTS
from lab.core.findings import Column, Finding, Table
from lab.core.quantities import quantity
from lab.core.words import number
from lab.fetches.buckets import Bucket, NoPanel
from lab.fetches.joint import DATACENTERS, Joint
from lab.fetches.paired import Responses, buckets
from lab.fetches.record import Record
from lab.fetches.scenario import Figure, Scenario

FIGURE5, METRIC = "paper_figure5.csv", "latency_ms"
AXES = {"RTT": "rtt_ms", "BW": "bandwidth_kbps", "BDP": "bdp_bytes"}  # its panels
DIAGONALS_BYTES = (1000, 5000, 10000, 50000, 100000)
LEAST_SHARE = 1e-9  # of a cell that is shown


@dataclass(frozen=True)
class Cause:
    """What the paper's Figure 5 looks like with the causes up to this one.

    base_ms, absolute_ms: means; panels: "RTT", "BW", "BDP" → its buckets.
    """

    title: str
    base_ms: float
    absolute_ms: float
    panels: dict[str, list[Bucket]]

    @property
    def near(self) -> str:
        """How many of all buckets are within the bounds of `close`."""
        buckets = [bucket for rows in self.panels.values() for bucket in rows]
        return f"{sum(map(close, buckets))} of {len(buckets)}"


def population_findings(scenario: Scenario, records: Sequence[Record],
                        findings: Sequence[Finding]) -> list[Finding]:
    """findings: of the scenario's figures. Those of Figure 5 are shown again, on one page."""
    published = {figure.name for figure in scenario.figures if figure.published == FIGURE5}
    charts = tuple(finding.chart for finding in findings
                   if finding.name in published and isinstance(finding.chart, BarChart))
    made = [_page(scenario.head.title, charts)] if charts else []
    try:
        found = causes(scenario, records)
        made += [_causes(found)] if found else []
    except NoPanel as error:
        made.append(Finding("causes", "What each cause adds", missing=str(error)))
    return made + [_joint(name) for name in
                   dict.fromkeys(each.datacenter for each in scenario.populations)]


def _page(title: str, charts: tuple[BarChart, ...]) -> Finding:
    return Finding("fig5", "The panels together", chart=BarPage(f"{title}: Figure 5", (),
                                                                charts=charts),
                   text="The panels together. Their numbers stand in the tables of the single"
                        " figures.")


# Causes ------------------------------------------------------------------------------

def causes(scenario: Scenario, records: Sequence[Record]) -> list[Cause]:
    """One per population that no figure shows, in the order of the file.

    Those populations differ from each other by one mechanism at a time. Raises NoPanel.
    """
    shown = {figure.sweep for figure in scenario.figures}
    responses = Responses(records)
    made = []
    for drawn in scenario.populations:
        if drawn.name in shown:
            continue
        figures = {axis: Figure(
            name=f"causes {drawn.name}", title=drawn.title, kind="improvement", sweep=drawn.name,
            by=by, baseline_initcwnd=drawn.initcwnd[0], experiment_initcwnd=drawn.initcwnd[-1],
            metric=METRIC, published=FIGURE5, panel=axis) for axis, by in AXES.items()}
        paired = responses.pair(drawn.name, (drawn.initcwnd[0], drawn.initcwnd[-1]), METRIC)
        share = paired.weight / paired.weight.sum()
        made.append(Cause(drawn.title, float(share @ paired.base),
                          float(share @ (paired.base - paired.experiment)),
                          {axis: buckets(paired, figure) for axis, figure in figures.items()}))
    return made


def close(bucket: Bucket) -> bool:
    """Within ±30 % of the published ms and ±3 points of the published percentage."""
    published = bucket.published
    if not published.absolute or published.percent is None:
        return False
    return (abs(100 * bucket.absolute / published.absolute - 100) <= WITHIN_PERCENT
            and abs(bucket.percent - published.percent) <= WITHIN_POINTS)


def _causes(found: Sequence[Cause]) -> Finding:
    columns = (Column("causes, one more in each line", is_text=True),
               Column("baseline", "ms", "mean"), Column("improved", "ms", "mean"),
               Column("bars near the published ones"))
    rows = tuple((cause.title, cause.base_ms, cause.absolute_ms, cause.near) for cause in found)
    return Finding(
        "causes", "What each cause adds", tables=(Table("What each cause adds", columns, rows),),
        text="What each cause adds. " + " ".join(
            f"{cause.title}: {number(cause.absolute_ms)} ms saved of {number(cause.base_ms)} ms."
            for cause in found),
        chart=LineChart("What each cause adds to Figure 5", (), height_inches=8.4, legend=True,
                        palette="ordered", columns=(tuple(_plot(found, axis) for axis in AXES),)))


def _plot(found: Sequence[Cause], axis: str) -> Plot:
    """The absolute improvement by bucket, a line for each set of causes, the paper's as markers."""
    of_first = found[0].panels[axis]
    x = tuple(map(float, range(len(of_first))))
    lines = [Line(f"{cause.title} ({cause.near} close)", x,
                  tuple(bucket.absolute for bucket in cause.panels[axis]), look=look)
             for look, cause in enumerate(found)]
    paper = [(place, bucket.published.absolute) for place, bucket in zip(x, of_first)
             if bucket.published.absolute]
    lines.append(Line("the paper", tuple(place for place, _ in paper),
                      tuple(value for _, value in paper), style="published"))
    return Plot(quantity(AXES[axis]).axis, "improvement (ms)", tuple(lines),
                ticks=tuple((place, bucket.label) for place, bucket in zip(x, of_first)),
                y_scale="symlog", zero=True)


# The joint distribution --------------------------------------------------------------

def _joint(datacenter: str) -> Finding:
    """The share of responses by RTT and bandwidth, and products of both as lines."""
    joint: Joint = DATACENTERS[datacenter]()
    names = [known.name for known in joint.marginals]
    how = ("maximum entropy among all that meet the paper's shares of RTT, bandwidth and BDP"
           if "BDP" in names else "the paper's shares of RTT and bandwidth, and AvgDC's odds"
           " ratios between them")
    title = f"RTT and bandwidth together, {datacenter} data centre"
    chart = GridChart(
        f"RTT and bandwidth, {datacenter} data centre", (how,), x=joint.rtt_ms,
        y=joint.bandwidth_kbps,
        shares=numpy.where(joint.share > LEAST_SHARE, 100 * joint.share, numpy.nan),
        x_label=quantity("rtt_ms").axis, y_label=quantity("bandwidth_kbps").axis,
        colour_label="share of responses per grid cell (%)",
        diagonals=tuple((8.0 * product, f"BDP {product} B") for product in DIAGONALS_BYTES))
    return Finding(f"joint_{datacenter}", title, chart=chart, text=f"{title}: {how}.")
