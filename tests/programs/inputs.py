"""Makes damaged inputs of each kind, with values that Hypothesis draws.

KINDS has a maker for each kind. It writes an input into a folder, and returns an attempt: a
function that gives the input to what stands behind run.sh, plot.py and docs/update.py. No guest
boots: a scenario is read and expanded, a stored run is loaded and rendered, a capture is judged.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import experiment
from firstflight.base.errors import FirstFlightError
from firstflight.findings import drawing
from firstflight.findings.quantities import FLAGS, QUANTITIES
from firstflight.findings.render import markdown, page, text
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, RunData
from firstflight.study import registry
from firstflight.testbed.network.commands import commands_of
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.verify import judge_fetch
from tests.conftest import PROJECT
from tests.golden.rows import read_rows, whole_text
from tests.programs import damage
from tests.programs.damage import Draw, percent, pick
from tests.programs.stored_commands import of_commands

Attempt = Callable[[], object]
GOLDEN = PROJECT / "tests" / "golden"
ROWS = 30  # of a file about users
COMBINED = ('192.0.2.7 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 {size} "-" "M/5"'
            ' rtt={rtt}000')
# The head and the format of a line of each form of files about users.
LINES = {"json": ("", '{{"tcpinfo_rtt": {rtt}000, "body_bytes_sent": {size}}}'),
         "w3c": ("#Fields: rtt_ms sc-bytes", "{rtt} {size}"),
         "csv": ("rtt_ms,bandwidth_kbps,response_bytes,group,weight", "{rtt},{kbps},{size},a,1"),
         "combined": ("", COMBINED), "named": ("", "rtt={rtt}000 bytes={size} group=a"),
         "ss": ("State Recv-Q Send-Q", "ESTAB 0 0 192.0.2.1:80 192.0.2.7:4000\n\t cubic rtt:{rtt}/4"
                " delivery_rate {kbps}Kbps bytes_acked:{size}")}
# Words that replace one of a text's words, and so move its numbers, fields and lines.
TOKENS = (*damage.WORDS, *map(str, damage.NUMBERS), "1.2.3", "1.2.3Mbps", "[x " * 20_000,
          "9" * 100_000, '"', "\r", "\r\n", "rtt:", "rtt=" * 5000, "[] " * 20_000, "\x85")
MOST_SHOWN = 500  # trials of one input whose ids and jobs are made
DRAWN_PERCENT = 10  # of the stored runs have their figures drawn
# Scenarios that take seconds to draw or to expand, and the keys that make them small.
SMALLER: dict[str, dict[str, Any]] = {"dukkipati2010": {"clients": 200, "responses": 1},
                                      "marrama2012_loss": {"repeat_with_loss": 2},
                                      "marrama2012": {"repeat": 1}}
FACTS: dict[str, Any] = {
    "state": "complete", "engine": "uml", "virtual_time": True, "kernel": "6.1.99",
    "arguments": ["--scenario", "zhao2019"], "jobs": 2, "seed": 1, "wall_s": 2.5,
    "emulated_s": 600.0, "started_at": "2026-01-01T00:00:00+00:00",
    "machine": {"kernel": "6.1.0", "processor": "x", "cpus": 2, "system": "Debian"},
    "tools": {"python": "3.11.2", "curl": "curl 7.88.1"},
    "project": {"commit": "0" * 40, "changed": False},
    "sysctls": {"client": {"net.ipv4.tcp_sack": "1"}, "server": {"net.ipv4.tcp_sack": "1"}}}


# Scenario files -----------------------------------------------------------------------

@cache
def documents() -> dict[str, tuple[bytes, dict[str, Any]]]:
    """The text of each scenario file and the tables in it, by name. SMALLER makes some small."""
    contents = {}
    for name in scenario_file.names():
        file = scenario_file.find(name)
        raw, smaller = copy.deepcopy(file.raw), SMALLER.get(name, {})
        for table in (raw.get("defaults", {}), *raw.get("sweep", []), *raw.get("population", [])):
            table.update({key: value for key, value in smaller.items() if key in table})
        content = file.text
        if smaller:
            content = damage.toml(raw, first_line=file.text.split("\n", 1)[0])
        contents[name] = content.encode(), raw
    return contents


def of_scenario(draw: Draw, folder: Path) -> Attempt:
    """A scenario file of a user."""
    path, how = folder / "own.toml", percent(draw)
    content, raw = documents()[pick(draw, list(documents()))]
    if how < 75:
        damaged = (damage.huge if how < 10 else damage.tree)(raw, draw)
        content = damage.toml(damaged).encode(errors="surrogatepass")
    else:
        content = damage.data(content, draw)
    damage.put(path, content, draw)
    return lambda: expanded(str(path))


def expanded(name: str, overrides: Overrides = Overrides({}), seed: int = 1) -> None:
    """Read a scenario and make its trials, jobs and commands, as --dry-run does for any engine."""
    study = registry.study_of(scenario_file.find(name), overrides, seed)
    for trial in study.trials[:MOST_SHOWN]:
        json.dumps([trial.id, trial.job()])
        for field in fields(trial):
            # A value that runs.load_run would refuse later must not be measured.
            assert in_range(field.name, getattr(trial, field.name)), f"{field.name} of {trial.id}"
    for trial in study.trials[:1]:  # a study of published numbers measures nothing
        commands_of(trial.job())


def in_range(name: str, value: Any) -> bool:
    """Whether a field of a trial is a number that may be requested, or no number at all."""
    quantity = QUANTITIES.get(name)
    return (quantity is None or not isinstance(value, (int, float))
            or quantity.lowest <= value <= quantity.highest)


# Command lines ------------------------------------------------------------------------

@cache
def known_flags() -> dict[str, tuple[str, ...]]:
    """Some values that each flag takes, by the flag; () for a flag that takes none."""
    return {**{quantity.flag: ("1", "3", "10", "100", "1000") for quantity in FLAGS.values()},
            **dict.fromkeys(("--list", "--as-published", "--allow-commands", "--yes",
                             "--fresh", "--keep-captures", "--quiet", "--no-figures",
                             "--version", "--help"), ()),
            "--repeat": ("1", "3"), "--client": ("curl", "wget"), "--jobs": ("1", "2"),
            "--seed": ("1", "7"), "--engine": ("uml", "host", "auto"), "--check": ("zhao2019",),
            "--find-cliff": ("chain", "response", "early"), "--compare": (".", "results"),
            "--probe": ("http://192.0.2.7/", "https://[::1]:8443/a"), "--name": ("mine",),
            "--users": ("users.csv",), "--trials": ("10", "500"),
            "--new": ("mine",),
            "--sample": ("1/16", "full"), "--sysctl": ("net.ipv4.tcp_sack=0",),
            "--server-command": ("serve {p}",), "--server-folder": (".",), "--ca": ("users.csv",),
            "--server-ready": ("/",), "--url-path": ("/{size}",), "--server-name": ("a.b",),
            "--format": ("png", "svg,pdf"), "--cluster": ("tcp://192.0.2.7:1", "tls://192.0.2.7:1")}


def of_flags(draw: Draw, folder: Path) -> Attempt:
    """A command line of run.sh, typed in a folder with a file about users. Nothing is measured."""
    small = [name for name in scenario_file.names() if name not in SMALLER]
    line = damage.flags(known_flags(), (*small, *damage.WORDS[:3], "zhao2091"), draw)
    (folder / "input.json").write_text(json.dumps(line))
    (folder / "users.csv").write_text("rtt_ms,response_bytes\n" + "20,9000\n" * 20)
    return lambda: run(line, folder)


# Stored runs --------------------------------------------------------------------------

@cache
def stored_runs() -> dict[str, tuple[Path, dict[str, Any]]]:
    """Small stored runs by name: the file trials.csv of each, and the content of its run.json."""
    runs = {name: (GOLDEN / f"{name}_trials.csv", scenario_file.find(name).text)
            for name in ("zhao2019", "tselentis2013")}
    for kind, name in (("load", "small"), ("trace", "packetdrill")):
        runs[name] = (GOLDEN / kind / "run" / "trials.csv",
                      (GOLDEN / kind / f"{name}.toml").read_text())
    return {name: (trials, {**FACTS, "scenario": name, "scenario_file": scenario})
            for name, (trials, scenario) in runs.items()}


def stored(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Copy a stored run; return its folder and its facts. Files that are only read become links."""
    trials, facts = stored_runs()[name]
    home = folder / "run"
    home.mkdir()
    kind = registry.study_of(scenario_file.parse(name, facts["scenario_file"])).kind
    (home / "trials.csv").write_text(whole_text(trials, kind.record))
    (home / "run.json").write_text(json.dumps(facts))
    for place, stored in stored_files(name).items():
        (home / place).parent.mkdir(exist_ok=True)
        (home / place).symlink_to(stored)
    return home, facts


@cache
def stored_files(name: str) -> dict[str, Path]:
    """The files of a stored run but trials.csv and run.json, by their place in its folder."""
    trials, _ = stored_runs()[name]
    if trials.parent != GOLDEN:
        return {str(path.relative_to(trials.parent)): path for part in ("files", "captures")
                for path in (trials.parent / part).glob("*")}
    # A page draws the packets of two windows. For fetches any captures will do.
    two = registry.study_of(scenario_file.find(name)).trials[:2]
    return {f"captures/{trial.id}-{side}.pcap": GOLDEN / "trials" / stored / f"{side}.pcap"
            for trial, stored in zip(two, ("iw3", "iw10")) for side in ("client", "server")}


def render_stored(home: Path, drawn: bool) -> None:
    """Render a stored run as run.sh and docs/update.py do. drawn: draw its figures as plot.py does.
    """
    report = registry.stored_report(home)
    text.text(report)
    markdown.gallery([report], {}, [], "pages", set())
    page.page(report, {})
    if drawn:  # which takes ten times as long
        drawing.images(report)


def rendering(home: Path, draw: Draw) -> Attempt:
    drawn = percent(draw) < DRAWN_PERCENT
    return lambda: render_stored(home, drawn)


def of_trials(draw: Draw, folder: Path) -> Attempt:
    """The trials.csv of a stored run."""
    home, _ = stored(pick(draw, list(stored_runs())), folder)
    path = home / "trials.csv"
    damaged = damage.cells if percent(draw) < 70 else damage.data
    damage.put(path, damaged(path.read_bytes(), draw), draw)
    return rendering(home, draw)


def of_facts(draw: Draw, folder: Path) -> Attempt:
    """The run.json of a stored run, and the text of the scenario in it."""
    home, facts = stored(pick(draw, list(stored_runs())), folder)
    how = percent(draw)
    if how < 60:
        facts = damage.tree(facts, draw)
    elif how < 85:
        facts = _own_scenario(home, facts, draw)
    content = json.dumps(facts, default=str).encode()
    damage.put(home / "run.json", content if how < 85 else damage.data(content, draw), draw)
    return rendering(home, draw)


def _own_scenario(home: Path, facts: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """The facts as if a user's scenario had been measured, whose text in run.json is damaged.

    The names in trials.csv are changed with it.
    """
    trials = home / "trials.csv"
    trials.write_text(re.sub(f"^{facts['scenario']},", "own,", trials.read_text(), flags=re.M))
    inner: str = facts["scenario_file"]
    if percent(draw) < 20:
        inner = damage.data(inner.encode(), draw).decode(errors="replace")
    else:
        inner = damage.toml(damage.tree(scenario_file.parse("own", inner).raw, draw))
    return {**facts, "scenario": "own", "scenario_file": inner}


def of_tables(draw: Draw, folder: Path) -> Attempt:
    """Damaged figures, axes and claims of a scenario.

    A scenario that is accepted must also be rendered, since hours of measuring lie between.
    """
    name, drawn = pick(draw, list(stored_runs())), percent(draw) < DRAWN_PERCENT
    trials, facts = stored_runs()[name]
    raw = scenario_file.parse(name, facts["scenario_file"]).raw
    written = damage.toml({**raw, **damage.tree({
        key: raw[key] for key in ("axis", "figure", "claim", "raw") if key in raw}, draw)})
    (folder / "own.toml").write_text(written)

    def attempt() -> None:
        study = registry.study_of(scenario_file.parse(name, written))
        records = read_rows(trials, study.kind.record)
        if not {*study.trials} <= {record.trial for record in records}:
            return  # it has other trials
        try:
            report = study.report(RunData(trials.parent, facts, records))
            page.page(report, {})
            if drawn:
                drawing.images(report)
        except FirstFlightError as error:
            raise AssertionError(f"told only after measuring: {error}") from error
    return attempt


# Captures and other files that are kept of a trial --------------------------------------

def of_captures(draw: Draw, folder: Path) -> Attempt:
    """A capture of a fetch, which is judged with it, or a kept file of a stored run."""
    return (_of_fetch if percent(draw) < 60 else _of_kept)(draw, folder)


def _of_fetch(draw: Draw, folder: Path) -> Attempt:
    requested = pick(draw, sorted((GOLDEN / "trials").iterdir()))
    content = json.loads((requested / "trial.json").read_text())
    sides = {side: (requested / f"{side}.pcap").read_bytes() for side in ("client", "server")}
    changed = pick(draw, list(sides))
    sides[changed] = damage.data(sides[changed], draw)
    for side, packets in sides.items():
        (folder / f"{side}.pcap").write_bytes(packets)
        content["observation"]["captures"][side]["bytes"] = len(packets)
    (folder / "trial.json").write_text(json.dumps(content))
    return lambda: judge_fetch(Trial(**content["trial"]), content["observation"], sides["client"],
                         sides["server"], exact=True, sysctls={})


def _of_kept(draw: Draw, folder: Path) -> Attempt:
    home, _ = stored(pick(draw, ("small", "packetdrill", "zhao2019")), folder)
    path = pick(draw, sorted([*home.glob("files/*"), *home.glob("captures/*")]))
    damaged = damage.cells if path.suffix == ".csv" and percent(draw) < 70 else damage.data
    damage.put(path, damaged(path.read_bytes(), draw), draw)
    return rendering(home, draw)


# Files about users --------------------------------------------------------------------

def of_users(draw: Draw, folder: Path) -> Attempt:
    """A file for --users: CSV, a log, a list of sockets, or a capture."""
    form, path = pick(draw, (*LINES, "pcap")), folder / "users"
    content = ((GOLDEN / "trials" / "iw10" / "server.pcap").read_bytes() if form == "pcap" else
               _text(form, draw))
    damage.put(path, content if percent(draw) < 10 else damage.data(content, draw), draw)
    flags = pick(draw, (
        "--bw 5000 --size 9000", "",
        "--trials 1 --size 1 --bw 1k", "--bw 5000 --size 9000 --trials 900000")).split()
    return lambda: run([*flags, "--users", str(path)], folder)


def run(line: list[str], folder: Path) -> object:
    """Run a command line of run.sh, which measures nothing."""
    with at(folder):
        return experiment.main(["--dry-run", "--results", str(folder / "results"), "--figures",
                                str(folder / "figures"), *line])


@contextmanager
def at(folder: Path) -> Iterator[None]:
    """Make another folder the current one for a while."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _text(form: str, draw: Draw) -> bytes:
    """A text of one of the forms; three in four have some of their words replaced."""
    head, line = LINES[form]
    numbers = draw(st.lists(st.tuples(st.integers(1, 500), st.integers(50, 9000),
                                      st.integers(1, 99_999)), min_size=ROWS, max_size=ROWS))
    lines = [head, *(line.format(rtt=rtt, kbps=kbps, size=size) for rtt, kbps, size in numbers), ""]
    for _ in range(pick(draw, (0, 1, 1, 3))):
        place = draw(st.integers(0, ROWS))
        words = lines[place].replace(",", " , ").split(" ")
        words[draw(st.integers(0, len(words) - 1))] = pick(draw, TOKENS)
        lines[place] = " ".join(words).replace(" , ", ",")
    end = pick(draw, ("\n", "\n", "\n", "\r", "\r\n"))
    return end.join(lines if head else lines[1:]).encode(errors="surrogatepass")


KINDS: dict[str, Callable[[Draw, Path], Attempt]] = {
    "toml": of_scenario, "flags": of_flags, "users": of_users, "trials": of_trials,
    "runjson": of_facts, "tables": of_tables, "captures": of_captures, "commands": of_commands}
