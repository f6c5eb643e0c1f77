"""Links: what each direction of a path does to packets, as plain data.

A trial says what its path is. The testbed installs it (testbed/network/shaping.py), the judge
computes what it does to each packet (wire/delivery), and the model of TCP runs over it (model/).
Each of the three makes its own numbers of it: a link knows no qdisc.

A new parameter of the network is a field of Link. Values are those that netem takes; see
net/netem.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

ENDLESS = "endless"  # a rate without a limit: JSON has no number for it


@dataclass(frozen=True)
class Link:
    """One direction of a path.

    delay_ms: propagation; jitter_ms: its standard deviation, normally distributed.
    rate_kbps, queue_packets: of the bottleneck, Ethernet headers counted; math.inf for no limit.
    loss_percent: random loss before the bottleneck; loss_burst: how many packets in a row, on
        average. seed: of the random numbers.
    qdisc: the bottleneck's queue, "fifo", "fq_codel" or "cake"; "fq" is a fifo behind a sender
        that paces; "netem" delays and limits the rate in one.
    htb_burst_bytes: HTB with this burst shapes, and the delay has the queue's limit; 0 for netem.
    outage_ms: when all that leaves is lost, from and to, since the first packet of a trial.
    """

    delay_ms: float
    rate_kbps: float
    queue_packets: int
    loss_percent: float = 0.0
    loss_burst: float = 1.0
    jitter_ms: float = 0.0
    seed: int = 0
    qdisc: str = "fifo"
    htb_burst_bytes: int = 0
    outage_ms: tuple[float, float] = (0.0, 0.0)

    def to_json(self) -> dict[str, Any]:
        """Its fields that have no default, and those that are not at it."""
        values = {field.name: value for field in fields(self)
                  if (value := getattr(self, field.name)) != field.default}
        if math.isinf(self.rate_kbps):
            values["rate_kbps"] = ENDLESS
        return values

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Link:
        """The link that to_json gave these values of. Raises TypeError where it gave others."""
        rate_kbps = values["rate_kbps"]
        return Link(**{**values, "rate_kbps": math.inf if rate_kbps == ENDLESS else rate_kbps,
                       "outage_ms": tuple(values.get("outage_ms", (0.0, 0.0)))})


@dataclass(frozen=True)
class Path:
    """What lies between a client and a server: down to the client, up to the server."""

    down: Link
    up: Link

    @staticmethod
    def between(rtt_ms: float, down_kbps: float, up_kbps: float, queue_packets: int) -> Path:
        """Half of the RTT each way, a rate each way, and as long a queue before either."""
        return Path(*(Link(rtt_ms / 2, kbps, queue_packets) for kbps in (down_kbps, up_kbps)))

    @property
    def rtt_ms(self) -> float:
        """Propagation both ways."""
        return self.down.delay_ms + self.up.delay_ms

    def to_json(self) -> dict[str, dict[str, Any]]:
        return {"down": self.down.to_json(), "up": self.up.to_json()}

    @staticmethod
    def from_json(values: Mapping[str, Mapping[str, Any]]) -> Path:
        return Path(Link.from_json(values["down"]), Link.from_json(values["up"]))
