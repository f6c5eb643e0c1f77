"""Judges random transfers, and compares their times with the model's.

    /usr/bin/python3 -m benchmarks.outside.transfers --transfers 2000 --seed 1 --jobs 2
    /usr/bin/python3 -m benchmarks.outside.transfers --seed 1 --only 17,93 --keep FOLDER
    /usr/bin/python3 -m benchmarks.outside.transfers --transfers 600 --seed 1 --tls
    /usr/bin/python3 -m benchmarks.outside.transfers --transfers 20000 --seed 1 --crossed --jobs 2
    /usr/bin/python3 -m benchmarks.outside.transfers --transfers 600 --seed 1 --uploads
    /usr/bin/python3 -m benchmarks.outside.transfers --sysctl "net.ipv4.tcp_rmem=4096 20000 60000"

Draws settings by seed: RTT 1 to 5000 ms, 28 kbit/s to 10 Gbit/s, IW 1 to 100, 1 byte to 2 MB in one
write or two, new and used connections, CUBIC and Reno, receive windows, uplinks, and queues from
ample to just long enough. With --tls each transfer has TLS 1.3 (chains, tickets, records, buffers),
one write, and an ample queue. The transfers run in guests and get the verdict that users get.
Prints the verdicts, how many trials each check judged, how many retransmitted without a loss and
whether the model predicts that, how many deviate from the model by more than a verdict allows, and
the ten that deviate most. Each transfer that is named has the command that repeats it. A seed and a
number always mean the same transfer, with one exception: the model decides the length of a queue
that is just long enough.

With --crossed the transfers have every parameter that a question by flags can have. Half of the
networks are usual ones; the others reach the limits of the model. Each other parameter has its
usual value, or is drawn independently, so that any two of them meet: think times, queueing
disciplines, queues from one packet on, slower uplinks, earlier responses and pauses, small
segments, TLS with resumed sessions (mostly on slow links), random loss, bursts of loss, jitter,
BBR, curl, libcurl, wget, and nginx. With --uploads each of these requests has a body, and the
client a window of its own; there is no TLS then. Memory does not grow with the number of transfers.
"""

from __future__ import annotations

import heapq
import math
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from benchmarks import command
from firstflight.base import files
from firstflight.base.argument_types import positive_number, whole_numbers
from firstflight.base.errors import FAILED, OK, UsageError
from firstflight.base.parser import Parser
from firstflight.base.places import named_after
from firstflight.base.progress import Progress
from firstflight.base.words import format_lossless
from firstflight.findings.quantities import FLAGS
from firstflight.model.predict import predict
from firstflight.net.headers import MSS
from firstflight.net.segments import capture_file
from firstflight.parameters import TLS, default, of_subject
from firstflight.runs.results.checks import failed_checks
from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from firstflight.runs.sysctls import sysctls_of
from firstflight.scenario.setting_sweep import queue_of
from firstflight.setting.seeds import netem_seed
from firstflight.setting.server import HERE
from firstflight.study.questions.question import WITH_FLAGS
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.integrity import is_modelled
from firstflight.workloads.fetch.record.observed import EXACT
from firstflight.workloads.fetch.record.transfers import transfer_of
from firstflight.workloads.fetch.verify.verify import CHECKS, judge_fetch
from vtime.uml import built_kernel

OF_TLS = tuple(row.name for row in of_subject(TLS))

# Transfers with every parameter (--crossed) ------------------------------------------

AMPLE_PACKETS = 100_000
MOST_SEGMENTS = 1500  # of all responses on a connection; each packet takes a guest time
QUEUES = ("100000", "100000", "100000", "100", "100", "1", "few", "ms", "bdp")
BBR = "bbr"
T = TypeVar("T")


def sample_crossed(seed: int, number: int) -> Trial:
    """Draw a setting; the same seed and number give the same one."""
    draw = random.Random(f"crossed {seed} {number}")
    wide = draw.random() < 0.5
    rtt_ms = between(draw, *((1, 5000) if wide else (5, 500)))
    bandwidth_kbps = between(draw, *((28, 10_000_000) if wide else (500, 1_000_000)))
    values: dict[str, Any] = {
        "rtt_ms": rtt_ms, "bandwidth_kbps": bandwidth_kbps, "uplink_kbps": bandwidth_kbps,
        "initcwnd": int(between(draw, 1, 101)),
        "initrwnd": draw.choice((100, 64, int(between(draw, 2, 100)))),
        "congestion_control": draw.choice(("cubic", "cubic", "reno", BBR)),
        "qdisc": _sometimes(draw, draw.choice(("fq", "fq_codel", "cake")), "fifo", 0.4),
        "mss": _sometimes(draw, int(between(draw, 88, 1448)), 1448),
        "jitter_ms": _sometimes(draw, between(draw, 0.01, rtt_ms / 4), 0.0, 0.1),
        "loss_percent": _sometimes(draw, draw.choice((0.5, 1.0, 2.0, 5.0, 10.0)), 0.0),
        "gap_ms": _sometimes(draw, between(draw, 1, 1000), 0.0),
    }
    if values["loss_percent"]:
        values["loss_burst"] = draw.choice((1.0, 1.0, 2.0, 4.0))
    if draw.random() < 0.25:
        values["uplink_kbps"] = max(28.0, round(bandwidth_kbps / between(draw, 1, 50), 3))
    values.update(_queue(draw, rtt_ms, bandwidth_kbps))
    _draw_connection(draw, values)
    _draw_programs(random.Random(f"programs {seed} {number}"), values)
    most = MOST_SEGMENTS * values["mss"] // (1 + values.get("kept", 0))
    size = int(between(draw, *((1, 2_000_000) if wide else (300, 200_000))))
    values["response_bytes"] = min(size, most)
    if values["gap_ms"] and draw.random() < 0.5:
        values["burst_bytes"] = int(between(draw, 1, values["response_bytes"]))
    trial = Trial(scenario="transfers", repeat=1, part="random", sample=number, **values)
    return replace(trial, seed=netem_seed(number, 1)) if trial.is_random else trial


def sample_upload(seed: int, number: int) -> Trial:
    """Draw the network of sample_crossed, with requests that have a body, over plain HTTP."""
    draw = random.Random(f"upload {seed} {number}")
    trial = sample_crossed(seed, number)
    if draw.random() < 0.6:  # without this, the model would not cover most of the uploads
        trial = replace(
            trial, congestion_control=draw.choice(("cubic", "reno")), qdisc="fifo", jitter_ms=0.0,
            loss_percent=0.0, loss_burst=1.0, seed=0, queue_packets=AMPLE_PACKETS, queue_from="")
    plain = {name: default(name) for name in (*OF_TLS, "server", "http")}
    most = MOST_SEGMENTS * MSS // (1 + len(trial.before))
    return replace(
        trial, **plain, client="libcurl",
        request_bytes=min(int(between(draw, 1, 2_000_000)), most),
        client_initcwnd=draw.choice((0, 10, int(between(draw, 1, 101)))),
        response_bytes=draw.choice((trial.response_bytes, int(between(draw, 1, 2000)))),
        burst_bytes=0)


def _draw_connection(draw: random.Random, values: dict[str, Any]) -> None:
    """Draw what comes before the response: TLS, earlier responses, a pause, or nothing."""
    kind = draw.choice(("new", "new", "tls", "kept", "earlier"))
    values["client"] = "curl" if kind == "tls" else "libcurl"
    if kind == "tls":
        values.update(
            chain_bytes=int(between(draw, 500, 30_000)), tickets=draw.choice((0, 1, 2, 2)),
            buffer_bytes=draw.choice((4096, 4096, 1024, 0)),
            record_bytes=draw.choice((16384, 16384, int(between(draw, 300, 16384)))))
    if kind == "kept":
        values.update(kept=draw.choice((1, 2, 5)),
                      idle_ms=_sometimes(draw, between(draw, 1, 60_000), 0.0, 0.5))
    if kind == "earlier":
        values["earlier_bytes"] = min(int(between(draw, 1, 200_000)),
                                      MOST_SEGMENTS * values["mss"])


def _draw_programs(draw: random.Random, values: dict[str, Any]) -> None:
    """Draw client, server, and resumed sessions; most of the latter are on slow links."""
    if values.get("chain_bytes"):
        values["server"] = _sometimes(draw, "nginx", "builtin", 0.1)
        if values["server"] == "nginx":
            values.update(gap_ms=0.0, buffer_bytes=4096)
        if values["tickets"] and draw.random() < 0.4:
            values["resumed"] = 1
            if draw.random() < 0.6:
                values["bandwidth_kbps"] = between(draw, 28, 2000)
                values["uplink_kbps"] = min(values["uplink_kbps"], values["bandwidth_kbps"])
    elif not values.get("idle_ms"):
        one_response = not (values.get("kept") or values.get("earlier_bytes"))
        values["client"] = draw.choice(("libcurl", "libcurl", "curl",
                                        "wget" if one_response else "curl"))


def _queue(draw: random.Random, rtt_ms: float, bandwidth_kbps: float) -> dict[str, Any]:
    """Draw the length of the queue; return its fields."""
    kind = draw.choice(QUEUES)
    length = {"few": str(draw.randint(2, 12)), "ms": f"{draw.choice((5, 20, 100))}ms",
              "bdp": f"{draw.choice((0.25, 1, 4))}bdp"}.get(kind, kind)
    try:
        return queue_of(length, rtt_ms, bandwidth_kbps)
    except UsageError:  # longer than a queue can be
        return {"queue_packets": AMPLE_PACKETS}


def _sometimes(draw: random.Random, value: T, usual: T, share: float = 0.2) -> T:
    """The value in a share of all draws, else the usual one."""
    return value if draw.random() < share else usual


def between(draw: random.Random, least: float, most: float) -> float:
    """Draw a number, with each decade equally likely; three decimals, as the network takes."""
    return round(math.exp(draw.uniform(math.log(least), math.log(most))), 3)


def command_of(trial: Trial) -> str:
    """The command that measures this transfer, "" where no flags express it."""
    if trial.earlier_bytes or trial.burst_bytes:
        return ""
    values: dict[str, Any] = {
        "initcwnd": trial.initcwnd, "queue": trial.queue,
        **{name: getattr(trial, name) for name in WITH_FLAGS if name != "queue"}}
    if trial.uplink_kbps == trial.bandwidth_kbps:
        del values["uplink_kbps"]
    if not trial.client_initcwnd:
        del values["client_initcwnd"]
    words = [f"{FLAGS[name].flag} {typed}{'k' * name.endswith('_kbps')}"
             for name, value in values.items()
             if (typed := value if isinstance(value, str) else format_lossless(value))
             != FLAGS[name].default and (name != "system" or value != HERE)]
    if not trial.chain_bytes and trial.client != "libcurl":
        words.append(f"--client {trial.client}")
    return (f"./run.sh {' '.join(words)}"
            + (f" --seed {trial.sample} --repeat 1" if trial.is_random else ""))


def _values(trial: Trial) -> str:
    """The fields of a trial that differ from their defaults, in words."""
    return ", ".join(f"{field.name}={value}" for field in fields(trial)
                     if (value := getattr(trial, field.name)) != field.default)


# Transfers against the model ----------------------------------------------------------

# The shares of transfers on a used connection, with a pause between two writes, with a queue that
# is just long enough, and with a slower uplink.
SHARE_KEPT = SHARE_PAUSED = SHARE_TIGHT = SHARE_NARROW = 0.25
# Bytes by which the length of a queue is computed: server.py's headers without the digits of the
# size, libcurl's request without the path, and "Connection: close" in either.
HEADER_BYTES, REQUEST_BYTES, CLOSE_BYTES = 37, 71, 19
BATCH = 2000  # transfers that are measured with one start of the guests
WORST = 10
TOLERANCE_MS = EXACT.model_ms or 0.0


@dataclass
class Tally:
    """Counts of the transfers, and lines on those that somebody has to look at."""

    flags: str  # together with a transfer's number they repeat it
    done: int = 0
    passed: int = 0
    modelled: int = 0  # judged by the model; the next three are among them
    beyond: int = 0  # deviates by more than a verdict allows
    beyond_tenth: int = 0  # deviates by more than 0.1 ms
    predicted: int = 0  # retransmitted, as the model says
    lost: int = 0  # lost packets
    judged: Counter[str] = field(default_factory=Counter)  # by check
    failed_checks: Counter[str] = field(default_factory=Counter)  # by check
    # "unpredicted": nothing was lost, and the model says another number of retransmissions.
    lines: dict[str, list[str]] = field(default_factory=lambda: {
        "failed": [], "not finished": [], "unpredicted": []})
    # The largest deviations of total time or latency from the model, in ms, with their lines.
    worst: list[tuple[float, str]] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Count a judged transfer."""
        trial = record.trial
        line = f"{self.flags} --only {trial.sample}: "
        requested = f"\n    {command_of(trial) or _values(trial)}"
        self.done += 1
        self.passed += record.verdict not in (FAIL, SKIPPED)
        if record.verdict in (FAIL, SKIPPED):
            self.lines["failed" if record.verdict == FAIL else "not finished"].append(
                f"{line}{record.verdict_reason or record.error}{requested}")
        names = failed_checks(record) if record.verdict == FAIL else []
        self.failed_checks.update(set(names))
        self.judged.update(check.name for check in CHECKS
                           if check.applies_to(record) or check.name in names)
        if record.verdict == SKIPPED:
            return
        if record.lost_segments or record.queue_drops:
            self.lost += 1
        elif (record.retransmissions != record.model_retransmissions
              and not trial.is_random):  # jitter reorders, which the model does not follow
            self.lines["unpredicted"].append(
                f"{line}{record.retransmissions} segments retransmitted, predicted"
                f" {record.model_retransmissions}{requested}")
        elif is_modelled(record):
            self.modelled += 1
            self.predicted += bool(record.retransmissions)
            self._compare(record, f"{line}{record.total_ms:.3f} ms{requested}")

    def _compare(self, record: Record, line: str) -> None:
        """Compare the times of a transfer with the model's; line is what `show` may print."""
        pairs = (record.total_ms, record.model_ms), (record.latency_ms, record.model_latency_ms)
        deviations = [(abs(value - model), max(TOLERANCE_MS, EXACT.model_share * model))
                      for value, model in pairs if value is not None and model is not None]
        deviation_ms = max(deviation for deviation, _ in deviations)
        self.beyond += any(deviation > allowed for deviation, allowed in deviations)
        self.beyond_tenth += deviation_ms > 0.1
        heapq.heappush(self.worst, (deviation_ms, line))
        if len(self.worst) > WORST:
            heapq.heappop(self.worst)

    def show(self) -> None:
        """Print the counts, how many transfers each check judged, and the lines."""
        for name, count in (
                ("transfers", self.done), ("passed", self.passed),
                ("failed verdicts", len(self.lines["failed"])),
                ("not finished, so not judged", len(self.lines["not finished"])),
                ("lost packets to a queue, or at random", self.lost),
                ("judged by the model", self.modelled),
                ("  deviate by more than allowed", self.beyond),
                ("  deviate by more than 0.1 ms", self.beyond_tenth),
                ("  retransmitted as it says", self.predicted),
                ("retransmitted, not as it says", len(self.lines["unpredicted"]))):
            print(f"{name:<38} {count:8d} {100 * count / max(1, self.done):6.1f} %")
        print("\njudged by")
        for check in CHECKS:
            if count := self.judged[check.name]:
                print(f"  {check.name:<36} {count:8d} {100 * count / self.done:6.1f} %"
                      f" {self.failed_checks[check.name]:8d} failed")
        for what, to_show in self.lines.items():
            for line in to_show:
                print(f"{what}: {line}")
        for deviation_ms, line in sorted(self.worst, reverse=True):
            print(f"deviates by {deviation_ms:.3f} ms: {line}")


def sample(seed: int, number: int) -> Trial:
    """Draw a setting; the same seed and number give the same one."""
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
    """Draw the network of sample(), with TLS."""
    draw = random.Random(f"tls {seed} {number}")
    return replace(
        sample(seed, number), queue_packets=AMPLE_PACKETS, client="curl", gap_ms=0.0,
        burst_bytes=0, earlier_bytes=0, chain_bytes=int(between(draw, 500, 30_000)),
        tickets=draw.choice((0, 1, 2, 2)), buffer_bytes=draw.choice((4096, 4096, 1024, 0)),
        record_bytes=draw.choice((16384, 16384, int(between(draw, 300, 16384)))))


def _needed_packets(trial: Trial) -> int:
    """The shortest queue without loss, by the model, in packets."""
    closes = 0 if trial.earlier_bytes else CLOSE_BYTES
    *before, path = (len(path) for path in trial.job()["paths"])
    headers = HEADER_BYTES + len(str(trial.response_bytes)) + closes
    earlier = HEADER_BYTES + len(str(trial.earlier_bytes)) + trial.earlier_bytes
    transfer = transfer_of(trial, {}, headers, REQUEST_BYTES + path + closes)
    if before:
        transfer = replace(transfer, earlier_bytes=earlier,
                           earlier_request_bytes=REQUEST_BYTES + sum(before))
    return predict(transfer).peak_queue + 1


def measured(seed: int, numbers: Sequence[int], jobs: int,
             draw: Callable[[int, int], Trial] = sample,
             sysctls: Mapping[str, str] = MappingProxyType({})
             ) -> Iterator[tuple[Trial, ObservedTrial]]:
    """Yield these transfers of a seed, measured in guests, BATCH at a time. Raises EngineError."""
    kernel = built_kernel()
    for start in range(0, len(numbers), BATCH):
        trials = {trial.id: trial for trial in (
            draw(seed, number) for number in numbers[start:start + BATCH])}
        jobs_of = [trial.job() for trial in trials.values()]
        with tempfile.TemporaryDirectory() as folder:
            for observation in UmlEngine(kernel, jobs).run(jobs_of, dict(sysctls),
                                                           Path(folder) / "guests"):
                yield trials[observation.trial_id], observation


SAMPLES = {"tls": sample_tls, "uploads": sample_upload, "crossed": sample_crossed}


def keep(folder: Path, observation: ObservedTrial) -> None:
    """Write the packets of a trial as two captures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for side, packets in (("client", observation.client_pcap), ("server", observation.server_pcap)):
        files.write(named_after(folder, observation.trial_id, f"-{side}.pcap"),
                    capture_file(packets))


def requested_sysctls(words: Sequence[str]) -> dict[str, str]:
    """The sysctls of words like NAME=VALUE. Raises UsageError."""
    pairs = (word.partition("=") for word in words)
    return sysctls_of({"sysctls": {name: value for name, _, value in pairs}}, "--sysctl")


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="transfers", description="Random transfers against the model.")
    parser.add_argument("--transfers", type=positive_number, default=1000,
                        help="how many (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="of the settings (default 1)")
    parser.add_argument("--jobs", type=positive_number, default=1,
                        help="guests side by side (default 1)")
    parser.add_argument("--only", type=whole_numbers, default=[], metavar="N,…",
                        help="these numbers of the seed's")
    parser.add_argument("--keep", type=Path, metavar="FOLDER",
                        help="keep the packets of failures, and of all that --only names")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--tls", action="store_true", help="each over TLS 1.3")
    kinds.add_argument("--uploads", action="store_true",
                       help="as --crossed, with requests that have a body")
    kinds.add_argument("--crossed", action="store_true",
                       help="with losses, jitter, queueing disciplines, BBR and all else")
    parser.add_argument("--sysctl", action="append", default=[], metavar="NAME=VALUE",
                        help="of both hosts, otherwise than pinned; may be repeated")
    requested = parser.parse_args(words)
    sysctls = requested_sysctls(requested.sysctl)
    numbers = requested.only or range(1, requested.transfers + 1)
    kind = next((name for name in SAMPLES if getattr(requested, name)), "")
    draw = SAMPLES.get(kind, sample)
    tally = Tally(f"--seed {requested.seed}{f' --{kind}' if kind else ''}")
    try:
        with Progress(len(numbers), 0, "transfers") as progress:
            for trial, observation in measured(requested.seed, numbers, requested.jobs, draw,
                                               sysctls):
                record = judge_fetch(trial, observation.content,
                               observation.client_pcap, observation.server_pcap, exact=True,
                               sysctls=sysctls)
                tally.add(record)
                if requested.keep and (requested.only or record.verdict != PASS):
                    keep(requested.keep, observation)
                progress.step()
    finally:
        tally.show()
    return FAILED if tally.lines["failed"] else OK


if __name__ == "__main__":
    command.run("transfers", main)
