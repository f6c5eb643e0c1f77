"""Studies: scenarios of any kind made ready to be measured and analysed.

There are three kinds, named by `kind` in the scenario's file:

    "fetches" (the default)  one transfer at a time on the star (lab.scenario)
    "load"                   many connections on a shared link (lab.load)
    "trace"                  one connection's window over time (lab.trace)

experiment.py measures a Study and need not know its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lab import runs, scenario as scenarios
from lab.errors import FirstFlightError
from lab.findings import Finding
from lab.records import AnyRecord, AnyTrial, Record
from lab.scenario import Overrides, Scenario, path_of
from lab.toml_file import one_of, read_toml
from lab.trial import Trial

FETCHES, LOAD, TRACE = "fetches", "load", "trace"
KINDS = (FETCHES, LOAD, TRACE)

# For --dry-run, from runs on two cores: what a fetch costs in a guest, what
# the host engine spends around it.
GUEST_FETCH_S = {"curl": 0.05, "wget": 0.04, "libcurl": 0.017}
HOST_OVERHEAD_S = 0.3


class Seen(Protocol):
    """What an engine brings back of a trial (engines.job.Observation)."""

    @property
    def trial_id(self) -> str: ...

    @property
    def content(self) -> dict[str, Any]: ...

    @property
    def client_pcap(self) -> bytes: ...

    @property
    def server_pcap(self) -> bytes: ...

    @property
    def files(self) -> dict[str, bytes]: ...


Judged = tuple[AnyRecord, Mapping[str, bytes]]


@dataclass(frozen=True)
class Study:
    """One scenario, what to measure of it, and how that is judged and told.

    source: who published it; text: the scenario's file. trials, record: what
    is measured, and the class of its records. whole: whether these trials are
    all that the figures need.
    judge: (trial, what was seen, whether in virtual time) → record, and what
    of the trial's files is kept, by name.
    tables: (records, run folder, whether in virtual time) → text.
    guest_s, network_s: wall seconds of a trial in a guest, and on a network
    in real time, roughly. all_captures: every trial's packets are kept.
    """

    name: str
    title: str
    claim: str
    source: str
    text: str
    sysctls: dict[str, str]
    trials: Sequence[AnyTrial]
    record: type[Any]
    whole: bool
    judge: Callable[[Any, Seen, bool], Judged]
    tables: Callable[[Sequence[Any], Path, bool], str]
    guest_s: Callable[[Any], float]
    network_s: Callable[[Any], float]
    all_captures: bool = False


def kind_of(name: str) -> str:
    """The kind of a scenario. Raises UsageError where there is no such scenario."""
    path = path_of(name)
    _, raw = read_toml(path)
    kind = raw.get("kind", FETCHES)
    return one_of(kind, KINDS, f"scenarios/{path.name}: kind")


def claim_of(name: str) -> str:
    """The first line of a scenario's file: its claim in one sentence."""
    if kind_of(name) == FETCHES:
        return scenarios.load(name).claim
    return study_of(name).claim


def study_of(name: str, overrides: Overrides = Overrides(), seed: int = 1) -> Study:
    """A scenario with what the command line says in place of it. Raises UsageError."""
    kind = kind_of(name)
    if kind == FETCHES:
        return _of_fetches(name, overrides, seed)
    if kind == LOAD:
        from lab.load.study import study
        return study(name, overrides, seed)
    from lab.trace.study import study as trace_study
    return trace_study(name, overrides, seed)


def findings_of(name: str, folder: Path) -> list[Finding]:
    """What a whole run of a scenario found; not for fetches, whose panels are their own."""
    if kind_of(name) == LOAD:
        from lab.load.study import findings_of as of_load
        return of_load(name, folder)
    from lab.trace.study import findings_of as of_trace
    return of_trace(name, folder)


def newest_whole(name: str, results: Path) -> Path:
    """The newest complete run of a scenario that is not of fetches and not of a part of it.

    Raises FirstFlightError that names the command where there is none.
    """
    home = results / name
    for folder in dict.fromkeys(each.resolve() for each in
                                (home / "latest", *runs.newest_first(home))):
        facts = runs.read_facts(folder)
        if facts.get("state") == runs.COMPLETE and not facts.get("partial"):
            return folder
    raise FirstFlightError(f"{results / name}: there is no whole run; measure it with"
                           f" ./run.sh --scenario {name}")


def _of_fetches(name: str, overrides: Overrides, seed: int) -> Study:
    scenario = scenarios.load(name)
    whole = scenarios.covers(scenario, overrides)
    return Study(
        name=name, title=scenario.title, claim=scenario.claim,
        source=scenario.source, text=scenario.text, sysctls=scenario.sysctls,
        trials=scenarios.expand(scenario, overrides, seed), record=Record, whole=whole,
        judge=lambda trial, seen, exact: _judge_fetch(trial, seen, exact, scenario.sysctls),
        tables=lambda records, _, exact: _fetch_tables(scenario, records, whole, exact),
        guest_s=lambda trial: GUEST_FETCH_S[trial.client], network_s=_fetch_s)


def _judge_fetch(trial: Trial, seen: Seen, exact: bool, sysctls: Mapping[str, str]) -> Judged:
    from lab.verify import judge
    return judge(trial, seen.content, seen.client_pcap, seen.server_pcap, exact=exact,
                 sysctls=sysctls), seen.files


def _fetch_tables(scenario: Scenario, records: Sequence[Record], whole: bool,
                  exact: bool) -> str:
    from lab import table
    return (table.of_scenario(scenario, records, deterministic=exact) if whole
            else table.of_cells(records))


def _fetch_s(trial: Trial) -> float:
    """Handshake, request, two more round trips, and the FINs."""
    return (HOST_OVERHEAD_S + 5 * trial.rtt_ms / 1000
            + trial.response_bytes * 8 / (trial.bandwidth_kbps * 1000))
