"""Values as people type them on a command line: "50ms", "10Mbit", "100kB", "1%", "10..40:10".

Each value is read in the unit of its quantity (findings/quantities.py), which is also the unit of
a plain number. k and M are powers of 1000, Ki and Mi of 1024.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from firstflight.base.words import plain

_DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_TIME_MS = {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "msec": 1.0, "s": 1e3, "sec": 1e3, "min": 6e4,
            "h": 3.6e6}
# For each unit of a quantity: the suffixes that may be typed, in lower case, and the factor from
# each to that unit.
SUFFIXES: Mapping[str, Mapping[str, float]] = {
    "ms": _TIME_MS,
    "s": {"m": 60.0, **{suffix: factor / 1e3 for suffix, factor in _TIME_MS.items()}},
    "kbit/s": {f"{prefix}{unit}": factor / 1e3 for prefix, factor in _DECIMAL.items()
               for unit in ("bit", "bps", "bit/s", "bits/s", "b/s", "")} | {"": 1.0},
    "bytes": {f"{prefix}{unit}": factor for prefix, factor in
              {**_DECIMAL, "ki": 2.0 ** 10, "mi": 2.0 ** 20, "gi": 2.0 ** 30}.items()
              for unit in ("", "b", "byte", "bytes")},
    "%": {"%": 1.0, "percent": 1.0},
    "segments": {"segment": 1.0, "segments": 1.0},
    "packets": {"packet": 1.0, "packets": 1.0, "p": 1.0, "pkts": 1.0}}
EXAMPLES = {"ms": "50, 50ms or 1.5s", "s": "10 or 10s", "kbit/s": "10000, 10M or 1Gbit",
            "bytes": "30000, 100kB or 1MB", "%": "1 or 1%", "segments": "10",
            "packets": "100"}
MOST_VALUES = 200  # of one range
MOST = 1e18  # larger than every quantity may be, and than a float holds exactly

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_VALUE = re.compile(rf"\s*({_NUMBER})\s*([a-zµ/%]*)\s*", re.IGNORECASE)
# Two dots, or one dash or colon between numbers, as in "10..40", "10-40" and "10..40:10".
_RANGE = re.compile(r"\s*(\d[^-:]*?)\s*(?:\.\.|-)\s*(\d[^-:]*?)\s*(?::\s*(-?\d[^:]*?))?\s*")
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})*,000(,\d{3})*")  # such as 10,000
# Two whole numbers with a comma, of which only the second may have a unit. They may be two values,
# or one number with a decimal comma.
_TWO = re.compile(r"\s*(\d+),(\d+)\s*([a-zµ/%]*)\s*", re.IGNORECASE)
# A number with three decimals that end in 0. Nobody types such a fraction, and many languages write
# thousands like that.
_POINT = re.compile(r"([1-9]\d{0,2})\.(\d{2}0)([a-zµ/%]*)", re.IGNORECASE)
# The speed of a modem. A smaller number without a unit may be meant in Mbit/s.
_LEAST_PLAIN_KBPS = 56
SEGMENT_BYTES = 1448  # of data in a segment of 1500 bytes at IP, with TCP's time stamps


def number(word: str, unit: str) -> float:
    """The number that a word has in this unit. Raises ValueError, which says what is wrong."""
    example = f"; write {EXAMPLES[unit]}" if unit in EXAMPLES else ""
    match = _VALUE.fullmatch(word)
    if match is None:
        raise ValueError(f"{word.strip()!r} is not a number{example}")

    value, suffix = float(match[1]), match[2]
    if abs(value) > MOST:
        raise ValueError(f"{word.strip()[:20]}… is out of any range")

    if unit == "kbit/s" and re.search(r"B(/s|ps|yte.*)?$", suffix):
        raise ValueError(_bandwidth_in_bytes(word.strip(), value, suffix))

    if unit == "segments" and (size := SUFFIXES["bytes"].get(suffix.lower() or "-")):
        count = max(1, int(value * size // SEGMENT_BYTES))
        raise ValueError(f"{word.strip()!r} is in bytes, and a window is in segments of"
                         f" {SEGMENT_BYTES} bytes: write {count}")

    factors = SUFFIXES.get(unit, {})
    factor = 1.0 if not suffix else factors.get(suffix.lower())
    if factor is None:
        raise ValueError(f"{word.strip()!r}: {suffix!r} is not a unit of"
                         f" {f'a value in {unit}' if unit else 'a plain number'}{example}")

    # A product of binary fractions has more digits than were typed: 12 are enough.
    return value if factor == 1.0 else float(f"{value * factor:.12g}")


def _bandwidth_in_bytes(word: str, value: float, suffix: str) -> str:
    """The message for a bandwidth in bytes: how to write it in bits, or without its B."""
    prefix = suffix[0].lower() if suffix[0].lower() in _DECIMAL else ""
    bits = f"{plain(value)}{prefix.upper()}"
    return (f"{word!r} is in bytes, and a bandwidth is in bits: write {plain(8 * value)}"
            f"{prefix.upper()} for bytes a second, or {bits} if bits were meant")


def typed_number(value: float, unit: str) -> str:
    """How to type a value so that it is not taken for one in another unit; number() reads it."""
    needs_unit = unit == "kbit/s" and 0 < value < _LEAST_PLAIN_KBPS
    return f"{plain(value)}{'k' if needs_unit else ''}"


def expand_range(words: str, unit: str, whole: bool) -> Iterator[str]:
    """The values of a list as words: split at its commas, with its ranges written out.

    Raises ValueError, as number() does.
    """
    parts = [part.strip() for part in words.split(",")]
    _refuse_slips(words, parts)
    _ask_about_comma(words.strip(), unit, whole)
    _ask_about_units(parts, unit)

    for part in parts:
        match = _RANGE.fullmatch(part)
        if match is None or _VALUE.fullmatch(part):  # 1e-3 is one number
            _ask_about_point(part, unit)
            _ask_about_unit(part, unit)
            yield part
            continue

        low, high = number(match[1], unit), number(match[2], unit)
        step = number(match[3], unit) if match[3] else None
        yield from _range(part, low, high, step, whole)


def _refuse_slips(words: str, parts: Sequence[str]) -> None:
    """Refuse a list with commas or spaces in the wrong places, or with a value twice.

    parts: the words between its commas. Raises ValueError.
    """
    if _THOUSANDS.fullmatch(words.strip()):
        one_number = words.strip().replace(",", "")
        raise ValueError(f"{words!r}: a comma separates values; write {one_number} for one number")

    several = words.split()
    if len(several) > 1 and all(map(_VALUE.fullmatch, several)):
        raise ValueError(f"{words!r} has spaces between its values; write {','.join(several)}")

    typed = [part for part in parts if part]
    if typed and len(typed) < len(parts):
        raise ValueError(f"{words!r} has a comma without a value; write {','.join(typed)}")

    twice = next((part for part in typed if typed.count(part) > 1), "")
    if twice:
        raise ValueError(f"{words.strip()!r} has {twice} twice, and each value is measured once;"
                         " --repeat N measures all of them again")


def _ask_about_comma(words: str, unit: str, whole: bool) -> None:
    """Refuse two values that may be one number with a decimal comma. Raises ValueError.

    Examples are 1,5s (only the second has a unit), 0,5 (a zero, then one digit) and 1,25 in
    percent. If both have a unit they are two values. Two percentages are if the second ends in 0.
    """
    match = _TWO.fullmatch(words)
    if match is None:
        return
    first, second, suffix = match.groups()
    factor = SUFFIXES.get(unit, {}).get(suffix.lower(), 1.0)
    has_one_unit = suffix and (factor != 1 or len(first + second) == 2)
    is_fraction = not whole and first == "0" and len(second) == 1
    is_percentage = unit == "%" and len(second) <= 2 and not second.endswith("0")
    if has_one_unit or is_fraction or is_percentage:
        unit_as_typed = suffix or (unit if unit in SUFFIXES.get(unit, {}) else "")
        raise ValueError(f"{words!r}: two values, or a decimal comma? Write"
                         f" {first}{unit_as_typed},{second}{unit_as_typed} for two, or"
                         f" {first}.{second}{unit_as_typed} for one")


def _ask_about_units(parts: Sequence[str], unit: str) -> None:
    """Refuse a list such as 10M,20, in which only some values have a larger unit.

    0 needs no unit. Raises ValueError.
    """
    factors = SUFFIXES.get(unit, {})
    with_larger_unit, without_unit = [], []
    for match in filter(None, map(_VALUE.fullmatch, parts)):
        number_typed, suffix = match.groups()
        if suffix and factors.get(suffix.lower(), 1.0) != 1:
            with_larger_unit.append(suffix)
        elif not suffix and float(number_typed):
            without_unit.append(number_typed)

    if with_larger_unit and without_unit:
        bare, larger = without_unit[0], with_larger_unit[0]
        plain_unit = {"kbit/s": "k", "bytes": "B"}.get(unit, unit)
        raise ValueError(f"{','.join(parts)!r}: {bare} has no unit, and others have: write"
                         f" {bare}{larger} or {bare}{plain_unit}")


def _ask_about_point(word: str, unit: str) -> None:
    """Refuse a number such as 30.000, unless it has a larger unit. Raises ValueError."""
    match = _POINT.fullmatch(word)
    if match is None or SUFFIXES.get(unit, {}).get(match[3].lower(), 1.0) != 1:
        return
    digits, decimals, suffix = match.groups()
    raise ValueError(f"{word!r}: thousands, or a decimal point? Write {digits}{decimals}{suffix} or"
                     f" {plain(float(word.removesuffix(suffix)))}{suffix}")


def _ask_about_unit(word: str, unit: str) -> None:
    """Refuse a number without a unit that may be meant in another unit. Raises ValueError.

    14600 are the bytes of 10 segments, and other tools write a loss of 1 % as 0.01.
    """
    try:
        value = float(word)
    except ValueError:  # it has a unit
        return
    # The data of a full segment, without and with time stamps.
    is_in_bytes = value >= 1448 and (value % 1460 == 0 or value % 1448 == 0)
    if unit == "segments" and is_in_bytes and value < 65_536:
        size = 1448 if value % 1460 else 1460
        raise ValueError(f"{word} segments, or bytes? {plain(value // size)} segments of {size}"
                         f" bytes are {word}: write {plain(value // size)}, or '{word} segments'")
    if unit == "kbit/s" and 0 < value < _LEAST_PLAIN_KBPS:
        raise ValueError(f"{word} kbit/s, or Mbit/s? Write {word}k or {word}M")
    if unit == "%" and 0 < value < 0.1:
        raise ValueError(f"{word} in percent, or as a part of 1? Write {word}% or"
                         f" {plain(float(f'{value * 100:.12g}'))}%")


def _range(word: str, low: float, high: float, step: float | None, whole: bool) -> Iterator[str]:
    """Yield the values of a range. word: the range as it was typed. Raises ValueError."""
    if high < low or (step is not None and step < 0):
        low, high = min(low, high), max(low, high)
        upward_step = abs(step) if step else (high - low) / 4
        step_words = "" if whole and not step else f":{plain(upward_step)}"
        raise ValueError(f"{word!r} runs downwards; write {plain(low)}..{plain(high)}{step_words}")

    if step is None and not whole:
        quarter = (high - low) / 4 or 1
        raise ValueError(f"{word!r} needs a step, such as {plain(low)}..{plain(high)}"
                         f":{plain(quarter)}")
    if step == 0:
        raise ValueError(f"{word!r} has a step of 0")

    step = step or 1.0
    count = int((high - low) / step + 1e-9) + 1
    if count > MOST_VALUES:
        tenth = (high - low) / 10
        raise ValueError(f"{word!r} is {count} values, more than {MOST_VALUES}; give a step, such"
                         f" as {plain(low)}..{plain(high)}:{plain(tenth)}")

    for place in range(count):
        yield plain(low + place * step)
