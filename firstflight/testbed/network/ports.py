"""The qdiscs of a network's ports as data: tc's commands, requests, and what has to be read back.

netem with all its parameters is in net/link.py, with the link that it makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from firstflight.net import qdiscs
from firstflight.net.link import Netem
from firstflight.net.qdiscs import InstalledQdisc
from firstflight.net.queues import option_differences
from firstflight.net.tc import HTB_CEILING_BURST_BYTES, bits


@dataclass(frozen=True)
class Queue:
    """A qdisc that is neither netem nor HTB."""

    kind: str
    arguments: str  # of tc
    options: bytes = b""  # of the request for netlink
    # What has to be read back, by the names in net.queues; all other options that it knows have to
    # have Linux's default.
    requested: tuple[tuple[str, int], ...] = ()
    is_random = False
    is_renewed = True  # for each trial: it remembers drops, and what flows may send

    def differences(self, options: bytes) -> Iterator[str]:
        """How the kernel's report differs. options: the qdisc's."""
        return option_differences(self.kind, dict(self.requested), options)


@dataclass(frozen=True)
class HtbShaper:
    """A hierarchical token bucket with one class, as Mininet's TCIntf installs it.

    It sends a packet at once and makes the next one wait. So after a pause its bucket is full, and
    two packets leave unshaped.
    """

    rate_kbps: float
    burst_bytes: int

    kind = "htb"
    arguments = "default 1"
    options = qdiscs.HTB_GLOBAL
    is_random = False
    is_renewed = True  # for each trial: a kernel cannot change one that is there (htb_qdisc_ops)

    @property
    def class_arguments(self) -> str:
        return (f"rate {bits(self.rate_kbps)}bit burst {self.burst_bytes}b"
                f" cburst {HTB_CEILING_BURST_BYTES}b")

    @property
    def class_options(self) -> bytes:
        return qdiscs.htb_class(bits(self.rate_kbps) // 8, self.burst_bytes)

    def differences(self, options: bytes) -> Iterator[str]:
        """How the kernel's report differs. options: the qdisc's, then those of its class."""
        if not qdiscs.has_htb_class(options):
            yield "htb has no class, requested one"
            return
        installed = qdiscs.read_htb_class(options)
        requested = qdiscs.read_htb_class(self.class_options)
        for name, found, value in (("default", qdiscs.htb_default(options), 1),
                                   ("rate", installed.rate, requested.rate),
                                   ("ceiling", installed.ceiling, requested.ceiling),
                                   ("burst", installed.burst, requested.burst),
                                   ("cburst", installed.ceiling_burst, requested.ceiling_burst)):
            if found != value:
                yield f"htb {name} {found}, requested {value}"


@dataclass(frozen=True)
class Port:
    """The qdiscs of one port: `1:` at the root, its child `2:`, and so on."""

    name: str
    qdiscs: tuple[Netem | Queue | HtbShaper, ...]

    @property
    def commands(self) -> list[str]:
        """The `requests` as tc's commands (tc knows `seed` since iproute2 6.6)."""
        commands = []
        for number, qdisc in enumerate(self.qdiscs, start=1):
            place = "root" if number == 1 else f"parent {number - 1}:1"
            commands.append(f"tc qdisc replace dev {self.name} {place} handle {number}:"
                            f" {qdisc.kind} {qdisc.arguments}".rstrip())
            if isinstance(qdisc, HtbShaper):
                commands.append(f"tc class replace dev {self.name} parent {number}: classid"
                                f" {number}:1 htb {qdisc.class_arguments}")
        return commands

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(qdisc.kind for qdisc in self.qdiscs)

    def requests(self, interface: int) -> list[tuple[int, bytes]]:
        """The requests for netlink, each with its type. interface: the port's number."""
        requests = []
        for number, qdisc in enumerate(self.qdiscs, start=1):
            body = qdiscs.request(interface, number, qdisc.kind, options=qdisc.options)
            requests.append((qdiscs.NEWQDISC, body))
            if isinstance(qdisc, HtbShaper):
                body = qdiscs.class_request(interface, number, qdisc.kind,
                                            options=qdisc.class_options)
                requests.append((qdiscs.NEWTCLASS, body))
        return requests

    @property
    def has_classes(self) -> bool:
        return any(isinstance(qdisc, HtbShaper) for qdisc in self.qdiscs)

    def differences(self, installed: Iterable[InstalledQdisc]) -> list[str]:
        """How a kernel's report of the port differs from the request; empty if it does not."""
        by_number = {qdisc.major: qdisc for qdisc in installed}
        wrong: list[str] = []
        for number, requested in enumerate(self.qdiscs, start=1):
            qdisc = by_number.get(number)
            kind = qdisc.kind if qdisc is not None else "none"
            if qdisc is not None and kind == requested.kind:
                wrong += requested.differences(qdisc.options)
            else:
                wrong.append(f"qdisc {number}: {kind}, requested {requested.kind}")
        if not self.qdiscs and by_number.keys() - {0}:
            wrong.append(f"{len(by_number)} qdiscs, requested none")
        return wrong
