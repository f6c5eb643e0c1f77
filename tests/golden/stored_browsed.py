"""Stored pages as a browser loaded them in the guest, which tests judge again and tamper with.

Each folder of browsed/ holds what one trial left: the fields of the trial that are not the
defaults, what the worker observed, and the captures of both hosts. browsed/sites has the
recordings of sites by their digests.
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
SITES = FOLDER / "sites"  # tests have to make this the result of site_store.folder()


@dataclass(frozen=True)
class StoredLoad:
    """A stored trial."""

    trial: PageTrial
    observation: dict[str, Any]
    client: bytes  # the client's capture, without the header of its file
    server: bytes  # the server's capture, likewise

    def judged(self, known_kernel: bool = True) -> tuple[PageRecord, Mapping[str, bytes]]:
        """The record, and the files that a run keeps of the trial, by name."""
        observed = ObservedTrial(self.trial.id, self.observation,  # type: ignore[arg-type]
                                 self.client, self.server)
        return judge_browsed(self.trial, observed, True, known_kernel=known_kernel)

    def judge(self) -> PageRecord:
        return self.judged()[0]

    def requested(self, **columns: Any) -> StoredLoad:
        """The same trial as if these columns had been requested."""
        return replace(self, trial=replace(self.trial, **columns))

    def reported(self, change: Callable[[dict[str, Any]], object]) -> StoredLoad:
        """The same trial as if the worker had observed something else. change: edits it in place.
        """
        observation = copy.deepcopy(self.observation)
        change(observation)
        return replace(self, observation=observation)

    def captured(self, side: str, change: Callable[[list[Packet]], list[Packet]]) -> StoredLoad:
        """The same trial as if the capture of a side, "client" or "server", had other packets."""
        changed = write(change(read(getattr(self, side))))
        return replace(self, **{side: changed})


@cache
def load(name: str) -> StoredLoad:
    content = json.loads((FOLDER / name / "trial.json").read_text())
    client, server = ((FOLDER / name / f"{side}.pcap").read_bytes()[len(HEADER):]
                      for side in ("client", "server"))
    return StoredLoad(PageTrial(**content["trial"]), content["observation"], client, server)
