"""What a command wrote in its guest, taken out of an archive that the guest made."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lab.core import files
from lab.core.errors import FirstFlightError, one_line

PIECE_BYTES = 1 << 20
MODES = 0o777  # nothing runs with its owner's rights


class Written:
    """The archive, a stranger's: names may lead anywhere, and it may be torn.

    ahead_s: how much the wall's clock is ahead of the guest's: files have times of the wall's.
    """

    def __init__(self, archive: BinaryIO, ahead_s: float) -> None:
        self.archive, self.ahead_s = archive, ahead_s
        self.count = 0  # of files and links that were unpacked

    def members(self) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
        """Raises nothing: what is no archive has no members."""
        self.archive.seek(0)
        with suppress(tarfile.TarError, OSError, ValueError), \
                tarfile.open(fileobj=self.archive, mode="r:") as opened:
            for member in opened:
                yield member, opened

    def listed(self) -> list[str]:
        """Names of files and links, as far as they may be written."""
        return [one_line(member.name) for member, _ in self.members()
                if not member.isdir() and is_inside(member.name)]

    def unpack(self, folder: Path) -> list[str]:
        """Write files and folders, then links; what was excluded, in words. Raises WriteError."""
        left: list[str] = []
        links: list[tarfile.TarInfo] = []
        for member, opened in self.members():
            if not is_inside(member.name):
                left.append(f"{one_line(member.name)}: it would lie elsewhere")
            elif member.isdir():
                files.make_folder(folder / member.name)
            elif member.issym():
                links.append(member)
            elif member.isreg():
                self._file(folder / member.name, member, opened, left)
            else:
                left.append(f"{one_line(member.name)}: neither a file nor a folder")
        for member in links:
            if leads_inside(member.name, member.linkname):
                with suppress(FirstFlightError):
                    files.make_folder((folder / member.name).parent)
                    files.link(folder / member.name, member.linkname)
                    self.count += 1
            else:
                left.append(f"{one_line(member.name)}: a link that leads elsewhere")
        return left

    def _file(self, path: Path, member: tarfile.TarInfo, opened: tarfile.TarFile,
              left: list[str]) -> None:
        content = opened.extractfile(member)
        assert content is not None  # of a regular file
        files.make_folder(path.parent)
        files.write(path, b"")
        with files.append(path) as file:
            try:
                while piece := content.read(PIECE_BYTES):
                    files.write_all(file, piece)
            except tarfile.TarError as error:
                left.append(f"{one_line(member.name)}: {error}")
            os.fchmod(file.fileno(), member.mode & MODES)
            at_s = max(0.0, member.mtime + self.ahead_s)
            os.utime(file.fileno(), (at_s, at_s))
        self.count += 1


def is_inside(name: str) -> bool:
    """Whether a name stays in the folder that it is written to."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts \
        and name.isprintable()


def leads_inside(name: str, target: str) -> bool:
    """Whether a link stays in its folder, whatever other links of the same folder there are.

    So ".." may only come first: behind the name of another link it could lead anywhere.
    """
    parts = PurePosixPath(target).parts
    up = 0
    while up < len(parts) and parts[up] == "..":
        up += 1
    return bool(parts) and not target.startswith("/") and ".." not in parts[up:] \
        and up < len(PurePosixPath(name).parts) and target.isprintable()
