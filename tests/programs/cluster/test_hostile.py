"""Workers that fail, die or mean harm, in Dask's own processes: others measure, nothing is run."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.cluster import cluster as cluster_module
from engines.cluster import walls
from engines.cluster.cluster import ATTEMPTS, Cluster
from engines.console import EngineCannot, EngineError
from tests.conftest import PROJECT
from tests.programs.cluster.dask_processes import cluster_of
from tests.programs.cluster.hostile_worker import WAYS
from tests.programs.cluster.test_node import BATCH, TOOLS, archive

dask = pytest.importorskip("distributed", reason="./install.sh --with-cluster")
HOSTILE = PROJECT / "tests" / "programs" / "cluster" / "hostile_worker.py"


class Reversed:
    """A batch whose result is its text, reversed (BATCH)."""

    def __init__(self, content: str) -> None:
        self.content = content

    def payload(self) -> bytes:
        return self.content.encode()

    def read(self, answer: bytes) -> str:
        found = answer.decode().rpartition(":")[2]
        if found != self.content[::-1]:
            raise ValueError(f"it is no result of {self.content}")
        return found

    def failed(self, why: str) -> str:
        return f"failed: {why}"


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(name="address", scope="module")
def _address(folder: Path) -> Iterator[str]:
    """Of a scheduler whose first worker of two answers as the file `way` says."""
    with cluster_of(2, folder, HOSTILE, WAY=str(folder / "way"), TOUCHED=str(folder / "touched"),
                    DASK_DISTRIBUTED__COMM__COMPRESSION="zlib") as address:
        yield address


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "packed", lambda kernel: archive())
    monkeypatch.setattr(cluster_module, "LOOK_S", 0.2)


def results(address: str, told: list[str], *contents: str,
            tools: dict[str, str] = TOOLS) -> list[str]:
    made = Cluster(address, Path("7.2/linux"), tools, told.append)
    try:
        return [found for _, found in made.results(map(Reversed, contents))]
    finally:
        made.close()


@pytest.mark.parametrize("way", WAYS)
def test_what_one_worker_answers_wrongly_another_one_measures(
        way: str, folder: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one line that names the worker, and without running what it sent."""
    monkeypatch.setattr(walls, "MESSAGE_BYTES", 2_000_000)
    (folder / "way").write_text(way)
    told: list[str] = []
    assert results(address, told, "abc", "def", "ghi", "jkl") == ["cba", "fed", "ihg", "lkj"]
    assert told and not (folder / "touched").exists()
    for line in told:
        named, _, why = line.partition(": ")
        assert named.startswith("tcp://127.0.0.1:") or way.startswith("exception")
        assert why.endswith("; its batch is measured by another worker")
        assert {"too much": "it sent 3000", "wrong rows": "it is no result of "}.get(
            way, walls.NO_DATA) in why


def test_what_workers_log_is_not_run_and_not_printed(
        folder: Path, address: str, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "way").write_text("log")
    assert results(address, [], "abc", "def") == ["cba", "fed"]
    assert not (folder / "touched").exists()
    assert "printed" not in "".join(capfd.readouterr())


def test_after_a_cluster_python_reads_as_before(folder: Path, address: str) -> None:
    (folder / "way").write_text("honest")
    made = Cluster(address, Path("7.2/linux"), TOOLS, print)
    try:
        assert made.guests == 2 and made.build == "7.2"
        assert made.facts == {"address": address, "dask": dask.__version__, "refused": {}}
        with pytest.raises(walls.Unreadable):
            pickle.loads(pickle.dumps(Path("a")))
    finally:
        made.close()
    assert pickle.loads(pickle.dumps(Path("a"))) == Path("a")
    protocol = dask.protocol
    assert protocol.deserialize(*protocol.serialize(Path("a"))) == Path("a")
    assert made.client.status == "closed"


# A batch and its worker --------------------------------------------------------------

# "kills" ends its worker whenever it is the first time, "fails" itself.
STRUCK = BATCH.replace("    content = sys.stdin.buffer.read()", """    import os, signal
    content = sys.stdin.buffer.read()
    with open(os.path.join(%r, content.decode()), "a") as seen:
        seen.write("x")
        first = seen.tell() == 1
    if content == b"kills" and first:
        os.kill(os.getppid(), signal.SIGKILL)""")


def test_the_batch_of_a_killed_worker_is_measured_again_and_what_fails_three_times(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, told = tmp_path / "seen", list[str]()
    seen.mkdir()
    monkeypatch.setattr(cluster_module, "packed", lambda kernel: archive(
        **{"commands/batch.py": STRUCK % str(seen)}))
    with cluster_of(2, tmp_path) as address:
        assert results(address, told, "one", "kills", "fails", "two") == [
            "eno", "sllik", f"failed: {ATTEMPTS} workers failed: commands/batch.py: the guest died",
            "owt"]
    assert (seen / "kills").read_text() == "xx" and (seen / "fails").read_text() == "x" * ATTEMPTS
    assert sum(line.endswith("is gone; what it was given is measured by another worker")
               for line in told) <= 1
    assert sum("the guest died; its batch is" in line for line in told) == ATTEMPTS - 1


@pytest.mark.parametrize(("version", "tools", "why"), [
    ("2.7", TOOLS, "its Dask runs on Python 3."),
    (cluster_module.PYTHON_VERSION, {**TOOLS, "curl": "curl 8"}, "instead of 'curl 8': the same")])
def test_machines_that_are_not_alike_are_refused(
        version: str, tools: dict[str, str], why: str, folder: Path, address: str,
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with a line; of the last one it ends the run."""
    (folder / "way").write_text("honest")
    monkeypatch.setattr(cluster_module, "PYTHON_VERSION", version)
    told: list[str] = []
    with pytest.raises(EngineCannot, match="no machine of the cluster can measure; tcp://") as ends:
        results(address, told, "abc", tools=tools)
    assert why in str(ends.value) and len(told) == 1 and why in told[0]


def test_a_scheduler_or_all_workers_gone_end_the_run(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "ALONE_S", 0.2)

    class Ending(Reversed):
        """While it is read the cluster ends."""

        def read(self, answer: bytes) -> str:
            running.__exit__(None, None, None)
            return super().read(answer)

    running: Any = cluster_of(1, tmp_path)
    made = Cluster(running.__enter__(), Path("7.2/linux"), TOOLS, print)
    with pytest.raises(EngineError, match="the scheduler is lost|has no worker any more"):
        try:
            list(made.results([Ending("abc"), *map(Reversed, "defghijkl")]))
        finally:
            made.close()


def test_without_dask_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineCannot, match="needs Dask: run ./install.sh --with-cluster"):
        Cluster("tcp://127.0.0.1:1", Path("7.2/linux"), TOOLS, print)


def test_a_scheduler_without_workers_is_refused(tmp_path: Path) -> None:
    with cluster_of(0, tmp_path) as address, pytest.raises(EngineCannot, match="has no worker;"):
        Cluster(address, Path("7.2/linux"), TOOLS, print)
