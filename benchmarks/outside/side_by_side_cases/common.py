"""What cases with Mininet import: functions that print measurements between two hosts."""

from __future__ import annotations

import re
import statistics
from typing import Any


def say(name: str, number: float) -> None:
    """Print an observation, in the form that side_by_side.py reads."""
    print(f"= {name} {number}", flush=True)


def ping(net: Any, first: str, second: str, count: int = 10) -> None:
    """Print the median RTT of pings, without the first one, which waits for ARP."""
    text = net[first].cmd(f"ping -n -c {count} -i 0.2 {net[second].IP()}")
    say("rtt_ms", statistics.median_low(
        float(word) for word in re.findall(r"time=([\d.]+) ms", text)[1:]))


def iperf3(net: Any, first: str, second: str, flags: str = "-t 6") -> None:
    """Print the throughput at the receiver in Mbit/s."""
    net[second].cmd("iperf3 -s -D; until ss -Hltn | grep -q :5201; do sleep 0.1; done")
    text = net[first].cmd(f"iperf3 -f k -c {net[second].IP()} {flags}")
    rates = re.findall(r"([\d.]+) Kbits/sec.*receiver", text)
    if not rates:
        print(text)
    say("throughput_mbit", float(rates[-1]) / 1000)
