"""The verdict on a fetch over HTTP/3: its datagrams are all that can be observed of QUIC.

There is no SYN, and no TCP_INFO; the congestion window is the server's own, and no route sets
it. So what is judged is the path, what was lost on it, and what a server may send to an
address that is not validated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from findings.findings import Compared
from net.segments import CaptureError
from runs.results import checks
from runs.results.checks import Check
from runs.results.records import SKIPPED
from study.fetches.scenario.server import HTTP_3
from study.fetches.verify import path
from study.fetches.verify.evidence import Evidence
from study.fetches.verify.integrity import around_chain
from study.fetches.verify.record import Record, record_of
from testbed.messages import Observation, started_at
from wire.datagrams import Datagrams, read_datagrams
from wire.delivery.packet_path import PATH

CAPTURE = "capture"


@dataclass(frozen=True)
class Seen:
    """What a trial's client reported, and its datagrams."""

    evidence: Evidence
    wire: Datagrams

    @property
    def rtt_ms(self) -> float | None:
        trial = self.evidence.trial
        return self.wire.rtt_ms(trial.down_kbps, trial.up_kbps)


def quic_record(evidence: Evidence, observation: Observation, client_pcap: bytes,
                server_pcap: bytes, exact: bool) -> Record:
    """The record of a transfer that was whole. exact: in virtual time."""
    record = replace(record_of(evidence), measured_at=started_at(observation))
    try:
        if exact:
            evidence = path.judge_path(evidence, client_pcap, server_pcap)
            record = replace(record, judged_by=evidence.judged_by)
        observed = Seen(evidence, read_datagrams(client_pcap, server_pcap))
    except CaptureError as error:
        return checks.give_verdict(record, [checks.Failure(CAPTURE, f"{CAPTURE}: {error}")])
    return checks.give_verdict(_with_datagrams(record, observed),
                               checks.failures((PACKETS, *ON_THE_WIRE), observed))


def _with_datagrams(record: Record, observed: Seen) -> Record:
    wire, drops = observed.wire, observed.evidence.drops
    flight = [datagram for part in wire.rounds for datagram in part]
    return replace(
        record,
        seen_rtt_ms=observed.rtt_ms,
        seen_bandwidth_kbps=wire.bandwidth_kbps,
        lost_segments=wire.lost[0],
        queue_drops=drops["to_client"]["queue"] if drops else None,
        random_drops=drops["to_client"]["random"] if drops else None,
        handshake_round_trips=len(wire.rounds) or None,
        flight_bytes=sum(datagram.payload_bytes for datagram in flight),
        flight_segments=len(flight),
        flight_datagrams=", ".join("+".join(str(datagram.payload_bytes) for datagram in part)
                                   for part in wire.rounds),
        unvalidated_bytes=wire.unvalidated_bytes,
        allowed_bytes=wire.allowed_bytes)


# What is compared --------------------------------------------------------------------

def _compare_rtt(observed: Seen) -> Iterable[Compared]:
    return path.compare_rtt(observed.evidence, observed.rtt_ms)


def _compare_bandwidth(observed: Seen) -> Iterable[Compared]:
    kbps, busy = observed.wire.bandwidth_kbps, observed.wire.busy
    if kbps is not None and not observed.evidence.trial.disorder:
        yield from path.compare_bandwidth(observed.evidence, kbps,
                                  (busy[-1].time_ns - busy[0].time_ns) / 1e6)


def _compare_losses(observed: Seen) -> Iterable[Compared]:
    return path.compare_losses(observed.evidence, dict(zip(("to_client", "to_server"),
                                                           observed.wire.lost)))


def _compare_amplification(observed: Seen) -> Iterable[Compared]:
    sent, allowed = observed.wire.unvalidated_bytes, observed.wire.allowed_bytes
    yield Compared(sent <= allowed, f"{sent} bytes before the client's second flight",
                   f"at most {allowed}, three times its first")


def _compare_flight(observed: Seen) -> Iterable[Compared]:
    """The chain was sent: QUIC's headers, acknowledgements and padding come on top."""
    sent = sum(datagram.payload_bytes for part in observed.wire.rounds for datagram in part)
    least = observed.evidence.trial.chain_bytes
    most = round((least + around_chain(observed.evidence.trial)) * OVERHEAD)
    yield Compared(least < sent <= most, f"a flight of {sent} bytes",
                   f"a chain of {least}, and at most {most} with what is around it")


OVERHEAD = 1.1  # headers and authentication tags of packets, of what they hold


def is_quic(record: Record) -> bool:
    return record.ok and record.verdict != SKIPPED and record.trial.http == HTTP_3


def _is_estimated(record: Record) -> bool:
    return is_quic(record) and PATH not in record.judged_by.split()


# Judged of every trial alike, and in its table.
PACKETS: Check[Seen, Record] = Check(path.PACKETS.name, path.PACKETS.why,
                lambda observed: path.compare_packets(observed.evidence), path.PACKETS.applies_to,
                exact_only=True)
ON_THE_WIRE: tuple[Check[Seen, Record], ...] = (
    Check("QUIC RTT", "the first datagram each way, less its serialisation", _compare_rtt,
          _is_estimated,
          seldom=True),
    Check("QUIC bandwidth", "the spacing of datagrams that left at once", _compare_bandwidth,
          _is_estimated, seldom=True),
    Check("QUIC losses", "those that queue and random loss dropped, no others", _compare_losses,
          _is_estimated, seldom=True),
    Check("QUIC amplification", "three times the client's first datagrams (RFC 9000, 8.1)",
          _compare_amplification, is_quic, seldom=True),
    Check("QUIC flight", "the handshake's datagrams hold the chain", _compare_flight, is_quic,
          seldom=True))
