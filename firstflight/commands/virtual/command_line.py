"""Reads the flags before `-- COMMAND`, and refuses what is wrong with them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from firstflight.base import PROJECT, typed
from firstflight.base.argument_types import (argument, file_path, output_folder, positive_number,
                                             whole_number)
from firstflight.base.errors import CannotError, UsageError
from firstflight.base.parser import Parser
from firstflight.base.quantity import KernelName
from firstflight.commands.virtual.records import CAPTURE_BYTES, DEFAULT_KERNEL
from vtime import CommandRequest, LinkTimes
from vtime.command.beginning import EARLIEST_S, LATEST_S
from vtime.command.in_place import IN_PLACE, OURS
from vtime.memory import MEMINFO, available
from vtime.readable import led_to

SHORT = """\
usage: ./run.sh [FLAG ...] -- COMMAND [WORD ...]

Run a command, such as a Mininet script, in a virtual machine whose clock skips idle time. It runs
on real Linux, as root of that machine; you need no root. The files that it writes into the current
folder are kept with its output in results/commands.

  ./run.sh -- python3 my_experiment.py
  ./run.sh -- mn --switch lxbr --controller none --topo tree,2 --test pingall
  ./run.sh --timeout 1h,10m -- ./start.sh

  --memory 1G         memory of the machine (default 1G)
  --timeout 60,30     stop the command after 60 s of the machine's clock or 30 s of real time
                      (exit status 124); one number is the limit of both
  --seed N            seed of everything random in the machine (default 1)
  --repeat 10         run it so many times, with seeds from --seed on and a machine's noise, and
                      print how far its numbers lie apart
  --jobs 2            with --repeat: run so many at once (default 1)
  --kernel A,B        run it on both kernels with one seed, and print the first packet that differs;
                      --kernel A: run it on that one (vtime/KERNELS.md)
  --packet-cost 1us   for how long a netem without a rate of its own is busy after a segment
                      (default 1us; 0 for not at all)
  --clock 2026-11-28  the date at which the machine's clock begins, at 0:00 UTC (default: the day
                      after the newest file that the command reads was written)
  --readable PATH     also let the command read this path; home folders are hidden, except the
                      current folder
  --env NAME[=VALUE]  give the command this environment variable, too
  --write-back        write the command's files into the current folder
  --limit 1G,100000   most bytes and most files that are kept
  --capture [BYTES]   keep every packet of every link, and report what the network really did:
                      report.html, links.csv, connections.csv, and capture.pcapng for Wireshark
                      (at most 500 MB)
  --report FOLDER     without a command: build the page of a stored capture again
  --results DIR       where results go (DIR/commands)
  --quiet             no progress

The exit status is the command's own; 124 after a timeout; 1 where the machine died or something
could not be saved; 130 after the second Ctrl-C (the first one goes to the command; a third one
does not wait for its files).
"""
_KERNEL = KernelName("kernel", "a kernel")
LEAST_MB = 128  # of memory, with which a guest starts
# File systems that describe a machine. In the guest they describe the guest.
VIRTUAL = ("/proc", "/sys", "/dev")
# Folders that the guest has of its own, since its first process writes into them.
GUESTS_OWN = (*VIRTUAL, "/tmp", OURS, "/mnt", *IN_PLACE)
NANOSECONDS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}


@dataclass(frozen=True)
class CommandLine:
    """What `./run.sh [FLAG ...] -- COMMAND` asks for."""

    # The command, its machine and its limits.
    request: CommandRequest
    # The names of one kernel to run it on, or of two to compare.
    kernels: Sequence[str]
    # How many times to run it; None without --repeat.
    repeat: int | None
    # How many of these runs at once; None for one.
    jobs: int | None
    # The folder of results; the command gets a folder in results/commands.
    results: Path
    # Print no progress.
    quiet: bool


def parse(argv: Sequence[str]) -> CommandLine:
    """Read a command line. A wrong flag ends the program with a line, --help with the help.

    Raises UsageError, CannotError.
    """
    flags, words = split_at_dashes(argv)
    parser = Parser({}, SHORT, prog="run.sh", allow_abbrev=False)
    add = parser.add_argument
    add("--memory", type=argument(megabytes), default=CommandRequest.memory_mb)
    add("--timeout", type=argument(limits), default=(None, None))
    add("--seed", type=whole_number, default=CommandRequest.seed)
    add("--kernel", type=argument(kernels), default=[DEFAULT_KERNEL])
    add("--repeat", type=positive_number, metavar="N")
    add("--jobs", type=positive_number, metavar="N")
    add("--clock", type=argument(date), metavar="DATE")
    add("--packet-cost", type=argument(nanoseconds), default=LinkTimes.packet_cost_ns)
    add("--readable", action="append", default=[], type=file_path)
    add("--env", action="append", default=[])
    add("--write-back", action="store_true")
    add("--limit", type=argument(most),
        default=(CommandRequest.most_bytes, CommandRequest.most_files))
    add("--results", type=output_folder, default=PROJECT / "results")
    add("--quiet", action="store_true")
    add("--capture", nargs="?", type=argument(most_captured), const=CAPTURE_BYTES, default=0)
    arguments = parser.parse_args(list(flags))
    if not words:
        parser.error("there is no command after --: write ./run.sh -- COMMAND, such as"
                     " ./run.sh -- python3 my_experiment.py")
    if not 0 <= arguments.seed < 1 << 63:  # the range that a guest's kernel takes
        parser.error("--seed: write a whole number from 0 on, such as --seed 7")
    check_memory(arguments.memory)
    check_readable(arguments.readable)

    clock_limit_s, wall_limit_s = arguments.timeout
    most_bytes, most_files = arguments.limit
    request = CommandRequest(
        words=tuple(words), folder=Path.cwd(), readable=tuple(arguments.readable),
        environment=environment_of(arguments.env), begins_s=arguments.clock,
        memory_mb=arguments.memory, seed=arguments.seed, clock_limit_s=clock_limit_s,
        wall_limit_s=wall_limit_s, most_bytes=most_bytes, most_files=most_files,
        write_back=arguments.write_back, capture_bytes=arguments.capture,
        link_times=LinkTimes(arguments.packet_cost))
    line = CommandLine(request, kernels=tuple(arguments.kernel), repeat=arguments.repeat,
                       jobs=arguments.jobs, results=arguments.results, quiet=arguments.quiet)
    check_repeat(line)
    return line


def split_at_dashes(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The flags before the first `--`, and the command after it."""
    place = list(argv).index("--")
    return argv[:place], argv[place + 1:]


def check_memory(requested_mb: int) -> None:
    """Refuse more memory than this machine has available. Raises CannotError."""
    room = available(MEMINFO)
    if room is not None and requested_mb > room:
        raise CannotError(f"--memory: {requested_mb} MB are requested, and {room} MB are"
                          " available")


def check_readable(paths: Sequence[Path]) -> None:
    """Refuse paths of --readable that the guest cannot or should not see. Raises UsageError.

    Such a path is missing, hides a folder that the guest has of its own, or leads to secrets.
    """
    for requested in paths:
        if not os.path.exists(requested):  # Path.exists raises where it may not look
            raise UsageError(f"--readable: there is no {requested}")
        place = requested.resolve()
        own = [folder for folder in GUESTS_OWN if Path(folder).is_relative_to(place)]
        own += [folder for folder in VIRTUAL if place.is_relative_to(folder)]
        if own:
            raise UsageError(f"--readable: {requested}: the machine has {own[0]} of its own; name"
                             " what the command has to read (programs in /usr it reads anyway)")
        if secret := led_to(requested, Path.cwd()):
            raise UsageError(f"--readable: {requested} leads to {secret}: if that is meant, name"
                             " it")


def check_repeat(line: CommandLine) -> None:
    """Refuse flags that need --repeat, or do not go with it or with two kernels.

    Raises UsageError.
    """
    if line.jobs and not line.repeat:
        raise UsageError("--jobs: one run has one machine; write --repeat 10 --jobs 2")
    if len(line.kernels) > 1 and (line.repeat or line.request.write_back):
        raise UsageError("--kernel: two kernels are compared packet by packet, without --repeat and"
                         " --write-back")
    if line.repeat and line.request.write_back:
        raise UsageError("--write-back: several runs would write the same files; leave it out:"
                         " each run's files are kept in results/commands")


def environment_of(words: Sequence[str]) -> dict[str, str]:
    """The variables of --env. Raises UsageError where one without a value is not set here."""
    environment = {}
    for word in words:
        name, equals, value = word.partition("=")
        is_known = equals or name in os.environ
        if not name.isidentifier() or not is_known:
            raise UsageError(f"--env: {word}: write NAME=VALUE, or the NAME of a variable that is"
                             " set")
        environment[name] = value if equals else os.environ[name]
    return environment


def _numbers(words: str, *units: str) -> list[float]:
    """Numbers with commas between them, at most one for each unit. Raises ValueError."""
    given = [typed.number(word, unit) for word, unit in zip(words.split(","), units)]
    if len(words.split(",")) > len(units) or min(given) <= 0:
        raise ValueError(f"{words!r}: write at most {len(units)} numbers above 0,"
                                         " with a comma between them")
    return given


def limits(words: str) -> tuple[float, float]:
    """The limits of --timeout: in seconds of the guest's clock, and in seconds of real time."""
    given = _numbers(words, "s", "s")
    return given[0], given[-1]


def kernels(words: str) -> list[str]:
    """The names of --kernel: one, or two to compare."""
    names = [_KERNEL.accept(word.strip()) for word in words.split(",")]
    if len(names) > 2 or len({*names}) < len(names):
        raise ValueError(f"{words!r}: write one kernel, or two that differ, as"
                                         f" {DEFAULT_KERNEL},mine (./install.sh --list-kernels)")
    return names


def nanoseconds(word: str) -> int:
    """The time of --packet-cost in ns: at most a second."""
    match = re.fullmatch(r"(?P<number>\d+\.?\d*)(?P<unit>ns|us|µs|ms|s)|0", word.strip())
    time_ns = 0
    if match is not None and match["unit"]:
        time_ns = round(float(match["number"]) * NANOSECONDS[match["unit"]])
    if match is None or time_ns > NANOSECONDS["s"]:
        raise ValueError(f"{word!r}: write a time with its unit, such as 1us, at"
                                         " most 1s; or 0")
    return time_ns


def date(word: str) -> int:
    """The day of --clock: when it begins (UTC), in seconds since 1970."""
    try:
        given = datetime.strptime(word, "%Y-%m-%d").replace(tzinfo=timezone.utc)
        if EARLIEST_S <= given.timestamp() < LATEST_S:
            return int(given.timestamp())
    except ValueError:
        pass
    raise ValueError(f"{word!r}: write a day from 2026 to 2199, such as 2026-11-28")


def most(words: str) -> tuple[int, int]:
    """The limits of --limit: how many bytes and how many files are kept at most."""
    given = _numbers(words, "bytes", "")
    return int(given[0]), int(given[1]) if len(given) > 1 else CommandRequest.most_files


def most_captured(word: str) -> int:
    """The limit of --capture: how many bytes of packets are kept at most."""
    (given,) = _numbers(word, "bytes")
    return int(given)


def megabytes(word: str) -> int:
    """The memory of --memory, in MB. A number without a unit is in MB already."""
    (given,) = _numbers(word, "bytes")
    mb = int(given if word.strip().isdigit() else given / 1e6)
    if mb < LEAST_MB:
        raise ValueError(f"{word!r} is too little memory: at least {LEAST_MB}M")
    return mb
