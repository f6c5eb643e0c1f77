"""Measuring a scenario: what is loaded while guests measure."""

from __future__ import annotations

import subprocess
import sys

import pytest

from firstflight.base import PROJECT

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
