"""Stored runs of each kind say what they said: text, Markdown and page, letter for letter."""

from __future__ import annotations

import pytest

from tests.golden.rendering import FOLDER, OTHERS, RENDERED, RENDERERS, REPORTS


@pytest.mark.parametrize("name, form", RENDERED)
def test_a_stored_run_is_rendered_as_it_was(name: str, form: str) -> None:
    golden = (FOLDER / f"{name}.{form}").read_text(encoding="utf-8")
    assert RENDERERS[form](REPORTS[name]()) == golden, (
        "if the change is meant, /usr/bin/python3 -m tests.golden.rendering writes it anew")


@pytest.mark.parametrize("name", OTHERS)
def test_what_else_is_told_is_told_as_it_was(name: str) -> None:
    """Trials' names and commands, every column that is judged again, every quantity's words."""
    assert OTHERS[name]() == (FOLDER / name).read_text(encoding="utf-8")


def test_every_golden_is_looked_at() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        *OTHERS, *(f"{name}.{form}" for name, form in RENDERED)}
