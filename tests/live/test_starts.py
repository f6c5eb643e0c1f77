"""./run.sh -- COMMAND starts a command at a date of its own, in the folder where it was typed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.live.commands import Ended, needs_commands

pytestmark = needs_commands


def test_a_file_of_today_is_not_from_the_future_in_a_guest(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("made: given\n\tcp given made\n")
    (tmp_path / "given").write_text("given")
    ended = Ended(tmp_path, "sh", "-c", "make; make; make; date -u +%T; ! [ given -nt made ]")
    assert ended.status == 0 and "skew" not in ended.err + ended.out, ended.err
    assert ended.out.count("cp given made") == 1 and "up to date" in ended.out
    assert re.search(r"^00:00:0\d$", ended.out, re.MULTILINE), ended.out
    fixed = Ended(tmp_path, "date", "+%F", flags=("--clock", "2031-02-03"))
    assert fixed.out == "2031-02-03\n"


def test_packetdrill_is_found_in_the_folder_of_the_start(tmp_path: Path) -> None:
    (tmp_path / "packetdrill").write_text("#!/bin/sh\necho took $(tail -n 1 $#)\n"
                                          .replace("$#", "\"$(eval echo \\${$#})\""))
    (tmp_path / "packetdrill").chmod(0o755)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "one.pkt").write_text("0 `true`\n")
    ended = Ended(tmp_path, "sh", "-c", "(cd sub && packetdrill one.pkt)")
    assert (ended.status, ended.out) == (0, "took 0 `true`\n"), ended.err
