"""Seeds the random numbers of a netem qdisc, so that random loss repeats.

Newer kernels take a seed (TCA_NETEM_PRNG_SEED), but the `tc` of Debian 12
(iproute2 6.1) has no word for it: this says it over netlink
(include/uapi/linux/pkt_sched.h, rtnetlink.h). The kernel wants all of the
qdisc's settings with it, so they are asked for first and sent back as they
were told.
"""

from __future__ import annotations

import os
import socket
import struct

_NLMSG_ERROR = 2
_RTM_NEWQDISC, _RTM_GETQDISC = 36, 38
_NLM_F_REQUEST, _NLM_F_ACK, _NLM_F_ECHO = 1, 4, 8
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_NETEM_PRNG_SEED = 14
_TC_H_ROOT = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
_QDISC = struct.Struct("=BxxxiIII")  # struct tcmsg: family, interface, handle, parent, info
_QOPT_BYTES = 24  # struct tc_netem_qopt; attributes follow it
_KIND_BITS = 0x3FFF  # of an attribute's type (NLA_TYPE_MASK)


def seed_random(interface: str, number: int, seed: int) -> None:
    """Give the netem qdisc `number`: of an interface a seed and leave the rest as it is.

    number: counted from the root, 1, as engines.shaping.Port has them. Raises
    OSError with the kernel's reason.
    """
    parent = _TC_H_ROOT if number == 1 else (number - 1) << 16 | 1
    qdisc = _QDISC.pack(socket.AF_UNSPEC, socket.if_nametoindex(interface), number << 16,
                        parent, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.bind((0, 0))
        # Older kernels tell it to those only who ask for an echo.
        told = _ask(netlink, _RTM_GETQDISC, _NLM_F_ECHO, qdisc, interface)
        options = told_options(told[_HEADER.size + _QDISC.size:])
        _ask(netlink, _RTM_NEWQDISC, _NLM_F_ACK, qdisc + _attribute(_TCA_KIND, b"netem\0")
             + _attribute(_TCA_OPTIONS, with_seed(options, seed)), interface)


def told_options(attributes: bytes) -> bytes:
    """The options among the attributes of a qdisc."""
    return dict(_split(attributes))[_TCA_OPTIONS]


def with_seed(options: bytes, seed: int) -> bytes:
    """The options of a netem qdisc with another seed."""
    kept = b"".join(_attribute(kind, payload) for kind, payload in _split(options[_QOPT_BYTES:])
                    if kind != _TCA_NETEM_PRNG_SEED)
    return (options[:_QOPT_BYTES] + kept
            + _attribute(_TCA_NETEM_PRNG_SEED, struct.pack("=Q", seed)))


def _ask(netlink: socket.socket, kind: int, flags: int, body: bytes, interface: str) -> bytes:
    """Send a request and return the answer. Raises OSError."""
    netlink.send(_HEADER.pack(_HEADER.size + len(body), kind, _NLM_F_REQUEST | flags, 1, 0)
                 + body)
    answer = netlink.recv(1 << 16)
    _, answered, *_ = _HEADER.unpack_from(answer)
    if answered == _NLMSG_ERROR:
        (status,) = struct.unpack_from("=i", answer, _HEADER.size)
        if status:
            raise OSError(-status, os.strerror(-status), f"netem seed on {interface}")
    return answer


def _split(attributes: bytes) -> list[tuple[int, bytes]]:
    """Netlink attributes as (type, payload)."""
    found = []
    while len(attributes) >= 4:
        length, kind = struct.unpack_from("=HH", attributes)
        found.append((kind & _KIND_BITS, attributes[4:length]))
        attributes = attributes[length + -length % 4:]
    return found


def _attribute(kind: int, payload: bytes) -> bytes:
    """One netlink attribute, padded to four bytes."""
    return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)
