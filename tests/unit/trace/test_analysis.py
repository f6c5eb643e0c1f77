"""What a figure shows of stored traces: whose restarts, and which points."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.study.trace.analysis import Views, row_of
from firstflight.study.trace.scenario import TraceCurve
from tests.golden import stored_trace
from tests.golden.stored_trace import LOSSY, RUN

FIGURE = stored_trace.packetdrill().scenario.figures[0]


def views() -> Views:
    return Views(stored_trace.run().records, RUN)


def test_a_figure_tells_restarts_within_its_time_its_ends_included() -> None:
    whole = replace(FIGURE, curves=(TraceCurve("idle", "linux"),), from_s=0.0, to_s=0.0)
    ((_, at_s, _),) = views().restarts(whole)
    for from_s, to_s, told in ((at_s, at_s, 1), (0, at_s - 1e-6, 0), (at_s + 1e-6, 9, 0),
                               (0, at_s, 1), (at_s, 9, 1), (at_s + 1, 0, 1)):
        shown = replace(whole, from_s=from_s, to_s=to_s)
        assert len(list(views().restarts(shown))) == told, (from_s, to_s)


def test_a_trace_is_read_once_and_one_that_failed_is_not() -> None:
    found, linux = views(), TraceCurve("idle", "linux")
    assert found.view(linux) is found.view(TraceCurve("idle", "linux", 10)) is not None
    assert found.view(TraceCurve("idle", "absent")) is None
    assert list(found.read) == ["idle-linux-iw10"]
    failed = [replace(record, ok=False) for record in found.records]
    assert Views(failed, RUN).view(linux) is None
    with pytest.raises(FirstFlightError, match="^idle/other was not measured"):
        found.view(TraceCurve("idle", "other"))


def test_points_are_segments_by_their_ends_and_what_is_sent_again_stands_apart() -> None:
    found = Views(stored_trace.lossy_run().records, LOSSY)
    view = found.view(TraceCurve("outage", "linux"))
    assert view is not None
    row = row_of("A title", view, flagged=True)
    assert (row.title, row.flagged, row.absent) == ("A title", True, "")
    assert (len(row.sent), len(row.again)) == (47, 9) and len(view.sends) == 56
    assert {number for _, number in row.again} <= {number for _, number in row.sent}
    numbers = [number for _, number in row.sent]
    assert numbers == sorted(numbers) and numbers[0] == 1 and numbers[-1] == (
        max(segment.end for segment in view.sends) - 1) / view.trial.mss
    # Acknowledgements rise from none to all, the FIN's not counted.
    times, acknowledged = zip(*row.acked)
    assert list(times) == sorted(times) and len(set(acknowledged)) == len(acknowledged)
    assert acknowledged[0] == times[0] == 0 and list(acknowledged) == sorted(acknowledged)
    assert acknowledged[-1] == numbers[-1] and times[-1] == view.finish_s()
    # A threshold that TCP does not have yet is not drawn.
    assert 0 < len(row.ssthresh) < len(row.window) == len(row.rtt_ms) == len(row.in_flight)
    assert row.window[0][1] == 4 and row.ssthresh[-1][1] == view.samples[-1].ssthresh
    assert row.rtt_ms[-1][1] == view.samples[-1].rtt_us / 1000
    assert max(packets for _, packets in row.in_flight) <= max(
        packets for _, packets in row.window)
