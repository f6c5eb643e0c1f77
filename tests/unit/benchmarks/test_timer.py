"""What the timer computes: the table of a command, and ns-3's times against ours."""

from __future__ import annotations

from pathlib import Path

from benchmarks import processor, timer
from benchmarks.timer import Timing


def test_the_table_has_the_median_and_the_ratio_of_pairs() -> None:
    # A machine that was twice as slow in the second pair leaves the ratio as it is.
    ours = [Timing(1.0, None, 100), Timing(4.0, None, 200), Timing(2.0, None, 100)]
    before = [Timing(2.0, None, 100), Timing(8.0, None, 200), Timing(4.0, None, 100)]
    head, wall, emulated = map(str.split, timer.table(ours, before, "before"))
    assert head == ["least", "median", "most", "before", "ratio"]
    assert wall == ["wall", "time,", "s", "1.00", "2.00", "4.00", "4.00", "0.50"]
    assert emulated[-5:] == ["50.00", "50.00", "100.00", "25.00", "2.00"]
    head, wall, *_ = map(str.split, timer.table(ours, [], ""))
    assert head == ["least", "median", "most"] and wall[-1] == "4.00"


def test_processor_time_is_read_as_both_kinds_of_control_groups_count_it() -> None:
    assert processor.Group(Path("/"), Path("/"), 0.001).seconds("200000000 ") == 0.2
    second = processor.Group(Path("/"), Path("/"), 1.0)
    assert second.seconds("usage_usec 1500000\nuser_usec 7\n") == 1.5


def test_the_simulators_times_are_compared_cell_by_cell() -> None:
    ours = {(20.0, 56.0, 3): 100.0, (20.0, 56.0, 10): 200.0, (50.0, 56.0, 3): 300.0}
    theirs = {(20.0, 56.0, 3): 101.0, (20.0, 56.0, 10): 180.0, (50.0, 56.0, 3): 300.0}
    assert timer.difference(ours, theirs) == (
        "3 cells, ns-3's times against ours: median +0.00 %, 2 within 2 %, least -10.0 %,"
        " most +1.0 %")
