"""What can be taken out: a folder and its line of a registry go, and the rest works on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.test_architecture import MODULES, PROJECT, begins, imported, imports_of

NOT_COPIED = {PROJECT / name for name in ("results", "figures", "docs", "tests/golden",
                                          "tests/live")}
# Of what is left: its modules, a scenario read and expanded, and tests of some of it.
REST = """
import importlib, sys
import pytest
sys.path.insert(0, "")
for module in sys.argv[3:]:
    importlib.import_module(module)
import experiment
assert experiment.main(["--list"]) == experiment.main(["--check", sys.argv[2]]) == 0
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1]]))
"""


@dataclass(frozen=True)
class Part:
    """What goes: its folders, code first; its lines, by file and a word of each.

    also: what measures or tests it together with something else. check: a scenario that needs
    none of it.
    """

    folders: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]
    also: tuple[str, ...] = ()
    check: str = "zhao2019"

    def has(self, path: Path) -> bool:
        return any(path.is_relative_to(gone) for gone in (*self.folders, *self.also))


def kind(name: str, *also: str) -> Part:
    return Part((f"lab/{name}", f"tests/unit/{name}"), (("lab/registry.py", f'"{name}": '),), also)


def feature(name: str, *also: str, question: str = "", check: str = "zhao2019") -> Part:
    """question: the flag that asks it, whose module in commands/ goes with it; check: of Part."""
    lines = [("lab/fetches/features/__init__.py", f'"{name}",')]
    if question:
        lines.append(("commands/flags.py", f'"{question}": '))
    return Part((f"lab/fetches/features/{name}", f"tests/unit/features/{name}"), tuple(lines),
                (*also, *([f"commands/{name}.py"] if question else [])), check)


MIXED = "tests/unit/fetches/test_at_the_limit.py"  # of whatever is at its limit
PARTS = {
    "load": kind("load", "tests/unit/features/users/test_shared.py"),
    "trace": kind("trace"), "arithmetic": kind("arithmetic"),
    "cluster": Part(("engines/cluster", "tests/unit/cluster", "tests/programs/cluster"),
                    (("commands/runners.py", '"cluster": '),)),
    "tls": feature("tls"), "servers": feature("servers"),
    "users": feature("users", "tests/unit/fetches/test_refused.py", question="users"),
    "population": feature("population", "paper/fit", "tests/programs/test_fit.py", MIXED, *(
        f"tests/unit/fetches/test_{name}.py"
        for name in ("analysis", "buffers", "counts", "missing", "refused", "trials")),
        check="marrama2012"),
    "replication": feature("replication"),
    "cliff": feature("cliff", MIXED, question="find_cliff"),
    "losses": feature("losses"), "questions": feature("questions", "benchmarks/outside/transfers.py",
                         "tests/unit/benchmarks/test_transfers.py"),
    "grids": feature("grids", MIXED, "tests/unit/fetches/test_analysis.py",
                     "tests/unit/features/questions/test_own.py"),
    "steps": feature("steps"),
    "timelines": feature("timelines", "tests/unit/fetches/test_missing.py",
                         "tests/unit/features/tls/test_tls.py"),
    "limiting_factors": feature("limiting_factors", "tests/unit/features/tls/test_tls.py",
                                "tests/unit/fetches/test_answer.py"),
    "raw": feature("raw", check="marrama2012"),
    "explain": feature("explain", question="explain"),
}


@pytest.mark.parametrize("name", PARTS)
def test_nothing_else_imports_it(name: str) -> None:
    """Neither the rest nor its tests, not even where it is used."""
    part, gone = PARTS[name], PARTS[name].folders[0].replace("/", ".")
    found = {str(path): imported(module) for module, path in MODULES.items()}
    found |= {str(path): imports_of(path) for path in (
        path.relative_to(PROJECT) for path in (PROJECT / "tests/unit").rglob("*.py"))}
    assert not [f"{path} imports {other}" for path, names in found.items() for other in names
                if begins(other, gone) and not part.has(Path(path))]


@pytest.mark.parametrize("name", PARTS)
def test_the_rest_works_without_it(name: str, tmp_path: Path) -> None:
    part, copy = PARTS[name], tmp_path / "copy"
    shutil.copytree(PROJECT, copy, ignore=lambda folder, names: [
        each for each in names if each.startswith(".") or Path(folder, each) in NOT_COPIED])
    for gone in (*part.folders, *part.also):
        path = copy / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name_of_file, word in part.lines:
        registry = copy / name_of_file
        lines = registry.read_text(encoding="utf-8").splitlines(keepends=True)
        left = [line for line in lines if word not in line]
        assert len(left) == len(lines) - 1
        registry.write_text("".join(left), encoding="utf-8")
    modules = [module for module, path in MODULES.items()
               if not part.has(path) and not begins(module, "benchmarks")]
    tests = ("tests/unit/core/test_batches.py" if name == "arithmetic" else
             "tests/unit/arithmetic")
    done = subprocess.run([sys.executable, "-c", REST, tests, part.check, *modules], cwd=copy, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                          check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stdout[-3000:]
