"""Random transfers against the model: what a verdict says of settings that nobody chose.

    /usr/bin/python3 -m benchmarks.outside.transfers --transfers 2000 --seed 1 --jobs 2
    /usr/bin/python3 -m benchmarks.outside.transfers --seed 1 --only 17,93 --keep FOLDER
    /usr/bin/python3 -m benchmarks.outside.transfers --transfers 600 --seed 1 --tls
    /usr/bin/python3 -m benchmarks.outside.transfers --transfers 20000 --seed 1 --crossed --jobs 2
    /usr/bin/python3 -m benchmarks.outside.transfers --sysctl "net.ipv4.tcp_rmem=4096 20000 60000"

Samples settings by seed (RTT 1 to 5000 ms, 28 kbit/s to 10 Gbit/s, IW 1 to 100,
1 byte to 2 MB, one write or two, new and kept connections, CUBIC and Reno,
receive windows, uplinks, queues from ample to just long enough), with --tls each with
TLS 1.3 (chains, tickets, records, buffers; one write, ample queues), runs them in
guests and judges them with the verdict that users get. Prints how many retransmitted what was not
lost, and how many of those the model predicts; how many it judges, how many are off by more
than a verdict allows, and the worst ten; and for each of these what repeats it. A number and a
seed mean the same transfer, but for a queue that is just long enough: that is what the model
takes it for, under the sysctls as they are pinned.

With --crossed the transfers have everything that a question of one's own can ask for
(benchmarks/outside/crossed.py), losses among it: verdicts by their result, how many trials each
check
judged, and each failed verdict with the command that shows it.
Memory does not grow with the number of transfers.
"""

from __future__ import annotations

import heapq
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from benchmarks import command
from benchmarks.outside.crossed import AMPLE_PACKETS, CrossedTally, between, sample_crossed
from engines.job import Observation
from engines.uml import UmlEngine, built_kernel
from lab.core import files
from lab.core.command_line import Parser, Progress, positive, whole_numbers
from lab.core.errors import FAILED, OK
from lab.core.results.records import PASS
from lab.core.scenario.sysctls import sysctls_of
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record
from lab.fetches.verify.observed import EXACT
from lab.fetches.verify.transfers import transfer_of
from lab.fetches.verify.verify import is_modelled, judge
from lab.tcp.model.predict import predict
from lab.tcp.packets import capture_file

SHARE_KEPT = SHARE_PAUSED = SHARE_TIGHT = SHARE_NARROW = 0.25
# What is sent beside path and body, for how long a queue has to be: server.py's headers but for the
# digits of the size, libcurl's request but for the path, and "Connection: close" of either.
HEADER_BYTES, REQUEST_BYTES, CLOSE_BYTES = 37, 71, 19
BATCH = 2000  # transfers for one start of the guests
WORST = 10
TOLERANCE_MS = EXACT.model_ms or 0.0


@dataclass
class TransferTally:
    """What came of them; of a transfer only its line is kept, and only if it is one to look at.

    lost: transfers of which the queue dropped packets after all; unpredicted:
    of those that lost nothing and retransmitted, what the model says otherwise;
    worst: by how much total or latency are off the model's, in ms.
    """

    seed: int
    tls: bool = False
    done: int = 0
    modelled: int = 0
    predicted: int = 0  # of those that retransmitted what was not lost
    beyond: int = 0  # off by more than allowed
    beyond_tenth: int = 0
    failed: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    unpredicted: list[str] = field(default_factory=list)
    worst: list[tuple[float, str]] = field(default_factory=list)

    def add(self, record: Record) -> None:
        self.done += 1
        line = described(self.seed, record.trial, self.tls)
        if record.verdict != PASS:
            self.failed.append(f"{line}: {record.verdict_reason or record.error}")
        if record.lost_segments or record.queue_drops:
            self.lost.append(line)
        elif record.retransmissions != record.model_retransmissions:
            self.unpredicted.append(f"{line}: {record.retransmissions} segments retransmitted,"
                                    f" predicted {record.model_retransmissions}")
        elif is_modelled(record):
            self.modelled += 1
            self.predicted += bool(record.retransmissions)
            self._compare(record, line)

    def _compare(self, record: Record, line: str) -> None:
        pairs = (record.total_ms, record.model_ms), (record.latency_ms, record.model_latency_ms)
        offs = [(abs(seen - model), max(TOLERANCE_MS, EXACT.model_share * model))
                for seen, model in pairs if seen is not None and model is not None]
        off_ms = max(off for off, _ in offs)
        self.beyond += any(off > allowed for off, allowed in offs)
        self.beyond_tenth += off_ms > 0.1
        heapq.heappush(self.worst, (off_ms, f"{record.total_ms:.3f} ms: {line}"))
        if len(self.worst) > WORST:
            heapq.heappop(self.worst)

    def show(self) -> None:
        lines = (("transfers", self.done), ("lost packets to a queue too short", len(self.lost)),
                 ("retransmitted what was not lost", self.predicted + len(self.unpredicted)),
                 ("  as the model says", self.predicted), ("  otherwise", len(self.unpredicted)),
                 ("judged by the model", self.modelled),
                 ("  off by more than allowed", self.beyond),
                 ("  off by more than 0.1 ms", self.beyond_tenth),
                 ("failed verdicts", len(self.failed)))
        for name, count in lines:
            print(f"{name:<34} {count:8d}")
        for what, found in (("failed", self.failed), ("lost packets", self.lost),
                            ("retransmitted otherwise", self.unpredicted)):
            for line in found:
                print(f"{what}: {line}")
        for off_ms, line in sorted(self.worst, reverse=True):
            print(f"off {off_ms:.3f} of {line}")


def sample(seed: int, number: int) -> Trial:
    """A setting; the same for the same seed and number."""
    draw = random.Random(f"{seed} {number}")
    bandwidth_kbps = between(draw, 28, 10_000_000)
    uplink_kbps = bandwidth_kbps
    if draw.random() < SHARE_NARROW:
        uplink_kbps = max(28.0, round(bandwidth_kbps / between(draw, 1, 50), 3))
    size = int(between(draw, 1, 2_000_000))
    gap_ms, burst, earlier = 0.0, 0, 0
    if draw.random() < SHARE_PAUSED:
        gap_ms, burst = between(draw, 1, 1000), int(between(draw, 1, size))
    if draw.random() < SHARE_KEPT:
        earlier = int(between(draw, 1, 200_000))
    trial = Trial(
        scenario="transfers", rtt_ms=between(draw, 1, 5000), bandwidth_kbps=bandwidth_kbps,
        uplink_kbps=uplink_kbps, queue_packets=AMPLE_PACKETS, loss_percent=0.0,
        initcwnd=int(between(draw, 1, 101)),
        initrwnd=draw.choice((64, int(between(draw, 2, 100)))),
        congestion_control=draw.choice(("cubic", "reno")), client="libcurl",
        response_bytes=size, repeat=1, burst_bytes=burst, gap_ms=gap_ms, earlier_bytes=earlier,
        part="random", sample=number)
    if draw.random() >= SHARE_TIGHT:
        return trial
    return replace(trial, queue_packets=_needed_packets(trial))


def sample_tls(seed: int, number: int) -> Trial:
    """The same network, with what else decides over TLS."""
    draw = random.Random(f"tls {seed} {number}")
    return replace(
        sample(seed, number), queue_packets=AMPLE_PACKETS, client="curl", gap_ms=0.0,
        burst_bytes=0, earlier_bytes=0, chain_bytes=int(between(draw, 500, 30_000)),
        tickets=draw.choice((0, 1, 2, 2)), buffer_bytes=draw.choice((4096, 4096, 1024, 0)),
        record_bytes=draw.choice((16384, 16384, int(between(draw, 300, 16384)))))


def _needed_packets(trial: Trial) -> int:
    """The shortest queue without loss, as the model has it."""
    closes = 0 if trial.earlier_bytes else CLOSE_BYTES
    *before, path = (len(path) for path in trial.job()["paths"])
    headers = HEADER_BYTES + len(str(trial.response_bytes)) + closes
    earlier = HEADER_BYTES + len(str(trial.earlier_bytes)) + trial.earlier_bytes
    return predict(transfer_of(
        trial, {}, headers, REQUEST_BYTES + path + closes, earlier_bytes=earlier if before else 0,
        earlier_request_bytes=REQUEST_BYTES + sum(before) if before else 0)).peak_queue + 1


def measured(seed: int, numbers: Sequence[int], jobs: int,
             draw: Callable[[int, int], Trial] = sample,
             sysctls: Mapping[str, str] = MappingProxyType({})
             ) -> Iterator[tuple[Trial, Observation]]:
    """Run those of the seed in guests, some thousands at a time. Raises EngineError."""
    kernel = built_kernel()
    for start in range(0, len(numbers), BATCH):
        trials = {trial.id: trial for trial in (
            draw(seed, number) for number in numbers[start:start + BATCH])}
        jobs_of = [trial.job() for trial in trials.values()]
        with tempfile.TemporaryDirectory() as folder:
            for seen in UmlEngine(kernel, jobs).run(jobs_of, dict(sysctls),
                                                    Path(folder) / "guests"):
                yield trials[seen.trial_id], seen


def keep(folder: Path, seen: Observation) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for side, packets in (("client", seen.client_pcap), ("server", seen.server_pcap)):
        files.write(folder / f"{seen.trial_id}-{side}.pcap", capture_file(packets))


def described(seed: int, trial: Trial, tls: bool = False) -> str:
    two = f", {trial.burst_bytes} B before {trial.gap_ms:g} ms" if trial.gap_ms else ""
    kept = f", after {trial.earlier_bytes} B" if trial.earlier_bytes else ""
    over = (f", TLS: chain {trial.chain_bytes} B, {trial.tickets} tickets, records of"
            f" {trial.record_bytes} B, buffer {trial.buffer_bytes} B" if trial.chain_bytes else "")
    return (f"--seed {seed} {'--tls ' * tls}--only {trial.sample}: RTT {trial.rtt_ms:g} ms,"
            f" {trial.bandwidth_kbps:g} kbit/s (up {trial.uplink_kbps:g}), IW {trial.initcwnd},"
            f" initrwnd {trial.initrwnd}, {trial.response_bytes} B{two}{kept}{over},"
            f" {trial.congestion_control}, queue {trial.queue_packets}")


def asked_sysctls(words: Sequence[str]) -> dict[str, str]:
    """Of NAME=VALUE each. Raises UsageError."""
    pairs = (word.partition("=") for word in words)
    return sysctls_of({"sysctls": {name: value for name, _, value in pairs}}, "--sysctl")


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="transfers", description="Random transfers against the model.")
    parser.add_argument("--transfers", type=positive, default=1000, help="how many (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the settings (default 1)")
    parser.add_argument("--jobs", type=positive, default=1, help="guests side by side (default 1)")
    parser.add_argument("--only", type=whole_numbers, default=[], metavar="N,…",
                        help="these numbers of the seed's")
    parser.add_argument("--keep", type=Path, metavar="FOLDER",
                        help="keep the packets of failures, and of all that --only names")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--tls", action="store_true", help="each over TLS 1.3")
    kinds.add_argument("--crossed", action="store_true",
                       help="with losses, jitter, queueing disciplines, BBR and all else")
    parser.add_argument("--sysctl", action="append", default=[], metavar="NAME=VALUE",
                        help="of both hosts, otherwise than pinned; may be repeated")
    requested = parser.parse_args(words)
    sysctls = asked_sysctls(requested.sysctl)
    numbers = requested.only or range(1, requested.transfers + 1)
    tally: TransferTally | CrossedTally = (CrossedTally(requested.seed) if requested.crossed
                                   else TransferTally(requested.seed, requested.tls))
    draw = sample_crossed if requested.crossed else sample_tls if requested.tls else sample
    try:
        with Progress(len(numbers), 0, "transfers") as progress:
            for trial, seen in measured(requested.seed, numbers, requested.jobs, draw, sysctls):
                record = judge(trial, seen.content, seen.client_pcap, seen.server_pcap,
                               exact=True, sysctls=sysctls)
                tally.add(record)
                if requested.keep and (requested.only or record.verdict != PASS):
                    keep(requested.keep, seen)
                progress.step()
    finally:
        tally.show()
    return FAILED if tally.failed else OK


if __name__ == "__main__":
    command.run("transfers", main)
