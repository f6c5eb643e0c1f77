"""Where the time goes, and whether the bars are met: one table.

    /usr/bin/python3 -m benchmarks.speed.performance [--only ROW …] [--runs 5] [--before FOLDER]

A row is one command or a few that are compared, each with its bar, the aim beyond it, and the
least, median and most of the runs. What is compared is run in turns, so that whatever else the
machine does meets all alike. Growth with the number of trials is benchmarks/speed/growth.py's,
processor time by part of one run benchmarks/speed/parts.py's. Processor time is of all processes,
by a control group: it takes root.
--before FOLDER, another version's working tree, runs its commands in turns with ours.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks import command, processor
from benchmarks.speed import growth, parts
from benchmarks.speed.scenario import Timing, timed, watched
from engines.job import PROJECT
from lab import registry
from lab.core.command_line import Parser, positive, say
from lab.core.errors import OK, CannotError, FirstFlightError
from lab.core.results.records import read_records
from lab.core.run.kinds import NOTHING
from lab.core.scenario import scenario_file
from lab.fetches.verify.record import Record

LEAST_MB = 1.0  # what is below is not captures


@dataclass(frozen=True)
class Setting:
    """How the rows are measured.

    runs: of each. quick: sizes that only show that all of it runs. large: a hundred
    thousand trials measured and a million stored, too. before: another version's folder.
    """

    runs: int = 5
    quick: bool = False
    large: bool = False
    before: Path | None = None


@dataclass(frozen=True)
class Bar:
    """What a number is held to. bar, aim: None for no such; more: whether more is better."""

    what: str
    unit: str
    bar: float | None = None
    aim: float | None = None
    more: bool = False

    def met(self, value: float) -> str:
        """Whether a median meets it: aim, met or missed; "" where there is no bar."""
        if self.bar is None:
            return ""
        for result, least in (("aim", self.aim), ("met", self.bar)):
            if least is not None and (value >= least if self.more else value <= least):
                return result
        return "missed"


@dataclass
class Measured:
    """What was measured for a bar; a value for each run. before: of the other version's."""

    bar: Bar
    values: list[float]
    before: list[float] = field(default_factory=list)


Value = Callable[[Timing], "float | None"]


def of_command(setting: Setting, flags: Sequence[str], *bars: tuple[Bar, Value],
               look: Callable[[Path], object] = lambda run: None) -> list[Measured]:
    """Run one command as often as requested, in turns with the other version's."""
    now, before = [], []
    for _ in range(setting.runs):
        now.append(timed(flags, look=look))
        if setting.before:
            before.append(timed(flags, setting.before))
    return [Measured(bar, _values(now, value), _values(before, value)) for bar, value in bars]


def _values(timings: Sequence[Timing], value: Value) -> list[float]:
    return [number for timing in timings if (number := value(timing)) is not None]


def core_s(timing: Timing) -> float | None:
    return timing.processor_s


def wall_s(timing: Timing) -> float:
    return timing.wall_s


# The grid in ns-3 ---------------------------------------------------------------------

# Optional: Debian's libns3-dev (3.37 in Debian 12) and g++. benchmarks/speed/ns3_grid.cc is
# compiled into a temporary folder; one process runs all cells, with ns-3's own TCP.

GRID = "zhao2019"
SOURCE = PROJECT / "benchmarks/speed/ns3_grid.cc"
LIBRARIES = ("point-to-point", "internet", "network", "core")
CONTROLS = {"cubic": "TcpCubic", "reno": "TcpNewReno"}
HEADER_BYTES, REQUEST_BYTES = 42, 78  # of our server's answer and of curl's request
NEAR_PERCENT = 2
Cell = tuple[float, float, int]  # RTT in ms, kbit/s, initial window in segments


@dataclass(frozen=True)
class Ns3Grid:
    """One run of the grid. total_ms: by cell, from the SYN to the last byte."""

    wall_s: float
    processor_s: float | None
    total_ms: dict[Cell, float]


class Ns3:
    """The compiled program. Raises CannotError where ns-3 or a compiler is missing."""

    def __init__(self, folder: Path) -> None:
        if not Path("/usr/include/ns3/core-module.h").exists() or not shutil.which("g++"):
            raise CannotError("no ns-3: apt-get install --no-install-recommends libns3-dev g++")
        self.program = command.compiled(
            folder / "ns3_grid", SOURCE, "-std=c++17", "-O2",
            *(f"-lns3-{library}" for library in LIBRARIES), compiler="g++")

    @cached_property
    def cells(self) -> list[Cell]:
        """Those of the scenario, each once."""
        study = registry.study_of(scenario_file.find(GRID), NOTHING, 1)
        self.trial = study.trials[0]
        return [(trial.rtt_ms, trial.bandwidth_kbps, trial.initcwnd) for trial in study.trials]

    def run(self, control: str = "cubic") -> Ns3Grid:
        """All cells under a congestion control of CONTROLS. Raises FirstFlightError."""
        requested = "".join(f"{rtt_ms:g} {kbps:g} {window}\n"
                            for rtt_ms, kbps, window in self.cells)
        words = [str(self.program), CONTROLS[control], str(REQUEST_BYTES),
                 str(self.trial.response_bytes + HEADER_BYTES), str(self.trial.queue_packets)]
        with processor.group() as group:
            start = time.monotonic()
            done = subprocess.run(group.command(words) if group else words, input=requested,
                                  capture_output=True, text=True, check=False)
            wall_s = time.monotonic() - start
            used_s = group.used_s if group else None
        total_ms = {(float(rtt_ms), float(kbps), int(window)): float(total)
                    for rtt_ms, kbps, window, total in map(str.split, done.stdout.splitlines())}
        if done.returncode or len(total_ms) != len(self.cells) or min(total_ms.values()) < 0:
            raise FirstFlightError(f"ns-3 fetched {len(total_ms)} of {len(self.cells)} cells:"
                                   f" {done.stderr.strip()[-200:]}")
        return Ns3Grid(wall_s, used_s, total_ms)


def cells_of(run: Path) -> dict[Cell, float]:
    """curl's time of each cell in a stored run of the grid, in ms."""
    return {(trial.rtt_ms, trial.bandwidth_kbps, trial.initcwnd): record.total_ms
            for record in read_records(run / "trials.csv", Record)
            if (trial := record.trial) and record.total_ms is not None}


def difference(ours: Mapping[Cell, float], theirs: Mapping[Cell, float]) -> str:
    """How far theirs is from ours over the cells of both, in one line."""
    percent = sorted((theirs[cell] / ours[cell] - 1) * 100 for cell in ours.keys() & theirs.keys())
    near = sum(abs(deviation) <= NEAR_PERCENT for deviation in percent)
    return (f"{len(percent)} cells, ns-3's times against ours: median"
            f" {statistics.median(percent):+.2f} %, {near} within {NEAR_PERCENT} %,"
            f" least {percent[0]:+.1f} %, most {percent[-1]:+.1f} %")


# The rows -----------------------------------------------------------------------------

def grid(setting: Setting) -> list[Measured]:
    flags = ["--scenario", "zhao2019", *(["--rtt", "20,100", "--bw", "1000"] if setting.quick
                                         else [])]
    return of_command(
        setting, flags,
        (Bar("zhao2019, whole command", "s", 3, 2), wall_s),
        (Bar("  processor time", "s"), core_s),
        (Bar("  emulated seconds a wall second", "", 200, 300, more=True),
         lambda run: run.emulated_s / run.wall_s))


def simulator(setting: Setting) -> list[Measured]:
    """Both wall and processor time, each run next to one of ns-3."""
    ratios: list[float] = []
    of_core: list[float] = []
    ours: dict[Cell, float] = {}
    with tempfile.TemporaryDirectory() as name:
        simulated = Ns3(Path(name))
        for _ in range(setting.runs):
            mine = timed(["--scenario", "zhao2019"], look=lambda run: ours.update(cells_of(run)))
            theirs = simulated.run()
            ratios.append(mine.wall_s / theirs.wall_s)
            if mine.processor_s and theirs.processor_s:
                of_core.append(mine.processor_s / theirs.processor_s)
        for control in CONTROLS:
            print(f"ns-3, {control}: {difference(ours, simulated.run(control).total_ms)}")
    return [Measured(Bar("zhao2019 against ns-3, wall", "×", 16, 10), ratios),
            Measured(Bar("  processor time", "×"), of_core)]


def bucket(setting: Setting) -> list[Measured]:
    return of_command(setting, ["--scenario", "zhao2019", "--rtt", "100", "--bw", "1000"],
                      (Bar("one bucket, whole command", "s", 0.8, 0.5), wall_s),
                      (Bar("  processor time", "s"), core_s))


def population(setting: Setting) -> list[Measured]:
    return of_command(
        setting, ["--scenario", "dukkipati2010"],
        (Bar("dukkipati2010, whole command", "s", 90, 60), wall_s),
        (Bar("  processor time a response", "ms", 5, 3.5),
         lambda run: run.processor_s and run.processor_s * 1000 / len(run.verdicts)),
        (Bar("  memory of the main process", "MB"), lambda run: run.main_mb))


def load(setting: Setting) -> list[Measured]:
    measurements = of_command(
        setting, ["--scenario", "ietf78_completion"],
        (Bar("ietf78_completion, processor time", "s"), core_s),
        (Bar("  a connection", "ms"),
         lambda run: run.processor_s and run.processor_s * 1000 / run.connections))
    pairs = list(zip(measurements[0].values, measurements[0].before))
    return [*measurements, Measured(Bar("  against before", "×", 0.6, 0.4),
                                    [now / before for now, before in pairs])]


def kernel(setting: Setting) -> list[Measured]:
    """The guest's kernel, built from the distribution's source, which is unpacked as well."""
    timings = []
    for _ in range(setting.runs):
        with tempfile.TemporaryDirectory() as name:
            timings.append(watched(["env", f"XDG_CACHE_HOME={name}/cache",
                                    str(PROJECT / "engines" / "guest" / "build.sh")], Path(name)))
    return [Measured(Bar("guest kernel from source", "s", 100, 60), _values(timings, wall_s)),
            Measured(Bar("  processor time", "s"), _values(timings, core_s))]


def fresh(setting: Setting) -> list[Measured]:
    """A clone with an empty cache. Packages that are installed are installed already."""
    timings = []
    for _ in range(setting.runs):
        with tempfile.TemporaryDirectory() as name:
            clone = Path(name, "clone")
            subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(clone)], check=True)
            timings.append(timed([], clone, {"XDG_CACHE_HOME": f"{name}/cache"}))
    return [Measured(Bar("./run.sh in a clone, to the first figure", "s", 150, 90),
                     [timing.first_figure_s for timing in timings]),
            Measured(Bar("  to the end", "s", 270, 160), _values(timings, wall_s)),
            Measured(Bar("  processor time", "s"), _values(timings, core_s))]


def guests(setting: Setting) -> list[Measured]:
    """One guest and two with the same trials, in turns."""
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        path = str(growth.scenario_of(8 if setting.quick else 2000, Path(name)))
        for _ in range(setting.runs):
            one, two = (timed([path, "--jobs", jobs]) for jobs in "12")
            ratios.append(one.wall_s / two.wall_s)
    return [Measured(Bar("two guests against one", "×", 1.8, more=True), ratios)]


def grown(setting: Setting) -> list[Measured]:
    sizes = [4, 8] if setting.quick else [100, 1000, 10_000]
    points = [growth.measured(size) for size in [*sizes, *([100_000] if setting.large else [])]]
    print("\n".join(growth.table(points)))
    before, last = (point.timing for point in points[-2:])
    return [Measured(Bar("memory while ten times as many are measured", "×", 1.1),
                     [last.measuring_mb / before.measuring_mb]),
            Measured(Bar("  disk for captures that are not kept", "×", 1.1),
                     [max(last.work_mb, LEAST_MB) / max(before.work_mb, LEAST_MB)])]


def stored(setting: Setting) -> list[Measured]:
    sizes = [10, 20] if setting.quick else [1000, 10_000, 100_000]
    points = [point for size in [*sizes, *([1_000_000] if setting.large else [])]
              for point in growth.stored(size)]
    print("\n".join(growth.table(points)))
    last = [point.timing for point in points if point.trials == points[-1].trials]
    bars = (2, 5) if setting.large else (None, None)  # which are for a million
    return [Measured(Bar(f"{points[-1].trials} stored trials: memory", "GB", bars[0]),
                     [max(point.main_mb for point in last) / 1000]),
            Measured(Bar("  list, resume, analyse, draw", "min", bars[1]),
                     [sum(point.wall_s for point in last) / 60])]


ROWS: dict[str, Callable[[Setting], list[Measured]]] = {
    "grid": grid, "ns3": simulator, "bucket": bucket, "population": population, "load": load,
    "kernel": kernel, "fresh": fresh, "guests": guests, "growth": grown, "stored": stored}
QUICK = ("grid", "bucket", "guests", "growth", "stored")  # for which a small size is enough


def measured(row: str, setting: Setting) -> list[Measured]:
    """A row; none where this machine cannot, which is reported."""
    say(f"performance: {row}")
    try:
        return ROWS[row](setting)
    except CannotError as error:
        print(f"{row}: not measured: {error}")
        return []


# The table ----------------------------------------------------------------------------

PARTS = "parts"
# Of which the processor time is divided: fetches by curl, by its library, and load.
DIVIDED: dict[str, list[str]] = {
    "zhao2019": ["--scenario", "zhao2019"],
    "1000 responses by libcurl": [],
    "ietf78_completion, IW 10, once": ["--scenario", "ietf78_completion", "--iw", "10",
                                       "--repeat", "1"]}
QUICK_DIVIDED = {"one bucket": ["--scenario", "zhao2019", "--rtt", "20", "--bw", "1000",
                                "--repeat", "100"]}  # long enough to be met by samples


def divided(of_runs: Mapping[str, list[str]]) -> list[str]:
    """Processor seconds by part, a column for each run. Raises CannotError."""
    with tempfile.TemporaryDirectory() as folder:
        one_sort = [str(growth.scenario_of(1000, Path(folder)))]
        columns = {name: parts.measure(flags or one_sort) for name, flags in of_runs.items()}
    lines = [f"processor time by part, s{'':<8} " + " ".join(f"{name:>32}" for name in columns)]
    for part in parts.PARTS:
        cells = [(column.get(part, 0.0), sum(column.values())) for column in columns.values()]
        if any(seconds for seconds, _ in cells):
            lines.append(f"  {part:<30} " + " ".join(f"{seconds:23.2f} {seconds / whole_s:6.1%} "
                                                     for seconds, whole_s in cells))
    return [*lines, f"  {'all':<30} " + " ".join(f"{sum(column.values()):23.2f} {'':7}"
                                                 for column in columns.values())]


def table(rows: Sequence[Measured], judged: bool) -> list[str]:
    """The bars with what was measured; judged: whether it is of the size that they are for."""
    lines = [f"{'':<44} {'bar':>6} {'aim':>6} {'least':>8} {'median':>8} {'most':>8}"
             f" {'before':>8} {'ratio':>6}"]
    for row in rows:
        if not row.values:
            lines.append(f"{row.bar.what:<44} {'not counted':>13}")
            continue
        median = statistics.median(row.values)
        numbers = [f"{number:8.2f}" for number in (min(row.values), median, max(row.values))]
        compared = f"{'–':>8} {'–':>6}"
        if row.before:
            # Of each pair: both ran in the same minute.
            ratio = statistics.median(now / old for now, old in zip(row.values, row.before))
            compared = f"{statistics.median(row.before):8.2f} {ratio:6.2f}"
        bars = " ".join(f"{'–' if bar is None else f'{bar:g}':>6}"
                        for bar in (row.bar.bar, row.bar.aim))
        lines.append(f"{row.bar.what:<44} {bars} {' '.join(numbers)} {compared}"
                     f"  {row.bar.unit:<3} {row.bar.met(median) if judged else ''}".rstrip())
    return lines


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="performance", description="Time by row and by part, beside the bars.")
    add = parser.add_argument
    add("--only", nargs="+", choices=[*ROWS, PARTS], metavar="ROW",
        help=f"these rows: {', '.join([*ROWS, PARTS])} (default all)")
    add("--runs", type=positive, default=5, help="of each row (default 5)")
    add("--before", type=Path, metavar="FOLDER", help="another version, run in turns with this one")
    add("--large", action="store_true",
        help="also 100,000 trials measured and a million stored: some half an hour")
    add("--quick", action="store_true", help="small sizes, one run: shows that all of it works")
    requested = parser.parse_args(words)
    setting = Setting(1 if requested.quick else requested.runs, requested.quick, requested.large,
                      requested.before)
    rows = requested.only or [*(QUICK if requested.quick else ROWS), PARTS]
    measurements = [one for row in rows if row != PARTS for one in measured(row, setting)]
    if PARTS in rows:
        try:
            say(f"performance: {PARTS}")
            print("\n".join(divided(QUICK_DIVIDED if requested.quick else DIVIDED)))
        except CannotError as error:
            print(f"{PARTS}: not measured: {error}")
    if measurements:
        print("\n".join(table(measurements, judged=not requested.quick)))
    return OK


if __name__ == "__main__":
    command.run("performance", main)
