#!/usr/bin/env python3
"""Measure scenarios: scenario → trials → engine → records → findings → text, page, figures."""

from __future__ import annotations

import os
import signal

if __name__ == "__main__":  # Ctrl-C while the rest is imported ends it without a traceback
    def leave(*_: object) -> None:
        """Without raising anything: numpy's C code would print a traceback of it."""
        os.write(2, b"run.sh: interrupted\n")
        os._exit(130)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # run.sh keeps it back so far

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from commands import cliff
from commands.flags import PROJECT, overrides_of, parse
from commands.runners import engine_errors, measurer_for, planned
from engines.engine import check_rights
from engines.network.commands import commands_of
from lab import registry
from lab.core import errors, files
from lab.core.command_line import heed, printed, run_main, say
from lab.core.errors import CannotError, FirstFlightError, UsageError
from lab.core.findings.findings import Report
from lab.core.results import provenance
from lab.core.results.records import FAIL
from lab.core.run import comparison, measuring, runs
from lab.core.run.kinds import Overrides, RunData, Study
from lab.core.run.measuring import Asked, measure
from lab.core.scenario import scenario_file
from lab.core.scenario.quantities import FLAGS, QUANTITIES
from lab.core.scenario.scenario_file import ScenarioFile
from lab.fetches.features.users.requested import LOAD, QUANTITY_NAMES, TRIALS, WINDOWS
from lab.fetches.features.users.requested import Asked as AskedUsers
from lab.render import text

DRY_RUN_LISTED = 500
OWN_CAPTURES = 64  # trials
KEPT = "; what is measured is kept, the same command resumes"
# run.sh sets it where something has to be installed first: what is wrong with the flags is told
# before that, as far as it can be seen without what is missing.
READ_ONLY = "FIRST_FLIGHT_READ_ONLY"


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


def check(name: str, arguments: argparse.Namespace) -> int:
    """Read a scenario, expand it and say what it costs. Raises UsageError."""
    study = study_of(name, arguments)
    print(f"{name}: {study.head.claim}")
    expected_s = measuring.expected_s(study, "uml", arguments.jobs or os.cpu_count() or 1)
    print(f"{len(study.trials)} trials, about {expected_s:.0f} s (uml engine); nothing is wrong"
          " with it")
    return errors.OK


def new(name: str) -> int:
    """Write a scenario to begin with, NAME.toml in the current folder. Raises UsageError."""
    text = registry.own_question(name, Overrides({})).head.text  # which refuses a wrong name
    if os.path.lexists(path := Path(f"{name}.toml")):
        raise UsageError(f"--new: {path} is there already")
    files.write(path, text + "\n")
    print(f"{path}: measure it with ./run.sh {path}, after ./run.sh --check {path}")
    return errors.OK


def probe(words: str, is_dry: bool) -> int:
    """Say what window a server uses: one connection to it, and nothing else. Raises UsageError.

    is_dry: not even that.
    """
    from probe import client  # only where it is asked
    from probe import verdict
    url = probed_url(words)
    if is_dry:
        print(f"one connection to {errors.one_line(url.netloc)}, and one request for"
              f" {errors.one_line(url.path or '/')}; --dry-run opens none")
        return errors.OK
    try:
        seen = client.observe(url)
    except client.NotAllowed as error:
        raise CannotError(f"--probe: {words} {error}") from error
    except client.NoAnswer as error:
        raise FirstFlightError(f"--probe: {words} {error}") from error
    if seen["status"] // 100 == 3:
        raise FirstFlightError(f"--probe: {words} answers with status {seen['status']} and sends"
                               f" on to {seen['location'] or 'nowhere'}: probe that, if it is"
                               " yours")
    if seen["status"] != 200:
        raise FirstFlightError(f"--probe: {words} answers with status {seen['status']}: name a"
                               " page that it has, a large one if possible")
    found = verdict.judged(seen)
    print("\n".join([errors.one_line(words), *(f"  {line}" for line in verdict.told(found))]))
    print(f"  what other windows do at this RTT: ./run.sh --rtt {max(0.1, found.rtt_ms):.1f}"
          f" --size {found.size_bytes} --iw {found.segments},{2 * found.segments}")
    return errors.OK


def probed_url(words: str) -> SplitResult:
    """The URL of --probe. Raises UsageError."""
    try:
        url = urlsplit(words)
        if url.scheme in ("http", "https") and url.hostname and "@" not in url.netloc \
                and url.port != 0:
            return url
    except ValueError:  # a port that is no number, brackets that do not close
        pass
    raise UsageError(f"--probe: {words!r} is no URL like http://example.org/page or"
                     " https://example.org:8443/, without a user's name")


def dry_run(study: Study, engine: str, jobs: int) -> None:
    """Print what a run would do, on so many guests."""
    print(f"{study.head.name}: {len(study.trials)} trials")
    for trial in study.trials[:DRY_RUN_LISTED]:
        print(f"  {trial.id}")
    if len(study.trials) > DRY_RUN_LISTED:
        print(f"  … and {len(study.trials) - DRY_RUN_LISTED} more")
    if study.trials:
        print("commands of the first trial:")
        for command in commands_of(study.trials[0].job(), study.head.sysctls):
            print(f"  {command}")
    print(f"expected time: about {measuring.expected_s(study, engine, jobs):.0f} s"
          f" ({engine} engine)")


def cliff_dry_run(arguments: argparse.Namespace, asked: Overrides) -> int:
    """Print what a search for cliffs would measure. Raises UsageError."""
    study = registry.cliff_question(arguments.find_cliff, asked)
    with engine_errors():
        dry_run(study, *planned(study, arguments))
    print("--find-cliff: of each of them other sizes, round after round, until the largest that"
          " fits and the smallest that does not are one byte apart; the time is of one round")
    return errors.OK


def studies_of_users(arguments: argparse.Namespace) -> list[Study]:
    """A sample of the users of a file; and with others on a link, if asked. Raises UsageError."""
    from lab.fetches.features.users import reading, sample, shared  # numpy is slow
    asked, users = asked_of_users(arguments), reading.read(arguments.users)
    makers = [sample.scenario] if asked.shared_kbps is None else [sample.scenario, shared.scenario]
    return [registry.study_of(make(users, asked, arguments.users, arguments.seed),
                              Overrides({}, many=arguments.yes), arguments.seed)
            for make in makers]


def asked_of_users(arguments: argparse.Namespace) -> AskedUsers:
    """What the flags say of --users. Raises UsageError."""
    given = overrides_of(arguments).checked()
    windows = given.pop("initcwnd", WINDOWS)
    link_kbps = arguments.share_link
    if link_kbps is not None:
        link_kbps = QUANTITIES["bandwidth_kbps"].check(link_kbps, "--share-link")
        if len(windows) < 2:
            raise UsageError("--share-link: compares windows; give several with --iw")
    if "load" in given and link_kbps is None:
        raise UsageError("--load: --users takes it with --share-link KBPS only")
    for name, values in given.items():
        if len(values) != 1:
            raise UsageError(f"{FLAGS[name].flag}: --users takes a list of windows, and one value"
                             " of what is the same for everybody")
    scenario_file.check_count(len(windows) * (arguments.trials or TRIALS),
                              many=arguments.yes or arguments.dry_run)
    single = {name: values[0] for name, values in given.items()}
    load = single.pop("load", LOAD)
    return AskedUsers(
        windows, arguments.trials or TRIALS,
        {name: value for name, value in single.items() if name in QUANTITY_NAMES},
        {name: value for name, value in single.items() if name not in QUANTITY_NAMES},
        link_kbps, load)


def part_of(name: str, arguments: argparse.Namespace) -> ScenarioFile:
    """A scenario, or of its networks one in so many. Raises UsageError."""
    file = scenario_file.find(name)
    return file.sampled(arguments.sample) if isinstance(arguments.sample, int) else file


def allowed(file: ScenarioFile, arguments: argparse.Namespace) -> ScenarioFile:
    """The file, unless it names a command that nobody has allowed. Raises UsageError."""
    if file.names_command and not (arguments.allow_commands or arguments.check):
        raise UsageError(f"{file.where}: names a command, [own_server], which would be run here:"
                         " read it, and say --allow-commands if it is meant")
    return file


def study_of(name: str, arguments: argparse.Namespace) -> Study:
    """A scenario and all that can be known before measuring; "" for flags. Raises UsageError."""
    asked = overrides_of(arguments)
    study = (registry.study_of(allowed(part_of(name, arguments), arguments), asked, arguments.seed)
             if name else
             registry.own_question(arguments.name or "own", asked, arguments.seed))
    if study.drawings:
        import drawing  # and with it matplotlib: only where it is asked
        drawing.check(study.drawings)
    return study


def run_study(study: Study, arguments: argparse.Namespace) -> int:
    """Measure one scenario, write its page and figures, then print; return the exit status.

    In this order: a reader who leaves early (`| head`) loses nothing but the text.
    """
    with engine_errors(KEPT):
        if arguments.dry_run:
            dry_run(study, *planned(study, arguments))
            return errors.OK
        with measurer_for(study, arguments) as measurer:
            run = measure(study, measurer, asked_of(arguments, len(study.trials)))
    report = study.report(run)
    written: list[Path] = []
    if arguments.export:
        from lab.render import export  # only where it is asked
        form, path = arguments.export
        written.append(files.write(Path(path), export.exported(form, report)))
    if study.whole and not arguments.no_figures:
        written += draw(report, run.folder, arguments.figures, arguments.format)
    measured = [f"{len(run.records)} trials: {run.facts['emulated_s']:.1f} s of network in"
                f" {run.facts['wall_s']:.1f} s of wall time",
                str(run.folder / runs.TRIALS_CSV)] if study.trials else []
    was_read = printed("\n".join([text.text(report), *measured, *map(str, written)]))
    return status_of(run) or (errors.OK if was_read else errors.UNREAD)


def asked_of(arguments: argparse.Namespace, trials: int) -> Asked:
    """Where and how to measure, and what run.json says of the command and the machine.

    A question of one's own keeps all packets of a few trials: the one that shows most is drawn.
    """
    kept = arguments.keep_captures or arguments.own and trials <= OWN_CAPTURES
    return Asked(arguments.results, arguments.seed, arguments.fresh, kept,
                 {"arguments": sys.argv[1:], **provenance.of_this_machine(PROJECT)},
                 arguments.quiet)


def compare(folders: Sequence[Path], figures: Path | None, formats: Sequence[str]) -> int:
    """Draw, then print what stored runs have otherwise than the first. Raises UsageError."""
    if len(folders) < 2:
        raise UsageError("--compare: takes two or more runs, such as results/zhao2019/latest")
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(f"--compare: {folder}: there is no such run")
    names = comparison.names(folders)
    report = comparison.report([(names[folder], registry.stored_run(folder)[1])
                                for folder in folders])
    written: Sequence[Path] = []
    if figures is not None:
        import drawing  # and with it matplotlib: only where it draws
        written = drawing.save(report.name, drawing.images(report, formats), figures, formats)
    was_read = printed("\n".join([text.text(report), *map(str, written)]))
    return errors.OK if was_read else errors.UNREAD


def draw(report: Report, folder: Path, figures: Path, formats: Sequence[str]) -> list[Path]:
    """Draw every figure and build the page, which has PNGs; the paths of what was made."""
    import drawing  # and with it matplotlib: only where it draws
    from lab.render import page
    images = drawing.images(report, tuple(dict.fromkeys(("png", *formats))))
    return [*drawing.save(report.name, images, figures, formats),
            page.write(folder, report, drawing.pngs(images))]


def status_of(run: RunData) -> int:
    """CANNOT where this machine lacks what every trial needs; the report says what."""
    if run.records and all(record.was_skipped for record in run.records):
        return errors.CANNOT
    if not all(record.ok or record.failed_as_expected for record in run.records):
        return errors.FAILED
    if any(record.verdict == FAIL for record in run.records):
        return errors.VERDICT
    return errors.OK


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    heed(signal.SIGTERM, signal.SIGHUP)
    if arguments.list:
        return list_scenarios()
    if arguments.new:
        return new(arguments.new)
    if arguments.check:
        return check(arguments.check, arguments)
    if arguments.probe:
        return probe(arguments.probe, arguments.dry_run)
    if READ_ONLY in os.environ:
        with suppress(ModuleNotFoundError):  # of a package that is going to be installed
            read(arguments)
        return errors.OK
    if arguments.find_cliff:
        return (cliff_dry_run if arguments.dry_run else cliff.find)(
            arguments, overrides_of(arguments))
    if arguments.compare:
        return compare(arguments.compare, None if arguments.no_figures else arguments.figures,
                       arguments.format)
    # All are read before the first is measured, which may take hours.
    studies = read(arguments)
    # The worst status of several scenarios: a failure before a verdict, and that before nothing.
    statuses = [run_study(study, arguments) for study in studies]
    return next((each for each in (errors.FAILED, errors.VERDICT, errors.CANNOT, errors.UNREAD)
                 if each in statuses), errors.OK)


def read(arguments: argparse.Namespace) -> list[Study]:
    """What is to be measured. Raises UsageError, and CannotError where it is certain by now."""
    with engine_errors():
        if not arguments.dry_run:
            check_rights(arguments.engine)
    if arguments.compare:
        return []
    if arguments.find_cliff:
        return [registry.cliff_question(arguments.find_cliff, overrides_of(arguments))]
    if arguments.users:
        return studies_of_users(arguments)
    return [study_of(name, arguments) for name in arguments.scenario or [""]]


if __name__ == "__main__":
    run_main("run.sh", main, kept=KEPT)
