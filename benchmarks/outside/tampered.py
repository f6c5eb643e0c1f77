"""Alters one thing in a guest, for fetches, pages and traces, and looks whether the judge sees it.

    /usr/bin/python3 -m benchmarks.outside.tampered --jobs 2
    /usr/bin/python3 -m benchmarks.outside.tampered --workload page --only "no SACK"

Each alteration (benchmarks.outside.alterations) is measured in place of what was requested, for
fetches, pages and traces on ten networks, in clear text and over TLS; traces have no TLS. A program
is altered in a copy of the project, which measures; this project judges. Prints a table with the
number of altered trials that were refused, and the largest change of a time in those that passed. A
trial that passes has a hole where a time changes by more than 1 ms or 0.1 %. docs/METHOD.md names
the holes that stay (benchmarks.outside.passes). Any other hole is listed with its trial, and the
exit status is 1.
"""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from benchmarks import command
from benchmarks.outside import measure_jobs
from benchmarks.outside.alterations import ALTERATIONS, Alteration, Edit
from benchmarks.outside.passes import PASSES
from firstflight.base import PROJECT
from firstflight.base.argument_types import positive_number
from firstflight.base.errors import FAILED, OK, CannotError
from firstflight.base.parser import Parser
from firstflight.base.progress import Progress
from firstflight.findings.findings import Column, Table
from firstflight.findings.render.text import table_text
from firstflight.runs.results.records import PASS
from firstflight.setting.setting import NetworkSetting
from firstflight.testbed.messages import Job, ObservedTrial
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.verify import judge_fetch
from firstflight.workloads.page.objects import PageObject
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.page.trial import PageTrial
from firstflight.workloads.page.verify import judge_page
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.schedule import Request, Write
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.verify import judge_trace

TOLERANCE_MS, TOLERANCE_SHARE = 1.0, 0.001  # a change above the larger one is a hole
CLEAR, TLS = "clear", "TLS"
# What a copy of the project needs in order to measure.
COPIED = ("firstflight", "vtime", "benchmarks", "experiment.py", "server.py", "client.py")


# What is requested --------------------------------------------------------------------

_PLAIN: dict[str, Any] = {
    "rtt_ms": 60.0, "bandwidth_kbps": 5000.0, "uplink_kbps": 5000.0, "queue_packets": 1000,
    "loss_percent": 0.0, "congestion_control": "cubic", "initcwnd": 10, "initrwnd": 100}
NETWORKS: dict[str, dict[str, Any]] = {
    "plain": {},
    "fast": {"rtt_ms": 20.0, "bandwidth_kbps": 50_000.0, "uplink_kbps": 50_000.0},
    "slow": {"rtt_ms": 100.0, "bandwidth_kbps": 600.0, "uplink_kbps": 100.0},
    "short queue": {"queue_packets": 12},
    "loss": {"loss_percent": 3.0, "queue_packets": 30, "seed": 5},
    "jitter": {"jitter_ms": 2.0, "seed": 7},
    "BBR": {"congestion_control": "bbr"},
    "fq": {"qdisc": "fq"},
    "fq_codel": {"qdisc": "fq_codel", "queue_packets": 12},
    "cake": {"qdisc": "cake", "queue_packets": 12}}

# A document that names pictures, a style sheet that names others, and what a server computes.
_OBJECTS = (
    PageObject(30_000, is_early=True),
    PageObject(15_000, named_by=1, at_byte=1500, is_early=True),
    PageObject(40_000, named_by=1, at_byte=6000, think_ms=25.0),
    *(PageObject(9000, named_by=1, at_byte=12_000 + 900 * number) for number in range(6)),
    PageObject(20_000, named_by=2, at_byte=8000, parse_ms=12.5),
    PageObject(25_000, named_by=3, at_byte=35_000, think_ms=40.0),
    PageObject(8000, named_by=1, at_byte=30_000))
_WITHOUT_THINKING = tuple(replace(each, think_ms=0.0) for each in _OBJECTS)
_TWO_HOSTS = tuple(replace(each, host=number % 2) for number, each in
                   enumerate(_WITHOUT_THINKING))
_WRITES = (Write(at_s=0.0, size_bytes=90_000), Write(at_s=1.5, size_bytes=30_000),
           Write(at_s=2.0, size_bytes=5792, until_s=2.99, every_s=0.05),
           Write(at_s=6.0, size_bytes=60_000))
_REQUESTS = (Request(60_000, 0.0), Request(20_000, 0.8), Request(60_000, 2.5),
             Request(4000, 0.0))


def fetches(setting: Mapping[str, Any]) -> dict[str, list[NetworkSetting]]:
    """Fetches over a network, by CLEAR and TLS."""
    def fetch(**fields: Any) -> Trial:
        values: dict[str, Any] = {"scenario": "tampered", "client": "libcurl", "repeat": 1,
                                  "response_bytes": 120_000, **setting, **fields}
        return Trial(**values)

    secure: dict[str, Any] = {"client": "curl", "chain_bytes": 4000}
    return {CLEAR: [fetch(), fetch(server="nginx"),
                    fetch(kept=1, idle_ms=1500.0, response_bytes=40_000)],
            TLS: [fetch(**secure), fetch(**secure, server="nginx"),
                  fetch(**secure, server="nginx", http="2")]}


def pages(setting: Mapping[str, Any]) -> dict[str, list[NetworkSetting]]:
    """Pages over a network, by CLEAR and TLS."""
    def page(objects: tuple[PageObject, ...], **fields: Any) -> PageTrial:
        values: dict[str, Any] = {"scenario": "tampered", "part": "all", "page": "mixed",
                                  "connections": 6, "repeat": 1, **setting, **fields}
        return PageTrial(**values, objects=objects)

    secure: dict[str, Any] = {"chain_bytes": 4000}
    return {CLEAR: [page(_OBJECTS), page(_TWO_HOSTS, server="nginx", connections=2)],
            TLS: [page(_OBJECTS, **secure), page(_WITHOUT_THINKING, **secure, server="nginx"),
                  page(_WITHOUT_THINKING, **secure, server="nginx", http="2", connections=1),
                  page(_TWO_HOSTS, **secure, server="nginx", http="2", connections=1,
                       resumed=1)]}


def traces(setting: Mapping[str, Any]) -> dict[str, list[NetworkSetting]]:
    """Traces over a network, in clear text."""
    def trace(requests: tuple[Request, ...], **fields: Any) -> TraceTrial:
        values: dict[str, Any] = {
            "scenario": "tampered", "trace": "mixed", "tcp": "linux", "validation": True,
            "receive_window": 0, "rto_min_ms": 0, "quickack": False, "nagle": False,
            "sample_ms": 5.0, "outage_from_ms": 0.0, "outage_to_ms": 0.0, "think_s": None,
            "may_lose": True, **setting, **fields}
        return TraceTrial(**values, requests=requests)

    whole = (Request(sum(write.bytes_each() * write.count for write in _WRITES)),)
    ruled: dict[str, Any] = ({"congestion_control": "reno"}
                             if setting["congestion_control"] == "cubic" else {})
    return {CLEAR: [trace(whole, writes=_WRITES), trace(_REQUESTS),
                    trace(_REQUESTS, **ruled, receive_window=25)]}


# What is measured, and its times ------------------------------------------------------

@dataclass(frozen=True)
class Workload:
    """A kind of trials."""

    name: str
    trials: Callable[[Mapping[str, Any]], dict[str, list[NetworkSetting]]]  # by CLEAR and TLS
    judge: Callable[[Any, ObservedTrial], Record | PageRecord | TraceRecord]
    times: tuple[str, ...]  # the columns of a record that are compared


def _fetch_record(trial: Trial, seen: ObservedTrial) -> Record:
    return judge_fetch(trial, seen.content, seen.client_pcap, seen.server_pcap, exact=True,
                       sysctls={})


def _page_record(trial: PageTrial, seen: ObservedTrial) -> PageRecord:
    return judge_page(trial, seen, exact=True)[0]


def _trace_record(trial: TraceTrial, seen: ObservedTrial) -> TraceRecord:
    return judge_trace(trial, seen, exact=True)


WORKLOADS = (
    Workload("fetch", fetches, _fetch_record, ("first_byte_ms", "total_ms", "latency_ms")),
    Workload("page", pages, _page_record, ("first_byte_ms", "document_ms", "page_ms")),
    Workload("trace", traces, _trace_record, ("latency_ms", "finish_ms")))


class Requested(NamedTuple):
    """A trial that is altered, and its place in the table."""

    workload: Workload
    network: str
    way: str  # CLEAR or TLS
    trial: NetworkSetting

    @property
    def words(self) -> str:
        """What tells the trial from others, for messages."""
        trial = self.trial
        fields = [self.workload.name, self.network, self.way]
        fields += [getattr(trial, "server", ""), f"HTTP/{getattr(trial, 'http', '1.1')}"]
        fields += ["kept"] if getattr(trial, "kept", 0) else []
        fields += ["writes"] if getattr(trial, "writes", ()) else []
        return ", ".join(filter(None, fields))


def requested(workloads: Sequence[Workload], networks: Sequence[str]) -> list[Requested]:
    """The trials of these workloads on these networks."""
    return [Requested(workload, network, way, trial)
            for workload in workloads for network in networks
            for way, trials in workload.trials({**_PLAIN, **NETWORKS[network]}).items()
            for trial in trials]


@dataclass
class Cell:
    """How the trials of one alteration were judged."""

    refused: int = 0
    passed: int = 0
    most_ms: float = 0.0  # the largest change of a time in a trial that passed
    # The trials that passed with a time beyond the tolerance, each with the change.
    holes: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        count = self.refused + self.passed
        if not count:
            return "—"
        return f"{self.refused} of {count}" + (f", else {self.most_ms:.3f}" if self.passed else "")


# Measuring ----------------------------------------------------------------------------

def measured(jobs: Sequence[Job], edits: Sequence[Edit], guests: int) -> Iterator[ObservedTrial]:
    """Measure jobs of one kind with altered programs. Raises EngineError and CannotError."""
    with tempfile.TemporaryDirectory(prefix="first-flight-") as folder:
        if not edits:
            yield from measure_jobs.measured(jobs, guests, Path(folder) / "run")
            return
        place, given, found = (Path(folder) / name for name in ("project", "jobs", "found"))
        copy_project(place, edits)
        given.write_text(json.dumps(jobs))
        done = subprocess.run(
            [sys.executable, "-m", measure_jobs.__name__, str(given), str(found), str(guests)],
            cwd=place, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            raise CannotError(f"an altered project ended with status {done.returncode}:"
                              f" {done.stderr.decode(errors='replace')[-500:]}")
        yield from pickle.loads(found.read_bytes())


def copy_project(place: Path, edits: Sequence[Edit]) -> None:
    """Copy the project's programs, and alter them.

    Raises CannotError where a program does not have the text of an edit exactly once.
    """
    place.mkdir()
    for name in COPIED:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, place / name,
                            ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(PROJECT / name, place / name)
    for edit in edits:
        text = (place / edit.path).read_text()
        if text.count(edit.old) != 1:
            raise CannotError(f"{edit.path} has {text.count(edit.old)} times what is to be altered:"
                              f" {edit.old!r}")
        (place / edit.path).write_text(text.replace(edit.old, edit.new))


def altered_jobs(alteration: Alteration, trials: Sequence[Requested]) -> dict[int, Job]:
    """The altered jobs by the trial's place in `trials`; a trial without what is altered has none.
    """
    jobs: dict[int, Job] = {}
    for place, altered in enumerate(trials):
        trial = cast(Any, altered.trial)
        job = alteration.change(trial, trial.job())
        if job is not None:
            jobs[place] = cast(Job, {**job, "id": f"t{place}"})
    return jobs


def records_of(jobs: Mapping[int, Job], trials: Sequence[Requested], edits: Sequence[Edit],
               guests: int) -> dict[int, Any]:
    """Measure the jobs; return their records by the trial's place, judged by what was requested."""
    by_kind: dict[str, list[Job]] = defaultdict(list)
    for job in jobs.values():
        by_kind[job["kind"]].append(job)

    records: dict[int, Any] = {}
    for of_kind in by_kind.values():
        for seen in measured(of_kind, edits, guests):
            place = int(seen.trial_id.removeprefix("t"))
            records[place] = trials[place].workload.judge(trials[place].trial, seen)
    return records


def most_change_ms(workload: Workload, usual: Any, record: Any) -> tuple[float, bool]:
    """The largest change of a time in ms, and whether a change is beyond the tolerance."""
    changes = [(abs(getattr(record, name) - before), before) for name in workload.times
               if (before := getattr(usual, name)) is not None
               and getattr(record, name) is not None]
    is_hole = any(change > max(TOLERANCE_MS, TOLERANCE_SHARE * before)
                  for change, before in changes)
    return max((change for change, _ in changes), default=0.0), is_hole


def fill(cells: dict[tuple[str, str], Cell], usual: Mapping[int, Any], records: Mapping[int, Any],
         trials: Sequence[Requested]) -> None:
    """Put the verdicts of an alteration into the cells of its row.

    usual holds the records of the trials without an alteration.
    """
    for place, record in records.items():
        altered = trials[place]
        cell = cells[altered.workload.name, altered.way]
        if record.verdict != PASS:
            cell.refused += 1
            continue
        change_ms, is_hole = most_change_ms(altered.workload, usual[place], record)
        cell.passed += 1
        cell.most_ms = max(cell.most_ms, change_ms)
        if is_hole:
            cell.holes.append(f"{altered.words}: {change_ms:.3f} ms")


# What is printed ----------------------------------------------------------------------

WAYS = (("fetch", CLEAR), ("fetch", TLS), ("page", CLEAR), ("page", TLS), ("trace", CLEAR))


def shown(rows: Mapping[str, Mapping[tuple[str, str], Cell]]) -> str:
    """The table: how many trials were refused, and the largest change in those that passed."""
    heads = (Column("altered", is_text=True), *(Column(" ".join(way), is_text=True)
                                                for way in WAYS))
    return table_text(Table("", heads, tuple(
        (name, *(cells.get(way, Cell()).text for way in WAYS)) for name, cells in rows.items())),
        width=200)


def unnamed(rows: Mapping[str, Mapping[tuple[str, str], Cell]]) -> list[str]:
    """The holes that PASSES does not name, or that are larger than PASSES says."""
    return [f"{name}: {hole}" for name, cells in rows.items()
            for (workload, _), cell in cells.items() for hole in cell.holes
            if name not in PASSES or cell.most_ms > (getattr(PASSES[name], workload) or 0.0)]


def main(words: Sequence[str]) -> int:
    parser = Parser({}, prog="tampered", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workload", choices=[each.name for each in WORKLOADS], action="append",
                        help="only this one; may be repeated (default: all)")
    parser.add_argument("--network", choices=tuple(NETWORKS), action="append",
                        help="only this one; may be repeated (default: all)")
    parser.add_argument("--only", action="append", metavar="WORDS",
                        help="only alterations whose name has these words; may be repeated")
    parser.add_argument("--jobs", type=positive_number, default=2, metavar="N",
                        help="guests side by side (default %(default)s)")
    arguments = parser.parse_args(words)
    workloads = [each for each in WORKLOADS
                 if each.name in (arguments.workload or (each.name,))]
    trials = requested(workloads, arguments.network or list(NETWORKS))
    chosen = [each for each in ALTERATIONS if not arguments.only
              or any(words in each.name for words in arguments.only)]

    rows: dict[str, dict[tuple[str, str], Cell]] = {}
    with Progress(1 + len(chosen), 0, "alterations") as progress:
        usual = records_of(altered_jobs(Alteration(""), trials), trials, (), arguments.jobs)
        progress.step()
        for alteration in chosen:
            cells = rows[alteration.name] = defaultdict(Cell)
            records = records_of(altered_jobs(alteration, trials), trials, alteration.edits,
                                 arguments.jobs)
            fill(cells, usual, records, trials)
            progress.step()

    print(shown(rows))
    unsound = [f"not altered and refused: {trials[place].words}: {record.why_not[:300]}"
               for place, record in usual.items() if not record.counts]
    faults = [*unsound, *unnamed(rows)]
    print("\n".join(faults))
    return FAILED if faults else OK


if __name__ == "__main__":
    command.run("tampered", main)
