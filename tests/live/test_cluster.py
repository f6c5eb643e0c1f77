"""A cluster of Dask's processes with TLS has the rows of one machine, whatever dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from firstflight.runs import runs, scenario_file
from firstflight.runs.batches import TrialBatch
from firstflight.runs.kinds import Overrides
from firstflight.runs.measuring import OneMachine
from firstflight.runs.results.records import RowWriter, columns_of
from firstflight.study import registry
from firstflight.testbed import site_store
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.hosts.browser.client import PROGRAM
from firstflight.workloads.page.record import ObjectTimes, read_file
from tests import leftovers
from tests.live.conftest import PROJECT, command, rows, watched
from tests.programs.dask_processes import Machines, certificates
from tests.running import HANGS_S, run_program, wait_until
from vtime import system

# distributed is not imported here, which would take each worker of pytest a quarter of a second.
pytestmark = pytest.mark.skipif(find_spec("distributed") is None,
                                reason="./install.sh --with-cluster")

# So many trials that a machine can die during them; some have losses.
MANY = ("--name", "many", "--rtt", "20,100,500", "--bw", "1000,5000", "--loss", "0%,2%",
        "--size", "20000", "--iw", "3,10", "--repeat", "1", "--no-reasons")
PAGES = ("--name", "pages", "--objects", "6", "--size", "6kB", "--rtt", "40", "--bw", "5M", "--iw",
         "3,10", "--connections", "1,2", "--loss", "0%,3%", "--repeat", "1", "--seed", "4",
         "--chain", "4kB", "--signature", "ecdsa")
# A small scenario of each other kind, and what is measured of it.
OF_EACH_KIND = {
    "handley1999_memory": Overrides({}),
    str(PROJECT / "tests/golden/load/small.toml"): Overrides({"initcwnd": [10], "load": [0.5]},
                                                             repeat=1),
    str(PROJECT / "tests/golden/page/small.toml"): Overrides(
        {"initcwnd": [10], "loss_percent": [0.0], "queue": ["100"]})}
# Columns that differ in each run. How often a window is sampled while the guest's clock stands
# still depends on the processor.
COUNTED = ("measured_at", "samples", "rule_checked")
MICROSECOND_MS = 0.001_01  # a microsecond, and what rounding adds
NEAR_MS = 0.1  # by which times of a page in a browser may differ


def begun(machines: Machines, results: Path, *flags: str) -> subprocess.Popen[str]:
    """A run of run.sh on these machines, which has begun."""
    return subprocess.Popen(watched(results, "--cluster", machines.address, "--no-figures", *flags),
                            env=machines.environment, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory, kernel: Path) -> Iterator[Machines]:
    started = Machines(tmp_path_factory.mktemp("cluster") / "machines")
    yield started
    started.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, kernel: Path) -> Path:
    """The results of MANY as one guest on this machine measures them."""
    results = tmp_path_factory.mktemp("alone") / "results"
    done = run_program(command(results, "--jobs", "1", "--no-figures", *MANY))
    assert done.returncode == 0, done.stderr
    return results


def check_same(found: list[dict[str, str]], expected: list[dict[str, str]]) -> None:
    """Assert that both have the same rows in the same order, every time to the microsecond."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one.keys() == other.keys()
        for column in one.keys() - set(COUNTED):
            if one[column] != other[column]:
                assert column.endswith("_ms"), f"{column}: {one[column]}, not {other[column]}"
                assert abs(float(one[column]) - float(other[column])) <= MICROSECOND_MS


def finished(run: subprocess.Popen[str]) -> str:
    """The output of a run that has to succeed, when it has ended."""
    out, said = run.communicate(timeout=HANGS_S)
    assert run.returncode == 0, said
    return out + said


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_a_batch_of_each_kind_has_the_rows_that_one_machine_measures(name: str, kernel: Path,
                                                                     tmp_path: Path) -> None:
    """The program that runs on a machine of a cluster has the same rows, kept files and captures.
    """
    study = registry.study_of(scenario_file.find(name), OF_EACH_KIND[name])
    captured = [trial.id for trial in study.trials[:1]]
    batch = TrialBatch(study, study.trials, captured)
    done = run_program(
        [sys.executable, PROJECT / "firstflight" / "commands" / "batch.py", "--kernel", kernel],
        input=batch.payload(), text=False)
    assert done.returncode == 0, done.stderr
    found, facts = batch.read(done.stdout)
    here = list(OneMachine(UmlEngine(kernel, 1)).judged(study, study.trials, set(captured),
                                                        tmp_path))
    columns = columns_of(study.kind.record)
    check_same(*([dict(zip(columns, RowWriter(study.kind.record, columns).row(one.record)))
                  for one in judged] for judged in (found, here)))
    assert [one.captures.keys() for one in found] == [one.captures.keys() for one in here]
    assert [one.files.keys() for one in found] == [one.files.keys() for one in here]
    assert facts["kernel"] and facts["machine"]["cpus"]


def measuring(machines: Machines) -> list[tuple[str, int]]:
    """The machine and the process of each batch that is being measured."""
    def below(process: int) -> Iterator[int]:
        for child in leftovers.children(process):
            yield child
            yield from below(child)

    return [(name, process) for name in ("one", "two") if name in machines.processes
            for process in below(machines.processes[name].pid)
            if b"batch.py\0--kernel" in leftovers.command_of(process)]


def wait_for_a_batch(machines: Machines, run: subprocess.Popen[str],
                     other: int = 0) -> tuple[str, int]:
    """Wait until a batch is measured on any machine; return its machine and process.

    One of the machines may get no batch for a long time. other: a process that does not count.
    """
    found: list[tuple[str, int]] = []

    def begun() -> list[tuple[str, int]]:
        assert run.poll() is None, f"no batch was begun: {run.communicate()}"
        found[:] = [batch for batch in measuring(machines) if batch[1] != other]
        return found

    wait_until(begun, "a batch")
    return found[0]


def test_interrupted_and_killed_batches_change_no_row_of_a_clusters_run(
        machines: Machines, alone: Path, results: Path) -> None:
    """Ctrl-C ends all batches. In the resumed run a batch is killed, and then a machine."""
    run = begun(machines, results, *MANY)
    wait_for_a_batch(machines, run)
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=HANGS_S)[1]
    assert run.returncode == 130
    assert said.splitlines()[-1] in (  # without, or with, a batch that had come back by then
        "run.sh: interrupted", "run.sh: interrupted; what is measured is kept, the same command"
        " resumes")
    wait_until(lambda: not measuring(machines), "the end of the interrupted run's batches")
    run = begun(machines, results, *MANY)
    _, batch = wait_for_a_batch(machines, run)
    os.kill(batch, signal.SIGKILL)
    name, _ = wait_for_a_batch(machines, run, batch)
    machines.kill(name)
    machines.work(name)
    said = finished(run)
    check_same(rows(results, "many"), rows(alone, "many"))
    assert "run.sh: " not in said  # Dask gives the batch to another worker, without a word
    facts = json.loads((runs.newest_first(results / "many")[0] / runs.RUN_JSON).read_text())
    assert sum(machine["trials"] for machine in facts["cluster"]["machines"].values()) > 0
    assert facts["engine"] == "uml"


@pytest.mark.skipif(not PROGRAM.exists(), reason="./install.sh --with-browser")
def test_a_cluster_resumes_pages_in_a_browser(machines: Machines, results: Path, kernel: Path,
                                              tmp_path: Path) -> None:
    """One guest has begun the run. Only its machine has the site in its store.

    A browser's start takes a guest more time than all pages, so each part has one guest.
    """
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "index.html").write_text("<!doctype html><p>x</p>" + "".join(
        f"<img src={number}.svg>" for number in range(6)))
    for number in range(6):
        (folder / f"{number}.svg").write_text(f"<svg>{number * 1000}</svg>" * 200)
    own = tmp_path / "cache" / system.cache().parent.name
    own.mkdir(parents=True)
    for entry in system.cache().parent.iterdir():
        if entry.name != site_store.folder().name:
            (own / entry.name).symlink_to(entry)
    environment = {**machines.environment, "XDG_CACHE_HOME": str(own.parent)}
    found = {}
    for home, flags in ((results, ("--jobs", "1")),
                        (tmp_path / "resumed" / "results", ("--cluster", machines.address))):
        if home != results:
            shutil.copytree(results, home, symlinks=True)
            keep_the_first(home / "site", 1)
        done = run_program(command(home, *flags, "--no-figures", "--name", "site", "--page", folder,
                                   "--client", "chromium", "--rtt", "20", "--bw", "5M", "--iw",
                                   "3,10", "--repeat", "1"), env=environment)
        assert done.returncode == 0, done.stderr
        found[home] = rows(home, "site")
    measured, resumed = found.values()
    assert [row["verdict"] for row in measured] == ["pass"] * 2 == [
        row["verdict"] for row in resumed]
    assert [row["measured_at"] == before["measured_at"]
            for row, before in zip(resumed, measured)] == [True, False]
    for row, before in zip(resumed, measured):
        assert float(row["page_ms"]) == pytest.approx(float(before["page_ms"]), abs=NEAR_MS)
        assert (row["requests"], row["site"]) == ("7", before["site"])


def objects_of_pages(results: Path) -> dict[str, list[ObjectTimes]]:
    """The objects of each page of the newest run, by the page's folder."""
    folder = runs.newest_first(results / "pages")[0]
    return {str(path.relative_to(folder)): read_file(path.read_bytes(), str(path))
            for path in sorted(folder.rglob("*objects.csv"))}


def test_a_cluster_resumes_pages_that_one_guest_began(machines: Machines, results: Path,
                                                      kernel: Path) -> None:
    """They are pages over TLS with losses, on one and on two connections.

    The cluster measures all but the first three again.
    """
    resumed_in = results.parent / "resumed" / "results"
    for home, flags in ((results, ("--jobs", "1")),
                        (resumed_in, ("--cluster", machines.address))):
        if home == resumed_in:
            shutil.copytree(results, resumed_in, symlinks=True)
            keep_the_first(resumed_in / "pages", 3)
        done = run_program(command(home, *flags, "--no-figures", *PAGES),
                           env=machines.environment)
        assert done.returncode == 0, done.stderr
    expected, resumed = (rows(home, "pages") for home in (results, resumed_in))
    assert len(expected) == 8 and all(row["verdict"] == "pass" for row in expected)
    assert any(int(row["retransmissions"]) for row in expected[3:])
    check_same(resumed, expected)
    assert [row["measured_at"] == before["measured_at"]
            for row, before in zip(resumed, expected)] == [True] * 3 + [False] * 5
    of_alone, of_resumed = (objects_of_pages(home) for home in (results, resumed_in))
    assert len(of_alone) == 8 and of_alone.keys() == of_resumed.keys()
    for page, times in of_alone.items():
        for one, other in zip(of_resumed[page], times, strict=True):
            assert one[:4] == other[:4]
            assert one[4:] == pytest.approx(other[4:], abs=MICROSECOND_MS)


def keep_the_first(results: Path, count: int) -> None:
    """Change the newest run as if it had been interrupted after so many trials."""
    folder = runs.newest_first(results)[0]
    table = folder / runs.TRIALS_CSV
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:1 + count]))
    facts = json.loads((folder / runs.RUN_JSON).read_text())
    facts.pop("trials")
    (folder / runs.RUN_JSON).write_text(json.dumps({**facts, "state": "running"}))


@pytest.mark.parametrize(("address", "said"), [
    ("tls://127.0.0.1:1", "Connection refused): start one with dask-scheduler"),
    ("tcp://192.0.2.1:8786", "use tls://"),
    ("other", "certificate verify failed"),
    ("half", "[SSL: TLSV1_ALERT_|[Errno 104] Connection reset by peer"),
    ("none", "no certificate is given to Dask")])
def test_a_cluster_that_cannot_be_reached_is_refused_in_one_line(
        address: str, said: str, results: Path, machines: Machines, tmp_path: Path) -> None:
    """other: this machine has another authority and its certificate. half: it has the right
    authority, and a certificate of another one. none: it has neither.
    """
    environment = machines.environment
    if address in ("other", "half"):
        environment = certificates(tmp_path / "other")
        if address == "half":
            shutil.copy(machines.folder / "ca.pem", tmp_path / "other")
    elif address == "none":
        environment = dict(os.environ)
    done = run_program(
        command(results, "--cluster", address if ":" in address else machines.address,
                *MANY), env=environment)
    assert done.returncode == 4 and any(
        words in done.stderr for words in said.split("|")), done.stderr
    assert len(done.stderr.splitlines()) == 1
