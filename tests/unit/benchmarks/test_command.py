"""All benchmarks end alike; what the timer computes."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks import command, processor, timer
from benchmarks.outside import transfers
from benchmarks.timer import Timing
from firstflight.base.errors import CANNOT, FAILED, USAGE
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


# The timer: the table of a command, and ns-3's times against ours --------------------

def test_the_table_has_the_median_and_the_ratio_of_pairs() -> None:
    # A machine that was twice as slow in the second pair leaves the ratio as it is.
    ours = [Timing(1.0, None, 100), Timing(4.0, None, 200), Timing(2.0, None, 100)]
    before = [Timing(2.0, None, 100), Timing(8.0, None, 200), Timing(4.0, None, 100)]
    head, wall, emulated = map(str.split, timer.table(ours, before, "before"))
    assert head == ["least", "median", "most", "before", "ratio"]
    assert wall == ["wall", "time,", "s", "1.00", "2.00", "4.00", "4.00", "0.50"]
    assert emulated[-5:] == ["50.00", "50.00", "100.00", "25.00", "2.00"]
    head, wall, *_ = map(str.split, timer.table(ours, [], ""))
    assert head == ["least", "median", "most"] and wall[-1] == "4.00"


def test_processor_time_is_read_as_both_kinds_of_control_groups_count_it() -> None:
    assert processor.Group(Path("/"), Path("/"), 0.001).seconds("200000000 ") == 0.2
    second = processor.Group(Path("/"), Path("/"), 1.0)
    assert second.seconds("usage_usec 1500000\nuser_usec 7\n") == 1.5


def test_the_simulators_times_are_compared_cell_by_cell() -> None:
    ours = {(20.0, 56.0, 3): 100.0, (20.0, 56.0, 10): 200.0, (50.0, 56.0, 3): 300.0}
    theirs = {(20.0, 56.0, 3): 101.0, (20.0, 56.0, 10): 180.0, (50.0, 56.0, 3): 300.0}
    assert timer.difference(ours, theirs) == (
        "3 cells, ns-3's times against ours: median +0.00 %, 2 within 2 %, least -10.0 %,"
        " most +1.0 %")
