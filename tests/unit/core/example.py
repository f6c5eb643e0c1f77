"""The smallest kind of study: trials with an RTT, records with a time, and a judge that passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

from firstflight.base.words import format_lossless
from firstflight.runs import scenario_file
from firstflight.runs.kinds import AnyKind, Kind, Study
from firstflight.runs.results import records
from firstflight.runs.results.records import PASS
from firstflight.runs.scenario_file import Head
from firstflight.study import registry


@dataclass(frozen=True)
class Trial:
    scenario: str
    rtt_ms: float
    repeat: int
    part: str = ""

    @property
    def id(self) -> str:
        part = f"{self.part}-" if self.part else ""
        return f"{part}rtt{format_lossless(self.rtt_ms)}-{self.repeat}"

    def job(self) -> dict[str, Any]:
        return {"id": self.id}


@dataclass(frozen=True)
class Record(records.Record):
    COMPARED: ClassVar[str] = "total_ms"
    trial: Trial
    total_ms: float | None = None
    lost: int | None = None
    cause: str = ""


@dataclass(frozen=True)
class Scenario:
    head: Head


def judge(trial: Trial, seen: Any, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[Record, dict[str, bytes]]:
    return record(trial.rtt_ms, total_ms=trial.rtt_ms * 3), {}


def nothing(*_: Any) -> Any:
    """In the place of what this kind cannot do: read a file, expand it, or report."""
    raise NotImplementedError


# Each trial takes a second.
KIND: AnyKind = Kind(Record, nothing, nothing, judge, nothing, lambda trial: 1.0, lambda: (),
                     all_captures=True)


def changed(kind: AnyKind, **members: Any) -> AnyKind:
    """The kind with other values and functions."""
    return replace(kind, **members)


@cache
def whole(name: str) -> Any:
    """The study of one of the project's scenarios. Drawing a population takes a second."""
    return registry.study_of(scenario_file.find(name))


def study(*rtts_ms: float, text: str = "# A claim.", name: str = "small",
          kind: AnyKind = KIND, whole: bool = True) -> Any:
    """A study with a trial for each RTT. text: of its scenario file."""
    return Study(kind, Scenario(Head("t", "s", name, "A claim.", text, {})),
                 [Trial(name, rtt_ms, 1) for rtt_ms in rtts_ms], whole)


def record(rtt_ms: float = 20.0, **values: Any) -> Record:
    """A record that passed. values: other columns of the record, or the trial's part."""
    columns: dict[str, Any] = {"ok": True, "verdict": PASS, "total_ms": 1.5, **values}
    part = columns.pop("part", "")
    return Record(Trial("small", rtt_ms, 1, part), **columns)
