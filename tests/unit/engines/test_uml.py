"""The `uml` engine without a guest: where a kernel cannot run, and the command that boots one."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines import uml
from engines.job import EngineCannot, EngineError
from engines.uml import UmlEngine, guest_command

TRIAL = {"id": "t", "kind": "fetch", "shape": {}}


# As User-Mode Linux prints it where a machine is made so; tests/live makes one of them so.
@pytest.mark.parametrize(("printed", "why"), [
    ("ptrace: Operation not permitted\ncheck_ptrace : expected SIGSTOP, got status = 9",
     "ptrace and seccomp are both forbidden.* use --engine host"),
    ("/dev/shm must be not mounted noexec", "mounted noexec: mount it without"),
    ("<3>Bus error - the host /dev/shm or /tmp mount likely just ran out of space\n1\n2\n3\n4",
     "/dev/shm is full; each guest needs 512 MB.*--jobs")])
def test_a_machine_that_cannot_is_told_what_to_do(tmp_path: Path, printed: str, why: str) -> None:
    kernel = tmp_path / "linux"
    kernel.write_text(f"#!/bin/sh\necho '{printed}'\nexit 1\n")
    kernel.chmod(0o755)
    with pytest.raises(EngineCannot, match=why):
        list(UmlEngine(kernel, 1).run([TRIAL], {}, tmp_path / "work"))


def test_another_end_is_a_failure(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    kernel.write_text("#!/bin/sh\necho nothing known\nexit 1\n")
    kernel.chmod(0o755)
    with pytest.raises(EngineError, match="nothing known") as caught:
        list(UmlEngine(kernel, 1).run([TRIAL], {}, tmp_path / "work"))
    assert not isinstance(caught.value, EngineCannot)


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
