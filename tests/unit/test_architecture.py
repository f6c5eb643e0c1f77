"""Who may import whom: docs/METHOD.md's picture of the project stays true."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
OWN = {"engines", "lab", "hosts", "topo", "server", "client", "experiment", "plot",
       "plot_population", "plot_load", "plot_trace", "report", "results", "benchmarks"}
ON_HOSTS = ("server.py", "client.py", "hosts")
DRAWERS = ("plot.py", "plot_population.py", "plot_load.py", "plot_trace.py")
FILES = [path for pattern in ("*.py", "engines/**/*.py", "hosts/**/*.py", "lab/**/*.py")
         for path in sorted(PROJECT.glob(pattern))]


def imported(path: Path) -> set[str]:
    """The top-level names of everything that a file imports, at any depth in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_imports_go_one_way(path: Path) -> None:
    place, names = path.relative_to(PROJECT), imported(path)
    if place.parts[0] in ON_HOSTS:
        assert not names & (OWN - {"hosts"}), "what runs on hosts imports only what stands in hosts"
    if place.parts[0] == "lab":
        assert not names & (OWN - {"lab"}), "lab stands on its own"
    if place.parts[0] == "engines":
        assert not names & (OWN - {"engines", "topo"}), "engines know no results and no verdicts"
    if "mininet" in names:
        assert place.name in ("topo.py", "bench.py", "kernel.py"), \
            "Mininet stays in topo and what serves it"
    if "matplotlib" in names:
        assert place.name in DRAWERS, "drawing stays in plot"
    assert not names & {"experiment"}, "nothing imports experiment"
    if place.name != "plot.py":
        assert not names & {Path(name).stem for name in DRAWERS}, "nothing imports plot"
