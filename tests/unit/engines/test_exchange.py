"""A kernel as a file: what another machine takes, and what it refuses before writing anything."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from vtime.kernel.exchange import MEMBERS, ImportRefused, export_kernel, import_kernel

KEY, SOURCE = "0123456789abcdef", "ab" * 32
ASKED = {"configuration": KEY, "compiler": "gcc 12"}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A kernel of the cache, as far as its file is concerned."""
    folder = tmp_path / "built"
    folder.mkdir()
    for name, content in (("linux", b"\x7fELF kernel"), ("config", b"CONFIG_UML=y\n"),
                          ("version", b"7.2.11\n"), ("source", b"linux-source-7.2\n")):
        (folder / name).write_bytes(content)
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
              for name in ("linux", "config")}
    (folder / "inputs").write_text(f"configuration {KEY}\nsource {SOURCE}\ncompiler gcc 12\n"
                                   f"linux {hashes['linux']}\nconfig {hashes['config']}\n")
    return folder


@pytest.fixture
def file(built: Path, tmp_path: Path) -> Path:
    export_kernel(built, tmp_path / "kernel.tar")
    return tmp_path / "kernel.tar"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def tar_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def refused(file: Path, folder: Path, requested: dict[str, str] | None = None) -> str:
    with pytest.raises(ImportRefused) as caught:
        import_kernel(file, folder, ASKED if requested is None else requested)
    assert not list(folder.iterdir()), "nothing is written"
    return str(caught.value)


def test_what_is_exported_is_taken(built: Path, file: Path, empty: Path) -> None:
    import_kernel(file, empty, {**ASKED, "source": SOURCE})
    assert {path.name: path.read_bytes() for path in empty.iterdir()} == {
        **{name: (built / name).read_bytes() for name in MEMBERS},
        "source": b"linux-source-7.2, imported\n"}
    assert (empty / "linux").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("name", "here", "why"), [
    ("configuration", "4567", "another recipe or configuration: 0123456789abcdef, and here it is 4567"),
    ("compiler", "gcc 14", "another compiler: gcc 12, and here it is gcc 14"),
    ("source", "ef01", "another source: abab")])
def test_a_kernel_that_was_made_otherwise_is_refused(file: Path, empty: Path, name: str,
                                                     here: str, why: str) -> None:
    assert why in refused(file, empty, {**ASKED, name: here})


@pytest.mark.parametrize("name", ["linux", "config"])
def test_a_changed_byte_is_refused(built: Path, tmp_path: Path, empty: Path, name: str) -> None:
    (built / name).write_bytes(b"!" + (built / name).read_bytes()[1:])
    export_kernel(built, tmp_path / "changed.tar")
    assert f"its {name} is damaged" in refused(tmp_path / "changed.tar", empty)


@pytest.mark.parametrize("name", ["../linux", "/linux", "sub/linux", "linux2", "."])
def test_no_path_and_no_other_name_is_taken(tmp_path: Path, empty: Path, name: str) -> None:
    assert "each once, and no links" in refused(
        tar_of(tmp_path / "f.tar", (tarfile.TarInfo(name), b"x")), empty)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE,
                                  tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_nothing_but_regular_files_is_taken(tmp_path: Path, empty: Path, kind: bytes) -> None:
    link = tarfile.TarInfo("linux")
    link.type, link.linkname = kind, "/etc/passwd"
    assert "no links" in refused(tar_of(tmp_path / "f.tar", (link, b"")), empty)


def test_a_member_twice_or_not_at_all_is_refused(tmp_path: Path, empty: Path) -> None:
    twice = [(tarfile.TarInfo("version"), b"1"), (tarfile.TarInfo("version"), b"2")]
    assert "each once" in refused(tar_of(tmp_path / "f.tar", *twice), empty)
    assert "lacks config, inputs, linux, source" in refused(
        tar_of(tmp_path / "f.tar", twice[0]), empty)


def test_what_is_far_too_large_is_refused(tmp_path: Path, empty: Path) -> None:
    large = (tarfile.TarInfo("version"), bytes(MEMBERS["version"] + 1))
    assert "more than" in refused(tar_of(tmp_path / "f.tar", large), empty)
    with (tmp_path / "f.tar").open("ab") as file:
        file.truncate(1 << 30)
    assert "far more than a kernel" in refused(tmp_path / "f.tar", empty)


def test_a_pipe_or_a_folder_is_not_waited_for(tmp_path: Path, empty: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe", empty) == refused(tmp_path, empty) == "it is no regular file"


@pytest.mark.parametrize("bytes_left", [0, 100, 512, 3000])
def test_a_file_that_is_cut_off_is_refused(file: Path, empty: Path, bytes_left: int) -> None:
    file.write_bytes(file.read_bytes()[:bytes_left])
    refused(file, empty)


@pytest.mark.parametrize("inputs", [b"", b"\xff\x00", b"configuration 0123\n",
                                    b"configuration 0123\nother x\n"])
def test_inputs_that_say_something_else_are_refused(built: Path, tmp_path: Path, empty: Path,
                                                    inputs: bytes) -> None:
    (built / "inputs").write_bytes(inputs)
    export_kernel(built, tmp_path / "f.tar")
    assert "its inputs are" in refused(tmp_path / "f.tar", empty)
