"""Which lines use a name that a line outside of functions binds: by the name alone.

What runs while modules are imported is run before any test. A test can notice its change
where it executes a line that names what was bound there, or what was bound from
it; so names are followed through other lines outside of functions.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from benchmarks.faults.mutant_changes import FUNCTIONS, bound, head


class Users:
    """lines: name → the lines of functions that use it, with their files.

    outside: name → what statements outside of functions that use it bind. tests: file
    of tests → its words. importing: file → the files of tests that import it.
    """

    def __init__(self, project: Path, sources: Iterable[str], tests: Iterable[str]) -> None:
        self.lines: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.outside: dict[str, set[str]] = defaultdict(set)
        self.tests: dict[str, set[str]] = {}
        self.importing: dict[str, set[str]] = defaultdict(set)
        for path in tests:
            text = (project / path).read_text(encoding="utf-8")
            self.tests[path] = set(re.findall(r"\w+", text))
            for module in _imported(ast.parse(text)):
                self.importing[f"{module.replace('.', '/')}.py"].add(path)
        for path in sources:
            tree = ast.parse((project / path).read_text(encoding="utf-8"))
            self.visit(path, tree, set())

    def visit(self, path: str, owner: ast.AST, within: set[str]) -> None:
        """Note the statements outside of functions of a module or class, and go into functions."""
        for statement in ast.iter_child_nodes(owner):
            if isinstance(statement, FUNCTIONS):
                for node in (each for part in statement.body for each in ast.walk(part)):
                    if name := _named(node):
                        self.lines[name].add((path, node.lineno))
            elif isinstance(statement, (ast.ClassDef, ast.If, ast.Try)):
                self.visit(path, statement, bound(statement))
            if isinstance(statement, ast.stmt):
                first, last = head(statement)
                used = {name for node in ast.walk(statement)
                        if first <= getattr(node, "lineno", 0) <= last
                        and (name := _named(node))}
                for name in used:
                    self.outside[name] |= bound(statement) | within

    def of(self, names: Iterable[str]) -> tuple[set[tuple[str, int]], set[str]]:
        """The lines that use one of the names or what comes from it, and such files of tests."""
        reached, more = set[str](), set(names)
        while more:
            reached |= more
            more = {made for name in more for made in self.outside.get(name, ())} - reached
        return ({line for name in reached for line in self.lines.get(name, ())},
                {path for path, words in self.tests.items() if not words.isdisjoint(names)})


def _imported(tree: ast.Module) -> set[str]:
    """The modules that are imported, and every name from a module, which may be one."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def _named(node: ast.AST) -> str:
    return (node.id if isinstance(node, ast.Name) else
            node.attr if isinstance(node, ast.Attribute) else "")
