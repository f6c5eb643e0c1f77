"""Flags of ./run.sh -- COMMAND, the program of batches, and the code in documents.

The code in documents is completion.bash, the notebook, and lines of STUDIES.md and REPRODUCE.md.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

import experiment
from firstflight.base import PROJECT, errors
from firstflight.base.errors import CannotError, FirstFlightError, WriteError
from firstflight.commands import batch
from firstflight.commands.virtual import command, command_line, script
from firstflight.findings.quantities import FLAGS
from firstflight.runs import batches, scenario_file
from firstflight.runs.results import provenance
from firstflight.runs.results.record_file import RecordFile
from firstflight.workloads.fetch.record.record import Record
from tests.golden import stored_fetches, stored_questions
from vtime.console import EngineCannot


@pytest.mark.parametrize(("words", "virtual_s", "wall_s"), [
    ("60", 60, 60), ("1h,10m", 3600, 600), ("90s,1.5min", 90, 90),
    ("500ms", 0.5, 0.5)])
def test_a_timeout_is_read_as_virtual_and_wall_seconds(words: str, virtual_s: float,
                                                       wall_s: float) -> None:
    assert command_line.limits(words) == (virtual_s, wall_s)


@pytest.mark.parametrize(("word", "mb"), [("512", 512), ("512M", 512), ("2G", 2000), ("1GB", 1000)])
def test_a_size_of_memory_is_read_in_mb(word: str, mb: int) -> None:
    assert command_line.megabytes(word) == mb


@pytest.mark.parametrize(("word", "ns"), [
    ("0", 0), ("1us", 1000), ("1.5µs", 1500), ("100ns", 100), ("1s", 10 ** 9)])
def test_a_packets_cost_is_read_in_ns(word: str, ns: int) -> None:
    assert command_line.nanoseconds(word) == ns
    line = command_line.parse(["--packet-cost", word, "--", "true"])
    assert line.request.link_times.words()[0] == f"packet_cost_ns={ns}"


def test_flags_after_the_dashes_belong_to_the_command() -> None:
    request = command_line.parse(["--quiet", "--", "true", "--seed", "x"]).request
    assert request.words == ("true", "--seed", "x") and request.seed == 1


def test_a_named_variable_is_passed_with_its_present_or_given_value(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAD", "it")
    line = command_line.parse(["--env", "HAD", "--env", "MADE=a=b", "--", "true"])
    assert line.request.environment == {"HAD": "it", "MADE": "a=b"}


@pytest.mark.parametrize(("words", "there", "missing"), [
    (["python3", "script.py"], (), ""), (["mn"], (), "ovs-vsctl"), (["mn"], ("ovs-vsctl",), ""),
    (["mn", "--switch", "lxbr"], (), "brctl"), (["/usr/bin/mn", "--switch=lxbr"], ("brctl",), ""),
    (["mn", "--test", "iperf"], ("ovs-vsctl",), "iperf, telnet"),
    (["mn", "--test=iperf"], ("ovs-vsctl", "iperf", "telnet"), ""),
    (["sh", "-c", "iperf3 -s -D; nc -l 80"], (), "iperf3, nc"), (["./first.py"], ("ping",), ""),
    (["python3", "first.py"], (), "ping"), (["python3", "second.py"], (), "ovs-vsctl, iperf3")])
def test_a_program_that_a_script_uses_and_the_machine_lacks_is_named(
        words: list[str], there: tuple[str, ...], missing: str, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first.py").write_text("net = make(switch=UserSwitch)\nh1.cmd('ping h2')\n")
    (tmp_path / "second.py").write_text(
        "from mininet.net import Mininet\nMininet(topo=t).get('h1').cmd('iperf3 -s -D')\n")
    monkeypatch.chdir(tmp_path)
    lines = script.advice(words, {name: f"/usr/bin/{name}" for name in there}.get)
    assert len(lines) == bool(missing)
    assert not missing or lines[0].startswith(f"{missing}: used and not installed")


def test_a_link_to_a_hidden_program_is_reported_with_the_flag_to_add(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    monkeypatch.setenv("HOME", str(home))
    for prefix in (home / "own", home):
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin" / "python").touch(mode=0o755)
    (home / "key").touch(mode=0o600)
    for name, python in (("v", home / "own/bin/python"), ("w", home / "bin/python")):
        (folder / name / "bin").mkdir(parents=True)
        (folder / name / "pyvenv.cfg").touch()
        (folder / name / "bin" / "python").symlink_to(python)
    (folder / "link").symlink_to(home / "key")
    monkeypatch.chdir(folder)

    def reported(*words: str, readable: Path = folder) -> list[tuple[str, str]]:
        """Each link that is reported, and the flag that shows where it leads."""
        pairs = []
        for line in script.hidden_programs(words, folder, [readable]):
            link = line.partition(" leads to ")[0]
            flag = line.partition(": ")[2].removesuffix(" shows it to this one")
            pairs.append((link, flag))
        return pairs

    shown = [("v/bin/python", f"--readable {home / 'own'}")]
    assert reported("v/bin/python", "x.py") == shown
    assert reported("sh", "-c", ". v/bin/activate; python x") == shown
    # The whole home is not shown for a program in it.
    assert reported("w/bin/python") == [("w/bin/python", f"--readable {home / 'bin/python'}")]
    assert reported("python3", "x.py") == reported("./link") == []
    assert reported("v/bin/python", readable=home) == []


def test_links_in_a_results_folder_are_not_followed(tmp_path: Path) -> None:
    """The folder may be a stranger's. A killed guest's folder is removed only where it is ours."""
    (theirs := tmp_path / "theirs").mkdir()
    (elsewhere := tmp_path / "elsewhere" / ".guest").mkdir(parents=True)
    (theirs / "packetdrill").symlink_to("../elsewhere")
    with pytest.raises(WriteError, match="packetdrill is a link, which is not followed"):
        command.new_folder(theirs, "packetdrill")
    (theirs / "commands").mkdir()
    (theirs / "commands" / "link").symlink_to("../../elsewhere")
    (dead := theirs / "commands" / "killed" / ".guest").mkdir(parents=True)
    made = command.new_folder(theirs, "commands")
    assert made.parent == theirs / "commands" and not dead.exists() and elsewhere.exists()


# The program that measures a batch ----------------------------------------------------

def test_concurrent_batches_have_processors_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # Numbers of processors that no batch of this machine has taken.
    one, two = os.getpid() + 10_000, os.getpid() + 20_000
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {one, two})
    with batch.free_processor() as first, batch.free_processor() as second:
        with batch.free_processor() as third:
            assert (first, second, third) == (one, two, None)
    with batch.free_processor() as again:
        assert again == one


def test_a_damaged_batch_is_refused(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    for content in (b"", b"no batch", gzip.compress(b'{"kind": "no such"}')):
        with pytest.raises(FirstFlightError) as refused:
            batch.measure(content, kernel)
        assert refused.value.exit_status == errors.FAILED and str(refused.value)


def test_a_kernel_that_does_not_start_is_reported_as_the_machines_fault(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> bytes:
        raise EngineCannot("no /dev/shm")

    monkeypatch.setattr(batches, "measure", cannot)
    with pytest.raises(CannotError, match="no /dev/shm"):
        batch.measure(b"", tmp_path / "linux")


def test_the_flag_versions_prints_the_versions_that_are_compared(
        capsys: pytest.CaptureFixture[str]) -> None:
    assert batch.main(["--versions"]) == errors.OK
    assert json.loads(capsys.readouterr().out) == {**provenance.tools(), **provenance.browser()}


# docs/completion.bash completes what run.sh accepts today -----------------------------


def completed(word: str, before: str = "./run.sh") -> set[str]:
    """What bash offers for a word that is typed after `before`."""
    script = ('source docs/completion.bash; _first_flight ./run.sh "$1" "$2";'
              ' printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", word, before], cwd=PROJECT, text=True,
                          stdout=subprocess.PIPE, check=True)
    return set(done.stdout.split())


def test_completion_offers_the_flags_of_help() -> None:
    found = completed("--")
    assert {quantity.flag for quantity in FLAGS.values()} <= found
    assert {"--users", "--compare", "--dry-run", "--version"} <= found
    assert completed("--dry") == {"--dry-run"}


def test_completion_offers_the_scenarios_names() -> None:
    assert completed("") == set(scenario_file.names())
    assert completed("zhao", "--scenario") == {"zhao2019", "zhao2019_as_published"}


@pytest.mark.parametrize(("flag", "word", "found"), [
    ("--engine", "u", {"uml"}), ("--client", "w", {"wget"}), ("--results", "REA", {"README.md"})])
def test_completion_offers_the_values_of_a_flag(flag: str, word: str, found: set[str]) -> None:
    assert completed(word, flag) == found


# docs/notebook.ipynb, executed cell by cell on a stored run ---------------------------


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that all cells of the notebook have defined."""
    pytest.importorskip("pandas", reason="no pandas: ./install.sh --test")
    import matplotlib
    run = tmp_path / "results" / "zhao2019" / "latest"
    run.mkdir(parents=True)
    shutil.copy(PROJECT / "tests" / "golden" / "zhao2019_trials.csv", run / "trials.csv")
    (run / "run.json").write_text(json.dumps({
        "kernel": "7.2.11", "engine": "uml",
        "scenario_file": scenario_file.find("zhao2019").head().text}))
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    matplotlib.use("Agg")
    defined: dict[str, Any] = {}
    cells = json.loads((PROJECT / "docs" / "notebook.ipynb").read_text())["cells"]
    for cell in cells:
        assert not cell.get("outputs"), "whoever opens the notebook makes its outputs again"
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), defined)
    return defined


def test_the_notebooks_numbers_are_those_of_the_figure(notebook: dict[str, Any]) -> None:
    panel, improved = stored_fetches.bar_figures("zhao2019")["fig5_rtt"], notebook["improved"]
    assert [float(rtt) for rtt in improved.index] == [bucket.value for bucket in panel.bars]
    assert list(improved["ms"]) == pytest.approx(
        [bucket.difference.absolute.value for bucket in panel.bars])
    assert list(improved["percent"]) == pytest.approx(
        [bucket.difference.percent.value for bucket in panel.bars])


def test_the_notebooks_figure_has_both_bars_of_every_bucket(notebook: dict[str, Any]) -> None:
    left, right = notebook["figure"].axes
    assert len(left.patches) == len(right.patches) == len(notebook["improved"])
    assert [bar.get_height() for bar in left.patches] == list(notebook["improved"]["ms"])
    notebook["plt"].close(notebook["figure"])


# The lines of docs/STUDIES.md that give both windows of a response one weight ----------

def test_the_window_alone_is_compared_with_the_weights_of_one_week(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="no pandas: ./install.sh --test")
    import numpy
    run = tmp_path / "results" / "dukkipati2010" / "latest"
    run.mkdir(parents=True)
    records = stored_questions.population_records()
    file = RecordFile(run / "trials.csv", Record)
    for record in records:
        file.append(record)
    file.close()
    text = (PROJECT / "docs" / "STUDIES.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^      trials = .*\n(?:      .*\n)+", text, re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    defined: dict[str, Any] = {"pandas": pytest.importorskip("pandas")}
    exec(textwrap.dedent(code), defined)
    trials = defined["trials"]
    assert any(trials["weight"] != trials["weight_paired"])

    def mean(initcwnd: int, weight: str) -> float:
        rows = trials[(trials["part"] == "everything") & (trials["initcwnd"] == initcwnd)]
        return float(numpy.average(rows["latency_ms"], weights=rows[weight]))

    everything = [record for record in records if record.trial.part == "everything"]
    weight = {record.trial.sample: record.trial.weight for record in everything
              if record.trial.initcwnd == 10}
    for initcwnd in (3, 10):
        latency_ms = {record.trial.sample: record.latency_ms or 0.0 for record in everything
                      if record.trial.initcwnd == initcwnd}
        weighted_ms = sum(weight[sample] * latency_ms[sample] for sample in weight)
        assert mean(initcwnd, "weight_paired") == pytest.approx(
            weighted_ms / sum(weight.values()))
    assert mean(3, "weight") != pytest.approx(mean(3, "weight_paired"))


# run.sh accepts each command line of docs/REPRODUCE.md ---------------------------------

TEXT = (PROJECT / "docs" / "REPRODUCE.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"^    \./run\.sh (.+?)(?:  +#.*)?$", TEXT, re.MULTILINE)))
SCENARIOS = sorted({"dukkipati2010", *re.findall(r"\| ([a-z]+\d\w+), \d+ \|", TEXT)})


@pytest.mark.parametrize("line", [*COMMANDS, *SCENARIOS])
def test_a_command_line_of_reproduce_is_accepted(line: str) -> None:
    try:
        assert experiment.main([*line.split(), "--dry-run"]) == errors.OK
    except errors.UsageError as error:  # a sample has to be drawn before; the page says how
        drawn = re.search(r"/usr/bin/python3 -m paper\.draw \w+ --full", str(error))
        assert drawn is not None and drawn[0] in TEXT, error


def test_each_scenario_with_a_source_has_a_row_in_reproduce() -> None:
    """The sources are the paper and five others. Other scenarios have no published numbers."""
    published = ("dukkipati", "handley", "ietf", "marrama", "tselentis", "zhao")
    with_source = {name for name in scenario_file.names() if name.startswith(published)}
    # These answer our questions, or compare in a way that the sources do not.
    ours = {"handley1999_warm", "ietf78_background", "ietf78_beyond", "ietf78_connections"}
    assert with_source - ours == set(SCENARIOS) and COMMANDS
