"""What unit tests share: the scenario zhao2019, and a run of it as it was measured in the guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.records import Record, read_records
from lab.scenario import Scenario, load

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "zhao2019_trials.csv"


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load("zhao2019")


@pytest.fixture(scope="module")
def stored() -> list[Record]:
    """128 fetches as they were measured."""
    return read_records(GOLDEN)
