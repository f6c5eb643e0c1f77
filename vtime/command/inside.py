"""In the guest: makes its root writable in memory, runs one command, hands back what it wrote.

The root is an overlay: below it the machine's files, which cannot be written to, above it the
guest's memory. The folder in which the command was started is an overlay of its own, so that what
the command wrote there is what lies above (`written` packs it). Folders in which people keep what
is theirs (HIDDEN) are empty. Processes of the command end with the guest.
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

from vtime.command import own_kernel
from vtime.command.frames import (ALL_SENT, CLOSE, CONTENT, ENDED, ENTRY, ERROR, FILE, FOLDER,
                                  FULL, INPUT, INTERRUPT, LINK, MOST_BYTES, MOST_NAME, NAMES,
                                  OUTPUT, SIZE, STOP, TICK, TROUBLE, Entry, Frame, Reader, Room)
from vtime.mounts import mount
from vtime.readable import HIDDEN

REQUEST, FRAMES, STANDARD_INPUT = "request.json", "frames", "input"
KINDS_OF_FILES = {stat.S_IFREG: FILE, stat.S_IFDIR: FOLDER, stat.S_IFLNK: LINK}
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
CONSOLE = "/dev/tty1"  # where the machine's frames come in
HOME = "/tmp/home"
# Programs that are called in another way here: this folder's file stands in their place, and what
# it calls itself is in OWN. NOTES: lines that they have for who runs the command.
OURS = "/run/first-flight"
OWN, NOTES = f"{OURS}/own", f"{OURS}/notes"
IN_PLACE = {
    **{f"/usr/bin/{name}": name for name in (
        "ovs-vsctl", "ovs-ofctl", "telnet", "controller", "sudo", "packetdrill")},
    "/usr/sbin/modprobe": "modprobe", "/usr/sbin/lsmod": "modprobe",
    **{f"/usr/bin/cg{what}": "cgroups" for what in ("create", "set", "get", "classify", "delete")}}
# By those that call another program.
NEEDED = {"controller": "/usr/bin/ovs-testcontroller", "telnet": "/usr/bin/telnet",
          "ovs-vsctl": "/usr/bin/ovs-vsctl", "ovs-ofctl": "/usr/bin/ovs-ofctl"}
MOST_NOTES, MOST_SPACES = 10_000, 1000  # bytes, and names of network namespaces
# What Mininet looks for of cgroup v1: the files of a group, and what is in them.
CGROUPS = {"cpu": {"cfs_period_us": "100000", "cfs_quota_us": "-1", "shares": "1024",
                   "rt_period_us": "1000000", "rt_runtime_us": "950000"},
           "cpuacct": {"usage": "0"}, "cpuset": {"cpus": "0", "mems": "0"}}
NEW, OLD = "/run/new", "mnt"  # where the new root is made; where in it the old one is put
# How long the guest is up when the command begins: programs take the first second of a machine for
# a clock that was never read (iputils' ping then sends without its interval).
UP_S = 60
TICK_S = 1.0  # of the guest's clock, between two signs of life
QUIET_S = 2.0  # nothing printed for so long: a person is awaited, if there is a terminal
NOT_FOUND, NOT_EXECUTABLE = 127, 126
_PIVOT_ROOT = 155
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 1 << 14, 1 << 18
_MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


# The root ----------------------------------------------------------------------------

def _mounted(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """mount(2), making the folder. Raises OSError."""
    os.makedirs(target, exist_ok=True)
    mount(source, target, kind, flags, options)


def bind(source: str, target: str) -> None:
    """Let a file or a folder stand in the place of another one. Raises OSError."""
    mount(source, target, "", _MS_BIND | _MS_REC)


def _overlay(lower: str, target: str, above: str) -> str:
    """Mount an overlay whose upper layer is in `above`; where that is."""
    upper, work = f"{above}/upper", f"{above}/work"
    os.makedirs(upper)
    os.makedirs(work)
    quoted = lower.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    _mounted("overlay", target, "overlay",
             options=f"lowerdir={quoted},upperdir={upper},workdir={work}")
    return upper


def enter(folder: str, readable: list[str]) -> tuple[int, int]:
    """Make the writable root and go there.

    Returns the descriptors of the layer above the folder, and of the folder shared with the
    machine. Raises OSError.
    """
    _mounted("none", "/", "", _MS_REC | _MS_PRIVATE)
    _mounted("memory", "/run/above", "tmpfs", options="mode=755,size=95%")
    _overlay("/", NEW, "/run/above/root")
    for path in (*HIDDEN, "/mnt"):
        _mounted("tmpfs", NEW + path, "tmpfs", options="mode=1777" if "tmp" in path else "mode=755")
    for path in ("/proc", "/sys", "/dev"):
        bind(path, NEW + path)
    mount("tracefs", f"{NEW}/sys/kernel/tracing", "tracefs")
    _mounted("tmpfs", f"{NEW}/dev/shm", "tmpfs", options="mode=1777")
    for path in readable:
        os.makedirs(os.path.dirname(NEW + path), exist_ok=True)
        if os.path.isdir(path):
            os.makedirs(NEW + path, exist_ok=True)
        else:
            Path(NEW + path).touch()
        bind(path, NEW + path)
    for place, name in IN_PLACE.items():
        if os.path.exists(NEEDED.get(name, "/")):
            _put_in_place(place, name)
    for source in Path(__file__).parent.glob("times.*"):  # for packetdrill
        Path(f"{NEW}{OURS}/{source.name}").write_bytes(source.read_bytes())
    if not os.path.lexists(f"{NEW}/usr/bin/python"):  # as experiments call it
        os.symlink("python3", f"{NEW}/usr/bin/python")
    _make_cgroups(f"{NEW}/sys/fs/cgroup")
    socket.sethostname("localhost")  # a machine's name that resolves
    os.makedirs(f"{NEW}/run/openvswitch", exist_ok=True)  # the package's, for its daemons
    upper = _overlay(folder, NEW + folder, "/run/above/folder")
    above = os.open(upper, os.O_RDONLY | os.O_DIRECTORY)
    shared = os.open("/run/first-flight", os.O_RDONLY | os.O_DIRECTORY)
    os.chdir(NEW)
    if _libc.syscall(_PIVOT_ROOT, b".", OLD.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "pivot_root")
    os.chdir("/")
    _libc.umount2(f"/{OLD}".encode(), _MNT_DETACH)
    os.makedirs(HOME)
    return above, shared


def _put_in_place(place: str, name: str) -> None:
    """Let this folder's program stand where the machine's stands, which is in OWN then."""
    own = f"{NEW}{OWN}/{os.path.basename(place)}"
    os.makedirs(NEW + OWN, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        program = os.path.realpath(place, strict=True)
        Path(own).touch(mode=0o755)
        bind(program, own)
        os.remove(NEW + place)
    ours = Path(NEW + place)
    ours.write_bytes((Path(__file__).parent / name).read_bytes())
    ours.chmod(0o755)


def _make_cgroups(tree: str) -> None:
    """Cgroups as of v1, in memory, that limit nothing: with v2 alone Mininet 2.3.0 has no hosts."""
    mount("cgroup", tree, "tmpfs", options="mode=755")
    for controller, values in CGROUPS.items():
        os.makedirs(f"{tree}/{controller}")
        for name, value in values.items():
            Path(f"{tree}/{controller}/{controller}.{name}").write_text(f"{value}\n")


def notes() -> list[str]:
    """The notes of programs in the place of others, each line once."""
    with contextlib.suppress(OSError), open(NOTES, "rb") as file:
        return list(dict.fromkeys(file.read(MOST_NOTES).decode(errors="replace").splitlines()))
    return []


# The command -------------------------------------------------------------------------

class Unsent(Exception):
    """The machine takes no more frames: its disk is full. It sees that one is torn, or missing."""


class Command:
    """The command as a process, its input and output, and what the machine sends meanwhile."""

    def __init__(self, request: dict[str, Any], shared: int) -> None:
        self.request, self.shared = request, shared
        self.frames = os.open(FRAMES, os.O_WRONLY | os.O_APPEND, dir_fd=shared)
        self.console = os.open(CONSOLE, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.console)
        self.reader = Reader()
        self.sources: dict[int, bytes] = {}  # what is read, and the kind of its frames
        self.terminal = -1
        self.input = -1  # where input is written to
        self.waiting = bytearray()  # input that it has not taken so far
        self.taken_bytes = 0
        self.closing = False
        self.paced = False
        self.now_ns = 0  # on the guest's clock, when the last frame was sent
        self.mounts = os.open("/proc/self/mountinfo", os.O_RDONLY)
        self.spaces: dict[str, int] = {}  # numbers and names that `ip netns` gave: since when

    def send(self, kind: bytes, content: bytes = b"") -> None:
        if kind != CONTENT:  # who asks what time it is thousands of times is known to spin
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
        """Run it to its end, and send how it ended."""
        request = self.request
        words, environment = request["words"], request["environment"]
        try:
            process = self._started(words, environment)
        except OSError as error:
            missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
            self.send(ERROR, f"{words[0]}: {'command not found' if missing else error.strerror}\n"
                      .encode())
            self.send(ENDED, str(NOT_FOUND if missing else NOT_EXECUTABLE).encode())
            return
        status = self._attended(process)
        self.send(ENDED, str(status if status >= 0 else 128 - status).encode())

    def _started(self, words: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start it. Raises OSError."""
        taken: list[int] = []
        if self.request["terminal"]:
            self.terminal, child = pty.openpty()
            self._resize(*self.request["terminal"])
            self.sources[self.terminal] = OUTPUT
            self.input = self.terminal
            streams = (child, child, child)
            taken.append(child)
        else:
            output, output_end = os.pipe()
            error, error_end = os.pipe()
            self.sources |= {output: OUTPUT, error: ERROR}
            taken += [output_end, error_end]
            given = self.request["input"]
            if given in ("live", "whole"):
                source, self.input = os.pipe()
                self.closing = given == "whole"
                if self.closing:
                    self.waiting += self._whole_input()
            else:
                source = os.open(STANDARD_INPUT if given == "file" else "/dev/null", os.O_RDONLY,
                                 dir_fd=self.shared if given == "file" else None)
            taken.append(source)
            streams = (source, output_end, error_end)
        if self.input >= 0:
            os.set_blocking(self.input, False)

        def begin() -> None:
            if self.terminal >= 0:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        try:
            return subprocess.Popen(words, stdin=streams[0], stdout=streams[1], stderr=streams[2],
                                    env=environment, start_new_session=True, preexec_fn=begin,
                                    cwd=self.request["folder"])
        finally:
            for descriptor in taken:
                os.close(descriptor)

    def _whole_input(self) -> bytes:
        with open(os.open(STANDARD_INPUT, os.O_RDONLY, dir_fd=self.shared), "rb") as file:
            return file.read()

    def _attended(self, process: subprocess.Popen[bytes]) -> int:
        """Carry input and output until it ends; its status."""
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
            wait_s = max(0.0, min(next_tick, limit_s or next_tick) - now)
            readable, writable, changed = select.select(
                [self.console, ends, *self.sources], [self.input] if self.waiting else [],
                [self.mounts], wait_s)
            if changed:
                self._note_names()
            if self.console in readable:
                self._hear(process)
                last_word = time.monotonic()
            if writable:
                self._give()
            for source in set(readable) & set(self.sources):
                if self._carried(source):
                    last_word = time.monotonic()
            if ends in readable:
                break
        status = process.wait()
        # What it has printed is there; what it left running may hold its pipes for ever.
        while ready := select.select(list(self.sources), [], [], 0)[0]:
            for source in ready:
                self._carried(source)
        self._pace(False)
        return status

    def _note_names(self) -> None:
        """Something was mounted, such as a network namespace in the place that has its name."""
        os.lseek(self.mounts, 0, os.SEEK_SET)
        with open(os.dup(self.mounts), "rb") as file:
            for line in file.read().decode(errors="replace").splitlines():
                _, _, _, root, place, *_ = line.split(" ")
                if root.startswith("net:[") and len(self.spaces) < MOST_SPACES:
                    self.spaces.setdefault(f"{root[5:-1]} {os.path.basename(place)}",
                                           time.time_ns())

    @staticmethod
    def _stop() -> None:
        """Kill whatever runs in the guest but this process."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)

    def _pace(self, paced: bool) -> None:
        """Let time go on as on the wall while a person is awaited."""
        if self.terminal >= 0 and paced != self.paced:
            self.paced = paced
            own_kernel.pace(paced)

    def _carried(self, source: int) -> bool:
        """Carry what was printed; False at its end."""
        try:
            content = os.read(source, MOST_BYTES)
        except OSError:  # of a terminal that nobody has open any more
            content = b""
        if content:
            self.send(self.sources[source], content)
        else:
            del self.sources[source]
        return bool(content)

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        """The frames that the machine sends."""
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
        """Write of the input what is taken."""
        try:
            taken_bytes = os.write(self.input, self.waiting)
            del self.waiting[:taken_bytes]  # no copy of the rest, which has up to 64 MB
            self.taken_bytes += taken_bytes
            if self.request["input"] == "live":
                self.send(TICK, str(self.taken_bytes).encode())
        except OSError:  # nobody reads it any more
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
    """Send what lies in the layer above a folder, and a line for whatever of it is left out.

    Regular files, folders and links; a name that was removed is a line of its own. The layer's own
    marks (character device 0/0) are no files.
    """
    removed = []

    def tell(name: bytes, why: str) -> None:
        send(TROUBLE, f"{shown(name)}: {why}".encode())
    for name, place in _walk(above, tell):
        try:
            info = os.stat(place, follow_symlinks=False)
            if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
                removed.append(name)
                continue
            kind = KINDS_OF_FILES.get(stat.S_IFMT(info.st_mode))
            why = ""
            if kind is None:
                why = "neither a file nor a folder"
            elif len(name) > MOST_NAME:
                why = "its name is too long"
            else:
                in_64_bits = max(-(1 << 63), min(info.st_mtime_ns, (1 << 63) - 1))
                entry = Entry(kind, name, stat.S_IMODE(info.st_mode), in_64_bits,
                              info.st_size if kind == FILE else 0,
                              os.readlink(place) if kind == LINK else b"")
                _send_entry(entry, place, send, is_whole=not room.refuses(entry))
        except OSError as error:
            why = error.strerror
        if why:
            tell(name, why)
    for name in removed:
        tell(name, "removed")


def _send_entry(entry: Entry, place: bytes, send: Callable[[bytes, bytes], None],
                is_whole: bool) -> None:
    """An entry, and its content where it fits: the machine reports that it does not.

    Of the content as much as the entry says: what was left running may still write to it.
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


def shown(name: bytes) -> str:
    """A file's name in a line: escapes for what is not printable, of a long one both ends."""
    text = name.decode(errors="backslashreplace")
    text = text if len(text) <= 200 else f"{text[:100]}...{text[-100:]}"
    return "".join(character if character.isprintable() else
                   character.encode("unicode_escape").decode() for character in text)


def _walk(above: int, tell: Callable[[bytes, str], None]) -> Iterator[tuple[bytes, bytes]]:
    """All names below a folder, each folder before what is in it, and their paths.

    tell: takes a folder that cannot be listed, and why. Not os.walk, which calls itself for each
    folder in a folder, and says nothing of such a one.
    """
    root = b"/proc/self/fd/%d/" % above
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root + folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:  # its path may be longer than one can be
            tell(folder.rstrip(b"/"), f"what is in it: {error.strerror}")
            continue
        for entry in found:
            yield folder + entry.name, entry.path
        waiting += [folder + entry.name + b"/" for entry in reversed(found)
                    if entry.is_dir(follow_symlinks=False)]


def set_loopback_up() -> None:
    """Set lo up without `ip`, which a capture would show as a command of the user's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:  # netdevice(7)
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def main(folder: Path, project: Path) -> None:
    """Run what the shared folder's request asks for. Whatever fails is sent in a frame."""
    request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    above, shared = enter(request["folder"], request["readable"])
    set_loopback_up()
    command = Command(request, shared)
    time.sleep(UP_S - time.monotonic())
    own_kernel.restart_random_numbers()
    try:
        command.run()
        send_written(above, Room(request["most_bytes"], request["most_files"]), command.send)
        command.send(NAMES, "\n".join(f"{since_ns} {space}" for space, since_ns
                                      in command.spaces.items()).encode())
        for line in notes():
            command.send(TROUBLE, line.encode())
        command.send(ALL_SENT)
    except Unsent:
        pass
    except Exception as error:
        with contextlib.suppress(Unsent):
            command.send(TROUBLE, f"in the guest: {type(error).__name__}: {error}".encode())
        raise
    sys.stdout.flush()
