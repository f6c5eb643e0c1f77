"""Reads a long list out of JSON that a stranger wrote, in bounded memory and time.

Only one item of the list is in memory at a time, as the JSON has it. The caller keeps what it needs
of each item. Python's own decoder reads the items, from a window that is moved over the text:

    bytes, in pieces → long texts are cut to MOST_TEXT_BYTES → a window → an item

A HAR of 60 MB consists of a few MB and of the contents of files, which are long texts. A caller
that needs the contents says how long a text may be.
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
MOST_TEXT_BYTES = 1 << 13  # of a longer text only the beginning is read
MOST_WINDOW = 1 << 21  # characters that one item, or another value, may have without long texts
MOST_KEYS = 1000  # of each table on the way to the list
_NEVER = 0xFF  # a byte that UTF-8 does not have
# Escapes by which the end of a text would be found in the wrong place, and the bytes that stand for
# them meanwhile.
_ESCAPES = ((rb"\\", b"\xff\xfe"), (rb"\"", b"\xff\xfd"))
# What is kept of a long text: at most 60 characters, up to the first one that is escaped or outside
# ASCII.
_BEGINNING = re.compile(rb"[ !#-\[\]-~]{0,60}")
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(parse_int=float)  # a number of a million digits is infinite


@dataclass(frozen=True)
class LongList(Generic[T]):
    """A list from a JSON text, and other values of the table that has the list."""

    items: list[T]  # what the caller kept of each item
    beside: Mapping[str, object]  # the values, by those keys of the caller's that the table has


def read(content: bytes, path: Sequence[str], keep: Callable[[object], T], most_items: int,
         beside: Sequence[str] = (), most_text: int = MOST_TEXT_BYTES) -> LongList[T] | None:
    """The list below the keys of `path`; None where the text has none there.

    keep: returns what to keep of an item, in which whole numbers are floats. most_items: how many
    items the list may have. beside: further keys to read, of the table that has the list.
    most_text: texts of more bytes are cut. Raises ValueError with what is wrong.
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
    beside_list: dict[str, object] = {}

    def read_table(depth: int) -> None:
        """Read the table below the first `depth` keys of the path."""
        nonlocal found
        is_innermost = depth + 1 == len(path)
        for number, key in enumerate(window.keys()):
            if number == MOST_KEYS:
                raise ValueError(f"has a table with more than {MOST_KEYS:,} keys around its list")
            if key == path[depth] and not is_innermost and window.at("{"):
                read_table(depth + 1)
            elif key == path[depth] and is_innermost and window.at("["):
                if found is not None:
                    raise ValueError(f"has {'.'.join(path)} twice")
                found = LongList(_items(window, keep, most_items), beside_list)
            else:
                value = window.value(f"the value of {key[:40]!r}")
                if is_innermost and key in beside:
                    beside_list[key] = value

    if window.at("{"):
        read_table(0)
    else:
        window.value("it")
    window.end()
    return found


def _items(window: _Window, keep: Callable[[object], T], most: int) -> list[T]:
    """What is kept of the items of the list that the window has come to, at most so many."""
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
        """Whether the next key or value begins with this character."""
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
        """Yield at each item of a table or list; the caller reads the item before it goes on.

        opens, closes: the brackets around the items.
        """
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
        """Read the next value. where: what the value is, for messages. Raises ValueError."""
        self.where = where
        self._next()

        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.place)
                # A number at the end of the window, or with "e" or "e+" after it, may go on in the
                # text that is not in the window yet.
                if self.is_last or end + len("e+") < len(self.text):
                    self.place = end
                    return value
            except RecursionError:
                raise ValueError("has tables and lists that are nested too deep") from None
            except json.JSONDecodeError as error:
                # An error near the end of the window may be only that a text is not whole yet.
                if self.is_last or error.pos < len(self.text) - 2 * self.most_text:
                    raise self._fault(error.msg) from None

            if (len(self.text) - self.place > MOST_WINDOW
                    and _besides_long_texts(self.text[self.place:]) > MOST_WINDOW):
                raise ValueError(f"has more than {MOST_WINDOW >> 20} MB besides long texts in"
                                 f" {where}")

            self._extend()

    def end(self) -> None:
        """Raise ValueError if anything follows."""
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
        """Move on behind the next character, which has to be this one. Raises ValueError."""
        if self._next() != character:
            raise self._fault(f"expecting {character!r}")
        self.place += 1

    def _extend(self) -> None:
        """Drop from the window what was read, and make the rest of it at least twice as long."""
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
    """How many characters a piece of JSON has, without those of the long texts in it."""
    parts = text.replace("\\\\", "").replace('\\"', "").split('"')
    count = 0
    for place, part in enumerate(parts):
        is_text = place % 2 == 1  # every second part stands between quotation marks
        if not is_text or len(part) <= MOST_TEXT_BYTES:
            count += len(part)
    return count


# Texts ---------------------------------------------------------------------------------

def _without_long_texts(content: bytes, most_text: int) -> Iterator[str]:
    """The content in pieces, with long texts cut. Raises ValueError for what is not UTF-8."""
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    pieces = _cut(content, most_text) if most_text < len(content) else _pieces(content)
    try:
        for piece in pieces:
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

    Once the escapes are masked, a text begins at the first, the third, the fifth … quotation mark,
    and ends at the next one.
    """
    held = b""  # a text whose end has not come, or the first half of an escape
    in_text = False  # whether the piece begins within a text
    is_cut = False  # whether that text was cut already, so that all of it here is dropped
    for start in range(0, len(content), PIECE_BYTES):
        piece = content[start:start + PIECE_BYTES]
        if _NEVER in piece:
            raise ValueError(no_text(_NEVER))
        piece = held + piece
        for escape, mask in _ESCAPES:
            piece = piece.replace(escape, mask)
        parts = piece.split(b'"')
        marks_are_even = len(parts) % 2 == 1
        ends_in_text = in_text == marks_are_even
        is_long = max(map(len, parts)) > most_text
        if is_cut:
            parts[0] = b""
        has_one_text = is_cut and len(parts) == 1
        goes_on_cut = ends_in_text and (has_one_text or len(parts[-1]) > most_text)
        if is_long:
            first_text = 0 if in_text else 1
            _shorten(parts, first_text, most_text)

        held = b""
        if goes_on_cut:
            held = b"\\" if piece.endswith(b"\\") else b""
        elif ends_in_text:
            held, parts[-1] = parts[-1], b""
        yield _unmasked(b'"'.join(parts))
        in_text, is_cut = ends_in_text, goes_on_cut
    yield _unmasked(held)


def _shorten(parts: list[bytes], first: int, most_text: int) -> None:
    """Reduce long texts to their beginnings. first: the index of the first text in the parts."""
    for place in range(first, len(parts), 2):
        if len(parts[place]) > most_text and (match := _BEGINNING.match(parts[place])):
            parts[place] = match[0]


def _unmasked(piece: bytes) -> bytes:
    """The piece with its escapes instead of the bytes that stood for them."""
    for escape, mask in _ESCAPES:
        piece = piece.replace(mask, escape)
    return piece
