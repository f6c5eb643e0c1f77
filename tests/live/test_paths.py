"""Where results and figures go: any folder that the system can have, named from where one stands."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.live.conftest import PROJECT


def test_results_and_figures_may_be_relative_and_of_any_name(kernel: Path, tmp_path: Path) -> None:
    name = "-a b,c=\"ü'\ntwo \N{SNOWMAN} $(id)" + "x" * 100
    done = subprocess.run(
        [str(PROJECT / "run.sh"), "--rtt", "25", "--iw", "3,10", f"--results={name}/r",
         f"--figures={name}/f"], cwd=tmp_path, capture_output=True, text=True, timeout=300,
        check=False)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / name / "r" / "own").glob("*-uml")
    assert (run / "trials.csv").read_text().count("\n") > 1
    figures = list((tmp_path / name / "f").iterdir())
    assert figures and f"{name}/f" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == [name]
