"""The evidence of a trial in one form, for the checks that several workloads share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from firstflight.setting.setting import LinkSetting
from firstflight.testbed.messages import Response
from firstflight.wire.delivery.packet_path import Delivery
from firstflight.wire.exchange import Exchange


class ConnectionEvidence(NamedTuple):
    """A connection: its packets, and what its server reports of it."""

    exchange: Exchange
    reports: Sequence[Response] = ()  # one for each response, or one for the socket
    # In segments, by TCP_INFO at accept; None where TCP_INFO was not read.
    initial_window: int | None = None
    # The end of a check's name, such as " of connection 2"; "" for the only connection.
    where: str = ""
    # How many bytes have to come before the client is woken (SO_RCVLOWAT): the least and the most
    # that the packets allow. 0 where each segment wakes the client.
    awaited_bytes: tuple[int, int] = (0, 0)


class Body(NamedTuple):
    """The body of a response: as it was received, as it was sent, and as it was requested."""

    size: int  # bytes received
    sent_bytes: int
    requested_bytes: int
    sha256: str  # of the bytes received
    sent_sha256: str
    source: str = "as sent"  # where the content comes from of which sent_sha256 is the digest
    where: str = ""  # the end of a check's name, such as " of object 3"; "" for the only body


@dataclass(frozen=True)
class SharedEvidence:
    """What was requested of the network and of TCP, and what was observed of them."""

    setting: LinkSetting
    # The connections whose packets were captured; () before the captures are read.
    connections: Sequence[ConnectionEvidence]
    client_sysctls: Mapping[str, str]
    server_sysctls: Mapping[str, str]
    # Whether time was virtual, and the kernel's source is unchanged. In real time RTTs are not
    # exact, and other kernels have other headers, window scales and pacing.
    is_exact: bool
    # What the path did with the packets to the client, and with the packets to the server; None
    # where that cannot be computed.
    path: tuple[Delivery, Delivery] | None = None
    # Packets that the qdiscs dropped, by side and cause (judge.path.counted_drops).
    drops: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    bodies: Sequence[Body] = ()  # of the responses
    nagle: str = "off"  # "on" where Nagle's algorithm is requested
    # Whether the server fixes its send buffer although no setting requests that.
    fixes_buffer: bool = False
    knows_server: bool = True  # whether the server's SYN-ACKs follow from the setting
