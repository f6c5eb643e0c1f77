"""Causes: the defects and habits of a published set-up, which a scenario switches on one by one.

A scenario with [as_published] measures the published numbers of another scenario again. Each of its
levels has one more cause. docs/examples/as_published.toml is an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from firstflight.base.errors import UsageError
from firstflight.base.words import plain
from firstflight.parameters import SWEPT
from firstflight.runs import scenario_file, schema
from firstflight.runs.schema import key
from firstflight.workloads.fetch.scenario.sweep import Sweep

CODE, KERNEL, CALIBRATED, INFERRED = "code", "kernel", "calibrated", "inferred"
# How causes are known, from certain to merely fitting. Code and kernel are one group.
GROUPS = ("code and kernel alone", "with what is calibrated", "with what is inferred")
GROUP_OF = {CODE: 0, KERNEL: 0, CALIBRATED: 1, INFERRED: 2}
# The tables that a scenario with [as_published] takes over from the scenario that it explains.
_TAKEN = ("defaults", "sweep", "axis", "figure", "claim", "raw")


@dataclass(frozen=True)
class ClockReading:
    """How the script of a set-up took the times that were published.

    By default it took them as a trial has them.
    """

    # The time of programs that ran inside the measured time. It is added to a trial's time.
    process_ms: float = 0.0
    failed_ms: float = 0.0  # the reported time of a fetch that could not connect; 0 for none
    truncated: bool = False  # published numbers are truncated to whole ones, not rounded


READINGS = tuple(field.name for field in fields(ClockReading))
# What a cause may set. SWEPT begins with RTT and bandwidth, by which a published number is found.
SWITCHABLE = (*SWEPT[2:], *READINGS)


def _switched(value: object, where: str) -> tuple[tuple[str, Any], ...]:
    """The names and values of the parameters that a cause sets. Raises UsageError."""
    if not isinstance(value, dict) or not value:
        raise UsageError(f"{where} has to be a table like {{htb_burst_bytes = 15360}}")
    schema.known_keys(value, SWITCHABLE, where)
    switches = []
    for name, item in value.items():
        read = schema.flag if name == "truncated" else schema.number(name)
        switches.append((name, read(item, f"{where}: {name}")))
    return tuple(switches)


@dataclass(frozen=True)
class Cause:
    """One cause of the published numbers. docs/REFERENCE.md describes its keys."""

    name: str
    says: str
    known: Literal["code", "kernel", "calibrated", "inferred"]
    where: str
    switches: tuple[tuple[str, Any], ...] = key(name="set", reader=_switched)
    sweeps: tuple[str, ...] = ()

    def switch_on(self, sweep: Sweep) -> Sweep:
        """The sweep with the parameters of this cause; the same sweep where it has no effect."""
        if self.sweeps and sweep.name not in self.sweeps:
            return sweep
        lists = {name: (value,) for name, value in self.switches if name not in READINGS}
        return sweep.with_lists(**lists)

    def change_reading(self, reading: ClockReading) -> ClockReading:
        """The reading of the clock with this cause switched on."""
        values = {name: value for name, value in self.switches if name in READINGS}
        return replace(reading, **values)

    @property
    def in_words(self) -> str:
        """What the cause sets, such as "qdisc = fq in one_sweep"."""
        switched = ", ".join(f"{name} = {'true' if value is True else plain(value)}"
                         for name, value in self.switches)
        return switched + (f" in {', '.join(self.sweeps)}" if self.sweeps else "")


@dataclass(frozen=True)
class AsPublished:
    """The table [as_published]: which scenario is explained, and when a number agrees.

    docs/REFERENCE.md describes its keys.
    """

    of: str = key(reader=schema.file_name)
    within_percent: float = key(quantity="within")
    within_ms: float = key(quantity="within")
    within_points: float = key(0.0, quantity="within")
    causes: tuple[Cause, ...] = key((), absent=True)


@dataclass(frozen=True)
class Level:
    """The sweeps with some causes switched on, and how the clock is read."""

    cause: Cause | None  # the last cause switched on; None for the first level, without a cause
    sweeps: tuple[Sweep, ...]
    reading: ClockReading


def levels(sweeps: tuple[Sweep, ...], causes: Iterable[Cause]) -> list[Level]:
    """A level without a cause, then one for each cause, with this cause and all before it."""
    result = [Level(None, sweeps, ClockReading())]
    for cause in causes:
        last = result[-1]
        result.append(Level(cause, sweeps=tuple(map(cause.switch_on, last.sweeps)),
                            reading=cause.change_reading(last.reading)))
    return result


# Reading a file --------------------------------------------------------------------

def merged(raw: Mapping[str, object], where: str) -> dict[str, object]:
    """The tables of a scenario file, completed if it has [as_published].

    Then the tables of the scenario that it explains are taken over, but only the figures with
    something published, and the sweeps of these figures. Raises UsageError.
    """
    if "as_published" not in raw:
        if "cause" in raw:
            raise UsageError(f"{where}: [[cause]] tables explain another scenario's published"
                             ' numbers: they need [as_published] with of = "…"')
        return dict(raw)

    other_name = schema.file_name(schema.table(raw, "as_published", where).get("of"),
                                  f"{where}: [as_published]: of")
    other = scenario_file.find(other_name).raw
    if "sweep" not in other or not {*other.get("defaults", {})} <= {*schema.keys_of(Sweep)}:
        raise UsageError(f"{where}: [as_published]: of: {other_name} has no [[sweep]] of single"
                         " fetches, so that causes cannot change its set-up")

    taken = {name: other[name] for name in _TAKEN if name in other} | dict(raw)
    taken["defaults"] = {**other.get("defaults", {}), **schema.table(raw, "defaults", where)}
    claimed = [claim.get("figure") for claim in schema.as_tables(taken, "claim", where)]
    figures = [figure for figure in schema.as_tables(taken, "figure", where)
               if figure.get("published") or figure.get("name") in claimed]
    used = [figure.get("sweep") for figure in figures]
    used.append(schema.table(taken, "raw", where).get("sweep"))
    sweeps = [sweep for sweep in schema.as_tables(taken, "sweep", where)
              if sweep.get("name") in used]
    return {**taken, "figure": figures, "sweep": sweeps}


def read_causes(raw: Mapping[str, object], sweeps: Iterable[Sweep], where: str
                ) -> AsPublished | None:
    """The [as_published] of a scenario, None without one. Raises UsageError."""
    if "as_published" not in raw:
        return None
    causes = schema.read_tables(Cause, raw, "cause", where)
    if not causes:
        raise UsageError(f"{where}: [as_published] has no [[cause]] to switch on")

    names = [sweep.name for sweep in sweeps]
    for cause in causes:
        for name in cause.sweeps:
            schema.one_of(name, names, f'{where}: [[cause]] "{cause.name}": sweeps')
    for cause, later in zip(causes, causes[1:]):
        if GROUP_OF[later.known] < GROUP_OF[cause.known]:
            raise UsageError(f'{where}: [[cause]] "{later.name}": known = "{later.known}" stands'
                             f' behind one that is {cause.known}; code and kernel come first, then'
                             " calibrated, then inferred")

    return schema.read(AsPublished, schema.table(raw, "as_published", where),
                       f"{where}: [as_published]", causes=causes)
