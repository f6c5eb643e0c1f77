"""Altered programs and jobs: each alteration changes something, and METHOD lists those that no
check refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.outside import draws, passes, tampered
from benchmarks.outside.alterations import ALTERATIONS, Alteration
from benchmarks.outside.passes import PASSES, Passes
from benchmarks.outside.tampered import CLEAR, NETWORKS, WORKLOADS, Cell
from firstflight.base.errors import CannotError
from tests.conftest import PROJECT

TRIALS = tampered.requested(WORKLOADS, tuple(NETWORKS))
BY_NAME = {alteration.name: alteration for alteration in ALTERATIONS}


def test_alterations_that_pass_are_listed_in_method() -> None:
    assert passes.table() in (PROJECT / "docs" / "METHOD.md").read_text(encoding="utf-8")
    assert PASSES.keys() <= BY_NAME.keys()


@pytest.mark.parametrize("name", BY_NAME)
def test_an_alteration_changes_a_job_or_a_program(name: str, tmp_path: Path) -> None:
    alteration = BY_NAME[name]
    jobs = tampered.altered_jobs(alteration, TRIALS)
    usual = tampered.altered_jobs(Alteration(""), TRIALS)
    assert jobs
    if alteration.edits:
        tampered.copy_project(tmp_path / "project", alteration.edits)
        for edit in alteration.edits:
            text = (tmp_path / "project" / edit.path).read_text(encoding="utf-8")
            compile(text, edit.path, "exec")
            assert edit.new in text
    else:
        assert all(jobs[place] != usual[place] for place in jobs)


def test_a_program_without_the_text_to_be_altered_is_refused(tmp_path: Path) -> None:
    edit = BY_NAME["requests 1200 bytes longer"].edits[0]
    with pytest.raises(CannotError, match="page_client.py has 0 times"):
        tampered.copy_project(tmp_path / "project", [edit, edit])


@pytest.mark.parametrize(("name", "most_ms", "faults"), [
    ("cake", 100.0, 0), ("cake", 371.0, 1), ("no SACK", 2.0, 1)])
def test_a_hole_that_method_does_not_name_is_a_fault(name: str, most_ms: float, faults: int
                                                     ) -> None:
    assert isinstance(PASSES["cake"], Passes)
    cell = Cell(refused=3, passed=1, most_ms=most_ms, holes=[f"somewhere: {most_ms} ms"])
    assert len(tampered.unnamed({name: {("fetch", CLEAR): cell}})) == faults


@pytest.mark.parametrize("draw", [draws.page, draws.trace])
def test_a_setting_follows_from_seed_and_number(draw: Callable[[int, int], object]) -> None:
    assert draw(1, 7) == draw(1, 7) != draw(2, 7)
