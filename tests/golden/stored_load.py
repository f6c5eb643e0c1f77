"""A small stored run of a load, and what one of its trials left before it was judged.

load/run is a whole run of load/small.toml. load/raw has the files and captures of its first trial.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from firstflight.findings.findings import Report
from firstflight.net.pcap import HEADER as PCAP_HEADER
from firstflight.runs import scenario_file
from firstflight.runs.kinds import RunData, Study
from firstflight.runs.results.records import FAIL
from firstflight.study import loads as studies
from firstflight.workloads.load.record import LoadRecord
from firstflight.workloads.load.scenario import (ALIKE, LESS, MORE, Compared, LoadClaim,
                                                 LoadFigure)
from firstflight.workloads.load.trial import LoadTrial
from tests.golden.rows import stored_run

GOLDEN = Path(__file__).resolve().parent / "load"
RUN = GOLDEN / "run"


@dataclass(frozen=True)
class Seen:
    """What an engine brings back of a trial (firstflight.testbed.messages.ObservedTrial)."""

    trial_id: str = ""
    content: dict[str, Any] = field(default_factory=lambda: {"ended_servers": []})
    client_pcap: bytes = b""
    server_pcap: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)


@cache
def study() -> Study:
    return studies.KIND.study(scenario_file.read(GOLDEN / "small.toml"))


@cache
def run() -> RunData:
    return stored_run(RUN, LoadRecord)


@cache
def report() -> Report:
    return study().report(run())


@cache
def axes() -> Report:
    """The report of the stored run with the axes and claims of load/axes.toml."""
    scenario = studies.KIND.study(scenario_file.read(GOLDEN / "axes.toml")).scenario
    return replace(study(), scenario=scenario).report(run())


@cache
def one_seed_run() -> RunData:
    """The stored run as if only its first seed counted, with a third window of 16 segments.

    A trial of the second seed failed its checks under 3 segments, and has no result under 10. The
    third window has no 99th percentile.
    """
    records: list[Any] = []
    for record in run().records:
        if record.trial.repeat == 1:
            records.append(record)
        elif record.trial.window == "3":
            records.append(replace(record, verdict=FAIL,
                                   verdict_reason="arrivals: observed 1, expected 9"))
        else:
            records.append(LoadRecord(record.trial, False, "no answer"))

    other: Any = {"p99_ms": None, "mean_ms": 270.0, "retransmission_percent": 0.5}
    third = [replace(record, trial=replace(record.trial, window="16", initcwnd=16),
                     **other if record.counts else {})
             for record in records if record.trial.window == "10"]
    return replace(run(), records=[*records, *third])


@cache
def one_seed() -> Report:
    """The report of one_seed_run(): every kind of figure, and claims with every result."""
    gain = LoadFigure(name="loads", title="By load", kind="gain", sweeps=("small",), by="load",
                      windows=("3", "10", "16"))
    times = LoadFigure(name="times", title="Times", kind="distribution", sweeps=("one",),
                       windows=("3", "10", "3+10"))
    figures = (gain, replace(gain, name="sizes", down="load", by="response_bytes"),
               replace(gain, name="one", sweeps=("one",), by="window"),
               replace(gain, name="windows", by="window", down="load"),
               replace(gain, name="pairs", by="connections", down="load"),
               times, replace(times, name="mix", kind="mix"),
               replace(gain, name="hit", kind="hit"),
               replace(times, name="deck", kind="percentiles", published="Africa, all"))
    claims = [LoadClaim(figure=figure, says=f"{figure}: {quantity} {expects}", metric=quantity,
                        compares=(Compared("3"), Compared(window)), expects=expects)
              for figure, window in (("loads", "10"), ("one", "16"))
              for quantity in ("mean_ms", "retransmission_percent")
              for expects in (LESS, MORE, ALIKE)]
    requested = replace(study().scenario, figures=figures, claims=tuple(claims))
    return replace(study(), scenario=requested).report(one_seed_run())


@cache
def raw() -> Seen:
    """What the first trial left."""
    packets = {side: (GOLDEN / "raw" / f"{side}.pcap").read_bytes().removeprefix(PCAP_HEADER)
               for side in ("client", "server")}
    return Seen(client_pcap=packets["client"], server_pcap=packets["server"],
                files={path.name: path.read_bytes() for path in (GOLDEN / "raw").glob("*.csv")})


def trial() -> LoadTrial:
    """The trial of raw()."""
    return study().trials[0]
