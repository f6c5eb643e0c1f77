"""Mininet's nodes and links, set up over netlink.

Mininet starts a program for every step: ifconfig, brctl, arp, some 60 for the
star. In a guest each costs milliseconds, and what it refuses is an output that
nobody reads; here it is an error.
"""

from __future__ import annotations

from typing import Any

from mininet.link import Intf, Link
from mininet.node import Node
from mininet.nodelib import LinuxBridge

from engines.network import links
from engines.network.kernel import NodeKernel, pin_sysctls
from engines.network.routes import Neighbour


class _Told(Node):
    """A node whose kernel is told of its links over netlink, from its start to its end."""

    # Mininet need not look for programs that its package brings, nor at the
    # machine's firewall: a namespace begins with an empty one.
    isSetup = True

    def __init__(self, name: str, **params: Any) -> None:
        super().__init__(name, **params)
        self.kernel = NodeKernel(self)

    def set_up(self, interface: str) -> None:
        self.kernel.change(links.up(interface, self.kernel.index(interface)))

    def remove(self, interface: str) -> None:
        self.kernel.change(links.removal(interface, self.kernel.index(interface)))

    def terminate(self) -> None:
        self.kernel.close()
        super().terminate()


class Host(_Told):
    """A host with one address."""

    def config(self, ip: str | None = None, **_: Any) -> dict[str, Any]:
        self.set_up("lo")
        self.setIP(ip)
        return {}

    def setARP(self, ip: str, mac: str) -> None:
        self.kernel.install_neighbours(Neighbour(ip, mac, str(self.defaultIntf())))


class Router(Host):
    """A host that forwards between its interfaces."""

    def config(self, ip: str | None = None, **_: Any) -> dict[str, Any]:
        # Redirects would teach hosts routes behind our back.
        pin_sysctls(self, {"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.send_redirects": "0"})
        return super().config(ip)


class Switch(_Told, LinuxBridge):
    """Mininet's Linux bridge, forwarding from the first packet on.

    With the kernel's default forward delay a bridge drops everything for its
    first 15 seconds.
    """

    def start(self, controllers: list[Any]) -> None:
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

    def config(self, ip: str | None = None, **_: Any) -> dict[str, Any]:
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
