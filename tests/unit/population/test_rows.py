"""Rows of a population: the trials that they make, and what is refused of a table."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

import pytest

from firstflight.base.errors import UsageError
from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.study.fetches.scenario import rows
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND
from tests.unit.core.example import whole

NAME = "dukkipati2010"
ROW = dict(zip(rows.COLUMNS, ("some", 100, 900, 0.5, 0.4, 0.3, 150, 1800, 27, 4, 7, 9000, 400, 300,
                              250)))


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    rows.read.cache_clear()


def trials(folder: Path, *drawn: dict[str, object], overrides: Overrides = NOTHING, seed: int = 1,
           population: str = "") -> Sequence[Trial]:
    """Those of a table. Its population is explained in two steps."""
    if drawn:
        rows.write(rows.path_of("own"), rows.COLUMNS, (row.values() for row in drawn))
    text = f"""# A claim.
title = "t"
source = "s"
[defaults]
congestion_control = "cubic"
client = "libcurl"
queue_packets = 1000
loss_percent = 0
[[population]]
name = "some"
title = "some"
initcwnd = [3, 10]
{population}
[[step]]
name = "clean"
title = "clean"
adds = []
[[step]]
name = "network"
title = "network"
adds = ["rtt_ms", "bandwidth_kbps", "queue_packets", "loss_percent", "seed"]
[[step]]
name = "all"
title = "all"
adds = ["earlier_bytes", "burst_bytes", "gap_ms", "weight", "baseline_weight"]
"""
    return KIND.study(scenario_file.parsed("own", text), overrides, seed).trials


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(rows, "FOLDER", tmp_path)
    return tmp_path


def test_the_trials_are_those_of_commit_c688d26e() -> None:
    """Which drew them for each run: ids, and all parameters that are not their default."""
    usual = {column.name: column.default for column in fields(Trial)}
    digest = hashlib.sha256()
    for trial in whole(NAME).trials:
        said = [(name, getattr(trial, name)) for name in sorted(usual)
                if getattr(trial, name) != usual[name]]
        digest.update(f"{trial.id} {said}\n".encode())
    assert len(whole(NAME).trials) == 31_780
    assert digest.hexdigest() == "2919441587c89eca39d51461b029c28529bef8a11c8269ec40d444ac2d745a9e"


def test_windows_of_one_response_differ_in_nothing_else_but_the_weeks() -> None:
    panel = [trial for trial in whole(NAME).trials if trial.part == "avgdc"]
    assert len(panel) == 2 * 5400
    for three, ten in zip(panel[::2], panel[1::2]):
        assert (three.initcwnd, ten.initcwnd) == (3, 10)
        assert replace(three, initcwnd=10, weight=ten.weight) == ten
    for week in (panel[::2], panel[1::2]):
        assert sum(trial.weight for trial in week) == pytest.approx(1)
    far = sum(trial.weight for trial in panel[1::2] if (trial.key_rtt_ms or 0) > 3000)
    assert far == pytest.approx(0.0008, abs=1e-5)  # Figure 5: 0.08 % above 3 s


def test_a_row_is_what_its_trials_have(folder: Path) -> None:
    three, ten = trials(folder, ROW)
    assert (three.id, ten.id) == ("some-0-iw3-1", "some-0-iw10-1")
    assert (three.weight, ten.weight) == (0.4, 0.5)
    for name in set(ROW) - {"weight", "baseline_weight", "step_weight"}:
        assert getattr(ten, name) == ROW[name]
    assert ten.uplink_kbps == 1800


def test_causes_are_added_to_a_response_of_its_own_one_at_a_time(folder: Path) -> None:
    other = {**ROW, "step_weight": 0}  # the steps do not measure it
    same = {**ROW, "rtt_ms": 100, "bandwidth_kbps": 900, "queue_packets": 1000, "loss_percent": 0,
            "seed": 0}  # the second step changes nothing of it
    made = trials(folder, ROW, other, same, population="explained = true")
    assert [trial.id for trial in made[6:]] == [f"some-{step}-iw{window}-1" for step in (
        "clean-0", "clean-2", "network-0") for window in (3, 10)]
    clean, network = made[6], made[-1]
    assert (clean.rtt_ms, clean.bandwidth_kbps, clean.uplink_kbps, clean.queue_packets) == (
        100, 900, 900, 1000)
    assert (clean.loss_percent, clean.seed, clean.earlier_bytes, clean.burst_bytes, clean.gap_ms,
            clean.weight) == (0, 0, 0, 0, 0, 0.3)
    assert (network.rtt_ms, network.queue_packets, network.seed, network.gap_ms,
            network.weight) == (150, 27, 7, 0, 0.3)


def test_another_seed_and_the_large_sample_have_rows_of_their_own(folder: Path) -> None:
    trials(folder, ROW)
    for flags, overrides, seed in (("--seed 2", NOTHING, 2), ("--full", Overrides(
            {}, sample="full", many=True), 1), ("--full --seed 2", Overrides(
                {}, sample="full", many=True), 2)):
        with pytest.raises(UsageError, match=f"^own: its rows are not drawn: /usr/bin/python3 -m"
                                             f" paper.draw own {flags} draws them$"):
            trials(folder, overrides=overrides, seed=seed)
        rows.write(rows.path_of("own", bool(overrides.sample), seed), rows.COLUMNS,
                   [{**ROW, "rtt_ms": 200 + len(flags)}.values()])
        assert {trial.rtt_ms for trial in trials(folder, overrides=overrides, seed=seed)} == {
            200 + len(flags)}
    assert {trial.rtt_ms for trial in trials(folder)} == {150}


@pytest.mark.parametrize(("change", "words"), [
    ({"gap_ms": 10**9}, "row 2: a pause of .* out of range"),
    ({"bandwidth_kbps": 0.5}, "row 2: a bandwidth of .* out of range"),
    ({"rtt_ms": "nan"}, "row 2: nan"), ({"seed": "x"}, "row 2: invalid literal"),
    ({"weight": ""}, "row 2: could not convert"), ({"part": "other"}, "")])
def test_a_row_that_no_network_is_is_named(folder: Path, change: dict[str, object], words: str
                                           ) -> None:
    if not words:
        assert len(trials(folder, ROW, {**ROW, **change})) == 2
        rows.read.cache_clear()
        with pytest.raises(UsageError, match="own.csv.xz: has no row of population 'some'"):
            trials(folder, {**ROW, **change})
    else:
        with pytest.raises(UsageError, match=f"^scenarios/populations/own.csv.xz: {words}"):
            trials(folder, ROW, {**ROW, **change})


@pytest.mark.parametrize(("content", "words"), [
    (b"no xz", "cannot be read"), (lzma.compress(b"part,rtt_ms\n"), "its columns have to be part,"),
    (lzma.compress(b"part,rtt_ms\nx\n"), "different numbers of cells"),
    (lzma.compress(b""), "different numbers"),
    (lzma.compress(b"\xff"), "cannot be read"), (lzma.compress(b"x" * 100)[:-20], "cut off")])
def test_a_damaged_table_is_named(folder: Path, content: bytes, words: str) -> None:
    rows.path_of("own").write_bytes(content)
    with pytest.raises(UsageError, match=f"^scenarios/populations/own.csv.xz: .*{words}"):
        trials(folder)
