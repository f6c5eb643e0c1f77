"""A number reached in steps: told apart without colour."""

from __future__ import annotations

import pytest

from firstflight.findings import drawing
from tests.unit.drawing import samples


def test_a_step_goes_from_the_number_before_it_to_its_own() -> None:
    drawn = drawing.figure_of(samples.step_chart())
    (axes,) = drawn.axes
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [
        (0, 10), (10, 4), (14, -2), (12, 0), (12, 12)]
    assert [text.get_text() for text in axes.texts] == [
        "10", "14 (+4)", "12 (−2)", "12 (+0)", "24 (+12)", "all 28"]
    assert samples.said(drawn.legends[0]) == [  # the calibrated step adds nothing
        "to begin with", "seen in their code", "inferred: it fits, and was not seen",
        "a step back, however it is known"]
    assert len({(bar.get_facecolor(), bar.get_hatch()) for bar in axes.patches}) == 5


def test_what_all_would_be_is_a_line() -> None:
    (axes,) = drawing.figure_of(samples.step_chart()).axes
    assert any(list(line.get_xdata()) == [28, 28] for line in axes.lines)
    assert axes.get_xlim()[1] == pytest.approx(1.25 * 28)
