"""Checks of the TLS handshakes of a page: one on each of its connections."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from firstflight.base.comparison import Comparison
from firstflight.judge import tls
from firstflight.setting.server import BUILTIN, HTTP_1
from firstflight.testbed.hosts.downloads import host_name
from firstflight.testbed.network.links import SERVER_IP
from firstflight.wire.messages import find_messages
from firstflight.workloads.page.record import PageEvidence
from firstflight.workloads.page.timing import ConnectionTimes
from firstflight.workloads.page.trial import PageTrial

# OpenSSL's tickets have 250 bytes and a little more.
LEAST_TICKET_BYTES, MOST_TICKET_BYTES = 150, 320


def compare_handshakes(evidence: PageEvidence) -> Iterator[Comparison]:
    """Compare each session with the requested one, and the length of the server's messages."""
    trial = evidence.trial
    for number, (port, connection) in enumerate(evidence.connections.items(), start=1):
        said = evidence.responses.get(port, {})
        name = f"TLS of connection {number}"
        if trial.server == BUILTIN and said:
            for each in tls.compare_session(trial, said.get("tls")):
                yield replace(each, name=name)
        if not trial.is_secure:
            continue
        if connection.finished is None:
            yield Comparison(False, "no end of a handshake", "one", name)
            continue
        for each in tls.compare_flight(trial, connection.flight_bytes, said.get("tls")):
            yield replace(each, name=name)
        if (trial.http != HTTP_1 and trial.mss >= MOST_TICKET_BYTES
                and _is_prompt(trial, connection)):
            sent, expected = _tickets(connection), tls.tickets_of(trial)
            yield Comparison(sent == expected, f"{sent} tickets", f"{expected}", name)
    yield from _compare_certificates(evidence)


def _compare_certificates(evidence: PageEvidence) -> Iterator[Comparison]:
    """Compare what the certificate on each connection is for with the hosts that have it.

    Where a page has one certificate only, the client reports none, and trusts no other one.
    """
    trial = evidence.trial
    if not trial.is_secure or len({*trial.carriers}) < 2:
        return
    got = dict(evidence.observation.get("certificates", ()))
    for number, (port, connection) in enumerate(evidence.connections.items(), start=1):
        for host in {trial.requested[loaded.number - 1].host for loaded in connection.objects}:
            expected = _certified(trial, host)
            yield Comparison(got.get(port) == expected, got.get(port) or "no certificate", expected,
                             f"certificate of connection {number}")


def _certified(trial: PageTrial, host: int) -> str:
    """What the certificate of a host is for, in OpenSSL's words."""
    hosts = [other for other, carrier in enumerate(trial.carriers)
             if carrier == trial.carriers[host]]
    return ", ".join(f"DNS:{host_name(other)}" if other else f"IP Address:{SERVER_IP}"
                     for other in hosts)


def compare_bytes(evidence: PageEvidence) -> Iterator[Comparison]:
    """Compare what each connection carried.

    Over HTTP/1.1 it carries headers and bodies only, over TLS in records behind the handshake; over
    HTTP/2 frames as well.
    """
    trial = evidence.trial
    for number, (port, connection) in enumerate(evidence.connections.items(), start=1):
        carried, reported = connection.sent_end - 1, connection.starts[-1] - 1
        bodies = sum(loaded.report["size"] for loaded in connection.objects)
        if trial.http != HTTP_1:
            yield Comparison(carried >= bodies, f"{carried} bytes on connection {number}",
                             f"{bodies} or more")
        elif trial.is_secure:
            before, (least, most) = connection.starts[0] - 1, _before_responses(
                evidence, port, connection)
            yield Comparison(least <= before <= most,
                             f"{before} bytes on connection {number} before its responses",
                             f"{least}" if least == most else f"{least} to {most}")
        else:
            yield Comparison(carried == reported, f"{carried} bytes on connection {number}",
                             f"{reported} as the client received")


def _before_responses(evidence: PageEvidence, port: int, connection: ConnectionTimes
                      ) -> tuple[int, int]:
    """The least and the most that a server may send before its responses: handshake and tickets."""
    said = evidence.responses.get(port, {}).get("tls")
    if said is not None:
        return (sum(said["flight"]) + sum(said["tickets"]),) * 2
    flight, trial = connection.flight_bytes, evidence.trial
    tickets = tls.tickets_of(trial)
    least, most = (flight + tickets * size for size in (LEAST_TICKET_BYTES, MOST_TICKET_BYTES))
    messages = find_messages(connection.exchange, is_secure=True)
    if messages is None or not _is_prompt(trial, connection):
        return least, most
    return narrowed(least, most, messages.start)


def narrowed(least: int, most: int, before_request: int) -> tuple[int, int]:
    """The bounds of what a server sends before its responses, by what it sent before a request.

    Another server sends its tickets when the client's Finished comes: just before the request, or
    over a fast link just after it, which tells nothing.
    """
    if before_request < least:
        return least, most
    return before_request, min(most, before_request)


def _is_prompt(trial: PageTrial, connection: ConnectionTimes) -> bool:
    """Whether what a server writes leaves at once, and comes in the order of writing."""
    wire = connection.exchange
    has_room = min(trial.initcwnd, trial.initrwnd - 2) >= 2 + trial.tickets
    is_whole = not (wire.lost_to_client or wire.lost_to_server or wire.retransmissions)
    return has_room and is_whole and not (trial.paces or trial.disorder)


def _tickets(connection: ConnectionTimes) -> int:
    """How many tickets the server sends first when Finished has come. Each is a write."""
    finished, heard = connection.finished, False
    sent: list[int] = []
    for segment in connection.exchange.at_server:
        if not segment.to_client:
            heard = heard or finished is not None and segment.end == finished.end
        elif heard and segment.payload_bytes:
            sent.append(segment.payload_bytes)
    return leading_tickets(sent)


def leading_tickets(lengths: Sequence[int]) -> int:
    """How many of the first segments are tickets: those of a session have one length."""
    first = lengths[0] if lengths else 0
    if not LEAST_TICKET_BYTES <= first <= MOST_TICKET_BYTES:
        return 0
    return len([*itertools.takewhile(lambda length: length == first, lengths)])
