"""What the path of a setting did with each packet, in virtual time (wire.delivery)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from firstflight.base.comparison import Comparison
from firstflight.judge.shared_evidence import SharedEvidence
from firstflight.net.segments import Packets
from firstflight.net.tc import normal_distribution
from firstflight.setting.path import PathParameters
from firstflight.wire.delivery import packet_path
from firstflight.wire.delivery.packet_path import EITHER, Delivery, deliveries


def delivered(setting: PathParameters, client: Packets, server: Packets
              ) -> tuple[Delivery, Delivery] | None:
    """What the path did with each packet: those to the client, and those to the server.

    None where that cannot be computed (PathParameters.is_computed), or where this machine lacks
    netem's table of the normal distribution. Raises CaptureError.
    """
    if not setting.is_computed:
        return None

    try:
        return deliveries(client, server, setting.path, normal_distribution)
    except OSError:
        return None


def counted_drops(setting: PathParameters, drops: Mapping[str, Mapping[str, int]]
                  ) -> Mapping[str, Mapping[str, int]]:
    """The qdiscs' counters by side and cause, as far as they distinguish causes.

    HTB's counter is the sum of drops by its queue and of random losses, which the seed decides.
    """
    if setting.htb_burst_bytes and setting.loss_percent:
        return {side: {EITHER: sum(dropped.values())} for side, dropped in drops.items()}
    return drops


def compare_path(evidence: SharedEvidence) -> Iterable[Comparison]:
    """Compare each packet with its computed delivery, and the drops with the qdiscs' counters."""
    return packet_path.compare_path(evidence.path, evidence.drops)
