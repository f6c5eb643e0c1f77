"""How fast other people's networks run (./run.sh -- …), and whether they print what they have to.

    /usr/bin/python3 -m benchmarks.speed.commands [NAME …]

The plain script runs twice and has to print the same. The bufferbloat experiment runs in two
guests; its longest round trips are compared with what a full queue adds.

Exit status: 0 if all that was requested ends as expected, else 1.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks import command
from benchmarks.command import GuestRun, in_guest
from engines.job import PROJECT
from lab.core.command_line import Parser
from lab.core.errors import FAILED, OK, UsageError

SCRIPTS = PROJECT / "benchmarks" / "speed" / "scripts"
TREE = ("mn", "--switch", "lxbr", "--controller", "none", "--topo", "tree,depth=2,fanout=8",
        "--test", "pingall")
PLAIN = ("python3", "flows.py", "10", "25", "60", "1", "20", "100")
# Name: memory, the command, what it has to print.
CASES = {
    "plain, 80 s at 10 Mbit/s": ("1G", PLAIN, "20 received, 0% packet loss"),
    "plain again": ("1G", PLAIN, "20 received, 0% packet loss"),
    "pingall of 64 hosts": ("512M", TREE, "0% dropped (4032/4032 received)"),
    "1 Gbit/s for 10 s": ("512M", ("python3", "flows.py", "1000", "1", "10", "1"), "receiver"),
    "100 flows for 10 s at 100 Mbit/s": ("512M", ("python3", "flows.py", "100", "10", "10", "100"),
                                         "receiver")}
BLOAT = "bufferbloat, 48 runs of 60 s"
QUEUES = [10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000]
FLOWS = "1,2,5,10"
NEAR = 0.10, 5.0  # of the longest round trip: as a share, in ms


def measured(memory: str, words: Sequence[str]) -> GuestRun:
    """Raises FirstFlightError where it ends with another status than 0."""
    return in_guest(words, SCRIPTS, "--memory", memory).passed()


def line(name: str, memory: str, virtual_s: float, wall_s: float) -> str:
    return f"{name:<36}{memory:>6}{virtual_s:10.1f}{wall_s:9.1f}{virtual_s / wall_s:8.1f}"


def bufferbloat() -> bool:
    """Whether its longest round trips are as a full queue makes them."""
    began = time.monotonic()
    # Of long queues and short ones each guest has as many.
    halves = [",".join(map(str, QUEUES[first::2])) for first in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda queues: measured("1G", (
            "python3", "bufferbloat.py", "--queues", queues, "--flows", FLOWS)), halves))
    print(line(BLOAT, "2 × 1G", sum(half.virtual_s for half in both), time.monotonic() - began))
    rows = sorted([float(word) for word in row.split()] for half in both
                  for row in re.findall(r" out +(\d+(?: +[\d.]+){6})$", half.stamped, re.MULTILINE))
    print("  packets  flows   Mbit/s  mean RTT  longest, ms  a full queue  UDP lost %")
    near = 0
    for packets, flows, mbps, mean_ms, longest_ms, full_ms, lost_percent in rows:
        is_near = abs(longest_ms - full_ms) <= max(NEAR[0] * full_ms, NEAR[1])
        near += is_near
        print(f"  {packets:7.0f}{flows:7.0f}{mbps:9.2f}{mean_ms:10.1f}{longest_ms:13.1f}"
              f"{full_ms:14.1f}{lost_percent:12.2f}{'' if is_near else '  apart'}")
    print(f"  {near} of {len(rows)} as a full queue makes them (within 10 % or 5 ms)")
    return len(rows) == len(QUEUES) * len(FLOWS.split(",")) == near


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="commands", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="those with a name that has this")
    names = parser.parse_args(words).names
    chosen = [name for name in (*CASES, BLOAT)
              if not names or any(part in name for part in names)]
    if not chosen:
        raise UsageError(f"there is none of {', '.join(names)}; there are {', '.join(CASES)}")
    print(f"{'':<36}{'memory':>6}{'virtual s':>10}{'wall s':>9}{'ratio':>8}")
    right, plain = True, set()
    for name in chosen:
        if name == BLOAT:
            right &= bufferbloat()
            continue
        memory, case, expected = CASES[name]
        done = measured(memory, case)
        print(line(name, memory, done.virtual_s, done.wall_s), flush=True)
        if expected not in done.stamped:
            print(f"  it printed no {expected!r}: {done.stamped.strip()[-200:]!r}")
            right = False
        if case == PLAIN:
            plain.add(done.stamped)
    if len(plain) > 1:
        print("  the plain script printed other bytes the second time")
    return OK if right and len(plain) < 2 else FAILED


if __name__ == "__main__":
    command.run("commands", main)
