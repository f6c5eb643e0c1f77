"""Columns of trials.csv that hold tables: the hosts of a load, the schedule of a trace.

Such a field of a trial is a tuple of frozen dataclasses. Its column is one text of JSON, with the
keys that scenario files have for the field (runs.schema). The same readers check the text, so a
stranger's file has no other values than a scenario may have.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin

from firstflight.base import untrusted
from firstflight.base.errors import UsageError
from firstflight.runs import schema

MOST_BYTES = 4 << 20  # of a column: a schedule of 50,000 writes takes half of this
MOST_ITEMS = 50_000  # of a field
MOST_DEPTH = 4  # of lists and tables in each other


def item_class(hint: object) -> type[object] | None:
    """The class of a field's items; None for a field whose column is no JSON.

    hint: the field's type, such as tuple[Write, ...].
    """
    if get_origin(hint) is not tuple:
        return None
    kind, *rest = get_args(hint)
    is_list_of_tables = rest == [...] and isinstance(kind, type) and is_dataclass(kind)
    return kind if is_list_of_tables else None


def to_json(value: object) -> str:
    """The column's text of a field that has an item_class: a list with a table for each item."""
    return json.dumps(value, default=schema.values_of)


def reader(kind: type[object], name: str) -> Callable[[str], tuple[object, ...]]:
    """A reader of a column's texts: the reverse of to_json.

    kind: the field's item_class. name: of the column. The reader raises ValueError, with what is
    wrong, for a text that is too long, too deep, no JSON, or has a value that no scenario may have.
    """
    listed = untrusted.items(untrusted.anything(MOST_DEPTH), MOST_ITEMS)

    def read(text: str) -> tuple[object, ...]:
        try:
            tables = untrusted.read(text.encode(), listed, MOST_BYTES)
        except ValueError as error:
            raise ValueError(f"{name}: {str(error).strip()}") from None
        return tuple(_item(kind, table, f"{name} {number}")
                     for number, table in enumerate(tables, start=1))
    return read


def _item(kind: type[object], table: Any, where: str) -> object:
    """An item of a list. Raises ValueError."""
    if not isinstance(table, dict):
        raise ValueError(f"{where} is not a table")
    try:
        return schema.read(kind, table, where)
    except UsageError as error:
        raise ValueError(untrusted.quoted(str(error))) from None
