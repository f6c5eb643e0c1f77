"""pcap files of Ethernet with stamps in nanoseconds: their header, and their records."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from firstflight.net.headers import ETHERNET_BYTES

SNAP_BYTES = 96  # a tap keeps so many of a packet: Ethernet, IPv4 and TCP with all options
_MAGIC_NS, _LINKTYPE_ETHERNET = 0xA1B23C4D, 1
HEADER = struct.pack("<IHHiIII", _MAGIC_NS, 2, 4, 0, 0, SNAP_BYTES, _LINKTYPE_ETHERNET)
RECORD = struct.Struct("<IIII")  # seconds, nanoseconds, bytes kept, bytes on the wire
_RECORD_BYTES = RECORD.size


def has_header(pcap: bytes) -> bool:
    """Whether a file begins with a file's header, and not with a packet."""
    return pcap.startswith(HEADER[:4])


def frames(pcap: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Each captured frame: its time in ns, its kept bytes, and its length on the wire.

    pcap: with or without the file's header. Raises ValueError if it is cut or damaged.
    """
    position, end = len(HEADER) if has_header(pcap) else 0, len(pcap)
    while position < end:
        if position + _RECORD_BYTES > end:
            raise ValueError("ends within a packet's header")
        seconds, nanoseconds, stored_bytes, on_wire = RECORD.unpack_from(pcap, position)
        position += _RECORD_BYTES
        if stored_bytes > on_wire or stored_bytes > SNAP_BYTES or nanoseconds >= 1_000_000_000:
            raise ValueError(f"is damaged at byte {position}")
        if position + stored_bytes > end:
            raise ValueError("ends within a packet")
        if stored_bytes < ETHERNET_BYTES:
            raise ValueError(f"holds a broken packet: {stored_bytes} bytes")
        yield seconds * 1_000_000_000 + nanoseconds, pcap[position:position + stored_bytes], on_wire
        position += stored_bytes
