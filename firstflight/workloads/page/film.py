"""The pictures that a guest took of a page while its browser loaded it.

A page of a stranger's controls the guest, so a picture is any bytes: it is taken as a PNG of few
pixels, or not at all, and pages of results have it only as it was drawn again.
"""

from __future__ import annotations

from pathlib import Path

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import FilmStrip, Shot
from firstflight.runs.measuring import read_trial_file, trial_file_path
from firstflight.testbed.hosts.browser.film import MOMENTS
from firstflight.workloads.page.record import PageRecord

MOST_BYTES, MOST_PIXELS = 2 << 20, 1400  # of a picture; to either side
_BEGINS = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_SIZE_BYTES = 4
# Of each moment: what the reader calls it, and the column of its time.
_NAMES = {"paint": ("first contentful paint", "paint_ms"),
          "largest": ("largest contentful paint", "largest_paint_ms"),
          "load": ("load", "page_ms")}


def bounded(content: bytes) -> bytes:
    """A PNG whose head says that it is small; b"" for anything else."""
    if len(content) > MOST_BYTES or not content.startswith(_BEGINS):
        return b""
    sides = content[len(_BEGINS):len(_BEGINS) + 2 * _SIZE_BYTES]
    wide = int.from_bytes(sides[:_SIZE_BYTES], "big")
    high = int.from_bytes(sides[_SIZE_BYTES:], "big")
    return content if 0 < wide <= MOST_PIXELS and 0 < high <= MOST_PIXELS else b""


def strip_of(folder: Path, record: PageRecord) -> FilmStrip | None:
    """The pictures of a load in a run's folder; None for a load without pictures."""
    shots = []
    for moment in MOMENTS:
        name, column = _NAMES[moment]
        at_ms = getattr(record, column)
        png = _picture(folder, record, moment)
        if at_ms is not None and png is not None:
            shots.append(Shot(name, at_ms, png))
    if not any(shot.png for shot in shots):
        return None
    return FilmStrip(f"Initial window {record.trial.initcwnd}", tuple(shots))


def _picture(folder: Path, record: PageRecord, moment: str) -> bytes | None:
    """The picture of a moment: None without a file, b"" where the file has no small PNG."""
    path = trial_file_path(folder, record.trial.id, f"{moment}.png")
    try:
        if path.stat().st_size > MOST_BYTES:
            return b""
        return bounded(read_trial_file(path))
    except (OSError, FirstFlightError):
        return None
