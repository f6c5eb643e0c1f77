"""Why larger windows change pages or do not, on made-up networks with known limits.

A network says how long a page takes and how long its link is idle, and it measures each what-if
trial. tests/golden/reasons.py has the same of fetches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from firstflight.figures.reasons import explain_changes
from firstflight.figures.what_ifs import what_if_trials
from firstflight.workloads.page import analysis, reasons
from firstflight.workloads.page.objects import equal_objects
from firstflight.workloads.page.reasons import PageChange, PageWhatIfs
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.page.trial import PageTrial
from tests.golden import stored_page
from tests.golden.reasons import lifted, saves

ONE = stored_page.two()[0]
# A network: for the limits that are lifted, how long the page takes with the larger window, and
# for how long its link is idle, in ms.
Saved = Callable[[set[str]], tuple[float, float]]
ROUNDS = 3  # of what-if trials: later ones depend on earlier ones


def measured(network: Saved, trial: PageTrial) -> PageRecord:
    page_ms, idle_ms = network(lifted(trial)) if trial.initcwnd == 10 else saves(0.0)
    return replace(ONE, trial=trial, page_ms=page_ms, idle_ms=idle_ms,
                   first_flights="3 2" if trial.initcwnd == 3 else "10 2")


def asked(network: Saved, **values: object) -> tuple[list[PageChange], PageWhatIfs]:
    """The comparison of 3 and 10 segments on a network, and the what-if trials of its reasons.

    values: other columns of the trials.
    """
    base = replace(ONE.trial, queue_packets=20, initrwnd=1000, objects=equal_objects(8, 9000, 9000),
                   **values)  # type: ignore[arg-type]
    records = [measured(network, replace(base, initcwnd=window)) for window in (3, 10)]
    changes, what_ifs = reasons.changes(analysis.group_settings(records)), PageWhatIfs()
    for _ in range(ROUNDS):
        done = {record.trial for record in what_ifs.records}
        more = [trial for trial in what_if_trials(changes, what_ifs) if trial not in done]
        what_ifs = PageWhatIfs([*what_ifs.records, *(measured(network, trial) for trial in more)])
    return changes, what_ifs


def reasons_of(network: Saved, **values: object) -> str:
    return " ".join(explain_changes(*asked(network, **values)))


def paragraphs() -> Iterator[tuple[str, list[str]]]:
    """The name of each network with the reasons that are found there."""
    for name, line in {
            "idle for all of it": reasons_of(lambda without: saves(100.0)),
            "more connections save less": reasons_of(
                lambda without: saves(20.0 if "connections" in without else 100.0)),
            "more connections save, unless all names are early": reasons_of(
                lambda without: saves(90.0 if without == {"connections"} else 0.0)),
            "names come late": reasons_of(
                lambda without: saves(250.0 if "names" in without else 100.0)),
            "one connection is shared": reasons_of(
                lambda without: saves(66.0 if "shared" in without else 0.0),
                http="2", connections=1, chain_bytes=4000, server="nginx"),
            "the chain takes it away": reasons_of(
                lambda without: saves(66.0 if "chain" in without else 0.0), chain_bytes=9000),
            "both are the same": reasons_of(lambda without: saves(0.0)),
            "harm that the queue does": reasons_of(
                lambda without: saves(0.0 if "queue" in without else -50.0))}.items():
        yield f"reasons of a page: {name}", [line]
