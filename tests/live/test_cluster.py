"""A cluster of Dask's own processes, with TLS: the same answer as one machine, whatever dies."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.core.run import runs
from tests.live.conftest import command, watched
from tests.live.machines import SCHEDULER, WORKERS, Machines, parts_of

pytest.importorskip("distributed", reason="./install.sh --with-cluster")

GRID = ("--scenario", "zhao2019", "--rtt", "20,50,100,200,500,1000", "--bw", "256,1000,5000")
LOSSY = ("--name", "lossy", "--rtt", "50", "--bw", "2000", "--loss", "2", "--size", "60000",
         "--iw", "3,10", "--repeat", "12")
# One of each kind, as small as they come; what is compared beside it repeats to the microsecond.
ASKED = {"zhao2019": (*GRID, "--iw", "3,10"), "lossy": LOSSY,
         "handley1999_nagle": ("--scenario", "handley1999_nagle"),
         "ietf78_completion": ("--scenario", "ietf78_completion", "--iw", "10", "--load", "0.3",
                               "--size", "15000", "--repeat", "1")}
# How often the window was looked at, while the guest's clock stood: that depends on the processor.
COUNTED = ("measured_at", "samples", "rule_checked")
MICROSECOND_MS = 0.001_01


def begun(machines: Machines, results: Path, *flags: str) -> subprocess.Popen[str]:
    """run.sh, over these machines."""
    return subprocess.Popen(watched(results, "--cluster", machines.address, "--no-figures", *flags),
                            env=machines.environment, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory, kernel: Path) -> Iterator[Machines]:
    made = Machines(tmp_path_factory.mktemp("cluster") / "machines")
    yield made
    made.close()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, kernel: Path) -> Path:
    """The results of one guest of this machine's."""
    results = tmp_path_factory.mktemp("alone") / "results"
    for flags in ASKED.values():
        done = subprocess.run(command(results, "--jobs", "1", "--no-figures", *flags),
                              capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
    return results


def rows(results: Path, name: str) -> list[dict[str, str]]:
    with (runs.newest_first(results / name)[0] / runs.TRIALS_CSV).open(newline="") as file:
        return list(csv.DictReader(file))


def check_same(results: Path, alone: Path, name: str) -> None:
    """The same rows in the same order, every value to the microsecond."""
    found, expected = rows(results, name), rows(alone, name)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one.keys() == other.keys()
        for column in one.keys() - set(COUNTED):
            if one[column] != other[column]:
                assert column.endswith("_ms"), f"{column}: {one[column]}, not {other[column]}"
                assert abs(float(one[column]) - float(other[column])) <= MICROSECOND_MS


def finished(run: subprocess.Popen[str]) -> str:
    out, said = run.communicate(timeout=300)
    assert run.returncode == 0, said
    return out + said


@pytest.mark.parametrize("name", ASKED)
def test_a_cluster_gives_what_one_machine_gives(name: str, machines: Machines, alone: Path,
                                                results: Path) -> None:
    finished(begun(machines, results, *ASKED[name]))
    check_same(results, alone, name)
    told = json.loads((runs.newest_first(results / name)[0] / runs.RUN_JSON).read_text())
    (machine,) = told["cluster"]["machines"].values()
    assert machine["trials"] == len(rows(results, name)) and told["engine"] == "uml"


def test_guests_of_this_machine_by_local(alone: Path, results: Path, kernel: Path) -> None:
    done = subprocess.run(command(results, "--cluster", "local:2", "--no-figures",
                                  *ASKED["zhao2019"]), capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode == 0, done.stderr
    check_same(results, alone, "zhao2019")
    assert "Traceback" not in done.stderr and "distributed" not in done.stderr


def wait_for_a_batch(machines: Machines, name: str) -> None:
    """Until a worker measures: a process of its copy of the project runs."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        if subprocess.run(["pgrep", "-f", f"{machines.folder}/cache-{name}.*commands/batch.py --kernel"],
                          capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.05)
    raise AssertionError("no batch was begun")


@pytest.mark.parametrize("part", ["machine", "worker", "batch", "guest"])
def test_what_dies_costs_nothing(part: str, machines: Machines, alone: Path,
                                 results: Path) -> None:
    run = begun(machines, results, *ASKED["zhao2019"])
    wait_for_a_batch(machines, "one")
    if part == "machine":
        machines.kill("one")
        machines.work("one")
    else:
        until = time.monotonic() + 300
        while not (found := parts_of(machines.processes["one"].pid)[part]):
            assert time.monotonic() < until, f"there is no {part}"
            time.sleep(0.01)
        os.kill(found[0], signal.SIGKILL)
    said = finished(run)
    check_same(results, alone, "zhao2019")
    assert said.count("run.sh: ") <= 1 and "Traceback" not in said


def test_a_scheduler_that_is_started_again_is_found(machines: Machines, alone: Path,
                                                    results: Path) -> None:
    run = begun(machines, results, *ASKED["zhao2019"])
    wait_for_a_batch(machines, "two")
    machines.kill(SCHEDULER)
    time.sleep(1.0)
    machines.schedule()
    for name in WORKERS:  # workers end with their scheduler: docs/CLUSTER.md starts them anew
        machines.kill(name)
        machines.work(name)
    assert "is lost; it is looked for" in finished(run)
    check_same(results, alone, "zhao2019")


def test_damage_on_one_machine_is_measured_by_another(machines: Machines, alone: Path,
                                                      results: Path) -> None:
    """Its copy of the project is changed after it was checked."""
    run = begun(machines, results, *ASKED["zhao2019"])
    wait_for_a_batch(machines, "one")
    for path in (machines.folder / "cache-one").glob("first-flight/cluster/*/project/batch.py"):
        path.write_text("print('no result at all')\n")
    finished(run)
    check_same(results, alone, "zhao2019")


def test_ctrl_c_ends_what_the_machines_do_and_the_same_command_resumes(
        machines: Machines, alone: Path, results: Path) -> None:
    run = begun(machines, results, *ASKED["zhao2019"])
    wait_for_a_batch(machines, "two")
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=300)[1]
    assert run.returncode == 130
    assert said.splitlines()[-1] == (
        "run.sh: interrupted; what is measured is kept, the same command resumes")
    until = time.monotonic() + 300
    while subprocess.run(["pgrep", "-f", f"{machines.folder}.*commands/batch.py --kernel"],
                         capture_output=True, check=False).returncode == 0:
        assert time.monotonic() < until, "a batch outlives the run that asked for it"
        time.sleep(0.1)
    finished(begun(machines, results, *ASKED["zhao2019"]))
    check_same(results, alone, "zhao2019")


@pytest.mark.parametrize(("flags", "said"), [
    (("--cluster", "tls://127.0.0.1:1"), "no scheduler answers at tls://127.0.0.1:1"),
    (("--cluster", "tcp://192.0.2.1:8786"), "say --cluster-insecure"),
    (("--cluster", "somewhere"), "takes tls://host:port")])
def test_what_cannot_be_reached_is_one_line(flags: tuple[str, ...], said: str, results: Path,
                                            machines: Machines) -> None:
    done = subprocess.run(command(results, *flags, *ASKED["zhao2019"]), env=machines.environment,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 4 and said in done.stderr, done.stderr
    assert len(done.stderr.splitlines()) == 1
