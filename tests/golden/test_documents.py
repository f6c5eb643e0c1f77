"""Written documents are current, and the words of documents and figures are explained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from firstflight.base import PROJECT
from firstflight.net.segments import MS
from firstflight.runs import runs, scenario_file
from firstflight.runs.results.records import columns_of
from firstflight.runs.schema import keys_of
from firstflight.study import registry
from firstflight.wire.delivery.host import find_uncaused
from firstflight.wire.exchange import read_exchange
from firstflight.workloads.fetch.scenario.figures import FIGURES
from tests.golden import (documents, one_page, one_trial, stored, stored_page,
                          stored_questions)
from tests.golden.rendering import REPORTS
from tests.golden.test_links import DOCUMENTS, text_of
from tests.golden.test_typed_numbers import WRITTEN


@pytest.mark.parametrize("name", documents.DOCUMENTS)
def test_a_document_is_current(name: str) -> None:
    stored = (documents.DOCS / name).read_text(encoding="utf-8")
    assert documents.DOCUMENTS[name]() == stored, (
        "/usr/bin/python3 -m tests.golden.documents writes it again")


@pytest.mark.parametrize("name", [name for names in documents.EXAMPLES.values() for name in names])
def test_an_example_is_read_as_a_study_with_trials_and_figures(name: str) -> None:
    study = registry.study_of(scenario_file.read(documents.DOCS / "examples" / f"{name}.toml"))
    assert study.trials and study.scenario.figures


def test_an_example_describes_every_kind_of_figure() -> None:
    example = (documents.DOCS / "examples/fetches.toml").read_text(encoding="utf-8")
    assert not [kind for kind in FIGURES if f'"{kind}"' not in example], (
        "docs/examples/fetches.toml has to say what it shows")


def test_the_reference_has_a_line_for_every_key_of_a_run_and_no_other() -> None:
    """The run is a stored one. tests/live/test_driver.py looks at a run of today."""
    assert {*runs.read_facts(stored_questions.FOLDER / "users")} == (
        {*documents.RUN_JSON} - documents.LATER)


@pytest.mark.parametrize(("kind", "heading", "table"), [
    (kind, *table) for kind, tables in documents.TABLES.items() for table in tables])
def test_every_key_is_in_an_example(kind: str, heading: str, table: type[Any]) -> None:
    assert {*keys_of(table)} <= documents.of_examples(kind, heading)


def test_every_column_has_a_line_in_the_reference_or_is_a_key() -> None:
    columns = documents.columns()
    assert "COLUMNS:" not in columns  # what a docstring says of its class, not of a field
    for kind, record in documents.RECORDS.items():
        keys = documents.of_examples(kind, "[defaults] and [[sweep]] or [[trace]]")
        assert all(f"`{column}`" in columns or column in keys for column in columns_of(record))


# Words --------------------------------------------------------------------------------

GLOSSARY = (PROJECT / "docs" / "GLOSSARY.md").read_text(encoding="utf-8")
# Abbreviations that every reader knows, and names of documents, journals, programs and formats.
KNOWN = set("""TCP HTTP HTTPS RFC IPv4 IPv6 IP UDP UTC SHA MB GB VM URL OpenSSL QEMU CSV PNG TOML
            PATH
            SIGTERM SIGKILL ECDSA FIPS NAT MTU CS244 CCR README FreeBSD TCIntf TCLink TTFB IPC PID
            HZ
            COMMAND IW10""".split())
TERMS = ("AvgDC", "near", "the window alone", "two different weeks",
         "deck", "RTO", "ssthresh", "guest",
         "undecided", "direction", "held out", "fitted", "flight", "bucket", "BDP", "hit")


def test_an_abbreviation_of_two_documents_is_explained() -> None:
    names = {path.stem for path in DOCUMENTS}
    where: dict[str, set[str]] = {}
    for path in WRITTEN:
        text = re.sub(r"\]\([^)]*\)", "]", text_of(path))
        for word in re.findall(r"\b[A-Z][A-Za-z]*[A-Z][A-Za-z0-9]*\b", text):
            where.setdefault(word.removesuffix("s"), set()).add(path.name)
    used = {word for word, documents in where.items() if len(documents) > 1}
    assert not {word for word in used - names - KNOWN if not re.search(rf"\b{word}", GLOSSARY)}


SYMBOL = re.compile(r"[A-Za-z]+_[A-Z][A-Za-z0-9]*|\b[A-Z][A-Za-z]*[A-Z]\b|\bp\d+\b|[→≤±]")
COMMON = {"TCP", "CSV", "MB"}  # that every reader knows


def symbols_of(value: object) -> Iterator[str]:
    """The symbols in all texts of a chart."""
    if isinstance(value, str):
        yield from SYMBOL.findall(value)
    elif is_dataclass(value):
        for field in fields(value):
            yield from symbols_of(getattr(value, field.name))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from symbols_of(item)


def test_each_symbol_on_a_figure_is_in_the_glossary() -> None:
    found = {symbol for make in REPORTS.values() for finding in make().findings
             if finding.chart is not None for symbol in symbols_of(finding.chart)}
    assert {"T_ACK", "T_Res1", "BDP", "→"} <= found
    percentiles = {symbol for symbol in found if re.fullmatch(r"p\d+", symbol)}
    assert percentiles and "*p90*" in GLOSSARY  # which stands for all of them
    assert not [symbol for symbol in found - percentiles - COMMON if symbol not in GLOSSARY]


def test_a_term_of_the_figures_and_tables_is_explained() -> None:
    assert not [term for term in TERMS if not re.search(rf"\*{term}\*", GLOSSARY)]


# One trial ----------------------------------------------------------------------------

def test_each_packet_is_in_one_row_and_timers_are_those_of_the_host_check() -> None:
    trial = stored.load(one_trial.NAME)
    exchange = read_exchange(trial.client, trial.server)
    rows = one_trial.rows_of(exchange)
    sent = [segment for row in rows for segment in row.sent]
    assert len(sent) == len(stored.read(trial.client)) == len(stored.read(trial.server))
    tick_ns = round(trial.observation["started_at"] * 1e9)
    by_timer = set(find_uncaused(exchange, tick_ns + MS // 2))
    named = {row.sent[0] for row in rows if "timer" in one_trial.reason(row, rows, exchange)}
    assert named == by_timer and len(named) == 2


def test_a_packet_that_nothing_explains_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = stored.load(one_trial.NAME)
    packets = stored.read(trial.server)
    fifth = stored.nth_data(packets, 4)
    late = stored.Packet(fifth.time_ns + 40_000, fifth.frame, fifth.wire_bytes)
    tampered = trial.captured(server=[late if packet is fifth else packet for packet in packets])
    exchange = read_exchange(tampered.client, tampered.server)
    rows = one_trial.rows_of(exchange)
    with pytest.raises(ValueError, match="^row 9: nothing explains it"):
        for row in rows:
            one_trial.reason(row, rows, exchange)
    monkeypatch.setattr(one_trial.stored, "load", lambda _: tampered)
    with pytest.raises(ValueError, match="^queue_timer: fail path host TCP, 19 rows"):
        one_trial.page()


def test_a_page_that_does_not_pass_is_refused_as_an_example(
        monkeypatch: pytest.MonkeyPatch) -> None:
    other = stored_page.load(one_page.NAME).requested(initcwnd=3)
    monkeypatch.setattr(one_page.stored_page, "load", lambda _: other)
    with pytest.raises(ValueError, match="^http2: initial window of connection 1: observed 10"):
        one_page.section()
