"""The programs of a newer Debian for guests only, beside the machine's own and without root.

    debian.py make      fetch and unpack them into the cache, if they are not there whole
    debian.py check     say whether they are, each file's content compared
    debian.py remove    take them away again

apt fetches the packages and checks their signatures, with lists and folders of its own; nothing
is installed or configured, and the machine's packages are left alone. They come from the mirrors
of Debian that this machine's apt has, else from the one in FIRST_FLIGHT_DEBIAN_MIRROR.

What is unpacked is described in a file beside it, down to each file's digest. A make that was
interrupted goes on with the packages that it had. vtime/system.py looks before each use.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from vtime.system import (MOUNT_POINT, NEWER, PACKAGES, RELEASE, Damaged, Missing, cache,
                          check_content, command, describe, folder)

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
MIRROR = "FIRST_FLIGHT_DEBIAN_MIRROR"
MAKE = "./install.sh --with-pq"
NEEDED_MB = 400
# What programs in a guest do not read.
LEFT_OUT = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/info",
            "./usr/share/zoneinfo", "./usr/share/lintian", "./var/cache", "./var/log")
_LABELS = {"Debian": RELEASE, "Debian-Security": f"{RELEASE}-security"}
_LEFT_OUT_FLAGS = tuple(f"--exclude={path}/*" for path in LEFT_OUT)


class Cannot(Exception):
    """This machine cannot; its text is the reason and what to do."""


def report(line: str) -> None:
    print(f"{NEWER}: {line}", file=sys.stderr, flush=True)


def run_logged(words: list[str], log: Path) -> bool:
    """Run a command, and add what it prints to the log; return whether it ended well."""
    command = ["setpriv", "--pdeathsig", "KILL", "--", *words]  # it dies with this process
    with log.open("ab") as printed:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=printed,
                              stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, "LC_ALL": "C"})
    return done.returncode == 0


def reason(log: Path) -> str:
    """Why the last command failed, in its own words."""
    lines = log.read_text(errors="replace").splitlines()
    errors = [line for line in lines if line.startswith(("E: ", "dpkg-deb: ", "tar: "))]
    return (errors or lines or ["no reason was given"])[0]


# Where packages come from ------------------------------------------------------------

def mirrors() -> list[tuple[str, str]]:
    """Suites with the address of each: of this machine's apt. Raises Cannot."""
    if named := os.environ.get(MIRROR):
        return [(RELEASE, named)]

    done = subprocess.run(["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)"],
                          capture_output=True, text=True, check=False)
    addresses = {}
    for line in done.stdout.splitlines():
        label, _, address = line.partition(" ")
        if address and label in _LABELS:
            addresses[_LABELS[label]] = address
    if RELEASE not in addresses:
        raise Cannot(f"this machine's apt knows no mirror of Debian: name one, as"
                     f" {MIRROR}=http://… {MAKE}")
    return sorted(addresses.items())


def apt(work: Path) -> list[str]:
    """apt-get with lists, packages and settings of its own in a folder; the machine's proxies."""
    for name in ("lists/partial", "archives/partial", "none"):
        (work / name).mkdir(parents=True, exist_ok=True)
    (work / "status").touch()

    sources = [f"deb [signed-by={KEYRING}] {address} {suite} main\n"
               for suite, address in mirrors()]
    (work / "sources.list").write_text("".join(sources))
    (work / "apt.conf").write_text(f"""
        #clear APT::Update; #clear DPkg; #clear APT::NeverAutoRemove; #clear APT::Periodic;
        Dir::State "{work}"; Dir::State::status "{work}/status"; Dir::State::lists "{work}/lists";
        Dir::Cache "{work}"; Dir::Cache::archives "{work}/archives";
        Dir::Etc::sourcelist "{work}/sources.list"; Dir::Etc::sourceparts "{work}/none";
        Dir::Etc::preferences "/dev/null"; Dir::Etc::preferencesparts "{work}/none";
        Dir::Etc::trusted "/dev/null"; Dir::Etc::trustedparts "{work}/none";
        APT::Sandbox::User ""; APT::Install-Recommends "false"; Acquire::Languages "none";
        APT::Architectures "amd64"; APT::Architecture "amd64"; APT::Get::AllowUnauthenticated "0";
        """.replace("; ", ";\n"))
    return ["apt-get", "-c", str(work / "apt.conf"), "-q", "-y"]


# Making ------------------------------------------------------------------------------

def make() -> None:
    """Fetch and unpack the programs, if they are not there whole. Raises Cannot, OSError."""
    place = folder()
    with locked():
        if is_whole(place):
            return

        began = time.monotonic()
        work = cache() / f"{place.name}.part"
        work.mkdir(exist_ok=True)
        check_disk()
        fetch(work)
        root = unpack(work)
        compile_library(root)
        describe(root, versions(work), work / "contents.json")

        remove(place)
        (work / "contents.json").rename(root / "contents.json")
        root.rename(place)
        shutil.rmtree(work)
    report(f"{place}: {size_mb(place):.0f} MB, {time.monotonic() - began:.0f} s;"
           " ./install.sh --remove-pq takes it away")


def is_whole(place: Path) -> bool:
    if not place.is_dir():
        return False
    try:
        check_content(place)
    except Damaged as damaged:
        report(f"{damaged}: making it anew")
        return False
    return True


def check_disk() -> None:
    free_mb = shutil.disk_usage(cache()).free / 1e6
    if free_mb < NEEDED_MB:
        raise Cannot(f"{cache()} has {free_mb:.0f} MB free, {NEEDED_MB} are needed; free some, or"
                     " set XDG_CACHE_HOME")


def fetch(work: Path) -> None:
    """Fetch the packages and all that they depend on; apt checks signatures. Raises Cannot."""
    if not KEYRING.exists():
        raise Cannot(f"{KEYRING} is missing: apt install debian-archive-keyring")
    apt_get, log = apt(work), work / "log"
    log.write_bytes(b"")
    report("reading the package lists")
    if not run_logged([*apt_get, "update", "--error-on=any"], log):
        raise Cannot(f"no package lists: {reason(log)}; {MAKE} goes on ({log})")
    report("fetching packages, some 50 MB")
    if not run_logged([*apt_get, "install", "--download-only", *PACKAGES], log):
        raise Cannot(f"the packages were not fetched: {reason(log)}; {MAKE} goes on ({log})")


def packages_of(work: Path) -> list[Path]:
    return sorted((work / "archives").glob("*.deb"))


def versions(work: Path) -> dict[str, str]:
    """The version of each package, by its name; apt's names of files have both."""
    by_name = {}
    for path in packages_of(work):
        name, version, *_ = path.stem.split("_")
        by_name[name] = version.replace("%3a", ":")
    return by_name


def unpack(work: Path) -> Path:
    """Unpack the files of all packages into one root; return it. Raises Cannot."""
    root, log = work / "root", work / "log"
    remove(root)
    root.mkdir()
    report(f"unpacking {len(packages_of(work))} packages")

    def unpack_one(path: Path) -> bool:
        tar = ["tar", "-x", "--no-same-owner", "-C", str(root), *_LEFT_OUT_FLAGS]
        return run_logged(["bash", "-o", "pipefail", "-c", 'dpkg-deb --fsys-tarfile "$0" | "$@"',
                           str(path), *tar], log)

    # The first makes the links of /bin, /lib and /sbin, which all others go through.
    first, *others = sorted(packages_of(work), key=lambda path: not path.name.startswith("base-"))
    with ThreadPoolExecutor(2) as threads:
        if not (unpack_one(first) and all(threads.map(unpack_one, others))):
            raise Cannot(f"packages could not be unpacked: {reason(log)}; {MAKE} goes on ({log})")

    for name in ("passwd", "group"):  # what base-passwd would do where it is installed
        shutil.copyfile(root / f"usr/share/base-passwd/{name}.master", root / "etc" / name)
    (root / MOUNT_POINT).mkdir()
    return root


def compile_library(root: Path) -> None:
    """Make Python's byte code, which a guest could not keep.

    The interpreter that will read it makes it.
    """
    library = next((root / "usr/lib").glob("python3.*"))
    words = ["-E", "-S", "-m", "compileall", "-q", "-s", str(root), str(library),
             str(root / "usr/lib/python3/dist-packages")]
    subprocess.run(command(root, words),
                   env={"PYTHONHOME": str(root / "usr")}, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)


# The cache ---------------------------------------------------------------------------

def size_mb(place: Path) -> float:
    return sum(path.lstat().st_size for path in place.rglob("*")) / 1e6


def remove(place: Path) -> None:
    """Remove a folder, also what packages have made read-only."""
    if not place.exists():
        return
    for path in (place, *place.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(place)


@contextmanager
def locked() -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another one is being made, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def check() -> None:
    """Raises Cannot where the programs are missing, or not as they were unpacked."""
    try:
        check_content(folder())
    except Missing as missing:
        raise Cannot(str(missing)) from missing
    except Damaged as damaged:
        raise Cannot(f"{damaged}; {MAKE} builds it again") from damaged


def remove_all() -> None:
    with locked():
        for place in cache().iterdir():
            if place.is_dir():
                remove(place)


def main(words: list[str]) -> int:
    actions: dict[str, Callable[[], None]] = {"make": make, "check": check, "remove": remove_all}
    try:
        actions[words[0]]()
    except LookupError:
        print(__doc__, file=sys.stderr)
        return 2
    except Cannot as error:
        report(str(error))
        return 4
    except OSError as error:
        report(f"{error.filename or cache()}: {error.strerror}; {MAKE} goes on")
        return 4
    except KeyboardInterrupt:
        report(f"interrupted; {MAKE} goes on")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
