"""Published values and curves are read as they stand, and a damaged file is named."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

from firstflight.base.errors import UsageError
from firstflight.study.scenario import curves, published
from firstflight.study.scenario.curves import CdfCurve, network_curve, size_curve
from firstflight.study.scenario.published import PAPER


def test_published_files_are_read_as_they_stand() -> None:
    rtt = published.buckets("paper_figure5.csv", "RTT")
    assert len(rtt) == 8 and rtt[">3000"].absolute == 3387.37
    assert {(each.error, each.error_points) for each in rtt.values()} == {(0, 0)}, "not stated"
    assert published.buckets("paper_figure6.csv")["56"].percent == 17.92
    assert published.buckets("paper_figure7.csv")["7"].responses_percent == 65.07
    assert len(published.fetches("zhao2019_raw.csv")) == 128


@pytest.mark.parametrize(("text", "words"), [
    ("a,b\n1,2\n", "has no column responses_percent"),
    ("bucket,responses_percent,absolute_ms,percent\n1,2,x,4\n", "absolute_ms 'x'"),
    ("bucket,responses_percent,absolute_ms,percent\n1,2\n", "absolute_ms ''"),
    ("# only a comment\n", "has no column"),
])
def test_a_damaged_published_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(UsageError, match=f"paper/p.csv: .*{words}"):
        published.buckets("p.csv", folder=tmp_path)
    with pytest.raises(UsageError, match="none.csv: cannot be read"):
        published.fetches("none.csv", folder=tmp_path)
    with pytest.raises(UsageError, match="no panel 'RTTT'"):
        published.buckets("paper_figure5.csv", "RTTT")


@pytest.mark.parametrize("file", ["../README.md", "/etc/passwd", "..", "", "a\nb.csv"])
def test_a_published_file_lies_in_paper(tmp_path: Path, file: str) -> None:
    (tmp_path / "paper").mkdir()
    (tmp_path / "README.md").write_text("initcwnd,rtt_ms,bandwidth_kbps,total_s\n3,20,1000,1\n")
    for read in (published.buckets, published.fetches, published.source):
        with pytest.raises(UsageError, match="published numbers: .* cannot be the name of a file"):
            read(file, folder=tmp_path / "paper")


def test_published_times_and_what_is_lacking(tmp_path: Path) -> None:
    windows = published.buckets("paper_figure2.csv")
    assert windows["3"].level == 489.81 and windows["3"].absolute is None
    rows = published.buckets("marrama2012.csv", "FAST")
    assert (rows["100000"].absolute, rows["100000"].percent) == (None, 20)
    assert published.buckets("marrama2012.csv", "IW")["3"].error == 3
    assert published.source("marrama2012.csv").startswith("Marrama and Dubie 2012")
    (tmp_path / "p.csv").write_text("bucket,total_ms,percent\n1,x,\n")
    with pytest.raises(UsageError, match="total_ms 'x' is not a number"):
        published.buckets("p.csv", folder=tmp_path)


# Curves -------------------------------------------------------------------------------

def test_web_search_sizes_have_the_published_quantiles_and_mean() -> None:
    curve = size_curve("web_search")
    assert curve.quantile(numpy.array([0.1, 0.5, 0.9])) == pytest.approx([2600, 8830, 17000],
                                                                         rel=0.03)
    even = (numpy.arange(20_000) + 0.5) / 20_000
    assert curve.quantile(even).mean() == pytest.approx(10_500, rel=0.03)
    assert curve.at(curve.quantile(even)) == pytest.approx(numpy.maximum(even, curve.cdf[0]))


def test_an_unknown_series_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'web_search'"):
        size_curve("websearch")
    with pytest.raises(UsageError, match="has no series 'rtt_ms Avg'"):
        network_curve("rtt_ms", "Avg")


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), 95])
def test_an_unknown_percentile_is_an_error(share: float) -> None:
    with pytest.raises(UsageError, match="^paper/paper_figure1_cdf.csv, web_search: a percentile"
                                         f" is a share between 0 and 1, not {share:g}$"):
        size_curve().quantile(share)


@pytest.mark.parametrize("values, cdf, message", [
    ((), (), "two points"), ((1.0, 3.0, 2.0), (0.1, 0.2, 0.3), "value 2 follows 3"),
    ((1.0, 2.0), (0.5, 0.4), "cdf 0.4 follows 0.5"), ((1.0, 2.0), (0.5, 1.4), "within 0 to 1"),
    ((1.0, 2.0, 3.0), (0.1, 0.5, 1.1), "from 0.1 to 1.1"), ((1.0, 2.0), (-0.1, 0.9), "within 0"),
    ((1.0, 2.0), (0.5, 0.5), "must rise"), ((1.0,), (0.5, 0.9), "found 1 and 2"),
    ((0.0, 2.0), (0.5, 0.9), "positive"), ((1.0, float("nan")), (0.5, 0.9), "not sorted")])
def test_a_bad_curve_says_what_is_wrong(values: tuple[float, ...], cdf: tuple[float, ...],
                                        message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CdfCurve("somewhere", values, cdf)


def test_a_bad_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="paper_figure1_cdf.csv: cannot be read"):
        size_curve(folder=tmp_path)
    text = (PAPER / "paper_figure1_cdf.csv").read_text(encoding="utf-8")
    (tmp_path / "paper_figure1_cdf.csv").write_text(text.replace("0.0198", "many", 1))
    with pytest.raises(UsageError, match="paper_figure1_cdf.csv.*many"):
        size_curve(folder=tmp_path)


def test_a_tail_is_continued_only_where_percentile_98_is_known() -> None:
    assert size_curve("top100_sites").cdf[-1] < 0.95
    beyond_50_segments = 1 - float(size_curve().at(numpy.array(50 * 1430.0)))
    assert beyond_50_segments == pytest.approx(0.0011, abs=0.0006)  # Figure 7: 0.11 %
    beyond_3_s = 1 - float(network_curve("rtt_ms", "AvgDC").at(numpy.array(3000.0)))
    assert beyond_3_s == pytest.approx(0.0008, abs=0.0006)  # Figure 5: 0.08 %


def test_a_tail_falls_as_the_percentiles_before_it_do() -> None:
    """From 95 % at 10 to 99 % at 50 the rest falls as 1/x, and so it goes on, to nothing at 200."""
    values, cdf = (1.0, 10.0, 50.0, 60.0), (0.1, 0.95, 0.99, 1.0)
    made = CdfCurve("somewhere", values, cdf).continued(200.0)
    assert made.values[:3] == values[:3] and made.values[-1] == pytest.approx(200)
    assert made.cdf[:3] == cdf[:3] and made.cdf[-1] == pytest.approx(1.0) and len(made.cdf) == 35
    at = made.values[18]
    assert at == pytest.approx(50 * 2.0)  # half-way, as the points are spaced
    left = 0.01 * (50 / at - 0.25) / (1 - 0.25)
    assert made.cdf[18] == pytest.approx(1 - left)


def test_a_tail_needs_one_percentile_before_it_and_the_last_may_be_98() -> None:
    made = CdfCurve("somewhere", (1.0, 10.0, 20.0), (0.0, 0.98, 1.0)).continued(200.0)
    assert made.values[:2] == (1.0, 10.0) and made.values[-1] == pytest.approx(200)


def test_each_quantity_goes_on_to_its_own_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two ends are the same number, as it happens."""
    monkeypatch.setattr(curves, "BANDWIDTH_ENDS_KBPS", (9.6, 20_000.0))
    ends = {quantity: network_curve(quantity, "AvgDC").values[-1]
            for quantity in ("rtt_ms", "bandwidth_kbps")}
    assert ends == {"rtt_ms": 10_000.0, "bandwidth_kbps": pytest.approx(20_000.0)}


@pytest.mark.parametrize("values, cdf, highest", [
    ((1.0, 2.0), (0.98, 1.0), 9.0), ((1.0, 2.0, 3.0), (0.1, 0.97, 1.0), 9.0),
    ((1.0, 2.0, 3.0), (0.1, 1.0, 1.0), 9.0), ((1.0, 2.0, 3.0), (0.1, 0.99, 1.0), 2.0),
    ((2.0, 2.0, 3.0), (0.1, 0.99, 1.0), 9.0)])
def test_other_curves_stay_as_they_are(values: tuple[float, ...], cdf: tuple[float, ...],
                                       highest: float) -> None:
    curve = CdfCurve("somewhere", values, cdf)
    assert curve.continued(highest) is curve


def test_below_a_curve_there_is_nothing_and_beyond_it_its_last_share() -> None:
    curve = CdfCurve("somewhere", (10.0, 15.0, 20.0), (0.2, 0.5, 0.8))
    assert curve.at(numpy.array([5.0, 10.0, 15.0, 25.0])) == pytest.approx([0.0, 0.2, 0.5, 0.8])
    assert curve.quantile(numpy.array([0.0, 0.5, 1.0])) == pytest.approx([10.0, 15.0, 20.0])
    with pytest.raises(UsageError, match="somewhere: percentiles are shares"):
        curve.quantile(numpy.array([0.5, 1.5]))


def test_a_tail_is_the_same_on_every_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy's powers differ in the last place between processors; nobody's responses may."""
    here = size_curve()
    exact = numpy.geomspace

    def elsewhere(*requested: float) -> object:
        return numpy.nextafter(exact(*requested), numpy.inf)

    monkeypatch.setattr(numpy, "geomspace", elsewhere)
    there = size_curve()
    assert (there.values, there.cdf) == (here.values, here.cdf)
