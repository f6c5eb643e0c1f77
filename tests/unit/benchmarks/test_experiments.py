"""The table of public experiments, and when one of them counts as run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.command import GuestRun
from benchmarks.outside import experiments
from benchmarks.outside.experiments import Experiment, Number, Row


def test_each_of_the_table_has_a_commit_and_what_shows_that_it_ran() -> None:
    table = experiments.experiments(experiments.TABLE.read_text(encoding="utf-8"))
    assert len({each.name for each in table}) == len(table) >= 20
    for each in table:
        assert each.cannot or each.numbers or each.shows, each.name
        assert bool(each.lines) != bool(each.cannot), each.name


@pytest.mark.parametrize(("status", "printed", "written", "sound"), [
    (0, "3 received", "time=1.5 ms time=2.5 ms", True), (1, "3 received", "time=1 ms", False),
    (0, "0 received", "time=1 ms", False), (0, "3 received", "", False)])
def test_what_ended_badly_or_left_no_number_does_not_run(
        status: int, printed: str, written: str, sound: bool, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "ping.txt").write_text(written)
    run = GuestRun(("sh",), status, printed, printed, tmp_path, 10.0, 2.0)
    number = Number("mean RTT, ms", "ping.txt", "theirs.txt")
    (tmp_path / "theirs.txt").write_text("time=3 ms")
    compared = (number.name, experiments.theirs_of(number, tmp_path),
                experiments.ours_of(number, run))
    row = Row(Experiment("one", "a/one", "abc", "pings", numbers=[number], shows="3 rec"), run,
              (compared,))
    assert row.is_sound is sound
    text = experiments.document([row, Row(Experiment(
        "two", "b/two", "abc", "none", cannot="there is none"), None)], 2)
    assert ("**fails**" in text) is not sound and "no: there is none" in text
    if sound:
        assert "| 10 | 2 | mean RTT, ms: 3 → 2 |" in text


def test_no_link_of_a_strangers_repository_leads_out_of_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("time=7 ms")
    (tmp_path / "copy").mkdir()
    for name in ("theirs.txt", "steps.sh"):
        (tmp_path / "copy" / name).symlink_to(tmp_path / "secret")
    monkeypatch.setattr(experiments, "check_out", lambda *_: None)
    monkeypatch.setattr(experiments, "in_guest", lambda *_, **__: GuestRun(
        ("sh",), 0, "", "", None, 10.0, 2.0))
    row = experiments.row_of(Experiment("copy", "a/copy", "abc", "", "true", numbers=[
        Number("RTT", theirs="theirs.txt")]), tmp_path, tmp_path)
    assert row.compared == (("RTT", None, None),)
    assert (tmp_path / "secret").read_text() == "time=7 ms"
    assert (tmp_path / "copy" / "steps.sh").read_text() == "true\n"
