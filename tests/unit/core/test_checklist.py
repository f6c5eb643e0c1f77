"""The list of checks: each row has workloads that judge by it, and each check has a row."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest

from firstflight.base.comparison import Comparison
from firstflight.judge import checklist
from firstflight.judge.checklist import LIST, LOAD, WORKLOADS, Judging, checks_of
from firstflight.runs.results.checks import Check
from firstflight.workloads.fetch.verify import verify as fetch
from firstflight.workloads.load import verify as load
from firstflight.workloads.page import browsed, verify as page
from firstflight.workloads.trace import verify as trace

JUDGED = {"fetch": fetch.CHECKS, "page": page.CHECKS, "browser": browsed.CHECKS,
          "trace": trace.CHECKS, "load": load.CHECKS}
ROWS = [replace(LIST[0], name="one", judges=("page",)),
        replace(LIST[0], name="two", judges=("page", "trace"))]


def judging(*names: str, compared: bool = True) -> dict[str, Judging]:  # type: ignore[type-arg]
    """How a workload judges by rows of these names. compared: whether it has own comparisons."""
    return {name: Judging(lambda record: True,
                          (lambda evidence: ()) if compared else None) for name in names}


def test_each_workload_judges_by_the_rows_that_name_it() -> None:
    for workload in WORKLOADS:
        assert [check.name for check in JUDGED[workload]] == [
            row.name for row in LIST if workload in row.judges]


def test_rows_have_unique_names_and_stand_in_groups_by_what_they_look_at() -> None:
    assert len({row.name for row in LIST}) == len(LIST)
    groups = [looks_at for looks_at, _ in groupby(LIST, lambda row: row.looks_at)]
    assert len(set(groups)) == len(groups)
    assert all(row.judges and set(row.judges) <= set(WORKLOADS) for row in LIST)


def test_a_check_names_connections_of_a_load_if_and_only_if_it_judges_loads() -> None:
    assert all(bool(row.of_load) == (LOAD in row.judges) for row in LIST)


def test_checks_that_workloads_share_have_their_comparison_in_the_list() -> None:
    """A workload compares itself only what the others do not have."""
    shared = {row.name for row in LIST if row.compare is not None}
    assert shared == {"size", "digest", "path", "TCP options", "segment size", "initial window",
                      "server's socket"}


def test_the_checks_of_a_workload_are_in_the_order_of_the_list() -> None:
    checks: tuple[Check, ...] = checks_of(  # type: ignore[type-arg]
        "page", judging("two", "one"), ROWS)
    assert [check.name for check in checks] == ["one", "two"]


@pytest.mark.parametrize(("workload", "names"), [
    ("page", ("one",)), ("page", ("one", "two", "three")), ("trace", ("one", "two")),
    ("load", ("one",))])
def test_a_check_without_a_row_is_refused_and_a_row_without_a_check(
        workload: str, names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="only"):
        checks_of(workload, judging(*names), ROWS)


def test_a_check_that_compares_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing is compared"):
        checks_of("trace", judging("two", compared=False), ROWS)


def test_a_workload_without_a_comparison_has_that_of_the_list() -> None:
    row = replace(ROWS[0], compare=lambda shared: [Comparison(True, str(shared), "")])
    (check,) = checks_of("page", judging("one", compared=False), [row])

    class Evidence:
        shared = "shared evidence"

    (compared,) = check.compare(Evidence())
    assert compared.observed == "shared evidence" and checklist.LIST
