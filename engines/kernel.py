"""What a network asks of its kernel through tc, ip and sysctl, and how it reads back what it got.

Whatever is installed is compared with what was asked: a difference is an
error, never a warning.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from mininet.node import Node

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


def compare_netem(port: str, rows: list[dict[str, Any]], handle: str, delay_ms: float,
                  rate_kbps: float, limit: int, loss_percent: float = 0.0) -> None:
    """Compare one netem qdisc of `tc -json qdisc show` with what was asked.

    delay_ms, rate_kbps, loss_percent: 0 for none. Raises NetworkError if it
    differs.
    """
    options = {row["handle"]: row.get("options", {}) for row in rows if row["kind"] == "netem"}
    seen = options.get(handle, {})
    # tc prints seconds and bytes a second, and nothing at all for a zero delay.
    seen_delay_ms = seen.get("delay", {}).get("delay", 0.0) * 1000
    seen_rate_kbps = seen.get("rate", {}).get("rate", 0) * 8 / 1000
    seen_loss = seen.get("loss-random", {}).get("loss", 0.0) * 100
    if (abs(seen_delay_ms - delay_ms) > max(DELAY_ROUNDING_MS, DELAY_ROUNDING * delay_ms)
            or abs(seen_rate_kbps - rate_kbps) > RATE_ROUNDING_KBPS
            or seen.get("limit") != limit or abs(seen_loss - loss_percent) > 0.001):
        raise NetworkError(
            f"{port} is not as asked: delay {seen_delay_ms:g} of {delay_ms:g} ms, rate"
            f" {seen_rate_kbps:g} of {rate_kbps:g} kbit/s, limit {seen.get('limit')} of"
            f" {limit} packets, loss {seen_loss:g} of {loss_percent:g} %")


@dataclass(frozen=True)
class Route:
    """A route to one host, or `default`, with the metrics that it carries."""

    to: str
    interface: str
    metrics: dict[str, Any]  # by the names that `ip -json` prints
    via: str = ""

    @property
    def command(self) -> str:
        # The metrics that ip prints by another name or in another unit than it takes.
        metrics = " ".join(f"congctl {value}" if name == "congestion" else
                           f"rto_min {value}ms" if name == "rto_min" else f"{name} {value}"
                           for name, value in self.metrics.items())
        via = f"via {self.via} " if self.via else ""
        return f"route replace {self.to} {via}dev {self.interface} {metrics}"

    def install(self, ip: BatchTool) -> None:
        rows = ip.ask([self.command], f"route show {self.to}")
        seen = {name: value for row in rows for metric in row.get("metrics", [])
                for name, value in metric.items()}
        if seen != self.metrics:
            raise NetworkError(f"the route to {self.to} has {seen}, asked {self.metrics}")
