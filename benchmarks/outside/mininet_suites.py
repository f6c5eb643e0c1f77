"""Do Mininet's own tests and examples run in virtual time? One line each, and the counts.

    /usr/bin/python3 -m benchmarks.outside.mininet_suites --source PATH [--only examples] [NAME …]

PATH: the source of the Mininet that is installed (github.com/mininet/mininet, at the tag of its
version), of which a copy is used. Each test, and each example that ends by itself, gets a guest
of its own through `./run.sh --`. Its tests want pexpect (python3-pexpect) and programs of
./install.sh --with-mininet. A failure is known where CAUSES gives the reason.

Exit status: 0 if 95 % of what can run passes, else 1.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from base.command_line import Parser, positive
from base.errors import FAILED, OK, CannotError, FirstFlightError
from benchmarks import command
from benchmarks.command import GuestRun, in_guest

PASSED, FAILING, SKIPPED, CANNOT = "pass", "FAIL", "skipped", "cannot"
BAR = 0.95
VIRTUAL_TIMEOUT_S, WALL_TIMEOUT_S = 7200, 1800
# Two tests of a file may have one name: a class and a method say which one. Run in the guest, too,
# since files of tests call Open vSwitch when they are imported.
LIST = """\
import glob, os, sys, unittest
sys.path.insert(0, os.getcwd())
def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test.id()
for folder in ("mininet/test", "mininet/examples/test"):
    sys.path.insert(0, folder)
    for path in sorted(glob.glob(folder + "/test_*.py")):
        name = os.path.basename(path)[:-3]
        print("file", folder, name)
        for test in each(unittest.TestLoader().loadTestsFromName(name)):
            print("test", folder, test)
"""
# What cannot run in a guest, and why: a part of a test's name, or all of it.
CAUSES = {
    "clusterSanity": "needs a cluster's machines and ssh", "cluster": "needs other machines",
    "clustercli": "needs other machines", "clusterdemo": "needs other machines",
    "clusterperf": "needs other machines", "consoles": "needs a display",
    "miniedit": "needs a display", "hwintf": "needs a second, real interface",
    "testPublicPing": "pings a host of the Internet",
    "testNAT.testNAT": "pings a host of the Internet",
    **dict.fromkeys(("testCPULimits", "testLimit", "cpu"),
                    "measures limits of the processor, of which a guest has none"),
}
# Programs that a test's file names and that are not packaged, or not installed.
PROGRAMS = {"sshd": ("sshd",), "baresshd": ("sshd",), "testWireshark": ("tshark",),
            "testPingUser": ("ofdatapath",), "testSwitches": ("ofdatapath",),
            "testOwnNamespace": ("ofdatapath",), "scratchnetuser": ("ofdatapath",),
            "controlnet": ("ofdatapath",), "treeping64": ("ofdatapath",),
            "vlanhost": ("vconfig",)}
PROMPT = "exit\n"  # what an example reads that asks its user


@dataclass(frozen=True)
class Outcome:
    """How one ended. Seconds on the guest's clock and on the wall; cause: where it did not pass."""

    name: str
    status: str
    wall_s: float = 0.0
    virtual_s: float = 0.0
    cause: str = ""

    def line(self) -> str:
        ratio = f"{self.virtual_s / self.wall_s:7.1f}" if self.wall_s else f"{'–':>7}"
        return (f"{self.name:<66} {self.status:<8}{self.wall_s:8.1f}{self.virtual_s:9.1f}"
                f"{ratio}  {self.cause}").rstrip()


HEAD = f"{'':<66} {'':<8}{'wall s':>8}{'virtual':>9}{'ratio':>7}  cause"


def judged(name: str, done: GuestRun) -> Outcome:
    """The outcome of one test by what unittest printed."""
    status, cause = FAILING, ""
    if done.status == 124:
        cause = "timeout"
    elif skipped := re.search(r"\.\.\. skipped [\"'](.*)[\"']$", done.printed, re.MULTILINE):
        status, cause = SKIPPED, skipped[1]
    elif re.search(r"^OK\b", done.printed, re.MULTILINE) and done.status == 0:
        status = PASSED
    else:
        raised = re.findall(r"^(?:\w+\.)*(?:\w*(?:Error|Exception|EOF|TIMEOUT)\b.*)$",
                            done.printed, re.MULTILINE)
        cause = raised[-1][:90] if raised else done.printed.strip()[-90:].replace("\n", " ")
    return Outcome(name, status, done.wall_s, done.virtual_s, cause)


def known(name: str) -> str:
    """Why it cannot run in a guest, "" if it can."""
    parts = {name, *re.split(r"[._]", name)} | {part for part in CAUSES if name.endswith(part)}
    lacking = [program for part in sorted(parts & PROGRAMS.keys()) for program in PROGRAMS[part]
               if not shutil.which(program)]
    return next((CAUSES[part] for part in CAUSES if part in parts),
                f"needs {lacking[0]}, which is not installed" if lacking else "")


def tests_of(source: Path) -> list[tuple[str, str]]:
    """(folder, test) of all that there are. Raises FirstFlightError."""
    done = in_guest(["python3", "-c", LIST], source)
    tests = re.findall(r"^test (\S+) (\S+)$", done.printed, re.MULTILINE)
    if done.status != 0 or not tests:
        raise FirstFlightError(f"{source}: no tests: {done.printed.strip()[-300:]}")
    return tests


def test(source: Path, folder: str, name: str) -> Outcome:
    if cause := known(name):
        return Outcome(name, CANNOT, cause=cause)
    words = (f"cd {folder} && exec python3 -m unittest -v {name.partition('.')[0]}"
             f" -k '*{name}'")
    return judged(name, in_guest(["sh", "-c", words], source, *flags(source)))


def example(source: Path, name: str) -> Outcome:
    if cause := known(name):
        return Outcome(name, CANNOT, cause=cause)
    done = in_guest(["python3", f"mininet/examples/{name}.py"], source, *flags(source),
                    typed=PROMPT)
    failed = done.status != 0 or "Traceback" in done.printed
    last = done.printed.strip().rpartition("\n")[2][:90]
    return Outcome(name, FAILING if failed else PASSED, done.wall_s, done.virtual_s,
                   f"status {done.status}: {last}" if failed else "")


def flags(source: Path) -> list[str]:
    return ["--timeout", f"{VIRTUAL_TIMEOUT_S},{WALL_TIMEOUT_S}", "--memory", "6G",
            "--env", f"PYTHONPATH={source}", "--env",
            f"PATH=/usr/sbin:/usr/bin:/sbin:/bin:{source}/own-bin"]


def copied(source: Path, folder: Path) -> Path:
    """A copy of the source, with a program `python`, which its tests call. Raises CannotError."""
    if not (source / "mininet" / "test").is_dir():
        raise CannotError(f"{source}: it holds no mininet/test: is it Mininet's source?")
    if find_spec("pexpect") is None:
        raise CannotError("no pexpect, which Mininet's tests import: apt-get install"
                          " --no-install-recommends python3-pexpect")
    copy = folder / "mininet"
    shutil.copytree(source, copy, symlinks=True)
    (copy / "own-bin").mkdir()
    (copy / "own-bin" / "python").symlink_to("/usr/bin/python3")
    return copy


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="mininet_suites", description=__doc__)
    add = parser.add_argument
    add("--source", type=Path, required=True, help="of the Mininet that is installed")
    add("--only", choices=["tests", "examples"])
    add("--jobs", type=positive, default=2, help="guests side by side (default 2)")
    add("names", nargs="*", metavar="NAME", help="only what has one of these in its name")
    requested = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        source = copied(requested.source.resolve(), Path(folder))
        left = 0.0
        for what in ("tests", "examples"):
            if requested.only in (what, None):
                left = max(left, summed(what, list(outcomes_of(what, source, requested.names,
                                                               requested.jobs))))
    return OK if left <= 1 - BAR else FAILED


def outcomes_of(what: str, source: Path, names: Sequence[str], jobs: int) -> Iterator[Outcome]:
    """All of a suite that are requested, each printed as it ends."""
    todo: list[Callable[[], Outcome]] = []
    if what == "tests":
        todo = [partial(test, source, folder, name) for folder, name in tests_of(source)
                if is_wanted(name, names)]
    else:
        todo = [partial(example, source, path.stem) for path in
                sorted((source / "examples").glob("*.py"))
                if path.stem != "__init__" and is_wanted(path.stem, names)]
    print(f"{what}, {len(todo)}\n{HEAD}")
    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(task) for task in todo]:
            print(done.result().line(), flush=True)
            yield done.result()


def is_wanted(name: str, names: Sequence[str]) -> bool:
    return not names or any(part in name for part in names)


def summed(what: str, outcomes: Sequence[Outcome]) -> float:
    """Print the sums; the share that fails of what can run."""
    counts = Counter(outcome.status for outcome in outcomes)
    wall_s = sum(outcome.wall_s for outcome in outcomes)
    virtual_s = sum(outcome.virtual_s for outcome in outcomes)
    runs = counts[PASSED] + counts[FAILING]
    print(f"{what}: {counts[PASSED]} of {runs} that can run here pass"
          f" ({counts[PASSED] / max(1, runs):.1%}, bar {BAR:.0%}); {counts[SKIPPED]} skip"
          f" themselves, {counts[CANNOT]} cannot run here; {virtual_s:.0f} s of the guests' clocks"
          f" in {wall_s:.0f} s of wall time", file=sys.stdout)
    return counts[FAILING] / max(1, runs)


if __name__ == "__main__":
    command.run("mininet_suites", main)
