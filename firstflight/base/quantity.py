"""What a quantity is: its unit, its range, its flag, and how people name it.

The values of some quantities are words. findings/quantities.py has a line for each quantity.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

from firstflight.base import typed
from firstflight.base.errors import UsageError
from firstflight.base.removed import REMOVED
from firstflight.base.words import nearest, plain

# The names of kernels, as named.sh has them.
KERNEL_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*"
MOST_KERNEL_NAME = 40  # characters
# A parameter of a module, as it stands on a kernel's command line.
_MODULE_PARAMETER = r"[a-z][a-z0-9_]{0,40}\.[a-z][a-z0-9_]{0,40}=-?[A-Za-z0-9_]{1,30}"
_MOST_WINDOW = 65_535  # segments: the most that `ip route` takes as initcwnd

# For each unit, that unit and the larger ones, each a thousand times the one before.
LARGER_UNITS = {"bytes": ("bytes", "kB", "MB", "GB"), "kbit/s": ("kbit/s", "Mbit/s", "Gbit/s")}


def _is_round(value: object) -> TypeGuard[float]:
    """Whether this is a number of at most three significant digits."""
    return isinstance(value, (int, float)) and float(f"{value:.3g}") == value


def in_words(value: Any, unit: str) -> str:
    """A value with its unit. A round number has the largest unit that fits: "300 kB"."""
    if not _is_round(value):
        return f"{plain(value)} {unit}".rstrip()

    smallest, *larger_units = LARGER_UNITS.get(unit, (unit,))
    shown_unit = smallest
    for larger in larger_units:
        if abs(value) < 1000:
            break
        value, shown_unit = value / 1000, larger
    return f"{plain(value)} {shown_unit}".rstrip()


@dataclass(frozen=True)
class Quantity:
    """One quantity."""

    name: str
    # Its name in a sentence, with an article.
    what: str
    # "" for a plain number.
    unit: str = ""
    # The ends of the range that may be requested, both included.
    lowest: float = -math.inf
    highest: float = math.inf
    # Whether only whole numbers are values.
    whole: bool = False
    # The heading of its column.
    head: str = ""
    # Its name on an axis, and where there is room; "" for the heading.
    label: str = ""
    # Its flag on the command line, and the flag's help; "" without a flag.
    flag: str = ""
    flag_help: str = ""
    # The values if none are given, as typed on the command line.
    default: str = ""
    # Ends the message that refuses a value out of range.
    why: str = ""
    # Whether an improvement gains some of it, instead of saving some.
    more_is_better: bool = False
    # If 0 means none: the least value above 0. Else 0.
    above: float = 0.0
    # What an axis shows for 0.
    zero: str = "0"

    def check(self, value: object, where: str) -> Any:
        """The value, if it may be requested. Raises UsageError, which begins with `where`."""
        try:
            return self.accept(value)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from None

    def accept(self, value: object) -> Any:
        """The value, if it may be requested. Raises ValueError with what is wrong."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{value!r} is not a number")
        if isinstance(value, int) and value.bit_length() > 64:  # too long to be shown
            raise ValueError("a number of more than 18 digits is out of any range")
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
        if self.whole and value != int(value):
            raise ValueError(f"{value:g} is not a whole number")
        if not self.lowest <= value <= self.highest or 0 < value < self.above:
            unit = f" {self.unit}" if self.unit else ""
            raise ValueError(f"{self.what} of {plain(value)}{unit} is out of range; it"
                             f" can be {self._ends}{unit}"
                             f"{self.why}")
        return int(value) if self.whole else float(value)

    def listed(self, words: str) -> list[Any]:
        """The values of a list as typed. Their range is not checked. Raises ValueError."""
        return [self.parsed(word) for word in typed.expand_range(words, self.unit, self.whole)]

    def parsed(self, word: str) -> Any:
        """The value of one word as typed. Raises ValueError with an example."""
        value = typed.number(word, self.unit)
        if self.whole and value != int(value):
            unit = f" of {self.unit}" if self.unit else ""
            raise ValueError(f"{word!r} is not a whole number{unit}")
        return int(value) if self.whole else value

    def together(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values that are measured for those that the command line gives; here the same."""
        return tuple(values)

    @property
    def defaults(self) -> tuple[Any, ...]:
        """The values of `default`."""
        return tuple(self.check(self.parsed(word), self.flag or self.name)
                     for word in self.default.split(","))

    @property
    def metavar(self) -> str:
        """The placeholder for the flag's values in --help: "MS,…"."""
        unit = {"kbit/s": "KBPS", "segments": "N", "%": "PERCENT",
                "": "N" if self.whole else "PART"}.get(self.unit, self.unit.upper())
        return f"{unit},…"

    @property
    def range(self) -> str:
        """The unit and what may be requested: "ms, 0.1 to 100000"."""
        return f"{self.unit}, {self._ends}" if self.unit else self._ends

    @property
    def _ends(self) -> str:
        none = f"0, or {plain(self.above)}" if self.above else plain(self.lowest)
        return f"{none} to {plain(self.highest)}"

    @property
    def help(self) -> str:
        """The flag's line of --help."""
        default = f" (default {self.default})" if self.default else ""
        return f"{self.flag_help}: {self.range}{default}".replace("%", "%%")

    @property
    def improved(self) -> str:
        """The word for an improvement: gained or saved."""
        return "gained" if self.more_is_better else "saved"

    def with_unit(self, value: str) -> str:
        """A value as text, with its unit if it has one."""
        return f"{value} {self.unit}".rstrip()

    def bucket_names(self, values: Sequence[str | float]) -> tuple[list[str], str]:
        """The names of an axis's buckets as they were requested, and the name of the axis."""
        return [plain(value) for value in values], self.axis

    def ticks(self, values: Sequence[str | float]) -> tuple[list[str], str]:
        """The labels of an axis's ticks, and the name of the axis.

        If all values are round, each label has its unit, such as "300 kB", and the name has none.
        """
        if self.unit not in LARGER_UNITS or not all(map(_is_round, values)):
            return self.bucket_names(values)
        labels = [in_words(value, self.unit) for value in values]
        return labels, self.axis.removesuffix(f" ({self.unit})")

    @property
    def axis(self) -> str:
        """The label of a figure's axis, such as "RTT (ms)"."""
        name = self.label or self.head or self.name.replace("_", " ")
        name = name[0].upper() + name[1:]
        return f"{name} ({self.unit})" if self.unit else name


@dataclass(frozen=True)
class Word(Quantity):
    """A quantity whose values are words: one of those that are known, or any name of an algorithm.
    """

    known: tuple[str, ...] = ()  # () for any name of an algorithm

    def accept(self, value: object) -> str:
        if self.known and value not in self.known:
            instead = REMOVED.get(f"{self.flag} {value}")
            hint = f" ({instead})" if instead else ""
            raise ValueError(f"unknown {value!r}{nearest(str(value), self.known)};"
                             f" known: {', '.join(self.known)}{hint}")
        if self.known:
            return str(value)
        # TCP_CA_NAME_MAX is 16 with the final zero. Only the kernel knows which names exist.
        if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9_]{1,15}", value):
            raise ValueError(f"{value!r} is not the name of an algorithm")
        return value

    def listed(self, words: str) -> list[str]:
        return [word.strip().lower() for word in words.split(",")]

    def parsed(self, word: str) -> str:
        return word

    @property
    def metavar(self) -> str:
        return "NAME,…"

    @property
    def range(self) -> str:
        return "|".join(self.known) or "a name that the kernel knows"


# What Linux begins with where no route says otherwise (TCP_INIT_CWND), in segments.
OWN_WINDOW = 10


@dataclass(frozen=True)
class InitialWindow(Quantity):
    """Initial windows in segments. A user may also type DEFAULT alone: the kernel's own window."""

    DEFAULT: ClassVar[str] = "default"

    def listed(self, words: str) -> list[Any]:
        known = [word.strip().lower() for word in words.split(",")]
        if self.DEFAULT in known and len(known) > 1:
            raise ValueError(f"'{words}': {self.DEFAULT} stands alone: it leaves the window to"
                             " each kernel, which --kernel compares")
        return known if self.DEFAULT in known else super().listed(words)


@dataclass(frozen=True)
class ClientWindow(Quantity):
    """Initial windows of a client in segments. Users and files may also say DEFAULT, which is 0."""

    DEFAULT: ClassVar[str] = "default"

    def accept(self, value: object) -> Any:
        return super().accept(0 if value == self.DEFAULT else value)

    @property
    def help(self) -> str:
        """The flag's line of --help. It explains DEFAULT itself, and says no "default default"."""
        return super().help.removesuffix(f" (default {self.DEFAULT})")

    def listed(self, words: str) -> list[Any]:
        windows: list[Any] = []
        for word in words.split(","):
            windows += [0] if word.strip().lower() == self.DEFAULT else super().listed(word)
        return windows

    def parsed(self, word: str) -> Any:
        return 0 if word == self.DEFAULT else super().parsed(word)


# What becomes of the client's receive window: it grows, or stays (the parameter rwnd_growth).
GROWS, FIXED = "grows", "fixed"


@dataclass(frozen=True)
class ReceiveWindow(Quantity):
    """Initial receive windows in segments. A user may type FIXED after them: they do not grow."""

    def listed(self, words: str) -> list[Any]:
        """The windows, and FIXED as the last value if the user typed it."""
        windows, comma, last = words.rpartition(",")
        if last.strip().lower() != FIXED:
            if FIXED in words.lower():
                raise ValueError(f"{words!r}: {FIXED} stands behind the windows, as 45,{FIXED}, and"
                                 " holds for all of them")
            return super().listed(words)
        if not comma:
            raise ValueError(f"{words!r}: write the window in front of it, as 45,{FIXED}")
        return [*super().listed(windows), FIXED]


@dataclass(frozen=True)
class KernelName(Word):
    """Names of guest kernels (./install.sh --kernel NAME): no path, and no word of a shell."""

    def accept(self, value: object) -> str:
        if (not isinstance(value, str) or len(value) > MOST_KERNEL_NAME
                or not re.fullmatch(KERNEL_NAME, value)):
            raise ValueError(f"{value!r} is no name of a kernel: letters, digits, . _ and"
                             f" - only, at most {MOST_KERNEL_NAME}, as cubic-0.5"
                             " (./install.sh --list-kernels)")
        return value

    def listed(self, words: str) -> list[str]:
        return [word.strip() for word in words.split(",")]

    @property
    def range(self) -> str:
        return "names of kernels (./install.sh --list-kernels)"


@dataclass(frozen=True)
class ModuleParameters(Word):
    """Parameters of the kernel's modules, such as "tcp_cubic.hystart=0+tcp_cubic.beta=512".

    "none" is the kernel as it is.
    """

    def accept(self, value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(
                rf"none|{_MODULE_PARAMETER}(\+{_MODULE_PARAMETER}){{0,9}}", value):
            raise ValueError(f"{value!r} is no parameter of a module: write"
                             " MODULE.NAME=VALUE, as tcp_cubic.hystart=0, with + between several"
                             ' that go together; "none" for the kernel as it is')
        names = [parameter.partition("=")[0] for parameter in value.split("+")]
        if len({*names}) < len(names):
            raise ValueError(f"{value!r} has one parameter twice")
        return value

    def listed(self, words: str) -> list[str]:
        return [word.strip() for word in words.split(",")]

    @property
    def metavar(self) -> str:
        return "NAME=VALUE,…"

    @property
    def range(self) -> str:
        return "MODULE.NAME=VALUE, with + between those that go together"


@dataclass(frozen=True)
class Sizes(Quantity):
    """The sizes of several writes in bytes, such as "17+38+2"; "" for none."""

    def accept(self, value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"|[1-9]\d{0,3}(\+[1-9]\d{0,3}){0,99}",
                                                          value):
            raise ValueError(f"{value!r} is not a list of write sizes; write the bytes"
                             ' of each, like "17+38+2"')
        return value

    def parsed(self, word: str) -> str:
        return word

    @property
    def range(self) -> str:
        return "bytes of each, 1 to 9999, like 17+38+2"


@dataclass(frozen=True)
class Windows(Quantity):
    """Initial windows that act like other ones: "10=7,16=8" where 10 acts like 7; "" for none."""

    def accept(self, value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(
                r"|\d{1,5}=\d{1,5}(,\d{1,5}=\d{1,5}){0,99}", value):
            raise ValueError(f"{value!r} is not a list of windows that act as others;"
                             ' write both of each pair, like "10=7,16=8"')
        if any(not 0 < int(window) <= _MOST_WINDOW for window in re.findall(r"\d+", value)):
            raise ValueError(f"{value!r}: a window can be 1 to {_MOST_WINDOW} segments")
        return value

    def parsed(self, word: str) -> str:
        return word

    @property
    def range(self) -> str:
        return "segments, like 10=7,16=8"
