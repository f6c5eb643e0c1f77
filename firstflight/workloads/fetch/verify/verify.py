"""The verdict on one trial: was the requested trial measured?

A configured value proves nothing. The initial window, RTT, bandwidth, losses and retransmissions
are read from the packets of the trial itself. Size and digest of the transfer are compared with the
server's. In virtual time, a trial without losses has to take the time that model.predict computes,
to the millisecond. That includes trials in which timers retransmit what was not lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from firstflight.base.comparison import Comparison
from firstflight.judge import tls
from firstflight.judge.checklist import FETCH, Judging, checks_of
from firstflight.judge.records import lengths_of
from firstflight.judge.sending import compare_retransmissions, compare_uncaused, late_answers
from firstflight.judge.verdict import skipped_record
from firstflight.net.segments import CaptureError, Packets, frames_of
from firstflight.parameters import default
from firstflight.runs.results import checks
from firstflight.setting.server import BUILTIN, OWN
from firstflight.setting.tcp import BY_KERNEL
from firstflight.testbed.messages import Fetch, Observation, Response, started_at
from firstflight.wire.delivery.packet_path import PATH
from firstflight.wire.exchange import Exchange, read_exchange
from firstflight.wire.messages import find_early, find_messages, retime
from firstflight.workloads.fetch.record.record import Record, record_of
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify import (agreed, client_times, handshake, integrity, path,
                                                requests, unconnected, upload, zero_rtt)
from firstflight.workloads.fetch.verify.agreed import has_window
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.verify.integrity import (CAPTURE, is_estimated, is_fetched,
                                                          is_modelled, is_on_wire, shows_window)
from firstflight.workloads.fetch.record.observed import EXACT, HOST, REAL_TIME
from firstflight.workloads.fetch.record.transfers import sealed_bytes, wire_bytes

FQ = "fq"


def judge_fetch(trial: Trial, observation: Observation, client_pcap: bytes, server_pcap: bytes,
          *, exact: bool, sysctls: Mapping[str, str], known_kernel: bool = True) -> Record:
    """The record of a trial: its measurements, what the packets show, and the verdict.

    observation: one line of the worker (testbed/worker/worker.py).
    client_pcap, server_pcap: the trial's packets.
    exact: whether time was virtual.
    sysctls: those that the scenario changes from testbed.network.tcp_sysctls.
    known_kernel: whether the model was checked against the TCP of this kernel.

    For an unknown kernel, the model's times are recorded but not judged. Nor is it judged why data
    left or was retransmitted. Where no route sets a window, the window that such a kernel reports
    is taken for the requested one.
    """
    skipped = skipped_record(Record, trial, observation)
    if skipped is not None:
        return skipped

    reported_window = observation.get("server", {}).get("initial_window")
    if trial.window_by == BY_KERNEL and not known_kernel and reported_window:
        with_window = replace(trial, initcwnd=reported_window, window_by=default("window_by"))
        record = judge_fetch(with_window, observation, client_pcap, server_pcap, exact=exact,
                             sysctls=sysctls, known_kernel=known_kernel)
        return replace(record, trial=trial)

    failure = _failure(observation)
    if failure and trial.cannot_connect:
        return unconnected.unconnected_record(trial, observation, failure, client_pcap)

    tolerances = EXACT if exact else REAL_TIME
    if not known_kernel:
        tolerances = replace(tolerances, model_ms=None)
    evidence = Evidence(
        trial, fetch={} if failure else observation["fetch"],
        report={} if failure else observation["server"], exchange=None,
        tolerances=tolerances, sysctls=trial.host_settings(sysctls),
        drops=observation.get("drops", {}), records=lengths_of(observation),
        tick_ns=_tick_ns(observation, exact), known_kernel=known_kernel)
    broken = [] if failure else checks.failures(INTEGRITY, evidence)
    failed = list(broken)
    if not broken:  # packets are read of a failed transfer, too: they may show why it failed
        try:
            _check_lengths(observation, client_pcap, server_pcap)
            client, server = frames_of(client_pcap, server_pcap)
            evidence = _with_packets(evidence, _exchange(observation, client, server), client)
            if exact and not failure:
                evidence = path.judge_path(evidence, client, server)
            elif trial.resumed:  # the qdiscs counted the first connection's losses as well
                evidence = replace(evidence, lost_in_all=path.lost_in_all(client, server))
        except CaptureError as error:
            failed.append(checks.Failure(CAPTURE, f"{CAPTURE}: {error}"))

    record = record_of(evidence, failure or checks.reasons(broken), started_at(observation))
    if failure:
        return record
    return checks.give_verdict(record, failed or checks.failures(ON_THE_WIRE, evidence))


def _tick_ns(observation: Observation, exact: bool) -> int:
    """The tick of the kernel's clock at which a trial began (Worker._align); 0 in real time."""
    return round(observation.get("started_at", 0) * 1e9) if exact else 0


def _failure(observation: Observation) -> str:
    """Why there is no transfer to judge; "" if there is one."""
    if observation.get("error"):
        return observation["error"]
    fetch = observation.get("fetch")
    report = observation.get("server", Response())
    if not fetch:
        return "the worker reported no fetch"
    if not fetch["ok"]:
        return fetch["error"] or "the fetch failed"
    if not {"latency_ms", "samples"} & report.keys():
        return f"the server reported no response: {report.get('error') or 'no reason'}"
    if report.get("error"):
        return f"server: {report['error']}"
    return ""


def _check_lengths(observation: Observation, client_pcap: bytes, server_pcap: bytes) -> None:
    """Check that each capture has as many bytes as the worker reports. Raises CaptureError."""
    for side, packets in (("client", client_pcap), ("server", server_pcap)):
        expected = observation.get("captures", {}).get(side, {}).get("bytes", len(packets))
        if len(packets) != expected:
            raise CaptureError(f"{side} capture has {len(packets)} of {expected} bytes")


def _exchange(observation: Observation, client: Packets, server: Packets) -> Exchange:
    """The packets of the measured connection. Raises CaptureError."""
    report = observation.get("server", Response())
    port = report.get("client_port") or observation.get("fetch", Fetch()).get("port") or 0
    return read_exchange(client, server, port, wire_bytes(report))


def _with_packets(evidence: Evidence, exchange: Exchange, client: Packets) -> Evidence:
    """The evidence with the packets.

    If the server reports nothing, the packets show its messages. Raises CaptureError where they do
    not.
    """
    if evidence.has_report or not evidence.report:
        return replace(evidence, exchange=exchange)

    trial = evidence.trial
    accepted = evidence.accepted_early_bytes or 0
    if accepted > 0:
        early = find_early(exchange, client, sealed_bytes(accepted))
        return replace(evidence, exchange=retime(exchange, early.messages), early=early,
                       messages=early.messages)

    messages = find_messages(exchange, trial.is_secure, len(trial.before))
    if messages is None:
        raise CaptureError("no request with an answer to it")
    return replace(evidence, exchange=retime(exchange, messages), messages=messages)


# Comparisons -------------------------------------------------------------------------

def _compare_first_flight(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the first flight with the expected one.

    Where the server's writes are not known, only the window limits it.
    """
    if not evidence.has_report:
        flight = evidence.first_flight or 0
        window = evidence.trial.server_window
        yield Comparison(flight <= window, f"{flight} segments", f"at most {window}")
        return

    observed = evidence.first_flight
    least, most = evidence.expected_first_flight
    if has_window(evidence) and observed is not None:
        yield Comparison(least <= observed <= most, f"{observed} segments",
                         f"{most}" if least == most else f"{least} to {most}")


def _compare_rtt(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the RTT of the handshake, where packets are not judged one by one."""
    return path.compare_rtt(evidence, evidence.rtt_ms)


def _compare_bandwidth(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the bandwidth of the first flight, where packets are not judged one by one."""
    if evidence.bandwidth_kbps is not None:
        arrivals = evidence.wire.flight_arrivals
        yield from path.compare_bandwidth(evidence, evidence.bandwidth_kbps,
                                  arrivals[-1].ms_after(arrivals[0]))


def _compare_lost_packets(evidence: Evidence) -> Iterable[Comparison]:
    """Compare losses with the qdiscs' counters, where packets are not judged one by one.

    Where nothing can be lost, nothing may be lost.
    """
    if not path.is_estimated(evidence):
        return
    lost = evidence.lost_in_all or {"to_client": len(evidence.wire.lost_to_client),
                                    "to_server": len(evidence.wire.lost_to_server)}
    yield from path.compare_losses(evidence, lost)
    if not evidence.may_lose:
        total = sum(lost.values())
        yield Comparison(total == 0, f"{total}", "none")


def _compare_retransmissions(evidence: Evidence) -> Iterable[Comparison]:
    """Check that each retransmission has a known cause."""
    if not evidence.known_kernel:
        return
    yield from compare_retransmissions(evidence.retransmissions)


def _compare_causes(evidence: Evidence) -> Iterable[Comparison]:
    """Check that each host sends when it has a cause, and that no answer is late."""
    if evidence.path is None or not evidence.known_kernel or evidence.trial.server == OWN:
        return
    in_words = []
    for segment in (*evidence.uncaused, *late_answers(evidence.trial, evidence.wire)):
        host = "server" if segment.to_client else "client"
        in_words.append(f"{host} {segment.seq}–{segment.end} at"
                     f" {segment.ms_after(evidence.wire.at_client[0]):.3f} ms")
    yield compare_uncaused(in_words)


def _compare_server_latency(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the T_ACK − T_Res1 that the server reports with that of the capture."""
    if not evidence.has_report:
        return
    server_ms = float(evidence.report["latency_ms"])
    wire_ms = evidence.wire.latency_ms or math.nan
    allowed_ms = max(evidence.tolerances.latency_ms, evidence.tolerances.latency_share * wire_ms)
    starts_ns = _possible_starts_ns(evidence.wire, evidence.trial.qdisc == FQ, evidence.may_wait)
    end_ns = evidence.wire.response_acknowledged_ns or 0

    # If two writes share an skb, TCP reports the departure of the second one, a pause later.
    pause_ms = evidence.trial.gap_ms if evidence.may_wait else 0.0
    # fq delays the response between the request and its departure.
    held_ms = 0.0
    if evidence.trial.qdisc == FQ:
        held_ms = wire_ms - (end_ns - min(starts_ns, default=0)) / 1e6
    is_from_a_start = any(abs(end_ns - start_ns - server_ms * 1e6) <= allowed_ms * 1e6
                          for start_ns in starts_ns)
    is_near = held_ms - allowed_ms <= wire_ms - server_ms <= pause_ms + allowed_ms
    yield Comparison(is_from_a_start or is_near, f"{server_ms:.3f} ms",
                     f"{wire_ms:.3f} ms as on the wire")


def _possible_starts_ns(wire: Exchange, is_paced: bool, may_wait: bool) -> list[int]:
    """The moments that server.py may report as T_Res1.

    Usually it is the moment when the response's first segment left. Others are possible where
    earlier writes of the server, such as session tickets, are still on their way or waiting
    (may_wait):

    - fq spaces packets (is_paced): TCP sends the response when the request arrives, and fq lets it
      leave later.
    - Where the window is full, or a congestion control paces, the response leaves later than it is
      written. server.py checks whether it has left when TCP reports one of its writes as
      acknowledged (testbed/hosts/kernel.py). If writes share an skb, TCP reports the last one only
      (tcp_tx_timestamp). So T_Res1 may be any of the acknowledgements that follow.
    """
    start_ns, end_ns = wire.response_start_ns, wire.response_acknowledged_ns
    if start_ns is None or end_ns is None:
        return []
    if not may_wait:
        return [start_ns]
    since_ns = _requested_ns(wire, start_ns) if is_paced else start_ns
    heard = [segment.time_ns for segment in wire.at_server
             if not segment.to_client and since_ns <= segment.time_ns <= end_ns]
    return [start_ns, since_ns, *heard]


def _requested_ns(wire: Exchange, before_ns: int) -> int:
    """When the end of the request arrived whose response left at before_ns."""
    requested = [segment for segment in wire.at_server if not segment.to_client
             and segment.payload_bytes and segment.time_ns <= before_ns]
    end = max((segment.end for segment in requested), default=0)
    return min((segment.time_ns for segment in requested if segment.end == end), default=before_ns)


def _compare_flight(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the size of the server's first messages with OpenSSL's report, or with the chain."""
    if not evidence.flights:
        return
    end = max(segment.end for flight in evidence.flights for segment in flight) - 1
    yield from tls.compare_flight(evidence.trial, end, evidence.report.get("tls"))


# The checks ---------------------------------------------------------------------------

_JUDGED: dict[str, Judging[Evidence, Record]] = {
    # judge_fetch() finds captures that cannot be read.
    CAPTURE: Judging(lambda record: is_fetched(record) and record.ok, lambda evidence: ()),
    "path": Judging(lambda record: PATH in record.judged_by.split()),
    "causes": Judging(lambda record: HOST in record.judged_by.split(), _compare_causes),
    "initial window": Judging(shows_window),
    "first flight": Judging(
        lambda record: shows_window(record) and record.seen_first_flight is not None,
        _compare_first_flight),
    "RTT": Judging(lambda record: is_estimated(record) and record.seen_rtt_ms is not None,
                   _compare_rtt),
    "bandwidth": Judging(
        lambda record: is_estimated(record) and record.seen_bandwidth_kbps is not None,
        _compare_bandwidth),
    "lost packets": Judging(
        lambda record: is_estimated(record) and (
            record.random_drops is not None
            or record.trial.loss_percent == 0 and not record.lost_segments),
        _compare_lost_packets),
    "retransmissions": Judging(is_on_wire, _compare_retransmissions),
    "server latency": Judging(
        lambda record: is_on_wire(record) and record.trial.server == BUILTIN,
        _compare_server_latency),
    "TLS flight": Judging(lambda record: is_on_wire(record) and bool(record.flight_segments),
                          _compare_flight),
    "model": Judging(is_modelled, Evidence.compare_total),
    "model latency": Judging(is_modelled, Evidence.compare_latency),
}
CHECKS = checks_of(FETCH, {
    **integrity.JUDGED, **agreed.JUDGED, **client_times.JUDGED, **handshake.JUDGED,
    **requests.JUDGED, **zero_rtt.JUDGED, **upload.JUDGED, **unconnected.JUDGED, **_JUDGED})
# Checks whether the requested transfer took place. If one fails, packets are not judged.
INTEGRITY = tuple(check for check in CHECKS
                  if check.name in integrity.JUDGED or check.name == upload.REQUEST)
ON_THE_WIRE = tuple(check for check in CHECKS if check not in INTEGRITY)
