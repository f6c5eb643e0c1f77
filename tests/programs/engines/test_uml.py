"""The `uml` engine with programs in the place of its guests' kernel.

It refuses machines that cannot run guests, exchanges trials and observations with workers, and ends
workers that say nothing.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firstflight.base import PROJECT
from firstflight.base.errors import CANNOT, OK, WriteError
from firstflight.testbed import job
from firstflight.testbed.guests import UmlEngine, guests_worth_starting
from firstflight.testbed.job import (JobFolder, Observation, StorageError, WorkerKilled, WorkerLost,
                                     WorkerProcess, shared_out)
from tests.running import HANGS_S, mounts_a_disk, run_program, small_disk
from vtime import silence, uml
from vtime.console import EngineCannot, EngineError
from vtime.mounts import mount
from vtime.shared_folder import FREED_BYTES, GrowingFile, open_within
from vtime.silence import Watchdog
from vtime.uml import guest_command

TRIAL = {"id": "t", "kind": "fetch", "network": {}}
# A line of a shell script by which a worker reports that it is ready.
READY = """echo '{"stage": "ready", "facts": {"kernel": "7"}}' >> observations.jsonl"""


def run(tmp_path: Path, script: str) -> list[Observation]:
    """The observations of an engine whose kernel is this shell script."""
    kernel = tmp_path / "linux"
    kernel.write_text(f"#!/bin/sh\n{script}\n")
    kernel.chmod(0o755)
    return list(UmlEngine(kernel, 1).run([TRIAL], {}, tmp_path / "work"))


# The printed texts are User-Mode Linux's on such machines. tests/live has one of these machines.
@pytest.mark.parametrize(("printed", "why"), [
    ("ptrace: Operation not permitted\ncheck_ptrace : expected SIGSTOP, got status = 9",
     "ptrace or seccomp, and both are forbidden.* use --engine host"),
    ("no memory that may be executed: Permission denied\n1\n2\n3\n4",
     "has to be executed, which this machine forbids: sysctl -w vm.memfd_noexec=0")])
def test_a_machine_that_cannot_run_guests_is_refused_with_what_to_do(tmp_path: Path, printed: str,
                                                                     why: str) -> None:
    with pytest.raises(EngineCannot, match=why):
        run(tmp_path, f"echo '{printed}'\nexit 1")


def test_an_unknown_end_of_a_guest_is_a_failure_of_the_engine(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="nothing known") as caught:
        run(tmp_path, "echo nothing known\nexit 1")
    assert not isinstance(caught.value, EngineCannot)


def test_a_full_disk_stops_the_run_and_fails_no_trial(tmp_path: Path) -> None:
    """The worker notes the full disk in a file that is reserved for this."""
    with pytest.raises(StorageError, match="guest0: cannot be written: No space left on device"):
        run(tmp_path, f"{READY}\nprintf 'No space left on device' > cannot-write\nexit 1")


def test_a_guest_that_dies_fails_only_its_present_trial(tmp_path: Path) -> None:
    (seen,) = run(tmp_path, f"{READY}\necho 'Kernel panic'\nexit 1")
    assert "stopped (status 1) while trial t was awaited: it printed: Kernel panic" in seen.content[
        "error"]


# A script that ends as util-linux' unshare does when the process that it started is killed.
BEHIND_UNSHARE = "echo 'unshare: sigprocmask unblock failed: Invalid argument' >&2; exit 1"


@pytest.mark.parametrize("killed", ["kill -KILL $$", BEHIND_UNSHARE])
@pytest.mark.parametrize("up", [READY, ""])
def test_a_killed_guests_trial_is_measured_by_another_guest(tmp_path: Path, up: str,
                                                            killed: str) -> None:
    """It may be killed while it boots or during a trial."""
    (seen,) = run(tmp_path, f"""{up}
        case $PWD in */guest0) {killed};; esac
        echo '{{"trial": "t", "skipped": "by another"}}' >> observations.jsonl""")
    assert seen.content["skipped"] == "by another"


def test_a_guest_whose_programs_ended_fails_only_their_trial(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    kernel.write_text(f"""#!/bin/sh\n{READY}
        case $PWD in
        */guest0) echo '{{"trial": "t", "error": "the client ended"}}'
                  echo '{{"stage": "broken", "reason": "the client ended"}}' ;;
        *) echo '{{"trial": "u"}}' ;;
        esac >> observations.jsonl\n""")
    kernel.chmod(0o755)
    seen = list(UmlEngine(kernel, 1).run([TRIAL, {**TRIAL, "id": "u"}], {}, tmp_path / "work"))
    assert [observed.content.get("error") for observed in seen] == ["the client ended", None]


def test_guests_that_are_killed_again_and_again_stop_the_run(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are killed from outside: the first process of a PID namespace cannot kill itself."""
    monkeypatch.setattr(uml, "namespaces", lambda: ())
    with pytest.raises(WorkerKilled, match="killed while trial t was awaited, by the system if"):
        run(tmp_path, f"{READY}\nkill -KILL $$")


def test_a_guest_begins_its_trials_on_a_grid_and_runs_none_before_them(tmp_path: Path) -> None:
    """So a trial takes the same time whatever ran before it."""
    (seen,) = run(tmp_path, f"""{READY}
        echo '{{"trial": "t", "files": {{"job": "job.json"}}}}' >> observations.jsonl""")
    requested = json.loads(seen.files["job"])
    assert requested["align_s"] == 4.096  # 4096 ticks of the timer wheel
    assert requested["warm_up"] is False


@pytest.mark.parametrize("lacking", ["", "Landlock"])
def test_a_guest_is_confined_where_the_machine_can_do_it(
        lacking: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(uml.confine, "lacking", lambda: lacking)
    words = guest_command(tmp_path / "linux")
    before = words[:words.index(str(tmp_path / "linux"))]
    confined = uml.confine.__file__ in before and "--read" in before
    engine = UmlEngine(tmp_path / "linux", 1)
    assert confined is bool(engine.facts["confined"]) is not bool(lacking)
    assert engine.warning.startswith("this machine lacks Landlock: guests are not") == bool(lacking)


@pytest.mark.parametrize(("origin", "known"), [
    ("linux-source-7.2 7.2.11-1~bpo13+1", True),
    ("linux-hwe-6.14-source-6.14.0 6.14.0-37.37~24.04.1", True),
    ("linux-6.18.21.tar.xz of kernel.org", True), ("linux-source-7.2 7.2.11-1, imported", True),
    ("/home/me/linux-source-7.2 7.2.11-1", False),
    ("/src/linux-6.18.21.tar.xz of kernel.org", False),
    ("/home/me/patched, imported", False), ("", False)])
def test_a_kernel_of_a_distribution_or_kernel_org_is_known_to_the_model(origin: str, known: bool,
                                                                        tmp_path: Path) -> None:
    (tmp_path / "inputs").write_text("configuration 09f8\nsource 97a3aac3\ncompiler gcc 12\n")
    (tmp_path / "source").write_text(f"{origin}\n")
    engine = UmlEngine(tmp_path / "linux", 1)
    assert engine.known_kernel is known
    assert engine.facts.items() >= {"kernel_known": known, "kernel_origin": origin,
                                    "kernel_source": "97a3aac3"}.items()
    assert ("the guest kernel was built from" in engine.warning) is not known


def test_a_kernel_without_a_named_source_is_not_known_to_the_model(tmp_path: Path) -> None:
    assert uml.made_from(tmp_path / "linux") == {"kernel_known": False, "kernel_origin": "",
                                                 "kernel_source": ""}


def test_the_kernels_command_line_has_no_folder_but_the_quoted_project(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The kernel splits its command line at spaces, but not within quotes."""
    monkeypatch.setattr(uml, "INIT", Path("/a b,ü/init.py"))
    words = guest_command(tmp_path / "linux")
    assert words[-1] == '"/a b,ü/init.py"'
    assert not [word for word in words[words.index(str(tmp_path / "linux")) + 1:-1]
                if " " in word or str(tmp_path) in word]
    monkeypatch.setattr(uml, "INIT", Path('/a "b"/init.py'))
    with pytest.raises(EngineCannot, match="move the project"):
        guest_command(tmp_path / "linux")


# What goes to a worker and comes back -------------------------------------------------

def trial(name: str, rtt_ms: float, **more: Any) -> dict[str, Any]:
    return {"id": name, "network": {"rtt_ms": rtt_ms}, **more}


def test_trials_of_one_shape_stay_together_and_in_order() -> None:
    trials = [trial("a1", 1), trial("b1", 2), trial("a2", 1), trial("c1", 3), trial("b2", 2)]
    batches = [[shared["id"] for shared in batch] for batch in shared_out(trials, 2)]
    assert batches == [["a1", "a2", "c1"], ["b1", "b2"]]
    assert len(shared_out(trials[:1], 4)) == 1


def test_a_trial_that_has_to_be_alone_gets_a_worker_of_its_own() -> None:
    batches = shared_out([trial("a1", 1, alone=True), trial("a2", 1, alone=True)], 1)
    assert [len(batch) for batch in batches] == [1, 1]


@pytest.mark.parametrize(("estimates_s", "guests"), [
    ([0.025], 1), ([0.025] * 16, 1),  # 0.4 s, and a guest's start takes 0.5 s
    ([0.025] * 48, 2),  # 1.2 s
    ([0.025] * 800, 4),  # no more than there may be
    ([0.75, 0.75], 3),
    ([None, 0.025, 0.025], 1), ([None] * 3, 3)])  # trials without an estimate
def test_a_second_guest_starts_only_for_trials_that_take_longer_than_its_start(
        estimates_s: list[float | None], guests: int) -> None:
    trials = [trial("t", 1) if seconds is None else trial("t", 1, guest_s=seconds)
              for seconds in estimates_s]
    assert guests_worth_starting(trials, most=4) == guests  # type: ignore[arg-type]


# Byte code -----------------------------------------------------------------------------

@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_after_sudo_the_user_stores_the_byte_code_of_programs_that_lack_it(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's files in the user's folder could not be removed by the user."""
    uid = 12345
    with tempfile.TemporaryDirectory() as name:  # others may not enter tmp_path
        project = Path(name)
        project.chmod(0o755)
        program = project / "vtime" / "kernel" / "init.py"
        program.parent.mkdir(parents=True)
        program.write_text("A = 1\n")
        for path in (program, program.parent, project / "vtime"):
            os.chown(path, uid, uid)
        monkeypatch.setattr(uml, "PROJECT", project)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        monkeypatch.setattr(sys, "pycache_prefix", None)
        stored = Path(importlib.util.cache_from_source(str(program)))

        uml.compile_programs(["vtime/**/*.py"])
        assert not stored.exists()  # without sudo, Python may not write at all
        for wrong in ("", "root", "-1"):
            monkeypatch.setenv("SUDO_UID", wrong)
            monkeypatch.setenv("SUDO_GID", str(uid))
            uml.compile_programs(["vtime/**/*.py"])
            assert not stored.exists(), wrong
        monkeypatch.setenv("SUDO_UID", str(uid))
        uml.compile_programs(["vtime/**/*.py"])
        assert (stored.stat().st_uid, stored.stat().st_gid) == (uid, uid)

        first_ns = stored.stat().st_mtime_ns
        uml.compile_programs(["vtime/**/*.py"])
        assert stored.stat().st_mtime_ns == first_ns  # nothing is compiled twice
        program.write_text("A = 22\n")
        later_s = first_ns / 1e9 + 2
        os.utime(program, (later_s, later_s))
        uml.compile_programs(["vtime/**/*.py"])
        assert stored.stat().st_mtime_ns > first_ns


@mounts_a_disk
def test_a_disk_without_room_for_a_guests_folder_is_named(tmp_path: Path) -> None:
    """The message names the folder, and not the file of the cache that is copied there."""
    library = tmp_path / "library.so"
    library.write_bytes(bytes(50_000))
    with small_disk(disk := tmp_path / "disk", "size=40k"):
        with pytest.raises(WriteError) as full:
            JobFolder(disk / "job", [], {}, libraries={"library.so": library})
        assert str(full.value) == (
            f"{disk}/job: cannot be written: No space left on device: make room")


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


def test_what_was_read_of_a_growing_file_takes_no_room_on_the_disk(tmp_path: Path) -> None:
    """Lines and packets are appended for ever. Other files of a trial are removed."""
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


def test_a_growing_file_is_read_piece_by_piece_and_its_room_freed(tmp_path: Path) -> None:
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
    """A worker's folder with links that lead out of it, and a pipe."""
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
    """A worker that has written these lines and ended. Its folder also has a file of rows."""
    trials = [trial("t1", 1), trial("t2", 1)]
    job = JobFolder(folder, trials, {})
    (job.path / "window.csv").touch()
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    writing = f"open('observations.jsonl', 'a').write({text!r})"
    worker = WorkerProcess(job, trials, [sys.executable, "-S", "-c", writing], job.path, HANGS_S,
                           HANGS_S)
    worker.process.wait()
    return worker


@pytest.mark.parametrize("line", [
    "no JSON", [], 3, None, {}, {"stage": "ready", "facts": 3}, {"trial": "unknown"},
    {"trial": "t2", "captures": 3}, {"trial": "t2", "captures": {"client": {"offset": 1}}},
    {"trial": "t2", "files": {"../x": "window.csv"}}, {"trial": "t2", "files": {"x": "../x"}},
    {"trial": "t2", "files": {"x": "/etc/passwd"}}, {"trial": ["t2"]}])
def test_a_malformed_observation_loses_no_other(tmp_path: Path, line: object) -> None:
    worker = saying(tmp_path / "job", {"trial": "t1"}, line)
    seen = worker.poll()
    assert next(seen).trial_id == "t1"
    with pytest.raises(EngineError, match="the worker wrote a line that is not an observation"):
        next(seen)
    assert "t2" in worker.waiting
    worker.stop()


def test_a_worker_that_fails_after_its_last_trial_loses_nothing(tmp_path: Path) -> None:
    worker = saying(tmp_path / "job", {"trial": "t1"}, {"trial": "t2"},
                    {"stage": "failed", "reason": "no more"})
    assert [seen.trial_id for seen in worker.poll()] == ["t1", "t2"]
    worker.stop()


@pytest.mark.parametrize(("stage", "error"), [
    ("cannot", EngineCannot), ("broken", WorkerLost), ("failed", EngineError)])
def test_the_reason_that_a_worker_reports_decides_its_error(tmp_path: Path, stage: str,
                                                            error: type[EngineError]) -> None:
    """A machine that cannot do it, lost programs, and a failure are different errors."""
    worker = saying(tmp_path / "job", {"trial": "t1"}, {"stage": stage, "reason": "no such qdisc"})
    seen = worker.poll()
    assert next(seen).trial_id == "t1"
    with pytest.raises(EngineError, match="^the worker reports: no such qdisc$") as caught:
        assert not list(seen)
        list(worker.poll())
    assert type(caught.value) is error
    worker.stop()


def test_a_worker_uses_the_same_relative_folder(tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    worker = saying(Path("a b,ü\nc"), {"trial": "t1"}, {"trial": "t2"})
    assert len(list(worker.poll())) == 2
    assert worker.job.path == tmp_path / "a b,ü\nc"  # as the host engine names it to its worker
    worker.stop()
    assert not list(tmp_path.iterdir())


# What a machine or a shell lacks for any guest ----------------------------------------

RUN, EXPERIMENT = str(PROJECT / "run.sh"), [sys.executable, str(PROJECT / "experiment.py")]
WITHOUT_PROC = ["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
COMMANDS = (["--", "true"], ["--rtt", "5", "--bw", "1000", "--iw", "3", "--engine", "uml"])


def ended(words: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program that has ended, run in a folder with other environment variables."""
    return run_program(words, cwd=folder, errors="surrogateescape", env={**os.environ, **variables})


@pytest.mark.parametrize("words", COMMANDS, ids=("command", "question"))
@pytest.mark.parametrize("files", ["64", "40"])
def test_a_low_limit_of_open_files_is_refused_in_one_line(words: list[str], files: str,
                                                          tmp_path: Path) -> None:
    done = ended(["prlimit", f"--nofile={files}:{files}", *EXPERIMENT, "--results", "results",
                  *words], tmp_path)
    assert done.returncode == CANNOT, done.stderr
    assert done.stderr.startswith(f"run.sh: only {files} files may be open at once")
    assert "ulimit" in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_low_limit_that_may_be_raised_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[tuple[int, int]] = [(64, 1 << 20)]
    monkeypatch.setattr(uml, "check_limits", lambda memory_mb: None)
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    uml.check_machine()
    assert limits[1:] == [(uml.MOST_FILES, 1 << 20)]
    uml.check_machine()
    assert len(limits) == 2


@pytest.mark.parametrize("words", COMMANDS, ids=("command", "question"))
@pytest.mark.parametrize(("limit", "flag"), [("as", "-v"), ("fsize", "-f"), ("data", "-d")])
def test_a_limit_below_a_guests_memory_is_refused_in_one_line(words: list[str], limit: str,
                                                              flag: str, tmp_path: Path) -> None:
    done = ended(["prlimit", f"--{limit}=500000000:500000000", *EXPERIMENT, "--results", "results",
                  *words], tmp_path)
    assert done.returncode == CANNOT, done.stderr
    assert f"ulimit {flag} unlimited" in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_programs_that_path_lacks_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineCannot, match="setpriv and taskset: not found on PATH"):
        uml.check_machine()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can unmount /proc")
@pytest.mark.parametrize("program", [[RUN], EXPERIMENT], ids=("run.sh", "experiment.py"))
@pytest.mark.parametrize("words", COMMANDS, ids=("command", "question"))
def test_a_machine_without_proc_is_refused_in_one_line(words: list[str], program: list[str],
                                                       tmp_path: Path) -> None:
    done = ended([*WITHOUT_PROC, *program, "--results", "results", *words], tmp_path)
    assert done.returncode == CANNOT, done.stderr
    assert "/proc is not mounted" in done.stderr and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["", "/nowhere"])
def test_a_path_without_programs_is_completed(path: str, tmp_path: Path) -> None:
    for program in ([RUN], EXPERIMENT):
        done = ended([*program, "--rtt", "5", "--dry-run"], tmp_path, PATH=path)
        assert (done.returncode, done.stderr) == (OK, "") and "expected time" in done.stdout


def test_a_character_that_an_encoding_lacks_is_escaped(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    program = ("import sys; from firstflight.base.main import run_main;"
               " from firstflight.base.terminal import say;"
               "run_main('x', lambda words: [print('10 · ' + words[0]), say(words[0]), 0][-1])")
    for encoding, dot in (("ascii", r"\xb7"), ("utf-8", "·")):
        done = ended([sys.executable, "-c", program, str(folder)], PROJECT,
                     PYTHONIOENCODING=encoding)
        assert (done.returncode, done.stdout) == (
            OK, f"10 {dot} {tmp_path}/caf\\udce9\n"), done.stderr
        assert done.stderr == f"{tmp_path}/caf\\udce9\n"


def test_mounting_a_name_that_is_not_utf_8_fails_only_by_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError) as error:
        mount(os.fsdecode(b"/\xff\xfe"), str(tmp_path / os.fsdecode(b"\xff")), "nosuch")
    assert error.value.errno in (errno.ENOENT, errno.EPERM, errno.ENODEV)


# A worker's silence -------------------------------------------------------------------

SPIN = (sys.executable, "-S", "-c", "while True: pass")
SLEEP = ("sleep", "infinity")


@contextlib.contextmanager
def started(*command: str) -> Iterator[int]:
    """A running program, by its process number."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_waiting_for_a_processor_does_not_count_as_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "LOOK_S", 0.02)
    one = ["taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))]
    with contextlib.ExitStack() as others:
        for _ in range(3):
            others.enter_context(started(*one, *SPIN))
        slow = others.enter_context(started("nice", "-n", "19", *one, *SPIN))
        asleep = others.enter_context(started(*SLEEP))
        watchdog, took_s = Watchdog(slow), 0.0
        while took_s < 0.2 or watchdog.seconds() > 0.6 * took_s:
            assert took_s < HANGS_S  # a busy machine takes longer to show it
            time.sleep(0.02)
            took_s = time.monotonic() - watchdog.since

        watchdog = Watchdog(asleep)  # its process has begun to sleep by now
        for _ in range(5):
            time.sleep(0.02)
            watchdog.seconds()
        took_s = time.monotonic() - watchdog.since
        assert watchdog.seconds() > 0.9 * took_s


def scripted(monkeypatch: pytest.MonkeyPatch, looks: list[dict[str, tuple[float, float]]]
             ) -> list[float]:
    """The seconds of silence that a Watchdog reports at each look, half a look later, and at last.

    looks: by process the seconds that the kernel counted until then: on a processor, and waiting
    for one.
    """
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(silence, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(silence, "scheduled", lambda group: {
        number: silence.Scheduled(*seen) for number, seen in looks.pop(0).items()})
    watchdog, silent_s = Watchdog(1), []
    while looks:
        clock.now += silence.LOOK_S
        silent_s.append(watchdog.seconds())
    clock.now += silence.LOOK_S / 2
    silent_s.append(watchdog.seconds())
    watchdog.end()
    return [*silent_s, watchdog.seconds()]


@pytest.mark.parametrize(("looks", "silent_s"), [
    # Time that was waited before the first look does not count. Later only new time counts.
    ([{"1": (0, 90.0)}, {"1": (1, 94.0)}, {"1": (1, 99.0)}], [5, 6, 6, 8.5, 0]),
    # A process counts from its start on, and no more after its end.
    ([{"1": (0, 50.0)}, {"2": (0, 3.0)}, {}, {"2": (0, 3.0)}], [5, 7, 12, 14, 16.5, 0]),
    # Ten that wait at once do not wait longer than the clock.
    ([{}, {str(number): (0, 5.0) for number in range(10)}, {}], [5, 5, 10, 12.5, 0]),
    # A hundred that share one processor wait only for each other, which is no reason.
    ([{}, {str(number): (0.05, 4.9) for number in range(100)},
      {str(number): (0.1, 9.8) for number in range(100)}], [5, 10, 15, 17.5, 0]),
    # Where the kernel does not count waiting, only the clock counts.
    ([{}, {}, {}], [5, 10, 15, 17.5, 0])])
def test_the_time_that_processes_waited_is_subtracted_from_their_silence(
        monkeypatch: pytest.MonkeyPatch, looks: list[dict[str, tuple[float, float]]],
        silent_s: list[float]) -> None:
    assert scripted(monkeypatch, looks) == pytest.approx(silent_s)


@pytest.mark.parametrize("program", [SPIN, SLEEP])
def test_a_silent_worker_ends_its_trial_with_an_error(tmp_path: Path,
                                                      program: tuple[str, ...]) -> None:
    job = JobFolder(tmp_path / "job", [], {})
    worker = WorkerProcess(job, [{"id": "t"}], list(program), job.path, start_deadline_s=0.2,
                           trial_deadline_s=60)
    with pytest.raises(EngineError,
                       match="said nothing for [0-9]+ s while its network was awaited"):
        while time.monotonic() < worker.watchdog.since + HANGS_S:
            assert not list(worker.poll())
            time.sleep(0.02)
    worker.stop()


@pytest.mark.parametrize("words", ["invalid", "too large"])
def test_a_parameter_that_the_kernel_refuses_is_reported_at_once(
        words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest's first process then waits for ever, as it was started without its arguments."""
    monkeypatch.setattr(job, "ROOM_S", 0.0)
    with pytest.raises(EngineCannot, match=r"does not take tcp_cubic\.hystart=abc"):
        run(tmp_path, f'echo "Booting kernel: \\`abc\' {words} for parameter'
                      ' \\`tcp_cubic.hystart\'"\nsleep 999')
