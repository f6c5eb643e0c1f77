"""Compares the same fetches on a stock kernel in QEMU and in the guest in virtual time.

    benchmarks/outside/stock_kernel.sh [--rtt MS,…] [--bw KBPS,…] [--iw N,…] [--size BYTES]

stock_kernel.sh brings the kernel and what it boots with. QEMU runs without KVM. With -icount an
instruction takes a nanosecond of its clock and idle time is skipped. So the clock is right however
busy this machine is, and computing takes about as long as on a slow server. The first fetch warms
the caches and does not count. In the table, “resent” counts segments retransmitted, and “to model”
is curl's time divided by the model's, where nothing was retransmitted. Exit status: 0 if every
trial passes its verdict on both kernels and both agree on windows and first flights, else 1.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import command
from firstflight.base import PROJECT
from firstflight.base.argument_types import positive_number, whole_numbers
from firstflight.base.errors import FAILED, FirstFlightError
from firstflight.base.parser import Parser
from firstflight.base.terminal import say
from firstflight.runs.results.records import PASS
from firstflight.testbed.engine import HostEngine
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.messages import Job, ObservedTrial
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.verify import judge_fetch
from vtime.console import EngineError
from vtime.uml import built_kernel

EXCHANGE = Path("/run/first-flight")  # in QEMU: the only folder of this machine that is writable
MEMORY_MB = 1024
# Wall time for the boot and all trials; a busy machine needs some minutes.
DEADLINE_S = 3600.0
HEAD = (f"{'':>15} │ {'window':^9} │ {'flight':^9} │ {'resent':^9} │"
        f" {'latency at the server, ms':^28} │ {'curl in all, ms':^28} │ {'to model':^16}\n"
        f"{'RTT':>4} {'kbit/s':>6} {'IW':>3} │ {'uml stock':^9} │ {'uml stock':^9} │"
        f" {'uml stock':^9} │ {'uml':>9} {'stock':>9} {'more':>8} │"
        f" {'uml':>9} {'stock':>9} {'more':>8} │ {'uml':>8}{'stock':>8}")


def trials_of(arguments: argparse.Namespace) -> list[Trial]:
    """A fetch for each RTT, bandwidth and window, after a first one that does not count."""
    cell = Trial(scenario="stock", rtt_ms=20, bandwidth_kbps=10_000, uplink_kbps=10_000,
                 queue_packets=1000, loss_percent=0, initcwnd=10, initrwnd=100,
                 congestion_control="cubic", client="curl", response_bytes=arguments.size,
                 repeat=0)
    return [cell, *(replace(cell, rtt_ms=rtt_ms, bandwidth_kbps=kbps, uplink_kbps=kbps,
                            initcwnd=window, repeat=1)
                    for rtt_ms in arguments.rtt for kbps in arguments.bw
                    for window in arguments.iw)]


# In QEMU ------------------------------------------------------------------------------

def inside() -> None:
    """Run the host engine, and write its observations to files. The stock kernel's init calls it.

    Idle time is skipped even while the kernel waits for this machine's disk. So a process of idle
    priority keeps the kernel busy until the first trial is done and everything is in memory.
    """
    trials: list[Job] = json.loads((EXCHANGE / "trials.json").read_text())
    engine = HostEngine()
    busy = subprocess.Popen(["chrt", "--idle", "0", sys.executable, "-c", "while True: pass"])
    observed = []
    try:
        for observation in engine.run(trials, {}, Path("/run/work")):
            busy.kill()
            observed.append(observation)
    except EngineError as error:
        print(f"the host engine: {error}")
    for number, observation in enumerate(observed):
        (EXCHANGE / f"{number}.client").write_bytes(observation.client_pcap)
        (EXCHANGE / f"{number}.server").write_bytes(observation.server_pcap)
        (EXCHANGE / f"{number}.json").write_text(json.dumps(
            {"trial": observation.trial_id, "content": observation.content, "facts": engine.facts}))


# A machine whose clock counts instructions.
COUNTING = ("-accel", "tcg", "-icount", "shift=0,sleep=off", "-cpu", "qemu64,+rdrand")


def qemu_command(arguments: argparse.Namespace, folder: Path, memory_mb: int = MEMORY_MB,
                 parameters: str = "") -> list[str]:
    """The command that boots the stock kernel on this machine's files, read-only, and `folder`.

    parameters are parameters of the kernel besides those that each boot has.
    """
    def shared(tag: str, path: str, more: str) -> list[str]:
        return ["-virtfs", f"local,path={path.replace(',', ',,')},mount_tag={tag},"
                           f"security_model=none,multidevs=remap{more}"]
    return ["qemu-system-x86_64", *COUNTING, "-m", str(memory_mb), "-nodefaults", "-no-reboot",
            "-display", "none", "-serial", "stdio",
            "-kernel", str(arguments.kernel), "-initrd", str(arguments.initrd),
            "-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable " + parameters,
            *shared("machine", "/", ",readonly=on"), *shared("exchange", str(folder), "")]


def on_stock_kernel(arguments: argparse.Namespace, jobs: list[Job], folder: Path
                    ) -> Iterator[ObservedTrial]:
    """Boot the stock kernel and yield the observations of its host engine.

    Raises FirstFlightError where one is missing.
    """
    (folder / "trials.json").write_text(json.dumps(jobs))
    (folder / "start").write_text(f"cd {shlex.quote(str(PROJECT))} && /usr/bin/python3 -m"
                                  " benchmarks.outside.stock_kernel --inside\n")
    with (folder / "console.log").open("wb") as console:
        subprocess.run(qemu_command(arguments, folder), stdin=subprocess.DEVNULL, stdout=console,
                       stderr=subprocess.STDOUT, timeout=DEADLINE_S, check=False)
    for number in range(len(jobs)):
        place = folder / f"{number}.json"
        if not place.exists():
            words = (folder / "console.log").read_text(errors="replace").strip().splitlines()
            raise FirstFlightError(f"the stock kernel ran {number} of {len(jobs)} trials:"
                                   f" {' | '.join(words[-8:])}")
        stored: dict[str, Any] = json.loads(place.read_text())
        if number == 0:
            say(f"stock kernel: Linux {stored['facts']['kernel']}")
        yield ObservedTrial(stored["trial"], stored["content"],
                          (folder / f"{number}.client").read_bytes(),
                          (folder / f"{number}.server").read_bytes())


# Side by side -------------------------------------------------------------------------

def records_of(trials: list[Trial], observations: Iterator[ObservedTrial], exact: bool
               ) -> list[Record]:
    """The judged records in the order of the trials, without the first fetch."""
    requested = {trial.id: trial for trial in trials}
    records = {one.trial_id: judge_fetch(requested[one.trial_id], one.content,
                                   one.client_pcap, one.server_pcap, exact=exact, sysctls={})
               for one in observations}
    return [records[trial.id] for trial in trials if trial.repeat]


def _two_times(mine: float | None, other: float | None) -> str:
    """Two times and their difference, in three columns."""
    if mine is None or other is None:
        return f"{'–':>9} {'–':>9} {'–':>8}"
    return f"{mine:9.2f} {other:9.2f} {other - mine:+8.2f}"


def _ratio(record: Record) -> str:
    """Measured time divided by the model's; the model covers no retransmissions."""
    if record.total_ms is None or record.model_ms is None or record.retransmissions:
        return f"{'–':>8}"
    return f"{record.total_ms / record.model_ms:8.4f}"


def row(mine: Record, other: Record) -> str:
    """The line of a cell under HEAD."""
    def both(name: str) -> str:
        return " ".join(f"{str(getattr(record, name)):>4}" for record in (mine, other))
    trial = mine.trial
    return (f"{trial.rtt_ms:4g} {trial.bandwidth_kbps:6g} {trial.initcwnd:3} │"
            f" {both('seen_initcwnd')} │ {both('seen_first_flight')} │"
            f" {both('retransmissions')} │ {_two_times(mine.latency_ms, other.latency_ms)} │"
            f" {_two_times(mine.total_ms, other.total_ms)} │ {_ratio(mine)}{_ratio(other)}")


def differ(mine: Record, other: Record) -> bool:
    """Whether windows or first flights differ, or a verdict did not pass."""
    return ((mine.seen_initcwnd, mine.seen_first_flight)
            != (other.seen_initcwnd, other.seen_first_flight)
            or {mine.verdict, other.verdict} != {PASS})


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="stock_kernel", description="A stock kernel beside the guest.")
    parser.add_argument("--rtt", type=whole_numbers, default=[20, 100, 500, 3000], metavar="MS,…")
    parser.add_argument("--bw", type=whole_numbers, default=[56, 1000, 10_000], metavar="KBPS,…")
    parser.add_argument("--iw", type=whole_numbers, default=[3, 10], metavar="N,…")
    parser.add_argument("--size", type=positive_number, default=30_000, metavar="BYTES")
    parser.add_argument("--kernel", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--initrd", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.inside:
        inside()
        return 0
    if arguments.kernel is None or arguments.initrd is None:
        parser.error("start benchmarks/outside/stock_kernel.sh, which brings the stock kernel")
    wrong, cells = compare(arguments, built_kernel())
    print(f"{cells - wrong} of {cells} cells: the same window and first flight on both, every"
          " verdict passed")
    return FAILED if wrong else 0


def compare(arguments: argparse.Namespace, kernel: Path) -> tuple[int, int]:
    """Measure on both kernels and print the table; return how many cells differ, and all cells."""
    trials = trials_of(arguments)
    jobs = [trial.job() for trial in trials]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "exchange").mkdir()
        mine = records_of(trials, UmlEngine(kernel, 1).run(jobs, {}, folder), exact=True)
        say(f"stock kernel: {len(jobs)} fetches in QEMU, some minutes")
        other = records_of(trials, on_stock_kernel(arguments, jobs, folder / "exchange"),
                           exact=False)
    print(HEAD)
    for pair in zip(mine, other):
        print(row(*pair))
        for side, record in zip(("uml", "stock"), pair):
            if record.verdict != PASS:
                print(f"     {side}: {record.verdict} {record.error or record.verdict_reason}")
    return sum(map(differ, mine, other)), len(mine)


if __name__ == "__main__":
    command.run("stock_kernel", main)
