"""Shares over two quantities: colours, decades, lines of equal product."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from firstflight.findings import drawing
from tests.unit.drawing import samples


@pytest.fixture(scope="module")
def drawn() -> Any:
    return drawing.figure_of(samples.grid_chart())


def test_shares_stand_over_their_quantities(drawn: Any) -> None:
    axes = drawn.axes[0]
    (mesh,) = [part for part in axes.collections if part.get_array() is not None]
    shares = numpy.array(mesh.get_array()).reshape(4, 3)
    assert shares[:, 1].tolist() == [40, 9, 0.1, 0.2]
    assert mesh.get_array().reshape(4, 3).mask[3, 0]  # next to nothing is left white
    assert mesh.norm.vmin == pytest.approx(1e-3) and mesh.norm.vmax == 40


def test_axes_are_logarithmic_with_plain_decades(drawn: Any) -> None:
    axes, shades = drawn.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert samples.tick_labels(axes.xaxis) == ["1", "10", "100", "1000"]
    assert samples.tick_labels(axes.yaxis) == ["100", "1000"]
    assert samples.tick_labels(shades.yaxis) == ["0.001", "0.01", "0.1", "1", "10"]
    assert shades.get_ylabel() == "share (%)"


def test_lines_of_equal_product_end_at_the_edges_with_their_label(drawn: Any) -> None:
    axes = drawn.axes[0]
    (line,) = axes.lines  # the one outside is not drawn
    x, y = line.get_xdata(), line.get_ydata()
    assert [a * b for a, b in zip(x, y)] == pytest.approx([8000, 8000])
    assert x[0] == 1 and y[1] == 20
    (label,) = axes.texts
    assert label.get_text() == "BDP 1000 B" and -90 < label.get_rotation() - 360 < 0
    place = label.get_position()
    assert place[0] * place[1] == pytest.approx(8000)
