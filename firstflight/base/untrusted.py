"""Reads JSON that a guest wrote, or that lies in a stranger's folder.

`read` returns values that a schema allows, by type, size, depth and keys; for anything else it
raises ValueError. So the code that uses the values meets only the schema's types. A schema is a
function of a value and of the words that name the value in messages. `number` and `yes_or_no` are
schemas, and the other functions make schemas.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

T = TypeVar("T")
Schema = Callable[[object, str], T]  # (value, where) → the value; raises ValueError

MOST_WHOLE = 1 << 63  # the kernel counts in 64 bits
MOST_DEPTH = 8  # of lists and tables within each other
QUOTED_CHARACTERS = 300  # of a stranger's text in a message
_MOST_DIGITS = 20  # of a whole number


def read(line: bytes, schema: Schema[T], most_bytes: int) -> T:
    """The value of a JSON text. Raises ValueError with what is wrong."""
    if len(line) > most_bytes:
        raise ValueError(f"it has {len(line)} bytes, and may have {most_bytes}")
    try:
        return schema(_DECODER.decode(line.decode()), "")
    except RecursionError:
        raise ValueError("its lists and tables are nested too deep") from None


def quoted(content: str | bytes, most: int = QUOTED_CHARACTERS) -> str:
    """A stranger's text for a message: printable, on one line, at most so many characters."""
    content = content[:4 * most]  # a character of UTF-8 has at most 4 bytes
    text = content.decode(errors="replace") if isinstance(content, bytes) else content
    words = " ".join(text.split())
    shown = "".join(character if character.isprintable() else "\ufffd" for character in words)
    return shown if len(shown) <= most else f"{shown[:most]}…"


def text_of(content: bytes) -> str:
    """The text of a file in UTF-8, without its byte order mark.

    Raises ValueError with what is wrong.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(no_text(content[error.start], f" in line {line}")) from None


def no_text(byte: int, place: str = "") -> str:
    """The message for a file with a byte that no text in UTF-8 has there.

    place: where the byte stands, as the end of a clause; "" if that is not known.
    """
    return (f"is not UTF-8 text: it has the byte 0x{byte:02x}{place}; if it is a text, save it as"
            " UTF-8")


# Schemas -----------------------------------------------------------------------------

def number(value: object, where: str) -> float:
    """Allows a finite number of at most MOST_WHOLE, positive or negative."""
    if (isinstance(value, bool) or not isinstance(value, (int, float))
            or not math.isfinite(value) or abs(value) > MOST_WHOLE):
        raise ValueError(f"{where} is not a number in range")
    return value


def whole(least: int = 0, most: int = MOST_WHOLE) -> Schema[int]:
    """A whole number in this range, both ends included."""
    def check(value: object, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{where} is not a whole number from {least} to {most}")
        return value
    return check


def yes_or_no(value: object, where: str) -> bool:
    """Allows true and false."""
    if not isinstance(value, bool):
        raise ValueError(f"{where} is neither true nor false")
    return value


def text(most: int, cut: bool = False) -> Schema[str]:
    """Printable text of at most so many characters.

    cut: other text is not refused, but shortened and made printable, as `quoted` does it.
    """
    def check(value: object, where: str) -> str:
        if isinstance(value, str) and cut:
            return quoted(value, most)
        if not isinstance(value, str) or len(value) > most \
                or not value.replace("\t", " ").isprintable():  # values of sysctls have tabs
            raise ValueError(f"{where} is not printable text of at most {most} characters")
        return value
    return check


def any_text(most: int) -> Schema[str]:
    """Text with any characters, at most so many. Whoever uses it has to check them."""
    def check(value: object, where: str) -> str:
        if not isinstance(value, str) or len(value) > most:
            raise ValueError(f"{where} is not text of at most {most} characters")
        return value
    return check


def matching(pattern: str) -> Schema[str]:
    """Text that matches a regular expression as a whole."""
    expected = re.compile(pattern, re.ASCII)

    def check(value: object, where: str) -> str:
        if not isinstance(value, str) or not expected.fullmatch(value):
            raise ValueError(f"{where} has the wrong form")
        return value
    return check


def optional(schema: Schema[T]) -> Schema[T | None]:
    """A value of the schema, or null."""
    return lambda value, where: None if value is None else schema(value, where)


def items(schema: Schema[T], most: int) -> Schema[list[T]]:
    """A list of at most so many items, which all follow one schema."""
    def check(value: object, where: str) -> list[T]:
        if not isinstance(value, list) or len(value) > most:
            raise ValueError(f"{where} is not a list of at most {most}")
        return [schema(item, where) for item in value]
    return check


def by_name(schema: Schema[T], most: int, name: Schema[str] = text(100)
            ) -> Schema[dict[str, T]]:
    """A table with any names, whose values all follow one schema."""
    def check(value: object, where: str) -> dict[str, T]:
        if not isinstance(value, dict) or len(value) > most:
            raise ValueError(f"{where} is not a table of at most {most}")
        return {name(key, f"a name in {where}"): schema(item, f"{where}.{quoted(key, 40)}")
                for key, item in value.items()}
    return check


def table(needed: Mapping[str, Schema[object]], more: Mapping[str, Schema[object]] | None = None
          ) -> Schema[dict[str, object]]:
    """A table that has all keys of `needed`, may have those of `more`, and has no others."""
    known = {**needed, **(more or {})}

    def check(value: object, where: str) -> dict[str, object]:
        where = where or "it"
        if not isinstance(value, dict):
            raise ValueError(f"{where} is not a table")
        if missing := needed.keys() - value.keys():
            raise ValueError(f"{where} lacks {', '.join(sorted(missing))}")
        other = next((key for key in value if key not in known), None)
        if other is not None:
            raise ValueError(f"{where} has the unknown key {quoted(other, 40)!r}")
        return {key: known[key](item, f"{where}.{key}" if where != "it" else key)
                for key, item in value.items()}
    return check


def typed_as(kind: type[T], schema: Schema[dict[str, object]]) -> Schema[T]:
    """The schema of a table, typed as the TypedDict with the same keys and types."""
    return cast("Schema[T]", schema)


def anything(depth: int = MOST_DEPTH) -> Schema[object]:
    """Any value with at most `depth` levels of lists and tables, and its numbers in range."""
    def check(value: object, where: str) -> object:
        if isinstance(value, (list, dict)):
            if not depth:
                raise ValueError("its lists and tables are nested too deep")
            for item in value.values() if isinstance(value, dict) else value:
                anything(depth - 1)(item, where)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            number(value, where)
        return value
    return check


def lenient_table(known: Mapping[str, Schema[object]]) -> Schema[dict[str, object]]:
    """A table that another version may have written: it may lack known keys, and have others.

    Values that are null are left out. A value with another key may be anything.
    """
    def check(value: object, where: str) -> dict[str, object]:
        if not isinstance(value, dict):
            raise ValueError(f"{where or 'it'} is not a table")
        return {key: known.get(key, anything())(item, quoted(key, 40))
                for key, item in value.items() if item is not None}
    return check


# JSON --------------------------------------------------------------------------------

def _integer(digits: str) -> int:
    """Read a whole number of at most _MOST_DIGITS. Python takes minutes for a million digits."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _no_number(word: str) -> float:
    """Refuse NaN and Infinity, which JSON does not have but Python reads."""
    raise ValueError(f"{word} is not a number")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_constant=_no_number)
