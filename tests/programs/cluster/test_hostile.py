"""Workers that fail, die or mean harm, in Dask's own processes: nothing that they send is run."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from runs.cluster import cluster as cluster_module
from runs.cluster.cluster import RETRIES, Unreadable, connect
from tests.conftest import PROJECT
from tests.programs.cluster.dask_processes import cluster_of
from tests.programs.cluster.hostile_worker import WAYS
from tests.programs.cluster.test_node import BATCH, TOOLS, archive
from vtime.console import EngineCannot, EngineError

pytestmark = pytest.mark.skipif(find_spec("distributed") is None,
                                reason="./install.sh --with-cluster")
HOSTILE = PROJECT / "tests" / "programs" / "cluster" / "hostile_worker.py"
KERNEL = Path("7.2/linux")


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(name="address", scope="module")
def _address(folder: Path) -> Iterator[str]:
    """Of a scheduler whose workers answer as the file `way` says."""
    (folder / "way").write_text("honest")
    with cluster_of(2, folder, HOSTILE, WAY=str(folder / "way"),
                    TOUCHED=str(folder / "touched")) as address:
        yield address


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "pack", lambda kernel: archive())


def results(address: str, *contents: bytes, tools: dict[str, str] = TOOLS) -> list[bytes]:
    with connect(address, KERNEL, tools) as cluster:
        return [result.rpartition(b":")[2] for _, result in cluster.results(contents)]


@pytest.mark.parametrize("way", WAYS)
def test_what_a_worker_answers_wrongly_ends_the_run_and_is_not_run(
        way: str, folder: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "MESSAGE_BYTES", 2_000_000)
    (folder / "way").write_text(way)
    with pytest.raises(EngineError):
        results(address, b"abc", b"def")
    assert not (folder / "touched").exists()


def test_after_a_cluster_python_reads_as_before(folder: Path, address: str) -> None:
    dask = importlib.import_module("distributed")
    (folder / "way").write_text("honest")
    with connect(address, KERNEL, TOOLS) as cluster:
        assert cluster.guests == 2 and cluster.build == "7.2"
        assert cluster.facts == {"address": address, "dask": dask.__version__}
        with pytest.raises(Unreadable):
            pickle.loads(pickle.dumps(Path("a")))
    assert pickle.loads(pickle.dumps(Path("a"))) == Path("a")
    assert cluster.client.status == "closed"


# A batch and its worker --------------------------------------------------------------

# "kills" ends its worker whenever it is the first time, "fails" itself.
STRUCK = BATCH.replace("    content = sys.stdin.buffer.read()", """    import os, signal
    content = sys.stdin.buffer.read()
    with open(os.path.join(%r, content.decode()), "a") as seen:
        seen.write("x")
        first = seen.tell() == 1
    if content == b"kills" and first:
        os.kill(os.getppid(), signal.SIGKILL)""")


def test_the_batch_of_a_killed_worker_is_measured_again_and_what_fails_ends_the_run(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    monkeypatch.setattr(cluster_module, "pack", lambda kernel: archive(
        **{"commands/batch.py": STRUCK % str(seen)}))
    with cluster_of(2, tmp_path) as address:
        assert results(address, b"one", b"kills", b"two") == [b"eno", b"sllik", b"owt"]
        with pytest.raises(EngineError, match="tcp://127.*: commands/batch.py: the guest died"):
            results(address, b"fails")
    assert (seen / "kills").read_text() == "xx"
    assert (seen / "fails").read_text() == "x" * (1 + RETRIES)


@pytest.mark.parametrize(("version", "tools", "why"), [
    ("2.7", TOOLS, "its Dask runs on Python 3."),
    (cluster_module.PYTHON_VERSION, {**TOOLS, "curl": "curl 8"}, "instead of 'curl 8': use the same")])
def test_machines_that_are_not_alike_are_refused(
        version: str, tools: dict[str, str], why: str, folder: Path, address: str,
        monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "way").write_text("honest")
    monkeypatch.setattr(cluster_module, "PYTHON_VERSION", version)
    with pytest.raises(EngineCannot, match=f"tcp://.* cannot measure: .*{why}"):
        results(address, b"abc", tools=tools)


def test_a_scheduler_that_is_gone_ends_the_run(tmp_path: Path) -> None:
    running: Any = cluster_of(1, tmp_path)
    with pytest.raises(EngineError, match="the scheduler is lost"), \
            connect(running.__enter__(), KERNEL, TOOLS) as cluster:
        for _ in cluster.results([letter.encode() for letter in "abcdefghi" * 9]):
            running.__exit__(None, None, None)


def test_without_dask_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineCannot, match="needs Dask: run ./install.sh --with-cluster"), \
            connect("tcp://127.0.0.1:1", KERNEL, TOOLS):
        pass


def test_a_scheduler_without_workers_is_refused(tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "WORKERS_S", 0.1)
    with cluster_of(0, tmp_path) as address, \
            pytest.raises(EngineCannot, match="has no worker;"), \
            connect(address, KERNEL, TOOLS):
        pass
