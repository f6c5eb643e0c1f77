"""What of the machine a guest reads besides what its user names: the one rule, for all guests.

    every guest   /usr and its like; what everybody may read in /usr/local and of ETC in /etc
    a command     also what everybody may read in all of /etc, /opt and /srv

What everybody may read is a file or a folder whose mode lets every user read it, on whose way each
folder lets every user in. It is the same whoever asks: root, too, and who owns a file or is in its
group. A link is judged by what it leads to, which is read where that is read by itself. Homes are
never read, and neither is what is mounted into one of these places: it may be a home again.

The machine's own check of permissions would not do in place of it: without its capabilities root
still owns /etc/shadow, and as another user it could not read the folder that it was started in.
`find` looks, since a place may have a hundred thousand files. vtime/confine.py enforces what
comes out; SECURITY.md and MININET.md describe it. Nothing here imports anything of ours: guests do,
too.
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
# What of /etc programs in a guest read; nothing of it is secret.
ETC = ("alternatives", "bash.bashrc", "ethertypes", "gai.conf", "group", "host.conf", "hosts",
       "inputrc", "iproute2", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
       "localtime", "mime.types", "nginx/mime.types", "nsswitch.conf", "passwd", "protocols",
       "services", "ssl/certs", "ssl/openssl.cnf",
       "wgetrc")
LOCAL = "/usr/local"
OF_COMMANDS = ("/etc", "/opt", "/srv")
# A command finds these folders empty: what of them was named is put back.
HIDDEN = ("/home", "/root", "/tmp", "/var/tmp", "/run", "/dev/shm")
# Nobody works in these; a command that is started there would read what the rule hides.
SECRET = ("/etc", "/run", "/proc", "/sys", "/dev")
MOST_PARTS = 2000  # of one place, which all become words of a command line


# Homes, and places with secrets ------------------------------------------------------

def homes() -> set[Path]:
    """The homes of this machine, as paths without links.

    $HOME; /root; what lies in /home; and what passwd names, where it belongs to that user. So
    /usr/sbin, /bin, /dev, / and /nonexistent, which passwd names for users of the system, are none;
    nor is any folder of PROGRAMS.
    """
    named = {Path.home(), Path("/root"), *Path("/home").glob("*")}
    for user in pwd.getpwall():
        with suppress(OSError):
            owner = os.lstat(os.path.realpath(user.pw_dir)).st_uid
            if os.path.isabs(user.pw_dir) and owner == user.pw_uid:
                named.add(Path(user.pw_dir))
    with suppress(KeyError, ValueError):  # whom passwd may know, and not list
        named.add(Path(pwd.getpwuid(int(os.environ["SUDO_UID"])).pw_dir))
    none = {os.path.realpath(path) for path in ("/", *PROGRAMS)}
    return {Path(os.path.realpath(home)) for home in named
            if os.path.realpath(home) not in none}


def secrets_in(place: Path) -> str:
    """Why whoever is given a place, without links, would read secrets; "" if not.

    A project's folder in a home is none of these places, nor is one in /opt; ~/.ssh and what else
    there begins with a dot is one.
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
    home = max((home for home in known if place.is_relative_to(home)), default=None,
               key=lambda home: len(home.parts))
    if home and (name := place.relative_to(home).parts[0]).startswith("."):
        return f"lies in {home / name}, where keys and settings are"
    return ""


def refused(folder: Path, given: Iterable[str | Path] = (),
            advice: str = "start it in a folder of its own") -> str:
    """Why no command is started in a folder; "" if it is one to start in.

    folder, given: paths without links, given: what the user named with --readable.
    """
    why = secrets_in(folder)
    if not why or any(folder.is_relative_to(path) for path in given):
        return ""
    return (f"{folder} {why}, and the command would read all of it: {advice}, or allow it by"
            f" --readable {folder}")


def led_to(path: Path, folder: Path) -> str:
    """Where a path leads that a link in a folder leads to a place with secrets; "" for others.

    Who unpacks a stranger's folder has not named ~/.ssh by naming a link in it.
    """
    named, real = Path(os.path.abspath(folder / path)), Path(os.path.realpath(folder / path))
    leads_out = named.is_relative_to(folder) and not real.is_relative_to(folder)
    return str(real) if leads_out and secrets_in(real) else ""


# What everybody may read -------------------------------------------------------------

def everybody_reads(path: str, known_homes: Iterable[Path]) -> bool:
    """Whether every user may read a file, or list a folder, by its path without links.

    path: one with links. known_homes: homes().
    """
    real = Path(os.path.realpath(path))
    try:
        mode = os.lstat(real).st_mode
        lets_in = all(os.lstat(above).st_mode & stat.S_IXOTH for above in real.parents)
    except OSError:
        return False
    needed = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(mode) else 0)
    return lets_in and mode & needed == needed and not any(map(real.is_relative_to, known_homes))


class ReadablePaths:
    """Looks at what everybody may read, while this process does something else."""

    def __init__(self, more: Sequence[str] = ()) -> None:
        """more: places besides those of every guest (OF_COMMANDS)."""
        known = homes()
        self.roots = _outermost(os.path.realpath(place) for place in
                                (LOCAL, *(f"/etc/{name}" for name in ETC), *more)
                                if everybody_reads(place, known))
        within = tuple(f"{root}/" for root in self.roots)
        self.closed = {path for path in map(str, known) if path.startswith((*within, "/usr/"))}
        self.closed.update(filter(os.path.isdir, (
            point for point in _mount_points() if point.startswith(within))))
        # Closed is what is neither a file nor a folder, and what not everybody may read.
        self.looking = subprocess.Popen(
            ["find", *self.roots, "!", "-type", "l", "(", "!", "-type", "f", "!", "-type", "d",
             "-o", "!", "-perm", "-o=r", "-o", "-type", "d", "!", "-perm", "-o=x",
             *(word for path in sorted(self.closed) for word in ("-o", "-path", _pattern(path))),
             ")", "-print0", "-prune"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    @cached_property
    def paths(self) -> list[str]:
        """What is read, as paths without links: all that is below them. Waits for it, once."""
        found = self.looking.communicate()[0]
        # 1: a name was gone meanwhile, or this user may not list a folder.
        roots = self.roots if self.looking.returncode in (0, 1) else []
        closed = self.closed | set(map(os.fsdecode, found.split(b"\0")[:-1]))
        above = {parent for path in closed for parent in _parents(path)}
        parts = {root: list(_parts(root, closed, above)) for root in roots}
        read = [part for listed in parts.values() if len(listed) <= MOST_PARTS for part in listed]
        if len(parts.get(LOCAL, [])) > MOST_PARTS or LOCAL not in parts and os.path.isdir(LOCAL):
            closed.add(LOCAL)
            above.add("/usr")
        return list(dict.fromkeys([*_parts("/usr", closed, above), *PROGRAMS[1:], *read]))


def _outermost(paths: Iterable[str]) -> list[str]:
    """Those that lie in no other one; "/" is none of them."""
    outer: list[str] = []
    for path in sorted({*paths} - {"/"}):
        if not any(path.startswith(f"{above}/") for above in outer):
            outer.append(path)
    return outer


def _mount_points() -> list[str]:
    """Where something is mounted (proc(5): blanks and the like are written in octal)."""
    with open("/proc/self/mountinfo", "rb") as file:
        return [os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]),
                                   line.split()[4])) for line in file]


def _pattern(path: str) -> str:
    """The path for find's -path, with *, ? and [ escaped."""
    return re.sub(r"([*?[\\])", r"\\\1", path)


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _parts(path: str, closed: set[str], above: set[str]) -> Iterator[str]:
    """The path itself, or where something in it is closed, what else is in it.

    above: all folders above those that are closed.
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
