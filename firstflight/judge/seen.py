"""What a workload saw of a trial, as the checks take it that several workloads share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from firstflight.setting.setting import LinkSetting
from firstflight.testbed.messages import Response
from firstflight.wire.delivery.packet_path import Delivery
from firstflight.wire.exchange import Exchange


class SeenConnection(NamedTuple):
    """A connection by its packets, and what its server says of it.

    reports: on each response, or one of the socket. initial_window: by TCP_INFO at accept, in
    segments; None where that was not read. where: such as " of connection 2", "" for the only one.
    """

    exchange: Exchange
    reports: Sequence[Response] = ()
    initial_window: int | None = None
    where: str = ""


class Body(NamedTuple):
    """A response's body: as it was received, as it was sent, and as it was requested.

    source: what sent_sha256 is of. where: such as " of object 3", "" for the only one.
    """

    size: int
    sent_bytes: int
    requested_bytes: int
    sha256: str
    sent_sha256: str
    source: str = "as sent"
    where: str = ""


@dataclass(frozen=True)
class Seen:
    """What was requested of the network and of TCP, and what was seen of it.

    connections: those whose packets were captured, none before the captures are read.
    client_sysctls, server_sysctls: what is set at each host. is_exact: whether time was virtual and
    the kernel's source is unchanged: in real time RTTs are not exact, and other kernels have other
    headers, scales and pacing. path: what the path did with each packet, to the client and to the
    server; None where that cannot be computed. drops: as of judge.path.counted_drops.
    bodies: of the responses. nagle: "on" where Nagle's algorithm is requested.
    fixes_buffer: whether the server fixes its send buffer although no setting requests it.
    knows_server: whether the server's SYN-ACKs follow from the setting.
    """

    setting: LinkSetting
    connections: Sequence[SeenConnection]
    client_sysctls: Mapping[str, str]
    server_sysctls: Mapping[str, str]
    is_exact: bool
    path: tuple[Delivery, Delivery] | None = None
    drops: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    bodies: Sequence[Body] = ()
    nagle: str = "off"
    fixes_buffer: bool = False
    knows_server: bool = True
