"""What failed is not judged, and says why."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from firstflight.runs.results.records import SKIPPED
from tests.golden.stored import Stored


def failed(trial: Stored, **fetch: Any) -> Stored:
    return trial.said("fetch", ok=False, **fetch)


def test_a_failed_transfer_is_not_judged(good: Stored) -> None:
    """curl prints a time for failures too; it must not get into a mean."""
    trial = failed(good, error="curl 28: Operation timed out", exit_status=28, http_status=0)
    record = trial.judge()
    assert (record.ok, record.verdict) == (False, SKIPPED)
    assert record.error == "curl 28: Operation timed out"
    assert record.total_ms is record.connect_ms is record.first_byte_ms is None
    assert record.latency_ms is None and record.model_ms is None
    assert record.seen_rtt_ms == pytest.approx(100, abs=0.01)  # the wire may still tell why


@pytest.mark.parametrize("observation", [
    {"trial": "x", "error": "no end of the fetch within 90 s"},
    {"trial": "x"},
    {"trial": "x", "fetch": {"ok": False, "error": "curl is not installed"}, "server": {}},
])
def test_a_trial_without_packets(good: Stored, observation: dict[str, Any]) -> None:
    record = replace(good, observation=observation, client=b"", server=b"").judge()
    assert not record.ok and record.error and record.verdict == SKIPPED


def test_a_worker_error_outweighs_a_good_fetch(good: Stored) -> None:
    observation = copy.deepcopy(good.observation)
    observation["error"] = "3 packets still under way 300 s after the transfer"
    record = replace(good, observation=observation).judge()
    assert not record.ok and record.error.startswith("3 packets")


def test_a_server_that_said_nothing(good: Stored) -> None:
    observation = {**good.observation, "server": {"error": "ConnectionResetError: reset"}}
    record = replace(good, observation=observation).judge()
    assert not record.ok and "ConnectionResetError" in record.error
