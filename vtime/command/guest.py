"""Runs one command in a guest in virtual time: what goes in, what comes out, and how it ends."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from firstflight.base.untrusted import quoted
from vtime import confine, readable, uml
from vtime.command import inside
from vtime.command.frames import (ALL_SENT, CALLS, CLOSE, CONTENT, ENDED, ENTRY, ERROR, FULL, INPUT,
                                  INTERRUPT, MOST_BYTES, NAMES, OUTPUT, SIZE, STOP, TICK, TROUBLE,
                                  Frame, Outlet, Reader)
from vtime.command.in_place import MOST_CALLS_BYTES
from vtime.command.inside import FRAMES, HOME, REQUEST, STANDARD_INPUT, UP_S
from vtime.command.processes import session_processes
from vtime.command.terminal import in_foreground, size
from vtime.console import (CONSOLE, EngineCannot, EngineError, excess_in, last_words_of,
                           printed_in)
from vtime.kernel.init import PROGRAM
from vtime.request import CommandRequest
from vtime.shared_folder import FULL as FULL_DISK
from vtime.shared_folder import GrowingFile, holds_more, locked_folder, open_within, probe
from vtime.silence import Watchdog

CAPTURE = "capture.pcapng"  # its name is in vtime/kernel/capture.c, too
POLL_S = 0.01
# The guest sends a frame with each second of its clock. If none comes while it uses so much
# processor time, a program spins without system calls and is woken; sooner if one did before.
SPINS_S, NEXT_SPINS_S, WAKE_S = 10.0, 0.2, 0.005
# A guest that was woken sends frames again. The clock of one stands still that does not, while it
# uses so much processor time; and that of one that has said nothing BOOT_S after its start.
STANDS_STILL_S, BOOT_S = 300.0, 120.0
SECOND_INTERRUPT_S = 1.0  # a second Ctrl-C so soon at a terminal ends the command
STOP_S = 10.0  # time for a guest to send its command's files once the command was stopped
WHOLE_INPUT_S, WHOLE_INPUT_BYTES = 0.3, 1 << 26  # input that ends so soon is passed as a file
PIECE_BYTES = MOST_WAITING = 1 << 20  # of output at a time; of input that the command has not read
MOST_TROUBLES = 1000  # lines about one command
MOST_NAMESPACES = inside.MOST_SPACES  # the guest's own limit does not bind: the command is root
# A guest's folder may hold so many names, and so many bytes besides packets and unread frames.
MOST_NAMES, SLACK_BYTES = 100, 1 << 28
FULL_MEMORY = "nearly all of the guest's memory was in use: --memory gives it more"
SPINS, UNLIMITED = "first-flight: spins: ", "first-flight: unlimited: "  # vtime/kernel/command.c
NO_RATE = ("{}: packets passed without a rate limit; such a throughput comes from a cost of 10 µs a"
           " packet, not from the network (vtime/MININET.md)")
KEPT_VARIABLES = ("LANG", "LANGUAGE", "TERM", "TZ", "PYTHONPATH", "PYTHONUNBUFFERED", "COLUMNS",
                  "LINES")
# Mininet needs distutils. The copy of setuptools costs each script a third of a second; Python 3.12
# has no distutils of its own.
DISTUTILS = {"SETUPTOOLS_USE_DISTUTILS": "stdlib"} if sys.version_info < (3, 12) else {}
# Imports of a command would come back among the files that it wrote.
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}
# The distribution's programs come first, wherever else its user has some: Mininet lives with them.
PATH = ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin")
TIMED_OUT, INTERRUPTED = 124, 130


@dataclass
class CommandOutcome:
    """What is known of a command's end while its guest is attended to; see vtime.result.Result."""

    status: int = -1  # as in Result, -1 while it runs
    clock_s: float = 0.0  # on the guest's clock
    wall_s: float = 0.0  # on the machine's, with the guest's start and end
    troubles: list[str] = field(default_factory=list)  # lines for the user
    omitted_count: int = 0  # how many more troubles there were
    unsaved: bool = False  # whether a part of its output or of its files could not be saved
    spinning: list[str] = field(default_factory=list)  # names of processes
    namespaces: list[str] = field(default_factory=list)  # of networks: times, numbers, names
    has_dropped_namespaces: bool = False  # there were more than MOST_NAMESPACES
    calls: bytearray = field(default_factory=bytearray)  # of Mininet, in JSON

    def note(self, trouble: str) -> None:
        """Keep a line for the user; after MOST_TROUBLES lines, only count them."""
        if len(self.troubles) < MOST_TROUBLES:
            self.troubles.append(trouble)
        else:
            self.omitted_count += 1

    def keep_namespaces(self, content: bytes) -> None:
        """Keep the lines about network namespaces, MOST_NAMESPACES in all."""
        room = MOST_NAMESPACES - len(self.namespaces)
        lines = content.split(b"\n", room)  # the last one is the rest, which is not split
        self.namespaces += map(quoted, filter(None, lines[:room]))
        if any(lines[room:]) and not self.has_dropped_namespaces:
            self.has_dropped_namespaces = True
            self.note(f"more than {MOST_NAMESPACES} network namespaces were named: the report has"
                      " no names for the others")

    def lose(self, trouble: str) -> None:
        """Note that something could not be saved, and why."""
        self.note(trouble)
        self.unsaved = True


def processor(guest: int) -> int:
    """The processor that the guest with this number is bound to."""
    allowed = uml.processors()
    return allowed[guest % len(allowed)]


# Tunnels and bonds are built in. Without these words each network would begin with such devices.
NO_DEVICES = ("fb_tunnels=none", "bonding.max_bonds=0")

# A kind of frames (OUTPUT, ERROR, TICK, ENTRY, CONTENT), virtual seconds, the content.
Carry = Callable[[bytes, float, bytes], None]


def environment_of(request: CommandRequest, own: dict[str, str]) -> dict[str, str]:
    """The environment of a command. own: the caller's, of which KEPT_VARIABLES are kept."""
    kept = {name: value for name, value in own.items()
            if name in KEPT_VARIABLES or name.startswith("LC_")}
    folders = filter(None, (*PATH, *own.get("PATH", "").split(":")))
    return {**kept, "PATH": ":".join(dict.fromkeys(folders)), "HOME": HOME, "USER": "root",
            "LOGNAME": "root", "SHELL": "/bin/bash", "PWD": str(request.folder),
            "PYTHONHASHSEED": str(request.seed % (1 << 32)), **NO_BYTECODE, **DISTUTILS,
            **request.environment}


def _names_behind(mark: str, printed: Iterable[str]) -> set[str]:
    """The names behind a mark in lines that the guest's kernel printed; they are quoted."""
    return {quoted(line.partition(mark)[2], 40) for line in printed if mark in line}


class CommandGuest:
    """A guest that runs one command. Use as a context manager, which ends the guest."""

    def __init__(self, kernel: Path, shared: Path, request: CommandRequest, begins_s: int,
                 terminal: bool, reads_input: bool,
                 places: readable.ReadablePaths | None = None) -> None:
        """shared: a new folder. begins_s: when its clock begins, in seconds since 1970.

        terminal: whether the command uses this process's terminal. reads_input: whether it has this
        process's standard input; else it has none. places: paths that it may read, if they were
        found already. Raises EngineCannot if this machine cannot run it, OSError.
        """
        given = [str(path) for path in request.readable]
        if why := readable.refused(request.folder, given):
            raise EngineCannot(why)
        if lacking := confine.lacking():
            raise EngineCannot(f"this machine lacks {lacking}: commands run behind walls only")
        uml.check_limits(request.memory_mb)
        places = places or readable.ReadablePaths(readable.OF_COMMANDS)

        self.request, self.shared = request, shared
        self.terminal, self.reads_input = terminal, reads_input
        self.held = ExitStack()
        self.held.enter_context(locked_folder(shared))
        self.begun = io.BytesIO()  # the part of its input that was read before it started
        source = self._whole_input()
        self.is_live = source == "live"
        self._write_request(source)
        self.frames = GrowingFile(open_within(shared, FRAMES, os.O_RDWR))

        self.outcome = CommandOutcome()
        self.is_up = False  # its console is read
        self.has_ended = False  # the command; the guest hands over what it wrote
        self.has_sent_all = False
        self.sent_bytes = self.taken_bytes = 0  # of its input
        self.interrupts: list[float] = []  # when
        self.stopped: float | None = None  # when
        self.requested_stop: tuple[int, str] | None = None  # a status, and why
        self.began = self.heard = time.monotonic()
        self.silent_processor_s: float | None = None  # the guest's, when its silence began
        self.woken = 0.0  # when

        uml.compile_programs(["vtime/**/*.py"])
        command = self._boot_command(kernel, begins_s, places)
        with (shared / CONSOLE).open("wb") as console:
            self.process = subprocess.Popen(
                uml.ending_with_us(command), cwd=shared, stdin=subprocess.PIPE, stdout=console,
                stderr=subprocess.STDOUT, start_new_session=True, bufsize=0)
        assert self.process.stdin is not None
        self.outlet = Outlet(self.process.stdin.fileno())
        self.silence = Watchdog(self.process.pid)  # until it is up

    def _write_request(self, source: str) -> None:
        """Write what inside.py reads. source: of the command's input, as of _whole_input."""
        request = self.request
        content = {
            "words": list(request.words), "folder": str(request.folder),
            "readable": [str(path) for path in request.readable],
            "environment": environment_of(request, dict(os.environ)), "input": source,
            "terminal": size() if self.terminal else None, "timeout_s": request.clock_limit_s,
            "most_bytes": request.most_bytes, "most_files": request.most_files}
        (self.shared / REQUEST).write_text(json.dumps(content), encoding="utf-8")
        (self.shared / PROGRAM).write_text(inside.__name__)
        for name in (FRAMES, CAPTURE):
            (self.shared / name).touch()

    def _boot_command(self, kernel: Path, begins_s: int, places: readable.ReadablePaths
                      ) -> list[str]:
        """The command that boots the guest, on its processor. Raises EngineCannot."""
        request = self.request
        words = [*NO_DEVICES, f"seed={request.seed}", *request.link_times.words(),
                 f"time-travel-start={(begins_s - UP_S) * 1_000_000_000}"]
        if request.capture_bytes:
            words.append(f"capture={request.capture_bytes}")
        boot = uml.guest_command(
            kernel, named=[str(path) for path in (request.folder, *request.readable)],
            memory_mb=request.memory_mb, places=places, more=words,
            consoles=("con=null", "con0=null,fd:1", "con1=fd:0,null"))
        return ["taskset", "--cpu-list", str(processor(request.guest)), *boot]

    def __enter__(self) -> CommandGuest:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.outcome.wall_s = time.monotonic() - self.began
        self.frames.close()
        self.held.close()

    # Input

    def _whole_input(self) -> str:
        """How the command gets its input: "file", "whole", "live", or "none".

        If a pipe ends at once or soon, the command gets all of its content from the beginning, so
        that no moment of the wall's clock matters.
        """
        if self.terminal:
            return "live"
        if not self.reads_input or not in_foreground(0):  # else SIGTTIN would stop us
            return "none"

        content = bytearray()
        try:
            mode = os.fstat(0).st_mode
            if stat.S_ISCHR(mode) and os.stat("/dev/null").st_rdev == os.fstat(0).st_rdev:
                return "none"

            until = time.monotonic() + WHOLE_INPUT_S
            while len(content) < WHOLE_INPUT_BYTES:
                wait_s = max(0.0, until - time.monotonic())
                if not stat.S_ISREG(mode) and not select.select([0], [], [], wait_s)[0]:
                    break
                piece = os.read(0, PIECE_BYTES)
                if not piece:
                    (self.shared / STANDARD_INPUT).write_bytes(content)
                    return "file" if stat.S_ISREG(mode) else "whole"
                content += piece
        except (OSError, ValueError):
            return "none"
        self.begun = io.BytesIO(content)
        return "live"

    def _send(self, kind: bytes, content: bytes = b"") -> None:
        """Send a frame to the guest once it reads frames; it is dropped if the guest has ended."""
        self.outlet.waiting += Frame(kind, 0, content).packed()
        self._flush()

    def _flush(self) -> None:
        if self.is_up:
            self.outlet.flush()

    def _send_input(self, content: bytes) -> None:
        """Send input to the guest in frames."""
        self.sent_bytes += len(content)
        for place in range(0, len(content), MOST_BYTES):
            self._send(INPUT, content[place:place + MOST_BYTES])

    def interrupt(self) -> bool:
        """Pass the first Ctrl-C on, and stop the command at the second; True to end the guest."""
        self.interrupts.append(time.monotonic())
        if len(self.interrupts) > 1:
            return self.stop(INTERRUPTED, "interrupted")
        self._send(INTERRUPT)
        return False

    def stop(self, status: int, why: str) -> bool:
        """End the command but keep its files; True if it was stopped before."""
        if self.stopped is not None:
            return True
        self.stopped = time.monotonic()
        self.outcome.status = status
        self.outcome.note(why)
        self._send(STOP)
        return False

    def stop_soon(self, status: int, why: str) -> None:
        """Stop the command at the next look; any thread may call this."""
        self.requested_stop = status, why

    def _listens(self) -> bool:
        """Whether to read input now: not faster than the command, and not in the background."""
        return (self.is_live and (self.outcome.status < 0 or self.stopped is not None)
                and in_foreground(0) and self.sent_bytes - self.taken_bytes < MOST_WAITING)

    def _has_input(self, wait_s: float) -> bool:
        """Whether there is input to pass on, at once or within this time."""
        if self.begun.tell() < len(self.begun.getbuffer()):
            return True
        return bool(select.select([0], [], [], wait_s)[0])

    def _pass_input(self) -> bool:
        """Pass input on; True if the guest is to end now."""
        content = self.begun.read(PIECE_BYTES) or os.read(0, 4096)
        if not content:
            self.is_live = False
            self._send(CLOSE)
            return False
        self._send_input(content)
        if not self.terminal or b"\x03" not in content:
            return False

        now = time.monotonic()
        is_second = bool(self.interrupts) and now - self.interrupts[-1] < SECOND_INTERRUPT_S
        self.interrupts.append(now)
        return is_second and self.stop(INTERRUPTED, "interrupted")

    def resize(self) -> None:
        self._send(SIZE, struct.pack("!HH", *size()))

    # Output

    def attend(self, carry: Carry) -> CommandOutcome:
        """Pass input and output on until the guest has ended. Raises EngineError if it died."""
        reader = Reader()
        while True:
            is_over = self.process.poll() is not None  # before reading, so that nothing is missed
            piece = self.frames.read(PIECE_BYTES)
            try:
                for frame in reader.read(piece):
                    self._hear(frame, carry)
            except ValueError as error:
                raise EngineError(f"the guest: {error}") from error
            if is_over and not piece:
                break

            self._check_room()
            self._stop_if_due()
            if self.stopped is not None and time.monotonic() - self.stopped > STOP_S:
                return self._close()

            self._flush()
            if self._listens():
                if self._has_input(0.0 if piece else POLL_S) and self._pass_input():
                    return self._close()
            elif not piece:
                time.sleep(WAKE_S if self.woken else POLL_S)

            self._wake()
            if not self.is_up and self.silence.seconds() > BOOT_S:
                raise EngineError(f"the guest said nothing for {BOOT_S:.0f} s after its start:"
                                  f" {last_words_of(printed_in(self.shared))}")

        if not self.has_ended and self.stopped is None:
            raise self._early_end()
        return self._close()

    def _stop_if_due(self) -> None:
        """Stop the command if that was requested, or if its time is over."""
        if self.stopped is None and self.requested_stop:
            self.stop(*self.requested_stop)
        if self.stopped is None and self._is_over_time():
            self.stop(TIMED_OUT, "timeout, of wall time")

    def _early_end(self) -> EngineError:
        """Why the guest ended before its command did."""
        printed = printed_in(self.shared)
        if why := uml.why_not(printed):
            return EngineCannot(why)
        if why := excess_in(printed):
            return EngineError(f"the guest was ended: {why}")
        return EngineError(f"the guest ended before its command did: {last_words_of(printed)}")

    def _close(self) -> CommandOutcome:
        """Note what the guest did not hand over; return the outcome."""
        if not self.has_ended:
            self._read_console()
        if not self.has_sent_all:
            self.outcome.lose("the guest did not hand over all that the command wrote"
                              + self._full())
        return self.outcome

    def _read_console(self) -> None:
        """What the guest's kernel printed about programs and links."""
        printed = printed_in(self.shared).splitlines()
        self.outcome.spinning = sorted(_names_behind(SPINS, printed))
        for device in sorted(_names_behind(UNLIMITED, printed)):
            self.outcome.note(NO_RATE.format(device))

    def _hear(self, frame: Frame, carry: Carry) -> None:
        """Handle one frame."""
        if not self.is_up:
            self.is_up = True
            self._flush()
        self.heard, self.silent_processor_s = time.monotonic(), None
        self.outcome.clock_s = max(self.outcome.clock_s, frame.time_ns / 1e9)
        if frame.kind == TICK:
            self._take_tick(frame.content)

        if frame.kind in (OUTPUT, ERROR, TICK, ENTRY, CONTENT):
            carry(frame.kind, frame.time_ns / 1e9, frame.content)
        elif frame.kind == TROUBLE and frame.content == b"timeout":
            self.outcome.status = TIMED_OUT
        elif frame.kind == TROUBLE:
            self.outcome.note(quoted(frame.content))
        elif frame.kind == NAMES:
            self.outcome.keep_namespaces(frame.content)
        elif frame.kind == CALLS:
            self.outcome.calls += frame.content[:MOST_CALLS_BYTES - len(self.outcome.calls)]
        elif frame.kind == ALL_SENT:
            self.has_sent_all = True
        elif frame.kind == ENDED:
            self._take_end(frame.content)

    def _take_tick(self, content: bytes) -> None:
        """Take what a sign of life reports: input that was taken, or that memory is full."""
        if content.isdigit():
            self.taken_bytes = int(content[:20])
        if content == FULL and FULL_MEMORY not in self.outcome.troubles:
            self.outcome.note(FULL_MEMORY)

    def _take_end(self, content: bytes) -> None:
        """Take the command's exit status."""
        if self.outcome.status < 0 and content.isdigit():
            self.outcome.status = int(content[:3]) & 0xFF
        if not self.has_ended:  # afterwards only the guest's own program can spin
            self.has_ended = True
            self._read_console()

    def _full(self) -> str:
        """Why the guest's folder cannot be written to, "" if it can."""
        try:
            probe(self.shared)
        except OSError as error:
            if error.errno in FULL_DISK:  # else the guest has put something in the way
                return f": {error.strerror}: make room"
        return ""

    def _check_room(self) -> None:
        """Raises EngineError if the guest's folder holds more than it may.

        The guest's own limits are not enough: the command is root there.
        """
        unread_bytes = os.fstat(self.frames.file.fileno()).st_size - self.frames.place
        room = self.request.most_bytes + self.request.capture_bytes + SLACK_BYTES
        besides = {FRAMES} if self.frames.is_unfreeable else ()
        if unread_bytes > room or holds_more(self.shared, MOST_NAMES, room, besides=besides):
            raise EngineError("the guest wrote more into its folder than --limit and --capture"
                              " allow, and was ended")

    def _is_over_time(self) -> bool:
        limit_s = self.request.wall_limit_s
        return limit_s is not None and time.monotonic() - self.began > limit_s

    def _wake(self) -> None:
        """Interrupt a program that spins, so that the clock goes on (vtime/kernel/command.c)."""
        now = time.monotonic()
        patience_s = NEXT_SPINS_S if self.woken or self.stopped is not None else SPINS_S
        if now - self.heard < patience_s / 10 or now - self.woken < WAKE_S:
            return

        if self.silent_processor_s is None:
            self.silent_processor_s = self._processor_s()
        took_s = self._processor_s() - self.silent_processor_s
        if took_s > STANDS_STILL_S:
            raise EngineError(f"the guest's clock stood still while it used {took_s:.0f} s of"
                              " processor time, and it was ended")
        if now - self.heard < patience_s or took_s < patience_s / 2:
            return

        self.woken = now
        for pid, state, _ in session_processes(self.process.pid):
            if state == "R" and pid != self.process.pid:
                with suppress(OSError):
                    os.kill(pid, signal.SIGALRM)

    def _processor_s(self) -> float:
        return (sum(ticks for _, _, ticks in session_processes(self.process.pid))
                / os.sysconf("SC_CLK_TCK"))

    def capture(self) -> BinaryIO:
        """The capture of the guest's kernel (vtime/kernel/capture.c), which is not trusted."""
        return open_within(self.shared, CAPTURE)
