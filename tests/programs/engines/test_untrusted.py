"""A hostile guest's files, and a full disk, are refused and never become a wrong trial."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from firstflight.base.untrusted import QUOTED_CHARACTERS, quoted
from firstflight.testbed import guests, job, observations
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.job import JobFolder, StorageError, WorkerProcess
from firstflight.testbed.observations import FILE_BYTES, LINE_BYTES
from tests.conftest import PROJECT
from tests.running import HANGS_S, run_program
from vtime import console, shared_folder
from vtime.console import CONSOLE, EngineError

TRIALS = [{"id": "t", "network": {}}, {"id": "u", "network": {}}]
SPARSE_BYTES = 6 << 30  # of a file that takes no room on the disk
MOST_KB = 400_000  # of memory that reading may take; it would be 6 GB without limits


def left(folder: Path, leave: Callable[[Path], None]) -> WorkerProcess:
    """A worker that has ended. leave: puts files into its folder."""
    job = JobFolder(folder, TRIALS, {})
    leave(job.path)
    worker = WorkerProcess(job, TRIALS, ["true"], job.path, HANGS_S, HANGS_S)
    worker.process.wait()
    return worker


def heard(worker: WorkerProcess) -> str:
    """The error with which a worker ends after its files were read, "" for none.

    Its folder is removed.
    """
    try:
        for _ in range(20_000):
            list(worker.poll())
            if not worker.waiting:
                return ""
    except EngineError as error:
        return str(error)
    finally:
        worker.stop()
        assert not worker.job.path.exists()
    raise AssertionError("it is read without an end")


def lines(*content: Any) -> Callable[[Path], None]:
    """A function that leaves these lines of observations; those that are no text become JSON."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in content)
    return lambda folder: (folder / "observations.jsonl").write_text(text) and None


def sparse(path: Path, size: int = SPARSE_BYTES) -> None:
    """Make a file longer by a hole."""
    with path.open("ab") as file:
        file.truncate(size)


def capture(size: int, named: int) -> Callable[[Path], None]:
    """A function that leaves a capture, and an observation that names so many bytes of it."""
    def leave(folder: Path) -> None:
        sparse(folder / "client.pcap", size)
        lines({"trial": "t", "captures": {"client": {"offset": 0, "bytes": named}}})(folder)
    return leave


def leave_large_file(folder: Path) -> None:
    sparse(folder / "rows.csv")
    lines({"trial": "t", "files": {"rows.csv": "rows.csv"}})(folder)


# A sound report on a fetch.
FETCH = {"ok": True, "error": "", "connect_ms": 1.0, "first_byte_ms": 2.0, "total_ms": 3.0,
         "size": 1, "sha256": "0" * 64, "port": 4000, "exit_status": 0, "http_status": 200}
# What a guest leaves, and words of the refusal, by what is wrong.
LEFT: dict[str, tuple[Callable[[Path], None], str]] = {
    "a line without an end": (lambda folder: sparse(folder / "observations.jsonl"),
                              f"a line has more than {LINE_BYTES} bytes"),
    "a long line": (lines({"trial": "t", "error": "x" * LINE_BYTES}), "more than|it has"),
    "a large capture": (capture(SPARSE_BYTES, SPARSE_BYTES),
                        "captures.client.bytes is not a whole"),
    "a large file": (leave_large_file, f"more than {FILE_BYTES} bytes"),
    "lists in lists": (lines("[" * 100_000), "nested too deep"),
    "lists in an observation": (lines('{"trial": "t", "fetch": ' + "[" * 100_000),
                                "nested too deep"),
    "a large number": (lines({"trial": "t", "duration_s": 10**30}), "has 31 digits"),
    "a very large number": (lines('{"trial": "t", "duration_s": ' + "9" * 10**6 + "}"),
                            "has 1000000 digits"),
    "no finite number": (lines('{"trial": "t", "duration_s": 1e999}'),
                         "duration_s is not a number"),
    "not a number": (lines('{"trial": "t", "duration_s": NaN}'), "NaN is not a number"),
    "true for a number": (lines({"trial": "t", "duration_s": True}), "duration_s is not a number"),
    "a time out of range": (lines({"trial": "t", "started_at": -1e300}), "started_at is no"),
    "a transfer in no time": (lines({"trial": "t", "fetch": {**FETCH, "total_ms": 0}}),
                              "succeeded in no time"),
    "a text for a size": (lines({"trial": "t", "fetch": {**FETCH, "size": "1"}}), "fetch.size is"),
    "half a report": (lines({"trial": "t", "server": {"event": "response"}}), "server lacks"),
    "a number for a word": (lines({"stage": 5}), "stage has the wrong form"),
    "a number for a text": (lines({"trial": "t", "fetch": {**FETCH, "http_version": 2}}),
                            "http_version is not printable text"),
    "a list for a reason": (lines({"trial": "t", "error": ["x"]}), "error is not printable text"),
    "a list for a table": (lines({"trial": "t", "drops": []}), "drops is not a table"),
    "an unknown key": (lines({"trial": "t", "verdict": "pass"}), "has the unknown key 'verdict'"),
    "another's trial": (lines({"trial": "of another"}), "no trial 'of another' was expected"),
    "a trial twice": (lines({"trial": "t"}, {"trial": "t"}), "no trial 't' was expected"),
    "words without an end": (lines(*[{"stage": "alive"}] * 10_001), "and no observation among"),
    "bytes that are no text": (
        lambda folder: (folder / "observations.jsonl").write_bytes(b"\xff\n") and None, "utf-8"),
}


@pytest.mark.parametrize("what", LEFT)
def test_a_malformed_observation_is_refused_in_one_line(what: str, tmp_path: Path) -> None:
    leave, why = LEFT[what]
    told = heard(left(tmp_path / "job", leave))
    assert told.startswith("the worker wrote a line that is not an observation: ")
    assert len(told) < 400
    assert told.isprintable()
    if what != "a long line":
        assert why in told


@pytest.mark.parametrize("name", ["requested", "confined", "engine", "seed", "scenario", "systems"])
def test_a_worker_that_reports_other_facts_than_its_kernel_is_refused(name: str,
                                                                      tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    said = json.dumps({"stage": "ready", "facts": {"kernel": "7", name: "forged"}})
    kernel.write_text(f"#!/bin/sh\necho '{said}' >> observations.jsonl\n")
    kernel.chmod(0o755)
    engine = UmlEngine(kernel, 1)
    before = dict(engine.facts)
    with pytest.raises(EngineError, match=f"facts has the unknown key '{name}'"):
        list(engine.run([{"id": "t", "kind": "fetch", "network": {}}], {}, tmp_path / "work"))
    assert engine.facts == before


def test_a_guests_words_are_quoted_printable_and_short(tmp_path: Path) -> None:
    words = "\x1b[2Jfirst-flight: all is well\r\n" + "x" * 100_000
    for stage in ("cannot", "broken", "failed"):
        told = heard(left(tmp_path / "job", lines({"stage": stage, "reason": words})))
        assert told.startswith("the worker reports: ") and told.isprintable() and len(told) < 1100
    told = heard(left(tmp_path / "job", lambda folder: None))
    assert told == ("the worker stopped (status 0) while its network was awaited: it printed"
                    " nothing")
    for error in ("error", "skipped"):
        (seen,) = left(tmp_path / error, lines({"trial": "t", error: words})).poll()
        assert seen.content[error].isprintable() and len(seen.content[error]) < 1100
    assert quoted(b"\xff\x00a\n b") == "\ufffd\ufffda b" and len(quoted("x" * 999)) == (
        QUOTED_CHARACTERS + 1)


def test_the_beginning_and_the_end_of_a_long_console_are_read(tmp_path: Path) -> None:
    def leave(folder: Path) -> None:
        sparse(folder / CONSOLE)

    worker = left(tmp_path / "job", leave)
    path = worker.job.path / CONSOLE
    sparse(path)
    with path.open("r+b") as file:
        file.write(b"the first\n")
        file.seek(SPARSE_BYTES - 10)
        file.write(b"\nthe last\n")
    printed = worker.printed()
    assert printed.startswith("the first") and printed.endswith("the last\n")
    assert len(printed) <= console.CONSOLE_BYTES
    worker.stop()


def test_a_folder_in_the_place_of_the_probe_is_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job", [], {})
    (job.path / shared_folder.PROBE).mkdir()
    job.check_storage()


def test_observations_that_wait_take_little_memory(tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """Packets may be holes in a file, and many observations may name the same hole."""
    monkeypatch.setattr(guests, "MOST_WAITING_BYTES", 10 << 20)
    kernel = tmp_path / "linux"
    told = "".join(json.dumps({"trial": str(number), "captures": {
        "client": {"offset": 0, "bytes": 4 << 20}}}) + "\n" for number in range(50))
    kernel.write_text(f"#!{sys.executable} -IS\nopen('client.pcap', 'wb').truncate(4 << 20)\n"
                      f"open('observations.jsonl', 'a').write({told!r})\n")
    kernel.chmod(0o755)
    trials = [{"id": str(number), "kind": "fetch", "network": {}} for number in range(50)]
    tracemalloc.start()
    try:
        count = sum(1 for _ in UmlEngine(kernel, 1).run(trials, {}, tmp_path / "work"))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 50 and most < 40 << 20


def test_nothing_is_written_through_a_link_that_a_guest_put_there(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("the host's")
    job = JobFolder(tmp_path / "job", [], {})
    (job.path / shared_folder.PROBE).symlink_to(precious)
    job.check_storage()
    assert precious.read_text() == "the host's"


@pytest.mark.usefixtures("impatient")
def test_only_the_systems_own_words_are_taken_for_a_full_disk(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job", [], {})
    reserve = job.path / shared_folder.RESERVE
    reserve.write_text("pay 10 to this account")
    job.check_storage()
    reserve.unlink()
    os.mkfifo(reserve)
    job.check_storage()
    reserve.unlink()
    reserve.write_text("No space left on device")
    with pytest.raises(StorageError, match="No space left on device"):
        job.check_storage()


def test_anything_that_a_guest_leaves_takes_little_memory(tmp_path: Path) -> None:
    """Another process reads all of it, and reports its own peak of memory."""
    program = f"""
import re, sys
from pathlib import Path
sys.path.insert(0, {str(PROJECT)!r})
from tests.programs.engines import test_untrusted as tests
for name, (leave, _) in tests.LEFT.items():
    assert tests.heard(tests.left(Path({str(tmp_path)!r}) / name, leave)), name
most = tests.observations.CAPTURE_BYTES
worker = tests.left(Path({str(tmp_path)!r}) / "capture",
                    tests.capture(most, most))
(seen,) = worker.poll()
assert len(seen.client_pcap) == most
# getrusage would not do: it begins with the peak of the parent that started the program.
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1))
"""
    done = run_program([sys.executable, "-c", program], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST_KB


@pytest.fixture(name="ended")
def _ended(tmp_path: Path) -> Iterator[WorkerProcess]:
    worker = left(tmp_path / "ended", lambda folder: None)
    yield worker
    worker.stop()


# Any lines that Hypothesis thinks of ---------------------------------------------------

WORDS = st.sampled_from(sorted({
    "trial", "stage", "facts", "reason", "kernel", "sysctls", "captures", "client", "server",
    "offset", "bytes", "files", "fetch", "fetches", "responses", "drops", "to_client", "error",
    "skipped", "started_at", "duration_s", "ended_servers", "t", "u", "ready", "failed", "tls",
    "samples", "rows.csv", "../x", "client.pcap", "job.json", *FETCH})) | st.text(max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS
    | st.integers(10**20, 10**40), lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(WORDS, inner, max_size=6), max_leaves=10)
OBSERVATIONS = st.fixed_dictionaries({"trial": st.sampled_from(["t", "u"])}, optional={
    name: VALUES for name in ("started_at", "duration_s", "error", "skipped", "captures", "files",
                              "fetch", "server", "drops", "fetches", "responses",
                              "ended_servers")})
STAGES = st.fixed_dictionaries({"stage": st.sampled_from(["ready", "alive", "failed"]) | VALUES},
                               optional={"facts": VALUES, "reason": VALUES})
LINES = (st.binary(max_size=200) | OBSERVATIONS.map(lambda value: json.dumps(value).encode())
         | STAGES.map(lambda value: json.dumps(value).encode())
         | VALUES.map(lambda value: json.dumps(value).encode()))


@settings(max_examples=40, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(said=st.lists(LINES, max_size=5))
def test_any_line_is_an_observation_or_refused_in_one_line(said: list[bytes], ended: WorkerProcess,
                                                           tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    """An observation can be written as JSON again, and its texts are printable."""
    monkeypatch.setattr(JobFolder, "check_storage", lambda job: None)  # it waits for the disk
    job = JobFolder(tmp_path / "job", TRIALS, {})
    (job.path / "rows.csv").write_bytes(b"rows")
    (job.path / "client.pcap").write_bytes(b"packets")
    job.lines_path.write_bytes(b"".join(line + b"\n" for line in said))
    worker = copy(ended)  # no process is started for each example
    worker.job, worker.ready = job, {}
    worker.waiting = {trial["id"]: trial for trial in TRIALS}
    seen = []
    try:
        for _ in range(3):
            seen += worker.poll()
    except EngineError as error:
        assert str(error) and len(str(error)) < 1200 and str(error).isprintable()
    finally:
        job.remove()
    for observed in seen:
        json.dumps(observed.content, allow_nan=False)
        observations.read_line(json.dumps(observed.content).encode())
        assert not {"verdict", "ok"} & observed.content.keys()
    assert worker.ready.keys() <= {"kernel", "sysctls"}


# A folder that takes no more stops a run ----------------------------------------------

# The worker with a bench that has no network. The trial "tool" fails as if a program had ended.
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
    """A function that limits the size of files of the process that calls it; None for no limit."""
    def set_limit() -> None:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return set_limit


def worked(tmp_path: Path, most_bytes: int | None, *trials: tuple[str, int]) -> JobFolder:
    """The folder of a worker that has ended.

    most_bytes: of a file, None for no limit. trials: the id of each, and how many characters its
    observation has.
    """
    job = JobFolder(tmp_path / "job", [{"kind": "fetch", "id": name, "says": says}
                                       for name, says in trials], {})
    subprocess.run([sys.executable, "-c", WORKER, str(job.path), str(PROJECT)], cwd=PROJECT,
                   preexec_fn=limit(most_bytes), check=False, timeout=HANGS_S)
    return job


def said(job: JobFolder) -> list[str]:
    """The trial, or else the stage, of each line that a worker wrote."""
    lines = map(json.loads, job.new_lines())
    return [str(line.get("trial", line.get("stage"))) for line in lines]


def test_a_worker_with_room_reports_only_its_trials(tmp_path: Path) -> None:
    job = worked(tmp_path, None, ("one", 10), ("tool", 10))
    lines = [json.loads(line) for line in job.new_lines()]
    assert [line.get("error") for line in lines if "trial" in line] == [
        None, "firstflight.testbed.hosts.load_client ended"] and lines[-1]["stage"] == "done"
    job.check_storage()
    assert not (job.path / shared_folder.PROBE).exists()


def test_an_observation_that_does_not_fit_on_the_disk_is_left_out_whole(tmp_path: Path) -> None:
    """There is neither a part of its line nor a failed trial. Another file has the reason."""
    job = worked(tmp_path, 2000, ("one", 1000), ("two", 1500), ("three", 10))
    assert said(job) == ["ready", "one"] and job.torn == b""
    with pytest.raises(StorageError, match=f"^{job.path}: cannot be written: File too large$"):
        job.check_storage()


def test_a_tool_without_room_on_the_disk_fails_no_trial(tmp_path: Path) -> None:
    job = worked(tmp_path, shared_folder.PROBE_BYTES // 2, ("one", 10), ("tool", 10), ("three", 10))
    assert said(job) == ["ready", "one"]
    with pytest.raises(StorageError, match="File too large"):
        job.check_storage()


def test_an_engine_stops_where_its_worker_could_not_write(tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "job", [{"kind": "fetch", "id": name, "says": 900}
                                       for name in "ab"], {})
    process = WorkerProcess(job, [{"id": "a"}, {"id": "b"}], [
        "prlimit", "--fsize=1500", sys.executable, "-c", WORKER, str(job.path), str(PROJECT)],
        PROJECT, HANGS_S, HANGS_S)
    seen = []
    with pytest.raises(StorageError, match="File too large"):
        while True:
            seen += process.poll()
    assert [observed.trial_id for observed in seen] == ["a"] and list(process.waiting) == ["b"]
    process.stop()


def test_observations_before_a_workers_failure_come_first(tmp_path: Path) -> None:
    """Both are read in one piece of the file."""
    job = JobFolder(tmp_path / "job", [], {})
    job.lines_path.write_text("".join(json.dumps(line) + "\n" for line in (
        {"stage": "ready", "facts": {}}, {"trial": "a"}, {"stage": "failed", "reason": "why"})))
    process = WorkerProcess(job, [{"id": "a"}, {"id": "b"}], ["true"], PROJECT, HANGS_S,
                            HANGS_S)
    assert [observed.trial_id for observed in process.poll()] == ["a"]
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


def test_files_folders_and_bytes_in_a_guests_folder_are_counted(tmp_path: Path) -> None:
    """Folders count at any depth. Bytes count if they take room on the disk; holes do not."""
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
    deep = "/".join(["d" * 203] * 20)  # 4079 characters: a path from the root would be too long
    subprocess.run(["mkdir", "-p", deep], cwd=tmp_path, check=True)
    assert shared_folder.holds_more(tmp_path, 1000, 1 << 40)
    shared_folder.remove_folder(tmp_path)
    assert not tmp_path.exists()


def test_a_worker_that_fills_the_disk_is_ended(tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MOST_HELD_BYTES", 1 << 20)
    monkeypatch.setattr(job, "ROOM_S", 0.0)
    folder = JobFolder(tmp_path / "job", [], {})
    filling = f"open({str(folder.path / 'evil')!r}, 'wb').write(bytes(4 << 20)); input()"
    worker = WorkerProcess(folder, [{"id": "t"}], [sys.executable, "-c", filling], tmp_path,
                           HANGS_S, HANGS_S)
    try:
        with pytest.raises(EngineError, match="the worker wrote more than"):
            while True:
                list(worker.poll())
    finally:
        worker.stop()
