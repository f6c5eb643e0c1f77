"""Who may import whom: the rooms of CONTRIBUTING.md, their size, and no circle between files."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent.parent
PATTERNS = ("*.py", "hosts/*.py", "engines/**/*.py", "lab/**/*.py", "drawing/*.py",
            "benchmarks/**/*.py")
FILES = [path.relative_to(PROJECT) for pattern in PATTERNS for path in sorted(PROJECT.glob(pattern))]
MODULES = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
KINDS = sorted(path.name for path in (PROJECT / "lab").iterdir()
               if path.is_dir() and (path / "study.py").is_file())
SCALE = ("cliffs", "command_line", "hosts", "topo", "engines", "lab", "drawing", "experiment", "plot", "report", "results",
         "server", "client", "batch", "measurers", "benchmarks")

# What each room may import of ours, by the beginnings of module names. The first line whose
# room begins a file's module decides.
MAY_IMPORT: list[tuple[str, tuple[str, ...]]] = [
    ("hosts", ("hosts",)), ("server", ("hosts",)), ("client", ("hosts",)),
    ("engines.cluster.node", ()),  # sent to machines that have nothing of ours
    ("engines", ("engines", "topo", "hosts")),
    ("topo", ("engines.shaping", "engines.ports", "engines.routes", "engines.kernel",
              "engines.nodes")),
    # The reader of what guests and machines of a cluster write, engines and batches share.
    ("lab.core.errors", ()), ("lab.core.batches", ("lab.core", "lab.tcp", "hosts.untrusted")),
    ("lab.core", ("lab.core", "lab.tcp")),
    ("lab.tcp", ("lab.tcp", "lab.core.errors")),
    ("lab.tell", ("lab.tell", "lab.core")), ("lab.users", ("lab.users", "lab.core")),
    ("lab.registry", ("lab.core", "lab.fetches.own", "lab.fetches.cliff", "lab.fetches.cliff_told", *(f"lab.{kind}.study" for kind in KINDS))),
    # What a TLS record is, server and model share; what a padded request, client and verdict.
    ("lab.fetches", ("lab.fetches", "lab.core", "lab.tcp", "hosts.records", "hosts.early",
                      "hosts.distribution")),
    *((f"lab.{kind}", (f"lab.{kind}", "lab.core", "lab.tcp")) for kind in KINDS),
    ("lab", ()), ("drawing", ("drawing", "lab.core")),
    ("command_line", ("lab.core", "lab.users")),
    ("cliffs", ("measurers", "lab.core", "lab.registry")),
    ("measurers", ("engines", "lab.core")),
    ("experiment", ("measurers", "cliffs", "command_line", "engines", "hosts.probe", "lab.core", "lab.tell", "lab.registry", "lab.tcp.probed", "lab.users", "drawing")),
    ("batch", ("measurers", "engines", "lab.core", "lab.registry")),
    *((program, ("lab.core", "lab.tell", "lab.registry", "drawing"))
      for program in ("plot", "report", "results")),
    ("benchmarks", ("benchmarks", "command_line", "measurers", "engines", "lab", "hosts", "experiment", "drawing")),
]
# Libraries that stay in one place: who may import them.
ONLY = {"matplotlib": ("drawing",), "mininet": ("topo", "engines.bench", "engines.kernel", "engines.nodes"),
        "distributed": ("engines.cluster",), "jinja2": ("lab.tell",), "pycurl": ("client", "hosts"),
        "dpkt": ("lab.users", "benchmarks")}  # slow: for captures of other people, and for tests


def begins(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((PROJECT / path).read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


@cache
def imported(module: str, at_top: bool = False) -> frozenset[str]:
    """The full names of what a module imports; at_top: when it is itself imported."""
    names: set[str] = set()
    top = set(map(id, tree(MODULES[module]).body))
    for node in nodes(MODULES[module]):
        if at_top and id(node) not in top:
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in MODULES
                         else node.module for alias in node.names)
    return frozenset(names)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_file_imports_only_what_its_room_may(module: str) -> None:
    allowed = next(allowed for room, allowed in MAY_IMPORT if begins(module, room))
    for name in imported(module):
        if name.split(".")[0] in SCALE:
            assert name == "lab" or any(begins(name, room) for room in allowed), (
                f"{module} may import {', '.join(allowed) or 'nothing of ours'}, not {name}")
        for library, owners in ONLY.items():
            if begins(name, library):
                assert any(begins(module, owner) for owner in owners), f"{library} in {module}"


def test_no_circle_between_files() -> None:
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " → ".join((*above[above.index(module):], module))
        if module not in done:
            for name in sorted(imported(module)):
                if name in MODULES and name != module:
                    visit(name, (*above, module))
            done.add(module)

    for module in sorted(MODULES):
        visit(module, ())


def test_every_kind_has_the_same_rooms() -> None:
    rooms = {"scenario", "trial", "verify", "record", "analysis", "findings", "study"}
    assert KINDS == ["arithmetic", "fetches", "load", "trace"]
    for kind in KINDS:
        if kind == "arithmetic":  # has no trials: it measures nothing
            continue
        files = {path.stem for path in (PROJECT / "lab" / kind).glob("*.py")}
        assert rooms <= files, f"lab/{kind} lacks {', '.join(sorted(rooms - files))}"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_files_and_functions_fit_a_reader(module: str) -> None:
    path = MODULES[module]
    lines = (PROJECT / path).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 500, f"{path} has {len(lines)} lines: which two subjects has it?"
    wide = [number for number, line in enumerate(lines, start=1) if len(line) > 100]
    assert not wide, f"{path}: lines {wide} have more than 100 characters"
    for node in nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            assert size <= 45, f"{path}: {node.name} has {size} lines"
            assert node.returns is not None, f"{path}: {node.name} does not say what it returns"


def test_no_branch_on_the_kind_outside_the_registry() -> None:
    for module, path in MODULES.items():
        for node in nodes(path):
            if isinstance(node, ast.Compare) and module != "lab.registry":
                words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                assert not words & {"fetches", "trace"} or "engines" in module, (
                    f"{path}, line {node.lineno} asks for the kind of study")
