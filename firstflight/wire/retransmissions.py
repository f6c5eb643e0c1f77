"""Explains why TCP retransmits data that was not lost: which of Linux's timers fired.

A SYN and a SYN-ACK are retransmitted after a second (RFC 6298, 2.1), even if nothing was lost and
the RTT is longer than that. The tail loss probe waits for two smoothed RTTs (RFC 8985, 7.2), but no
longer than the retransmission timer, which waits for the RTT and its variance. Both estimates come
from the handshake's small packets when the first full segments queue at a slow bottleneck. A probe
sends new data if there is any, else it repeats the last segment.

Linux rounds timers up, by as much as an eighth. It does not retransmit while the first copy is in a
queue of the same machine (skb_still_in_host_queue).
"""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.net.headers import SYN
from firstflight.net.path import LEAST_TIMEOUT_US, STAMP_MS
from firstflight.net.segments import Segment
from firstflight.wire.exchange import Exchange, round_trip_ns

# The causes, in words.
SYN_TIMER = "SYN timer (1 s) shorter than the RTT"
ARP_AND_SYN_TIMER = "SYN timer (1 s) shorter than the ARP exchange and the RTT together"
SYN_ACK_TIMER = "SYN-ACK timer (1 s) shorter than the RTT"
FALLBACK_TIMER = "retransmission timer (3 s after a retransmitted SYN-ACK) shorter than the RTT"
RETRANSMISSION_TIMER = "retransmission timer shorter than the wait in the queue"
PROBE = "tail loss probe: the acknowledgement takes longer than 2 SRTT"

_SYN_TIMER_MS = 1000.0  # TCP_TIMEOUT_INIT (RFC 6298, 2.1)
_FALLBACK_TIMER_MS = 3000.0  # TCP_TIMEOUT_FALLBACK (RFC 6298, 5.7)
_ANSWER_MS = 1.0  # a retransmitted SYN is answered within this time
_CLOCK_MS = 2.0  # Linux measures some round trips in whole milliseconds (timestamps, jiffies)


@dataclass(frozen=True)
class Retransmission:
    """A retransmitted segment and its cause, as far as the packets show it."""

    segment: Segment
    # One of the texts above; "" if packets were lost, None if no timer explains it.
    cause: str | None


def explain_retransmissions(exchange: Exchange, arp_ms: float = 0.0,
                            least_timeout_ms: float = LEAST_TIMEOUT_US / 1000
                            ) -> tuple[Retransmission, ...]:
    """All retransmitted segments with their causes, in no particular order.

    arp_ms: how long the client waited for the server's address (ARP) before its first SYN left;
    the SYN's timer ran meanwhile. least_timeout_ms: the server's retransmission timer exceeds the
    RTT by this or more (rto_min of its route).
    """
    handshake = exchange.syns[1:] + exchange.syn_acks[1:]
    server = exchange.retransmissions + exchange.fin_retransmissions
    if exchange.lost_to_client or exchange.lost_to_server:
        # After a loss TCP also retransmits data that has arrived. That needs no explanation, and
        # causes cannot be distinguished.
        return tuple(Retransmission(segment, "") for segment
                     in handshake + server + exchange.client_retransmissions)

    explained = []
    for segment in handshake:
        explained.append(Retransmission(segment, _syn_cause(exchange, segment, arp_ms)))
    for segment in server:
        cause = _data_cause(exchange.at_server, segment, least_timeout_ms)
        explained.append(Retransmission(segment, cause))
    for segment in exchange.client_retransmissions:
        explained.append(Retransmission(segment, _data_cause(exchange.at_client, segment)))
    return tuple(explained)


def _syn_cause(exchange: Exchange, segment: Segment, arp_ms: float) -> str | None:
    """The cause of a retransmitted SYN or SYN-ACK: its timer ran out before the answer came."""
    if exchange.handshake_ms is not None and exchange.handshake_ms + arp_ms < _SYN_TIMER_MS:
        return None

    if not segment.to_client:
        waited_ms = arp_ms + segment.ms_after(exchange.syns[0])
        cause = ARP_AND_SYN_TIMER if arp_ms else SYN_TIMER
        return cause if waited_ms >= _SYN_TIMER_MS - STAMP_MS else None

    arrived = [s for s in exchange.at_server if not s.to_client and s.flags & SYN]
    if any(0 <= segment.ms_after(syn) < _ANSWER_MS for syn in arrived[1:]):
        return SYN_TIMER  # the answer to a retransmitted SYN

    waited_ms = segment.ms_after(exchange.syn_acks[0])
    return SYN_ACK_TIMER if waited_ms >= _SYN_TIMER_MS - STAMP_MS else None


def _data_cause(at_sender: tuple[Segment, ...], retransmitted: Segment,
                least_timeout_ms: float = LEAST_TIMEOUT_US / 1000) -> str | None:
    """The timer of the sender that retransmitted a segment; None if no timer can have.

    A tail loss probe repeats the last segment sent. The retransmission timer repeats the first
    segment that is not acknowledged. Later retransmissions follow from that one, until all data
    that was sent before it is acknowledged. The probe comes no later than that timer would
    (tcp_schedule_loss_probe). A timer explains a segment only if the sender had waited for at least
    that timer's minimum.
    """
    # The smoothed RTT is at least that of the handshake.
    round_trip_ms = (round_trip_ns(at_sender, retransmitted.to_client) or 0) / 1e6
    timeout_ms = round_trip_ms + least_timeout_ms - _CLOCK_MS
    syn_count = sum(1 for s in at_sender
                    if s.to_client == retransmitted.to_client and s.flags & SYN)

    acknowledged, highest = 1, 1  # sequence numbers: of what is acknowledged, and of what was sent
    recovery_end = 0  # retransmissions up to here follow from an earlier one, by a timer
    has_probed = False  # since the last acknowledgement
    progress_ns = at_sender[0].time_ns  # when data last left or was acknowledged
    sent_ns = dict[int, int]()  # when each segment last left, by its sequence number
    cause: str | None = None
    for segment in at_sender:
        if segment.to_client != retransmitted.to_client:
            if segment.ack is not None and segment.ack > acknowledged:
                acknowledged, progress_ns, has_probed = segment.ack, segment.time_ns, False
            continue
        if segment.flags & SYN or segment.end_with_fin == segment.seq:
            continue

        if segment.seq in sent_ns and segment.end_with_fin <= highest:
            waited_ms = (segment.time_ns - sent_ns[segment.seq]) / 1e6
            idle_ms = (segment.time_ns - progress_ns) / 1e6
            oldest_ns = sent_ns.get(acknowledged, segment.time_ns)  # of what is not acknowledged
            oldest_ms = (segment.time_ns - oldest_ns) / 1e6
            is_due = idle_ms >= 2 * round_trip_ms - _CLOCK_MS or oldest_ms >= timeout_ms
            if segment.end_with_fin == highest and not has_probed and is_due:
                cause, has_probed = PROBE, True
            elif segment.seq <= acknowledged and waited_ms >= timeout_ms:
                cause, recovery_end = RETRANSMISSION_TIMER, highest
            elif (segment.seq <= acknowledged == 1 and waited_ms >= _FALLBACK_TIMER_MS
                  and syn_count > 1):
                cause, recovery_end = FALLBACK_TIMER, highest
            elif segment.end_with_fin > recovery_end:
                cause = None
            if segment is retransmitted:
                return cause

        sent_ns[segment.seq] = progress_ns = segment.time_ns
        highest = max(highest, segment.end_with_fin)
    return None
