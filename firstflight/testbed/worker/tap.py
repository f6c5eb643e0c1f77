"""Packet taps: record what a host's interface sends and receives, with the kernel's time stamps."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from firstflight.base.files import write_all
from firstflight.net import bpf
from firstflight.net.headers import ETHERNET_BYTES
from firstflight.net.pcap import HEADER, RECORD, SNAP_BYTES
from firstflight.testbed.messages import CapturePlace
from firstflight.testbed.network.netlink import network_of

if TYPE_CHECKING:  # only trials with TLS need it
    from firstflight.testbed.worker.tls_streams import TlsStreams

# An unread packet takes some two kilobytes of kernel memory: this is enough for a transfer of some
# 30,000 segments.
BUFFER_BYTES = 64 << 20

_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35
_ETH_P_ALL = 0x0003
_IPV4, _ARP = b"\x08\x00", b"\x08\x06"

MOST_FRAME_BYTES = ETHERNET_BYTES + 1500  # TSO is off
BATCH_PACKETS = 256  # read by one system call

_libc = ctypes.CDLL(None, use_errno=True)


class Tap:
    """Records one interface of one network namespace.

    A packet socket sees packets after the qdisc on the way out, and before the stack on the way in
    (dev_queue_xmit_nit, __netif_receive_skb_core). So on a host's interface it shows when TCP sends
    and receives. Packets wait in the kernel until `records` is called, so that no program runs
    during a trial.
    """

    def __init__(self, pid: int, interface: str, every_port: int = 1,
                 hosts: Sequence[str] = ()) -> None:
        """Tap `interface` in the network namespace of process `pid`. Needs CAP_NET_RAW.

        every_port: a power of two; only connections whose client port is a multiple of it are
        recorded. hosts: and whose client has one of these addresses.
        """
        with network_of(pid):
            # Protocol 0: it sees no packet before it is bound to its interface.
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER_BYTES)
            self.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            self.socket.setblocking(False)
            if every_port > 1:
                bpf.attach(self.socket, sample_filter(every_port, hosts))
            # A socket for one protocol only would not see outgoing packets.
            self.socket.bind((interface, _ETH_P_ALL))
        self.batch = PacketBuffers(BATCH_PACKETS)
        self.whole: PacketBuffers | None = None  # once a trial has TLS

    def close(self) -> None:
        self.socket.close()

    def discard(self) -> None:
        """Drop everything recorded so far."""
        for _ in self.batch.packets_of(self.socket):
            pass

    def records(self, streams: TlsStreams | None = None) -> list[bytes]:
        """What was recorded, a pcap file's record for each packet.

        streams: where each whole packet goes as well. Raises OSError.
        """
        batch = self.batch
        if streams is not None:
            batch = self.whole = self.whole or PacketBuffers(BATCH_PACKETS, MOST_FRAME_BYTES)

        records: list[bytes] = []
        for seconds, nanoseconds, frame in batch.packets_of(self.socket):
            kind, head = frame[12:14], frame[:SNAP_BYTES]
            if streams is not None and kind == _IPV4:
                streams.add(frame)
            if kind == _IPV4:  # the length comes from its header
                (ip_bytes,) = struct.unpack_from(">H", head, 16)
            elif kind == _ARP:  # takes time on the path as well, and is captured completely
                ip_bytes = len(head) - ETHERNET_BYTES
            else:
                continue
            records.append(RECORD.pack(seconds, nanoseconds, len(head), ETHERNET_BYTES + ip_bytes)
                           + head)
        return records


class PacketBuffers:
    """Buffers to read many packets with one system call: recvmmsg(2), which Python lacks.

    No sender's address is read: for each one Python would look up the name of an interface.
    """

    # struct mmsghdr: name, its length, the pieces and how many, control data and its length,
    # flags; then how many bytes came.
    _HEADER = struct.Struct("PI4xPNPNi4xI4x")
    _CAME = "40xN8xI4x"  # of it: the length of the control data, and how many bytes came
    _PIECE = struct.Struct("PN")  # struct iovec
    _STAMP = struct.Struct("Niiqq")  # struct cmsghdr, struct timespec

    def __init__(self, packets: int, kept_bytes: int = SNAP_BYTES) -> None:
        self.packets, self.kept_bytes = packets, kept_bytes
        self.heads = ctypes.create_string_buffer(packets * kept_bytes)
        head_at = ctypes.addressof(self.heads)
        pieces = [self._PIECE.pack(head_at + number * kept_bytes, kept_bytes)
                  for number in range(packets)]
        self.pieces = ctypes.create_string_buffer(b"".join(pieces))
        self.stamps = ctypes.create_string_buffer(packets * self._STAMP.size)

        piece_at, stamp_at = ctypes.addressof(self.pieces), ctypes.addressof(self.stamps)
        headers = []
        for number in range(packets):
            headers.append(self._HEADER.pack(
                0, 0, piece_at + number * self._PIECE.size, 1,
                stamp_at + number * self._STAMP.size, self._STAMP.size, 0, 0))
        # The kernel overwrites the headers: each call needs empty ones.
        self.empty_headers = b"".join(headers)
        self.headers = ctypes.create_string_buffer(len(self.empty_headers))

    def packets_of(self, tapped: socket.socket) -> Iterator[tuple[int, int, bytes]]:
        """The packets that wait in a socket: time in s and ns, and first bytes. Raises OSError."""
        came = self.packets
        while came == self.packets:
            ctypes.memmove(self.headers, self.empty_headers, len(self.empty_headers))
            came = _libc.recvmmsg(tapped.fileno(), self.headers, self.packets,
                                  socket.MSG_DONTWAIT, None)
            if came < 0:
                if ctypes.get_errno() == errno.EAGAIN:
                    return
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "recvmmsg")

            heads = self.heads.raw
            headers = self.headers.raw[:came * self._HEADER.size]
            lengths = struct.iter_unpack(self._CAME, headers)
            stamps = self._STAMP.iter_unpack(self.stamps.raw)
            for number, ((stamp_bytes, length), stamp) in enumerate(zip(lengths, stamps)):
                _, level, kind, seconds, nanoseconds = stamp
                if (stamp_bytes, level, kind) != (self._STAMP.size, socket.SOL_SOCKET,
                                                  _SO_TIMESTAMPNS):
                    raise OSError("the kernel gave a packet without a time stamp")
                start = number * self.kept_bytes
                yield seconds, nanoseconds, heads[start:start + length]


class Capture:
    """A pcap file that grows by the packets of one trial after another."""

    def __init__(self, path: Path) -> None:
        """Create the file. Raises OSError."""
        self.file = path.open("wb", buffering=0)
        self.bytes = 0  # which it has so far
        self._append(HEADER)

    def add(self, taps: Iterable[Tap], streams: TlsStreams | None = None) -> CapturePlace:
        """Append the packets of taps; return their place in the file (testbed/job.py).

        streams: as of Tap.records. Raises OSError.
        """
        records: list[bytes] = []
        for tap in taps:
            records += tap.records(streams)
        offset = self.bytes
        self._append(b"".join(records))
        return {"offset": offset, "bytes": self.bytes - offset, "packets": len(records)}

    def close(self) -> None:
        self.file.close()

    def _append(self, data: bytes) -> None:
        write_all(self.file, data)
        self.bytes += len(data)


def sample_filter(every_port: int, hosts: Sequence[str]) -> list[bpf.Instruction]:
    """A classic BPF program that passes HTTP over IPv4 of some clients' ports; see Tap.

    Instructions are (code, jump if true, jump if false, value), as `tcpdump -d` prints them. Jumps
    are filled in once the program's length is known.
    """
    load_half, load_word, load_half_x, header_x = 0x28, 0x20, 0x48, 0xB1
    equal, and_with, give = 0x15, 0x54, 0x06
    take, drop = "take", "drop"
    source, destination, port_mask = 26, 30, every_port - 1
    addresses = [int.from_bytes(socket.inet_aton(host), "big") for host in hosts]
    # (code, value, where to if true, where to if false); None: the next instruction.
    is_one_of_hosts: list[tuple[int, int, str | None, str | None]] = [
        (equal, address, take, None) for address in addresses]
    steps: list[tuple[int, int, str | None, str | None]] = [
        (load_half, 12, None, None), (equal, 0x0800, None, drop),
        (header_x, ETHERNET_BYTES, None, None),
        (load_half_x, ETHERNET_BYTES, None, None),  # the source's port
        (equal, 80, "from the server", None),
        (and_with, port_mask, None, None), (equal, 0, None, drop),
        (load_word, source, None, None), *is_one_of_hosts,
        (give, 0, None, None)]
    from_server = len(steps)
    steps += [(load_half_x, ETHERNET_BYTES + 2, None, None),
              (and_with, port_mask, None, None), (equal, 0, None, drop),
              (load_word, destination, None, None), *is_one_of_hosts]
    places = {drop: len(steps), take: len(steps) + 1, "from the server": from_server}
    steps += [(give, 0, None, None), (give, SNAP_BYTES, None, None)]

    def jump(place: int, to: str | None) -> int:
        return 0 if to is None else places[to] - place - 1

    return [(code, jump(place, yes), jump(place, no), value)
            for place, (code, value, yes, no) in enumerate(steps)]


