"""The bars of a population are the published ones: what says them is looked at before measuring."""

from __future__ import annotations

import pytest

from lab.core import scenario_file
from lab.core.errors import UsageError
from lab.fetches import reading

TEXT = scenario_file.find("dukkipati2010").text
RTT = 'published = "paper_figure5.csv"\npanel = "RTT"'


@pytest.mark.parametrize("old, new, words", [
    (RTT, "", "published is missing: it says what the bars"),
    (RTT, 'published = "paper_figure5.csv"\npanel = "X"', "has no panel 'X'"),
    (RTT, 'published = "paper_tables.csv"\npanel = "table3_avgdc"',
     "bars are named by their upper ends, .* not mean"),
    ('published = "paper_tables.csv"\npanel = "table3_avgdc"', RTT, "is no percentile"),
    ('by = "rtt_ms"', 'by = "loss_percent"', "by: unknown 'loss_percent'")])
def test_what_says_the_bars_is_checked(old: str, new: str, words: str) -> None:
    assert old in TEXT
    before, figures = TEXT.split("[[figure]]", 1)
    with pytest.raises(UsageError, match=f"^scenarios/own.toml: .*{words}|{words}"):
        reading.read(scenario_file.parsed(
            "own", f"{before}[[figure]]{figures.replace(old, new, 1)}"))
