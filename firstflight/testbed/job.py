"""An engine's side of a worker: its folder with trials and observations, and its process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from firstflight.base import places
from firstflight.base.untrusted import quoted
from firstflight.testbed import observations
from firstflight.testbed.messages import Job, Observation, ObservedTrial, trials_file
from firstflight.testbed.observations import CAPTURE_BYTES, FILE_BYTES, LINE_BYTES
from vtime import shared_folder
from vtime.console import (CONSOLE, EngineCannot, EngineError, excess_in, last_words_of,
                           printed_in, was_killed)
from vtime.kernel.init import PROGRAM
from vtime.shared_folder import (GrowingFile, holds_more, open_within, read_within, remove_folder,
                                 remove_within)
from vtime.silence import Watchdog
from vtime.uml import ending_with_us, refused_parameter

WORKER = "firstflight.testbed.worker.worker"  # the module to start, on the host or in a guest
SIDES = ("client", "server")
PIECE_BYTES = 1 << 20  # of observations.jsonl are read at a time
# A worker's folder may hold so much on the disk, without what was read of growing files.
MOST_NAMES, MOST_HELD_BYTES = 100_000, 4 << 30
ROOM_S = 1.0  # between two looks at what it holds
# The names of processes between this one and a guest's kernel: unshare, confine.py.
ABOVE_KERNEL = ("unshare\n", f"{Path(sys.executable).name[:15]}\n")
MOST_LINES = 10_000  # between two observations; a trial writes only a few


class StorageError(EngineError):
    """A worker can no longer write its records; the message says why."""


class WorkerSilent(EngineError):
    """A worker says nothing in a trial, which therefore has failed; silent_s: for how long."""

    def __init__(self, silent_s: float, words: str) -> None:
        super().__init__(words)
        self.silent_s = silent_s


class WorkerLost(EngineError):
    """A worker has ended, but no trial has failed; another worker gets its waiting trials."""


class WorkerKilled(WorkerLost):
    """A user killed a worker, or the system did for lack of memory."""


class JobFolder:
    """The folder of one worker, from the engine's side. See testbed/worker/worker.py."""

    def __init__(self, path: Path, trials: list[Job], sysctls: dict[str, str],
                 align_s: float = 0.0, warm_up: bool = False, waits: bool = False,
                 libraries: Mapping[str, Path] = MappingProxyType({})) -> None:
        """align_s: start trials at multiples of this on the worker's clock; 0 for at once.

        warm_up: whether to run a trial before the first one, without recording it. waits: whether
        the worker waits for more trials after these. libraries: of testbed.fork_server, by name;
        a guest reads them in its folder only. Raises WriteError.
        """
        self.path = path.absolute()  # workers have working folders of their own
        self.lines_path = self.path / "observations.jsonl"
        self.trial_files = 0
        job = {"sysctls": sysctls, "align_s": align_s, "warm_up": warm_up, "waits": waits}
        with places.writing(self.path):
            self._fill(job, trials, libraries)
            self.lines = GrowingFile(self.lines_path.open("r+b"))
        self.torn = b""  # the beginning of a line whose end was not read yet
        self.is_behind = False  # more has been written than was read
        self.captures: dict[str, GrowingFile] = {}

    def _fill(self, job: Mapping[str, object], trials: list[Job],
              libraries: Mapping[str, Path]) -> None:
        """Make the folder and all that a worker reads in it. Raises OSError."""
        self.path.mkdir(parents=True)
        (self.path / PROGRAM).write_text(WORKER)
        (self.path / "job.json").write_text(json.dumps(job))
        self.add(trials)
        for name, library in libraries.items():
            shutil.copyfile(library, self.path / name)
        shared_folder.reserve(self.path)
        self.lines_path.touch()

    def add(self, trials: list[Job]) -> None:
        """Write a file of trials; the worker finds it whole. Raises OSError.

        It never follows a link, which a guest may have made.
        """
        self.trial_files += 1
        aside = self.path / "trials-aside"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(aside, flags, 0o666), "w", encoding="ascii") as file:
            file.writelines(f"{json.dumps(trial)}\n" for trial in trials)
        aside.rename(self.path / trials_file(self.trial_files))

    def new_lines(self) -> list[bytes]:
        """The complete lines that the worker has written since the last call, some at a time.

        Raises ValueError if a line is too long.
        """
        piece = self.lines.read(PIECE_BYTES)
        self.is_behind = len(piece) == PIECE_BYTES
        *whole, self.torn = (self.torn + piece).split(b"\n")
        if len(self.torn) > LINE_BYTES:
            raise ValueError(f"a line has more than {LINE_BYTES} bytes")
        return whole

    def observation(self, line: Observation) -> ObservedTrial:
        """A trial's line (observations.OBSERVATION) together with its packets and files.

        Raises ValueError, OSError if it names what is no file of this folder, or too large.
        """
        packets = {side: b"" for side in SIDES}
        for side, place in line.get("captures", {}).items():
            if side not in self.captures:
                file = open_within(self.path, f"{side}.pcap", os.O_RDWR)
                self.captures[side] = GrowingFile(file)
            self.captures[side].place = place["offset"]
            packets[side] = self.captures[side].read(min(place["bytes"], CAPTURE_BYTES))

        files, room = {}, FILE_BYTES
        for name, written in line.get("files", {}).items():
            files[name] = read_within(self.path, written, room)
            room -= len(files[name])
            remove_within(self.path, written)

        if "started_at" in line:
            line["received_at"] = time.time()
        return ObservedTrial(line["trial"], line, client_pcap=packets["client"],
                             server_pcap=packets["server"], files=files)

    def unfreed_names(self) -> set[str]:
        """Names of growing files whose read parts the disk cannot free."""
        names = {f"{side}.pcap" for side, file in self.captures.items() if file.is_unfreeable}
        if self.lines.is_unfreeable:
            names.add(self.lines_path.name)
        return names

    def check_storage(self) -> None:
        """Raises StorageError if the folder is full or the worker could not write."""
        why = shared_folder.write_error(self.path)
        try:
            shared_folder.probe(self.path)
        except OSError as error:
            if error.errno in shared_folder.FULL:  # else the guest has put something in the way
                why = why or os.strerror(error.errno or 0)
        if why:
            raise StorageError(f"{self.path}: cannot be written: {why}")

    def remove(self) -> None:
        for file in (self.lines, *self.captures.values()):
            file.close()
        remove_folder(self.path)


def shared_out(trials: list[Job], workers: int) -> list[list[Job]]:
    """Deal trials to workers in a fixed order; trials with the same network stay together.

    If any trial has to be alone, each gets its own worker, so that nothing that a trial leaves in a
    kernel (ports, caches) affects another one.
    """
    if any(trial.get("alone") for trial in trials):
        return [[trial] for trial in trials]

    by_network: dict[str, list[Job]] = {}
    for trial in trials:
        network = json.dumps(trial["network"], sort_keys=True)
        by_network.setdefault(network, []).append(trial)
    batches: list[list[Job]] = [[] for _ in range(workers)]
    for number, group in enumerate(by_network.values()):
        batches[number % workers].extend(group)
    return [batch for batch in batches if batch]


class WorkerProcess:
    """A started worker, the trials it was given, and what it has reported so far."""

    def __init__(self, job: JobFolder, trials: list[Job], command: list[str],
                 cwd: Path, start_deadline_s: float, trial_deadline_s: float) -> None:
        """Start `command` in the folder `cwd`. Raises EngineCannot if its program is missing.

        The deadlines limit silence, before the network is up and after that. Time in which the
        worker waits for a processor does not count (Watchdog).
        """
        self.job = job
        self.start_deadline_s = start_deadline_s
        self.trial_deadline_s = trial_deadline_s
        self.waiting = {trial["id"]: trial for trial in trials}  # in their order
        self.lines = 0  # since the last observation
        self.ready: dict[str, object] = {}  # what the worker reports of its kernel once it is up
        self.ending: EngineError | None = None  # to be raised once all observations are given
        self.paused: int | None = None  # the process of its kernel, once it was paused

        with (job.path / CONSOLE).open("wb") as console:
            try:
                self.process = subprocess.Popen(
                    ending_with_us(command), cwd=cwd, stdin=subprocess.DEVNULL,
                    stdout=console, stderr=subprocess.STDOUT, start_new_session=True)
            except FileNotFoundError as error:
                raise EngineCannot(f"{error.filename} is missing: run ./install.sh") from error
        self.watchdog = Watchdog(self.process.pid)
        self.looked = time.monotonic()  # at what its folder holds

    def poll(self) -> Iterator[ObservedTrial]:
        """What has been observed since the last call, until all trials are.

        Raises EngineCannot where the worker's kernel cannot do it, StorageError
        if it cannot record, EngineError if it gave up, stopped or hangs.
        """
        ended = self.process.poll() is not None  # before reading, so that nothing is missed
        try:
            lines = self.job.new_lines()
        except ValueError as error:
            raise self._wrong(error) from error

        has_observed = False
        for line in lines:
            trial = self._read_line(line)
            if trial is not None:
                has_observed = True
                yield trial
            if not self.waiting:
                return

        self._look_at_folder()
        if not has_observed and not self.job.is_behind:
            self._judge_silence(ended)

    def _look_at_folder(self) -> None:
        """Now and then, see what the worker has left in its folder. Raises EngineError."""
        now = time.monotonic()
        if now - self.looked <= ROOM_S:
            return
        self.looked = now
        if not self.ready and (why := refused_parameter(self.printed())):
            raise EngineCannot(why)
        if holds_more(self.job.path, MOST_NAMES, MOST_HELD_BYTES, self.job.unfreed_names()):
            raise EngineError(f"the worker wrote more than {MOST_HELD_BYTES >> 30} GB or"
                              f" {MOST_NAMES} files into its folder")

    def _read_line(self, text: bytes) -> ObservedTrial | None:
        """Handle one line: return a trial's observation, or None for a stage."""
        self.watchdog.end()
        self.lines += 1
        try:
            line = observations.read_line(text)
            if "trial" in line:
                if line["trial"] not in self.waiting:
                    raise ValueError(f"no trial {quoted(line['trial'])!r} was expected")
                observation = self.job.observation(line)
                del self.waiting[observation.trial_id]
                self.lines = 0
                return observation
            if self.lines > MOST_LINES:
                raise ValueError(f"{MOST_LINES} lines, and no observation among them")
        except (ValueError, OSError) as error:
            # A guest with a stranger's scenario may write anything; but a full disk comes first.
            self.job.check_storage()
            raise self._wrong(error) from error

        self.ready.update(line.get("facts", {}))
        self._note_stage(line["stage"], line.get("reason", "nothing"))
        return None

    def _note_stage(self, stage: str, reason: str) -> None:
        """Note why the worker ends, if this stage is an end."""
        words = f"the worker reports: {reason}"
        if stage == "cannot":
            self.ending = EngineCannot(words)
        elif stage == "broken":
            self.ending = WorkerLost(words)
        elif stage == "failed":
            self.ending = EngineError(words)
        elif stage == "done":  # no error where it has measured all trials
            self.ending = WorkerLost("the worker ended before it took its last trials")

    def _wrong(self, error: Exception) -> EngineError:
        """The error of a line that no worker writes."""
        return EngineError(f"the worker wrote a line that is not an observation:"
                           f" {quoted(str(error))}")

    def _judge_silence(self, ended: bool) -> None:
        """Raises the error of a worker that reports nothing more, as EngineError or StorageError.

        ended: whether its process has.
        """
        silent_s = self.watchdog.seconds()
        awaited, deadline_s = "its network", self.start_deadline_s
        if self.ready:
            awaited, deadline_s = f"trial {next(iter(self.waiting))}", self.trial_deadline_s
        hangs = silent_s > deadline_s
        if ended or hangs or self.ending:
            self.job.check_storage()

        if self.ending:
            raise self.ending
        if ended and (why := excess_in(self.printed())):
            raise EngineError(f"the guest was ended while {awaited} was awaited: {why}")
        if self.process.returncode == -signal.SIGKILL or ended and was_killed(self.printed()):
            raise WorkerKilled(f"the worker was killed while {awaited} was awaited, by the system"
                               " if memory has run out")
        if ended:
            raise EngineError(f"the worker stopped (status {self.process.returncode}) while"
                              f" {awaited} was awaited: {self.last_words()}")
        if hangs:
            raise WorkerSilent(silent_s, f"the worker said nothing for {silent_s:.0f} s while"
                               f" {awaited} was awaited: {self.last_words()}")

    def pause(self) -> bool:
        """Stop its kernel, which has no trial left, until give(); whether that was possible."""
        self.paused = _kernel_process(self.process.pid)
        return self.paused is not None and _signal(self.paused, signal.SIGSTOP)

    def give(self, trials: list[Job]) -> None:
        """Hand more trials to a paused worker that waits. Raises StorageError, OSError."""
        self.waiting = {trial["id"]: trial for trial in trials}
        try:
            self.job.add(trials)
        except OSError:
            self.job.check_storage()
            raise
        self.watchdog.end()
        if self.paused is not None:  # where it has ended, poll() says so
            _signal(self.paused, signal.SIGCONT)

    def printed(self) -> str:
        return printed_in(self.job.path)

    def last_words(self) -> str:
        return last_words_of(self.printed())

    def stop(self) -> None:
        """Kill whatever still runs of it and remove its folder."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.job.remove()


def _kernel_process(first: int) -> int | None:
    """The process of a guest's kernel: the first one of its group, or below unshare and watcher.

    None where it has ended, or where /proc does not list children. Only this process may be
    stopped: where one of its own processes stops, the kernel takes it for a signal that it never
    sent.
    """
    process = first
    try:
        while Path(f"/proc/{process}/comm").read_text() in ABOVE_KERNEL:
            (child,) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
            process = int(child)
    except (OSError, ValueError):
        return None
    return process


def _signal(process: int, number: signal.Signals) -> bool:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True
