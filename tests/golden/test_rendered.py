"""Stored runs of each kind say what they said: text, Markdown and page, letter for letter."""

from __future__ import annotations

import pytest

from tests.golden import judged
from tests.golden.rendering import COLUMNS, FOLDER, RENDERED, RENDERERS, REPORTS


@pytest.mark.parametrize("name, form", RENDERED)
def test_a_stored_run_is_rendered_as_it_was(name: str, form: str) -> None:
    golden = (FOLDER / f"{name}.{form}").read_text(encoding="utf-8")
    assert RENDERERS[form](REPORTS[name]()) == golden, (
        "if the change is meant, /usr/bin/python3 -m tests.golden.rendering writes it anew")


def test_every_column_of_a_judged_trial_is_as_it_was() -> None:
    assert judged.text() == COLUMNS.read_text(encoding="utf-8")


def test_every_golden_is_looked_at() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        "points.json", COLUMNS.name, *(f"{name}.{form}" for name, form in RENDERED)}
