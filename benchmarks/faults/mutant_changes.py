"""What can be changed in a source file: one operator, constant, return, condition or statement.

Left out, since no test of behaviour can or should see them:

    docstrings, annotations, `__all__`, `...`, `if TYPE_CHECKING`, `assert` (it only states what
    already holds), `frozen=` of dataclasses and the names of types (mypy's business);
    the words of exceptions and of `--help`: that there is a refusal is tested, and what it
    names; not each of its words;
    the removal of what binds a plain name: whoever reads the name would fail at once.

A number becomes one more, beyond 1000 twice as much: one more of 1,000,000 ns a millisecond is
less than the 0.1 % that a verdict allows.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And, ast.USub: ast.UAdd, ast.Invert: ast.UAdd}
FOR_READERS = {"help", "description", "epilog", "metavar", "usage", "frozen", "bound"}
OF_TYPES = {"TypeVar", "NewType", "cast"}
DOUBLED_BEYOND = 1000
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Change:
    """One change. lines: first and last of its statement (of its head, where it has a body).

    words: before → after. function: name and line of the outermost function whose body it
    is in, as its code object has them; None outside of functions. names: what the statement
    binds, with its class; in a function that one's. apply: does it to the tree.
    """

    lines: tuple[int, int]
    line: int
    words: str
    function: tuple[str, int] | None
    names: frozenset[str]
    apply: Callable[[], None]


def changes(tree: ast.Module) -> Iterator[Change]:
    """Every change of a file, always in the same order."""
    return _Walk(tree).of_body(tree, "body", None)


def changed(source: str, number: int) -> ast.Module:
    """A file's tree with its change of that number."""
    tree = ast.parse(source)
    next(islice(changes(tree), number, None)).apply()
    return ast.fix_missing_locations(tree)


class _Walk:
    def __init__(self, tree: ast.Module) -> None:
        self.docstrings = {
            id(node.body[0]) for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS))
            and ast.get_docstring(node, clean=False) is not None}
        self.lines = (1, 1)
        self.function: tuple[str, int] | None = None
        self.names: frozenset[str] = frozenset()

    def of_body(self, owner: ast.AST, field: str, function: tuple[str, int] | None
                ) -> Iterator[Change]:
        """Changes of the statements in a list of a node."""
        body = getattr(owner, field)
        for place, statement in enumerate(body):
            if id(statement) in self.docstrings or _is_left_out(statement):
                continue
            self.lines, self.function = head(statement), function
            self.names = frozenset({function[0]} if function else
                                   bound(statement) | bound(owner))
            yield from self.of_statement(body, place)
            yield from self.of(statement)
            for inner in ("body", "orelse", "finalbody"):
                if isinstance(getattr(statement, inner, None), list):
                    yield from self.of_body(statement, inner, _within(statement, function))
            for handler in [*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]:
                yield from self.of_body(handler, "body", function)

    def change(self, node: ast.AST, words: str, apply: Callable[[], None]) -> Change:
        return Change(self.lines, getattr(node, "lineno", self.lines[0]), words, self.function,
                      self.names, apply)

    def of_statement(self, body: list[ast.stmt], place: int) -> Iterator[Change]:
        """The statement left out, or what it returns."""
        node = body[place]
        if isinstance(node, ast.Return) and not _is_none(node.value):
            yield self.change(node, f"{_short(node)} → return None",
                              partial(setattr, node, "value", ast.Constant(None)))
        elif (isinstance(node, (ast.Expr, ast.AugAssign, ast.Raise, ast.Delete, ast.Continue,
                                ast.Break))
              or isinstance(node, ast.Return) and node.value is None
              or isinstance(node, ast.Assign) and not any(
                  isinstance(each, ast.Name) for target in node.targets
                  for each in ([target] if not isinstance(target, ast.Tuple) else target.elts))):
            yield self.change(node, f"without {_short(node)}",
                              partial(body.__setitem__, place, ast.Pass()))

    def of(self, node: ast.AST) -> Iterator[Change]:
        """Changes of an expression, or of what a statement has beside its body."""
        yield from self.of_node(node)
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "body", "orelse", "finalbody", "handlers",
                         "cases") and not isinstance(node, (ast.IfExp, ast.Lambda)):
                continue
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST) and not (_is_of_a_reader(node) and _is_words(each)):
                    yield from self.of(each)

    def of_node(self, node: ast.AST) -> Iterator[Change]:
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield self.change(node, f"if {_short(node.test)} → if not", partial(
                setattr, node, "test", ast.UnaryOp(ast.Not(), node.test)))
        elif isinstance(node, ast.comprehension):
            for place, test in enumerate(node.ifs):
                yield self.change(test, f"if {_short(test)} → always", partial(
                    node.ifs.__setitem__, place, ast.Constant(True)))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield self.change(node, f"{_short(node)} → without not", partial(
                setattr, node, "operand", ast.UnaryOp(ast.Not(), node.operand)))
        elif isinstance(node, ast.Compare):
            for place, operator in enumerate(node.ops):
                made: Any = OPERATORS[type(operator)]()
                yield self.change(node, f"{_short(node)}: {_name(operator)} → {_name(made)}",
                                  partial(node.ops.__setitem__, place, made))
        elif isinstance(node, (ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.AugAssign)):
            if type(node.op) in OPERATORS:
                made = OPERATORS[type(node.op)]()
                yield self.change(node, f"{_short(node)}: {_name(node.op)} → {_name(made)}",
                                  partial(setattr, node, "op", made))
        elif isinstance(node, ast.Constant):
            made = _other(node.value)
            if made is not None:
                yield self.change(node, f"{_short(node)} → {made!r}",
                                  partial(setattr, node, "value", made))


def _other(value: object) -> object:
    """Another constant of the same type; None: there is none."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value * 2 if abs(value) > DOUBLED_BEYOND else value + 1
    if isinstance(value, (str, bytes)):
        empty = value[:0]
        return empty if value else "other" if isinstance(value, str) else b"other"
    return None


def bound(node: ast.AST) -> set[str]:
    """The names that a statement binds."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return {node.name}
    targets = (node.targets if isinstance(node, ast.Assign) else
               [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else [])
    return {each.id for target in targets for each in ast.walk(target)
            if isinstance(each, ast.Name)}


def head(node: ast.stmt) -> tuple[int, int]:
    """The first and last line of a statement without its body."""
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) else node.end_lineno
    return first, max(node.lineno, last or 0)


def _within(node: ast.stmt, function: tuple[str, int] | None) -> tuple[str, int] | None:
    if function is None and isinstance(node, FUNCTIONS):
        return node.name, head(node)[0]
    return function


def _is_left_out(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return _short(node.targets[0]) in ("__all__", "__slots__")
    return (isinstance(node, ast.Assert)
            or isinstance(node, ast.If) and _short(node.test).endswith("TYPE_CHECKING")
            or isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _is_of_a_reader(node: ast.AST) -> bool:
    """Whether the words in a node's fields are a reader's, or a type's."""
    if isinstance(node, ast.keyword):
        return node.arg in FOR_READERS
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else _short(node.func)
        return called.endswith("Error") or called in OF_TYPES
    return False


def _is_words(node: ast.AST) -> bool:
    """Text, also put together of several, or a constant that stands for a type's property."""
    if isinstance(node, ast.BinOp):
        return _is_words(node.left) or _is_words(node.right)
    return (isinstance(node, ast.JoinedStr)
            or isinstance(node, ast.Constant) and isinstance(node.value, (str, bool)))


def _is_none(node: ast.expr | None) -> bool:
    return node is None or isinstance(node, ast.Constant) and node.value is None


def _name(operator: ast.AST) -> str:
    return type(operator).__name__


def _short(node: ast.AST) -> str:
    words = " ".join(ast.unparse(node).split())
    return words if len(words) <= 60 else words[:59] + "…"
