"""Measures jobs of one kind in guests, for benchmarks.outside.tampered.

    python3 -m benchmarks.outside.measure_jobs JOBS FOUND GUESTS

tampered starts it in a copy of the project, whose programs are altered. JOBS is a file with the
jobs as JSON, FOUND the file for what is observed, GUESTS the number of guests.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from firstflight.base.errors import OK
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.messages import Job, ObservedTrial
from vtime.uml import built_kernel


def measured(jobs: Sequence[Job], guests: int, folder: Path) -> Iterator[ObservedTrial]:
    """Yield what is observed of each job; folder is that of the guests. Raises EngineError."""
    yield from UmlEngine(built_kernel(), guests).run(list(jobs), {}, folder)


def main(words: Sequence[str]) -> int:
    given, found, guests = words
    with tempfile.TemporaryDirectory(prefix="first-flight-") as folder:
        seen = list(measured(json.loads(Path(given).read_text()), int(guests),
                             Path(folder) / "run"))
    Path(found).write_bytes(pickle.dumps(seen))
    return OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
