"""What side_by_side.py judges: on stored observations, and on changed ones."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.outside import side_by_side
from benchmarks.outside.side_by_side_table import TOLERANCES, Case, Row, document, judged
from firstflight.base.files import PROJECT

OBSERVED = json.loads((Path(__file__).parent / "side_by_side_observed.json").read_text())
CASE = Case("netcat", "netcat takes 1 MB to b", sh="true", rate_mbit=4)
THROUGHPUT, TIME, AGAIN = "throughput, Mbit/s", "time, s", "retransmitted"
CWND, WINDOW = "cwnd, segments", "receive window, kB"


def changed(run: dict[str, Any], **new: object) -> dict[str, Any]:
    return {**copy.deepcopy(run), **new}


def flagged(row: Row) -> set[str]:
    return {each.measure for each in row.differences()}


def sides(name: str) -> list[list[dict[str, Any]]]:
    return [[OBSERVED[name][world]] for world in ("virtual", "counted", "real")]


def test_a_stored_difference_is_flagged() -> None:
    """A window of 64 kB: stock's 9.17 Mbit/s are 8 % from 8.43, by stored observations."""
    case = Case("delay-small-window", "a window of 64 kB", sh="true", rate_mbit=7)
    row = judged(case, *sides(case.name))
    assert flagged(row) == {THROUGHPUT, WINDOW}
    assert row.unexplained() == [THROUGHPUT, WINDOW]
    page = document([row], {}, "")
    assert "| **8.43 / 9.17 (8.4)** |" in page and "**not known**" in page


def test_the_same_runs_do_not_differ() -> None:
    run = OBSERVED["netcat"]["counted"]
    row = judged(CASE, [run], [run], [])
    assert len(row.compared) == 4 and not row.differences()


@pytest.mark.parametrize(("printed", "measure", "within", "beyond"), [
    ("throughput_mbit", THROUGHPUT, 3.84, 3.76), ("time_s", TIME, 4.19, 4.21),
    ("rtt_ms", "RTT, ms", 4.07, 4.09), ("loaded_rtt_ms", "RTT, ms", 3.93, 3.91),
    ("lost_percent", "lost, %", 4.7, 4.9)])
def test_tolerances(printed: str, measure: str, within: float, beyond: float) -> None:
    """Of a stock kernel's 4, in the unit of the measure."""
    def run(number: float) -> dict[str, Any]:
        return {"output": f"= {printed} {number}\n", "connections": [], "busy_percent": 10.0}
    assert not flagged(judged(CASE, [run(within)], [run(4)], []))
    assert flagged(judged(CASE, [run(beyond)], [run(4)], [])) == {measure}


@pytest.mark.parametrize("change", [
    lambda case, run: (Case(case.name, case.about, case.sh, rate_mbit=0), run),
    lambda case, run: (case, changed(run, busy_percent=60.0))], ids=["no rate", "busy"])
def test_rates_count_where_they_can(
        change: Callable[[Case, dict[str, Any]], tuple[Case, dict[str, Any]]]) -> None:
    run = {"output": "= throughput_mbit 4\n", "connections": [], "busy_percent": 10.0}
    faster = changed(run, output="= throughput_mbit 5\n")
    assert flagged(judged(CASE, [faster], [run], [])) == {THROUGHPUT}
    case, stock = change(CASE, run)
    row = judged(case, [faster], [stock], [])
    assert row.compared and not row.differences()


def sent_again(count: int) -> dict[str, Any]:
    run = changed(OBSERVED["netcat"]["counted"])
    run["connections"][0]["retransmissions"] = count
    return run


def test_runs_that_reach_into_each_other_do_not_differ() -> None:
    stock = [sent_again(20), sent_again(22)]
    assert flagged(judged(CASE, [sent_again(30), sent_again(40)], stock, [])) == {AGAIN}
    row = judged(CASE, [sent_again(30), sent_again(21), sent_again(40)], stock, [])
    assert not flagged(row)
    page = document([row], {}, "")
    assert "| *30 / 21* |" in page and "| *spread* |" in page and "**" not in page


@pytest.mark.parametrize(("loss_s", "expected"), [(None, {WINDOW}), (0.15, set())])
def test_windows_until_somebody_loses_a_packet(loss_s: float | None, expected: set[str]) -> None:
    """Of three round trips the third one differs."""
    def run(third: int) -> dict[str, Any]:
        connection = {"begin_s": 5.0, "retransmissions": 0, "first_loss_s": loss_s, "rounds": [
            [0.1 * number, 10, window] for number, window in enumerate((60, 90, third))]}
        return {"output": "", "connections": [connection], "busy_percent": 10.0}
    row = judged(CASE, [run(140)], [run(120)], [])
    assert flagged(row) == expected
    at = {each.measure: each.at for each in row.compared}[WINDOW]
    assert at == (3 if expected else 1)


def test_for_windows_real_time_counts_too() -> None:
    def run(window: int) -> dict[str, Any]:
        connection = {"begin_s": 5.0, "retransmissions": 0, "first_loss_s": None,
                      "rounds": [[0.0, 10, window]]}
        return {"output": "", "connections": [connection], "busy_percent": 10.0}
    assert flagged(judged(CASE, [run(140)], [run(120)], [run(130)])) == {WINDOW}
    assert not flagged(judged(CASE, [run(140)], [run(120)], [run(130), run(150)]))


def test_a_cause_explains() -> None:
    case = Case("netcat", "", sh="true", rate_mbit=4, causes={AGAIN: "burst"})
    row = judged(case, [sent_again(50)], [sent_again(20)], [])
    assert row.differences() and not row.unexplained()
    page = document([row], {"burst": "a text", "other": "not needed"}, "")
    assert "| burst |" in page and "- **burst**: a text" in page and "not needed" not in page


def test_windows_are_of_one_connection_whoever_begins_first() -> None:
    """cubic to port 5201 and bbr to 5202: a hair decides which of them begins."""
    def run(*order: int) -> dict[str, Any]:
        windows = {5201: 90, 5202: 140}
        connections = [{"to": port, "begin_s": 5.0 + place, "retransmissions": 0, "bytes": 10 ** 6,
                        "first_loss_s": None, "rounds": [[0.0, 10, windows[port]]]}
                       for place, port in enumerate(order)]
        return {"output": "", "connections": connections, "busy_percent": 10.0}
    assert not flagged(judged(CASE, [run(5202, 5201)], [run(5201, 5202)], []))
    assert flagged(judged(CASE, [run(5202)], [run(5201)], [])) == {WINDOW}


def test_all_that_is_kept_of_a_case_counts(tmp_path: Path) -> None:
    """A case may have more runs in one world than in another."""
    for folder, name in (("virtual-0", "netcat"), ("virtual-11", "netcat"), ("virtual-1", "curl"),
                         ("counted-0", "netcat")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.json").write_text(json.dumps({"folder": folder}))
    kept = side_by_side.observed_of(tmp_path, "virtual", CASE)
    assert [run["folder"] for run in kept] == ["virtual-0", "virtual-11"]


def test_the_printed_page_has_each_case_and_cause() -> None:
    """What stands in vtime/ was printed from these cases, and each difference there has a cause."""
    page = (PROJECT / "vtime" / "SIDE_BY_SIDE.md").read_text()
    cases, causes = side_by_side.cases((side_by_side.CASES / "cases.toml").read_text())
    assert re.findall(r"^\| `(.+?)`: (.+?) \|", page, re.MULTILINE) == [
        (case.name, case.about) for case in cases]
    assert re.findall(r"^- \*\*(\w+)\*\*: (.+)$", page, re.MULTILINE) == list(causes.items())
    assert "**not known**" not in page


def test_without_observations_nothing_is_judged() -> None:
    assert judged(CASE, [], [sent_again(1)], []).compared == ()
    assert judged(CASE, [sent_again(1)], [], [sent_again(1)]).compared  # real time, at least


def test_the_cases() -> None:
    cases, causes = side_by_side.cases((side_by_side.CASES / "cases.toml").read_text())
    names = [case.name for case in cases]
    assert len(names) == len(set(names)) >= 30
    for case in cases:
        assert bool(case.sh) != bool(case.python), case.name
        assert set(case.causes) <= set(TOLERANCES) and set(case.causes.values()) <= set(causes)
