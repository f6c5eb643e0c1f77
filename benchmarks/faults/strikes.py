"""Striking a program in its work: how, what it leaves behind, and the table of it.

A fault is its kind, one of FAULTS, and what it is.
"""

from __future__ import annotations

import csv
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lab.core.run import runs

LOST, DOUBLED, CHANGED, STATUS, WORDS = "lost", "doubled", "changed", "status", "words"
PROCESSES, NETWORKS, MOUNTS, FILES = "processes", "networks", "mounts", "files"
FAULTS = (LOST, DOUBLED, CHANGED, STATUS, WORDS, PROCESSES, NETWORKS, MOUNTS, FILES)
# What a strike met.
STARTING, BOOTING, MEASURING, TELLING = "starting", "booting", "measuring", "drawing"
STAGES = (STARTING, BOOTING, MEASURING, TELLING)
MACHINE, NANNY, WORKER, BATCH, GUEST = "machine", "nanny", "worker", "batch", "guest"
STAMP = "measured_at"
GONE_S = 60.0  # the longest that processes of a killed run are waited for, on a busy machine
SHARED_MEMORY = Path("/dev/shm")
OWN = "FIRST_FLIGHT_KILLS"  # in the environment where /dev/shm is nobody else's
_PR_SET_CHILD_SUBREAPER = 36
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
STOPPED = "stop, continue"
STOPPED_S = 2.0  # at most
END_S = 3600.0  # nothing takes as long, on a machine however busy: it hangs

Fault = tuple[str, str]
Row = dict[str, str]


class Tally:
    """How often each way met a program in each stage, and the faults that were found."""

    def __init__(self, ways: Sequence[str], stages: Sequence[str], kinds: Sequence[str]) -> None:
        self.ways, self.stages, self.kinds = ways, stages, kinds
        self.struck: Counter[tuple[str, str]] = Counter()  # by way and stage
        self.faults: Counter[tuple[str, str]] = Counter()  # by way and kind

    def note(self, way: str, faults: Iterable[Fault]) -> None:
        for kind, what in faults:
            print(f"{way}: {kind}: {what}", flush=True)
            self.faults[way, kind] += 1

    def table(self) -> str:
        def row(name: str, ways: Sequence[str]) -> list[object]:
            struck = [sum(self.struck[way, stage] for way in ways) for stage in self.stages]
            return [name, sum(struck), *struck,
                    *(sum(self.faults[way, kind] for way in ways) for kind in self.kinds)]
        rows: list[list[object]] = [["struck by", "times", *self.stages, *self.kinds],
                                    *(row(way, [way]) for way in self.ways), row("all", self.ways)]
        return "\n".join(f"{first!s:<14}" + "".join(f"{cell!s:>12}" for cell in rest)
                         for first, *rest in rows)


class Struck:
    """A program that is struck again and again, and what it leaves each time.

    log: its last words; temporary: its TMPDIR.
    """

    def __init__(self, home: Path, random: Random, tally: Tally) -> None:
        self.home, self.random, self.tally = home, random, tally
        self.log, self.temporary = home / "log", home / "tmp"
        self.temporary.mkdir()
        self.machine = Machine.now(self.temporary)

    def started(self, words: Sequence[str | Path], environment: Mapping[str, str]
                ) -> subprocess.Popen[bytes]:
        """The program, at the head of a group of processes as in a terminal."""
        with self.log.open("wb") as file:  # a file: an orphan would keep a pipe open
            return subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file,
                start_new_session=True, preexec_fn=_heed_interrupts,
                env={**os.environ, "TMPDIR": str(self.temporary), **environment})

    def leftovers(self) -> list[Fault]:
        """Processes, files, devices and mounts of a program that has ended."""
        return left_processes() + self.machine.more(Machine.now(self.temporary))


def _heed_interrupts() -> None:
    """Programs in the background ignore Ctrl-C, and what they start does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def hit(way: str, process: subprocess.Popen[bytes], random: Random) -> None:
    """Strike it by a signal, or stop it for a while, in which others of its session go on."""
    if way == STOPPED:  # as Ctrl-Z
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(random.uniform(0, STOPPED_S))
        os.killpg(process.pid, signal.SIGCONT)
    elif way == "SIGINT":  # as Ctrl-C, which all in the terminal's foreground get
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.Signals[way])


def complaints(output: str) -> list[Fault]:
    """What no user may read."""
    return [(WORDS, line) for line in output.splitlines()
            if "Traceback" in line or "internal error" in line or "not resumed" in line]


def isolate(program: str, words: Sequence[str], *flags: str, first: str) -> None:
    """Begin anew as root in name spaces (unshare's flags) where a first command has been run."""
    if os.geteuid() == 0 and not is_own():
        os.environ[OWN] = "own"
        os.execvp("unshare", [
            "unshare", "--mount", *flags, "--propagation", "private", "sh", "-c",
            f'{first} && exec "$@"', "sh", sys.executable, "-m", f"benchmarks.faults.{program}",
            *words])
    adopt_orphans()


# Records ------------------------------------------------------------------------------

def folders(home: Path) -> list[Path]:
    """The run folders of one scenario, the oldest first."""
    return list(reversed(runs.newest_first(home)))


def rows(folder: Path) -> list[Row]:
    """The whole rows of a run as text; none where it has no file yet."""
    try:
        whole = (folder / runs.TRIALS_CSV).read_text().rpartition("\n")[0]
    except FileNotFoundError:
        return []
    return list(csv.DictReader(whole.splitlines()))


def stage(home: Path) -> str:
    """How far a run has come by what it has written."""
    if not folders(home):
        return STARTING
    newest = folders(home)[-1]
    if runs.read_facts(newest).get("state") == runs.COMPLETE:
        return TELLING
    return MEASURING if rows(newest) else BOOTING


def row_faults(stored: list[Row], expected: list[Row]) -> list[Fault]:
    """Where the rows of a whole run differ from those of an undisturbed one."""
    def contents(some: list[Row]) -> Counter[str]:
        return Counter(json.dumps({**row, STAMP: ""}, sort_keys=True) for row in some)
    ids, expected_ids = (Counter((row["rtt_ms"], row["bandwidth_kbps"], row["initcwnd"],
                                  row["repeat"]) for row in some) for some in (stored, expected))
    others = (contents(stored) - contents(expected)).total()
    return [*[(LOST, str(name)) for name in expected_ids - ids],
            *[(DOUBLED, str(name)) for name in ids - expected_ids],
            *([(CHANGED, f"{others} rows")] if others else [])]


def earlier_row_faults(rows: list[Row], later: list[Row]) -> list[Fault]:
    """Rows that are no more as they were; their order changes when a run finishes."""
    gone = sum(row not in later for row in rows)
    return [(LOST, f"{gone} rows of before")] if gone else []


def run_faults(home: Path, expected: Path) -> list[Fault]:
    """Faults of every whole run of a scenario against an undisturbed one; there has to be one."""
    whole = [folder for folder in folders(home)
             if runs.read_facts(folder).get("state") == runs.COMPLETE]
    faults = [fault for folder in whole for fault in row_faults(rows(folder), rows(expected))]
    if not whole:
        faults.append((LOST, f"{home} has no whole run"))
    for folder in whole[-1:]:
        faults += [(FILES, f"{folder}: {name}")
                   for name in sorted(set(names(folder)) ^ set(names(expected)))]
    return faults


def names(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


# What is left -------------------------------------------------------------------------

def adopt_orphans() -> None:
    """From now on whatever a run leaves behind is a child of this process."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("no subreaper")


def children(parent: int) -> list[int]:
    """The processes that a process has started or adopted, zombies too."""
    try:
        tasks = list(Path(f"/proc/{parent}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:  # it has ended meanwhile
        return []


def guests(parent: int) -> list[int]:
    """The kernels of the guests that a process has started."""
    return [child for child in children(parent) if b"uml_dir" in command_of(child)]


def descendants(process: int) -> Iterator[int]:
    for child in children(process):
        yield child
        yield from descendants(child)


def parts_of(nanny: int) -> dict[str, list[int]]:
    """The processes of a cluster's machine by what they are, from its Dask nanny's."""
    words = {WORKER: b"spawn_main", BATCH: b"commands/batch.py\0--kernel", GUEST: b"uml_dir"}
    below = list(descendants(nanny))
    return {MACHINE: [nanny], NANNY: [nanny]} | {
        name: [process for process in below if word in command_of(process)]
        for name, word in words.items()}


def command_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def left_processes() -> list[Fault]:
    """Orphans that do not go by themselves; they are killed."""
    deadline = time.monotonic() + GONE_S
    while left := _reaped():
        if time.monotonic() > deadline:
            faults = [(PROCESSES, command_of(process).decode(errors="replace").replace("\0", " "))
                      for process in left]
            for process in left:
                os.kill(process, signal.SIGKILL)
            return faults
        time.sleep(0.01)
    return []


def _reaped() -> list[int]:
    """The children that live."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return []
    return children(os.getpid())


@dataclass(frozen=True)
class Machine:
    """What of the machine a run may leave changed, each with its kind."""

    state: frozenset[Fault]

    @classmethod
    def now(cls, temporary: Path) -> Machine:
        """temporary: the TMPDIR of the run."""
        namespaces = Path("/run/netns")
        networks = [name for _, name in socket.if_nameindex()]
        networks += [str(path) for path in namespaces.iterdir()] if namespaces.is_dir() else []
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        paths = [path for folder in (temporary, SHARED_MEMORY) for path in folder.rglob("*")]
        memory = os.statvfs(SHARED_MEMORY)
        used = memory.f_blocks - memory.f_bfree
        return cls(frozenset([
            *((NETWORKS, name) for name in networks), *((MOUNTS, place) for place in mounts),
            *((FILES, str(path)) for path in paths if path.lstat().st_uid == os.geteuid()),
            *([(FILES, f"{used} pages of {SHARED_MEMORY}")] if used and is_own() else [])]))

    def more(self, later: Machine) -> list[Fault]:
        """What there is later that there was not."""
        return sorted(later.state - self.state)


def is_own() -> bool:
    """Whether /dev/shm is this process's own: all in it is of its runs."""
    return OWN in os.environ
