"""The bars of small stored runs are those that were frozen, number for number.

To a billionth: in the last digits of an exponential processors differ.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.core.findings.charts import BarChart, TimeChart
from lab.core.findings.findings import Finding
from lab.fetches.figures.claims import judged
from tests.golden import stored_fetches
from tests.golden.stored import FOLDER

POINTS = json.loads((FOLDER.parent / "rendered" / "points.json").read_text(encoding="utf-8"))


def ends(interval: Any) -> Any:
    return None if interval is None else approx(list(interval))


def approx(values: Any) -> Any:
    return pytest.approx(values, rel=1e-9, abs=0)


@pytest.mark.parametrize("name", stored_fetches.SMALL_SCENARIOS)
def test_every_bar_is_the_frozen_one(name: str) -> None:
    panels = stored_fetches.panels(name)
    assert sorted(panels) == sorted(POINTS[name])
    for figure, panel in panels.items():
        rows = judged(panel, (), exact=True).rows
        assert len(rows) == len(POINTS[name][figure])
        for row, bucket, frozen in zip(rows, panel.buckets, POINTS[name][figure]):
            published = row.bucket.published
            assert {"label": bucket.label, "n": bucket.n, "left_out": bucket.excluded.total,
                    "share_percent": approx(bucket.share_percent),
                    "base": approx(bucket.base), "experiment": approx(bucket.experiment),
                    "absolute": approx(bucket.absolute), "percent": approx(bucket.percent), "published": published.absolute,
                    "published_percent": bucket.published.percent,
                    "published_time": published.level,
                    "absolute_interval": ends(bucket.absolute_interval),
                    "percent_interval": ends(bucket.percent_interval),
                    "word": row.word} == frozen, (figure, bucket.label)


@pytest.mark.parametrize("name", stored_fetches.SMALL_SCENARIOS)
def test_table_and_chart_show_the_frozen_bars(name: str) -> None:
    findings = {finding.name: finding for finding in stored_fetches.whole_report(name).findings}
    for figure, frozen in POINTS[name].items():
        finding = findings[figure]
        (table,) = finding.tables
        assert table.column("", "improved")[:len(frozen)] == approx([
            bar["absolute"] for bar in frozen])
        shown = [(bar.label, bar.n, bar.left_out) for bar in bars(finding)]
        assert shown == [(bar["label"], bar["n"], bar["left_out"]) for bar in frozen]
        if isinstance(finding.chart, BarChart):
            assert [(approx(bar.absolute.value), bar.published, bar.published_percent)
                    for bar in finding.chart.bars] == [
                        (bar["absolute"], bar["published"], bar["published_percent"])
                        for bar in frozen]
        counted = [bar["word"] for bar in frozen if bar["word"]]
        assert sum(finding.bars.values()) == len(counted)
        assert all(counted.count(word) == count for word, count in finding.bars.items())


def bars(finding: Finding) -> Any:
    assert isinstance(finding.chart, (BarChart, TimeChart))
    return finding.chart.bars
