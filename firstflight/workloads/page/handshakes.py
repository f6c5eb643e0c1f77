"""Checks of a page's TLS handshakes, and of the bytes that each of its connections carried."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.judge import tls
from firstflight.judge.records import records_between
from firstflight.setting.server import BUILTIN, HTTP_1
from firstflight.testbed.hosts.downloads import host_name
from firstflight.testbed.network.links import SERVER_IP
from firstflight.workloads.page.record import PageEvidence
from firstflight.workloads.page.timing import ConnectionTimes
from firstflight.workloads.page.trial import PageTrial


def compare_handshakes(evidence: PageEvidence) -> Iterator[Comparison]:
    """Compare each TLS session with the requested one, and the length of the server's messages."""
    trial = evidence.trial
    for number, (port, connection) in enumerate(evidence.connections.items(), start=1):
        report = evidence.responses.get(port, {})
        comparisons: list[Comparison] = []
        if trial.server == BUILTIN and report:
            comparisons += tls.compare_session(trial, report.get("tls"))
        if trial.is_secure and connection.finished is None:
            comparisons.append(Comparison(False, "no end of a handshake", "one"))
        elif trial.is_secure:
            comparisons += tls.compare_flight(trial, connection.flight_bytes, report.get("tls"))
        for comparison in comparisons:
            yield comparison._replace(name=f"TLS of connection {number}")
    yield from _compare_certificates(evidence)


def _compare_certificates(evidence: PageEvidence) -> Iterator[Comparison]:
    """Compare the names in each connection's certificate with the hosts that have this certificate.

    Where a page has one certificate only, the client trusts no other one, and reports none.
    """
    trial = evidence.trial
    if not trial.is_secure or len({*trial.carriers}) < 2:
        return
    names_by_port = dict(evidence.observation.get("certificates", ()))
    for number, (port, connection) in enumerate(evidence.connections.items(), start=1):
        names = names_by_port.get(port)
        for host in {trial.requested[loaded.number - 1].host for loaded in connection.objects}:
            expected = _certified_names(trial, host)
            yield Comparison(names == expected, names or "no certificate", expected,
                             f"certificate of connection {number}")


def _certified_names(trial: PageTrial, host: int) -> str:
    """The names in the certificate of a host, as OpenSSL writes them."""
    names = []
    for other, carrier in enumerate(trial.carriers):
        if carrier == trial.carriers[host]:
            names.append(f"DNS:{host_name(other)}" if other else f"IP Address:{SERVER_IP}")
    return ", ".join(names)


def compare_bytes(evidence: PageEvidence) -> Iterator[Comparison]:
    """Compare the number of bytes that each connection carried.

    Over HTTP/1.1 a connection carries headers and bodies only. Over TLS these are in records, after
    the handshake. Over HTTP/2 it carries frames as well, so only the least number is known.
    """
    trial = evidence.trial
    for number, (port, connection) in enumerate(evidence.connections.items(), start=1):
        # The sequence number of the first byte is 1.
        carried, reported = connection.sent_end - 1, connection.starts[-1] - 1
        bodies = sum(loaded.report["size"] for loaded in connection.objects)
        if trial.http != HTTP_1:
            yield Comparison(carried >= bodies, f"{carried} bytes on connection {number}",
                             f"{bodies} or more")
        elif trial.is_secure:
            handshake_bytes = connection.starts[0] - 1
            expected = _handshake_bytes(evidence, port, connection)
            yield Comparison(handshake_bytes == expected,
                             f"{handshake_bytes} bytes on connection {number} before its responses",
                             f"{expected}")
        else:
            yield Comparison(carried == reported, f"{carried} bytes on connection {number}",
                             f"{reported} as the client received")


def _handshake_bytes(evidence: PageEvidence, port: int, connection: ConnectionTimes) -> int:
    """How many bytes a server sends before its responses: handshake and tickets."""
    report = evidence.responses.get(port, {}).get("tls")
    if report is not None:
        return sum(report["flight"]) + sum(report["tickets"])

    flight_bytes = connection.flight_bytes
    lengths = evidence.records.get(port, ())
    later_records = records_between(lengths, flight_bytes, connection.sent_end)
    return flight_bytes + sum(later_records[:tls.tickets_of(evidence.trial)])
