"""plot.py and docs/update.py render a stored run or refuse it in one line."""

from __future__ import annotations

import hashlib
import html
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import plot
from docs import update
from firstflight.base import errors
from firstflight.base.errors import FirstFlightError
from firstflight.findings import drawing
from firstflight.findings.findings import Report
from firstflight.findings.render import markdown, page, text
from firstflight.runs import runs
from firstflight.runs.kinds import Study
from firstflight.runs.results.record_file import RecordFile
from firstflight.runs.results.records import PASS, Record
from firstflight.study import fetches as fetches, registry
from firstflight.workloads.fetch.record.record import Record as FetchRecord
from tests.golden.rows import whole_text
from tests.unit.core.example import changed
from tests.unit.render.reports import report

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "zhao2019_trials.csv"
PIXEL = b"\x89PNG not looked into"


@dataclass(frozen=True)
class Trial:
    id: str
    scenario: str = "zhao2019"

    def job(self) -> dict[str, Any]:
        return {"id": self.id}


@dataclass(frozen=True)
class Measured(Record):
    trial: Trial


@dataclass(frozen=True)
class Scenario:
    head: Any


def make_report(study: Study, run: Any) -> Report:
    """A report that is built by hand, but for the run's facts and count of records."""
    if run.facts.get("broken"):
        raise FirstFlightError(f"{run.folder}: a file is missing")
    return report(facts=run.facts, count=len(run.records),
                  path=f"zhao2019/{run.folder.resolve().name}")


@pytest.fixture(autouse=True)
def fake_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of scenarios whose trials are names only, and whose report is built by hand."""
    monkeypatch.setattr(fetches, "KIND", changed(
        fetches.KIND, record=Measured, report=make_report,
        read=lambda file, overrides: Scenario(file.head()),
        expand=lambda scenario, overrides, seed: ["of a network"],
        repeats_with_drops=lambda scenario: 0))


def save(folder: Path, scenario: str = "zhao2019", **facts: Any) -> Path:
    """Store a run of two trials. facts: more of its run.json."""
    folder.mkdir(parents=True)
    file = RecordFile(folder / runs.TRIALS_CSV, Measured)
    for name in ("one", "two"):
        file.append(Measured(Trial(name, scenario), True, verdict=PASS))
    (folder / runs.RUN_JSON).write_text(json.dumps(
        {"scenario": "zhao2019", "state": runs.COMPLETE, "engine": "uml", "trials": file.seal(),
         **facts}))
    file.close()
    return folder


# The page, by plot.py ----------------------------------------------------------------

@pytest.fixture(name="pixels")
def pixels_for_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each figure is drawn as one pixel."""
    monkeypatch.setattr(plot, "drawing", SimpleNamespace(
        images=lambda told, forms: {told.findings[0].name: {form: PIXEL for form in forms}},
        save=drawing.save, for_page=drawing.pngs))


def test_a_page_is_written_next_to_the_newest_whole_runs_records(
        tmp_path: Path, pixels: None, capsys: pytest.CaptureFixture[str]) -> None:
    folder, figures = save(tmp_path / "zhao2019" / "20260101-uml"), tmp_path / "figures"
    (folder.parent / "latest").symlink_to(folder.name)
    requested = ["--results", str(tmp_path), "--figures", str(figures)]
    written = f"{figures}/zhao2019_{report().findings[0].name}.png\n{folder}/report.html\n"
    assert plot.main([*requested, "--scenario", "zhao2019"]) == errors.OK
    said = capsys.readouterr()
    assert said.out == written and all("not drawn" in line for line in said.err.splitlines())
    first = (folder / "report.html").read_text()
    assert first.count("<img ") == 1
    assert plot.main([*requested, "zhao2019"]) == errors.OK
    assert plot.main(requested) == errors.OK  # every scenario with results
    latest = folder.parent / "latest"
    assert plot.main(["--run", str(latest), "--figures", str(figures)]) == errors.OK
    for stamp, facts in (("20260102-uml", {"partial": True}),
                         ("20260103-uml", {"state": runs.RUNNING})):  # newer, and not whole
        save(folder.parent / stamp, **facts)
        latest.unlink()
        latest.symlink_to(stamp)
        assert plot.main(requested) == errors.OK
    assert capsys.readouterr().out == written * 5
    assert (folder / "report.html").read_text() == first
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "run.json",
                                                              "trials.csv"]


def test_a_page_without_pictures_is_built_where_nothing_can_be_drawn(
        tmp_path: Path, pixels: None, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    folder = save(tmp_path / "run")

    def fails(told: Report, forms: object) -> dict[str, bytes]:
        raise FirstFlightError(f"{told.name}: no ink")

    monkeypatch.setattr(plot.drawing, "images", fails)
    assert plot.main(["--run", str(folder), "--figures", str(tmp_path)]) == errors.OK
    assert (folder / "report.html").read_text().count("<img ") == 0
    said = capsys.readouterr()
    assert said.out == f"{folder}/report.html\n"
    assert said.err.endswith(f"plot.py: {folder}: nothing is drawn: zhao2019: no ink\n")


def damages(folder: Path) -> dict[str, Callable[[], object]]:
    """Functions that damage the run of a folder, by the name of the damage."""
    facts, rows = folder / runs.RUN_JSON, folder / runs.TRIALS_CSV
    return {
        "no run.json": facts.unlink,
        "torn run.json": lambda: facts.write_text(facts.read_text()[:-5]),
        "list in run.json": lambda: facts.write_text("[]"),
        "no scenario": lambda: facts.write_text("{}"),
        "unknown scenario": lambda: facts.write_text('{"scenario": "../zhao2019"}'),
        "no trials": rows.unlink,
        "only a header": lambda: rows.write_text(rows.read_text().split("\n")[0] + "\n"),
        "other columns": lambda: rows.write_text("a,b\n1,2\n"),
        "damaged row": lambda: rows.write_text(rows.read_text().replace("true", "maybe", 1)),
        "missing file": lambda: facts.write_text('{"scenario": "zhao2019", "broken": true}'),
        "folder in the way": (folder / "report.html").mkdir}


@pytest.mark.parametrize("damage, status, said", [
    ("no run", errors.FAILED, "there is no such run"),
    ("no run.json", errors.FAILED, "run.json: cannot be read"),
    ("torn run.json", errors.FAILED, "run.json: is damaged"),
    ("list in run.json", errors.FAILED, "is damaged (it is not a table)"),
    ("no scenario", errors.FAILED, "names no scenario"),
    ("unknown scenario", errors.USAGE, "unknown scenario"),
    ("no trials", errors.FAILED, "trials.csv: cannot be read"),
    ("only a header", errors.FAILED, "holds no trial yet"),
    ("other columns", errors.FAILED, "has no column"),
    ("damaged row", errors.FAILED, "line 2"),
    ("foreign trials", errors.FAILED, "but run.json says"),
    ("missing file", errors.FAILED, "a file is missing"),
    ("folder in the way", errors.FAILED, "cannot be written"),
])
def test_a_damaged_run_is_refused_in_one_line_with_its_status(
        tmp_path: Path, damage: str, status: int, said: str, pixels: None,
        capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    if damage != "no run":
        save(folder, "other" if damage == "foreign trials" else "zhao2019")
    damages(folder).get(damage, lambda: None)()
    assert plot.main(["--run", str(folder), "--figures", str(tmp_path)]) == status
    *others, line = capsys.readouterr().err.splitlines()
    assert line.startswith("plot.py: ") and said in line
    assert all("not drawn" in other for other in others)


# docs/update.py --------------------------------------------------------------------------

@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Templates of README and REPRODUCE in place of the project's own."""
    folder = tmp_path / "templates"
    shutil.copytree(update.TEMPLATES, folder)
    (folder / "README.txt").write_text("Of {zhao2019.fig5_rtt / 20 / mean: IW3, ms}.\n\nSecond.\n")
    (folder / "REPRODUCE.txt").write_text("{zhao2019 / minutes} min.\n")
    monkeypatch.setattr(update, "TEMPLATES", folder)
    return folder


def test_documents_are_written_from_the_newest_readable_whole_run(
        tmp_path: Path, template: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "zhao2019"
    for stamp, facts in (("20260101-uml", {}), ("20260102-uml", {}),
                         ("20260103-uml", {"broken": True}), ("20260104-uml", {"partial": True}),
                         ("20260106-uml", {"project": {"commit": "c", "changed": True}}),
                         ("20260105-uml", {"state": runs.RUNNING})):
        save(home / stamp, **facts)
    output = tmp_path / "deep" / "REPRODUCE.md"
    requested = written_to(tmp_path, output)
    assert update.main(requested) == 0
    said = capsys.readouterr()
    kept_file = tmp_path / "findings" / "zhao2019.json"
    page = kept_file.with_suffix(".md")
    gallery = output.parent / "GALLERY.md"
    assert said.out == f"{kept_file}\n{tmp_path / 'README.md'}\n{output}\n{gallery}\n{page}\n"
    assert {*output.parent.iterdir()} == {output, gallery}
    assert "Run `zhao2019/20260102-uml`" in page.read_text()
    assert "](../deep/REPRODUCE.md)" in page.read_text()
    assert "](../findings/zhao2019.md)" in gallery.read_text()
    assert "## marrama2012\n\nNot measured: `./run.sh marrama2012`\n" in gallery.read_text()
    lines = said.err.splitlines()
    assert all(line.startswith("docs/update.py: ") for line in lines)
    assert [line for line in lines if "zhao2019:" not in line and "20260103-uml" in line] == [
        f"docs/update.py: skipped: {home}/20260103-uml: a file is missing"]
    assert any("20260106-uml: no commit has what measured it" in line for line in lines)
    assert any("there is no whole run; measure it with ./run.sh --scenario marrama2012" in line
               for line in lines)


def written_to(folder: Path, output: Path) -> list[str]:
    """Flags with which docs/update.py writes only into this folder, where it also puts a README."""
    (folder / "README.md").write_text("# A\n\n## What comes out\n\nold\n\n## Else\n\nkept\n")
    return ["--results", str(folder), "--output", str(output), "--findings",
            str(folder / "findings"), "--readme", str(folder / "README.md")]


def test_findings_are_kept_until_a_newer_run_replaces_them(
        tmp_path: Path, template: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, output = tmp_path / "zhao2019", tmp_path / "REPRODUCE.md"
    kept_file, requested = tmp_path / "findings" / "zhao2019.json", written_to(tmp_path, output)
    page = kept_file.with_suffix(".md")

    def kept_of(stamp: str, finished_at: str) -> tuple[bool, bool]:
        """Whether the findings are written, and whether the page has the run's path."""
        save(home / stamp, finished_at=finished_at)
        assert update.main(requested) == errors.OK
        assert (tmp_path / "README.md").read_text().endswith("\n\n## Else\n\nkept\n")
        return str(kept_file) in capsys.readouterr().out, f"/{stamp}`" in page.read_text()

    assert kept_of("20260101-uml", "2026-01-01T00:00:00+00:00") == (True, True)
    readme = (tmp_path / "README.md").read_text()
    assert readme.startswith("# A\n\n## What comes out\n\nOf 129.5.\n\nSecond.\n\n## Else\n")
    assert kept_of("20260102-uml", "2025-01-01T00:00:00+00:00") == (False, False)
    assert kept_of("20260103-uml", "2026-01-03T00:00:00+00:00") == (True, True)
    shutil.rmtree(home)
    assert update.main(requested) == errors.OK  # from the kept findings, without a run
    assert "/20260103-uml`" in page.read_text()
    kept_file.write_text("{}")
    with pytest.raises(FirstFlightError, match="holds no findings"):
        update.main(requested)


@pytest.mark.parametrize("flags", [["--sample", "full"], ["--jobs", "2", "--sample=full"]])
def test_a_run_of_a_larger_sample_has_a_page_of_its_own(
        flags: list[str], tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "SAMPLES", {"zhao2019_full": ("zhao2019", "full")})
    home, requested = tmp_path / "zhao2019", written_to(tmp_path, tmp_path / "RESULTS.md")
    save(home / "20260101-uml", arguments=["zhao2019"])
    save(home / "20260102-uml", arguments=["zhao2019", *flags])
    assert update.main(requested) == errors.OK
    pages = {name: (tmp_path / "findings" / f"{name}.md").read_text()
             for name in ("zhao2019", "zhao2019_full")}
    assert "`zhao2019/20260101-uml`" in pages["zhao2019"]
    assert "`zhao2019/20260102-uml`" in pages["zhao2019_full"]
    assert ": --sample full." in pages["zhao2019_full"] and "sample" not in pages["zhao2019"]
    assert "](findings/zhao2019_full.md)" in (tmp_path / "GALLERY.md").read_text()


def test_only_scenarios_without_a_recent_run_are_measured(
        tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    """A script in the place of the driver notes its arguments, and fails or is stopped."""
    driver, requested = tmp_path / "driver", tmp_path / "asked"
    monkeypatch.setattr(update, "DRIVER", driver)
    monkeypatch.setattr(update.scenario_file, "names",
                        lambda *_: ["marrama2012", "zhao2019"])
    save(tmp_path / "zhao2019" / "20260101-uml", finished_at=runs.now_text())
    line = [*written_to(tmp_path, tmp_path / "REPRODUCE.md"), "--measure", "2"]
    for status, old, names in ((3, False, ["marrama2012"]), (0, True, ["marrama2012", "zhao2019"])):
        if old:
            save(tmp_path / "zhao2019" / "20260102-uml", finished_at="2026-01-01T00:00:00+00:00")
            shutil.rmtree(tmp_path / "zhao2019" / "20260101-uml")
        driver.write_text(f'#!/bin/sh\necho "$@" >> {requested}\nexit {status}\n')
        driver.chmod(0o755)
        assert update.main(line) == errors.OK
        assert requested.read_text().splitlines() == [
            f"--scenario {name} --results {tmp_path} --no-figures" for name in names]
        told = "docs/update.py: marrama2012: ./run.sh ended with status 3"
        assert (told in capsys.readouterr().err) == bool(status)
        requested.unlink()
    driver.write_text("#!/bin/sh\nexit 130\n")
    with pytest.raises(KeyboardInterrupt):
        update.main(line)


def test_one_run_is_printed_or_written_as_a_chapter(tmp_path: Path,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    folder = save(tmp_path / "20260101-uml", state=runs.RUNNING)
    assert update.main(["--run", str(folder)]) == errors.OK
    chapter = capsys.readouterr().out
    assert chapter.startswith("# zhao2019\n") and chapter.endswith("--iw 42.\n")
    output = tmp_path / "one.md"
    assert update.main(["--run", str(folder), "--output", str(output)]) == errors.OK
    assert output.read_text() == chapter
    assert update.main(["--run", str(tmp_path)]) == errors.FAILED
    assert "run.json: cannot be read" in capsys.readouterr().err


# A changed trials.csv -----------------------------------------------------------------

def test_a_changed_table_of_trials_is_reported_on_every_rendering(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    """The run has a digest of its rows. Then somebody removes a row, or adds one."""
    monkeypatch.undo()
    folder = tmp_path / "zhao2019" / "20260101-uml"
    folder.mkdir(parents=True)
    rows = whole_text(GOLDEN, FetchRecord).encode().splitlines(keepends=True)
    seal = {"rows": len(rows) - 1, "sha256": hashlib.sha256(b"".join(rows)).hexdigest()}
    unknown = "it is unknown whether its rows were changed since they were measured"
    for content, sealed, said in (
            (rows, seal, ""), (rows[:-1], seal, "trials.csv was changed since it was measured:"
                               f" it has {len(rows) - 2} rows"),
            ([*rows, b"zhao2019,"], seal, "9 bytes follow its last line"),
            (rows, {}, unknown), (rows, None, unknown), (rows, {"rows": True}, unknown)):
        (folder / runs.RUN_JSON).write_text(json.dumps(
            {"scenario": "zhao2019", "state": runs.COMPLETE, "engine": "uml", "trials": sealed}))
        (folder / runs.TRIALS_CSV).write_bytes(b"".join(content))
        stored = registry.stored_report(folder)
        line = capsys.readouterr().err
        assert line == (f"{folder}: {stored.summary[0]}\n" if said else "")
        for rendered in (text.text(stored), page.page(stored, {}), markdown.chapter(stored)):
            words = " ".join(html.unescape(rendered.replace("\\", "")).split())
            assert said in words and bool(said) == (
                "was changed" in words or "rows were changed since" in words)
