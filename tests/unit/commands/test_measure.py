"""Measuring scenarios: what is said before, and what is loaded while guests measure."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from firstflight.base import PROJECT
from firstflight.commands import run
from firstflight.commands.dry_run import say_expected_times
from firstflight.commands.flags import parse

PROGRAM = """
import sys
from firstflight.commands.measure import _loading_meanwhile
with _loading_meanwhile({draws}):
    pass
print(bool(sys.modules.get("matplotlib")))
"""


@pytest.mark.parametrize(("draws", "broken", "loaded"), [
    (True, "", True), (False, "", False),
    (True, "sys.modules['matplotlib'] = None", False)])  # as if it were not installed
def test_what_draws_is_loaded_while_guests_measure_if_it_is_needed(
        draws: bool, broken: str, loaded: bool) -> None:
    """What cannot be loaded is reported where it is used, and not by the thread."""
    program = f"import sys\n{broken}\n{PROGRAM.format(draws=draws)}"
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{loaded}\n", "")


def test_before_several_scenarios_it_says_how_long_each_will_take(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = parse(["zhao2019", "dukkipati2010", "--results", str(tmp_path)])
    say_expected_times(run.read(request), request.measuring)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["zhao2019", "dukkipati2010"]
    first_s, second_s = (float(re.findall(r": expected time about (\d+) s", line)[0])
                         for line in lines)
    assert 0 < first_s < second_s
