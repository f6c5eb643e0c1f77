"""Stored runs and captures, damaged, and what the project does with them: inputs of attempts.py."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import drawing
from benchmarks.faults import mutations
from lab import registry
from lab.core.errors import FirstFlightError
from lab.core.results.records import read_records
from lab.core.run.kinds import RunData
from lab.core.scenario import scenario_file
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.verify import judge
from lab.render import markdown, page, text

Attempt = Callable[[], object]
GOLDEN = Path(__file__).resolve().parent.parent.parent / "tests" / "golden"
DRAWN = 0.1  # of the stored runs
FACTS: dict[str, Any] = {
    "state": "complete", "engine": "uml", "virtual_time": True, "kernel": "6.1.99",
    "arguments": ["--scenario", "zhao2019"], "jobs": 2, "seed": 1, "wall_s": 2.5,
    "emulated_s": 600.0, "started_at": "2026-01-01T00:00:00+00:00",
    "machine": {"kernel": "6.1.0", "processor": "x", "cpus": 2, "system": "Debian"},
    "tools": {"python": "3.11.2", "curl": "curl 7.88.1"},
    "project": {"commit": "0" * 40, "changed": False},
    "sysctls": {"client": {"net.ipv4.tcp_sack": "1"}, "server": {"net.ipv4.tcp_sack": "1"}}}


# Stored runs --------------------------------------------------------------------------

@cache
def stored_runs() -> dict[str, tuple[Path, dict[str, Any]]]:
    """Small stored runs: of each the trials.csv and what its run.json says, by name."""
    found = {name: (GOLDEN / f"{name}_trials.csv", {
        **FACTS, "scenario": name, "scenario_file": scenario_file.find(name).text})
        for name in ("zhao2019", "tselentis2013")}
    for kind, file in (("load", "small"), ("trace", "packetdrill")):
        found[file] = (GOLDEN / kind / "run" / "trials.csv", {
            **FACTS, "scenario": file,
            "scenario_file": (GOLDEN / kind / f"{file}.toml").read_text()})
    return found


def stored(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of a stored run: its folder and its facts; files that are only read are links."""
    trials, facts = stored_runs()[name]
    home = folder / "run"
    home.mkdir()
    shutil.copyfile(trials, home / "trials.csv")
    (home / "run.json").write_text(json.dumps(facts))
    for place, kept in kept_files(name).items():
        (home / place).parent.mkdir(exist_ok=True)
        (home / place).symlink_to(kept)
    return home, facts


@cache
def kept_files(name: str) -> dict[str, Path]:
    """What is kept of a stored run beside its records, by the place in its folder."""
    trials, _ = stored_runs()[name]
    if trials.parent != GOLDEN:
        return {str(path.relative_to(trials.parent)): path for part in ("files", "captures")
                for path in (trials.parent / part).glob("*")}
    # Of a fetch any captures will do: two windows, of which a page draws the packets.
    two = registry.study_of(scenario_file.find(name)).trials[:2]
    return {f"captures/{trial.id}-{side}.pcap": GOLDEN / "trials" / kept / f"{side}.pcap"
            for trial, kept in zip(two, ("iw3", "iw10")) for side in ("client", "server")}


def told(home: Path, drawn: bool) -> None:
    """What run.sh, report.py and results.py say of a stored run, and if drawn plot.py draws."""
    report = registry.stored_report(home)
    text.text(report)
    markdown.results([report], [])
    page.page(report, {})
    if drawn:  # which takes ten times as long
        drawing.images(report)


def telling(home: Path, random: Random) -> Attempt:
    drawn = random.random() < DRAWN
    return lambda: told(home, drawn)


def of_trials(random: Random, folder: Path) -> Attempt:
    """The trials.csv of a stored run."""
    home, _ = stored(random.choice(list(stored_runs())), folder)
    path = home / "trials.csv"
    how = random.random()
    if how < 0.97:
        path.write_bytes((mutations.cells if how < 0.7 else mutations.data)(
            path.read_bytes(), random))
    else:
        mutations.in_place_of(path, random)
    return telling(home, random)


def of_facts(random: Random, folder: Path) -> Attempt:
    """The run.json of a stored run, the scenario's text in it included."""
    home, facts = stored(random.choice(list(stored_runs())), folder)
    path = home / "run.json"
    how = random.random()
    if how < 0.6:
        path.write_text(json.dumps(mutations.tree(facts, random), default=str))
    elif how < 0.85:
        _of_own(home, facts, random)
    elif how < 0.97:
        path.write_bytes(mutations.data(path.read_bytes(), random))
    else:
        mutations.in_place_of(path, random)
    return telling(home, random)


def of_tables(random: Random, folder: Path) -> Attempt:
    """Figures, axes and claims of a scenario, damaged: what is read must also be told.

    Else hours are measured, and then there is no page.
    """
    name = random.choice(list(stored_runs()))
    trials, facts = stored_runs()[name]
    raw = scenario_file.parsed(name, facts["scenario_file"]).raw
    text = mutations.toml({**raw, **mutations.tree({
        key: raw[key] for key in ("axis", "figure", "claim", "raw") if key in raw}, random)})
    (folder / "own.toml").write_text(text)

    def attempt() -> None:
        study = registry.study_of(scenario_file.parsed(name, text))
        records = read_records(trials, study.record)
        if not {*study.trials} <= {record.trial for record in records}:
            return  # it asks for something else
        try:
            report = study.report(RunData(trials.parent, facts, records))
            page.page(report, {})
            drawing.images(report) if random.random() < DRAWN else None
        except FirstFlightError as error:
            raise AssertionError(f"told only after measuring: {error}") from error
    return attempt


def _of_own(home: Path, facts: dict[str, Any], random: Random) -> None:
    """The same run of a scenario of one's own, whose text run.json keeps: that is damaged."""
    raw = scenario_file.parsed("own", facts["scenario_file"]).raw
    inner = mutations.toml(mutations.tree(raw, random))
    if random.random() < 0.2:
        inner = mutations.data(facts["scenario_file"].encode(), random).decode(errors="replace")
    (home / "run.json").write_text(json.dumps({**facts, "scenario": "own",
                                               "scenario_file": inner}))
    trials = home / "trials.csv"
    trials.write_text(re.sub(f"^{facts['scenario']},", "own,", trials.read_text(), flags=re.M))


# Captures and what else is kept of a trial --------------------------------------------

def of_captures(random: Random, folder: Path) -> Attempt:
    """The captures of a fetch as its verdict meets them, or a kept file of a stored run."""
    return (_of_fetch if random.random() < 0.6 else _of_kept)(random, folder)


def _of_fetch(random: Random, folder: Path) -> Attempt:
    asked = random.choice(sorted((GOLDEN / "trials").iterdir()))
    content = json.loads((asked / "trial.json").read_text())
    sides = {side: (asked / f"{side}.pcap").read_bytes() for side in ("client", "server")}
    changed = random.choice(("client", "server"))
    sides[changed] = mutations.data(sides[changed], random)
    for side, packets in sides.items():
        (folder / f"{side}.pcap").write_bytes(packets)
        content["observation"]["captures"][side]["bytes"] = len(packets)
    (folder / "trial.json").write_text(json.dumps(content))
    return lambda: judge(Trial(**content["trial"]), content["observation"], sides["client"],
                         sides["server"], exact=True, sysctls={})


def _of_kept(random: Random, folder: Path) -> Attempt:
    home, _ = stored(random.choice(("small", "packetdrill", "zhao2019")), folder)
    path = random.choice(sorted([*home.glob("files/*"), *home.glob("captures/*")]))
    content = path.resolve().read_bytes()
    path.unlink()
    how = (mutations.cells if path.suffix == ".csv" and random.random() < 0.7 else
           mutations.data)
    path.write_bytes(how(content, random))
    if random.random() < 0.03:
        mutations.in_place_of(path, random)
    return telling(home, random)
