"""Netlink requests for links, addresses, routes and neighbours, as `ip` would send them.

Each comes with the command of ip (include/uapi/linux/if_link.h, if_addr.h, rtnetlink.h,
neighbour.h). TCP's initial windows, congestion control and least timeout are metrics of a route.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from firstflight.net.netlink import NESTED, attribute, attributes, text_attribute, u32

CLIENT_IP = "10.0.0.1"
SERVER_IP = "10.0.0.2"
# How long the client waits before it repeats an ARP request.
ARP_RETRY = "net.ipv4.neigh.client-eth0.retrans_time_ms"
# The dumbbell's two networks; each side's gateway is .254, its hosts count from .1.
CLIENT_SIDE, SERVER_SIDE = "10.0.1", "10.0.2"

Metrics = dict[str, int | str]  # of a route, by ip's names
Request = tuple[str, int, bytes]  # the command of ip, the type, the body

_RTM_NEWLINK, _RTM_DELLINK, _RTM_SETLINK, _RTM_NEWADDR = 16, 17, 19, 20
_IFINFOMSG = struct.Struct("=BxHiII")  # family, type, number, flags, which of them to change
_IFADDRMSG = struct.Struct("=BBBBI")  # family, bits, flags, scope, interface
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MASTER, _IFLA_LINKINFO, _IFLA_NET_NS_PID = 1, 3, 10, 18, 19
_INFO_KIND, _INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_BR_FORWARD_DELAY, _BR_MCAST_SNOOPING = 1, 23
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_UP = 1


def pair(name: str, mac: str, peer: str, peer_mac: str, peer_pid: int) -> Request:
    """Create a veth pair; its peer is in the network namespace of process peer_pid."""
    command = (f"ip link add {name} address {mac} type veth"
               f" peer name {peer} address {peer_mac} netns {peer_pid}")
    far_end = (_IFINFOMSG.pack(0, 0, 0, 0, 0) + _named(peer) + _addressed(peer_mac)
               + u32(_IFLA_NET_NS_PID, peer_pid))
    body = (_IFINFOMSG.pack(0, 0, 0, 0, 0) + _named(name) + _addressed(mac)
            + _kind("veth", attribute(_VETH_INFO_PEER | NESTED, far_end)))
    return command, _RTM_NEWLINK, body


def bridge(name: str) -> Request:
    """Create a bridge that forwards at once and treats all packets alike."""
    command = f"ip link add {name} type bridge forward_delay 0 mcast_snooping 0"
    options = u32(_BR_FORWARD_DELAY, 0) + attribute(_BR_MCAST_SNOOPING, b"\0")
    body = _IFINFOMSG.pack(0, 0, 0, 0, 0) + _named(name) + _kind("bridge", options)
    return command, _RTM_NEWLINK, body


def into_bridge(name: str, number: int, bridge_number: int) -> Request:
    return (f"ip link set {name} master {bridge_number}", _RTM_SETLINK,
            _IFINFOMSG.pack(0, 0, number, 0, 0) + u32(_IFLA_MASTER, bridge_number))


def up(name: str, number: int) -> Request:
    return f"ip link set {name} up", _RTM_SETLINK, _IFINFOMSG.pack(0, 0, number, _UP, _UP)


def removal(name: str, number: int) -> Request:
    return f"ip link del {name}", _RTM_DELLINK, _IFINFOMSG.pack(0, 0, number, 0, 0)


def address(name: str, number: int, requested: str) -> Request:
    """Add an address to an interface. requested: like "10.0.0.1/24"."""
    host, bits = requested.split("/")
    raw = socket.inet_aton(host)
    body = (_IFADDRMSG.pack(socket.AF_INET, int(bits), 0, 0, number)
            + attribute(_IFA_LOCAL, raw) + attribute(_IFA_ADDRESS, raw))
    return f"ip address add {requested} dev {name}", _RTM_NEWADDR, body


def _named(name: str) -> bytes:
    return text_attribute(_IFLA_IFNAME, name)


def _addressed(mac: str) -> bytes:
    return attribute(_IFLA_ADDRESS, bytes.fromhex(mac.replace(":", "")))


def _kind(kind: str, data: bytes) -> bytes:
    return attribute(_IFLA_LINKINFO | NESTED, text_attribute(_INFO_KIND, kind)
                     + attribute(_INFO_DATA | NESTED, data))


# Routes and neighbours ---------------------------------------------------------------

RTM_NEWROUTE, RTM_GETROUTE, RTM_NEWNEIGH, RTM_DELNEIGH = 24, 26, 28, 29
# family, bits of the destination and of the source, tos, table, protocol, scope, type, flags
_RTMSG = struct.Struct("=BBBBBBBBI")
_MAIN_TABLE, _PROTOCOL_BOOT, _SCOPE_LINK, _UNICAST = 254, 3, 253, 1
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_METRICS = 1, 4, 5, 8
# By ip's names, include/uapi/linux/rtnetlink.h: RTAX_….
_METRICS = {"advmss": 8, "initcwnd": 11, "rto_min": 13, "initrwnd": 14, "quickack": 15,
            "congctl": 16}
_NAMES = {number: name for name, number in _METRICS.items()}
_NDMSG = struct.Struct("=BxxxiHBB")  # family, interface, state, flags, type
_NDA_DST, _NDA_LLADDR, _NUD_PERMANENT = 1, 2, 0x80
_LOCK = 1  # the bits of metrics that nothing may change; ip sets it with rto_min


@dataclass(frozen=True)
class Route:
    """A route to one host, or `default`, with its metrics."""

    to: str
    interface: str
    metrics: Metrics
    via: str = ""

    @property
    def command(self) -> str:
        """The `request` as a command of ip."""
        metrics = " ".join(f"{name} {value}{'ms' if name == 'rto_min' else ''}"
                           for name, value in self.metrics.items())
        via = f"via {self.via} " if self.via else ""
        return f"ip route replace {self.to} {via}dev {self.interface} {metrics}"

    @property
    def destination(self) -> tuple[int, bytes]:
        """The length of the prefix in bits, and the address."""
        return (0, b"") if self.to == "default" else (32, socket.inet_aton(self.to))

    def request(self, interface: int) -> bytes:
        """The request for netlink. interface: the number of the route's interface."""
        metrics = b""
        for name, value in self.metrics.items():
            if isinstance(value, str):
                metrics += attribute(_METRICS[name], value.encode())
            else:
                metrics += u32(_METRICS[name], value)
        if "rto_min" in self.metrics:
            metrics += u32(_LOCK, 1 << _METRICS["rto_min"])

        bits, address = self.destination
        scope = 0 if self.via else _SCOPE_LINK
        request = _RTMSG.pack(socket.AF_INET, bits, 0, 0, _MAIN_TABLE, _PROTOCOL_BOOT,
                              scope, _UNICAST, 0)
        if bits:
            request += attribute(_RTA_DST, address)
        if self.via:
            request += attribute(_RTA_GATEWAY, socket.inet_aton(self.via))
        return request + u32(_RTA_OIF, interface) + attribute(_RTA_METRICS, metrics)

    @staticmethod
    def question() -> bytes:
        """The request for all routes of a namespace."""
        return _RTMSG.pack(socket.AF_INET, 0, 0, 0, 0, 0, 0, 0, 0)

    def differences(self, answers: Iterable[bytes]) -> list[str]:
        """How the kernel's routes differ from this one; empty if they do not."""
        for answer in answers:
            _, bits, _, _, table, *_ = _RTMSG.unpack_from(answer)
            payloads = attributes(answer[_RTMSG.size:])
            if table == _MAIN_TABLE and (bits, payloads.get(_RTA_DST, b"")) == self.destination:
                metrics = parsed_metrics(payloads.get(_RTA_METRICS, b""))
                return [] if metrics == self.metrics else [f"{metrics}, requested {self.metrics}"]
        return [f"nothing, requested {self.metrics}"]


@dataclass(frozen=True)
class Neighbour:
    """A permanent entry for a host's address on the link: no ARP is needed."""

    to: str
    mac: str
    interface: str

    @property
    def command(self) -> str:
        """The `request` as a command of ip."""
        return f"ip neigh replace {self.to} lladdr {self.mac} dev {self.interface}"

    def request(self, interface: int) -> bytes:
        """The request for netlink. interface: the number of the neighbour's interface."""
        return (_NDMSG.pack(socket.AF_INET, interface, _NUD_PERMANENT, 0, 0)
                + attribute(_NDA_DST, socket.inet_aton(self.to))
                + attribute(_NDA_LLADDR, bytes.fromhex(self.mac.replace(":", ""))))

    def removal(self, interface: int) -> bytes:
        """The request for netlink to remove it."""
        return (_NDMSG.pack(socket.AF_INET, interface, 0, 0, 0)
                + attribute(_NDA_DST, socket.inet_aton(self.to)))


def parsed_metrics(raw: bytes) -> Metrics:
    """A route's metrics by ip's names; unknown ones by their numbers."""
    metrics: Metrics = {}
    for kind, payload in attributes(raw).items():
        if kind == _METRICS["congctl"]:
            metrics["congctl"] = payload.rstrip(b"\0").decode()
        elif kind != _LOCK:
            (metrics[_NAMES.get(kind, str(kind))],) = struct.unpack("=I", payload)
    return metrics


@dataclass(frozen=True)
class RouteOptions:
    """Other settings of the star's two routes; none by default."""

    rto_min_ms: int = 0  # the least retransmission timeout of the server, 0 for the kernel's
    quickack: bool = False  # the client acknowledges every segment at once
    advertised_mss: int = 0  # the MSS that the client announces, bytes; 0 for the device's
    client_initcwnd: int = 0  # the client's initial window, segments; 0 for the kernel's own
    client_congestion_control: str = ""  # "" for the kernel's own


def star_routes(initcwnd: int, initrwnd: int, congestion_control: str,
                options: RouteOptions = RouteOptions()) -> tuple[Route, Route]:
    """The server's route to the client, and the client's.

    Windows in segments; initcwnd 0: the route has none, and the kernel's own holds.
    """
    server: Metrics = {"initcwnd": initcwnd} if initcwnd else {}
    server["congctl"] = congestion_control
    client: Metrics = {"initrwnd": initrwnd}
    if options.rto_min_ms:
        server["rto_min"] = options.rto_min_ms
    if options.quickack:
        client["quickack"] = 1
    if options.advertised_mss:
        client["advmss"] = options.advertised_mss
    if options.client_initcwnd:
        client["initcwnd"] = options.client_initcwnd
    if options.client_congestion_control:
        client["congctl"] = options.client_congestion_control
    return Route(CLIENT_IP, "server-eth0", server), Route(SERVER_IP, "client-eth0", client)


def client_route(client: str, initrwnd: int, advertised_mss: int = 0) -> Route:
    """The route of the dumbbell's host `client` to the servers.

    initrwnd in segments. advertised_mss: in bytes, 0 for the device's.
    """
    metrics: Metrics = {"initrwnd": initrwnd}
    if advertised_mss:
        metrics["advmss"] = advertised_mss
    return Route("default", f"{client}-eth0", metrics, via=f"{CLIENT_SIDE}.254")


def dumbbell_routes(server: str, initcwnd: list[int], congestion_control: str) -> list[Route]:
    """The routes of host `server` to each client. initcwnd: by client, segments."""
    routes = []
    for number, window in enumerate(initcwnd, start=1):
        metrics: Metrics = {"initcwnd": window, "congctl": congestion_control}
        routes.append(Route(f"{CLIENT_SIDE}.{number}", f"{server}-eth0", metrics,
                            via=f"{SERVER_SIDE}.254"))
    return routes
