"""Pages as a browser loaded them in the guest, to judge again and to tamper with.

Each folder of browsed has what one trial left: the fields of its trial that are not the defaults,
its observation, and the captures of both hosts. browsed/sites has the recordings by their digests.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from firstflight.net.pcap import HEADER
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.page.browsed import judge_browsed
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.page.trial import PageTrial
from tests.golden.stored import Packet, read, write

FOLDER = Path(__file__).resolve().parent / "browsed"
NAMES = ("http1", "http2")
SITES = FOLDER / "sites"  # what site_store.folder() has to be


@dataclass(frozen=True)
class StoredLoad:
    """One trial; the captures without their file headers."""

    trial: PageTrial
    observation: dict[str, Any]
    client: bytes
    server: bytes

    def judged(self, known_kernel: bool = True) -> tuple[PageRecord, Mapping[str, bytes]]:
        observed = ObservedTrial(self.trial.id, self.observation,  # type: ignore[arg-type]
                                 self.client, self.server)
        return judge_browsed(self.trial, observed, True, known_kernel=known_kernel)

    def judge(self) -> PageRecord:
        return self.judged()[0]

    def requested(self, **columns: Any) -> StoredLoad:
        """As if something else had been requested."""
        return replace(self, trial=replace(self.trial, **columns))

    def reported(self, change: Callable[[dict[str, Any]], object]) -> StoredLoad:
        """As if the worker had reported something else."""
        observation = copy.deepcopy(self.observation)
        change(observation)
        return replace(self, observation=observation)

    def captured(self, side: str, change: Callable[[list[Packet]], list[Packet]]) -> StoredLoad:
        """As if a capture had held these packets."""
        changed = write(change(read(getattr(self, side))))
        return replace(self, **{side: changed})


@cache
def load(name: str) -> StoredLoad:
    content = json.loads((FOLDER / name / "trial.json").read_text())
    client, server = ((FOLDER / name / f"{side}.pcap").read_bytes()[len(HEADER):]
                      for side in ("client", "server"))
    return StoredLoad(PageTrial(**content["trial"]), content["observation"], client, server)
