"""The parser of every command line: one line for what is wrong, help for most, for all, for one."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from firstflight.base import __version__
from firstflight.base.errors import USAGE, one_line
from firstflight.base.terminal import print_while_read, say
from firstflight.base.words import near_words


class Once(argparse._StoreAction):
    """A flag with one value. Giving it twice is an error: the last never wins."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
                 values: Any, option_string: str | None = None) -> None:
        given: set[str] = vars(namespace).setdefault("_given", set())
        if option_string and self.dest in given:
            raise argparse.ArgumentError(self, "is given twice; give it once")
        given.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Reports what is wrong in one line, and leaves the list of flags to --help; has --version.

    synonyms: for words that are no flags, what to type instead: a sentence, or a flag with an
    example of its value. The user's own value is shown in its place if the flag accepts it.
    short: the text of --help, where `--help all` shows every flag and `--help FLAG` one.
    examples: a command for each flag, by the flag's name. others: returns the help of the flags
    that stand before `-- COMMAND`, which another parser reads.
    """

    def __init__(self, synonyms: Mapping[str, str | tuple[str, str]] = {}, short: str = "",
                 examples: Mapping[str, str] = {}, others: Callable[[], str] = str,
                 **more: Any) -> None:
        super().__init__(add_help=not short, **more)
        self.synonyms, self.short, self.examples, self.others = synonyms, short, examples, others
        self.words: list[str] = []  # as they were typed
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
        # argparse drops the dashes of --flag=--, and gives the flag no value without a check.
        self.words = list(sys.argv[1:] if args is None else args)
        for word in self.words:
            if word.startswith("-") and word.endswith("=--"):
                self.error(f"{word}: -- is not a value")
        if self.short and self.words[:1] in (["--help"], ["-h"]) and len(self.words) > 1:
            # As one word: else argparse takes `--help --rtt` for two flags.
            self.words[:2] = [f"--help={self.words[1]}"]
        arguments, unknown = self.parse_known_args(self.words, namespace)
        if unknown:
            self.error(self._hint(unknown))
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

    def _hint(self, unknown: Sequence[str]) -> str:
        """What to type instead of the first unknown flag."""
        typed = next((word for word in unknown if word.startswith("-")), "")
        if not typed:
            return f"unrecognized arguments: {' '.join(unknown)}"
        flag, equals, value = typed.partition("=")
        if not equals:
            follows = self.words.index(typed) + 1 if typed in self.words else len(self.words)
            value = next(iter(self.words[follows:follows + 1]), "")
        return self.hint(flag, "" if value.startswith("-") else value)

    def hint(self, flag: str, value: str = "") -> str:
        """What to type instead of an unknown flag, with the user's own value."""
        if text := self._help_of_command_flag(flag):
            example = re.match(r"  \S+ ([^\s[]+)", text)  # the placeholder of a value it needs
            words = f"{flag} {value or example[1]}" if example else flag
            return f"{flag} goes with a command: ./run.sh {words} -- COMMAND"
        if advice := self.advice(flag, value):
            return f"{flag}: there is no such flag; write {advice}"
        near = self._nearest(flag)
        if near in self.synonyms:
            return f"{flag}: there is no such flag; {self.synonyms[near]}"
        return f"unrecognized arguments: {flag}{f' (did you mean {near}?)' if near else ''}"

    def advice(self, flag: str, value: str) -> str:
        """The flag and value that an unknown flag most likely stands for; "" for none."""
        near = self._nearest(flag)
        same = (near, self.examples.get(near, "").removeprefix(f"./run.sh {near}").split(" ")[0])
        instead = self.synonyms.get(near, same if near == flag.lower() else "")
        if isinstance(instead, str):
            return ""
        name, example = instead
        return f"{name} {value if value and self.accepts(name, value) else example}".rstrip()

    def _nearest(self, flag: str) -> str:
        """The known flag or synonym that looks most like this one, "" for none."""
        known = [*self._option_string_actions, *self.synonyms]
        return next((name for name in (flag, flag.lower()) if name in known), "") or next(
            iter(near_words(flag, known)), "")

    def _help_of_command_flag(self, flag: str) -> str:
        """The help of a flag that stands before `-- COMMAND`; "" if the flag is none of them."""
        found = re.search(rf"^  {re.escape(flag)}\b.*\n(?: {{10,}}.*\n)*", self.others(),
                          re.MULTILINE)
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
        flag = next((name for name in (f"--{word.lstrip('-')}", f"-{word.lstrip('-')}")
                     if name in self._option_string_actions), "")
        if flag:
            action = self._option_string_actions[flag]
            formatter = self._get_formatter()
            formatter.add_argument(action)
            example = self.examples.get(action.option_strings[-1], "")
            return formatter.format_help() + (f"\n  {example}\n" if example else "")
        flag = f"--{word.lstrip('-')}"
        return self._help_of_command_flag(flag) or self.error(f"--help: {self.hint(flag)}")

    def error(self, message: str) -> NoReturn:
        every = "--help all" if self.short else "--help"
        say(one_line(f"{self.prog}: {message} ({every} shows every flag)"))
        sys.exit(USAGE)


class _Help(argparse.Action):
    """Print the short help, all of it, or that of one flag."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
                 values: Any, option_string: str | None = None) -> None:
        assert isinstance(parser, Parser)
        if values == "":
            text = parser.short
        elif values == "all":
            text = f"{parser.format_help()}\n{parser.others()}"
        else:
            text = parser.help_of(str(values)).rstrip()
        print_while_read(text)
        sys.exit(0)
