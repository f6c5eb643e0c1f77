"""Scenarios of kind "trace": one connection that is written to on a schedule, under several TCPs.

A file names the TCPs to compare, the schedules, and the networks. It expands into a trial for each
TCP of each trace, under each initial window, think time and repeat.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firstflight.base.errors import UsageError
from firstflight.base.words import nearest_or_known
from firstflight.findings.quantities import QUANTITIES
from firstflight.parameters import NETWORK, PARAMETERS, RESPONSE, SERVER, TCP, TLS, Lists
from firstflight.runs import schema
from firstflight.runs.scenario_file import ScenarioFile
from firstflight.runs.schema import key
from firstflight.scenario import grammar
from firstflight.scenario.claims import ALIKE, IS, LESS, MORE, Claim
from firstflight.scenario.figure_kinds import Figure, FigureKind
from firstflight.scenario.requested import Taken
from firstflight.scenario.setting_sweep import (Network, SettingSweep, draws_at_random,
                                                lists_of)
from firstflight.setting.seeds import netem_seed
from firstflight.setting.tcp import LEAST_CLAMP_BYTES
from firstflight.workloads.trace.schedule import EACH_THINK, Schedule
from firstflight.workloads.trace.tcps import Tcp, change_congestion_control, refuse_sysctls
from firstflight.workloads.trace.trial import TraceTrial, first_receive_window
from firstflight.workloads.trace.view import METRICS

OF_ONE_TRACE = ("name", "title", "schedule", "tcp", "think_s")  # keys that have no default


# Readers of what is more than one word or number -------------------------------------

def _outage_ms(value: object, where: str) -> tuple[float, ...]:
    """From when to when an outage lasts; 0 and 0 for an empty list. Raises UsageError."""
    check = schema.number("outage_ms")
    times = tuple(check(at_ms, where) for at_ms in value) if isinstance(value, list) else ()
    if value != [] and (len(times) != 2 or times[0] >= times[1]):
        raise UsageError(f"{where} has to be two times, the first before the second")
    return times or (0.0, 0.0)


# What stands in a file ---------------------------------------------------------------

# The parameters of a trace's network and TCP that are keys by themselves. The congestion control is
# a key of each [[tcp]], and windows are read in their own ways.
_APART = ("initcwnd", "initrwnd", "rwnd_growth", "congestion_control")
SWEPT = tuple(name for name, row in PARAMETERS.items() if row.subject in (NETWORK, TCP)
              and row.quantity.flag and name not in _APART)
# Flags that a trace takes as well, although they are not in SWEPT.
OF_TCPS = ("initrwnd", "congestion_control")

# The flags that a trace takes, and why it does not take the others.
_BY_SERVER = "server.py writes on its schedules, and no other server does"
TAKEN = Taken(
    "trace", "traces", (*SWEPT, *OF_TCPS, "initcwnd", "repeat"), {
        RESPONSE: "its schedules say what is sent, and when",
        TLS: "its connections are plain HTTP", SERVER: _BY_SERVER, "server-command": _BY_SERVER,
        "rwnd_growth": "its file says how far the window grows (receive_window)",
        "client": "curl's library fetches in it, and the others have no pauses",
        "own_window": "the rules of its TCPs begin with a window that has to be known: write --iw"
                      " 10"},
    "it is one connection", of_one_value=(*SWEPT, *OF_TCPS),
    why_one="its curves are named by trace, TCP and initial window only", table="trace")


@dataclass(frozen=True, kw_only=True)
class TraceSweep(SettingSweep[TraceTrial]):
    """One schedule on one network, under some TCPs. Fields are named as in TraceTrial."""

    NAMES: ClassVar[tuple[str, ...]] = SWEPT
    TOGETHER: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    LISTS: ClassVar[tuple[str, ...]] = ("think_s", "tcps")
    pairs: tuple[Network, ...] = key((), absent=True)
    kernels: tuple[tuple[str, str], ...] = key((), absent=True)
    repeat_with_loss: int | None = key(None, absent=True)
    repeat_with_drops: int | None = key(None, absent=True)
    lists: Lists = lists_of(SWEPT)  # one value each: a curve names trace, TCP and window only
    schedule: str  # its name
    sample_ms: float
    tcp_names: tuple[str, ...] = key(name="tcp")
    title: str = ""
    initrwnd: int | None = None  # None for what the client's buffer has room for
    receive_window: int = 0
    rto_min_ms: int = 0
    quickack: bool = False
    nagle: bool = False
    outage_ms: tuple[float, ...] = key((0.0, 0.0), reader=_outage_ms)  # from, to; 0, 0 for never
    # The think times that trials vary. `linked` sets (None,) where the schedule has no request that
    # waits for them.
    think_s: tuple[float | None, ...] = key((), reader=schema.values(schema.number("time_s")))
    may_lose: bool = False
    writing: Schedule = key(Schedule(""), absent=True)  # set by `linked`: the schedule itself
    tcps: tuple[Tcp, ...] = key((), absent=True)  # set by `linked`: the TCPs themselves

    def check_together(self, where: str) -> None:
        """Check that each list has one value, and that they go together. Raises UsageError."""
        super().check_together(where)
        for name, values in self.lists.items():
            if len(values) > 1:
                raise UsageError(f"{where}: {PARAMETERS[name].key}: a trace has one value of it:"
                                 " write a [[trace]] for each")
        if 0 < self.receive_window * self.network["mss"] < LEAST_CLAMP_BYTES:
            raise UsageError(f"{where}: receive_window: {self.receive_window} segments of"
                             f" {self.network['mss']} bytes are less than Linux lets a client"
                             f" offer, {LEAST_CLAMP_BYTES} bytes: give"
                             f" {-(-LEAST_CLAMP_BYTES // self.network['mss'])} or more, or 0")
        if self.outage_ms[1] and draws_at_random(self.network):
            raise UsageError(f"{where}: an outage (outage_ms) does not go with random loss or"
                             " jitter (--loss, --jitter): it restarts their random numbers, so"
                             " which packets they take is not known")

    @property
    def network(self) -> dict[str, Any]:
        """The one value of each list, by name."""
        return {name: values[0] for name, values in self.lists.items()}

    def linked(self, schedules: Mapping[str, Schedule], tcps: Mapping[str, Tcp], where: str
               ) -> TraceSweep:
        """The sweep with the tables that it names. Raises UsageError where there are none."""
        for tcp in self.tcp_names:
            schema.one_of(tcp, list(tcps), f"{where}: tcp")
        if self.schedule not in schedules:
            raise UsageError(f"{where}: schedule: there is no [[schedule]] {self.schedule!r}"
                             f"{nearest_or_known(self.schedule, list(schedules))}")
        writing = schedules[self.schedule]
        schema.number("response_bytes")(writing.size_bytes(self.network["mss"]),
                                        f"{where}: schedule: all its bytes together")
        if bool(self.think_s) != writing.is_about_thinking:
            raise UsageError(f'{where}: think_s goes with a request of think_s = "{EACH_THINK}"'
                             " in its schedule")
        named_tcps = tuple(tcps[name] for name in self.tcp_names)
        refuse_sysctls(named_tcps, self.lists["sysctl"], where)
        return replace(self, writing=writing, think_s=self.think_s or (None,), tcps=named_tcps)

    def overridden(self, lists: Lists, where: str = "") -> TraceSweep:
        """The sweep, and its TCPs, with some values replaced. Raises UsageError."""
        changed: dict[str, Any] = {}
        if "initrwnd" in lists:
            (changed["initrwnd"],) = lists["initrwnd"]
        if lists:
            # Only of its own network a file says that the queue holds all packets.
            changed["may_lose"] = True
            refuse_sysctls(self.tcps, lists.get("sysctl", ()), where)
            changed["tcps"] = change_congestion_control(
                self.tcps, lists.get("congestion_control", ()), where)
        of_network = {name: values for name, values in lists.items() if name not in OF_TCPS}
        return replace(super().overridden(of_network, where), **changed)

    def tcp(self, name: str) -> Tcp:
        """The TCP with this name."""
        return next(tcp for tcp in self.tcps if tcp.name == name)

    def trials(self, scenario: str, seed: int) -> Iterator[TraceTrial]:
        """Yield the repeats of each cell in turn, under each initial window.

        All trials share the same writes: a schedule may have many.
        """
        mss = self.network["mss"]
        writes = self.writing.writes_in_bytes(mss)
        requests = {think_s: self.writing.requests_of(think_s, mss) for think_s in self.think_s}
        initrwnd = self.initrwnd or first_receive_window(mss, self.receive_window)
        outage_from_ms, outage_to_ms = self.outage_ms
        for initcwnd, values, repeat in self._cells():
            tcp, think_s = values.pop("tcps"), values.pop("think_s")
            yield TraceTrial(
                scenario=scenario, trace=self.name, tcp=tcp.name,
                congestion_control=tcp.congestion_control, validation=tcp.validation,
                sysctls=" ".join(tcp.sysctls),
                initcwnd=initcwnd, initrwnd=initrwnd, receive_window=self.receive_window,
                rto_min_ms=self.rto_min_ms, quickack=self.quickack, nagle=self.nagle,
                sample_ms=self.sample_ms, outage_from_ms=outage_from_ms,
                outage_to_ms=outage_to_ms, requests=requests[think_s], writes=writes,
                think_s=think_s, may_lose=self.may_lose, repeat=repeat,
                seed=netem_seed(seed, repeat) if draws_at_random(values) else 0, **values)

    def _cells(self) -> Iterator[tuple[int, dict[str, Any], int]]:
        """Yield each initial window, with the values of each cell, and the number of the repeat."""
        for initcwnd in self.initcwnd:
            for values in self.cell_values():
                for repeat in range(1, self.repeats(values) + 1):
                    yield initcwnd, dict(values), repeat


@dataclass(frozen=True)
class TraceCurve:
    """A trial as figures and claims name it: "trace/tcp" or "trace/tcp/iw10"."""

    trace: str
    tcp: str
    initcwnd: int | None = None

    @classmethod
    def parse(cls, value: object, where: str) -> TraceCurve:
        """The curve that a text names. Raises UsageError."""
        match = (re.fullmatch(r"(\w+)/(\w+)(?:/iw(\d+))?", value) if isinstance(value, str)
                 else None)
        if match is None:
            raise UsageError(f"{where}: {value!r} is not of the form \"trace/tcp\" or"
                             ' "trace/tcp/iw10"')
        return cls(match[1], match[2], int(match[3]) if match[3] else None)

    def is_of(self, trial: TraceTrial) -> bool:
        """Whether this is a trial's curve. Without a window it is that of each window."""
        return ((self.trace, self.tcp) == (trial.trace, trial.tcp)
                and self.initcwnd in (None, trial.initcwnd))

    @property
    def text(self) -> str:
        """The curve as files write it."""
        window = "" if self.initcwnd is None else f"/iw{self.initcwnd}"
        return f"{self.trace}/{self.tcp}{window}"


@dataclass(frozen=True, kw_only=True)
class TraceFigure(Figure):
    """A figure of traces: one of the kinds in FIGURES."""

    curves: tuple[TraceCurve, ...] = key(reader=schema.values(TraceCurve.parse, "curves"))
    # The time that is shown; all of it if to_s is 0.
    from_s: float = key(0.0, quantity="time_s")
    to_s: float = key(0.0, quantity="time_s")
    # The time that time–sequence plots show; as other plots if sequence_to_s is 0.
    sequence_from_s: float = key(0.0, quantity="time_s")
    sequence_to_s: float = key(0.0, quantity="time_s")
    rtt: bool = False  # whether the smoothed RTT is drawn as well


def _at_s(value: object, where: str) -> float:
    """The time of a table {at_s = 2.5}."""
    if not isinstance(value, dict):
        raise UsageError(f"{where} has to be a table like {{at_s = 2.5}}")
    schema.known_keys(value, ("at_s",), where)
    return float(QUANTITIES["time_s"].check(value.get("at_s", 0.0), f"{where}: at_s"))


@dataclass(frozen=True, kw_only=True)
class TraceClaim(Claim):
    """A claim on one curve or two."""

    compares: tuple[TraceCurve, ...] = key(reader=schema.values(TraceCurve.parse, "curves",
                                                                distinct=False))
    metric: str = key(reader=schema.word(tuple(METRICS)))  # what is compared
    at_s: float = key(0.0, name="where", reader=_at_s)  # as the methods of View take it
    rebuilt: bool = False  # whether the file's author put a number that the source lacks


TraceScenario = grammar.Scenario[TraceSweep, TraceFigure, TraceClaim]


# The file ------------------------------------------------------------------------------

def _check_figure(sweeps: Sequence[TraceSweep], figure: TraceFigure, where: str) -> None:
    for curve in figure.curves:
        _check_measured(curve, sweeps, f"{where}: curves")


FIGURES: dict[str, FigureKind[Sequence[TraceSweep], TraceFigure]] = {
    # For each curve a row: a time–sequence plot and the window.
    "window": FigureKind(_check_figure, expects=(LESS, MORE, ALIKE, IS)),
    # The latency of the response by think time.
    "warm": FigureKind(_check_figure)}


def _check_claim(claim: TraceClaim, figure: TraceFigure, sweeps: Sequence[TraceSweep],
                 where: str) -> None:
    for curve in claim.compares:
        _check_measured(curve, sweeps, f"{where}: compares")


def _check_measured(curve: TraceCurve, sweeps: Sequence[TraceSweep], where: str) -> None:
    """Check that a sweep measures a curve. Raises UsageError."""
    for sweep in sweeps:
        is_named = sweep.name == curve.trace and curve.tcp in sweep.tcp_names
        if is_named and curve.initcwnd in (None, *sweep.initcwnd):
            return
    raise UsageError(f"{where}: no trace is {curve.text!r}")


def _link(file: ScenarioFile) -> Callable[[TraceSweep, str], TraceSweep]:
    """A function that gives a trace of the file the schedule and the TCPs that it names."""
    tcps = {tcp.name: tcp for tcp in schema.read_tables(Tcp, file.raw, "tcp", file.where)}
    schedules = {schedule.name: schedule for schedule in schema.read_tables(
        Schedule, file.raw, "schedule", file.where)}
    return lambda sweep, where: sweep.linked(schedules, tcps, where)


TABLES = grammar.Tables(
    TraceSweep, TraceFigure, TraceClaim, FIGURES, others=("tcp", "schedule", "claim"), link=_link,
    check_claim=_check_claim, without=OF_ONE_TRACE, table="trace")
