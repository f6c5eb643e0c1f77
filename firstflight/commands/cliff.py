"""run.sh --find-cliff: the largest chain or response of one flight, measured to the byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from firstflight.base import errors
from firstflight.base.terminal import say, terminal_width
from firstflight.commands import export
from firstflight.commands.request import Request
from firstflight.runs.kinds import AnyStudy
from firstflight.study import registry
from firstflight.study.registry import FoundCliff

if TYPE_CHECKING:
    from firstflight.study.fetches import FetchStudy
    from firstflight.workloads.fetch.record.record import Record
    from firstflight.workloads.fetch.trial import Trial
    from firstflight.findings.findings import Report


def add_flags(add: Callable[..., object]) -> None:
    add("--find-cliff", choices=("chain", "response", "early"),
        help="find to the byte, for each --iw, the largest certificate chain, response or early"
             " data that a first flight holds, with the writes and segments that explain it")


def is_requested(request: Request) -> bool:
    return request.find_cliff is not None


def check(request: Request) -> str:
    """Why the other flags do not go with --find-cliff; "" if they do."""
    if is_requested(request) and (request.scenarios or request.users or request.page
                                  or request.name or request.overrides.repeat):
        return ("--find-cliff is a question of its own: it takes flags of a network, TCP and TLS,"
                " and no scenario, --users, --name or --repeat")
    return ""


def read(request: Request) -> list[FetchStudy]:
    """The network and windows of the search. Raises UsageError."""
    assert request.find_cliff is not None
    return [registry.cliff_question(request.find_cliff, request.overrides)]


def run(request: Request) -> int:
    """Print where one byte more costs a round trip, by window; return the exit status.

    Nothing is kept but what is printed. Raises UsageError, FirstFlightError.
    """
    assert request.find_cliff is not None
    what, found = request.find_cliff, []
    study, = read(request)
    if request.dry_run:
        return dry(study, request)
    # What boots guests, judges and renders, which a dry run does not load.
    from firstflight.commands.runners import rounds
    from firstflight.findings.render.text import wrapped

    output = request.output
    with rounds(study, request.measuring) as records:
        is_quiet = output.quiet

        def measure(trials: Sequence[Trial]) -> dict[Trial, Record]:
            """Measure some trials; return their records, judged as those of any run."""
            nonlocal is_quiet
            if not is_quiet:
                say(f"--find-cliff: measures {len(trials)} sizes at a time, until one byte decides")
            is_quiet = True
            return {record.trial: record for record in records(trials)}

        for cliff in registry.cliffs(what, study, measure):
            for line in cliff.lines:
                detail = line.startswith("  ")
                export.print_text(output, wrapped(
                    line.strip(), terminal_width(), "    " if detail else "  ",
                    "  " if detail else ""))
            found.append(cliff)
    report = report_of(study, found)
    export.write_files(output, report)
    was_read = export.print_data(output, report)
    if not all(cliff.agrees for cliff in found):
        return errors.VERDICT
    return errors.OK if was_read else errors.UNREAD


def report_of(study: AnyStudy, found: Sequence[FoundCliff]) -> Report:
    """The cliffs as a report, for --export."""
    from firstflight.findings.findings import Answer, Column, Finding, Report, Table

    values = [cliff.values for cliff in found if cliff.values is not None]
    columns = (Column("iw", "segments"), Column("with", is_text=True),
               Column("fits_bytes", "bytes"), Column("at_least", is_text=True),
               Column("model_bytes", "bytes"), Column("agrees", is_text=True))
    rows = []
    for row in values:
        cells = (str(row[column.name]) if column.is_text else row[column.name]
                 for column in columns)
        rows.append(tuple(cells))
    table = Table("", columns, tuple(rows))

    lines = tuple(line for cliff in found for line in cliff.lines)
    return Report(
        name="cliff", title=study.head.title, claim=lines[0], source=study.head.source, path="",
        facts={}, verified=len(values), count=len(values),
        findings=(Finding("cliff", study.head.title, (table,)),),
        sentences=lines, answer=Answer(lines[0], values={"cliffs": values}))


def dry(study: AnyStudy, request: Request) -> int:
    """Print what a search would measure."""
    from firstflight.commands.dry_run import dry_run
    dry_run(study, request.measuring, request.overrides)
    print("--find-cliff: measures other sizes of each trial, round after round, until the largest"
          " that fits and the smallest that does not are one byte apart; the expected time is that"
          " of one round")
    return errors.OK
