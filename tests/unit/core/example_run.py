"""Measures trials of the example with an engine that only answers: RESULTS CAPTURE_BYTES TRIALS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from lab.core.command_line import run_main
from lab.core.run.measuring import MeasureOptions, OneMachine, measure
from lab.core.scenario.scenario_file import Head
from tests.unit.core.example import Record, Trial, record


@dataclass(frozen=True)
class Seen:
    trial_id: str
    client_pcap: bytes
    content: Mapping[str, Any]
    server_pcap: bytes = b""


@dataclass(frozen=True)
class Study:
    """Of every trial all captures are kept."""

    record: ClassVar[type[Record]] = Record
    all_captures: ClassVar[bool] = True
    head: Head
    trials: tuple[Trial, ...]
    whole: bool = True

    @staticmethod
    def judge(trial: Trial, seen: Seen, exact: bool, sysctls: Mapping[str, str],
              known_kernel: bool = True) -> tuple[Record, dict[str, bytes]]:
        return record(trial.rtt_ms, total_ms=trial.rtt_ms * 3), {}


@dataclass
class Engine:
    capture_bytes: int
    name: str = "uml"
    build: str = "7.2"
    exact: bool = True
    known_kernel: bool = True
    jobs: int = 1

    @property
    def facts(self) -> dict[str, Any]:
        return {"kernel": "7.2"}

    def run(self, trials: list[dict[str, Any]], sysctls: dict[str, str],
            folder: Path) -> Iterator[Seen]:
        assert folder.is_dir()
        for trial in trials:
            yield Seen(trial["id"], b"p" * self.capture_bytes, {"duration_s": 1.0})


def main(argv: Any) -> int:
    results, capture_bytes, count = Path(argv[0]), int(argv[1]), int(argv[2])
    study: Any = Study(Head("t", "s", "small", "A claim.", "# A claim.", {}),
                       tuple(Trial("small", float(rtt_ms), 1) for rtt_ms in range(1, count + 1)))
    run = measure(study, OneMachine(Engine(capture_bytes)), MeasureOptions(results, 1, False, False, {}))
    print(run.folder)
    return 0


if __name__ == "__main__":
    run_main("run.sh", main)
