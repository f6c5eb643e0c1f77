"""Why segments left: a retransmission has a loss or a timer behind it, other data a cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from firstflight.base.comparison import Comparison
from firstflight.judge.verdict import examples
from firstflight.wire.retransmissions import Retransmission


def compare_retransmissions(retransmissions: Iterable[Retransmission]) -> Iterator[Comparison]:
    """No retransmission is without a cause."""
    unexplained = [f"{sent.segment.seq}–{sent.segment.end_with_fin}" for sent in retransmissions
                   if sent.cause is None]
    yield Comparison(not unexplained, f"{len(unexplained)} without loss or a timer to explain them"
                                      f"{examples(unexplained)}", "none")


def uncaused(segments: Sequence[str]) -> Comparison:
    """The comparison of data that left without a cause. segments: in words."""
    return Comparison(not segments, f"{len(segments)} that left although nothing had arrived and no"
                                    f" timer was due{examples(segments)}", "none")
