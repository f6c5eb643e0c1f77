"""A trial: one fetch under one setting, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Trial:
    """What is asked of the network, TCP and the client for one fetch.

    rtt_ms: propagation delay, both ways together.
    bandwidth_kbps, uplink_kbps: bottleneck towards the client, towards the
        server, in kbit/s, Ethernet headers counted.
    queue_packets: drop-tail limit of either bottleneck.
    loss_percent: random loss towards the client.
    initcwnd, initrwnd: route metrics at the server, at the client (segments).
    response_bytes: size of the body; headers come on top.
    repeat: 1, 2, … for the same setting measured again.
    """

    scenario: str
    rtt_ms: float
    bandwidth_kbps: float
    uplink_kbps: float
    queue_packets: int
    loss_percent: float
    initcwnd: int
    initrwnd: int
    congestion_control: str
    client: str
    response_bytes: int
    repeat: int

    @property
    def id(self) -> str:
        """Names the trial in files and messages; unique within a run."""
        loss = f"-loss{self.loss_percent:g}" if self.loss_percent else ""
        return (f"rtt{self.rtt_ms:g}-bw{self.bandwidth_kbps:g}-up{self.uplink_kbps:g}"
                f"-q{self.queue_packets}{loss}-iw{self.initcwnd}-rw{self.initrwnd}"
                f"-{self.congestion_control}-{self.client}-{self.response_bytes}B-{self.repeat}")

    @property
    def deadline_s(self) -> float:
        """Seconds of the network's time after which the client gives up.

        Room for a handshake that is retransmitted, for every round trip that
        slow start could need, and for sending everything thrice.
        """
        sending_s = self.response_bytes * 8 / (self.bandwidth_kbps * 1000)
        return 60 + 20 * self.rtt_ms / 1000 + 3 * sending_s

    def job(self) -> dict[str, Any]:
        """The trial as the worker reads it."""
        return {"id": self.id, "initcwnd": self.initcwnd, "initrwnd": self.initrwnd,
                "congestion_control": self.congestion_control, "client": self.client, "response_bytes": self.response_bytes,
                "deadline_s": self.deadline_s,
                "shape": {"rtt_ms": self.rtt_ms, "bandwidth_kbps": self.bandwidth_kbps,
                          "uplink_kbps": self.uplink_kbps, "queue_packets": self.queue_packets,
                          "loss_percent": self.loss_percent}}

    def columns(self) -> dict[str, Any]:
        return asdict(self)
