"""Where does one byte more cost a round trip? Found by measuring, and computed beside it.

The largest certificate chain, or response, that a first flight holds. The
search measures several sizes of a range at once, since a guest starts only
once for them, and goes on between the last that fits and the first that does
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hosts.records import LEAST_BYTES
from lab.core.errors import CannotError, FirstFlightError, UsageError
from lab.core.kinds import Overrides
from lab.core.quantities import QUANTITIES
from lab.fetches.record import Record
from lab.fetches.transfers import (HEADER_BYTES, computed, flight_writes, is_computable,
                                   sealed_sizes)
from lab.fetches.trial import BUILTIN, Trial
from lab.tcp.predict import predict

CHAIN, RESPONSE = "chain", "response"
AT_ONCE = 7  # sizes of a range that are measured together
MOST_RESPONSE = 1_000_000

Measure = Callable[[Sequence[Trial]], Mapping[Trial, Record]]


@dataclass(frozen=True)
class What:
    """What grows: a field of Trial, from its least to its most bytes, and what it costs."""

    name: str
    field: str
    most: int
    round_trips: Callable[[Record], int | None]
    predicted: Callable[[Trial, Mapping[str, str]], int]

    def sized(self, trial: Trial, size: int) -> Trial:
        return replace(trial, **{self.field: size})


WHATS = {
    CHAIN: What("certificate chain", "chain_bytes", int(QUANTITIES["chain_bytes"].highest),
                lambda record: record.handshake_round_trips,
                lambda trial, sysctls: predict(computed(trial, sysctls)).handshake_round_trips),
    RESPONSE: What("response", "response_bytes", MOST_RESPONSE,
                   lambda record: record.response_round_trips,
                   lambda trial, sysctls: predict(computed(trial, sysctls)).response_round_trips)}


@dataclass(frozen=True)
class Cliff:
    """The largest size that takes one round trip; None where the least takes more.

    model_bytes: the same by the model. is_open: even the most fits. record: of the
    largest that was measured, None for none.
    """

    trial: Trial
    fits_bytes: int | None
    model_bytes: int | None
    is_open: bool = False
    record: Record | None = None

    @property
    def agrees(self) -> bool:
        """Whether the model has the same, where it knows the server's writes."""
        return not is_known(self.trial) or self.fits_bytes == self.model_bytes


def question(what: str, asked: Overrides) -> Overrides:
    """What the command line asks for, with what the search needs. Raises UsageError."""
    lists, what_of = dict(asked.lists), WHATS[what]
    if what_of.field in lists:
        flag = QUANTITIES[what_of.field].flag
        raise UsageError(f"--find-cliff {what}: {flag} is what is searched for")
    if what == CHAIN:
        lists["chain_bytes"] = [max(LEAST_BYTES.values()) * 9]  # whatever its parts
        lists.setdefault("response_bytes", [1000])
    else:
        lists["response_bytes"] = [1]
    return replace(asked, lists=lists, client=asked.client or "curl")


def search(what: str, trials: Sequence[Trial], sysctls: Mapping[str, str],
           measure: Measure) -> list[Cliff]:
    """The cliff of each trial. Raises FirstFlightError where one cannot be measured."""
    of = WHATS[what]
    for trial in trials:
        if not is_computable(trial):
            raise UsageError(f"--find-cliff {what}: looks at a connection's first request, without"
                             " --resumed, --kept, --think")
    ranges = {trial: _least(of, trial) for trial in trials}
    # The last that fits and the first that does not, as far as known.
    ends = {trial: (least - 1, of.most + 1) for trial, least in ranges.items()}
    largest: dict[Trial, Record] = {}
    while wanted := {trial: _between(*end) for trial, end in ends.items() if end[1] - end[0] > 1}:
        sized = {of.sized(trial, size): (trial, size) for trial, sizes in wanted.items()
                 for size in sizes}
        found = measure(list(sized))
        for each, (trial, size) in sized.items():
            low, high = ends[trial]
            if _fits(of, found[each]):
                ends[trial] = max(low, size), high
                if size > low:
                    largest[trial] = found[each]
            else:
                ends[trial] = low, min(high, size)
    return [Cliff(trial, low if low >= ranges[trial] else None,
                  _model_limit(of, trial, ranges[trial], sysctls) if is_known(trial) else None,
                  low == of.most, largest.get(trial))
            for trial, (low, _) in ends.items()]


def is_known(trial: Trial) -> bool:
    """Whether the model knows in which writes its server sends."""
    return trial.server == BUILTIN


def _least(of: What, trial: Trial) -> int:
    return (LEAST_BYTES[trial.signature] * (1 + trial.intermediates)
            if of.field == "chain_bytes" else 1)


def _between(low: int, high: int) -> list[int]:
    """Some sizes between two, evenly."""
    count = min(AT_ONCE, high - low - 1)
    return sorted({low + (high - low) * place // (count + 1) for place in range(1, count + 1)}
                  - {low, high})


def _fits(of: What, record: Record) -> bool:
    round_trips = of.round_trips(record)
    if record.was_skipped:
        raise CannotError(record.verdict_reason)
    if not record.counts or round_trips is None:
        raise FirstFlightError(f"--find-cliff: {record.trial.id}:"
                               f" {record.error or record.verdict_reason}")
    return round_trips == 1


def _model_limit(of: What, trial: Trial, least: int, sysctls: Mapping[str, str]) -> int | None:
    low, high = least - 1, of.most + 1
    while high - low > 1:
        size = (low + high) // 2
        if of.predicted(of.sized(trial, size), sysctls) == 1:
            low = size
        else:
            high = size
    return low if low >= least else None


# In words ----------------------------------------------------------------------------

def told(what: str, cliff: Cliff) -> Iterator[str]:
    """Lines for a reader: the limit, and the segments and writes that explain it."""
    name, trial = WHATS[what].name, cliff.trial
    if cliff.fits_bytes is None:
        yield f"IW{trial.initcwnd}: even the smallest {name} takes a further round trip"
        return
    more = " or more" if cliff.is_open else ""
    behind = (f" behind a chain of {trial.chain_bytes} bytes and"
              f" {_counted(trial.tickets, 'ticket')}, each a segment,"
              if what == RESPONSE and trial.chain_bytes else "")
    found = (f"IW{trial.initcwnd}: the largest {name}{behind} that costs no further round trip"
             f" is {cliff.fits_bytes} bytes{more}, measured")
    if not is_known(trial):
        yield f"{found} of the server {trial.server} over HTTP/{trial.http}"
        yield from _on_the_wire(what, cliff)
        return
    yield (f"{found}; by the model"
           f" {cliff.model_bytes if cliff.model_bytes is not None else 'none'}")
    writes = _writes(what, cliff.fits_bytes, trial)
    segments = [-(-size // trial.mss) for size in writes]
    parts = ", ".join(f"{size} bytes ({_counted(count, 'segment')})"
                      for size, count in zip(writes, segments))
    yield (f"  {sum(writes)} bytes leave in {_counted(len(writes), 'write')}: {parts}:"
           f" {_counted(sum(segments), 'segment')}; {trial.initcwnd} full ones would be"
           f" {trial.initcwnd * trial.mss} bytes")


def _on_the_wire(what: str, cliff: Cliff) -> Iterator[str]:
    """What is seen of a server whose writes are not known."""
    record = cliff.record
    if what == CHAIN and record is not None and record.flight_segments:
        window = cliff.trial.initcwnd
        yield (f"  {record.flight_bytes} bytes leave in {record.flight_segments} segments;"
               f" {window} full ones would be {window * cliff.trial.mss} bytes")


def _writes(what: str, size: int, trial: Trial) -> tuple[int, ...]:
    """The server's writes that shall fit."""
    if what == CHAIN:
        return flight_writes(replace(trial, chain_bytes=size))
    text_bytes = HEADER_BYTES + len(str(size)) + size
    return sealed_sizes(text_bytes, trial.record_bytes) if trial.chain_bytes else (text_bytes,)


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"
