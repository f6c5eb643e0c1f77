"""Seeds the random numbers of a netem qdisc, so that random loss repeats.

Newer kernels take a seed (TCA_NETEM_PRNG_SEED), but the `tc` of Debian 12
(iproute2 6.1) has no word for it: this says it over netlink
(include/uapi/linux/pkt_sched.h, rtnetlink.h). The rest of the qdisc's settings
must be said with it again.
"""

from __future__ import annotations

import os
import socket
import struct

_RTM_NEWQDISC = 36
_NLM_F_REQUEST_ACK = 1 | 4
_NLMSG_ERROR = 2
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_NETEM_LATENCY64, _TCA_NETEM_PRNG_SEED = 10, 14
_TC_H_ROOT = 0xFFFFFFFF
_PSCHED_TICK_NS = 64


def seed_loss(interface: str, handle: int, delay_ms: float, limit_packets: int,
              loss_percent: float, seed: int) -> None:
    """Give the root netem qdisc `handle`: of an interface its delay, limit, loss and a seed.

    Raises OSError with the kernel's reason.
    """
    delay_ns = round(delay_ms * 1000) * 1000  # as tc was told, in whole microseconds
    options = struct.pack("=6I", delay_ns // _PSCHED_TICK_NS, limit_packets,
                          round(loss_percent / 100 * 0xFFFFFFFF), 0, 0, 0)
    options += _attribute(_TCA_NETEM_LATENCY64, struct.pack("=q", delay_ns))
    options += _attribute(_TCA_NETEM_PRNG_SEED, struct.pack("=Q", seed))
    message = struct.pack("=BxxxiIII", socket.AF_UNSPEC, socket.if_nametoindex(interface),
                          handle << 16, _TC_H_ROOT, 0)
    message += _attribute(_TCA_KIND, b"netem\0") + _attribute(_TCA_OPTIONS, options)
    header = struct.pack("=IHHII", 16 + len(message), _RTM_NEWQDISC, _NLM_F_REQUEST_ACK, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.bind((0, 0))
        netlink.send(header + message)
        answer = netlink.recv(4096)
    (kind,) = struct.unpack_from("=H", answer, 4)
    (status,) = struct.unpack_from("=i", answer, 16)
    if kind != _NLMSG_ERROR or status != 0:
        raise OSError(-status, os.strerror(-status), f"netem seed on {interface}")


def _attribute(kind: int, payload: bytes) -> bytes:
    """One netlink attribute, padded to four bytes."""
    return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)
