"""Each command line of docs/REPRODUCE.md is one that run.sh takes."""

from __future__ import annotations

import re

import pytest

import experiment
from firstflight.base import errors
from firstflight.base.files import PROJECT
from firstflight.runs import scenario_file

TEXT = (PROJECT / "docs" / "REPRODUCE.md").read_text(encoding="utf-8")
COMMANDS = sorted(set(re.findall(r"^    \./run\.sh (.+?)(?:  +#.*)?$", TEXT, re.MULTILINE)))
SCENARIOS = sorted({"dukkipati2010", *re.findall(r"\| ([a-z]+\d\w+), \d+ \|", TEXT)})


@pytest.mark.parametrize("line", [*COMMANDS, *SCENARIOS])
def test_a_command_line_is_taken(line: str) -> None:
    try:
        assert experiment.main([*line.split(), "--dry-run"]) == errors.OK
    except errors.UsageError as error:  # a sample that is drawn first: the page says how
        drawn = re.search(r"/usr/bin/python3 -m paper\.draw \w+ --full", str(error))
        assert drawn is not None and drawn[0] in TEXT, error


def test_each_scenario_with_a_source_has_a_row() -> None:
    """Of the five seeds and the paper; the others are questions without published numbers here."""
    published = ("dukkipati", "handley", "ietf", "marrama", "tselentis", "zhao")
    seeds = {name for name in scenario_file.names() if name.startswith(published)}
    # They answer questions of ours, or compare in a way that the sources do not.
    ours = {"handley1999_warm", "ietf78_background", "ietf78_beyond", "ietf78_connections"}
    assert seeds - ours == set(SCENARIOS) and COMMANDS
