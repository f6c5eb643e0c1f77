"""Published values are read as they stand, and a damaged file is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstflight.base.errors import UsageError
from firstflight.study.scenario import published


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
