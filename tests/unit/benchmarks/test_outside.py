"""Benchmarks: containers, examples of documents, public experiments, kernels and command lines."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import command, processor, timer
from benchmarks.outside import container, examples, experiments, stock_kernel, transfers
from benchmarks.outside.container import docker_profile
from benchmarks.outside.experiments import Experiment, GuestRun, Number, Row
from benchmarks.outside.stock_kernel import differ, row
from benchmarks.timer import Timing
from firstflight.base.errors import CANNOT, FAILED, OK, USAGE, CannotError
from firstflight.runs.results.records import FAIL
from tests.golden.stored_fetches import stored
from vtime import uml
from vtime.console import EngineError


# Containers: their limits, and the list of system calls that they have ----------------

def test_a_container_asks_for_no_more_than_the_machine_has(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[tuple[str, ...]] = []

    def engine(*words: str) -> subprocess.CompletedProcess[str]:
        given.append(words)
        return subprocess.CompletedProcess(words, 1, "", "")

    monkeypatch.setattr(container.resource, "getrlimit", {
        container.resource.RLIMIT_NOFILE: (1024, 20_000),
        container.resource.RLIMIT_NPROC: (500, -1)}.__getitem__)
    monkeypatch.setattr(container, "podman", engine)
    monkeypatch.setattr(container.subprocess, "run", lambda *_, **__: None)
    container.build(tmp_path, "a-base")
    containers = object.__new__(container.Containers)
    containers.image, containers.confined = "image", ()
    containers.run("a name", "zhao2019", expected="")
    assert [words[0] for words in given] == ["build", "run"]
    for words in given:
        assert {"--ulimit=nofile=1024:20000", "--ulimit=nproc=500:-1"} < set(words)


PODMANS = """{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
    {"names": ["clone", "clone3", "mount", "read", "unshare"], "action": "SCMP_ACT_ALLOW"},
    {"names": ["setns"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
    {"names": ["arch_prctl"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["amd64"]}}]}"""


def test_dockers_profile_allows_no_new_namespaces_without_a_capability() -> None:
    made = json.loads(json.dumps(docker_profile(json.loads(PODMANS))))
    allowed = {name: rule for rule in made["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW"
               and "caps" not in rule.get("includes", {}) for name in rule["names"]}
    assert set(allowed) == {"read", "arch_prctl", "clone"}
    assert allowed["clone"]["args"] == [{"index": 0, "value": 0x7E020000, "valueTwo": 0,
                                         "op": "SCMP_CMP_MASKED_EQ"}]
    refused = next(rule for rule in made["syscalls"] if rule["action"] == "SCMP_ACT_ERRNO")
    assert {"mount", "unshare", "setns"} <= set(refused["names"]) and refused["errnoRet"] == 1


# What of a document is a command, and what its output has to hold --------------------

TEXT = """# Questions

## One?

    ./run.sh --rtt 25 \\
        --iw 10

    a table
      of 2 rows
    …

    after a gap

An answer.

    import random
    print("users")

whose output is users.csv:

    ./run.sh --users users.csv

    3 of 3

With this:

    daemon off;
    events {}

## A probe needs a server of one's own, and is not run:

    $ ./run.sh --probe http://192.0.2.7/
"""


def test_a_documents_commands_lines_and_program_are_read() -> None:
    found, program, configuration = examples.examples(TEXT)
    assert [command for command, _ in found] == ["./run.sh --rtt 25 --iw 10",
                                                 "./run.sh --users users.csv"]
    assert configuration == "daemon off;\nevents {}"
    assert found[0][1] == ["a table", "  of 2 rows", "after a gap"]
    assert program == 'import random\nprint("users")'
    assert found[1][1] == ["3 of 3"]


def test_a_line_that_is_not_printed_is_found_missing() -> None:
    assert examples.missing("a table \n  of 2 rows\n", ["a table", "  of 2 rows"]) == []
    assert examples.missing("a table\nof 3 rows\n", ["a table", "of 2 rows"]) == ["of 2 rows"]


def test_the_examples_of_questions_have_commands_and_lines() -> None:
    found, program, configuration = examples.examples(
        examples.QUESTIONS.read_text(encoding="utf-8"))
    assert len(found) >= 10 and all(lines for _, lines in found) and "lognormvariate" in program
    assert not [line for _, lines in found for line in lines if line.startswith("./run.sh")]
    assert all(shlex.split(command) for command, _ in found) and "listen" in configuration


# The table of public experiments, and when one counts as run -------------------------

def test_each_experiment_of_the_table_has_what_shows_that_it_ran_or_why_it_cannot() -> None:
    table = experiments.experiments(experiments.TABLE.read_text(encoding="utf-8"))
    assert len({experiment.name for experiment in table}) == len(table) >= 20
    for experiment in table:
        assert experiment.cannot or experiment.numbers or experiment.shows, experiment.name
        assert bool(experiment.lines) != bool(experiment.cannot), experiment.name


def test_a_row_says_differs_where_a_number_is_more_than_10_percent_away() -> None:
    rows = [line.strip("| ").split(" | ")
            for line in experiments.DOCUMENT.read_text(encoding="utf-8").splitlines()
            if line.startswith("| [") and " → " in line]
    assert len(rows) > 30
    for experiment, _, state, *_, numbers in rows:
        deviations = [abs(float(ours) / float(published) - 1)
                      for published, ours in re.findall(r"([\d.]+) → ([\d.]+)", numbers)]
        assert state.startswith("differs") == (max(deviations, default=0) > 0.1), experiment


@pytest.mark.parametrize(("status", "printed", "written", "sound"), [
    (0, "3 received", "time=1.5 ms time=2.5 ms", True), (1, "3 received", "time=1 ms", False),
    (0, "0 received", "time=1 ms", False), (0, "3 received", "", False)])
def test_an_experiment_that_failed_or_left_no_number_does_not_run(
        status: int, printed: str, written: str, sound: bool, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "ping.txt").write_text(written)
    run = GuestRun(status, printed, tmp_path, 10.0, 2.0)
    number = Number("mean RTT, ms", "ping.txt", "theirs.txt")
    (tmp_path / "theirs.txt").write_text("time=3 ms")
    compared = (number.name, experiments.theirs_of(number, tmp_path),
                experiments.ours_of(number, run))
    row = Row(Experiment("one", "a/one", "abc", "pings", numbers=[number], shows="3 rec"), run,
              (compared,))
    assert row.is_sound is sound
    text = experiments.document([row, Row(Experiment(
        "two", "b/two", "abc", "none", cannot="there is none"), None)], 2)
    assert ("**fails**" in text) is not sound and "no: there is none" in text
    if sound:
        assert "| 10 | 2 | mean RTT, ms: 3 → 2 |" in text


def test_text_that_people_wrote_stays_when_the_tables_are_written_anew(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, document = tmp_path / "table.toml", tmp_path / "document.md"
    table.write_text('[[experiment]]\nname = "one"\nrepository = "a/one"\ncommit = "abc"\n'
                     'about = "none"\ncannot = "there is none"\n')
    ours = experiments.by_hand(experiments.DOCUMENT.read_text(encoding="utf-8"))
    document.write_text(f"# An older table\n{ours}")
    monkeypatch.setattr(experiments, "TABLE", table)
    monkeypatch.setattr(experiments, "DOCUMENT", document)
    assert experiments.main([]) == 0
    text = document.read_text()
    assert text.endswith(f"\n{ours}") and "| IW 3 | 808 |" in ours
    assert "An older table" not in text and "no: there is none" in text


def test_rows_that_ran_anew_are_written_and_the_others_stay() -> None:
    table = [Experiment(name, f"a/{name}", "abc", name, cannot="there is none", changes="some")
             for name in ("one", "two", "three")]
    old = experiments.document([Row(table[0], None), Row(table[2], None)], 2)
    ran = [Row(Experiment("two", "a/two", "abc", "two", "true", "more"),
               GuestRun(0, "", None, 10.0, 2.0)),
           Row(Experiment("three", "a/three", "abc", "three", "true"),
               GuestRun(0, "", None, 30.0, 4.0))]
    text = experiments.updated(old, experiments.document(ran, 1), table)
    runs, changes = (re.findall(r"^\| (?:\[a/)?(\w+).* (\w+ \|.*)$", part, re.MULTILINE)[1:]
                     for part in text.split("## What is changed"))
    assert [name for name, _ in runs] == ["one", "two", "three"]
    assert "none |  |  |  |" in runs[0][1] and "yes | 10 | 2 |" in text and "yes | 30 | 4 |" in text
    assert [name for name, _ in changes] == ["one", "two", "three"] and "| two | more |" in text
    assert experiments.updated(text, "", table) == text


def test_an_experiment_does_not_begin_without_its_packages(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "table.toml").write_text(
        "[[experiment]]\nname = 'one'\nrepository = 'a/one'\ncommit = 'abc'\nabout = ''\n"
        "lines = 'true'\npackages = ['bash', 'no-such-package']\n")
    monkeypatch.setattr(experiments, "TABLE", tmp_path / "table.toml")
    with pytest.raises(CannotError, match="apt-get install no-such-package$"):
        experiments.main(["--from", str(tmp_path), "one"])


def test_no_link_of_a_strangers_repository_leads_out_of_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("time=7 ms")
    (tmp_path / "copy").mkdir()
    for name in ("theirs.txt", "steps.sh"):
        (tmp_path / "copy" / name).symlink_to(tmp_path / "secret")
    monkeypatch.setattr(experiments, "check_out", lambda *_: None)
    monkeypatch.setattr(experiments, "in_guest", lambda *_, **__: GuestRun(
        0, "", None, 10.0, 2.0))
    row = experiments.row_of(Experiment("copy", "a/copy", "abc", "", "true", numbers=[
        Number("RTT", theirs="theirs.txt")]), tmp_path, tmp_path)
    assert row.compared == (("RTT", None, None),)
    assert (tmp_path / "secret").read_text() == "time=7 ms"
    assert (tmp_path / "copy" / "steps.sh").read_text() == "true\n"


# Two kernels side by side ------------------------------------------------------------

RECORD = next(record for record in stored("zhao2019") if not record.retransmissions)


@pytest.mark.parametrize("change", [
    {"seen_initcwnd": 4}, {"seen_first_flight": 2}, {"verdict": FAIL}])
def test_another_window_first_flight_or_verdict_is_a_difference(change: dict[str, Any]) -> None:
    assert not differ(RECORD, replace(RECORD, total_ms=1.0))
    assert differ(RECORD, replace(RECORD, **change))
    assert differ(replace(RECORD, **change), RECORD)


def test_the_row_has_both_times_and_how_much_more_the_stock_kernel_takes() -> None:
    assert RECORD.total_ms is not None
    more = replace(RECORD, total_ms=RECORD.total_ms + 1.25)
    shown = row(RECORD, more)
    assert f"{RECORD.total_ms:.2f}" in shown and "+1.25" in shown and "+0.00" in shown
    again = row(RECORD, replace(RECORD, retransmissions=1))
    assert again.endswith("–"), "the model is no measure of what was sent again"


@pytest.mark.parametrize(("wrong", "status", "count"), [(0, OK, "4 of 4"), (1, FAILED, "3 of 4")])
def test_the_command_fails_where_the_kernels_differ(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: int,
        status: int, count: str) -> None:
    monkeypatch.setattr(stock_kernel, "built_kernel", lambda: "linux")
    monkeypatch.setattr(stock_kernel, "compare", lambda requested, kernel: (wrong, 4))
    assert stock_kernel.main(["--kernel", "vmlinuz", "--initrd", "initrd"]) == status
    assert capsys.readouterr().out.startswith(f"{count} cells: the same window and first flight")
    with pytest.raises(SystemExit):
        stock_kernel.main([])
    assert "start benchmarks/outside/stock_kernel.sh" in capsys.readouterr().err


# Command lines ------------------------------------------------------------------------

FOLDER = Path(command.__file__).parent
PROGRAMS = sorted(".".join(path.relative_to(FOLDER).with_suffix("").parts)
                  for path in FOLDER.rglob("*.py") if "command.run(" in path.read_text())


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_unknown_flag_of_a_benchmark_is_refused_in_one_line(
        program: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, module = program.rpartition(".")[2], importlib.import_module(f"benchmarks.{program}")
    with pytest.raises(SystemExit) as ended:
        module.main(["--no-such-flag"])
    message = capsys.readouterr().err
    assert ended.value.code == USAGE
    assert message.count("\n") == 1 and message.startswith(name)
    assert f'command.run("{name}", main)' in Path(module.__file__ or "").read_text()


def test_the_readme_has_the_command_of_each_benchmark_that_no_shell_script_starts() -> None:
    text = (FOLDER / "README.md").read_text()
    for program in PROGRAMS:
        assert f"benchmarks.{program} " in text.replace("`", " ") or (
            FOLDER / f"{program.replace('.', '/')}.sh").exists(), program


def test_without_the_guests_kernel_the_machine_cannot(monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(uml, "find_kernel", lambda: None)
    monkeypatch.setattr("sys.argv", ["transfers", "--transfers", "1"])
    with pytest.raises(SystemExit) as ended:
        command.run("transfers", transfers.main)
    assert ended.value.code == CANNOT
    assert "transfers: the guest kernel is not built: run ./install.sh" in capsys.readouterr().err


def test_an_engines_failure_is_one_line_of_the_benchmark(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
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
