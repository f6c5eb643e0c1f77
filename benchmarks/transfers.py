"""Random lossless transfers against the model: what a verdict says of settings that nobody chose.

    /usr/bin/python3 -m benchmarks.transfers --transfers 2000 --seed 1 --jobs 2
    /usr/bin/python3 -m benchmarks.transfers --seed 1 --only 17,93 --keep FOLDER

Samples settings by seed (RTT 1 to 5000 ms, 28 kbit/s to 10 Gbit/s, IW 1 to 100,
1 byte to 2 MB, one write or two, new and kept connections, CUBIC and Reno,
receive windows, uplinks, queues from ample to just long enough), runs them in
guests, judges them with the verdict that users get, and prints how many
retransmitted, were judged by the model and failed, and the worst ten. A
number and a seed always mean the same transfer.
"""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks import command
from engines.job import Observation
from engines.uml import UmlEngine, built_kernel
from lab.core import files
from lab.core.command_line import Parser, positive, whole_numbers
from lab.core.errors import FAILED, OK
from lab.core.progress import Progress
from lab.core.records import PASS
from lab.fetches.evidence import EXACT
from lab.fetches.record import Record
from lab.fetches.trial import Trial
from lab.fetches.verify import is_modelled, judge
from lab.tcp.packets import capture_file
from lab.tcp.predict import predict
from lab.tcp.transfer import Transfer

AMPLE_PACKETS = 100_000
SHARE_KEPT = SHARE_PAUSED = SHARE_TIGHT = SHARE_NARROW = 0.25
HEADER_BYTES, REQUEST_BYTES = 42, 78  # about: for how long a queue has to be
BATCH = 2000  # transfers for one start of the guests
WORST = 10


@dataclass
class Tally:
    """What came of them; off_ms: by how much the total was off the model's, with the record."""

    done: int = 0
    failed: list[Record] = field(default_factory=list)
    retransmitting: int = 0
    predicted: int = 0  # of those that retransmitted
    modelled: int = 0
    off_ms: list[tuple[float, Record]] = field(default_factory=list)

    def add(self, record: Record) -> None:
        self.done += 1
        if record.verdict != PASS:
            self.failed.append(record)
        off_ms = (record.total_ms or math.nan) - (record.model_ms or math.nan)
        self.retransmitting += bool(record.retransmissions)
        if is_modelled(record):
            self.modelled += 1
            self.predicted += bool(record.retransmissions)
            self.off_ms.append((abs(off_ms), record))


def allowed_ms(record: Record) -> float:
    assert EXACT.model_ms is not None
    return max(EXACT.model_ms, EXACT.model_share * (record.model_ms or 0.0))


def sample(seed: int, number: int) -> Trial:
    """A setting; the same for the same seed and number."""
    draw = random.Random(f"{seed} {number}")
    bandwidth_kbps = _between(draw, 28, 10_000_000)
    uplink_kbps = bandwidth_kbps
    if draw.random() < SHARE_NARROW:
        uplink_kbps = max(28.0, round(bandwidth_kbps / _between(draw, 1, 50), 3))
    size = int(_between(draw, 1, 2_000_000))
    gap_ms, burst, earlier = 0.0, 0, 0
    if draw.random() < SHARE_PAUSED:
        gap_ms, burst = _between(draw, 1, 1000), int(_between(draw, 1, size))
    if draw.random() < SHARE_KEPT:
        earlier = int(_between(draw, 1, 200_000))
    trial = Trial(
        scenario="transfers", rtt_ms=_between(draw, 1, 5000), bandwidth_kbps=bandwidth_kbps,
        uplink_kbps=uplink_kbps, queue_packets=AMPLE_PACKETS, loss_percent=0.0,
        initcwnd=int(_between(draw, 1, 101)),
        initrwnd=draw.choice((64, int(_between(draw, 2, 100)))),
        congestion_control=draw.choice(("cubic", "reno")), client="libcurl",
        response_bytes=size, repeat=1, burst_bytes=burst, gap_ms=gap_ms, earlier_bytes=earlier,
        part="random", sample=number)
    if draw.random() >= SHARE_TIGHT or uplink_kbps != bandwidth_kbps:
        return trial
    return replace(trial, queue_packets=_needed_packets(trial))


def _between(draw: random.Random, least: float, most: float) -> float:
    """Each decade as likely as the others; three decimals, as the network takes them."""
    return round(math.exp(draw.uniform(math.log(least), math.log(most))), 3)


def _needed_packets(trial: Trial) -> int:
    """The shortest queue without loss, as the model has it, or one initial window."""
    earlier = trial.earlier_bytes and trial.earlier_bytes + HEADER_BYTES
    peak = predict(Transfer(
        rtt_ms=trial.rtt_ms, bandwidth_kbps=trial.bandwidth_kbps, uplink_kbps=trial.uplink_kbps,
        initcwnd=trial.initcwnd, initrwnd=trial.initrwnd,
        congestion_control=trial.congestion_control,
        response_bytes=trial.response_bytes + HEADER_BYTES, request_bytes=REQUEST_BYTES,
        gap_ms=trial.gap_ms, burst_bytes=trial.burst_bytes + HEADER_BYTES,
        earlier_bytes=earlier, earlier_request_bytes=REQUEST_BYTES)).peak_queue
    return max(peak, trial.initcwnd) + 2  # a probe and a FIN may come on top


def measured(trials: list[Trial], jobs: int) -> Iterator[tuple[Trial, Observation]]:
    """Run them in guests. Raises EngineError."""
    kernel = built_kernel()
    by_id = {trial.id: trial for trial in trials}
    for start in range(0, len(trials), BATCH):
        jobs_of = [trial.job() for trial in trials[start:start + BATCH]]
        with tempfile.TemporaryDirectory() as folder:
            for seen in UmlEngine(kernel, jobs).run(jobs_of, {}, Path(folder) / "guests"):
                yield by_id[seen.trial_id], seen


def keep(folder: Path, seen: Observation) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for side, packets in (("client", seen.client_pcap), ("server", seen.server_pcap)):
        files.write(folder / f"{seen.trial_id}-{side}.pcap", capture_file(packets))


def show(tally: Tally) -> None:
    lines = (("transfers", tally.done), ("retransmitted", tally.retransmitting),
             ("  as the model says", tally.predicted),
             ("judged by the model", tally.modelled),
             ("  off by more than allowed",
              sum(off > allowed_ms(record) for off, record in tally.off_ms)),
             ("  off by more than 0.1 ms", sum(off > 0.1 for off, _ in tally.off_ms)),
             ("failed verdicts", len(tally.failed)))
    for name, count in lines:
        print(f"{name:<34} {count:8d}")
    for record in tally.failed[:WORST]:
        print(f"failed: {described(record.trial)}: {record.verdict_reason or record.error}")
    for off, record in sorted(tally.off_ms, key=lambda each: -each[0])[:WORST]:
        print(f"off {off:.3f} of {record.total_ms:.3f} ms: {described(record.trial)}")


def described(trial: Trial) -> str:
    two = f", {trial.burst_bytes} B before {trial.gap_ms:g} ms" if trial.gap_ms else ""
    kept = f", after {trial.earlier_bytes} B" if trial.earlier_bytes else ""
    return (f"number {trial.sample}: RTT {trial.rtt_ms:g} ms, {trial.bandwidth_kbps:g} kbit/s"
            f" (up {trial.uplink_kbps:g}), IW {trial.initcwnd}, initrwnd {trial.initrwnd},"
            f" {trial.response_bytes} B{two}{kept}, {trial.congestion_control},"
            f" queue {trial.queue_packets}")


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="transfers", description="Random lossless transfers against the model.")
    parser.add_argument("--transfers", type=positive, default=1000, help="how many (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the settings (default 1)")
    parser.add_argument("--jobs", type=positive, default=1, help="guests side by side (default 1)")
    parser.add_argument("--only", type=whole_numbers, default=[], metavar="N,…",
                        help="these numbers of the seed's")
    parser.add_argument("--keep", type=Path, metavar="FOLDER",
                        help="keep the packets of failures, and of all that --only names")
    asked = parser.parse_args(words)
    numbers = asked.only or range(1, asked.transfers + 1)
    trials = [sample(asked.seed, number) for number in numbers]
    tally = Tally()
    with Progress(len(trials), 0, "transfers") as progress:
        for trial, seen in measured(trials, asked.jobs):
            record = judge(trial, seen.content, seen.client_pcap, seen.server_pcap, exact=True,
                           sysctls={})
            tally.add(record)
            if asked.keep and (asked.only or record.verdict != PASS):
                keep(asked.keep, seen)
            progress.step()
    show(tally)
    return FAILED if tally.failed else OK


if __name__ == "__main__":
    command.run("transfers", main)
