"""Linux's own tests of TCP in the guest, in virtual time: one line a script, and the count.

    /usr/bin/python3 -m benchmarks.outside.kernel_tests --packetdrill PATH [--scripts DIR] [NAME …]

The IPv4 scripts of tools/testing/selftests/net/packetdrill, run as the kernel's
ksft_runner.sh runs them: each in a network namespace of its own, with the
tolerance that packetdrill has by itself (4 ms; no wider one, since virtual time
needs none). PATH: google/packetdrill, built (./configure && make in
gtests/net/packetdrill); no distribution of today has a package. DIR: the scripts;
else those of the source that the guest's kernel was built from.

Exit status: 0 if every script passes or fails as known, else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import command
from engines.guest.init import PATH, RESULTS, mount
from engines.job import PROJECT
from engines.uml import built_kernel, guest_command, processors
from lab.core.command_line import Parser
from lab.core.errors import FAILED, CannotError, FirstFlightError, UsageError

# Of wall time without a script ended: virtual time would stand still for ever.
SILENCE_DEADLINE_S = 120.0
POLL_S = 0.05
# As in ksft_runner.sh.
IPV4 = ("--ip_version=ipv4", "--local_ip=192.168.0.1", "--gateway_ip=192.168.0.1",
        "--netmask_ip=255.255.0.0", "--remote_ip=192.0.2.1",
        "-D", "TFO_COOKIE=3021b9d889017eeb", "-D", "TFO_COOKIE_ZERO=b7c12350a90dc8f5",
        "-D", "CMSG_LEVEL_IP=SOL_IP", "-D", "CMSG_TYPE_RECVERR=IP_RECVERR")
PASSED, KNOWN, FAILING = "pass", "known", "FAIL"
TOOL = "ethtool"  # that a script calls


@dataclass(frozen=True)
class KnownFailure:
    """Why a script fails in virtual time, and the change of a word with which it passes."""

    why: str
    line: str
    changed: str


KNOWN_FAILURES = {"tcp_eor_no-coalesce-retrans": KnownFailure(
    "its retransmission is acknowledged after the least RTT, to the microsecond or one beside it;"
    " RACK takes only less for ambiguous (tcp_rack_advance: rtt_us < tcp_min_rtt)",
    "+.001 < .  1:1(0) ack 12401", "+.000990 < .  1:1(0) ack 12401")}


# In the guest ------------------------------------------------------------------------

def inside() -> None:
    """Run every script of the folder; append a line of JSON for each as it ends."""
    folder = Path(RESULTS)
    mount("tmpfs", "/tmp")  # scripts write there
    names: list[str] = json.loads((folder / "names.json").read_text())
    with (folder / "results.jsonl").open("a", buffering=1) as lines:
        for name in names:
            started = time.monotonic()
            done = subprocess.run(
                ["unshare", "--net", str(folder / "packetdrill"), *IPV4, f"{name}.pkt"],
                cwd=folder / "scripts", env={**os.environ, "LD_PRELOAD": str(folder / "times.so")},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", check=False)
            lines.write(json.dumps({"name": name, "status": done.returncode,
                                    "seconds": time.monotonic() - started,
                                    "said": done.stdout.strip()[-2000:]}) + "\n")


# On this machine ---------------------------------------------------------------------

@dataclass(frozen=True)
class Result:
    """How one script ended. seconds: of the guest's time; said: what packetdrill printed."""

    name: str
    status: int
    seconds: float
    said: str


def run_in_guest(kernel: Path, packetdrill: Path, scripts: Path, names: list[str],
                 folder: Path) -> Iterator[Result]:
    """Yield results as scripts end. Raises FirstFlightError if the guest dies or one hangs.

    Program and scripts are copied into `folder`, the guest's own: it need not
    reach any other place of the user's.
    """
    shutil.copytree(scripts, folder / "scripts")
    shutil.copy(packetdrill, folder / "packetdrill")
    for name in KNOWN_FAILURES.keys() & set(names):
        known, text = KNOWN_FAILURES[name], (scripts / f"{name}.pkt").read_text()
        (folder / "scripts" / f"{changed_name(name)}.pkt").write_text(
            text.replace(known.line, known.changed))
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(folder / "times.so"),
                    str(PROJECT / "benchmarks/outside/times.c")], check=True)
    (folder / "names.json").write_text(json.dumps(
        [each for name in names
         for each in ((name, changed_name(name)) if name in KNOWN_FAILURES else (name,))]))
    (folder / "results.jsonl").touch()
    (folder / "command.json").write_text(json.dumps(
        [sys.executable, "-m", "benchmarks.outside.kernel_tests", "--inside"]))
    with (folder / "console.log").open("wb") as console:
        guest = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", "taskset", "--cpu-list",
                                  str(processors()[0]), *guest_command(kernel)], cwd=folder,
                                 stdin=subprocess.DEVNULL, stdout=console,
                                 stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield from _results(guest, folder)
    finally:
        if guest.poll() is None:
            os.killpg(guest.pid, 9)
        guest.wait()


def _results(guest: subprocess.Popen[bytes], folder: Path) -> Iterator[Result]:
    heard, torn, ended = time.monotonic(), "", False
    count, expected = 0, len(json.loads((folder / "names.json").read_text()))
    with (folder / "results.jsonl").open() as lines:
        while count < expected:
            *whole, torn = (torn + lines.read()).split("\n")
            for line in whole:
                yield Result(**json.loads(line))
                count, heard = count + 1, time.monotonic()
            silent_s = time.monotonic() - heard
            if count < expected and (silent_s > SILENCE_DEADLINE_S or ended and not whole):
                said = (folder / "console.log").read_text(errors="replace").strip()
                raise FirstFlightError(f"the guest {'ended' if ended else 'hangs'} after {count} of"
                                     f" {expected} scripts: {said[-500:] or 'no word'}")
            ended = guest.poll() is not None
            time.sleep(POLL_S)


def changed_name(name: str) -> str:
    return f"{name}-changed"


def script_names(scripts: Path) -> list[str]:
    """The scripts that are for IPv4, or for every version."""
    return sorted(path.stem for path in scripts.glob("*.pkt")
                  if "--ip_version=ipv6" not in path.read_text())


def told(results: Iterator[Result]) -> Iterator[tuple[str, str]]:
    """For each script its verdict (PASSED, KNOWN or FAILING) and the line to print.

    A known failure is one only if the script passes with the one change.
    """
    for result in results:
        known = KNOWN_FAILURES.get(result.name)
        passes = result.status == 0
        if known is not None:
            changed = next(results)
            if not passes and changed.status == 0:
                yield KNOWN, (f"{result.name}: {known.why}; with “{known.changed}” for"
                              f" “{known.line}” it passes")
                continue
        said = "" if passes else f": {' | '.join(result.said.splitlines()[-3:])}"
        yield PASSED if passes else FAILING, f"{result.name} {result.seconds:.3f} s{said}"


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="kernel_tests", description="Linux's own tests of TCP in the guest.")
    parser.add_argument("--packetdrill", metavar="PATH", default=shutil.which("packetdrill"),
                        help="google/packetdrill, built (default: the one on the PATH)")
    parser.add_argument("--scripts", type=Path, metavar="DIR",
                        help="default: those of the source of the guest's kernel")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these scripts only")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.inside:
        inside()
        return 0
    kernel = built_kernel()
    if not arguments.packetdrill or not os.access(arguments.packetdrill, os.X_OK):
        raise CannotError("no packetdrill: build google/packetdrill, name it with --packetdrill")
    scripts = arguments.scripts or kernel.parent / "packetdrill"
    names = arguments.names or script_names(scripts)
    missing = [name for name in names if not (scripts / f"{name}.pkt").exists()]
    if missing or not names:
        raise UsageError(f"{scripts} has no script {missing[0] if missing else 'for IPv4'}:"
                         " name a folder with --scripts")
    calling = [name for name in names if TOOL in (scripts / f"{name}.pkt").read_text()]
    if calling and not shutil.which(TOOL, path=PATH):
        raise CannotError(f"no {TOOL}, which {calling[0]} calls: apt-get install {TOOL}")
    started, counts = time.monotonic(), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for verdict, line in told(run_in_guest(kernel, Path(arguments.packetdrill), scripts,
                                               names, Path(folder))):
            counts[verdict] += 1
            print(f"{verdict:5} {line}", flush=True)
    print(f"{counts[PASSED]} of {len(names)} pass, {counts[KNOWN]} fail as known,"
          f" {counts[FAILING]} fail otherwise; {time.monotonic() - started:.0f} s")
    return FAILED if counts[FAILING] else 0


if __name__ == "__main__":
    command.run("kernel_tests", main)
