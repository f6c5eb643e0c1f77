"""What scenarios and documents state of a measurement holds in every row that was measured.

The kept findings of docs/results are the data; a sentence and its tests stand in the scenario's
file. The first line of a scenario is covered by such sentences to the last word, and so is each
sentence of its result that quotes no number.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from docs import update as results
from firstflight.base import PROJECT
from firstflight.findings.findings import Report
from firstflight.findings.names import SENTENCES
from firstflight.findings.render.values import QUOTE
from firstflight.runs import scenario_file, sentences, stated

NAMES = scenario_file.names()
# Words between two sentences that are tested apart.
JOINERS = {"and", "but", "so", "while", "that"}


@pytest.fixture(name="reports", scope="module")
def _reports() -> dict[str, Report]:
    return results.kept_reports(results.FINDINGS)


def normal(text: str) -> str:
    """Text on one line, without what tells numbers and ends of sentences from each other."""
    return " ".join(text.split())


def uncovered(text: str, says: list[str]) -> set[str]:
    """The words of a text that no sentence has."""
    for sentence in sorted(says, key=len, reverse=True):
        text = re.sub(re.escape(normal(sentence).rstrip(".")), " ", text, flags=re.IGNORECASE)
    return {*re.findall(r"[\w%]+", text)} - JOINERS


def without_quotes(result: str) -> str:
    """The sentences of a result that have no quote."""
    apart = re.split(r"(?<=[.!?]) (?=[A-Z{])", normal(result))
    return " ".join(sentence for sentence in apart if not QUOTE.search(sentence))


@pytest.mark.parametrize("name", NAMES)
def test_every_sentence_holds_in_the_kept_findings(name: str, reports: dict[str, Report]) -> None:
    findings = {finding.name: finding for finding in reports[name].findings}
    rows = findings[SENTENCES].tables[0].rows
    assert {row[1] for row in rows} == {stated.HOLDS}, [row for row in rows
                                                        if row[1] != stated.HOLDS]


@pytest.mark.parametrize("name", NAMES)
def test_the_first_line_and_the_result_are_tested_to_the_last_word(name: str) -> None:
    head = scenario_file.find(name).head()
    says = [sentence.says for sentence in head.sentences]
    assert not uncovered(normal(head.claim), says)
    assert not uncovered(without_quotes(head.result), says)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_tested_is_what_is_stated(name: str) -> None:
    """A sentence stands word for word in its scenario's file, or in the document that it names."""
    head = scenario_file.find(name).head()
    own = normal(" ".join((head.claim, head.title, head.about, head.note, head.result)))
    for sentence in head.sentences:
        text = own
        if sentence.document:
            text = normal((PROJECT / sentence.document).read_text(encoding="utf-8"))
        assert normal(sentence.says).rstrip(".").lower() in text.lower(), sentence.says


# The claims that were found wrong, each put back with the test that it would need.
WRONG = [
    ("chou2026_cliffs", {"figure": "steps", "columns": ["first byte: *"], "is": "never falls"}),
    ("kampanakis2024_ttlb", {
        "figure": "fast", "columns": ["total: chain 14305 (ML-DSA-65), ms"],
        "minus": "total: chain 2308 (classical), ms", "is": "never rises", "within": 1}),
    ("handley1999_warm", {
        "figure": "think", "table": "short, linux", "columns": ["IW 10"], "is": "equal",
        "than": "IW 3", "within": 1, "rows": {"think time, s": [0.1, 0.3]}}),
    ("ietf78_sndbuf", {
        "figure": "cells", "columns": ["total, ms"], "is": "equal", "than": 306.5, "within": 4,
        "rows": {"requested: IW, segments": ["16"]}}),
    ("ietf78_dc1", {"figure": "iw10", "columns": ["improved: %"], "is": "highest",
                    "at": ["15000", "20000", "30000"]}),
    ("map_of_windows", {"figure": "cells", "table": "What", "columns": ["improved, %"],
                        "is": "at least", "than": 0}),
    ("handley1999_idle", {"figure": "fig1_burst", "claim": "RFC 2861", "is": "direction"}),
    ("handley1999_modem5", {
        "figure": "fig5_today", "columns": ["timeouts"], "is": "equal", "than": 0,
        "without": {"TCP": ["unmodified TCP"]}}),
    ("ietf78_beyond", {
        "figure": "windows", "columns": ["saved of p99, %"], "is": "below", "than": 0,
        "rows": {"sender and queue": ["cubic", "reno", "bbr"], "": ["IW 10", "IW 16", "IW 64"]}}),
    ("dukkipati2010", {"figure": "fig5_bw", "columns": ["improved: ms"], "is": "falls",
                       "measured": True}),
    ("westerbaan2021_bytes", {  # a round trip where the window cannot hold the bytes
        "figure": "handshake", "columns": ["handshake: BW 1000 kbit/s, ms"], "is": "above",
        "than": 250, "rows": {"chain, bytes": ["12589"]}}),
    ("zhao2019", {"figure": "raw", "table": "IW10", "against": "IW3",
                  "columns": ["56, kbit/s", "256, kbit/s"], "is": "below", "than": 0}),
]


@pytest.mark.parametrize(("name", "test"), WRONG, ids=[name for name, _ in WRONG])
def test_a_sentence_that_the_data_contradict_is_found(name: str, test: dict[str, object],
                                                      reports: dict[str, Report]) -> None:
    (wrong,) = sentences.read({"sentence": [{"says": "As it was.", "test": [test]}]}, name)
    report = stated.with_sentences(replace(reports[name], findings=reports[name].findings), [wrong])
    assert report.findings[-1].tables[0].rows[0][1] == stated.CONTRADICTED
    assert stated.contradicted(report)
