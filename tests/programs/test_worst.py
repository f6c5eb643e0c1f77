"""Files of 60 MB of the worst kinds are answered in one line, in little time and memory."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from firstflight.base.errors import USAGE
from tests.running import PROJECT, run_program

MB = 1 << 20
# Processor time and memory. 5 s are promised; a busy machine counts up to twice that for the same.
MOST_S, MOST_MB = 10.0, 300
# A small process starts the program, since the memory of its parent counts for a new process, too.
MEASURED = """
import os, sys
_, status, took = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
print(os.waitstatus_to_exitcode(status), took.ru_utime + took.ru_stime, took.ru_maxrss)
"""
ENTRIES = b'{"log":{"entries":['


def filled(beginning: bytes, unit: bytes, end: bytes = b"") -> bytes:
    return beginning + unit * (60 * MB // len(unit)) + end


def keys(beginning: bytes, end: bytes) -> bytes:
    return beginning + b",".join(map(b'"%x":0'.__mod__, range(5 * MB))) + end


def newlines() -> bytes:
    """2^30 of them, compressed: after a full flush the same bytes stand for the same content."""
    deflater = zlib.compressobj(9, wbits=-15)
    block = deflater.compress(b"\n" * MB) + deflater.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(1024):
        checksum = zlib.crc32(b"\n" * MB, checksum)
    return (b"\x1f\x8b\x08" + bytes(7) + block * 1024 + deflater.flush()
            + struct.pack("<II", checksum, 1024 * MB))


LISTS = b'{"a":[' + b"[]," * 600_000 + b"[]]},"
PAGE = "--page {} --rtt 50 --bw 10M --iw 10"
USERS = "--users {} --bw 10M --size 30kB --iw 10,20"


@pytest.mark.parametrize(("name", "content", "words", "answer"), [
    ("p.har", lambda: keys(b'{"log":{', b"}}"), PAGE, "1,000 keys"),
    ("p.har", lambda: keys(ENTRIES + b"{", b"}]}}"), PAGE, "more than 2 MB"),
    ("p.har", lambda: filled(ENTRIES, LISTS, b"[]]}}"), PAGE, "no entry that was fetched"),
    ("p.har", lambda: filled(ENTRIES, b"{},", b"{}]}}"), PAGE, "more than 20,000 entries"),
    ("p.har", lambda: filled(ENTRIES + b'"', "\U0001f600".encode(), b'"]}}'), PAGE,
     "no entry that was fetched"),
    ("p.har.gz", newlines, PAGE, "more than 64 MB"),
    ("p.toml", lambda: filled(b"", b"[[object]]\nbytes = 9\n"), PAGE, "more than 1 MB"),
    ("u.csv.gz", newlines, USERS, "more than 10,000,000 lines"),
    ("u.csv", lambda: filled(b"rtt_ms\n", b"1\n"), USERS, "more than 10,000,000 lines"),
    ("u.csv", lambda: filled(b"rtt_ms,x\n", b"1,\xff\n" * 9_000_000), USERS, "unknown column"),
    ("u.log", lambda: filled(b"", b'{"rtt_ms": 0, "x": [' + b"[]," * 20_000 + b"0]}\n"), USERS,
     "is no JSON object")], ids=lambda value: value if isinstance(value, str) else "")
def test_the_worst_files_are_refused_in_little_time_and_memory(
        name: str, content: Callable[[], bytes], words: str, answer: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content())
    command = [sys.executable, str(PROJECT / "experiment.py"), *words.format(path).split()]
    done = run_program([sys.executable, "-IS", "-c", MEASURED, *command], cwd=tmp_path)
    status, took_s, most_kb = map(float, done.stdout.split()[-3:])
    path.unlink()
    assert status == USAGE and answer in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert took_s < MOST_S and most_kb < MOST_MB << 10
