"""Mininet networks on which First Flight measures.

The star is the network of every fetch experiment::

    client ── switch ── server

All shaping is on the switch's two ports, never on a host's own device: a qdisc there would push
back on TCP instead of dropping packets as a network does. firstflight/testbed/network/shaping.py
has the qdiscs of a port.

The dumbbell is the network of every load experiment::

    client 1 ─┐                                   ┌─ server 1
        …     switch ── router ── switch       …
    client N ─┘                                   └─ server M

The router's port to the clients is the bottleneck: only a rate and a queue. Each client's port of
the switch delays responses by half of the RTT; the router's port to the servers delays requests and
acknowledgements by the other half. So a response queues first and then propagates.

All that is installed is read back from the kernel and compared with what was requested; a
difference is an error, never a warning.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from mininet.net import Mininet
from mininet.topo import Topo
from mininet.util import numCores

from firstflight.net.link import Netem, Path
from firstflight.testbed.network.kernel import (TOOL_DEADLINE_S, Cable, Host, Interface,
                                                NetworkError, Router, Switch, pin_sysctls,
                                                read_sysctls, set_sysctls, switch_offloads_off)
from firstflight.testbed.network.links import (ARP_RETRY, CLIENT_IP, CLIENT_SIDE, SERVER_IP,
                                               SERVER_SIDE, Neighbour, Route, RouteOptions,
                                               client_route, dumbbell_routes, star_routes)
from firstflight.testbed.network.ports import Port
from firstflight.testbed.network.shaping import (BOTTLENECK, CLIENT_PORT, SERVER_PORT, WAY_BACK,
                                                 DumbbellLinks, dropped, remembers,
                                                 server_interface, server_port, star_ports)
from firstflight.testbed.network.tcp_sysctls import TCP_SYSCTLS


LEAST_PAUSE_S = 0.002  # between two looks at the packets that are under way
# Between two looks at ports that do not forward yet. Linux tells a bridge of its ports' carriers
# up to a second late (linkwatch_schedule_work).
FORWARDING_LOOK_S = 0.1


class StarTopo(Topo):
    """client – switch – server, with plain links: shaping comes afterwards."""

    def build(self) -> None:
        switch = self.addSwitch("s1", cls=Switch)
        self.addLink(self.addHost("client", ip=f"{CLIENT_IP}/24"), switch)
        self.addLink(self.addHost("server", ip=f"{SERVER_IP}/24"), switch)


def start_network(topo: Topo, static_arp: bool) -> Mininet:
    """Start a network whose switches forward, and whose interfaces merge and split no segments.

    Raises NetworkError.
    """
    # Skips Mininet's fixLimits(), which raises the limit of open files to 16384: for every node
    # mnexec then closes each possible descriptor with a system call, two seconds a network. It also
    # sets buffer sizes, which TCP_SYSCTLS pins.
    Mininet.inited = True
    numCores.ncores = os.cpu_count()  # else Mininet starts grep to count the processors
    net = Mininet(topo=topo, controller=None, host=Host, switch=Switch, link=Cable,
                  intf=Interface, autoStaticArp=static_arp, build=False, waitConnected=False)
    net.build()
    net.start()
    for switch in net.switches:
        wait_until_forwarding(switch)
    for node in (*net.hosts, *net.switches):
        switch_offloads_off(node)
    return net


def wait_until_forwarding(switch: Switch) -> None:
    """Wait until every port forwards (BR_STATE_FORWARDING, 3). Raises NetworkError."""
    deadline = time.monotonic() + TOOL_DEADLINE_S
    while any(_read(f"/sys/class/net/{port}/brport/state") != "3" for port in switch.port_names()):
        if time.monotonic() > deadline:
            raise NetworkError(f"{switch.name} does not forward after {TOOL_DEADLINE_S:g} s")
        time.sleep(FORWARDING_LOOK_S)


class Star:
    """The running star: built once, then shaped for each trial."""

    def __init__(self, sysctls: dict[str, str] | None = None) -> None:
        self.net = start_network(StarTopo(), static_arp=True)
        self.client: Host = self.net["client"]
        self.server: Host = self.net["server"]
        self.switch: Switch = self.net["s1"]
        # Raises KernelLacks where there is no netem, before anything else is requested of it.
        self.switch.kernel.install_ports(Port(CLIENT_PORT, (Netem(),)))
        self.sysctls = {host.name: pin_sysctls(host, TCP_SYSCTLS, sysctls)
                        for host in (self.client, self.server)}
        self.installed: Path | None = None
        self.interface: Port | None = None  # the server's own, as it was installed
        # By port, the drops of its qdiscs when they were last read.
        self.dropped: dict[str, dict[str, int]] = {}
        self.routes: dict[str, Route] = {}  # those installed, by host
        # By host: what a trial changed, None where a change failed; and the values before it.
        self.trial_sysctls: dict[str, dict[str, str] | None] = {name: {} for name in self.sysctls}
        self.before = {name: dict(settings) for name, settings in self.sysctls.items()}
        self.arp_ms = 0

    def install(self, path: Path) -> None:
        """Install the path on both ports of the switch.

        Raises NetworkError if the kernel reports another one, KernelLacks where it has no netem.
        """
        if path == self.installed and not remembers(path):
            return

        self.installed = None
        installed = self.switch.kernel.install_ports(*star_ports(path))
        self.dropped = {name: dropped(qdiscs) for name, qdiscs in installed.items()}
        interface = server_interface(path)
        if interface != self.interface or interface.qdiscs:  # a qdisc remembers
            self.interface = None
            self.server.kernel.install_ports(interface)
            self.interface = interface
        self.installed = path

    def set_routes(self, initcwnd: int, initrwnd: int, congestion_control: str,
                   options: RouteOptions = RouteOptions()) -> None:
        """Set initcwnd and congestion control on the server's route, initrwnd on the client's.

        The kernel reads them when a connection is established (tcp_init_cwnd,
        tcp_ca_openreq_child, tcp_select_initial_window): they hold for new
        connections only. Windows in segments.
        """
        requested = star_routes(initcwnd, initrwnd, congestion_control, options)
        for host, route in zip((self.server, self.client), requested):
            if route == self.routes.get(host.name):
                continue
            self.routes.pop(host.name, None)  # unknown until the kernel has the new one
            host.kernel.install_routes(route)
            self.routes[host.name] = route

    def lose_all(self, lose: bool) -> None:
        """Drop every packet to the client before the bottleneck; or, with False, stop doing so."""
        assert self.installed is not None
        to_client, _ = star_ports(self.installed)
        outer, *_ = to_client.qdiscs  # fq_codel has a shaper between
        assert isinstance(outer, Netem)
        requested = replace(outer, loss_percent=100.0) if lose else outer
        self.switch.kernel.install_ports(Port(CLIENT_PORT, (requested,)))

    def set_trial_sysctls(self, **requested: Mapping[str, str]) -> None:
        """Set sysctls of a trial, by host; those of the trial before get the run's values again.

        TCP reads them when it opens a socket (tcp_rmem) and whenever a buffer grows (tcp_wmem).
        Raises NetworkError, KernelLacks.
        """
        for host in (self.client, self.server):
            own, before = dict(requested[host.name]), self.before[host.name]
            if own == self.trial_sysctls[host.name]:
                continue
            before |= read_sysctls(host, own.keys() - before.keys())  # those not pinned
            self.trial_sysctls[host.name] = None
            pin_sysctls(host, before, own)
            self.trial_sysctls[host.name] = own

    def set_neighbours(self, arp_ms: int) -> None:
        """Let both hosts know each other's address, or forget it as in a new network.

        arp_ms: 0 if they know it; else the time after which an ARP request is repeated, three
        times in all (neigh_max_probes). Raises NetworkError.
        """
        neighbours = ((self.client, Neighbour(SERVER_IP, self.server.MAC(), "client-eth0")),
                      (self.server, Neighbour(CLIENT_IP, self.client.MAC(), "server-eth0")))
        if arp_ms:
            set_sysctls(self.client, {ARP_RETRY: f"{arp_ms}"})
        for host, neighbour in neighbours:
            if arp_ms:
                host.kernel.forget_neighbours(neighbour)
            elif self.arp_ms:
                host.kernel.install_neighbours(neighbour)
        self.arp_ms = arp_ms

    def in_flight(self) -> int:
        """The number of packets in the switch, those that are delayed included."""
        installed = self.switch.kernel.qdiscs(CLIENT_PORT, SERVER_PORT)
        self.dropped = {port: dropped(qdiscs) for port, qdiscs in installed.items()}
        return sum(qdisc.queued for qdisc in chain(*installed.values()) if qdisc.is_root)

    @property
    def pause_s(self) -> float:
        """How long to wait for packets under way before looking again: a quarter of the RTT."""
        rtt_ms = self.installed.rtt_ms if self.installed else 0.0
        return max(rtt_ms / 4000, LEAST_PAUSE_S)

    def drain(self, deadline_s: float) -> None:
        """Wait until no packet is under way.

        A finished fetch leaves FINs and ACKs under way, which would delay the next one. Raises
        NetworkError after deadline_s.
        """
        deadline = time.monotonic() + deadline_s
        while (packets := self.in_flight()) > 0:
            if time.monotonic() > deadline:
                raise NetworkError(f"{packets} packets still under way {deadline_s:g} s"
                                   " after the transfer")
            time.sleep(self.pause_s)

    def stop(self) -> None:
        self.net.stop()


class DumbbellTopo(Topo):
    """clients – switch – router – switch – servers, with plain links."""

    def build(self, clients: int = 1, servers: int = 1) -> None:
        near, far = self.addSwitch("s1", cls=Switch), self.addSwitch("s2", cls=Switch)
        router = self.addHost("router", cls=Router, ip=f"{CLIENT_SIDE}.254/24")
        # The order of links gives interfaces their names.
        self.addLink(router, near)
        self.addLink(router, far, params1={"ip": f"{SERVER_SIDE}.254/24"})
        for number in range(1, clients + 1):
            self.addLink(self.addHost(f"client{number}", ip=f"{CLIENT_SIDE}.{number}/24"), near)
        for number in range(1, servers + 1):
            self.addLink(self.addHost(f"server{number}", ip=f"{SERVER_SIDE}.{number}/24"), far)


class Dumbbell:
    """The running dumbbell. Each load run has its own."""

    def __init__(self, clients: int, servers: int,
                 sysctls: dict[str, str] | None = None) -> None:
        self.net = start_network(DumbbellTopo(clients=clients, servers=servers),
                                 static_arp=False)
        self.router: Router = self.net["router"]
        self.switch: Switch = self.net["s1"]
        self.clients: list[Host] = [self.net[f"client{number + 1}"] for number in range(clients)]
        self.servers: list[Host] = [self.net[f"server{number + 1}"] for number in range(servers)]
        # Raises KernelLacks where there is no netem, before anything else is requested of it.
        self.router.kernel.install_ports(Port(WAY_BACK, (Netem(),)))
        self._install_neighbours()
        self.sysctls = {host.name: pin_sysctls(host, TCP_SYSCTLS, sysctls)
                        for host in (*self.clients, *self.servers)}

    def _install_neighbours(self) -> None:
        """Install default routes and permanent neighbours.

        So no ARP request waits behind the bottleneck's queue.
        """
        for side, hosts, port in ((CLIENT_SIDE, self.clients, BOTTLENECK),
                                  (SERVER_SIDE, self.servers, WAY_BACK)):
            gateway = f"{side}.254"
            for host in hosts:
                interface = f"{host.name}-eth0"
                host.kernel.install_neighbours(
                    Neighbour(gateway, self.router.MAC(port), interface))
                host.kernel.install_routes(Route("default", interface, {}, via=gateway))
            self.router.kernel.install_neighbours(
                *(Neighbour(host.IP(), host.MAC(), port) for host in hosts))

    def install(self, links: DumbbellLinks) -> None:
        """Install bottleneck, queue, delays and pacing. Raises NetworkError, KernelLacks."""
        self.router.kernel.install_ports(*links.router_ports())
        self.switch.kernel.install_ports(*links.client_ports())
        if links.is_paced:
            self._set_pacing()

    def set_windows(self, initcwnd: list[int], initrwnd: int, congestion_control: str,
                    advertised_mss: int = 0) -> None:
        """Set initcwnd on every server's route to each client, and initrwnd on the clients' routes.

        initcwnd: by client. Windows are in segments. advertised_mss: of the clients, in bytes; 0
        for the device's.
        """
        for server in self.servers:
            server.kernel.install_routes(
                *dumbbell_routes(server.name, initcwnd, congestion_control))
        for client in self.clients:
            client.kernel.install_routes(client_route(client.name, initrwnd, advertised_mss))

    def set_trial_sysctls(self, client: Mapping[str, str], server: Mapping[str, str]) -> None:
        """Set sysctls of the trial at all clients, and at all servers.

        To be called before anything opens a socket. Raises NetworkError, KernelLacks.
        """
        for hosts, requested in ((self.clients, client), (self.servers, server)):
            for host in hosts:
                if requested:
                    pin_sysctls(host, {}, requested)

    def _set_pacing(self) -> None:
        """Let every server pace what it sends."""
        for server in self.servers:
            server.kernel.install_ports(server_port(f"{server.name}-eth0", True))

    def bottleneck(self) -> dict[str, int]:
        """Counters of the bottleneck: bytes and packets sent, drops, and the queue in packets."""
        qdiscs = self.router.kernel.qdiscs(BOTTLENECK)[BOTTLENECK]
        root = next(qdisc for qdisc in qdiscs if qdisc.is_root)
        return {"bytes": root.bytes, "packets": root.packets, "drops": root.drops,
                "queue_packets": root.queued}

    def stop(self) -> None:
        self.net.stop()


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
