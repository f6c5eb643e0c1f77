"""Hints on queues far from one BDP: what their trials show, and which flag to try."""

from __future__ import annotations

from collections.abc import Sequence

from firstflight.base.words import format_number
from firstflight.net.headers import HEADER_BYTES
from firstflight.net.queue_length import AUTO
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial

SHORT_BDP, LONG_BDP = 0.5, 5.0  # a shorter queue, or a longer one, has a hint


def queue_hints(trials: Sequence[Trial], records: Sequence[Record]) -> list[str]:
    """Sentences on the shortest queue, if it dropped packets, and on the longest queue.

    [] where no queue was requested.
    """
    by_ratio = {}  # by the queue's length as a part of the BDP
    for trial in trials:
        if trial.qdisc == "fifo" and trial.queue_from != AUTO:
            by_ratio[trial.queue_packets / _bdp_packets(trial)] = trial
    if not by_ratio:
        return []
    least, most = min(by_ratio), max(by_ratio)
    return [*_short_queue(by_ratio[least], least, records), *_long_queue(by_ratio[most], most)]


def _short_queue(trial: Trial, ratio: float, records: Sequence[Record]) -> list[str]:
    """A hint on a short queue that dropped packets. ratio: the queue's length by the path's BDP."""
    drops = [record for record in records
             if _dropped(record) and _path(record.trial) == _path(trial)]
    if ratio >= SHORT_BDP or not drops:
        return []
    return [f"The queue of {trial.queue_packets} packets is {100 * ratio:.2g} % of the path's"
            f" bandwidth-delay product ({format_number(_bdp_packets(trial), 0)} packets), and"
            f" dropped packets of {len(drops)} transfer{'' if len(drops) == 1 else 's'}: compare"
            " with --queue 1bdp."]


def _long_queue(trial: Trial, ratio: float) -> list[str]:
    """A hint on a long queue that a transfer may fill. ratio: the queue's length by the path's BDP.
    """
    name, size = "response", trial.response_bytes
    if _is_upload(trial):
        name, size = "request", trial.request_bytes
    bdps_of_data = size / trial.mss / _bdp_packets(trial)
    if ratio <= LONG_BDP or bdps_of_data <= LONG_BDP:
        return []
    return [f"The queue of {trial.queue_packets} packets is {format_number(ratio, 0)} times the"
            f" path's bandwidth-delay product, the {name} {format_number(bdps_of_data, 0)} times:"
            " compare with --queue 1bdp."]


def _bdp_packets(trial: Trial) -> float:
    """The bandwidth-delay product of the link that carries more data, in full packets."""
    rate_kbps = trial.uplink_kbps if _is_upload(trial) else trial.bandwidth_kbps
    return trial.rtt_ms * rate_kbps / 8 / (trial.mss + HEADER_BYTES)


def _is_upload(trial: Trial) -> bool:
    """Whether the client sends more data than the server."""
    return trial.request_bytes > trial.response_bytes


def _dropped(record: Record) -> int:
    """How many packets the queues dropped in the directions in which data goes."""
    uploaded = record.uplink_queue_drops if record.trial.request_bytes else 0
    return (record.queue_drops or 0) + (uploaded or 0)


def _path(trial: Trial) -> tuple[str, float, float, float, int]:
    """What trials over the same queue and path have in common."""
    return (trial.qdisc, trial.queue_packets, trial.rtt_ms, trial.bandwidth_kbps, trial.mss)
