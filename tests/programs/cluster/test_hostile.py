"""A worker of a cluster that means harm, in Dask's own processes: nothing that it sends is run."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.cluster import cluster as cluster_module
from engines.cluster import link as link_module
from engines.cluster.cluster import ATTEMPTS, MOST_LOST, Cluster
from engines.cluster.link import NO_DATA, SchedulerLink, Unreadable
from engines.job import EngineError
from tests.conftest import PROJECT
from tests.programs.cluster.dask_processes import cluster_of
from tests.programs.cluster.test_node import TOOLS, archive

pytest.importorskip("distributed", reason="./install.sh --with-cluster")
HOSTILE = PROJECT / "tests" / "programs" / "cluster" / "hostile_worker.py"
@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(name="address", scope="module")
def _address(folder: Path) -> Iterator[str]:
    """Of a scheduler whose worker answers as the file `way` says."""
    with cluster_of(1, folder, HOSTILE, WAY=str(folder / "way"),
                    TOUCHED=str(folder / "touched")) as address:
        yield address


def results(address: str, told: list[str]) -> list[str]:
    """What comes of two batches."""
    made = Cluster(SchedulerLink(address, Path("7.2/linux"), TOOLS, False, told.append))
    try:
        return [found for _, found in made.results(
            ["abc", "def"], str.encode, lambda task, content: content.decode()[-3:],
            lambda task, why: why)]
    finally:
        made.close()


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "packed", lambda kernel: archive())
    monkeypatch.setattr(cluster_module, "LOOK_S", 0.2)


@pytest.mark.parametrize("way", ["result", "large"])
def test_an_answer_that_is_a_program_is_an_attempt_of_three(
        way: str, folder: Path, address: str) -> None:
    (folder / "way").write_text(way)
    told: list[str] = []
    assert results(address, told) == [f"{ATTEMPTS} workers failed: {NO_DATA}"] * 2
    assert not told and not (folder / "touched").exists()


@pytest.mark.parametrize("way", ["exception", "message"])
def test_an_error_that_is_a_program_ends_the_run(way: str, folder: Path, address: str) -> None:
    """Dask does not listen any more after it."""
    (folder / "way").write_text(way)
    with pytest.raises(EngineError, match=f"was lost {MOST_LOST + 1} times, or sent what cannot"):
        results(address, [])
    assert not (folder / "touched").exists()


def test_what_workers_log_is_not_run_and_not_printed(
        folder: Path, address: str, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "way").write_text("log")
    assert results(address, []) == ["cba", "fed"]
    assert not (folder / "touched").exists()
    assert "printed" not in "".join(capfd.readouterr())


def test_after_a_cluster_python_s_pickle_is_as_before(folder: Path, address: str) -> None:
    (folder / "way").write_text("honest")
    link = SchedulerLink(address, Path("7.2/linux"), TOOLS, False, print)
    try:
        with pytest.raises(Unreadable):
            pickle.loads(pickle.dumps(Path("a")))
    finally:
        link.close()
    assert pickle.loads(pickle.dumps(Path("a"))) == Path("a")
