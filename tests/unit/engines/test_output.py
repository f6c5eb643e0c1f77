"""What a command prints, as it is stored: whole lines with their time, and long ones in pieces."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.virtual import command
from commands.virtual.command import Output
from engines.command.frames import ERROR, MOST_BYTES, OUTPUT

LONGEST = 1 << 16


@pytest.fixture(autouse=True)
def nowhere() -> Iterator[None]:
    """What is passed on to our own output, which pytest reads by its descriptor."""
    before, null = [os.dup(number) for number in (1, 2)], os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(null, number)
    yield
    for number, kept in zip((1, 2), before):
        os.dup2(kept, number)
        os.close(kept)
    os.close(null)


def stored(path: Path, *frames: tuple[bytes, float, bytes]) -> list[bytes]:
    with Output(path, quiet=True, lose=pytest.fail) as output:
        for frame in frames:
            output.carry(*frame)
    return path.read_bytes().split(b"\n")


def test_each_line_has_its_stream_and_the_time_of_its_first_byte(tmp_path: Path) -> None:
    assert stored(tmp_path / "output.txt", (OUTPUT, 1, b"one\ntw"), (ERROR, 2, b"oh"),
                  (OUTPUT, 3, b"o\n\nend")) == [
        b"      1.000000 out one", b"      1.000000 out two", b"      3.000000 out ",
        b"      3.000000 out end", b"      2.000000 err oh", b""]


def test_a_long_line_is_stored_in_pieces_and_told(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = bytes(range(32, 127)) * 2000
    frames = [(OUTPUT, float(number), line[place:place + 1000])
              for number, place in enumerate(range(0, len(line), 1000))]
    *pieces, after, end = stored(tmp_path / "output.txt", *frames, (OUTPUT, 999, b"\nshort\n"))
    assert [piece[15:].partition(b" ")[0] for piece in pieces] == [b"out", b"out+", b"out+"]
    assert b"".join(piece[15:].partition(b" ")[2] for piece in pieces) == line
    assert [float(piece[:15]) for piece in pieces] == [0, LONGEST // 1000, 2 * LONGEST // 1000]
    assert (after, end) == (b"    999.000000 out short", b"")
    assert capsys.readouterr().err == (
        "run.sh: 1 line of output longer than 64 kB: output.txt has it in pieces, those after the"
        " first marked with +\n")


def test_a_line_as_long_as_one_may_be_is_whole(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(stored(tmp_path / "output.txt", (OUTPUT, 0, b"x" * LONGEST), (OUTPUT, 1, b"\n"),
                      (OUTPUT, 1, b"y" * LONGEST + b"\n"))) == 3
    assert capsys.readouterr().err == ""


def test_of_output_without_an_end_of_line_little_is_held(tmp_path: Path) -> None:
    """Whatever is held is copied for each frame: more with each would take the square of it."""
    with Output(tmp_path / "output.txt", quiet=True, lose=pytest.fail) as output:
        for number in range(200):
            output.carry(OUTPUT, number, bytes(MOST_BYTES))
            held = sum(sys.getsizeof(line) for kind in output.lines
                       for line in vars(output.lines[kind]).values())
            assert held < 3 * LONGEST, f"{held} bytes after {number + 1} frames"
    assert (tmp_path / "output.txt").stat().st_size > 200 * MOST_BYTES


@pytest.mark.parametrize(("room", "lines"), [(100, 4), (99, 3), (0, 0)])
def test_more_than_is_kept_ends_with_a_line(
        room: int, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "KEPT_BYTES", room)
    *kept, last, end = stored(tmp_path / "output.txt", *[(OUTPUT, 1, b"12345\n12345\n")] * 9)
    assert kept == [b"      1.000000 out 12345"] * lines
    assert last + b"\n" == command.NOT_KEPT and not end
