"""`./run.sh --packetdrill FILE|DIR…`: packetdrill's scripts in virtual time, and which pass."""

from __future__ import annotations

import argparse
import csv
import io
import os
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from base import errors, files
from base.command_line import Parser, file_path, output_folder, printed, say, whole
from base.errors import OK, CannotError, UsageError
from base.words import to_text
from commands.runners import engine_errors
from commands.virtual.command import check_readable, check_seed, limits, new_folder
from vtime.command import packetdrill
from vtime.command.guest import TIMED_OUT, locked_folder
from vtime.command.packetdrill import DIED, FAILED, PASSED, VERSIONS, Result, Script, Setup
from vtime.session import GUEST
from vtime.uml import built_kernel_for_commands, processors

SHORT = """\
usage: ./run.sh --packetdrill FILE|DIR [FILE|DIR ...] [FLAG ...]

Run packetdrill scripts in virtual time, each in a network namespace of its own, as isolated as
./run.sh -- COMMAND. Of a folder all *.pkt are run. See docs/PACKETDRILL.md for how to get
packetdrill.

  --program PATH      packetdrill (default: the one on the PATH)
  --ip-version V      ipv4, ipv6, ipv4-mapped-ipv6, or all that a script can be run with
                      (default: the one that the script sets, else ipv4)
  --tolerance USECS   largest deviation of a time, from 1 on (default: packetdrill's own,
                      4000 or 12.5 % of the time since the last event)
  -D NAME=VALUE       define a name for the scripts
  --readable PATH     also let the scripts read this path
  --jobs N            machines that run at the same time (default: one for each processor)
  --timeout 180,1h    most virtual time of a script, and most real time of all (exit status 124)
  --seed N            seed of everything random in the machines (default 1)
  --results DIR       where results go (DIR/packetdrill)
  --quiet             print only scripts that do not pass

The exit status is 0 where all pass, 3 where one fails, 1 where a machine died with a script.
"""
MOST_SCRIPT_BYTES = 1 << 20
MOST_LOOKED_AT = 20_000  # files of a folder; the kernel's own scripts are some hundreds
HEAD = ("script", "ip_version", "verdict", "line", "virtual_s", "words")
TOOL = "ethtool"  # that the kernel's own scripts call
VERDICTS = {PASSED: "pass", FAILED: "FAIL", DIED: "DIED"}  # as they are printed


def run(argv: Sequence[str]) -> int:
    """Run them; the status. Raises UsageError, CannotError, FirstFlightError, WriteError."""
    arguments = parsed(argv)
    chosen, program = scripts_of(arguments), program_of(arguments)
    began = time.monotonic()
    counts, virtual_s, status = Counter[str](), 0.0, OK
    with engine_errors():
        kernel = built_kernel_for_commands()
        limit_s, wall_s = arguments.timeout
        setup = Setup(kernel, program, arguments.jobs, arguments.seed,
                      options_of(arguments), tuple(arguments.readable), limit_s)
        folder = new_folder(arguments.results, "packetdrill")
        path = folder / "packetdrill.csv"
        with locked_folder(folder / GUEST) as place, files.append(path) as table:
            add_row(table, path, HEAD)
            try:
                for result in packetdrill.run(setup, chosen, place, wall_s and began + wall_s):
                    counts[result.verdict] += 1
                    virtual_s += result.virtual_s
                    add_row(table, path, row(result))
                    if result.verdict != PASSED or not arguments.quiet:
                        printed(line(result))
            except packetdrill.OutOfTime as error:
                say(f"run.sh: {error}")
                status = TIMED_OUT
    say(f"run.sh: {summary(counts, len(chosen))}; {virtual_s:.1f} s of virtual time in"
        f" {time.monotonic() - began:.1f} s; {os.path.relpath(path)}")
    return status or (errors.FAILED if counts[DIED] else errors.VERDICT if counts[FAILED] else OK)


def read(argv: Sequence[str]) -> int:
    """Whether it can be run at all. Raises UsageError, CannotError."""
    arguments = parsed(argv)
    scripts_of(arguments)
    program_of(arguments)
    return OK


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Exits with a line where one is wrong."""
    parser = Parser({}, SHORT, prog="run.sh", allow_abbrev=False)
    add = parser.add_argument
    add("--packetdrill", nargs="+", type=file_path, required=True)
    add("--program", type=file_path)
    add("--ip-version", choices=[*VERSIONS, "all"], default="")
    add("--tolerance", type=whole)
    add("-D", action="append", default=[], dest="defined")
    add("--readable", action="append", default=[], type=file_path)
    add("--jobs", type=whole, default=len(processors()))
    add("--timeout", type=limits, default=(Setup.limit_s, None))
    add("--seed", type=whole, default=Setup.seed)
    add("--results", type=output_folder, default=files.PROJECT / "results")
    add("--quiet", action="store_true")
    arguments: argparse.Namespace = parser.parse_args(list(argv))
    if not 1 <= arguments.jobs <= 64:
        parser.error("--jobs: write a number from 1 to 64, such as --jobs 2")
    check_seed(parser, arguments)
    if arguments.tolerance is not None and not 1 <= arguments.tolerance < 1 << 31:
        parser.error("--tolerance: write microseconds from 1 on, such as --tolerance 4000;"
                     " packetdrill refuses 0")
    if wrong := [word for word in arguments.defined if not word.partition("=")[0].isidentifier()]:
        parser.error(f"-D: {wrong[0]}: write NAME=VALUE, such as -D USE_ECN=1")
    return arguments


def program_of(arguments: argparse.Namespace) -> Path:
    """The program that is named, or the one on the PATH. Raises UsageError, CannotError."""
    if arguments.program is not None:
        if not os.access(arguments.program, os.X_OK) or arguments.program.is_dir():
            raise UsageError(f"--program: {arguments.program} is not a program that can be run")
        return Path(arguments.program)
    if (path := shutil.which("packetdrill")) is None:
        raise CannotError("packetdrill is not installed: build it as docs/PACKETDRILL.md shows, and"
                          " name it with --program")
    return Path(path)


def options_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """packetdrill's own arguments.

    It allows the larger of its two tolerances: the other is a share of the time since the last
    event (run_packet.c, verify_time), 12.5 % unless it is told otherwise.
    """
    tolerance = arguments.tolerance
    return (*(() if tolerance is None else
              (f"--tolerance_usecs={tolerance}", "--tolerance_percent=0")),
            *(f"-D{word}" for word in arguments.defined))


def scripts_of(arguments: argparse.Namespace) -> list[Script]:
    """Those that are named, in the order of their names within a folder. Raises UsageError."""
    scripts: list[Script] = []
    for path in arguments.packetdrill:
        if not os.path.exists(path):
            raise UsageError(f"--packetdrill: there is no {path}")
        inside = scripts_in(path) if path.is_dir() else [path]
        if not inside:
            raise UsageError(f"--packetdrill: {path} has no *.pkt files")
        for script in inside:
            try:
                text = files.content(script, MOST_SCRIPT_BYTES).decode(errors="replace")
            except (OSError, ValueError) as error:
                raise UsageError(f"--packetdrill: {script} cannot be read: {error}") from None
            scripts += [Script(script, version, text) for version
                        in packetdrill.versions(script, text, arguments.ip_version)]
    if not scripts:
        raise UsageError(f"--packetdrill: none of these scripts is for {arguments.ip_version}")
    check_readable(arguments)
    if (count := sum(TOOL in script.text for script in scripts)) and not shutil.which(TOOL):
        say(f"run.sh: {count} of these scripts call {TOOL}, which is not installed, and may fail"
            f" without it: apt-get install {TOOL}")
    return scripts


def scripts_in(folder: Path) -> list[Path]:
    """All *.pkt of a folder and those in it, in order. Raises UsageError for a huge one."""
    found, looked_at = list[Path](), 0
    for above, folders, names in os.walk(folder):
        looked_at += len(folders) + len(names)
        if looked_at > MOST_LOOKED_AT:
            raise UsageError(f"--packetdrill: {folder} has more than {MOST_LOOKED_AT} files; name"
                             " the folders that have scripts")
        found += [Path(above, name) for name in names if name.endswith(".pkt")]
    return sorted(found)


# What is stored and printed -----------------------------------------------------------

def add_row(table: io.FileIO, path: Path, cells: Sequence[object]) -> None:
    """Append a row to the table. Raises WriteError."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    with files.writing(path):
        files.write_all(table, text.getvalue().encode(errors="replace"))


def row(result: Result) -> tuple[object, ...]:
    """The cells of a script under HEAD."""
    return (to_text(str(result.script.path)), result.script.ip_version, result.verdict,
            result.line or "", f"{result.virtual_s:.9f}", to_text(result.words))


def line(result: Result) -> str:
    """The line of a script: `FAIL  0.103 s  tcp/one.pkt:7 (ipv4): …`."""
    script = result.script
    place = f":{result.line}" if result.line else ""
    return (f"{VERDICTS[result.verdict]}{result.virtual_s:9.3f} s  {script.path}{place}"
            f" ({script.ip_version}){f': {result.words}' if result.words else ''}")


def summary(counts: Counter[str], count: int) -> str:
    """How many scripts pass, fail and were not run."""
    done = sum(counts.values())
    parts = [f"{counts[PASSED]} of {count} scripts pass"]
    parts += [f"{counts[FAILED]} fail"] * bool(counts[FAILED])
    parts += [f"with {counts[DIED]} the machine died"] * bool(counts[DIED])
    parts += [f"{count - done} were not run"] * (done < count)
    return ", ".join(parts)
