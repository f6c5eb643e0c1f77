"""Findings: what a run shows, as values; made once, and rendered by findings/render and drawing.

A Report is all that a run shows. It has findings, one for each figure: tables
whose cells are values, statements with what was measured, and a chart. Text,
Markdown, HTML and figures are renderings of the same ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from firstflight.base.stats import Estimate
from firstflight.findings.charts import Chart, PacketsChart, Timeline
from firstflight.findings.claims import WORDS, in_full


@dataclass(frozen=True)
class Interval:
    """A cell: the two ends of a 95 % interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Rounded:
    """A cell with decimals of its own, where its column's do not fit."""

    value: float | Estimate
    digits: int
    signed: bool = False


# A value is formatted by its column, or by its Rounded; None is not known, "" not applicable.
Cell = str | int | float | Estimate | Interval | Rounded | None


@dataclass(frozen=True)
class Column:
    """One column of a table.

    group: the heading that it shares with its neighbours. digits, signed: how
    its numbers are written. rank: of columns that do not fit a terminal, the
    lowest goes first; 9 always stays. is_text: aligned left. is_filter: a page
    offers it as a filter. is_word: a word of findings.claims.
    """

    name: str
    unit: str = ""
    group: str = ""
    digits: int = 1
    signed: bool = False
    rank: int = 9
    is_text: bool = False
    is_filter: bool = False
    is_word: bool = False


@dataclass(frozen=True)
class Table:
    """Columns and rows of cells.

    left_out: how many rows are not shown. wraps: heads, and text in the first column, are long, and
    have several lines on a page.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    left_out: int = 0
    wraps: bool = False

    def without_empty(self, unknown: bool = True) -> Table:
        """The table less the columns that hold nothing; unknown: nor any value that is known."""
        nothing = ("", None) if unknown else ("",)
        kept = [place for place in range(len(self.columns))
                if any(row[place] not in nothing for row in self.rows)]
        return replace(self, columns=tuple(self.columns[place] for place in kept),
                       rows=tuple(tuple(row[place] for place in kept) for row in self.rows))

    def first(self, most: int) -> Table:
        """The table with its first rows only."""
        return replace(self, rows=self.rows[:most],
                       left_out=self.left_out + max(0, len(self.rows) - most))

    def column(self, name: str, group: str = "") -> list[Cell]:
        """The cells of a column. Raises KeyError where there is none."""
        for place, column in enumerate(self.columns):
            if (column.name, column.group) == (name, group):
                return [row[place] for row in self.rows]
        raise KeyError(name)


@dataclass(frozen=True)
class Compared:
    """One comparison; observed, requested: in words, for the reader. name: if not the check's."""

    passed: bool
    observed: str
    requested: str
    name: str = ""


@dataclass(frozen=True)
class Statement:
    """What a source claims, what was measured, and the result in one word.

    word: of findings.claims; "" where nothing is published: then `says` is
    the question and `found` the answer. numbers: of `found`, where somebody may quote them.
    """

    says: str
    found: str
    word: str = ""
    numbers: tuple[Rounded, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a reader wants first: one sentence, a table of at most some 20 rows, and what decides.

    sentence: "" where the run has none of its own; then its first statements are the answer.
    command: what a reader may type because of it, "" for none.
    """

    sentence: str = ""
    table: Table | None = None
    notes: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True)
class Finding:
    """What belongs to one figure.

    name: of the figure, figures/<scenario>_<name>.png. sentence: what it
    shows, in words with numbers, also for who cannot see it.
    missing: why there is nothing, "" where there is. bars: how many published
    bars have which word. chart: what is drawn.
    published: where the published values are from; held_out: no parameter was chosen by them.
    answer: where it answers the question of the whole run.
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
    """A number that stands out, and what it is."""

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

    path: of the run's folder, as seen from where results are. facts: run.json.
    verified, count: trials. summary: the lines above all tables; sentences:
    what the records come to, the most important first. trials: every trial or
    cell; checks: each check with how many it judged; causes: of
    retransmissions; settings: the sysctls. timelines: of kept captures.
    about, opening: of a whole run, the scenario's own words: what it measures and what is expected
    to agree, and what came out, whose numbers are quotes (findings/render/values.py). answer: what
    is read first. alarms: what a reader must not miss, in red. files: beside the page.
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
        """Its timelines, drawn as ON_THE_WIRE; None for none, or where a finding draws them."""
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


def words(findings: Iterable[Finding]) -> Counter[str]:
    """How many statements have which word."""
    return Counter(statement.word for finding in findings
                   for statement in finding.statements if statement.word)


def bars(findings: Iterable[Finding], held_out: bool = False) -> Counter[str]:
    """How many published bars have which result; held_out: of those held out, or of the others."""
    return sum((Counter(dict(finding.bars)) for finding in findings
                if finding.held_out == held_out), Counter())


def listed(counted: Mapping[str, int]) -> str:
    """Such as "3 reproduced, 1 direction"; without words that nothing has."""
    order: Sequence[str] = (*WORDS, *sorted(set(counted) - set(WORDS)))
    return ", ".join(f"{counted[word]} {in_full(word)}" for word in order if counted.get(word))
