"""Decides which files of the machine a guest may read, besides those that its user names.

    every guest   /usr and similar folders; in /usr/local and in ETC of /etc what all users may read
    a command     also what all users may read in /etc, /opt and /srv

All users may read a file or folder if its mode lets others read it, and if they may enter every
folder above it. The answer is the same for root, for a file's owner and for its group. A link is
judged by its target, which is read if it may be read under its own path. Homes are never read, and
neither is anything mounted into one of these places: it may be a home, too.

The machine's own permissions would not be enough: root without its capabilities still owns
/etc/shadow, and as another user it could not read the folder in which it was started. `find`
searches, since a place may have a hundred thousand files. vtime/confine.py enforces the result;
SECURITY.md and MININET.md describe it. This file imports nothing of the project, since guests
import it.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

PROGRAMS = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
# Files of /etc that programs in a guest read; none of them is secret.
ETC = ("alternatives", "bash.bashrc", "ethertypes", "gai.conf", "group", "host.conf", "hosts",
       "inputrc", "iproute2", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
       "localtime", "mime.types", "nginx/mime.types", "nsswitch.conf", "passwd", "protocols",
       "services", "ssl/certs", "ssl/openssl.cnf",
       "wgetrc")
LOCAL = "/usr/local"
OF_COMMANDS = ("/etc", "/opt", "/srv")
# A command finds these folders empty, except for paths in them that its user named.
HIDDEN = ("/home", "/root", "/tmp", "/var/tmp", "/run", "/dev/shm")
# Nobody works in these folders; a command started there would read files that the rule hides.
SECRET = ("/etc", "/run", "/proc", "/sys", "/dev")
MOST_PARTS = 2000  # paths of one place, which all become words of a command line


# Homes, and places with secrets ------------------------------------------------------

def homes() -> set[Path]:
    """The homes of this machine, as paths without links.

    They are $HOME, /root, the folders in /home, and those that passwd names, if that user owns
    them. So /usr/sbin, /bin, /dev, / and /nonexistent, which passwd names for system users, are
    none, and neither is a folder of PROGRAMS.
    """
    named = {Path.home(), Path("/root"), *Path("/home").glob("*")}
    for user in pwd.getpwall():
        with suppress(OSError):
            owner = os.lstat(os.path.realpath(user.pw_dir)).st_uid
            if os.path.isabs(user.pw_dir) and owner == user.pw_uid:
                named.add(Path(user.pw_dir))
    with suppress(KeyError, ValueError):  # whom passwd may know, and not list
        named.add(Path(pwd.getpwuid(int(os.environ["SUDO_UID"])).pw_dir))

    real = {os.path.realpath(home) for home in named}
    no_homes = {os.path.realpath(path) for path in ("/", *PROGRAMS)}
    return {Path(home) for home in real - no_homes}


def secrets_in(place: Path) -> str:
    """Why a place, given without links, would show secrets to its reader; "" if it would not.

    A project's folder in a home or in /opt shows none; ~/.ssh may, and so may all of a home whose
    name begins with a dot.
    """
    known = homes()
    if str(place) in (*SECRET, *OF_COMMANDS, LOCAL):
        return "is a place with secrets"
    if any(home.is_relative_to(place) for home in (*known, *map(Path, HIDDEN))):
        return "is a home folder, or above one"
    if Path(LOCAL).is_relative_to(place):
        return f"is above {LOCAL}"

    if place.is_relative_to("/dev/shm"):
        return ""
    for secret in SECRET:
        if place.is_relative_to(secret):
            return f"lies in {secret}"

    above = [home for home in known if place.is_relative_to(home)]
    if above:
        home = max(above, key=lambda home: len(home.parts))
        name = place.relative_to(home).parts[0]
        if name.startswith("."):
            return f"lies in {home / name}, where keys and settings are"
    return ""


def refused(folder: Path, given: Iterable[str | Path] = (),
            advice: str = "start it in a folder of its own") -> str:
    """Why no command may be started in a folder; "" if one may.

    folder, given: paths without links. given: those that the user named with --readable.
    """
    why = secrets_in(folder)
    if not why or any(folder.is_relative_to(path) for path in given):
        return ""
    return (f"{folder} {why}, and the command would read all of it: {advice}, or allow it by"
            f" --readable {folder}")


def led_to(path: Path, folder: Path) -> str:
    """The target of a path in a folder if a link leads it to a place with secrets; else "".

    Somebody who unpacks a stranger's folder, and names a link in it, does not mean ~/.ssh.
    """
    named, real = Path(os.path.abspath(folder / path)), Path(os.path.realpath(folder / path))
    leads_out = named.is_relative_to(folder) and not real.is_relative_to(folder)
    return str(real) if leads_out and secrets_in(real) else ""


# What all users may read -------------------------------------------------------------

def everybody_reads(path: str, known_homes: Iterable[Path]) -> bool:
    """Whether all users may read a file, or list a folder, by its path without links.

    path: may have links. known_homes: homes().
    """
    real = Path(os.path.realpath(path))
    try:
        mode = os.lstat(real).st_mode
        lets_in = all(os.lstat(above).st_mode & stat.S_IXOTH for above in real.parents)
    except OSError:
        return False
    needed: int = stat.S_IROTH
    if stat.S_ISDIR(mode):
        needed |= stat.S_IXOTH
    return lets_in and mode & needed == needed and not any(map(real.is_relative_to, known_homes))


class ReadablePaths:
    """Finds what all users may read, in another process, while this one goes on."""

    def __init__(self, more: Sequence[str] = ()) -> None:
        """more: places in addition to those of every guest (OF_COMMANDS)."""
        known = homes()
        candidates = LOCAL, *(f"/etc/{name}" for name in ETC), *more
        self.roots = _outermost(os.path.realpath(place) for place in candidates
                                if everybody_reads(place, known))

        within = tuple(f"{root}/" for root in self.roots)
        self.closed = {path for path in map(str, known) if path.startswith((*within, "/usr/"))}
        for point in _mount_points():
            if point.startswith(within) and os.path.isdir(point):
                self.closed.add(point)
        closed_words: list[str] = []
        for path in sorted(self.closed):
            closed_words += ["-o", "-path", _pattern(path)]
        # Closed are also devices, sockets and pipes, and all that not every user may read.
        self.looking = subprocess.Popen(
            ["find", *self.roots, "!", "-type", "l", "(", "!", "-type", "f", "!", "-type", "d",
             "-o", "!", "-perm", "-o=r", "-o", "-type", "d", "!", "-perm", "-o=x", *closed_words,
             ")", "-print0", "-prune"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    @cached_property
    def paths(self) -> list[str]:
        """The paths, without links, below which everything may be read. The first use waits."""
        found, _ = self.looking.communicate()
        # Status 1: a file was removed meanwhile, or this user may not list a folder.
        roots = self.roots if self.looking.returncode in (0, 1) else []
        closed = self.closed | set(map(os.fsdecode, found.split(b"\0")[:-1]))
        above: set[str] = set()
        for path in closed:
            above.update(_parents(path))

        parts = {root: list(_parts(root, closed, above)) for root in roots}
        read: list[str] = []
        for listed in parts.values():
            if len(listed) <= MOST_PARTS:
                read += listed
        if len(parts.get(LOCAL, [])) > MOST_PARTS or LOCAL not in parts and os.path.isdir(LOCAL):
            closed.add(LOCAL)
            above.add("/usr")
        return list(dict.fromkeys([*_parts("/usr", closed, above), *PROGRAMS[1:], *read]))


def _outermost(paths: Iterable[str]) -> list[str]:
    """The paths that lie in no other one, without "/"."""
    outer: list[str] = []
    for path in sorted({*paths} - {"/"}):
        if not any(path.startswith(f"{above}/") for above in outer):
            outer.append(path)
    return outer


def _mount_points() -> list[str]:
    """All mount points (proc(5): blanks and the like are written in octal)."""
    points = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            point = line.split()[4]
            plain = re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), point)
            points.append(os.fsdecode(plain))
    return points


def _pattern(path: str) -> str:
    """The path for find's -path, with *, ? and [ escaped."""
    return re.sub(r"([*?[\\])", r"\\\1", path)


def _parents(path: str) -> Iterator[str]:
    """The folders above a path, up to "/"."""
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _parts(path: str, closed: set[str], above: set[str]) -> Iterator[str]:
    """The path itself, or if something in it is closed, all the rest of it.

    above: all folders above closed ones.
    """
    if path in closed:
        return
    if path not in above:
        yield path
        return
    with suppress(OSError), os.scandir(path) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if not entry.is_symlink():
                yield from _parts(entry.path, closed, above)
