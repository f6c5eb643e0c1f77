"""The driver reads its command line, measures what it requests, and ends with the right status."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import experiment
from firstflight.base import errors, signals
from firstflight.base.errors import CannotError, FirstFlightError, UsageError
from firstflight.base.typed import typed_number
from firstflight.commands import export, flags, measure, run
from firstflight.findings.quantities import FLAGS
from firstflight.probe.verdict import ProbedConnection, Response
from firstflight.runs import scenario_file
from firstflight.runs.kinds import RunData
from firstflight.runs.results.records import FAIL, PASS, SKIPPED, Record
from firstflight.workloads.fetch.record.record import Record as FetchRecord
from tests.conftest import PROJECT
from tests.golden.rows import whole_text
from tests.running import HANGS_S, run_program
from tests.unit.fetches.small import SMALL, WITHOUT_FIGURES


@pytest.mark.parametrize("argv, scenarios", [
    ([], run.DEFAULT_SCENARIOS), (["--jobs", "1"], run.DEFAULT_SCENARIOS),
    *((flags, ()) for flags in (["--rtt", "35"], ["--iw", "3,10"], ["--client", "wget"],
                                ["--repeat", "2"], ["--sysctl", "a=b"], ["--name", "dsl"])),
    (["tselentis2013", "my.toml"], ("tselentis2013", "my.toml")),
    (["--scenario", "tselentis2013", "--rtt", "35"], ("tselentis2013",)),
    (["a", "--scenario", "b", "c"], ("a", "b", "c"))])
def test_the_command_line_decides_which_scenarios_are_measured(argv: list[str],
                                                               scenarios: tuple[str, ...]) -> None:
    request = flags.parse(argv)
    assert request.scenarios == scenarios and request.own == (not scenarios)


def test_every_flag_of_a_quantity_takes_a_list_of_values() -> None:
    for name, quantity in FLAGS.items():
        words = {"sysctl": ["net.ipv4.tcp_sack=0", "net.ipv4.tcp_ecn=1"]}
        values: list[Any] = words.get(name, ["cubic", "bbr"])
        if quantity.lowest > -math.inf:
            values = [1, 2] if quantity.whole else [0.5, 2.0]
        typed = [str(value) if isinstance(value, str) else typed_number(value, quantity.unit)
                 for value in values]
        request = flags.parse([quantity.flag, ",".join(typed)])
        assert request.overrides.lists == {name: values}


@pytest.mark.parametrize("outcomes, status", [
    ([(True, PASS), (True, PASS)], errors.OK), ([(True, PASS), (True, FAIL)], errors.VERDICT),
    ([(False, FAIL), (True, FAIL)], errors.FAILED),
    # This machine lacks what all trials need.
    ([(True, SKIPPED), (True, SKIPPED)], errors.CANNOT),
    ([(True, SKIPPED), (True, PASS)], errors.OK), ([(True, SKIPPED), (True, FAIL)], errors.VERDICT),
    # A fetch that failed as it had to; and no trial at all.
    ([(False, PASS)], errors.OK), ([], errors.OK)])
def test_a_runs_status_follows_from_its_verdicts(outcomes: list[tuple[bool, str]],
                                                 status: int) -> None:
    records = [Record(None, ok, verdict=verdict) for ok, verdict in outcomes]
    assert measure.status_of(RunData(Path(), {}, records)) == status


def test_the_list_opens_every_file_once(monkeypatch: pytest.MonkeyPatch,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    opened = []
    read = scenario_file.read
    monkeypatch.setattr(scenario_file, "read",
                        lambda path, *more: opened.append(path) or read(path, *more))
    assert experiment.main(["--list"]) == errors.OK
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(opened) == len(set(opened))
    assert any(line.startswith("zhao2019 ") and "initial window" in line for line in lines)


def broken_beside(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make this the folder of scenarios: one of its files can be read, and three cannot."""
    (folder / "good.toml").write_text('# A claim.\ntitle = "t"\nsource = "s"\n')
    (folder / "headless.toml").write_text('# A claim.\nsource = "s"\n')
    (folder / "torn.toml").write_text("# A claim.\ntitle = \n")
    (folder / "folder.toml").mkdir()
    names, find = scenario_file.names, scenario_file.find
    monkeypatch.setattr(scenario_file, "names", lambda within=folder: names(within))
    monkeypatch.setattr(scenario_file, "find", lambda name: find(name, folder))


def test_a_broken_file_is_named_and_the_others_are_listed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    broken_beside(monkeypatch, tmp_path)
    assert experiment.main(["--list"]) == errors.USAGE
    printed = capsys.readouterr()
    assert printed.out == "good      A claim.\n"
    for line, words in zip(printed.err.splitlines(), (
            "scenarios/folder.toml: cannot be read: Is a directory",
            "scenarios/headless.toml: title is missing", "scenarios/torn.toml: line 2")):
        assert line.startswith(f"run.sh: {words}")
    assert printed.err.count("\n") == 3


def test_the_flag_yes_allows_very_many_trials() -> None:
    assert flags.parse(["--repeat", "10000", "--yes"]).overrides.many
    assert not flags.parse(["--repeat", "10000"]).overrides.many


def test_a_new_scenario_has_every_quantity_and_passes_its_check(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert experiment.main(["--new", "mine"]) == errors.OK
    text = (tmp_path / "mine.toml").read_text()
    for name, quantity in FLAGS.items():
        assert name == "load" or quantity.flag_help in text
    assert experiment.main(["--check", "mine.toml"]) == errors.OK
    assert "2 trials; nothing is wrong with it; expected time: unknown" in capsys.readouterr().out


def test_as_published_requests_the_scenarios_that_explain_those_named() -> None:
    requested = flags.parse(["--as-published", "zhao2019", "marrama2012_as_published"])
    assert requested.scenarios == ("zhao2019_as_published", "marrama2012_as_published")
    assert flags.parse(["--as-published"]).scenarios == (
        "marrama2012_as_published", "tselentis2013_as_published", "zhao2019_as_published")


def test_no_command_waits_for_slow_libraries() -> None:
    """Slow libraries are imported only where they are used."""
    script = ("import sys, experiment, firstflight.commands.run\n"
              "import firstflight.study.fetch_findings\n"
              "slow = {'numpy', 'scipy', 'matplotlib', 'dpkt', 'jinja2'}"
              " & {*sys.modules}; sys.exit(f'{slow}' if slow else 0)")
    done = run_program([sys.executable, "-c", script], cwd=Path(experiment.__file__).parent)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("flags", "status", "line"), [
    (["--version"], errors.OK, ""), (["zhao2019", "--iw", "3,10"], errors.OK, ""),
    (["dukkipati2010"], errors.OK, ""),  # needs numpy, which is installed later
    (["--rtt", "50kB"], errors.USAGE, "run.sh: argument --rtt: '50kB'"),
    (["--rtt", "0"], errors.USAGE, "run.sh: --rtt: an RTT of 0 ms is out of range"),
    (["zhao2091"], errors.USAGE, "run.sh: unknown scenario 'zhao2091'"),
    (["--find-cliff", "chain", "--rtt", "0"], errors.USAGE, "run.sh: --rtt: an RTT of 0 ms")])
def test_flags_are_read_on_a_machine_that_has_python_and_nothing_else(
        flags: list[str], status: int, line: str, tmp_path: Path) -> None:
    """Python's flag -S leaves out the packages that install.sh brings. Nothing is measured."""
    if flags[0] in ("zhao2019", "dukkipati2010", "--rtt") and sys.version_info < (3, 11):
        pytest.skip("a scenario is read with a package")
    done = run_program([sys.executable, "-S", "-B", PROJECT / "experiment.py",
                        experiment.READ_ONLY, *flags], cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith(line) and done.stderr.count("\n") == bool(line)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("before", "heeded"), [(signal.SIG_DFL, True), (signal.SIG_IGN, False)])
def test_a_closed_terminal_interrupts_a_run_unless_nohup_ignores_it(
        number: signal.Signals, before: signal.Handlers, heeded: bool) -> None:
    usual = signal.signal(number, before)
    try:
        experiment.main(["--list"])
        assert (signal.getsignal(number) is signals.interrupt) is heeded
    finally:
        signal.signal(number, usual)
        signals._interrupting.discard(number)


def test_a_dry_run_names_its_engine_before_the_kernel_is_built(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    for engine, words in (("auto", "uml engine"), ("uml", "uml engine"), ("host", "host engine")):
        assert experiment.main(["--dry-run", "zhao2019", "--engine", engine]) == errors.OK
        assert capsys.readouterr().out.endswith(f" ({words})\n")


def test_the_host_engine_is_refused_before_anything_is_read(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(run, "study_of", lambda *_: pytest.fail("it was read"))
    with pytest.raises(CannotError,
                       match="the host engine needs root: sudo ./run.sh --engine host"):
        experiment.main(["--engine", "host", "zhao2019"])


# run.sh with the stored records of zhao2019 in the place of guests.
MEASURED_BEFORE = f"""
import sys
from contextlib import contextmanager
from pathlib import Path
import firstflight.commands.measure, experiment
from firstflight.base.main import run_main
from firstflight.findings.drawing import style
from firstflight.runs.measuring import JudgedTrial
from tests.golden.rows import read_rows

class Stored:
    name, build, exact, jobs, facts, doing = "uml", "", True, 1, {{}}, ""

    def judged(self, study, trials, captured, folder):
        stored = read_rows(Path("{PROJECT}/tests/golden/zhao2019_trials.csv"), study.kind.record)
        known = {{record.trial.id: record for record in stored}}
        for trial in trials:
            if trial.id in known:  # a what-if trial is not
                yield JudgedTrial(known[trial.id], {{}}, {{}}, 0.0)

firstflight.commands.measure.measurer_for = contextmanager(lambda *_: iter([Stored()]))
style.DPI = 20  # takes less time
run_main("run.sh", experiment.main)
"""


def measured_before(folder: Path, output: int,
                    *scenarios: str) -> subprocess.CompletedProcess[str]:
    """Run MEASURED_BEFORE, with its results and figures in a folder.

    output: the file descriptor that it prints to.
    """
    return subprocess.run(
        [sys.executable, "-c", MEASURED_BEFORE, *scenarios, "--quiet", "--results",
         folder / "results", "--figures", folder / "figures"], cwd=PROJECT, stdout=output,
        stderr=subprocess.PIPE, text=True, check=False, timeout=HANGS_S)


def pages(folder: Path) -> list[Path]:
    """The pages that a run has written."""
    return list((folder / "results" / "zhao2019").glob("*-uml/report.html"))


def test_a_reader_who_leaves_early_loses_no_page_figure_or_scenario(tmp_path: Path) -> None:
    """The reader is like `| head -1`. The driver ends with the status for it, without an error."""
    reading, writing = os.pipe()
    os.close(reading)
    done = measured_before(tmp_path, writing, "zhao2019", "zhao2019")
    os.close(writing)
    assert (done.returncode, done.stderr) == (errors.UNREAD, "")
    assert len(pages(tmp_path)) == 2 and list((tmp_path / "figures").glob("zhao2019_*.png"))


def test_a_comparison_is_drawn_before_it_is_printed(tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trials.csv").write_text(
            whole_text(PROJECT / "tests" / "golden" / "zhao2019_trials.csv", FetchRecord))
        (tmp_path / name / "run.json").write_text(
            json.dumps({"scenario": "zhao2019", "state": "complete", "engine": "uml"}))
    drawn: list[object] = []
    monkeypatch.setattr(export, "print_while_read",
                        lambda text: drawn.extend((tmp_path / "figures").glob("*.png")) or False)
    requested = ["--compare", str(tmp_path / "one"), str(tmp_path / "two"), "--figures",
                 str(tmp_path / "figures")]
    assert experiment.main(requested) == errors.UNREAD and drawn


def test_a_full_output_loses_no_page(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = measured_before(tmp_path, full.fileno(), "zhao2019")
    assert done.returncode == errors.FAILED and "No space left on device" in done.stderr
    assert pages(tmp_path)


def test_a_probe_prints_what_it_observed_or_refuses_another_answer(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen = ProbedConnection(40.0, 0, 65536, 0, 1448, [], [], False, [(40.0, 10)],
                            Response(200, "", 20_000, False, 100_000))
    monkeypatch.setattr("firstflight.probe.client.observe", lambda url: seen)
    assert experiment.main(["--probe", "http://192.0.2.7:8080/a?b"]) == errors.OK
    printed = capsys.readouterr().out
    assert "first flight: 10 segments" in printed
    # Without a capture the window is not known, so none is suggested.
    assert printed.endswith("./run.sh --rtt 40.0 --size 100000\n")
    for status, location, words in ((301, "https://x/", "redirects to https://x/: probe that"),
                                    (500, "", "answers with status 500")):
        seen = seen._replace(response=seen.response._replace(status=status, location=location))
        with pytest.raises(FirstFlightError, match=words) as raised:
            experiment.main(["--probe", "http://192.0.2.7/"])
        assert raised.value.exit_status == errors.FAILED


def test_a_dry_run_measures_nothing_and_connects_to_nobody(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def forbidden(*_: object, **__: object) -> None:
        pytest.fail("it does what it only has to print")

    for name in ("firstflight.probe.client.observe", "firstflight.commands.runners.rounds",
                 "firstflight.commands.measure.measurer_for", "socket.getaddrinfo"):
        monkeypatch.setattr(name, forbidden)
    for argv, words in (
            (["--find-cliff", "chain", "--iw", "10,20"], "cliff: 2 trials"),
            (["--find-cliff", "response", "--rtt", "7"], "until the largest that fits"),
            (["--probe", "http://192.0.2.7:8080/a?b"],
             "one connection to 192.0.2.7:8080, and one request for /a; --dry-run opens none"),
            (["ietf78_fairness"],
             "route replace 10.0.1.1 via 10.0.2.254 dev server1-eth0 initcwnd 3"),
            (["--rtt", "7"], "own: 2 trials")):
        assert experiment.main([*argv, "--dry-run"]) == errors.OK
        assert words in capsys.readouterr().out


def test_a_circle_of_links_is_refused_as_a_scenario_and_as_a_run(tmp_path: Path) -> None:
    (tmp_path / "zhao2019.toml").symlink_to("zhao2019.toml")
    with pytest.raises(UsageError, match="there is a scenario zhao2019 already"):
        experiment.main([str(tmp_path / "zhao2019.toml")])
    with pytest.raises(UsageError, match="there is no such run"):
        experiment.main(["--compare", *[str(tmp_path / "zhao2019.toml")] * 2])


def test_a_probe_that_only_root_may_make_has_the_status_cannot(
        monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("firstflight.probe.client.attach", refused)
    monkeypatch.setattr("firstflight.probe.client.is_this_machine", lambda url: False)
    with socket.create_server(("127.0.0.1", 0)) as server, \
            pytest.raises(CannotError, match="^--probe: http.*; run it as root$") as raised:
        experiment.main(["--probe", f"http://127.0.0.1:{server.getsockname()[1]}/"])
    assert raised.value.exit_status == errors.CANNOT


def test_a_command_in_a_scenario_is_refused_unless_a_flag_allows_it(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A scenario may come from a stranger. --check runs nothing, and so needs no flag."""
    own = tmp_path / "theirs.toml"
    own.write_text(SMALL.replace(*WITHOUT_FIGURES).replace(
        "[defaults]", '[own_server]\ncommand = "serve {p}"\n[defaults]\nserver = ["own"]'))
    with pytest.raises(UsageError, match="theirs.toml: names a command, .own_server.*"
                                         " then allow it with --allow-commands"):
        experiment.main([str(own), "--dry-run"])
    assert experiment.main(["--check", str(own)]) == errors.OK
    assert run.study_of(str(own), flags.parse([str(own), "--allow-commands"])).trials
    assert "nothing is wrong" in capsys.readouterr().out
