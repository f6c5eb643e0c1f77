"""--export: findings as data, in files or on standard output.

Where standard output carries data, the text for people goes to standard error.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from firstflight.base import argument_types, files
from firstflight.base.parser import Parser
from firstflight.base.terminal import print_while_read, say

if TYPE_CHECKING:  # a dry run loads no findings
    from firstflight.findings.findings import Report

STDOUT = "-"
NAME = "{name}"  # in a file's name: the scenario's


def refuse_wrong(parser: Parser, arguments: argparse.Namespace) -> None:
    """Exits with a line where an export cannot be written, before anything is measured."""
    places = [place for _, place in arguments.export]
    for form, place in arguments.export:
        if form not in argument_types.EXPORTS:
            parser.error(f"--export: {form!r} is none of {', '.join(argument_types.EXPORTS)}")
        if place == STDOUT:
            continue
        try:
            argument_types.output_file(place)
        except argparse.ArgumentTypeError as error:
            parser.error(f"--export: {error}")
    if len(set(places)) < len(places):
        parser.error("--export: two formats go to one file; give each a file of its own")
    is_several = (len(arguments.scenario) != 1 and not arguments.own
                  and not (arguments.probe or arguments.compare or arguments.users
                           or arguments.find_cliff))
    if is_several and any(NAME not in Path(place).name for place in places):
        parser.error(f"--export: {len(arguments.scenario) or 'the default'} scenarios are"
                     f" measured: write {NAME} into the file's name, as --export json"
                     f" 'findings-{NAME}.json'")


def write_files(arguments: argparse.Namespace, report: Report) -> list[Path]:
    """Write the findings to the files that are requested; return their paths.

    Raises WriteError.
    """
    if not arguments.export:
        return []
    from firstflight.findings.render import data
    written = []
    for form, place in arguments.export:
        if place != STDOUT:
            path = Path(place)
            written.append(files.write(path.with_name(path.name.replace(NAME, report.name)),
                                       data.exported(form, report)))
    return written


def print_data(arguments: argparse.Namespace, report: Report) -> bool:
    """Print the findings where standard output is requested; False if its reader has left."""
    from firstflight.findings.render import data
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as files are, whatever the locale
    return all([print_while_read(data.exported(form, report).rstrip("\n"))
                for form, place in arguments.export if place == STDOUT])


def print_text(arguments: argparse.Namespace, text: str) -> bool:
    """Print text for people; False if its reader has left."""
    if not any(place == STDOUT for _, place in arguments.export):
        return print_while_read(text)
    if not arguments.quiet:
        say(text)
    return True
