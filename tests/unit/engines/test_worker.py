"""Workers, the choice of an engine, kernels that are exported, and clusters' addresses."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import CannotError
from firstflight.testbed.engine_errors import engine_errors
from firstflight.runs import cluster
from firstflight.runs.cluster import cluster as cluster_module
from firstflight.runs.cluster.cluster import PROJECT, connect, pack
from firstflight.runs.cluster.node import CODE, KERNEL
from firstflight.testbed import engine
from firstflight.testbed.job import JobFolder, WorkerProcess
from firstflight.testbed.messages import Job, Observation
from firstflight.testbed.network.kernel import KernelLacks
from firstflight.testbed.worker import worker
from firstflight.testbed import restart
from vtime import shared_folder, system, uml
from vtime.console import EngineCannot, EngineError
from vtime.kernel.exchange import MEMBERS, ImportRefused, export_kernel, import_kernel


class NotingBench:
    """A bench that only notes which trials it is given, and fails at the first one."""

    sysctls: dict[str, dict[str, str]] = {}

    def __init__(self, error: Callable[[str], Exception] = worker.WorkerError) -> None:
        self.measured: list[str] = []
        self.error = error

    def prepare(self, trial: Job) -> None:
        pass

    def measure(self, trial: Job, observation: Any) -> None:
        self.measured.append(trial["id"])
        observation["number"] = len(self.measured)
        if len(self.measured) == 1:
            raise self.error("cold")

    def add_recorded(self, observation: Observation) -> None:
        pass

    def close(self) -> None:
        pass


def fetch(name: str, client: str, deadline_s: float) -> dict[str, Any]:
    return {"id": name, "client": client, "deadline_s": deadline_s, "kind": "fetch"}


TRIALS = [fetch("slow", "curl", 90), fetch("quick", "curl", 61), fetch("other", "wget", 70)]


@pytest.mark.parametrize(("trials", "warm_up", "before"), [
    (TRIALS, True, ["quick", "other"]), (TRIALS, False, []),
    ([{"id": "load", "alone": True, "deadline_s": 9, "kind": "load"}], True, [])])
def test_warm_up_fetches_are_not_recorded(trials: list[dict[str, Any]], warm_up: bool,
                                          before: list[str], tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    bench = NotingBench()
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    folder = JobFolder(tmp_path / "job", trials, {}, warm_up=warm_up)
    assert worker.main(folder.path, tmp_path) == 0
    names = [trial["id"] for trial in trials]
    assert bench.measured == before + names
    reported = [line for line in map(json.loads, folder.new_lines()) if "trial" in line]
    assert [(line["trial"], line["number"]) for line in reported] == [
        (name, number) for number, name in enumerate(names, start=len(before) + 1)]
    assert ("error" in reported[0]) == (not before)  # an error of the warm-up is not reported


def test_a_program_that_ended_fails_no_other_trial(tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker stops at the trial whose program ended, and reports that it cannot go on."""
    bench = NotingBench(worker.ProgramEnded)
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    folder = JobFolder(tmp_path / "job", TRIALS, {})
    assert worker.main(folder.path, tmp_path) == 1
    *_, trial, end = map(json.loads, folder.new_lines())
    assert bench.measured == [TRIALS[0]["id"]] == [trial["trial"]]
    assert trial["error"] == "cold" and end == {"stage": "broken", "reason": "cold"}


def test_a_kernel_that_lacks_something_fails_no_trial(tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fail all of them: the worker says that this kernel cannot."""
    bench = NotingBench(KernelLacks)
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    folder = JobFolder(tmp_path / "job", TRIALS, {})
    assert worker.main(folder.path, tmp_path) == 4
    *_, end = map(json.loads, folder.new_lines())
    assert end == {"stage": "cannot", "reason": "cold"} and len(bench.measured) == 1


@pytest.mark.parametrize(("code", "is_full"), [
    (errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EFBIG, True), (errno.EROFS, True),
    (errno.EIO, False)])
def test_a_full_folder_stops_the_worker_without_a_failure(tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch,
                                                          code: int, is_full: bool) -> None:
    bench = NotingBench(lambda words: OSError(code, os.strerror(code)))
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    folder = JobFolder(tmp_path / "job", TRIALS, {})
    assert worker.main(folder.path, tmp_path) == 1
    stages = [line["stage"] for line in map(json.loads, folder.new_lines())]
    assert stages == (["ready"] if is_full else ["ready", "failed"])
    assert shared_folder.write_error(folder.path) == (os.strerror(code) if is_full else "")


def test_trials_are_read_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million of them would not fit into a guest's memory."""
    bench = NotingBench()
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    folder = JobFolder(tmp_path / "job", TRIALS, {})
    with (folder.path / "trials1.jsonl").open("a") as file:
        file.write("torn")
    with pytest.raises(ValueError):
        worker.main(folder.path, tmp_path)
    assert bench.measured == [trial["id"] for trial in TRIALS]
    assert len(folder.new_lines()) == 1 + len(TRIALS)


def test_a_worker_that_waits_takes_file_after_file(tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps one bench with its network and programs, and looks again until it is killed."""
    bench, later = NotingBench(), [[fetch("second", "curl", 9)], [fetch("third", "curl", 9)]]
    folder = JobFolder(tmp_path / "job", TRIALS, {}, waits=True)

    def sleep(_: float) -> None:
        if not later:
            raise SystemExit(9)
        folder.add(later.pop(0))

    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: bench)
    monkeypatch.setattr(worker.time, "sleep", sleep)
    with pytest.raises(SystemExit):
        worker.main(folder.path, tmp_path)
    assert bench.measured == [*(trial["id"] for trial in TRIALS), "second", "third"]
    assert "done" not in [line.get("stage") for line in map(json.loads, folder.new_lines())]


def test_a_worker_whose_engine_is_gone_does_not_wait_for_ever(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: NotingBench())
    monkeypatch.setattr(worker.time, "sleep", looks.append)
    monkeypatch.setattr(worker, "MOST_LOOKS", 50)
    folder = JobFolder(tmp_path / "job", TRIALS, {}, waits=True)
    assert worker.main(folder.path, tmp_path) == 0 and len(looks) == 50


def test_trials_begin_on_the_grid_of_the_guests_clock(tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """So the timers of each trial are rounded alike, whatever ran before it.

    The last sleep is always equally long, so a trial begins exactly on the nanosecond.
    """
    slept: list[int] = []
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: NotingBench())
    monkeypatch.setattr(worker.time, "monotonic_ns", lambda: 10**16 + 1)
    monkeypatch.setattr(worker, "sleep_until", slept.append)
    for align_s in (4.096, 0.0):
        folder = JobFolder(tmp_path / f"job{align_s}", TRIALS, {}, align_s)
        assert worker.main(folder.path, tmp_path) == 0
    next_ns = 2_441_407 * 4_096_000_000
    assert 0 < next_ns - 10**16 < 4_096_000_000
    assert slept == [next_ns - worker.NEAR_NS, next_ns] * len(TRIALS)


def test_date_and_random_numbers_restart_before_a_trials_network_and_at_its_start(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, str]] = []
    seed_file = tmp_path / "seed"
    seed_file.touch()

    class Drawing(NotingBench):
        def prepare(self, trial: Job) -> None:
            done.append(("prepare", seed_file.read_text()))

        def measure(self, trial: Job, observation: Any) -> None:
            done.append(("measure", seed_file.read_text()))
            seed_file.write_text("")

    trials = [TRIALS[0] | {"id": "a", "seed": 7}, TRIALS[0] | {"id": "b"}]
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: Drawing())
    monkeypatch.setattr(worker, "Restart", lambda: restart.Restart(seed_file))
    monkeypatch.setattr(restart.time, "clock_settime_ns", lambda clock, at_ns: done.append(
        ("date", f"{at_ns / 1e9:g}")))
    monkeypatch.setattr(worker, "sleep_until", lambda ns: seed_file.write_text(""))
    assert worker.main(JobFolder(tmp_path / "job", trials, {}, 4.096).path, tmp_path) == 0
    date = ("date", f"{restart.BEGINS_S:g}")
    assert done == [date, ("prepare", "7"), date, ("measure", "7"),
                    date, ("prepare", "0"), date, ("measure", "0")]


def test_a_server_with_a_certificate_of_its_own_has_todays_date(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been made a moment ago, and is not valid before that."""
    (tmp_path / "seed").touch()
    set_ns: list[int] = []
    monkeypatch.setattr(restart.time, "clock_settime_ns", lambda clock, at_ns: set_ns.append(at_ns))
    began = restart.Restart(tmp_path / "seed")
    for ca in ("", "ca.pem"):
        began.begin({**TRIALS[0], "own": {"command": [], "ready": "", "name": "", "ca": ca,
                                          "folders": []}})
    assert set_ns[0] == restart.BEGINS_S * 10**9
    assert 0 <= set_ns[1] / 1e9 - time.time() <= 3600


def test_keys_are_drawn_alike_whatever_trial_is_prepared(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_ns: list[int] = []
    monkeypatch.setattr(restart.time, "clock_settime_ns", lambda clock, at_ns: set_ns.append(at_ns))
    seed_file = tmp_path / "seed"
    seed_file.write_text("71")
    with restart.drawn_alike(seed_file):
        assert seed_file.read_text() == "0" and set_ns == [restart.BEGINS_S * 10**9]
    assert seed_file.read_text() == "71"
    with restart.drawn_alike(tmp_path / "none"):
        assert len(set_ns) == 1, "no guest"


def test_a_machine_that_is_no_guest_keeps_its_date(tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart.time, "clock_settime_ns", lambda *_: pytest.fail("was set"))
    assert not restart.SEED_FILE.exists()
    restart.Restart(tmp_path / "none").begin(TRIALS[0])


def test_a_trial_with_jitter_begins_later_than_its_largest_jitter(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """netem may take a packet's time back by the jitter, but not to before the clock's zero."""
    slept: list[int] = []
    monkeypatch.setattr(worker, "bench_of", lambda kind: lambda *_: NotingBench())
    monkeypatch.setattr(worker.time, "monotonic_ns", lambda: 10**9)
    monkeypatch.setattr(worker, "sleep_until", slept.append)
    trials = [TRIALS[0] | {"network": {"down": {"jitter_ms": jitter_ms}}} for jitter_ms
              in (0, 2147)]
    assert worker.main(JobFolder(tmp_path / "job", trials, {}, 4.096).path, tmp_path) == 0
    assert slept[1::2] == [4_096_000_000, 3 * 4_096_000_000]


def test_a_sleep_ends_at_the_nanosecond_and_not_before() -> None:
    """Also far from 0, where a number of seconds has no nanoseconds left."""
    for later_ns in (-1, 0, 1_000_001):
        until_ns = time.monotonic_ns() + later_ns
        worker.sleep_until(until_ns)
        assert time.monotonic_ns() >= until_ns
    with pytest.raises(OSError, match="Invalid argument"):
        worker.sleep_until(-10**9)


def test_the_host_engine_asks_its_worker_to_warm_up(tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    def started(job: JobFolder, *_: Any, **_named: Any) -> None:
        job.lines.close()
        raise EngineError((job.path / "job.json").read_text())
    monkeypatch.setattr(engine, "WorkerProcess", started)
    monkeypatch.setattr(engine.os, "geteuid", lambda: 0)
    with pytest.raises(EngineError) as requested:
        list(engine.HostEngine().run(TRIALS, {}, tmp_path))
    assert json.loads(str(requested.value))["warm_up"] is True


def test_the_host_engine_skips_trials_with_another_systems_programs(tmp_path: Path) -> None:
    """It says that only guests have such programs. With no other trial, no worker is started."""
    requested = [{**TRIALS[0], "system": system.NEWER}]
    (seen,) = engine.HostEngine().run(requested, {}, tmp_path)
    assert seen.trial_id == "slow" and seen.content == {"skipped": system.ONLY_IN_GUESTS}
    assert not (tmp_path / "host").exists()


# Engines ------------------------------------------------------------------------------

@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, uml):
        monkeypatch.setattr(module, "find_kernel", lambda: Path("/cache/linux"))


@pytest.fixture
def not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, uml):
        monkeypatch.setattr(module, "find_kernel", lambda: None)


@pytest.mark.usefixtures("built")
def test_auto_chooses_the_guest_if_its_kernel_is_built() -> None:
    assert [engine.choose_engine(name, 2).name for name in ("auto", "uml", "host")] == [
        "uml", "uml", "host"]
    assert engine.choose_engine("auto", 2).jobs == 2 and engine.choose_engine("uml", 1).exact


@pytest.mark.usefixtures("not_built")
def test_without_a_built_kernel_auto_chooses_the_host_and_uml_is_refused() -> None:
    chosen = engine.choose_engine("auto", 2)
    assert (chosen.name, chosen.jobs, chosen.exact) == ("host", 1, False)
    with pytest.raises(EngineCannot, match=r"run ./install.sh"):
        engine.choose_engine("uml", 1)


@pytest.mark.usefixtures("built")
def test_more_guests_than_this_machine_has_memory_for_are_refused() -> None:
    for name in ("auto", "uml"):
        with pytest.raises(EngineCannot, match="--jobs 1000000: .*; at most --jobs "):
            engine.choose_engine(name, 1_000_000)


def test_the_host_engine_says_what_this_machine_lacks(tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """Root, before anything starts; netem and other modules, when its worker reports them."""
    trial = {"id": "t", "kind": "fetch", "client": "curl", "deadline_s": 60.0, "network": {}}
    monkeypatch.setattr(engine.os, "geteuid", lambda: 1000)
    with pytest.raises(EngineCannot, match="needs root: sudo ./run.sh --engine host"):
        list(engine.HostEngine().run([trial], {}, tmp_path))
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(engine.os, "geteuid", lambda: 0)
    for reason, advised in (("no netem here", True), ("no congestion control x", False)):
        report = {"stage": "cannot", "reason": reason}
        monkeypatch.setattr(engine, "WorkerProcess", worker_that_reports(report))
        with pytest.raises(EngineCannot, match=f"^the worker reports: {reason}") as caught:
            list(engine.HostEngine().run([trial], {}, tmp_path / reason))
        assert str(caught.value).endswith(f"; {engine.netem_advice()}") is advised
        assert advised or str(caught.value) == f"the worker reports: {reason}"


@pytest.mark.parametrize("refusal", ["unshare: unshare failed: Operation not permitted",
                                     "unshare: cannot change root filesystem propagation:"
                                     " Permission denied"])
def test_a_machine_that_refuses_namespaces_to_root_is_told_what_to_do(
        refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As containers do. Only the worker's end would be reported otherwise, and no remedy."""
    (tmp_path / "unshare").write_text(f"#!/bin/sh\necho '{refusal}' >&2\nexit 1\n")
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(engine.os, "geteuid", lambda: 0)
    trial = {"id": "t", "kind": "fetch", "client": "curl", "deadline_s": 60.0, "network": {}}
    with pytest.raises(EngineCannot,
                       match=f"^{refusal}: the host engine needs .* or use --engine uml$"):
        list(engine.HostEngine().run([trial], {}, tmp_path))


def worker_that_reports(line: dict[str, Any]) -> Callable[..., WorkerProcess]:
    """Stands in for WorkerProcess: starts a process that reports this line and ends."""
    def started(job: JobFolder, trials: list[dict[str, Any]], command: list[str], **named: Any
                ) -> WorkerProcess:
        words = [sys.executable, "-S", "-c",
                 f"open({str(job.lines_path)!r}, 'a').write({json.dumps(line) + chr(10)!r})"]
        return WorkerProcess(job, trials, words, **named)
    return started


# Kernels that are exported and imported -----------------------------------------------

KEY, SOURCE = "0123456789abcdef", "ab" * 32
WITH_FLAGS = {"configuration": KEY, "compiler": "gcc 12"}


@pytest.fixture
def built_folder(tmp_path: Path) -> Path:
    """A folder of the cache with a kernel's files; the kernel itself cannot run."""
    folder = tmp_path / "built"
    folder.mkdir()
    for name, content in (("linux", b"\x7fELF kernel"), ("config", b"CONFIG_UML=y\n"),
                          ("version", b"7.2.11\n"), ("source", b"linux-source-7.2\n")):
        (folder / name).write_bytes(content)
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
              for name in ("linux", "config")}
    (folder / "inputs").write_text(f"configuration {KEY}\nsource {SOURCE}\ncompiler gcc 12\n"
                                   f"linux {hashes['linux']}\nconfig {hashes['config']}\n")
    return folder


@pytest.fixture
def exported(built_folder: Path, tmp_path: Path) -> Path:
    """The file of an exported kernel."""
    export_kernel(built_folder, tmp_path / "kernel.tar")
    return tmp_path / "kernel.tar"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """An empty folder, into which a kernel is imported."""
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def write_tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def refusal_of(file: Path, folder: Path, requested: dict[str, str] | None = None) -> str:
    """The message with which the import of a file is refused."""
    with pytest.raises(ImportRefused) as caught:
        import_kernel(file, folder, WITH_FLAGS if requested is None else requested)
    assert not list(folder.iterdir()), "nothing is written"
    return str(caught.value)


def test_an_exported_kernel_is_imported_whole(built_folder: Path, exported: Path,
                                              empty: Path) -> None:
    import_kernel(exported, empty, {**WITH_FLAGS, "source": SOURCE})
    assert {path.name: path.read_bytes() for path in empty.iterdir()} == {
        **{name: (built_folder / name).read_bytes() for name in MEMBERS},
        "source": b"linux-source-7.2, imported\n"}
    assert (empty / "linux").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("name", "here", "why"), [
    ("configuration", "4567",
     "another recipe or configuration: 0123456789abcdef, and here it is 4567"),
    ("compiler", "gcc 14", "another compiler: gcc 12, and here it is gcc 14"),
    ("source", "ef01", "another source: abab")])
def test_a_kernel_built_differently_is_refused(exported: Path, empty: Path, name: str, here: str,
                                               why: str) -> None:
    assert why in refusal_of(exported, empty, {**WITH_FLAGS, name: here})


@pytest.mark.parametrize("name", ["linux", "config"])
def test_a_changed_byte_is_refused(built_folder: Path, tmp_path: Path, empty: Path,
                                   name: str) -> None:
    (built_folder / name).write_bytes(b"!" + (built_folder / name).read_bytes()[1:])
    export_kernel(built_folder, tmp_path / "changed.tar")
    assert f"its {name} is damaged" in refusal_of(tmp_path / "changed.tar", empty)


@pytest.mark.parametrize("name", ["../linux", "/linux", "sub/linux", "linux2", "."])
def test_members_with_paths_or_unknown_names_are_refused(tmp_path: Path, empty: Path,
                                                         name: str) -> None:
    assert "each once, and no links" in refusal_of(
        write_tar(tmp_path / "f.tar", (tarfile.TarInfo(name), b"x")), empty)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE,
                                  tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_members_other_than_regular_files_are_refused(tmp_path: Path, empty: Path,
                                                      kind: bytes) -> None:
    link = tarfile.TarInfo("linux")
    link.type, link.linkname = kind, "/etc/passwd"
    assert "no links" in refusal_of(write_tar(tmp_path / "f.tar", (link, b"")), empty)


def test_a_repeated_or_missing_member_is_refused(tmp_path: Path, empty: Path) -> None:
    twice = [(tarfile.TarInfo("version"), b"1"), (tarfile.TarInfo("version"), b"2")]
    assert "each once" in refusal_of(write_tar(tmp_path / "f.tar", *twice), empty)
    assert "lacks config, inputs, linux, source" in refusal_of(
        write_tar(tmp_path / "f.tar", twice[0]), empty)


def test_a_member_or_file_far_too_large_is_refused(tmp_path: Path, empty: Path) -> None:
    large = (tarfile.TarInfo("version"), bytes(MEMBERS["version"] + 1))
    assert "more than" in refusal_of(write_tar(tmp_path / "f.tar", large), empty)
    with (tmp_path / "f.tar").open("ab") as file:
        file.truncate(1 << 30)
    assert "far more than a kernel" in refusal_of(tmp_path / "f.tar", empty)


def test_a_pipe_or_a_folder_is_refused_without_waiting(tmp_path: Path, empty: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        assert refusal_of(path, empty) == "it is no regular file"


@pytest.mark.parametrize("bytes_left", [0, 100, 512, 3000])
def test_a_file_that_is_cut_off_is_refused(exported: Path, empty: Path, bytes_left: int) -> None:
    exported.write_bytes(exported.read_bytes()[:bytes_left])
    refusal_of(exported, empty)


@pytest.mark.parametrize("inputs", [b"", b"\xff\x00", b"configuration 0123\n",
                                    b"configuration 0123\nother x\n"])
def test_malformed_inputs_of_a_kernel_are_refused(built_folder: Path, tmp_path: Path, empty: Path,
                                                  inputs: bytes) -> None:
    (built_folder / "inputs").write_bytes(inputs)
    export_kernel(built_folder, tmp_path / "f.tar")
    assert "its inputs are" in refusal_of(tmp_path / "f.tar", empty)


# Clusters: addresses, and the programs that are sent; more in tests/programs ----------

@pytest.mark.parametrize("address", [
    "tls://10.0.0.1:8786", "tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:8786"])
def test_a_schedulers_address_is_taken_as_it_is_typed(address: str) -> None:
    assert cluster.address(address) == address


@pytest.mark.parametrize("address", [
    "tcp://10.0.0.1:8786", "tcp://scheduler:8786", "tcp://0.0.0.0:1", "tcp://[2001:db8::1]:8786",
    "tcp://127.0.0.1.example.org:1"])
def test_an_address_of_another_machine_without_tls_is_refused(
        address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with status 4, before Dask is imported or a connection is made."""
    monkeypatch.setattr(cluster_module, "import_module", None)
    with pytest.raises(CannotError, match="use tls://") as refused, engine_errors(), \
            connect(cluster.address(address), Path("7.2/linux"), {}):
        pass
    assert refused.value.exit_status == 4 and "\n" not in str(refused.value)


@pytest.mark.parametrize("address", [
    "http://10.0.0.1:1", "10.0.0.1:8786", "tls://10.0.0.1", "tls://h:99999999", "tls://[::1", "",
    "tls://", "tls://h:0", "somewhere"])
def test_words_that_are_no_address_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match="not an address of a scheduler"):
        cluster.address(address)


def test_packed_programs_keep_their_mode(tmp_path: Path) -> None:
    (tmp_path / "linux").write_bytes(b"kernel")
    with zipfile.ZipFile(io.BytesIO(pack(tmp_path / "linux"))) as files:
        assert files.read(KERNEL) == b"kernel"
        for name in ("install.sh", "firstflight/commands/batch.py",
                     "firstflight/testbed/worker/worker.py"):
            mode = files.getinfo(f"{CODE}/{name}").external_attr >> 16 & 0o755
            assert mode == (PROJECT / name).stat().st_mode & 0o755, name
