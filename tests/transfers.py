"""Transfers of the model by RTT and rates, as the tables of what guests measured have them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firstflight.model.transfer import Transfer
from firstflight.net.link import Path

QUEUE_PACKETS = 1000  # the model takes it to be long enough


def transfer(rtt_ms: float, bandwidth_kbps: float, uplink_kbps: float, *windows: int,
             **more: Any) -> Transfer:
    """Over a path of that RTT and these rates; windows: the initial ones, where more has none."""
    path = Path.between(rtt_ms, bandwidth_kbps, uplink_kbps, QUEUE_PACKETS)
    return Transfer(path, *windows, **more)


def changed(base: Transfer, **values: Any) -> Transfer:
    """With other values, those of the path among them."""
    path = base.path
    ends = (values.pop("rtt_ms", path.rtt_ms), values.pop("bandwidth_kbps", path.down.rate_kbps),
            values.pop("uplink_kbps", path.up.rate_kbps))
    return replace(base, path=Path.between(*ends, path.down.queue_packets), **values)
