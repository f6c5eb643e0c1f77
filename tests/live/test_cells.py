"""A cell's numbers are its own: whatever else is measured in the same run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engines.uml import UmlEngine
from lab.core.records import PASS
from lab.fetches.record import Record
from lab.fetches.trial import Trial
from lab.fetches.verify import judge

TRIAL = Trial(scenario="live", rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000,
              queue_packets=1000, loss_percent=0, initcwnd=10, initrwnd=27,
              congestion_control="cubic", client="libcurl", response_bytes=9000, repeat=1)


def measured(kernel: Path, folder: Path, trials: Sequence[Trial]) -> dict[Trial, Record]:
    """In one guest, in this order; what differs between two runs of the same left out."""
    by_id = {trial.id: trial for trial in trials}
    seen = UmlEngine(kernel, 1).run([trial.job() for trial in trials], {}, folder)
    return {by_id[each.trial_id]: replace(
        judge(by_id[each.trial_id], each.content, each.client_pcap, each.server_pcap, exact=True,
              sysctls={}), measured_at="") for each in seen}


def test_a_fetch_that_failed_leaves_nothing_to_the_next(kernel: Path, tmp_path: Path) -> None:
    """Its client tries a second connection, of which the server also reports."""
    nothing_passes = replace(TRIAL, rtt_ms=268.6, qdisc="cake", queue_packets=1, kept=1)
    after = replace(TRIAL, response_bytes=14_580)
    (alone,) = measured(kernel, tmp_path / "alone", [after]).values()
    records = measured(kernel, tmp_path / "after", [nothing_passes, TRIAL, after])
    assert records[nothing_passes].error.startswith("the response before: curl 28")
    assert records[TRIAL].verdict == alone.verdict == PASS and records[after] == alone
