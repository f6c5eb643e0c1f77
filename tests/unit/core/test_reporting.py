"""The parts that reports of all kinds share: the command, provenance, tiles, checks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firstflight.base.comparison import Comparison
from firstflight.findings.findings import Fact, Finding, Report, Tile, kernel_of
from firstflight.runs import reporting, runs
from firstflight.runs.kinds import RunData
from firstflight.runs.results.checks import (Check, Failure, failed_checks, failures, give_verdict,
                                             table)
from firstflight.runs.results.records import FAIL, PASS, SKIPPED, Record
from tests.unit.core.example import Record as ExampleRecord, record as example_record, study


@pytest.mark.parametrize(("arguments", "command"), [
    (["zhao2019"], "./run.sh zhao2019"),
    (["dukkipati2010", "zhao2019", "--jobs", "1"], "./run.sh dukkipati2010 zhao2019 --jobs 1"),
    (["mine/zhao2019.toml"], "./run.sh mine/zhao2019.toml"),
    (["--scenario", "zhao2019"], "./run.sh --scenario zhao2019"),
    (["--scenario=zhao2019"], "./run.sh --scenario=zhao2019"),
    (["--rtt", "100", "--bw", "1000"], "./run.sh --scenario zhao2019 --rtt 100 --bw 1000"),
    ([], "./run.sh --scenario zhao2019"),
    (["--results", "zhao2019", "--figures=f"], "./run.sh --scenario zhao2019"),
    (["zhao2019", "--client", "a b"], "./run.sh zhao2019 --client 'a b'"),
    (None, "./run.sh --scenario zhao2019")])
def test_a_report_has_the_command_that_measures_it_again(arguments: object, command: str) -> None:
    """The command names the scenario once, however the arguments named it."""
    assert reporting.command({"arguments": arguments}, "zhao2019") == command


@pytest.mark.parametrize(("facts", "kernel"), [
    ({"kernel": "7.2", "engine": "uml", "machine": {"kernel": "6.1"}}, "7.2"),
    ({"kernel": "7.2", "engine": "host", "machine": {"kernel": "6.1"}}, "7.2"),
    # The host engine measures the machine's kernel.
    ({"engine": "host", "machine": {"kernel": "6.1"}}, "6.1"),
    ({"engine": "uml", "machine": {"kernel": "6.1"}}, ""),
    ({"engine": "host", "machine": "6.1"}, ""), ({"engine": "host", "machine": {}}, ""),
    ({"kernel": 7.2}, "")])
def test_the_report_names_the_kernel_that_was_measured(facts: dict[str, Any], kernel: str) -> None:
    assert kernel_of(facts) == kernel


@pytest.mark.parametrize(("facts", "engine", "kernel"), [
    ({"engine": "uml", "virtual_time": True}, "User-Mode Linux guest, virtual time", "7.2"),
    ({"engine": "uml"}, "User-Mode Linux guest, real time", "7.2"),
    ({"engine": "host"}, "this machine's kernel, real time", "7.2"),
    ({"engine": "none"}, None, None), ({"engine": "other"}, "other, real time", "7.2"),
    ({}, None, "7.2"),
    ({"engine": "uml", "kernel": ""}, "User-Mode Linux guest, real time", None),
    ({"engine": "host", "kernel": ""}, "this machine's kernel, real time", "6.1")])
def test_the_provenance_names_engine_and_kernel_of_the_trials(facts: dict[str, Any],
                                                              engine: str | None,
                                                              kernel: str | None) -> None:
    shown = {fact.name: fact.value for fact in reporting.provenance(
        {"kernel": "7.2", "machine": {"kernel": "6.1", "cpus": 2, "processor": "A"}, **facts},
        "none", "here", "")}
    assert (shown.get("engine"), shown.get("kernel under test")) == (engine, kernel)
    assert (shown["machine's kernel"], shown["processor"]) == ("6.1", "A, 2 cores")
    assert shown["run"] == "here"


# Whole reports ---------------------------------------------------------------------------

def record(number: int, **values: Any) -> Record:
    return Record(SimpleNamespace(id=f"t{number}"), **{"ok": True, "verdict": PASS, **values})


def report(records: list[Record], changed: str = "", findings: tuple[Finding, ...] = (),
           **facts: Any) -> Report:
    """The report of a run. changed: how its results were edited. facts: of run.json."""
    head = replace(study().head, name="own", result="It adds up.")
    made: Any = SimpleNamespace(head=head, kind=SimpleNamespace(checks=lambda: ()))
    return reporting.report_of(
        made, RunData(Path("results/own/20260101-uml"), facts, records, changed=changed), findings,
        summary=("its summary",), sentences=("its sentence",),
        tiles=(Tile("1", "a tile of its kind"),))


@pytest.mark.parametrize(("facts", "opens", "under_way"), [
    ({"state": runs.COMPLETE}, True, False),
    ({"state": runs.COMPLETE, "partial": False}, True, False),
    ({"state": runs.COMPLETE, "partial": True}, False, False),
    ({"state": runs.RUNNING}, False, True), ({}, False, True)])
def test_only_a_whole_run_opens_with_its_answer(facts: dict[str, Any], opens: bool,
                                                under_way: bool) -> None:
    made = report([], **facts)
    assert made.opening == ("It adds up." if opens else "")
    assert made.sentences[0] == "its sentence" and made.path == "own/20260101-uml"
    assert ["under way or was interrupted" in sentence for sentence in made.sentences[1:]] == (
        [True] if under_way else [])
    assert made.tiles == (Tile("1", "a tile of its kind"),), "nothing was measured"


def test_a_report_begins_with_how_its_results_were_edited() -> None:
    made = report([record(1)], "trials.csv was changed", state=runs.COMPLETE)
    assert made.summary == ("trials.csv was changed", "its summary")
    assert made.sentences == ("trials.csv was changed", "its sentence")


def test_up_to_500_trials_that_do_not_count_are_listed_with_their_reasons() -> None:
    failed = [record(number, verdict=FAIL, verdict_reason="RTT: observed 2, expected 1")
              for number in range(1000, 1000 + reporting.MOST_ROWS + 1)]
    lost = record(1, ok=False, error="curl 28", verdict=SKIPPED)
    bars = (Finding("a", "A", bars={"reproduced": 2, "direction": 1}),
            Finding("b", "B", bars={"reproduced": 1}))
    made = report([*failed[::-1], record(2), lost, record(3)], findings=bars, emulated_s=90.0,
                  wall_s=7200.0)
    assert made.failures is not None and made.failures.hidden_rows == 2
    assert made.failures.rows[:2] == (("t1", "failed transfer", "curl 28"),
                                      ("t1000", FAIL, "RTT: observed 2, expected 1"))
    assert [column.name for column in made.failures.columns] == ["trial", "verdict", "reason"]
    assert len(made.failures.rows) == 500 and (made.verified, made.count) == (2, 504)
    assert [tile.value for tile in made.tiles] == [
        "2 of 504", "3 of 4", "90.0 s in 2.0 h", "1"]
    with_held_out = report([record(1)], findings=(
        *bars, replace(bars[1], bars={"undecided": 2}, held_out=True)), wall_s=3.0)
    assert [(tile.value, tile.meaning) for tile in with_held_out.tiles[1:3]] == [
        ("3 of 4", "published bars reproduced"),
        ("0 of 2", "held-out bars reproduced; 2 undecided (too few data)")]
    without_failures = report([record(1)], wall_s=3.0)
    assert without_failures.failures is None
    assert [tile.value for tile in without_failures.tiles] == ["1 of 1", "1"]


def test_the_provenance_of_a_run_has_the_facts_of_run_json_that_are_known() -> None:
    facts = {"arguments": ["own.toml"], "state": "complete", "kernel": "7.2", "engine": "uml",
             "virtual_time": True, "emulated_s": 12.5, "wall_s": 3, "started_at": "then",
             "finished_at": "later", "seed": 7, "jobs": 2,
             "machine": {"system": "Debian", "kernel": "6.1", "processor": "A CPU", "cpus": 4},
             "tools": {"curl": "8", "apt": "1"},
             "systems": {"debian": {"nginx": "1.22", "curl": "7.88"}},
             "project": {"version": "1.0", "commit": "abc", "changed": True},
             "scenario_file": "# Other."}
    assert reporting.provenance(facts, "own", "own/run", "# A claim.") == [Fact(*row) for row in (
        ("command", "./run.sh own.toml"), ("run", "own/run"), ("state", "complete"),
        ("kernel under test", "7.2"), ("engine", "User-Mode Linux guest, virtual time"),
        ("network time", "12.5 s"), ("wall time", "3 s"), ("started", "then"),
        ("finished", "later"), ("seed", "7"), ("jobs", "2"), ("machine", "Debian"),
        ("machine's kernel", "6.1"), ("processor", "A CPU, 4 cores"), ("apt", "1"), ("curl", "8"),
        ("packages of debian", "curl 7.88, nginx 1.22"), ("version", "1.0"),
        ("commit", "abc, with local changes"),
        ("scenario file", "one of its own, kept in run.json"))]
    assert reporting.provenance({}, "own", "own/run", "# A claim.") == [
        Fact("command", "./run.sh --scenario own"), Fact("run", "own/run"),
        Fact("scenario file", "one of its own, kept in run.json")], "unknown facts have no row"
    for text, addition in (("# Other.", ""), ("# A claim.", ", changed since the run")):
        assert reporting.provenance(facts, "zhao2019", "own/run", text)[-1] == Fact(
            "scenario file", f"scenarios/zhao2019.toml{addition}")


# Checks -------------------------------------------------------------------------------

def has_total(example_record: ExampleRecord) -> bool:
    return example_record.total_ms is not None


def compare_windows(evidence: dict[str, Any]) -> list[Comparison]:
    """A comparison for each host, whose window has to be 10."""
    return [Comparison(seen == 10, str(seen), "10", f"window of {host}")
            for host, seen in evidence.get("windows", {}).items()]


CHECKS = (
    Check("RTT", "the handshake", lambda evidence: [Comparison(
        evidence["rtt"] == 20, f"{evidence['rtt']} ms", "20 ms")], lambda example_record: True),
    Check("model", "the total", lambda evidence: (), has_total,
          exact_only=True),
    Check("model latency", "the latency", lambda evidence: (), lambda example_record: False,
          exact_only=True),
    Check("window", "of every host", compare_windows,
          lambda example_record: bool(example_record.verdict != SKIPPED)),
)


def test_failures_are_named_in_the_order_of_the_checks() -> None:
    evidence = {"rtt": 21, "windows": {"a": 10, "b": 3, "c": 4}}
    assert failures(CHECKS, evidence)[:2] == [Failure("RTT", "RTT: observed 21 ms, expected 20 ms"),
                                              Failure("window",
                                                      "window of b: observed 3, expected 10")]
    assert give_verdict(example_record(), failures(CHECKS, evidence)) == example_record(
        verdict=FAIL, failed_checks="RTT; window",
        verdict_reason="RTT: observed 21 ms, expected 20 ms; window of b: observed 3, expected 10;"
                       " window of c: observed 4, expected 10")


def test_failed_checks_are_read_from_their_column_not_from_the_reason() -> None:
    stored = example_record(verdict=FAIL, failed_checks="RTT; window",
                            verdict_reason="model: other words")
    assert failed_checks(stored) == ["RTT", "window"]
    assert {row[0]: row[3] for row in table(CHECKS, [stored]).rows} == {
        "RTT": 1, "model": 0, "model latency": 0, "window": 1}


def test_the_table_of_checks_has_those_of_virtual_time_there_only_and_rare_ones_where_judged(
        ) -> None:
    seldom = Check("early", "early data", lambda evidence: (),
                   lambda example_record: example_record.lost is not None, seldom=True)
    records = [example_record(),
               example_record(verdict=FAIL, failed_checks="window")]
    in_real_time = table((*CHECKS, seldom), records, exact=False)
    assert [column.name for column in in_real_time.columns] == [
        "check", "what", "passed", "failed", "not judged"]
    assert in_real_time.rows == (("RTT", "the handshake", 2, 0, 0),
                                 ("window", "of every host", 1, 1, 0))
    in_virtual_time = table((*CHECKS, seldom), [*records, example_record(lost=0)])
    assert [row[0] for row in in_virtual_time.rows] == [
        "RTT", "model", "model latency", "window", "early"]
    assert in_virtual_time.rows[-1] == ("early", "early data", 1, 0, 2)
