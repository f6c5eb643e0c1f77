"""The paper's own arithmetic: by hand, from paper/*.csv, and with numbers that were changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engines.job import Observation
from experiment import main
from lab.arithmetic import findings
from lab.arithmetic.analysis import Bounded, means_of, sums_of
from lab.arithmetic.scenario import Arithmetic, PublishedPanel, read
from lab.core.errors import UsageError
from lab.core.run.kinds import Overrides
from lab.core.scenario import scenario_file
from lab.core.scenario.published import PublishedBucket
from lab.registry import stored_report, study_of

NAME = "paper_arithmetic"


@pytest.fixture(name="paper")
def fixture_paper() -> Arithmetic:
    return read(scenario_file.find(NAME))


def panel_of(paper: Arithmetic, name: str) -> PublishedPanel:
    return next(panel for panel in paper.panels if panel.name == name)


def test_a_bucket_by_hand() -> None:
    """10 ms are 5 % of 200 ms; 10.013 / 4.993 % and 9.987 / 5.007 % are the ends."""
    means = means_of(PublishedBucket("20", 25.0, 10.0, 5.0))
    assert means.baseline.value == pytest.approx(200)
    assert means.experiment.value == pytest.approx(190)
    assert means.baseline.high == pytest.approx(10.013 / 0.04993)
    assert means.baseline.low == pytest.approx(9.987 / 0.05007)
    assert means.experiment.high == pytest.approx(10.013 / 0.04993 - 10.013)
    assert means.experiment.low == pytest.approx(9.987 / 0.05007 - 9.987)
    assert (means.share.low, means.share.high) == pytest.approx((0.24995, 0.25005))


@pytest.mark.parametrize(("ends", "meets"), [
    ((1.0, 2.0), False), ((1.0, 3.0), True), ((3.5, 3.6), True), ((4.0, 9.0), True),
    ((4.1, 9.0), False)])
def test_numbers_meet_where_their_ends_overlap(ends: tuple[float, float], meets: bool) -> None:
    one, other = Bounded(3.5, 3.0, 4.0), Bounded(sum(ends) / 2, *ends)
    assert one.meets(other) is meets and other.meets(one) is meets


def test_a_changed_share_is_seen(paper: Arithmetic) -> None:
    panel = panel_of(paper, "bdp")
    first, *others = panel.buckets
    assert first.responses_percent is not None
    changed = replace(panel, buckets=(
        replace(first, responses_percent=first.responses_percent + 1), *others))
    assert not sums_of(changed).baseline_agrees


def test_where_all_panels_add_up_nothing_else_follows(paper: Arithmetic) -> None:
    """What the paper's own come to is in golden/rendered/arithmetic.txt."""
    only = replace(paper, panels=(panel_of(paper, "bdp"),))
    assert findings.findings(only)[0].statements[2].found == (
        "The buckets add up to the printed means with both windows: 1 of 1 panels.")


def test_a_run_needs_no_engine_and_can_be_told_again(tmp_path: Path) -> None:
    assert main([NAME, "--engine", "host", "--results", str(tmp_path), "--figures",
                 str(tmp_path)]) == 0
    report = stored_report(tmp_path / NAME / "latest")
    assert report.count == 0 and not report.provenance == ()
    assert not any(fact.name == "kernel under test" for fact in report.provenance)
    assert (tmp_path / f"{NAME}_sums.png").stat().st_size > 10_000
    page = (tmp_path / NAME / "latest" / "report.html").read_text(encoding="utf-8")
    assert "trials verified" not in page and "560.1" in page


def test_a_dry_run_says_that_there_is_nothing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([NAME, "--dry-run"]) == 0
    assert f"{NAME}: 0 trials" in capsys.readouterr().out


def test_it_can_be_checked_like_any_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", NAME]) == 0
    assert "0 trials, about 0 s" in capsys.readouterr().out


def test_flags_of_a_network_are_refused() -> None:
    """Each by its own name, as it was given; where none is, nothing is refused."""
    for flag, overrides in {
            "--rtt": Overrides({"rtt_ms": [20.0]}), "--repeat": Overrides({}, repeat=0),
            "--client": Overrides({}, client="wget"), "--sample": Overrides({}, sample="full"),
            "--sysctl": Overrides({}, sysctls=["a=1"]),
            "--server-command": Overrides({}, own_server={"command": "x"})}.items():
        with pytest.raises(UsageError, match=f": {flag}: it computes with published numbers"):
            study_of(scenario_file.find(NAME), overrides)
    study = study_of(scenario_file.find(NAME), Overrides({}))
    assert study.kind.guest_s(None) == study.kind.network_s(None) == 0.0
    with pytest.raises(NotImplementedError, match="no trials"):
        study.kind.judge(None, Observation("", {}), True, {})


@pytest.mark.parametrize(("old", "new", "message"), [
    ('data_center = "AvgDC"', 'data_center = "Avg"', "data_center: unknown 'Avg'"),
    ('panel = "RTT"', 'panel = "rtt"', "has no panel 'rtt'"),
    ('"paper_means.csv"', '"paper_figure5.csv"', "has no column data_center"),
    ('"paper_means.csv"', '"../README.md"', "published numbers"),
    ("experiment_initcwnd = 10", "experiment_initcwnd = 0", "out of range"),
    ("paper_figure7.csv", "paper_figure2.csv", "has to have a share"),
    ("paper_figure7.csv", 'paper_tables.csv"\npanel = "table3_avgdc', "mean .* have a share"),
])
def test_a_wrong_file_is_one_line(old: str, new: str, message: str) -> None:
    text = scenario_file.find(NAME).text
    assert old in text
    with pytest.raises(UsageError, match=message):
        read(scenario_file.parsed(NAME, text.replace(old, new, 1)))


def test_without_panels_there_is_nothing_to_add_up() -> None:
    text = scenario_file.find(NAME).text.partition("[[panel]]")[0]
    with pytest.raises(UsageError, match=r"has no \[\[panel\]\]"):
        read(scenario_file.parsed(NAME, text))
