"""Damaged inputs of each kind: what makes one in a folder, from values drawn by Hypothesis.

KINDS names them; what a maker returns puts its input to the functions behind run.sh, report.py
and results.py. Nothing boots: a scenario is read and expanded, a stored run is loaded and
rendered, a capture is judged.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import socket
import stat
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

import drawing
import experiment
from benchmarks.faults import damage
from benchmarks.faults.damage import Draw, percent, pick
from benchmarks.faults.stored_commands import of_commands
from engines.job import PROJECT
from engines.network.commands import commands_of
from lab import registry
from lab.core import files
from lab.core.errors import FirstFlightError
from lab.core.findings.findings import Report
from lab.core.results.records import read_records
from lab.core.run import measuring
from lab.core.run.kinds import Overrides, RunData
from lab.core.scenario import scenario_file
from lab.core.scenario.quantities import FLAGS, QUANTITIES
from lab.fetches.scenario.trial import Trial
from lab.fetches.verify.verify import judge
from lab.render import data, markdown, page, text
from probe import client

Attempt = Callable[[], object]
GOLDEN = PROJECT / "tests" / "golden"
ROWS = 30
COMBINED = ('192.0.2.7 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 {size} "-" "M/5"'
            ' {rtt}000')
LINES = {"csv": ("rtt_ms,bandwidth_kbps,response_bytes,group,weight", "{rtt},{kbps},{size},a,1"),
         "combined": ("", COMBINED), "named": ("", "rtt={rtt}000 bytes={size} group=a"),
         "ss": ("State Recv-Q Send-Q", "ESTAB 0 0 192.0.2.1:80 192.0.2.7:4000\n\t cubic rtt:{rtt}/4"
                " delivery_rate {kbps}Kbps bytes_acked:{size}")}
# What moves numbers, lines and fields apart from bytes: put in place of one of a text's words.
TOKENS = (*damage.WORDS, *map(str, damage.NUMBERS), "1.2.3", "1.2.3Mbps", "[x " * 20_000,
          "9" * 100_000, '"', "\r", "\r\n", "rtt:", "rtt=" * 5000, "[] " * 20_000, "\x85")
MOST_SHOWN = 500  # trials of one input whose names and jobs are made
DRAWN_PERCENT = 10  # of the stored runs
# As they stand these draw or expand for seconds: what makes them small, by key.
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
    """The content of each scenario file and what stands in it, by name, made small."""
    contents = {}
    for name in scenario_file.names():
        file = scenario_file.find(name)
        raw = copy.deepcopy(file.raw)
        for table in (raw.get("defaults", {}), *raw.get("sweep", []), *raw.get("population", [])):
            table.update({key: value for key, value in SMALLER.get(name, {}).items()
                          if key in table})
        contents[name] = ((damage.toml(raw, file.text.split("\n", 1)[0]) if name in SMALLER else
                           file.text).encode(), raw)
    return contents


def of_scenario(draw: Draw, folder: Path) -> Attempt:
    """A scenario file of one's own."""
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
    """What --dry-run does, whichever engine there is."""
    study = registry.study_of(scenario_file.find(name), overrides, seed)
    for trial in study.trials[:MOST_SHOWN]:
        json.dumps([trial.id, trial.job()])
        for field in fields(trial):
            # What runs.load would refuse must not be measured.
            assert in_range(field.name, getattr(trial, field.name)), f"{field.name} of {trial.id}"
    for trial in study.trials[:1]:  # a study of published numbers measures nothing
        commands_of(trial.job())
    for engine in ("uml", "host"):
        measuring.expected_s(study, engine, 2)


def in_range(name: str, value: Any) -> bool:
    """Whether a field of a trial is a number that may be requested, or no number at all."""
    quantity = QUANTITIES.get(name)
    return (quantity is None or not isinstance(value, (int, float))
            or quantity.lowest <= value <= quantity.highest)


# Command lines ------------------------------------------------------------------------

@cache
def known_flags() -> dict[str, tuple[str, ...]]:
    """Values that each flag takes, by the flag; those that take none have no value."""
    return {**{quantity.flag: ("1", "3", "10", "100", "1000") for quantity in FLAGS.values()},
            **dict.fromkeys(("--list", "--as-published", "--allow-commands", "--cluster-insecure",
                             "--yes", "--fresh", "--keep-captures", "--quiet", "--no-figures",
                             "--version", "--help"), ()),
            "--repeat": ("1", "3"), "--client": ("curl", "wget"), "--jobs": ("1", "2"),
            "--seed": ("1", "7"), "--engine": ("uml", "host", "auto"), "--check": ("zhao2019",),
            "--find-cliff": ("chain", "response", "early"), "--compare": (".", "results"),
            "--probe": ("http://192.0.2.7/", "https://[::1]:8443/a"), "--name": ("mine",),
            "--users": ("users.csv",), "--trials": ("10", "500"), "--share-link": ("9000",),
            "--explain": ("3500ms", "3.5s", "soon"), "--new": ("mine",),
            "--sample": ("1/16", "full"), "--sysctl": ("net.ipv4.tcp_sack=0",),
            "--server-command": ("serve {p}",), "--server-folder": (".",), "--ca": ("users.csv",),
            "--server-ready": ("/",), "--url-path": ("/{size}",), "--server-name": ("a.b",),
            "--format": ("png", "svg,pdf"), "--cluster": ("local:2", "tls://192.0.2.7:1")}


def of_flags(draw: Draw, folder: Path) -> Attempt:
    """A command line of run.sh, in a folder with a file about users; nothing is measured."""
    small = [name for name in scenario_file.names() if name not in SMALLER]
    line = damage.flags(known_flags(), (*small, *damage.WORDS[:3], "zhao2091"), draw)
    (folder / "input.json").write_text(json.dumps(line))
    (folder / "users.csv").write_text("rtt_ms,response_bytes\n" + "20,9000\n" * 20)
    return lambda: run(line, folder)


# Stored runs --------------------------------------------------------------------------

@cache
def stored_runs() -> dict[str, tuple[Path, dict[str, Any]]]:
    """Small stored runs: of each the trials.csv and the content of its run.json, by name."""
    runs = {name: (GOLDEN / f"{name}_trials.csv", scenario_file.find(name).text)
            for name in ("zhao2019", "tselentis2013")}
    for kind, name in (("load", "small"), ("trace", "packetdrill")):
        runs[name] = (GOLDEN / kind / "run" / "trials.csv",
                      (GOLDEN / kind / f"{name}.toml").read_text())
    return {name: (trials, {**FACTS, "scenario": name, "scenario_file": scenario})
            for name, (trials, scenario) in runs.items()}


def stored(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of a stored run: its folder and its facts; files that are only read are links."""
    trials, facts = stored_runs()[name]
    home = folder / "run"
    home.mkdir()
    shutil.copyfile(trials, home / "trials.csv")
    (home / "run.json").write_text(json.dumps(facts))
    for place, stored in stored_files(name).items():
        (home / place).parent.mkdir(exist_ok=True)
        (home / place).symlink_to(stored)
    return home, facts


@cache
def stored_files(name: str) -> dict[str, Path]:
    """Files of a stored run besides its records, by the place in its folder."""
    trials, _ = stored_runs()[name]
    if trials.parent != GOLDEN:
        return {str(path.relative_to(trials.parent)): path for part in ("files", "captures")
                for path in (trials.parent / part).glob("*")}
    # Of a fetch any captures will do: two windows, of which a page draws the packets.
    two = registry.study_of(scenario_file.find(name)).trials[:2]
    return {f"captures/{trial.id}-{side}.pcap": GOLDEN / "trials" / stored / f"{side}.pcap"
            for trial, stored in zip(two, ("iw3", "iw10")) for side in ("client", "server")}


def render_stored(home: Path, drawn: bool) -> None:
    """What run.sh, report.py and results.py make of a stored run, and if drawn plot.py."""
    report = registry.stored_report(home)
    text.text(report)
    markdown.results([report], [])
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
    """The run.json of a stored run, the scenario's text in it included."""
    home, facts = stored(pick(draw, list(stored_runs())), folder)
    how = percent(draw)
    if how < 60:
        facts = damage.tree(facts, draw)
    elif how < 85:
        facts = _of_own(home, facts, draw)
    content = json.dumps(facts, default=str).encode()
    damage.put(home / "run.json", content if how < 85 else damage.data(content, draw), draw)
    return rendering(home, draw)


def _of_own(home: Path, facts: dict[str, Any], draw: Draw) -> dict[str, Any]:
    """The same run of a scenario of one's own, whose text run.json keeps: that is damaged."""
    trials = home / "trials.csv"
    trials.write_text(re.sub(f"^{facts['scenario']},", "own,", trials.read_text(), flags=re.M))
    inner: str = facts["scenario_file"]
    if percent(draw) < 20:
        inner = damage.data(inner.encode(), draw).decode(errors="replace")
    else:
        inner = damage.toml(damage.tree(scenario_file.parsed("own", inner).raw, draw))
    return {**facts, "scenario": "own", "scenario_file": inner}


def of_tables(draw: Draw, folder: Path) -> Attempt:
    """Figures, axes and claims, damaged: what is read must render, after hours of measuring."""
    name, drawn = pick(draw, list(stored_runs())), percent(draw) < DRAWN_PERCENT
    trials, facts = stored_runs()[name]
    raw = scenario_file.parsed(name, facts["scenario_file"]).raw
    written = damage.toml({**raw, **damage.tree({
        key: raw[key] for key in ("axis", "figure", "claim", "raw") if key in raw}, draw)})
    (folder / "own.toml").write_text(written)

    def attempt() -> None:
        study = registry.study_of(scenario_file.parsed(name, written))
        records = read_records(trials, study.kind.record)
        if not {*study.trials} <= {record.trial for record in records}:
            return  # it has other trials
        try:
            report = study.report(RunData(trials.parent, facts, records))
            page.page(report, {})
            drawing.images(report) if drawn else None
        except FirstFlightError as error:
            raise AssertionError(f"told only after measuring: {error}") from error
    return attempt


# Captures and what else is kept of a trial --------------------------------------------

def of_captures(draw: Draw, folder: Path) -> Attempt:
    """The captures of a fetch as its verdict meets them, or a kept file of a stored run."""
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
    return lambda: judge(Trial(**content["trial"]), content["observation"], sides["client"],
                         sides["server"], exact=True, sysctls={})


def _of_kept(draw: Draw, folder: Path) -> Attempt:
    home, _ = stored(pick(draw, ("small", "packetdrill", "zhao2019")), folder)
    path = pick(draw, sorted([*home.glob("files/*"), *home.glob("captures/*")]))
    damaged = damage.cells if path.suffix == ".csv" and percent(draw) < 70 else damage.data
    damage.put(path, damaged(path.read_bytes(), draw), draw)
    return rendering(home, draw)


# Files about users --------------------------------------------------------------------

def of_users(draw: Draw, folder: Path) -> Attempt:
    """A CSV, a log, a list of sockets or a capture, and what --users makes of it."""
    form, path = pick(draw, (*LINES, "pcap", "pcapng")), folder / "users"
    content = _capture(form, draw) if form.startswith("pcap") else _text(form, draw)
    damage.put(path, content if percent(draw) < 10 else damage.data(content, draw), draw)
    flags = pick(draw, (
        "--bw 5000 --size 9000", "", "--share-link 9000 --iw 10,20 --bw 5000 --size 9000",
        "--trials 1 --size 1 --bw 1", "--bw 5000 --size 9000 --trials 900000")).split()
    return lambda: run([*flags, "--users", str(path)], folder)


def run(line: list[str], folder: Path) -> object:
    """What run.sh does with a command line, except that it measures nothing."""
    with at(folder):
        return experiment.main(["--dry-run", "--results", str(folder / "results"), "--figures",
                                str(folder / "figures"), *line])


@contextmanager
def at(folder: Path) -> Iterator[None]:
    """In another folder for a while."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _text(form: str, draw: Draw) -> bytes:
    """A text of one of the forms, most of them with words changed."""
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


def _capture(form: str, draw: Draw) -> bytes:
    """A capture of a server in one of the two formats; of pcapng odd options and lengths."""
    content = (GOLDEN / "trials" / "iw10" / "server.pcap").read_bytes()
    if form == "pcap":
        return content
    order = "<" if content[0] in (0xD4, 0x4D) else ">"
    options = pick(draw, (b"", b"", struct.pack(f"{order}HHI", 9, 1, 9),
                          struct.pack(f"{order}HH", 9, 0), struct.pack(f"{order}HHI", 14, 4, 7),
                          struct.pack(f"{order}HH", 9, 60_000), b"\x09"))
    blocks = [(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)),
              (1, struct.pack(f"{order}HHI", *struct.unpack_from(f"{order}I", content, 20), 0, 0)
               + options)]
    place = 24
    while place < len(content):
        seconds, parts, held, size = struct.unpack_from(f"{order}IIII", content, place)
        stamp = seconds * 10**6 + parts
        blocks.append((6, struct.pack(f"{order}IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, held,
                                      size) + content[place + 16:place + 16 + held]))
        place += 16 + held
    lengths: dict[int, int | None] = {}  # that are not as they should be
    if percent(draw) < 10:
        lengths[draw(st.integers(0, len(blocks) - 1))] = pick(
            draw, (0, 4, 7, 15, 0xFFFFFFF0, 1 << 19))
    return b"".join(_block(order, *block, lengths.get(place)) for place, block in enumerate(blocks))


def _block(order: str, kind: int, body: bytes, length: int | None) -> bytes:
    body += bytes(-len(body) % 4)
    whole = 12 + len(body)
    return (struct.pack(f"{order}II", kind, whole if length is None else length) + body
            + struct.pack(f"{order}I", whole))


# Places to write to -------------------------------------------------------------------

@cache
def _report() -> Report:
    """What is written."""
    study = registry.study_of(scenario_file.find("paper_arithmetic"))  # measures nothing
    return study.report(RunData(Path("run"), {"state": "complete"}, []))


def of_outputs(draw: Draw, folder: Path) -> Attempt:
    """Something odd where a file, a link or a folder is to be written; what was there stays.

    A device, a FIFO, a socket or a link is still one afterwards; files next to it stay as before.
    """
    place = folder / "out"
    victim, hidden = folder / "victim", folder / ".out"
    victim.write_text("mine")
    hidden.write_text("mine too")
    _odd(place, draw)
    if percent(draw) < 30:
        (folder / "link").symlink_to(pick(draw, ("out", "./link", "out/../out", str(place))))
        place = folder / "link"
    if percent(draw) < 30:
        place = place / pick(draw, ("deep", "deep/er", "..", ".", "x" * 300, "a\nb"))
    report, form = _report(), pick(draw, ("json", "md", "csv"))
    writes: tuple[Callable[[], object], ...] = (
        lambda: files.write(place, data.exported(form, report)),
        lambda: files.append(place).close(), lambda: files.link(place, "victim"),
        lambda: page.write(place, report, {}), lambda: files.make_folder(place),
        lambda: drawing.save(report.name, {"one": {"png": b"x"}}, place),
        lambda: run(["--new", "mine"], folder))
    write = pick(draw, writes)
    odd = {path: _kind(path) for path in (folder / "out", folder / "link")}
    is_led_to = (folder / "out").is_symlink() or victim.stat().st_nlink > 1

    def attempt() -> None:
        try:
            write()
        finally:
            assert hidden.read_text() == "mine too", "a hidden file beside it was changed"
            assert is_led_to or victim.read_text() == "mine", "another file was changed"
            for path, before in odd.items():
                if before and not stat.S_ISREG(before[0]):
                    assert stat.S_ISLNK(before[0]) and write is writes[2] or (
                        _kind(path) == before), f"{path.name} is no longer what it was"
    return attempt


def _odd(place: Path, draw: Draw) -> None:
    """What may stand where something is to be written."""
    def device(kind: int, major: int, minor: int) -> None:
        with suppress(PermissionError):
            os.mknod(place, kind | 0o666, os.makedev(major, minor))

    ways: list[Callable[[], object]] = [
        place.mkdir, lambda: os.mkfifo(place), lambda: None, lambda: place.write_text("old"),
        lambda: place.symlink_to("victim"), lambda: place.symlink_to("none/where"),
        lambda: place.symlink_to("out"), lambda: os.link(place.parent / "victim", place),
        lambda: device(stat.S_IFCHR, 1, 3), lambda: device(stat.S_IFCHR, 1, 7),
        lambda: device(stat.S_IFBLK, 7, 250), lambda: device(stat.S_IFSOCK, 0, 0)]
    pick(draw, ways)()


def _kind(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return stat.S_IFMT(status.st_mode), status.st_rdev


# Servers that are probed --------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\nServer: x\r\n\r\n"
PIECES = (HEAD, bytes(1448), bytes(65536), b"\x16\x03\x03\x40\x00", b"\x15\x03\x03\x00\x02\x02\x28",
          b"HTTP/1.1 301 Moved\r\nLocation: " + b"x" * 3000 + b"\x1b[2J\r\n\r\n", b"\r\n" * 5000,
          b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 400 + b"\r\n\r\n", b"SSH-2.0-x\r\n")
TIMES: dict[str, Any] = {"ALL_S": 1.0, "CONNECT_S": 0.5, "ANSWER_S": 0.3,
                         "RESEND_S": 0.3, "REST_S": 0.3}


def of_servers(draw: Draw, folder: Path) -> Attempt:
    """A server on this machine that answers odd things, and waits, and --probe."""
    pieces = [damage.data(piece, draw) if percent(draw) < 50 else piece
              for piece in draw(st.lists(st.sampled_from(PIECES), max_size=4))]
    pauses = [pick(draw, (0, 0, 0.02, 0.2)) for _ in pieces]
    endless, scheme = percent(draw) < 30, pick(draw, ("http", "http", "https"))

    def serve(listener: socket.socket) -> None:
        with suppress(OSError), listener, listener.accept()[0] as connection:
            connection.recv(65536)
            until = time.monotonic() + 2 * TIMES["ALL_S"]
            while endless and time.monotonic() < until:
                _answer(connection, pieces, pauses)
            _answer(connection, pieces, pauses)

    def attempt() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(TIMES["ALL_S"])
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        try:
            with patch.multiple(client, None, **TIMES):
                port = listener.getsockname()[1]
                experiment.main(["--probe", f"{scheme}://127.0.0.1:{port}/"])
        finally:
            thread.join()
    return attempt


def _answer(connection: socket.socket, pieces: list[bytes], pauses: list[float]) -> None:
    for piece, pause_s in zip(pieces, pauses):
        connection.sendall(piece)
        time.sleep(pause_s)
    time.sleep(0.001)


KINDS: dict[str, Callable[[Draw, Path], Attempt]] = {
    "toml": of_scenario, "flags": of_flags, "users": of_users, "trials": of_trials,
    "runjson": of_facts, "tables": of_tables, "captures": of_captures,
    "outputs": of_outputs, "servers": of_servers, "commands": of_commands}
