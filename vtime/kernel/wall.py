"""A wall around a build of the guest's kernel: what a stranger's source may do to this machine.

    wall.py --around                            the namespaces that this machine has for it (user,
                                                root or none); a second line, if there is one, says
                                                what is then not confined
    wall.py AROUND [--write FOLDER]… [--read PATH]… -- COMMAND WORD…
                                                runs a command behind it, in the first folder
    wall.py --print -- COMMAND WORD…            runs a command without it

Unpacking a source, patching and compiling it run what a stranger wrote: a Makefile may start any
program. So all of it runs where it can write to these folders only:

    mounts         every file system is read-only but these folders; no devices but null, zero,
                   full, random and urandom; /proc shows the build's own processes
    namespaces     no network, no other process, no System V IPC; all that the command has started
                   ends with it
    Landlock       reads what every guest reads (vtime/readable.py), the compiler's folder, and
                   these paths
    seccomp        no sockets, since one of the machine's services may do what the build may not;
                   no setuid files; no leases on files; nothing of REFUSED (behind.py)
    capabilities   none, and no_new_privs

What a build takes of memory, processes and the disk is watched from outside. behind.py builds the
wall around its own process, in the namespaces that are made here.

vtime/confine.py, which has no mounts, allows about a hundred system calls, and make needs more.
What the command prints comes out as printable lines of a limited length. Used by build.sh.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parent.parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(PROJECT))

from vtime import confine, readable, watch  # noqa: E402
from vtime.kernel import behind  # noqa: E402

TOOLS = ("gcc", "ld", "make", "flex", "bison", "bc", "perl", "python3", "patch", "tar", "xz")
TOOLCHAINS = "/opt"
OWN = str(Path(__file__).resolve().parent)  # of the project, a build reads this folder only
# By the word that names them: how unshare is asked for the namespaces.
AROUND = {"user": ("--user", "--map-current-user", "--keep-caps"), "root": ()}
NAMESPACES = ("--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--")
_TRY_S = 20.0

# For each processor, one compiler runs: the largest, of a file of drivers, takes 300 MB; ld 500.
MOST_MB, MOST_MB_OF_PROCESSOR = 2048, 1024
LEAST_DISK_MB, LEAST_FILES = 64, 256  # what others have left
MOST_DISK_MB, MOST_FILES = 4096, 200_000  # what a step writes: a kernel's source has 30,000 files
LOOK_S = 0.5
MOST_LINE, MOST_OUTPUT = 2000, 32 << 20  # characters of a line that it prints, bytes of them all
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def around() -> tuple[str, str]:
    """The namespaces that this machine has for a build, and what is not confined there, if any."""
    with tempfile.TemporaryDirectory(prefix="first-flight-wall-") as folder:
        possible = AROUND if os.geteuid() == 0 else ("user",)
        place = next((name for name in possible if _works(name, folder)), behind.NONE)
    if lacking := confine.lacking():
        return place, (f"what it reads{'' if place != behind.NONE else ' and writes'}, as this"
                       f" machine lacks {lacking}")
    if place == behind.NONE:
        return place, ("the modes, times and attributes of your files, and signals to your"
                       " processes, as this machine lets you make no namespaces (sysctl"
                       " user.max_user_namespaces, kernel.unprivileged_userns_clone,"
                       " kernel.apparmor_restrict_unprivileged_userns, or a container forbids it)")
    return place, ""


def _works(name: str, folder: str) -> bool:
    """Whether a command runs in the namespaces of this name."""
    command = _command(name, [folder], readable.PROGRAMS, ["true"])
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=_TRY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _command(name: str, write: Sequence[str], read: Sequence[str],
             command: Sequence[str]) -> list[str]:
    """The command that runs another one behind the wall. name: of the namespaces."""
    words = ["unshare", *AROUND[name], *NAMESPACES] if name != behind.NONE else []
    words += [sys.executable, "-I", "-B", "-S", behind.__file__, name]
    for path in write:
        words += ["--write", path]
    for path in read:
        words += ["--read", path]
    return [*words, "--", *command]


def run(name: str, write: Sequence[str], read: Sequence[str], command: Sequence[str]) -> int:
    """Run a command behind the wall. Returns its exit status."""
    places = readable.ReadablePaths((TOOLCHAINS,))
    tools = _folders_of_tools()
    allowed = *readable.PROGRAMS, readable.LOCAL, TOOLCHAINS, *tools
    path = os.pathsep.join(folder for folder in os.get_exec_path() if is_below(folder, allowed))
    behind = _command(name, write, [*places.paths, *tools, OWN, *read], command=command)
    return print_cleaned(behind, {"PATH": path or os.defpath}, _Watch(write))


def print_cleaned(command: Sequence[str], environment: Mapping[str, str] = os.environ,
                  watching: _Watch | None = None) -> int:
    """Run a command, and print the lines that it prints (printable). Returns its exit status."""
    with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          preexec_fn=_end_with_parent) as process:
        for lines in printable(_chunks(process, watching)):
            sys.stdout.buffer.write(lines)
            sys.stdout.buffer.flush()
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def _chunks(process: subprocess.Popen[bytes], watching: _Watch | None) -> Iterator[bytes]:
    """What a process prints until it ends; it is ended where it takes too much."""
    assert process.stdout is not None
    printed = process.stdout.fileno()
    next_look = time.monotonic() + LOOK_S
    while True:
        if select.select([printed], [], [], LOOK_S)[0]:
            chunk = os.read(printed, 1 << 16)
            if not chunk:
                return
            yield chunk
        elif process.poll() is not None:
            return  # what it left behind may hold the pipe, where there is no namespace

        if watching and time.monotonic() >= next_look:
            next_look = time.monotonic() + LOOK_S
            if why := watching.excess(str(process.pid)):
                process.kill()
                yield f"\n{why}\n".encode()
                return


class _Watch:
    """What a build takes beyond its needs."""

    def __init__(self, folders: Sequence[str]) -> None:
        """folders: those that it writes to."""
        self.folders = folders
        self.room = {folder: _room(folder) for folder in folders}

    def excess(self, first: str) -> str:
        """The excess of a process and all below it, in words; "" if there is none."""
        taken = watch.Taken(first)
        most = behind.most_processes()
        if taken.processes > most:
            return f"refused: the build had {taken.processes} processes, and needs {most} at most"
        most = watch.most_pipes(most)
        if taken.pipes > most:
            return f"refused: the build had {taken.pipes} pipes, and needs {most} at most"

        most_mb = MOST_MB + MOST_MB_OF_PROCESSOR * (os.cpu_count() or 1)
        if max(taken.private + taken.files, taken.shared) >> 20 > most_mb:
            took_mb = taken.exact_bytes() >> 20
            if took_mb > most_mb:
                return (f"refused: the build took {took_mb} MB of memory, and needs {most_mb} at"
                        " most")
        if full := watch.machine_is_full():
            return f"refused: {full}"
        return next(filter(None, map(self._excess_of_disk, self.folders)), "")

    def _excess_of_disk(self, folder: str) -> str:
        """The excess in a folder, in words; "" if there is none."""
        before, room = self.room[folder], _room(folder)
        if room.bytes >> 20 < LEAST_DISK_MB:
            return f"No space left on device: the last {LEAST_DISK_MB} MB are not for builds"
        if 0 < before.files and room.files < LEAST_FILES:
            return f"No space left on device: the last {LEAST_FILES} files are not for builds"

        used = _Space(before.bytes - room.bytes, before.files - room.files)
        if used.bytes >> 20 <= MOST_DISK_MB and used.files <= MOST_FILES:
            return ""
        self.room[folder] = room  # somebody else may have written it
        try:
            held = _held(folder)
        except (OSError, RecursionError):  # no sound build makes what cannot be looked at
            held = used
        if held.bytes >> 20 <= MOST_DISK_MB and held.files <= MOST_FILES:
            return ""
        return (f"refused: the build wrote {held.bytes >> 20} MB in {held.files} files, and needs"
                f" {MOST_DISK_MB} in {MOST_FILES} at most")


class _Space(NamedTuple):
    """Of a disk: bytes, and files, 0 where it has any number of them."""

    bytes: int
    files: int


def _room(folder: str) -> _Space:
    """What a folder's disk has free."""
    disk = os.statvfs(folder)
    return _Space(disk.f_bavail * disk.f_frsize, disk.f_favail)


def _held(folder: str) -> _Space:
    """What a folder holds. Raises OSError, RecursionError where it cannot be looked at."""
    held = files = 0
    for _, _, names, at in os.fwalk(folder, onerror=_refused):
        files += 1 + len(names)
        for name in names:
            with suppress(FileNotFoundError):  # it is gone meanwhile
                held += os.lstat(name, dir_fd=at).st_blocks * 512
    return _Space(held, files)


def _refused(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _folders_of_tools() -> list[str]:
    """The folders of PATH in which the compiler and its like are; none with secrets."""
    folders: set[str] = set()
    for name in TOOLS:
        if path := shutil.which(name):
            folders.add(os.path.realpath(os.path.dirname(path)))
    return sorted(folder for folder in folders if not readable.secrets_in(Path(folder)))


def is_below(path: str, folders: Iterable[str]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def printable(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Lines for a log that somebody will see on a terminal: cleaned, and cut."""
    left = MOST_OUTPUT  # bytes that may still be printed
    begun = b""  # a line that has no end yet
    is_cut = False  # whether the beginning of that line was printed, and its rest is not
    for chunk in chunks:
        *lines, begun = (begun + chunk).split(b"\n")
        if is_cut and lines:
            lines, is_cut = lines[1:], False
        shown = list(map(_clean, lines))
        if len(begun) > MOST_LINE * 4:
            if not is_cut:
                shown.append(_clean(begun))
            begun, is_cut = b"", True

        out = b"".join(shown)
        if left <= 0:
            continue
        if left <= len(out):
            out = out[:left] + b"\n(more was printed than is kept)\n"
        left -= len(out)
        yield out
    if begun and left > 0 and not is_cut:
        yield _clean(begun)


def _clean(line: bytes) -> bytes:
    """A line without characters that are not printable, and cut."""
    text = line[:MOST_LINE * 4].decode(errors="replace").expandtabs()
    if len(text) > MOST_LINE:
        text = f"{text[:MOST_LINE]}…"
    if not text.isprintable():
        text = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return f"{text}\n".encode()


def main(words: list[str]) -> int:
    behind.heed_signals()
    if words == ["--around"]:
        print(*filter(None, around()), sep="\n")
        return 0
    if words[:2] == ["--print", "--"]:
        return print_cleaned(words[2:])
    return run(words[0], *behind.read_words(words[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
