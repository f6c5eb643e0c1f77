"""What these tests share: the scenario zhao2019, and a run of it measured in the guest."""

from __future__ import annotations

import pytest

from firstflight.runs import scenario_file
from firstflight.workloads.fetch.scenario import reading
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.scenario import Scenario
from tests.golden.rows import read_rows
from tests.golden.stored import FOLDER, Stored, load

GOLDEN = FOLDER.parent / "zhao2019_trials.csv"


@pytest.fixture(scope="package")
def scenario() -> Scenario:
    return reading.read_scenario(scenario_file.find("zhao2019"))


@pytest.fixture(scope="package")
def stored() -> list[Record]:
    """128 fetches as they were measured."""
    return read_rows(GOLDEN, Record)


@pytest.fixture
def good() -> Stored:
    """RTT 100 ms, 1000 kbit/s, window 3, 9000 bytes; nothing sent again."""
    return load("iw3")
