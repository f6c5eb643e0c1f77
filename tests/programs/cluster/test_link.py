"""The link to a cluster on Dask's own scheduler and two of its workers, within this process."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.cluster import link as link_module
from engines.cluster.cluster import Cluster, opened
from engines.cluster.link import PREFIX, PROJECT, SchedulerLink, local_folder, packed
from engines.cluster.node import CODE, OK, SPENT
from engines.job import EngineCannot
from tests.programs.cluster.test_node import BATCH, TOOLS, archive

dask = pytest.importorskip("distributed", reason="./install.sh --with-cluster")
# One batch lasts until it is allowed to end.
SLOW = BATCH.replace("    sys.stdout", """    import os, time
    while content == b"slow" and not os.path.exists(%r):
        time.sleep(0.02)
    sys.stdout""")


@pytest.fixture(name="told")
def _told() -> list[str]:
    return []


@pytest.fixture(name="link")
def _link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]) -> Iterator[SchedulerLink]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(link_module, "packed",
                        lambda kernel: archive(**{"commands/batch.py": SLOW % str(tmp_path / "go")}))
    made = SchedulerLink("local:2", tmp_path / "7.2" / "linux", TOOLS, False, told.append)
    yield made
    made.close()


def measured(link: SchedulerLink, avoid: list[str]) -> tuple[str, frozenset[str]]:
    """The worker that measured a batch, and those that might have."""
    future, kept = link.submit(b"abc", avoid, urgent=False, attempts=3)
    assert link.wait(future, 60)
    head, content = opened(future.result())
    assert head["status"] == OK and content.endswith(b":cba")
    assert link.begun(future) == 1
    return head["worker"], kept


def test_batches_go_to_those_that_did_not_fail_and_can_measure(link: SchedulerLink, told: list[str]) -> None:
    one, two = link.workers()
    assert link.guests == 2 and link.build == "7.2" and link.version == dask.__version__
    assert measured(link, [])[1] == frozenset()  # all may have it
    assert measured(link, [one]) == (two, frozenset({two}))
    assert measured(link, [one, two])[1] == {one, two}  # rather one of those than none
    link.refuse(one, "its machine", "no curl")
    assert told == ["its machine does not measure: no curl"]
    assert link.count(link.workers()) == {two} and link.guests == 1
    assert measured(link, []) == measured(link, [two]) == (two, frozenset({two}))
    with pytest.raises(EngineCannot, match="no machine of the cluster can measure; other: no wget"):
        link.refuse(two, "other", "no wget")


def test_what_a_refused_worker_has_is_known_and_waited_for(link: SchedulerLink, tmp_path: Path) -> None:
    one, two = link.workers()
    future, _ = link.submit(b"slow", [two], urgent=False, attempts=3)
    while not link.begun(future):
        assert not link.wait(future, 0.02)
    assert link.held() == set()
    link.refuse(one, "its machine", "no curl")
    assert link.held() == {future.key}
    (tmp_path / "go").touch()
    assert link.wait(future, 60) and link.held() == set()


@pytest.mark.parametrize(("attempts", "status"), [(1, OK), (0, SPENT)])
def test_a_batch_whose_attempts_are_spent_is_not_measured(link: SchedulerLink, attempts: int,
                                                          status: str) -> None:
    future, _ = link.submit(b"abc", [], urgent=True, attempts=attempts)
    assert link.wait(future, 60) and opened(future.result())[0]["status"] == status


def test_a_cluster_that_is_closed_has_no_connection(link: SchedulerLink) -> None:
    made = Cluster(link)
    assert made.facts == {"address": "local:2", "dask": dask.__version__, "refused": {}}
    client = link.client
    assert client.status == "running"
    made.close()
    assert client.status == "closed"


def test_what_a_killed_local_cluster_left_goes_with_the_next(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[str]) -> None:
    """Not what another one that runs has."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"{PREFIX}killed" / "dask-worker-space" / "worker-1").mkdir(parents=True)
    with local_folder() as other:
        monkeypatch.setattr(link_module, "packed", lambda kernel: archive())
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        made = SchedulerLink("local:1", tmp_path / "7.2" / "linux", TOOLS, False, told.append)
        (own,) = {each.name for each in tmp_path.glob(f"{PREFIX}*")} - {Path(other).name}
        assert (tmp_path / own / "dask-worker-space").is_dir() and "killed" not in own
        made.close()
        assert [each.name for each in tmp_path.glob(f"{PREFIX}*")] == [Path(other).name]
    assert not list(tmp_path.glob(f"{PREFIX}*")) and not (tmp_path / "dask-worker-space").exists()


def test_programs_are_sent_as_they_may_be_run(tmp_path: Path) -> None:
    (tmp_path / "linux").write_bytes(b"kernel")
    with zipfile.ZipFile(io.BytesIO(packed(tmp_path / "linux"))) as files:
        for name in ("install.sh", "commands/batch.py", "engines/worker/worker.py"):
            mode = files.getinfo(f"{CODE}/{name}").external_attr >> 16
            assert mode == (PROJECT / name).stat().st_mode & 0o755, name
