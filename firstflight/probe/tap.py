"""Captures the packets of one TCP connection of this machine, over IPv4 or IPv6.

A packet socket has a filter for the connection's addresses and ports, so that packets of no other
connection are read. It needs CAP_NET_RAW.
"""

from __future__ import annotations

import ctypes
import select
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

from firstflight.net.bpf import Instruction, attach
from firstflight.net.headers import IPV4, IPV6, OPTION_TIMESTAMP, TCP, ip_headers, tcp_options

_SO_TIMESTAMPNS = 35
_SOL_PACKET, _PACKET_VNET_HDR, _PACKET_OUTGOING, _ETH_P_ALL = 263, 15, 4, 3
_SNAP_BYTES = 256  # kept of each packet: all headers
# struct virtio_net_hdr: flags, how the packet is merged, header length, segment size, checksum.
_VIRTIO = struct.Struct("=BBHHHH")
# Bytes of the link's header, by the link's type: ARPHRD_ETHER, ARPHRD_LOOPBACK. A packet socket
# shows no header of other links.
_LINK_BYTES = {1: 14, 772: 14}
_IPV6_BYTES = 40

_libc = ctypes.CDLL(None, use_errno=True)


class Packet(NamedTuple):
    """One captured frame with a TCP segment, or with several that the kernel merged."""

    time_ns: int
    to_client: bool
    seq: int  # absolute
    ack: int  # absolute
    flags: int
    window: int  # not scaled
    payload_bytes: int
    segment_bytes: int  # payload of each segment that the frame merges; 0 if it merges none
    stamp: int | None  # from the timestamp option; None without it


class ConnectionTap:
    """Captures one connection. It has to be opened before the connection's first packet leaves."""

    def __init__(self, family: int, server: tuple[str, int], client_port: int) -> None:
        """server: address and port. Raises PermissionError without CAP_NET_RAW."""
        self.family, self.server_port, self.client_port = family, server[1], client_port
        self.interface = ""  # by which the first packet left; "" until then
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.socket.setblocking(False)
        attach(self.socket, connection_filter(family, server, client_port))
        _bind_everywhere(self.socket)  # from here on it receives packets

    def close(self) -> None:
        self.socket.close()

    def wait(self, seconds: float) -> None:
        """Wait until there may be a packet."""
        select.select([self.socket], [], [], seconds)

    def packets(self) -> Iterator[Packet]:
        """Yield the packets that have come since the last call."""
        while True:
            try:
                data, control, _, address = self.socket.recvmsg(_VIRTIO.size + _SNAP_BYTES, 256)
            except BlockingIOError:
                return

            interface, _, kind, link, *_ = address
            packet = self._packet(data, control, _LINK_BYTES.get(link, 0))
            # A packet to the server counts where it leaves, a packet to the client where it comes
            # in. So each counts once, even if it passes a bridge of this machine.
            if packet is None or packet.to_client == (kind == _PACKET_OUTGOING):
                continue
            self.interface = self.interface or interface
            if interface == self.interface:
                yield packet

    def _packet(self, data: bytes, control: list[tuple[int, int, bytes]],
                link_bytes: int) -> Packet | None:
        """The packet in received data; None if it is not TCP.

        control: ancillary data, which has the kernel's time stamp. link_bytes: the length of the
        link's header.
        """
        _, merged, _, segment_bytes, _, _ = _VIRTIO.unpack_from(data)
        frame = data[_VIRTIO.size + link_bytes:]
        parsed = ip_headers(frame, 0, IPV6 if self.family == socket.AF_INET6 else IPV4, len(frame))
        if parsed is None or parsed.protocol != TCP:
            return None

        seconds = nanoseconds = 0
        for level, what, value in control:
            if (level, what) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = struct.unpack("=qq", value)
        return Packet(
            time_ns=seconds * 1_000_000_000 + nanoseconds,
            to_client=parsed.from_port == self.server_port, seq=parsed.seq, ack=parsed.ack,
            flags=parsed.flags, window=parsed.window, payload_bytes=parsed.payload_bytes,
            segment_bytes=segment_bytes if merged else 0, stamp=stamp_of(parsed.options))


def _bind_everywhere(tap: socket.socket) -> None:
    """Bind to all interfaces, which Python's bind() cannot express. Raises OSError."""
    # struct sockaddr_ll: family, protocol, interface 0; the rest is not used
    address = struct.pack("=HHiHBB8x", socket.AF_PACKET, socket.htons(_ETH_P_ALL), 0, 0, 0, 0)
    if _libc.bind(tap.fileno(), address, len(address)):
        raise OSError(ctypes.get_errno(), "a packet socket cannot be bound")


def stamp_of(options: bytes) -> int | None:
    """The sender's time stamp (RFC 7323) in TCP's options; None without one."""
    try:
        return next((int.from_bytes(value[:4], "big") for kind, value in tcp_options(options)
                     if kind == OPTION_TIMESTAMP and len(value) >= 4), None)
    except ValueError:
        return None


def connection_filter(family: int, server: tuple[str, int],
                      client_port: int) -> list[Instruction]:
    """A classic BPF program that passes TCP between the server and this client's port.

    Offsets count from the network header, whatever link carries it (SKF_NET_OFF).
    """
    network = -0x100000
    load_byte, load_half_x, load_word, header_x, x_is = 0x30, 0x48, 0x20, 0xB1, 0x01
    equal, give = 0x15, 0x06
    address = socket.inet_pton(family, server[0])
    words = [int.from_bytes(address[at:at + 4], "big") for at in range(0, len(address), 4)]
    is_ipv6 = family == socket.AF_INET6
    protocol_at, source_at, destination_at = (6, 8, 24) if is_ipv6 else (9, 12, 16)

    def direction(address_at: int, ports: tuple[int, int]) -> list[tuple[int, int, bool]]:
        """Steps for one direction: (code, value, whether a difference ends this direction)."""
        steps: list[tuple[int, int, bool]] = []
        for number, word in enumerate(words):
            steps += [(load_word, network + address_at + 4 * number, False), (equal, word, True)]
        steps.append((x_is, _IPV6_BYTES, False) if is_ipv6 else (header_x, network, False))
        for place, port in enumerate(ports):
            steps += [(load_half_x, network + 2 * place, False), (equal, port, True)]
        return [*steps, (give, _SNAP_BYTES, False)]

    from_server = direction(source_at, (server[1], client_port))
    to_server = direction(destination_at, (client_port, server[1]))
    steps = [(load_byte, network + protocol_at, False), (equal, TCP, True),
             *from_server, *to_server, (give, 0, False)]

    # A difference in the first direction jumps to the second one, any other to the last step.
    second, last = 2 + len(from_server), len(steps) - 1
    program = []
    for place, (code, value, decides) in enumerate(steps):
        target = second if 2 <= place < second else last
        jump = target - place - 1 if decides else 0
        program.append((code, 0, jump, value % (1 << 32)))
    return program
