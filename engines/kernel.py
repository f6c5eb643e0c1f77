"""What a network asks of its kernel (tc, ip, /proc/sys), and how it reads back what it got.

Whatever is installed is compared with what was asked: a difference is an
error, never a warning.
"""

from __future__ import annotations

import errno
import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any

from mininet.node import Node

from engines.netem_seed import seed_random
from engines.network import network_of
from engines.routes import Route
from engines.shaping import Netem, Port

# Waits on the kernel or on a tool of ours; far above what either needs.
TOOL_DEADLINE_S = 20.0

SYSCTLS = Path("/proc/sys")
# IPv6 would send neighbour discovery through the bottleneck.
NO_IPV6 = {"net.ipv6.conf.all.disable_ipv6": "1"}
CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"
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

    def install_port(self, port: Port) -> list[dict[str, Any]]:
        """Install what a port carries; what tc tells of it. Raises NetworkError if that differs."""
        rows = self.ask(port.commands, port.question)
        for number, qdisc in enumerate(port.qdiscs, start=1):
            if isinstance(qdisc, Netem) and qdisc.random:
                seed_random(port.name, number, qdisc.seed)
                rows = self.ask([], port.question)
        wrong = port.differences(rows)
        if wrong:
            raise NetworkError(f"{port.name} is not as asked: {'; '.join(wrong)}")
        return rows

    def install_route(self, route: Route) -> None:
        """Install a route. Raises NetworkError where ip tells otherwise."""
        wrong = route.differences(self.ask([route.command], route.question))
        if wrong:
            raise NetworkError(f"the route to {route.to} has {'; '.join(wrong)}")

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


def pin_sysctls(host: Node, pinned: dict[str, str],
                asked: dict[str, str] | None = None) -> dict[str, str]:
    """Set sysctls in the host's network namespace and return what it has then.

    Those that a scenario asked for come on top of the pinned ones. Of the
    latter, one that this kernel does not have is left out. Raises KernelLacks
    where it lacks one that was asked for, NetworkError where it refuses a value
    or keeps another one.
    """
    with network_of(host.pid):
        write_sysctls(NO_IPV6, host.name)
        seen = write_sysctls({**pinned, **(asked or {})}, host.name)
    lacking = sorted(set(asked or {}) - set(seen))
    if lacking:
        raise KernelLacks(f"this kernel has no sysctl {', '.join(lacking)}")
    return seen


def write_sysctls(asked: dict[str, str], of: str, root: Path = SYSCTLS) -> dict[str, str]:
    """Write sysctls to their files below root and read them back; of: whose they are.

    No shell sees the values: they may come from a stranger's scenario. See pin_sysctls.
    """
    seen = {}
    for key, value in asked.items():
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
            raise NetworkError(f"{of} cannot have {key} = {value!r}: {error.strerror}") from error
        seen[key] = " ".join(path.read_text(encoding="ascii").split())
    wrong = {key: value for key, value in seen.items() if value != " ".join(asked[key].split())}
    if wrong:
        raise NetworkError(f"sysctls on {of} are not as asked: {wrong}")
    return seen


def switch_offloads_off(node: Node) -> None:
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


def set_pacing(server: Node, paced: bool) -> None:
    """The fq qdisc on a server's interface, which paces what TCP sends; or none, as at first."""
    interface = f"{server.name}-eth0"
    change = f"replace dev {interface} root fq" if paced else f"del dev {interface} root"
    shown = server.cmd(f"tc qdisc {change}; tc qdisc show dev {interface}")
    if ("qdisc fq " in shown) != paced:
        raise NetworkError(f"{interface} has the queue {shown.strip()}, asked"
                           f" {'fq' if paced else 'none'}")
