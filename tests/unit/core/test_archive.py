"""What comes back of a command: an archive that its guest made, which may be anything."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from lab.core.archive import Written, leads_inside

AHEAD_S = 1_000_000.0


def member(name: str, content: bytes = b"", **more: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for attribute, value in more.items():
        setattr(info, attribute, value)
    return info, content


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:", format=tarfile.PAX_FORMAT) as opened:
        for info, content in members:
            opened.addfile(info, io.BytesIO(content))
    return io.BytesIO(file.getvalue())


def unpacked(folder: Path, *members: tuple[tarfile.TarInfo, bytes]) -> tuple[Written, list[str]]:
    written = Written(archive(*members), AHEAD_S)
    return written, written.unpack(folder / "files")


def test_files_have_names_times_and_modes(tmp_path: Path) -> None:
    written, left = unpacked(tmp_path, member("d", type=tarfile.DIRTYPE),
                             member("d/run", b"#!/bin/sh\n", mode=0o4755, mtime=1_800_000_012),
                             member("link", type=tarfile.SYMTYPE, linkname="d/run"))
    made = (tmp_path / "files/d/run").stat()
    assert left == [] and written.count == 2
    assert (tmp_path / "files/link").read_bytes() == b"#!/bin/sh\n"
    # Nothing comes back that runs with its owner's rights; times are of the wall's clock.
    assert made.st_mode & 0o7777 == 0o755 and made.st_mtime == 1_801_000_012


@pytest.mark.parametrize("name", ["/etc/made", "../made", "d/../../made", "a\nb", ""])
def test_a_name_that_leads_elsewhere_is_left_out(name: str, tmp_path: Path) -> None:
    written, left = unpacked(tmp_path, member(name, b"x"))
    assert len(left) == 1 and written.count == 0
    assert not (tmp_path / "made").exists() and not Path("/etc/made").exists()


@pytest.mark.parametrize(("name", "target", "inside"), [
    ("l", "file", True), ("d/l", "../file", True), ("d/e/l", "../../file", True),
    ("l", "../file", False), ("d/l", "../../file", False), ("l", "/etc/passwd", False),
    ("l", "d/../../x", False), ("l", "", False), ("l", "..", False)])
def test_links_stay_inside(name: str, target: str, inside: bool, tmp_path: Path) -> None:
    assert leads_inside(name, target) == inside
    written, left = unpacked(tmp_path, member(name, type=tarfile.SYMTYPE, linkname=target))
    assert os.path.lexists(tmp_path / "files" / name) == inside and bool(left) != inside


def test_nothing_is_written_through_a_link_of_the_archive(tmp_path: Path) -> None:
    """Links come last, so a file below one of its names lies in a folder of that name."""
    (tmp_path / "outside").mkdir()
    unpacked(tmp_path, member("l", type=tarfile.SYMTYPE, linkname=str(tmp_path / "outside")),
             member("l/made", b"x"))
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE])
def test_neither_devices_nor_pipes_nor_hard_links(kind: bytes, tmp_path: Path) -> None:
    written, left = unpacked(tmp_path, member("one", type=kind, linkname="/etc/passwd"))
    assert written.count == 0 and left == ["one: neither a file nor a folder"]


def test_a_torn_archive_gives_what_was_whole(tmp_path: Path) -> None:
    whole = archive(member("a", b"x" * 600), member("b", b"y" * 6000)).getvalue()
    written = Written(io.BytesIO(whole[:3000]), AHEAD_S)
    left = written.unpack(tmp_path / "files")
    assert (tmp_path / "files/a").read_bytes() == b"x" * 600 and written.count >= 1
    assert left == [] or left[0].startswith("b: ")
    assert Written(io.BytesIO(b"no archive"), AHEAD_S).unpack(tmp_path / "none") == []
