"""Queues far from the path's bandwidth-delay product, where their length matters: what to try."""

from __future__ import annotations

from collections.abc import Sequence

from lab.core.scenario.quantities import AUTO
from lab.core.words import number
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record
from lab.tcp.packets import HEADER_BYTES

SHORT_BDP, LONG_BDP = 0.5, 5.0


def hints(trials: Sequence[Trial], records: Sequence[Record]) -> list[str]:
    """A queue that is far from one BDP, where that matters: what to try."""
    by_ratio = {}
    for trial in trials:
        bdp = trial.rtt_ms * trial.bandwidth_kbps / 8 / (trial.mss + HEADER_BYTES)
        if trial.qdisc == "fifo" and trial.queue_from != AUTO:
            by_ratio[trial.queue_packets / bdp] = (trial, bdp)
    lines = []
    if by_ratio and min(by_ratio) < SHORT_BDP and any(record.queue_drops for record in records):
        trial, bdp = by_ratio[min(by_ratio)]
        lines.append(f"The queue of {trial.queue_packets} packets is"
                     f" {number(100 * min(by_ratio), 0)} % of the path's bandwidth-delay product"
                     f" ({number(bdp, 0)} packets): compare with --queue 1bdp.")
    if by_ratio and max(by_ratio) > LONG_BDP:
        trial, bdp = by_ratio[max(by_ratio)]
        if trial.response_bytes / trial.mss > LONG_BDP * bdp:
            lines.append(f"The queue of {trial.queue_packets} packets is {number(max(by_ratio), 0)}"
                         " times the path's bandwidth-delay product, and the response can fill it:"
                         " compare with --queue 1bdp.")
    return lines
