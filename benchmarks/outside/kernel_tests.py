"""Linux's own tests of TCP in the guest, in virtual time: what fails, and the count.

    /usr/bin/python3 -m benchmarks.outside.kernel_tests --program PATH [--scripts DIR] [NAME …]

A use of ./run.sh --packetdrill (vtime/command/packetdrill.py): the scripts of
tools/testing/selftests/net/packetdrill, under each version of IP that the kernel's own runner runs
them with, but with the tolerance that packetdrill has by itself (4 ms; no wider one, since virtual
time needs none). PATH: google/packetdrill, built (docs/PACKETDRILL.md). DIR: the scripts; else
those of the source that the guest's kernel was built from. They call ethtool.

Exit status: 0 if every script passes or fails as known, else 1.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from base.command_line import Parser
from base.errors import FAILED, OK, UsageError
from benchmarks import command
from commands.virtual.packetdrill import line, program_of, summary
from vtime.command.packetdrill import (PASSED, FAILED as FAILING, Result, Script, Setup, run,
                                       versions)
from vtime.uml import built_kernel_for_commands, processors


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



def changed(folder: Path) -> list[Path]:
    """Each script with a known failure, written again with its change. Raises UsageError."""
    paths = []
    for name, known in KNOWN_FAILURES.items():
        path = folder / f"{name}.pkt"
        if path.exists():
            text = path.read_text()
            if known.line not in text:
                raise UsageError(f"{path}: there is no {known.line!r}")
            paths.append(folder / f"{name}-changed.pkt")
            paths[-1].write_text(text.replace(known.line, known.changed))
    return paths


def scripts_in(folder: Path, names: Sequence[str]) -> list[Script]:
    """Those with these names, or all; of those with a known failure also the changed ones."""
    paths = sorted({*(folder / f"{name}.pkt" for name in names or ()),
                    *(() if names else folder.glob("*.pkt")), *changed(folder)})
    missing = [path for path in paths if not path.exists()]
    if missing or not paths:
        raise UsageError(f"there is no script {missing[0].stem if missing else ''}:"
                         " name a folder with --scripts")
    return [Script(path, version, path.read_text()) for path in paths
            for version in versions(path, path.read_text(), "all")]


def is_known(result: Result, results: Sequence[Result]) -> bool:
    """A known failure is one only if the script passes with its one change."""
    name = result.script.path.stem
    return result.verdict == FAILING and name in KNOWN_FAILURES and any(
        other.verdict == PASSED for other in results
        if other.script.path.stem == f"{name}-changed"
        and other.script.ip_version == result.script.ip_version)


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="kernel_tests", description=__doc__)
    add = parser.add_argument
    add("--program", type=Path, help="packetdrill, built (default: the one on the PATH)")
    add("--scripts", type=Path, help="default: those of the source of the guest's kernel")
    add("--jobs", type=int, default=len(processors()), help=argparse.SUPPRESS)
    add("names", nargs="*", metavar="NAME", help="these scripts only")
    arguments = parser.parse_args(words)
    kernel = built_kernel_for_commands()
    command.need("ethtool")  # which scripts call
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        shutil.copytree(arguments.scripts or kernel.parent / "packetdrill", place / "scripts")
        (place / "guests").mkdir()
        scripts = scripts_in(place / "scripts", arguments.names)
        setup = Setup(kernel, program_of(arguments), arguments.jobs)
        results = [result for result in run(setup, scripts, place / "guests")
                   if not result.script.path.stem.endswith("-changed") or result.verdict == PASSED]
    own = [result for result in results if not result.script.path.stem.endswith("-changed")]
    known = [result for result in own if is_known(result, results)]
    for result in own:
        if result in known:
            change = KNOWN_FAILURES[result.script.path.stem]
            print(f"known {line(result)}: {change.why}; with “{change.changed}” for"
                  f" “{change.line}” it passes")
        elif result.verdict != PASSED:
            print(line(result))
    for version, count in sorted(Counter(result.script.ip_version for result in own).items()):
        passed = sum(result.verdict == PASSED for result in own
                     if result.script.ip_version == version)
        print(f"{version}: {passed} of {count} pass")
    print(f"{summary(Counter(result.verdict for result in own), len(own))}; {len(known)} as known;"
          f" {time.monotonic() - began:.0f} s")
    return OK if all(result.verdict == PASSED or result in known for result in own) else FAILED


if __name__ == "__main__":
    command.run("kernel_tests", main)
