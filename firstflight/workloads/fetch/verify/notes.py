"""Notes on a run's transfers: how they were judged, what limited them, and their servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from firstflight.base.words import plain
from firstflight.model.transfer import CONGESTION_CONTROLS
from firstflight.net.link import MANAGED
from firstflight.parameters import default
from firstflight.setting.server import BUILTIN, OWN
from firstflight.wire.delivery.packet_path import PATH
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.limits import BY_RESPONSE, RECEIVE_WINDOW
from firstflight.workloads.fetch.record.observed import HOST, TCP


def is_limited(record: Record) -> bool:
    """Whether neither the initial window nor the response's size limited the first flight."""
    return record.limited_by not in BY_RESPONSE


def waited_later(record: Record) -> bool:
    """Whether the client's receive window held back later flights, but not the first one."""
    return bool(record.receive_window_waits) and record.limited_by != RECEIVE_WINDOW


def limits(record: Record) -> list[str]:
    """What limited the flights of a transfer, in words for a table."""
    words = []
    if is_limited(record):
        words.append(record.limited_by)
    if waited_later(record):
        words.append(f"{RECEIVE_WINDOW}, later")
    return words


def run_notes(records: Sequence[Record]) -> tuple[str, ...]:
    """Notes on a whole run: how it was judged, what was skipped, its servers, and limits."""
    return (*_judgement(records), *_unpredicted(records), *_skipped(records),
            *server_notes(records), *limiting_notes(records))


def _judgement(records: Sequence[Record]) -> list[str]:
    """How many trials were judged packet by packet, by when data left, and by the model of TCP."""
    counted: Counter[str] = Counter()
    for record in records:
        counted.update(record.judged_by.split())
    if not counted:
        return []
    return [f"Judged: every packet of {counted[PATH]} of {len(records)} trials by delay, rate and"
            f" queue; each moment at which data left, in {counted[HOST]}; the whole transfer by the"
            f" model of TCP, in {counted[TCP]}."]


def _unpredicted(records: Sequence[Record]) -> list[str]:
    """A note on the trials that the model does not cover, by kernel or congestion control."""
    causes: Counter[str] = Counter()
    for record in records:
        trial = record.trial
        if not record.counts or record.model_ms is not None:
            continue
        if trial.kernel != default("kernel"):
            causes[f"the kernel {trial.kernel}"] += 1
        if trial.module_parameter != default("module_parameter"):
            causes[trial.module_parameter] += 1
        if trial.congestion_control not in CONGESTION_CONTROLS:
            causes[trial.congestion_control] += 1
    if not causes:
        return []

    named = ", ".join(f"{cause} in {count}" for cause, count in sorted(causes.items()))
    return [f"The model of TCP covers {' and '.join(CONGESTION_CONTROLS)} of unchanged kernels,"
            f" with their modules' default parameters. It predicts nothing for {named} of"
            f" {len(records)} trials."]


def _skipped(records: Sequence[Record]) -> list[str]:
    """How many trials were skipped, and why."""
    skipped = Counter(record.verdict_reason for record in records if record.was_skipped)
    return [f"{count} of {len(records)} trials are skipped: {why}."
            for why, count in sorted(skipped.items())]


# Limits of transfers --------------------------------------------------------------------

def limit_note(record: Record) -> str:
    """Such as "64 requested, first flight 27: limited by the receive window".

    "" where only the window or the response's size limited the transfer.
    """
    if waited_later(record):
        # Equal ends become one number.
        ends = dict.fromkeys((plain(record.least_offered_segments or 0),
                              plain(record.most_offered_segments or 0)))
        return (f"{record.trial.initcwnd} requested, later flights waited"
                f" {_times(record.receive_window_waits or 0)} for the client's receive window of"
                f" {' to '.join(ends)} segments")
    if not is_limited(record):
        return ""
    return (f"{record.trial.initcwnd} requested, first flight {record.seen_first_flight}: limited"
            f" by the {record.limited_by}")


def limiting_notes(records: Sequence[Record]) -> tuple[str, ...]:
    """A sentence for each limiting factor besides the window; () for none."""
    return (*_limits(records), *_waits(records), *_drops(records))


def _limits(records: Sequence[Record]) -> list[str]:
    """A note on transfers whose first flight was limited by anything but the initial window."""
    limited = [record for record in records if is_limited(record)]
    if not limited:
        return []
    parts = []
    for name, count in sorted(Counter(record.limited_by for record in limited).items()):
        least = min((record for record in limited if record.limited_by == name),
                    key=lambda record: (record.seen_first_flight or 0) / record.trial.initcwnd)
        parts.append(f"the {name} in {count} (as few as {least.seen_first_flight} of"
                     f" {least.trial.initcwnd} segments)")
    return [f"In {len(limited)} of {len(records)} transfers another cause than the initial window"
            f" limited the first flight: {'; '.join(parts)}."]


def _waits(records: Sequence[Record]) -> list[str]:
    """A note on transfers whose later flights waited for the client's receive window."""
    waited = [record for record in records if waited_later(record)]
    if not waited:
        return []
    most = max(waited, key=lambda record: record.receive_window_waits or 0)
    times = _times(most.receive_window_waits or 0, "up to ")
    return [f"In {len(waited)} of {len(records)} transfers later flights waited {times} for the"
            " client's receive window."]


def _times(count: int, before: str = "") -> str:
    """A number of times in words. before: words such as "up to ", which "once" does not need."""
    return "once" if count == 1 else f"{before}{count} times"


def _drops(records: Sequence[Record]) -> list[str]:
    """Notes on the packets that queues dropped, in either direction."""
    counts: dict[str, list[int]] = {"The queue": [], "The queue towards the server": [],
                                    **{qdisc: [] for qdisc in MANAGED}}
    for record in records:
        qdisc = record.trial.qdisc
        if record.queue_drops:
            counts[qdisc if qdisc in MANAGED else "The queue"].append(record.queue_drops)
        if record.uplink_queue_drops:
            counts["The queue towards the server"].append(record.uplink_queue_drops)

    sentences = []
    for name, drops in counts.items():
        if drops:
            packets = f"{sum(drops)} packet{'' if sum(drops) == 1 else 's'}"
            apart = "" if name in MANAGED else ", apart from random loss"
            sentences.append(f"{name} dropped {packets} in {len(drops)} of {len(records)}"
                             f" transfers{apart}.")
    return sentences


# Servers other than server.py ---------------------------------------------------------

NAMES = {OWN: "the server of your own"}  # those that a sentence does not call by their name


def server_notes(records: Sequence[Record]) -> list[str]:
    """Notes on servers whose writes the model does not know, and on early data."""
    servers = [record.trial.server for record in records
               if record.counts and record.trial.server != BUILTIN]
    if not servers:
        return _early_data(records)
    names = " and ".join(sorted({NAMES.get(server, server) for server in servers}))
    return [f"The writes of {names} are not known, so {len(servers)} of {len(records)} trials have"
            " no model: they are verified by window, RTT, bandwidth, losses, retransmissions and"
            " the received bytes.",
            *_early_data(records)]


def _early_data(records: Sequence[Record]) -> list[str]:
    """A note on the requests that were early data."""
    taken = [record.accepted_early_bytes or 0 for record in records
             if record.counts and record.trial.early_data_bytes]
    if not taken:
        return []
    sizes = " to ".join(map(str, dict.fromkeys((min(taken), max(taken)))))
    return [f"The requests of {len(taken)} of {len(records)} trials were early data (0-RTT),"
            f" {sizes} bytes: they left with the client's hello, and the server took them."]
