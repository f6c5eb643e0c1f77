"""Stored runs are rendered as their goldens, and figures have few words below them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from matplotlib.figure import Figure

from firstflight.findings import drawing
from firstflight.findings.drawing import style
from tests.golden import rendering
from tests.golden.rendering import FOLDER, OTHERS, RENDERED, RENDERERS, REPORTS


@pytest.mark.parametrize("name, form", RENDERED)
def test_a_stored_run_is_rendered_as_it_was(name: str, form: str) -> None:
    golden = (FOLDER / f"{name}.{form}").read_text(encoding="utf-8")
    assert RENDERERS[form](REPORTS[name]()) == golden, (
        "if the change is meant, /usr/bin/python3 -m tests.golden.rendering writes it again")


@pytest.mark.parametrize("name", OTHERS)
def test_names_commands_and_other_texts_are_as_their_goldens(name: str) -> None:
    """These are trials' ids and commands, judged columns, and the words of every quantity."""
    assert OTHERS[name]() == (FOLDER / name).read_text(encoding="utf-8")


def test_every_golden_is_compared() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {
        *OTHERS, *(f"{name}.{form}" for name, form in RENDERED)}


# Figures ------------------------------------------------------------------------------

MOST_LINES = 3  # of text below a figure


@pytest.fixture(scope="module")
def drawn() -> Iterator[list[tuple[str, Figure]]]:
    """Every figure of a stored run, with its name."""
    with style.settings():
        yield [(f"{name}: {figure_name}", figure)
               for name, make_report in REPORTS.items() if name not in rendering.BY_HAND
               for figure_name, figure in drawing.figures(make_report())]


def below(figure: Figure) -> list[str]:
    """The lines of text below a figure."""
    return [text.get_text() for text in figure.texts
            if text.get_color() == style.FAINT and text.get_fontsize() == style.SMALL]


def test_no_figure_has_more_than_three_lines_below_it(drawn: list[tuple[str, Figure]]) -> None:
    assert len(drawn) > 40
    assert not {name: lines for name, figure in drawn
                if len(lines := below(figure)) > MOST_LINES}


def test_no_word_stands_twice_below_a_figure(drawn: list[tuple[str, Figure]]) -> None:
    """Only words of five letters or more count."""
    twice = {}
    for name, figure in drawn:
        counts = Counter(re.findall(r"[a-z]{5,}", " ".join(below(figure))))
        twice[name] = [word for word, count in counts.items() if count > 1]
    assert not {name: words for name, words in twice.items() if words}
