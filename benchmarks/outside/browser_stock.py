"""Loads two pages in Chromium on a stock kernel in QEMU, and in the guest in virtual time.

    benchmarks/outside/stock_kernel.sh browser_stock [--loads N] [--per-ns N]

The same worker loads them on both sides, with Mininet's star, netem, nginx and Chromium. In QEMU
the host engine runs it, on a clock that counts instructions (stock_kernel.py): waiting takes no
wall time, and computing takes time of the clock. The kernel believes that its processor counts
16 GHz (tsc_early_khz), so 16 instructions take a nanosecond. The emulated timers do not follow
that: they ring early, and the kernel sets them again for the rest. The processor's own timer is
off, since measuring it would take minutes (nolapic_timer).

So a page takes longer in QEMU. What has to agree is how much earlier it is there under one window
than under another one, by the medians of some loads. CELLS were chosen before they were measured.
In the table “event” is the load event, by which a cell is judged, and “last” is the end of the last
response before it. Exit status: 0 where each difference of the load event agrees within 10 % or
5 ms, else 1.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks import command
from benchmarks.outside.stock_kernel import EXCHANGE, qemu_command
from firstflight.base import PROJECT
from firstflight.base.argument_types import positive_number
from firstflight.base.errors import FAILED, CannotError
from firstflight.base.parser import Parser
from firstflight.base.terminal import say
from firstflight.runs import scenario_file
from firstflight.testbed import site_store
from firstflight.testbed.engine import HostEngine
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.hosts.browser.client import MISSING, PROGRAM
from firstflight.testbed.hosts.browser.frames import drawn_phase_ms
from firstflight.testbed.messages import CHROMIUM, Job, ObservedTrial
from firstflight.workloads.page.scenario import TABLES
from firstflight.workloads.page.trial import PageTrial
from vtime.console import EngineError
from vtime.uml import built_kernel

# Sweep of browser2026 (4G), page, version of HTTP, first window, second window.
CELLS = tuple((f"mobile_{page}", page, http, *windows) for page in ("text", "hosts")
              for http in ("1.1", "2") for windows in ((3, 10), (10, 32)))
SITES, LOADS = "sites.json", "loads.jsonl"
MEMORY_MB = 3072
DEADLINE_S = 7200.0  # of wall time, for the boot and all loads
# While QEMU waits for this machine's disk, its clock skips idle time. So the files that a load
# opens are in the memory of the emulated machine: touch has the overlay copy them there.
START = """find /usr/lib/chromium /usr/share/fonts /etc/fonts /var/cache/fontconfig -type f \
    ! -name chromium -exec touch -c {{}} +
cd {project} && /usr/bin/python3 -m benchmarks.outside.browser_stock --inside
"""
SAME_PERCENT, SAME_MS = 10.0, 5.0  # two differences agree within either
HEAD = (f"{'':6} {'':4} {'':>8} │ {'guest: event, ms':^19} │ {'stock: event, ms':^28} │"
        f" {'earlier: event, ms':^26} │ {'earlier: last, ms':^17}\n"
        f"{'page':6} {'HTTP':4} {'windows':>8} │ {'':19} │ {'':19} {'spread':>8} │"
        f" {'guest':>8} {'stock':>8} {'agrees':>8} │ {'guest':>8} {'stock':>8}")


@dataclass(frozen=True)
class Times:
    """The times of one load, in ms since its document was requested."""

    event_ms: float  # the load event
    last_ms: float  # the end of the last response before the load event


Cell = tuple[str, str, int]  # a sweep, a version of HTTP, a window


def trials_of(loads: int) -> list[PageTrial]:
    """The trials of all cells, each as often as `loads` says.

    Each cell is loaded once before any is loaded again, so that all meet the same machine.
    """
    scenario = TABLES.read(scenario_file.find("browser2026"))
    wanted = {(sweep, http, window) for sweep, _, http, *windows in CELLS for window in windows}
    once = [trial for sweep in scenario.sweeps for trial in sweep.trials("browser2026", 1)
            if trial.client == CHROMIUM and cell_of(trial) in wanted]
    # Repeats begin at 2: the first repeat is filmed, which takes the processor a long time.
    return [replace(trial, repeat=repeat, phase_ms=drawn_phase_ms(1, repeat))
            for repeat in range(2, 2 + loads) for trial in once]


def cell_of(trial: PageTrial) -> Cell:
    """The cell of a trial."""
    return trial.part, trial.http, trial.initcwnd


def times_of(trials: Sequence[PageTrial], observations: Iterable[ObservedTrial]
             ) -> dict[Cell, list[Times]]:
    """The times of each cell's loads; prints why a load has no times."""
    cells = {trial.id: cell_of(trial) for trial in trials}
    times: dict[Cell, list[Times]] = {cell: [] for cell in cells.values()}
    for one in observations:
        load = one.content.get("load")
        if load is not None and load["load_ms"] is not None:
            ends = [request["end_ms"] or 0.0 for request in load["requests"]]
            event_ms = load["load_ms"]
            times[cells[one.trial_id]].append(
                Times(event_ms, max(end_ms for end_ms in ends if end_ms <= event_ms)))
        else:
            say(f"{one.trial_id}: {one.content.get('error') or one.content.get('skipped')}")
    return times


# In QEMU ------------------------------------------------------------------------------

def inside() -> None:
    """Run the host engine, and append each observation to a file. The stock kernel's init calls it.
    """
    trials: list[Job] = json.loads((EXCHANGE / "trials.json").read_text())
    engine = HostEngine(sites={name: EXCHANGE / name for name in json.loads(
        (EXCHANGE / SITES).read_text())})
    try:
        for one in engine.run(trials, {}, Path("/run/work")):
            with (EXCHANGE / LOADS).open("a") as file:
                file.write(f"{json.dumps([one.trial_id, one.content])}\n")
    except EngineError as error:
        print(f"the host engine: {error}")


def on_stock_kernel(arguments: argparse.Namespace, trials: Sequence[PageTrial], folder: Path
                    ) -> Iterator[ObservedTrial]:
    """Boot the stock kernel, load the pages there, and yield what was observed, without packets."""
    sites = {site_store.file_name(trial.site): site_store.place_of(trial.site) for trial in trials}
    for name, place in sites.items():
        (folder / name).write_bytes(place.read_bytes())
    (folder / SITES).write_text(json.dumps([*sites]))
    (folder / "trials.json").write_text(json.dumps([trial.job() for trial in trials]))
    (folder / "start").write_text(START.format(project=shlex.quote(str(PROJECT))))
    command_line = qemu_command(arguments, folder, memory_mb=MEMORY_MB, parameters=(
        f"nolapic_timer tsc_early_khz={arguments.per_ns * 1_000_000}"))
    with (folder / "console.log").open("wb") as console, suppress(subprocess.TimeoutExpired):
        subprocess.run(command_line, stdin=subprocess.DEVNULL, stdout=console,
                       stderr=subprocess.STDOUT, timeout=DEADLINE_S, check=False)
    place = folder / LOADS
    lines = place.read_text().splitlines() if place.exists() else []
    if len(lines) < len(trials):
        words = (folder / "console.log").read_text(errors="replace").strip().splitlines()
        say(f"the stock kernel loaded {len(lines)} of {len(trials)}: {' | '.join(words[-8:])}")
    for line in lines:
        name, content = json.loads(line)
        yield ObservedTrial(name, content, b"", b"")


# Side by side -------------------------------------------------------------------------

def medians(loads: Sequence[Times]) -> Times:
    """The median of each time over some loads."""
    return Times(median(load.event_ms for load in loads), median(load.last_ms for load in loads))


def compare(mine: Mapping[Cell, Sequence[Times]], other: Mapping[Cell, Sequence[Times]]) -> int:
    """Print a line for each cell; return how many do not agree."""
    print(HEAD)
    wrong = 0
    for sweep, page, http, *windows in CELLS:
        name = f"{page:6} {http:4} {windows[0]:>3} → {windows[1]:<2}"
        cells = [(sweep, http, window) for window in windows]
        if not all(side[cell] for side in (mine, other) for cell in cells):
            print(f"{name} │ not measured")
            wrong += 1
            continue
        base, faster = (medians(mine[cell]) for cell in cells)
        stock_base, stock_faster = (medians(other[cell]) for cell in cells)
        saved_ms = base.event_ms - faster.event_ms
        stock_saved_ms = stock_base.event_ms - stock_faster.event_ms
        agrees = abs(stock_saved_ms - saved_ms) <= max(SAME_MS, abs(saved_ms) * SAME_PERCENT / 100)
        wrong += not agrees
        spread_ms = max(max(load.event_ms for load in other[cell])
                        - min(load.event_ms for load in other[cell]) for cell in cells)
        print(f"{name} │ {base.event_ms:8.1f} → {faster.event_ms:8.1f} │"
              f" {stock_base.event_ms:8.1f} → {stock_faster.event_ms:8.1f} {spread_ms:8.1f} │"
              f" {saved_ms:8.1f} {stock_saved_ms:8.1f} {'yes' if agrees else 'no':>8} │"
              f" {base.last_ms - faster.last_ms:8.1f}"
              f" {stock_base.last_ms - stock_faster.last_ms:8.1f}")
    return wrong


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="browser_stock", description="Chromium on a stock kernel.")
    parser.add_argument("--loads", type=positive_number, default=3, metavar="N",
                        help="loads of each cell")
    parser.add_argument("--per-ns", type=positive_number, default=16, metavar="N",
                        help="instructions in a nanosecond of the emulated processor")
    parser.add_argument("--kernel", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--initrd", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.inside:
        inside()
        return 0
    if arguments.kernel is None or arguments.initrd is None:
        parser.error("start benchmarks/outside/stock_kernel.sh, which brings the stock kernel")
    trials = trials_of(arguments.loads)
    if not PROGRAM.exists() or any(trial.site == site_store.NOT_INSTALLED for trial in trials):
        raise CannotError(MISSING)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "exchange").mkdir()
        mine = times_of(trials, UmlEngine(built_kernel(), 1).run(
            [trial.job() for trial in trials], {}, folder))
        say(f"stock kernel: {len(trials)} loads in QEMU")
        other = times_of(trials, on_stock_kernel(arguments, trials, folder / "exchange"))
    wrong = compare(mine, other)
    print(f"{len(CELLS) - wrong} of {len(CELLS)} differences agree within {SAME_PERCENT:g} % or"
          f" {SAME_MS:g} ms; medians of {arguments.loads} loads")
    return FAILED if wrong else 0


if __name__ == "__main__":
    command.run("browser_stock", main)
