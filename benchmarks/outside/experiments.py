"""Runs other people's public experiments in virtual time, and writes vtime/EXPERIMENTS.md.

    /usr/bin/python3 -m benchmarks.outside.experiments [--from FOLDER] [--jobs N]
                                                       [--update] [NAME …]

FOLDER has clones of the repositories, each named owner+name; those that are missing are made (git
clone). Each experiment is a copy at one commit. It runs by `./run.sh --` in a guest of its own,
since it is strangers' code, and is unchanged except for what experiments.toml lists, such as lines
of Python 2. Where authors keep the files of their own run, the published numbers are read from
those, by the same rule as ours; otherwise they are in experiments.toml. With names, only those
experiments run, and nothing is written. With --update as well, only their rows of the document are
written.

Exit status: 0 if every experiment runs that should, else 1; 4 where a package or a repository is
missing.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import command
from firstflight.base import PROJECT, reading
from firstflight.base.argument_types import file_path, positive_number
from firstflight.base.errors import FAILED, OK, CannotError
from firstflight.base.parser import Parser
from firstflight.runs.scenario_file import parse

DOCUMENT = PROJECT / "vtime" / "EXPERIMENTS.md"
HEAD = """\
# Other people's experiments

Each experiment is public, and this project contains none of its code. It ran by `./run.sh --
COMMAND` at the commit that is named, unchanged but for what the second table says.
`/usr/bin/python3 -m benchmarks.outside.experiments` runs them and writes the two tables. Two
reproductions of the paper stand [at the end](#two-reproductions-by-their-authors-scripts).

- **Published → ours**: where authors keep the files of their own run, "published" is computed
  from those. "Ours" is computed by the same rule from what the run here wrote. "RTT, 20" is the
  mean RTT in ms with a queue of 20 packets.
- **Network, wall**: seconds of the experiment's clock, and of waiting, with {jobs} experiments
  side by side on two processors that also did other work.
- **Differs**: a number is more than 10 % from the published one. What is known of the reason
  follows.
- ***unit***: `delay=5` becomes `delay="5ms"`. Mininet hands a number without a unit to tc, which
  takes it for microseconds.
- ***tso***: `tcp_tso_rtt_log` is 0 in each host, as before Linux 5.18. Since then Linux builds
  packets of more segments where the round trip is very short, as a delay in µs is.
- ***tracing***: `/sys/kernel/tracing` in place of `/sys/kernel/debug/tracing`: the guest has no
  debugfs.
- **2to3**: Python 2 becomes Python 3.

"""
# The part of the document that is written by hand begins here, and stays.
BY_HAND = "\n## Two reproductions, by their authors' scripts\n"
TABLE = Path(__file__).with_suffix(".toml")
# A round trip as ping prints it.
PING = r"time=([\d.]+) ms"


@dataclass(frozen=True)
class Number:
    """A number to compare, as experiments.toml has it."""

    name: str
    ours: str = ""  # the file that has it in our run; "": it is printed
    theirs: str | float | None = None  # the file that has it in the authors' run, or the number
    pattern: str = PING  # a regular expression that finds it
    scale: float = 1.0  # from the unit of the file to that of the table


@dataclass(frozen=True)
class Experiment:
    """An experiment of experiments.toml."""

    name: str
    repository: str  # as GitHub names it, owner/name
    commit: str
    about: str
    lines: str = ""  # a shell script that changes the copy and runs it
    changes: str = ""  # what the script changes, in words
    numbers: Sequence[Number] = ()
    packages: Sequence[str] = ()  # packages of Debian that it needs
    shows: str = ""  # a text that it has to print
    cannot: str = ""  # why it cannot run
    differs: str = ""  # why a number differs from the published one


def experiments(text: str) -> list[Experiment]:
    """The experiments of experiments.toml. Raises TypeError for an unknown key."""
    found = []
    for values in parse("experiments", text).raw["experiment"]:
        numbers = [Number(**number) for number in values.pop("number", ())]
        found.append(Experiment(**values, numbers=numbers))
    return found


def main(argv: Sequence[str]) -> int:
    parser = Parser(prog="experiments", allow_abbrev=False,
                    description="Run other people's public experiments in virtual time.")
    parser.add_argument("--from", dest="source", type=file_path, metavar="FOLDER",
                        help="where clones of the repositories are kept")
    parser.add_argument("--jobs", type=positive_number, default=2, metavar="N",
                        help="experiments side by side (default 2)")
    parser.add_argument("--update", action="store_true",
                        help="with names: write their rows of the document anew")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, by their names")
    arguments = parser.parse_args(argv)
    table = experiments(TABLE.read_text(encoding="utf-8"))
    known = {experiment.name for experiment in table}
    if unknown := [name for name in arguments.names if name not in known]:
        parser.error(f"no experiment {', '.join(unknown)}: {', '.join(sorted(known))}")
    chosen = [each for each in table if not arguments.names or each.name in arguments.names]
    require_packages(chosen)
    with tempfile.TemporaryDirectory() as folder:
        source = arguments.source or Path(folder) / "clones"
        source.mkdir(exist_ok=True)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            rows = list(pool.map(partial(row_of, source=source, folder=Path(folder)), chosen))
    text = document(rows, arguments.jobs)
    if arguments.names and arguments.update:
        text = updated(DOCUMENT.read_text(encoding="utf-8"), text, table)
    else:
        text += by_hand(DOCUMENT.read_text(encoding="utf-8"))
    if arguments.update or not arguments.names:
        DOCUMENT.write_text(text, encoding="utf-8")
    runs = [row for row in rows if row.run]
    print(f"{sum(row.is_sound for row in runs)} of {len(runs)} run; {len(rows) - len(runs)} cannot")
    return OK if all(row.is_sound for row in runs) else FAILED


@dataclass(frozen=True)
class GuestRun:
    """An experiment that ran in a guest."""

    status: int
    printed: str  # standard output, then standard error
    folder: Path | None  # its results, if it left any
    virtual_s: float  # its time by the guest's clock
    wall_s: float  # its time by this machine's clock


@dataclass(frozen=True)
class Row:
    """An experiment and how it ended."""

    experiment: Experiment
    run: GuestRun | None  # None: it cannot run
    # The name of each number, the authors' value and ours.
    compared: tuple[tuple[str, float | None, float | None], ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether it succeeded, printed what it has to, and wrote each number."""
        return (self.run is not None and self.run.status == 0
                and self.experiment.shows in self.run.printed
                and all(ours is not None for _, _, ours in self.compared))


def require_packages(chosen: Sequence[Experiment]) -> None:
    """Raise CannotError where a package is missing.

    An experiment that lacks a package might succeed, and leave out a part.
    """
    wanted = {name for each in chosen if not each.cannot for name in each.packages}
    found = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n"],
                           capture_output=True, text=True, check=True).stdout
    installed = {line.split()[1] for line in found.splitlines() if line[1] == "i"}
    if missing := sorted(wanted - installed):
        raise CannotError(f"packages are missing: apt-get install {' '.join(missing)}")


def row_of(experiment: Experiment, source: Path, folder: Path) -> Row:
    """Run one experiment and print how it ended. Raises CannotError where git fails."""
    if experiment.cannot:
        return Row(experiment, None)
    copy = folder / experiment.name
    check_out(experiment, source, copy)
    steps = copy / "steps.sh"
    steps.unlink(missing_ok=True)  # a repository's own may be a link that leads out of it
    steps.write_text(experiment.lines + "\n")
    run = in_guest(copy, folder / f"results_{experiment.name}")
    compared = tuple((number.name, theirs_of(number, copy), ours_of(number, run))
                     for number in experiment.numbers)
    row = Row(experiment, run, compared)
    print(f"{'runs' if row.is_sound else 'FAILS'} {experiment.name}: {run.virtual_s:.0f} s in"
          f" {run.wall_s:.0f} s; {numbers_of(row)}"
          f"{'' if row.is_sound else f' status {run.status}: {run.printed.strip()[-700:]}'}",
          flush=True)
    return row


def in_guest(copy: Path, results: Path) -> GuestRun:
    """Run steps.sh of a copy by ./run.sh, as a user does; `results` is the folder for results."""
    began = time.monotonic()
    done = subprocess.run(
        [str(PROJECT / "run.sh"), "--results", str(results), "--quiet", "--memory", "1G",
         "--timeout", "3h,30m", "--", "sh", "steps.sh"], cwd=copy, input="", capture_output=True,
        text=True, errors="replace", check=False)
    wall_s = time.monotonic() - began
    folder = next((path.parent for path in results.glob("commands/*/command.json")), None)
    return GuestRun(
        done.returncode, done.stdout + done.stderr, folder,
        json.loads((folder / "command.json").read_text())["virtual_s"] if folder else 0.0, wall_s)


def check_out(experiment: Experiment, source: Path, copy: Path) -> None:
    """Make a copy of a repository at its commit, without its history."""
    clone = source / experiment.repository.replace("/", "+")
    if not clone.exists():
        git("clone", "--quiet", f"https://github.com/{experiment.repository}", str(clone))
    git("clone", "--quiet", "--no-checkout", str(clone), str(copy))
    git("-C", str(copy), "checkout", "--quiet", experiment.commit)
    shutil.rmtree(copy / ".git")


def git(*words: str) -> None:
    """Run git. Raises CannotError with what it printed where it fails."""
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotError(f"git {words[0]}: {done.stderr.strip()[-300:]}")


def mean_of(number: Number, text: str) -> float | None:
    """The mean of all numbers that the pattern finds; None where it finds none."""
    found = [float(match[1]) for match in re.finditer(number.pattern, text)]
    return statistics.mean(found) * number.scale if found else None


def theirs_of(number: Number, copy: Path) -> float | None:
    """The number that the authors published; None for none."""
    if not isinstance(number.theirs, str):
        return number.theirs
    return mean_of(number, text_within(copy, number.theirs))


def ours_of(number: Number, run: GuestRun) -> float | None:
    """The number that this run wrote or printed; None where nothing matches."""
    if not number.ours:
        return mean_of(number, run.printed)
    return mean_of(number, text_within(run.folder / "files", number.ours)) if run.folder else None


def text_within(folder: Path, place: str) -> str:
    """The text of a file in a stranger's folder.

    "" where there is none, or where a link leads out of the folder.
    """
    path = (folder / place).resolve()
    if not path.is_relative_to(folder.resolve()):
        return ""
    with suppress(OSError):
        return reading.content(path).decode(errors="replace")
    return ""


def shown(value: float | None) -> str:
    """A number with three digits or without decimals; a dash for none."""
    if value is None:
        return "–"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def numbers_of(row: Row) -> str:
    """The compared numbers of a row, in words."""
    return "; ".join(f"{name}: {shown(theirs)} → {shown(ours)}"
                     for name, theirs, ours in row.compared)


def begin_of(experiment: Experiment) -> str:
    """How an experiment's row of the first table begins."""
    return (f"| [{experiment.repository}](https://github.com/{experiment.repository}/tree/"
            f"{experiment.commit}) | {experiment.about} |")


def document(rows: Sequence[Row], jobs: int) -> str:
    """The text of vtime/EXPERIMENTS.md up to the part that is written by hand."""
    lines = [HEAD.format(jobs=jobs),
             "| experiment | what it is | runs? | network, s | wall, s | published → ours |\n"
             "|---|---|---|--:|--:|---|"]
    for row in rows:
        experiment, run = row.experiment, row.run
        times = ("", "") if run is None else (f"{run.virtual_s:.0f}", f"{run.wall_s:.0f}")
        outcome = numbers_of(row) or (f"prints “{experiment.shows}”" if experiment.shows else "")
        lines.append(f"{begin_of(experiment)} {state_of(row)} | {' | '.join(times)} | {outcome} |")
    lines += ["\n## What is changed, and what is installed\n",
              "| experiment | changes | packages |", "|---|---|---|"]
    lines += [f"| {each.name} | {each.changes or 'none'} | {' '.join(each.packages)} |"
              for each in (row.experiment for row in rows) if each.changes or each.packages]
    return "\n".join(lines) + "\n"


def state_of(row: Row) -> str:
    """What the table says on whether an experiment runs."""
    if row.run is None:
        return f"no: {row.experiment.cannot}"
    if not row.is_sound:
        return "**fails**"
    return f"differs: {row.experiment.differs}" if row.experiment.differs else "yes"


def by_hand(old: str) -> str:
    """The end of a document, from BY_HAND on. Raises ValueError where BY_HAND is missing."""
    return old[old.index(BY_HAND):]


def updated(old: str, new: str, table: Sequence[Experiment]) -> str:
    """The old document with the rows of the new one in place of its own, in the table's order."""
    lines = old.splitlines()
    of_first_table = [begin_of(each) for each in table]
    of_second_table = [f"| {each.name} |" for each in table]
    for begins in (of_first_table, of_second_table):
        rows = [next((line for text in (new, old) for line in text.splitlines()
                      if line.startswith(begin)), "") for begin in begins]
        places = [place for place, line in enumerate(lines) if line.startswith(tuple(begins))]
        lines[places[0]:places[-1] + 1] = filter(None, rows)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    command.run("experiments", main)
