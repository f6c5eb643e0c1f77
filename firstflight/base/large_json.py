"""Reads a long list out of JSON that a stranger wrote, in bounded memory and time.

Only one item of the list is in memory at a time, as the JSON has it; the caller keeps what it needs
of each. Python's own decoder reads the items, from a window that is moved over the text:

    bytes, in pieces → with long texts cut to MOST_TEXT_BYTES → a window → an item

A HAR of 60 MB has a few MB besides the contents of files, which are such long texts. A caller that
needs them says how long a text may be.
"""

from __future__ import annotations

import codecs
import gc
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from firstflight.base.untrusted import no_text

T = TypeVar("T")

PIECE_BYTES = 1 << 18
MOST_TEXT_BYTES = 1 << 13  # a text that is longer is read as its beginning
MOST_WINDOW = 1 << 21  # characters that one item, or another value, may have without long texts
MOST_KEYS = 1000  # of each table on the way to the list
_NEVER = 0xFF  # a byte that UTF-8 does not have
# Escapes that would be taken for the end of a text, and what masks them.
_ESCAPES = ((rb"\\", b"\xff\xfe"), (rb"\"", b"\xff\xfd"))
_BEGINNING = re.compile(rb"[ !#-\[\]-~]{0,60}")  # of a long text, as far as it is plain
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(parse_int=float)  # a number of a million digits is infinite


@dataclass(frozen=True)
class LongList(Generic[T]):
    """A list from a JSON text, and what stands beside it.

    items: what the caller kept of each item. beside: values of the table that has the list, by
    those keys that the caller asked for and that are there.
    """

    items: list[T]
    beside: Mapping[str, object]


def read(content: bytes, path: Sequence[str], keep: Callable[[object], T], most_items: int,
         beside: Sequence[str] = (), most_text: int = MOST_TEXT_BYTES) -> LongList[T] | None:
    """The list below the keys of `path`; None where the text has none there.

    keep: what to keep of an item. Whole numbers are floats. most_items: of the list. beside: keys
    of the innermost table. most_text: texts that have more bytes are cut. Raises ValueError with
    what is wrong.
    """
    collects = gc.isenabled()
    gc.disable()  # nothing in JSON is a circle, and looking for circles takes most of the time
    try:
        return _read(content, path, keep, most_items, beside, most_text)
    finally:
        if collects:
            gc.enable()


def _read(content: bytes, path: Sequence[str], keep: Callable[[object], T], most_items: int,
          beside: Sequence[str], most_text: int) -> LongList[T] | None:
    window = _Window(_without_long_texts(content, most_text), most_text)
    found: LongList[T] | None = None
    kept: dict[str, object] = {}

    def enter(depth: int) -> None:
        nonlocal found
        for number, key in enumerate(window.keys()):
            if number == MOST_KEYS:
                raise ValueError(f"has a table with more than {MOST_KEYS:,} keys around its list")
            if key == path[depth] and depth + 1 < len(path) and window.at("{"):
                enter(depth + 1)
            elif key == path[depth] and depth + 1 == len(path) and window.at("["):
                if found is not None:
                    raise ValueError(f"has {'.'.join(path)} twice")
                found = LongList(_items(window, keep, most_items), kept)
            else:
                value = window.value(f"the value of {key[:40]!r}")
                if depth + 1 == len(path) and key in beside:
                    kept[key] = value
    if window.at("{"):
        enter(0)
    else:
        window.value("it")
    window.end()
    return found


def _items(window: _Window, keep: Callable[[object], T], most: int) -> list[T]:
    items: list[T] = []
    for _ in window.places("[", "]"):
        if len(items) == most:
            raise ValueError(f"has more than {most:,} entries")
        items.append(keep(window.value(f"entry {len(items) + 1}")))
    return items


class _Window:
    """The part of a text that is being read."""

    def __init__(self, pieces: Iterator[str], most_text: int) -> None:
        self.pieces, self.most_text = pieces, most_text
        self.text, self.place = "", 0
        self.is_last = False  # whether no text follows
        self.where = "its beginning"  # what is read, for messages

    def at(self, character: str) -> bool:
        """Whether the next thing begins with this character."""
        return self._next() == character

    def keys(self) -> Iterator[str]:
        """The keys of a table; the caller reads the value after each."""
        for _ in self.places("{", "}"):
            key = self.value("a key")
            if not isinstance(key, str):
                raise self._fault("a key is no text")
            self._take(":")
            yield key

    def places(self, opens: str, closes: str) -> Iterator[None]:
        """Stop at each item of a table or list; the caller reads it."""
        self._take(opens)
        if self._next() == closes:
            self._take(closes)
            return
        while True:
            yield
            if self._next() == closes:
                break
            self._take(",")
        self._take(closes)

    def value(self, where: str) -> object:
        """The next value. where: what it is, in messages. Raises ValueError."""
        self.where = where
        self._next()

        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.place)
                # A number that is followed by nothing, "e" or "e+" may go on behind the window.
                if self.is_last or end + len("e+") < len(self.text):
                    self.place = end
                    return value
            except RecursionError:
                raise ValueError("has tables and lists that are nested too deep") from None
            except json.JSONDecodeError as error:
                if self.is_last or error.pos < len(self.text) - 2 * self.most_text:
                    raise self._fault(error.msg) from None

            if (len(self.text) - self.place > MOST_WINDOW
                    and _besides_long_texts(self.text[self.place:]) > MOST_WINDOW):
                raise ValueError(f"has more than {MOST_WINDOW >> 20} MB besides long texts in"
                                 f" {where}")

            self._extend()

    def end(self) -> None:
        """Raises ValueError where more follows."""
        if self._next():
            raise self._fault("something follows its end")

    def _next(self) -> str:
        """The next character that is no space, "" at the end of the text."""
        while True:
            match = _SPACE.match(self.text, self.place)
            self.place = match.end() if match else self.place
            if self.place < len(self.text) or self.is_last:
                return self.text[self.place:self.place + 1]
            self._extend()

    def _take(self, character: str) -> None:
        if self._next() != character:
            raise self._fault(f"expecting {character!r}")
        self.place += 1

    def _extend(self) -> None:
        """Move on to what is not read yet, and at least double it."""
        parts = [self.text[self.place:]]
        more = 0
        while more <= len(parts[0]) and not self.is_last:
            piece = next(self.pieces, None)
            self.is_last = piece is None
            parts.append(piece or "")
            more += len(parts[-1])
        self.text, self.place = "".join(parts), 0

    def _fault(self, why: str) -> ValueError:
        return ValueError(f"is not whole JSON, or cut off, in {self.where}: {why}")


def _besides_long_texts(text: str) -> int:
    """How many characters a part of a text has, without those of long texts in it."""
    parts = text.replace("\\\\", "").replace('\\"', "").split('"')
    return sum(len(part) for place, part in enumerate(parts)
               if place % 2 == 0 or len(part) <= MOST_TEXT_BYTES)


# Texts ---------------------------------------------------------------------------------

def _without_long_texts(content: bytes, most_text: int) -> Iterator[str]:
    """The content in pieces, with long texts cut. Raises ValueError for what is not UTF-8."""
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    try:
        for piece in _cut(content, most_text) if most_text < len(content) else _pieces(content):
            yield decode(piece)
        decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise ValueError(no_text(error.object[error.start])) from None


def _pieces(content: bytes) -> Iterator[bytes]:
    """The content in pieces, as it is."""
    for start in range(0, len(content), PIECE_BYTES):
        yield content[start:start + PIECE_BYTES]


def _cut(content: bytes, most_text: int) -> Iterator[bytes]:
    """The content in pieces, each text of more than most_text bytes reduced to its beginning.

    Once the escapes are masked, a text stands behind the first, the third, the fifth … quotation
    mark, up to the next one.
    """
    held = b""  # a text whose end has not come, or the first half of an escape
    in_text = is_cut = False  # whether a piece begins in a text, and whether that is cut already
    for start in range(0, len(content), PIECE_BYTES):
        piece = content[start:start + PIECE_BYTES]
        if _NEVER in piece:
            raise ValueError(no_text(_NEVER))
        piece = held + piece
        for escape, mask in _ESCAPES:
            piece = piece.replace(escape, mask)
        parts = piece.split(b'"')
        ends_in_text = in_text == (len(parts) % 2 == 1)
        is_long = max(map(len, parts)) > most_text
        if is_cut:
            parts[0] = b""
        goes_on_cut = ends_in_text and (is_cut and len(parts) == 1
                                        or len(parts[-1]) > most_text)
        if is_long:
            _shorten(parts, 0 if in_text else 1, most_text)

        held = b""
        if goes_on_cut:
            held = b"\\" if piece.endswith(b"\\") else b""
        elif ends_in_text:
            held, parts[-1] = parts[-1], b""
        yield _unmasked(b'"'.join(parts))
        in_text, is_cut = ends_in_text, goes_on_cut
    yield _unmasked(held)


def _shorten(parts: list[bytes], first: int, most_text: int) -> None:
    """Reduce long texts to their beginnings. first: the place of the first text; others follow."""
    for place in range(first, len(parts), 2):
        if len(parts[place]) > most_text and (match := _BEGINNING.match(parts[place])):
            parts[place] = match[0]


def _unmasked(piece: bytes) -> bytes:
    for escape, mask in _ESCAPES:
        piece = piece.replace(mask, escape)
    return piece
