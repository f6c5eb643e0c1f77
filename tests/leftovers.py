"""What a struck run leaves behind: its records, processes, networks, mounts and files.

A Fault has its kind, one of FAULTS, and a text about it.
"""

from __future__ import annotations

import csv
import ctypes
import json
import os
import signal
import socket
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from firstflight.runs import runs
from tests.running import HANGS_S

LOST, DOUBLED, CHANGED, STATUS, WORDS = "lost", "doubled", "changed", "status", "words"
PROCESSES, NETWORKS, MOUNTS, FILES = "processes", "networks", "mounts", "files"
FAULTS = (LOST, DOUBLED, CHANGED, STATUS, WORDS, PROCESSES, NETWORKS, MOUNTS, FILES)
# How far a run may have come when a strike meets it.
STARTING, BOOTING, MEASURING, TELLING = "starting", "booting", "measuring", "drawing"
STAGES = (STARTING, BOOTING, MEASURING, TELLING)
STAMP = "measured_at"  # the column that differs in any two runs
GONE_S = HANGS_S  # the longest that processes of a killed run are waited for
OWN = "FIRST_FLIGHT_KILLS"  # it is in the environment where /run/netns is nobody else's
_PR_SET_CHILD_SUBREAPER = 36

Fault = tuple[str, str]
Row = dict[str, str]


# Records ------------------------------------------------------------------------------

def folders(home: Path) -> list[Path]:
    """The run folders of one scenario, the oldest first."""
    return list(reversed(runs.newest_first(home)))


def rows(folder: Path) -> list[Row]:
    """The rows of a run without one that is being written; none where the run has no file yet."""
    try:
        whole = (folder / runs.TRIALS_CSV).read_text().rpartition("\n")[0]
    except FileNotFoundError:
        return []
    return list(csv.DictReader(whole.splitlines()))


def stage(home: Path) -> str:
    """How far a run has come, by the files that it has written."""
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

    def trials(some: list[Row]) -> Counter[tuple[str, ...]]:
        return Counter((row["rtt_ms"], row["bandwidth_kbps"], row["initcwnd"], row["repeat"])
                       for row in some)

    faults = [(LOST, str(trial)) for trial in trials(expected) - trials(stored)]
    faults += [(DOUBLED, str(trial)) for trial in trials(stored) - trials(expected)]
    if others := (contents(stored) - contents(expected)).total():
        faults.append((CHANGED, f"{others} rows"))
    return faults


def earlier_row_faults(rows: list[Row], later: list[Row]) -> list[Fault]:
    """Rows of before a strike that are missing or changed after it.

    Their order may change: it does when a run finishes.
    """
    gone = sum(row not in later for row in rows)
    return [(LOST, f"{gone} rows of before")] if gone else []


def run_faults(home: Path, expected: Path) -> list[Fault]:
    """The faults of all complete runs of a scenario against an undisturbed run.

    That no run is complete is a fault, too.
    """
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
    """The paths of all files and folders below a folder."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


# What is left -------------------------------------------------------------------------

def adopt_orphans() -> None:
    """Make this process the parent of whatever a run leaves behind from now on."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("no subreaper")


def children(parent: int) -> list[int]:
    """The processes that a process has started or adopted, among them those that have ended."""
    try:
        tasks = list(Path(f"/proc/{parent}/task").iterdir())
        return [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:  # it has ended meanwhile
        return []


def guests(parent: int) -> list[int]:
    """The kernels of the guests that a process has started."""
    return [child for child in children(parent) if b"uml_dir" in command_of(child)]


def command_of(process: int) -> bytes:
    """The command line of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def left_processes() -> list[Fault]:
    """The orphans that do not end by themselves within GONE_S; they are killed."""
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
    """The children that live, after those that have ended were waited for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return []
    return children(os.getpid())


@dataclass(frozen=True)
class Machine:
    """What runs may leave behind on the machine: its networks, mounts and files, by kind."""

    state: frozenset[Fault]

    @classmethod
    def now(cls, temporary: Path) -> Machine:
        """The machine as it is now; temporary is the TMPDIR of the run."""
        namespaces = Path("/run/netns")
        networks = [name for _, name in socket.if_nameindex()]
        networks += [str(path) for path in namespaces.iterdir()] if namespaces.is_dir() else []
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        return cls(frozenset([
            *((NETWORKS, name) for name in networks), *((MOUNTS, place) for place in mounts),
            *((FILES, str(path)) for path in temporary.rglob("*")
              if path.lstat().st_uid == os.geteuid())]))

    def more(self, later: Machine) -> list[Fault]:
        """What a later state of the machine has more than this one."""
        return sorted(later.state - self.state)
