"""Reads scenario files (TOML), and the head that scenarios of every kind have."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from typing import Any

from firstflight.base import reading
from firstflight.base.errors import UsageError
from firstflight.base.removed import REMOVED
from firstflight.base.typed import MOST
from firstflight.base.untrusted import quoted, text_of
from firstflight.base.words import near_words
from firstflight.runs import schema
from firstflight.runs.sysctls import sysctls_of

SCENARIOS = Path(__file__).resolve().parent.parent.parent / "scenarios"
HEAD_KEYS = ("kind", "title", "source", "note", "about", "result", "sysctls")
OWN_SERVER = "own_server"  # the table that names a command
MOST_LEVELS = 20  # of nested tables and lists; no scenario needs more than four
# A key of many parts with dots between them. A TOML reader takes time for it that grows with the
# square of the number of parts. Keys stand at the beginning of a line, or in a table on one line.
_PART = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?:^|[{{,])[ \t]*\[{{0,2}}[ \t]*{_PART}"
                       rf"(?:[ \t]*\.[ \t]*{_PART}){{{MOST_LEVELS}}}", re.MULTILINE | re.ASCII)
MOST_BYTES = 16 << 20  # of a file, enough for half a million users
TOO_MANY_DIGITS = "a number of more than 18 digits is out of any range"
MANY_TRIALS = 100_000  # more take a day and gigabytes; the largest scenario has a third of this
MOST_TRIALS = 1_000_000  # more would take days, and more memory than a laptop has


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario's file."""

    name: str
    text: str
    raw: dict[str, Any]  # its tables and values, unchecked
    path: str = ""  # as the user typed it; "" for a file of scenarios/

    @property
    def where(self) -> str:
        """How messages name the file."""
        return self.path or f"scenarios/{self.name}.toml"

    @property
    def names_command(self) -> bool:
        """Whether the file names a program to run, which a stranger's file must not do."""
        return OWN_SERVER in self.raw

    @property
    def claim(self) -> str:
        """The claim in one sentence: the first line, a comment. Raises UsageError."""
        first = self.text.partition("\n")[0].strip()
        if not first.startswith("#") or not first.lstrip("# "):
            raise UsageError(f"{self.where}: line 1: has to be a comment, the claim in one"
                             " sentence")
        return first.lstrip("# ")

    def sampled(self, one_in: int) -> ScenarioFile:
        """The scenario with one in `one_in` of its cells or clients.

        Its file has the key one_in, which its kind reads.
        """
        first_line, _, rest = self.text.partition("\n")
        text = f"{first_line}\n\none_in = {one_in}\n{rest}"
        return ScenarioFile(self.name + sample_suffix(one_in), text,
                            {**self.raw, "one_in": one_in}, f"{self.where}, one in {one_in}")

    def head(self) -> Head:
        """The head of the scenario. Raises UsageError."""
        table = {name: value for name, value in self.raw.items() if name in (
            "kind", "title", "source", "note", "about", "result")}
        return schema.read(Head, table, self.where, name=self.name, claim=self.claim,
                           text=self.text, sysctls=sysctls_of(self.raw, self.where))


def sample_suffix(one_in: int) -> str:
    """The end of the name of a scenario of which one in `one_in` is measured."""
    return f"_1in{one_in}"


@dataclass(frozen=True)
class Head:
    """The values that scenarios of every kind have."""

    title: str  # one line
    source: str  # who published it, and where
    name: str = schema.key(absent=True)
    claim: str = schema.key(absent=True)  # in one sentence
    text: str = schema.key(absent=True)  # all of the file
    sysctls: dict[str, str] = schema.key(absent=True)  # other than testbed.network.tcp_sysctls has
    note: str = ""  # a remark for the readers
    # What is measured, what was published, and which parts of that should agree. It stands before
    # the answer.
    about: str = ""
    # What was measured, in words. Its numbers are quotes of findings (findings/render/values.py).
    result: str = ""
    kind: str = "fetches"  # a key of study.registry.KINDS


def check_own_name(name: str) -> None:
    """Raises UsageError where --name cannot name a folder of results."""
    if not re.fullmatch(r"[a-z0-9_]{1,100}", name):
        raise UsageError(f"--name: {name!r} becomes a folder of results: a-z, 0-9 and _ only, at"
                         " most 100 of them")
    if name in names():
        raise UsageError(f"--name: there is a scenario {name} already, whose results these would"
                         " mix with")


def names(folder: Path = SCENARIOS) -> list[str]:
    """The names of all scenarios, sorted."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def find(name: str, folder: Path = SCENARIOS) -> ScenarioFile:
    """Read a scenario by its name, or the user's own file by its path. Raises UsageError."""
    if name.endswith(".toml"):
        return _read_own_file(Path(name), folder)
    path, known = folder / f"{name}.toml", names(folder)
    if name not in known:
        raise UsageError(_describe_unknown(name, known, folder))
    return read(path)


def _describe_unknown(name: str, known: list[str], folder: Path) -> str:
    """The message for a name that no scenario has, with names that may be meant."""
    if name in REMOVED:
        return f"{name}: {REMOVED[name]}"
    if os.path.isdir(name):
        return f"{name!r} is a folder: name a scenario, or a file in it that ends in .toml"
    if os.path.exists(name):
        return f"{name!r} is a file that does not end in .toml, as scenarios do"
    if figure := re.fullmatch(r"fig(?:ure)?[ _-]?(\d+)", name.lower()):
        published = f"paper_figure{figure[1]}."  # in the text of a scenario that has this figure
        near = [other for other in known
                if published in (folder / f"{other}.toml").read_text("utf-8")]
    else:
        near = near_words(name.lower(), known, most=3)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return f"unknown scenario {name!r}; {meant}./run.sh --list shows all {len(known)}"


def of_run(name: str, text: str) -> ScenarioFile:
    """The scenario of a stored run: the file of that name, else the text that the run kept.

    Raises UsageError.
    """
    if name in names() or not text:
        return find(name)
    return parse(name, text, f"the scenario of the run, {name}")


def _read_own_file(path: Path, folder: Path) -> ScenarioFile:
    """Read the user's own file, after which its results are named. Raises UsageError."""
    if not re.fullmatch(r"[a-z0-9_]{1,100}", path.stem):
        raise UsageError(f"{path}: its name becomes a folder of results: a-z, 0-9 and _ only, at"
                         " most 100 of them")
    if not os.path.lexists(path):
        known = (f"; the scenario {path.stem} is named without .toml"
                 if path.stem in names(folder) else "")
        raise UsageError(f"{path}: there is no such file{known}")
    if path.stem in names(folder) and \
            os.path.realpath(path.parent) != os.path.realpath(folder):
        raise UsageError(f"{path}: there is a scenario {path.stem} already, whose results these"
                         " would mix with; give the file another name")
    return read(path, str(path))


def read(path: Path, named: str = "") -> ScenarioFile:
    """Read a scenario's file. named: its path in messages; "" for a file of scenarios/.

    Raises UsageError.
    """
    try:
        return parse(path.stem, text_of(reading.content(path, MOST_BYTES)), named)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{named or f'scenarios/{path.name}'}: cannot be read: {why}") from error


def parse(name: str, text: str, named: str = "") -> ScenarioFile:
    """Read a scenario from its text. named: as for `read`. Raises UsageError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:  # a package that run.sh installs after it has read the flags
        import tomli as tomllib
    where = named or f"scenarios/{name}.toml"
    try:
        if _LONG_KEY.search(text):
            raise RecursionError
        raw = tomllib.loads(text)
        if _is_deeper(raw, MOST_LEVELS):
            raise RecursionError
        _check_values(raw, "")
    except ValueError as error:  # as for a number of thousands of digits
        raise UsageError(f"{where}: {toml_fault(error, text)}") from error
    except RecursionError:
        raise UsageError(f"{where}: has tables or lists more than {MOST_LEVELS} deep in each"
                         " other") from None
    return ScenarioFile(name, text, raw, named)


def _is_deeper(value: object, levels: int) -> bool:
    """Whether tables and lists are nested deeper than `levels`."""
    inner: Iterable[object] = ()
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    return levels < 0 or any(_is_deeper(part, levels - 1) for part in inner)


def _check_values(value: object, place: str) -> None:
    """Check that numbers can be compared, and that each value is of a type that a key may have.

    place: the keys above it, for the message. Raises ValueError.
    """
    if isinstance(value, dict):
        for name, inner in value.items():
            _check_values(inner, f"{place}: {quoted(name, 40)}" if place else quoted(name, 40))
    elif isinstance(value, list):
        for inner in value:
            _check_values(inner, place)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place}: {value} is not a finite number")
    elif isinstance(value, int) and abs(value) > MOST:
        raise ValueError(f"{place}: {TOO_MANY_DIGITS}")
    elif isinstance(value, (date, time)):
        raise ValueError(f'{place}: {value} is a date or a time of day; for text write "{value}"')


def check_count(count: int, what: str = "trials", many: bool = False) -> None:
    """Raises UsageError for more than MANY_TRIALS, or with `many` for more than MOST_TRIALS.

    Call it before the trials are made, since a slip of the user can request billions. what: the
    name of what is counted.
    """
    if count > MOST_TRIALS:
        raise UsageError(f"{count} {what} are requested, at most {MOST_TRIALS} fit in one run")
    if count > MANY_TRIALS and not many:
        raise UsageError(f"{count} {what} are requested, more than {MANY_TRIALS}; allow them with"
                         " --yes")


def toml_fault(error: Exception, text: str) -> str:
    """What is wrong in a TOML file, in words that begin with the line."""
    message = str(error)
    if "set_int_max_str_digits" in message:  # Python reads at most 4300 digits
        number = re.search(r"[0-9_]{4300}", text)
        line = text.count("\n", 0, number.start()) + 1 if number else 1
        return f"line {line}: {TOO_MANY_DIGITS}"
    if "at end of document" in message:
        return f"line {text.count(chr(10)) + 1}: {message.partition(' (at')[0]} (end of file)"
    match = re.search(r" \(at line (\d+), column (\d+)\)", message)
    if match is None:
        return message
    return (f"line {match[1]}: {message.replace(match[0], '')}"
            f" (column {match[2]})")
