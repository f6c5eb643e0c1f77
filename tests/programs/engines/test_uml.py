"""The `uml` engine without a guest: where a kernel cannot run, and the command that boots one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.job import Observation, StorageError, WorkerKilled
from vtime import uml
from vtime.console import EngineCannot, EngineError
from vtime.uml import guest_command

TRIAL = {"id": "t", "kind": "fetch", "network": {}}
READY = """echo '{"stage": "ready", "facts": {"kernel": "7"}}' >> observations.jsonl"""


def run(tmp_path: Path, script: str) -> list[Observation]:
    """What an engine makes of a kernel that does this in its folder."""
    kernel = tmp_path / "linux"
    kernel.write_text(f"#!/bin/sh\n{script}\n")
    kernel.chmod(0o755)
    return list(UmlEngine(kernel, 1).run([TRIAL], {}, tmp_path / "work"))


# As User-Mode Linux prints it where a machine is made so; tests/live makes one of them so.
@pytest.mark.parametrize(("printed", "why"), [
    ("ptrace: Operation not permitted\ncheck_ptrace : expected SIGSTOP, got status = 9",
     "ptrace or seccomp, and both are forbidden.* use --engine host"),
    ("no memory that may be executed: Permission denied\n1\n2\n3\n4",
     "has to be executed, which this machine forbids: sysctl -w vm.memfd_noexec=0")])
def test_a_machine_that_cannot_is_told_what_to_do(tmp_path: Path, printed: str, why: str) -> None:
    with pytest.raises(EngineCannot, match=why):
        run(tmp_path, f"echo '{printed}'\nexit 1")


def test_another_end_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="nothing known") as caught:
        run(tmp_path, "echo nothing known\nexit 1")
    assert not isinstance(caught.value, EngineCannot)


def test_a_full_disk_stops_the_run_and_fails_no_trial(tmp_path: Path) -> None:
    """As its worker says it, in the place that is kept for that."""
    with pytest.raises(StorageError, match="guest0: cannot be written: No space left on device"):
        run(tmp_path, f"{READY}\nprintf 'No space left on device' > cannot-write\nexit 1")


def test_a_guest_that_dies_costs_the_trial_it_was_at(tmp_path: Path) -> None:
    (seen,) = run(tmp_path, f"{READY}\necho 'Kernel panic'\nexit 1")
    assert "stopped (status 1) while trial t was awaited: it printed: Kernel panic" in seen.content["error"]


# As util-linux' unshare ends where the process behind it is killed.
BEHIND_UNSHARE = "echo 'unshare: sigprocmask unblock failed: Invalid argument' >&2; exit 1"


@pytest.mark.parametrize("killed", ["kill -KILL $$", BEHIND_UNSHARE])
@pytest.mark.parametrize("up", [READY, ""])
def test_a_guest_that_is_killed_costs_no_trial(tmp_path: Path, up: str, killed: str) -> None:
    """Neither while it boots nor at a trial: another one goes on."""
    (seen,) = run(tmp_path, f"""{up}
        case $PWD in */guest0) {killed};; esac
        echo '{{"trial": "t", "skipped": "by another"}}' >> observations.jsonl""")
    assert seen.content["skipped"] == "by another"


def test_a_guest_whose_programs_ended_costs_no_more_than_their_trial(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    kernel.write_text(f"""#!/bin/sh\n{READY}
        case $PWD in
        */guest0) echo '{{"trial": "t", "error": "the client ended"}}'
                  echo '{{"stage": "broken", "reason": "the client ended"}}' ;;
        *) echo '{{"trial": "u"}}' ;;
        esac >> observations.jsonl\n""")
    kernel.chmod(0o755)
    seen = list(UmlEngine(kernel, 1).run([TRIAL, {**TRIAL, "id": "u"}], {}, tmp_path / "work"))
    assert [each.content.get("error") for each in seen] == ["the client ended", None]


def test_guests_that_are_killed_again_and_again_stop_the_run(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed from outside: the first process of a PID namespace cannot do it itself."""
    monkeypatch.setattr(uml, "namespaces", lambda: ())
    with pytest.raises(WorkerKilled, match="killed while trial t was awaited, by the system if"):
        run(tmp_path, f"{READY}\nkill -KILL $$")


def test_a_guest_begins_its_trials_on_a_grid_and_runs_none_before_them(tmp_path: Path) -> None:
    """So a trial takes the same time whatever ran before it."""
    (seen,) = run(tmp_path, f"""{READY}
        echo '{{"trial": "t", "files": {{"job": "job.json"}}}}' >> observations.jsonl""")
    requested = json.loads(seen.files["job"])
    assert (requested["align_s"], requested["warm_up"]) == (4.096, False)  # 4096 ticks of the timer wheel


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
    ("linux-source-7.2 7.2.11-1~bpo13+1", True), ("linux-hwe-6.14-source-6.14.0 6.14.0-37.37~24.04.1", True),
    ("linux-6.18.21.tar.xz of kernel.org", True), ("linux-source-7.2 7.2.11-1, imported", True),
    ("/home/me/linux-source-7.2 7.2.11-1", False), ("/src/linux-6.18.21.tar.xz of kernel.org", False),
    ("/home/me/patched, imported", False), ("", False)])
def test_the_model_knows_the_kernels_of_distributions_and_kernel_org(origin: str, known: bool,
                                                                     tmp_path: Path) -> None:
    (tmp_path / "inputs").write_text("configuration 09f8\nsource 97a3aac3\ncompiler gcc 12\n")
    (tmp_path / "source").write_text(f"{origin}\n")
    engine = UmlEngine(tmp_path / "linux", 1)
    assert engine.known_kernel is known
    assert engine.facts.items() >= {"kernel_known": known, "kernel_origin": origin,
                                    "kernel_source": "97a3aac3"}.items()
    assert ("the guest kernel was built from" in engine.warning) is not known


def test_a_kernel_that_says_nothing_of_its_source_is_not_known(tmp_path: Path) -> None:
    assert uml.made_from(tmp_path / "linux") == {"kernel_known": False, "kernel_origin": "",
                                                 "kernel_source": ""}


def test_no_folder_stands_on_the_kernels_command_line(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is split at spaces; of the project's own path only what is in quotes is there."""
    monkeypatch.setattr(uml, "INIT", Path("/a b,ü/init.py"))
    words = guest_command(tmp_path / "linux")
    assert words[-1] == '"/a b,ü/init.py"'
    assert not [word for word in words[words.index(str(tmp_path / "linux")) + 1:-1]
                if " " in word or str(tmp_path) in word]
    monkeypatch.setattr(uml, "INIT", Path('/a "b"/init.py'))
    with pytest.raises(EngineCannot, match="move the project"):
        guest_command(tmp_path / "linux")
