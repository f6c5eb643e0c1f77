"""The TCPs that traces compare: [[tcp]] of a file, and what the command line changes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from firstflight.base.errors import UsageError
from firstflight.net.sysctls import settings_of
from firstflight.runs import schema
from firstflight.runs.schema import key
from firstflight.runs.sysctls import sysctls_of
from firstflight.workloads.trace.trial import VALIDATION_SYSCTL


def _settings(value: object, where: str) -> tuple[str, ...]:
    """A table of sysctls as texts, "name=value" each."""
    sysctls = sysctls_of({"sysctls": value}, where.removesuffix(": sysctls"), one_word=True)
    return tuple(f"{name}={word}" for name, word in sysctls.items())


@dataclass(frozen=True)
class Tcp:
    """One of the TCPs that are compared."""

    title: str
    validation: bool  # whether Linux validates windows by its own rules (VALIDATION_SYSCTL)
    name: str = key(reader=schema.file_name)
    congestion_control: str = key(reader=schema.number("congestion_control"))
    sysctls: tuple[str, ...] = key((), reader=_settings)  # further ones of the server, "name=value"


def refuse_sysctls(tcps: Sequence[Tcp], values: Sequence[str], where: str) -> None:
    """Raises UsageError where `values` set a sysctl that a TCP of the trace sets itself."""
    added = {name for words in values for name in settings_of(words)}
    for tcp in tcps:
        own = {VALIDATION_SYSCTL, *(setting.partition("=")[0] for setting in tcp.sysctls)}
        for name in sorted(own & added):
            what = "validation" if name == VALIDATION_SYSCTL else "sysctls"
            raise UsageError(f'{where}: sysctl (--sysctl): {name}: its TCP "{tcp.name}" sets this'
                             f" one itself ({what})")


def change_congestion_control(tcps: Sequence[Tcp], control: Sequence[str], where: str
                              ) -> tuple[Tcp, ...]:
    """The TCPs of a trace, all with one congestion control.

    control: has its name, or is () to leave each TCP its own. Raises UsageError where two TCPs
    would become the same.
    """
    if not control:
        return tuple(tcps)
    changed = [replace(tcp, congestion_control=control[0]) for tcp in tcps]
    for (first, second), pair in zip(combinations(tcps, 2), combinations(changed, 2)):
        if _is_same(*pair) and not _is_same(first, second):
            raise UsageError(f'{where}: --cc: its TCPs "{first.name}" and "{second.name}" differ by'
                             " their congestion control only, and would be the same TCP twice")
    return tuple(changed)


def _is_same(first: Tcp, second: Tcp) -> bool:
    """Whether two TCPs differ by nothing but their names."""
    return replace(first, name="", title="") == replace(second, name="", title="")
