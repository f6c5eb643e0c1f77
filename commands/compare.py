"""run.sh --compare: what stored runs have otherwise than the first; nothing is measured."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from lab import registry
from lab.core import errors
from lab.core.command_line import printed
from lab.core.errors import UsageError
from lab.core.run import comparison
from lab.render import text


def run(arguments: argparse.Namespace) -> int:
    """Draw, then print. Raises UsageError."""
    folders = arguments.compare
    if len(folders) < 2:
        raise UsageError("--compare: takes two or more runs, such as results/zhao2019/latest")
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(f"--compare: {folder}: there is no such run")
    names = comparison.names(folders)
    report = comparison.report([(names[folder], registry.stored_run(folder)[1])
                                for folder in folders])
    written: Sequence[Path] = []
    if not arguments.no_figures:
        import drawing  # and with it matplotlib: only where it draws
        written = drawing.save(report.name, drawing.images(report, arguments.format),
                               arguments.figures, arguments.format)
    was_read = printed("\n".join([text.text(report), *map(str, written)]))
    return errors.OK if was_read else errors.UNREAD
