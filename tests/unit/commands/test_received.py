"""Files of a command that the host receives from its guest, which may be hostile."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from vtime.command.frames import CONTENT, ENTRY, FILE, FOLDER, LINK, MOST_NAME, Entry, Room
from vtime.command.guest import CommandOutcome
from vtime.command.received import LAST_NS, Received, leads_inside


class Sent:
    """The reception of entries, with their content, into a folder.

    names: of the entries that were received. lines: on entries that were not. unsaved: whether
    something is missing.
    """

    def __init__(self, folder: Path, *entries: Entry | tuple[Entry, bytes],
                 most_bytes: int = 10_000, most_files: int = 100) -> None:
        outcome = CommandOutcome()
        self.names: list[str] = []
        with Received(folder, Room(most_bytes, most_files), 1000.0, outcome,
                      self.names.append) as self.received:
            for entry in entries:
                head, content = entry if isinstance(entry, tuple) else (entry, b"")
                self.received.take(ENTRY, head.packed())
                for place in range(0, len(content), 7):
                    self.received.take(CONTENT, content[place:place + 7])
        self.lines, self.unsaved = outcome.troubles, outcome.unsaved


def file(name: bytes, content: bytes = b"content", size: int | None = None, mode: int = 0o640,
         modified_ns: int = 0) -> tuple[Entry, bytes]:
    """A file. size: the announced bytes, by default those of the content."""
    return Entry(FILE, name, mode, modified_ns, len(content) if size is None else size), content


def link(name: bytes, target: bytes) -> Entry:
    return Entry(LINK, name, target=target)


def test_a_guests_files_folders_and_links_are_received(tmp_path: Path) -> None:
    sent = Sent(tmp_path / "files", Entry(FOLDER, b"d"), file(b"d/a", modified_ns=5 * 10**9),
                file(b"empty", b""), link(b"self", b"."), link(b"d/up", b"../empty"),
                file(b"\xff", b"no text"), file(b"other/deep", b"its folder was not sent"))
    files = tmp_path / "files"
    assert (files / "d/a").read_bytes() == b"content" and sent.lines == []
    assert (files / "d/a").stat().st_mtime == 1005 and (files / "d/up").read_bytes() == b""
    assert stat.S_IMODE((files / "d/a").stat().st_mode) == 0o640
    assert os.readlink(files / "self") == "." and (files / os.fsdecode(b"\xff")).exists()
    assert sent.received.count == 6 and not sent.unsaved
    assert sent.names == ["d/a", "empty", "self", "d/up", "\\udcff", "other/deep"]


@pytest.mark.parametrize(("wrong", "why"), [
    (file(b"../up"), "its name leads elsewhere"), (file(b"/etc/passwd"), "leads elsewhere"),
    (file(b"a/../../up"), "leads elsewhere"), (file(b""), "leads elsewhere"),
    (file(b"."), "leads elsewhere"), (file(b"a\nb"), r"a b: its name, .*control character"),
    (file(b"\x1b[2J"), r"\\x1b\[2J: its name, .*control character"),
    *((file(f"a{hidden}b".encode()), r"its name, .*control character")
      for hidden in ("\x9b", "\x85", "\u202e", "\u2028", "\u061c", "\U000e0041")),
    (file(b"a\x9bb"), "control character"),
    (link(b"out", "a\u202eb".encode()), "control character"),
    (file(b"n" * 300), "File name too long"), (file(b"a/" * MOST_NAME), "its name is too long"),
    (link(b"out", b"/etc/passwd"), "a link that leads elsewhere"),
    (link(b"out", b"../x"), "a link that leads elsewhere"), (link(b"out", b""), "leads elsewhere"),
    (link(b"d/out", b"a/../../../x"), "a link that leads elsewhere"),
    (link(b"out", b"a\x1bb"), "control character"),
    (file(b"big", b"", size=1 << 60), "bytes are more than may still come back"),
    (file(b"short", b"12", size=3), "it changed while it was read"),
    (file(b"long", b"1234567890", size=3), "more bytes than were announced")])
def test_one_wrong_entry_is_excluded_with_a_line(tmp_path: Path, wrong: Entry | tuple[Entry, bytes],
                                                 why: str) -> None:
    (tmp_path / "outside").write_text("untouched")
    sent = Sent(tmp_path / "files", file(b"before"), wrong, file(b"after"), most_bytes=1000)
    assert sorted(os.listdir(tmp_path / "files")) in (["after", "before"], ["after", "before", "d"])
    assert len(sent.lines) == 1 and sent.lines[0].isprintable()
    assert re.search(why, sent.lines[0]), sent.lines
    assert sorted(os.listdir(tmp_path)) == ["files", "outside"]


@pytest.mark.parametrize(("name", "target", "inside"), [
    ("l", "file", True), ("d/l", "../file", True), ("d/e/l", "../../file", True), ("l", ".", True),
    ("l", "../file", False), ("d/l", "../../file", False), ("l", "/etc/passwd", False),
    ("l", "d/../../x", False), ("l", "", False), ("l", "..", False), ("d/l", "..", True)])
def test_only_a_link_that_leads_inside_is_received(name: str, target: str, inside: bool) -> None:
    assert leads_inside(name, target) == inside


@pytest.mark.parametrize("modified_ns", [-(1 << 63), (1 << 63) - 1, -1, LAST_NS])
def test_times_out_of_range_are_bounded(tmp_path: Path, modified_ns: int) -> None:
    sent = Sent(tmp_path, file(b"a", modified_ns=modified_ns), file(b"b"))
    assert (tmp_path / "a").read_bytes() == b"content" and sent.lines == []
    assert 0 <= (tmp_path / "a").stat().st_mtime_ns <= LAST_NS


def test_a_received_file_loses_its_setuid_and_setgid_bits(tmp_path: Path) -> None:
    Sent(tmp_path, file(b"a", mode=0o106777))
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o777


def test_the_host_limits_the_bytes_and_files_that_a_guest_sends(tmp_path: Path) -> None:
    """A hostile guest does not heed the limits."""
    sent = Sent(tmp_path, *(file(b"%d" % number, b"x" * 40) for number in range(10)),
                most_bytes=100)
    assert sorted(os.listdir(tmp_path)) == ["0", "1"] and sent.unsaved
    assert len(sent.lines) == 8 and "(--limit)" in sent.lines[0]
    sent = Sent(tmp_path / "more", *(Entry(FOLDER, b"%d" % number) for number in range(10)),
                most_files=3)
    assert len(os.listdir(tmp_path / "more")) == 3 and sent.unsaved


def test_links_in_the_folder_are_replaced_and_not_followed(tmp_path: Path) -> None:
    """With --write-back the folder may have links that lead into the user's home."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (home / "bashrc").write_text("mine")
    for name, target in (("keys", "../home"), ("bashrc", "../home/bashrc"),
                         ("through", "../home"), ("cfg", "../home/bashrc")):
        (work / name).symlink_to(target)
    sent = Sent(work, Entry(FOLDER, b"keys"), file(b"keys/authorized_keys"), file(b"bashrc"),
                file(b"through/key"), link(b"cfg", b"bashrc"), file(b"last"))
    assert os.listdir(home) == ["bashrc"] and (home / "bashrc").read_text() == "mine"
    assert (work / "keys/authorized_keys").read_bytes() == b"content"
    assert (work / "bashrc").read_bytes() == (work / "last").read_bytes() == b"content"
    assert os.readlink(work / "cfg") == "bashrc"
    assert len(sent.lines) == 1 and "through is a link, which is not followed" in sent.lines[0]
    assert sent.unsaved


def test_a_file_or_folder_that_cannot_be_replaced_stays_unchanged(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    (tmp_path / "plain").write_text("mine")
    (tmp_path / "old").write_text("old")
    sent = Sent(tmp_path, file(b"folder"), Entry(FOLDER, b"plain"), link(b"folder", b"x"),
                file(b"old", b"ne", size=3), file(b"last"))
    assert (tmp_path / "plain").read_text() == "mine" and (tmp_path / "old").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["folder", "last", "old", "plain"]
    assert len(sent.lines) == 4 and sent.unsaved and sent.received.count == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_file_that_does_not_fit_on_a_disk_is_the_only_one_that_is_lost(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "small", str(tmp_path)], check=True)
    try:
        (tmp_path / "big").write_text("unchanged")
        sent = Sent(tmp_path, file(b"first"), file(b"big", bytes(400_000)), file(b"last"),
                    most_bytes=10**6)
        assert (tmp_path / "big").read_text() == "unchanged"
        assert sorted(os.listdir(tmp_path)) == ["big", "first", "last"]
        assert sent.lines == [f"big: {os.strerror(errno.ENOSPC)}"] and sent.unsaved
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def hostile_entries(draw: random.Random) -> Sequence[Entry | tuple[Entry, bytes]]:
    """Random entries with names and sizes that the project's guest never sends."""
    parts = [b"a", b"b", b"..", b".", b"", b"c\n", b"\xff", b"n" * 256, b"link", b"out", b"/"]

    def name() -> bytes:
        return b"/".join(draw.choices(parts, k=draw.randint(1, 4)))
    entries: list[Entry | tuple[Entry, bytes]] = []
    for _ in range(draw.randint(1, 12)):
        kind = draw.choice([FILE, FILE, FOLDER, LINK])
        entry = Entry(kind, name(), draw.getrandbits(32), draw.getrandbits(63),
                      draw.choice([0, 5, 9, 1 << 40]), name() if kind == LINK else b"")
        entries.append((entry, bytes(draw.choice([0, 5, 9]))))
    return entries


def test_a_thousand_hostile_guests_write_nothing_outside_the_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("untouched")
    for seed in range(1000):
        draw = random.Random(seed)
        folder = tmp_path / "work"
        folder.mkdir()
        (folder / "link").symlink_to("../outside")
        (folder / "out").symlink_to("../outside/victim")
        sent = Sent(folder, *hostile_entries(draw), most_bytes=20, most_files=8)
        assert os.listdir(outside) == ["victim"] and (outside / "victim").read_text() == "untouched"
        assert sorted(os.listdir(tmp_path)) == ["outside", "work"], seed
        found = [Path(above, name) for above, folders, names in os.walk(folder)
                 for name in (*folders, *names)]
        assert sum(path.lstat().st_size for path in found if stat.S_ISREG(path.lstat().st_mode)
                   ) <= 20
        for path in found:
            if path.is_symlink() and path.name not in ("link", "out"):
                assert not os.path.isabs(os.readlink(path)), seed
        assert all(line.isprintable() for line in sent.lines)
        shutil.rmtree(folder)
