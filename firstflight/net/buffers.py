"""The buffers of TCP sockets as trials set them: in bytes, their first and their largest size."""

from __future__ import annotations

from firstflight.net.headers import MSS, TIMESTAMP_BYTES

RECEIVE_BUFFERS = (131072, 6291456)  # tcp_rmem[1], tcp_rmem[2]
SEND_BUFFERS = (16384, 4194304)  # tcp_wmem[1], tcp_wmem[2]
HEAD_BYTES, SKB_BYTES = 192 + 320, 256  # MAX_TCP_HEADER and skb_shared_info; sk_buff


def buffer_per_segment(mss: int) -> int:
    """Bytes of the send buffer for a segment of the window (tcp_sndbuf_expand)."""
    # The longest segment that the client's SYN allows, with headers, and rounded up to a power of
    # two as the kernel allocates memory.
    longest_bytes = mss + TIMESTAMP_BYTES + HEAD_BYTES
    allocated_bytes = 1 << (longest_bytes - 1).bit_length()
    return 2 * (allocated_bytes + SKB_BYTES)


BUFFER_PER_SEGMENT = buffer_per_segment(MSS)
