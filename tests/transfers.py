"""Transfers of the model from an RTT and rates, as they are in tables of what guests measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firstflight.model.transfer import Transfer
from firstflight.net.link import Path

QUEUE_PACKETS = 1000  # the model takes it to be long enough


def transfer(rtt_ms: float, bandwidth_kbps: float, uplink_kbps: float, *windows: int,
             **more: Any) -> Transfer:
    """A transfer over a path of that RTT and these rates.

    windows holds the initial window, unless `more`, the other fields of a Transfer, has it.
    """
    path = Path.between(rtt_ms, bandwidth_kbps, uplink_kbps, QUEUE_PACKETS)
    return Transfer(path, *windows, **more)


def changed(base: Transfer, **values: Any) -> Transfer:
    """A transfer like the base, with other values of its fields or of its path."""
    path = base.path
    ends = (values.pop("rtt_ms", path.rtt_ms), values.pop("bandwidth_kbps", path.down.rate_kbps),
            values.pop("uplink_kbps", path.up.rate_kbps))
    return replace(base, path=Path.between(*ends, path.down.queue_packets), **values)
