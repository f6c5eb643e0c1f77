"""Findings: what a run shows, as values. They are computed once, and rendered in several forms.

A Report is all that a run shows. It has a Finding for each figure: tables whose cells are values,
statements with what was measured, and a chart. findings/render makes text and pages of a report,
and findings/drawing draws its charts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

from firstflight.base.stats import Estimate
from firstflight.findings.charts import Chart, PacketsChart, Timeline
from firstflight.findings.claims import OUTCOMES, in_full


@dataclass(frozen=True)
class Interval:
    """A cell: the two ends of a 95 % interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Rounded:
    """A cell with its own number of decimals, where that of its column does not fit."""

    value: float | Estimate
    digits: int  # decimals
    signed: bool = False  # whether a number above zero begins with a plus


# A Rounded cell has its own format, and any other that of its column. None is an unknown value, and
# "" stands where a value makes no sense.
Cell = str | int | float | Estimate | Interval | Rounded | None


REQUESTED = "requested"  # the group of columns that were not measured but requested


@dataclass(frozen=True)
class Column:
    """One column of a table: its head, and how its cells are written."""

    name: str
    unit: str = ""
    group: str = ""  # the heading above the column and its neighbours of the same group
    digits: int = 1  # decimals of its numbers
    signed: bool = False  # whether its numbers above zero begin with a plus
    # Where a terminal is too narrow, the columns with the lowest rank are left out first. Columns
    # with the highest rank of the table always stay.
    rank: int = 9
    is_text: bool = False  # aligned left
    is_filter: bool = False  # whether the page offers to show only rows with one of its values
    is_outcome: bool = False  # whether its cells are outcomes of findings.claims


@dataclass(frozen=True)
class Table:
    """Columns and rows of cells."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    hidden_rows: int = 0  # how many rows the table has besides `rows`
    wraps: bool = False  # whether heads and cells of the first column may take several lines
    # How `rows` were chosen, such as "with the largest change"; "" where they are the first ones.
    picked: str = ""

    def without_empty(self, unknown: bool = True) -> Table:
        """The table without the columns that are empty in all rows.

        unknown: whether unknown cells (None) count as empty.
        """
        empty = ("", None) if unknown else ("",)
        is_filled = [False] * len(self.columns)
        for row in self.rows:
            for place, cell in enumerate(row):
                is_filled[place] |= cell not in empty

        rows = tuple(tuple(compress(row, is_filled)) for row in self.rows)
        return replace(self, columns=tuple(compress(self.columns, is_filled)), rows=rows)

    def first(self, most: int) -> Table:
        """The table with at most this many rows, the first ones; the others count as hidden."""
        return replace(self, rows=self.rows[:most],
                       hidden_rows=self.hidden_rows + max(0, len(self.rows) - most))

    def column(self, name: str, group: str = "") -> list[Cell]:
        """The cells of a column. Raises KeyError where there is none."""
        for place, column in enumerate(self.columns):
            if (column.name, column.group) == (name, group):
                return [row[place] for row in self.rows]
        raise KeyError(name)


@dataclass(frozen=True)
class Statement:
    """A sentence of a source with what was measured, or a question with its answer."""

    text: str  # the sentence, or the question
    measured: str  # what was measured about the sentence, or the answer
    outcome: str = ""  # one of OUTCOMES of findings.claims; "" for a question
    numbers: tuple[Rounded, ...] = ()  # the numbers of `measured` that a text may quote


@dataclass(frozen=True)
class Answer:
    """What a reader wants first: one sentence, a table of some 20 rows at most, and the reasons."""

    sentence: str = ""  # "" for a run whose answer are its first statements
    table: Table | None = None
    notes: tuple[str, ...] = ()  # the reasons, each in sentences
    command: str = ""  # what the reader may type next, a line for each command; "" for nothing
    values: Mapping[str, object] = field(default_factory=dict)  # for --export: JSON values by name


@dataclass(frozen=True)
class Finding:
    """One figure with its tables and statements."""

    name: str  # a part of the figure's path, figures/<scenario>_<name>.png
    title: str
    tables: tuple[Table, ...] = ()
    statements: tuple[Statement, ...] = ()
    # What the figure shows, with numbers; also the text for readers who cannot see the figure.
    sentence: str = ""
    missing: str = ""  # why there is no figure; "" where there is one
    bars: Mapping[str, int] = field(default_factory=dict)  # how many have each outcome
    chart: Chart | None = None
    published: str = ""  # where the published values are from
    held_out: bool = False  # whether no parameter was chosen by the published values
    answer: Answer | None = None  # of the whole run, if this finding answers its question


@dataclass(frozen=True)
class Tile:
    """A number at the top of the page, and its meaning."""

    value: str
    meaning: str


@dataclass(frozen=True)
class Fact:
    """One line of a run's provenance."""

    name: str
    value: str


@dataclass(frozen=True)
class Report:
    """All that a run shows."""

    name: str  # of the scenario
    title: str
    claim: str
    source: str
    path: str  # of the run's folder, relative to the results folder
    facts: Mapping[str, object]  # the content of run.json
    verified: int  # how many trials count
    count: int  # how many trials there are
    findings: tuple[Finding, ...]
    summary: tuple[str, ...] = ()  # lines above all tables
    tiles: tuple[Tile, ...] = ()
    sentences: tuple[str, ...] = ()  # the results in words, the most important first
    trials: Table | None = None  # of every trial or cell
    checks: Table | None = None  # each check, with how many trials it judged
    failures: Table | None = None  # the trials that do not count, with the reasons
    causes: Table | None = None  # why data was retransmitted
    settings: Table | None = None  # of sysctls
    timelines: tuple[Timeline, ...] = ()  # of the trials whose captures were kept
    provenance: tuple[Fact, ...] = ()
    # Two texts of the scenario's file; both are "" for a run of a part of the scenario.
    about: str = ""  # what the scenario measures and should reproduce
    opening: str = ""  # what came out, with quotes of numbers (findings/render/values.py)
    answer: Answer = Answer()
    alarms: tuple[str, ...] = ()  # what a reader must not miss; the page shows it in red
    files: tuple[str, ...] = ("trials.csv", "run.json")  # next to the page

    @property
    def packets(self) -> PacketsChart | None:
        """The chart ON_THE_WIRE: the packets of all timelines.

        None without a timeline, or where a finding has such a chart already.
        """
        if not self.timelines or any(isinstance(finding.chart, PacketsChart)
                                     for finding in self.findings):
            return None
        return PacketsChart("Packets at the server", (), timelines=self.timelines,
                            y_label="kB of the data")

    @property
    def caption(self) -> str:
        """How the run behind a figure was measured: number of trials, kernel, engine and date.

        "" where nothing was measured.
        """
        if not self.count:
            return ""

        extent = "part of a run" if self.facts.get("partial") else "whole run"
        verified = "all" if self.verified == self.count else str(self.verified)
        trials = f"{extent}: n = {self.count} trials, {verified} verified"

        kernel = f"Linux {self.kernel}" if self.kernel else ""
        engines = {"uml": "in virtual time", "host": "on this machine"}
        engine = engines.get(str(self.facts.get("engine")), "")
        measured_on = " ".join(filter(None, (kernel, engine)))

        time = str(self.facts.get("finished_at") or self.facts.get("started_at") or "")
        date = time[:len("2026-11-29")]
        return " · ".join(filter(None, (trials, measured_on, date)))

    @property
    def kernel(self) -> str:
        """Release of the kernel that was measured, "" where run.json lacks it."""
        return kernel_of(self.facts)


def kernel_of(facts: Mapping[str, object]) -> str:
    """Release of the kernel that a run measured, "" where its run.json lacks it."""
    kernel = facts.get("kernel", "")
    if not kernel and facts.get("engine") == "host":
        machine = facts.get("machine")
        kernel = machine.get("kernel", "") if isinstance(machine, dict) else ""
    return kernel if isinstance(kernel, str) else ""


def count_statements(findings: Iterable[Finding]) -> Counter[str]:
    """How many statements of the findings have each outcome; questions are not counted."""
    return Counter(statement.outcome for finding in findings
                   for statement in finding.statements if statement.outcome)


def count_bars(findings: Iterable[Finding], held_out: bool = False) -> Counter[str]:
    """How many published bars have each outcome.

    held_out: count only the bars of figures that are held out; otherwise only the other ones.
    """
    return sum((Counter(dict(finding.bars)) for finding in findings
                if finding.held_out == held_out), Counter())


def write_counts(counted: Mapping[str, int]) -> str:
    """Counts in words, such as "3 reproduced, 1 direction"; without outcomes that nothing has."""
    order: Sequence[str] = (*OUTCOMES, *sorted(set(counted) - set(OUTCOMES)))
    return ", ".join(f"{counted[outcome]} {in_full(outcome)}"
                     for outcome in order if counted.get(outcome))
