"""What the project's speed is held to: rows of bars, and how each is measured.

A row is one command or a few that are compared; what is compared is run in turns, so
that whatever else the machine does meets all alike.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.speed import growth, ns3
from benchmarks.speed.scenario import Timing, timed, watched
from engines.job import PROJECT
from lab.core.command_line import say
from lab.core.errors import CannotError

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
        """In a word whether a median meets it; "" where there is no bar."""
        if self.bar is None:
            return ""
        for word, least in (("aim", self.aim), ("met", self.bar)):
            if least is not None and (value >= least if self.more else value <= least):
                return word
        return "missed"


@dataclass
class Measured:
    """What was found for a bar; a value for each run. before: of the other version's."""

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
    return [each for timing in timings if (each := value(timing)) is not None]


def core_s(timing: Timing) -> float | None:
    return timing.processor_s


def wall_s(timing: Timing) -> float:
    return timing.wall_s


# The rows ----------------------------------------------------------------------------

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
    """Both wall and processor time, each run beside one of ns-3."""
    ratios: list[float] = []
    of_core: list[float] = []
    ours: dict[ns3.Cell, float] = {}
    with tempfile.TemporaryDirectory() as name:
        simulated = ns3.Ns3(Path(name))
        for _ in range(setting.runs):
            mine = timed(["--scenario", "zhao2019"], look=lambda run: ours.update(ns3.of_run(run)))
            theirs = simulated.run()
            ratios.append(mine.wall_s / theirs.wall_s)
            if mine.processor_s and theirs.processor_s:
                of_core.append(mine.processor_s / theirs.processor_s)
        for control in ns3.CONTROLS:
            print(f"ns-3, {control}: {ns3.difference(ours, simulated.run(control).total_ms)}")
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
    found = of_command(
        setting, ["--scenario", "ietf78_completion"],
        (Bar("ietf78_completion, processor time", "s"), core_s),
        (Bar("  a connection", "ms"),
         lambda run: run.processor_s and run.processor_s * 1000 / run.connections))
    pairs = list(zip(found[0].values, found[0].before))
    return [*found, Measured(Bar("  against before", "×", 0.6, 0.4),
                             [now / before for now, before in pairs])]


def kernel(setting: Setting) -> list[Measured]:
    """The guest's kernel, built from the distribution's source, which is unpacked as well."""
    found = []
    for _ in range(setting.runs):
        with tempfile.TemporaryDirectory() as name:
            found.append(watched(["env", f"XDG_CACHE_HOME={name}/cache",
                                  str(PROJECT / "engines" / "guest" / "build.sh")], Path(name)))
    return [Measured(Bar("guest kernel from source", "s", 100, 60), _values(found, wall_s)),
            Measured(Bar("  processor time", "s"), _values(found, core_s))]


def fresh(setting: Setting) -> list[Measured]:
    """A clone with an empty cache. Packages that are installed are installed already."""
    found = []
    for _ in range(setting.runs):
        with tempfile.TemporaryDirectory() as name:
            clone = Path(name, "clone")
            subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(clone)], check=True)
            found.append(timed([], clone, {"XDG_CACHE_HOME": f"{name}/cache"}))
    return [Measured(Bar("./run.sh in a clone, to the first figure", "s", 150, 90),
                     [each.first_figure_s for each in found]),
            Measured(Bar("  to the end", "s", 270, 160), _values(found, wall_s)),
            Measured(Bar("  processor time", "s"), _values(found, core_s))]


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
    points = [each for size in [*sizes, *([1_000_000] if setting.large else [])]
              for each in growth.stored(size)]
    print("\n".join(growth.table(points)))
    last = [each.timing for each in points if each.trials == points[-1].trials]
    bars = (2, 5) if setting.large else (None, None)  # which are for a million
    return [Measured(Bar(f"{points[-1].trials} stored trials: memory", "GB", bars[0]),
                     [max(each.main_mb for each in last) / 1000]),
            Measured(Bar("  list, resume, analyse, draw", "min", bars[1]),
                     [sum(each.wall_s for each in last) / 60])]


ROWS: dict[str, Callable[[Setting], list[Measured]]] = {
    "grid": grid, "ns3": simulator, "bucket": bucket, "population": population, "load": load,
    "kernel": kernel, "fresh": fresh, "guests": guests, "growth": grown, "stored": stored}
QUICK = ("grid", "bucket", "guests", "growth", "stored")  # of which a small size tells something


def measured(row: str, setting: Setting) -> list[Measured]:
    """A row; none where this machine cannot, which is said."""
    say(f"performance: {row}")
    try:
        return ROWS[row](setting)
    except CannotError as error:
        print(f"{row}: not measured: {error}")
        return []


def table(found: Sequence[Measured], judged: bool) -> list[str]:
    """The bars beside what was measured; judged: whether it is of the size that they are for."""
    lines = [f"{'':<44} {'bar':>6} {'aim':>6} {'least':>8} {'median':>8} {'most':>8}"
             f" {'before':>8} {'ratio':>6}"]
    for each in found:
        if not each.values:
            lines.append(f"{each.bar.what:<44} {'not counted':>13}")
            continue
        median = statistics.median(each.values)
        numbers = [f"{number:8.2f}" for number in (min(each.values), median, max(each.values))]
        compared = f"{'–':>8} {'–':>6}"
        if each.before:
            # Of each pair: both ran in the same minute.
            ratio = statistics.median(now / old for now, old in zip(each.values, each.before))
            compared = f"{statistics.median(each.before):8.2f} {ratio:6.2f}"
        bars = " ".join(f"{'–' if bar is None else f'{bar:g}':>6}"
                        for bar in (each.bar.bar, each.bar.aim))
        lines.append(f"{each.bar.what:<44} {bars} {' '.join(numbers)} {compared}"
                     f"  {each.bar.unit:<3} {each.bar.met(median) if judged else ''}".rstrip())
    return lines
