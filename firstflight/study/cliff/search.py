"""Finds the size at which one more byte costs a round trip, by measuring and by the model.

This is the largest certificate chain, or response, that fits into the first flight. The search
measures several sizes of a range at once, since a guest starts only once for them. It continues
between the largest that fits and the smallest that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from firstflight.base.errors import CannotError, FirstFlightError, UsageError
from firstflight.findings.quantities import QUANTITIES
from firstflight.model.predict import predict
from firstflight.runs.kinds import Overrides
from firstflight.setting.server import BUILTIN, NGINX
from firstflight.testbed.hosts.tls_records import LEAST_BYTES, LEAST_PADDED_BYTES
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.transfers import computed, is_computable
from firstflight.workloads.fetch.trial import Trial

CHAIN, RESPONSE, EARLY = "chain", "response", "early"
LINUX_WINDOW = 10  # segments
# Parameters with which early data is measured, unless the command line has others.
_EARLY_DEFAULTS = {"early_data_bytes": LEAST_PADDED_BYTES, "chain_bytes": 2000, "resumed": 1,
                   "response_bytes": 1000, "server": NGINX}
AT_ONCE = 7  # sizes that are measured together
MOST_RESPONSE = 1_000_000

Measure = Callable[[Sequence[Trial]], Mapping[Trial, Record]]


@dataclass(frozen=True)
class Target:
    """What grows until it costs a round trip more."""

    # In sentences.
    name: str
    # The field of Trial that has its size in bytes.
    field: str
    # Its least bytes in a trial, and its most bytes in any.
    least: Callable[[Trial], int]
    most: int
    # How many round trips it cost in a record; None if they are not known.
    round_trips: Callable[[Record], int | None]
    # How many it costs by the model, with these sysctls; None where no model covers it.
    predicted: Callable[[Trial, Mapping[str, str]], int] | None = None

    def sized(self, trial: Trial, size: int) -> Trial:
        """The trial in which the target has this size, in bytes."""
        return replace(trial, **{self.field: size})


TARGETS = {
    CHAIN: Target(
        "certificate chain", "chain_bytes",
        least=lambda trial: LEAST_BYTES[trial.signature] * (1 + trial.intermediates),
        most=int(QUANTITIES["chain_bytes"].highest),
        round_trips=lambda record: record.handshake_round_trips,
        predicted=lambda trial, sysctls: predict(computed(trial, sysctls)).handshake_round_trips),
    RESPONSE: Target(
        "response", "response_bytes", least=lambda trial: 1, most=MOST_RESPONSE,
        round_trips=lambda record: record.response_round_trips,
        predicted=lambda trial, sysctls: predict(computed(trial, sysctls)).response_round_trips),
    EARLY: Target(
        "early data", "early_data_bytes", least=lambda trial: LEAST_PADDED_BYTES,
        most=int(QUANTITIES["early_data_bytes"].highest),
        round_trips=lambda record: record.request_round_trips)}


@dataclass(frozen=True)
class Cliff:
    """The largest size of a target that costs one round trip, in one setting."""

    trial: Trial
    # The largest size that fits; None where even the smallest costs more.
    fits_bytes: int | None
    # The same by the model; None, too, where the model does not know the server's writes.
    model_bytes: int | None
    # Whether even the largest size that is tried fits.
    is_open: bool = False
    # The record of the largest size that fits, and that of one byte more; None if not measured.
    record: Record | None = None
    beyond: Record | None = None
    # A still larger size that costs one round trip again, as may happen after earlier responses.
    again_bytes: int | None = None

    @property
    def agrees(self) -> bool:
        """Whether the model agrees, or does not know the server's writes."""
        return not has_known_writes(self.trial) or self.fits_bytes == self.model_bytes


def overrides_for(what: str, requested: Overrides) -> Overrides:
    """The command line's overrides, with those that the search needs. Raises UsageError.

    what: a key of TARGETS.
    """
    lists = dict(requested.lists)
    searched = TARGETS[what].field
    if searched in lists:
        raise UsageError(f"--find-cliff {what}: {QUANTITIES[searched].flag} is what it searches"
                         " for")

    pauses = any(lists.get("idle_ms", ()))
    if what == RESPONSE:
        lists["response_bytes"] = [1]
    elif what == CHAIN:
        most_certificates = 1 + int(QUANTITIES["intermediates"].highest)
        lists["chain_bytes"] = [max(LEAST_BYTES.values()) * most_certificates]  # always valid
        lists.setdefault("response_bytes", [1000])
    else:
        if len(lists.setdefault("initcwnd", [LINUX_WINDOW])) > 1:
            raise UsageError(f"--find-cliff {what}: early data leaves under the client's own"
                             " window, so --iw changes nothing: give one, or none")
        for name, usual in _EARLY_DEFAULTS.items():
            lists.setdefault(name, [usual])
    if pauses and what != RESPONSE:
        raise UsageError(_refusal_of_later_requests(what))

    usual_client = "libcurl" if pauses else "curl"
    return replace(requested, lists=lists, client=requested.client or usual_client)


def _refusal_of_later_requests(what: str) -> str:
    """The message for flags that would search behind something else on the connection."""
    if what == RESPONSE:
        return f"--find-cliff {what}: does not go with --resumed, --think"
    return (f"--find-cliff {what}: looks at a connection's first request, without --resumed,"
            " --kept, --idle, --think")


def search(what: str, trials: Sequence[Trial], sysctls: Mapping[str, str],
           measure: Measure) -> list[Cliff]:
    """The cliff of each trial. Raises FirstFlightError where one cannot be measured.

    what: a key of TARGETS. sysctls: the kernel's, for the model.
    """
    target = TARGETS[what]
    for trial in trials:
        first = replace(trial, kept=0, idle_ms=0.0) if what == RESPONSE else trial
        if what != EARLY and not is_computable(first):
            raise UsageError(_refusal_of_later_requests(what))

    # Of each trial, the largest size known to fit, and the smallest known not to.
    bounds = {trial: (target.least(trial) - 1, target.most + 1) for trial in trials}
    largest: dict[Trial, Record] = {}
    beyond: dict[Trial, Record] = {}
    again: dict[Trial, int] = {}
    while sized := _next_sizes(target, bounds):
        records = measure(list(sized))
        for key, (trial, size) in sized.items():  # of each trial the smaller sizes first
            low, high = bounds[trial]
            fits = _fits(target, records[key])
            if size > high:  # a smaller size of this round did not fit
                if fits:
                    again[trial] = size
            elif fits:
                bounds[trial] = (size, high)
                largest[trial] = records[key]
            else:
                bounds[trial] = (low, size)
                beyond[trial] = records[key]

    cliffs = []
    for trial, (low, _) in bounds.items():
        model_bytes = None
        if has_known_writes(trial):
            model_bytes = _model_limit(target, trial, sysctls)
        cliffs.append(Cliff(
            trial, fits_bytes=low if low >= target.least(trial) else None,
            model_bytes=model_bytes, is_open=low == target.most, record=largest.get(trial),
            beyond=beyond.get(trial), again_bytes=again.get(trial)))
    return cliffs


def _next_sizes(target: Target, bounds: Mapping[Trial, tuple[int, int]]
                ) -> dict[Trial, tuple[Trial, int]]:
    """The trials to measure next, each with the trial whose cliff it helps to find, and its size.

    bounds: the largest size known to fit, and the smallest known not to. {} once all are found.
    """
    sized = {}
    for trial, (low, high) in bounds.items():
        for size in _between(low, high):
            sized[target.sized(trial, size)] = (trial, size)
    return sized


def has_known_writes(trial: Trial) -> bool:
    """Whether the model knows the writes of a trial's server."""
    return trial.server == BUILTIN


def _between(low: int, high: int) -> list[int]:
    """Up to AT_ONCE sizes between two, at even distances, the smallest first."""
    count = min(AT_ONCE, high - low - 1)
    sizes = {low + (high - low) * place // (count + 1) for place in range(1, count + 1)}
    return sorted(sizes - {low, high})


def _fits(target: Target, record: Record) -> bool:
    """Whether the target cost one round trip. Raises FirstFlightError where it was not measured."""
    round_trips = target.round_trips(record)
    if record.was_skipped:
        raise CannotError(record.verdict_reason)
    if not record.counts or round_trips is None:
        raise FirstFlightError(f"--find-cliff: {record.trial.id}:"
                               f" {record.error or record.verdict_reason}")
    return round_trips == 1


def _model_limit(target: Target, trial: Trial, sysctls: Mapping[str, str]) -> int | None:
    """The largest size that costs one round trip by the model; None where none does."""
    assert target.predicted is not None  # only early data has none, and its server is nginx
    least = target.least(trial)
    low, high = least - 1, target.most + 1
    while high - low > 1:
        size = (low + high) // 2
        if target.predicted(target.sized(trial, size), sysctls) == 1:
            low = size
        else:
            high = size
    return low if low >= least else None
