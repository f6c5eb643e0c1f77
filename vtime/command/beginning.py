"""Decides at which date a guest's clock begins.

Programs compare dates: make builds what is older than its source, and warns of a file from the
future. So the clock begins after all that the command reads was written. It does not follow from
the day on which the command runs: what has not changed prints the same date.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

DAY_S = 86_400
EARLIEST_S = 1_767_225_600  # 2026-01-01 00:00 UTC; a clock of 64 bits in ns ends in 2262
LATEST_S = int(datetime(2200, 1, 1, tzinfo=timezone.utc).timestamp())
MOST_LOOKED_AT = 100_000  # entries of folders, which takes half a second


def beginning_s(places: Iterable[Path], left_out: Path | None = None) -> int:
    """The first midnight (UTC, in seconds since 1970) after the newest of all files was written.

    places: files and folders that a command reads. left_out: a folder in them that does not count,
    such as that of earlier runs' results. Dates outside of EARLIEST_S and LATEST_S do not count,
    nor do entries behind the first MOST_LOOKED_AT.
    """
    newest_s = EARLIEST_S - 1
    for number, entry_s in enumerate(_dates_s(places, left_out)):
        if entry_s < LATEST_S:
            newest_s = max(newest_s, entry_s)
        if number == MOST_LOOKED_AT:
            break
    return (newest_s // DAY_S + 1) * DAY_S


def _dates_s(places: Iterable[Path], left_out: Path | None) -> Iterator[int]:
    """When each file was written. Folders have no date of their own: a run's results change it."""
    waiting = sorted(map(str, places), reverse=True)
    excluded = None if left_out is None else os.path.realpath(left_out)
    while waiting:
        place = waiting.pop()
        with suppress(OSError):
            info = os.lstat(place)
            if not stat.S_ISDIR(info.st_mode):
                yield int(info.st_mtime)
            elif place != excluded:
                yield 0  # counts as looked at
                waiting += sorted((f"{place}/{name}" for name in os.listdir(place)), reverse=True)
