"""The verdict on a load run: was the requested load measured?

A run counts only if its packets and counters show the requested arrivals, initial windows and
bottleneck. TCP_INFO shows the windows of all connections, and packets those of some.
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

# How many standard deviations the arrivals may be from their mean: by chance, one run in 16,000 is
# farther away.
SIGMAS = 4.0
# The largest utilisation: netem sends a packet when the one before has left, to the nanosecond.
FULL = 1.0001


def judge_load(trial: LoadTrial, observed: ObservedTrial,
               sysctls: Mapping[str, str] = MappingProxyType({}), is_exact: bool = True
               ) -> tuple[LoadRecord, Mapping[str, bytes]]:
    """Judge a run; return its record, and the files to keep.

    sysctls: those that the scenario sets. is_exact: whether time was virtual.
    """
    failure = observed.content.get("error", "")
    files = observed.files
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
    """Check that all servers ran to the end."""
    dead = len(run.ended_servers)
    requested = run.trial.servers
    yield Comparison(not dead, f"{requested - dead} at the end", str(requested))


def _compare_arrivals(run: LoadEvidence) -> Iterator[Comparison]:
    """Compare how many connections count with their mean at the offered load."""
    requested, sigma = run.trial.expected_arrivals
    counted = len(run.counted)
    yield Comparison(abs(counted - requested) <= SIGMAS * sigma, str(counted),
                     f"{requested:.0f} ± {SIGMAS * sigma:.0f}")


def _compare_utilisation(run: LoadEvidence) -> Iterator[Comparison]:
    """Check that the bottleneck sent no more than its rate allows."""
    if run.utilisation is not None:
        yield Comparison(run.utilisation <= FULL, f"{run.utilisation:.4f}", "1 at most")


def _compare_failures(run: LoadEvidence) -> Iterator[Comparison]:
    """Check that no connection failed."""
    failed = len(run.counted.ended(FAILED))
    yield Comparison(not failed, f"{failed} of {len(run.counted)}", "none")


def _compare_initial_window(run: LoadEvidence) -> Iterator[Comparison]:
    """Compare the initial windows of all connections by TCP_INFO, client by client."""
    for client, initcwnd, observed in _by_client(run):
        if len(observed):
            values = whole_numbers(observed.initial_window)
            yield Comparison(values == str(initcwnd), values, str(initcwnd),
                             f"initial window of client {client}")


def _compare_flight_on_wire(run: LoadEvidence) -> Iterator[Comparison]:
    """Check that no first flight in the packets is larger than the window, client by client."""
    for client, initcwnd, _ in _by_client(run):
        flights = run.flights.get(f"10.0.1.{client}")
        if flights and has_flights(run.trial):
            yield Comparison(max(flights) <= initcwnd, f"{max(flights)} segments", str(initcwnd),
                             f"first flight on the wire to client {client}")


def _compare_first_flight(run: LoadEvidence) -> Iterator[Comparison]:
    """Compare the first flights of responses that are larger than the window, client by client."""
    for client, initcwnd, observed in _by_client(run):
        filling = observed.select(observed.asked_bytes >= initcwnd * run.trial.mss)
        if len(filling) and has_flights(run.trial):
            values = whole_numbers(filling.first_flight)
            yield Comparison(values == str(initcwnd), f"{values} segments", str(initcwnd),
                             f"first flight to client {client}")


def _by_client(run: LoadEvidence) -> Iterator[tuple[int, int, Connections]]:
    """For each client: its number, from 1 on, its initial window, and its connections.

    Only connections whose window was observed are among them.
    """
    for index, host in enumerate(run.trial.clients):
        of_client = run.smooth.select_hosts({index})
        is_observed = of_client.initial_window == of_client.initial_window  # nan equals nothing
        yield index + 1, host.initcwnd, of_client.select(is_observed)


def has_flights(trial: LoadTrial) -> bool:
    """Whether connections have flights to count: paced segments leave one by one."""
    return not trial.paces


def _is_sampled(record: LoadRecord) -> bool:
    """Whether packets of some connections were captured."""
    return bool(record.wire_connections)


def _fills_a_flight(trial: LoadTrial) -> bool:
    """Whether some responses may fill the smallest initial window."""
    smallest_window = min(host.initcwnd for host in trial.clients)
    return trial.sizes != FIXED or trial.response_bytes >= trial.mss * smallest_window


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
