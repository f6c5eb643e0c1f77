"""Files about users, places to write to and servers that mean harm: inputs of inputs.py."""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

import drawing
import experiment
from benchmarks.faults import damage
from benchmarks.faults.damage import Draw, percent, pick
from engines.job import PROJECT
from lab import registry
from lab.core import files
from lab.core.findings.findings import Report
from lab.core.run.kinds import RunData
from lab.core.scenario import scenario_file
from lab.render import data, page
from probe import client

Attempt = Callable[[], object]
GOLDEN = PROJECT / "tests" / "golden"
ROWS = 30
COMBINED = ('192.0.2.7 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 {size} "-" "M/5"'
            ' {rtt}000')
LINES = {"csv": ("rtt_ms,bandwidth_kbps,response_bytes,group,weight", "{rtt},{kbps},{size},a,1"),
         "combined": ("", COMBINED), "named": ("", "rtt={rtt}000 bytes={size} group=a"),
         "ss": ("State Recv-Q Send-Q", "ESTAB 0 0 192.0.2.1:80 192.0.2.7:4000\n\t cubic rtt:{rtt}/4"
                " delivery_rate {kbps}Kbps bytes_acked:{size}")}
# What moves numbers, lines and fields apart from bytes: put in place of one of a text's words.
TOKENS = (*damage.WORDS, *map(str, damage.NUMBERS), "1.2.3", "1.2.3Mbps", "[x " * 20_000,
          "9" * 100_000, '"', "\r", "\r\n", "rtt:", "rtt=" * 5000, "[] " * 20_000, "\x85")


# Files about users -------------------------------------------------------------------

def of_users(draw: Draw, folder: Path) -> Attempt:
    """A CSV, a log, a list of sockets or a capture, and what --users makes of it."""
    form, path = pick(draw, (*LINES, "pcap", "pcapng")), folder / "users"
    content = _capture(form, draw) if form.startswith("pcap") else _text(form, draw)
    damage.put(path, content if percent(draw) < 10 else damage.data(content, draw), draw)
    flags = pick(draw, (
        "--bw 5000 --size 9000", "", "--share-link 9000 --iw 10,20 --bw 5000 --size 9000",
        "--trials 1 --size 1 --bw 1", "--bw 5000 --size 9000 --trials 900000")).split()
    return lambda: run([*flags, "--users", str(path)], folder)


def run(line: list[str], folder: Path) -> object:
    """What run.sh does with a command line, except that it measures nothing."""
    with at(folder):
        return experiment.main(["--dry-run", "--results", str(folder / "results"), "--figures",
                                str(folder / "figures"), *line])


@contextmanager
def at(folder: Path) -> Iterator[None]:
    """In another folder for a while."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _text(form: str, draw: Draw) -> bytes:
    """A text of one of the forms, most of them with words changed."""
    head, line = LINES[form]
    numbers = draw(st.lists(st.tuples(st.integers(1, 500), st.integers(50, 9000),
                                      st.integers(1, 99_999)), min_size=ROWS, max_size=ROWS))
    lines = [head, *(line.format(rtt=rtt, kbps=kbps, size=size) for rtt, kbps, size in numbers), ""]
    for _ in range(pick(draw, (0, 1, 1, 3))):
        place = draw(st.integers(0, ROWS))
        words = lines[place].replace(",", " , ").split(" ")
        words[draw(st.integers(0, len(words) - 1))] = pick(draw, TOKENS)
        lines[place] = " ".join(words).replace(" , ", ",")
    end = pick(draw, ("\n", "\n", "\n", "\r", "\r\n"))
    return end.join(lines if head else lines[1:]).encode(errors="surrogatepass")


def _capture(form: str, draw: Draw) -> bytes:
    """A capture of a server in one of the two formats; of pcapng odd options and lengths."""
    content = (GOLDEN / "trials" / "iw10" / "server.pcap").read_bytes()
    if form == "pcap":
        return content
    order = "<" if content[0] in (0xD4, 0x4D) else ">"
    options = pick(draw, (b"", b"", struct.pack(f"{order}HHI", 9, 1, 9),
                          struct.pack(f"{order}HH", 9, 0), struct.pack(f"{order}HHI", 14, 4, 7),
                          struct.pack(f"{order}HH", 9, 60_000), b"\x09"))
    blocks = [(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)),
              (1, struct.pack(f"{order}HHI", *struct.unpack_from(f"{order}I", content, 20), 0, 0)
               + options)]
    place = 24
    while place < len(content):
        seconds, parts, held, size = struct.unpack_from(f"{order}IIII", content, place)
        stamp = seconds * 10**6 + parts
        blocks.append((6, struct.pack(f"{order}IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, held,
                                      size) + content[place + 16:place + 16 + held]))
        place += 16 + held
    lengths: dict[int, int | None] = {}  # that are not as they should be
    if percent(draw) < 10:
        lengths[draw(st.integers(0, len(blocks) - 1))] = pick(
            draw, (0, 4, 7, 15, 0xFFFFFFF0, 1 << 19))
    return b"".join(_block(order, *block, lengths.get(place)) for place, block in enumerate(blocks))


def _block(order: str, kind: int, body: bytes, length: int | None) -> bytes:
    body += bytes(-len(body) % 4)
    whole = 12 + len(body)
    return (struct.pack(f"{order}II", kind, whole if length is None else length) + body
            + struct.pack(f"{order}I", whole))


# Places to write to ------------------------------------------------------------------

@cache
def _report() -> Report:
    """What is written."""
    study = registry.study_of(scenario_file.find("paper_arithmetic"))  # measures nothing
    return study.report(RunData(Path("run"), {"state": "complete"}, []))


def of_outputs(draw: Draw, folder: Path) -> Attempt:
    """Something odd where a file, a link or a folder is to be written; what was there stays.

    A device, a FIFO, a socket or a link is still one afterwards, and files beside it are as before.
    """
    place = folder / "out"
    victim, beside = folder / "victim", folder / ".out"
    victim.write_text("mine")
    beside.write_text("mine too")
    _odd(place, draw)
    if percent(draw) < 30:
        (folder / "link").symlink_to(pick(draw, ("out", "./link", "out/../out", str(place))))
        place = folder / "link"
    if percent(draw) < 30:
        place = place / pick(draw, ("deep", "deep/er", "..", ".", "x" * 300, "a\nb"))
    report, form = _report(), pick(draw, ("json", "md", "csv"))
    writes: tuple[Callable[[], object], ...] = (
        lambda: files.write(place, data.exported(form, report)),
        lambda: files.append(place).close(), lambda: files.link(place, "victim"),
        lambda: page.write(place, report, {}), lambda: files.make_folder(place),
        lambda: drawing.save(report.name, {"one": {"png": b"x"}}, place),
        lambda: run(["--new", "mine"], folder))
    write = pick(draw, writes)
    odd = {path: _kind(path) for path in (folder / "out", folder / "link")}
    is_led_to = (folder / "out").is_symlink() or victim.stat().st_nlink > 1

    def attempt() -> None:
        try:
            write()
        finally:
            assert beside.read_text() == "mine too", "a hidden file beside it was changed"
            assert is_led_to or victim.read_text() == "mine", "another file was changed"
            for path, before in odd.items():
                if before and not stat.S_ISREG(before[0]):
                    assert stat.S_ISLNK(before[0]) and write is writes[2] or (
                        _kind(path) == before), f"{path.name} is no longer what it was"
    return attempt


def _odd(place: Path, draw: Draw) -> None:
    """What may stand where something is to be written."""
    def device(kind: int, major: int, minor: int) -> None:
        with suppress(PermissionError):
            os.mknod(place, kind | 0o666, os.makedev(major, minor))

    made: list[Callable[[], object]] = [
        place.mkdir, lambda: os.mkfifo(place), lambda: None, lambda: place.write_text("old"),
        lambda: place.symlink_to("victim"), lambda: place.symlink_to("none/where"),
        lambda: place.symlink_to("out"), lambda: os.link(place.parent / "victim", place),
        lambda: device(stat.S_IFCHR, 1, 3), lambda: device(stat.S_IFCHR, 1, 7),
        lambda: device(stat.S_IFBLK, 7, 250), lambda: device(stat.S_IFSOCK, 0, 0)]
    pick(draw, made)()


def _kind(path: Path) -> tuple[int, int] | None:
    try:
        seen = path.lstat()
    except FileNotFoundError:
        return None
    return stat.S_IFMT(seen.st_mode), seen.st_rdev


# Servers that are probed -------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\nServer: x\r\n\r\n"
PIECES = (HEAD, bytes(1448), bytes(65536), b"\x16\x03\x03\x40\x00", b"\x15\x03\x03\x00\x02\x02\x28",
          b"HTTP/1.1 301 Moved\r\nLocation: " + b"x" * 3000 + b"\x1b[2J\r\n\r\n", b"\r\n" * 5000,
          b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 400 + b"\r\n\r\n", b"SSH-2.0-x\r\n")
TIMES: dict[str, Any] = {"ALL_S": 1.0, "CONNECT_S": 0.5, "ANSWER_S": 0.3,
                         "RESEND_S": 0.3, "REST_S": 0.3}


def of_servers(draw: Draw, folder: Path) -> Attempt:
    """A server on this machine that says odd things, and waits, and --probe."""
    pieces = [damage.data(piece, draw) if percent(draw) < 50 else piece
              for piece in draw(st.lists(st.sampled_from(PIECES), max_size=4))]
    pauses = [pick(draw, (0, 0, 0.02, 0.2)) for _ in pieces]
    again, scheme = percent(draw) < 30, pick(draw, ("http", "http", "https"))

    def serve(listener: socket.socket) -> None:
        with suppress(OSError), listener, listener.accept()[0] as connection:
            connection.recv(65536)
            until = time.monotonic() + 2 * TIMES["ALL_S"]
            while again and time.monotonic() < until:
                _say(connection, pieces, pauses)
            _say(connection, pieces, pauses)

    def attempt() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(TIMES["ALL_S"])
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        try:
            with patch.multiple(client, None, **TIMES):
                port = listener.getsockname()[1]
                experiment.main(["--probe", f"{scheme}://127.0.0.1:{port}/"])
        finally:
            thread.join()
    return attempt


def _say(connection: socket.socket, pieces: list[bytes], pauses: list[float]) -> None:
    for piece, pause_s in zip(pieces, pauses):
        connection.sendall(piece)
        time.sleep(pause_s)
    time.sleep(0.001)
