"""The driver's command line: what is asked for, and the status that a run ends with."""

from __future__ import annotations

from pathlib import Path

import pytest

import experiment
from lab.core import errors
from lab.core.kinds import RunData
from lab.core.quantities import FLAGS
from lab.core.records import FAIL, PASS, Record


@pytest.mark.parametrize("argv, scenarios", [
    ([], experiment.DEFAULT_SCENARIOS), (["--iw", "3,10"], experiment.DEFAULT_SCENARIOS),
    (["--rtt", "35"], ["zhao2019"]), (["--client", "wget"], ["zhao2019"]),
    (["--jitter", "5"], ["zhao2019"]), (["--repeat", "2"], ["zhao2019"]),
    (["tselentis2013", "my.toml"], ["tselentis2013", "my.toml"]),
    (["--scenario", "tselentis2013", "--rtt", "35"], ["tselentis2013"]),
    (["a", "--scenario", "b", "c"], ["a", "b", "c"])])
def test_which_scenarios_are_measured(argv: list[str], scenarios: list[str]) -> None:
    assert experiment.parse(argv).scenario == scenarios


def test_every_quantity_with_a_flag_can_be_said_in_its_place() -> None:
    for name, quantity in FLAGS.items():
        values = [1, 2] if quantity.whole else [0.5, 2.0]
        arguments = experiment.parse([quantity.flag, ",".join(map(str, values))])
        assert experiment.overrides_of(arguments).lists == {name: values}


@pytest.mark.parametrize("argv", [["--rtt", "fast"], ["--iw", "2.5"], ["--repeat", "0"],
                                  ["--jobs", "-1"], ["--rt", "5"], ["--client", "libcurl"]])
def test_what_is_no_value_is_a_slip_of_usage(argv: list[str],
                                             capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        experiment.parse(argv)
    assert caught.value.code == errors.USAGE
    said = capsys.readouterr().err
    assert said.startswith("run.sh: ") and said.count("\n") == 1


@pytest.mark.parametrize("outcomes, status", [
    ([(True, PASS), (True, PASS)], errors.OK), ([(True, PASS), (True, FAIL)], errors.VERDICT),
    ([(False, FAIL), (True, FAIL)], errors.FAILED)])
def test_the_status_of_a_run(outcomes: list[tuple[bool, str]], status: int) -> None:
    records = [Record(None, ok, verdict=verdict) for ok, verdict in outcomes]
    assert experiment.status_of(RunData(Path(), {}, records)) == status


def test_the_list_opens_every_file_once(monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    opened = []
    read = experiment.scenario_file.read
    monkeypatch.setattr(experiment.scenario_file, "read",
                        lambda path, *more: opened.append(path) or read(path, *more))
    assert experiment.main(["--list"]) == errors.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(opened) == len(set(opened))
    assert any(line.startswith("zhao2019 ") and "initial window" in line for line in lines)
