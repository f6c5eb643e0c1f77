"""Random transfers that cross everything a question of one's own can ask for.

Half of the networks are such as people have, the others reach to the ends of
what is modelled. Each other quantity is usual, or drawn by a coin of its own,
so that any two of them meet: think times, queueing disciplines, queues of a
packet and more, slower uplinks, earlier responses and pauses, small segments,
TLS, random loss, bursts of it, jitter, BBR.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from typing import Any

from lab.core.errors import UsageError
from lab.core.results.checks import failed_checks
from lab.core.results.records import FAIL, SKIPPED
from lab.core.scenario.quantities import FLAGS
from lab.core.words import exact
from lab.fetches.scenario.own import ASKED
from lab.fetches.scenario.server import HERE
from lab.fetches.scenario.sweep import queue_of, seed_of
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.record import Record
from lab.fetches.verify.verify import every_check

AMPLE_PACKETS = 100_000
MOST_SEGMENTS = 1500  # of all responses on the connection; each packet costs a guest its time
QUEUES = ("100000", "100000", "100000", "100", "100", "1", "few", "ms", "bdp")
BBR = "bbr"


def sample_crossed(seed: int, number: int) -> Trial:
    """A setting; the same for the same seed and number."""
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
    most = MOST_SEGMENTS * values["mss"] // (1 + values.get("kept", 0))
    size = int(between(draw, *((1, 2_000_000) if wide else (300, 200_000))))
    values["response_bytes"] = min(size, most)
    if values["gap_ms"] and draw.random() < 0.5:
        values["burst_bytes"] = int(between(draw, 1, values["response_bytes"]))
    trial = Trial(scenario="transfers", repeat=1, part="random", sample=number, **values)
    return replace(trial, seed=seed_of(number, 1)) if trial.is_random else trial


def _draw_connection(draw: random.Random, values: dict[str, Any]) -> None:
    """What came before the response: TLS, earlier responses, a pause, or nothing."""
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


def _queue(draw: random.Random, rtt_ms: float, bandwidth_kbps: float) -> dict[str, Any]:
    kind = draw.choice(QUEUES)
    length = {"few": str(draw.randint(2, 12)), "ms": f"{draw.choice((5, 20, 100))}ms",
              "bdp": f"{draw.choice((0.25, 1, 4))}bdp"}.get(kind, kind)
    try:
        return queue_of(length, rtt_ms, bandwidth_kbps)
    except UsageError:  # longer than a queue can be
        return {"queue_packets": AMPLE_PACKETS}


def _sometimes(draw: random.Random, value: Any, usual: Any, share: float = 0.2) -> Any:
    return value if draw.random() < share else usual


def between(draw: random.Random, least: float, most: float) -> float:
    """Each decade as likely as the others; three decimals, as the network takes them."""
    return round(math.exp(draw.uniform(math.log(least), math.log(most))), 3)


def command_of(trial: Trial) -> str:
    """The question of one's own that is this transfer, "" where no flags ask for it."""
    if trial.earlier_bytes or trial.burst_bytes:
        return ""
    values: dict[str, Any] = {"initcwnd": trial.initcwnd, "queue": trial.queue,
                              **{name: getattr(trial, name) for name in ASKED if name != "queue"}}
    if trial.uplink_kbps == trial.bandwidth_kbps:
        del values["uplink_kbps"]
    words = [f"{FLAGS[name].flag} {said}" for name, value in values.items()
             if (said := value if isinstance(value, str) else exact(value))
             != FLAGS[name].default and (name != "system" or value != HERE)]
    return (f"./run.sh {' '.join(words)}"
            + (f" --seed {trial.sample} --repeat 1" if trial.is_random else ""))


def _values(trial: Trial) -> str:
    """What is not the default of a transfer that no flags ask for."""
    return ", ".join(f"{each.name}={value}" for each in fields(trial)
                     if (value := getattr(trial, each.name)) != each.default)


@dataclass
class CrossedTally:
    """What came of them. Of a transfer only its line is kept, and only if it is one to look at.

    unfinished: no transfer to judge, such as a client that met its deadline.
    judged: how many each check judged; failed_checks: how many failed it.
    """

    seed: int
    done: int = 0
    passed: int = 0
    modelled: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    failed_checks: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def add(self, record: Record) -> None:
        self.done += 1
        self.modelled += record.model_ms is not None
        names = failed_checks(every_check(), record) if record.verdict == FAIL else []
        self.failed_checks.update(set(names))
        self.judged.update(check.name for check in every_check()
                           if check.judged(record) or check.name in names)
        if record.verdict not in (FAIL, SKIPPED):
            self.passed += 1
            return
        trial = record.trial
        requested = command_of(trial) or _values(trial)
        line = (f"--seed {self.seed} --crossed --only {trial.sample}:"
                f" {record.verdict_reason or record.error}\n    {requested}")
        (self.failed if record.verdict == FAIL else self.unfinished).append(line)

    def show(self) -> None:
        """Print the results, then how many each check judged, then those to look at."""
        for name, count in (("transfers", self.done), ("passed", self.passed),
                            ("failed verdicts", len(self.failed)),
                            ("not finished, so not judged", len(self.unfinished)),
                            ("with a prediction of the model", self.modelled)):
            print(f"{name:<34} {count:8d} {100 * count / max(1, self.done):6.1f} %")
        print("\njudged by")
        for check in every_check():
            count = self.judged[check.name]
            if count:
                print(f"  {check.name:<32} {count:8d} {100 * count / self.done:6.1f} %"
                      f" {self.failed_checks[check.name]:8d} failed")
        for what, found in (("failed", self.failed), ("not finished", self.unfinished)):
            for line in found:
                print(f"{what}: {line}")
