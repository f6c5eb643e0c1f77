"""Properties: whatever is in a file or on a command line, it is refused in one line or accepted."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults import damage
from benchmarks.faults.damage import Draw
from benchmarks.faults.fuzz import ACCEPTED, INTERNAL, MEMORY, REFUSED, Outcome, explore, tried
from benchmarks.faults.inputs import KINDS, documents, expanded
from lab.core import files
from lab.core.scenario import scenario_file
from lab.core.errors import FirstFlightError, UsageError
from lab.fetches.features.population import weights


def outcomes(kind: str, inputs: int, tmp_path: Path) -> list[Outcome]:
    """A few, the same on every run; benchmarks/faults/fuzz.py tries thousands."""
    found: list[Outcome] = []

    def one(draw: Draw) -> None:
        folder = tmp_path / f"{kind}-{len(found)}"
        folder.mkdir()
        found.append(tried(KINDS[kind](draw, folder)))
    explore([f"{kind} {number}" for number in range(inputs)], one)
    return found


@pytest.mark.parametrize("kind, inputs", [
    ("toml", 60), ("flags", 25), ("users", 30), ("trials", 20), ("runjson", 20), ("tables", 20),
    ("captures", 20), ("outputs", 40), ("servers", 5), ("commands", 30)])
def test_damaged_inputs_are_refused_in_one_line_or_accepted(
        kind: str, inputs: int, tmp_path: Path) -> None:
    found = outcomes(kind, inputs, tmp_path)
    assert len(found) == inputs
    assert {each.result for each in found} <= {REFUSED, ACCEPTED}, found
    assert len({re.sub(f"{tmp_path}/[^/]*", "", each.message) for each in found}) > 1, "of one kind"


def test_the_same_seed_makes_the_same_damage() -> None:
    content = b"a,b\n1,2\n3,4\n"

    def damaged(*seeds: str) -> list[bytes]:
        found: list[bytes] = []
        explore(seeds, lambda draw: found.extend(
            (damage.data(content, draw), damage.cells(content, draw))))
        return found
    assert damaged("a", "b") == damaged("a", "b") != damaged("b", "c")


def raising(error: BaseException) -> None:
    raise error


def test_a_thing_that_is_replaced_where_it_is_written_to_is_a_defect(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replaces(path: Path, content: bytes | str) -> Path:
        (path.parent / "new").write_text("new")
        return (path.parent / "new").replace(path)

    monkeypatch.setattr(files, "write", replaces)
    assert any("is no longer what it was" in each.message for each in outcomes("outputs", 100, tmp_path))


def test_what_is_told_only_after_measuring_is_a_defect(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def relabelled(content: Any, draw: Draw) -> Any:
        axes = [{**each, "labels": ["21", *each["labels"][1:]]} if "labels" in each else each
                for each in content.get("axis", ())]
        return {**content, "axis": axes}

    monkeypatch.setattr(damage, "tree", relabelled)
    monkeypatch.setattr(weights, "check", lambda *_: None)
    found = outcomes("tables", 8, tmp_path)
    assert any("told only after measuring: own: the axis of" in each.message or
               "told only after measuring: zhao2019: the axis of" in each.message
               for each in found), found


@pytest.mark.parametrize("error, word", [
    (MemoryError(), MEMORY), (UsageError("here: wrong"), REFUSED), (FirstFlightError(""), INTERNAL),
    (KeyError("x"), INTERNAL), (RecursionError(), INTERNAL), (SystemExit(1), INTERNAL),
    (SystemExit(0), ACCEPTED)])
def test_what_is_no_refusal_is_counted_as_a_defect(error: BaseException, word: str) -> None:
    assert tried(lambda: raising(error)).result == word
    assert tried(lambda: None).result == ACCEPTED


def test_the_undamaged_documents_are_whole() -> None:
    for name, (content, raw) in documents().items():
        assert scenario_file.parsed(name, content.decode()).raw == raw


def test_a_scenario_that_measures_nothing_is_accepted() -> None:
    assert tried(lambda: expanded("paper_arithmetic")).result == ACCEPTED


@pytest.mark.usefixtures("impatient")
def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "own.toml")
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    (tmp_path / "folder.toml").mkdir()
    for name, why in (("own", "not a regular file"), ("endless", "not a regular file"),
                      ("folder", "Is a directory")):
        with pytest.raises(UsageError, match=f"cannot be read: {why}"):
            scenario_file.find(str(tmp_path / f"{name}.toml"))
