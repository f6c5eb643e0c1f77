"""Reports for tests of rendering, and text that harms where it is not escaped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firstflight.base.stats import Estimate
from firstflight.findings.charts import Chart, Mark, Timeline
from firstflight.findings.claims import DIRECTION, NOT_REPRODUCED, REPRODUCED, UNDECIDED
from firstflight.findings.findings import (Column, Fact, Finding, Interval, Report, Rounded,
                                           Statement, Table, Tile)

HOSTILE = ('<script>alert("1")</script><img src=x onerror=alert(1)>'
           '$a$ [b](c) ` | \\ \x1b[2J\n# d\ud800')
SEEN = HOSTILE.replace("\x1b", " ").replace("\n", " ").replace("\ud800", " ")

BY_RTT = Table("Improvement by RTT", (
    Column("RTT", "ms"), Column("IW3", "ms", "mean"), Column("IW10", "ms", "mean"),
    Column("saved", "ms", "improvement", signed=True),
    Column("95 % interval", "ms", "improvement"), Column("test", rank=1, is_text=True),
    Column("word", is_text=True, is_outcome=True)), (
    ("20", 129.54, 122.6, 6.94, Interval(5.0, 8.5), "2.8 ≤ 2.9 ms", REPRODUCED),
    (">20", 58.1, 282.6, -224.5, None, "", NOT_REPRODUCED)), ("averaged over bandwidth",))

BY_WINDOW = Table("The runs", (
    Column("", is_text=True), Column("n"), Column("mean", "ms", digits=0)), (
    ("IW 3", 431, Estimate(438.2, (414.2, 462.2), 2)), ("IW 10", 430, Estimate(586.0))))

FINDINGS = (
    Finding("fig5_rtt", "Improvement by RTT", (BY_RTT,), sentence="10 instead of 3 segments save"
            " 6.9 ms.", bars={REPRODUCED: 1, NOT_REPRODUCED: 1},
            chart=Chart("", ()), published="paper, Figure 5 (paper/fig5.csv)"),
    Finding("mix", "A mix of windows", (BY_WINDOW,), (
        Statement("Faster.", "the mean falls from 438 ± 24 to 412 ms.", DIRECTION),
        Statement("Where is the mean longer?", "In no cell.")), chart=Chart("", ())),
    Finding("fig2", "Time by window", missing="lacks IW 42; measure with ./run.sh --iw 42"))

TIMELINE = Timeline("IW3: RTT 20 ms", "3 data segments, 1 retransmitted", (
    Mark("lost", 60.0, 1.0, 1001.0), Mark("data", 61.0, 1001.0, 2001.0),
    Mark("retransmitted", 320.0, 1.0, 1001.0)), ((360.0, 2001.0),), 400.0, 2500.0)


def report(**changes: Any) -> Report:
    """A report with something in every field, and with these changes."""
    whole = Report(
        name="zhao2019", title="Figure 5", claim="Ten segments are faster than three.",
        source="Zhao and Jiang 2019", path="zhao2019/run-1",
        facts={"engine": "uml", "kernel": "7.2.11", "finished_at": "2026-01-01T00:00:00+00:00",
               "emulated_s": 600.0, "wall_s": 4.0,
               "project": {"commit": "0123456789abcdef", "changed": True}},
        verified=125, count=128, findings=FINDINGS,
        summary=("125 of 128 trials verified on the wire; left out: 3 failed verdicts",),
        tiles=(Tile("125 of 128", "trials verified on the wire"),),
        sentences=("All of it is so, to 0.1 ms.",),
        trials=Table("Every trial", (Column("RTT", "ms", "requested", is_filter=True),
                                     Column("total", "ms", "measured")),
                     ((20, 129.5), (50, 213.2)), ("n: note",), hidden_rows=126),
        checks=Table("Checks", (Column("check", is_text=True), Column("passed")), (("RTT", 125),)),
        failures=Table("Trials that do not count", (
            Column("trial", is_text=True), Column("verdict", is_text=True),
            Column("reason", is_text=True)),
            (("rtt20-iw3", "failed transfer", "curl 28: timed out"),)),
        causes=Table("Causes", (Column("cause", is_text=True), Column("transfers")),
                     (("tail loss probe", 2),)),
        settings=Table("TCP settings", (Column("sysctl", is_text=True),
                                        Column("client", is_text=True)),
                       (("net.ipv4.tcp_sack", "1"),)),
        timelines=(TIMELINE,), provenance=(Fact("command", "./run.sh --seed 7"),))
    return replace(whole, **changes)


def hostile() -> Report:
    """A report with HOSTILE wherever it has text. Names of findings are keys of scenario files, and
    not hostile.
    """
    table = Table(HOSTILE, tuple(Column(HOSTILE, HOSTILE, f"{HOSTILE}{place}", is_text=True,
                                        is_filter=True, is_outcome=place == 1) for place
                                 in range(2)),
                  ((HOSTILE, HOSTILE),), (HOSTILE,), hidden_rows=1)
    finding = Finding("fig", HOSTILE, (replace(table, title=f"1 {HOSTILE}"),), (
        Statement(HOSTILE, HOSTILE, HOSTILE), Statement(HOSTILE, HOSTILE)), HOSTILE,
        chart=Chart("", ()), published=HOSTILE)
    return Report(
        HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE,
        {"engine": HOSTILE, "kernel": HOSTILE, "finished_at": HOSTILE, "emulated_s": HOSTILE,
         "wall_s": HOSTILE, "project": {"commit": HOSTILE}}, 1, 2,
        (finding, Finding("gone", HOSTILE, missing=HOSTILE)), (HOSTILE,),
        (Tile(HOSTILE, HOSTILE),), (HOSTILE,), table, table, table, table, table,
        (replace(TIMELINE, title=HOSTILE, text=HOSTILE),), (Fact(HOSTILE, HOSTILE),))


def sparse() -> Report:
    """A report without everything that may be missing, and with cells that few reports have."""
    undecided = Finding("fig9", "Cells of every sort", (
        Table("", (Column("saved", "ms", "improvement"), Column("note", is_text=True)), (
            (None, ""), (Estimate(1.5, (1.0, 2.0), 3), "x"), (Interval(1.0, 2.0), None),
            (Estimate(2.5), 7), (Rounded(Estimate(0.25, (0.0, 0.5)), 1), "")), hidden_rows=3),), (
                Statement("Faster.", "4 ± 6 ms", UNDECIDED),), bars={REPRODUCED: 3, UNDECIDED: 1})
    held_out = Finding("fig10", "Held out", bars={REPRODUCED: 1, DIRECTION: 6}, held_out=True)
    gone = replace(FINDINGS[2], statements=(
        Statement("IW 42 is slow.", "no run measured it.", "not measured"),))
    return report(facts={}, path="a`b", trials=None, checks=None, failures=None, causes=None,
                  settings=None, timelines=(), sentences=(), opening="It saves {fig6}.",
                  findings=(undecided, held_out, gone))
