"""What TLS and QUIC bring: rules of a sweep, checks of handshakes and early data, HTTP/3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.core.results.checks import Check
from lab.fetches.features.tls import handshake, quic, rules, zero_rtt
from lab.fetches.scenario import feature
from lab.fetches.scenario.server import HTTP_3
from lab.fetches.scenario.sweep import Sweep
from lab.fetches.verify.evidence import Evidence
from lab.fetches.verify.record import Record
from lab.fetches.verify.verify import is_on_wire


class Feature(feature.Feature):
    """As lab.fetches.scenario.feature has it."""

    integrity = (handshake.SESSION,)
    checks = (handshake.MODEL, Check(
        "early data", "it left with the hello, the server took it, and answered at once",
        zero_rtt.early_data,
        lambda record: is_on_wire(record) and bool(record.trial.early_data_bytes), seldom=True),)
    own_checks = quic.ON_THE_WIRE

    def check_sweep(self, sweep: Sweep, where: str) -> None:
        rules.check_tls(sweep, where)

    def judged(self, evidence: Evidence, observation: Mapping[str, Any], client_pcap: bytes,
               server_pcap: bytes, exact: bool) -> Record | None:
        if evidence.trial.http != HTTP_3:
            return None
        return quic.judged(evidence, observation, client_pcap, server_pcap, exact)


FEATURE = Feature()
