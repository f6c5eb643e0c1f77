"""A kind of trials, records and studies with little in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import Any, ClassVar

from firstflight.base.words import format_lossless
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Kind, Study
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


class ExampleKind(Kind):
    """Nothing is read, and each trial takes a second."""

    record = Record
    all_captures = True
    judge = staticmethod(judge)  # type: ignore[assignment]

    def read(self, *_: Any) -> Any:
        raise NotImplementedError

    expand = report = read

    def guest_s(self, trial: Any) -> float:
        return 1.0

    def checks(self) -> Any:
        return ()


def changed(kind: Kind, **members: Any) -> Kind:
    """A kind with other values, and other methods, which are functions without it."""
    return type("Changed", (type(kind),), {  # type: ignore[no-any-return]
        name: staticmethod(member) if isinstance(member, FunctionType) else member
        for name, member in members.items()})()


KIND = ExampleKind()


@cache
def whole(name: str) -> Any:
    """One of the scenarios that there are, made ready: drawing a population takes a second."""
    return registry.study_of(scenario_file.find(name))


def study(*rtts_ms: float, text: str = "# A claim.", name: str = "small",
          kind: Kind = KIND, whole: bool = True) -> Any:
    return Study(kind, Scenario(Head("t", "s", name, "A claim.", text, {})),
                 [Trial(name, rtt_ms, 1) for rtt_ms in rtts_ms], whole)


def record(rtt_ms: float = 20.0, **values: Any) -> Record:
    said: dict[str, Any] = {"ok": True, "verdict": PASS, "total_ms": 1.5, **values}
    return Record(Trial("small", rtt_ms, 1, said.pop("part", "")), **said)
