"""Judges fetches that cannot connect, since ARP gives up too early (PathParameters.arp_ms)."""

from __future__ import annotations

from firstflight.judge.checklist import Judging
from firstflight.net.headers import IPV4, network_header
from firstflight.net.segments import frames
from firstflight.runs.results import checks
from firstflight.testbed.messages import Fetch, Observation, started_at
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.record.evidence import Evidence

COULD_NOT_CONNECT = 7  # curl's exit status (CURLE_COULDNT_CONNECT)
CONNECTION = "no connection"
# unconnected_record() applies this check, and no other check judges such a fetch.
JUDGED: dict[str, Judging[Evidence, Record]] = {
    CONNECTION: Judging(lambda record: bool(record.trial.cannot_connect), lambda evidence: ())}


def unconnected_record(trial: Trial, observation: Observation, failure: str,
                       client_pcap: bytes) -> Record:
    """The record of a fetch that has to fail.

    It passes if curl could not connect and no IP packet left the client. It has no times, since
    the client's times are then not the network's. failure: the client's message.
    """
    differences = []
    sent = sum(network_header(head)[0] == IPV4 for _, head, _ in frames(client_pcap, "client"))
    if sent:
        differences.append(f"observed {sent} packets of IP, expected none")
    fetch = observation.get("fetch", Fetch())
    if fetch.get("exit_status") != COULD_NOT_CONNECT:
        differences.append(f"observed {failure!r}, expected that curl cannot connect")

    record = Record(trial, False, failure, measured_at=started_at(observation))
    return checks.give_verdict(record, [
        checks.Failure(CONNECTION, f"{CONNECTION}: {difference}") for difference in differences])
