"""Reads files that may be compressed by gzip, up to a limit of their inflated content."""

from __future__ import annotations

import errno
import io
import math
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from firstflight.base import reading

PIECE_BYTES = 1 << 16
MOST_MEMBERS = 100_000  # gzip files that follow each other in one file; bgzip's have 64 kB each
WHOLE = 1000  # lines at the start of a text, its head among them, which a sample has in full
_GZIP = b"\x1f\x8b"  # the first bytes of a gzip file
_GZIP_BITS = 31  # zlib's number for gzip's format, with a window of any size
# The first bytes of other compressed files, the program, and the command that unpacks them.
_OTHERS = {b"\xfd7zXZ\0": ("xz", "unxz"), b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"),
           b"BZh": ("bzip2", "bunzip2"), b"PK\x03\x04": ("zip", "unzip")}


def content(path: Path, most_bytes: int) -> bytes:
    """The content of a file, inflated. Raises OSError, also if it is too large."""
    with opened(path, most_bytes) as file:
        return file.read()


def opened(path: Path, most_bytes: int) -> BinaryIO:
    """A file open for reading, inflated where it is compressed by gzip.

    Raises OSError if it is no regular file, or compressed in another format. Reading raises OSError
    if the file is damaged or has more than most_bytes.
    """
    file = reading.opened(path)
    try:
        begins = file.read(max(map(len, _OTHERS)))
        file.seek(0)
        for magic, (name, command) in _OTHERS.items():
            if begins.startswith(magic):
                raise OSError(errno.EINVAL, f"it is compressed by {name}: unpack it first"
                                            f" ({command}), or compress it by gzip")
    except OSError:
        file.close()
        raise

    if begins.startswith(_GZIP):
        pieces = _inflated(file)
    else:
        pieces = iter(lambda: file.read(PIECE_BYTES), b"")
    return io.BufferedReader(_Pieces(file, pieces, most_bytes))


def inflate(compressed: bytes, most_bytes: int) -> bytes:
    """The content of a gzip file. Raises OSError if it is damaged or has more than most_bytes."""
    file = io.BytesIO(compressed)
    return io.BufferedReader(_Pieces(file, _inflated(file), most_bytes)).read()


class _Pieces(io.RawIOBase):
    """A file to read whose content comes in pieces, and has at most most_bytes."""

    def __init__(self, file: BinaryIO, pieces: Iterator[bytes], most_bytes: int) -> None:
        self.file, self.pieces, self.most_bytes = file, pieces, most_bytes
        self.piece, self.count = b"", 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        while not self.piece and (piece := next(self.pieces, None)) is not None:
            self.piece = piece
        count = min(len(buffer), len(self.piece))
        buffer[:count], self.piece = self.piece[:count], self.piece[count:]
        self.count += count
        if self.count > self.most_bytes:
            raise OSError(errno.EFBIG, f"it has more than {self.most_bytes >> 20} MB")
        return count

    def close(self) -> None:
        self.file.close()
        super().close()


def _inflated(file: BinaryIO) -> Iterator[bytes]:
    """The inflated content in pieces. Raises OSError where it is damaged."""
    inflater, members = zlib.decompressobj(_GZIP_BITS), 1
    rest, piece = b"", b""

    try:
        # A full piece may leave bytes behind that only the next call gives.
        while (compressed := rest or file.read(PIECE_BYTES)) or len(piece) == PIECE_BYTES:
            if inflater.eof:
                compressed = compressed.lstrip(b"\0")  # a file may be filled up with zeros
                if not compressed:
                    rest, piece = b"", b""
                    continue
                inflater, members = zlib.decompressobj(_GZIP_BITS), members + 1

            if members > MOST_MEMBERS:
                raise OSError(errno.EFBIG, f"it is more than {MOST_MEMBERS:,} gzip files in a row:"
                                           " unpack it, and compress it as one")

            piece = inflater.decompress(compressed, PIECE_BYTES)
            rest = inflater.unconsumed_tail or inflater.unused_data
            yield piece
    except zlib.error:
        raise OSError(errno.EINVAL, "it is a damaged gzip file: make it again") from None

    if not inflater.eof:
        raise OSError(errno.EINVAL, "it is a gzip file that is cut off: copy it again")


# Lines of a text -----------------------------------------------------------------------

@dataclass(frozen=True)
class Lines:
    """The lines of a text, or the first WHOLE of them and then every one_in-th."""

    lines: Generator[str, None, None]
    one_in: int = 1


def lines(path: Path, most_read: int, most_lines: int, most_bytes: int) -> Lines:
    r"""The lines of a text, ended by \n, \r or \r\n; evenly fewer where it has more than most_read.

    most_lines, most_bytes: the most that the inflated text may have. Raises OSError, also while
    the lines are read.
    """
    count = since_end = 0
    with opened(path, most_bytes) as file:
        while piece := file.read(PIECE_BYTES):
            ends = max(piece.count(b"\n"), piece.count(b"\r"))
            count += ends
            since_end = 0 if ends else since_end + len(piece)
            # A character takes up to 4 bytes.
            if since_end > 4 * reading.MOST_LINE_CHARACTERS:
                raise OSError(errno.EFBIG, reading.LONG_LINE)
            if count > most_lines:
                raise OSError(errno.EFBIG, f"it has more than {most_lines:,} lines")

    one_in = math.ceil(count / most_read)
    if one_in <= 1:
        return Lines(_closing(opened(path, most_bytes)))
    # An odd distance: where two kinds of lines take turns, the sample has both.
    one_in |= 1
    return Lines(_sampled(opened(path, most_bytes), one_in), one_in)


def _closing(file: BinaryIO) -> Generator[str, None, None]:
    with file:
        yield from reading.lines(file)


def _sampled(file: BinaryIO, one_in: int) -> Generator[str, None, None]:
    """The first WHOLE lines, then every one_in-th. Raises OSError for a line that is too long."""
    rest = b""
    number = 0  # of the next line, from 0

    with file:
        while piece := file.read(PIECE_BYTES):
            whole = (rest + piece).replace(b"\r\n", b"\n")
            held = whole[-1:] if whole.endswith(b"\r") else b""  # it may be half a line's end
            *ended, rest = whole[:len(whole) - len(held)].replace(b"\r", b"\n").split(b"\n")
            rest += held
            if len(rest) > reading.MOST_LINE_CHARACTERS:
                raise OSError(errno.EFBIG, reading.LONG_LINE)

            first = ended[:max(0, WHOLE - number)]
            later = ended[len(first):]
            passed = max(0, number - WHOLE)  # lines after the first ones, in earlier pieces
            until_next = -passed % one_in
            yield from map(_decoded, (*first, *later[until_next::one_in]))
            number += len(ended)
    if rest:
        yield _decoded(rest)


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", errors="replace") + "\n"
