"""run.sh --compare: how stored runs differ from the first one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from firstflight.base import errors
from firstflight.base.argument_types import file_path
from firstflight.base.errors import UsageError
from firstflight.commands import export
from firstflight.commands.request import Output, Request
from firstflight.study import registry

if TYPE_CHECKING:
    from firstflight.findings.findings import Report


def add_flags(add: Callable[..., object]) -> None:
    add("--compare", type=file_path, nargs="+", metavar="RUN",
        help="compare stored runs, cell by cell, with the first one, and name the settings that"
             " differ; measures nothing")


def is_requested(request: Request) -> bool:
    return request.compare is not None


def run(request: Request) -> int:
    """Draw and print how stored runs differ from the first. Raises UsageError."""
    # These compare and render, and are slow to import.
    from firstflight.commands.stored import report_contradictions
    from firstflight.findings.render import text
    from firstflight.study import compared_runs

    folders = request.compare or ()
    if len(folders) < 2:
        raise UsageError("--compare: takes two or more runs, such as results/zhao2019/latest")
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(f"--compare: {folder}: there is no such run")

    names = compared_runs.names(folders)
    output = request.output
    with report_contradictions(folders[-1]):
        report = compared_runs.report([(names[folder], registry.stored_run(folder)[1])
                                       for folder in folders])
        written = [*draw(report, output), *export.write_files(output, report)]
        rendered = "\n".join([text.text(report), *map(str, written)])

    was_read = export.print_text(output, rendered)
    was_read = export.print_data(output, report) and was_read
    return errors.OK if was_read else errors.UNREAD


def draw(report: Report, output: Output) -> Sequence[Path]:
    """Draw the comparison if figures are wanted; return the paths of the files written."""
    if not output.draw:
        return ()
    from firstflight.findings import drawing  # imports matplotlib, which is slow
    images = drawing.images(report, output.formats)
    return drawing.save(report.name, images, output.figures, output.formats)
