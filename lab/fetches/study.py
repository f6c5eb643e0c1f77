"""The study of kind fetches: a scenario made ready to be measured and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lab.core.checks import Check
from lab.core.findings import Report
from lab.core.kinds import NOTHING, Overrides, RunData, Seen
from lab.core.records import Record as AnyRecord
from lab.core.scenario_file import Head, ScenarioFile
from lab.fetches import reading, trials
from lab.fetches.record import Record
from lab.fetches.scenario import Scenario
from lab.fetches.trial import Trial
from lab.fetches.verify import CHECKS, judge

# For the expected time, from runs on two cores: what a fetch costs in a
# guest, what the host engine spends around it.
GUEST_FETCH_S = {"curl": 0.05, "wget": 0.04, "libcurl": 0.017}
HOST_OVERHEAD_S = 0.3


@dataclass(frozen=True)
class Fetches:
    """One transfer at a time on the star (lab.core.kinds.Study)."""

    record: ClassVar[type[AnyRecord]] = Record
    checks: ClassVar[Sequence[Check]] = CHECKS
    all_captures: ClassVar[bool] = False

    scenario: Scenario
    trials: tuple[Trial, ...]
    whole: bool

    @property
    def head(self) -> Head:
        return self.scenario.head

    def judge(self, trial: Trial, seen: Seen, exact: bool) -> tuple[Record, Mapping[str, bytes]]:
        return judge(trial, seen.content, seen.client_pcap, seen.server_pcap, exact=exact,
                     sysctls=self.head.sysctls), seen.files

    def report(self, run: RunData) -> Report:
        from lab.fetches import findings
        return findings.report(self, self.scenario, run)

    def guest_s(self, trial: Trial) -> float:
        return GUEST_FETCH_S[trial.client]

    def network_s(self, trial: Trial) -> float:
        """Handshake, request, two more round trips, and the FINs."""
        return (HOST_OVERHEAD_S + 5 * trial.rtt_ms / 1000
                + trial.response_bytes * 8 / (trial.bandwidth_kbps * 1000))


def study(file: ScenarioFile, overrides: Overrides = NOTHING, seed: int = 1) -> Fetches:
    """A scenario with what the command line says in place of it. Raises UsageError."""
    scenario = reading.read(file)
    return Fetches(scenario, tuple(trials.expand(scenario, overrides, seed)),
                   trials.covers(scenario, overrides))
