"""The parser of every command line: errors in one line, and help in three lengths.

`--help` has the flags that most people need, `--help all` every flag, `--help FLAG` one.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from firstflight.base import __version__
from firstflight.base.errors import USAGE, one_line
from firstflight.base.terminal import print_while_read, say
from firstflight.base.words import near_words


# How the text of a flag begins in a help that is written by hand: with the flag and the value that
# it needs. A value in brackets, such as [BYTES], may be left out.
_NEEDED_VALUE = re.compile(r"  \S+ ([^\s[]+)")


class Once(argparse._StoreAction):
    """A flag with one value. Giving it twice is an error, and the last value never wins."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
                 values: Any, option_string: str | None = None) -> None:
        given: set[str] = vars(namespace).setdefault("_given", set())
        if option_string and self.dest in given:
            raise argparse.ArgumentError(self, "is given twice; give it once")
        given.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, and leaves the list of flags to --help; has --version.

    synonyms: what to type instead of words that are no flags: a sentence, or a flag with an example
    of its value. The user's own value replaces the example if the flag accepts it.
    short: the text of --help; `--help all` then shows every flag, and `--help FLAG` one. "" for a
    parser with one help.
    examples: a command for each flag, by the flag's name.
    command_help: returns the help of the flags that stand before `-- COMMAND`, which another parser
    reads.
    """

    def __init__(self, synonyms: Mapping[str, str | tuple[str, str]] = {}, short: str = "",
                 examples: Mapping[str, str] = {}, command_help: Callable[[], str] = str,
                 **more: Any) -> None:
        super().__init__(add_help=not short, **more)
        self.synonyms = synonyms
        self.short = short
        self.examples = examples
        self.command_help = command_help
        self.words: list[str] = []  # as they were typed

        # argparse looks "store" up by its name, and by None for a flag that names no action.
        for name in (None, "store"):
            self.register("action", name, Once)
        if short:
            self.add_argument("-h", "--help", nargs="?", const="", action=_Help, metavar="all|FLAG",
                              help="the flags that most people need; all: every flag; FLAG: one,"
                                   " with its unit, range, default and an example")
        self.add_argument("--version", action="version", version=f"First Flight {__version__}",
                          help="print the project's version and exit")

    def parse_args(self, args: Any = None,  # type: ignore[override]
                   namespace: Any = None) -> argparse.Namespace:
        # argparse removes the -- of --flag=--, and stores no value without a word about it.
        self.words = list(sys.argv[1:] if args is None else args)
        for word in self.words:
            if word.startswith("-") and word.endswith("=--"):
                self.error(f"{word}: -- is not a value")
        asks_for_flag = len(self.words) > 1 and self.words[0] in ("--help", "-h")
        if self.short and asks_for_flag:
            # As one word: else argparse takes `--help --rtt` for two flags.
            self.words[:2] = [f"--help={self.words[1]}"]
        arguments, unknown = self.parse_known_args(self.words, namespace)
        if unknown:
            self.error(self._refusal_of_words(unknown))
        return arguments

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        """Match as argparse does, and name the values that are missing."""
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError as error:
            form = self._get_formatter()
            values = form._format_args(action, action.dest.upper())
            raise argparse.ArgumentError(
                action, f"{error.message}: {'|'.join(action.option_strings)} {values}") from None

    def _refusal_of_words(self, unknown: Sequence[str]) -> str:
        """What is wrong with the first unknown flag among these words; without one, with all words.
        """
        typed = next((word for word in unknown if word.startswith("-")), "")
        if not typed:
            return f"unrecognized arguments: {' '.join(unknown)}"

        flag, equals, value = typed.partition("=")
        if not equals and typed in self.words:
            follows = self.words.index(typed) + 1
            value = "".join(self.words[follows:follows + 1])
        return self._refusal_of_flag(flag, "" if value.startswith("-") else value)

    def _refusal_of_flag(self, flag: str, value: str = "") -> str:
        """What is wrong with an unknown flag, and what to type instead, with the user's value."""
        if text := self._help_of_command_flag(flag):
            needed = _NEEDED_VALUE.match(text)
            words = f"{flag} {value or needed[1]}" if needed else flag
            return f"{flag} goes with a command: ./run.sh {words} -- COMMAND"

        if instead := self.replacement(flag, value):
            return f"{flag}: there is no such flag; write {instead}"
        near = self._nearest(flag)
        if near in self.synonyms:
            return f"{flag}: there is no such flag; {self.synonyms[near]}"
        question = f" (did you mean {near}?)" if near else ""
        return f"unrecognized arguments: {flag}{question}"

    def replacement(self, flag: str, value: str) -> str:
        """The flag and value that an unknown flag most likely stands for; "" for none.

        value: what the user typed after the flag. An example replaces it if the known flag refuses
        it.
        """
        near = self._nearest(flag)
        if near in self.synonyms:
            synonym = self.synonyms[near]
            if isinstance(synonym, str):  # a sentence names no single flag
                return ""
            name, example = synonym
        elif near == flag.lower():
            name, example = near, self._example_value(near)
        else:
            return ""
        return f"{name} {value if value and self.accepts(name, value) else example}".rstrip()

    def _example_value(self, flag: str) -> str:
        """The value, or values, that a flag has in its example; "" if it takes none."""
        action = self._option_string_actions[flag]
        if action.nargs == 0 or flag not in self.examples:
            return ""
        _, _, *words = shlex.split(self.examples[flag])
        count = action.nargs if isinstance(action.nargs, int) else 1
        return shlex.join(words[:count])

    def _nearest(self, flag: str) -> str:
        """The known flag or synonym that looks most like this one, "" for none."""
        known = [*self._option_string_actions, *self.synonyms]
        for name in (flag, flag.lower()):
            if name in known:
                return name
        return "".join(near_words(flag, known, most=1))

    def _help_of_command_flag(self, flag: str) -> str:
        """The help of a flag that stands before `-- COMMAND`; "" if the flag is none of them."""
        # The flag's line, and the indented lines that go on with it.
        lines = rf"^  {re.escape(flag)}\b.*\n(?: {{10,}}.*\n)*"
        found = re.search(lines, self.command_help(), re.MULTILINE)
        return found[0] if found else ""

    def accepts(self, flag: str, value: str) -> bool:
        """Whether a flag accepts a value."""
        try:
            self._get_values(self._option_string_actions[flag], [value])
        except (argparse.ArgumentError, KeyError):
            return False
        return value.isprintable()

    def help_of(self, word: str) -> str:
        """The help of a flag, typed with or without dashes: unit, range, default, an example.

        Exits with a message if there is no such flag.
        """
        name = word.lstrip("-")
        flag = f"--{name}"
        action = (self._option_string_actions.get(flag)
                  or self._option_string_actions.get(f"-{name}"))
        if action is None:
            return (self._help_of_command_flag(flag)
                    or self.error(f"--help: {self._refusal_of_flag(flag)}"))

        formatter = self._get_formatter()
        formatter.add_argument(action)
        text = formatter.format_help()
        example = self.examples.get(action.option_strings[-1])
        return f"{text}\n  {example}\n" if example else text

    def error(self, message: str) -> NoReturn:
        every = "--help all" if self.short else "--help"
        say(one_line(f"{self.prog}: {message} ({every} shows every flag)"))
        sys.exit(USAGE)


class _Help(argparse.Action):
    """Print the short help, the help of all flags, or the help of one flag."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
                 values: Any, option_string: str | None = None) -> None:
        assert isinstance(parser, Parser)
        if values == "":
            text = parser.short
        elif values == "all":
            text = f"{parser.format_help()}\n{parser.command_help()}"
        else:
            text = parser.help_of(str(values)).rstrip()
        print_while_read(text)
        sys.exit(0)
