"""A cell's numbers are its own: whatever else is measured in the same run."""

from __future__ import annotations

import csv
import json
import random
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.runs.results.records import PASS
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.record import Record
from firstflight.study.fetches.verify.verify import judge_fetch
from firstflight.study.questions import question
from firstflight.testbed.guests import UmlEngine
from tests.live.conftest import command, watched

TRIAL = Trial(scenario="live", rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000,
              queue_packets=1000, loss_percent=0, initcwnd=10, initrwnd=27,
              congestion_control="cubic", client="libcurl", response_bytes=9000, repeat=1)


def measured(kernel: Path, folder: Path, trials: Sequence[Trial],
             sysctls: Mapping[str, str] = {}) -> dict[Trial, Record]:
    """In one guest, in this order; what differs between two runs of the same left out."""
    by_id = {trial.id: trial for trial in trials}
    seen = UmlEngine(kernel, 1).run([trial.job() for trial in trials], dict(sysctls), folder)
    return {by_id[each.trial_id]: replace(
        judge_fetch(by_id[each.trial_id], each.content, each.client_pcap, each.server_pcap, exact=True,
              sysctls=sysctls), measured_at="") for each in seen}


def of_list(kernel: Path, folder: Path, lists: Mapping[str, Any]) -> dict[Trial, Record]:
    requested = KIND.study_of(question.scenario("own", Overrides(lists, repeat=1)), NOTHING, 1)
    return measured(kernel, folder, requested.trials, requested.head.sysctls)


def test_a_window_is_the_same_beside_any_other(kernel: Path, tmp_path: Path) -> None:
    """The receive window that is asked for is offered, whatever initial windows are asked for."""
    lists: dict[str, Any] = {
        "rtt_ms": [276.8], "bandwidth_kbps": [9253], "response_bytes": [183_173],
        "initrwnd": [44, 100, 400], "queue": ["5000"], "congestion_control": ["reno"]}
    few = of_list(kernel, tmp_path / "few", {**lists, "initcwnd": [30, 38]})
    more = of_list(kernel, tmp_path / "more", {**lists, "initcwnd": [30, 38, 60, 1200]})
    assert few == {trial: more[trial] for trial in few}
    assert {record.verdict for record in more.values()} == {PASS}
    times = {trial.initrwnd: record.total_ms for trial, record in few.items()
             if trial.initcwnd == 38}
    assert times[44] != times[100]


def test_cells_of_a_list_are_those_of_its_parts(kernel: Path, tmp_path: Path) -> None:
    """Random lists, in one run and split; none of it may differ by a microsecond."""
    draw = random.Random(20261122)
    values: dict[str, list[Any]] = {
        "rtt_ms": [3, 70.5, 300], "bandwidth_kbps": [256, 20_000], "queue": ["3", "100", "1bdp"],
        "qdisc": ["fifo", "fq_codel", "fq"], "initcwnd": [3, 10, 45, 100, 1000],
        "initrwnd": [20, 45, 1000], "response_bytes": [500, 70_000], "loss_percent": [0, 3],
        "congestion_control": ["cubic", "bbr"], "kept": [0, 1], "gap_ms": [0, 40]}
    for number in range(2):
        lists = {name: draw.sample(among, draw.randint(1, 2)) for name, among in values.items()
                 if name == "initcwnd" or draw.random() < 0.5}
        whole = of_list(kernel, tmp_path / f"{number}", lists)
        split = max(lists, key=lambda name: len(lists[name]))
        parts: dict[Trial, Record] = {}
        for part in reversed(lists[split]):
            parts |= of_list(kernel, tmp_path / f"{number}-{part}", {**lists, split: [part]})
        assert whole == parts


def test_runs_of_the_same_are_the_same_but_for_when(results: Path, kernel: Path) -> None:
    """With one guest, and with two that were interrupted: each row, and their order."""
    requested = ["--rtt", "30,300", "--bw", "100,20000", "--size", "9000,90000", "--iw", "3,30",
                 "--loss", "0%,2%", "--repeat", "1", "--quiet", "--no-figures"]
    runs_of = []
    for name, flags in (("one", ["--jobs", "1"]), ("resumed", ["--jobs", "2"])):
        folder = results / name
        if name == "resumed":
            with subprocess.Popen(watched(folder, *requested, *flags), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as begun:
                while begun.poll() is None and not any(
                        path.read_bytes().count(b"\n") > 2 for path in folder.glob("own/*/t*.csv")):
                    time.sleep(0.02)
                begun.send_signal(signal.SIGINT)
            assert begun.returncode == 130
        done = subprocess.run(command(folder, *requested, *flags), capture_output=True, text=True,
                              timeout=200, check=False)
        assert done.returncode == 0, done.stderr
        (run,) = (path.parent for path in folder.glob("own/2*/run.json"))
        with (run / "trials.csv").open() as file:
            rows = [{**row, "measured_at": ""} for row in csv.DictReader(file)]
        facts = json.loads((run / "run.json").read_text())
        assert bool(facts.get("resumed")) == (name == "resumed")
        runs_of.append((facts["trials"]["numbers_sha256"], rows))
    assert len([row for row in runs_of[0][1] if not row["what_if"]]) == 2 * 2 * 2 * 2 * 2
    assert runs_of[0] == runs_of[1]


def test_a_pause_is_as_long_after_another_trial(kernel: Path, tmp_path: Path) -> None:
    """To the nanosecond: 58.3 s into it the kernel forgets the connection before (TIME_WAIT)."""
    pause = replace(TRIAL, rtt_ms=10, burst_bytes=3000, gap_ms=58_900)
    (alone,) = measured(kernel, tmp_path / "alone", [pause]).values()
    assert measured(kernel, tmp_path / "after", [TRIAL, pause])[pause] == alone


def test_a_fetch_that_failed_leaves_nothing_to_the_next(kernel: Path, tmp_path: Path) -> None:
    """Its client tries a second connection, of which the server also reports."""
    nothing_passes = replace(TRIAL, rtt_ms=268.6, qdisc="cake", queue_packets=1, kept=1)
    after = replace(TRIAL, response_bytes=14_580)
    (alone,) = measured(kernel, tmp_path / "alone", [after]).values()
    records = measured(kernel, tmp_path / "after", [nothing_passes, TRIAL, after])
    assert records[nothing_passes].error.startswith("the response before: curl 28")
    assert records[TRIAL].verdict == alone.verdict == PASS and records[after] == alone
