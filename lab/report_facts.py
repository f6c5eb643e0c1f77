"""What a report page says about a run itself: the command, the machine, the kernel, the tools."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fact:
    name: str
    value: str


def provenance(facts: Mapping[str, Any], scenario: str, path: str, text_now: str) -> list[Fact]:
    """What run.json says, in a reader's order; what it does not say is left out.

    path: of the run's folder, as seen from where results are; text_now: the
    scenario's file as it is today.
    """
    machine, tools, project = (mapping(facts.get(key)) for key in
                               ("machine", "tools", "project"))
    engine = {"uml": "User-Mode Linux guest", "host": "this machine's kernel"}.get(
        str(facts.get("engine")), text(facts.get("engine")))
    virtual = {True: ", virtual time", False: ", real time"}.get(facts.get("virtual_time") is True)
    rows = [
        ("command", command(facts, scenario)), ("run", path),
        ("state", facts.get("state")),
        ("kernel under test", facts.get("kernel") or machine.get("kernel")),
        ("engine", f"{engine}{virtual or ''}" if engine else ""),
        ("network time", seconds(facts.get("emulated_s"))),
        ("wall time", seconds(facts.get("wall_s"))), ("started", facts.get("started_at")),
        ("finished", facts.get("finished_at")), ("seed", facts.get("seed")),
        ("jobs", facts.get("jobs")), ("machine", machine.get("system")),
        ("machine's kernel", machine.get("kernel")),
        ("processor", joined(machine.get("processor"),
                                   f"{machine['cpus']} cores" if machine.get("cpus") else "")),
        *((name, value) for name, value in sorted(tools.items())),
        ("commit", joined(project.get("commit"), "with local changes"
                           if project.get("changed") else "")),
        ("scenario file", f"scenarios/{scenario}.toml"
         + ("" if facts.get("scenario_file", text_now) == text_now
            else ", changed since the run")),
    ]
    return [Fact(name, text(value)) for name, value in rows if text(value)]


def command(facts: Mapping[str, Any], scenario: str) -> str:
    """The command line that measures this again; where its files went is left out."""
    arguments = [str(word) for word in facts.get("arguments") or []]
    kept = [word for place, word in enumerate(arguments)
            if not word.startswith(("--results", "--figures"))
            and not (place and arguments[place - 1] in ("--results", "--figures"))]
    if not any(word.startswith("--scenario") for word in kept):
        kept = ["--scenario", scenario, *kept]
    return f"./run.sh {shlex.join(kept)}"


def mapping(value: Any) -> dict[str, Any]:
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {}


def text(value: Any) -> str:
    return "" if value is None else str(value)


def joined(*parts: Any) -> str:
    return ", ".join(text(part) for part in parts if part)


def seconds(value: Any) -> str:
    return f"{value:g} s" if isinstance(value, (int, float)) else ""
