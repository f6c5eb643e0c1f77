"""What these tests share: the scenario zhao2019, and a run of it as it was measured in the guest."""

from __future__ import annotations

import pytest

from lab.core import scenario_file
from lab.core.records import read_records
from lab.fetches import reading
from lab.fetches.record import Record
from lab.fetches.scenario import Scenario
from tests.golden.stored import FOLDER

GOLDEN = FOLDER.parent / "zhao2019_trials.csv"


@pytest.fixture(scope="package")
def scenario() -> Scenario:
    return reading.read(scenario_file.find("zhao2019"))


@pytest.fixture(scope="package")
def stored() -> list[Record]:
    """128 fetches as they were measured."""
    return read_records(GOLDEN, Record)
