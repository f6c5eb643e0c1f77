"""--export: findings as data, in files or on standard output.

Where standard output carries data, the text for people goes to standard error.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from firstflight.base import files
from firstflight.base.terminal import print_while_read, say
from firstflight.commands.request import Output

if TYPE_CHECKING:  # a dry run loads no findings
    from firstflight.findings.findings import Report

STDOUT = "-"
NAME = "{name}"  # stands in a file's name for the name of the scenario


def write_files(output: Output, report: Report) -> list[Path]:
    """Write the findings to the files that are requested; return their paths.

    Raises WriteError.
    """
    if not output.exports:
        return []
    from firstflight.findings.render import data
    written = []
    for form, place in output.exports:
        if place != STDOUT:
            path = Path(place)
            named = path.with_name(path.name.replace(NAME, report.name))
            written.append(files.write(named, data.exported(form, report)))
    return written


def print_data(output: Output, report: Report) -> bool:
    """Print the findings where standard output is requested; False if its reader has left."""
    from firstflight.findings.render import data
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # whatever the locale, as in files

    was_read = True
    for form, place in output.exports:
        if place == STDOUT:
            was_read = print_while_read(data.exported(form, report).rstrip("\n")) and was_read
    return was_read


def print_text(output: Output, text: str) -> bool:
    """Print text for people; False if its reader has left."""
    if not any(place == STDOUT for _, place in output.exports):
        return print_while_read(text)
    if not output.quiet:
        say(text)
    return True
