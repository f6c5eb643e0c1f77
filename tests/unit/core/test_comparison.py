"""Compared runs: which cells are paired, their differences, and how else the runs differ."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from firstflight.base.errors import UsageError
from firstflight.runs.kinds import RunData
from firstflight.runs.results.records import FAIL, PASS, Record
from firstflight.study import compared_runs


@dataclass(frozen=True)
class Trial:
    scenario: str
    rtt_ms: float
    uplink_kbps: float
    initcwnd: int
    repeat: int = 1
    seed: int = 0

    @property
    def id(self) -> str:
        return f"{self.rtt_ms}-{self.initcwnd}-{self.repeat}"


@dataclass(frozen=True)
class Measured(Record):
    COMPARED: ClassVar[str] = "total_ms"
    total_ms: float | None = None


@dataclass(frozen=True)
class Client:
    scenario: str
    part: str
    sample: int
    initcwnd: int
    repeat: int = 1

    @property
    def id(self) -> str:
        return f"{self.sample}-{self.initcwnd}"


def run(values: dict[tuple[float, int, int], float], **facts: Any) -> RunData:
    """A run with these times by (RTT, window, repeat); a time below 0 is of a failed verdict."""
    return RunData(Path("results/x/run"), facts, [
        Measured(Trial("x", rtt_ms, 10 * rtt_ms, initcwnd, repeat, seed=repeat), True,
                 total_ms=abs(total_ms), verdict=PASS if total_ms > 0 else FAIL)
        for (rtt_ms, initcwnd, repeat), total_ms in values.items()])


BASE = run({(20, 3, 1): 100.0, (20, 3, 2): 110.0, (80, 3, 1): 300.0, (80, 3, 2): 320.0,
            (500, 3, 1): 900.0}, seed=1, kernel="7.2", sysctls={"server": {"a": "1"}})
OTHER = run({(20, 3, 1): 103.0, (20, 3, 2): 115.0, (80, 3, 1): 290.0, (80, 3, 2): 312.0,
             (40, 3, 1): 1.0}, seed=2, kernel="7.2", sysctls={"server": {"a": "0"}})


def test_runs_are_compared_cell_by_cell_and_over_all_shared_cells() -> None:
    (finding,) = compared_runs.report([("one", BASE), ("two", OTHER)]).findings
    differs, whole, cells = finding.tables
    assert whole.rows[0][:5] == ("two", 2, pytest.approx(207.5), pytest.approx(205.0),
                                 pytest.approx(-2.5))
    assert cells.column("RTT") == ["20", "80"], "the uplink follows from the RTT, without a column"
    assert [column.name for column in cells.columns].count("uplink") == 0
    assert cells.column("mean", "difference")[:2] == [pytest.approx(4.0), pytest.approx(-9.0)]
    first = cells.column("95 % interval", "difference")[0]
    assert isinstance(first, compared_runs.Interval)
    # Differences of 3 and 5: mean 4, standard error 1, Student's t of one degree 12.706.
    assert (first.low, first.high) == (pytest.approx(4 - 12.706, abs=1e-3),
                                       pytest.approx(4 + 12.706, abs=1e-3))
    assert differs.rows == (("seed", "1", "2"), ("sysctls.server.a", "1", "0"))
    # The mean of both cells differs by -3.5 and -1.5 in the two repeats: -2.5, standard error 1.
    of_all = whole.rows[0][5]
    assert isinstance(of_all, compared_runs.Interval)
    assert (of_all.low, of_all.high) == (pytest.approx(-2.5 - 12.706, abs=1e-3),
                                         pytest.approx(-2.5 + 12.706, abs=1e-3))


@dataclass(frozen=True)
class TrialOfPart(Trial):
    part: str = "mobile"
    drawn_rtt_ms: float | None = None


def test_repeats_of_a_cell_with_drawn_rtts_are_draws_and_not_clients() -> None:
    def swept(*times_ms: float) -> RunData:
        return RunData(Path("results/x/1"), {}, [
            Measured(TrialOfPart("x", 20, 1.0, 3, repeat, drawn_rtt_ms=19.5 + repeat), True,
                     total_ms=total_ms, verdict=PASS)
            for repeat, total_ms in enumerate(times_ms, start=1)])

    report = compared_runs.report([("one", swept(10, 12)), ("two", swept(13, 15))])
    assert "over 2 repeats" in report.summary[1] and "mean of 1 cells" in report.summary[1]


@dataclass(frozen=True)
class Painted(Measured):
    ALSO_COMPARED: ClassVar[tuple[str, ...]] = ("first_byte_ms", "paint_ms")
    first_byte_ms: float | None = None
    paint_ms: float | None = None


def test_other_times_are_compared_where_both_runs_have_them() -> None:
    def painted(more_ms: float) -> RunData:
        """A run without a paint at the first RTT, and without any first byte."""
        return RunData(Path("results/x/1"), {}, [
            Painted(Trial("x", rtt_ms, 1.0, 3), True, total_ms=9.0, verdict=PASS,
                    paint_ms=rtt_ms + more_ms if rtt_ms > 20 else None)
            for rtt_ms in (20, 40, 80)])

    (finding,) = compared_runs.report([("one", painted(0)), ("two", painted(7))]).findings
    (other_times,) = [table for table in finding.tables if "other times" in table.title]
    assert [row[1:6] for row in other_times.rows] == [("two", 2, 60.0, 67.0, 7.0)]


def test_a_comparison_begins_with_what_differs_and_has_an_interval_over_the_shared_draws(
        ) -> None:
    """One run has 100 repeats of two cells, the other 1000. Their difference is chance."""
    draw = random.Random(4)
    few, many = (run({(rtt_ms, 3, number): 100 + rtt_ms + draw.gauss(0, 40) for rtt_ms in (20, 21)
                      for number in range(1, repeats + 1)}, kernel=kernel)
                 for repeats, kernel in ((100, "7.2"), (1000, "7.3")))
    report = compared_runs.report([("few", few), ("many", many)])
    assert report.summary[0] == "Different: repeats of a cell (100 / 1000), kernel (7.2 / 7.3)."
    interval = report.findings[0].tables[1].rows[0][5]
    assert isinstance(interval, compared_runs.Interval) and "over 100 repeats" in report.summary[1]
    assert interval.low < 0 < interval.high and 8 < interval.high - interval.low < 16


@dataclass(frozen=True)
class TrialOnHosts(Trial):
    kernel: str = "default"
    congestion_control: str = "cubic"


@pytest.mark.parametrize(("name", "flag"), [("kernel", "--kernel"),
                                            ("congestion_control", "--cc")])
def test_runs_with_two_kernels_or_congestion_controls_are_compared_by_these(
        name: str, flag: str) -> None:
    def made(total_ms: float, *values: str) -> RunData:
        return RunData(Path("results/x/1"), {}, [
            Measured(replace(TrialOnHosts("x", 20, 200, 3), **{name: value}), True, verdict=PASS,
                     total_ms=total_ms) for value in values])

    report = compared_runs.report([("a", made(100, "one")), ("b", made(90, "other"))])
    assert report.findings[0].tables[1].rows[0][4] == -10
    assert report.findings[0].tables[0].rows == ((flag, "one", "other"),)
    both = compared_runs.report([("a", made(100, "one", "other")), ("b", made(90, "other"))])
    assert both.findings[0].tables[1].rows[0][1] == 1, "one cell has the value of both runs"


def test_the_interval_of_a_population_is_over_its_clients_and_that_of_cells_over_repeats() -> None:
    def made(scale: float) -> RunData:
        return RunData(Path("results/x/1"), {}, [
            Measured(Client("x", "avg", sample, initcwnd), True, verdict=PASS,
                     total_ms=100 + scale * sample) for sample in (0, 1, 2)
            for initcwnd in (3, 10)])

    report = compared_runs.report([("a", made(1)), ("b", made(2))])
    whole = report.findings[0].tables[1]
    assert "over 3 clients" in report.summary[1]
    assert report.findings[0].chart.foot.endswith("no bars: no cell was measured twice")
    assert whole.title.startswith("All shared cells")
    # Differences of 0, 1, 2: mean 1, standard error 0.577, Student's t of two degrees 4.303.
    assert whole.rows[0][5].low == pytest.approx(1 - 4.303 * 3 ** -0.5, abs=1e-3)
    measured_once = compared_runs.report([("a", run({(20, 3, 1): 1.0, (80, 3, 1): 2.0})),
                                          ("b", run({(20, 3, 1): 2.0, (80, 3, 1): 5.0}))])
    assert measured_once.summary[1] == (
        "b: +2.0 ms in the mean of 2 cells. No cell was measured twice, so there is no interval.")


def test_trials_that_do_not_count_are_excluded_from_a_comparison() -> None:
    failed = run({(20, 3, 1): -103.0, (80, 3, 1): 313.0, (80, 3, 2): 316.0, (80, 3, 3): 319.0})
    report = compared_runs.report([("one", BASE), ("two", failed)])
    (finding,) = report.findings
    assert report.summary[1] == (
        "two: +6.0 ms (−110.5 … 122.5, over 2 repeats) in the mean of 1 cells.")
    assert (report.verified, report.count) == (8, 9)
    assert (report.title, report.source, report.path) == ("one beside two", "", "")
    assert finding.tables[1].column("cells") == [1]
    assert finding.tables[2].column("95 % interval", "difference") == finding.tables[1].column(
        "95 % interval", "difference"), "both intervals are over the two shared repeats"


@dataclass(frozen=True)
class Loaded(Record):
    COMPARED: ClassVar[str] = "mean_ms"
    mean_ms: float | None = None


@dataclass(frozen=True)
class Replayed(Record):
    COMPARED: ClassVar[str] = "finish_ms"
    finish_ms: float | None = None


@dataclass(frozen=True)
class Served:
    scenario: str
    server: str
    loss_percent: float
    seed: int
    weight: float
    spare: str = ""


@pytest.mark.parametrize(("kind", "metric", "title"), [
    (Measured, "total_ms", "total"), (Loaded, "mean_ms", "mean"),
    (Replayed, "finish_ms", "finish")])
def test_runs_of_every_kind_are_compared_by_their_own_time(kind: type[Record], metric: str,
                                                           title: str) -> None:
    """Cells differ by words and numbers, not by scenario, seed and weight. None is no time."""
    def made(scenario: str, *times: float | None) -> RunData:
        servers = (("builtin", 0.0), ("builtin", 1.0), ("nginx", 0.0), ("nginx", 1.0))
        return RunData(Path(f"results/{scenario}/1"), {}, [
            kind(Served(scenario, server, loss, number + len(scenario), 1 / len(scenario)), True,
                 verdict=PASS, **{metric: time_ms})
            for number, ((server, loss), time_ms) in enumerate(zip(servers, times))])

    report = compared_runs.report([("a", made("a", 0.0, 10.0, 20.0, None)),
                              ("bb", made("bb", 5.0, 15.0, 10.0, 30.0))])
    differs, whole, cells = report.findings[0].tables
    assert whole.title.startswith(f"All shared cells: {title}") and whole.rows[0][1] == 3
    assert [tuple(row[:5]) for row in cells.rows] == [
        ("bb", "builtin", "0", 0.0, 5.0), ("bb", "builtin", "1", 10.0, 15.0),
        ("bb", "nginx", "0", 20.0, 10.0)]
    assert [row[-1] for row in cells.rows] == [None, 50.0, -50.0], "a base of 0 has no percentage"
    assert [(column.name, column.is_text) for column in cells.columns[:3]] == [
        ("run", True), ("server", True), ("loss", False)]
    assert differs.rows == (("cells", "3", "4"),) and whole.rows[0][5] == ""
    assert compared_runs.report([("a", BASE), ("b", BASE)]).summary[0] == (
        "Nothing: the runs record the same facts.")


def test_runs_without_a_common_cell_or_a_measurement_are_refused() -> None:
    with pytest.raises(UsageError, match="two: shares no cell with one"):
        compared_runs.report([("one", BASE), ("two", run({(1, 3, 1): 1.0}))])
    empty = RunData(Path("results/x/run"), {}, [Record(None, True)])
    with pytest.raises(UsageError, match="holds nothing that can be compared"):
        compared_runs.report([("one", empty), ("two", BASE)])


def test_compared_runs_are_named_by_the_folder_that_distinguishes_them(tmp_path: Path) -> None:
    folders = [tmp_path / "a" / "1", tmp_path / "a" / "2", tmp_path / "b" / "3"]
    assert list(compared_runs.names(folders).values()) == ["1", "2", "b"]
