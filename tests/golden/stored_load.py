"""A small load run as it was measured, and what one of its trials left before it was judged.

load/run is a whole run of load/small.toml; load/raw are the files and captures
of its first trial.
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
    """A trial as an engine would bring it back."""

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
    """The same run along other axes, and under other claims."""
    scenario = studies.KIND.study(scenario_file.read(GOLDEN / "axes.toml")).scenario
    return replace(study(), scenario=scenario).report(run())


@cache
def one_seed_run() -> RunData:
    """Of the stored run only the first seed counts, and there is a third window, like the second.

    The second seed was not verified, or failed. Nobody knows the third's 99th percentile.
    """
    kept: Any = [record if record.trial.repeat == 1 else
                 replace(record, verdict=FAIL, verdict_reason="arrivals: observed 1, expected 9")
                 if record.trial.window == "3" else LoadRecord(record.trial, False, "no answer")
                 for record in run().records]
    other: Any = {"p99_ms": None, "mean_ms": 270.0, "retransmission_percent": 0.5}
    third = [replace(record, trial=replace(record.trial, window="16", initcwnd=16),
                     **other if record.counts else {})
             for record in kept if record.trial.window == "10"]
    return replace(run(), records=[*kept, *third])


@cache
def one_seed() -> Report:
    """Of every kind of figure, with every word on claims of three windows."""
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
    packets = {side: (GOLDEN / "raw" / f"{side}.pcap").read_bytes().removeprefix(PCAP_HEADER)
               for side in ("client", "server")}
    return Seen(client_pcap=packets["client"], server_pcap=packets["server"],
                files={path.name: path.read_bytes() for path in (GOLDEN / "raw").glob("*.csv")})


def trial() -> LoadTrial:
    """The one that raw() is of."""
    return study().trials[0]
