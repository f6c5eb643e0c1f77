"""What every report has beside what its kind found."""

from __future__ import annotations

import pytest

from lab.core import reporting


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
