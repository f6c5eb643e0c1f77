"""How far numbers of several runs of one command lie apart, and whether they have two states."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from firstflight.base.words import visible_line

# A number that stands alone. What is skipped: addresses, versions, names such as s1-eth2.
_NUMBER = re.compile(
    r"\d+(?:\.\d+){2,}(?::\d+)?|(?:[0-9a-fA-F]{0,4}:){2,}[0-9a-fA-F]{0,4}"
    r"|[A-Za-z_][\w-]*\d[\w-]*|(?:port|pid|PID)[ =]+\d+"
    r"|(?P<number>(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?!\d)")
# What follows a number and changes with its size: iperf's KBytes, Mbits/sec.
_PREFIX = re.compile(r"\s*([KMGT])(?=(?:[Bb]ytes?|[Bb]its?|Bps|bps|B/s|b/s)\b)")
_BITS = re.compile(r"[Bb]it|b")
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}
LEAST_RUNS = 8  # for two states
LEAST_SHARE = 0.15  # of the runs, for a state
LEAST_STEP = 0.2  # between two states, of the upper one
LEAST_COUNT = 5  # between two states that are counts
MOST_ROWS = 30  # of printed lines in the table; the JSON has all
# In the line that names a row: THIS stands for the row's own number, OTHER for each other number
# of the line that differs between runs.
THIS, OTHER = "_", "#"


@dataclass(frozen=True)
class State:
    """One of two groups of values. share: of the runs, from 0 to 1."""

    least: float
    largest: float
    count: int
    share: float


@dataclass(frozen=True)
class Row:
    """A number that several runs have."""

    name: str
    # Its value in each run; None where a run has none.
    values: tuple[float | None, ...]
    # "" for a number that a command prints.
    unit: str = ""

    @property
    def present(self) -> list[float]:
        """The values of the runs that have one."""
        return [value for value in self.values if value is not None]

    @property
    def median(self) -> float:
        return statistics.median(self.present)

    @property
    def is_varied(self) -> bool:
        """Whether its values differ as they are printed, or a run has none."""
        present = self.present
        return len(present) < len(self.values) or short(min(present)) != short(max(present))

    @property
    def states(self) -> tuple[State, ...]:
        return two_states(self.present)


# Two states --------------------------------------------------------------------------

def two_states(values: Sequence[float]) -> tuple[State, ...]:
    """The lower and the upper state of a sample that has two; () where it has not.

    The gap test: the sorted values are cut in two where the gap between neighbours is the largest,
    compared with the range of the wider part. The sample has two states if that ratio is at least
    max(0.8, 24 / n), each part has LEAST_SHARE of the runs and at least two, and the gap is at
    least LEAST_STEP of the upper part's least value (of counts also LEAST_COUNT).

    The values and their logarithms both have to pass: by the logarithms alone, the low tail of one
    state would be a state, and by the values alone its high tail. In the logarithms, smaller values
    count as a hundredth of the largest. Of 40,000 samples of each of ten unimodal distributions
    (uniform, normal, exponential, lognormal, triangular, Student's t, Poisson), of 8 to 50 runs,
    at most 4 in 1000 pass.
    """
    count = len(values)
    if count < LEAST_RUNS or min(values) < 0:
        return ()

    ordered = sorted(values)
    logarithms = [math.log(max(value, 0.01 * ordered[-1], 1e-300)) for value in ordered]
    least = max(2, math.ceil(LEAST_SHARE * count))
    ratios = {}
    for cut in range(least, count - least + 1):
        if _is_step(ordered[cut - 1], ordered[cut], ordered):
            ratios[cut] = min(_gap_ratio(ordered, cut), _gap_ratio(logarithms, cut))

    cut = max(ratios, key=lambda place: ratios[place], default=0)
    if not cut or ratios[cut] < max(0.8, 24 / count):
        return ()
    return tuple(State(part[0], part[-1], len(part), len(part) / count)
                 for part in (ordered[:cut], ordered[cut:]))


def _gap_ratio(ordered: Sequence[float], cut: int) -> float:
    """The gap at a place over the larger range of the two parts."""
    gap = ordered[cut] - ordered[cut - 1]
    widest = max(ordered[cut - 1] - ordered[0], ordered[-1] - ordered[cut])
    return gap / widest if widest else math.inf


def _is_step(below: float, above: float, values: Sequence[float]) -> bool:
    """Whether two neighbours are so far apart that they may belong to two states."""
    are_counts = all(value.is_integer() for value in map(float, values))
    return above - below >= max(LEAST_STEP * above, LEAST_COUNT if are_counts else 0.0)


# Numbers of lines --------------------------------------------------------------------

@dataclass(frozen=True)
class Printed:
    """A number of a line, as text and as value.

    prefix: of its unit, "" or K, M, G, T with its space; scale: what that multiplies by.
    """

    text: str
    value: float
    prefix: str = ""
    scale: int = 1


def numbers_of(line: str) -> tuple[str, list[Printed]]:
    """A line with {} for each of its numbers, and the numbers. Spaces in a row become one.

    A unit's prefix belongs to the number: "1.5 KBytes" and "2 MBytes" agree but for it.
    """
    line = " ".join(line.split()).replace("{", "(").replace("}", ")")
    pieces, numbers, end = [], [], 0
    for match in _NUMBER.finditer(line):
        if match["number"] is None:
            continue
        pieces += [line[end:match.start()], "{}"]
        end = match.end()
        prefix, scale = "", 1
        if unit := _PREFIX.match(line, end):
            prefix, end = unit[0], unit.end()
            scale = (1000 if _BITS.match(line, end) else 1024) ** _POWERS[unit[1]]
        numbers.append(Printed(match["number"], float(match["number"]), prefix, scale))
    return "".join([*pieces, line[end:]]), numbers


def line_rows(runs: Sequence[Sequence[str]]) -> list[Row]:
    """A row for each number that differs between lines which agree otherwise.

    runs: the lines that each run printed. The first line of a form in a run belongs with the first
    one of that form in the others, and so on. Rows of forms that come seldom are first.
    """
    found: dict[tuple[str, int], dict[int, list[Printed]]] = {}
    counts: Counter[str] = Counter()
    for run, lines in enumerate(runs):
        seen: Counter[str] = Counter()
        for line in lines:
            form, numbers = numbers_of(line)
            if numbers:
                found.setdefault((form, seen[form]), {})[run] = numbers
                seen[form] += 1
        counts |= seen
    places = sorted(found, key=lambda key: counts[key[0]])  # stable: in order of their lines
    return list(chain.from_iterable(
        _rows_of(form, found[form, place], len(runs)) for form, place in places))


def _rows_of(form: str, by_run: Mapping[int, Sequence[Printed]], runs: int) -> Iterator[Row]:
    """The numbers of a line that differ. What has one prefix in all runs keeps it."""
    if len(by_run) < 2:
        return
    columns = [*zip(*by_run.values())]
    prefixes = []
    varying = []
    for place, column in enumerate(columns):
        common = len({number.prefix for number in column}) == 1
        prefixes.append(column[0].prefix if common else "")
        if len({number.value * number.scale for number in column}) > 1:
            varying.append(place)

    for place in varying:
        words = [column[0].text for column in columns]
        for other in varying:
            words[other] = OTHER
        words[place] = THIS
        words = [word + prefix for word, prefix in zip(words, prefixes)]
        scaled = {run: number.value * (1 if prefixes[place] else number.scale)
                  for run, number in zip(by_run, columns[place])}
        yield Row(form.format(*words), tuple(map(scaled.get, range(runs))))


# The table ---------------------------------------------------------------------------

def short(number: float) -> str:
    """Four digits, of large numbers with a prefix of a thousand."""
    for size, prefix in ((1e9, "G"), (1e6, "M")):
        if abs(number) >= size:
            return f"{number / size:.4g}{prefix}"
    return f"{number:.4g}" if abs(number) < 1000 else f"{number:.0f}"


def state_words(states: Sequence[State]) -> str:
    """Such as "two states: 16.1–20.8 in 67 % (8 runs), 65–90.2 in 33 % (4 runs)"."""
    return "two states: " + ", ".join(
        f"{short(state.least)}–{short(state.largest)} in {state.share:.0%}"
        f" ({state.count} runs)".replace("%", " %") for state in states)


def lines_of(row: Row) -> Iterator[str]:
    """A row of the table: its name, then median, range and each value."""
    unit = f" {row.unit}" if row.unit else ""
    present = row.present
    yield visible_line(row.name)
    values = " ".join("–" if value is None else short(value) for value in row.values)
    yield (f"    median {short(row.median)}{unit}, range {short(min(present))}–"
           f"{short(max(present))}; each: {values}")
    if states := row.states:
        yield f"    {state_words(states)}"


def table(connections: Sequence[Row], printed: Sequence[Row], runs: int) -> str:
    """What is printed: connections, then lines that agree but for numbers."""
    lines = []
    for title, rows in (("TCP connections", connections), ("printed numbers", printed)):
        varying = [row for row in rows if row.is_varied]
        shown = varying[:MOST_ROWS]

        if not rows:
            lines.append(f"{title}: none that differ" if rows is printed else f"{title}: none")
        elif not varying:
            lines.append(f"{title}: {len(rows)}, the same in all runs")
        else:
            if rows is printed:
                title += f" ({THIS} is the number, {OTHER} others that differ)"
            lines += [title, *chain.from_iterable(map(lines_of, shown))]
            if len(varying) > len(shown):
                lines.append(f"    {len(varying) - len(shown)} more; the JSON has all")
        lines.append("")

    if runs < LEAST_RUNS:
        lines.append(f"Two states are looked for in {LEAST_RUNS} runs and more.")
    return "\n".join(lines).rstrip() + "\n"


def as_json(rows: Iterable[Row]) -> list[dict[str, object]]:
    """Each row with its values, median, range and states."""
    values: list[dict[str, object]] = []
    for row in rows:
        states = [vars(state) for state in row.states]
        values.append({"name": row.name, "unit": row.unit, "median": row.median,
                       "range": [min(row.present), max(row.present)], "each": list(row.values),
                       "states": states})
    return values
