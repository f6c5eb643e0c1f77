"""Runs in the guest: makes the root writable in memory, runs one command, and sends its files.

The root is an overlay. Its lower layer has the machine's files, which cannot be written; its upper
layer is in the guest's memory. The folder in which the command was started is an overlay of its
own, so that its upper layer has exactly what the command wrote there (send_written). Folders in
which people keep their own files (HIDDEN) are empty. The command's processes end with the guest.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pty
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from vtime.command import in_place, own_kernel
from vtime.command.frames import (ALL_SENT, CALLS, CLOSE, CONTENT, ENDED, ENTRY, ERROR, FILE,
                                  FOLDER, FULL, INPUT, INTERRUPT, LINK, MOST_BYTES, MOST_NAME,
                                  NAMES, OUTPUT, SIZE, STOP, TICK, TROUBLE, Entry, Frame, Reader,
                                  Room)
from vtime.mounts import MS_PRIVATE, MS_REC, bind, mount
from vtime.readable import HIDDEN

REQUEST, FRAMES, STANDARD_INPUT = "request.json", "frames", "input"
KINDS_OF_FILES = {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: LINK}
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
CONSOLE = "/dev/tty1"  # receives the machine's frames
HOME = "/tmp/home"
MOST_SPACES = 1000  # names of network namespaces
NEW, OLD = "/run/new", "mnt"  # where the new root is made, and where the old one is put in it
# Seconds since the guest's boot when the command begins. In the first second of a machine some
# programs take the clock as unset (iputils' ping then sends without its interval).
UP_S = 60
TICK_S = 1.0  # of the guest's clock, between two signs of life
QUIET_S = 2.0  # with a terminal, a person is awaited once nothing was printed for so long
NOT_FOUND, NOT_EXECUTABLE = 127, 126
_PIVOT_ROOT = 155
_MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


# The root ----------------------------------------------------------------------------

def _mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Make a folder, and mount a file system on it. Raises OSError."""
    os.makedirs(target, exist_ok=True)
    mount(source, target, kind, flags=flags, options=options)


def _overlay(lower: str, target: str, above: str) -> str:
    """Mount an overlay whose upper layer is in `above`; return the path of that layer."""
    upper, work = f"{above}/upper", f"{above}/work"
    os.makedirs(upper)
    os.makedirs(work)
    quoted = lower.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    _mount("overlay", target, "overlay",
           options=f"lowerdir={quoted},upperdir={upper},workdir={work}")
    return upper


def enter(folder: str, readable: list[str]) -> tuple[int, int]:
    """Make the writable root and change to it. Raises OSError.

    folder: where the command was started. readable: further paths that the command may read.
    Returns descriptors of the folder's upper layer, and of the folder shared with the machine.
    """
    _mount("none", "/", "", flags=MS_REC | MS_PRIVATE)
    _mount("memory", "/run/above", "tmpfs", options="mode=755,size=95%")
    _overlay("/", NEW, "/run/above/root")
    _mount_system()
    for path in readable:
        _show(path)

    in_place.put_all(NEW)
    socket.sethostname("localhost")  # a machine's name that resolves
    os.makedirs(f"{NEW}/run/openvswitch", exist_ok=True)  # the package's, for its daemons
    upper = _overlay(folder, NEW + folder, "/run/above/folder")
    os.symlink(folder, f"{NEW}{in_place.STARTED}")
    above = os.open(upper, os.O_RDONLY | os.O_DIRECTORY)
    shared = os.open("/run/first-flight", os.O_RDONLY | os.O_DIRECTORY)

    _pivot()
    os.makedirs(HOME)
    return above, shared


def _mount_system() -> None:
    """Mount what the new root has of its own: empty folders, and the kernel's file systems."""
    for path in (*HIDDEN, "/mnt"):
        mode = "mode=1777" if "tmp" in path else "mode=755"
        _mount("tmpfs", NEW + path, "tmpfs", options=mode)
    for path in ("/proc", "/sys", "/dev"):
        bind(path, NEW + path)
    mount("tracefs", f"{NEW}/sys/kernel/tracing", "tracefs")
    _mount("tmpfs", f"{NEW}/dev/shm", "tmpfs", options="mode=1777")


def _show(path: str) -> None:
    """Show a file or folder of the machine in the new root."""
    os.makedirs(os.path.dirname(NEW + path), exist_ok=True)
    if os.path.isdir(path):
        os.makedirs(NEW + path, exist_ok=True)
    else:
        Path(NEW + path).touch()
    bind(path, NEW + path)


def _pivot() -> None:
    """Change to the new root, and let the old one go."""
    os.chdir(NEW)
    if _libc.syscall(_PIVOT_ROOT, b".", OLD.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "pivot_root")
    os.chdir("/")
    _libc.umount2(f"/{OLD}".encode(), _MNT_DETACH)


# The command -------------------------------------------------------------------------

class Unsent(Exception):
    """The machine takes no more frames, since its disk is full. It notices the missing one."""


class Command:
    """The command as a process: carries its input and output, and the machine's frames."""

    def __init__(self, request: dict[str, Any], shared: int) -> None:
        self.request, self.shared = request, shared
        self.frames = os.open(FRAMES, os.O_WRONLY | os.O_APPEND, dir_fd=shared)
        self.console = os.open(CONSOLE, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.console)
        self.reader = Reader()

        # Descriptors, -1 for none.
        self.sources: dict[int, bytes] = {}  # those that are read: the kind of their frames
        self.terminal = -1
        self.input = -1  # of the command's input
        self.waiting = bytearray()  # input that the command has not taken yet
        self.taken_bytes = 0  # of its input
        self.closing = False  # no more input comes
        self.paced = False  # whether the guest's clock runs as the wall's
        self.now_ns = 0  # on the guest's clock, when the last frame was sent
        self.mounts = os.open("/proc/self/mountinfo", os.O_RDONLY)
        self.spaces: dict[str, int] = {}  # by number and name of a network namespace: since when

    def send(self, kind: bytes, content: bytes = b"") -> None:
        """Send content in frames of a kind, with the time. Raises Unsent."""
        if kind != CONTENT:  # reading the clock for each piece would look like a busy loop
            self.now_ns = time.monotonic_ns() - UP_S * 1_000_000_000
        for place in range(0, len(content) or 1, MOST_BYTES):
            frame = Frame(kind, self.now_ns, content[place:place + MOST_BYTES]).packed()
            try:
                is_whole = os.write(self.frames, frame) == len(frame)
            except OSError:
                is_whole = False
            if not is_whole:
                raise Unsent

    def run(self) -> None:
        """Run the command to its end, and send its status."""
        program = self.request["words"][0]
        try:
            process = self._start()
        except OSError as error:
            why, status = error.strerror, NOT_EXECUTABLE
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                why, status = "command not found", NOT_FOUND
            self.send(ERROR, f"{program}: {why}\n".encode())
            self.send(ENDED, str(status).encode())
            return

        status = self._attend(process)
        if status < 0:  # by a signal
            status = 128 - status
        self.send(ENDED, str(status).encode())

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the command. Raises OSError."""
        if self.request["terminal"]:
            stdin = stdout = stderr = self._open_terminal()
        else:
            stdout, stderr = self._open_pipe(OUTPUT), self._open_pipe(ERROR)
            stdin = self._open_input()
        if self.input >= 0:
            os.set_blocking(self.input, False)

        def begin() -> None:
            if self.terminal >= 0:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        try:
            return subprocess.Popen(
                self.request["words"], stdin=stdin, stdout=stdout, stderr=stderr,
                env=self.request["environment"], start_new_session=True, preexec_fn=begin,
                cwd=self.request["folder"])
        finally:
            for descriptor in {stdin, stdout, stderr}:
                os.close(descriptor)

    def _open_terminal(self) -> int:
        """Open a terminal for the command; return its end of it."""
        self.terminal, end = pty.openpty()
        self._resize(*self.request["terminal"])
        self.sources[self.terminal] = OUTPUT
        self.input = self.terminal
        return end

    def _open_pipe(self, kind: bytes) -> int:
        """Open a pipe for what the command prints; return its end. kind: of the frames."""
        source, end = os.pipe()
        self.sources[source] = kind
        return end

    def _open_input(self) -> int:
        """Open the command's input; return its end."""
        source = self.request["input"]
        if source == "file":
            return os.open(STANDARD_INPUT, os.O_RDONLY, dir_fd=self.shared)
        if source == "none":
            return os.open("/dev/null", os.O_RDONLY)
        end, self.input = os.pipe()
        if source == "whole":
            self.closing = True
            self.waiting += self._whole_input()
        return end

    def _whole_input(self) -> bytes:
        with open(os.open(STANDARD_INPUT, os.O_RDONLY, dir_fd=self.shared), "rb") as file:
            return file.read()

    def _attend(self, process: subprocess.Popen[bytes]) -> int:
        """Carry input and output until the command ends; return its status."""
        ends = os.pidfd_open(process.pid)
        if self.closing and not self.waiting:
            self._close_input()

        last_word = next_tick = time.monotonic()
        limit_s = self.request["timeout_s"] and UP_S + self.request["timeout_s"]
        while True:
            now = time.monotonic()
            if now >= next_tick:
                self.send(TICK, FULL if own_kernel.is_memory_full() else b"")
                next_tick = now + TICK_S
            if limit_s is not None and now >= limit_s:
                self.send(TROUBLE, b"timeout")
                self._stop()
                limit_s = None
            self._pace(now - last_word > QUIET_S)

            read, written = [self.console, ends, *self.sources], []
            if self.waiting:
                written.append(self.input)
            wait_s = max(0.0, min(next_tick, limit_s or next_tick) - now)
            readable, writable, changed = select.select(read, written, [self.mounts], wait_s)

            if changed:
                self._note_names()
            if self.console in readable:
                self._hear(process)
                last_word = time.monotonic()
            if writable:
                self._give()
            for source in set(readable) & set(self.sources):
                if self._carry(source):
                    last_word = time.monotonic()
            if ends in readable:
                break

        status = process.wait()
        # Carry what it printed, and no more: processes that it left may keep the pipes for ever.
        while ready := select.select(list(self.sources), [], [], 0)[0]:
            for source in ready:
                self._carry(source)
        self._pace(False)
        return status

    def _note_names(self) -> None:
        """Note the names of network namespaces: `ip netns` mounts each on a file of its name."""
        os.lseek(self.mounts, 0, os.SEEK_SET)
        with open(os.dup(self.mounts), "rb") as file:
            for line in file.read().decode(errors="replace").splitlines():
                _, _, _, root, place, *_ = line.split(" ")
                if root.startswith("net:[") and len(self.spaces) < MOST_SPACES:
                    space = f"{root[5:-1]} {os.path.basename(place)}"
                    self.spaces.setdefault(space, time.time_ns())

    @staticmethod
    def _stop() -> None:
        """Kill all other processes of the guest."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)

    def _pace(self, paced: bool) -> None:
        """Let the guest's clock run as the wall's while a person is awaited."""
        if self.terminal >= 0 and paced != self.paced:
            self.paced = paced
            own_kernel.pace(paced)

    def _carry(self, source: int) -> bool:
        """Send what was printed to a descriptor; return False at its end."""
        try:
            content = os.read(source, MOST_BYTES)
        except OSError:  # a terminal that no process has open any more
            content = b""
        if content:
            self.send(self.sources[source], content)
        else:
            del self.sources[source]
        return bool(content)

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """Take the machine's frames, and obey them."""
        for frame in self.reader.read(os.read(self.console, MOST_BYTES)):
            if frame.kind == INPUT:
                self.waiting += frame.content
            elif frame.kind == CLOSE:
                self.closing = True
            elif frame.kind == INTERRUPT:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT)
            elif frame.kind == STOP:
                self._stop()
            elif frame.kind == SIZE and self.terminal >= 0:
                self._resize(*struct.unpack("!HH", frame.content))
        if self.closing and not self.waiting:
            self._close_input()

    def _give(self) -> None:
        """Write as much of the waiting input as the command takes."""
        try:
            taken_bytes = os.write(self.input, self.waiting)
            del self.waiting[:taken_bytes]  # no copy of the rest, which has up to 64 MB
            self.taken_bytes += taken_bytes
            if self.request["input"] == "live":
                self.send(TICK, str(self.taken_bytes).encode())
        except OSError:  # nobody reads the input any more
            self.waiting.clear()
            self.closing = True
        if self.closing and not self.waiting:
            self._close_input()

    def _close_input(self) -> None:
        if self.input >= 0 and self.terminal < 0:
            os.close(self.input)
            self.input = -1

    def _resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


# What it wrote -----------------------------------------------------------------------

def send_written(above: int, room: Room, send: Callable[[bytes, bytes], None]) -> None:
    """Send the files, folders and links of an upper layer, and a line for what is skipped.

    above: a descriptor of the layer. Removed names, marked by character devices 0/0, are lines.
    """
    removed = []

    def report(name: bytes, why: str) -> None:
        send(TROUBLE, f"{printable(name)}: {why}".encode())

    for name, place in _walk(above, report):
        try:
            info = os.stat(place, follow_symlinks=False)
            if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
                removed.append(name)
            elif stat.S_IFMT(info.st_mode) not in KINDS_OF_FILES:
                report(name, "neither a file nor a folder")
            elif len(name) > MOST_NAME:
                report(name, "its name is too long")
            else:
                entry = _entry(name, place, info)
                _send_entry(entry, place, send, is_whole=not room.refuses(entry))
        except OSError as error:
            report(name, error.strerror)
    for name in removed:
        report(name, "removed")


def _entry(name: bytes, place: bytes, info: os.stat_result) -> Entry:
    """The entry of a file, a folder or a link. Raises OSError."""
    kind = KINDS_OF_FILES[stat.S_IFMT(info.st_mode)]
    in_64_bits = max(-(1 << 63), min(info.st_mtime_ns, (1 << 63) - 1))
    return Entry(kind, name, stat.S_IMODE(info.st_mode), modified_ns=in_64_bits,
                 size=info.st_size if kind == FILE else 0,
                 target=os.readlink(place) if kind == LINK else b"")


def _send_entry(entry: Entry, place: bytes, send: Callable[[bytes, bytes], None],
                is_whole: bool) -> None:
    """Send an entry, and its content if is_whole; otherwise the machine reports that it is missing.

    No more content is sent than the entry says, since processes left running may still write to it.
    """
    if entry.kind != FILE or not is_whole:
        send(ENTRY, entry.packed())
        return
    with open(place, "rb", buffering=0) as content:
        send(ENTRY, entry.packed())
        rest = entry.size
        while rest and (piece := content.read(min(rest, MOST_BYTES))):
            rest -= len(piece)
            send(CONTENT, piece)


def printable(name: bytes) -> str:
    """A file's name for a message: unprintable characters escaped, long names cut in the middle."""
    text = name.decode(errors="backslashreplace")
    if len(text) > 200:
        text = f"{text[:100]}...{text[-100:]}"
    return "".join(character if character.isprintable() else
                   character.encode("unicode_escape").decode() for character in text)


def _walk(above: int, report: Callable[[bytes, str], None]) -> Iterator[tuple[bytes, bytes]]:
    """Yield all names below a folder with their paths, each folder before its content.

    above: a descriptor of the folder. report: takes a folder that cannot be listed, and why.
    os.walk calls itself for each level of folders, and skips such a folder silently.
    """
    root = b"/proc/self/fd/%d/" % above
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root + folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:  # its path may be longer than one can be
            report(folder.rstrip(b"/"), f"its content: {error.strerror}")
            continue
        for entry in found:
            yield folder + entry.name, entry.path
        waiting += [folder + entry.name + b"/" for entry in reversed(found)
                    if entry.is_dir(follow_symlinks=False)]


def set_loopback_up() -> None:
    """Set lo up without `ip`, which a capture would report as one of the user's commands."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:  # netdevice(7)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def main(folder: Path, project: Path) -> None:
    """Run the request in the shared folder. Errors are sent as frames."""
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    above, shared = enter(request["folder"], request["readable"])
    set_loopback_up()
    command = Command(request, shared)

    time.sleep(UP_S - time.monotonic())
    own_kernel.restart_random_numbers()
    try:
        command.run()
        send_written(above, Room(request["most_bytes"], request["most_files"]), command.send)
        spaces = [f"{since_ns} {space}" for space, since_ns in command.spaces.items()]
        command.send(NAMES, "\n".join(spaces).encode())
        command.send(CALLS, in_place.calls())
        for line in in_place.notes():
            command.send(TROUBLE, line.encode())
        command.send(ALL_SENT)
    except Unsent:
        pass
    except Exception as error:
        with contextlib.suppress(Unsent):
            command.send(TROUBLE, f"in the guest: {type(error).__name__}: {error}".encode())
        raise
    sys.stdout.flush()
