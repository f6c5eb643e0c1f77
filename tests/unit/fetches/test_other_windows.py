"""Runs under other windows than a scenario's: its figures are of those that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from unittest.mock import patch

import pytest

from firstflight.findings.render import text
from firstflight.runs import scenario_file
from firstflight.study.fetches.answer import answer_of_cells
from firstflight.study.fetches.figures import kinds
from firstflight.study.fetches.figures.cells import CellSetting, changes
from firstflight.study.fetches.scenario import rows
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.record import Record
from tests.golden import stored_fetches
from tests.golden.stored_questions import FOLDER, took


def under(records: Sequence[Record], windows: Mapping[int, int]) -> list[Record]:
    """The records of some windows, each as if it were measured under another one."""
    return [replace(record, trial=replace(record.trial, initcwnd=windows[record.trial.initcwnd]))
            for record in records if record.trial.initcwnd in windows]


def test_two_other_windows_draw_the_figures_without_published_values() -> None:
    records = under(stored_fetches.stored("zhao2019"), {3: 3, 10: 16})
    report = stored_fetches.report("zhao2019", records, whole=False, partial=True)
    drawn = [finding for finding in report.findings if finding.chart is not None]
    assert [finding.name for finding in drawn] == ["fig5_rtt_3_16", "fig5_bw_3_16",
                                                   "fig5_bdp_3_16"]
    assert drawn[0].chart is not None and drawn[0].chart.title.endswith(": 3 → 16 segments")
    assert not any(sum(finding.bars.values()) or finding.published for finding in drawn)
    said = text.brief(report)
    assert "fig5_rtt_3_16  3 → 16   6.8 to 4975 ms" in said
    assert "published" not in said and "reproduced" not in said


def test_the_published_windows_keep_what_was_published_beside_a_third() -> None:
    stored = stored_fetches.stored("zhao2019")
    records = [*stored, *under(stored, {10: 16})]
    report = stored_fetches.report("zhao2019", records)
    bars = {finding.name: sum(finding.bars.values()) for finding in report.findings
            if finding.chart is not None}
    assert bars == {"fig5_rtt": 8, "fig5_bw": 8, "fig5_bdp": 6,
                    "fig5_rtt_3_16": 0, "fig5_bw_3_16": 0, "fig5_bdp_3_16": 0}


def test_a_population_is_compared_under_the_windows_that_were_measured() -> None:
    with patch.object(rows, "FOLDER", FOLDER.parent / "populations"):
        study = KIND.study(scenario_file.read(FOLDER / "population.toml"))
        scenario, stored = study.scenario, [took(trial) for trial in study.trials]
    records = under(stored, {3: 3, 10: 16})
    changed = kinds.under_measured_windows(scenario, records, is_whole=False)
    panels, missing = kinds.panels(changed, records, is_whole=False)
    assert {*missing} == {"size_3_16"}  # no response is as large
    assert [bucket.label for bucket in panels["windows"].bars] == ["3", "16"]
    of_own = kinds.panels(scenario, stored)[0]["rtt"]
    bars = panels["rtt_3_16"].bars
    assert [bucket.difference.absolute.value for bucket in bars] == [
        bucket.difference.absolute.value for bucket in of_own.bars]
    assert not any(bucket.published.absolute for bucket in bars)
    assert any(bucket.published.absolute for bucket in of_own.bars)


@pytest.mark.parametrize("windows, names, titles", [
    ((3, 32), ["iw10_3_32"], ["What IW 32 saves against IW 3 by response size, DC 1"]),
    ((3, 10, 32), ["iw10", "iw10_3_32"], [
        "What IW 10 saves against IW 3 by response size, DC 1",
        "What IW 32 saves against IW 3 by response size, DC 1"]),
    ((3, 10, 16), ["iw10", "iw16"], [
        "What IW 10 saves against IW 3 by response size, DC 1",
        "What IW 16 saves against IW 10 by response size, DC 1"])])
def test_a_pair_of_windows_has_one_figure_and_a_title_that_names_it(
        windows: tuple[int, ...], names: list[str], titles: list[str]) -> None:
    scenario: Scenario = stored_fetches.scenario("ietf78_dc1")
    trial = next(scenario.sweeps[0].trials("ietf78_dc1", 1))
    records = [replace(stored_fetches.stored("zhao2019")[0],
                       trial=replace(trial, initcwnd=window)) for window in windows]
    changed = kinds.under_measured_windows(scenario, records, is_whole=False)
    pairs = [figure for figure in changed.figures if figure.experiment_initcwnd]
    assert [figure.name for figure in pairs] == names
    assert [figure.title for figure in pairs] == titles
    claimed = {claim.figure for claim in changed.claims}
    assert claimed == {claim.figure for claim in scenario.claims} & {
        figure.name for figure in changed.figures}


@pytest.mark.parametrize("largest_ms, said", [(500.0, True), (400.0, False), (300.0, False)])
def test_a_window_is_the_fastest_only_where_no_other_takes_as_long(largest_ms: float,
                                                                   said: bool) -> None:
    record = next(record for record in stored_fetches.stored("zhao2019") if record.counts)
    cells = [CellSetting(trial, (replace(record, trial=trial, total_ms=total_ms),))
             for window, total_ms in ((4, 600.0), (10, 400.0), (32, largest_ms))
             for trial in [replace(record.trial, initcwnd=window)]]
    sentence = answer_of_cells(cells, changes(cells), False).sentence
    assert ("10 is the fastest" in sentence) == said
