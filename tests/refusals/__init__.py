"""Tables of mistakes of users: what they type, the files that run.sh then reads, its answer."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from firstflight.base.errors import USAGE

OWN = "mine.toml"  # the name of a user's scenario file in these tables


@dataclass(frozen=True)
class Refusal:
    """A command line that run.sh refuses.

    words are a part of the one line on standard error. files holds the contents of files, by name,
    in the folder where the command is typed.
    """

    command: str
    words: str
    status: int = USAGE
    files: Mapping[str, str | bytes] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.command}: {self.words}"


def typed(*rows: tuple[str, str]) -> list[Refusal]:
    """Command lines that run.sh refuses, each with a part of the answer."""
    return [Refusal(command, words) for command, words in rows]


def read(name: str, option: str, *rows: tuple[str | bytes, str]) -> list[Refusal]:
    """Contents of a file that run.sh refuses, each with a part of the answer.

    name is the file's name, option the option that reads it.
    """
    return [Refusal(f"{option} {shlex.quote(name)}", words, files={name: content})
            for content, words in rows]


def edited(text: str, *rows: tuple[str, str, str]) -> list[Refusal]:
    """Variants of a sound scenario that run.sh refuses.

    A row has the text that is replaced, the one in its place, and a part of the answer.
    """
    for old, new, _ in rows:
        assert old in text and old != new, old
    return read(OWN, "--check", *((text.replace(old, new), words) for old, new, words in rows))
