#!/usr/bin/env python3
"""Measure scenarios: scenario → trials → engine → records → findings → text, page, figures."""

from __future__ import annotations

import signal

if __name__ == "__main__":  # Ctrl-C while the rest is imported ends it without a traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from engines.commands import commands_of
from engines.engine import Engine, NoEngine, choose_engine
from engines.job import EngineCannot, EngineError
from lab import registry
from lab.core import comparison, errors, measuring, provenance, runs, scenario_file
from lab.core.command_line import Parser, listed, positive, run_main, say
from lab.core.errors import CannotError, FirstFlightError, UsageError
from lab.core.findings import Report
from lab.core.kinds import Overrides, RunData, Study
from lab.core.measuring import Asked, measure
from lab.core.quantities import FLAGS
from lab.core.records import FAIL
from lab.core.sample import CAPTURES_KEPT
from lab.tell import text
from lab.users.reading import read as read_users
from lab.users.rows import QUANTITY_NAMES
from lab.users.sample import TRIALS, WINDOWS
from lab.users.sample import Asked as AskedUsers
from lab.users.sample import scenario as users_scenario

PROJECT = Path(__file__).resolve().parent
DEFAULT_SCENARIOS = ["zhao2019", "dukkipati2010"]
DRY_RUN_LISTED = 500

EPILOG = """\
the three commands that people need:
  ./run.sh                                                   the paper's Figure 5, measured here
  ./run.sh --rtt 25 --bw 20000 --iw 10,40 --size 29000        a question of your own
  ./run.sh --list                                            what can be measured

exit status: 0 measured and verified · 1 a trial or the harness failed · 2 usage ·
3 measured, but a verdict failed · 4 this machine cannot · 130 interrupted ·
141 who read the output has left
"""


# The command line ----------------------------------------------------------------------

def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="run.sh", description="Measure what TCP's initial window does, on real Linux TCP.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("--list", action="store_true", help="list the scenarios and what each claims")
    add("names", nargs="*", metavar="SCENARIO",
        help="what to measure: names of --list, or files of your own, path/to/my.toml"
             f" (default {' '.join(DEFAULT_SCENARIOS)}; with a flag of a network, TCP or a"
             " response a question of your own)")
    add("--scenario", nargs="+", metavar="SCENARIO", default=[], help="the same")
    add_question(parser)
    add_users(parser)
    add_how(parser)
    arguments = parser.parse_args(argv)
    arguments.scenario = [*arguments.names, *arguments.scenario]
    given = overrides_of(arguments).given
    if arguments.users and (arguments.scenario or {"repeat", "client", "sysctl"} & {*given}):
        parser.error("--users is a question of its own: without a scenario, --repeat, --client and"
                     " --sysctl")
    if arguments.trials and not arguments.users:
        parser.error("--trials is of --users FILE")
    arguments.own = not arguments.scenario and bool(given or arguments.name)
    if arguments.name and (arguments.users or not arguments.own):
        parser.error("--name: a scenario has a name; it is for a question of your own")
    if not arguments.scenario and not arguments.own:
        arguments.scenario = DEFAULT_SCENARIOS
    return arguments


def add_question(parser: Parser) -> None:
    """The flags that say what is measured."""
    add = parser.add_argument_group(
        "a question of your own: a network, TCP and responses",
        "Each takes a list, and every combination is measured. What is not said has the default"
        " here;\nwith a scenario, its own, and these take the place of it.").add_argument
    for quantity in FLAGS.values():
        add(quantity.flag, dest=quantity.name, metavar=quantity.metavar,
            type=listed(quantity.parsed, quantity.like), help=quantity.help)
    add("--sysctl", action="append", default=[], metavar="NAME=VALUE",
        help="a TCP setting of both hosts other than a current distribution's, like"
             " net.ipv4.tcp_slow_start_after_idle=0; may be said several times (default none)")
    add("--repeat", type=positive, metavar="N",
        help="measure every setting N times (default 1, and 100 where loss or jitter decides)")
    add("--client", choices=("curl", "wget", "libcurl"),
        help="the fetching program (default libcurl, curl's library)")
    add("--name", metavar="NAME",
        help="of the folder of results and of the figures (default own)")


def add_users(parser: Parser) -> None:
    """The flags of a question about users, and of stored runs."""
    add = parser.add_argument_group("which window for my users, and stored runs").add_argument
    add("--users", type=Path, metavar="FILE",
        help="which window for the users of a file: a CSV with rtt_ms,bandwidth_kbps,"
             "response_bytes[,group][,weight], nginx's access log with $tcpinfo_rtt, the output of"
             " ss -tin, a capture of a server; --iw, --bw and --size for what it does not know")
    add("--trials", type=positive, metavar="N",
        help=f"of --users: how many are measured under each window (default {TRIALS})")
    add("--compare", type=Path, nargs="+", metavar="RUN",
        help="folders of stored runs: the same cells of each beside those of the first, and what"
             " was asked otherwise; measures nothing")


def add_how(parser: Parser) -> None:
    """The flags that say how it is measured, and where things go."""
    add = parser.add_argument
    add("--engine", choices=("auto", "uml", "host"), default="auto",
        help="uml: guests in virtual time; host: this kernel in real time, as root;"
             " auto: uml where its kernel is built, else host (default auto)")
    add("--jobs", type=positive, metavar="N",
        help="guests side by side (default one a core, as far as memory goes); host runs alone")
    add("--seed", type=int, default=1, metavar="N",
        help="for whatever is drawn at random (default 1; a lossless scenario draws nothing)")
    add("--dry-run", action="store_true",
        help="print the trials, the commands and the expected time; measure nothing")
    add("--yes", action="store_true",
        help=f"also more than {scenario_file.MANY_TRIALS} trials are meant (default: refused)")
    add("--fresh", action="store_true", help="do not resume an interrupted run (default: resume)")
    add("--keep-captures", action="store_true",
        help=f"keep the packets of every trial as pcap files (default: of some {CAPTURES_KEPT}"
             " trials)")
    add("--no-figures", action="store_true", help="draw nothing (default: draw whole scenarios)")
    add("--results", type=Path, default=PROJECT / "results", metavar="DIR",
        help="where results go (default results)")
    add("--figures", type=Path, default=PROJECT / "figures", metavar="DIR",
        help="where figures go (default figures)")


def overrides_of(arguments: argparse.Namespace) -> Overrides:
    lists = {name: getattr(arguments, name) for name in FLAGS
             if getattr(arguments, name) is not None}
    return Overrides(lists, arguments.repeat, arguments.client,
                     many=arguments.yes or arguments.dry_run, sysctls=tuple(arguments.sysctl))


# What is done --------------------------------------------------------------------------

def list_scenarios() -> int:
    """Print what each scenario claims; a broken file is told, and keeps no other from being listed.

    Returns the exit status: USAGE where a file is broken.
    """
    status, names = errors.OK, scenario_file.names()
    width = max(map(len, names), default=0)
    for name in names:
        try:
            print(f"{name:<{width}}  {scenario_file.find(name).head().claim}")
        except FirstFlightError as error:
            say(f"run.sh: {error}")
            status = error.exit_status
    return status


def dry_run(study: Study, engine: Engine) -> None:
    """Print what a run would do."""
    print(f"{study.head.name}: {len(study.trials)} trials")
    for trial in study.trials[:DRY_RUN_LISTED]:
        print(f"  {trial.id}")
    if len(study.trials) > DRY_RUN_LISTED:
        print(f"  … and {len(study.trials) - DRY_RUN_LISTED} more")
    for trial in study.trials[:1]:
        print("commands of the first trial:")
        for command in commands_of(trial.job()):
            print(f"  {command}")
    print(f"expected time: about {measuring.expected_s(study, engine.name, engine.jobs):.0f} s"
          f" ({engine.name} engine)")


def study_of_users(arguments: argparse.Namespace) -> Study:
    """A sample of the users of a file, to be measured under each window. Raises UsageError."""
    given = {name: getattr(arguments, name) for name in FLAGS
             if getattr(arguments, name) is not None}
    windows = tuple(given.pop("initcwnd", WINDOWS))
    for name, values in given.items():
        if len(values) != 1 or name == "load":
            raise UsageError(f"{FLAGS[name].flag}: --users takes a list of windows, and one value"
                             " of what is the same for everybody")
    single = {name: FLAGS[name].check(values[0], FLAGS[name].flag)
              for name, values in given.items()}
    asked = AskedUsers(
        tuple(int(FLAGS["initcwnd"].check(each, "--iw")) for each in windows),
        arguments.trials or TRIALS,
        {name: value for name, value in single.items() if name in QUANTITY_NAMES},
        {name: value for name, value in single.items() if name not in QUANTITY_NAMES})
    file = users_scenario(read_users(arguments.users), asked, arguments.users, arguments.seed)
    return registry.study_of(file, Overrides({}, many=arguments.yes), arguments.seed)


def study_of(name: str, arguments: argparse.Namespace) -> Study:
    """A scenario and all that can be known before measuring; "" for flags. Raises UsageError."""
    asked = overrides_of(arguments)
    study = (registry.study_of(scenario_file.find(name), asked, arguments.seed) if name else
             registry.own_question(arguments.name or "own", asked, arguments.seed))
    if study.drawings:
        import drawing  # and with it matplotlib: only where it is asked
        drawing.check(study.drawings)
    return study


def run_study(study: Study, arguments: argparse.Namespace) -> int:
    """Measure one scenario, print what it found, draw it; return the exit status."""
    try:
        engine = (choose_engine(arguments.engine, arguments.jobs) if study.trials
                  else NoEngine())
        if arguments.dry_run:
            dry_run(study, engine)
            return errors.OK
        say_once(engine.warning)
        run = measure(study, engine, asked_of(arguments))
    except EngineCannot as error:
        raise CannotError(str(error)) from error
    except EngineError as error:
        raise FirstFlightError(f"{error}; what is measured is kept, the same command resumes"
                               ) from error
    report = study.report(run)
    print(text.text(report))
    if study.trials:
        print(f"{len(run.records)} trials: {run.facts['emulated_s']:.1f} s of network in"
              f" {run.facts['wall_s']:.1f} s of wall time")
        print(run.folder / runs.TRIALS_CSV, flush=True)
    if study.whole and not arguments.no_figures:
        draw(report, run.folder, arguments.figures)
    return status_of(run)


@cache
def say_once(warning: str) -> None:
    if warning:
        say(f"run.sh: {warning}")


def asked_of(arguments: argparse.Namespace) -> Asked:
    """Where and how to measure, and what run.json says of the command and the machine."""
    return Asked(arguments.results, arguments.seed, arguments.fresh, arguments.keep_captures,
                 {"arguments": sys.argv[1:], **provenance.of_this_machine(PROJECT)})


def compare(folders: Sequence[Path], figures: Path | None) -> int:
    """Print and draw what stored runs have otherwise than the first of them."""
    if len(folders) < 2:
        raise UsageError("--compare: takes two or more runs, such as results/zhao2019/latest")
    report = comparison.report([(names[folder], registry.stored_run(folder)[1])
                                for names in [comparison.names(folders)] for folder in folders])
    print(text.text(report))
    if figures is not None:
        import drawing  # and with it matplotlib: only where it draws
        for path in drawing.save(report.name, drawing.images(report), figures):
            print(path)
    return errors.OK


def draw(report: Report, folder: Path, figures: Path) -> None:
    """Draw every figure and build the page; print the paths of what was made."""
    import drawing  # and with it matplotlib: only where it draws
    from lab.tell import page
    drawn = drawing.images(report)
    for path in drawing.save(report.name, drawn, figures):
        print(path, flush=True)
    print(page.write(folder, report, drawing.pngs(drawn)), flush=True)


def status_of(run: RunData) -> int:
    if not all(record.ok for record in run.records):
        return errors.FAILED
    if any(record.verdict == FAIL for record in run.records):
        return errors.VERDICT
    return errors.OK


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if arguments.list:
        return list_scenarios()
    if arguments.compare:
        return compare(arguments.compare, None if arguments.no_figures else arguments.figures)
    # All are read before the first is measured, which may take hours.
    studies = ([study_of_users(arguments)] if arguments.users else
               [study_of(name, arguments) for name in arguments.scenario or [""]])
    # The worst status of several scenarios: a failure before a verdict.
    statuses = [run_study(study, arguments) for study in studies]
    return next((status for status in (errors.FAILED, errors.VERDICT) if status in statuses),
                errors.OK)


if __name__ == "__main__":
    run_main("run.sh", main, kept="; what is measured is kept, the same command resumes")
