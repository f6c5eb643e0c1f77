"""docs/RESULTS.md and its pages: one form for reports of all kinds; text of others stays text."""

from __future__ import annotations

import re

from findings.findings import Finding
from findings.render.markdown import chapter, escaped, index, page
from tests.unit.render.reports import FINDINGS, HOSTILE, hostile, report


def test_a_chapter() -> None:
    assert chapter(report()) == """\
# zhao2019

Figure 5. Zhao and Jiang 2019.

Ten segments are faster than three.

Run `zhao2019/run-1`, finished 2026-01-01T00:00:00+00:00, engine uml, kernel 7.2.11, commit \
0123456789ab with changes, 600.0 s of emulated time in 4.0 s; 125 of 128 trials verified on the \
wire; left out: 3 failed verdicts.

Bars: 1 of 2 reproduced, 0 undecided (too few data), 0 direction, 1 not reproduced.

Statements: 1 direction.

## fig5_rtt: Improvement by RTT

1 of 2 reproduced, 0 undecided (too few data), 0 direction, 1 not reproduced. Drawn in `figures/zhao2019_fig5_rtt.png`, \
`figures/zhao2019_fig5_rtt_cdf.png`.

| RTT, ms | mean: IW3, ms | mean: IW10, ms | improvement: saved, ms | improvement: 95 % interval, \
ms | test | word |
|--:|--:|--:|--:|--:|---|---|
| 20 | 129.5 | 122.6 | +6.9 | 5.0 … 8.5 | 2.8 ≤ 2.9 ms | reproduced |
| >20 | 58.1 | 282.6 | −224.5 | – |  | not reproduced |

averaged over bandwidth

Published: paper, Figure 5 (paper/fig5.csv).

## mix: A mix of windows

Drawn in `figures/zhao2019_mix.png`.

**The runs**

|  | n | mean, ms |
|---|--:|--:|
| IW 3 | 431 | 438 ± 24 |
| IW 10 | 430 | 586 |

- “Faster.” Here: the mean falls from 438 ± 24 to 412 ms. **direction**
- Where is the mean longer? In no cell.

## fig2: Time by window

Not available: lacks IW 42; measure with ./run.sh --iw 42.
"""


def test_the_index_names_every_scenario_and_links_to_its_page() -> None:
    said = report(opening="It saves {fig5_rtt / 20 / improvement: saved, ms / 1} ms. And more.")
    silent = report(name="silent", findings=(Finding("a", "b"),))
    table = index([said, silent], ["dukkipati2010"], "pages")
    assert table.splitlines()[2:] == [
        "| [zhao2019](pages/zhao2019.md) | It saves 6.9 ms. |"
        " bars: 1 reproduced, 1 not reproduced; statements: 1 direction |",
        "| [silent](pages/silent.md) | Ten segments are faster than three. |  |",
        "| dukkipati2010 | not measured: `./run.sh dukkipati2010` | |"]


def test_a_page_is_the_chapter_and_a_link_back() -> None:
    assert page(report(), "../R.md").endswith(f"](../R.md)\n\n{chapter(report())}")


def test_a_page_shows_the_scenarios_pictures_below_what_came_out() -> None:
    assert "\n\n".join(("Ten segments are faster than three.",
                        "![Ten segments are faster than three.](../x.png)", "Run `")) in page(
        report(), "../R.md", ["../x.png"])


def test_lines_of_a_summary_are_told_as_running_text() -> None:
    """One that begins with a capital is a sentence of its own, the others are parts of one."""
    told = chapter(report(summary=("4 of 4 trials count.", " left out: none", "Nobody waited.")))
    assert "; 4 of 4 trials count; left out: none. Nobody waited.\n" in told


def test_a_run_that_says_little_of_itself_is_told_so() -> None:
    assert "\n\nRun `a b`, finished at an unknown time, engine None, kernel unknown; " in chapter(
        report(facts={}, path="a`b"))
    told = chapter(report(facts={"engine": "host", "kernel": "6.1",
                                 "project": {"commit": "0123456789abcdef"}}))
    assert ", engine host, kernel 6.1, commit 0123456789ab; " in told


def test_the_scenarios_own_words_have_the_numbers_that_were_found() -> None:
    assert "\n\nIt saves 6.9 ms.\n\n" in chapter(report(
        opening="It saves {fig5_rtt / 20 / improvement: saved, ms / 1} ms."))
    assert ("\n\nThe result cannot be rendered: {fig6}: there is no such finding.\n\n"
            in chapter(report(opening="It saves {fig6}.")))


def test_a_report_without_a_summary_counts_its_trials() -> None:
    assert "; 125 of 128 trials verified.\n" in chapter(report(summary=()))


def test_rows_that_are_left_out_are_counted() -> None:
    table = FINDINGS[0].tables[0].first(1)
    text = chapter(report(findings=(Finding("a", "b", (table,)),)))
    assert "\n\nThe first 1 of 2 rows.\n\naveraged over bandwidth\n" in text


def test_text_of_others_stays_text() -> None:
    assert escaped("a | b \\| <i> $x$ `c` [t](u) (v) 3 > 2\n") == (
        r"a \| b \\\| \<i> \$x\$ \`c\` [t]\(u) (v) 3 > 2 ")
    text = chapter(hostile())
    unescaped = re.sub(r"`[^`]*`", "", re.sub(r"\\.", "", text))
    assert "`" not in unescaped
    assert "<" not in unescaped and "$" not in unescaped and "](" not in unescaped
    assert "\x1b" not in text and "\n# d" not in text and HOSTILE not in text
    rows = [line for line in unescaped.splitlines() if line.startswith("|")]
    assert len(rows) == 3 and all(row.count("|") == 3 for row in rows)
