"""Findings: what a run shows, as values, computed once and rendered as text, page and figures.

A Report is all that a run shows. It has a Finding for each figure: tables whose cells are values,
statements with what was measured, and a chart. findings/render and findings/drawing render them.
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
    """A cell with its own number of decimals, where its column's does not fit."""

    value: float | Estimate
    digits: int
    signed: bool = False


# The column formats a value, unless it is Rounded. None: unknown; "": not applicable.
Cell = str | int | float | Estimate | Interval | Rounded | None


REQUESTED = "requested"  # the group of columns that were not measured but requested


@dataclass(frozen=True)
class Column:
    """One column of a table.

    group: the heading that it shares with its neighbours. digits, signed: how its numbers are
    written. rank: where a terminal is too narrow, columns with the lowest rank go first; those
    with 9 always stay. is_text: aligned left. is_filter: the page offers it as a filter.
    is_outcome: its cells are outcomes of findings.claims.
    """

    name: str
    unit: str = ""
    group: str = ""
    digits: int = 1
    signed: bool = False
    rank: int = 9
    is_text: bool = False
    is_filter: bool = False
    is_outcome: bool = False


@dataclass(frozen=True)
class Table:
    """Columns and rows of cells."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    hidden_rows: int = 0  # how many further rows are not shown
    wraps: bool = False  # on a page, the heads and the first column are long and take several lines
    # By what the shown rows were chosen, such as "with the largest change"; "" for the first ones.
    picked: str = ""

    def without_empty(self, unknown: bool = True) -> Table:
        """The table without empty columns; unknown: whether unknown cells count as empty."""
        empty = ("", None) if unknown else ("",)
        is_filled = [False] * len(self.columns)
        for row in self.rows:
            for place, cell in enumerate(row):
                is_filled[place] |= cell not in empty

        rows = tuple(tuple(compress(row, is_filled)) for row in self.rows)
        return replace(self, columns=tuple(compress(self.columns, is_filled)), rows=rows)

    def first(self, most: int) -> Table:
        """The table with its first rows only."""
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
    """A sentence of a source, what was measured of it, and the outcome.

    outcome: one of findings.claims; "" where nothing was published: then `text` is the question and
    `measured` the answer. numbers: those in `measured` that a text may quote.
    """

    text: str
    measured: str
    outcome: str = ""
    numbers: tuple[Rounded, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a reader wants first: one sentence, a table of some 20 rows at most, and the reasons.

    sentence: "" where the run has none of its own; then its first statements are the answer.
    notes: the reasons. command: what the reader may type next, a line each,
    "" for nothing. values: the answer for programs, as JSON by its names.
    """

    sentence: str = ""
    table: Table | None = None
    notes: tuple[str, ...] = ()
    command: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """One figure with its tables and statements.

    name: of the file, figures/<scenario>_<name>.png. sentence: what the figure shows, with
    numbers, also for readers who cannot see it. missing: why there is no figure, "" where there
    is one. bars: how many published bars have each outcome. published: where the published values
    are from; held_out: no parameter was chosen by them. answer: where this finding answers the
    question of the whole run.
    """

    name: str
    title: str
    tables: tuple[Table, ...] = ()
    statements: tuple[Statement, ...] = ()
    sentence: str = ""
    missing: str = ""
    bars: Mapping[str, int] = field(default_factory=dict)
    chart: Chart | None = None
    published: str = ""
    held_out: bool = False
    answer: Answer | None = None


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
    """All that a run shows.

    path: the run's folder, relative to the results folder. facts: run.json. verified, count:
    numbers of trials. summary: lines above all tables; sentences: the results in words, the most
    important first. trials: a table of every trial or cell; checks: of each check and how many
    trials it judged; causes: of retransmissions; settings: of sysctls. timelines: of kept captures.
    about, opening: of a whole run, in the scenario's own words: what it measures and should
    reproduce; and what came out, with quoted numbers (findings/render/values.py). answer: what is
    read first. alarms: what a reader must not miss, in red. files: those next to the page.
    """

    name: str
    title: str
    claim: str
    source: str
    path: str
    facts: Mapping[str, object]
    verified: int
    count: int
    findings: tuple[Finding, ...]
    summary: tuple[str, ...] = ()
    tiles: tuple[Tile, ...] = ()
    sentences: tuple[str, ...] = ()
    trials: Table | None = None
    checks: Table | None = None
    failures: Table | None = None
    causes: Table | None = None
    settings: Table | None = None
    timelines: tuple[Timeline, ...] = ()
    provenance: tuple[Fact, ...] = ()
    about: str = ""
    opening: str = ""
    answer: Answer = Answer()
    alarms: tuple[str, ...] = ()
    files: tuple[str, ...] = ("trials.csv", "run.json")

    @property
    def packets(self) -> PacketsChart | None:
        """The chart ON_THE_WIRE of its timelines; None without any, or where a finding has it."""
        if not self.timelines or any(isinstance(finding.chart, PacketsChart)
                                     for finding in self.findings):
            return None
        return PacketsChart("Packets at the server", (), timelines=self.timelines,
                            y_label="kB of the data")

    @property
    def caption(self) -> str:
        """How the run behind a figure was measured: n, kernel, engine, date; "" where nothing was.
        """
        if not self.count:
            return ""
        engine = {"uml": "in virtual time", "host": "on this machine"}.get(
            str(self.facts.get("engine")), "")
        date = str(self.facts.get("finished_at") or self.facts.get("started_at") or "")[:10]
        return " · ".join(filter(None, (
            f"{'part of a' if self.facts.get('partial') else 'whole'} run: n = {self.count}"
            f" trials, {'all' if self.verified == self.count else self.verified} verified",
            " ".join(filter(None, (f"Linux {self.kernel}" if self.kernel else "", engine))),
            date)))

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


def outcome_counts(findings: Iterable[Finding]) -> Counter[str]:
    """How many statements have each outcome."""
    return Counter(statement.outcome for finding in findings
                   for statement in finding.statements if statement.outcome)


def bars(findings: Iterable[Finding], held_out: bool = False) -> Counter[str]:
    """How many published bars have each outcome, of the figures held out or of the others."""
    return sum((Counter(dict(finding.bars)) for finding in findings
                if finding.held_out == held_out), Counter())


def listed(counted: Mapping[str, int]) -> str:
    """Counts in words, such as "3 reproduced, 1 direction"; without those that are 0."""
    order: Sequence[str] = (*OUTCOMES, *sorted(set(counted) - set(OUTCOMES)))
    return ", ".join(f"{counted[outcome]} {in_full(outcome)}"
                     for outcome in order if counted.get(outcome))
