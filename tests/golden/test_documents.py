"""What is generated into docs/ is as the code has it."""

from __future__ import annotations

from typing import Any

import pytest

from firstflight.runs import runs, scenario_file
from firstflight.runs.results.records import columns_of
from firstflight.runs.schema import keys_of
from firstflight.study import registry
from firstflight.study.fetches.figures.kinds import FIGURES
from tests.golden import documents, stored_questions


@pytest.mark.parametrize("name", documents.DOCUMENTS)
def test_a_document_is_current(name: str) -> None:
    stored = (documents.DOCS / name).read_text(encoding="utf-8")
    assert documents.DOCUMENTS[name]() == stored, (
        "/usr/bin/python3 -m tests.golden.documents writes it anew")


@pytest.mark.parametrize("name", [name for names in documents.EXAMPLES.values() for name in names])
def test_an_example_is_read(name: str) -> None:
    study = registry.study_of(scenario_file.read(documents.DOCS / "examples" / f"{name}.toml"))
    assert study.trials and study.scenario.figures


def test_an_example_describes_every_kind_of_figure() -> None:
    example = (documents.DOCS / "examples/fetches.toml").read_text(encoding="utf-8")
    assert not [kind for kind in FIGURES if f'"{kind}"' not in example], (
        "docs/examples/fetches.toml has to say what it shows")


def test_every_key_of_a_run_has_a_line_and_no_other() -> None:
    """Of a stored run as it was measured; tests/live/test_driver.py has one of today."""
    assert {*runs.read_facts(stored_questions.FOLDER / "users")} == (
        {*documents.RUN_JSON} - documents.LATER)


@pytest.mark.parametrize(("kind", "heading", "table"), [
    (kind, *table) for kind, tables in documents.TABLES.items() for table in tables])
def test_every_key_is_in_an_example(kind: str, heading: str, table: type[Any]) -> None:
    assert {*keys_of(table)} <= documents.of_examples(kind, heading)


def test_every_column_has_a_line_or_is_a_key() -> None:
    columns = documents.columns()
    assert "COLUMNS:" not in columns  # what a docstring says of its class, not of a field
    for kind, record in documents.RECORDS.items():
        keys = documents.of_examples(kind, "[defaults] and [[sweep]] or [[trace]]")
        assert all(f"`{column}`" in columns or column in keys for column in columns_of(record))
