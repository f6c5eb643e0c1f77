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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from commands.runners import engine_errors
from commands.virtual.received import Received
from engines.command.frames import CONTENT, ENTRY, ERROR, FULL, OUTPUT, TICK, Room
from engines.command.guest import (BEGINS_S, CAPTURE, CommandEnd, CommandGuest, CommandRequest,
                                   RawTerminal, in_foreground, remove_dead)
from engines.command.inside import IN_PLACE, OURS
from engines.job import EngineCannot, EngineError
from engines.readable import OF_COMMANDS, Places, led_to
from engines.uml import MEMINFO, available, built_kernel_for_commands, check_machine, made_from
from lab.core import files
from lab.core.command_line import Parser, file_path, heed, output_folder, say, whole
from lab.core.errors import FAILED, OK, CannotError, UsageError
from lab.core.files import WriteError
from lab.core.scenario import typed

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
  --readable PATH     also let the command read this path; home folders are hidden, except the
                      current folder
  --env NAME[=VALUE]  give the command this environment variable, too
  --write-back        write the command's files into the current folder
  --limit 1G,100000   most bytes and most files that are kept
  --capture [BYTES]   keep every packet of every link, and report what the network really did:
                      report.html, links.csv, connections.csv, and capture.pcapng for Wireshark
                      (at most 500 MB); ./run.sh --report FOLDER builds the page again
  --results DIR       where results go (DIR/commands)
  --quiet             no progress

The exit status is the command's own; 124 after a timeout; 1 where the machine died or something
could not be saved; 130 after the second Ctrl-C (the first one goes to the command; a third one
does not wait for its files).
"""
GUEST = ".guest"  # of a command's folder: what is shared with its guest while it runs
PROGRESS_S = 30.0  # of wall time, between two lines
KEPT_BYTES = 1 << 30  # of output
MOST_SHOWN = 20  # lines about what went wrong; command.json has more
NOT_KEPT = b"the rest is not kept: the output is larger than 1 GB\n"
MOST_LINE_BYTES = 1 << 16  # of output, in one line of output.txt
LEAST_MB = 128
VIRTUAL = ("/proc", "/sys", "/dev")  # file systems that tell of one machine: the guest's there
GUESTS_OWN = (*VIRTUAL, "/tmp", OURS, "/mnt", *IN_PLACE)  # where its first process writes
PIECE_BYTES = 1 << 20
CAPTURE_BYTES = 500_000_000  # of packets, by default: two and a half million
LAST_BLOCK = 1 << 16  # bytes: of a capture that is full, the block that filled it stays whole


def run(argv: Sequence[str]) -> int:
    """Run it; its exit status. Raises UsageError, CannotError, FirstFlightError, WriteError."""
    flags, words = divided(argv)
    arguments = parsed(flags, words)
    request = request_of(arguments, words)
    for line in advice(words, shutil.which):
        say(f"run.sh: {line}")
    with engine_errors():
        check_machine()
        places = Places(OF_COMMANDS)  # looks at them while the kernel is found
        kernel = built_kernel_for_commands()
        folder = new_folder(arguments.results, "commands")
        # In the background it is none: what is typed is for another program.
        terminal = sys.stdin.isatty() and sys.stdout.isatty() and in_foreground(0)
        began = time.time()
        with ExitStack() as stack:
            guest = stack.enter_context(CommandGuest(kernel, folder / GUEST, request, terminal,
                                                     places))
            outcome = guest.outcome
            output = stack.enter_context(Output(folder / "output.txt", terminal or arguments.quiet,
                                                outcome.lose))
            if terminal:
                stack.enter_context(RawTerminal())
                signal.signal(signal.SIGWINCH, lambda *_: guest.resize())
            heed_signals(guest, terminal)
            received = stack.enter_context(Received(
                request.folder if arguments.write_back else folder / "files",
                Room(request.most_bytes, request.most_files), began - BEGINS_S, outcome,
                writes_back if arguments.write_back else None))

            def carry(kind: bytes, at_s: float, content: bytes) -> None:
                if kind in (ENTRY, CONTENT):
                    received.take(kind, content)
                else:
                    output.carry(kind, at_s, content)
            try:
                guest.attend(carry)
            except EngineError as error:
                if isinstance(error, EngineCannot) or not guest.is_up:
                    raise
                outcome.status = FAILED
                outcome.note(str(error))
            is_captured = request.capture_bytes > 0 and kept_capture(guest, folder)
    facts = {"command": list(words), "folder": str(request.folder), "seed": request.seed,
             "status": outcome.status, "virtual_s": round(outcome.virtual_s, 9),
             "wall_s": round(outcome.wall_s, 3), "files": received.count,
             "left_out": outcome.troubles, "spinning": outcome.spinning,
             **made_from(kernel)}
    with saving(outcome):
        files.save(folder, "command.json", json.dumps(facts, indent=1) + "\n")
    show_end(folder, outcome, received.count, arguments.quiet)
    if is_captured:
        from commands.virtual import captured  # and with it matplotlib
        captured.write(folder, facts)
    return outcome.status or (FAILED if outcome.unsaved else OK)


def writes_back(name: str) -> None:
    """Print that a file of the current folder is about to be written."""
    say(f"run.sh: writes back {name}")


@contextmanager
def saving(outcome: CommandEnd) -> Iterator[None]:
    """Note what could not be saved: what comes after it is saved all the same."""
    try:
        yield
    except WriteError as error:
        outcome.lose(str(error))


# What `./install.sh --with-mininet` installs, and how a command or its script names it.
INSTALLED = {"ovs-vsctl": r"ovs-vsctl|\bOVS\w+|switch[= ]ovs", "brctl": r"brctl|LinuxBridge|lxbr",
             "iperf": r"\biperf\b", "iperf3": r"\biperf3\b", "ping": r"\bping(all)?\b",
             "killall": r"\bkillall\b", "tcpdump": r"\btcpdump\b", "nc": r"\b(nc|netcat) ",
             "telnet": r"\btelnet\b|\.iperf\(|test[= ]iperf"}
MOST_SCRIPT_BYTES = 1 << 20


def advice(words: Sequence[str], which: Callable[[str], str | None]) -> list[str]:
    """Programs that the command seems to use and that are not installed, in one line; [] for none.

    which: the path of a program of this machine, None where there is none.
    """
    text = " ".join(words)
    with suppress(OSError, StopIteration):
        script = next(Path(word) for word in words[:3]
                      if not word.startswith("/usr/") and Path(word).is_file())
        text += "\n" + files.content(script, MOST_SCRIPT_BYTES).decode(errors="replace")
    # Mininet's default switch, where none is chosen.
    chosen = re.search(r"switch", text) or not (
        Path(words[0]).name == "mn" or re.search(r"^from mininet.* import .*Mininet", text, re.M))
    missing = [name for name, pattern in INSTALLED.items() if not which(name) and (
        re.search(pattern, text) or (name == "ovs-vsctl" and not chosen))]
    return [f"{', '.join(missing)}: used and not installed; ./install.sh --with-mininet installs"
            f" {'them' if len(missing) > 1 else 'it'}"] if missing else []


def show_end(folder: Path, outcome: CommandEnd, count: int, quiet: bool) -> None:
    """Print what a user has to know once the command has ended, on standard error."""
    for name in outcome.spinning:
        say(f"run.sh: {name} spins: it waits without sleeping, so its clock was moved on"
            " (docs/MININET.md)")
    for line in outcome.troubles[:MOST_SHOWN]:
        say(f"run.sh: {line}")
    if (more := len(outcome.troubles) - MOST_SHOWN + outcome.untold) > 0:
        say(f"run.sh: {more} more such lines; command.json has"
            f" {'the first' if outcome.untold else 'all'} {len(outcome.troubles)}")
    if not quiet:
        ratio = outcome.virtual_s / outcome.wall_s if outcome.wall_s else 0.0
        wrote = "" if not count else f" and {count} file{'s' * (count > 1)}"
        say(f"run.sh: {outcome.virtual_s:.1f} s of virtual time in {outcome.wall_s:.1f} s"
            f" ({ratio:.1f} × real time); output{wrote} in {os.path.relpath(folder)}")


def kept_capture(guest: CommandGuest, folder: Path) -> bool:
    """Copy the packets that the guest's kernel captured, no more than it may; whether it was done.

    The command, which is root in the guest, may have put anything in their place.
    """
    try:
        packets = guest.capture()
    except (OSError, ValueError) as error:
        guest.outcome.lose(f"{CAPTURE}: the guest took it away: {error}")
        return False
    most_bytes, is_saved = guest.request.capture_bytes + LAST_BLOCK, False
    with saving(guest.outcome):
        with packets, files.Folder(folder) as opened, opened.replacing(CAPTURE) as file:
            while most_bytes and (piece := packets.read(min(PIECE_BYTES, most_bytes))):
                files.write_all(file, piece)
                most_bytes -= len(piece)
            if packets.read(1):
                guest.outcome.note(f"{CAPTURE}: the guest wrote more than --capture allows; the"
                                   " rest is left out")
        is_saved = True
    return is_saved


def heed_signals(guest: CommandGuest, terminal: bool) -> None:
    """Ctrl-C goes to the command first, and stops it when it comes again; SIGTERM stops it.

    Another one ends the guest. At a terminal a Ctrl-C is typed, no signal.
    """
    def handle(number: int, frame: FrameType | None) -> None:
        if (guest.interrupt() if number == signal.SIGINT
                else guest.stop(128 + number, signal.strsignal(number) or "stopped")):
            raise KeyboardInterrupt
    heed(signal.SIGTERM, signal.SIGHUP, *([] if terminal else [signal.SIGINT]), by=handle)


@dataclass
class BegunLine:
    """What has come of a line that has not ended. at_s: when its first byte was there.

    is_rest: whether it goes on with a line that was cut.
    """

    at_s: float = 0.0
    content: bytearray = field(default_factory=bytearray)
    is_rest: bool = False


class Output:
    """Passes on the command's output, and stores it, each line with the guest's clock.

    A line of more than MOST_LINE_BYTES is stored in pieces, so that no more of it is ever held:
    each piece after the first has a + behind its stream's name.
    """

    def __init__(self, path: Path, quiet: bool, lose: Callable[[str], None]) -> None:
        """lose: is told, once for each of both, why output cannot be stored or passed on."""
        self.quiet, self.path, self.lose = quiet, path, lose
        self.file = files.append(path)
        self.room = KEPT_BYTES
        self.lines = {kind: BegunLine() for kind in (OUTPUT, ERROR)}
        self.whole: list[bytes] = []  # what is to be stored
        self.cut = 0  # lines
        self.began = self.shown = time.monotonic()
        self.unread = self.was_full = False

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *_: object) -> None:
        for kind, line in self.lines.items():
            if line.content:
                self._end(kind)
        self._store()
        self.file.close()
        if self.cut:
            several = self.cut > 1
            say(f"run.sh: {self.cut} line{'s' * several} of output longer than"
                f" {MOST_LINE_BYTES >> 10} kB: {self.path.name} has {'them' if several else 'it'}"
                " in pieces, those after the first marked with +")

    def carry(self, kind: bytes, at_s: float, content: bytes) -> None:
        """Take a frame of the guest's: output, or a tick of its clock."""
        if kind == TICK:
            self._show_progress(at_s, content == FULL)
            return
        self._pass_on(2 if kind == ERROR else 1, content)
        *ends, rest = content.split(b"\n")
        for end in ends:
            self._add(kind, at_s, end)
            self._end(kind)
        self._add(kind, at_s, rest)
        self._store()

    def _add(self, kind: bytes, at_s: float, piece: bytes) -> None:
        """Take a piece of a line; what is as long as a line may be ends where the next begins."""
        line = self.lines[kind]
        while True:
            if not line.content:
                line.at_s = at_s
            room = MOST_LINE_BYTES - len(line.content)
            line.content += piece[:room]
            if len(piece) <= room:
                return
            piece = piece[room:]
            self.cut += not line.is_rest
            self._end(kind)
            line.is_rest = True

    def _end(self, kind: bytes) -> None:
        """A line has ended, or is cut."""
        line = self.lines[kind]
        self.whole.append(b"%14.6f %s%s %s\n" % (
            line.at_s, b"out" if kind == OUTPUT else b"err", b"+" * line.is_rest, line.content))
        line.content.clear()
        line.is_rest = False

    def _store(self) -> None:
        """Write what has ended, as far as there is room."""
        text = b"".join(self.whole)
        self.whole.clear()
        if self.room < len(text):
            text = text[:text.rfind(b"\n", 0, self.room) + 1] + NOT_KEPT if self.room >= 0 else b""
            self.room = -1
        else:
            self.room -= len(text)
        try:
            with files.writing(self.path):
                files.write_all(self.file, text)
        except WriteError as error:
            self.room = -1
            self.lose(str(error))

    def _pass_on(self, number: int, content: bytes) -> None:
        """To our own output; where nobody reads it any more, or it is full, only into the file."""
        rest = memoryview(content)
        while rest and not self.unread:
            try:
                rest = rest[os.write(number, rest):]
            except BlockingIOError:
                time.sleep(0.001)
            except BrokenPipeError:
                self.unread = True
            except OSError as error:
                self.unread = True
                self.lose(f"the output cannot be passed on: {error.strerror}")

    def _show_progress(self, virtual_s: float, is_full: bool) -> None:
        now = time.monotonic()
        if self.quiet or now - self.shown < PROGRESS_S and is_full == self.was_full:
            return
        self.shown, self.was_full = now, is_full
        wall_s = now - self.began
        say(f"run.sh: {virtual_s:.0f} s of virtual time in {wall_s:.0f} s"
            f" ({virtual_s / wall_s:.1f} × real time)"
            f"{'; nearly all of its memory is in use (--memory)' if is_full else ''}")


# The command line --------------------------------------------------------------------

def read(argv: Sequence[str]) -> int:
    """Whether it can be run at all. Raises UsageError, CannotError."""
    flags, words = divided(argv)
    request_of(parsed(flags, words), words)
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
    add("--seed", type=whole, default=CommandRequest.seed)
    add("--readable", action="append", default=[], type=file_path)
    add("--env", action="append", default=[])
    add("--write-back", action="store_true")
    add("--limit", type=most, default=(CommandRequest.most_bytes, CommandRequest.most_files))
    add("--results", type=output_folder, default=files.PROJECT / "results")
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


def request_of(arguments: argparse.Namespace, words: Sequence[str]) -> CommandRequest:
    """What the guest is to run. Raises UsageError where a named path or variable is not there."""
    check_readable(arguments)
    environment = {}
    for word in arguments.env:
        name, equals, value = word.partition("=")
        if not name.isidentifier() or not equals and name not in os.environ:
            raise UsageError(f"--env: {word}: write NAME=VALUE, or the NAME of a variable that is"
                             " set")
        environment[name] = value if equals else os.environ[name]
    virtual_s, wall_s = arguments.timeout
    most_bytes, most_files = arguments.limit
    return CommandRequest(list(words), Path.cwd().resolve(),
                   [str(path.resolve()) for path in arguments.readable], environment,
                   arguments.memory, arguments.seed, virtual_s, wall_s, most_bytes, most_files,
                   arguments.capture)


def new_folder(results: Path, kind: str) -> Path:
    """results/<kind>/<stamp>; removes the guests' folders of killed runs. Raises WriteError."""
    stamp, home = time.strftime("%Y-%m-%d_%H%M%S"), results / kind
    with files.Folder(results) as place:
        place.make(kind)
    for folder in home.iterdir():
        if not folder.is_symlink():
            remove_dead(folder / GUEST)
    names = (f"{stamp}{'' if not number else f'_{number}'}" for number in range(1000))
    return next(home / name for name in names if files.new_folder(home / name))


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
