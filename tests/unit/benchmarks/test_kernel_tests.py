"""Which kernel tests count as passed, as known failures, and as failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kernel_tests import (FAILING, KNOWN, KNOWN_FAILURES, PASSED, Result, changed_name,
                                     script_names, told)

KNOWN_NAME = next(iter(KNOWN_FAILURES))


def ended(name: str, status: int) -> Result:
    return Result(name, status, 0.5, "one\ntwo\nthree\nfour" if status else "")


def test_a_script_passes_or_fails_by_its_status_and_a_failure_has_its_words() -> None:
    lines = list(told(iter([ended("a", 0), ended("b", 1)])))
    assert lines == [(PASSED, "a 0.500 s"), (FAILING, "b 0.500 s: two | three | four")]


@pytest.mark.parametrize(("status", "changed", "verdict"), [
    (1, 0, KNOWN), (0, 0, PASSED), (1, 1, FAILING), (0, 1, PASSED)])
def test_a_known_failure_counts_only_if_it_passes_with_its_change(
        status: int, changed: int, verdict: str) -> None:
    results = [ended(KNOWN_NAME, status), ended(changed_name(KNOWN_NAME), changed), ended("z", 0)]
    assert [verdict for verdict, _ in told(iter(results))] == [verdict, PASSED]


def test_scripts_for_ipv6_alone_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "six.pkt").write_text("--ip_version=ipv6\n")
    (tmp_path / "four.pkt").write_text("--ip_version=ipv4\n")
    (tmp_path / "any.pkt").write_text("// either\n")
    (tmp_path / "defaults.sh").write_text("")
    assert script_names(tmp_path) == ["any", "four"]
