"""Reading TOML tables: every value checked, every fault one line that names file, table and key."""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SHARES_TOLERANCE_PERCENT = 0.1  # published shares are rounded to 0.01 each


@dataclass(frozen=True)
class Quantity:
    """What a number in a scenario or on the command line may be, both ends included."""

    name: str
    unit: str
    lowest: float
    highest: float
    whole: bool = False
    why: str = ""

    def check(self, value: Any, where: str) -> float:
        """The value as a number; raises UsageError beginning with `where`."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"{where}: {value!r} is not a number")
        if isinstance(value, int) and value.bit_length() > 64:
            raise UsageError(f"{where}: a number of {len(f'{value:x}')} hexadecimal digits is"
                             " out of range")
        if not math.isfinite(value):
            raise UsageError(f"{where}: {value} is not a finite number")
        if self.whole and value != int(value):
            raise UsageError(f"{where}: {value:g} is not a whole number")
        if not self.lowest <= value <= self.highest:
            raise UsageError(f"{where}: {self.name} of {plain(value)}{self._unit()} is out of"
                             f" range; it can be {plain(self.lowest)} to"
                             f" {plain(self.highest)}{self._unit()}{self.why}")
        return int(value) if self.whole else float(value)

    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


QUANTITIES = {
    # Below 0.1 ms the guest's own processing outweighs the link.
    "rtt_ms": Quantity("an RTT", "ms", 0.1, 600_000),
    "bandwidth_kbps": Quantity("a bandwidth", "kbit/s", 1, 10_000_000),
    "initcwnd": Quantity("an initial window", "segments", 1, 65_535, whole=True),
    "initrwnd": Quantity("an initial receive window", "segments", 1, 65_535, whole=True),
    "response_bytes": Quantity("a response", "bytes", 1, 2**30, whole=True),
    "repeat": Quantity("a number of repeats", "", 1, 10_000, whole=True),
    "repeat_with_loss": Quantity("a number of repeats", "", 1, 10_000, whole=True),
    "queue_packets": Quantity("a queue", "packets", 1, 1_000_000, whole=True),
    "access_queue_packets": Quantity("a queue", "packets", 1, 1_000_000, whole=True),
    "loss_percent": Quantity("a loss rate", "%", 0, 99),
    "uplink": Quantity("an uplink", "kbit/s", 1, 10_000_000),
    "bdp_bytes": Quantity("a bandwidth-delay product", "bytes", 0.01, 1e12),
    "load": Quantity("an offered load", "", 0.001, 1, why=" (over 1 the queue only grows, and"
                     " no run is long enough)"),
    "queue_bdp": Quantity("a queue", "bandwidth-delay products", 0.001, 100,
                          why=" (a bottleneck without a buffer passes nothing on)"),
    "connections": Quantity("a number of connections at once", "", 1, 1000, whole=True),
    "clients": Quantity("a number of client hosts", "", 1, 250, whole=True),
    "servers": Quantity("a number of server hosts", "", 1, 250, whole=True),
    "duration_s": Quantity("a run", "s", 0.1, 86_400),
    "warmup_s": Quantity("a warm-up", "s", 0, 86_400),
    "cooldown_s": Quantity("a cool-down", "s", 0, 86_400),
    "share": Quantity("a share", "", 0.0001, 1),
    "shares_percent": Quantity("a share", "%", 0, 100),
}


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """A scenario's file: its text, and what stands in it. Raises UsageError."""
    file = f"scenarios/{path.name}"
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    except ValueError as error:  # also for a number of thousands of digits
        raise UsageError(f"{file}: {toml_fault(error, text)}") from error


def claim_line(text: str, file: str) -> str:
    """The first line of a scenario's file, a comment: its claim. Raises UsageError."""
    first = text.partition("\n")[0].strip()
    if not first.startswith("#") or not first.lstrip("# "):
        raise UsageError(f"{file}: line 1: has to be a comment, the claim in one sentence")
    return first.lstrip("# ")


def sysctls_of(raw: dict[str, Any], where: str, one_word: bool = False) -> dict[str, str]:
    """The sysctls table of a table; one_word: values without a space. Raises UsageError."""
    sysctls = table_of(raw, "sysctls", where)
    for key, value in sysctls.items():
        if not isinstance(value, str) or not re.fullmatch(r"net\.[\w.]+", key) \
                or one_word and not re.fullmatch(r"\S+", value):
            raise UsageError(f'{where}: [sysctls]: {key} = {value!r} is not of the form'
                             ' "net.ipv4.tcp_sack" = "0"')
    return sysctls


def file_name_of(table: dict[str, Any], where: str) -> str:
    """The name of a table, which becomes a part of file names. Raises UsageError."""
    name = text_of(table, "name", where)
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise UsageError(f"{where}: name becomes a file name: a-z, 0-9 and _ only")
    return name


def tables_of(raw: dict[str, Any], kind: str, key: str, known: Sequence[str],
              file: str) -> list[tuple[dict[str, Any], str]]:
    """The [[kind]] tables, each with the words that name it in a message."""
    tables = raw.get(kind, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(f"{file}: {kind} has to be tables, [[{kind}]]")
    named: list[tuple[dict[str, Any], str]] = []
    for number, table in enumerate(tables, start=1):
        where = f'{file}: [[{kind}]] {number}'
        if isinstance(table.get(key), str):
            where = f'{file}: [[{kind}]] "{table[key]}"'
        known_keys(table, known, where)
        if any(table.get(key) == other.get(key) for other, _ in named):
            raise UsageError(f"{where}: there are two of them")
        named.append((table, where))
    return named


def table_of(raw: dict[str, Any], key: str, file: str) -> dict[str, Any]:
    table = raw.get(key, {})
    if not isinstance(table, dict):
        raise UsageError(f"{file}: {key} has to be a table, [{key}]")
    return table


def known_keys(table: dict[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise UsageError(f"{where}: unknown key {key!r}{nearest(key, known)};"
                             f" known: {', '.join(known)}")


def value_of(table: dict[str, Any], key: str, where: str) -> Any:
    if key not in table:
        raise UsageError(f"{where}: {key} is missing")
    return table[key]


def text_of(table: dict[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = table.get(key, default) if default is not None else value_of(table, key, where)
    if not isinstance(value, str):
        raise UsageError(f"{where}: {key} has to be a string, it is {value!r}")
    return value


def one_of(value: Any, known: Sequence[str], where: str) -> str:
    if value not in known:
        raise UsageError(f"{where}: unknown {value!r}{nearest(str(value), known)};"
                         f" known: {', '.join(known)}")
    return str(value)


def number_of(table: dict[str, Any], key: str, where: str) -> Any:
    return QUANTITIES[key].check(value_of(table, key, where), f"{where}: {key}")


def numbers_of(table: dict[str, Any], key: str, where: str) -> tuple[Any, ...]:
    return checked_numbers(value_of(table, key, where), key, f"{where}: {key}")


def checked_numbers(values: Any, quantity: str, where: str) -> tuple[Any, ...]:
    if not isinstance(values, list) or not values:
        raise UsageError(f"{where}: has to be a list of numbers, it is {values!r}")
    checked = tuple(QUANTITIES[quantity].check(value, where) for value in values)
    if len(set(checked)) != len(checked):
        raise UsageError(f"{where}: has a value twice")
    return checked


def congestion_control_name(value: Any, where: str) -> str:
    # TCP_CA_NAME_MAX is 16 with the final zero; which names exist, the kernel knows.
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9_]{1,15}", value):
        raise UsageError(f"{where}: congestion_control: {value!r} is no name of an algorithm")
    return value


# Words of messages ------------------------------------------------------------

def nearest(word: str, known: Iterable[str]) -> str:
    """" (did you mean …?)" where a known word is near, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def plain(value: float) -> str:
    """A number as people write it: no exponent, no trailing zeros."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.10g}"


def toml_fault(error: Exception, text: str) -> str:
    """What is wrong in a TOML file, with the line in front."""
    message = str(error)
    if "at end of document" in message:
        return f"line {text.count(chr(10)) + 1}: {message.partition(' (at')[0]} (end of file)"
    match = re.search(r" \(at line (\d+), column (\d+)\)", message)
    if match is None:
        return message
    return (f"line {match[1]}: {message.replace(match[0], '')}"
            f" (column {match[2]})")
