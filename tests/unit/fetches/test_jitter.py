"""Jitter is asked for like any parameter of the network, and hides what it has to."""

from __future__ import annotations

from dataclasses import replace
import pytest

from firstflight.findings.quantities import QUANTITIES
from firstflight.parameters import NETWORK, OVERTAKEN, Parameter, of_subject
from firstflight.runs.results.checks import failed_checks
from firstflight.runs.results.records import FAIL, PASS
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.verify.verify import every_check
from firstflight.wire.delivery.packet_path import PATH
from tests.golden import stored
from tests.parameters import another

GOOD = stored.load("iw10")


def test_the_rtt_may_be_four_standard_deviations_off() -> None:
    """In real time. And there is no prediction, nor a bandwidth: jitter spreads the flight."""
    record = GOOD.requested(jitter_ms=1.0, rtt_ms=GOOD.trial.rtt_ms + 6.9).judge(exact=False)
    assert record.verdict == PASS
    assert (record.model_ms, record.model_latency_ms, record.seen_bandwidth_kbps) == (None,) * 3
    assert GOOD.requested(rtt_ms=GOOD.trial.rtt_ms + 6.9).judge(exact=False).verdict == FAIL
    far = GOOD.requested(jitter_ms=1.0, rtt_ms=GOOD.trial.rtt_ms + 7.3).judge(exact=False)
    assert far.verdict == FAIL and far.verdict_reason.startswith("RTT: ")


def test_in_virtual_time_each_packets_delay_follows_from_the_seed() -> None:
    record = GOOD.requested(jitter_ms=1.0, seed=1006759911).judge()
    assert record.verdict == FAIL and record.verdict_reason.startswith("path: ")


def test_packets_may_overtake_each_other() -> None:
    again = stored.sent_again(GOOD, 1, later_ms=30)
    assert again.judge(exact=False).verdict == FAIL
    record = again.requested(jitter_ms=1.0).judge(exact=False)
    assert (record.verdict, record.retransmission_cause) == (PASS, OVERTAKEN)


# Of every parameter of the network ------------------------------------------------------

@pytest.mark.parametrize("row", of_subject(NETWORK), ids=lambda row: row.name)
def test_every_parameter_of_the_network_is_part_of_the_path(row: Parameter) -> None:
    """Else it would not be installed."""
    row = replace(row, quantity=QUANTITIES[row.field])  # a queue's length in packets
    changed = replace(GOOD.trial, **{row.field: another(row, getattr(GOOD.trial, row.field))})
    assert changed.path != GOOD.trial.path, "PathParameters.path has to hand it to Link"


def test_what_cannot_be_computed_is_neither_judged_by_packet_nor_estimated(
        monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = GOOD.requested(rtt_ms=GOOD.trial.rtt_ms + 10)
    assert PATH in GOOD.judge().judged_by.split()
    assert {"path", "model"} <= set(failed_checks(every_check(), wrong.judge()))
    monkeypatch.setattr(Trial, "is_computed", False)
    assert PATH not in GOOD.judge().judged_by.split()
    assert not {"path", "RTT", "bandwidth"} & set(failed_checks(every_check(), wrong.judge()))
