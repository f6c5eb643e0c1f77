"""The verdict on a load run.

A run counts only if its own packets and counters show that it was what was
requested: arrivals at the offered load, initial windows as TCP used them, for
all connections by tcp_info and for some by their packets, and a bottleneck
that let through what it may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from firstflight.base.comparison import Comparison
from firstflight.judge import syns
from firstflight.judge.verdict import judged_record
from firstflight.runs.results import checks
from firstflight.runs.results.checks import Check
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.load.record import (FAILED, FILE, QUEUE_FILE, Connections,
                                               LoadEvidence, LoadRecord,
                                               join_rows, record_of, whole_numbers)
from firstflight.workloads.load.trial import FIXED, LoadTrial

# The arrivals of one run in 16,000 are farther from their mean than this by chance.
SIGMAS = 4.0
# netem sends a packet when the one before has left, to the nanosecond.
FULL = 1.0001


def judge_load(trial: LoadTrial, observed: ObservedTrial,
               sysctls: Mapping[str, str] = MappingProxyType({}), has_scale: bool = True
               ) -> tuple[LoadRecord, Mapping[str, bytes]]:
    """Judge a run; return its record, and the files to keep.

    sysctls: those that the scenario sets. has_scale: as of LoadEvidence.
    """
    failure, files = observed.content.get("error", ""), observed.files
    if QUEUE_FILE in observed.files:
        files = {FILE: join_rows(observed.files), QUEUE_FILE: observed.files[QUEUE_FILE]}
    else:
        failure = failure or "the run left no records"

    def judge() -> LoadRecord:
        evidence = LoadEvidence.gather(trial, observed, files[FILE], sysctls, has_scale)
        dead = evidence.ended_servers
        error = f"server {dead[0]} of {trial.servers} died in the run" if dead else ""
        record = replace(record_of(evidence), ok=not dead, error=error)
        return checks.give_verdict(record, checks.failures(CHECKS, evidence))

    return judged_record(LoadRecord, trial, observed.content, failure, judge), files


# What is compared --------------------------------------------------------------------

def _compare_servers(run: LoadEvidence) -> Iterator[Comparison]:
    dead, requested = len(run.ended_servers), run.trial.servers
    yield Comparison(not dead, f"{requested - dead} at the end", str(requested))


def _compare_arrivals(run: LoadEvidence) -> Iterator[Comparison]:
    requested, sigma = run.trial.expected_arrivals
    counted = len(run.counted)
    yield Comparison(abs(counted - requested) <= SIGMAS * sigma, str(counted),
                     f"{requested:.0f} ± {SIGMAS * sigma:.0f}")


def _compare_utilisation(run: LoadEvidence) -> Iterator[Comparison]:
    if run.utilisation is not None:
        yield Comparison(run.utilisation <= FULL, f"{run.utilisation:.4f}", "1 at most")


def _compare_failures(run: LoadEvidence) -> Iterator[Comparison]:
    failed = len(run.counted.ended(FAILED))
    yield Comparison(not failed, f"{failed} of {len(run.counted)}", "none")


def _compare_syns(run: LoadEvidence) -> Iterator[Comparison]:
    for exchange in run.sampled:
        yield from syns.compare_syns(run.trial, run.sysctls, run.sysctls, exchange, run.has_scale)


def _compare_segments(run: LoadEvidence) -> Iterator[Comparison]:
    """No segment is longer than the MSS lets it."""
    mss = syns.mss_of(run.trial, run.sysctls)
    longest = max((segment.payload_bytes for exchange in run.sampled
                   for segment in exchange.at_server if segment.to_client), default=0)
    yield Comparison(longest <= mss, f"a segment of {longest} bytes", f"at most {mss}")


def _compare_initial_window(run: LoadEvidence) -> Iterator[Comparison]:
    for client, initcwnd, observed in _by_client(run):
        if len(observed):
            values = whole_numbers(observed.initial_window)
            yield Comparison(values == str(initcwnd), values, str(initcwnd),
                             f"initial window of client {client}")


def _compare_flight_on_wire(run: LoadEvidence) -> Iterator[Comparison]:
    for client, initcwnd, _ in _by_client(run):
        flights = run.flights.get(f"10.0.1.{client}")
        if flights and has_flights(run.trial):
            yield Comparison(max(flights) <= initcwnd, f"{max(flights)} segments", str(initcwnd),
                             f"first flight on the wire to client {client}")


def _compare_first_flight(run: LoadEvidence) -> Iterator[Comparison]:
    for client, initcwnd, observed in _by_client(run):
        whole = observed.select(observed.asked_bytes >= initcwnd * run.trial.mss)
        if len(whole) and has_flights(run.trial):
            values = whole_numbers(whole.first_flight)
            yield Comparison(values == str(initcwnd), f"{values} segments", str(initcwnd),
                             f"first flight to client {client}")


def _by_client(run: LoadEvidence) -> Iterator[tuple[int, int, Connections]]:
    """Number (from 1), initial window, and its connections whose window was observed."""
    for number, host in enumerate(run.trial.clients):
        mine = run.smooth.select_hosts({number})
        yield number + 1, host.initcwnd, mine.select(mine.initial_window == mine.initial_window)


def has_flights(trial: LoadTrial) -> bool:
    """A paced flight leaves one by one: there is no first flight to count."""
    return not trial.paces


def _fills_a_flight(trial: LoadTrial) -> bool:
    return (trial.sizes != FIXED or trial.response_bytes >= trial.mss * min(
        host.initcwnd for host in trial.clients))


CHECKS: tuple[Check[LoadEvidence, LoadRecord], ...] = (
    Check("servers", "whether all servers lived until the run ended", _compare_servers,
          lambda record: record.arrivals is not None),
    Check("arrivals", "connections that arrived, against the offered load", _compare_arrivals,
          lambda record: record.arrivals is not None),
    Check("utilisation", "bytes through the bottleneck, against its bandwidth",
          _compare_utilisation,
          lambda record: record.utilisation is not None),
    Check("failed connections", "connections that were refused, reset or cut short",
          _compare_failures,
          lambda record: record.failed is not None),
    Check(syns.NAME, f"{syns.WHY}, of sampled connections", _compare_syns,
          lambda record: bool(record.wire_connections)),
    Check("segment size", "payloads of sampled connections, against the MSS", _compare_segments,
          lambda record: bool(record.wire_connections)),
    Check("initial window", "tcp_info at accept, of all connections", _compare_initial_window,
          lambda record: bool(record.seen_initcwnd)),
    Check("first flight on the wire", "segments before the first acknowledgement of data, of"
          " sampled connections that lost nothing", _compare_flight_on_wire,
          lambda record: bool(record.wire_connections) and has_flights(record.trial)),
    Check("first flight", "segments that left with the first write by tcp_info, of all"
          " connections that fill it", _compare_first_flight,
          lambda record: bool(record.seen_first_flight) and has_flights(record.trial)
          and _fills_a_flight(record.trial)),
)
