"""A folder that takes no more stops a run: it is never recorded as what a trial did."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from firstflight.testbed import job
from firstflight.testbed.job import JobFolder, StorageError, WorkerProcess
from vtime import shared_folder
from vtime.console import EngineError

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
# The worker itself, with a bench that has no network: "tool" fails as a program of ours does.
WORKER = """
import sys
from pathlib import Path
from firstflight.testbed.worker import worker
from firstflight.testbed.bench import WorkerError

class Bench:
    sysctls = {}
    def __init__(self, folder, project, sysctls, alive): self.folder = folder
    def prepare(self, trial): pass
    def measure(self, trial, observation):
        observation["skipped"] = "x" * trial["says"]
        if trial["id"] == "tool": raise WorkerError("firstflight.testbed.hosts.load_client ended")
    def add_recorded(self, observation): pass
    def close(self): pass

worker.bench_of = lambda kind: Bench
sys.exit(worker.main(Path(sys.argv[1]), Path(sys.argv[2])))
"""


def limit(most_bytes: int | None) -> Callable[[], None]:
    """The largest file of a process that is to be started."""
    def set_limit() -> None:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return set_limit


def worked(tmp_path: Path, most_bytes: int | None, *trials: tuple[str, int]) -> JobFolder:
    """The folder after a worker was at it."""
    job = JobFolder(tmp_path / "job", [{"kind": "fetch", "id": name, "says": says}
                                       for name, says in trials], {})
    subprocess.run([sys.executable, "-c", WORKER, str(job.path), str(PROJECT)], cwd=PROJECT,
                   preexec_fn=limit(most_bytes), check=False, timeout=300)
    return job


def said(job: JobFolder) -> list[str]:
    lines = map(json.loads, job.new_lines())
    return [str(line.get("trial", line.get("stage"))) for line in lines]


def test_with_room_nothing_is_said(tmp_path: Path) -> None:
    job = worked(tmp_path, None, ("one", 10), ("tool", 10))
    lines = [json.loads(line) for line in job.new_lines()]
    assert [line.get("error") for line in lines if "trial" in line] == [
        None, "firstflight.testbed.hosts.load_client ended"] and lines[-1]["stage"] == "done"
    job.check_storage()
    assert not (job.path / shared_folder.PROBE).exists()


def test_an_observation_that_does_not_fit_is_none(tmp_path: Path) -> None:
    """Not a part of a line, no failed trial, and the reason, though the file takes no more."""
    job = worked(tmp_path, 2000, ("one", 1000), ("two", 1500), ("three", 10))
    assert said(job) == ["ready", "one"] and job.torn == b""
    with pytest.raises(StorageError, match=f"^{job.path}: cannot be written: File too large$"):
        job.check_storage()


def test_a_tool_that_found_no_room_is_no_failed_transfer(tmp_path: Path) -> None:
    job = worked(tmp_path, shared_folder.PROBE_BYTES // 2, ("one", 10), ("tool", 10), ("three", 10))
    assert said(job) == ["ready", "one"]
    with pytest.raises(StorageError, match="File too large"):
        job.check_storage()


def test_an_engine_stops_where_its_worker_could_not_write(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job", [{"kind": "fetch", "id": name, "says": 900}
                                       for name in "ab"], {})
    process = WorkerProcess(job, [{"id": "a"}, {"id": "b"}], [
        "prlimit", "--fsize=1500", sys.executable, "-c", WORKER, str(job.path), str(PROJECT)],
        PROJECT, 60.0, 60.0)
    seen = []
    with pytest.raises(StorageError, match="File too large"):
        while True:
            seen += process.poll()
    assert [each.trial_id for each in seen] == ["a"] and list(process.waiting) == ["b"]
    process.stop()


def test_what_was_observed_before_the_end_is_given_first(tmp_path: Path) -> None:
    """Both stand in one piece of the file."""
    job = JobFolder(tmp_path / "job", [], {})
    job.lines_path.write_text("".join(json.dumps(line) + "\n" for line in (
        {"stage": "ready", "facts": {}}, {"trial": "a"}, {"stage": "failed", "reason": "why"})))
    process = WorkerProcess(job, [{"id": "a"}, {"id": "b"}], ["true"], PROJECT, 60.0, 60.0)
    assert [each.trial_id for each in process.poll()] == ["a"]
    with pytest.raises(Exception, match="^the worker reports: why$"):
        list(process.poll())
    process.stop()


def test_the_reserve_is_overwritten_in_place(tmp_path: Path) -> None:
    assert shared_folder.write_error(tmp_path) == ""
    shared_folder.reserve(tmp_path)
    before = (tmp_path / shared_folder.RESERVE).stat()
    assert shared_folder.write_error(tmp_path) == ""
    shared_folder.note_write_error(tmp_path, OSError(errno.ENOSPC, "full"))
    after = (tmp_path / shared_folder.RESERVE).stat()
    assert shared_folder.write_error(tmp_path) == os.strerror(errno.ENOSPC)
    assert (after.st_size, after.st_blocks) == (before.st_size, before.st_blocks)


def test_what_a_guest_fills_its_folder_with_is_counted(tmp_path: Path) -> None:
    """Files, folders however deep, and bytes on the disk; of holes only what lies between."""
    assert not shared_folder.holds_more(tmp_path, 0, 0)
    (tmp_path / "a").write_bytes(bytes(100_000))
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(1 << 40)
    assert not shared_folder.holds_more(tmp_path, 2, 200_000)
    assert shared_folder.holds_more(tmp_path, 1, 200_000)
    assert shared_folder.holds_more(tmp_path, 2, 50_000)
    assert not shared_folder.holds_more(tmp_path, 2, 50_000, {"a"})
    subprocess.run(["mkdir", "-p", str(tmp_path / "/".join(["d"] * 1500))], check=True)
    assert shared_folder.holds_more(tmp_path, 1000, 1 << 40)
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_a_worker_that_fills_the_disk_is_ended(tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MOST_HELD_BYTES", 1 << 20)
    monkeypatch.setattr(job, "ROOM_S", 0.0)
    folder = JobFolder(tmp_path / "job", [], {})
    filling = f"open({str(folder.path / 'evil')!r}, 'wb').write(bytes(4 << 20)); input()"
    worker = WorkerProcess(folder, [{"id": "t"}], [sys.executable, "-c", filling], tmp_path, 60, 60)
    try:
        with pytest.raises(EngineError, match="the worker wrote more than"):
            while True:
                list(worker.poll())
    finally:
        worker.stop()
