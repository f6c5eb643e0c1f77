"""A small load run as it was measured, and what one of its trials left before it was judged.

load/run is a whole run of load/small.toml; load/raw are the files and captures
of its first trial.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from lab.core import runs, scenario_file
from lab.core.findings import Report
from lab.core.kinds import RunData
from lab.load import study as studies
from lab.load.study import LoadStudy
from lab.load.trial import LoadTrial
from lab.tcp.packets import PCAP_HEADER

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
def study() -> LoadStudy:
    return studies.study(scenario_file.read(GOLDEN / "small.toml"))


@cache
def run() -> RunData:
    return runs.load(RUN, study())


@cache
def report() -> Report:
    return study().report(run())


@cache
def axes() -> Report:
    """The same run along other axes, and under other claims."""
    scenario = studies.study(scenario_file.read(GOLDEN / "axes.toml")).scenario
    return replace(study(), scenario=scenario).report(run())


@cache
def raw() -> Seen:
    packets = {side: (GOLDEN / "raw" / f"{side}.pcap").read_bytes().removeprefix(PCAP_HEADER)
               for side in ("client", "server")}
    return Seen(client_pcap=packets["client"], server_pcap=packets["server"],
                files={path.name: path.read_bytes() for path in (GOLDEN / "raw").glob("*.csv")})


def trial() -> LoadTrial:
    """The one that raw() is of."""
    return study().trials[0]
