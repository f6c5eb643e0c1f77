"""Judges random pages and traces, and judges them again after one change in what was observed.

    /usr/bin/python3 -m benchmarks.outside.crossed --trials 1000 --seed 1 --jobs 2
    /usr/bin/python3 -m benchmarks.outside.crossed --workload trace --seed 1 --only 17,93

Draws them by seed (benchmarks.outside.draws). Pages: up to 120 objects of 1 byte to 300 kB on up to
four hosts, named at any place of each other, with parse and think times, over 1 to 8 connections of
HTTP/1.1, in clear text or over TLS, or over HTTP/2, with chains of 900 bytes to 60 kB, records of
512 bytes and more, and resumed sessions, from server.py or nginx. Traces: writes at once and in
trains, or up to 20 requests with pauses, under eight congestion controls, with and without
validation, Nagle's algorithm, quick acknowledgements, outages, windows that stay and other least
timeouts. Both at RTTs of 1 to 900 ms and 100 kbit/s to 1 Gbit/s, with slower uplinks, queues of 2
to 1000 packets, fq_codel, cake and fq, random loss also in bursts, jitter, segments of 88 to 1448
bytes, IW 1 to 100, receive windows of 4 segments and more, and other sysctls. A third are such that
the model of TCP, or the rules of a trace's TCP, cover them.

Each is measured and judged, and none may be refused. Then one packet of a capture is lost, forged,
or moved by 11 µs or more, or one sample of a trace's window is changed, and the trial is judged
again: none may pass. Only packets whose departure is judged are moved: data, unless the server
paces. Only samples that the rules judge are changed. Prints what was refused and what passed.
Memory does not grow with the number of trials.
"""

from __future__ import annotations

import random
import re
import struct
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks import command
from benchmarks.outside import draws
from benchmarks.outside.transfers import between, keep
from firstflight.base.argument_types import positive_number, whole_numbers
from firstflight.base.errors import FAILED, OK
from firstflight.base.parser import Parser
from firstflight.base.progress import Progress
from firstflight.net import pcap
from firstflight.net.headers import headers
from firstflight.net.pcap import RECORD
from firstflight.net.segments import SERVER_PORTS
from firstflight.runs.results.records import PASS
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.page.trial import PageTrial
from firstflight.workloads.page.verify import judge_page
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.verify import judge_trace
from firstflight.workloads.trace.window import FIELDS, WINDOW_FILE
from vtime.uml import built_kernel

BATCH = 100  # trials that are measured with one start of the guests
# The errors of connections that TCP gave up, which is no fault of a trial. Linux gives up SYNs
# about 135 s after the first one (tcp_syn_retries, tcp_syn_linear_timeouts). It happens with a
# queue of two packets, where 23 connections retransmit their SYNs at one tick. Linux gives up data
# after 15 retransmissions (tcp_retries2): where losses come in bursts, a burst may take them all.
GAVE_UP = re.compile(r"Failed to connect to \S+ port \d+ after 13[4-9]\d{3} ms"
                     r"|server: TimeoutError: \[Errno 110\]")

AnyTrial = PageTrial | TraceTrial
AnyRecord = PageRecord | TraceRecord


@dataclass(frozen=True)
class Workload:
    """A kind of trials, and how they are drawn, by seed and number, and judged."""

    name: str  # as messages have it, in the plural
    draw: Callable[[int, int], AnyTrial]
    judge: Callable[[AnyTrial, ObservedTrial], AnyRecord]


def _judge_page(trial: AnyTrial, observed: ObservedTrial) -> PageRecord:
    assert isinstance(trial, PageTrial)
    return judge_page(trial, observed, exact=True)[0]


def _judge_trace(trial: AnyTrial, observed: ObservedTrial) -> TraceRecord:
    assert isinstance(trial, TraceTrial)
    return judge_trace(trial, observed, exact=True)


WORKLOADS = {"page": Workload("pages", draws.page, _judge_page),
             "trace": Workload("traces", draws.trace, _judge_trace)}


# One thing changed --------------------------------------------------------------------

def tampered(observed: ObservedTrial, draw: random.Random, paces: bool, has_rules: bool
             ) -> tuple[str, ObservedTrial]:
    """Change one packet of one capture, or one sample; return what was done, and the result.

    paces says whether a timer spreads the packets that the server sends, has_rules whether the
    rules judge all samples of the trace's window.
    """
    if has_rules and draw.random() < 0.25:
        return _resampled(observed, draw)
    side = draw.choice(("client", "server"))
    frames = list(pcap.frames(getattr(observed, f"{side}_pcap")))
    number = draw.randrange(len(frames))
    what = draw.choice(("lost", "forged", "moved"))
    time_ns, head, size = frames[number]
    parsed = headers(head, size)
    if what == "moved" and (parsed is None or not parsed.payload_bytes
                            or paces and parsed.from_port in SERVER_PORTS):
        what = "lost"  # a move might pass: nobody judges when this packet departs
    if what == "lost":
        del frames[number]
    elif what == "forged":  # a copy with another IP identification, 3.5 µs later
        identification = struct.pack(">H", (int.from_bytes(head[18:20], "big") + 30_000) % 65_536)
        frames.insert(number + 1, (time_ns + 3_500, head[:18] + identification + head[20:], size))
    else:
        # Earlier or later by 11 µs to 10 ms, a whole number of microseconds, and by 450 ns more.
        by_ns = draw.choice((-1, 1)) * round(between(draw, 11_400, 10_000_000)) // 1000 * 1000 + 450
        frames[number] = time_ns + by_ns, head, size
    frames.sort(key=lambda frame: frame[0])
    capture = b"".join(RECORD.pack(*divmod(at_ns, 10**9), len(kept), wire_bytes) + kept
                       for at_ns, kept, wire_bytes in frames)
    return (f"packet {number + 1} of the {side}'s capture {what}",
            replace(observed, **{f"{side}_pcap": capture}))


def _resampled(observed: ObservedTrial, draw: random.Random) -> tuple[str, ObservedTrial]:
    """Make the congestion window a segment larger in one sample."""
    lines = observed.files[WINDOW_FILE].decode("ascii").splitlines()
    number, place = draw.randrange(1, len(lines)), FIELDS.index("cwnd")
    cells = lines[number].split(",")
    cells[place] = str(int(cells[place]) + 1)
    lines[number] = ",".join(cells)
    files = {**observed.files, WINDOW_FILE: ("\n".join(lines) + "\n").encode("ascii")}
    return f"sample {number} of the window a segment larger", replace(observed, files=files)


def _says_unjudged(changed: AnyRecord, record: AnyRecord) -> bool:
    """Whether the judge of the change says that one more sample is judged by no rule.

    After a part of a write the rules know the window only once it is full again.
    """
    return (isinstance(changed, TraceRecord) and isinstance(record, TraceRecord)
            and (changed.rule_unjudged or 0) > (record.rule_unjudged or 0))


# Counts -------------------------------------------------------------------------------

@dataclass
class Tally:
    """Counts of the trials of one workload, and the lines to print.

    A part is an object of a page or a sample of a trace's window. It is covered where the model of
    TCP or the rules predict it.
    """

    workload: Workload
    keeps: Path | None = None  # the folder for packets of what is refused or passes wrongly
    verdicts: Counter[str] = field(default_factory=Counter)
    covered: int = 0  # trials with a part that is covered
    parts: int = 0
    covered_parts: int = 0
    changed: int = 0  # trials that were judged again after a change
    worst_ms: float = 0.0  # the largest deviation of a page from the model
    refused: list[str] = field(default_factory=list)  # trials as measured, with the reason
    gave_up: list[str] = field(default_factory=list)  # trials in which TCP gave up a connection
    passed: list[str] = field(default_factory=list)  # trials that passed after a change

    def add(self, trial: AnyTrial, observed: ObservedTrial) -> None:
        """Judge a trial as it was measured, and once more after a change."""
        name = (trial.page if isinstance(trial, PageTrial) else trial.trace).removeprefix("n")
        record = self.workload.judge(trial, observed)
        self.verdicts[record.outcome] += 1
        if not record.counts:
            kind = self.gave_up if GAVE_UP.search(record.error) else self.refused
            kind.append(f"{name}: {record.why_not[:300]}")
            self._keep(observed)
            return
        predicted = self._note(record)
        draw = random.Random(f"tamper {trial.id}")
        has_rules = isinstance(record, TraceRecord) and predicted == record.samples
        what, changed = tampered(observed, draw, trial.paces, has_rules)
        self.changed += 1
        other = self.workload.judge(trial, changed)
        if other.verdict == PASS and not _says_unjudged(other, record):
            self.passed.append(f"{name}: {what}")
            self._keep(observed)

    def _note(self, record: AnyRecord) -> int:
        """Count the parts of a trial; return how many of them are covered."""
        if isinstance(record, PageRecord):
            parts, predicted = len(record.trial.requested), record.model_objects or 0
            self.worst_ms = max(self.worst_ms, record.model_deviation_ms or 0.0)
        else:
            parts, predicted = record.samples or 0, record.rule_checked or 0
        self.parts += parts
        self.covered_parts += predicted
        self.covered += predicted > 0
        return predicted

    def _keep(self, observed: ObservedTrial) -> None:
        if self.keeps is not None:
            keep(self.keeps, observed)

    def show(self, seed: int) -> None:
        """Print the counts, and a line for each trial that was refused or passed wrongly."""
        name, count = self.workload.name, self.verdicts.total()
        print(f"{count} {name}, seed {seed}: "
              + ", ".join(f"{number} {word}" for word, number in self.verdicts.items()))
        if name == "pages":
            print(f"  the model predicts {self.covered_parts} objects of {self.parts}, of"
                  f" {self.covered} pages, the worst to {self.worst_ms:.4f} ms")
        else:
            print(f"  rules judge {self.covered_parts} samples of {self.parts}, of {self.covered}"
                  " traces")
        print(f"  {self.changed} with one thing changed: {len(self.passed)} passed")
        for line in (*self.refused, *self.passed):
            print(f"  {line}")
        print(f"  {len(self.gave_up)} with a connection for which TCP gave up"
              + (f": {', '.join(line.partition(':')[0] for line in self.gave_up)}"
                 if self.gave_up else ""))


def main(words: Sequence[str]) -> int:
    parser = Parser({}, prog="crossed",
                    description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=positive_number, default=200, metavar="N",
                        help="how many of each workload (default %(default)s)")
    parser.add_argument("--workload", choices=tuple(WORKLOADS), action="append",
                        help="only this one; may be repeated (default: both)")
    parser.add_argument("--seed", type=positive_number, default=1, metavar="N",
                        help="seed of the settings (default %(default)s)")
    parser.add_argument("--jobs", type=positive_number, default=2, metavar="N",
                        help="guests side by side (default %(default)s)")
    parser.add_argument("--only", type=whole_numbers, metavar="N,…",
                        help="the trials of these numbers (default: all)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER",
                        help="keep the packets of what is refused or passes wrongly")
    arguments = parser.parse_args(words)
    numbers = arguments.only or list(range(arguments.trials))
    kernel = built_kernel()
    tallies = [Tally(WORKLOADS[name], arguments.keep) for name in arguments.workload or WORKLOADS]
    with Progress(len(numbers) * len(tallies), 0, "trials") as progress:
        for tally in tallies:
            for first in range(0, len(numbers), BATCH):
                trials = [tally.workload.draw(arguments.seed, number)
                          for number in numbers[first:first + BATCH]]
                by_id = {trial.id: trial for trial in trials}
                with tempfile.TemporaryDirectory(prefix="first-flight-") as folder:
                    engine = UmlEngine(kernel, arguments.jobs)
                    for observed in engine.run([trial.job() for trial in trials], {},
                                               Path(folder) / "run"):
                        tally.add(by_id[observed.trial_id], observed)
                        progress.step()
            tally.show(arguments.seed)
    return FAILED if any(tally.refused or tally.passed for tally in tallies) else OK


if __name__ == "__main__":
    command.run("crossed", main)
