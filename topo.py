"""Mininet networks on which First Flight measures.

The star is the network of every fetch experiment::

    client ── switch ── server

All shaping sits on the switch's two ports, never on a host's own device: a
qdisc there would push back on TCP instead of dropping like a network does.
Each port carries two netem qdiscs, one subject each::

    root 1:   delay   half the RTT; its limit never drops
    child 2:  rate    the bottleneck: serialisation and a drop-tail queue

The outer qdisc hands a packet to the inner one when its delay has passed, so
a packet first propagates and then queues at the bottleneck. Frames are
counted with their 14 bytes of Ethernet header, as netem counts them.

The dumbbell is the network of every load experiment::

    client 1 ─┐                                   ┌─ server 1
        …     switch ── router ── switch       …
    client N ─┘                                   └─ server M

The router's port to the clients is the bottleneck, a rate and a queue and
nothing else; half of the RTT lies on each client's port of the switch, for
the responses, and half on the router's port to the servers, for requests and
acknowledgements. So a response queues first and then propagates.

Whatever is installed is read back from the kernel and compared with what was
asked; a difference is an error, never a warning.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

from mininet.net import Mininet
from mininet.node import Node
from mininet.nodelib import LinuxBridge
from mininet.topo import Topo

from engines.kernel import (TCP_SYSCTLS, TOOL_DEADLINE_S, BatchTool, NetworkError, Route,
                            compare_netem, pin_sysctls)
from engines.netem import seed_loss

CLIENT_IP = "10.0.0.1"
SERVER_IP = "10.0.0.2"
CLIENT_PORT = "s1-eth1"  # the switch's port to the client: the bottleneck
SERVER_PORT = "s1-eth2"  # the switch's port to the server: the way back
# The dumbbell's two networks, and its router's ports to them.
CLIENT_SIDE, SERVER_SIDE = "10.0.1", "10.0.2"
BOTTLENECK, WAY_BACK = "router-eth0", "router-eth1"

# netem counts the packets that it delays against its limit, so the limit of
# the delay stage has to exceed any bandwidth-delay product ever asked for.
DELAY_LIMIT_PACKETS = 1_000_000


@dataclass(frozen=True)
class Shape:
    """One setting of the star's links.

    rtt_ms: propagation delay of both ways together.
    bandwidth_kbps, uplink_kbps: towards the client, towards the server.
    queue_packets: drop-tail limit of either bottleneck.
    loss_percent: random loss towards the client, before the bottleneck; seed
        makes it repeat.
    """

    rtt_ms: float
    bandwidth_kbps: float
    uplink_kbps: float
    queue_packets: int
    loss_percent: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class RouteOptions:
    """What else a trial may ask of the two routes; nothing by default.

    rto_min_ms: the least retransmission timeout of the server, 0 for the kernel's.
    quickack: the client acknowledges every segment at once.
    advertised_mss: that the client tells the server, 0 for the device's.
    """

    rto_min_ms: int = 0
    quickack: bool = False
    advertised_mss: int = 0


class Switch(LinuxBridge):
    """Mininet's Linux bridge, forwarding from the first packet on.

    With the kernel's default forward delay a bridge drops everything for its
    first 15 seconds.
    """

    def start(self, controllers: list[Any]) -> None:
        super().start(controllers)
        self.cmd(f"ip link set {self.name} type bridge forward_delay 0 mcast_snooping 0"
                 f" && ip link set {self.name} down && ip link set {self.name} up")

    def forwarding(self) -> bool:
        """Whether every port forwards (BR_STATE_FORWARDING, 3)."""
        states = [_read(f"/sys/class/net/{port}/brport/state")
                  for port in self.intfNames() if port != "lo"]
        return all(state == "3" for state in states)

    def wait_until_forwarding(self) -> None:
        deadline = time.monotonic() + TOOL_DEADLINE_S
        while not self.forwarding():
            if time.monotonic() > deadline:
                raise NetworkError(f"{self.name} does not forward after {TOOL_DEADLINE_S:g} s")
            time.sleep(0.01)


class Router(Node):
    """A host that forwards between its interfaces."""

    def config(self, **params: Any) -> dict[str, Any]:
        result: dict[str, Any] = super().config(**params)
        # Redirects would teach hosts routes behind our back.
        self.cmd("sysctl -q -w net.ipv4.ip_forward=1 net.ipv4.conf.all.send_redirects=0")
        return result


class StarTopo(Topo):
    """client – switch – server, plain links; all shaping comes afterwards."""

    def build(self) -> None:
        switch = self.addSwitch("s1", cls=Switch)
        self.addLink(self.addHost("client", ip=f"{CLIENT_IP}/24"), switch)
        self.addLink(self.addHost("server", ip=f"{SERVER_IP}/24"), switch)


def start_network(topo: Topo, static_arp: bool) -> Mininet:
    """Start a network: its switches forward, and no interface of it joins or splits segments.

    Raises NetworkError.
    """
    # Mininet's own fixLimits() raises the file limit to 16384, and mnexec
    # then closes each possible descriptor, one system call apiece, for
    # every node it starts: two seconds a network. Its buffer sizes are
    # not wanted either, TCP_SYSCTLS pins ours.
    Mininet.inited = True
    net = Mininet(topo=topo, controller=None, switch=Switch, autoStaticArp=static_arp,
                  build=False, waitConnected=False)
    net.build()
    net.start()
    for switch in net.switches:
        switch.wait_until_forwarding()
    for node in (*net.hosts, *net.switches):
        _switch_offloads_off(node)
    return net


def _switch_offloads_off(node: Node) -> None:
    """Switch TSO, GSO and GRO off on every interface, and look whether they are.

    With them on, veth carries skbs of several segments: netem's limit,
    loss and rate would act on those, and one ACK would answer many.
    """
    for interface in node.intfNames():
        if interface == "lo":
            continue
        shown = node.cmd(f"ethtool -K {interface} tso off gso off gro off;"
                         f" ethtool -k {interface}")
        on = [name for name in ("tcp-segmentation-offload", "generic-segmentation-offload",
                                "generic-receive-offload")
              if f"{name}: off" not in shown]
        if on:
            raise NetworkError(f"{interface} keeps {', '.join(on)} on: {shown.strip()}")


class Star:
    """The running star: built once, then re-shaped trial by trial."""

    def __init__(self, sysctls: dict[str, str] | None = None) -> None:
        self.net = start_network(StarTopo(), static_arp=True)
        self.client: Node = self.net["client"]
        self.server: Node = self.net["server"]
        self.switch: Switch = self.net["s1"]
        self.tc = BatchTool(self.switch, "tc")
        # Raises KernelLacks where there is no netem, before anything else is asked of it.
        self.tc.ask(_port_commands(CLIENT_PORT, 1.0, 1000.0, 1000, 0.0),
                    f"qdisc show dev {CLIENT_PORT}")
        self.sysctls = {host.name: pin_sysctls(host, {**TCP_SYSCTLS, **(sysctls or {})})
                        for host in (self.client, self.server)}
        self.client_ip = BatchTool(self.client, "ip")
        self.server_ip = BatchTool(self.server, "ip")
        self.shaped: Shape | None = None
        self.routed: tuple[int, int, str, RouteOptions] | None = None

    def shape(self, shape: Shape) -> None:
        """Install the shape on both ports of the switch.

        Raises NetworkError where the kernel's read-back differs,
        KernelLacks where it has no netem.
        """
        # Random loss is seeded anew for every trial: it shall not depend on the one before.
        if shape == self.shaped and not shape.loss_percent:
            return
        self.shaped = None
        commands = shape_commands(shape)
        if shape.loss_percent:
            self.tc.ask(commands, f"qdisc show dev {CLIENT_PORT}")
            seed_loss(CLIENT_PORT, 1, shape.rtt_ms / 2, DELAY_LIMIT_PACKETS, shape.loss_percent,
                      shape.seed)
            commands = []
        rows = self.tc.ask(commands, f"qdisc show dev {CLIENT_PORT}")
        compare_netem(CLIENT_PORT, rows, "1:", shape.rtt_ms / 2, 0.0, DELAY_LIMIT_PACKETS,
                      shape.loss_percent)
        compare_netem(CLIENT_PORT, rows, "2:", 0.0, shape.bandwidth_kbps, shape.queue_packets)
        rows = self.tc.ask([], f"qdisc show dev {SERVER_PORT}")
        compare_netem(SERVER_PORT, rows, "1:", shape.rtt_ms / 2, 0.0, DELAY_LIMIT_PACKETS)
        compare_netem(SERVER_PORT, rows, "2:", 0.0, shape.uplink_kbps, shape.queue_packets)
        self.shaped = shape

    def set_routes(self, initcwnd: int, initrwnd: int, congestion_control: str,
                   options: RouteOptions = RouteOptions()) -> None:
        """Set initcwnd and congestion control on the server's route, initrwnd on the client's.

        The kernel reads them when a connection is established (tcp_init_cwnd,
        tcp_ca_openreq_child, tcp_select_initial_window): they hold for new
        connections only. Windows in segments.
        """
        asked = (initcwnd, initrwnd, congestion_control, options)
        if asked == self.routed:
            return
        self.routed = None
        for tool, route in zip((self.server_ip, self.client_ip), _routes(*asked)):
            route.install(tool)
        self.routed = asked

    def lose_all(self, lose: bool) -> None:
        """Drop every packet towards the client before the bottleneck, or none again."""
        assert self.shaped is not None
        outer = _port_commands(CLIENT_PORT, self.shaped.rtt_ms / 2, self.shaped.bandwidth_kbps,
                               self.shaped.queue_packets, 100.0 if lose else 0.0)[0]
        self.tc.ask([outer], f"qdisc show dev {CLIENT_PORT}")

    def set_server_sysctls(self, asked: dict[str, str]) -> None:
        """Set sysctls at the server until they are set anew. Raises NetworkError."""
        seen = pin_sysctls(self.server, {**self.sysctls["server"], **asked})
        lacking = sorted(set(asked) - set(seen))
        if lacking:
            raise NetworkError(f"this kernel has no sysctl {', '.join(lacking)}")

    def in_flight(self) -> int:
        """Packets that are on their way through the switch, delayed ones included."""
        return sum(int(row["qlen"]) for port in (CLIENT_PORT, SERVER_PORT)
                   for row in self.tc.ask([], f"qdisc show dev {port}")
                   if row.get("root"))

    def drain(self, deadline_s: float) -> None:
        """Wait until no packet is under way.

        A finished fetch leaves FINs and ACKs in the pipe that would delay the
        next one. Raises NetworkError after deadline_s.
        """
        deadline = time.monotonic() + deadline_s
        pause_s = max(self.shaped.rtt_ms / 4000, 0.002) if self.shaped else 0.002
        while (packets := self.in_flight()) > 0:
            if time.monotonic() > deadline:
                raise NetworkError(f"{packets} packets still under way {deadline_s:g} s"
                                   " after the transfer")
            time.sleep(pause_s)

    def stop(self) -> None:
        for tool in (self.tc, self.client_ip, self.server_ip):
            tool.close()
        self.net.stop()


@dataclass(frozen=True)
class DumbbellShape:
    """One setting of the dumbbell.

    bandwidth_kbps, queue_packets: the bottleneck and its drop-tail limit.
    queue: "droptail", or "fq_codel" or "cake" in its place, with their own
        defaults for the target and queue_packets as the limit.
    client_rtt_ms: by client, propagation both ways together; halves may
        differ: the way to the servers is the same for all.
    client_kbps: by client, the rate of its own port, 0 for as fast as can be;
        access_queue_packets: the drop-tail limit of such a port.
    client_loss_percent: by client, random loss on the way to it; seed makes it
        repeat.
    """

    bandwidth_kbps: float
    queue_packets: int
    queue: str
    client_rtt_ms: tuple[float, ...]
    client_kbps: tuple[float, ...]
    access_queue_packets: int
    client_loss_percent: tuple[float, ...]
    seed: int

    @property
    def back_ms(self) -> float:
        """Delay of what goes to the servers: half of the smallest RTT."""
        return min(self.client_rtt_ms) / 2


class DumbbellTopo(Topo):
    """clients – switch – router – switch – servers, plain links."""

    def build(self, clients: int = 1, servers: int = 1) -> None:
        near, far = self.addSwitch("s1", cls=Switch), self.addSwitch("s2", cls=Switch)
        router = self.addHost("router", cls=Router, ip=f"{CLIENT_SIDE}.254/24")
        # Each switch's first port, and each side's order, names its interfaces.
        self.addLink(router, near)
        self.addLink(router, far, params1={"ip": f"{SERVER_SIDE}.254/24"})
        for number in range(1, clients + 1):
            self.addLink(self.addHost(f"client{number}", ip=f"{CLIENT_SIDE}.{number}/24"), near)
        for number in range(1, servers + 1):
            self.addLink(self.addHost(f"server{number}", ip=f"{SERVER_SIDE}.{number}/24"), far)


class Dumbbell:
    """The running dumbbell, for one run: each has a network of its own."""

    def __init__(self, clients: int, servers: int,
                 sysctls: dict[str, str] | None = None) -> None:
        self.net = start_network(DumbbellTopo(clients=clients, servers=servers),
                                 static_arp=False)
        self.router: Node = self.net["router"]
        self.clients: list[Node] = [self.net[f"client{number + 1}"] for number in range(clients)]
        self.servers: list[Node] = [self.net[f"server{number + 1}"] for number in range(servers)]
        self.router_tc = BatchTool(self.router, "tc")
        self.switch_tc = BatchTool(self.net["s1"], "tc")
        # Raises KernelLacks where there is no netem, before anything else is asked of it.
        self.router_tc.ask([f"qdisc replace dev {WAY_BACK} root handle 1: netem limit 1000"],
                           f"qdisc show dev {WAY_BACK}")
        self.server_ip = [BatchTool(server, "ip") for server in self.servers]
        self._know_each_other()
        self.sysctls = {host.name: pin_sysctls(host, {**TCP_SYSCTLS, **(sysctls or {})})
                        for host in (*self.clients, *self.servers)}

    def _know_each_other(self) -> None:
        """Default routes and permanent neighbours: no ARP waits behind the bottleneck's queue."""
        tool = BatchTool(self.router, "ip")
        for side, hosts, port in ((CLIENT_SIDE, self.clients, BOTTLENECK),
                                  (SERVER_SIDE, self.servers, WAY_BACK)):
            gateway = self.router.MAC(port)
            for host in hosts:
                interface = f"{host.name}-eth0"
                host.cmd(f"ip neigh replace {side}.254 lladdr {gateway} dev {interface};"
                         f" ip route replace default via {side}.254 dev {interface}")
                tool.ask([f"neigh replace {host.IP()} lladdr {host.MAC()} dev {port}"],
                         f"neigh show to {host.IP()}")
        tool.close()

    def shape(self, shape: DumbbellShape) -> None:
        """Install bottleneck, queue and delays. Raises NetworkError, KernelLacks."""
        commands = dumbbell_commands(shape)
        rows = self.router_tc.ask(commands[WAY_BACK], f"qdisc show dev {WAY_BACK}")
        compare_netem(WAY_BACK, rows, "1:", shape.back_ms, 0.0, DELAY_LIMIT_PACKETS)
        rows = self.router_tc.ask(commands[BOTTLENECK], f"qdisc show dev {BOTTLENECK}")
        if shape.queue == "droptail":
            compare_netem(BOTTLENECK, rows, "1:", 0.0, shape.bandwidth_kbps,
                          shape.queue_packets)
        elif shape.queue not in [row["kind"] for row in rows]:
            raise NetworkError(f"{BOTTLENECK} has {[row['kind'] for row in rows]},"
                               f" asked {shape.queue}")
        for number, rtt_ms in enumerate(shape.client_rtt_ms):
            port = client_port(number)
            rows = self.switch_tc.ask(commands[port], f"qdisc show dev {port}")
            loss_percent = shape.client_loss_percent[number]
            if loss_percent:
                seed_loss(port, 1, rtt_ms - shape.back_ms, DELAY_LIMIT_PACKETS, loss_percent,
                          shape.seed + number)
                rows = self.switch_tc.ask([], f"qdisc show dev {port}")
            compare_netem(port, rows, "1:", rtt_ms - shape.back_ms, 0.0, DELAY_LIMIT_PACKETS,
                          loss_percent)
            if shape.client_kbps[number]:
                compare_netem(port, rows, "2:", 0.0, shape.client_kbps[number],
                              shape.access_queue_packets)

    def set_windows(self, initcwnd: list[int], initrwnd: int, congestion_control: str) -> None:
        """Every server's route to each client: its initcwnd, by client. Windows in segments."""
        for tool, server in zip(self.server_ip, self.servers):
            for client, window in zip(self.clients, initcwnd):
                Route(client.IP(), f"{server.name}-eth0",
                       {"initcwnd": window, "congestion": congestion_control},
                       via=f"{SERVER_SIDE}.254").install(tool)
        for client in self.clients:
            tool = BatchTool(client, "ip")
            Route("default", f"{client.name}-eth0", {"initrwnd": initrwnd},
                   via=f"{CLIENT_SIDE}.254").install(tool)
            tool.close()

    def set_pacing(self) -> None:
        """The fq qdisc on every server's interface, which paces what TCP sends."""
        for server in self.servers:
            interface = f"{server.name}-eth0"
            shown = server.cmd(f"tc qdisc replace dev {interface} root fq;"
                               f" tc qdisc show dev {interface}")
            if "qdisc fq " not in shown:
                raise NetworkError(f"{interface} has the queue {shown.strip()}, asked fq")

    def bottleneck(self) -> dict[str, int]:
        """Counters of the bottleneck: bytes and packets sent, drops, and the queue in packets."""
        rows = self.router_tc.ask([], f"qdisc show dev {BOTTLENECK}")
        root = next(row for row in rows if row.get("root"))
        return {"bytes": int(root["bytes"]), "packets": int(root["packets"]),
                "drops": int(root["drops"]), "queue_packets": int(root["qlen"])}

    def stop(self) -> None:
        for tool in (self.router_tc, self.switch_tc, *self.server_ip):
            tool.close()
        self.net.stop()


def shape_commands(shape: Shape) -> list[str]:
    """The `tc` commands that install a shape on the switch."""
    return [*_port_commands(CLIENT_PORT, shape.rtt_ms / 2, shape.bandwidth_kbps,
                            shape.queue_packets, shape.loss_percent),
            *_port_commands(SERVER_PORT, shape.rtt_ms / 2, shape.uplink_kbps,
                            shape.queue_packets, 0.0)]


def dumbbell_commands(shape: DumbbellShape) -> dict[str, list[str]]:
    """By port, the `tc` commands that install a shape on the dumbbell's router and client switch."""
    commands = {BOTTLENECK: _bottleneck_commands(shape), WAY_BACK: [
        f"qdisc replace dev {WAY_BACK} root handle 1: netem"
        f" delay {round(shape.back_ms * 1000)}us limit {DELAY_LIMIT_PACKETS}"]}
    for number, (rtt_ms, kbps, loss_percent) in enumerate(zip(
            shape.client_rtt_ms, shape.client_kbps, shape.client_loss_percent)):
        port = client_port(number)
        loss = f" loss random {loss_percent:g}%" if loss_percent else ""
        commands[port] = [f"qdisc replace dev {port} root handle 1: netem delay"
                          f" {round((rtt_ms - shape.back_ms) * 1000)}us"
                          f" limit {DELAY_LIMIT_PACKETS}{loss}"]
        if kbps:
            commands[port].append(f"qdisc replace dev {port} parent 1:1 handle 2: netem"
                                  f" rate {round(kbps * 1000)}bit"
                                  f" limit {shape.access_queue_packets}")
    return commands


def _bottleneck_commands(shape: DumbbellShape) -> list[str]:
    rate = f"{round(shape.bandwidth_kbps * 1000)}bit"
    root = f"qdisc replace dev {BOTTLENECK} root handle 1:"
    if shape.queue == "cake":
        # Bytes, since cake has no limit in packets; one host is not to have one share.
        return [f"{root} cake bandwidth {rate} raw flows memlimit {shape.queue_packets * 1514}"]
    if shape.queue == "fq_codel":
        # netem would keep the queue to itself: a token bucket of one packet leaves it to its child.
        return [f"{root} tbf rate {rate} burst 1514 limit 1000000000",
                f"qdisc replace dev {BOTTLENECK} parent 1:1 handle 2: fq_codel"
                f" limit {shape.queue_packets} noecn"]
    return [f"{root} netem rate {rate} limit {shape.queue_packets}"]


def client_port(number: int) -> str:
    """The client switch's port to client `number`, counted from 0; port 1 goes to the router."""
    return f"s1-eth{number + 2}"


def route_commands(initcwnd: int, initrwnd: int, congestion_control: str,
                   options: RouteOptions = RouteOptions()) -> list[str]:
    """The `ip` commands that set the windows, the server's first, then the client's."""
    return [route.command for route in _routes(initcwnd, initrwnd, congestion_control, options)]


def commands_of(job: dict[str, Any]) -> list[str]:
    """What a trial installs and fetches, for a reader of its job (engines/worker.py)."""
    if job["kind"] == "load":
        return dumbbell_commands_of(job)
    return [*shape_commands(Shape(**job["shape"])),
            *(f"sysctl -w {key}='{value}'" for key, value in job.get("sysctls", {}).items()),
            *route_commands(job["initcwnd"], job["initrwnd"], job["congestion_control"],
                            RouteOptions(**job.get("options", {}))),
            *(f"{job['client']} http://{SERVER_IP}{path}" for path in job["paths"])]


def dumbbell_commands_of(job: dict[str, Any]) -> list[str]:
    """What a load run installs and generates."""
    routes = [Route(f"{CLIENT_SIDE}.{number}", "server1-eth0",
                     {"initcwnd": window, "congestion": job["congestion_control"]},
                     via=f"{SERVER_SIDE}.254").command
              for number, window in enumerate(job["initcwnd"], start=1)]
    traffic = [f"load_client.py on client{number}: {each['arrivals_per_s']:.2f} arrivals a second,"
               f" {each['connections']} connections each"
               for number, each in enumerate(job["traffic"], start=1)]
    shape = dumbbell_commands(DumbbellShape(**job["shape"]))
    return [*itertools.chain.from_iterable(shape.values()), *routes, *traffic]


def _port_commands(port: str, delay_ms: float, rate_kbps: float,
                   queue_packets: int, loss_percent: float) -> list[str]:
    loss = f" loss random {loss_percent:g}%" if loss_percent else ""
    return [f"qdisc replace dev {port} root handle 1: netem delay {round(delay_ms * 1000)}us"
            f" limit {DELAY_LIMIT_PACKETS}{loss}",
            f"qdisc replace dev {port} parent 1:1 handle 2: netem"
            f" rate {round(rate_kbps * 1000)}bit limit {queue_packets}"]


def _routes(initcwnd: int, initrwnd: int, congestion_control: str,
            options: RouteOptions = RouteOptions()) -> tuple[Route, Route]:
    server: dict[str, Any] = {"initcwnd": initcwnd, "congestion": congestion_control}
    client: dict[str, Any] = {"initrwnd": initrwnd}
    if options.rto_min_ms:
        server["rto_min"] = options.rto_min_ms
    if options.quickack:
        client["quickack"] = 1
    if options.advertised_mss:
        client["advmss"] = options.advertised_mss
    return Route(CLIENT_IP, "server-eth0", server), Route(SERVER_IP, "client-eth0", client)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
