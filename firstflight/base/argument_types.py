"""Readers of words on a command line. Each raises argparse.ArgumentTypeError for a bad word."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Read = TypeVar("Read")
MOST_PATH_BYTES, MOST_NAME_BYTES = 4095, 255  # Linux's PATH_MAX, NAME_MAX

EXPORTS = ("json", "md", "csv")  # the formats of findings (findings.render.data)
PICTURES = ("png", "svg", "pdf")  # the formats of figures (findings.drawing.style)


def argument(read: Callable[[str], Read]) -> Callable[[str], Read]:
    """A reader whose ValueError argparse prints as its message, after the name of the flag."""
    def read_argument(word: str) -> Read:
        try:
            return read(word)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return read_argument


def picture_formats(text: str) -> tuple[str, ...]:
    """The formats of a list like png,svg. Raises argparse.ArgumentTypeError."""
    requested = tuple(dict.fromkeys(text.lower().split(",")))
    unknown = [form for form in requested if form not in PICTURES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(PICTURES)}")
    return requested


def nonempty(word: str) -> str:
    """Read a word that is not empty: "" would look like a flag that was not given."""
    if not word.strip():
        raise argparse.ArgumentTypeError("its value is empty")
    return word


def file_path(word: str) -> Path:
    """Read the path of a file or a folder, which need not exist."""
    try:
        encoded = os.fsencode(word)
    except UnicodeEncodeError:
        encoded = b"\0"
    if not word or b"\0" in encoded:
        raise argparse.ArgumentTypeError(f"{word!r} is not a path")
    if len(encoded) > MOST_PATH_BYTES or max(map(len, encoded.split(b"/"))) > MOST_NAME_BYTES:
        raise argparse.ArgumentTypeError(f"{word[:40]!r}… is longer than a path may be")
    return Path(word)


def output_folder(word: str) -> Path:
    """Read the path of a folder that is created if it is missing."""
    place = file_path(word)
    paths = (place, *place.absolute().parents)
    # Path.exists would raise in a folder that it may not search.
    existing = next(path for path in paths if os.path.exists(path))
    if not existing.is_dir():
        raise argparse.ArgumentTypeError(f"{existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK, effective_ids=True):
        raise argparse.ArgumentTypeError(f"{existing} cannot be written to")
    return place


def output_file(word: str) -> Path:
    """Read the path of a file to write; its folder is created if it is missing."""
    place = file_path(word)
    if os.path.isdir(place):
        raise argparse.ArgumentTypeError(f"{place} is a folder; give a file")
    if not os.path.exists(place):  # a file such as /dev/stdout exists, in a folder that is not ours
        output_folder(str(place.parent))
    return place


def whole_number(word: str) -> int:
    """Read a whole number."""
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{word}' is not a whole number") from None


def whole_numbers(words: str) -> list[int]:
    """Read a list like 3,10."""
    return list(map(whole_number, words.split(",")))


def positive_number(word: str) -> int:
    """Read a whole number above 0."""
    try:
        value = int(word)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{word}' is not a whole number above 0")
    return value
