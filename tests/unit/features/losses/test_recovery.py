"""What is gained under random loss beyond the lossless network."""

from __future__ import annotations

from dataclasses import replace

from firstflight.base.stats import Estimate
from firstflight.study.fetches.figures.bar_figure import BarFigure
from firstflight.study.fetches.figures.recovery import beyond_lossless, effect, sentence_of_run
from tests.unit.fetches.test_claims import FIGURE, bucket


def test_recovery_is_what_is_gained_beyond_the_lossless_network() -> None:
    figure = replace(FIGURE, kind="loss", by="loss_percent")
    bars = (bucket(1000, 900, "0", value=0.0),
            *(bucket(1000, 800, label, value=value, absolute_interval=ends)
              for label, value, ends in (("1", 1.0, (101.0, 300.0)), ("2", 2.0, (99.0, 300.0)),
                                         ("5", 5.0, (50.0, 99.0)))))
    panel = BarFigure(figure, bars, "curl", "cubic", is_of_loss=True)
    assert [effect(panel, bar) for bar in bars] == ["", "helps", "undecided", "harms"]
    assert effect(panel, replace(bars[1], difference=replace(bars[1].difference, draws=1))) == "undecided"
    assert beyond_lossless(panel, bars[1]) == Estimate(100, (1, 200))
    assert "gains more than without loss in 1 of 3 bars and less in 1" in sentence_of_run([panel])[0]
    without = BarFigure(figure, bars[1:], "curl", "cubic", is_of_loss=True)
    assert not any(beyond_lossless(without, bar) for bar in bars[1:])
    assert not sentence_of_run([without])
