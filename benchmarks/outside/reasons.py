"""Checks the reasons of answers: random questions are asked again without each of their limits.

    /usr/bin/python3 -m benchmarks.outside.reasons [--questions 200] [--seed 1]

It shares no code with what finds the reasons. It reads the words of the answer and the two
requested rows of trials.csv, and measures what happens without a limit as a user would, by --rwnd,
--bw, --queue, --qdisc and --cc. Prints each answer that its measurements contradict, and counts.
Exit status 1 where one is wrong.
"""

from __future__ import annotations

import csv
import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import command
from firstflight.base import PROJECT
from firstflight.base.argument_types import positive_number, whole_number
from firstflight.base.errors import FAILED, OK
from firstflight.base.parser import Parser

SAME_SHARE = 0.01  # differences below this share of the time count as none
PRINTED_MS = 0.06  # the answer's times are rounded by less
FRAME_BYTES = 1514
KINDS = {"round trips": r"link is idle", "protects": r"protects?: ", "hides": r"without any limit",
         "cause": r"^The [a-z ]+: with (?:an endless queue|no )",
         "used before": r"connection was used before",
         "same flights": r"flights? with either window",
         "not found": r"no single reason"}


@dataclass(frozen=True)
class Question:
    """One network and two windows."""

    rtt_ms: float
    kbps: float
    size: int
    windows: tuple[int, int]
    rwnd: int
    queue: int
    qdisc: str
    control: str
    kept: int

    def flags(self) -> list[str]:
        return ["--rtt", f"{self.rtt_ms:g}", "--bw", f"{self.kbps:g}", "--size", f"{self.size}",
                "--iw", ",".join(map(str, self.windows)), "--rwnd", f"{self.rwnd}", "--queue",
                f"{self.queue}", "--qdisc", self.qdisc, "--cc", self.control, "--kept",
                f"{self.kept}"]

    def without(self, limit: str) -> Question:
        """The question without a limit, by the limit's name in answers."""
        segments = -(-self.size * (1 + self.kept) // 1448)
        unpaced = replace(self, qdisc="fifo" if self.qdisc == "fq" else self.qdisc,
                          control="cubic" if self.control == "bbr" else self.control)
        endless = replace(self, queue=1_000_000, qdisc="fq" if self.qdisc == "fq" else "fifo")
        return {"receive window": replace(self, rwnd=max(1000, self.rwnd, 2 * segments)),
                "bandwidth": replace(self, kbps=min(10 * self.kbps, 10_000_000)),
                "queue": endless, "pacing": unpaced}[limit]

    def limits(self) -> list[str]:
        return [limit for limit in ("receive window", "bandwidth", "queue", "pacing")
                if self.without(limit) != self]


def drawn(draw: random.Random) -> Question:
    low = draw.choice((2, 3, 4, 10))
    return Question(round(draw.uniform(5, 300), 1), round(10 ** draw.uniform(2.7, 5.2)),
                    round(10 ** draw.uniform(3.5, 5.5)), (low, low + draw.choice((4, 7, 10, 22))),
                    draw.choice((10, 18, 44, 100, 1000)), round(10 ** draw.uniform(0.8, 3)),
                    draw.choice(("fifo", "fifo", "fifo", "fq", "fq_codel")),
                    draw.choice(("cubic", "cubic", "reno", "bbr")), draw.choice((0, 0, 0, 1)))


def asked(question: Question, results: Path, *more: str) -> tuple[str, list[dict[str, str]]]:
    """Ask the driver; return its answer on one line, and the rows of trials.csv."""
    done = subprocess.run([str(PROJECT / "run.sh"), *question.flags(), "--quiet", "--no-figures",
                           "--jobs", "1", "--fresh", "--results", str(results), *more],
                          capture_output=True, text=True, check=False)
    newest = max((results / "own").glob("*-uml"))
    with (newest / "trials.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    return " ".join(done.stdout.split()), rows


def saved(question: Question, results: Path) -> tuple[float, float] | None:
    """What the larger window saves, and below what it counts as nothing, in ms.

    None where a verdict failed.
    """
    _, rows = asked(question, results, "--no-reasons")
    if len(rows) != 2 or any(row["verdict"] != "pass" for row in rows):
        return None
    base, larger = (float(row["total_ms"]) for row in rows)
    return base - larger, SAME_SHARE * base + PRINTED_MS


def named(words: str, question: Question) -> list[str]:
    """The limits that are named before the colon of an answer."""
    return [limit for limit in question.limits() if limit in words.partition(":")[0]]


def wrong(question: Question, kind: str, sentence: str, rows: Sequence[Mapping[str, str]],
          results: Path) -> str:
    """What contradicts an answer, in words; "" for nothing."""
    base, larger = (float(row["total_ms"]) for row in rows)
    gained, same = base - larger, SAME_SHARE * base + PRINTED_MS
    if kind == "round trips":
        # A dropped packet was never on the link, so its repeat costs no time there.
        again = [int(row["retransmissions"]) - int(row["queue_drops"]) - int(row["random_drops"])
                 for row in rows]
        busy_ms = abs(again[0] - again[1]) * FRAME_BYTES * 8 / question.kbps
        return "" if gained > 0 and busy_ms <= same else f"{busy_ms:.1f} ms are repeats on the link"
    if kind in ("same flights", "used before", "hides"):
        everything = question
        for limit in question.limits():
            everything = everything.without(limit)
        lifted = saved(everything, results)
        if lifted is None:
            return ""
        if kind != "hides":
            return "" if lifted[0] <= lifted[1] else f"all lifted, {lifted[0]:.1f} ms are saved"
        if lifted[0] <= lifted[1] - 2 * PRINTED_MS:
            return f"all lifted, {lifted[0]:.1f} ms are saved"
        for limit in named(sentence, question):
            back = question
            for other in question.limits():
                back = back.without(other) if other != limit else back
            put_back = saved(back, results)
            if put_back is None:
                continue
            hides = put_back[0] <= put_back[1]
            if "none of them alone" in sentence:  # but all of them together
                hides = put_back[0] > put_back[1] - 2 * PRINTED_MS
            if not hides:
                return f"with the {limit} put back, {put_back[0]:.1f} ms are saved"
        return ""
    for limit in named(sentence, question):
        lifted = saved(question.without(limit), results)
        if lifted is None:
            continue
        if kind == "protects" and lifted[0] >= -lifted[1] + 2 * PRINTED_MS:
            return f"without the {limit}, {lifted[0]:.1f} ms are saved"
        if kind == "cause" and abs(lifted[0]) > abs(gained) / 5 + PRINTED_MS and \
                (lifted[0] > 0) == (gained > 0):
            return f"without the {limit}, {lifted[0]:.1f} ms are saved"
    return ""


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="reasons", description="Random questions, and whether their reasons hold.")
    parser.add_argument("--questions", type=positive_number, default=200, metavar="N",
                        help="how many (default 200)")
    parser.add_argument("--seed", type=whole_number, default=1, metavar="N", help="(default 1)")
    arguments = parser.parse_args(argv)
    draw, counts, faults = random.Random(arguments.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.questions):
            question = drawn(draw)
            text, rows = asked(question, Path(folder))
            if len(rows) != 2 or any(row["verdict"] != "pass" for row in rows):
                counts["not verified"] += 1
                continue
            sentence = next((part for part in re.split(r"(?<=\.) (?=[A-Z])", text)
                             if any(re.search(form, part) for form in KINDS.values())), "")
            kind = next((kind for kind, form in KINDS.items() if re.search(form, sentence)), "none")
            counts[kind] += 1
            if why := wrong(question, kind, sentence, rows, Path(folder)):
                faults += 1
                print(f"./run.sh {' '.join(question.flags())}\n  {sentence}\n  but {why}")
    said = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    print(f"{said}; {faults} wrong")
    return FAILED if faults else OK


if __name__ == "__main__":
    command.run("reasons", main)
