"""Runs packetdrill scripts in guests in virtual time, several guests side by side.

A guest runs BATCH scripts, one after the other (packetdrill_inside.py), and which ones does not
depend on how many guests there are at once: nor does what comes out. The arguments are those of
the kernel's own tools/testing/selftests/net/packetdrill/ksft_runner.sh and of run_all.py of
google/packetdrill; what a script sets itself is left to it.
"""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from base import untrusted
from base.untrusted import any_text, by_name, known_as, matching, maybe, quoted, read, table, whole
from vtime.command import packetdrill_inside
from vtime.command.frames import ERROR, OUTPUT
from vtime.command.guest import CommandGuest, CommandRequest
from vtime.console import EngineCannot, EngineError
from vtime.readable import OF_COMMANDS, Places, refused
from vtime.uml import MEMORY_MB

BATCH = 16  # a guest starts in the time that two scripts take
_FOUR = ("--local_ip=192.168.0.1", "--gateway_ip=192.168.0.1", "--netmask_ip=255.255.0.0",
         "--remote_ip=192.0.2.1", "-DTFO_COOKIE=3021b9d889017eeb",
         "-DTFO_COOKIE_ZERO=b7c12350a90dc8f5", "-DCODE=host_unreachable")
_LEVEL_4 = ("-DCMSG_LEVEL_IP=SOL_IP", "-DCMSG_TYPE_RECVERR=IP_RECVERR")
_LEVEL_6 = ("-DCMSG_LEVEL_IP=SOL_IPV6", "-DCMSG_TYPE_RECVERR=IPV6_RECVERR")
OPTIONS = {
    "ipv4": (*_FOUR, *_LEVEL_4),
    "ipv6": ("--mtu=1520", "--local_ip=fd3d:0a0b:17d6::1",
             "--gateway_ip=fd3d:0a0b:17d6:8888::1", "--remote_ip=fd3d:fa7b:d17d::1",
             "-DTFO_COOKIE=c1d1e9742a47a9bc", "-DTFO_COOKIE_ZERO=82af1a8f9a205c34", *_LEVEL_6),
    "ipv4-mapped-ipv6": (*_FOUR, *_LEVEL_6)}
VERSIONS = tuple(OPTIONS)
PASSED, FAILED, DIED = "pass", "fail", "died"
TIMES = Path(__file__).with_name("times.c")
MOST_WORDS, MOST_LINE_BYTES = 500, 1 << 16
_PRINTED = any_text(packetdrill_inside.MOST_PRINTED)


class _Reported(TypedDict):
    """What the guest's program says of one script (packetdrill_inside.py); None: no end."""

    number: int
    status: int | None
    virtual_s: float
    printed: str


_RESULT = known_as(_Reported, table({
    "number": whole(), "status": maybe(whole(-255, 255)), "virtual_s": untrusted.number,
    "printed": _PRINTED}))
_NO_PROGRAM = by_name(_PRINTED, 1, matching("no_program"))


@dataclass(frozen=True)
class Script:
    """A script, under one version of IP. path: as it was named; text: its content."""

    path: Path
    ip_version: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.path} ({self.ip_version})"

    def words(self, more: Sequence[str]) -> list[str]:
        """packetdrill's arguments. more: those that the user gave, which come last and win."""
        own = own_options(self.text)
        return [f"--ip_version={self.ip_version}",
                *(word for word in OPTIONS[self.ip_version] if word.partition("=")[0] not in own),
                *more, self.path.name]


@dataclass(frozen=True)
class Result:
    """How a script ended.

    verdict: PASSED, FAILED, or DIED where the guest ended with it; line: the script's, 0 where
    packetdrill named none; virtual_s: of the guest's clock; words: packetdrill's, on one line.
    """

    script: Script
    verdict: str
    line: int
    virtual_s: float
    words: str


@dataclass(frozen=True)
class Setup:
    """What scripts run in.

    kernel: the one for commands; program: packetdrill; options: arguments for it; readable: what
    scripts find besides their own folders; limit_s: virtual seconds that a script may take.
    """

    kernel: Path
    program: Path
    jobs: int = 1
    seed: int = 1
    options: tuple[str, ...] = ()
    readable: tuple[Path, ...] = ()
    limit_s: float = 180.0  # as in google's run_all.py


# Scripts -----------------------------------------------------------------------------

def own_options(text: str) -> dict[str, str]:
    """The options that a script sets itself, in lines that begin with them."""
    return {name: value for line in re.findall(r"^--\w.*", text, re.MULTILINE)
            for name, _, value in (word.partition("=") for word in line.split())}


def versions(path: Path, text: str, requested: str) -> list[str]:
    """Under which versions of IP a script is run; none where it is for another one.

    requested: "" for what the script sets, and IPv4 where it sets nothing, as packetdrill has it;
    one of VERSIONS; or "all" of those that it can be run with, as the kernel does.
    """
    own = own_options(text)
    addresses = own.get("--local_ip", "") + own.get("--remote_ip", "")
    if "--ip_version" in own:
        possible: tuple[str, ...] = (own["--ip_version"],)
    elif path.name.endswith("v6.pkt") or ":" in addresses:
        possible = ("ipv6",)
    elif path.name.endswith("v4.pkt") or addresses:
        possible = ("ipv4", "ipv4-mapped-ipv6")
    else:
        possible = VERSIONS
    if not requested:
        return [version for version in possible if version in VERSIONS][:1]
    return [version for version in VERSIONS
            if version in possible and requested in (version, "all")]


def readable_for(scripts: Iterable[Script], given: Iterable[Path] = ()) -> list[Path]:
    """The folders of scripts, and of the files above them that they name (../common/defaults.sh).

    given: by the user. Raises EngineCannot where another one holds secrets.
    """
    folders: dict[Path, None] = {}
    for path, text in dict.fromkeys((script.path, script.text) for script in scripts):
        folder = path.parent.resolve()
        above = [folder / name for name in re.findall(r"(?<![\w./])(?:\.\./)+[\w./-]+", text)]
        for file in (path, folder / path.name, *filter(Path.is_file, above)):
            folders[Path(os.path.normpath(file.absolute())).parent] = None
            folders[file.resolve().parent] = None
    for place in folders:
        if why := refused(place.resolve(), [path.resolve() for path in given],
                          "put scripts in a folder of their own"):
            raise EngineCannot(why)
    return list(folders)


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Those that lie in no other one: what is read-only takes nothing within it."""
    outer: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(above) for above in outer):
            outer.append(path)
    return outer


# Running -----------------------------------------------------------------------------

def compiled(folder: Path) -> Path:
    """What is preloaded into packetdrill (times.c). Raises EngineCannot."""
    library = folder / "times.so"
    if shutil.which("gcc") is None:
        made = TIMES.with_suffix(".so")  # with the image of a container, which has no compiler
        if made.exists():
            return Path(shutil.copy(made, library))
        raise EngineCannot("packetdrill in virtual time needs gcc, and there is none:"
                           " apt-get install gcc libc6-dev")
    done = subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(TIMES)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EngineCannot(f"gcc: {quoted(done.stderr)}: apt-get install gcc libc6-dev")
    return library


class OutOfTime(EngineError):
    """More wall time has passed than there was."""


def run(setup: Setup, scripts: Sequence[Script], folder: Path,
        until: float | None = None) -> Iterator[Result]:
    """Yield results in the order of the scripts; guests end with it, however it ends.

    folder: of this run alone; until: of time.monotonic(). Raises EngineCannot where the machine
    cannot, OutOfTime, EngineError where guests do not start.
    """
    guests = ScriptGuests(setup, folder, readable_for(scripts, setup.readable))
    hands = [scripts[place:place + BATCH] for place in range(0, len(scripts), BATCH)]
    queues: list[queue.SimpleQueue[Result | BaseException]] = [queue.SimpleQueue() for _ in hands]
    pool = ThreadPoolExecutor(setup.jobs)
    try:
        for number, hand in enumerate(hands):
            pool.submit(guests.run, number, hand, queues[number])
        for hand, results in zip(hands, queues):
            for _ in hand:
                try:
                    result = results.get(timeout=until and max(0.0, until - time.monotonic()))
                except queue.Empty:
                    raise OutOfTime("timeout, of wall time") from None
                if isinstance(result, BaseException):
                    raise result
                yield result
    finally:
        guests.stop()
        pool.shutdown(cancel_futures=True)


class ScriptGuests:
    """Guests that run scripts, each in a thread of this process."""

    def __init__(self, setup: Setup, folder: Path, folders: Iterable[Path]) -> None:
        """folders: what scripts read. Raises EngineCannot."""
        self.setup, self.folder = setup, folder
        self.empty = folder / "empty"  # where a command is started
        self.empty.mkdir()
        self.library = compiled(folder)
        self.readable = outermost([
            *folders, *setup.readable, setup.program.resolve(), self.library.resolve(),
            Path(packetdrill_inside.__file__).resolve()])
        self.places = Places(OF_COMMANDS)
        len(self.places.paths)  # looked at once for all guests, and before any thread asks
        self.running: set[CommandGuest] = set()
        self.stopping = False

    def stop(self) -> None:
        self.stopping = True
        for guest in list(self.running):
            with suppress(ProcessLookupError):
                os.killpg(guest.process.pid, signal.SIGKILL)

    def run(self, number: int, scripts: Sequence[Script],
            results: queue.SimpleQueue[Result | BaseException]) -> None:
        """A hand of scripts: in one guest, and where that dies the rest in another one."""
        try:
            while scripts and not self.stopping:
                hand = Hand(self.setup, scripts, results)
                self._attend(number, hand)
                scripts = scripts[hand.count:]
        except BaseException as error:  # for the thread that waits for results
            results.put(error)

    def _attend(self, number: int, hand: Hand) -> None:
        """Raises EngineCannot; EngineError where the guest did not start."""
        request = CommandRequest(
            ["/usr/bin/python3", "-I", "-S", str(Path(packetdrill_inside.__file__).resolve()),
             json.dumps(hand.given(self.library.resolve()))],
            self.empty.resolve(), [*map(str, self.readable), str(self.empty.resolve())],
            memory_mb=MEMORY_MB,
            seed=self.setup.seed, reads_input=False, guest=number)
        why = "the guest's own program ended"
        with CommandGuest(self.setup.kernel, self.folder / f"guest{number}", request,
                          terminal=False, places=self.places) as guest:
            self.running.add(guest)
            try:
                if not self.stopping:
                    guest.attend(hand.carry)
            except EngineCannot:
                raise
            except EngineError as error:
                if not guest.is_up:
                    raise
                why = str(error)
            finally:
                self.running.discard(guest)
        hand.end(why)


class Hand:
    """The scripts of one guest, and what it reports of them."""

    def __init__(self, setup: Setup, scripts: Sequence[Script],
                 results: queue.SimpleQueue[Result | BaseException]) -> None:
        self.setup, self.scripts, self.results = setup, scripts, results
        self.count, self.torn, self.trouble = 0, b"", b""

    def given(self, library: Path) -> dict[str, object]:
        return {"program": str(self.setup.program.resolve()), "preload": str(library),
                "limit_s": self.setup.limit_s,
                "scripts": [(str(script.path.parent.resolve()), script.words(self.setup.options))
                            for script in self.scripts]}

    def carry(self, kind: bytes, at_s: float, content: bytes) -> None:
        """What the guest printed. Raises EngineCannot, ValueError for what is no result."""
        if kind == ERROR:
            self.trouble = (self.trouble + content)[-MOST_WORDS:]
        elif kind == OUTPUT:
            *lines, self.torn = (self.torn + content).split(b"\n")
            for line in lines:
                self._hear(line)
            if len(self.torn) > MOST_LINE_BYTES:
                raise ValueError("it prints a line without an end")

    def _hear(self, line: bytes) -> None:
        if line.startswith(b'{"no_program"'):
            printed = quoted(read(line, _NO_PROGRAM, MOST_LINE_BYTES)["no_program"])
            raise EngineCannot(f"{self.setup.program} is not packetdrill:"
                               f" {printed or 'it says nothing of itself'}")
        values = read(line, _RESULT, MOST_LINE_BYTES)
        if values["number"] != self.count or self.count == len(self.scripts):
            raise ValueError("it reports another script")
        self.results.put(judged(self.scripts[self.count], values["status"], values["virtual_s"],
                                values["printed"], self.setup.limit_s))
        self.count += 1

    def end(self, why: str) -> None:
        """The guest has ended: with the script that it was at, if there is one."""
        if self.count < len(self.scripts):
            trouble = quoted(self.trouble, MOST_WORDS)
            self.results.put(Result(self.scripts[self.count], DIED, 0, 0.0,
                                    f"{why}{f': {trouble}' if trouble else ''}"))
            self.count += 1


def judged(script: Script, status: int | None, virtual_s: float, printed: str,
           limit_s: float) -> Result:
    """status, printed: packetdrill's, as packetdrill_inside.run has them."""
    line, words = failed_at(script.path.name, printed)
    if status is None:
        words = f"it has not ended after {limit_s:g} s of virtual time{words and f'; {words}'}"
    elif status < 0:
        with suppress(ValueError):
            words = f"{signal.Signals(-status).name}{words and f'; {words}'}"
    return Result(script, FAILED if status != 0 else PASSED, line if status != 0 else 0,
                  virtual_s, (words or f"status {status}") if status != 0 else "")


def failed_at(name: str, printed: str) -> tuple[int, str]:
    """The line of a script that packetdrill speaks of last, 0 for none, and its words."""
    lines = [line for line in printed.splitlines() if line.strip()]
    for place in range(len(lines) - 1, -1, -1):
        match = re.match(rf"(?:\S*/)?{re.escape(name)}:(\d{{1,9}}): *(.*)", lines[place])
        if match:
            return int(match[1]), quoted(" | ".join([match[2], *lines[place + 1:place + 3]]),
                                         MOST_WORDS)
    return 0, quoted(" | ".join(lines[-3:]), MOST_WORDS)
