"""Fixtures for tests of fetches: the scenario zhao2019, its stored run, and one stored trial."""

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
    """The 128 fetches of a run of zhao2019 that was measured in the guest."""
    return read_rows(GOLDEN, Record)


@pytest.fixture
def good() -> Stored:
    """A fetch of 9000 bytes at 100 ms and 1000 kbit/s: window of 3 segments, no retransmission."""
    return load("iw3")
