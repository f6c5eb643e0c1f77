"""Checks of TCP's settings that only fetches have.

Requested settings are compared, and so are settings left at Linux's default (wire.offers).
"""

from __future__ import annotations

from collections.abc import Iterable

from firstflight.base.comparison import Comparison
from firstflight.base.quantity import FIXED
from firstflight.judge import sockets, syns
from firstflight.judge.checklist import Judging
from firstflight.setting.server import OWN
from firstflight.setting.tcp import MOST_BEYOND_FIXED
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.verify.integrity import is_on_wire
from firstflight.workloads.fetch.record.limits import offered_to

_LEAST_BUFFER_BYTES = 20_000  # a smaller send buffer cuts segments
_LEAST_JUDGED_SEGMENTS = 12  # in shorter writes too many segments may be partial


def _compare_segments(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the length of segments with the MSS. Path MTU probing (RFC 4821) would shorten them.

    A segment may be shorter at the end of a write, or where it fills up a window or a buffer. In
    700 random transfers at most one segment in six was shorter.
    """
    trial, mss = evidence.trial, evidence.mss
    sizes = [segment.payload_bytes for segment in evidence.wire.at_server
             if segment.to_client and segment.payload_bytes]
    if not sizes:
        return
    yield from syns.compare_segment_size(evidence.shared)
    # A window of two segments halves them (tcp_bound_to_half_wnd), and a small buffer cuts them.
    has_room = trial.client_window > 3 and not 0 < trial.send_buffer_bytes < _LEAST_BUFFER_BYTES
    write = max(trial.burst_bytes, trial.response_bytes - trial.burst_bytes)
    if has_room and write >= _LEAST_JUDGED_SEGMENTS * mss and not trial.is_secure:
        full = sizes.count(mss)
        yield Comparison(full >= len(sizes) / 2,
                         f"{full} of {len(sizes)} segments with {mss} bytes",
                       "half of them at least")


def has_window(evidence: Evidence) -> bool:
    """Whether TCP has to begin with the initial window."""
    return sockets.has_window(evidence.trial, evidence.wire)


def _compare_receive_window(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the largest receive window that was offered with a requested one that stays."""
    trial = evidence.trial
    offered = offered_to(evidence) if trial.most_window_bytes else None
    if offered is not None:
        unit = evidence.transfer.window_unit
        most = trial.most_window_bytes + MOST_BEYOND_FIXED * trial.mss + unit
        yield Comparison(offered.most_bytes < most, f"{offered.most_bytes} bytes offered",
                         f"less than {most}")


JUDGED: dict[str, Judging[Evidence, Record]] = {
    "TCP options": Judging(is_on_wire),
    "segment size": Judging(
        lambda record: is_on_wire(record) and record.trial.server != OWN, _compare_segments),
    "server's socket": Judging(
        lambda record: is_on_wire(record) and record.trial.server != OWN),
    "receive window": Judging(
        lambda record: is_on_wire(record) and record.trial.rwnd_growth == FIXED,
        _compare_receive_window)}
