"""Reads TOML tables as dataclasses, whose fields are the keys, with types, ranges and defaults.

The annotation of a field and its `key(...)` say what a table may have:

    str, bool                  a string, true or false
    Literal["a", "b"]          one of these words
    int, float                 a number; its range is the quantity of the field's name
    tuple[int, ...]            a list of such values, none twice
    T | None                   a T, or no such key

Every mistake is reported in one line that names file, table and key. A class may have a method
`check(where)` for rules about several fields; it raises UsageError. In all functions `where` is the
place of a table or a value, as messages name it.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from firstflight.base.errors import UsageError
from firstflight.base.words import nearest_or_known
from firstflight.findings.quantities import QUANTITIES

T = TypeVar("T")
Reader = Callable[[object, str], Any]  # (value, where) → checked value; raises UsageError
_KEY = "firstflight.runs.schema"
# Old names of keys, and their names in all workloads now.
RENAMED = {"queue_packets": "queue", "repeat_lossless": "repeat", "paced": "qdisc",
           "baseline_initcwnd": "windows", "experiment_initcwnd": "windows", "series": "down",
           "quantity": "metric", "first": "compares", "second": "compares", "larger": "compares",
           "most": "compares", "equal": "compares", "relation": "expects", "at_most": "expects",
           "more_where": "expects", "highest_percent": "published", "at_s": "where"}
_NEW_VALUES = {"paced": ': paced = true is qdisc = "fq"'}  # of a key whose values changed as well


def key(default: object = MISSING, *, quantity: str = "", quantity_in: str = "",
        reader: Reader | None = None, name: str = "", absent: bool = False) -> Any:
    """A field that its annotation alone does not describe.

    default: the value where a table lacks the key; without a default the key is required.
    quantity: the quantity whose range a number has, if it is not named like the field.
    quantity_in: an earlier field, whose value is the name of that quantity.
    reader: reads the value, in place of the annotation.
    name: the key, if it is not named like the field.
    absent: no table has the key; the caller of read() gives the value.
    """
    return field(default=default, metadata={_KEY: {
        "quantity": quantity, "quantity_in": quantity_in, "reader": reader, "name": name,
        "absent": absent}})


@dataclass(frozen=True)
class Item:
    """One key of a field that holds several keys."""

    name: str  # of the value in the field
    key: str  # in a table
    reader: Reader


def several(*items: Item) -> Any:
    """A field that holds the values of several keys, by name; a table may lack any of them."""
    return field(default_factory=dict, metadata={_KEY: {"items": items}})


def items_of(attribute: Field[object]) -> tuple[Item, ...]:
    """The keys of a field that several() made; () for another field."""
    return _option(attribute, "items") or ()


def keys_of(kind: type[object]) -> tuple[str, ...]:
    """The keys that a table of this class may have, in the order of its fields."""
    keys: list[str] = []
    for attribute in fields(kind):
        if not _option(attribute, "absent"):
            keys += [item.key for item in items_of(attribute)] or [_name(attribute)]
    return tuple(keys)


def hints_of(kind: type[Any]) -> dict[str, Any]:
    """The types of a dataclass's fields by their names."""
    of_any: Any = kind  # mypy takes no class for hashable
    return _evaluated_hints(of_any)


@cache
def _evaluated_hints(kind: Any) -> dict[str, Any]:
    """The types of a class's fields. Python evaluates their text each time it is asked."""
    # Python 3.10 refuses KW_ONLY, which is no type, and a ClassVar without one.
    return get_type_hints(kind, localns={"KW_ONLY": object})


def read(kind: type[T], table: Mapping[str, object], where: str, **given: object) -> T:
    """Read a table as an instance of the dataclass.

    given: the values of fields that are not in the table. Raises UsageError that begins with
    `where`.
    """
    known_keys(table, keys_of(kind), where)
    hints = hints_of(kind)
    values = dict(given)
    for attribute in fields(kind):
        if attribute.name in values or _option(attribute, "absent"):
            continue
        name = _name(attribute)
        if items := items_of(attribute):
            values[attribute.name] = {
                item.name: item.reader(table[item.key], f"{where}: {item.key}")
                for item in items if item.key in table}
        elif name in table:
            named = values.get(_option(attribute, "quantity_in") or "")
            quantity = str(named or _option(attribute, "quantity") or name)
            reader = _option(attribute, "reader") or _of_hint(hints[attribute.name], quantity)
            values[attribute.name] = reader(table[name], f"{where}: {name}")
        elif attribute.default is MISSING and attribute.default_factory is MISSING:
            raise UsageError(f"{where}: {name} is missing")
    instance = kind(**values)
    if hasattr(instance, "check"):
        instance.check(where)
    return instance


def values_of(instance: Any) -> dict[str, object]:
    """The table of an instance, without defaults: the reverse of read()."""
    values: dict[str, object] = {}
    for attribute in fields(instance):
        value = getattr(instance, attribute.name)
        if items := items_of(attribute):
            values |= {item.key: value[item.name] for item in items if item.name in value}
        elif not _option(attribute, "absent") and value != attribute.default:
            values[_name(attribute)] = value
    return values


def read_tables(kind: type[T], raw: Mapping[str, object], name: str, where: str, *,
                called: str = "name", defaults: Mapping[str, object] | None = None,
                **given: object) -> tuple[T, ...]:
    """Read the [[name]] tables of a document.

    called: the key that distinguishes the tables. defaults: values for keys that a table lacks.
    given: as for read(). Raises UsageError.
    """
    return tuple(read(kind, {**(defaults or {}), **table}, place, **given)
                 for table, place in tables(raw, name, where, called=called,
                                            known=keys_of(kind)))


def tables(raw: Mapping[str, object], name: str, where: str, *, called: str = "name",
           known: Sequence[str]) -> list[tuple[dict[str, object], str]]:
    """The [[name]] tables of a document, each with its place as messages name it.

    called: the key that distinguishes the tables. known: the keys that a table may have. Raises
    UsageError.
    """
    named: list[tuple[dict[str, object], str]] = []
    words: set[object] = set()
    for number, table in enumerate(as_tables(raw, name, where), start=1):
        word = table.get(called)
        place = f"{where}: [[{name}]] {number}"
        if isinstance(word, str):
            place = place_of(where, name, word)
        known_keys(table, known, place)
        if (word := word if isinstance(word, str) else repr(word)) in words:
            raise UsageError(f"{place}: there are two of them")
        words.add(word)
        named.append((table, place))
    return named


def place_of(where: str, name: str, word: str) -> str:
    """How messages name a [[name]] table, by the word that distinguishes it."""
    return f'{where}: [[{name}]] "{word}"'


def as_tables(raw: Mapping[str, object], name: str, where: str) -> list[dict[str, Any]]:
    """The [[name]] tables of a document, unchecked; [] where it has none. Raises UsageError."""
    tables_read = raw.get(name, [])
    if not isinstance(tables_read, list) or not all(
            isinstance(inner, dict) for inner in tables_read):
        raise UsageError(f"{where}: {name} has to be tables, [[{name}]]")
    return tables_read


def table(raw: Mapping[str, object], name: str, where: str) -> dict[str, Any]:
    """The [name] table of a document; {} where it has none. Raises UsageError."""
    inner = raw.get(name, {})
    if not isinstance(inner, dict):
        raise UsageError(f"{where}: {name} has to be a table, [{name}]")
    return inner


def known_keys(table: Mapping[str, object], known: Sequence[str], where: str) -> None:
    """Raises UsageError where a table has a key that is not known."""
    for name in table:
        if name not in known:
            if (new := RENAMED.get(name)) in known:
                raise UsageError(f"{where}: {name!r} is called {new!r} now"
                                 f"{_NEW_VALUES.get(name, '')}")
            raise UsageError(f"{where}: unknown key {name!r}{nearest_or_known(name, known)}")


# Readers ---------------------------------------------------------------------------

def text(value: object, where: str) -> str:
    """Read a string."""
    if not isinstance(value, str):
        raise UsageError(f"{where} has to be a string, it is {value!r}")
    return value


def flag(value: object, where: str) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise UsageError(f"{where} has to be true or false, it is {value!r}")
    return value


def file_name(value: object, where: str) -> str:
    """Read a name that becomes part of file names."""
    if not re.fullmatch(r"[a-z0-9_]{1,60}", text(value, where)):
        raise UsageError(f"{where} becomes a file name: a-z, 0-9 and _ only, at most 60 of them")
    return str(value)


def number(quantity: str) -> Reader:
    """A reader of a quantity's values, in its range; the values of some quantities are words."""
    return QUANTITIES[quantity].check


def word(known: Sequence[str]) -> Reader:
    """A reader of a word that has to be one of these."""
    return lambda value, where: one_of(value, known, where)


def one_of(value: object, known: Sequence[str], where: str) -> str:
    """Read a word that has to be one of `known`."""
    if value not in known:
        raise UsageError(f"{where}: unknown {value!r}{nearest_or_known(str(value), known)}")
    return str(value)


def none_for(name: str, reader: Reader) -> Reader:
    """A reader of a value, or of the word `name`, which means None."""
    return lambda value, where: None if value == name else reader(value, where)


def values(read_item: Reader, what: str = "numbers", empty: bool = False,
           distinct: bool = True) -> Reader:
    """A reader of a list of values.

    what: the values' name in messages. empty: whether the list may be empty. distinct: whether no
    value may occur twice.
    """
    def read_list(value: object, where: str) -> tuple[object, ...]:
        if not isinstance(value, list) or not (value or empty):
            raise UsageError(f"{where}: has to be a list of {what}, it is {value!r}")
        checked = tuple(read_item(item, where) for item in value)
        if distinct and len(set(checked)) != len(checked):
            raise UsageError(f"{where}: has a value twice")
        return checked
    return read_list


def listed(kind: type[object], example: str) -> Reader:
    """A reader of a list of tables, as instances of a dataclass. example: a table, for messages."""
    def read_list(value: object, where: str) -> tuple[object, ...]:
        if not isinstance(value, list) or not value or not all(
                isinstance(item, dict) for item in value):
            raise UsageError(f"{where} has to be a list of tables, such as [{example}]")
        return tuple(read(kind, item, f"{where} {number}")
                     for number, item in enumerate(value, start=1))
    return read_list


def one_or_more(read_item: Reader, what: str = "numbers", empty: bool = False) -> Reader:
    """A reader of a list of values, or of a single value without brackets."""
    read_list = values(read_item, what, empty)
    return lambda value, where: read_list(value if isinstance(value, list) else [value], where)


def _of_hint(hint: object, quantity: str) -> Reader:
    """A reader for an annotation. quantity: whose range a number has."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _of_hint(arguments[0], quantity)  # T | None
    if origin is Literal:
        return word(arguments)
    if origin is tuple:
        inner = arguments[0]
        return values(_of_hint(inner, quantity), "strings" if inner is str else "numbers")
    readers: dict[object, Reader] = {str: text, bool: flag}
    return readers.get(hint) or number(quantity)


def _name(attribute: Field[object]) -> str:
    """The key of a field in a table."""
    return str(_option(attribute, "name") or attribute.name)


def _option(attribute: Field[object], option: str) -> Any:
    """A parameter that key() or several() had for a field; None for a field without."""
    return attribute.metadata.get(_KEY, {}).get(option)
