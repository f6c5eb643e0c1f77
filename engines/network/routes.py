"""Routes as data: TCP's windows, congestion control and timers are metrics of a route."""

from __future__ import annotations

import socket
import struct
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engines.network.netlink import attribute, attributes, u32
from hosts.tls_records import KEY_SHARES, newer_openssl

CLIENT_IP = "10.0.0.1"
SERVER_IP = "10.0.0.2"
# How long the client waits before it asks for an address again.
ARP_RETRY = "net.ipv4.neigh.client-eth0.retrans_time_ms"
RECEIVE_BUFFERS, SEND_BUFFERS = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
# Where servers listen that are not server.py, beside it: HTTP, and with TLS.
OTHER_PORT, OTHER_SECURE_PORT = 8080, 8443
# The dumbbell's two networks; each side's gateway is .254, its hosts count from .1.
CLIENT_SIDE, SERVER_SIDE = "10.0.1", "10.0.2"

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
    """A route to one host, or `default`, with the metrics that it carries."""

    to: str
    interface: str
    metrics: dict[str, Any]  # by ip's names
    via: str = ""

    @property
    def command(self) -> str:
        """What `request` says, in ip's words."""
        metrics = " ".join(f"{name} {value}{'ms' if name == 'rto_min' else ''}"
                           for name, value in self.metrics.items())
        via = f"via {self.via} " if self.via else ""
        return f"ip route replace {self.to} {via}dev {self.interface} {metrics}"

    @property
    def destination(self) -> tuple[int, bytes]:
        """How many bits of the address count, and the address."""
        return (0, b"") if self.to == "default" else (32, socket.inet_aton(self.to))

    def request(self, interface: int) -> bytes:
        """For netlink. interface: the number of the route's."""
        bits, address = self.destination
        metrics = b"".join(
            attribute(_METRICS[name], value.encode()) if isinstance(value, str)
            else u32(_METRICS[name], value) for name, value in self.metrics.items())
        if "rto_min" in self.metrics:
            metrics += u32(_LOCK, 1 << _METRICS["rto_min"])
        return (_RTMSG.pack(socket.AF_INET, bits, 0, 0, _MAIN_TABLE, _PROTOCOL_BOOT,
                            0 if self.via else _SCOPE_LINK, _UNICAST, 0)
                + (attribute(_RTA_DST, address) if bits else b"")
                + (attribute(_RTA_GATEWAY, socket.inet_aton(self.via)) if self.via else b"")
                + u32(_RTA_OIF, interface) + attribute(_RTA_METRICS, metrics))

    @staticmethod
    def question() -> bytes:
        """For all routes of a namespace."""
        return _RTMSG.pack(socket.AF_INET, 0, 0, 0, 0, 0, 0, 0, 0)

    def differences(self, answers: Iterable[bytes]) -> list[str]:
        """What the answers to the question tell otherwise than requested; empty if nothing."""
        for answer in answers:
            _, bits, _, _, table, *_ = _RTMSG.unpack_from(answer)
            found = attributes(answer[_RTMSG.size:])
            if table == _MAIN_TABLE and (bits, found.get(_RTA_DST, b"")) == self.destination:
                metrics = metrics_told(found.get(_RTA_METRICS, b""))
                return [] if metrics == self.metrics else [f"{metrics}, requested {self.metrics}"]
        return [f"nothing, requested {self.metrics}"]


@dataclass(frozen=True)
class Neighbour:
    """A host's address on the link, known for ever: nobody has to ask for it (ARP)."""

    to: str
    mac: str
    interface: str

    @property
    def command(self) -> str:
        """What `request` says, in ip's words."""
        return f"ip neigh replace {self.to} lladdr {self.mac} dev {self.interface}"

    def request(self, interface: int) -> bytes:
        """For netlink. interface: the number of the neighbour's."""
        return (_NDMSG.pack(socket.AF_INET, interface, _NUD_PERMANENT, 0, 0)
                + attribute(_NDA_DST, socket.inet_aton(self.to))
                + attribute(_NDA_LLADDR, bytes.fromhex(self.mac.replace(":", ""))))

    def removal(self, interface: int) -> bytes:
        """For netlink: nobody knows it any more."""
        return (_NDMSG.pack(socket.AF_INET, interface, 0, 0, 0)
                + attribute(_NDA_DST, socket.inet_aton(self.to)))


def metrics_told(raw: bytes) -> dict[str, Any]:
    """The metrics of a route as Route has them; others by their numbers."""
    found: dict[str, Any] = {}
    for kind, payload in attributes(raw).items():
        if kind == _METRICS["congctl"]:
            found["congctl"] = payload.rstrip(b"\0").decode()
        elif kind != _LOCK:
            (found[_NAMES.get(kind, str(kind))],) = struct.unpack("=I", payload)
    return found


@dataclass(frozen=True)
class RouteOptions:
    """What else a trial may ask of the star's two routes; nothing by default.

    rto_min_ms: the least retransmission timeout of the server, 0 for the kernel's.
    quickack: the client acknowledges every segment at once.
    advertised_mss: that the client tells the server, 0 for the device's.
    """

    rto_min_ms: int = 0
    quickack: bool = False
    advertised_mss: int = 0


def star_routes(initcwnd: int, initrwnd: int, congestion_control: str,
                options: RouteOptions = RouteOptions()) -> tuple[Route, Route]:
    """The server's route to the client, and the client's. Windows in segments."""
    server: dict[str, Any] = {"initcwnd": initcwnd, "congctl": congestion_control}
    client: dict[str, Any] = {"initrwnd": initrwnd}
    if options.rto_min_ms:
        server["rto_min"] = options.rto_min_ms
    if options.quickack:
        client["quickack"] = 1
    if options.advertised_mss:
        client["advmss"] = options.advertised_mss
    return Route(CLIENT_IP, "server-eth0", server), Route(SERVER_IP, "client-eth0", client)


def dumbbell_routes(server: str, initcwnd: list[int], congestion_control: str) -> list[Route]:
    """The routes of host `server` to each client. initcwnd: by client, segments."""
    return [Route(f"{CLIENT_SIDE}.{number}", f"{server}-eth0",
                  {"initcwnd": window, "congctl": congestion_control},
                  via=f"{SERVER_SIDE}.254")
            for number, window in enumerate(initcwnd, start=1)]


def sysctls_of(job: Mapping[str, Any], said: Container[str]) -> dict[str, dict[str, str]]:
    """A trial's own sysctls, by host: the client's buffer follows its receive window.

    said: the names of those that the scenario sets, which stand.
    """
    own = {name: value for name, value in job.get("buffers", {}).items() if name not in said}
    return {"client": {name: own[name] for name in own if name == RECEIVE_BUFFERS},
            "server": {**job.get("sysctls", {}),
                       **{name: own[name] for name in own if name == SEND_BUFFERS}}}


def urls_of(job: Mapping[str, Any]) -> list[str]:
    """What the client of a trial on the star fetches, in order (engines/worker/worker.py)."""
    scheme = "https" if "tls" in job else "http"
    own = job.get("own", {})
    port = "" if "server" not in job else f":{OTHER_SECURE_PORT if 'tls' in job else OTHER_PORT}"
    host = own.get("name") or SERVER_IP
    return [f"{scheme}://{host}{port}{path}" for path in job["paths"]]


def curves_of(job: Mapping[str, Any]) -> str:
    """The key exchanges that a trial's client is told to offer, "" for its own choice.

    OpenSSL offers X25519 first; from 3.5 on it would offer ML-KEM beside it.
    """
    newer = "system" in job or newer_openssl()
    return KEY_SHARES[job["tls"]["key_share"]] if newer and "tls" in job else ""


def named_of(job: Mapping[str, Any]) -> str:
    """Where the name of a server's certificate is, in curl's words; "" without a name."""
    name = job.get("own", {}).get("name")
    return f"{name}:{OTHER_SECURE_PORT}:{SERVER_IP}" if name else ""
