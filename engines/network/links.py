"""Links, switches and addresses as netlink requests: what `ip link` and `ip address` would send.

Each request comes with ip's words for it (include/uapi/linux/if_link.h, if_addr.h).
"""

from __future__ import annotations

import socket
import struct

from engines.network.netlink import NLA_F_NESTED, attribute, u32

Request = tuple[str, int, bytes]  # ip's words, the type, the body

_RTM_NEWLINK, _RTM_DELLINK, _RTM_SETLINK, _RTM_NEWADDR = 16, 17, 19, 20
_IFINFOMSG = struct.Struct("=BxHiII")  # family, type, number, flags, which of them to change
_IFADDRMSG = struct.Struct("=BBBBI")  # family, bits, flags, scope, interface
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MASTER, _IFLA_LINKINFO, _IFLA_NET_NS_PID = 1, 3, 10, 18, 19
_INFO_KIND, _INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_BR_FORWARD_DELAY, _BR_MCAST_SNOOPING = 1, 23
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_UP = 1


def pair(name: str, mac: str, peer: str, peer_mac: str, peer_pid: int) -> Request:
    """A veth pair, its far end in the network of process peer_pid."""
    far = (_IFINFOMSG.pack(0, 0, 0, 0, 0) + _named(peer) + _addressed(peer_mac)
           + u32(_IFLA_NET_NS_PID, peer_pid))
    return (f"ip link add {name} address {mac} type veth"
            f" peer name {peer} address {peer_mac} netns {peer_pid}",
            _RTM_NEWLINK, _IFINFOMSG.pack(0, 0, 0, 0, 0) + _named(name) + _addressed(mac)
            + _kind("veth", attribute(_VETH_INFO_PEER | NLA_F_NESTED, far)))


def bridge(name: str) -> Request:
    """A bridge that forwards at once, and every packet the same."""
    return (f"ip link add {name} type bridge forward_delay 0 mcast_snooping 0",
            _RTM_NEWLINK, _IFINFOMSG.pack(0, 0, 0, 0, 0) + _named(name)
            + _kind("bridge", u32(_BR_FORWARD_DELAY, 0) + attribute(_BR_MCAST_SNOOPING, b"\0")))


def into_bridge(name: str, number: int, bridge_number: int) -> Request:
    return (f"ip link set {name} master {bridge_number}", _RTM_SETLINK,
            _IFINFOMSG.pack(0, 0, number, 0, 0) + u32(_IFLA_MASTER, bridge_number))


def up(name: str, number: int) -> Request:
    return f"ip link set {name} up", _RTM_SETLINK, _IFINFOMSG.pack(0, 0, number, _UP, _UP)


def removal(name: str, number: int) -> Request:
    return f"ip link del {name}", _RTM_DELLINK, _IFINFOMSG.pack(0, 0, number, 0, 0)


def address(name: str, number: int, requested: str) -> Request:
    """requested: as 10.0.0.1/24."""
    host, bits = requested.split("/")
    raw = socket.inet_aton(host)
    return (f"ip address add {requested} dev {name}", _RTM_NEWADDR,
            _IFADDRMSG.pack(socket.AF_INET, int(bits), 0, 0, number)
            + attribute(_IFA_LOCAL, raw) + attribute(_IFA_ADDRESS, raw))


def _named(name: str) -> bytes:
    return attribute(_IFLA_IFNAME, name.encode() + b"\0")


def _addressed(mac: str) -> bytes:
    return attribute(_IFLA_ADDRESS, bytes.fromhex(mac.replace(":", "")))


def _kind(kind: str, data: bytes) -> bytes:
    return attribute(_IFLA_LINKINFO | NLA_F_NESTED, attribute(_INFO_KIND, kind.encode() + b"\0")
                     + attribute(_INFO_DATA | NLA_F_NESTED, data))
