"""What besides the window limited transfers, in sentences: receive windows, buffers, queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lab.core.words import plain
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify import notes
from lab.fetches.verify.limits import PACING, RECEIVE_WINDOW, SEND_BUFFER
from lab.fetches.verify.record import Record
from lab.tcp.delivery.qdiscs import CHOOSING

LARGER_WINDOW = "set a larger initrwnd"


def limit(record: Record) -> str:
    """Such as "64 requested, first flight 27: limited by the receive window (…)"; "" for none."""
    if notes.waited_later(record):
        return (f"{record.trial.initcwnd} requested, later flights waited"
                f" {record.receive_window_waits} times for the client's receive window of"
                f" {plain(record.least_offered_segments or 0)} to"
                f" {plain(record.most_offered_segments or 0)} segments ({LARGER_WINDOW})")
    if not notes.is_limited(record):
        return ""
    remedy = remedy_of(record.trial, record.limited_by)
    return (f"{record.trial.initcwnd} requested, first flight {record.seen_first_flight}: limited"
            " by"
            f" the {record.limited_by}{f' ({remedy})' if remedy else ''}")


def remedy_of(trial: Trial, limited_by: str) -> str:
    """What to set so that it does not limit, "" for nothing."""
    if limited_by == RECEIVE_WINDOW:
        return (f"set initrwnd = {trial.initcwnd}" if trial.initrwnd < trial.initcwnd
                else "set a larger net.ipv4.tcp_rmem")
    larger = "SO_SNDBUF, or none" if trial.send_buffer_bytes else "net.ipv4.tcp_wmem"
    return {SEND_BUFFER: f"set a larger {larger}",
            PACING: "choose a congestion control that does not pace"}.get(limited_by, "")


def common(records: Sequence[Record]) -> tuple[str, ...]:
    """A sentence for each limiting factor besides the window; () for none."""
    return (*_limits(records), *_waits(records), *_drops(records))


def _limits(records: Sequence[Record]) -> list[str]:
    limited = [record for record in records if notes.is_limited(record)]
    if not limited:
        return []
    parts = []
    for name, count in sorted(Counter(record.limited_by for record in limited).items()):
        least = min((record for record in limited if record.limited_by == name), key=_part)
        parts.append(f"the {name} in {count}, down to {least.seen_first_flight} of"
                     f" {least.trial.initcwnd} segments")
    return [f"In {len(limited)} of {len(records)} transfers another cause than the initial window"
            f" limited the first flight: {'; '.join(parts)}."]


def _waits(records: Sequence[Record]) -> list[str]:
    """Of transfers whose later flights waited for the client's receive window."""
    waited = [record for record in records if notes.waited_later(record)]
    if not waited:
        return []
    most = max(waited, key=lambda record: record.receive_window_waits or 0)
    return [f"In {len(waited)} of {len(records)} transfers later flights waited for the client's"
            f" receive window, up to {most.receive_window_waits} times ({LARGER_WINDOW})."]


def _part(record: Record) -> float:
    """Of the window, what the first flight had."""
    return (record.seen_first_flight or 0) / record.trial.initcwnd


def _drops(records: Sequence[Record]) -> list[str]:
    """What the queues dropped, in either direction."""
    sentences = []
    for name, column in (("The queue", "queue_drops"),
                         ("The queue towards the server", "uplink_queue_drops")):
        dropped = [record for record in records if getattr(record, column)
                   and (column != "queue_drops" or record.trial.qdisc not in CHOOSING)]
        if dropped:
            count = sum(getattr(record, column) for record in dropped)
            sentences.append(f"{name} was too short for {len(dropped)} of {len(records)} transfers"
                             f" and dropped {count} of their packets, apart from random loss.")
    for qdisc in CHOOSING:
        counts = [record.queue_drops for record in records
                  if record.queue_drops and record.trial.qdisc == qdisc]
        if counts:
            sentences.append(f"To keep the queue short, {qdisc} dropped {sum(counts)} packets of"
                             f" {len(counts)} of {len(records)} transfers.")
    return sentences
