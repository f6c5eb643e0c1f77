"""Judges what side_by_side.py observed, and writes the table."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# By how many percent of the stock kernel's median a measure may differ; fixed before anything was
# measured.
TOLERANCES = {"throughput, Mbit/s": 5.0, "time, s": 5.0, "RTT, ms": 2.0, "lost, %": 20.0,
              "retransmitted": 20.0, "cwnd, segments": 10.0, "receive window, kB": 10.0}
# These count only where a rate is set and the stock kernel's processor is less busy than this.
RATES = ("throughput, Mbit/s", "time, s")
MOST_BUSY_PERCENT = 50.0
# The measures by the names that scripts print.
PRINTED = {"throughput_mbit": "throughput, Mbit/s", "time_s": "time, s", "rtt_ms": "RTT, ms",
           "loaded_rtt_ms": "RTT, ms", "lost_percent": "lost, %"}
# The measures that are windows: the place in what observe.py writes on a round trip, and the scale.
WINDOWS = {"cwnd, segments": (1, 1.0), "receive window, kB": (2, 1e-3)}
# Windows are compared in each of the first round trips, at most this many, before the first loss.
MOST_ROUNDS = 16


@dataclass(frozen=True)
class Case:
    """A case of cases.toml: a script in sh or in Python."""

    name: str
    about: str
    sh: str = ""
    python: str = ""
    rate_mbit: float = 0.0  # the rate that the script sets; 0: none
    causes: Mapping[str, str] = field(default_factory=dict)  # of differences, by measure


@dataclass(frozen=True)
class Compared:
    """One measure of a case, as medians of its runs."""

    measure: str
    virtual: float
    stock: float
    real: float | None  # in QEMU's real time
    beyond: bool  # virtual and stock are out of tolerance
    differs: bool  # they are, and no run of one side is among those of the other
    at: int | None = None  # the round trip of a window

    def shown(self) -> str:
        """The text of its cell in the table."""
        text = f"{digits(self.virtual)} / {digits(self.stock)}"
        if self.real is not None:
            text += f" ({digits(self.real)})"
        if self.at is not None:
            text += f" at {self.at}"
        return f"**{text}**" if self.differs else f"*{text}*" if self.beyond else text


@dataclass(frozen=True)
class Row:
    """A case, and its compared measures."""

    case: Case
    compared: tuple[Compared, ...]

    def differences(self) -> list[Compared]:
        """The measures that differ."""
        return [each for each in self.compared if each.differs]

    def unexplained(self) -> list[str]:
        """The names of the measures that differ without a cause."""
        return [each.measure for each in self.differences()
                if each.measure not in self.case.causes]


Observed = Mapping[str, Any]  # what observe.py wrote about one run


def numbers_of(run: Observed) -> dict[str, float]:
    """The numbers that one run printed, and how many segments its connections retransmitted."""
    found = {PRINTED[name]: float(number) for name, number in
             re.findall(r"^= (\w+) ([\d.]+)$", run["output"], re.MULTILINE) if name in PRINTED}
    if run["connections"]:
        found["retransmitted"] = float(sum(each["retransmissions"]
                                           for each in run["connections"]))
    return found


def rounds_of(run: Observed, place: int, until_s: float) -> list[float]:
    """A window at each round trip before until_s, by its place in a round.

    The connection is the one to the lowest port; of several, the one that began first.
    """
    first = min(run["connections"], key=lambda each: (each.get("to", 0), float(each["begin_s"])))
    return [float(each[place]) for each in first["rounds"] if each[0] < until_s][:MOST_ROUNDS]


def is_beyond(measure: str, virtual: Sequence[float], stock: Sequence[float]) -> bool:
    """Whether the medians are out of tolerance."""
    middle = statistics.median(stock)
    return abs(statistics.median(virtual) - middle) * 100 > TOLERANCES[measure] * abs(middle)


def are_apart(virtual: Sequence[float], stock: Sequence[float]) -> bool:
    """Whether the ranges of the two sides' runs do not overlap."""
    return max(virtual) < min(stock) or max(stock) < min(virtual)


def compare_windows(measure: str, virtual: Sequence[Observed], stock: Sequence[Observed],
                    real: Sequence[Observed]) -> Compared | None:
    """The round trip at which a window differs most; None where no connection has one."""
    place, scale = WINDOWS[measure]
    if not all(run["connections"] for run in (*virtual, *stock)):
        return None
    losses = [float(each["first_loss_s"]) for run in (*virtual, *stock)
              for each in run["connections"] if each["first_loss_s"] is not None]
    sides = [[rounds_of(run, place, min(losses, default=float("inf"))) for run in runs]
             for runs in (virtual, stock, [run for run in real if run["connections"]])]
    best: Compared | None = None
    for at in range(min(map(len, [*sides[0], *sides[1]]))):
        ours, theirs, timed = ([each[at] * scale for each in side if at < len(each)]
                               for side in sides)
        beyond = is_beyond(measure, ours, theirs)
        found = Compared(measure, statistics.median(ours), statistics.median(theirs),
                         statistics.median(timed) if timed else None, beyond,
                         beyond and are_apart(ours, [*theirs, *timed]), at + 1)
        if best is None or (found.differs, apart(found)) > (best.differs, apart(best)):
            best = found
    return best


def apart(compared: Compared) -> float:
    """How far virtual time is from the stock kernel, as a share."""
    return abs(compared.virtual / compared.stock - 1) if compared.stock else 0.0


def judged(case: Case, virtual: Sequence[Observed], counted: Sequence[Observed],
           real: Sequence[Observed]) -> Row:
    """Compare a case with the stock kernel by counted instructions, or else in real time."""
    stock = counted or real
    if not virtual or not stock:
        return Row(case, ())
    busy = [run["busy_percent"] for run in stock if run["busy_percent"] is not None]
    made = []
    sides = [[numbers_of(run) for run in runs] for runs in (virtual, stock, real)]
    for measure in TOLERANCES:
        if measure in WINDOWS:
            if window := compare_windows(measure, virtual, stock, real):
                made.append(window)
            continue
        ours, theirs, timed = ([run[measure] for run in side if measure in run] for side in sides)
        if not ours or not theirs:
            continue
        counts = measure not in RATES or (
            case.rate_mbit > 0 and max(busy, default=0.0) < MOST_BUSY_PERCENT)
        beyond = counts and is_beyond(measure, ours, theirs)
        made.append(Compared(measure, statistics.median(ours), statistics.median(theirs),
                             statistics.median(timed) if timed else None, beyond,
                             beyond and are_apart(ours, theirs)))
    return Row(case, tuple(made))


def digits(value: float) -> str:
    """A number with three digits, or without decimals."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def document(rows: Sequence[Row], causes: Mapping[str, str], head: str) -> str:
    """The page as Markdown; head is the text above the table."""
    columns = list(TOLERANCES)
    lines = [head, f"| case | {' | '.join(columns)} | cause |", f"|---|{'---|' * len(columns)}---|"]
    for row in rows:
        shown = {each.measure: each.shown() for each in row.compared}
        names = dict.fromkeys(row.case.causes.get(each.measure, "**not known**")
                              for each in row.differences())
        if any(each.beyond and not each.differs for each in row.compared):
            names["*spread*"] = None
        cells = [f"`{row.case.name}`: {row.case.about}",
                 *(shown.get(column, "") for column in columns), ", ".join(names)]
        lines.append(f"| {' | '.join(cells)} |")
    used = {row.case.causes[each.measure] for row in rows for each in row.differences()
            if each.measure in row.case.causes}
    if used:
        lines += ["", "## Causes", "",
                  *(f"- **{name}**: {text}" for name, text in causes.items() if name in used)]
    return "\n".join(lines)
