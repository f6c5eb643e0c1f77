"""`./run.sh --report FOLDER`: what a command's network really did, from the packets it kept."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engines.command.guest import BEGINS_S
from lab.capture import pcapng
from lab.capture.report import reported
from lab.core import files
from lab.core.command_line import Parser, file_path, say, terminal_width
from lab.core.errors import OK, UsageError
from lab.core.results.facts import COMMAND, read_facts_file
from lab.render import data, page, text

COMMAND_JSON = "command.json"  # of a command's folder: what was run
SHORT = """\
usage: ./run.sh --report FOLDER [--connection NUMBER]

Build report.html, links.csv and connections.csv again from capture.pcapng. FOLDER is the folder
in results/commands of a command that ran with ./run.sh --capture -- COMMAND.

  --connection N   draw the packets of connection N of connections.csv (default: of the one with
                   most data)
"""


def run(argv: Sequence[str]) -> int:
    """Build the page again. Raises UsageError, FirstFlightError."""
    arguments = parsed(argv)
    write(arguments.report, stored_facts(arguments.report), arguments.connection)
    return OK


def read(argv: Sequence[str]) -> int:
    """Check the flags. Raises UsageError."""
    parsed(argv)
    return OK


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The flags; their folder has a capture. Raises UsageError."""
    parser = Parser({}, SHORT, prog="run.sh", allow_abbrev=False)
    parser.add_argument("--report", type=file_path, required=True)
    parser.add_argument("--connection", type=int, default=0)
    arguments: argparse.Namespace = parser.parse_args(list(argv))
    if arguments.connection < 0:
        parser.error("--connection: write a number of connections.csv, such as --connection 1")
    requested = arguments.report
    if os.path.isfile(requested):
        arguments.report = requested.parent
    if not os.path.isfile(arguments.report / pcapng.NAME):
        raise UsageError(f"--report: {requested} has no {pcapng.NAME}: name the folder of a"
                         " command that ran with ./run.sh --capture -- COMMAND")
    return arguments


def stored_facts(folder: Path) -> Mapping[str, Any]:
    """command.json; {} where there is none. Raises RecordsError."""
    path = folder / COMMAND_JSON
    return read_facts_file(path, COMMAND) if os.path.lexists(path) else {}


def write(folder: Path, stored: Mapping[str, Any], connection: int = 0) -> None:
    """report.html, links.csv and connections.csv next to a capture; the answer on the terminal.

    connection: the one whose packets are drawn; 0 for those with most data. Raises
    FirstFlightError, OSError.
    """
    import drawing  # and with it matplotlib
    capture = pcapng.read(folder / pcapng.NAME)
    rendered = reported(capture, stored, str(folder), BEGINS_S * 1_000_000_000, connection)
    if connection and not rendered.report.timelines:
        raise UsageError(f"--connection: there is no connection {connection} with data; see"
                         " connections.csv for their numbers")
    pictures = drawing.for_page(drawing.images(rendered.report))
    *_, path = files.save_all(folder, {
        "links.csv": data.table_csv(rendered.links),
        "connections.csv": data.table_csv(rendered.connections),
        page.PAGE: page.page(rendered.report, pictures)})
    sys.stdout.flush()
    for line in text.brief(rendered.report, terminal_width()).splitlines():
        say(line)
    say(f"run.sh: the page is {os.path.relpath(path)}")
