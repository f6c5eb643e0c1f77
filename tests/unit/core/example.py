"""A kind of trials, records and studies with little in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from lab import registry
from lab.core.results import records
from lab.core.results.records import PASS, measured
from lab.core.scenario import scenario_file
from lab.core.scenario.scenario_file import Head
from lab.core.words import exact


@dataclass(frozen=True)
class Trial:
    scenario: str
    rtt_ms: float
    repeat: int
    part: str = ""

    @property
    def id(self) -> str:
        part = f"{self.part}-" if self.part else ""
        return f"{part}rtt{exact(self.rtt_ms)}-{self.repeat}"

    def job(self) -> dict[str, Any]:
        return {"id": self.id}


@dataclass(frozen=True)
class Record(records.Record):
    trial: Trial
    total_ms: float | None = measured(lambda evidence: evidence["total_ms"])
    lost: int | None = measured(lambda evidence: evidence.get("lost"))
    cause: str = measured(lambda evidence: evidence.get("cause", ""), "")


@dataclass(frozen=True)
class Study:
    """As far as runs need one."""

    record: ClassVar[type[records.Record]] = Record
    head: Head
    trials: Sequence[Trial]


@cache
def whole(name: str) -> Any:
    """One of the scenarios that there are, made ready: drawing a population takes a second."""
    return registry.study_of(scenario_file.find(name))


def study(*rtts_ms: float, text: str = "# A claim.", name: str = "small") -> Any:
    return Study(Head("t", "s", name, "A claim.", text, {}),
                 [Trial(name, rtt_ms, 1) for rtt_ms in rtts_ms])


def record(rtt_ms: float = 20.0, **values: Any) -> Record:
    said: dict[str, Any] = {"ok": True, "verdict": PASS, "total_ms": 1.5, **values}
    return Record(Trial("small", rtt_ms, 1, said.pop("part", "")), **said)
