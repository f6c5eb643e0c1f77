"""What goes to a worker and comes back: trials dealt out, lines and packets read."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from firstflight.testbed.job import JobFolder, WorkerLost, WorkerProcess, shared_out
from vtime.console import EngineCannot, EngineError
from vtime.shared_folder import FREED_BYTES, GrowingFile, open_within


def trial(name: str, rtt_ms: float, **more: Any) -> dict[str, Any]:
    return {"id": name, "network": {"rtt_ms": rtt_ms}, **more}


def test_trials_of_one_shape_stay_together_and_in_order() -> None:
    trials = [trial("a1", 1), trial("b1", 2), trial("a2", 1), trial("c1", 3), trial("b2", 2)]
    batches = [[each["id"] for each in batch] for batch in shared_out(trials, 2)]
    assert batches == [["a1", "a2", "c1"], ["b1", "b2"]]
    assert len(shared_out(trials[:1], 4)) == 1


def test_a_trial_that_has_to_be_alone_gets_a_worker_of_its_own() -> None:
    batches = shared_out([trial("a1", 1, alone=True), trial("a2", 1, alone=True)], 1)
    assert [len(batch) for batch in batches] == [1, 1]


def test_only_whole_lines_are_read_and_packets_come_with_them(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "job", [], {})
    (folder.path / "client.pcap").write_bytes(b"headerPACKETSmore")
    (folder.path / "window.csv").write_bytes(b"time\n")
    said = json.dumps({"trial": "t", "captures": {"client": {"offset": 6, "bytes": 7}},
                       "files": {"window": "window.csv"}})
    with folder.lines_path.open("a") as lines:
        lines.write(f"{said}\n{said[:9]}")
    (line,) = folder.new_lines()
    with folder.lines_path.open("a") as lines:
        lines.write(f"{said[9:]}\n")
    assert folder.new_lines() == [line]
    seen = folder.observation(json.loads(line))
    assert (seen.trial_id, seen.client_pcap, seen.server_pcap) == ("t", b"PACKETS", b"")
    assert seen.files == {"window": b"time\n"}
    folder.remove()
    assert not folder.path.exists()


def test_what_was_read_takes_no_room(tmp_path: Path) -> None:
    """Lines and packets are appended to for ever; what else a trial leaves is removed."""
    folder = JobFolder(tmp_path / "job", [], {})
    packets, rows = bytes(range(256)) * 400, folder.path / "window.csv"
    for number in range(40):
        with (folder.path / "client.pcap").open("ab") as capture:
            place = {"offset": capture.tell(), "bytes": len(packets)}
            capture.write(packets)
        rows.write_bytes(b"time\n")
        said = {"trial": str(number), "captures": {"client": place}, "error": "x" * 60_000,
                "files": {"window": rows.name}}
        with folder.lines_path.open("a") as lines:
            lines.write(f"{json.dumps(said)}\n")
        (line,) = folder.new_lines()
        seen = folder.observation(json.loads(line))
        assert (seen.client_pcap, seen.trial_id) == (packets, str(number))
        assert seen.files == {"window": b"time\n"} and not rows.exists()
    for path in (folder.path / "client.pcap", folder.lines_path):
        state = path.stat()
        assert state.st_size > 2 * FREED_BYTES
        assert state.st_blocks * 512 < 1.2 * FREED_BYTES, "this file system keeps it all"
    folder.remove()


def test_a_file_is_read_while_it_grows(tmp_path: Path) -> None:
    path, piece = tmp_path / "frames", os.urandom(1 << 16)
    with path.open("ab") as written, path.open("r+b") as file:
        growing = GrowingFile(file)
        for _ in range(64):
            written.write(piece)
            written.flush()
            assert growing.read(1 << 16) == piece
        assert growing.read(1 << 16) == b""
        written.write(b"the end")
        written.flush()
        assert growing.read(1 << 16) == b"the end"
    assert path.stat().st_size == 64 * len(piece) + 7
    assert path.stat().st_blocks * 512 < 1.2 * FREED_BYTES, "this file system keeps it all"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder of a worker's that leads elsewhere wherever it can."""
    (tmp_path / "secret").write_text("the host's")
    (tmp_path / "run9").mkdir()
    (tmp_path / "run9" / "rows.csv").write_text("the host's")
    folder = tmp_path / "job"
    (folder / "run1").mkdir(parents=True)
    (folder / "run1" / "rows.csv").write_text("rows")
    (folder / "link.csv").symlink_to(tmp_path / "secret")
    (folder / "run2").symlink_to(tmp_path / "run9")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("place", ["link.csv", "run2/rows.csv", "pipe", "run1", "../secret", "..",
                                   "run1/../../secret", "/etc/passwd", "", "run1/", "none.csv"])
def test_nothing_but_the_folders_own_files_is_read(planted: Path, place: str) -> None:
    with pytest.raises((ValueError, OSError)):
        open_within(planted, place)
    with open_within(planted, "run1/rows.csv") as file:
        assert file.read() == b"rows"


def saying(folder: Path, *lines: object) -> WorkerProcess:
    """A worker that writes these lines, and ends; beside them lies a file of rows."""
    trials = [trial("t1", 1), trial("t2", 1)]
    job = JobFolder(folder, trials, {})
    (job.path / "window.csv").touch()
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    writing = f"open('observations.jsonl', 'a').write({text!r})"
    worker = WorkerProcess(job, trials, [sys.executable, "-S", "-c", writing], job.path, 9, 9)
    worker.process.wait()
    return worker


@pytest.mark.parametrize("line", [
    "no JSON", [], 3, None, {}, {"stage": "ready", "facts": 3}, {"trial": "unknown"},
    {"trial": "t2", "captures": 3}, {"trial": "t2", "captures": {"client": {"offset": 1}}},
    {"trial": "t2", "files": {"../x": "window.csv"}}, {"trial": "t2", "files": {"x": "../x"}},
    {"trial": "t2", "files": {"x": "/etc/passwd"}}, {"trial": ["t2"]}])
def test_what_is_no_observation_costs_no_other(tmp_path: Path, line: object) -> None:
    worker = saying(tmp_path / "job", {"trial": "t1"}, line)
    seen = worker.poll()
    assert next(seen).trial_id == "t1"
    with pytest.raises(EngineError, match="the worker wrote a line that is not an observation"):
        next(seen)
    assert "t2" in worker.waiting
    worker.stop()


def test_a_worker_that_fails_after_its_last_trial_has_done_its_part(tmp_path: Path) -> None:
    worker = saying(tmp_path / "job", {"trial": "t1"}, {"trial": "t2"},
                    {"stage": "failed", "reason": "no more"})
    assert [seen.trial_id for seen in worker.poll()] == ["t1", "t2"]
    worker.stop()


@pytest.mark.parametrize(("stage", "error"), [
    ("cannot", EngineCannot), ("broken", WorkerLost), ("failed", EngineError)])
def test_what_ends_a_worker_is_its_own_word(tmp_path: Path, stage: str,
                                            error: type[EngineError]) -> None:
    """What this machine cannot is no failure, and a failure is not what it cannot."""
    worker = saying(tmp_path / "job", {"trial": "t1"}, {"stage": stage, "reason": "no such qdisc"})
    seen = worker.poll()
    assert next(seen).trial_id == "t1"
    with pytest.raises(EngineError, match="^the worker reports: no such qdisc$") as caught:
        assert not list(seen)
        list(worker.poll())
    assert type(caught.value) is error
    worker.stop()


def test_a_relative_folder_is_one_for_its_worker_too(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    worker = saying(Path("a b,ü\nc"), {"trial": "t1"}, {"trial": "t2"})
    assert len(list(worker.poll())) == 2
    assert worker.job.path == tmp_path / "a b,ü\nc"  # as the host engine names it to its worker
    worker.stop()
    assert not list(tmp_path.iterdir())
