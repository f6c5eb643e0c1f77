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
for module in sys.argv[2:]:
    importlib.import_module(module)
import experiment
assert experiment.main(["--list"]) == experiment.main(["--check", "zhao2019"]) == 0
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", sys.argv[1]]))
"""


@dataclass(frozen=True)
class Part:
    """What goes: its folders, code first, and of each registry the line that begins like this.

    also: what measures or tests it together with something else.
    """

    folders: tuple[str, ...]
    lines: dict[str, str]
    also: tuple[str, ...] = ()

    def has(self, path: Path) -> bool:
        return any(path.is_relative_to(gone) for gone in (*self.folders, *self.also))


PARTS = {
    "load": Part(("lab/load", "tests/unit/load"), {"lab/registry.py": '"load": '},
                 ("tests/unit/users/test_shared.py",)),
    "trace": Part(("lab/trace", "tests/unit/trace"), {"lab/registry.py": '"trace": '}),
    "arithmetic": Part(("lab/arithmetic", "tests/unit/arithmetic"), {"lab/registry.py": '"arithmetic": '}),
    "cluster": Part(("engines/cluster", "tests/unit/cluster"), {"commands/runners.py": '"cluster": '},
                    ("benchmarks/speed/cluster.py",)),
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
    for registry, word in part.lines.items():
        lines = (copy / registry).read_text(encoding="utf-8").splitlines(keepends=True)
        left = [line for line in lines if not line.lstrip().startswith(word)]
        assert len(left) == len(lines) - 1
        (copy / registry).write_text("".join(left), encoding="utf-8")
    modules = [module for module, path in MODULES.items()
               if not part.has(path) and not begins(module, "benchmarks")]
    tests = ("tests/unit/core/test_batches.py" if name == "arithmetic" else
             "tests/unit/arithmetic")
    done = subprocess.run([sys.executable, "-c", REST, tests, *modules], cwd=copy, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
                          check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stdout[-3000:]
