"""What a command prints, as it is stored: whole lines with their time, and long ones in pieces."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from firstflight.commands.virtual.command import show_end
from vtime import Result, session
from vtime.command.frames import ERROR, MOST_BYTES, OUTPUT
from vtime.command.guest import CommandEnd
from vtime.session import OutputFile

LONGEST = 1 << 16


def stored(path: Path, *frames: tuple[bytes, float, bytes]) -> list[bytes]:
    with OutputFile(path, CommandEnd()) as output:
        for frame in frames:
            output.store(*frame)
    assert not output.outcome.troubles
    return path.read_bytes().split(b"\n")


def test_each_line_has_its_stream_and_the_time_of_its_first_byte(tmp_path: Path) -> None:
    assert stored(tmp_path / "output.txt", (OUTPUT, 1, b"one\ntw"), (ERROR, 2, b"oh"),
                  (OUTPUT, 3, b"o\n\nend")) == [
        b"      1.000000 out one", b"      1.000000 out two", b"      3.000000 out ",
        b"      3.000000 out end", b"      2.000000 err oh", b""]


def test_a_long_line_is_stored_in_pieces(tmp_path: Path) -> None:
    line = bytes(range(32, 127)) * 2000
    frames = [(OUTPUT, float(number), line[place:place + 1000])
              for number, place in enumerate(range(0, len(line), 1000))]
    *pieces, after, end = stored(tmp_path / "output.txt", *frames, (OUTPUT, 999, b"\nshort\n"))
    assert [piece[15:].partition(b" ")[0] for piece in pieces] == [b"out", b"out+", b"out+"]
    assert b"".join(piece[15:].partition(b" ")[2] for piece in pieces) == line
    assert [float(piece[:15]) for piece in pieces] == [0, LONGEST // 1000, 2 * LONGEST // 1000]
    assert (after, end) == (b"    999.000000 out short", b"")


def test_a_line_as_long_as_one_may_be_is_whole(tmp_path: Path) -> None:
    assert len(stored(tmp_path / "output.txt", (OUTPUT, 0, b"x" * LONGEST), (OUTPUT, 1, b"\n"),
                      (OUTPUT, 1, b"y" * LONGEST + b"\n"))) == 3


def test_of_output_without_an_end_of_line_little_is_held(tmp_path: Path) -> None:
    """Whatever is held is copied for each frame: more with each would take the square of it."""
    with OutputFile(tmp_path / "output.txt", CommandEnd()) as output:
        for number in range(200):
            output.store(OUTPUT, number, bytes(MOST_BYTES))
            held = sum(sys.getsizeof(line) for kind in output.lines
                       for line in vars(output.lines[kind]).values())
            assert held < 3 * LONGEST, f"{held} bytes after {number + 1} frames"
    assert (tmp_path / "output.txt").stat().st_size > 200 * MOST_BYTES


@pytest.mark.parametrize(("room", "lines"), [(100, 4), (99, 3), (0, 0)])
def test_more_than_is_kept_ends_with_a_line(
        room: int, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "KEPT_BYTES", room)
    *kept, last, end = stored(tmp_path / "output.txt", *[(OUTPUT, 1, b"12345\n12345\n")] * 9)
    assert kept == [b"      1.000000 out 12345"] * lines
    assert last + b"\n" == session.NOT_KEPT and not end


@pytest.mark.parametrize(("cut", "line"), [(0, None), (
    1, "run.sh: 1 line of output longer than 64 kB: output.txt has it in pieces, those after the"
    " first marked with +"), (
    2, "run.sh: 2 lines of output longer than 64 kB: output.txt has them in pieces, those after the"
    " first marked with +")])
def test_cut_lines_are_told(cut: int, line: str | None, tmp_path: Path,
                            capsys: pytest.CaptureFixture[str]) -> None:
    show_end(tmp_path, Result(0, tmp_path / "output.txt", tmp_path, 0, None, 1.0, 1.0, (), 0, True,
                              (), cut), quiet=True)
    assert capsys.readouterr().err.splitlines() == ([line] if line else [])
