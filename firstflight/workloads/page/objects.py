"""The objects of a page: first the document, then the objects that it and others name.

An object has no content and no URL here: only its size, where it is named, and its host.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from firstflight.base.words import format_lossless

MOST_OBJECTS = 1000  # of one page; the HTTP Archive's 99th percentile is half of it
MOST_BYTES = 30_000_000  # of one page; a tap has room for the packets of some 40 MB
MOST_HOSTS = 256
_OBJECT = (r"\d{1,9}(?:<\d{1,4}@\d{1,9})?(?:\+\d{1,6}(?:\.\d{1,6})?)?(?:~\d{1,6}(?:\.\d{1,6})?)?"
           r"(?:#\d{1,3})?!?")
PATTERN = rf"{_OBJECT}(?: {_OBJECT})*"
_PARTS = re.compile(r"(\d+)(?:<(\d+)@(\d+))?(?:\+([\d.]+))?(?:~([\d.]+))?(?:#(\d+))?(!?)")


@dataclass(frozen=True)
class PageObject:
    """One object of a page.

    size_bytes: of its body. named_by: the number of the object that names it; 0 for the document,
    which has number 1. at_byte: how many bytes of that object's body have to arrive first.
    parse_ms: from then until the client requests it. think_ms: from the arrival of the request
    until the server responds. host: the number of its host, 0 for the document's. is_early:
    whether the first screen waits for it.
    """

    size_bytes: int
    named_by: int = 0
    at_byte: int = 0
    parse_ms: float = 0.0
    think_ms: float = 0.0
    host: int = 0
    is_early: bool = False

    @property
    def text(self) -> str:
        """The object as a column of trials.csv has it, such as "15000<1@300+5~20#1!"."""
        return "".join((
            f"{self.size_bytes}", f"<{self.named_by}@{self.at_byte}" if self.named_by else "",
            f"+{format_lossless(self.parse_ms)}" if self.parse_ms else "",
            f"~{format_lossless(self.think_ms)}" if self.think_ms else "",
            f"#{self.host}" if self.host else "", "!" if self.is_early else ""))


def text_of(objects: Sequence[PageObject]) -> str:
    """The objects of a page as one text, with spaces between them."""
    return " ".join(each.text for each in objects)


def parse(text: str) -> tuple[PageObject, ...]:
    """The reverse of text_of. Raises ValueError where it is not the text of a page."""
    objects = []
    for word in text.split():
        match = _PARTS.fullmatch(word)
        if match is None:
            raise ValueError(f"{word[:40]!r} is no object of a page")
        size, named_by, at_byte, parse_ms, think_ms, host, early = match.groups()
        objects.append(PageObject(int(size), int(named_by or 0), int(at_byte or 0),
                                  float(parse_ms or 0), float(think_ms or 0), int(host or 0),
                                  bool(early)))
    if fault := fault_of(objects):
        raise ValueError(fault)
    return tuple(objects)


def fault_of(objects: Sequence[PageObject]) -> str:
    """What is wrong with the objects of a page, by its limits and by which object names which.

    "" for nothing. Each object is named by one above it, so that there is no circle.
    """
    if not objects:
        return "a page has at least one object, its document"
    if len(objects) > MOST_OBJECTS:
        return too_many(len(objects))
    total = sum(each.size_bytes for each in objects)
    if total > MOST_BYTES:
        return (f"a page of {total:,} bytes; at most {MOST_BYTES:,} fit, whose packets are all"
                " recorded")
    for number, each in enumerate(objects, start=1):
        if number == 1 and each.named_by:
            return "object 1: is the document, which no object names (named_by)"
        if number > 1 and not 1 <= each.named_by < number:
            return (f"object {number}: named_by = {each.named_by}: has to be the number of an"
                    " object above it, 1 for the document")
        if number > 1 and each.at_byte > objects[each.named_by - 1].size_bytes:
            return (f"object {number}: at_byte = {each.at_byte}: object {each.named_by}, which"
                    f" names it, has {objects[each.named_by - 1].size_bytes} bytes")
        if each.size_bytes < 1:
            return f"object {number}: has no bytes"
        if each.host >= MOST_HOSTS:
            return f"object {number}: host = {each.host}: hosts have numbers below {MOST_HOSTS}"
    return ""


def too_many(count: int) -> str:
    """What is wrong with a page of so many objects, or of more."""
    return f"a page of {count:,} objects; at most {MOST_OBJECTS:,} fit"


def with_spread(page: Sequence[PageObject], spread_ms: float, seed: int) -> tuple[PageObject, ...]:
    """The page with longer parse times, each by a draw from 0 to spread_ms, document aside.

    Where a queue overflows, such times decide which packets it drops.
    """
    if not spread_ms:
        return tuple(page)
    draw = random.Random(seed)
    first, *others = page
    return first, *(replace(each, parse_ms=round(each.parse_ms + draw.uniform(0, spread_ms), 3))
                    for each in others)


def equal_objects(count: int, size_bytes: int, document_bytes: int) -> tuple[PageObject, ...]:
    """A document and `count` objects of equal size, named at even distances in the document."""
    return (PageObject(document_bytes), *(
        PageObject(size_bytes, 1, round(document_bytes * place / (count + 1)))
        for place in range(1, count + 1)))
