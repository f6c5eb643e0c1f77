"""Measuring scenarios: from a command line to records, a page, figures and text."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from firstflight.base import errors, files
from firstflight.base.command_line import print_while_read, say, terminal_width
from firstflight.base.errors import UsageError
from firstflight.base.files import WriteError
from firstflight.base.words import escaped
from firstflight.commands.runners import check_rights, engine_errors, measurer_for, planned
from firstflight.findings.quantities import FLAGS
from firstflight.findings.render import text
from firstflight.runs import measuring, runs, scenario_file
from firstflight.runs.kinds import Overrides, RunData, Study
from firstflight.runs.measuring import MeasureOptions, Refining, measure
from firstflight.runs.results import provenance
from firstflight.runs.results.records import FAIL
from firstflight.runs.scenario_file import ScenarioFile
from firstflight.study import registry
from firstflight.testbed.network.commands import commands_of

DRY_RUN_LISTED = 20
OWN_CAPTURES = 64  # trials
MOST_NAMES = 3  # of files in one folder, in a line; more are counted


def read(arguments: argparse.Namespace) -> list[Study]:
    """The scenarios that are named, or a question of one's own by flags. Raises UsageError."""
    return [study_of(name, arguments) for name in arguments.scenario or [""]]


def run(arguments: argparse.Namespace,
        read: Callable[[argparse.Namespace], Sequence[Study]] = read) -> int:
    """Measure each of them; the exit status.

    All are read before the first is measured, which may take hours. Raises UsageError, and
    CannotError where it is certain by now.
    """
    check_rights(arguments)
    studies = list(read(arguments))
    for study in studies:
        for condition in arguments.fail_if:
            condition.check(study)
    return worst([run_study(study, arguments) for study in studies])


def worst(statuses: Sequence[int]) -> int:
    """The status of several scenarios: a failure counts most, then a verdict."""
    return next((status for status in (errors.FAILED, errors.VERDICT, errors.CANNOT,
                                       errors.CONDITION, errors.UNREAD)
                 if status in statuses), errors.OK)


def run_study(study: Study, arguments: argparse.Namespace) -> int:
    """Measure one scenario and show its report; return the exit status."""
    if arguments.dry_run:
        with engine_errors():
            dry_run(study, *planned(arguments), arguments.results)
        return errors.OK
    return show(study, measured(study, arguments), arguments)


def measured(study: Study, arguments: argparse.Namespace,
             refining: Refining | None = None) -> RunData:
    """Measure one scenario."""
    with engine_errors(), measurer_for(study, arguments) as measurer:
        return measure(study, measurer, replace(options_of(arguments, len(study.trials)),
                                                refining=refining))


def show(study: Study, run: RunData, arguments: argparse.Namespace) -> int:
    """Write the page and figures of a run, then print; return the exit status.

    In this order: a reader who leaves early (`| head`) loses nothing but the text.
    """
    report = study.report(run)
    written = [run.folder / runs.TRIALS_CSV]
    lost: list[WriteError] = []

    def keep(save: Callable[[], list[Path]]) -> None:
        """What cannot be saved stops nothing else."""
        try:
            written.extend(save())
        except WriteError as error:
            lost.append(error)
    if arguments.export:
        from firstflight.findings.render import data
        form, path = arguments.export
        keep(lambda: [files.write(Path(path), data.exported(form, report))])
    if ((study.whole or any(finding.bars for finding in report.findings))
            and not arguments.no_figures):
        from firstflight.findings import drawing  # and with it matplotlib: only where it draws
        from firstflight.findings.render import page
        images = drawing.images(report, tuple(dict.fromkeys(("png", *arguments.format))))
        is_apart = not study.whole and arguments.figures == files.PROJECT / "figures"
        folder = run.folder if is_apart else arguments.figures  # the whole scenario's stay
        keep(lambda: drawing.save(report.name, images, folder, arguments.format))
        keep(lambda: [page.write(run.folder, report, drawing.for_page(images))])
    rendered = (text.text if arguments.full else text.brief)(report, terminal_width())
    was_read = print_while_read(f"{rendered}{files_written(written, arguments.full)}\n")
    for error in lost:
        say(f"run.sh: {error}")
    if lost:
        return errors.FAILED
    if status := status_of(run):
        return status
    judged = [condition.holds(run.records) for condition in arguments.fail_if]
    if judged:
        was_read = print_while_read("\n".join(line for _, line in judged)) and was_read
    if any(holds for holds, _ in judged):
        return errors.CONDITION
    return errors.OK if was_read else errors.UNREAD


def files_written(written: Sequence[Path], full: bool) -> str:
    """Where everything went, a line for each folder: relative below the current one."""
    folders: dict[Path, list[Path]] = {}
    for path in written:
        folders.setdefault(path.parent, []).append(path)
    lines = []
    more = "" if full else " (every table: the page, or --full)"
    for folder, paths in folders.items():
        names = [path.name for path in paths]
        what = ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} figures"
        where = Path(os.path.relpath(folder))
        lines.append(f"{what} in {folder if '..' in where.parts else where}{more}")
        more = ""
    return "\n".join(lines)


def dry_run(study: Study, engine: str, jobs: int, results: Path) -> None:
    """Print what a run would do, on so many guests; results: where earlier ones are."""
    print(f"{study.head.name}: {len(study.trials)} trials")
    for trial in study.trials[:DRY_RUN_LISTED]:
        print(f"  {trial.id}")
    if len(study.trials) > DRY_RUN_LISTED:
        print(f"  … and {len(study.trials) - DRY_RUN_LISTED} more")
    if study.trials:
        print("commands of the first trial:")
        for command in commands_of(study.trials[0].job(), study.head.sysctls):
            print(escaped(f"  {command}"))
    print(f"expected time: {measuring.expected(study, engine, jobs, results)} ({engine} engine)")


def options_of(arguments: argparse.Namespace, trials: int) -> MeasureOptions:
    """Where and how to measure, and what run.json records of the command and the machine.

    A question of one's own keeps all packets of a few trials: the one that shows most is drawn.
    """
    kept = arguments.keep_captures or arguments.own and trials <= OWN_CAPTURES
    return MeasureOptions(
        arguments.results, arguments.seed, arguments.fresh, kept,
        {"arguments": sys.argv[1:], **provenance.of_this_machine(files.PROJECT)}, arguments.quiet,
        reasons=not arguments.no_reasons)


def status_of(run: RunData) -> int:
    """CANNOT where this machine lacks what every trial needs; the report names it."""
    if run.records and all(record.was_skipped for record in run.records):
        return errors.CANNOT
    if not all(record.ok or record.failed_as_expected for record in run.records):
        return errors.FAILED
    if any(record.verdict == FAIL for record in run.records):
        return errors.VERDICT
    return errors.OK


def study_of(name: str, arguments: argparse.Namespace) -> Study:
    """A scenario and all that can be known before measuring; "" for flags. Raises UsageError."""
    requested = overrides_of(arguments)
    return (registry.study_of(allowed(part_of(name, arguments), arguments), requested,
                              arguments.seed)
            if name else
            registry.own_question(arguments.name or "own", requested, arguments.seed))


def part_of(name: str, arguments: argparse.Namespace) -> ScenarioFile:
    """A scenario, or of its networks one in so many. Raises UsageError."""
    file = scenario_file.find(name)
    return file.sampled(arguments.sample) if isinstance(arguments.sample, int) else file


def allowed(file: ScenarioFile, arguments: argparse.Namespace) -> ScenarioFile:
    """The file, unless it names a command that nobody has allowed. Raises UsageError."""
    if file.names_command and not (arguments.allow_commands or arguments.check):
        raise UsageError(f"{file.where}: names a command, [own_server], which would run on this"
                         " machine: read it, then allow it with --allow-commands")
    return file


def overrides_of(arguments: argparse.Namespace) -> Overrides:
    lists = {name: getattr(arguments, name) for name in FLAGS
             if getattr(arguments, name) is not None}
    return Overrides(lists, arguments.repeat, arguments.client,
                     many=arguments.yes or arguments.dry_run, sysctls=tuple(arguments.sysctl),
                     sample="full" if arguments.sample == "full" else "",
                     own_server=own_server(arguments))


def own_server(arguments: argparse.Namespace) -> dict[str, object]:
    """The flags of a server of one's own, by name; {} without its command."""
    given = {"command": arguments.server_command, "ready": arguments.server_ready,
             "url_path": arguments.url_path, "name": arguments.server_name,
             "ca": arguments.ca and str(arguments.ca.absolute()),
             "folders": [str(folder.absolute()) for folder in arguments.server_folder]}
    return {name: value for name, value in given.items() if value not in (None, [])}
