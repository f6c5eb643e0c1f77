"""Checks: the loop over a kind's table, and what a stored verdict says of each line."""

from __future__ import annotations

from typing import Any

from firstflight.findings.findings import Compared
from firstflight.runs.results.checks import (Check, Failure, failed_checks, failures, give_verdict,
                                             table)
from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from tests.unit.core.example import Record, record


def has_total(record: Record) -> bool:
    return record.total_ms is not None


def each_host(evidence: dict[str, Any]) -> list[Compared]:
    return [Compared(seen == 10, str(seen), "10", f"window of {host}")
            for host, seen in evidence.get("windows", {}).items()]


CHECKS = (
    Check("RTT", "the handshake", lambda evidence: [Compared(
        evidence["rtt"] == 20, f"{evidence['rtt']} ms", "20 ms")], lambda record: True),
    Check("model", "the total", lambda evidence: (), has_total,
          exact_only=True),
    Check("model latency", "the latency", lambda evidence: (), lambda record: False,
          exact_only=True),
    Check("window", "of every host", each_host, lambda record: bool(record.verdict != SKIPPED)),
)


def test_what_applies_and_passes_is_a_pass() -> None:
    judged = give_verdict(record(verdict=SKIPPED), failures(CHECKS, {"rtt": 20}))
    assert judged == record(verdict=PASS, failed_checks="", verdict_reason="")


def test_every_failure_is_named_in_the_order_of_the_table() -> None:
    evidence = {"rtt": 21, "windows": {"a": 10, "b": 3, "c": 4}}
    assert failures(CHECKS, evidence)[:2] == [Failure("RTT", "RTT: observed 21 ms, expected 20 ms"),
                                              Failure("window", "window of b: observed 3, expected 10")]
    assert give_verdict(record(), failures(CHECKS, evidence)) == record(
        verdict=FAIL, failed_checks="RTT; window",
        verdict_reason="RTT: observed 21 ms, expected 20 ms; window of b: observed 3, expected 10; window of"
                       " c: observed 4, expected 10")


def test_what_failed_is_a_column_and_not_read_out_of_words() -> None:
    stored = record(verdict=FAIL, failed_checks="RTT; window", verdict_reason="model: other words")
    assert failed_checks(CHECKS, stored) == ["RTT", "window"]
    assert {row[0]: row[3] for row in table(CHECKS, [stored]).rows} == {
        "RTT": 1, "model": 0, "model latency": 0, "window": 1}


def test_a_stored_reason_names_its_checks() -> None:
    stored = record(verdict=FAIL, verdict_reason="window of b: observed 3, expected 10; model latency:"
                    " observed 2, expected 1; older: observed 2, expected 1")
    assert failed_checks(CHECKS, stored) == ["window", "model latency", "older"]
    assert failed_checks(CHECKS, record()) == []


def test_the_table_counts_passed_failed_and_not_judged() -> None:
    records = [record(), record(total_ms=None, verdict=SKIPPED),
               record(verdict=FAIL, verdict_reason="model latency: observed 2, expected 1; old: a")]
    rows = {row[0]: row[1:] for row in table(CHECKS, records, exact=True).rows}
    assert rows == {"RTT": ("the handshake", 3, 0, 0), "model": ("the total", 2, 0, 1),
                    "model latency": ("the latency", 0, 1, 2),
                    "window": ("of every host", 2, 0, 1), "old": ("", None, 1, None)}


def test_what_virtual_time_alone_can_judge_is_no_line_of_a_run_in_real_time() -> None:
    """And what is seldom judged is one only where it was."""
    seldom = Check("early", "early data", lambda evidence: (),
                   lambda record: record.lost is not None, seldom=True)
    records = [record(), record(verdict=FAIL, verdict_reason="window of b: observed 3, expected 10;"
                                " window of c: observed 3, expected 10")]
    told = table((*CHECKS, seldom), records, exact=False)
    assert [column.name for column in told.columns] == [
        "check", "what", "passed", "failed", "not judged"]
    assert told.rows == (("RTT", "the handshake", 2, 0, 0), ("window", "of every host", 1, 1, 0))
    told = table((*CHECKS, seldom), [*records, record(lost=0)])
    assert [row[0] for row in told.rows] == ["RTT", "model", "model latency", "window", "early"]
    assert told.rows[-1] == ("early", "early data", 1, 0, 2)
