"""The pictures that a guest took of a page while its browser loaded it.

A stranger's page may control the guest, so a picture may be any bytes. It is taken as a PNG of few
pixels, or not at all, and pages of results show it only after it was drawn again.
"""

from __future__ import annotations

from pathlib import Path

from firstflight.base.errors import FirstFlightError
from firstflight.findings.charts import FilmStrip, Shot
from firstflight.runs.measuring import read_trial_file, trial_file_path
from firstflight.testbed.hosts.browser.film import MOMENTS
from firstflight.workloads.page.record import PageRecord

MOST_BYTES = 2 << 20  # of a picture's file
MOST_PIXELS = 1400  # of a picture's width, and of its height
# A PNG begins with its signature, and with the length and name of the chunk that has its size.
_BEGINS = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
_SIDE_BYTES = 4  # of the width, and of the height behind it
# By moment: its name for readers, and the column of its time.
_NAMES = {"paint": ("first contentful paint", "paint_ms"),
          "largest": ("largest contentful paint", "largest_paint_ms"),
          "load": ("load", "page_ms")}


def small_png(content: bytes) -> bytes:
    """The content where it is a PNG whose head says that it is small; b"" for anything else."""
    if len(content) > MOST_BYTES or not content.startswith(_BEGINS):
        return b""
    sides = content[len(_BEGINS):len(_BEGINS) + 2 * _SIDE_BYTES]
    width = int.from_bytes(sides[:_SIDE_BYTES], "big")
    height = int.from_bytes(sides[_SIDE_BYTES:], "big")
    return content if 0 < width <= MOST_PIXELS and 0 < height <= MOST_PIXELS else b""


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
        return small_png(read_trial_file(path))
    except (OSError, FirstFlightError):
        return None
