"""Predicts by the model of TCP when objects of a page arrive, while a connection is undisturbed.

A connection that shares the link's queue takes longer, and a model of one transfer cannot say by
how much. But until a packet of the connection waits behind one of another connection, responses
have to arrive when the model says. Over TLS only the first response on each connection is
predicted.
"""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.model.predict import predict
from firstflight.model.transfer import CONGESTION_CONTROLS, Secure, Transfer
from firstflight.net.path import NEVER
from firstflight.net.segments import MS
from firstflight.setting.server import BUILTIN, HTTP_1
from firstflight.setting.tcp import RECEIVE, SEND, buffer_sizes
from firstflight.testbed.hosts.tls_records import sealed_sizes
from firstflight.workloads.page import crossings
from firstflight.workloads.page.record import PageEvidence, Predicted
from firstflight.workloads.page.timing import ConnectionTimes

# From an RTT of a second on a SYN is retransmitted, which the model does not cover.
MOST_RTT_MS = 900.0
NEAR_MS = 0.05  # a request within this time after a response follows it at once


def predict_objects(evidence: PageEvidence) -> tuple[Predicted, ...]:
    """Each object that the model covers with its predicted time; () where it covers none."""
    trial = evidence.trial
    if trial.http != HTTP_1 or trial.server != BUILTIN or trial.rtt_ms > MOST_RTT_MS:
        return ()
    if trial.congestion_control not in CONGESTION_CONTROLS or not evidence.tick_ns:
        return ()
    if trial.disorder or not trial.has_modelled_setting or evidence.sysctls:
        return ()

    shared_ns: dict[int, int] = {}  # by port: since when a connection shared either link
    for packets, link in ((evidence.down, trial.path.down), (evidence.up, trial.path.up)):
        since = crossings.shared_since(packets, link.delay_ms, link.rate_kbps)
        for port, since_ns in since.items():
            shared_ns[port] = min(since_ns, shared_ns.get(port, NEVER))

    objects: list[Predicted] = []
    for port, connection in evidence.connections.items():
        objects += _predict_connection(evidence, connection, shared_ns.get(port, NEVER))
    return tuple(objects)


def _handshake(evidence: PageEvidence, connection: ConnectionTimes
               ) -> tuple[Secure | None, tuple[int, ...]]:
    """The handshake of a connection, and the length of each TLS record of its first response.

    None and () without TLS, and where the connection has no object.
    """
    port = connection.exchange.client_port
    report = evidence.responses.get(port, {}).get("tls")
    if report is None or not connection.objects:
        return None, ()
    first = connection.objects[0].report
    writes = sealed_sizes(first["header_bytes"] + first["size"], evidence.trial.record_bytes)
    secure = Secure(hello_bytes=report["hello_bytes"], flight=tuple(report["flight"]),
                    finished_bytes=report["finished_bytes"], tickets=tuple(report["tickets"]),
                    first_bytes=writes[0])
    return secure, writes


def _predict_connection(evidence: PageEvidence, connection: ConnectionTimes, shared_ns: int
                   ) -> Iterator[Predicted]:
    """The predicted objects of one connection, up to the first one that the model does not cover.

    shared_ns: since when the connection shares a link.
    """
    exchange, trial = connection.exchange, evidence.trial
    if exchange.lost_to_client or exchange.lost_to_server or not connection.requested_ns:
        return
    secure, writes = _handshake(evidence, connection)
    if trial.is_secure and secure is None:
        return

    buffers = trial.with_buffers({})
    requests = [segment.payload_bytes for segment in connection.requests]
    last_end_ms: float | None = None
    sizes: list[int] = []
    for place, loaded in enumerate(connection.objects):
        if secure is not None and place:
            return
        sizes.append(loaded.report["header_bytes"] + loaded.report["size"])
        follows_at_once = (last_end_ms is None
                           or loaded.time_ms("start_ms") - last_end_ms <= NEAR_MS)
        if not follows_at_once or place >= len(requests):
            return
        arrived_ns = connection.arrived_ns(connection.starts[place + 1])
        if arrived_ns is None or arrived_ns >= shared_ns:
            return
        # The model knows equal exchanges only.
        if len(set(sizes)) > 1 or len(set(requests[:place + 1])) > 1:
            return
        if trial.requested[loaded.number - 1].think_ms:
            return

        prediction = predict(Transfer(
            path=trial.path, initcwnd=trial.server_window, initrwnd=trial.client_window,
            congestion_control=trial.congestion_control,
            receive_buffers=buffer_sizes(buffers, RECEIVE),
            send_buffers=buffer_sizes(buffers, SEND),
            response_bytes=sum(writes) or sizes[0], writes=writes, secure=secure,
            request_bytes=requests[0], earlier_bytes=sizes[0] if place else 0,
            earlier_request_bytes=requests[0] if place else 0, earlier_count=place or 1,
            mss=trial.mss,
            clock_phase_ns=(connection.opened_ns - evidence.tick_ns) % MS,
            window_scale=exchange.syns[0].scale))
        if prediction.peak_queue > trial.path.down.queue_packets:
            return
        yield Predicted(loaded.number, (arrived_ns - connection.opened_ns) / MS,
                        prediction.started_ms + prediction.total_ms)
        last_end_ms = loaded.time_ms("end_ms")
