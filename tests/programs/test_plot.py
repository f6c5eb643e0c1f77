"""plot.py draws stored runs, prints the paths of figures and pages, and has the right status."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

import plot
from docs import update
from firstflight.runs import scenario_file
from firstflight.workloads.fetch.record.record import Record
from tests.conftest import PROJECT
from tests.golden.rows import whole_text
from tests.running import run_program

TRIALS = whole_text(PROJECT / "tests" / "golden" / "zhao2019_trials.csv", Record)
FIGURES = ("fig5_rtt", "fig5_bw", "fig5_bdp")
pytestmark = pytest.mark.usefixtures("few_dots")


def store(results: Path, stamp: str, **facts: object) -> Path:
    """Store a finished run of zhao2019 in the folder of results. facts: more of its run.json."""
    folder = results / "zhao2019" / f"{stamp}-uml"
    folder.mkdir(parents=True)
    content = TRIALS.encode()
    (folder / "trials.csv").write_bytes(content)
    seal = {"rows": content.count(b"\n") - 1, "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "run.json").write_text(json.dumps({
        "scenario": "zhao2019", "state": "complete", "engine": "uml", "kernel": "6.1.99",
        "virtual_time": True, "trials": seal, **facts}))
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run, and after it a partial run of three trials."""
    home = tmp_path_factory.mktemp("results")
    store(home, "20250101T000000.000Z")
    part = store(home, "20250102T000000.000Z", partial=True)
    rows = TRIALS.splitlines(keepends=True)
    (part / "trials.csv").write_text("".join(rows[:4]))
    return home


def test_the_newest_whole_run_is_drawn_and_its_paths_are_printed(tmp_path: Path,
                                                                 results: Path) -> None:
    done = run_program([sys.executable, str(PROJECT / "plot.py"), "--results", str(results),
                        "--figures", str(tmp_path)])
    assert done.returncode == 0 and done.stderr == "", done.stderr
    paths = [Path(line) for line in done.stdout.splitlines()]
    assert [path.name for path in paths] == [
        *(f"zhao2019_{name}.png" for name in FIGURES), "report.html"]
    assert all(path.stat().st_size > 5000 for path in paths)


def test_a_run_is_drawn_from_any_folder(tmp_path: Path, results: Path,
                                        capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = tmp_path / "kept"
    shutil.copytree(next((results / "zhao2019").glob("20250101*")), elsewhere)
    assert plot.main(["--run", str(elsewhere), "--figures", str(tmp_path / "figures"),
                      "--format", "SVG,svg"]) == 0
    said = capsys.readouterr()
    assert [Path(line).name for line in said.out.splitlines()] == [
        *(f"zhao2019_{name}.svg" for name in FIGURES), "report.html"]


def test_any_folder_of_results_can_be_drawn_by_its_name(tmp_path: Path, results: Path,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    """Folders of samples and of questions have names that no scenario has."""
    home = tmp_path / "results"
    for name in ("zhao2019", "own", "zhao2019_1in8"):
        shutil.copytree(next((results / "zhao2019").glob("20250101*")), home / name / "2025-uml")
    (home / "commands" / "2025-01-01").mkdir(parents=True)
    for names, count in ((("own",), 1), (("zhao2019_1in8", "zhao2019"), 2), ((), 3)):
        assert plot.main([*names, "--results", str(home), "--figures", str(tmp_path)]) == 0
        said = capsys.readouterr()
        assert said.err == "" and said.out.count("report.html") == count


def test_without_a_whole_run_the_command_that_measures_is_named(
        tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = next((results / "zhao2019").glob("20250102*"))
    shutil.copytree(part, tmp_path / "part" / "zhao2019" / part.name)
    for folder, chosen, words in (
            (tmp_path / "none", (), "no results to draw; measure with ./run.sh"),
            (tmp_path, ("--scenario", "zhao2019"), "no whole run; measure it with ./run.sh"
             " --scenario zhao2019"),
            (tmp_path / "part", (), "no whole run")):
        assert plot.main(["--results", str(folder), *chosen]) == 1
        said = capsys.readouterr()
        assert words in said.err and said.err.count("\n") == 1 and said.out == ""
        assert said.err.startswith("plot.py: ")


def test_an_unknown_scenario_does_not_keep_another_from_being_drawn(
        tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plot.main(["--results", str(results), "--figures", str(tmp_path), "--scenario",
                      "zhao2091", "zhao2019"]) == 2
    said = capsys.readouterr()
    assert "unknown scenario 'zhao2091'; did you mean zhao2019?" in said.err
    assert len(said.out.splitlines()) == 4


def test_a_figure_without_passed_trials_is_named_and_the_rest_is_drawn(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All trials of one bar of the figure have failed verdicts."""
    folder = store(tmp_path / "results", "20250101T000000.000Z")
    head, *rows = TRIALS.splitlines()
    names = head.split(",")
    for place, row in enumerate(rows):
        cells = row.split(",")
        if cells[names.index("rtt_ms")] == "20":
            cells[names.index("verdict")] = "fail"
            rows[place] = ",".join(cells)
    (folder / "trials.csv").write_text("\n".join([head, *rows, ""]))
    assert plot.main(["--results", str(tmp_path / "results"), "--figures",
                      str(tmp_path / "figures")]) == 0
    said = capsys.readouterr()
    assert [Path(line).name for line in said.out.splitlines()] == [
        "zhao2019_fig5_bw.png", "zhao2019_fig5_bdp.png", "report.html"]
    assert "plot.py: not drawn: fig5_rtt: " in said.err and "16 failed verdicts" in said.err
    assert said.err.count("fig5_rtt") == 1


def test_wrong_flags_of_plot_are_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for flags, words in ((("--format", "png,gif"), "'gif' is none of png, svg, pdf"),
                         (("--run", "a", "--scenario", "b"), "not allowed with")):
        with pytest.raises(SystemExit) as stopped:
            plot.main(flags)
        said = capsys.readouterr()
        assert stopped.value.code == 2 and words in said.err and said.err.count("\n") == 1


def test_figures_that_cannot_be_written_are_named(
        tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (in_the_way := tmp_path / "figures" / "zhao2019_fig5_rtt.png").mkdir(parents=True)
    assert plot.main(["--results", str(results), "--figures", str(in_the_way.parent)]) == 1
    said = capsys.readouterr()
    assert f"{in_the_way}: cannot be written: Is a directory" in said.err and said.out == ""
    assert len(os.listdir(in_the_way.parent)) > 1  # the others are drawn


def test_a_broken_scenario_file_keeps_no_other_from_being_drawn(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    """plot.py and docs/update.py are started without names of scenarios."""
    scenarios, results = tmp_path / "scenarios", tmp_path / "results"
    scenarios.mkdir()
    shutil.copy(PROJECT / "scenarios" / "zhao2019.toml", scenarios)
    (scenarios / "broken.toml").write_text("# A claim.\ntitle = \n")
    names, find = scenario_file.names, scenario_file.find
    monkeypatch.setattr(scenario_file, "names", lambda within=scenarios: names(within))
    monkeypatch.setattr(scenario_file, "find", lambda name: find(name, scenarios))
    folder = store(results, "20250101T000000.000Z")
    shutil.copytree(results / "zhao2019", results / "broken")
    for home in ("zhao2019", "broken"):
        (results / home / "latest").symlink_to(folder.name)
    facts = results / "broken" / folder.name / "run.json"
    facts.write_text(facts.read_text().replace("zhao2019", "broken"))
    page, said = tmp_path / "REPRODUCE.md", "scenarios/broken.toml: line 2"
    shutil.copytree(update.TEMPLATES, tmp_path / "templates")
    (tmp_path / "templates" / "REPRODUCE.txt").write_text("{as_published}\n")
    monkeypatch.setattr(update, "TEMPLATES", tmp_path / "templates")
    assert plot.main(["--results", str(results), "--figures", str(tmp_path / "f")]) == 2
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].endswith("report.html") and "zhao2019" in printed.out
    assert said in printed.err
    readme = tmp_path / "README.md"
    shutil.copy(PROJECT / "README.md", readme)
    assert update.main(["--results", str(results), "--output", str(page), "--findings",
                        str(tmp_path / "kept"), "--readme", str(readme)]) == 0
    printed = capsys.readouterr()
    assert "zhao2019" in (tmp_path / "GALLERY.md").read_text() and said in printed.err
    assert "README.md: left unchanged: {dukkipati2010" in printed.err
    assert readme.read_bytes() == (PROJECT / "README.md").read_bytes()
