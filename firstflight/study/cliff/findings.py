"""Describes a cliff in words: the limit, and the segments and writes that explain it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from firstflight.base.words import plain
from firstflight.findings.quantities import QUANTITIES
from firstflight.runs.results.records import requested_fields
from firstflight.study.cliff.search import (CHAIN, EARLY, LINUX_WINDOW, RESPONSE, TARGETS, Cliff,
                                            has_known_writes)
from firstflight.testbed.hosts.tls_records import sealed_sizes
from firstflight.workloads.fetch.record.transfers import flight_writes, header_bytes
from firstflight.workloads.fetch.trial import Trial

# Parameters that the line of each cliff has already, or that follow from the window.
_STATED = ("initcwnd", "initrwnd", "queue_packets", "server", "http")


def distinctions(trials: Sequence[Trial]) -> list[str]:
    """What distinguishes each trial besides its window, such as "key share x25519"."""
    varied = []
    for field in requested_fields(Trial):
        if field.name in QUANTITIES and field.name not in _STATED:
            values = {getattr(trial, field.name) for trial in trials}
            if len(values) > 1:
                varied.append(field.name)

    def in_words(trial: Trial, name: str) -> str:
        shown = QUANTITIES[name]
        return f"{shown.head} {plain(getattr(trial, name))} {shown.unit}".rstrip()

    return [", ".join(in_words(trial, name) for name in varied) for trial in trials]


def sentences(what: str, cliff: Cliff, distinction: str = "",
              sysctls: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Lines for a reader: the limit, and what explains it.

    what: a key of TARGETS. distinction: see distinctions().
    """
    name, trial = TARGETS[what].name, cliff.trial
    window = "0-RTT" if what == EARLY else f"IW{trial.initcwnd}"
    label = ", ".join(filter(None, (window, distinction)))
    if cliff.fits_bytes is None:
        yield f"{label}: even the smallest {name} takes a further round trip"
        return

    more = " or more" if cliff.is_open else ""
    behind = _after(trial, sysctls)
    if what == RESPONSE and trial.chain_bytes:
        behind = (f" behind a chain of {trial.chain_bytes} bytes and"
                  f" {_counted(trial.tickets, 'ticket')}, each a segment,{behind}")
    sentence = (f"{label}: the largest {name}{behind} that costs no further round trip"
                f" is {cliff.fits_bytes} bytes{more}, measured")
    if not has_known_writes(trial):
        yield f"{sentence} of the server {trial.server} over HTTP/{trial.http}"
        yield from _on_the_wire(what, cliff)
        return

    by_model = "none" if cliff.model_bytes is None else f"{cliff.model_bytes}"
    yield f"{sentence}; by the model {by_model}"

    writes = _writes(what, cliff.fits_bytes, trial)
    segments = [-(-size // trial.mss) for size in writes]
    parts = ", ".join(f"{size} bytes ({_counted(count, 'segment')})"
                      for size, count in zip(writes, segments))
    if trial.kept:
        beside = f"the connection began with {_counted(trial.initcwnd, 'segment')}"
    else:
        beside = (f"{_counted(trial.initcwnd, 'full segment')} would be"
                  f" {trial.initcwnd * trial.mss} bytes")
    yield (f"  the server sends {sum(writes)} bytes in {_counted(len(writes), 'write')}: {parts},"
           f" together {_counted(sum(segments), 'segment')}. A write begins a segment of its own;"
           f" {beside}")
    if cliff.again_bytes:
        yield (f"  a larger {name}, of {cliff.again_bytes} bytes, costs none either: what was sent"
               " before it was larger, too, and had opened the window wider")


def _after(trial: Trial, sysctls: Mapping[str, str]) -> str:
    """What happened on the connection before the response, in words; "" for nothing."""
    if not trial.kept:
        return ""
    words = f" after {_counted(trial.kept, 'response')} of its size"
    if trial.idle_ms:
        restarts = trial.host_settings(sysctls).get("net.ipv4.tcp_slow_start_after_idle", "1")
        words += (f" and {plain(trial.idle_ms / 1000)} s of silence (tcp_slow_start_after_idle ="
                  f" {restarts})")
    return words


def values_of(cliff: Cliff, distinction: str) -> dict[str, str | int | None]:
    """A cliff as JSON.

    fits_bytes: null where even the smallest does not fit. at_least: whether even the largest fits.
    """
    return {"iw": cliff.trial.initcwnd, "with": distinction, "fits_bytes": cliff.fits_bytes,
            "at_least": cliff.is_open, "model_bytes": cliff.model_bytes, "agrees": cliff.agrees}


def besides(what: str, cliffs: Sequence[Cliff]) -> Iterator[str]:
    """Lines about what else a real site sends in the same flight."""
    if what == CHAIN and {cliff.trial.key_share for cliff in cliffs} == {"x25519"}:
        yield ("Measured with the key share x25519. Browsers offer X25519MLKEM768, whose answer is"
               " 1088 bytes longer: measure that with --key-share x25519mlkem768.")
    if what == RESPONSE:
        head_bytes = max(header_bytes(replace(cliff.trial, response_bytes=cliff.fits_bytes or 0))
                         for cliff in cliffs)
        yield (f"The response's headers count too: here they are {head_bytes} bytes more, those of"
               " a site are often 300 to 800. A compressed page counts as compressed.")


def _on_the_wire(what: str, cliff: Cliff) -> Iterator[str]:
    """A line about the segments of a server whose writes are not known."""
    record = cliff.record
    if what == CHAIN and record is not None and record.flight_segments:
        window = cliff.trial.initcwnd
        yield (f"  {record.flight_bytes} bytes leave in {record.flight_segments} segments;"
               f" {window} full ones would be {window * cliff.trial.mss} bytes")
    if what == EARLY and record is not None and record.request_segments:
        yield (f"  with the client's hello it leaves in {record.request_segments} segments, and the"
               f" window of Linux is {LINUX_WINDOW}; no --iw sets the client's")


def _writes(what: str, size: int, trial: Trial) -> tuple[int, ...]:
    """The sizes of the server's writes that have to fit, in bytes."""
    if what == CHAIN:
        return flight_writes(replace(trial, chain_bytes=size))
    text_bytes = header_bytes(replace(trial, response_bytes=size)) + size
    return sealed_sizes(text_bytes, trial.record_bytes) if trial.chain_bytes else (text_bytes,)


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"
