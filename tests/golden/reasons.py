"""Why larger windows save, harm or change nothing, on made-up networks with known limits.

A network says how long a trial takes and how long its link is idle, and it measures each what-if
trial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from firstflight.figures.reasons import explain_changes
from firstflight.figures.what_ifs import MOST_TRIALS, what_if_trials
from firstflight.workloads.fetch.figures.cells import WindowChange, changes, settings
from firstflight.workloads.fetch.figures.reasons import WhatIfs
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.page.trial import PageTrial
from firstflight.workloads.trace.trial import TraceTrial
from tests.golden import stored_fetches

ONE = next(record for record in stored_fetches.stored("zhao2019") if record.trial.initcwnd == 3)
# How long a trial takes, and for how long its link is idle, in ms.
Network = Callable[[Trial], tuple[float, float]]


def window_of(trial: Trial) -> int:
    """The window that is compared: the client's if it uploads, otherwise the server's."""
    return trial.client_initcwnd if trial.request_bytes else trial.initcwnd


def measured(network: Network, trial: Trial) -> Record:
    """The record of a trial on a network. With jitter the third repeat has another last flight."""
    total_ms, idle_ms = network(trial)
    flights = "10+11" if window_of(trial) == 10 else "3+6+12"
    if trial.jitter_ms and trial.repeat == 3:
        total_ms, flights = total_ms + 1, f"{flights[:-1]}1+1"
    return replace(ONE, trial=trial, total_ms=total_ms, link_idle_ms=idle_ms,
                   response_round_trips=flights.count("+") + 1, response_flights=flights,
                   upload_round_trips=flights.count("+") + 1, upload_flights=flights)


def asked(network: Network, trials: int = MOST_TRIALS, **values: object
          ) -> tuple[WindowChange, WhatIfs, int]:
    """A comparison of 3 and 10 segments on a network, its what-if trials, and how many those are.

    trials: of the what-if trials at most. values: other columns of the trials.
    """
    base = replace(ONE.trial, rtt_ms=100.0, bandwidth_kbps=1000.0, uplink_kbps=1000.0,
                   queue_packets=20, initrwnd=10)
    base = replace(base, **values)  # type: ignore[arg-type]
    varied = "client_initcwnd" if base.request_bytes else "initcwnd"
    records = [measured(network, replace(base, **{varied: window}, repeat=repeat))
               for window in (3, 10) for repeat in ((1, 2, 3) if base.is_random else (1,))]
    (change,) = changes(settings(records))
    what_ifs = WhatIfs()
    for _ in range(3):
        done = {record.trial for record in what_ifs.records}
        more = [trial for trial in what_if_trials([change], what_ifs) if trial not in done]
        what_ifs = WhatIfs([*what_ifs.records, *(measured(network, trial) for trial in more)])
    return change, what_ifs, len(what_ifs.records)


def reasons_of(network: Network, **values: object) -> str:
    change, what_ifs, _ = asked(network, **values)
    return " ".join(explain_changes([change], what_ifs))


def lifted(trial: Trial | PageTrial | TraceTrial) -> set[str]:
    """The limits that a what-if trial is without."""
    return {*filter(None, trial.what_if.split("_"))}


def saves(saved_ms: float, idle_ms: float | None = None) -> tuple[float, float]:
    """The time and the idle time of the larger window, where the smaller one has 500 and 300 ms.

    saved_ms: of the time. idle_ms: of the idle time, None for as much.
    """
    return 500.0 - saved_ms, 300.0 - (saved_ms if idle_ms is None else idle_ms)


def of_larger(effect: Callable[[set[str]], tuple[float, float]]) -> Network:
    """A network on which limits affect only the larger window.

    effect: its time and idle time in ms, for the limits that are lifted.
    """
    return lambda trial: effect(lifted(trial)) if window_of(trial) == 10 else saves(0.0)


def slower_base(trial: Trial) -> tuple[float, float]:
    """A network on which the smaller window gets slower without the limit, and 10 stays as it is.
    """
    if trial.initcwnd == 10:
        return 420.0, 220.0
    return (600.0 if trial.what_if else 500.0), 300.0


def paragraphs() -> Iterator[tuple[str, list[str]]]:
    """The name of each network with the reasons that are found there."""
    for name, line in {
            "idle for all of it": reasons_of(of_larger(lambda without: saves(100.0))),
            "flights that chance changes": reasons_of(of_larger(lambda without: saves(100.0)),
                                                jitter_ms=5.0),
            "idle for 97 %": reasons_of(of_larger(lambda without: saves(100.0, 97.0))),
            "idle for 90 %": reasons_of(of_larger(lambda without: saves(100.0, 90.0))),
            "an ample receive window saves more": reasons_of(of_larger(
                lambda without: saves(150.0 if without else 100.0))),
            "without limits both get slower": reasons_of(slower_base),
            "random loss of the smaller window": reasons_of(of_larger(
                lambda without: saves(0.0 if "loss" in without else 60.0, 10.0)),
                loss_percent=1.0),
            "two limits, each takes it away": reasons_of(of_larger(lambda without: saves(
                66.0 if {"receive-window", "bandwidth"} <= without else 0.0))),
            "one limit takes it away": reasons_of(of_larger(lambda without: saves(
                66.0 if "bandwidth" in without else 0.0))),
            "several together": reasons_of(of_larger(lambda without: saves(
                66.0 if {"receive-window", "queue"} & without else 0.0))),
            "a limit protects": reasons_of(of_larger(lambda without: saves(
                -22.8 if without == {"receive-window"} else 0.0))),
            "both are the same": reasons_of(lambda trial: saves(0.0)),
            "the connection was used before": reasons_of(of_larger(
                lambda without: saves(66.0 if "used" in without else 0.0)), kept=1),
            "most of it is the uplink": reasons_of(of_larger(
                lambda without: saves(20.0 if "uplink" in without else 100.0)), uplink_kbps=56.0),
            "of an upload the uplink is most": reasons_of(of_larger(
                lambda without: saves(20.0 if "uplink" in without else 100.0)), uplink_kbps=56.0,
                request_bytes=30_000),
            "of an upload one limit takes it away": reasons_of(of_larger(lambda without: saves(
                66.0 if "uplink" in without else 0.0)), uplink_kbps=56.0, request_bytes=30_000),
            "a limit that changes next to nothing": reasons_of(of_larger(lambda without: saves(
                5.2 if {"bandwidth", "queue"} <= without else
                4.9 if "bandwidth" in without else 0.0))),
            "harm that the queue does": reasons_of(of_larger(
                lambda without: saves(0.0 if "queue" in without else -50.0))),
            "harm, of which the queue does 84 %": reasons_of(of_larger(
                lambda without: saves(-8.0 if "queue" in without else -50.0))),
            "harm, of which the queue does 76 %": reasons_of(of_larger(
                lambda without: saves(-12.0 if "queue" in without else -50.0))),
            "harm that another limit does": reasons_of(of_larger(
                lambda without: saves(0.0 if "receive-window" in without else -50.0))),
            "a sysctl takes most of it away": reasons_of(of_larger(lambda without: saves(
                100.0 if "sysctl-tcp-sack" in without else 20.0)),
                sysctl="net.ipv4.tcp_sack=0"),
            "harm by two limits together": reasons_of(of_larger(lambda without: saves(
                0.0 if {"queue", "jitter"} <= without else -50.0)), jitter_ms=5.0)}.items():
        yield f"reasons: {name}", [line]
