"""Why windows change the times of fetches: limits, and flights in words (figures.reasons)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

from firstflight.figures import what_ifs
from firstflight.figures.reasons import range_of
from firstflight.figures.what_ifs import is_round_trips, sign
from firstflight.figures.window_changes import Reason
from firstflight.setting.limits import (Limit, chain_limit, network_limits, restart_limit,
                                        sysctl_limits, with_defaults)
from firstflight.workloads.fetch.figures.cells import (CellSetting, WindowChange, change_between,
                                                       where, without_repeat)
from firstflight.workloads.fetch.record.record import Record, is_one_draw
from firstflight.workloads.fetch.trial import Trial

# The time that a guest takes to start the programs of a trial, and for each packet with its ACK.
TRIAL_S, PACKET_S = 0.02, 0.00006


@dataclass(frozen=True)
class WhatIfs(what_ifs.WhatIfs[Trial, Record]):
    """The what-if trials of a run of fetches."""

    IDLE: ClassVar[str] = "link_idle_ms"

    def every_limit(self, trial: Trial) -> Sequence[Limit[Trial]]:
        """All limits that a what-if trial may lift."""
        return (*network_limits(self.sysctls, _sent_bytes),
                Limit("nagle", "Nagle's algorithm", "TCP_NODELAY",
                      lambda trial: with_defaults(trial, ("nagle",))),
                restart_limit(self.sysctls, lambda trial: bool(trial.idle_ms)),
                Limit("used", "used connection", "a fresh connection", _fresh_connection),
                chain_limit(), *sysctl_limits((trial,), self.sysctls))

    def cell_of(self, trial: Trial) -> Trial:
        """The trial without its repeat."""
        return without_repeat(trial)

    def cost_s(self, trial: Trial) -> float:
        """About how long a guest takes to measure the trial."""
        packets = (trial.response_bytes + sum(trial.before)
                   + trial.request_bytes * (1 + len(trial.before))) / trial.mss
        return TRIAL_S + PACKET_S * packets

    def between(self, base: CellSetting, experiment: CellSetting) -> WindowChange:
        """What one setting changes against another."""
        return change_between(base, experiment)

    def sent(self, change: WindowChange) -> str:
        """The flights under both windows, in words."""
        return _flights(change)

    def same(self, change: WindowChange) -> Reason:
        """The reason where no limit hides a saving: the flights under both windows."""
        column = _round_trips_column(change)
        counts = {range_of(cell, column) for cell in (change.base, change.experiment)}
        label = "same flights" if len(counts) == 1 else "no round trip less"
        return Reason(label, _flights(change), label)

    def where(self, change: WindowChange, changes: Sequence[WindowChange]) -> str:
        """What distinguishes a change from the others, in words."""
        return where(change, changes)

    def accounted(self, change: WindowChange) -> str:
        """Why a larger window saves nothing, where packets alone show it; else ""."""
        return why_equal(change, self)

    def has_dropped(self, record: Record) -> bool:
        """Whether a queue dropped packets of the transfer."""
        return bool(record.queue_drops or record.uplink_queue_drops)

    def is_one_draw(self, record: Record) -> bool:
        """Whether a slightly different RTT may change the time much."""
        return is_one_draw(record)

    def cannot_differ(self, change: WindowChange) -> bool:
        """Whether everything leaves in one flight under both windows."""
        if sign(change) != 0 or change.experiment.requested.before:
            return False
        columns = _round_trips_column(change), "handshake_round_trips"
        return all(range_of(cell, column) == "1"
                   for cell, column in product((change.base, change.experiment), columns))


def _sent_bytes(trial: Trial) -> int:
    """The bytes of the bodies of all responses."""
    return trial.response_bytes + sum(trial.before)


def _fresh_connection(trial: Trial) -> Trial:
    """The trial on a new connection, without earlier responses and a pause."""
    return replace(trial, kept=0, earlier_bytes=0, idle_ms=0.0)


def _round_trips_column(change: WindowChange) -> str:
    """The column with the round trips of the data that the changed window sends."""
    return f"{'upload' if change.is_of_client else 'response'}_round_trips"


def why_equal(change: WindowChange, measured: WhatIfs) -> str:
    """Why a larger window saves nothing, if that needs no what-if trial.

    The flights and the idle time of the link may show it. "" where they do not, or where the
    window changes the time.
    """
    base, experiment = change.base.median, change.experiment.median
    if sign(change) != 0 or base is None or experiment is None:
        return ""
    column = _round_trips_column(change)
    before, after = getattr(base, column), getattr(experiment, column)
    if before is None or after is None:
        return ""
    if before == 1 and after == 1:
        return "fits one flight"
    return "link busy" if after < before and is_round_trips(change, measured) else ""


def _flights(change: WindowChange) -> str:
    """How many flights the handshake and the response, or the request, take under both windows.

    The sizes of flights are those of the transfer with the median time. The counts are those of all
    transfers.
    """
    cells = change.base, change.experiment
    base, window = change.windows
    sent, what = ("upload", "request") if change.is_of_client else ("response", "response")
    listed = []
    for cell in cells:
        median = cell.median
        listed.append("" if median is None else getattr(median, f"{sent}_flights"))
    handshakes = [range_of(cell, "handshake_round_trips") for cell in cells]
    counts = [range_of(cell, f"{sent}_round_trips") for cell in cells]

    before = ""
    if handshakes[0] != handshakes[1]:
        before = (f"the handshake takes {_flights_of(handshakes[0])} with {base} segments and"
                  f" {handshakes[1]} with {window}, and ")
    if counts[0] == counts[1]:
        both = " and ".join(dict.fromkeys(listed))
        segments = f"{both} segment{'' if both == '1' else 's'}"
        shown = f" ({segments}{_at_the_median(cells)})" if both else ""
        return f"{before}the {what} takes {_flights_of(counts[0])} with either window{shown}"
    return (f"{before}the {what} takes {_flights_of(counts[0])} with {base} segments"
            f" ({listed[0]}) and {counts[1]} with {window}"
            f" ({listed[1]}{_at_the_median(cells)})")


def _flights_of(counted: str) -> str:
    """A count of flights in words, such as "2 flights"."""
    return f"{counted} flight" if counted == "1" else f"{counted} flights"


def _at_the_median(cells: Iterable[CellSetting]) -> str:
    """Words on whose flights are listed; "" where all transfers have the same flights."""
    for cell in cells:
        if len({record.response_flights for record in cell.counting}) > 1:
            return ", where the time is the median"
    return ""
