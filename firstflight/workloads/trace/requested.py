"""The trials of a scenario of kind trace, with the command line's values in place of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.findings.quantities import FLAGS
from firstflight.net.sysctls import settings_of
from firstflight.parameters import PARAMETERS, RESPONSE, SERVER, TLS
from firstflight.runs import schema
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.runs.scenario_file import check_count
from firstflight.scenario import grammar
from firstflight.workloads.trace.scenario import SWEPT, Tcp, TraceScenario, TraceSweep
from firstflight.workloads.trace.trial import VALIDATION_SYSCTL, TraceTrial

_REPLACED = (*SWEPT, "initcwnd", "initrwnd", "congestion_control", "repeat")
_ONE_VALUE = (*SWEPT, "initrwnd", "congestion_control")
_REASONS = {
    RESPONSE: "its schedules say what is sent, and when",
    TLS: "its connections are plain HTTP",
    SERVER: "server.py writes on its schedules, and no other server does",
    "rwnd_growth": "its file says how far the window grows (receive_window)",
    "client": "curl's library fetches in it, and the others have no pauses",
    "server-command": "server.py writes on its schedules, and no other server does",
    "own_window": "the rules of its TCPs begin with a window that has to be known: write --iw 10"}
_ELSE = "it is one connection"


def expand(scenario: TraceScenario, overrides: Overrides = NOTHING, seed: int = 1
           ) -> list[TraceTrial]:
    """The trials of a scenario. seed: of what is random. Raises UsageError."""
    requested = apply(scenario, overrides)
    check_count(requested.count, "traces", overrides.many)
    return grammar.trials_of(requested.sweeps, scenario.name, seed)


def apply(scenario: TraceScenario, overrides: Overrides) -> TraceScenario:
    """The scenario with the command line's values in place of its own. Raises UsageError."""
    _refuse_others(scenario, overrides)
    given = overrides.checked()
    _refuse_lists(given)
    return replace(scenario, sweeps=tuple(
        _overridden(sweep, given, overrides.repeat, scenario.name) for sweep in scenario.sweeps))


def _refuse_others(scenario: TraceScenario, overrides: Overrides) -> None:
    """Raises UsageError where a flag means nothing to a trace, with the reason."""
    for name, flag in overrides.given.items():
        if name in _REPLACED:
            continue
        subject = PARAMETERS[name].subject if name in PARAMETERS else name
        why = _REASONS.get(name) or _REASONS.get(subject, _ELSE)
        raise UsageError(f'{scenario.name}: {flag} does not go with a scenario of kind "trace":'
                         f" {why}")


def _refuse_lists(given: dict[str, tuple[Any, ...]]) -> None:
    """Raises UsageError where a flag has several values, other than --iw."""
    for name in _ONE_VALUE:
        if len(given.get(name, ())) > 1:
            raise UsageError(f'{FLAGS[name].flag}: a scenario of kind "trace" takes one value: its'
                             " curves are named by trace, TCP and initial window only")


def _overridden(sweep: TraceSweep, given: dict[str, tuple[Any, ...]], repeat: int | None,
                scenario: str) -> TraceSweep:
    """The sweep with values of flags. given: by name. Raises UsageError."""
    where = schema.place_of(scenario, "trace", sweep.name)
    own: dict[str, Any] = {}
    if "initrwnd" in given:
        (own["initrwnd"],) = given["initrwnd"]
    if repeat is not None:
        own["repeat"] = schema.number("repeat")(repeat, "--repeat")
    if given:
        # What a file says of its own queue, that it holds all, is not said of another network.
        own["may_lose"] = True
        _refuse_sysctls(sweep.tcps, given.get("sysctl", ()), where)
        own["tcps"] = _changed_tcps(sweep.tcps, given.get("congestion_control", ()), where)

    lists = {name: values for name, values in given.items() if name in (*SWEPT, "initcwnd")}
    changed = replace(sweep.overridden(lists), **own)
    changed.check_together(where)
    return changed


def _refuse_sysctls(tcps: Sequence[Tcp], values: Sequence[str], where: str) -> None:
    """Raises UsageError where the TCPs of a trace set a sysctl themselves."""
    added = {name for words in values for name in settings_of(words)}
    for tcp in tcps:
        own = {VALIDATION_SYSCTL, *(setting.partition("=")[0] for setting in tcp.sysctls)}
        for name in sorted(own & added):
            what = "validation" if name == VALIDATION_SYSCTL else "sysctls"
            raise UsageError(f'{where}: --sysctl: {name}: its TCP "{tcp.name}" sets this one itself'
                             f" ({what})")


def _changed_tcps(tcps: Sequence[Tcp], control: Sequence[str], where: str) -> tuple[Tcp, ...]:
    """The TCPs of a trace with another congestion control.

    control: none or one. Raises UsageError where the TCPs would be the same.
    """
    changed = [replace(tcp, congestion_control=(*control, tcp.congestion_control)[0])
               for tcp in tcps]
    for (first, second), (one, other) in zip(combinations(tcps, 2), combinations(changed, 2)):
        if _is_same(one, other) and not _is_same(first, second):
            raise UsageError(f'{where}: --cc: its TCPs "{first.name}" and "{second.name}" differ by'
                             " their congestion control only, and would be the same TCP twice")
    return tuple(changed)


def _is_same(first: Tcp, second: Tcp) -> bool:
    """Whether two TCPs differ by nothing but their names."""
    return replace(first, name="", title="") == replace(second, name="", title="")
