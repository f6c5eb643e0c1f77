"""Numbers and names as people read them, in messages, tables and sentences."""

from __future__ import annotations

import difflib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Union

TomlValue = Union[str, float, Sequence["TomlValue"]]
UNKNOWN = "–"  # stands for a value that is not known
MINUS = "−"
# The most characters of words that are compared for likeness. Comparing two words takes a time that
# grows with the product of their lengths.
_MOST_COMPARED = 100


def is_visible(character: str) -> bool:
    """Whether a character is visible, or a space.

    Control characters are not, nor are characters that hide or reorder text. Lone surrogates and
    characters that Unicode does not define are not either: XML may not hold them.
    """
    return character.isprintable() or unicodedata.category(character) == "Zs"


def visible_line(text: str) -> str:
    """The text on one line: a space replaces each invisible character."""
    if text.isprintable():
        return text
    return "".join(character if is_visible(character) else " " for character in text)


def escaped(text: str) -> str:
    """The lines with each invisible character escaped as in JSON."""
    if text.isprintable():
        return text

    characters = []
    for character in text:
        if is_visible(character) or character in "\n\t":
            characters.append(character)
        else:
            characters.append(json.dumps(character).strip('"'))
    return "".join(characters)


def plain(value: float | str) -> str:
    """A number as people write it: no exponent, no trailing zeros; a word as it is."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.10g}"


def format_lossless(value: float) -> str:
    """A number with every digit that distinguishes it, and no exponent; float() reads it."""
    if not math.isfinite(value):
        return str(value)
    digits = repr(float(value))
    if "e" in digits:
        digits = format(Decimal(digits), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def format_toml(value: TomlValue) -> str:
    """A value as TOML writes it: a string, true or false, a number, or a list of them."""
    if isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=False)  # its escapes are TOML's, too
        return "".join(character if is_visible(character) else f"\\U{ord(character):08X}"
                       for character in quoted)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(format_toml, value))}]"
    return str(value).lower() if isinstance(value, bool) else format_lossless(value)


def format_number(value: float | None, digits: int = 1, signed: bool = False) -> str:
    """A number with fixed decimals, UNKNOWN for None, and never a negative zero."""
    if value is None:
        return UNKNOWN
    rounded = round(value, digits) + 0.0  # which makes -0.0 a 0.0
    sign = "+" if signed else ""
    return f"{rounded:{sign}.{digits}f}".replace("-", MINUS)


def format_brief(value: float | None) -> str:
    """A number with one decimal; with none from 99.95 on; UNKNOWN for None."""
    is_small = value is None or abs(value) < 99.95
    return format_number(value, digits=1 if is_small else 0)


def format_count(value: float | None) -> str:
    """A mean of counts: no decimal if it is whole, else one; UNKNOWN for None."""
    is_whole = value is None or value == int(value)
    return format_number(value, digits=0 if is_whole else 1)


def format_interval(ends: tuple[float, float] | None, digits: int = 1) -> str:
    """An interval: "12.0 … 14.5"."""
    if not ends:
        return UNKNOWN
    return f"{format_number(ends[0], digits)} … {format_number(ends[1], digits)}"


def join_words(words: Sequence[str]) -> str:
    """The words in a sentence: "a, b and c"."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def format_range(values: Iterable[float | None], unit: str) -> str:
    """The range of the values that are not None: "12.0 to 14.5 ms".

    If both ends look alike, it is one value.
    """
    known = [value for value in values if value is not None]
    low, high = format_brief(min(known)), format_brief(max(known))
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def format_duration(seconds: float) -> str:
    """A time in words: in seconds, from 2 min on in minutes, from 2 h on in hours."""
    if seconds < 120:
        return f"{format_brief(seconds)} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def keep_units_together(text: str) -> str:
    """The text with no-break spaces between numbers and their units, and around ±."""
    return re.sub(r"(?<=\d) (?=(?:ms|s|%|kbit/s|bytes|segments|min|h)(?![\w/]))|(?<=±) | (?=±)",
                  "\u00a0", text)


def near_words(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Known words that look like this one, the most alike first."""
    if len(word) > _MOST_COMPARED:
        return []
    names = [name for name in known if len(name) <= _MOST_COMPARED]
    return difflib.get_close_matches(word, names, n=most)


def nearest(word: str, known: Iterable[str]) -> str:
    """" (did you mean …?)" if a known word looks like this one, else ""."""
    close = near_words(word, known)
    return f" (did you mean {close[0]!r}?)" if close else ""


def nearest_or_known(word: str, known: Sequence[str]) -> str:
    """What to write in place of an unknown word: the one that it looks like, else all of them."""
    return nearest(word, known) or f"; known: {', '.join(known) or 'none'}"


# Cells of CSV files ------------------------------------------------------------------

_FORMULA = re.compile(r"'*[=+\-@]")  # what a spreadsheet takes for a formula, quoted or not


def _microseconds(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def to_cell(value: object, of_float: Callable[[float], str] = _microseconds) -> str:
    """A value as the text of a CSV cell; None is "".

    A spreadsheet takes text that begins with = + - or @ for a formula, which may call programs: a
    quote in front marks it as text. of_float: how to write a float. Requested values keep every
    digit (format_lossless), measured ones those to the microsecond.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return of_float(value)
    if isinstance(value, int):
        return str(value)
    return _harmless(str(value))


@lru_cache(maxsize=1024)
def _harmless(text: str) -> str:
    """The text on one line, without unprintable characters, and never a formula."""
    text = "".join(filter(str.isprintable, " ".join(text.split())))
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(text: str) -> str:
    """The text from which to_cell made this cell."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
