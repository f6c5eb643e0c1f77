"""What the benchmarks compute: fits of growth, parts of processor time, bars met or missed."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from benchmarks import processor
from benchmarks.speed import floor, growth, parts, performance
from benchmarks.speed.performance import Bar, Measured
from benchmarks.speed.scenario import Timing
from benchmarks.speed.sampled import sitecustomize
from lab import registry
from lab.core.scenario import scenario_file
from lab.core.run.kinds import NOTHING

SIZES = [100, 1000, 10_000, 100_000]


@pytest.mark.parametrize("power", [0.5, 1.0, 1.3, 2.0])
def test_the_exponent_of_a_power_law_is_found(power: float) -> None:
    assert growth.exponent(SIZES, [3 * size ** power for size in SIZES]) == pytest.approx(power)
    with_start = [1e5 + 3 * size ** power for size in SIZES]
    assert growth.exponent(SIZES, with_start) < power - 0.05
    assert growth.exponent_beyond_start(SIZES, with_start) == pytest.approx(power)


def test_what_has_no_exponent_is_no_number() -> None:
    assert math.isnan(growth.exponent([100], [1.0]))
    assert math.isnan(growth.exponent(SIZES, [0.0, 1.0, 2.0, 3.0]))
    assert math.isnan(growth.exponent_beyond_start(SIZES, [5.0, 5.0, 5.0, 5.0]))


def test_the_scenario_of_growth_has_the_trials_that_were_asked(tmp_path: Path) -> None:
    for trials in (2, 100, 10_000):
        path = growth.scenario_of(trials, tmp_path)
        study = registry.study_of(scenario_file.find(str(path)), NOTHING, 1)
        assert len(study.trials) == trials and study.whole


def test_growth_is_shown_for_each_sort() -> None:
    points = [growth.Point(what, size, Timing(wall_s=size / 100 + 1, main_mb=50.0, work_mb=size / 10))
              for what in ("measure", "list") for size in SIZES]
    lines = growth.table(points)
    assert len(lines) == 1 + 2 * (len(SIZES) + 1)
    assert lines[-1].strip() == ("time beyond the start ∝ N^1.00, with it ∝ N^0.91,"
                                 " memory ∝ N^0.00, disk ∝ N^1.00")


@pytest.mark.parametrize("value, more, word", [
    (1.9, False, "aim"), (2.5, False, "met"), (3.0, False, "met"), (3.1, False, "missed"),
    (301, True, "aim"), (250, True, "met"), (199, True, "missed")])
def test_a_bar_is_met_or_missed(value: float, more: bool, word: str) -> None:
    bar = Bar("x", "", 200, 300, more=True) if more else Bar("x", "s", 3, 2)
    assert bar.met(value) == word
    assert Bar("x", "s").met(value) == ""


def test_the_table_has_the_median_and_the_ratio_of_pairs() -> None:
    # A machine that was twice as slow in the second pair leaves the ratio as it is.
    found = [Measured(Bar("one", "s", 3, 2), [1.0, 4.0, 2.0], [2.0, 8.0, 4.0]),
             Measured(Bar("two", "s"), [])]
    head, one, two = performance.table(found, judged=True)
    assert head.split() == ["bar", "aim", "least", "median", "most", "before", "ratio"]
    assert one.split() == ["one", "3", "2", "1.00", "2.00", "4.00", "4.00", "0.50", "s", "aim"]
    assert two.split() == ["two", "not", "counted"]
    assert performance.table(found, judged=False)[1].split()[-1] == "s"


def test_the_parts_add_up_to_the_control_group() -> None:
    group = processor.Group(Path("/"), Path("/"), 0.001)  # a counter of nanoseconds
    samples = "start 0.9\ncounter 200000000 \njudge 0.5\ndraw 0.25\njudge 0.25\n"
    found = parts.divided(5.2, samples, {"client": 30, "boot": 10}, group.seconds)
    assert found == pytest.approx({"check": 0.2, "boot": 1.0, "client": 3.0, "judge": 0.75,
                                   "draw": 0.25})
    assert list(found) == [part for part in parts.PARTS if part in found]
    undivided = parts.divided(5.2, samples, {}, group.seconds)
    assert undivided["guest"] == pytest.approx(4.0)
    second = processor.Group(Path("/"), Path("/"), 1.0)
    assert second.seconds("usage_usec 1500000\nuser_usec 7\n") == 1.5


def test_a_guest_is_divided_by_the_name_of_what_runs(tmp_path: Path) -> None:
    """Its memory is a file here: a pointer to the task that runs, and the name in it."""
    memory = tmp_path / "memory"
    memory.write_bytes(bytes(256))
    guest = parts.Guest(os.open(memory, os.O_RDWR), running=8, comm=5)
    os.pwrite(guest.memory, (100).to_bytes(8, "little"), 8)
    for name in ("swapper/0", "python3", "network", "server", "ifconfig", "worker", "curl",
                 "server", "tc", "taps", "swapper/0", "kworker/u4:0", "sh"):
        os.pwrite(guest.memory, name.encode() + b"\0", 105)
        assert guest.look()
    assert guest.samples == {"boot": 2, "network": 3, "worker": 1, "client": 1, "server": 1,
                             "shape": 1, "taps": 1, "packets": 2, "other": 1}
    memory.write_bytes(b"")
    assert not guest.look(), "its memory is gone"
    os.close(guest.memory)


@pytest.mark.parametrize("has_nm", [True, False])
def test_a_kernel_without_symbols_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                          has_nm: bool) -> None:
    (tmp_path / "linux").write_bytes(b"\x7fELF")
    if not has_nm:
        monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(parts.CannotError, match="has no symbols"):
        parts.symbols(tmp_path / "linux")


@pytest.mark.parametrize("stack, part", [
    ([("numpy/core.py", "dot"), ("lab/fetches/verify/verify.py", "check"), ("lab/fetches/study.py", "judge"),
      ("lab/core/run/measuring.py", "measure")], "judge"),
    ([("engines/uml.py", "run"), ("lab/core/run/measuring.py", "measure")], "engine"),
    ([("lab/core/stats.py", "mean"), ("lab/fetches/study.py", "report")], "tell"),
    ([("drawing/style.py", "save"), ("experiment.py", "draw")], "draw"),
    ([("x.py", "<module>"), ("<frozen importlib._bootstrap>", "_load"),
      ("experiment.py", "draw")], "start"),
    ([("lab/core/results/record_file.py", "append"), ("lab/core/run/measuring.py", "measure")], "record"),
    ([("experiment.py", "main")], "start")])
def test_a_stack_belongs_to_a_part(stack: list[tuple[str, str]], part: str) -> None:
    ours = [(f"{sitecustomize.PROJECT}/{file}" if not file.startswith("<") else file, function)
            for file, function in stack]
    assert sitecustomize.part_of(ours) == part
    assert part in parts.PARTS


def test_the_simulators_times_are_compared_cell_by_cell() -> None:
    ours = {(20.0, 56.0, 3): 100.0, (20.0, 56.0, 10): 200.0, (50.0, 56.0, 3): 300.0}
    theirs = {(20.0, 56.0, 3): 101.0, (20.0, 56.0, 10): 180.0, (50.0, 56.0, 3): 300.0}
    assert performance.difference(ours, theirs) == (
        "3 cells, ns-3's times against ours: median +0.00 %, 2 within 2 %, least -10.0 %,"
        " most +1.0 %")


STRACE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
  0.00    0.000000           0        79           mmap
 12.00    0.000001           0        60         2 close
------ ----------- ----------- --------- --------- ----------------
100.00    0.000001           0       139         2 total
"""


def test_system_calls_are_read_as_strace_counts_them() -> None:
    assert floor.calls_in(STRACE) == {"mmap": 79, "close": 60}


def test_the_floor_is_counts_times_costs() -> None:
    costs = {"call": 5.0, "fault": 10.0, "trip": 30.0, "clock": 9.0, "program": 9.0}
    counts = {"system calls": 100.0, "page faults": 20.0, "switches in the guest": 40.0}
    assert floor.floor_ms(counts, costs) == pytest.approx(0.5 + 0.2 + 40 * 0.005)
    assert floor.floor_ms(counts, {**costs, "trip": 10.0}) == pytest.approx(0.7)
