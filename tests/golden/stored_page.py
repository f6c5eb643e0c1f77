"""Pages as they were measured in the guest, to judge again and to tamper with.

page/small.toml says what was measured; page/run is the run's folder, run.json cut down; each
folder of page/trials has what one trial left: its observation and the captures of both hosts.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from firstflight.net.pcap import HEADER
from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING, RunData, Study
from firstflight.study.pages import KIND
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.page.record import PageEvidence, PageRecord
from firstflight.workloads.page.trial import PageTrial
from firstflight.workloads.page.verify import judge_page
from tests.golden.rows import stored_run
from tests.golden.stored import Packet, read, write

FOLDER = Path(__file__).resolve().parent / "page"
NAMES = sorted(path.name for path in (FOLDER / "trials").iterdir())


@cache
def study() -> Study:
    return KIND.study(scenario_file.read(FOLDER / "small.toml"), NOTHING, 1)


@cache
def run() -> RunData:
    return stored_run(FOLDER / "run", PageRecord)


@dataclass(frozen=True)
class StoredPage:
    """One trial; the captures without their file headers."""

    trial: PageTrial
    observation: dict[str, Any]
    client: bytes
    server: bytes

    @property
    def observed(self) -> ObservedTrial:
        return ObservedTrial(self.trial.id, self.observation,  # type: ignore[arg-type]
                             self.client, self.server)

    def judge(self, exact: bool = True, known_kernel: bool = True) -> PageRecord:
        return judge_page(self.trial, self.observed, exact, known_kernel=known_kernel)[0]

    def evidence(self) -> PageEvidence:
        """What the checks look at, in virtual time."""
        return PageEvidence.of_captures(self.trial, self.observed, exact=True)

    def requested(self, **columns: Any) -> StoredPage:
        """As if something else had been requested."""
        return replace(self, trial=replace(self.trial, **columns))

    def reported(self, change: Callable[[dict[str, Any]], object]) -> StoredPage:
        """As if the worker had reported something else."""
        observation = copy.deepcopy(self.observation)
        change(observation)
        return replace(self, observation=observation)

    def captured(self, side: str, change: Callable[[list[Packet]], list[Packet]]) -> StoredPage:
        """As if a capture had held these packets."""
        changed = write(change(read(getattr(self, side))))
        return replace(self, **{side: changed})


@cache
def load(name: str) -> StoredPage:
    content = json.loads((FOLDER / "trials" / name / "trial.json").read_text())
    trial = next(record.trial for record in run().records if record.trial.id == content["id"])
    client, server = ((FOLDER / "trials" / name / f"{side}.pcap").read_bytes()[len(HEADER):]
                      for side in ("client", "server"))
    return StoredPage(trial, content["observation"], client, server)


def two(**changes: float | None) -> list[PageRecord]:
    """One page under 3 and 10 segments; changes: of the latter."""
    first, second = (record for record in run().records
                     if record.trial.part == "plain" and record.trial.connections == 2)
    assert (first.trial.initcwnd, second.trial.initcwnd) == (3, 10)
    return [first, replace(second, **changes)]  # type: ignore[arg-type]
