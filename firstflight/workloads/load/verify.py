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
from firstflight.judge.checklist import LOAD, Judging, checks_of
from firstflight.judge.verdict import judged_record
from firstflight.runs.results import checks
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
               sysctls: Mapping[str, str] = MappingProxyType({}), is_exact: bool = True
               ) -> tuple[LoadRecord, Mapping[str, bytes]]:
    """Judge a run; return its record, and the files to keep.

    sysctls: those that the scenario sets. is_exact: as in LoadEvidence.
    """
    failure, files = observed.content.get("error", ""), observed.files
    if QUEUE_FILE in observed.files:
        files = {FILE: join_rows(observed.files), QUEUE_FILE: observed.files[QUEUE_FILE]}
    else:
        failure = failure or "the run left no records"

    def judge() -> LoadRecord:
        evidence = LoadEvidence.gather(trial, observed, files[FILE], sysctls, is_exact)
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


def _is_sampled(record: LoadRecord) -> bool:
    return bool(record.wire_connections)


def _fills_a_flight(trial: LoadTrial) -> bool:
    return (trial.sizes != FIXED or trial.response_bytes >= trial.mss * min(
        host.initcwnd for host in trial.clients))


CHECKS = checks_of(LOAD, {
    "utilisation": Judging(lambda record: record.utilisation is not None, _compare_utilisation),
    "TCP options": Judging(_is_sampled),
    "segment size": Judging(_is_sampled),
    "initial window": Judging(lambda record: bool(record.seen_initcwnd), _compare_initial_window),
    "first flight": Judging(
        lambda record: bool(record.seen_first_flight) and has_flights(record.trial)
        and _fills_a_flight(record.trial), _compare_first_flight),
    "first flight on the wire": Judging(
        lambda record: _is_sampled(record) and has_flights(record.trial),
        _compare_flight_on_wire),
    "servers": Judging(lambda record: record.arrivals is not None, _compare_servers),
    "arrivals": Judging(lambda record: record.arrivals is not None, _compare_arrivals),
    "failed connections": Judging(lambda record: record.failed is not None, _compare_failures),
})
