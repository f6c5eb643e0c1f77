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

Whatever is installed is read back from the kernel and compared with what was
asked; a difference is an error, never a warning.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from mininet.net import Mininet
from mininet.node import Node
from mininet.nodelib import LinuxBridge
from mininet.topo import Topo

from engines.netem import seed_loss

CLIENT_IP = "10.0.0.1"
SERVER_IP = "10.0.0.2"
CLIENT_PORT = "s1-eth1"  # the switch's port to the client: the bottleneck
SERVER_PORT = "s1-eth2"  # the switch's port to the server: the way back

# netem counts the packets that it delays against its limit, so the limit of
# the delay stage has to exceed any bandwidth-delay product ever asked for.
DELAY_LIMIT_PACKETS = 1_000_000
# Waits on the kernel or on a tool of ours; far above what either needs.
TOOL_DEADLINE_S = 20.0
# tc takes delays in whole microseconds and prints them cut off, long ones
# with six digits; kernels take whole bytes a second.
DELAY_ROUNDING_MS = 0.0025
DELAY_ROUNDING = 1e-5
RATE_ROUNDING_KBPS = 0.008

# Every knob that changes what a short transfer does, pinned to the value a
# current distribution has, but for the metrics cache: with it a connection
# would inherit the RTT and ssthresh of the one before it.
TCP_SYSCTLS: dict[str, str] = {
    "net.ipv4.tcp_adv_win_scale": "1",
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_dsack": "1",
    "net.ipv4.tcp_early_retrans": "3",
    "net.ipv4.tcp_ecn": "2",
    "net.ipv4.tcp_fastopen": "1",
    "net.ipv4.tcp_frto": "2",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    "net.ipv4.tcp_mtu_probing": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_recovery": "1",
    "net.ipv4.tcp_reordering": "3",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_slow_start_after_idle": "1",
    "net.ipv4.tcp_syn_retries": "6",
    "net.ipv4.tcp_synack_retries": "5",
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_window_scaling": "1",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
}


class NetworkError(Exception):
    """The network could not be built, or is not what was asked."""


class KernelLacks(NetworkError):
    """This kernel cannot do what is asked, whoever asks."""


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


class BatchTool:
    """A `tc` or `ip` that stays open and answers command after command.

    Starting a process costs some ten milliseconds inside the guest, a command
    to a running one less than one. Every question is a `show` with JSON
    output, one line; whatever else comes before that line is the tool's
    complaint about an earlier command.
    """

    def __init__(self, node: Node, tool: str) -> None:
        self.name = f"{tool} on {node.name}"
        # stdbuf: the tools flush their output only at the end of a batch.
        self.process = node.popen(
            ["stdbuf", "-oL", tool, "-json", "-statistics", "-force", "-batch", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.buffer = b""

    def ask(self, commands: list[str], question: str) -> list[dict[str, Any]]:
        """Run commands, then the question; return the question's JSON rows.

        Raises NetworkError with the tool's own words if any command failed.
        """
        lines = "".join(f"{line}\n" for line in [*commands, question])
        try:
            self.process.stdin.write(lines.encode())
            self.process.stdin.flush()
        except OSError as error:
            raise NetworkError(f"{self.name} has ended: {error}") from error
        complaints: list[str] = []
        while True:
            line = self._line()
            if line.startswith("["):
                break
            if line.strip():
                complaints.append(line.strip())
        if complaints:
            raise _complaint(self.name, commands, complaints)
        rows: list[dict[str, Any]] = json.loads(line)
        return rows

    def _line(self) -> str:
        deadline = time.monotonic() + TOOL_DEADLINE_S
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [],
                                        max(0.0, deadline - time.monotonic()))
            if not ready:
                raise NetworkError(f"{self.name} did not answer in {TOOL_DEADLINE_S:g} s")
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                raise NetworkError(f"{self.name} ended: {self.buffer.decode().strip()}")
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(TOOL_DEADLINE_S)


def _complaint(name: str, commands: list[str], complaints: list[str]) -> NetworkError:
    text = "; ".join(complaints)
    if "qdisc kind is unknown" in text:
        return KernelLacks("this kernel has no netem qdisc")
    return NetworkError(f"{name} refused '{' · '.join(commands)}': {text}")


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


class StarTopo(Topo):
    """client – switch – server, plain links; all shaping comes afterwards."""

    def build(self) -> None:
        switch = self.addSwitch("s1", cls=Switch)
        self.addLink(self.addHost("client", ip=f"{CLIENT_IP}/24"), switch)
        self.addLink(self.addHost("server", ip=f"{SERVER_IP}/24"), switch)


class Star:
    """The running star: built once, then re-shaped trial by trial."""

    def __init__(self, sysctls: dict[str, str] | None = None) -> None:
        # Mininet's own fixLimits() raises the file limit to 16384, and mnexec
        # then closes each possible descriptor, one system call apiece, for
        # every node it starts: two seconds a network. Its buffer sizes are
        # not wanted either, TCP_SYSCTLS pins ours.
        Mininet.inited = True
        self.net = Mininet(topo=StarTopo(), controller=None, switch=Switch,
                           autoStaticArp=True, build=False, waitConnected=False)
        self.net.build()
        self.net.start()
        self.client: Node = self.net["client"]
        self.server: Node = self.net["server"]
        self.switch: Switch = self.net["s1"]
        self._wait_until_forwarding()
        self._switch_offloads_off()
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

        Raises NetworkError where the kernel's read-back differs, NoNetem
        where it has no netem.
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
        _compare_port(CLIENT_PORT, rows, shape.rtt_ms / 2, shape.bandwidth_kbps,
                      shape.queue_packets, shape.loss_percent)
        rows = self.tc.ask([], f"qdisc show dev {SERVER_PORT}")
        _compare_port(SERVER_PORT, rows, shape.rtt_ms / 2, shape.uplink_kbps,
                      shape.queue_packets, 0.0)
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

    def _wait_until_forwarding(self) -> None:
        deadline = time.monotonic() + TOOL_DEADLINE_S
        while not self.switch.forwarding():
            if time.monotonic() > deadline:
                raise NetworkError(f"the switch does not forward after {TOOL_DEADLINE_S:g} s")
            time.sleep(0.01)

    def _switch_offloads_off(self) -> None:
        """Switch TSO, GSO and GRO off on every interface, and look whether they are.

        With them on, veth carries skbs of several segments: netem's limit,
        loss and rate would act on those, and one ACK would answer many.
        """
        for node in (self.client, self.server, self.switch):
            for interface in node.intfNames():
                if interface == "lo":
                    continue
                shown = node.cmd(f"ethtool -K {interface} tso off gso off gro off;"
                                 f" ethtool -k {interface}")
                on = [name for name in ("tcp-segmentation-offload",
                                        "generic-segmentation-offload",
                                        "generic-receive-offload")
                      if f"{name}: off" not in shown]
                if on:
                    raise NetworkError(f"{interface} keeps {', '.join(on)} on: {shown.strip()}")


def pin_sysctls(host: Node, asked: dict[str, str]) -> dict[str, str]:
    """Set the sysctls in the host's network namespace and return what it has then.

    A key that this kernel does not have is left out of the result. Raises
    NetworkError where the kernel keeps another value.
    """
    settings = " ".join(f"{key}='{value}'" for key, value in asked.items())
    # IPv6 would send neighbour discovery through the bottleneck.
    shown = host.cmd(f"sysctl -q -w net.ipv6.conf.all.disable_ipv6=1 2>/dev/null;"
                     f" sysctl -e -q -w {settings}; sysctl -e {' '.join(asked)}")
    seen = {}
    for line in shown.splitlines():
        key, equals, value = line.partition(" = ")
        if equals and key in asked:
            seen[key] = " ".join(value.split())
    wrong = {key: value for key, value in seen.items() if value != asked[key]}
    algorithm = "net.ipv4.tcp_congestion_control"
    if algorithm in wrong:
        raise KernelLacks(f"this kernel has no congestion control {asked[algorithm]}"
                          f" (sudo modprobe tcp_{asked[algorithm]})")
    if wrong or algorithm not in seen:
        raise NetworkError(f"sysctls on {host.name} are not as asked: {wrong or shown.strip()}")
    return seen


def shape_commands(shape: Shape) -> list[str]:
    """The `tc` commands that install a shape on the switch."""
    return [*_port_commands(CLIENT_PORT, shape.rtt_ms / 2, shape.bandwidth_kbps,
                            shape.queue_packets, shape.loss_percent),
            *_port_commands(SERVER_PORT, shape.rtt_ms / 2, shape.uplink_kbps,
                            shape.queue_packets, 0.0)]


def route_commands(initcwnd: int, initrwnd: int, congestion_control: str) -> list[str]:
    """The `ip` commands that set the windows, the server's first, then the client's."""
    return [route.command for route in _routes(initcwnd, initrwnd, congestion_control)]


def commands_of(job: dict[str, Any]) -> list[str]:
    """What a trial installs and fetches, for a reader (lab.trial.Trial.job)."""
    return [*shape_commands(Shape(**job["shape"])),
            *route_commands(job["initcwnd"], job["initrwnd"], job["congestion_control"]),
            *(f"{job['client']} http://{SERVER_IP}{path}" for path in job["paths"])]


def _port_commands(port: str, delay_ms: float, rate_kbps: float,
                   queue_packets: int, loss_percent: float) -> list[str]:
    loss = f" loss random {loss_percent:g}%" if loss_percent else ""
    return [f"qdisc replace dev {port} root handle 1: netem delay {round(delay_ms * 1000)}us"
            f" limit {DELAY_LIMIT_PACKETS}{loss}",
            f"qdisc replace dev {port} parent 1:1 handle 2: netem"
            f" rate {round(rate_kbps * 1000)}bit limit {queue_packets}"]


def _compare_port(port: str, rows: list[dict[str, Any]], delay_ms: float, rate_kbps: float,
                  queue_packets: int, loss_percent: float) -> None:
    """Compare `tc -json qdisc show` with what was asked; raise NetworkError if it differs."""
    options = {row["handle"]: row.get("options", {}) for row in rows if row["kind"] == "netem"}
    outer, inner = options.get("1:", {}), options.get("2:", {})
    # tc prints seconds and bytes a second, and nothing at all for a zero delay.
    seen_delay_ms = outer.get("delay", {}).get("delay", 0.0) * 1000
    seen_rate_kbps = inner.get("rate", {}).get("rate", 0) * 8 / 1000
    seen_loss = outer.get("loss-random", {}).get("loss", 0.0) * 100
    if (abs(seen_delay_ms - delay_ms) > max(DELAY_ROUNDING_MS, DELAY_ROUNDING * delay_ms)
            or abs(seen_rate_kbps - rate_kbps) > RATE_ROUNDING_KBPS
            or inner.get("limit") != queue_packets
            or abs(seen_loss - loss_percent) > 0.001):
        raise NetworkError(
            f"{port} is not as asked: delay {seen_delay_ms:g} of {delay_ms:g} ms, rate"
            f" {seen_rate_kbps:g} of {rate_kbps:g} kbit/s, queue {inner.get('limit')} of"
            f" {queue_packets} packets, loss {seen_loss:g} of {loss_percent:g} %")


@dataclass(frozen=True)
class _Route:
    """A route to one host with the metrics that it carries."""

    to: str
    interface: str
    metrics: dict[str, Any]  # by the names that `ip -json` prints

    @property
    def command(self) -> str:
        # The metrics that ip prints by another name or in another unit than it takes.
        metrics = " ".join(f"congctl {value}" if name == "congestion" else
                           f"rto_min {value}ms" if name == "rto_min" else f"{name} {value}"
                           for name, value in self.metrics.items())
        return f"route replace {self.to} dev {self.interface} {metrics}"

    def install(self, ip: BatchTool) -> None:
        rows = ip.ask([self.command], f"route show {self.to}")
        seen = {name: value for row in rows for metric in row.get("metrics", [])
                for name, value in metric.items()}
        if seen != self.metrics:
            raise NetworkError(f"the route to {self.to} has {seen}, asked {self.metrics}")


def _routes(initcwnd: int, initrwnd: int, congestion_control: str,
            options: RouteOptions = RouteOptions()) -> tuple[_Route, _Route]:
    server: dict[str, Any] = {"initcwnd": initcwnd, "congestion": congestion_control}
    client: dict[str, Any] = {"initrwnd": initrwnd}
    if options.rto_min_ms:
        server["rto_min"] = options.rto_min_ms
    if options.quickack:
        client["quickack"] = 1
    if options.advertised_mss:
        client["advmss"] = options.advertised_mss
    return _Route(CLIENT_IP, "server-eth0", server), _Route(SERVER_IP, "client-eth0", client)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
