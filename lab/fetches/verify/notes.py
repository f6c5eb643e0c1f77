"""Limiting factors of transfers besides the initial window and chance, in words for readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lab.fetches import features
from lab.fetches.verify.limits import BY_RESPONSE, RECEIVE_WINDOW
from lab.fetches.verify.observed import HOST, TCP
from lab.fetches.verify.record import Record
from lab.tcp.delivery.packet_path import PATH


def is_limited(record: Record) -> bool:
    """Whether something else than the initial window and the response limited the first flight."""
    return record.limited_by not in BY_RESPONSE


def waited_later(record: Record) -> bool:
    """Whether the client's receive window held later flights back, and not the first."""
    return bool(record.receive_window_waits) and record.limited_by != RECEIVE_WINDOW


def limits(record: Record) -> list[str]:
    """What limited its flights, in words for a table."""
    return [*([record.limited_by] if is_limited(record) else []),
            *([f"{RECEIVE_WINDOW}, later"] if waited_later(record) else [])]


def limit(record: Record) -> str:
    """Such as "64 requested, first flight 27: limited by the receive window (…)"; "" for none."""
    return next(filter(None, (feature.limit(record) for feature in features.registered())), "")


def common(records: Sequence[Record]) -> tuple[str, ...]:
    """A sentence for each limiting factor besides the window; () for none."""
    return tuple(remark for feature in features.registered()
                 for remark in feature.remarks(records))


def of_all(records: Sequence[Record]) -> tuple[str, ...]:
    """The same of a whole run, what judged it, and what readers have to know of its servers."""
    return (*_judges(records), *_skipped(records),
            *(note for feature in features.registered() for note in feature.notes(records)),
            *common(records))


def _judges(records: Sequence[Record]) -> list[str]:
    """How many trials were judged packet by packet, by when data left, and by the model of TCP."""
    counted = Counter(word for record in records for word in record.judged_by.split())
    if not counted:
        return []
    return [f"Judged: every packet of {counted[PATH]} of {len(records)} trials by delay, rate and"
            f" queue; each moment at which data left, in {counted[HOST]}; the whole transfer by the"
            f" model of TCP, in {counted[TCP]}."]


def _skipped(records: Sequence[Record]) -> list[str]:
    """What was skipped, and what would bring it."""
    skipped = Counter(record.verdict_reason for record in records if record.was_skipped)
    return [f"{count} of {len(records)} trials are skipped: {why}."
            for why, count in sorted(skipped.items())]
