"""Finds the size at which one more byte costs a round trip, by measuring and by the model.

This is the largest certificate chain, or response, that fits into the first flight. The search
measures several sizes of a range at once, since a guest starts only once for them. It continues
between the largest that fits and the smallest that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from firstflight.base.errors import CannotError, FirstFlightError, UsageError
from firstflight.findings.quantities import QUANTITIES
from firstflight.model.predict import predict
from firstflight.runs.kinds import Overrides
from firstflight.setting.server import BUILTIN, NGINX
from firstflight.testbed.hosts.tls_records import LEAST_BYTES, LEAST_PADDED_BYTES
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.record.transfers import computed, is_computable

CHAIN, RESPONSE, EARLY = "chain", "response", "early"
LINUX_WINDOW = 10  # segments
_OF_EARLY = (("early_data_bytes", LEAST_PADDED_BYTES), ("chain_bytes", 2000), ("resumed", 1),
             ("response_bytes", 1000), ("server", NGINX))
AT_ONCE = 7  # sizes that are measured together
MOST_RESPONSE = 1_000_000

Measure = Callable[[Sequence[Trial]], Mapping[Trial, Record]]


@dataclass(frozen=True)
class What:
    """What grows. field: of Trial; most: its most bytes. round_trips: those of a record that it
    costs. predicted: the same by the model, None where no model covers it."""

    name: str
    field: str
    most: int
    round_trips: Callable[[Record], int | None]
    predicted: Callable[[Trial, Mapping[str, str]], int] | None = None

    def sized(self, trial: Trial, size: int) -> Trial:
        return replace(trial, **{self.field: size})


WHATS = {
    CHAIN: What("certificate chain", "chain_bytes", int(QUANTITIES["chain_bytes"].highest),
                lambda record: record.handshake_round_trips,
                lambda trial, sysctls: predict(computed(trial, sysctls)).handshake_round_trips),
    RESPONSE: What("response", "response_bytes", MOST_RESPONSE,
                   lambda record: record.response_round_trips,
                   lambda trial, sysctls: predict(computed(trial, sysctls)).response_round_trips),
    EARLY: What("early data", "early_data_bytes", int(QUANTITIES["early_data_bytes"].highest),
                lambda record: record.request_round_trips)}


@dataclass(frozen=True)
class Cliff:
    """The largest size that costs one round trip.

    fits_bytes: that size, None where even the smallest costs more; model_bytes: the same by the
    model. is_open: even the largest fits. record: of the largest size that fits; beyond: of one
    byte more; None where it was not measured. again_bytes: a still larger size that costs one
    round trip again, as may happen after earlier responses.
    """

    trial: Trial
    fits_bytes: int | None
    model_bytes: int | None
    is_open: bool = False
    record: Record | None = None
    beyond: Record | None = None
    again_bytes: int | None = None

    @property
    def agrees(self) -> bool:
        """Whether the model agrees, or does not know the server's writes."""
        return not is_known(self.trial) or self.fits_bytes == self.model_bytes


def question(what: str, requested: Overrides) -> Overrides:
    """The command line's overrides, with those that the search needs. Raises UsageError."""
    lists, what_of = dict(requested.lists), WHATS[what]
    if what_of.field in lists:
        flag = QUANTITIES[what_of.field].flag
        raise UsageError(f"--find-cliff {what}: {flag} is what it searches for")
    if what == EARLY:
        _one_window(what, lists, "early data leaves under the client's own window")
        for name, usual in _OF_EARLY:
            lists.setdefault(name, [usual])

    pauses = any(lists.get("idle_ms", ()))
    if pauses and what != RESPONSE:
        raise UsageError(_first_request(what))

    if what == CHAIN:
        lists["chain_bytes"] = [max(LEAST_BYTES.values()) * 9]  # valid for any signature
        lists.setdefault("response_bytes", [1000])
    elif what == RESPONSE:
        lists["response_bytes"] = [1]
    usual_client = "libcurl" if pauses else "curl"
    return replace(requested, lists=lists, client=requested.client or usual_client)


def _first_request(what: str) -> str:
    if what == RESPONSE:
        return f"--find-cliff {what}: does not go with --resumed, --think"
    return (f"--find-cliff {what}: looks at a connection's first request, without --resumed,"
            " --kept, --idle, --think")


def _one_window(what: str, lists: dict[str, Any], why: str) -> None:
    """Raises UsageError where several windows are requested, though they have the same cliff."""
    if len(lists.setdefault("initcwnd", [LINUX_WINDOW])) > 1:
        raise UsageError(f"--find-cliff {what}: {why}, so --iw changes nothing: give one, or none")


def search(what: str, trials: Sequence[Trial], sysctls: Mapping[str, str],
           measure: Measure) -> list[Cliff]:
    """The cliff of each trial. Raises FirstFlightError where one cannot be measured."""
    kind = WHATS[what]
    for trial in trials:
        first = replace(trial, kept=0, idle_ms=0.0) if what == RESPONSE else trial
        if what != EARLY and not is_computable(first):
            raise UsageError(_first_request(what))

    # Of each trial, the largest size known to fit, and the smallest known not to.
    ends = {trial: (_least(kind, trial) - 1, kind.most + 1) for trial in trials}
    largest: dict[Trial, Record] = {}
    beyond: dict[Trial, Record] = {}
    again: dict[Trial, int] = {}
    while sized := _next_sizes(kind, ends):
        records = measure(list(sized))
        for key, (trial, size) in sized.items():
            low, high = ends[trial]
            fits = _fits(kind, records[key])
            if size > high:  # the sizes of a trial ascend: a smaller one did not fit
                if fits:
                    again[trial] = size
            elif fits:
                ends[trial], largest[trial] = (size, high), records[key]
            else:
                ends[trial], beyond[trial] = (low, size), records[key]

    found = []
    for trial, (low, _) in ends.items():
        least = _least(kind, trial)
        found.append(Cliff(
            trial, fits_bytes=low if low >= least else None,
            model_bytes=_model_limit(kind, trial, least, sysctls) if is_known(trial) else None,
            is_open=low == kind.most, record=largest.get(trial), beyond=beyond.get(trial),
            again_bytes=again.get(trial)))
    return found


def _next_sizes(kind: What, ends: Mapping[Trial, tuple[int, int]]
                ) -> dict[Trial, tuple[Trial, int]]:
    """The next trials: for each which one it belongs to, and its size. Empty where all are found.

    ends: the largest size known to fit, and the smallest known not to.
    """
    sized = {}
    for trial, (low, high) in ends.items():
        for size in _between(low, high):
            sized[kind.sized(trial, size)] = (trial, size)
    return sized


def is_known(trial: Trial) -> bool:
    """Whether the model knows the writes of a trial's server."""
    return trial.server == BUILTIN


def _least(kind: What, trial: Trial) -> int:
    if kind.field == "early_data_bytes":
        return LEAST_PADDED_BYTES
    return (LEAST_BYTES[trial.signature] * (1 + trial.intermediates)
            if kind.field == "chain_bytes" else 1)


def _between(low: int, high: int) -> list[int]:
    """Up to AT_ONCE sizes between two, at even distances."""
    count = min(AT_ONCE, high - low - 1)
    return sorted({low + (high - low) * place // (count + 1) for place in range(1, count + 1)}
                  - {low, high})


def _fits(kind: What, record: Record) -> bool:
    round_trips = kind.round_trips(record)
    if record.was_skipped:
        raise CannotError(record.verdict_reason)
    if not record.counts or round_trips is None:
        raise FirstFlightError(f"--find-cliff: {record.trial.id}:"
                               f" {record.error or record.verdict_reason}")
    return round_trips == 1


def _model_limit(kind: What, trial: Trial, least: int, sysctls: Mapping[str, str]) -> int | None:
    assert kind.predicted is not None  # only early data has none, and its server is nginx
    low, high = least - 1, kind.most + 1
    while high - low > 1:
        size = (low + high) // 2
        if kind.predicted(kind.sized(trial, size), sysctls) == 1:
            low = size
        else:
            high = size
    return low if low >= least else None
