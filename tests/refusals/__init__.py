"""What users get wrong, as tables: what they type, the files that it reads, what they are told."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from firstflight.base.errors import USAGE

OWN = "mine.toml"  # the scenario file of one's own in these tables


@dataclass(frozen=True)
class Refusal:
    """A command line of run.sh that is refused.

    words: what the one line on standard error contains. files: what lies in the folder where
    the command is typed, by name.
    """

    command: str
    words: str
    status: int = USAGE
    files: Mapping[str, str | bytes] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.command}: {self.words}"


def typed(*rows: tuple[str, str]) -> list[Refusal]:
    """Command lines, each with the words of its answer."""
    return [Refusal(command, words) for command, words in rows]


def read(name: str, option: str, *rows: tuple[str | bytes, str]) -> list[Refusal]:
    """Contents of the file of that name, which the option reads, each with the words."""
    return [Refusal(f"{option} {shlex.quote(name)}", words, files={name: content})
            for content, words in rows]


def edited(text: str, *rows: tuple[str, str, str]) -> list[Refusal]:
    """A sound scenario in which old is replaced by new: (old, new, words)."""
    for old, new, _ in rows:
        assert old in text and old != new, old
    return read(OWN, "--check", *((text.replace(old, new), words) for old, new, words in rows))
