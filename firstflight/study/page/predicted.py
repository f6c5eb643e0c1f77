"""The model of TCP on the connections of a page: those that never wait for another one.

A connection that shares the link's queue takes longer, by what the others send: no model of one
transfer says by how much. But until its first packet waits behind another's, its responses have to
be there when the model computes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.model.predict import predict
from firstflight.model.transfer import CONGESTION_CONTROLS, Transfer
from firstflight.net.path import NEVER
from firstflight.net.segments import MS
from firstflight.study.page import crossings
from firstflight.study.page.record import PageEvidence, Predicted
from firstflight.study.page.timing import ConnectionTimes
from firstflight.study.page.trial import BUILTIN, HTTP_1

MOST_RTT_MS = 900.0  # beyond a second a SYN is sent again, which the model does not know
NEAR_MS = 0.05  # requests that follow a response at once


def predicted(evidence: PageEvidence) -> tuple[Predicted, ...]:
    """Each object that the model covers, with what it predicts; () where it covers none."""
    trial = evidence.trial
    if (trial.http != HTTP_1 or trial.server != BUILTIN or trial.rtt_ms > MOST_RTT_MS
            or trial.congestion_control not in CONGESTION_CONTROLS or not evidence.tick_ns):
        return ()
    path = trial.path
    both = (crossings.met(packets, link.delay_ms, link.rate_kbps)
            for packets, link in ((evidence.down, path.down), (evidence.up, path.up)))
    first: dict[int, int] = {}
    for met in both:
        for port, met_ns in met.items():
            first[port] = min(met_ns, first.get(port, NEVER))
    return tuple(found for port, connection in evidence.connections.items()
                 for found in _of(evidence, connection, first.get(port, NEVER)))


def _of(evidence: PageEvidence, connection: ConnectionTimes, met_ns: int) -> Iterator[Predicted]:
    """The objects of one connection that were there before it met another one."""
    exchange, trial = connection.exchange, evidence.trial
    if exchange.lost_to_client or exchange.lost_to_server or not connection.requested_ns:
        return
    requests = [segment.payload_bytes for segment in exchange.at_client
                if not segment.to_client and segment.payload_bytes]
    before_ms: float | None = None
    sizes: list[int] = []
    for place, loaded in enumerate(connection.objects):
        sizes.append(loaded.report["header_bytes"] + loaded.report["size"])
        arrived_ns = connection.arrived_ns(connection.starts[place + 1])
        is_next = before_ms is None or loaded.time_ms("start_ms") - before_ms <= NEAR_MS
        if (arrived_ns is None or arrived_ns >= met_ns or len(set(sizes)) > 1 or not is_next
                or len(set(requests[:place + 1])) > 1 or place >= len(requests)
                or trial.requested[loaded.number - 1].think_ms):
            return
        prediction = predict(Transfer(
            path=trial.path, initcwnd=trial.initcwnd, initrwnd=trial.initrwnd,
            congestion_control=trial.congestion_control, response_bytes=sizes[0],
            request_bytes=requests[0], earlier_bytes=sizes[0] if place else 0,
            earlier_request_bytes=requests[0] if place else 0, earlier_count=place or 1,
            clock_phase_ns=(connection.opened_ns - evidence.tick_ns) % MS,
            window_scale=exchange.syns[0].scale))
        if prediction.peak_queue > trial.queue_packets:
            return
        yield Predicted(loaded.number, (arrived_ns - connection.opened_ns) / MS,
                        prediction.started_ms + prediction.total_ms)
        before_ms = loaded.time_ms("end_ms")
