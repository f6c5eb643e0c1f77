"""What every report has beside what its kind found."""

from __future__ import annotations

from typing import Any

import pytest

from lab import registry
from lab.core import reporting, scenario_file
from lab.core.errors import UsageError
from lab.core.findings import kernel_of


@pytest.mark.parametrize(("given", "told"), [
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
def test_a_page_says_the_command_that_measures_it_again(given: object, told: str) -> None:
    """However the scenario was named, it stands there once."""
    assert reporting.command({"arguments": given}, "zhao2019") == told


@pytest.mark.parametrize(("facts", "kernel"), [
    ({"kernel": "7.2", "engine": "uml", "machine": {"kernel": "6.1"}}, "7.2"),
    ({"kernel": "7.2", "engine": "host", "machine": {"kernel": "6.1"}}, "7.2"),
    ({"engine": "host", "machine": {"kernel": "6.1"}}, "6.1"),  # the host engine's is the machine's
    ({"engine": "uml", "machine": {"kernel": "6.1"}}, ""),
    ({"engine": "host", "machine": "6.1"}, ""), ({"engine": "host", "machine": {}}, ""),
    ({"kernel": 7.2}, "")])
def test_the_kernel_that_was_measured(facts: dict[str, Any], kernel: str) -> None:
    assert kernel_of(facts) == kernel


@pytest.mark.parametrize(("facts", "engine", "kernel"), [
    ({"engine": "uml", "virtual_time": True}, "User-Mode Linux guest, virtual time", "7.2"),
    ({"engine": "uml"}, "User-Mode Linux guest, real time", "7.2"),
    ({"engine": "host"}, "this machine's kernel, real time", "7.2"),
    ({"engine": "none"}, None, None), ({"engine": "other"}, "other, real time", "7.2"),
    ({}, None, "7.2"),
    ({"engine": "host", "kernel": ""}, "this machine's kernel, real time", "6.1")])
def test_what_ran_the_trials_stands_in_the_provenance(facts: dict[str, Any], engine: str | None,
                                                      kernel: str | None) -> None:
    told = {fact.name: fact.value for fact in reporting.provenance(
        {"kernel": "7.2", "machine": {"kernel": "6.1", "cpus": 2, "processor": "A"}, **facts},
        "none", "here", "")}
    assert (told.get("engine"), told.get("kernel under test")) == (engine, kernel)
    assert (told["machine's kernel"], told["processor"]) == ("6.1", "A, 2 cores")
    assert told["run"] == "here"


@pytest.mark.parametrize("seed", [-1, 1 << 63])
def test_a_seed_that_is_none_is_refused_by_its_flag(seed: int) -> None:
    with pytest.raises(UsageError, match="--seed"):
        registry.study_of(scenario_file.find("zhao2019"), seed=seed)
