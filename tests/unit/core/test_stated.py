"""Sentences of a scenario: read strictly, and tested in every row that they are about."""

from __future__ import annotations

from typing import Any

import pytest

from firstflight.base.stats import Estimate
from firstflight.findings.findings import (Cell, Column, Finding, Interval, Report, Rounded,
                                           Statement, Table)
from firstflight.runs import scenario_file, sentences, stated
from firstflight.runs.stated import CONTRADICTED, HOLDS, NOT_TESTED, UNDECIDED
from tests.unit.render import reports

CHAINS = Finding("steps", "First byte by chain", tables=(Table("", (
    Column("chain", "bytes"), Column("IW3", "ms", "first byte"),
    Column("IW10", "ms", "first byte")), (
        ("2000", 400.9, 301.2), ("4000", 500.5, 301.3), ("8000", 401.4, 301.7),
        ("16000", 501.5, 401.3))),))
LOADS = Finding("load", "By load", tables=(Table("", (
    Column("response", is_text=True), Column("load"), Column("saved", "%"),
    Column("time", "ms"), Column("after a pause", is_text=True)), (
        ("5 kB", 0.5, Estimate(33.0, (32.9, 33.1)), 10.0, "141.9 (141)"),
        ("5 kB", 0.9, Estimate(29.5, (27.0, 32.0)), 12.0, "421.5 (3)"),
        ("50 kB", 0.5, Estimate(19.0, (18.0, 20.0)), 11.0, "141.9 (140)"),
        ("50 kB", 0.9, Estimate(-1.0, (-3.0, 1.0)), 13.0, "310.5 (10)"))),),
    statements=(Statement("The source says so.", "so it is", "direction"),
                Statement("How much it saves:", "25 or 11 %.", numbers=(
                    Rounded(Estimate(25.0, (24.5, 25.5)), 1), Rounded(11.0, 1)))))
BARS = Finding("bars", "Bars", tables=(Table("", (
    Column("RTT", "ms"), Column("", "ms", "improved"), Column("95 % interval", "ms", "improved")), (
        ("20", 7.0, Interval(5.0, 9.0)), ("50", 8.0, Interval(6.0, 10.0)),
        ("100", 30.0, "exact"))),))
FINDINGS = (CHAINS, LOADS, BARS)
BOTH = ["first byte: IW3, ms", "first byte: IW10, ms"]


def word(*tests: dict[str, Any], findings: tuple[Finding, ...] = FINDINGS) -> tuple[str, str]:
    """The result of a sentence with these tests, and where it was found."""
    (sentence,) = sentences.read({"sentence": [{"says": "So it is.", "test": list(tests)}]}, "here")
    return stated.judge_sentence(sentence, findings)


@pytest.mark.parametrize(("test", "result", "where"), [
    # The larger the chain, the later the first byte: not with IW 3.
    ({"columns": BOTH[1:], "is": "never falls"}, HOLDS, "3 of 3"),
    ({"columns": BOTH, "is": "never falls"}, CONTRADICTED,
     "5 of 6, not in first byte: IW3, ms, chain, bytes 8000: 401.4 after 500.5"),
    ({"columns": ["first byte: *"], "is": "never falls"}, CONTRADICTED, "5 of 6, not in"),
    ({"columns": BOTH[1:], "is": "rises"}, HOLDS, "3 of 3"),
    ({"columns": BOTH[1:], "is": "never falls", "within": 0.0,
      "rows": {"chain, bytes": [2000, 8000]}}, HOLDS, "1 of 1"),
    ({"columns": BOTH[:1], "is": "rises and falls"}, HOLDS, "1 of 1"),
    ({"columns": BOTH[1:], "is": "rises and falls"}, CONTRADICTED, "no fall"),
    ({"columns": BOTH[1:], "is": "falls"}, CONTRADICTED, "0 of 3"),
    ({"columns": BOTH[1:], "is": "never rises", "within": 100}, HOLDS, "3 of 3"),
    ({"columns": BOTH[1:], "is": "never rises", "within": 99}, CONTRADICTED, "2 of 3"),
    # At every chain, and only at some.
    ({"columns": BOTH[1:], "is": "below", "than": BOTH[0]}, HOLDS, "4 of 4"),
    ({"columns": BOTH[1:], "is": "above", "than": 301.2}, CONTRADICTED, "3 of 4"),
    ({"columns": BOTH[1:], "is": "at least", "than": 301.2}, HOLDS, "4 of 4"),
    ({"columns": BOTH[1:], "is": "equal", "than": 301.2, "within": 1}, CONTRADICTED, "3 of 4"),
    ({"columns": BOTH[1:], "is": "equal", "than": 301.2, "within": 1,
      "without": {"chain, bytes": ["16000"]}}, HOLDS, "3 of 3"),
    ({"columns": BOTH[1:], "is": "somewhere above", "than": 400}, HOLDS, "1 of 1"),
    ({"columns": BOTH[1:], "is": "somewhere below", "than": 300}, CONTRADICTED, "nowhere"),
    ({"columns": BOTH[1:], "minus": BOTH[0], "is": "at most", "than": -99}, HOLDS, "4 of 4"),
    ({"columns": BOTH[:1], "is": "highest", "at": ["16000"]}, HOLDS, "3 of 3"),
    ({"columns": BOTH[:1], "is": "highest", "at": ["4000"]}, CONTRADICTED, "2 of 3"),
    ({"columns": BOTH[:1], "is": "lowest", "at": ["2000", "8000"]}, HOLDS, "2 of 2"),
    # What is not there is not tested, and so never holds.
    ({"columns": ["first byte: IW20, ms"], "is": "rises"}, NOT_TESTED, "no row has"),
    ({"columns": BOTH, "is": "rises", "rows": {"chain, bytes": [3000]}}, NOT_TESTED, "'3000'"),
    ({"columns": BOTH, "is": "below", "than": "total"}, NOT_TESTED, "0 columns are 'total'"),
    ({"columns": BOTH, "is": "rises", "table": "Other"}, NOT_TESTED, "no row has"),
])
def test_every_relation_in_every_row(test: dict[str, Any], result: str, where: str) -> None:
    found, text = word({"figure": "steps", **test})
    assert found == result and where in text


@pytest.mark.parametrize(("test", "result"), [
    # The interval decides: it never harms, for all that is known; it helps, less so under load.
    ({"columns": ["saved, %"], "is": "above", "than": 0}, UNDECIDED),
    ({"columns": ["saved, %"], "is": "above", "than": 0, "measured": True}, CONTRADICTED),
    ({"columns": ["saved, %"], "is": "above", "than": 0, "rows": {"response": "5 kB"}}, HOLDS),
    ({"columns": ["saved, %"], "is": "at least", "than": 2, "rows": {"response": "50 kB"}},
     CONTRADICTED),
    ({"columns": ["saved, %"], "is": "falls", "each": ["response"]}, HOLDS),
    ({"columns": ["time, ms"], "is": "rises", "each": ["response"]}, HOLDS),
    ({"columns": ["time, ms"], "is": "rises"}, CONTRADICTED),  # across the responses
    ({"columns": ["after a pause"], "is": "equal", "than": 141.9, "rows": {"load": "0.5"}}, HOLDS),
    ({"columns": ["after a pause"], "is": "above", "than": 300, "without": {"load": 0.5}}, HOLDS),
    ({"columns": ["response"], "is": "rises"}, CONTRADICTED),  # 5 kB, 50 kB: their first numbers
    ({"claim": "The source", "is": "direction"}, HOLDS),
    ({"claim": "The source", "is": "reproduced"}, CONTRADICTED),
    ({"claim": "Another", "is": "reproduced"}, NOT_TESTED),
    ({"claim": "How much", "is": "falls"}, HOLDS),
    ({"claim": "How much", "is": "rises"}, CONTRADICTED),
    ({"claim": "How much", "is": "equal", "than": 25, "within": 1}, HOLDS),
    ({"claim": "How much", "is": "direction"}, NOT_TESTED),  # no claim of a source
    ({"columns": ["saved, %"], "is": "around", "than": 0,
      "rows": {"response": "50 kB", "load": 0.9}}, HOLDS),
    ({"columns": ["saved, %"], "is": "around", "than": 0}, CONTRADICTED),
    ({"columns": ["saved, %"], "is": "highest", "by": "load", "at": ["0.5"],
      "each": ["response"]}, HOLDS),
    ({"columns": ["saved, %"], "is": "highest", "by": "load", "at": ["0.9"],
      "each": ["response"]}, CONTRADICTED),
])
def test_intervals_groups_and_claims(test: dict[str, Any], result: str) -> None:
    assert word({"figure": "load", **test})[0] == result


def test_a_bar_is_known_by_the_interval_beside_it() -> None:
    rises = {"figure": "bars", "columns": ["improved: ms"], "is": "rises"}
    assert word(rises)[0] == UNDECIDED and word({**rises, "measured": True})[0] == HOLDS
    assert word({**rises, "rows": {"RTT, ms": [50, 100]}})[0] == HOLDS
    assert word({**rises, "is": "above", "than": 4.9})[0] == HOLDS


def test_a_table_beside_another_of_its_finding() -> None:
    head = (Column("RTT", "ms"), Column("56"), Column("256"))
    grid = (Finding("raw", "", tables=(
        Table("IW3", head, (("20", "1680/107u", "351/91u"), ("50", "1740/2", "411/209u"))),
        Table("IW10", head, (("20", "1463/71u", "351/70u"), ("50", "1741/1", "411/161u"))))),)
    never_later = {"figure": "raw", "table": "IW10", "against": "IW3", "columns": ["56", "256"],
                   "is": "at most", "than": 0}
    assert word(never_later, findings=grid) == (
        CONTRADICTED, "3 of 4, not in 56, RTT, ms 50: 1.0 beside 0.0")
    assert word({**never_later, "within": 1}, findings=grid)[0] == HOLDS
    assert word({**never_later, "against": "IW4"}, findings=grid)[0] == NOT_TESTED


def test_all_tests_of_a_sentence_have_to_hold() -> None:
    good = {"figure": "steps", "columns": BOTH[1:], "is": "never falls"}
    bad = {**good, "columns": BOTH[:1]}
    unclear = {"figure": "load", "columns": ["saved, %"], "is": "above", "than": 0}
    assert word(good, good) == (HOLDS, "3 of 3; 3 of 3")
    assert word(good, bad)[0] == CONTRADICTED and word(unclear, bad)[0] == CONTRADICTED
    assert word(good, unclear)[0] == UNDECIDED
    assert word({**good, "figure": "none"})[0] == NOT_TESTED
    unknown: tuple[tuple[Cell, ...], ...] = (("1", None), ("2", 3.0))
    empty = (Finding("steps", "", tables=(Table("", (Column("a"), Column("b")), unknown),)),)
    assert word({**good, "columns": ["b"]}, findings=empty) == (NOT_TESTED, "b 1: is not known")


def test_a_report_names_the_sentences_that_its_run_contradicts() -> None:
    read = sentences.read({"sentence": [
        {"says": f"A byte {end}", "test": [{"figure": "steps", "columns": [column],
                                            "is": "never falls"}]}
        for end, column in zip(("{steps / 2000 / first byte: IW3, ms} later", "later"), BOTH)]},
        "here")
    report: Report = stated.with_sentences(reports.report(findings=FINDINGS), read)
    assert [row[:2] for row in report.findings[-1].tables[0].rows] == [
        ("A byte 400.9 later", CONTRADICTED), ("A byte later", HOLDS)]
    (line,) = stated.contradicted(report)
    assert "“A byte 400.9 later” (2 of 3, not in" in line
    again = stated.with_sentences(report, read[1:])
    assert len(again.findings) == len(report.findings) and not stated.contradicted(again)
    assert stated.with_sentences(report, ()).findings == FINDINGS


def test_a_part_of_the_cells_does_not_speak_for_the_sentences() -> None:
    whole = scenario_file.find("map_of_windows")
    assert whole.head().sentences and not whole.sampled(196).head().sentences
