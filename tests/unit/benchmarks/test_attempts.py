"""Properties: whatever is in a file or on a command line, it is refused in one line or accepted."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchmarks.faults import mutations
from benchmarks.faults.attempts import (ACCEPTED, INTERNAL, MEMORY, REFUSED, documents, expanded, outcome, tried)
from lab.core import files
from lab.core.scenario import scenario_file
from lab.core.errors import FirstFlightError, UsageError
from lab.fetches.scenario import reading

seeds = st.integers(0, 2**32 - 1)
# A few examples each, the same on every run; benchmarks/faults/fuzz.py tries thousands.
few = settings(derandomize=True, database=None, deadline=None,
               suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("kind, inputs", [
    ("toml", 60), ("flags", 25), ("users", 30), ("trials", 20), ("runjson", 20), ("tables", 20),
    ("captures", 20), ("outputs", 40), ("servers", 5)])
def test_damaged_inputs_are_refused_in_one_line_or_accepted(kind: str, inputs: int) -> None:
    """Different ones: of single seeds Hypothesis tries a few again and again."""
    seen: Counter[str] = Counter()

    @settings(few, max_examples=1, phases=[Phase.generate])  # what fails names its seed
    @given(st.lists(seeds, min_size=inputs, max_size=inputs, unique=True))
    def holds(drawn: list[int]) -> None:
        seen.clear()
        for seed in drawn:
            found = outcome(kind, Random(seed))
            assert found.word in (REFUSED, ACCEPTED), f"seed {seed}: {found.said}"
            seen[f"{found.word} {re.sub('/tmp/[^/]*', '', found.said)}"] += 1
    holds()
    assert len(seen) > 2, "they are of one kind"


def raising(error: BaseException) -> None:
    raise error


def test_a_thing_that_is_replaced_where_it_is_written_to_is_a_defect(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replaces(path: Path, content: bytes | str) -> Path:
        (path.parent / "new").write_text("new")
        return (path.parent / "new").replace(path)

    monkeypatch.setattr(files, "write", replaces)
    found = Counter(outcome("outputs", Random(seed)).said for seed in range(200))
    assert any("is no longer what it was" in said for said in found)


def test_what_is_told_only_after_measuring_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def relabelled(content: Any, random: Random) -> Any:
        axes = [{**each, "labels": ["21", *each["labels"][1:]]} if "labels" in each else each
                for each in content.get("axis", ())]
        return {**content, "axis": axes}

    monkeypatch.setattr(mutations, "tree", relabelled)
    monkeypatch.setattr(reading, "JOINT_PANELS", {})
    found = Counter(outcome("tables", Random(seed)).said for seed in range(8))
    assert any("told only after measuring: own: the axis of" in said or
               "told only after measuring: zhao2019: the axis of" in said for said in found), found


@pytest.mark.parametrize("error, word", [
    (MemoryError(), MEMORY), (UsageError("here: wrong"), REFUSED), (FirstFlightError(""), INTERNAL),
    (KeyError("x"), INTERNAL), (RecursionError(), INTERNAL), (SystemExit(1), INTERNAL),
    (SystemExit(0), ACCEPTED)])
def test_what_is_no_refusal_is_counted_as_a_defect(error: BaseException, word: str) -> None:
    assert tried(lambda: raising(error)).word == word
    assert tried(lambda: None).word == ACCEPTED


def test_the_undamaged_documents_are_whole() -> None:
    for name, (content, raw) in documents().items():
        assert scenario_file.parsed(name, content.decode()).raw == raw


def test_a_scenario_that_measures_nothing_is_accepted() -> None:
    assert tried(lambda: expanded("paper_arithmetic")).word == ACCEPTED


@pytest.mark.usefixtures("impatient")
def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "own.toml")
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    (tmp_path / "folder.toml").mkdir()
    for name, why in (("own", "not a regular file"), ("endless", "not a regular file"),
                      ("folder", "Is a directory")):
        with pytest.raises(UsageError, match=f"cannot be read: {why}"):
            scenario_file.find(str(tmp_path / f"{name}.toml"))


@settings(few, max_examples=10)
@given(seeds)
def test_damage_is_drawn_from_the_seed_alone(seed: int) -> None:
    content = b"a,b\n1,2\n3,4\n"
    for damage in (mutations.data, mutations.cells):
        assert damage(content, Random(seed)) == damage(content, Random(seed))
