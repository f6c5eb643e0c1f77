"""Measures trials of the example with an engine that starts no guest and answers at once.

As a program it takes three words: the folder of results, the bytes of each capture, and the number
of trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstflight.base.main import run_main
from firstflight.runs.measuring import MeasureOptions, OneMachine, measure
from tests.unit.core.example import study


@dataclass(frozen=True)
class Seen:
    """What the engine observed of one trial."""

    trial_id: str
    client_pcap: bytes
    content: Mapping[str, Any]
    server_pcap: bytes = b""


@dataclass
class Engine:
    """An engine whose trials all succeed in a second of network time."""

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
    requested = study(*map(float, range(1, count + 1)))
    run = measure(requested, OneMachine(Engine(capture_bytes)),
                  MeasureOptions(results, 1, False, False, {}))
    print(run.folder)
    return 0


if __name__ == "__main__":
    run_main("run.sh", main)
