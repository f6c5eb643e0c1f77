"""Buffers of TCP sockets as trials pin them, in bytes at first and at most."""

from __future__ import annotations

from firstflight.net.headers import MSS, TIMESTAMP_BYTES

RECEIVE_BUFFERS = (131072, 6291456)  # tcp_rmem[1], tcp_rmem[2]
SEND_BUFFERS = (16384, 4194304)  # tcp_wmem[1], tcp_wmem[2]
HEAD_BYTES, SKB_BYTES = 192 + 320, 256  # MAX_TCP_HEADER and skb_shared_info; sk_buff


def buffer_per_segment(mss: int) -> int:
    """Bytes of the send buffer for a segment of the window (tcp_sndbuf_expand)."""
    most = mss + TIMESTAMP_BYTES + HEAD_BYTES  # what the client's SYN allows, with headers
    return 2 * ((1 << (most - 1).bit_length()) + SKB_BYTES)


BUFFER_PER_SEGMENT = buffer_per_segment(MSS)
