"""A command's guest, as far as it needs no kernel: frames, its environment, what it wrote."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from engines.command import guest, inside
from engines.command.frames import ERROR, MOST_BYTES, OUTPUT, Frame, Reader
from engines.command.guest import CommandRequest, check_folder, environment_of
from engines.job import EngineCannot

FRAMES = [Frame(OUTPUT, 5, b"one\n"), Frame(ERROR, 7, b""), Frame(OUTPUT, 9, bytes(range(256)))]


@pytest.mark.parametrize("size", [1, 3, 12, 13, 14, 1000])
def test_frames_are_whole_in_pieces_of_any_size(size: int) -> None:
    sent, reader = b"".join(frame.packed() for frame in FRAMES), Reader()
    pieces = [sent[place:place + size] for place in range(0, len(sent), size)]
    assert [frame for piece in pieces for frame in reader.read(piece)] == FRAMES


@pytest.mark.parametrize("hostile", [
    b"?" + bytes(12), Frame(OUTPUT, 1, bytes(MOST_BYTES + 1)).packed(), bytes(20)])
def test_what_is_no_frame_is_refused(hostile: bytes) -> None:
    with pytest.raises(ValueError, match="no frame"):
        list(Reader().read(hostile))


def test_a_command_has_a_list_of_the_environment_and_what_was_named(tmp_path: Path) -> None:
    request = CommandRequest(["true"], tmp_path, environment={"MODE": "fast"}, seed=7)
    had = {"LANG": "C.UTF-8", "LC_TIME": "C", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": "/root",
           "SSH_AUTH_SOCK": "/tmp/agent", "PATH": "/opt/bin:/usr/bin"}
    made = environment_of(request, had)
    assert (made["LANG"], made["LC_TIME"], made["MODE"]) == ("C.UTF-8", "C", "fast")
    assert made["HOME"] == inside.HOME and made["PYTHONHASHSEED"] == "7"
    assert "secret" not in made.values() and "SSH_AUTH_SOCK" not in made
    # The distribution's programs first, since Mininet lives with its Python.
    assert made["PATH"].split(":")[-1] == "/opt/bin" and made["PATH"].count("/usr/bin") == 1


@pytest.mark.parametrize("folder", ["/", "/home", "/root", "/tmp", "~"])
def test_a_command_is_not_started_in_a_home_folder(folder: str) -> None:
    with pytest.raises(EngineCannot, match="in a folder of its own"):
        check_folder(Path(folder).expanduser())


def test_a_folder_of_ones_own_is_one_to_start_in(tmp_path: Path) -> None:
    check_folder(tmp_path)


def test_of_etc_only_what_everybody_reads_is_read() -> None:
    readable = guest.readable_here()
    assert "/etc/passwd" in readable and not {"/etc/shadow", "/etc", "/etc/ssl"} & set(readable)


# What it wrote -----------------------------------------------------------------------

def packed(folder: Path, most_bytes: int = 1000, most_files: int = 100
           ) -> tuple[tarfile.TarFile, list[str]]:
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        file = io.BytesIO()
        left = inside.written(above, file, most_bytes, most_files)
    finally:
        os.close(above)
    return tarfile.open(fileobj=io.BytesIO(file.getvalue())), left


def test_files_and_links_are_packed_each_folder_before_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / "b" / "deep" / "file").write_text("content")
    (tmp_path / "a").write_text("first")
    os.link(tmp_path / "a", tmp_path / "z")
    (tmp_path / "link").symlink_to("b/deep")
    os.mkfifo(tmp_path / "pipe")
    archive, left = packed(tmp_path)
    assert archive.getnames() == ["a", "b", "link", "z", "b/deep", "b/deep/file"]
    content = archive.extractfile("z")
    assert content is not None and content.read() == b"first"  # a file of its own
    assert archive.getmember("link").linkname == "b/deep"
    assert left == ["pipe: neither a file nor a folder"]


def test_what_is_beyond_the_limits_is_told(tmp_path: Path) -> None:
    for name, size in (("a", 600), ("b", 600), ("c", 10)):
        (tmp_path / name).write_bytes(bytes(size))
    archive, left = packed(tmp_path)
    assert archive.getnames() == ["a", "c"] and left == ["b: 600 bytes"]
    archive, left = packed(tmp_path, most_files=1)
    assert archive.getnames() == ["a"] and len(left) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes the overlay's mark")
def test_what_was_removed_is_told(tmp_path: Path) -> None:
    os.mknod(tmp_path / "gone", 0o20000, 0)
    archive, left = packed(tmp_path)
    assert archive.getnames() == [] and left == ["gone: removed"]
