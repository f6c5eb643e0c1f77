"""Checks why segments left. A retransmission needs a loss or a timer, other data needs a cause."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from firstflight.base.comparison import Comparison
from firstflight.judge.verdict import examples
from firstflight.net.path import NEVER
from firstflight.net.segments import MS, Segment
from firstflight.setting.setting import NetworkSetting
from firstflight.wire.delivery.host import PAUSE_LATE_NS, SERVER_LATE_NS
from firstflight.wire.exchange import Exchange
from firstflight.wire.retransmissions import Retransmission


def compare_retransmissions(retransmissions: Iterable[Retransmission]) -> Iterator[Comparison]:
    """Compare the number of retransmissions without a cause with none."""
    unexplained = [f"{sent.segment.seq}–{sent.segment.end_with_fin}" for sent in retransmissions
                   if sent.cause is None]
    yield Comparison(not unexplained, f"{len(unexplained)} without loss or a timer to explain them"
                                      f"{examples(unexplained)}", "none")


def compare_uncaused(segments: Sequence[str]) -> Comparison:
    """Compare the segments of data that left without a cause with none. segments: in words."""
    return Comparison(not segments, f"{len(segments)} that left although nothing had arrived and no"
                                    f" timer was due{examples(segments)}", "none")


def late_answers(setting: NetworkSetting, exchange: Exchange, pauses_ns: Collection[int] = ()
                 ) -> list[Segment]:
    """The first segments of responses that a pacing server sent too late after the request.

    What the server sent before may make its pacer wait; after half an RTT without data it does not.
    Nothing is judged any more once a packet is lost or retransmitted. A sender that does not pace
    is judged segment by segment (wire.delivery.host). pauses_ns: the times that the server may have
    been requested to wait before it answers.
    """
    if not setting.paces or setting.disorder:
        return []

    idle_ns = round(setting.rtt_ms * MS / 2)
    odd = (*exchange.lost_to_client, *exchange.lost_to_server, *exchange.retransmissions)
    until_ns = min((segment.time_ns for segment in odd), default=NEVER)

    found: list[Segment] = []
    requested_ns = sent_ns = acknowledged = sent = 0
    for segment in exchange.at_server:
        if not segment.to_client:
            acknowledged = max(acknowledged, segment.ack or 0)
            if segment.payload_bytes:
                requested_ns = segment.time_ns
            continue
        if not segment.payload_bytes:
            continue
        if segment.time_ns > until_ns:
            break

        is_first = requested_ns > sent_ns and acknowledged >= sent
        was_idle = requested_ns - sent_ns > idle_ns
        late_ns = segment.time_ns - requested_ns
        has_paused = any(0 <= late_ns - pause_ns <= PAUSE_LATE_NS for pause_ns in pauses_ns)
        if is_first and was_idle and late_ns > SERVER_LATE_NS and not has_paused:
            found.append(segment)
        sent_ns, sent = segment.time_ns, max(sent, segment.end)
    return found
