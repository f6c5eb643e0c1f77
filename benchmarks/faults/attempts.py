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
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.faults import damaged_runs, hostile, mutations
from benchmarks.faults.damaged_runs import Attempt
from engines.network.commands import commands_of
from lab import registry
from lab.core.errors import USAGE, FirstFlightError
from lab.core.run import measuring
from lab.core.run.kinds import Overrides
from lab.core.scenario import scenario_file
from lab.core.scenario.quantities import FLAGS, QUANTITIES

REFUSED, ACCEPTED, INTERNAL = "refused", "accepted", "internal error"
MEMORY = "out of memory"
MOST_SHOWN = 500  # trials of one input whose names and jobs are made
MOST_CHARACTERS = 500  # of a message
# As they stand these draw or expand for seconds: what makes them small, by key.
SMALLER: dict[str, dict[str, Any]] = {"dukkipati2010": {"clients": 200, "responses": 1},
                                      "marrama2012_loss": {"repeat_with_loss": 2},
                                      "marrama2012": {"repeat": 1}}


@dataclass(frozen=True)
class Outcome:
    """What became of an input; said: the message, or the name and text of the exception."""

    word: str
    said: str = ""


def tried(attempt: Attempt) -> Outcome:
    """One input put to the project; what else it raises is a defect, told as INTERNAL."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            attempt()
    except FirstFlightError as error:
        return refused(str(error))
    except MemoryError:
        return Outcome(MEMORY, "it takes more than it may")
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
        damage = mutations.huge if how < 0.1 else mutations.tree
        content = mutations.toml(damage(raw, random)).encode(errors="surrogatepass")
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
    for trial in study.trials[:1]:  # a study of published numbers measures nothing
        commands_of(trial.job())
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
            **dict.fromkeys(("--list", "--as-published", "--allow-commands", "--cluster-insecure",
                             "--yes", "--fresh", "--keep-captures", "--quiet", "--no-figures",
                             "--version", "--help"), ()),
            "--repeat": ("1", "3"), "--client": ("curl", "wget"), "--jobs": ("1", "2"),
            "--seed": ("1", "7"), "--engine": ("uml", "host", "auto"), "--check": ("zhao2019",),
            "--find-cliff": ("chain", "response", "early"), "--compare": (".", "results"),
            "--probe": ("http://192.0.2.7/", "https://[::1]:8443/a"), "--name": ("mine",),
            "--users": ("users.csv",), "--trials": ("10", "500"), "--share-link": ("9000",),
            "--new": ("mine",), "--sample": ("1/16", "full"), "--sysctl": ("net.ipv4.tcp_sack=0",),
            "--server-command": ("serve {p}",), "--server-folder": (".",), "--ca": ("users.csv",),
            "--server-ready": ("/",), "--url-path": ("/{size}",), "--server-name": ("a.b",),
            "--format": ("png", "svg,pdf"), "--cluster": ("local:2", "tls://192.0.2.7:1")}


def of_flags(random: Random, folder: Path) -> Attempt:
    """A command line of run.sh, in a folder with a file about users; nothing is measured."""
    small = tuple(name for name in scenario_file.names() if name not in SMALLER)
    line = mutations.flags(known_flags(), (*small, *mutations.WORDS[:3], "zhao2091"), random)
    (folder / "input.json").write_text(json.dumps(line))
    (folder / "users.csv").write_text("rtt_ms,response_bytes\n" + "20,9000\n" * 20)
    return lambda: hostile.run(line, folder)


KINDS: dict[str, Callable[[Random, Path], Attempt]] = {
    "toml": of_scenario, "flags": of_flags, "users": hostile.of_users,
    "trials": damaged_runs.of_trials, "runjson": damaged_runs.of_facts,
    "tables": damaged_runs.of_tables, "captures": damaged_runs.of_captures,
    "outputs": hostile.of_outputs, "servers": hostile.of_servers}


def outcome(kind: str, random: Random) -> Outcome:
    """One input of a kind, made, tried and thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        return tried(KINDS[kind](random, Path(folder)))
