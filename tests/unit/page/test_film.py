"""The film strip of a page: which pictures are kept, and which contents are accepted as one."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.findings.drawing.film import decoded
from firstflight.runs.measuring import JudgedTrial, save_trial_files
from firstflight.testbed.hosts.browser import film as of_guest
from firstflight.testbed.hosts.browser.film import Film
from firstflight.testbed.hosts.browser.load import Load
from firstflight.workloads.page import film
from tests.golden import stored_browsed
from tests.unit.drawing.samples import PIXEL
from tests.unit.page import test_browsed

stored_sites = test_browsed.stored_sites  # a fixture, used by every test here


def png(wide: int, high: int, rows: bytes = b"", more: bytes = b"") -> bytes:
    """A grey PNG that says that it has this size, with these rows. more: further chunks."""
    def chunk(kind: bytes, content: bytes) -> bytes:
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))

    head = struct.pack(">IIBBBBB", wide, high, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def test_the_pictures_of_a_film_are_those_of_both_paints_and_the_load() -> None:
    made = Film(shift_s=1000.0)
    for at_s in (1.1, 1.2004, 1.4, 1.6):
        made.take({"data": f"at {at_s}", "metadata": {"timestamp": 1000 + at_s}})
    load = Load("S")
    load.begun_s, load.paint_s, load.largest_s, load.loaded_s = 1.0, 1.201, 1.3, 1.9
    assert made.pictures(load) == {"paint": "at 1.2004", "largest": "at 1.4", "load": "at 1.6"}
    load.largest_s = None
    assert {*made.pictures(load)} == {"paint", "load"}
    assert Film(0.0).pictures(load) == {}


def test_a_film_keeps_no_more_frames_and_characters_than_allowed(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_guest, "MOST_FRAMES", 3)
    made = Film(0.0)
    for place in range(9):
        made.take({"data": "x", "metadata": {}})
    assert len(made.frames) == 3
    monkeypatch.setattr(of_guest, "MOST_CHARACTERS", 12)
    monkeypatch.setattr(of_guest, "MOST_FRAMES", 100)
    made.take({"data": "x" * 9, "metadata": {}})
    assert len(made.frames) == 3


@pytest.mark.parametrize(("content", "is_taken"), [
    (PIXEL, True), (png(1400, 1), True), (png(1401, 1), False), (png(1, 1 << 31), False),
    (png(0, 1), False), (b"", False), (b"GIF89a", False), (PIXEL[:20], False),
    (b"<svg onload=alert(1)>", False), (PIXEL + b"\0" * film.MOST_BYTES, False)])
def test_only_a_small_png_is_accepted(content: bytes, is_taken: bool) -> None:
    assert bool(film.small_png(content)) == is_taken


@pytest.mark.parametrize("content", [
    b"", PIXEL[:40], PIXEL.replace(b"IDAT", b"IDOT"), png(9, 9), png(3, 3, b"\0" * 5),
    png(1, 1, b"\0\0", struct.pack(">I", 1 << 30) + b"tEXt"),
    png(1, 1, b"\0\0", b"\0\0\0\4zTXtxxxx\0\0\0\0")])
def test_a_damaged_png_is_decoded_as_none(content: bytes) -> None:
    assert decoded(content) is None


def test_a_png_is_decoded_to_its_pixels() -> None:
    pixels = decoded(PIXEL)
    assert pixels is not None and pixels.shape[:2] == (1, 1)


def test_a_strip_has_its_loads_times_and_a_load_without_pictures_has_no_strip(
        tmp_path: Path) -> None:
    record = stored_browsed.load("http2").judge()
    assert film.strip_of(tmp_path, record) is None
    save_trial_files(tmp_path, JudgedTrial(
        record, {}, {"paint.png": PIXEL, "largest.png": b"no PNG", "load.png": PIXEL}, 0.0))
    strip = film.strip_of(tmp_path, record)
    assert strip is not None and strip.title == "Initial window 4"
    assert [(shot.at_ms, shot.png) for shot in strip.shots] == [
        (record.paint_ms, PIXEL), (record.largest_paint_ms, b""), (record.page_ms, PIXEL)]
    without = film.strip_of(tmp_path, replace(record, largest_paint_ms=None))
    assert without is not None and len(without.shots) == 2


def test_only_the_first_repeat_is_filmed() -> None:
    trial = stored_browsed.load("http2").trial
    assert trial.job()["filmed"]
    assert "filmed" not in replace(trial, repeat=2).job()
