"""Damaged inputs, put to the project's own functions: refused in one line, accepted, or a defect.

KINDS names what makes an input of each kind; what it makes is tried by `tried`.
Nothing boots: a scenario is read and expanded, a stored run is loaded and told,
a capture is judged.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import re
import shutil
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import experiment
from benchmarks import mutations
from engines.commands import commands_of
from lab import registry
from lab.core import measuring, scenario_file
from lab.core.errors import USAGE, FirstFlightError
from lab.core.kinds import Overrides
from lab.core.quantities import FLAGS, QUANTITIES
from lab.fetches.trial import Trial
from lab.fetches.verify import judge
from lab.tell import markdown, page, text

PROJECT = Path(__file__).resolve().parent.parent
GOLDEN = PROJECT / "tests" / "golden"
REFUSED, ACCEPTED, INTERNAL = "refused", "accepted", "internal error"
MOST_SHOWN = 500  # trials of one input whose names and jobs are made
MOST_CHARACTERS = 500  # of a message
FACTS: dict[str, Any] = {
    "state": "complete", "engine": "uml", "virtual_time": True, "kernel": "6.1.99",
    "arguments": ["--scenario", "zhao2019"], "jobs": 2, "seed": 1, "wall_s": 2.5,
    "emulated_s": 600.0, "started_at": "2026-01-01T00:00:00+00:00",
    "machine": {"kernel": "6.1.0", "processor": "x", "cpus": 2, "system": "Debian"},
    "tools": {"python": "3.11.2", "curl": "curl 7.88.1"},
    "project": {"commit": "0" * 40, "changed": False},
    "sysctls": {"client": {"net.ipv4.tcp_sack": "1"}, "server": {"net.ipv4.tcp_sack": "1"}}}
# As they stand these draw or expand for seconds: what makes them small, by key.
SMALLER: dict[str, dict[str, Any]] = {"dukkipati2010": {"clients": 200, "responses": 1},
                                      "marrama2012_loss": {"repeat_with_loss": 2},
                                      "marrama2012": {"repeat": 1}}


@dataclass(frozen=True)
class Outcome:
    """What became of an input; said: the message, or the name and text of the exception."""

    word: str
    said: str = ""


Attempt = Callable[[], object]


def tried(attempt: Attempt) -> Outcome:
    """One input put to the project; what else it raises is a defect, told as INTERNAL."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            attempt()
    except FirstFlightError as error:
        return refused(str(error))
    except SystemExit as error:  # argparse: the message went to standard error
        said = errors.getvalue().strip()
        return (refused(said) if error.code == USAGE else
                Outcome(ACCEPTED if error.code in (0, None) else INTERNAL, said))
    except Exception as error:  # what a user would see as an internal error
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(INTERNAL, f"{Path(last.filename).name}:{last.lineno}:"
                                 f" {type(error).__name__}: {error}")
    return Outcome(ACCEPTED)


def refused(said: str) -> Outcome:
    """A refusal is one line that fits a terminal and moves no cursor."""
    if said and said.isprintable() and len(said) <= MOST_CHARACTERS:
        return Outcome(REFUSED, said)
    return Outcome(INTERNAL, f"not one printable line of {MOST_CHARACTERS} characters: {said!r}")


# Scenario files -----------------------------------------------------------------------

@cache
def documents() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """The content of each scenario file and what stands in it, by name, made small."""
    found = {}
    for name in scenario_file.names():
        file = scenario_file.find(name)
        raw = copy.deepcopy(file.raw)
        for table in (raw.get("defaults", {}), *raw.get("sweep", []), *raw.get("population", [])):
            table.update({key: value for key, value in SMALLER.get(name, {}).items()
                          if key in table})
        found[name] = (mutations.toml(raw, file.text.split("\n", 1)[0]).encode(), raw)
    return found


def of_scenario(random: Random, folder: Path) -> Attempt:
    """A scenario file of one's own."""
    path, name, how = folder / "own.toml", random.choice(list(documents())), random.random()
    content, raw = documents()[name]
    if name not in SMALLER:
        content = scenario_file.find(name).text.encode()
    if how < 0.75:
        content = mutations.toml(mutations.tree(raw, random)).encode(errors="surrogatepass")
    elif how < 0.97:
        content = mutations.data(content, random)
    path.write_bytes(content)
    if how >= 0.97:
        mutations.in_place_of(path, random)
    return lambda: expanded(str(path))


def expanded(name: str, overrides: Overrides = Overrides({}), seed: int = 1) -> None:
    """What --dry-run does, whichever engine there is."""
    study = registry.study_of(scenario_file.find(name), overrides, seed)
    for trial in study.trials[:MOST_SHOWN]:
        json.dumps([trial.id, trial.job()])
        for each in fields(trial):
            # What runs.load would refuse must not be measured.
            assert in_range(each.name, getattr(trial, each.name)), f"{each.name} of {trial.id}"
    commands_of(study.trials[0].job())
    for engine in ("uml", "host"):
        measuring.expected_s(study, engine, 2)


def in_range(name: str, value: Any) -> bool:
    """Whether a field of a trial is a number that may be asked, or no number at all."""
    of = QUANTITIES.get(name)
    return (of is None or not isinstance(value, (int, float))
            or of.lowest <= value <= of.highest)


# Command lines ------------------------------------------------------------------------

@cache
def known_flags() -> dict[str, tuple[str, ...]]:
    """Values that each flag takes, by the flag; those that take none have no value."""
    return {**{each.flag: ("1", "3", "10", "100", "1000") for each in FLAGS.values()},
            "--repeat": ("1", "3"), "--client": ("curl", "wget"), "--jobs": ("1", "2"),
            "--seed": ("1", "7"), "--engine": ("uml", "host", "auto"), "--results": ("x",),
            "--figures": ("x",)}


def of_flags(random: Random, folder: Path) -> Attempt:
    """A command line of run.sh."""
    small = tuple(name for name in scenario_file.names() if name not in SMALLER)
    line = mutations.flags(known_flags(), (*small, *mutations.WORDS[:3], "zhao2091"), random)
    (folder / "input.json").write_text(json.dumps(line))

    def attempt() -> None:
        arguments = experiment.parse(line)
        for name in arguments.scenario:
            expanded(name, experiment.overrides_of(arguments), arguments.seed)
    return attempt


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
    for part in ("files", "captures"):
        if trials.parent != GOLDEN and (trials.parent / part).is_dir():
            (home / part).mkdir()
            for each in (trials.parent / part).iterdir():
                (home / part / each.name).symlink_to(each)
    return home, facts


def told(home: Path) -> None:
    """What run.sh, report.py and results.py say of a stored run."""
    report = registry.stored_report(home)
    text.text(report)
    markdown.results([report], [])
    page.page(report, {})


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
    return lambda: told(home)


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
    return lambda: told(home)


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
    home, _ = stored(random.choice(("small", "packetdrill")), folder)
    path = random.choice(sorted([*home.glob("files/*"), *home.glob("captures/*")]))
    content = path.resolve().read_bytes()
    path.unlink()
    how = (mutations.cells if path.suffix == ".csv" and random.random() < 0.7 else
           mutations.data)
    path.write_bytes(how(content, random))
    if random.random() < 0.03:
        mutations.in_place_of(path, random)
    return lambda: told(home)


KINDS: dict[str, Callable[[Random, Path], Attempt]] = {
    "toml": of_scenario, "flags": of_flags, "trials": of_trials, "runjson": of_facts,
    "captures": of_captures}


def outcome(kind: str, random: Random) -> Outcome:
    """One input of a kind, made, tried and thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        return tried(KINDS[kind](random, Path(folder)))


