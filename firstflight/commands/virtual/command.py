"""`./run.sh -- COMMAND`: anybody's command in virtual time, and what it wrote."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType

import vtime
from firstflight.base import PROJECT, files, typed
from firstflight.base.argument_types import file_path, output_folder, positive_number, whole_number
from firstflight.base.errors import FAILED, OK, CannotError, UsageError, WriteError
from firstflight.base.parser import Parser
from firstflight.base.quantity import KernelName
from firstflight.base.signals import interrupt_on
from firstflight.base.terminal import say
from firstflight.commands.engines import engine_errors
from firstflight.commands.virtual.records import (CAPTURE_BYTES, COMMAND_JSON, DEFAULT_KERNEL,
                                                  MOST_SHOWN, facts_of, kernel_of, new_folder)
from firstflight.commands.virtual.script import advice, hidden_programs
from vtime import LinkTimes, Result
from vtime.command.beginning import EARLIEST_S, LATEST_S, beginning_s
from vtime.command.guest import CommandGuest, CommandRequest
from vtime.command.in_place import IN_PLACE, OURS
from vtime.command.terminal import RawTerminal, in_foreground
from vtime.memory import MEMINFO, available
from vtime.readable import led_to
from vtime.session import MOST_LINE_BYTES

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
LEAST_SPEED = 0.1  # × real time; less is the time to start a machine
PROGRESS_S = 30.0  # of wall time, between two lines
LEAST_MB = 128
VIRTUAL = ("/proc", "/sys", "/dev")  # file systems that tell of one machine: the guest's there
GUESTS_OWN = (*VIRTUAL, "/tmp", OURS, "/mnt", *IN_PLACE)  # where its first process writes
NANOSECONDS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}


def run(argv: Sequence[str]) -> int:
    """Run it; its exit status. Raises UsageError, CannotError, FirstFlightError, WriteError."""
    flags, words = divided(argv)
    arguments = parsed(flags, words)
    check_request(arguments)
    if arguments.clock is None:
        arguments.clock = beginning_s([Path.cwd(), *arguments.readable], arguments.results)
    for line in (*advice(words, shutil.which),
                 *hidden_programs(words, Path.cwd(),
                                  [path.resolve() for path in arguments.readable])):
        say(f"run.sh: {line}")
    with engine_errors():
        if len(arguments.kernel) > 1:
            from firstflight.commands.virtual import compared
            return compared.run(arguments, words, environment_of(arguments))
        kernel = kernel_of(*arguments.kernel)
        if arguments.repeat:
            from firstflight.commands.virtual import repeated  # and with it numpy
            return repeated.run(arguments, words, kernel, environment_of(arguments))
        folder = new_folder(arguments.results, "commands")
        with Terminal(arguments.quiet) as terminal:
            virtual_s, wall_s = arguments.timeout
            most_bytes, most_files = arguments.limit
            result = vtime.run(
                words, Path.cwd(), folder, memory_mb=arguments.memory, seed=arguments.seed,
                capture_bytes=arguments.capture, readable=arguments.readable,
                environment=environment_of(arguments), clock_limit_s=virtual_s, wall_limit_s=wall_s,
                most_bytes=most_bytes, most_files=most_files, write_back=arguments.write_back,
                link_times=LinkTimes(arguments.packet_cost), watcher=terminal, kernel=kernel,
                begins_s=arguments.clock)
    facts = facts_of(arguments, words, result, arguments.seed, kernel)
    is_whole = result.is_whole
    try:
        files.save(folder, COMMAND_JSON, json.dumps(facts, indent=1) + "\n")
    except WriteError as error:
        is_whole = False
        say(f"run.sh: {error}")
    show_end(folder, result, arguments.quiet)
    if result.capture:
        from firstflight.commands.virtual import captured  # and with it matplotlib
        limit_s = arguments.timeout[1]
        left_s = None if limit_s is None else limit_s - result.wall_s
        if status := captured.write_in_time(folder, facts, left_s, arguments.quiet):
            return result.status or status
    return result.status or (OK if is_whole else FAILED)


def show_end(folder: Path, result: Result, quiet: bool) -> None:
    """Print what a user has to know once the command has ended, on standard error."""
    if result.cut_lines:
        several = result.cut_lines > 1
        say(f"run.sh: {result.cut_lines} line{'s' * several} of output longer than"
            f" {MOST_LINE_BYTES >> 10} kB: {result.output.name} has {'them' if several else 'it'}"
            " in pieces, those after the first marked with +")
    for name in result.spinning:
        say(f"run.sh: {name} spins: it waits without sleeping, so its clock was moved on"
            " (vtime/MININET.md)")
    for line in result.troubles[:MOST_SHOWN]:
        say(f"run.sh: {line}")
    if (more := len(result.troubles) - MOST_SHOWN + result.omitted_count) > 0:
        say(f"run.sh: {more} more such lines; command.json has"
            f" {'the first' if result.omitted_count else 'all'} {len(result.troubles)}")
    if not quiet:
        ratio = result.clock_s / result.wall_s if result.wall_s else 0.0
        speed = f" ({ratio:.1f} × real time)" if ratio >= LEAST_SPEED else ""
        count = result.file_count
        wrote = "" if not count else f" and {count} file{'s' * (count > 1)}"
        say(f"run.sh: {result.clock_s:.1f} s of virtual time in {result.wall_s:.1f} s"
            f"{speed}; output{wrote} in {os.path.relpath(folder)}")


class Terminal(vtime.Watcher):
    """Passes on what the command prints, and what is typed, and signals; prints progress.

    The first Ctrl-C goes to the command, the next one stops it; SIGTERM stops it. Another signal
    ends the machine. At a terminal a Ctrl-C is typed, no signal. Use as a context manager.
    """

    reads_input = True

    def __init__(self, quiet: bool) -> None:
        # In the background it is none: what is typed is for another program.
        self.terminal = sys.stdin.isatty() and sys.stdout.isatty() and in_foreground(0)
        self.quiet = quiet or self.terminal
        self.stack = ExitStack()
        self.started = self.shown = time.monotonic()
        self.unread = self.was_full = False

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def begin(self, guest: CommandGuest) -> None:
        if self.terminal:
            self.stack.enter_context(RawTerminal())
            signal.signal(signal.SIGWINCH, lambda *_: guest.resize())

        def handle(number: int, frame: FrameType | None) -> None:
            if (guest.interrupt() if number == signal.SIGINT
                    else guest.stop(128 + number, signal.strsignal(number) or "stopped")):
                raise KeyboardInterrupt
        interrupt_on(signal.SIGTERM, signal.SIGHUP, *([] if self.terminal else [signal.SIGINT]),
                     by=handle)

    def print(self, is_error: bool, content: bytes) -> str:
        """Print to our own output. Where nobody reads it, or it is full, only the file gets it."""
        rest = memoryview(content)
        while rest and not self.unread:
            try:
                rest = rest[os.write(2 if is_error else 1, rest):]
            except BlockingIOError:
                time.sleep(0.001)
            except BrokenPipeError:
                self.unread = True
            except OSError as error:
                self.unread = True
                return f"the output cannot be passed on: {error.strerror}"
        return ""

    def tick(self, clock_s: float, is_full: bool) -> None:
        now = time.monotonic()
        if self.quiet or now - self.shown < PROGRESS_S and is_full == self.was_full:
            return
        self.shown, self.was_full = now, is_full
        wall_s = now - self.started
        say(f"run.sh: {clock_s:.0f} s of virtual time in {wall_s:.0f} s"
            f" ({clock_s / wall_s:.1f} × real time)"
            f"{'; nearly all of its memory is in use (--memory)' if is_full else ''}")

    def write(self, name: str) -> None:
        say(f"run.sh: writes back {name}")


# The command line --------------------------------------------------------------------

def read(argv: Sequence[str]) -> int:
    """Check that it can be run at all. Raises UsageError, CannotError.

    The default kernel may still have to be built.
    """
    flags, words = divided(argv)
    arguments = parsed(flags, words)
    check_request(arguments)
    with engine_errors():
        for name in {*arguments.kernel} - {DEFAULT_KERNEL}:
            kernel_of(name)
    return OK


def divided(argv: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The flags before the first `--`, and the command behind it."""
    place = list(argv).index("--")
    return argv[:place], argv[place + 1:]


def parsed(flags: Sequence[str], words: Sequence[str]) -> argparse.Namespace:
    """The flags before `--`; exits with a line where one is wrong. Raises CannotError."""
    parser = Parser({}, SHORT, prog="run.sh", allow_abbrev=False)
    add = parser.add_argument
    add("--memory", type=megabytes, default=CommandRequest.memory_mb)
    add("--timeout", type=limits, default=(None, None))
    add("--seed", type=whole_number, default=CommandRequest.seed)
    add("--kernel", type=kernels, default=[DEFAULT_KERNEL])
    add("--repeat", type=positive_number, metavar="N")
    add("--jobs", type=positive_number, metavar="N")
    add("--clock", type=date, metavar="DATE")
    add("--packet-cost", type=nanoseconds, default=LinkTimes.packet_cost_ns)
    add("--readable", action="append", default=[], type=file_path)
    add("--env", action="append", default=[])
    add("--write-back", action="store_true")
    add("--limit", type=most, default=(CommandRequest.most_bytes, CommandRequest.most_files))
    add("--results", type=output_folder, default=PROJECT / "results")
    add("--quiet", action="store_true")
    add("--capture", nargs="?", type=most_captured, const=CAPTURE_BYTES, default=0)
    arguments = parser.parse_args(list(flags))
    if not words:
        parser.error("there is no command after --: write ./run.sh -- COMMAND, such as"
                     " ./run.sh -- python3 my_experiment.py")
    check_seed(parser, arguments)
    room = available(MEMINFO)
    if room is not None and arguments.memory > room:
        raise CannotError(f"--memory: {arguments.memory} MB are requested, and {room} MB are"
                          " available")
    return arguments


def check_seed(parser: Parser, arguments: argparse.Namespace) -> None:
    """Exits with a line where --seed is none that a guest's kernel takes."""
    if not 0 <= arguments.seed < 1 << 63:
        parser.error("--seed: write a whole number from 0 on, such as --seed 7")


def check_readable(arguments: argparse.Namespace) -> None:
    """Raises UsageError where a path of --readable is not there, is the guest's own there, or a
    link to secrets.
    """
    for requested in arguments.readable:
        if not os.path.exists(requested):  # Path.exists raises where it may not look
            raise UsageError(f"--readable: there is no {requested}")
        place = requested.resolve()
        own = next((own for own in GUESTS_OWN if Path(own).is_relative_to(place)), "") or next(
            (own for own in VIRTUAL if place.is_relative_to(own)), "")
        if own:
            raise UsageError(f"--readable: {requested}: the machine has {own} of its own; name what"
                             " the command has to read (programs in /usr it reads anyway)")
        if secret := led_to(requested, Path.cwd()):
            raise UsageError(f"--readable: {requested} leads to {secret}: if that is meant, name"
                             " it")


def check_request(arguments: argparse.Namespace) -> None:
    """Refuse a named path or variable that is not there. Raises UsageError."""
    check_readable(arguments)
    environment_of(arguments)
    check_repeat(arguments)


def check_repeat(arguments: argparse.Namespace) -> None:
    """Refuse a flag that does not go with --repeat, or that needs it. Raises UsageError."""
    if arguments.jobs and not arguments.repeat:
        raise UsageError("--jobs: one run has one machine; write --repeat 10 --jobs 2")
    if len(arguments.kernel) > 1 and (arguments.repeat or arguments.write_back):
        raise UsageError("--kernel: two kernels are compared packet by packet, without --repeat and"
                         " --write-back")
    if arguments.repeat and arguments.write_back:
        raise UsageError("--write-back: several runs would write the same files; leave it out:"
                         " each run's files are kept in results/commands")


def environment_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The variables of --env. Raises UsageError where one is not there."""
    environment = {}
    for word in arguments.env:
        name, equals, value = word.partition("=")
        if not name.isidentifier() or not equals and name not in os.environ:
            raise UsageError(f"--env: {word}: write NAME=VALUE, or the NAME of a variable that is"
                             " set")
        environment[name] = value if equals else os.environ[name]
    return environment


def _numbers(words: str, *units: str) -> list[float]:
    """One number for each unit. Raises argparse.ArgumentTypeError."""
    try:
        given = [typed.number(word, unit) for word, unit in zip(words.split(","), units)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if len(words.split(",")) > len(units) or min(given) <= 0:
        raise argparse.ArgumentTypeError(f"{words!r}: write at most {len(units)} numbers above 0,"
                                         " with a comma between them")
    return given


def limits(words: str) -> tuple[float, float]:
    """Seconds of the guest's clock, and of the wall's."""
    given = _numbers(words, "s", "s")
    return given[0], given[-1]


def kernels(words: str) -> list[str]:
    """One kernel, or two that are compared, by their names."""
    try:
        names = [_KERNEL.check(word.strip(), "--kernel") for word in words.split(",")]
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--kernel: ")) from None
    if len(names) > 2 or len({*names}) < len(names):
        raise argparse.ArgumentTypeError(f"{words!r}: write one kernel, or two that differ, as"
                                         f" {DEFAULT_KERNEL},mine (./install.sh --list-kernels)")
    return names


def nanoseconds(word: str) -> int:
    """A time of a second at most, in ns."""
    match = re.fullmatch(r"(\d+\.?\d*)(ns|us|µs|ms|s)|0", word.strip())
    number = 0 if match is None or not match[1] else round(float(match[1]) * NANOSECONDS[match[2]])
    if match is None or number > NANOSECONDS["s"]:
        raise argparse.ArgumentTypeError(f"{word!r}: write a time with its unit, such as 1us, at"
                                         " most 1s; or 0")
    return number


def date(word: str) -> int:
    """The begin of a day (UTC), in seconds since 1970."""
    try:
        given = datetime.strptime(word, "%Y-%m-%d").replace(tzinfo=timezone.utc)
        if EARLIEST_S <= given.timestamp() < LATEST_S:
            return int(given.timestamp())
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{word!r}: write a day from 2026 to 2199, such as 2026-11-28")


def most(words: str) -> tuple[int, int]:
    """Bytes, and files."""
    given = _numbers(words, "bytes", "")
    return int(given[0]), int(given[1]) if len(given) > 1 else CommandRequest.most_files


def most_captured(word: str) -> int:
    """Bytes of packets."""
    (given,) = _numbers(word, "bytes")
    return int(given)


def megabytes(word: str) -> int:
    """Memory, in MB."""
    (given,) = _numbers(word, "bytes")
    mb = int(given if word.strip().isdigit() else given / 1e6)
    if mb < LEAST_MB:
        raise argparse.ArgumentTypeError(f"{word!r} is too little memory: at least {LEAST_MB}M")
    return mb
