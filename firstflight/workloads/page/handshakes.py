"""Checks of the TLS handshakes of a page: one on each of its connections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from firstflight.base.comparison import Comparison
from firstflight.judge import tls
from firstflight.judge.records import between
from firstflight.setting.server import BUILTIN, HTTP_1
from firstflight.testbed.hosts.downloads import host_name
from firstflight.testbed.network.links import SERVER_IP
from firstflight.workloads.page.record import PageEvidence
from firstflight.workloads.page.timing import ConnectionTimes
from firstflight.workloads.page.trial import PageTrial


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
            before, expected = connection.starts[0] - 1, _before_responses(
                evidence, port, connection)
            yield Comparison(before == expected,
                             f"{before} bytes on connection {number} before its responses",
                             f"{expected}")
        else:
            yield Comparison(carried == reported, f"{carried} bytes on connection {number}",
                             f"{reported} as the client received")


def _before_responses(evidence: PageEvidence, port: int, connection: ConnectionTimes) -> int:
    """The bytes that a server sends before its responses: handshake and tickets."""
    said = evidence.responses.get(port, {}).get("tls")
    if said is not None:
        return sum(said["flight"]) + sum(said["tickets"])
    flight_bytes = connection.flight_bytes
    behind = between(evidence.records.get(port, ()), flight_bytes, connection.sent_end)
    return flight_bytes + sum(behind[:tls.tickets_of(evidence.trial)])
