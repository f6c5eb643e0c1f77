"""Files that may be compressed: their contents are limited while they are read."""

from __future__ import annotations

import gzip
import lzma
import random
import zlib
from pathlib import Path

import pytest

from firstflight.base import inflated


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_several_gzip_files_in_a_row_are_read_as_one(piece: int,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflated, "PIECE_BYTES", piece)
    draw = random.Random(piece)
    parts = [b"a" * 3000, draw.randbytes(500), b"", b"ab" * 700]
    compressed = b"".join(gzip.compress(part, level) for part in parts for level in (0, 9))
    assert inflated.inflate(compressed + b"\0" * 512, 1 << 20) == b"".join(
        part * 2 for part in parts)
    for cut in draw.sample(range(1, len(compressed)), 40):
        try:
            expected = gzip.decompress(compressed[:cut])
        except EOFError:
            with pytest.raises(OSError, match="cut off"):
                inflated.inflate(compressed[:cut], 1 << 20)
        else:
            assert inflated.inflate(compressed[:cut], 1 << 20) == expected


def bomb(megabytes: int) -> bytes:
    """Megabytes of newlines, which gzip makes a thousand times smaller."""
    deflater = zlib.compressobj(9, wbits=31)
    return b"".join(deflater.compress(b"\n" * (1 << 20))
                    for _ in range(megabytes)) + deflater.flush()


def test_a_file_that_inflates_beyond_the_limit_is_refused_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(bomb(40))
    read = 0
    with pytest.raises(OSError, match="more than 2 MB"), inflated.opened(path, 2 << 20) as file:
        while piece := file.read(1 << 16):
            read += len(piece)
    assert read <= 2 << 20
    path.write_bytes(b"x" * (3 << 20))
    with pytest.raises(OSError, match="more than 2 MB"):
        inflated.content(path, 2 << 20)


def test_a_million_empty_gzip_files_in_a_row_are_refused() -> None:
    with pytest.raises(OSError, match="more than 100,000 gzip files in a row"):
        inflated.inflate(gzip.compress(b"") * (inflated.MOST_MEMBERS + 1), 1 << 20)


@pytest.mark.parametrize(("content", "why"), [
    (gzip.compress(b"abc" * 99, mtime=0)[:-9] + b"\0" * 9, "damaged"),  # a wrong checksum
    (b"\x1f\x8bxyz" * 9, "damaged"),
    (gzip.compress(b"abc", mtime=0)[:-1], "cut off"), (b"\x1f\x8b", "cut off"),
    (gzip.compress(b"a", mtime=0) + b"more", "damaged"),
    (lzma.compress(b"a"), r"by xz: .*\(unxz\)"),
    (b"BZh9", "bunzip2"), (b"PK\x03\x04", "unzip"), (b"\x28\xb5\x2f\xfd", "unzstd")])
def test_a_file_that_cannot_be_inflated_is_refused_with_the_reason(
        content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(OSError, match=why):
        inflated.content(path, 1 << 20)


def test_a_plain_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\x1f plain" * 99_999)
    assert inflated.content(path, 1 << 20) == path.read_bytes()
