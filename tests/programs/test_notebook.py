"""docs/notebook.ipynb, executed cell by cell on a stored run: its numbers are the figure's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from firstflight.runs import scenario_file
from tests.golden import stored_fetches

PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What all its cells have defined."""
    pytest.importorskip("pandas", reason="no pandas: ./install.sh --test")
    import matplotlib
    run = tmp_path / "results" / "zhao2019" / "latest"
    run.mkdir(parents=True)
    shutil.copy(PROJECT / "tests" / "golden" / "zhao2019_trials.csv", run / "trials.csv")
    (run / "run.json").write_text(json.dumps({
        "kernel": "7.2.11", "engine": "uml",
        "scenario_file": scenario_file.find("zhao2019").head().text}))
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    matplotlib.use("Agg")
    defined: dict[str, Any] = {}
    cells = json.loads((PROJECT / "docs" / "notebook.ipynb").read_text())["cells"]
    for cell in cells:
        assert not cell.get("outputs"), "outputs are made anew by whoever opens it"
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), defined)
    return defined


def test_its_numbers_are_those_of_the_figure(notebook: dict[str, Any]) -> None:
    bar_figure, improved = stored_fetches.bar_figures("zhao2019")["fig5_rtt"], notebook["improved"]
    assert [float(rtt) for rtt in improved.index] == [bucket.value for bucket in bar_figure.bars]
    assert list(improved["ms"]) == pytest.approx([bucket.difference.absolute.value for bucket in bar_figure.bars])
    assert list(improved["percent"]) == pytest.approx([bucket.difference.percent.value for bucket in bar_figure.bars])


def test_its_figure_has_both_bars_of_every_bucket(notebook: dict[str, Any]) -> None:
    left, right = notebook["figure"].axes
    assert len(left.patches) == len(right.patches) == len(notebook["improved"])
    assert [bar.get_height() for bar in left.patches] == list(notebook["improved"]["ms"])
    notebook["plt"].close(notebook["figure"])
