"""Stored pages as they were measured in the guest, which tests judge again and tamper with.

page/run is a run of page/small.toml, with a shorter run.json. Each folder of page/trials holds what
one trial left: what the worker observed, and the captures of both hosts.
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
    """A stored trial."""

    trial: PageTrial
    observation: dict[str, Any]
    client: bytes  # the client's capture, without the header of its file
    server: bytes  # the server's capture, likewise

    @property
    def observed(self) -> ObservedTrial:
        return ObservedTrial(self.trial.id, self.observation,  # type: ignore[arg-type]
                             self.client, self.server)

    def judge(self, exact: bool = True, known_kernel: bool = True) -> PageRecord:
        return judge_page(self.trial, self.observed, exact, known_kernel=known_kernel)[0]

    def evidence(self) -> PageEvidence:
        """The evidence that the checks compare, as of virtual time."""
        return PageEvidence.of_captures(self.trial, self.observed, exact=True)

    def requested(self, **columns: Any) -> StoredPage:
        """The same trial as if these columns had been requested."""
        return replace(self, trial=replace(self.trial, **columns))

    def reported(self, change: Callable[[dict[str, Any]], object]) -> StoredPage:
        """The same trial as if the worker had observed something else. change: edits it in place.
        """
        observation = copy.deepcopy(self.observation)
        change(observation)
        return replace(self, observation=observation)

    def captured(self, side: str, change: Callable[[list[Packet]], list[Packet]]) -> StoredPage:
        """The same trial as if the capture of a side, "client" or "server", had other packets."""
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
    """The records of one page under 3 and 10 segments. changes: columns of the second one."""
    first, second = (record for record in run().records
                     if record.trial.part == "plain" and record.trial.connections == 2)
    assert (first.trial.initcwnd, second.trial.initcwnd) == (3, 10)
    return [first, replace(second, **changes)]  # type: ignore[arg-type]
