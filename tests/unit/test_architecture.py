"""The project's rooms import only rooms below them, and no file is too large."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

import pytest

from firstflight.study import registry
from firstflight.workloads.fetch.figures import kinds
from firstflight.workloads.fetch.scenario import figures as fetch_figures
from firstflight.workloads.load import findings as load_findings, scenario as load_scenario
from firstflight.workloads.page import findings as page_findings, scenario as page_scenario
from firstflight.workloads.trace import findings as trace_findings, scenario as trace_scenario
from tests.conftest import LONGEST
from tests.running import run_program

PROJECT = Path(__file__).resolve().parent.parent.parent
# The rooms, the lowest first. Each imports only rooms below it.
ROOMS = ("base", "net", "parameters", "findings", "wire", "model", "probe", "vtime", "testbed",
         "runs", "setting", "judge", "scenario", "figures", "workloads", "study", "paper",
         "commands", "benchmarks")
PACKAGE = "firstflight"  # has the rooms that are no folders at the top level
# The programs of the top level, and the room to which each belongs.
PROGRAMS = {"topo": "testbed", "client": "testbed", "server": "testbed", "plot": "commands",
            "experiment": "commands"}
FILES = sorted(path.relative_to(PROJECT) for path in (
    *PROJECT.glob("*.py"), *(path for folder in (PACKAGE, *ROOMS)
                             for path in (PROJECT / folder).rglob("*.py"))))


def begins(module: str, room: str) -> bool:
    """Whether a module is this room or package, or within it."""
    return module == room or module.startswith(f"{room}.")


def name_of(path: Path) -> str:
    """The name of a module without the package, as rooms are named: net.link."""
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    return name.removeprefix(f"{PACKAGE}.")


MODULES = {name_of(path): path for path in FILES if path != Path(PACKAGE) / "__init__.py"}
WORKLOADS = Path(PACKAGE) / "workloads"
KINDS = sorted(path.name for path in (PROJECT / WORKLOADS).iterdir() if path.is_dir()
               and any(path.rglob("trial.py")))
# Pairs besides the rooms: modules of the first part must not import those of the second. Rooms that
# only look at data import nothing that measures. Programs on hosts import only the standard
# library, net and each other.
WORLDS = (
    (("findings", "wire", "model", "runs.results"),
     ("testbed", "vtime", "topo", "server", "client")),
    (("testbed.hosts", "client", "server"),
     ("base.files", "base.main", "findings", "vtime")),
    (("findings.drawing",), ("findings.render",)), (("findings.render",), ("findings.drawing",)),
    (("figures", "workloads", "study", "probe"), ("findings.drawing",)),
    *(((f"workloads.{kind}",), tuple(f"workloads.{other}" for other in KINDS if other != kind))
      for kind in KINDS),
)
# Libraries that only these modules may import.
ONLY = {"matplotlib": ("findings.drawing",), "mininet": ("testbed.bench", "testbed.network"),
        "distributed": ("runs.cluster",), "jinja2": ("findings.render",),
        "pycurl": ("testbed.hosts.http_client", "testbed.hosts.transfers"),
        # mypy does not know the types that argparse reads, so flags.parse makes a typed Request.
        "argparse": ("base.parser", "base.argument_types", "commands.flags", "commands.from_flags",
                     "commands.together", "testbed.hosts", "plot", "topo",
                     "paper", "benchmarks"),
        "dpkt": ("study.users", "benchmarks")}  # too slow for every trial's packets


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
    """The full names of the modules that a module imports.

    at_top: only those that it imports when it is itself imported.
    """
    path = MODULES[module]
    names: set[str] = set()
    top = set(map(id, tree(path).body))
    for node in nodes(path):
        if at_top and id(node) not in top:
            continue
        if isinstance(node, ast.Import):
            names.update(alias.name.removeprefix(f"{PACKAGE}.") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            place = "" if node.module == PACKAGE else node.module.removeprefix(f"{PACKAGE}.") + "."
            names.update(f"{place}{alias.name}" if f"{place}{alias.name}" in MODULES
                         else place.removesuffix(".") for alias in node.names)
    return frozenset(names)


def room(module: str) -> str:
    """The room of a module. Raises KeyError for a program without one."""
    first = module.partition(".")[0]
    return first if first in ROOMS else PROGRAMS[first]


def test_a_room_imports_only_rooms_below_it() -> None:
    wrong: list[str] = []
    for module in sorted(MODULES):
        forbidden: list[str] = []
        for importers, closed in WORLDS:
            if any(begins(module, importer) for importer in importers):
                forbidden += closed

        for name in sorted(imported(module) & MODULES.keys()):
            if ROOMS.index(room(name)) > ROOMS.index(room(module)):
                wrong.append(f"{module} imports {name}: {room(name)} stands above {room(module)}")
            wrong += [f"{module} imports {name}: it must not import {other}"
                      for other in forbidden if begins(name, other)]
    assert not wrong, "\n".join(wrong)


def test_a_room_imports_exactly_the_rooms_that_contributing_names() -> None:
    """CONTRIBUTING lists the rooms in their order, each with the rooms that it imports.

    Every room may import base, which is not named.
    """
    lines = re.findall(r"^    (\w+)  .*  (\S[\w ]*)$", text(Path("CONTRIBUTING.md")), re.MULTILINE)
    named = {name: {*rooms.split()} for name, rooms in lines if name in ROOMS}
    assert [*named] == [name for name in reversed(ROOMS) if name not in ("benchmarks", "base")]
    used: dict[str, set[str]] = {name: set() for name in ROOMS}
    for module in MODULES:
        used[room(module)] |= {room(name) for name in imported(module) & MODULES.keys()}
    for name, rooms in named.items():
        if rooms != {"all", "rooms"}:
            assert used[name] - {name, "base"} == rooms - {"base"}, name


def test_vtime_can_be_imported_without_the_rooms_above_it() -> None:
    """vtime is a product of its own."""
    above = [*(name if (PROJECT / name).is_dir() else f"{PACKAGE}.{name}" for name in
               (*ROOMS[ROOMS.index("vtime") + 1:], "model", "probe")), *PROGRAMS]
    program = f"""
import importlib, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if any(name == each or name.startswith(each + ".") for each in {above}):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
for name in sys.argv[1:]:
    importlib.import_module(name)
"""
    modules = [name for name in MODULES if begins(name, "vtime")]
    done = run_program(["/usr/bin/python3", "-c", program, *modules])
    assert done.returncode == 0, done.stderr
    failing = run_program(["/usr/bin/python3", "-c", program, "firstflight.study.registry"])
    assert "ModuleNotFoundError" in failing.stderr


def test_a_library_is_imported_only_by_its_owners() -> None:
    wrong = [f"{library} in {module}" for library, owners in ONLY.items() for module in MODULES
             if any(begins(name, library) for name in imported(module))
             and not any(begins(module, owner) for owner in owners)]
    assert not wrong, "\n".join(wrong)


# Modules that a dry run must not load: it neither boots, judges, explains, renders nor draws.
NOT_PLANNED = ("firstflight.wire", "firstflight.model", "firstflight.findings.findings",
               "firstflight.findings.charts", "firstflight.findings.render",
               "firstflight.findings.drawing", "firstflight.figures.compare",
               "firstflight.study.compared_runs", "firstflight.workloads.fetch.figures",
               "firstflight.workloads.fetch.verify", "firstflight.workloads.fetch.record.evidence",
               "firstflight.workloads.load", "firstflight.workloads.page",
               "firstflight.workloads.trace", "firstflight.runs.measuring",
               "firstflight.runs.reporting", "firstflight.testbed.guests",
               "firstflight.testbed.engine", "firstflight.testbed.worker", "vtime.uml",
               "vtime.confine", "vtime.session", "numpy", "scipy", "matplotlib", "jinja2", "dpkt",
               "asyncio", "multiprocessing", "ssl")


@pytest.mark.parametrize("words", [
    ["--rtt", "100", "--dry-run"], ["zhao2019", "--dry-run"], ["--help"], ["--version"],
    ["--list"]], ids=" ".join)
def test_a_dry_run_or_help_loads_nothing_that_measures_judges_or_draws(words: list[str]) -> None:
    program = f"""
import sys, experiment
status = 0
try:
    status = experiment.main({words})
except SystemExit as error:
    status = error.code
loaded = [name for name in {NOT_PLANNED} if name in sys.modules]
sys.exit(f"{{loaded}}" if loaded else status)
"""
    done = run_program(["/usr/bin/python3", "-c", program])
    assert done.returncode == 0, done.stderr


def test_no_file_imports_itself_through_other_files() -> None:
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


# Folders that import each other, each with its reason.
MUTUAL = {
    # runs.schema reads columns of JSON as well as scenario files.
    ("firstflight/runs", "firstflight/runs/results"),
    # vtime.command has the stages of vtime.session, and imports the parts of vtime.
    ("vtime", "vtime/command")}


def mutual(edges: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """The pairs of folders that import each other, from (importer, imported)."""
    known = {*edges}
    return {(one, other) for one, other in known if one < other and (other, one) in known}


def test_no_two_folders_import_each_other() -> None:
    """Imports within functions count. Imports of a package, which is its __init__, do not."""
    edges = {(str(path.parent), str(MODULES[name].parent)) for module, path in MODULES.items()
             for name in imported(module) & MODULES.keys() if MODULES[name].stem != "__init__"}
    assert mutual(edges) == MUTUAL


def test_two_folders_that_import_each_other_are_found() -> None:
    assert mutual([("a", "a/b"), ("a/b", "a"), ("a", "c"), ("a", "a")]) == {("a", "a/b")}


def test_every_workload_has_scenario_trial_record_and_verify() -> None:
    stages = {"scenario", "trial", "verify", "record"}
    assert KINDS == sorted("fetch" if kind == "fetches" else kind for kind in registry.KINDS)
    for kind in KINDS:
        files = {path.stem for path in (PROJECT / WORKLOADS / kind).rglob("*.py")}
        assert stages <= files, f"{WORKLOADS}/{kind} lacks {', '.join(sorted(stages - files))}"


def test_no_file_has_more_than_500_lines_or_a_line_of_more_than_100_characters() -> None:
    wrong: list[str] = []
    for path in FILES:
        lines = text(path).splitlines()
        if len(lines) > 500:
            wrong.append(f"{path} has {len(lines)} lines: which two subjects has it?")
        wrong += [f"{path}, line {number} has more than 100 characters"
                  for number, line in enumerate(lines, start=1) if len(line) > 100]
    assert not wrong, "\n".join(wrong)


def asks_for_kind(node: ast.Compare) -> bool:
    """Whether a comparison asks for the kind of study.

    "load" is a quantity, too, so the comparison has to name a `kind` as well.
    """
    words = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
    names = {name for part in ast.walk(node) for name in (
        getattr(part, "attr", ""), getattr(part, "id", ""))}
    is_kind = "kind" in names | words
    return bool(words & {"fetches", "trace"} or is_kind and words & {*KINDS, "fetch"})


def test_no_branch_on_the_kind_outside_the_registry() -> None:
    for module, path in MODULES.items():
        for node in nodes(path):
            if isinstance(node, ast.Compare) and module != "study.registry":
                assert not asks_for_kind(node) or room(module) in ("vtime", "testbed"), (
                    f"{path}, line {node.lineno} asks for the kind of study")


@pytest.mark.parametrize(("line", "asks"), [
    ('kind == "load"', True), ('job["kind"] == "fetch"', True), ('study.kind != "load"', True),
    ('"trace" in name', True), ('axis == "load"', False), ('figure.kind == "gain"', False)])
def test_a_branch_on_the_kind_is_found(line: str, asks: bool) -> None:
    (compared,) = [node for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Compare)]
    assert asks_for_kind(compared) == asks


def test_no_branch_on_the_kind_of_a_figure() -> None:
    """FIGURES and MAKERS have a line for each kind of figure instead."""
    for module, path in MODULES.items():
        for node in nodes(path) if begins(module, "workloads") else ():
            if isinstance(node, ast.Compare):
                names = {ast.unparse(operand) for operand in (node.left, *node.comparators)}
                assert not any(name.endswith("figure.kind") for name in names), (
                    f"{path}, line {node.lineno} asks for the kind of a figure")


@pytest.mark.parametrize(("figures", "makers"), [
    (fetch_figures.FIGURES, kinds.MAKERS), (load_scenario.FIGURES, load_findings.MAKERS),
    (page_scenario.FIGURES, page_findings.MAKERS), (trace_scenario.FIGURES, trace_findings.MAKERS)])
def test_each_kind_of_figure_can_be_made(figures: Collection[str], makers: Collection[str]) -> None:
    assert {*figures} == {*makers}


def test_programs_in_strings_of_live_tests_import_existing_modules() -> None:
    """Programs that live tests run in guests stand in strings, which no checker reads."""
    for path in (PROJECT / "tests/live").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and "\nfrom " in str(node.value):
                try:
                    program = ast.parse(str(node.value))
                except SyntaxError:
                    continue
                wanted = {part.module for part in ast.walk(program)
                          if isinstance(part, ast.ImportFrom) and part.module
                          and part.module.partition(".")[0] in (PACKAGE, *ROOMS)}
                wanted = {name.removeprefix(f"{PACKAGE}.") for name in wanted}
                assert wanted <= MODULES.keys(), f"{path}: {wanted - MODULES.keys()}"


VARIABLES = {"study.whole", "study.py"}  # words that look like a module's name
# Dotted names that begin with a room. Without net: names of sysctls and Mininet's objects do, too.
NAMED = re.compile(rf"\b(?:{'|'.join(room for room in ROOMS if room != 'net')})(?:\.[A-Za-z_]\w*)+")


def test_modules_and_names_in_comments_and_docstrings_exist() -> None:
    wrong: list[str] = []
    for path in FILES:
        if all(map(is_there, NAMED.findall(text(path)))):
            continue  # most files, which need not be split into tokens
        with (PROJECT / path).open("rb") as file:
            texts = [token.string for token in tokenize.tokenize(file.readline)
                     if token.type == tokenize.COMMENT
                     or token.type == tokenize.STRING and token.string.startswith('"""')]
        wrong += [f"{path}: {name}" for name in NAMED.findall("\n".join(texts))
                  if not is_there(name) and name not in VARIABLES]
    assert not wrong, "\n".join(wrong)


@cache
def is_there(name: str) -> bool:
    """Whether a dotted name is a package, a module, or begins with a name that a module defines."""
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
        names |= {part.id for target in targets for part in ast.walk(target)
                  if isinstance(part, ast.Name)}
    return names


def test_a_name_that_does_not_exist_is_found() -> None:
    assert is_there("workloads.fetch.verify.verify.judge_fetch")
    assert is_there("net.path.bytes_per_s")
    assert not is_there("workloads.fetch.record.record.evidence.Evidence")
    assert not is_there("benchmarks.paper")


def test_the_tests_that_conftest_names_as_the_longest_exist() -> None:
    for name in LONGEST:
        file, _, test = name.partition("::")
        assert f"def {test}" in (PROJECT / file).read_text(encoding="utf-8"), name
