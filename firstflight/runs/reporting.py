"""The parts of a report that every kind has: verified trials, failures, checks, provenance."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from firstflight.base import words
from firstflight.findings.charts import Timeline
from firstflight.findings.claims import REPRODUCED, UNDECIDED, in_full
from firstflight.findings.findings import (Answer, Column, Fact, Finding, Report, Table, Tile,
                                           count_bars, kernel_of)
from firstflight.runs import runs, scenario_file
from firstflight.runs.kinds import R, RunData, S, Study, T
from firstflight.runs.results import checks
from firstflight.runs.results.records import Record

MOST_ROWS = 500  # of one table: a browser sorts them without delay, and nobody reads more


def report_of(study: Study[S, T, R], run: RunData[R], findings: Sequence[Finding], *,
              summary: Sequence[str] = (), sentences: Sequence[str] = (),
              tiles: Sequence[Tile] = (), answer: Answer = Answer(),
              timelines: tuple[Timeline, ...] = (), trials: Table | None = None,
              causes: Table | None = None) -> Report:
    """The report of a run. Keywords: the fields of Report that the run's kind adds."""
    head, records = study.head, run.records
    path = f"{head.name}/{run.folder.resolve().name}"
    is_complete = run.facts.get("state") == runs.COMPLETE
    is_whole = is_complete and not run.facts.get("partial")
    files = (runs.TRIALS_CSV, *((runs.WHAT_IF_CSV,) if run.what_ifs else ()), runs.RUN_JSON)

    # Warnings come before anything that rests on the records.
    warnings = (run.changed,) if run.changed else ()
    under_way = () if is_complete else (
        "The run is under way or was interrupted: this page shows what it had measured when the"
        " page was built.",)
    return Report(
        name=head.name, title=head.title, claim=head.claim, source=head.source, path=path,
        facts=run.facts, verified=sum(record.counts for record in records), count=len(records),
        findings=tuple(findings), tiles=(*verified_tiles(run, findings), *tiles),
        summary=(*warnings, *summary), sentences=(*warnings, *sentences, *under_way),
        about=head.about if is_whole else "", opening=head.result if is_whole else "",
        checks=checks.table(study.kind.checks(), records, run.exact), failures=failures(records),
        settings=settings(run.facts),
        provenance=tuple(provenance(run.facts, head.name, path, head.text)), answer=answer,
        timelines=timelines, trials=trials, causes=causes, files=files)


def verified_tiles(run: RunData[R], findings: Sequence[Finding]) -> tuple[Tile, ...]:
    """The numbers at the top of the page of every run."""
    if not run.records:
        return ()
    counting = sum(record.counts for record in run.records)
    tiles = [Tile(f"{counting} of {len(run.records)}", "trials verified on the wire")]
    for held_out, which in ((False, "published bars"), (True, "held-out bars")):
        counted = count_bars(findings, held_out)
        if counted:
            more = f"; {counted[UNDECIDED]} {in_full(UNDECIDED)}" if counted[UNDECIDED] else ""
            tiles.append(Tile(f"{counted[REPRODUCED]} of {counted.total()}",
                              f"{which} reproduced{more}"))
    emulated_s, wall_s = run.facts.get("emulated_s"), run.facts.get("wall_s")
    if isinstance(emulated_s, (int, float)) and isinstance(wall_s, (int, float)):
        tiles.append(Tile(f"{words.format_duration(emulated_s)} in {words.format_duration(wall_s)}",
                          "network time, and the time it took"))
    return tuple(tiles)


def failures(records: Sequence[Record]) -> Table | None:
    """The trials that do not count, at most MOST_ROWS, with their reasons; None if all count."""
    failed = sorted((record for record in records if not record.counts),
                    key=lambda record: str(record.trial.id))
    if not failed:
        return None
    columns = (Column("trial", is_text=True), Column("verdict", is_text=True, is_filter=True),
               Column("reason", is_text=True))
    rows = tuple((record.trial.id, record.outcome, record.why_not) for record in failed)
    return Table("Trials that do not count", columns, rows).first(MOST_ROWS)


def settings(facts: Mapping[str, object]) -> Table | None:
    """The TCP settings of both hosts; None if run.json has none."""
    stored = mapping(facts.get("sysctls"))
    hosts = {host: mapping(values) for host, values in sorted(stored.items())}
    names = sorted({name for values in hosts.values() for name in values})
    if not names:
        return None
    rows = []
    for name in names:
        rows.append((name, *(text(values.get(name)) for values in hosts.values())))
    columns = (Column("sysctl", is_text=True), *(Column(host, is_text=True) for host in hosts))
    return Table("TCP settings", columns, tuple(rows))


# Provenance --------------------------------------------------------------------------

def provenance(facts: Mapping[str, object], scenario: str, path: str, text_now: str) -> list[Fact]:
    """The entries of run.json, in the order of the page; missing ones are left out.

    path: the run's folder, relative to the results folder. text_now: the scenario's file today.
    """
    machine, tools = mapping(facts.get("machine")), mapping(facts.get("tools"))
    project = mapping(facts.get("project"))
    engines = {"uml": "User-Mode Linux guest", "host": "this machine's kernel", "none": ""}
    engine = engines.get(str(facts.get("engine")), text(facts.get("engine")))
    clock = ", virtual time" if facts.get("virtual_time") is True else ", real time"
    cores = f"{machine['cpus']} cores" if machine.get("cpus") else ""

    earlier_runs = [f"{count} trials of {run}"
                    for run, count in mapping(facts.get("earlier_runs")).items()]
    packages = []  # of the systems of named kernels
    for name, versions in sorted(mapping(facts.get("systems")).items()):
        listed = [f"{package} {version}"
                  for package, version in sorted(mapping(versions).items())]
        packages.append((f"packages of {name}", joined(*listed)))

    file = "one of its own, kept in run.json"
    if scenario in scenario_file.names():
        has_changed = facts.get("scenario_file", text_now) != text_now
        file = f"scenarios/{scenario}.toml{', changed since the run' if has_changed else ''}"
    rows = [
        ("command", command(facts, scenario)), ("run", path), ("state", facts.get("state")),
        ("kernel under test", "" if facts.get("engine") == "none" else kernel_of(facts)),
        ("engine", f"{engine}{clock}" if engine else ""),
        ("network time", seconds(facts.get("emulated_s"))),
        ("wall time", seconds(facts.get("wall_s"))),
        ("taken from earlier runs", joined(*earlier_runs)),
        ("started", facts.get("started_at")),
        ("finished", facts.get("finished_at")), ("seed", facts.get("seed")),
        ("jobs", facts.get("jobs")), ("machine", machine.get("system")),
        ("machine's kernel", machine.get("kernel")),
        ("processor", joined(machine.get("processor"), cores)),
        *sorted(tools.items()), *packages, ("version", project.get("version")),
        ("commit", joined(project.get("commit"),
                          "with local changes" if project.get("changed") else "")),
        ("scenario file", file)]
    return [Fact(name, text(value)) for name, value in rows if text(value)]


def command(facts: Mapping[str, object], scenario: str) -> str:
    """The command that repeats the run, without the flags that say where its files go."""
    stored = facts.get("arguments")
    arguments = [str(word) for word in stored] if isinstance(stored, list) else []
    kept = []
    for before, word in zip(["", *arguments], arguments):
        is_value = before in ("--results", "--figures")
        if not is_value and not word.startswith(("--results", "--figures")):
            kept.append(word)

    # The scenario is added where the flags do not name it: a default chose it.
    is_named = any(Path(word.removeprefix("--scenario=")).stem == scenario for word in kept)
    if not is_named and (not kept or scenario in scenario_file.names()):
        kept = ["--scenario", scenario, *kept]
    return f"./run.sh {shlex.join(kept)}"


def mapping(value: object) -> dict[str, object]:
    """The value of a fact that has to be a table; {} if it is none."""
    return {str(key): inner for key, inner in value.items()} if isinstance(value, dict) else {}


def text(value: object) -> str:
    """A fact as text; "" for None."""
    return "" if value is None else str(value)


def joined(*parts: object) -> str:
    """The parts as text, with commas between them, without those that are empty."""
    return ", ".join(text(part) for part in parts if part)


def seconds(value: object) -> str:
    """A duration in words; "" if the fact is no number."""
    return f"{value:g} s" if isinstance(value, (int, float)) else ""
