"""The floors of the house: a package imports only what stands below it; and no file too large."""

from __future__ import annotations

import ast
import re
import tokenize
from functools import cache
from pathlib import Path

from lab import registry

PROJECT = Path(__file__).resolve().parent.parent.parent
ROOMS = ("benchmarks", "commands", "drawing", "engines", "hosts", "lab", "net", "probe")
FILES = sorted(path.relative_to(PROJECT) for path in (
    *PROJECT.glob("*.py"), *(path for room in ROOMS for path in (PROJECT / room).rglob("*.py"))))
MODULES = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
KINDS = sorted(path.name for path in (PROJECT / "lab").iterdir()
               if path.is_dir() and (path / "study.py").is_file())

FEATURES = tuple(f"lab.fetches.features.{path.name}"
                 for path in sorted((PROJECT / "lab/fetches/features").iterdir())
                 if path.is_dir() and path.name != "__pycache__")
# The packages by floors, the lowest first; a program of the top level is a package of its own,
# and so is the registry. What stands on one floor does not know each other.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("net",),
    ("hosts", "lab.core", "engines.cluster.node"),
    ("hosts.server", "engines", "engines.network", "lab.core.scenario", "lab.core.findings",
     "lab.tcp"),
    ("server", "client", "topo", "engines.servers", "engines.cluster", "lab.core.results",
     "lab.tcp.wire", "probe", "drawing"),
    ("engines.worker", "engines.command", "lab.tcp.model", "lab.tcp.delivery", "lab.core.run",
     "lab.render"),
    ("engines.guest", "lab.capture", "lab.fetches.scenario", "lab.load", "lab.trace"),
    ("lab.fetches.verify",),
    ("lab.fetches.figures",),
    (*FEATURES, "lab.fetches.features"),
    ("lab.fetches",),
    ("lab.registry",),
    ("commands",),
    # experiment.py names what it calls of commands.virtual, and imports it when it is asked for.
    ("experiment", "plot", "report", "results", "commands.virtual", "benchmarks"),
    ("benchmarks.outside",),
)
FLOOR = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}
# Who runs on emulated hosts, in guests or on a cluster's machines needs nothing of the lab;
# the lab needs no engine, and knows of hosts what a TLS record or a padded request is.
WORLDS = (
    (("net",), ("lab", "engines", "hosts", "drawing", "commands", "probe", "topo", "server",
                "client")),
    (("hosts", "client", "server", "topo", "engines"), ("lab", "drawing", "commands")),
    (("lab", "drawing", "probe"), ("engines", "topo", "server", "client", "commands",
                                   "hosts.server")),
    (("lab", "net", "probe"), ("drawing",)), (("drawing",), ("lab.render",)),
    *(((f"lab.{kind}",), tuple(f"lab.{other}" for other in KINDS if other != kind))
      for kind in KINDS),
)
# Libraries that stay in one place: who may import them.
ONLY = {"matplotlib": ("drawing",), "mininet": ("topo", "engines.bench", "engines.network"),
        "distributed": ("engines.cluster",), "jinja2": ("lab.render",), "pycurl": ("client",),
        "dpkt": ("lab.fetches.features.users", "benchmarks")}  # slow


def begins(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


@cache
def text(path: Path) -> str:
    return (PROJECT / path).read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


@cache
def imported(module: str, at_top: bool = False) -> frozenset[str]:
    """The full names of what a module imports; at_top: when it is itself imported."""
    path = MODULES[module]
    names: set[str] = set()
    top = set(map(id, tree(path).body))
    for node in nodes(path):
        if at_top and id(node) not in top:
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in MODULES
                         else node.module for alias in node.names)
    return frozenset(names)


def package(module: str) -> str:
    """The package of a module: its folder, or itself at the top level. Raises KeyError."""
    if module in FLOOR:
        return module
    return module.rpartition(".")[0] or module


def test_a_file_imports_only_what_stands_below_it() -> None:
    wrong: list[str] = []
    for module in sorted(MODULES):
        here = package(module)
        others = tuple(other for rooms, closed in WORLDS for other in closed
                       if any(begins(module, room) for room in rooms))
        for name in sorted(imported(module) & MODULES.keys()):
            there = package(name)
            if here != there and FLOOR[there] >= FLOOR[here]:
                wrong.append(f"{module} ({here}, floor {FLOOR[here]}) imports {name} (floor"
                             f" {FLOOR[there]})")
            wrong += [f"{module} imports {name}: of {other} it knows nothing" for other in others
                      if begins(name, other)]
    assert not wrong, "\n".join(wrong)


def test_a_library_stays_in_its_place() -> None:
    wrong = [f"{library} in {module}" for library, owners in ONLY.items() for module in MODULES
             if any(begins(name, library) for name in imported(module))
             and not any(begins(module, owner) for owner in owners)]
    assert not wrong, "\n".join(wrong)


def test_a_reader_can_hold_the_floors() -> None:
    assert len(FLOORS) <= 14


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
    stages = {"scenario", "trial", "verify", "record", "analysis", "findings", "study"}
    assert KINDS == sorted(registry.KINDS)
    for kind in KINDS:
        files = {path.stem for path in (PROJECT / "lab" / kind).rglob("*.py")}
        assert stages <= files, f"lab/{kind} lacks {', '.join(sorted(stages - files))}"


def test_files_and_functions_fit_a_reader() -> None:
    wrong: list[str] = []
    for path in FILES:
        lines = text(path).splitlines()
        if len(lines) > 500:
            wrong.append(f"{path} has {len(lines)} lines: which two subjects has it?")
        wrong += [f"{path}, line {number} has more than 100 characters"
                  for number, line in enumerate(lines, start=1) if len(line) > 100]
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if node.returns is None:
                    wrong.append(f"{path}: {node.name} does not say what it returns")
    assert not wrong, "\n".join(wrong)


def test_no_branch_on_the_kind_outside_the_registry() -> None:
    for module, path in MODULES.items():
        for node in nodes(path):
            if isinstance(node, ast.Compare) and module != "lab.registry":
                words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                assert not words & {"fetches", "trace"} or "engines" in module, (
                    f"{path}, line {node.lineno} asks for the kind of study")


def test_no_branch_on_the_kind_of_a_figure() -> None:
    """What a kind does stands in its line of lab.fetches.figures.kinds.FIGURES."""
    for module, path in MODULES.items():
        for node in nodes(path) if begins(module, "lab.fetches") else ():
            if isinstance(node, ast.Compare):
                names = {ast.unparse(each) for each in (node.left, *node.comparators)}
                assert not any(name.endswith("figure.kind") for name in names), (
                    f"{path}, line {node.lineno} asks for the kind of a figure")


def test_programs_within_tests_import_modules_that_there_are() -> None:
    """Programs that live tests run in guests stand in strings, which no checker reads."""
    for path in (PROJECT / "tests/live").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and "\nfrom " in str(node.value):
                try:
                    program = ast.parse(str(node.value))
                except SyntaxError:
                    continue
                wanted = {each.module for each in ast.walk(program)
                          if isinstance(each, ast.ImportFrom) and each.module
                          and each.module.partition(".")[0] in ("engines", "hosts", "net", "probe")}
                assert wanted <= MODULES.keys(), f"{path}: {wanted - MODULES.keys()}"


# Not `net`: sysctls and Mininet's objects are called so as well.
NAMED = re.compile(rf"\b(?:{'|'.join(room for room in ROOMS if room != 'net')})(?:\.[A-Za-z_]\w*)+")


def test_what_a_comment_or_docstring_refers_to_is_there() -> None:
    wrong: list[str] = []
    for path in FILES:
        if all(map(is_there, NAMED.findall(text(path)))):
            continue  # most files: no need to tell words from code
        with (PROJECT / path).open("rb") as file:
            told = [token.string for token in tokenize.tokenize(file.readline)
                    if token.type == tokenize.COMMENT
                    or token.type == tokenize.STRING and token.string.startswith('"""')]
        wrong += [f"{path}: {name}" for name in NAMED.findall("\n".join(told))
                  if not is_there(name)]
    assert not wrong, "\n".join(wrong)


@cache
def is_there(name: str) -> bool:
    """Whether a dotted name is a package or a module, or what one defines, and more behind it."""
    place, _, last = name.rpartition(".")
    if name in MODULES or any(other.startswith(f"{name}.") for other in MODULES):
        return True
    return last in defined(MODULES[place]) if place in MODULES else bool(place) and is_there(place)


@cache
def defined(path: Path) -> set[str]:
    """The names that a file defines at its top level."""
    names: set[str] = set()
    for node in tree(path).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else (
            [node.target] if isinstance(node, ast.AnnAssign) else [])
        names |= {each.id for target in targets for each in ast.walk(target)
                  if isinstance(each, ast.Name)}
    return names


def test_a_name_that_is_not_there_is_seen() -> None:
    assert is_there("lab.fetches.verify.verify.judge_fetch") and is_there("lab.tcp.path.bytes_per_s")
    assert not is_there("lab.fetches.verify.verify.evidence.Evidence")
    assert not is_there("benchmarks.paper")
