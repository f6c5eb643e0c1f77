"""run.sh --list: what each scenario claims."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from firstflight.base import errors
from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.base.terminal import say
from firstflight.base.words import escaped
from firstflight.commands.request import Request
from firstflight.runs import scenario_file


def add_flags(add: Callable[..., object]) -> None:
    add("--list", action="store_true",
        help="list the scenarios with their claims; with words, those whose files contain them")


def is_requested(request: Request) -> bool:
    return request.list_words is not None


def run(request: Request) -> int:
    """Print what each scenario claims; a broken file is reported, and the others are listed.

    With words on the command line, a scenario is listed if its file has them all, each at the
    beginning of a word. Returns the exit status: USAGE where a file is broken. Raises UsageError
    where no file has the words.
    """
    words = request.list_words or ()
    status, names, listed = errors.OK, scenario_file.names(), 0
    width = max(map(len, names), default=0)

    for name in names:
        try:
            file = scenario_file.find(name)
            if _has_words(f"{name} {file.text}", words):
                print(escaped(f"{name:<{width}}  {file.head().claim}"))
                listed += 1
        except FirstFlightError as error:
            say(f"run.sh: {error}")
            status = error.exit_status

    if words and not listed:
        raise UsageError(f"--list: no scenario has {' and '.join(words)} in its file;"
                         f" ./run.sh --list alone shows all {len(names)}")
    return status


def _has_words(text: str, words: Sequence[str]) -> bool:
    """Whether each word begins a word of the text, in capitals or not."""
    return all(re.search(rf"(?<![a-z]){re.escape(word)}", text, re.IGNORECASE) for word in words)
