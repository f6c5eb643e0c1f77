"""Sets up a network's nodes in the kernel (netlink, /proc/sys), and reads back what it has set.

All that is installed is compared with what was requested: a difference is an error, never a
warning.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
import subprocess
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.node import Node
from mininet.nodelib import LinuxBridge

from firstflight.net import qdiscs
from firstflight.net.qdiscs import InstalledQdisc
from firstflight.testbed.network import links
from firstflight.testbed.network.links import Neighbour, Route
from firstflight.testbed.network.netlink import Netlink, RequestRefused, network_of
from firstflight.testbed.network.ports import HtbShaper, Port

TOOL_DEADLINE_S = 20.0  # for the kernel or our programs, which need far less

# ETHTOOL_STSO, _SGSO and _SGRO of linux/ethtool.h set these; one less reads each.
OFFLOADS = {"tcp-segmentation-offload": 0x1F, "generic-segmentation-offload": 0x24,
            "generic-receive-offload": 0x2C}
_SIOCETHTOOL = 0x8946
SYSCTLS = Path("/proc/sys")
# IPv6 would send neighbour discovery through the bottleneck.
NO_IPV6 = {"net.ipv6.conf.all.disable_ipv6": "1"}
CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"


class NetworkError(Exception):
    """The network could not be built, or is not what was requested."""


class KernelLacks(NetworkError):
    """This kernel lacks a feature that is requested."""


class NodeKernel:
    """Reads and sets a node's qdiscs, routes and neighbours in the kernel, over netlink."""

    def __init__(self, node: Node) -> None:
        self.name = node.name
        self.netlink = Netlink(node.pid)
        self.kinds: dict[str, tuple[str, ...]] = {}  # of the qdiscs installed, by port

    def close(self) -> None:
        self.netlink.close()

    def install_ports(self, *ports: Port) -> dict[str, list[InstalledQdisc]]:
        """Install the qdiscs of ports; return the kernel's report of each port.

        Raises NetworkError if the report differs, KernelLacks if the kernel has no such qdisc.
        """
        requests: dict[str, tuple[int, bytes]] = {}
        for port in ports:
            index = self.index(port.name)
            present = self.kinds.get(port.name, ())
            same_kinds = all(now == requested for now, requested in zip(present, port.kinds))
            is_renewed = any(qdisc.is_renewed for qdisc in port.qdiscs)
            # A qdisc's kind cannot be changed in place.
            if present and (is_renewed or not same_kinds or not port.kinds):
                removal = qdiscs.DELQDISC, qdiscs.removal(index)
                requests[f"tc qdisc del dev {port.name} root"] = removal
                present = ()
            requests.update(zip(port.commands, port.requests(index)))
            self.kinds[port.name] = port.kinds + present[len(port.kinds):]

        installed = self._qdiscs([port.name for port in ports],
                                 self._ask(requests, qdiscs.GETQDISC, qdiscs.question()))
        for port in ports:
            if port.has_classes:
                installed[port.name] = self._with_classes(port.name, installed[port.name])
            if wrong := port.differences(installed[port.name]):
                raise NetworkError(f"{port.name} is not as requested: {'; '.join(wrong)}")
        return installed

    def qdiscs(self, *interfaces: str) -> dict[str, list[InstalledQdisc]]:
        """What the kernel reports of the qdiscs of interfaces. Raises NetworkError."""
        return self._qdiscs(interfaces, self._ask({}, qdiscs.GETQDISC, qdiscs.question()))

    def _qdiscs(self, interfaces: Iterable[str], answers: list[bytes]
                ) -> dict[str, list[InstalledQdisc]]:
        """The qdiscs of each interface, by its name."""
        installed = list(map(qdiscs.read_qdisc, answers))
        by_name = {}
        for name in interfaces:
            by_name[name] = [qdisc for qdisc in installed if qdisc.interface == self.index(name)]
        return by_name

    def _with_classes(self, interface: str, installed: list[InstalledQdisc]
                      ) -> list[InstalledQdisc]:
        """The qdiscs; HTB's have the options of their class after their own."""
        answers = self._ask({}, qdiscs.GETTCLASS,
                            qdiscs.class_question(self.index(interface)))
        class_options = {read.major: read.options for read in map(qdiscs.read_qdisc, answers)
                         if read.kind == HtbShaper.kind}
        with_classes = []
        for qdisc in installed:
            if qdisc.kind == HtbShaper.kind:
                options = qdisc.options + class_options.get(qdisc.major, b"")
                qdisc = replace(qdisc, options=options)
            with_classes.append(qdisc)
        return with_classes

    def install_routes(self, *requested: Route) -> None:
        """Install routes. Raises NetworkError if the kernel reports a different one."""
        requests = {}
        for route in requested:
            body = route.request(self.index(route.interface))
            requests[route.command] = links.RTM_NEWROUTE, body
        answers = self._ask(requests, links.RTM_GETROUTE, Route.question())
        for route in requested:
            if wrong := route.differences(answers):
                raise NetworkError(f"the route to {route.to} has {'; '.join(wrong)}")

    def install_neighbours(self, *neighbours: Neighbour) -> None:
        """Install permanent neighbours. Raises NetworkError if the kernel refuses."""
        requests = {}
        for neighbour in neighbours:
            body = neighbour.request(self.index(neighbour.interface))
            requests[neighbour.command] = links.RTM_NEWNEIGH, body
        self._ask(requests, links.RTM_GETROUTE, Route.question())

    def forget_neighbours(self, *neighbours: Neighbour) -> None:
        """Remove neighbours, also learned ones, so that a sender needs ARP."""
        self.install_neighbours(*neighbours)  # only an existing one can be removed
        requests = {}
        for neighbour in neighbours:
            command = f"ip neigh del {neighbour.to} dev {neighbour.interface}"
            body = neighbour.removal(self.index(neighbour.interface))
            requests[command] = links.RTM_DELNEIGH, body
        self._ask(requests, links.RTM_GETROUTE, Route.question())

    def index(self, interface: str) -> int:
        """The number of an interface. Raises OSError."""
        return self.netlink.index(interface)

    def change(self, *requests: links.Request) -> None:
        """Change links or addresses. Raises NetworkError if the kernel refuses."""
        self._ask({words: (kind, body) for words, kind, body in requests}, links.RTM_GETROUTE,
                  Route.question())

    def _ask(self, requests: dict[str, tuple[int, bytes]], question: int,
             body: bytes) -> list[bytes]:
        """Send requests, given by their commands, and a question; return its answers.

        Raises NetworkError, KernelLacks.
        """
        try:
            return self.netlink.ask(list(requests.values()), question, body)
        except RequestRefused as refused:
            words = [*requests, "what there is"][refused.number]
            if "qdisc kind is unknown" in str(refused):
                raise KernelLacks(f"this kernel has no such qdisc: {words}") from refused
            raise NetworkError(f"{self.name}: the kernel refused '{words}': {refused}"
                               ) from refused
        except OSError as error:
            raise NetworkError(f"{self.name}: {error}") from error


def pin_sysctls(host: Node, pinned: dict[str, str],
                requested: Mapping[str, str] | None = None) -> dict[str, str]:
    """Set sysctls in the host's network namespace and return what it has then.

    Those that a scenario requests come on top of the pinned ones. A pinned one that this kernel
    does not have is skipped. Raises KernelLacks if it lacks one that was requested, NetworkError if
    it refuses a value or keeps another one.
    """
    with network_of(host.pid):
        write_sysctls(NO_IPV6, host.name)
        effective = write_sysctls({**pinned, **(requested or {})}, host.name)
    lacking = sorted(set(requested or {}) - set(effective))
    if lacking:
        raise KernelLacks(f"this kernel has no sysctl {', '.join(lacking)}")
    return effective


def set_sysctls(host: Node, requested: dict[str, str]) -> None:
    """Set sysctls in a host's network namespace. Raises NetworkError."""
    with network_of(host.pid):
        write_sysctls(requested, host.name)


def write_sysctls(requested: dict[str, str], host: str, root: Path = SYSCTLS) -> dict[str, str]:
    """Write sysctls to their files below root, and read them back. host: in messages.

    No shell sees the values, which may come from a stranger's scenario. See pin_sysctls.
    """
    effective = {}
    for key, value in requested.items():
        path = root.joinpath(*key.split("."))
        if not path.is_file():
            continue
        try:
            file = os.open(path, os.O_WRONLY)
            try:
                os.write(file, value.encode())
            finally:
                os.close(file)
        except OSError as error:
            if key == CONGESTION_CONTROL and error.errno == errno.ENOENT:
                raise KernelLacks(f"this kernel has no congestion control {value}"
                                  f" (sudo modprobe tcp_{value})") from error
            raise NetworkError(f"{host} cannot have {key} = {value!r}: {error.strerror}") from error
        effective[key] = _value(path)

    wrong = {key: value for key, value in effective.items()
             if value != " ".join(requested[key].split())}
    if wrong:
        raise NetworkError(f"sysctls on {host} are not as requested: {wrong}")
    return effective


def read_sysctls(host: Node, names: Collection[str], root: Path = SYSCTLS) -> dict[str, str]:
    """The values of those sysctls that the host's network namespace has. Raises OSError."""
    with network_of(host.pid):
        paths = {name: root.joinpath(*name.split(".")) for name in sorted(names)}
        return {name: _value(path) for name, path in paths.items() if path.is_file()}


def _value(path: Path) -> str:
    return " ".join(path.read_text(encoding="ascii").split())


def switch_offloads_off(node: Node) -> None:
    """Switch TSO, GSO and GRO off on every interface, and check that they are off.

    With them a veth device carries skbs of several segments: netem's limit, loss and rate would act
    on those, and one acknowledgement would answer many. Raises NetworkError, OSError.
    """
    with network_of(node.pid), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for interface in node.intfNames():
            if interface == "lo":
                continue
            for switch_off in OFFLOADS.values():
                ethtool(any_socket, interface, switch_off, 0)
            on = [name for name in OFFLOADS if ethtool(any_socket, interface, OFFLOADS[name] - 1)]
            if on:
                raise NetworkError(f"{interface} keeps {', '.join(on)} on")


def ethtool(any_socket: socket.socket, interface: str, command: int, value: int = 0) -> int:
    """Send a command of ethtool with a number (SIOCETHTOOL, struct ethtool_value); its answer."""
    requested = (ctypes.c_uint32 * 2)(command, value)
    fcntl.ioctl(any_socket, _SIOCETHTOOL,
                struct.pack("16sP16x", interface.encode(), ctypes.addressof(requested)))
    return requested[1]


# Mininet's nodes and links --------------------------------------------------------------

# Mininet starts a program for every step, such as ifconfig, brctl and arp: some 60 for the star. In
# a guest each takes milliseconds, and nobody reads its errors. Here every step goes over netlink,
# and an error is raised. Mininet also starts a shell with a terminal for each node. Nobody types
# there, but in Mininet's own prompt (topo.py): so a shell begins with its first command.

def start_holder() -> subprocess.Popen[bytes]:
    """Start a process in network and mount namespaces of its own, which end with it.

    /sys shows the devices of that network there. Raises NetworkError where mnexec cannot do it.
    """
    holder = subprocess.Popen(["mnexec", "-dn", "cat"], bufsize=0, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    assert holder.stdin is not None and holder.stdout is not None
    with suppress(BrokenPipeError):
        holder.stdin.write(b"\n")
    if not holder.stdout.read(1):  # else cat has answered, so that the namespaces are there
        raise NetworkError(f"mnexec cannot make namespaces: it ended with status {holder.wait()}")
    return holder


class _NetlinkNode(Node):
    """A node whose links are set up over netlink, from its start to its end."""

    # Mininet need not look for its package's programs, nor at the machine's firewall: a namespace
    # begins with an empty one.
    isSetup = True
    # The process in a host's namespaces, which end with it; None for a node without its own.
    holder: subprocess.Popen[bytes] | None
    inNamespace: bool

    def startShell(self, mnopts: str | None = None) -> None:
        """Begin the node's namespaces; its shell begins with the first command for it."""
        self.pid, self.holder = os.getpid(), None
        if self.inNamespace:
            self.holder = start_holder()
            self.pid = self.holder.pid
        self.kernel = NodeKernel(self)

    def cmd(self, *words: object, **options: object) -> str | None:
        if words == ("ifconfig", "lo", "up"):  # what Mininet does to each switch
            self.set_up("lo")
            return ""
        self._begin_shell()
        answer: str | None = super().cmd(*words, **options)
        return answer

    def sendCmd(self, *words: object, **options: object) -> None:
        self._begin_shell()
        super().sendCmd(*words, **options)

    def _begin_shell(self) -> None:
        """Begin Mininet's shell in the namespaces that there are, if it has not begun."""
        if self.shell is None:
            is_in_namespace, self.inNamespace = self.inNamespace, False  # or it makes new ones
            super().startShell(f"-cda{self.pid}")
            self.inNamespace = is_in_namespace

    def set_up(self, interface: str) -> None:
        self.kernel.change(links.up(interface, self.kernel.index(interface)))

    def remove(self, interface: str) -> None:
        self.kernel.change(links.removal(interface, self.kernel.index(interface)))

    def terminate(self) -> None:
        self.kernel.close()
        super().terminate()
        if self.holder is not None:
            self.holder.kill()
            self.holder.communicate()


class Host(_NetlinkNode):
    """A host with one address."""

    def config(self, ip: str | None = None, **_: object) -> dict[str, object]:
        self.set_up("lo")
        self.setIP(ip)
        return {}

    def setARP(self, ip: str, mac: str) -> None:
        self.kernel.install_neighbours(Neighbour(ip, mac, str(self.defaultIntf())))


class Router(Host):
    """A host that forwards between its interfaces."""

    def config(self, ip: str | None = None, **_: object) -> dict[str, object]:
        # Redirects would change the hosts' routes.
        pin_sysctls(self, {"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.send_redirects": "0"})
        return super().config(ip)


class Switch(_NetlinkNode, LinuxBridge):
    """Mininet's Linux bridge, forwarding from the first packet on.

    With the kernel's default forward delay a bridge drops everything for its
    first 15 seconds.
    """

    def start(self, controllers: list[object]) -> None:
        self.kernel.change(links.bridge(self.name))
        number = self.kernel.index(self.name)
        self.kernel.change(*(links.into_bridge(port, self.kernel.index(port), number)
                             for port in self.port_names()))
        self.set_up(self.name)

    def stop(self, deleteIntfs: bool = True) -> None:
        self.remove(self.name)

    def port_names(self) -> list[str]:
        return [name for name in self.intfNames() if name != "lo"]


class Interface(Intf):
    """One end of a link."""

    def config(self, ip: str | None = None, **_: object) -> dict[str, object]:
        self.node.set_up(self.name)
        if ip is not None:
            self.setIP(ip)
        return {}

    def setIP(self, ipstr: str, prefixLen: int | None = None) -> None:
        self.ip, self.prefixLen = ipstr.split("/")
        self.node.kernel.change(links.address(self.name, self.node.kernel.index(self.name),
                                              ipstr))


class Cable(Link):
    """A veth pair between two nodes."""

    @classmethod
    def makeIntfPair(cls, intfname1: str, intfname2: str, addr1: str = "", addr2: str = "",
                     node1: Any = None, node2: Any = None, deleteIntfs: bool = True) -> None:
        node1.kernel.change(links.pair(intfname1, addr1, intfname2, addr2, node2.pid))

    def delete(self) -> None:
        """Delete one end, with which the other goes."""
        self.intf1.node.remove(str(self.intf1))
        for end in (self.intf1, self.intf2):
            end.node.delIntf(end)
