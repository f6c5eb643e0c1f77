"""All benchmarks end alike: 2 for what is asked wrongly, 4 where the machine cannot."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from base.errors import CANNOT, FAILED, USAGE
from benchmarks import command
from benchmarks.outside import transfers
from vtime import uml
from vtime.console import EngineError

FOLDER = Path(command.__file__).parent
PROGRAMS = sorted(".".join(path.relative_to(FOLDER).with_suffix("").parts)
                  for path in FOLDER.rglob("*.py") if "command.run(" in path.read_text())


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_unknown_flag_is_told_in_one_line(program: str,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    name, module = program.rpartition(".")[2], importlib.import_module(f"benchmarks.{program}")
    with pytest.raises(SystemExit) as ended:
        module.main(["--no-such-flag"])
    said = capsys.readouterr().err
    assert ended.value.code == USAGE and said.count("\n") == 1 and said.startswith(name)
    assert f'command.run("{name}", main)' in Path(module.__file__ or "").read_text()


def test_the_readme_says_how_to_run_each() -> None:
    told = (FOLDER / "README.md").read_text()
    for program in PROGRAMS:
        assert f"benchmarks.{program} " in told.replace("`", " ") or (
            FOLDER / f"{program.replace('.', '/')}.sh").exists(), program


def test_without_the_guests_kernel_the_machine_cannot(monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(uml, "find_kernel", lambda: None)
    monkeypatch.setattr("sys.argv", ["transfers", "--transfers", "1"])
    with pytest.raises(SystemExit) as ended:
        command.run("transfers", transfers.main)
    assert ended.value.code == CANNOT
    assert "transfers: the guest kernel is not built: run ./install.sh" in capsys.readouterr().err


def test_what_fails_in_an_engine_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: object) -> int:
        raise EngineError("the guest hangs")
    with pytest.raises(SystemExit) as ended:
        command.run("transfers", fail)
    assert (ended.value.code, capsys.readouterr().err) == (FAILED, "transfers: the guest hangs\n")
