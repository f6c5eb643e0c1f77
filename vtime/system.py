"""A root file system for guests with the programs of a newer Debian, unpacked in the cache.

Some trials need features that this machine's programs lack. They run in guests with this root
(vtime/kernel/debian.py makes it), into which the project is mounted. Before its first use in a run
each of its files is compared with the unpacked one, by size and time; by digest if those differ.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firstflight.base import PROJECT

HERE, NEWER = "here", "debian13"  # what a trial's "system" may be
NAME, RELEASE = "Debian 13", "trixie"
PACKAGES = ("base-files", "base-passwd", "bash", "coreutils", "curl", "dash", "grep", "iproute2",
            "libc-bin", "mininet", "mawk", "net-tools", "nginx-light", "openssl", "procps",
            "python3", "python3-cryptography", "python3-pycurl", "sed", "util-linux")
RECIPE = 1  # a part of the folder's name: increase it if the system is made in another way
SHOWN_PACKAGES = ("curl", "libcurl4t64", "libssl3t64", "nginx", "python3.13")  # in run.json
MOUNT_POINT = "first-flight"  # the project's folder in it
PYTHON = "/usr/bin/python3"  # its own Python
CONTENTS = "contents.json"
ONLY_IN_GUESTS = (f"{NAME}'s programs run in guests only: ./install.sh --with-pq, and measure"
                  " without --engine host")
MISSING = f"needs {NAME}'s programs, which are not installed: ./install.sh --with-pq installs them"


class Damaged(Exception):
    """The system was changed since it was unpacked; the message names the file."""


class Missing(Damaged):
    """The system was never unpacked, or was removed."""


def cache() -> Path:
    """The folder of such systems; under sudo, that of the invoking user, who will run guests."""
    home = Path.home()
    if os.geteuid() == 0 and (user := os.environ.get("SUDO_USER")):
        home = Path(os.path.expanduser(f"~{user}"))
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "first-flight" / "system"


def folder() -> Path:
    """The folder of the system that this version of the project uses; it may not exist yet."""
    requested = hashlib.sha256(f"{RECIPE} {RELEASE} {PACKAGES}".encode()).hexdigest()[:12]
    return cache() / f"{NEWER}-{requested}"


# What is in it -----------------------------------------------------------------------

def describe(root: Path, versions: dict[str, str], file: Path) -> None:
    """Write the packages' versions, and of each file its size, time and digest."""
    files = {name: [*_size_and_time(path), _content(path)] for name, path in _walk(root)}
    file.write_text(json.dumps({"packages": versions, "files": files}))


def check(root: Path) -> dict[str, str]:
    """The versions of its packages, if sizes and times of its files are right. Raises Damaged."""
    return _check(root, by_content=False)


def check_content(root: Path) -> dict[str, str]:
    """Like check(), but compare the content of each file. Raises Damaged."""
    return _check(root, by_content=True)


def _check(root: Path, by_content: bool) -> dict[str, str]:
    if not root.is_dir():
        raise Missing(f"missing: {NAME}'s programs for guests; ./install.sh --with-pq installs"
                      " them")

    try:
        contents: dict[str, Any] = json.loads((root / CONTENTS).read_text())
        described, versions = contents["files"], contents["packages"]
        files = dict(_walk(root))
        for name, (size, changed_ns, digest) in described.items():
            if name not in files:
                raise Damaged(f"{root}: damaged: {name} is gone")
            is_suspect = by_content or _size_and_time(files[name]) != (size, changed_ns)
            if is_suspect and _content(files[name]) != digest:
                raise Damaged(f"{root}: damaged: {name} was changed")
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise Damaged(f"{root}: damaged: {error}") from error

    if more := sorted(files.keys() - described.keys()):
        raise Damaged(f"{root}: damaged: {more[0]} was added")
    return dict(versions)


def _walk(root: Path) -> Iterator[tuple[str, str]]:
    """Every file and link except CONTENTS: its path below the root, and its whole path."""
    start = len(str(root)) + 1
    for above, folders, files in os.walk(root):
        links = [name for name in folders if os.path.islink(f"{above}/{name}")]
        for name in (*files, *links):
            path = f"{above}/{name}"
            if path[start:] != CONTENTS:
                yield path[start:], path


def _size_and_time(path: str) -> tuple[int, int]:
    """A file's size, and when it was changed, ns."""
    status = os.lstat(path)
    return status.st_size, status.st_mtime_ns


def _content(path: str) -> str:
    """A file's mode and digest, or the target of a link."""
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    with open(path, "rb") as file:
        return f"{mode & 0o7777:o} {hashlib.sha256(file.read()).hexdigest()}"


def shown_versions(versions: dict[str, str]) -> dict[str, str]:
    """The versions of the packages that run.json names."""
    return {name: versions[name] for name in SHOWN_PACKAGES if name in versions}


# Running in it -----------------------------------------------------------------------

def starting(init: Path) -> str:
    """Python code for a guest's first process: it mounts the project, then runs init."""
    mounted = f"/{MOUNT_POINT}/{init.relative_to(PROJECT)}"
    return (f"import ctypes,runpy;ctypes.CDLL(None).mount(b'project',b'/{MOUNT_POINT}',b'hostfs',1,"
            f"{os.fsencode(PROJECT)!r});runpy.run_path('{mounted}',run_name='__main__')")


def command(root: Path, words: list[str]) -> list[str]:
    """A command that runs the system's Python on this machine, with the system's libraries."""
    return [str(root / "usr/lib64/ld-linux-x86-64.so.2"), "--library-path",
            str(root / "usr/lib/x86_64-linux-gnu"), str(root / "usr/bin/python3"), *words]


def compile_programs(root: Path, patterns: tuple[str, ...]) -> None:
    """Compile our programs with the system's Python, if the byte code can be stored."""
    paths: list[str] = []
    for pattern in patterns:
        paths += map(str, PROJECT.glob(pattern))
    subprocess.run(command(root, ["-E", "-S", "-m", "compileall", "-q", *paths]),
                   env={"PYTHONHOME": str(root / "usr")}, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
