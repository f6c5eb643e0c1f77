"""A trial: one fetch under one setting, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from lab.core.words import exact


def network(tag: str, random: bool = False) -> dict[str, Any]:
    """Marks a field as one of the network's shape, applied by the worker under its name.

    tag: before its value in a trial's id, where it is not 0. random: what it
    does is drawn from the trial's seed.
    """
    return {"tag": tag, "random": random}


@dataclass(frozen=True)
class Trial:
    """What is asked of the network, TCP and the client for one fetch.

    rtt_ms: propagation delay, both ways together.
    bandwidth_kbps, uplink_kbps: bottleneck towards the client, towards the
        server, in kbit/s, Ethernet headers counted.
    queue_packets: drop-tail limit of either bottleneck.
    loss_percent: random loss towards the client.
    jitter_ms: standard deviation of the delay towards the client, normal
        distribution; packets overtake each other.
    initcwnd, initrwnd: route metrics at the server, at the client (segments).
    response_bytes: size of the body; headers come on top.
    repeat: 1, 2, … for the same setting measured again.
    seed: of what is random.
    burst_bytes, gap_ms: a response in two stages: headers and this much of the
        body at once, the rest after the back-end's time; gap_ms 0 for one write.
    earlier_bytes: body of a response fetched before on the same connection;
        0 for a connection of its own.

    For a client and a response drawn from a population (lab.fetches.draws):

    part: which population or variant; sample: its number there.
    key_rtt_ms, key_bandwidth_kbps: what the paper files the response under.
    weight: the share of the population that it stands for.
    """

    scenario: str
    rtt_ms: float = field(metadata=network("rtt"))
    bandwidth_kbps: float = field(metadata=network("bw"))
    uplink_kbps: float = field(metadata=network("up"))
    queue_packets: int = field(metadata=network("q"))
    loss_percent: float = field(metadata=network("loss", random=True))
    initcwnd: int
    initrwnd: int
    congestion_control: str
    client: str
    response_bytes: int
    repeat: int
    seed: int = 0
    burst_bytes: int = 0
    gap_ms: float = 0.0
    earlier_bytes: int = 0
    part: str = ""
    sample: int = 0
    key_rtt_ms: float | None = None
    key_bandwidth_kbps: float | None = None
    weight: float = 1.0
    jitter_ms: float = field(default=0.0, metadata=network("jitter", random=True))

    @property
    def id(self) -> str:
        """Names the trial in files and messages; unique within a run."""
        if self.part:
            return f"{self.part}-{self.sample}-iw{self.initcwnd}-{self.repeat}"
        shape = "-".join(f"{tag}{exact(value)}" for tag, value in zip(_TAGS, self.shape) if value)
        seed = f"-seed{self.seed}" if is_random(vars(self)) else ""
        stages = f"-burst{self.burst_bytes}-gap{exact(self.gap_ms)}" if self.gap_ms else ""
        earlier = f"-after{self.earlier_bytes}B" if self.earlier_bytes else ""
        return (f"{shape}{seed}-iw{self.initcwnd}-rw{self.initrwnd}"
                f"-{self.congestion_control}-{self.client}{earlier}"
                f"-{self.response_bytes}B{stages}-{self.repeat}")

    @property
    def shape(self) -> tuple[float, ...]:
        """The network's values, in the order of NETWORK; trials of one shape share a network."""
        return tuple(getattr(self, name) for name in NETWORK)

    @property
    def deadline_s(self) -> float:
        """Seconds of the network's time after which the client gives up.

        Room for a handshake that is retransmitted, for every round trip that
        slow start could need, and for sending everything thrice.
        """
        sending_s = (self.response_bytes + self.earlier_bytes) * 8 / (self.bandwidth_kbps * 1000)
        return 60 + 20 * self.rtt_ms / 1000 + 3 * sending_s + self.gap_ms / 1000

    def job(self) -> dict[str, Any]:
        """The trial as the worker reads it."""
        return {"kind": "fetch", "id": self.id, "initcwnd": self.initcwnd,
                "initrwnd": self.initrwnd, "congestion_control": self.congestion_control,
                "client": self.client, "paths": self._paths(), "deadline_s": self.deadline_s,
                "shape": {**dict(zip(NETWORK, self.shape)), "seed": self.seed}}

    def _paths(self) -> list[str]:
        """What is fetched, in order, on one connection; the last is what is measured."""
        stages = f"?burst={self.burst_bytes}&gap_ms={exact(self.gap_ms)}" if self.gap_ms else ""
        earlier = [f"/{self.earlier_bytes}"] if self.earlier_bytes else []
        return [*earlier, f"/{self.response_bytes}{stages}"]


_SHAPE = tuple(each for each in fields(Trial) if each.metadata)
NETWORK = tuple(each.name for each in _SHAPE)
_TAGS = tuple(each.metadata["tag"] for each in _SHAPE)
_RANDOM = tuple(each.name for each in _SHAPE if each.metadata["random"])


def is_random(values: dict[str, Any]) -> bool:
    """Whether chance decides on a network of these values, by name."""
    return any(values.get(name) for name in _RANDOM)
