"""Loads two pages in Chromium on a stock kernel in QEMU, and in the guest in virtual time.

    benchmarks/outside/stock_kernel.sh browser_stock [--loads N]

The same worker loads them: Mininet's star, netem, nginx, Chromium. In QEMU it is the host engine,
by KVM and in real time, where computing counts. So a page takes longer there; what has to agree is
how much earlier it is under one window than under another one, by the medians of some loads. The
cells are CELLS, which were named before they were measured. Exit status: 0 where each difference
agrees within 10 % or 5 ms, else 1.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import command
from benchmarks.outside.stock_kernel import DEADLINE_S, EXCHANGE, qemu_command
from firstflight.base import PROJECT
from firstflight.base.argument_types import positive_number
from firstflight.base.errors import FAILED, CannotError, FirstFlightError
from firstflight.base.parser import Parser
from firstflight.base.terminal import say
from firstflight.runs import scenario_file
from firstflight.testbed import site_store
from firstflight.testbed.engine import HostEngine
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.messages import CHROMIUM, Job, ObservedTrial
from firstflight.workloads.page.scenario import TABLES
from firstflight.workloads.page.trial import PageTrial
from vtime.console import EngineError
from vtime.uml import built_kernel

# Sweep of browser2026 (4G), page, version of HTTP, first window, second window.
CELLS = tuple((f"mobile_{page}", page, http, *windows) for page in ("text", "hosts")
              for http in ("1.1", "2") for windows in ((3, 10), (10, 32)))
SITES = "sites.json"
# As many processors as this machine lends it, and memory for Chromium.
KVM = ("-accel", "kvm", "-cpu", "host,-arch-capabilities", "-smp", "2", "-m", "3072")
SAME_PERCENT, SAME_MS = 10.0, 5.0
HEAD = (f"{'page':6} {'HTTP':4} {'windows':>8} │ {'guest: load, ms':^21} {'earlier':>8} │"
        f" {'stock: load, ms':^21} {'earlier':>8} {'spread':>8} │ agrees")


def trials_of(loads: int) -> list[PageTrial]:
    """The trials of all cells, each so many times; one after another, so that all meet the same."""
    scenario = TABLES.read(scenario_file.find("browser2026"))
    wanted = {(sweep, http, window) for sweep, _, http, *windows in CELLS for window in windows}
    every = [trial for sweep in scenario.sweeps
             for repeat in range(1, 1 + loads)
             for trial in sweep_trials(sweep, repeat)
             if (trial.part, trial.http, trial.initcwnd) in wanted]
    return sorted(every, key=lambda trial: trial.repeat)


def sweep_trials(sweep: Any, repeat: int) -> Iterator[PageTrial]:
    """The trials of a sweep in a browser, as its load of that number."""
    for trial in sweep.trials("browser2026", 1):
        if trial.client == CHROMIUM:
            yield replace(trial, repeat=repeat)


# In QEMU ------------------------------------------------------------------------------

def inside() -> None:
    """Run the host engine, and append each load's time to a file. The stock kernel's init calls it.
    """
    trials: list[Job] = json.loads((EXCHANGE / "trials.json").read_text())
    engine = HostEngine(sites={name: EXCHANGE / name for name in json.loads(
        (EXCHANGE / SITES).read_text())})
    try:
        for observation in engine.run(trials, {}, Path("/run/work")):
            with (EXCHANGE / "loads.jsonl").open("a") as file:
                file.write(f"{json.dumps([observation.trial_id, *load_of(observation)])}\n")
    except EngineError as error:
        print(f"the host engine: {error}")


def load_of(observation: ObservedTrial) -> tuple[float | None, str]:
    """When a load's event fired, in ms, and how many requests it had, or why there is none."""
    content = observation.content
    if "load" not in content:
        return None, str(content.get("error") or content.get("skipped"))
    return content["load"]["load_ms"], f"{len(content['load']['requests'])} requests"


def on_stock_kernel(arguments: argparse.Namespace, trials: Sequence[PageTrial], folder: Path
                    ) -> list[tuple[str, float | None, str]]:
    """Boot the stock kernel, and load the pages there; names, times and words of the loads."""
    sites = {site_store.file_name(trial.site): site_store.place_of(trial.site) for trial in trials}
    for name, place in sites.items():
        (folder / name).write_bytes(place.read_bytes())
    (folder / SITES).write_text(json.dumps([*sites]))
    (folder / "trials.json").write_text(json.dumps([trial.job() for trial in trials]))
    (folder / "start").write_text(f"cd {shlex.quote(str(PROJECT))} && /usr/bin/python3 -m"
                                  " benchmarks.outside.browser_stock --inside\n")
    with (folder / "console.log").open("wb") as console:
        subprocess.run(qemu_command(arguments, folder, KVM), stdin=subprocess.DEVNULL,
                       stdout=console, stderr=subprocess.STDOUT, timeout=DEADLINE_S, check=False)
    place = folder / "loads.jsonl"
    if not place.exists():
        words = (folder / "console.log").read_text(errors="replace").strip().splitlines()
        raise FirstFlightError(f"the stock kernel loaded nothing: {' | '.join(words[-8:])}")
    loads: list[tuple[str, float | None, str]] = []
    for line in place.read_text().splitlines():
        name, load_ms, said = json.loads(line)
        loads.append((name, load_ms, said))
    return loads


# Side by side -------------------------------------------------------------------------

def times_of(trials: Sequence[PageTrial], loads: Sequence[tuple[str, float | None, str]]
             ) -> Mapping[tuple[str, str, int], list[float]]:
    """The times of the loads in ms, by sweep, version of HTTP and window."""
    cells = {trial.id: (trial.part, trial.http, trial.initcwnd) for trial in trials}
    times: dict[tuple[str, str, int], list[float]] = {cell: [] for cell in cells.values()}
    for name, load_ms, words in loads:
        if load_ms is None:
            say(f"{name}: {words}")
        else:
            times[cells[name]].append(load_ms)
    return times


def compare(mine: Mapping[tuple[str, str, int], Sequence[float]],
            other: Mapping[tuple[str, str, int], Sequence[float]]) -> int:
    """Print a line for each cell; how many do not agree."""
    print(HEAD)
    wrong = 0
    for sweep, page, http, first, second in CELLS:
        ends = [[side[sweep, http, window] for window in (first, second)]
                for side in (mine, other)]
        if not all(all(end) for end in ends):
            print(f"{page:6} {http:4} {first:>3} → {second:<2} │ not measured")
            wrong += 1
            continue
        (base, faster), (stock_base, stock_faster) = [[median(times) for times in end]
                                                      for end in ends]
        saved, stock_saved = base - faster, stock_base - stock_faster
        agrees = abs(stock_saved - saved) <= max(SAME_MS, abs(saved) * SAME_PERCENT / 100)
        spread = max(max(times) - min(times) for times in ends[1])
        wrong += not agrees
        print(f"{page:6} {http:4} {first:>3} → {second:<2} │ {base:9.1f} → {faster:9.1f}"
              f" {saved:8.1f} │ {stock_base:9.1f} → {stock_faster:9.1f} {stock_saved:8.1f}"
              f" {spread:8.1f} │ {'yes' if agrees else 'no'}")
    return wrong


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="browser_stock", description="Chromium on a stock kernel.")
    parser.add_argument("--loads", type=positive_number, default=10, metavar="N")
    parser.add_argument("--kernel", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--initrd", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(words)
    if arguments.inside:
        inside()
        return 0
    if arguments.kernel is None or arguments.initrd is None:
        parser.error("start benchmarks/outside/stock_kernel.sh, which brings the stock kernel")
    if not Path("/dev/kvm").exists():
        raise CannotError("no /dev/kvm: without KVM Chromium computes too long in QEMU")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "exchange").mkdir()
        once = trials_of(1)
        guest = [(one.trial_id, *load_of(one)) for one in UmlEngine(built_kernel(), 1).run(
            [trial.job() for trial in once], {}, folder)]
        trials = trials_of(arguments.loads)
        say(f"stock kernel: {len(trials)} loads in QEMU")
        stock = on_stock_kernel(arguments, trials, folder / "exchange")
        wrong = compare(times_of(once, guest), times_of(trials, stock))
    print(f"{len(CELLS) - wrong} of {len(CELLS)} differences agree within {SAME_PERCENT:g} % or"
          f" {SAME_MS:g} ms; stock: medians of {arguments.loads} loads")
    return FAILED if wrong else 0


if __name__ == "__main__":
    command.run("browser_stock", main)
