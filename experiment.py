#!/usr/bin/env python3
"""Measure scenarios: scenario → trials → engine → records → tables and figures."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Protocol
from collections.abc import Iterator, Mapping, Sequence

from engines.host import HostEngine
from engines.job import EngineCannot, EngineError, Job, Observation
from engines.uml import UmlEngine, find_kernel
from lab import errors, provenance, runs, scenario as scenarios
from lab.command_line import Parser, run_main, say
from lab.errors import CannotError, FirstFlightError
from lab.progress import Progress
from lab.records import FAIL, AnyRecord
from lab.scenario import Overrides
from lab.study import Study, claim_of, study_of
from lab.tcp.packets import write_capture

PROJECT = Path(__file__).resolve().parent
DEFAULT_SCENARIOS = ["zhao2019", "dukkipati2010"]
GRID_SCENARIO = "zhao2019"  # the one that takes any network
DRY_RUN_LISTED = 500
CAPTURES, FILES = "captures", "files"  # folders of a run
CAPTURES_KEPT = 8  # trials or a few more, unless --keep-captures

GUEST_START_S = 1.5  # of wall time, on two cores; for --dry-run

EPILOG = """\
the three commands that people need:
  ./run.sh                                                   the paper's Figure 5, measured here
  ./run.sh --scenario zhao2019 --rtt 100 --bw 1000 --iw 3,10  a single bucket, asked and seen
  ./run.sh --list                                            what can be measured

exit status: 0 measured and verified · 1 a trial or the harness failed · 2 usage ·
3 measured, but a verdict failed · 4 this machine cannot · 130 interrupted
"""


class Engine(Protocol):
    """What runs trials.

    exact: its clock is virtual, so times are to be exact. facts: what its
    kernel says of itself, once trials run.
    """

    name: str
    exact: bool
    jobs: int
    facts: dict[str, Any]

    def run(self, trials: list[Job], sysctls: dict[str, str],
            folder: Path) -> Iterator[Observation]: ...


def numbers(text: str) -> list[float]:
    """A comma-separated list of numbers; lab.scenario judges their range."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of numbers like 20,50") from None


def whole_numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of whole numbers like 3,10") \
            from None


def positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return value


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="run.sh", description="Measure what TCP's initial window does, on real Linux TCP.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("--list", action="store_true", help="list the scenarios and what each claims")
    add("--scenario", nargs="+", metavar="NAME",
        help=f"what to measure (default {' '.join(DEFAULT_SCENARIOS)}; with any of --rtt, --bw,"
             f" --size, --repeat, --client {GRID_SCENARIO})")
    add("--rtt", type=numbers, metavar="MS,…", help="only these RTTs (default the scenario's)")
    add("--bw", type=numbers, metavar="KBPS,…",
        help="only these bandwidths, kbit/s (default the scenario's)")
    add("--iw", type=whole_numbers, metavar="N,…",
        help="only these initial windows, segments (default the scenario's)")
    add("--size", type=whole_numbers, metavar="BYTES,…",
        help="only these response sizes (default the scenario's)")
    add("--load", type=numbers, metavar="PART,…",
        help="only these offered loads, parts of the bottleneck like 0.5,0.95 (load scenarios)")
    add("--repeat", type=positive, metavar="N",
        help="measure every setting N times (default the scenario's)")
    add("--client", choices=("curl", "wget"), help="the fetching program (default the scenario's)")
    add("--engine", choices=("auto", "uml", "host"), default="auto",
        help="uml: guests in virtual time; host: this kernel in real time, as root;"
             " auto: uml where its kernel is built, else host (default auto)")
    add("--jobs", type=positive, metavar="N", default=os.cpu_count() or 1,
        help="guests side by side (default %(default)s, the number of cores); host runs alone")
    add("--seed", type=int, default=1, metavar="N",
        help="for whatever is drawn at random (default 1; a lossless scenario draws nothing)")
    add("--dry-run", action="store_true",
        help="print the trials, the commands and the expected time; measure nothing")
    add("--fresh", action="store_true", help="do not resume an interrupted run (default: resume)")
    add("--keep-captures", action="store_true",
        help=f"keep the packets of every trial as pcap files (default: of some {CAPTURES_KEPT} trials)")
    add("--no-figures", action="store_true", help="draw nothing (default: draw whole scenarios)")
    add("--results", type=Path, default=PROJECT / "results", metavar="DIR",
        help="where results go (default results)")
    add("--figures", type=Path, default=PROJECT / "figures", metavar="DIR",
        help="where figures go (default figures)")
    arguments = parser.parse_args(argv)
    if arguments.scenario is None:
        only = (arguments.rtt, arguments.bw, arguments.size, arguments.repeat, arguments.client)
        arguments.scenario = DEFAULT_SCENARIOS if only == (None,) * 5 else [GRID_SCENARIO]
    return arguments


def choose_engine(name: str, jobs: int) -> Engine:
    """The engine asked for. Raises CannotError where it is not to be had."""
    kernel = find_kernel() if name in ("auto", "uml") else None
    if kernel is not None:
        return UmlEngine(kernel, jobs)
    if name == "uml":
        raise CannotError("the guest kernel is not built: run ./install.sh, it says what is missing")
    return HostEngine()


def list_scenarios() -> None:
    names = scenarios.names()
    width = max(map(len, names), default=0)
    for name in names:
        print(f"{name:<{width}}  {claim_of(name)}")


def dry_run(study: Study, engine: str, jobs: int) -> None:
    """Print what a run would do."""
    from topo import commands_of  # imports Mininet: only here
    print(f"{study.name}: {len(study.trials)} trials")
    for trial in study.trials[:DRY_RUN_LISTED]:
        print(f"  {trial.id}")
    if len(study.trials) > DRY_RUN_LISTED:
        print(f"  … and {len(study.trials) - DRY_RUN_LISTED} more")
    print("commands of the first trial:")
    for command in commands_of(study.trials[0].job()):
        print(f"  {command}")
    print(f"expected time: about {expected_s(study, engine, jobs):.0f} s ({engine} engine)")


def expected_s(study: Study, engine: str, jobs: int) -> float:
    """Wall seconds that a run will take, roughly."""
    if engine == "uml":
        return GUEST_START_S + (sum(map(study.guest_s, study.trials))
                                / min(jobs, len(study.trials)))
    return sum(map(study.network_s, study.trials))


def measure(study: Study, engine: Engine,
            arguments: argparse.Namespace) -> tuple[Path, list[AnyRecord]]:
    """Measure what has no record yet; return the run's folder and all its records."""
    started = time.monotonic()
    run = runs.open_run(arguments.results, study.name, engine.name, study.trials,
                        arguments.fresh, study.record)
    try:
        missing = run.missing(study.trials)
        if run.resumed:
            say(f"resuming {run.folder}: {len(run.records)} of {len(study.trials)} trials are"
                " there")
        else:
            run.facts.update(describe(study, engine, arguments))
            run.save()
        by_id = {trial.id: trial for trial in missing}
        kept = (set(by_id) if arguments.keep_captures or study.all_captures
                else sample_of(list(by_id)))
        emulated_s = 0.0
        file = run.open_records()
        try:
            with Progress(len(study.trials), len(run.records), study.name) as progress:
                for seen in engine.run([trial.job() for trial in missing], study.sysctls,
                                       run.work_folder):
                    record, files = study.judge(by_id[seen.trial_id], seen, engine.exact)
                    keep(run.folder, seen, files, seen.trial_id in kept)
                    file.append(record)
                    if not run.records:
                        run.point_latest()
                    run.records.append(record)
                    run.facts.setdefault("first_record_after_s",
                                         round(time.monotonic() - started, 3))
                    emulated_s += seen.content.get("duration_s", 0.0)
                    progress.step()
        finally:
            file.close()
        run.facts.update(engine.facts)
        run.facts["emulated_s"] = round(run.facts.get("emulated_s", 0.0) + emulated_s, 3)
        run.facts["wall_s"] = round(run.facts.get("wall_s", 0.0) + time.monotonic() - started, 3)
        run.finish()
        return run.folder, run.records
    finally:
        run.close()
        home = run.folder.parent
        runs.give_to_invoking_user(run.folder)
        runs.give_to_invoking_user(home.parent, home, home / "latest", within=False)


def sample_of(trial_ids: list[str]) -> set[str]:
    """A few trials, spread evenly, whose packets are kept."""
    pairs = max(CAPTURES_KEPT // 2, 1)  # neighbours differ in their window only
    step = max(len(trial_ids) // pairs // 2 * 2, 2)
    return {trial_id for start in range(0, len(trial_ids), step)
            for trial_id in trial_ids[start:start + 2]}


def keep(folder: Path, seen: Observation, files: Mapping[str, bytes],
         with_captures: bool) -> None:
    """Keep what was recorded of a trial: files, and its packets for Wireshark to open."""
    captures = {"client": seen.client_pcap, "server": seen.server_pcap} if with_captures else {}
    for side, packets in captures.items():
        if packets:
            (folder / CAPTURES).mkdir(exist_ok=True)
            write_capture(folder / CAPTURES / f"{seen.trial_id}-{side}.pcap", packets)
    for name, content in files.items():
        (folder / FILES).mkdir(exist_ok=True)
        (folder / FILES / f"{seen.trial_id}-{name}").write_bytes(content)


def describe(study: Study, engine: Engine, arguments: argparse.Namespace) -> dict[str, Any]:
    """What run.json says about a run before it starts."""
    return {"scenario": study.name, "scenario_file": study.text, "seed": arguments.seed,
            "arguments": sys.argv[1:], "jobs": engine.jobs, "virtual_time": engine.exact,
            "partial": not study.whole, **provenance.of_this_machine(PROJECT)}


def overrides_of(arguments: argparse.Namespace) -> Overrides:
    return Overrides(rtt_ms=arguments.rtt, bandwidth_kbps=arguments.bw, initcwnd=arguments.iw,
                     response_bytes=arguments.size, repeat=arguments.repeat,
                     client=arguments.client, load=arguments.load)


def run_scenario(name: str, arguments: argparse.Namespace) -> int:
    """Measure one scenario, print its tables, draw it; return the exit status."""
    study = study_of(name, overrides_of(arguments), arguments.seed)
    engine = choose_engine(arguments.engine, arguments.jobs)
    if arguments.dry_run:
        dry_run(study, engine.name, engine.jobs)
        return errors.OK
    try:
        folder, records = measure(study, engine, arguments)
    except EngineCannot as error:
        raise CannotError(str(error)) from error
    except EngineError as error:
        raise FirstFlightError(f"{error}; what is measured is kept, the same command resumes"
                               ) from error
    print(study.tables(records, folder, engine.exact))
    facts = runs.read_facts(folder)
    print(f"{len(records)} trials: {facts['emulated_s']:.1f} s of network in"
          f" {facts['wall_s']:.1f} s of wall time")
    print(folder / runs.TRIALS_CSV)
    if study.whole and not arguments.no_figures:
        draw(name, folder, arguments)
    return status_of(records)


def draw(name: str, folder: Path, arguments: argparse.Namespace) -> None:
    """Run plot.py and report.py; they print the paths of what they made."""
    sys.stdout.flush()
    figures = ["--figures", str(arguments.figures)]
    for program in (["plot.py", "--scenario", name, "--results", str(arguments.results), *figures],
                    ["report.py", "--run", str(folder), *figures]):
        command = [sys.executable, str(PROJECT / program[0]), *program[1:]]
        done = subprocess.run(command, check=False)
        if done.returncode != 0:
            raise FirstFlightError(f"{name} is measured, but {program[0]} ended with status"
                                   f" {done.returncode}")
    runs.give_to_invoking_user(folder, arguments.figures)


def status_of(records: list[AnyRecord]) -> int:
    if not all(record.ok for record in records):
        return errors.FAILED
    if any(record.verdict == FAIL for record in records):
        return errors.VERDICT
    return errors.OK


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if arguments.list:
        list_scenarios()
        return errors.OK
    # The worst status of several scenarios: a failure before a verdict.
    statuses = [run_scenario(name, arguments) for name in arguments.scenario]
    return next((status for status in (errors.FAILED, errors.VERDICT) if status in statuses),
                errors.OK)


if __name__ == "__main__":
    run_main("run.sh", main, kept="; what is measured is kept, the same command resumes")
