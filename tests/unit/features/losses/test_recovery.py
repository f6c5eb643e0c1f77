"""What is gained under random loss beyond the lossless network."""

from __future__ import annotations

from dataclasses import replace

from lab.core.stats import Estimate
from lab.fetches.figures.recovery import LossPanel, sentences
from tests.unit.fetches.test_claims import FIGURE, bucket


def test_recovery_is_what_is_gained_beyond_the_lossless_network() -> None:
    figure = replace(FIGURE, kind="loss", by="loss_percent")
    bars = (bucket(1000, 900, "0", value=0.0),
            *(bucket(1000, 800, label, value=value, absolute_interval=ends)
              for label, value, ends in (("1", 1.0, (101.0, 300.0)), ("2", 2.0, (99.0, 300.0)),
                                         ("5", 5.0, (50.0, 99.0)))))
    panel = LossPanel(figure, bars, "curl", "cubic")
    assert list(map(panel.effect, bars)) == ["", "helps", "undecided", "harms"]
    assert panel.effect(replace(bars[1], draws=1)) == "undecided"
    assert panel.recovery(bars[1]) == Estimate(100, (1, 200))
    assert "gains more than without loss in 1 of 3 bars and less in 1" in sentences([panel])[0]
    without = LossPanel(figure, bars[1:], "curl", "cubic")
    assert not any(map(without.recovery, bars[1:])) and not sentences([without])
