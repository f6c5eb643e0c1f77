"""Hints on queues far from one BDP: what their trials show, and which flag to try."""

from __future__ import annotations

from collections.abc import Sequence

from firstflight.base.words import format_number
from firstflight.net.headers import HEADER_BYTES
from firstflight.net.queue_length import AUTO
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial

SHORT_BDP, LONG_BDP = 0.5, 5.0


def queue_hints(trials: Sequence[Trial], records: Sequence[Record]) -> list[str]:
    """Sentences on the shortest queue, if it dropped packets, and on the longest one."""
    by_ratio = {}
    for trial in trials:
        rate_kbps = trial.uplink_kbps if _is_upload(trial) else trial.bandwidth_kbps
        bdp = trial.rtt_ms * rate_kbps / 8 / (trial.mss + HEADER_BYTES)
        if trial.qdisc == "fifo" and trial.queue_from != AUTO:
            by_ratio[trial.queue_packets / bdp] = (trial, bdp)
    if not by_ratio:
        return []
    lines = []
    trial, bdp = by_ratio[min(by_ratio)]
    drops = [record for record in records
             if _dropped(record) and _path(record.trial) == _path(trial)]
    if min(by_ratio) < SHORT_BDP and drops:
        lines.append(f"The queue of {trial.queue_packets} packets is"
                     f" {100 * min(by_ratio):.2g} % of the path's bandwidth-delay product"
                     f" ({format_number(bdp, 0)} packets), and dropped packets of {len(drops)}"
                     f" transfer{'' if len(drops) == 1 else 's'}: compare with --queue 1bdp.")
    if max(by_ratio) > LONG_BDP:
        trial, bdp = by_ratio[max(by_ratio)]
        name, size = (("request", trial.request_bytes) if _is_upload(trial)
                      else ("response", trial.response_bytes))
        times = size / trial.mss / bdp
        if times > LONG_BDP:
            lines.append(f"The queue of {trial.queue_packets} packets is"
                         f" {format_number(max(by_ratio), 0)} times the path's"
                         f" bandwidth-delay product, the {name}"
                         f" {format_number(times, 0)} times: compare with --queue 1bdp.")
    return lines


def _is_upload(trial: Trial) -> bool:
    """Whether more goes to the server than comes from it."""
    return trial.request_bytes > trial.response_bytes


def _dropped(record: Record) -> int:
    """How many packets the queues dropped, of data: also towards a server that is uploaded to."""
    uploaded = record.uplink_queue_drops if record.trial.request_bytes else 0
    return (record.queue_drops or 0) + (uploaded or 0)


def _path(trial: Trial) -> tuple[str, float, float, float, int]:
    return (trial.qdisc, trial.queue_packets, trial.rtt_ms, trial.bandwidth_kbps, trial.mss)
