"""Judges what the path of a setting did with each packet, in virtual time (wire.delivery)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from firstflight.base.comparison import Comparison
from firstflight.judge.shared_evidence import SharedEvidence
from firstflight.net.segments import Packets
from firstflight.net.tc import normal_distribution
from firstflight.setting.path import PathParameters
from firstflight.wire.delivery import packet_path
from firstflight.wire.delivery.packet_path import EITHER, Delivery, deliveries


def compute_deliveries(setting: PathParameters, client: Packets, server: Packets
                       ) -> tuple[Delivery, Delivery] | None:
    """What the path did with the packets to the client, and with the packets to the server.

    client, server: the packets that each host captured. None where the path's work cannot be
    computed (PathParameters.is_computed), or where this machine lacks netem's table of the normal
    distribution. Raises CaptureError.
    """
    if not setting.is_computed:
        return None

    try:
        return deliveries(client, server, setting.path, normal_distribution)
    except OSError:
        return None


def counted_drops(setting: PathParameters, drops: Mapping[str, Mapping[str, int]]
                  ) -> Mapping[str, Mapping[str, int]]:
    """The qdiscs' counters of drops, by side and cause.

    HTB does not distinguish the causes: its counter is the sum of what its queue dropped and of
    random losses. Both then stand under EITHER.
    """
    if setting.htb_burst_bytes and setting.loss_percent:
        return {side: {EITHER: sum(dropped.values())} for side, dropped in drops.items()}
    return drops


def compare_path(evidence: SharedEvidence) -> Iterable[Comparison]:
    """Compare each packet with its computed delivery, and the drops with the qdiscs' counters."""
    return packet_path.compare_path(evidence.path, evidence.drops)
