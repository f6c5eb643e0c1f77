"""Asks random questions, and checks each reason in the answers by what other questions measure.

    /usr/bin/python3 -m benchmarks.outside.reasons --questions 100 --seed 1
    /usr/bin/python3 -m benchmarks.outside.reasons --seed 1 --only 17,93

Draws questions by seed: fetches and uploads, pages, traces of two responses with a pause between
them, and kernels with another parameter of a module. Their networks have one to four limits: a
receive window, a slow uplink, a short queue, fq_codel or fq, random loss, jitter, a pause, a long
chain, a sysctl. Each question is asked, and its reason is read from the exported JSON. Then it is
asked again, with and without each limit, and with --no-reasons. Whether a reason is right follows
from the times in trials.csv alone. A reason is right where:

- "round trips": with a hundredth of the RTT, and an uplink that delays no acknowledgement, the
  larger window saves less than a quarter of what it saved.
- Limits that are named beside round trips: without each of them the saving differs by more than a
  third of the larger saving. A limit that was requested and is not named makes the reason wrong
  where the saving without it alone differs by more than two thirds of the larger, or in its sign.
- Limits that are the cause: without each of them less than 30 % of the change is left.
- Limits that hide a saving: without one of them the larger window saves time; or it saves time
  without all of them, and not with one of them alone.
- Limits that protect: without each of them the larger window takes longer.
- "same flights": without all limits, or without one, the larger window saves nothing either.
- "may be chance": the interval of the saving holds zero.

This shares no code with what finds reasons: only savings and their intervals are read. Prints each
question with the judgement of its reason, and counts. Exit status: 1 if more than one reason in a
hundred is wrong, more than one in twenty is not known, or an answer has no reason, else 0.
"""

from __future__ import annotations

import csv
import json
import statistics
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy import stats

from benchmarks import command
from benchmarks.outside.random_questions import (FREE, LATE, SHARED, SUBJECTS, TRACE, Question,
                                                 drawn, typed_words)
from firstflight.base.argument_types import positive_number, whole_numbers
from firstflight.base.errors import FAILED, OK
from firstflight.base.parser import Parser

PROJECT = Path(__file__).resolve().parent.parent.parent
PART = 0.01  # a change by a smaller part of the time does not count
FEW_PAGES = "6"  # repeats of a page, where its question has more
TOGETHER = {"page": 2}  # how many limits are varied in one run, by subject; 3 for all others
RTT, CHANCE, NOT_KNOWN = "round trips", "may be chance", "not found"
SAME = ("same flights", "no round trip less", "same round trips", "same window",
        "fits one flight")


@dataclass(frozen=True)
class Saving:
    """What the larger window saves of a time."""

    of_ms: float  # the time under the smaller window
    saved_ms: float
    half_ms: float  # half the width of the 95 % interval of saved_ms

    @property
    def sign(self) -> int:
        """1 for a saving, -1 for a loss, 0 where neither is sure or large enough to count."""
        if abs(self.saved_ms) <= max(self.half_ms, PART * self.of_ms):
            return 0
        return 1 if self.saved_ms > 0 else -1

    @property
    def is_chance(self) -> bool:
        """Whether the interval is wide and holds zero."""
        return self.half_ms > PART * self.of_ms and abs(self.saved_ms) <= self.half_ms


# The limits that one run varies, as a list of values behind their flag. The function tells by a row
# of trials.csv whether the trial is without the limit.
_LISTED: Mapping[str, Callable[[Mapping[str, str]], bool]] = {
    "receive window": lambda row: row["initrwnd"] == "1000",
    "uplink": lambda row: row["uplink_kbps"] == row["bandwidth_kbps"],
    "queue": lambda row: int(row["queue_packets"]) >= 100_000,
    "random loss": lambda row: float(row["loss_percent"]) == 0,
    "jitter": lambda row: float(row["jitter_ms"]) == 0,
    "pacing": lambda row: row["qdisc"] == "fifo",
    "certificate chain": lambda row: row["chain_bytes"] == "400",
    "number of connections": lambda row: row["connections"] == "60",
    "tcp_sack": lambda row: row["sysctl"].endswith("=1"),
    SHARED: lambda row: row["http"] == "1.1"}


# What is typed ------------------------------------------------------------------------------

def typed(words: Sequence[str], folder: Path) -> dict[str, Any]:
    """Ask a question, and return its exported JSON. Raises RuntimeError without an answer."""
    file = folder / "answer.json"
    file.unlink(missing_ok=True)
    done = subprocess.run(
        [str(PROJECT / "run.sh"), *words, "--jobs", "1", "--quiet",
         "--no-figures", "--fresh", "--results", str(folder / "results"), "--export", "json",
         str(file)], capture_output=True, text=True, cwd=PROJECT, check=False)
    if not file.is_file():
        raise RuntimeError(f"status {done.returncode}: {done.stderr.strip()[-300:]}")
    answer: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return answer


def trials_of(flags: Mapping[str, str], folder: Path) -> list[dict[str, str]]:
    """Ask a question without reasons, and return the rows of trials.csv that passed."""
    answer = typed([*typed_words(flags, folder), "--no-reasons"], folder)
    path = folder / "results" / answer["run"] / "trials.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["verdict"] == "pass"]


def saving_in(rows: Sequence[Mapping[str, str]]) -> Saving:
    """What the larger window saves in the trials of one setting, with Student's interval."""
    if len({row["initcwnd"] + row.get("client_initcwnd", "") for row in rows}) < 2:
        raise RuntimeError("of one window no trial passed")
    window = "client_initcwnd" if rows[0].get("client_initcwnd", "0") != "0" else "initcwnd"
    time_ms = next(name for name in ("page_ms", "total_ms", "latency_ms") if name in rows[0])
    small, large = sorted({int(row[window]) for row in rows})
    times = [{row["repeat"]: float(row[time_ms]) for row in rows if int(row[window]) == size}
             for size in (small, large)]
    saved = [times[0][repeat] - times[1][repeat] for repeat in times[0] if repeat in times[1]]
    half_ms = 0.0
    if len(saved) > 1 and max(saved) - min(saved) > 0.001:
        half_ms = (stats.t.ppf(0.975, len(saved) - 1) * statistics.stdev(saved)
                   / len(saved) ** 0.5)
    return Saving(statistics.mean(times[0].values()), statistics.mean(saved), float(half_ms))


def read(answer: Mapping[str, Any]) -> tuple[Saving, str]:
    """The saving of a question with two windows, and the reason in its table ("" for none)."""
    for finding in answer["findings"]:
        for table in finding["tables"]:
            names = [(column["group"], column["name"], column["unit"])
                     for column in table["columns"]]
            for place, (_, name, unit) in enumerate(names):
                if name in ("improved", "earlier") and unit == "ms":
                    row = table["rows"][-1]
                    half_ms = _half(row[place])
                    columns = [column for _, column, _ in names]
                    if name == "improved":
                        of_ms = _number(row[columns.index("from")])
                    else:
                        of_ms = _number(table["rows"][0][names.index(("", "page", "ms"))])
                    reason = row[columns.index("reason")] if "reason" in columns else ""
                    return Saving(of_ms, _number(row[place]), half_ms), reason or ""
    raise RuntimeError("no comparison in the answer")


def _number(cell: Any) -> float:
    value: float = cell["value"] if isinstance(cell, dict) else cell
    return value


def _half(cell: Any) -> float:
    interval = cell.get("interval") if isinstance(cell, dict) else None
    width: float = interval[1] - interval[0] if interval else 0.0
    return width / 2


def always_there(question: Question) -> Iterator[str]:
    """The limits that each question has, whether or not a flag requests them."""
    yield "queue"
    if question.subject == "page":
        yield LATE
        if question.flags.get("--http") == "2":
            yield "certificate chain"


# What is right -------------------------------------------------------------------------------

class Judge:
    """Measures a question again without some limits, and decides on its reason."""

    def __init__(self, question: Question, own: Saving, folder: Path) -> None:
        self.question, self.own, self.folder = question, own, folder
        self.known: dict[frozenset[str], Saving] = {frozenset(): own}

    def without(self, *limits: str) -> Saving:
        """What the larger window saves without some limits."""
        if frozenset(limits) not in self.known:
            flags = self._cheaper(self.question.without(*limits))
            self.known[frozenset(limits)] = saving_in(trials_of(flags, self.folder))
        return self.known[frozenset(limits)]

    def measure(self, names: Sequence[str]) -> None:
        """Measure the question with and without these limits, several in one run."""
        flags = self.question.flags
        if TRACE in flags:  # a trace has one value of each
            return
        listed = [name for name in names if name in _LISTED and FREE[name][0] in flags and not (
            name == "queue" and "--qdisc" in flags or name == "random loss"
            and "--burst-loss" in flags)]
        step = TOGETHER.get(self.question.subject, 3)
        for place in range(0, len(listed), step):
            self._measure_listed(listed[place:place + step])

    def _measure_listed(self, names: Sequence[str]) -> None:
        flags = dict(self.question.flags)
        for name in names:
            flag, value = FREE[name]
            flags[flag] += f",{value or flags['--bw']}"
        if SHARED in names:
            flags["--connections"] = "6"
        groups: dict[frozenset[str], list[dict[str, str]]] = {}
        for row in trials_of(self._cheaper(flags), self.folder):
            free = frozenset(name for name in names if _LISTED[name](row))
            groups.setdefault(free, []).append(row)
        for free, rows in groups.items():
            if free:
                self.known[free] = saving_in(rows)

    def _cheaper(self, flags: Mapping[str, str]) -> Mapping[str, str]:
        """Flags with fewer repeats of a page; the question itself was asked with all."""
        return {"--repeat": FEW_PAGES, **flags} if self.question.subject == "page" else flags

    def faults(self, reason: str) -> Iterator[str]:
        """What is wrong with a reason, in words; nothing where it is right."""
        own = self.own
        if reason == CHANCE:
            if not own.is_chance:
                yield "is not chance"
            return
        if own.is_chance:
            yield "may be chance"
            return
        named = [part for part in reason.replace(" and ", ", ").replace(" or ", ", ").split(", ")]
        if RTT in named:
            flags = {**self.question.without("uplink"), "--rtt": str(
                max(0.1, float(self.question.flags["--rtt"]) / 100))}
            flags.pop("--jitter", None)  # it may not exceed the delay
            near = saving_in(trials_of(self._cheaper(flags), self.folder))
            if near.saved_ms - near.half_ms > 0.25 * own.saved_ms:
                yield f"saves {near.saved_ms:.1f} ms at a hundredth of the RTT"
            yield from self._beside([name for name in named if name != RTT])
        elif own.sign == 0:
            yield from self._unchanged(reason, named)
        else:
            for name in named:
                left = self.without(name).saved_ms if name in FREE else None
                if left is not None and left * own.sign > 0.3 * abs(own.saved_ms):
                    yield f"without {name} {left:.1f} ms are left"
        unknown = [name for name in named if name not in (*FREE, RTT, *SAME, "link busy")]
        if unknown:
            print(f"    not checked: {unknown}", flush=True)

    def _beside(self, named: Sequence[str]) -> Iterator[str]:
        """What is wrong with limits that are named beside round trips, or are not."""
        own = self.own
        self.measure([name for name in self.question.limits if name != "bandwidth"])
        for name in (*self.question.limits, *(name for name in named
                                              if name not in self.question.limits)):
            if name == "bandwidth" or name not in FREE:
                continue
            other = self.without(name)
            changed = abs(other.saved_ms - own.saved_ms)
            larger = max(other.saved_ms, own.saved_ms)
            sure = changed > max(PART * own.of_ms, (own.half_ms ** 2 + other.half_ms ** 2) ** 0.5)
            if name in named and changed < larger / 3:
                yield f"without {name} it saves {other.saved_ms:.1f} ms, nearly as much"
            if name not in named and sure and changed > larger * 2 / 3:
                yield f"without {name} it saves {other.saved_ms:.1f} ms, and it is not named"

    def _unchanged(self, reason: str, named: Sequence[str]) -> Iterator[str]:
        """What is wrong with a reason why the larger window saves nothing."""
        limits = tuple(dict.fromkeys((*self.question.limits, *always_there(self.question))))
        if reason in SAME:
            free = self.without(*limits)
            if free.sign > 0:
                yield f"without all limits it saves {free.saved_ms:.1f} ms"
            self.measure(self.question.limits)
            for name in self.question.limits:
                if self.without(name).sign > 0:
                    yield f"without {name} it saves {self.without(name).saved_ms:.1f} ms"
            return
        alone = {name: self.without(name).sign for name in named if name in FREE}
        if alone and (len(set(alone.values())) == 1 and 0 not in alone.values()):
            return  # the limits protect, or each of them alone hides a saving
        free = self.without(*limits)
        if free.sign <= 0:
            yield "without all limits it saves nothing"
        if len(limits) > 1 and {*named} != {*limits}:
            for name in named:
                if name in limits and self.without(
                        *(other for other in limits if other != name)).sign > 0:
                    yield f"with {name} alone it saves time"


def judge(question: Question, folder: Path) -> tuple[str, str]:
    """The reason of a question, and what is wrong with it ("" for nothing)."""
    own, reason = read(typed(typed_words(question.flags, folder), folder))
    if not reason or reason == NOT_KNOWN:
        return reason, ""
    return reason, "; ".join(Judge(question, own, folder).faults(reason))


def _shown(question: Question) -> str:
    """The flags of a question in one line, and the drawn lines of a trace's scenario."""
    shown = {flag: value for flag, value in question.flags.items() if flag != TRACE}
    drawn_of_trace = [line for line in question.flags.get(TRACE, "").splitlines()
                      if line.startswith(("requests", "validation", "think_s"))]
    return " ".join([*(f"{flag} {value}" for flag, value in shown.items()), *drawn_of_trace])


def main(words: Sequence[str]) -> int:
    parser = Parser({}, prog="reasons", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--questions", type=positive_number, default=100)
    parser.add_argument("--seed", type=positive_number, default=1)
    parser.add_argument("--only", type=whole_numbers, help="numbers of questions")
    parser.add_argument("--subject", choices=SUBJECTS)
    arguments = parser.parse_args(words)
    numbers = arguments.only or range(1, arguments.questions + 1)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        for number in numbers:
            question = drawn(arguments.seed, number)
            if arguments.subject and question.subject != arguments.subject:
                continue
            try:
                reason, fault = judge(question, Path(name))
            except (RuntimeError, subprocess.SubprocessError) as error:
                counts["not measured"] += 1
                print(f"{number} {question.subject}: {_shown(question)}: {error}", flush=True)
                continue
            found = ("no word" if not reason else "not known" if reason == NOT_KNOWN
                     else "wrong" if fault else "right")
            counts[found] += 1
            counts[f"{question.subject}: {found}"] += 1
            print(f"{number} {question.subject}: {found}: {_shown(question)}: {reason!r} {fault}",
                  flush=True)
    for what, count in sorted(counts.items()):
        print(f"{count:5} {what}")
    judged = sum(counts[found] for found in ("right", "wrong", "not known", "no word"))
    is_good = (counts["wrong"] * 100 <= judged and counts["not known"] * 20 <= judged
               and not counts["no word"])
    return OK if is_good else FAILED


if __name__ == "__main__":
    command.run("reasons", main)
