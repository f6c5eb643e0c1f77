"""The `uml` engine: trials in guests whose clock skips idle time, several guests side by side."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from firstflight.testbed import fork_server, site_store
from firstflight.testbed.job import (JobFolder, StorageError, WorkerLost, WorkerProcess,
                                     WorkerSilent, shared_out)
from firstflight.testbed.messages import (BROWSED_PAGE, BROWSER_MEMORY_MB, CHROMIUM, UML, Job,
                                           ObservedTrial)
from vtime import confine, memory, readable, system, uml
from vtime.console import EngineCannot, EngineError
from vtime.uml import (check_machine, compile_programs, guest_command, made_from, processors,
                       walls, why_not)

# Our files that guests run or import.
PROGRAMS = ("vtime/**/*.py", "firstflight/__init__.py", "firstflight/base/untrusted.py",
            "firstflight/net/**/*.py", "firstflight/testbed/**/*.py")
# A guest boots in a fifth of a second and builds its network in another. Neither counts
# how long a guest waits for a processor, on a machine that is busy with something else.
BOOT_DEADLINE_S = 120.0
# For one trial, whatever its length in virtual time: a process that spins in the guest
# would keep the clock from ever advancing.
TRIAL_DEADLINE_S = 180.0
# Of a page, which takes a browser's start and a few seconds; a script of it may never return.
BROWSED_DEADLINE_S = 90.0
ENDLESS = ("the page computes for ever: its browser had a processor for {silent_s:.0f} s, in which"
           " it did not end to load")
POLL_S = 0.005
# Between two looks at the guests, the caller judges at most AT_ONCE observations. At most MOST_HELD
# of them wait to be judged, and MOST_WAITING_BYTES and one more, since each has its packets in
# memory.
AT_ONCE, MOST_HELD, MOST_WAITING_BYTES = 20, 100, 256 << 20
DEFAULT_KERNEL = "default"  # the one that runs use where none is named
# One slot of the timer wheel's fifth level at 1000 ticks a second (4096
# jiffies, kernel/time/timer.c): see Worker._align.
ALIGN_S = 4.096
BROWSER_READS = ("/etc/fonts",)
# How often the trials that dead guests leave behind go to a new one.
MAX_RESTARTS = 3
START_S = 0.5  # the processor time that a guest takes until its first trial


class Place(NamedTuple):
    """In which guests a trial may run: their kernel, its command line, and whose programs."""

    system: str
    kernel: str
    module_parameters: tuple[str, ...]


def place_of(trial: Job) -> Place:
    return Place(trial.get("system", system.HERE), trial.get("kernel", DEFAULT_KERNEL),
                 module_parameters=tuple(trial.get("module_parameters", ())))


class UmlEngine:
    """Runs trials in `jobs` guests side by side."""

    name = UML
    exact = True

    def __init__(self, kernel: Path, jobs: int, first: int | None = None,
                 named_kernel: Callable[[str], Path] = uml.named_kernel) -> None:
        """Raises EngineCannot.

        first: the processor of the first guest, None for any. named_kernel: finds a kernel by its
        name, or raises KernelMissing.
        """
        check_machine()
        self.jobs, self.first = jobs, first
        self.kernel = kernel
        self.build = kernel.parent.name  # digests of its configuration and source (build.sh)
        self.find_kernel = named_kernel
        self.kernels: dict[str, Path] = {DEFAULT_KERNEL: kernel}  # by name: that were looked for
        self.roots: dict[str, Path | None] = {system.HERE: None}  # of systems already checked
        self.facts: dict[str, Any] = {"confined": walls(), **made_from(kernel)}
        self.known_kernel: bool = self.facts["kernel_known"]
        self.warning = "; ".join(self._warnings())

        self.started = 0  # guests, ever
        self.bound: dict[WorkerProcess, int] = {}  # the processor of each guest
        self.named: dict[WorkerProcess, str] = {}  # its kernel
        self.purposes: dict[WorkerProcess, GuestFor | None] = {}  # None: it is not kept
        self.keeps_guests = False  # see keeping_guests
        self.idle: list[tuple[GuestFor, WorkerProcess]] = []  # kept, in the order they became so
        compile_programs(PROGRAMS)
        self.readable_paths = readable.ReadablePaths()  # found once for all guests

    def _warnings(self) -> list[str]:
        """What a user should know of this machine and its kernel."""
        warnings = []
        if lacking := confine.lacking():
            warnings.append(f"this machine lacks {lacking}: guests are not confined, measure only"
                            " scenario files that you trust")
        if not self.known_kernel:
            warnings.append("the guest kernel was built from"
                            f" {self.facts['kernel_origin'] or 'an unknown source'}: what the model"
                            " of TCP predicts is shown and not judged"
                            " (FIRST_FLIGHT_KERNEL_SOURCE=default ./install.sh takes the"
                            " distribution's)")
        return warnings

    def recipes(self, names: Collection[str]) -> dict[str, dict[str, Any]]:
        """What the kernels under these names were built from, as far as they are there."""
        found: dict[str, dict[str, Any]] = {}
        for name in sorted({*names} - {DEFAULT_KERNEL}):
            try:
                found[name] = uml.recipe_of(self._kernel(name))
            except (uml.KernelMissing, OSError, LookupError):
                continue
        return found

    def is_known(self, kernel: str) -> bool:
        """Whether the TCP of a kernel under a name is one that the model was checked against."""
        return bool(self.facts.get("kernels", {}).get(kernel, {}).get("known"))

    def _kernel(self, name: str) -> Path:
        """Raises KernelMissing."""
        if name not in self.kernels:
            self.kernels[name] = self.find_kernel(name)
        return self.kernels[name]

    def run(self, trials: list[Job], sysctls: dict[str, str],
            folder: Path) -> Iterator[ObservedTrial]:
        """Yield one observation per trial, in the order in which they finish.

        If a guest dies or hangs, its current trial fails. If it is killed or its programs end, no
        trial fails. Its other trials go to a new guest. Raises EngineError if guests do not start.
        """
        without_site = site_store.missing(trials)
        for name, why in without_site.items():
            yield ObservedTrial(name, {"skipped": why})
        batches, skipped = self._place(
            [trial for trial in trials if trial["id"] not in without_site])
        yield from skipped
        yield from self._guests(batches, sysctls, folder)

    @contextmanager
    def keeping_guests(self) -> Iterator[None]:
        """Within it, guests outlive a run() and take trials of later ones, which need not boot."""
        self.keeps_guests = True
        try:
            yield
        finally:
            self.keeps_guests = False
            for _, guest in self.idle:
                guest.stop()
            self.idle.clear()

    def _guests(self, batches: list[list[Job]], sysctls: dict[str, str],
                folder: Path) -> Iterator[ObservedTrial]:
        """Give each batch to a guest; at most `jobs` guests run at a time.

        All guests are looked at before the caller judges anything: one that has no trial left
        spins until it is paused or stopped, since waiting is a busy loop in virtual time.
        """
        waiting = deque(batches)
        guests: list[WorkerProcess] = []
        observed = Waiting()
        restarts = 0
        try:
            while guests or waiting:
                while waiting and len(guests) < self.jobs:
                    batch = waiting.popleft()
                    purpose = guest_for(batch, sysctls)
                    guests.append(self._take_idle(purpose, batch)
                                  or self._start(folder, self._free(guests), batch, purpose))

                for guest in list(guests):
                    try:
                        for observation in guest.poll():
                            observed.append(observation)
                            while observed.are_too_many:
                                yield observed.popleft()
                        self._take_facts(guest)
                    except StorageError:
                        raise
                    except EngineError as error:
                        restarts += 1
                        rest = list(guest.waiting.values())
                        if isinstance(error, WorkerSilent) and rest[0]["kind"] == BROWSED_PAGE:
                            error = EngineError(ENDLESS.format(silent_s=error.silent_s))
                        self._check(guest, error, restarts)
                        if not isinstance(error, WorkerLost):
                            failed = rest.pop(0)
                            observed.append(ObservedTrial(failed["id"], {"error": str(error)}))
                        if rest:
                            guests.append(self._start(folder, self._free(guests), rest,
                                                      guest_for(rest, sysctls)))
                        guest.waiting.clear()
                        guests.remove(guest)
                        guest.stop()
                        continue
                    if not guest.waiting:
                        guests.remove(guest)
                        self._keep_or_stop(guest)

                if not observed:
                    time.sleep(POLL_S)
                for _ in range(min(len(observed), AT_ONCE)):
                    yield observed.popleft()
            yield from observed.queue
        except EngineError:
            yield from observed.queue  # what was measured before counts
            raise
        finally:
            for guest in guests:
                guest.stop()

    def _take_idle(self, purpose: GuestFor, trials: list[Job]) -> WorkerProcess | None:
        """A guest that waits for such trials, and now has these; None if there is none."""
        fitting = [kept for kept in self.idle if kept[0] == purpose]
        if not fitting:
            return None
        self.idle.remove(fitting[0])
        _, guest = fitting[0]
        try:
            guest.give(trials)
        except StorageError:
            guest.stop()
            raise
        except OSError:  # it has put something in the way
            guest.stop()
            return None
        return guest

    def _keep_or_stop(self, guest: WorkerProcess) -> None:
        """Let a guest wait for more trials, if it is to; no more than self.jobs of them wait."""
        purpose = self.purposes[guest]
        if purpose is None or not guest.pause():
            guest.stop()
            return
        self.idle.append((purpose, guest))
        if len(self.idle) > self.jobs:
            _, longest_idle = self.idle.pop(0)
            longest_idle.stop()

    def _take_facts(self, guest: WorkerProcess) -> None:
        """Take what a guest reported of its kernel.

        The facts of a run are those of the default kernel, if it ran.
        """
        if self.named[guest] == DEFAULT_KERNEL:
            self.facts.update(guest.ready)
        else:
            self.facts = {**guest.ready, **self.facts}

    def _place(self, trials: list[Job]) -> tuple[list[list[Job]], list[ObservedTrial]]:
        """Deal trials to guests: what each guest does, and the trials whose guest cannot be.

        A guest has one kernel and one system, and runs trials of one kind. Raises EngineCannot
        where a kernel or a system is damaged.
        """
        groups: dict[tuple[Place, str], list[Job]] = {}
        for trial in trials:
            groups.setdefault((place_of(trial), trial["kind"]), []).append(trial)
        missing_systems = self._missing_systems({place.system for place, _ in groups})
        missing_kernels = self._missing_kernels({place.kernel for place, _ in groups})

        batches: list[list[Job]] = []
        skipped: list[ObservedTrial] = []
        for (place, _), group in groups.items():
            why = missing_kernels.get(place.kernel) or missing_systems.get(place.system)
            if why:
                skipped += [ObservedTrial(trial["id"], {"skipped": why}) for trial in group]
            else:
                batches += shared_out(group, guests_worth_starting(group, most=self.jobs))
        return batches, skipped

    def _missing_kernels(self, names: Collection[str]) -> dict[str, str]:
        """Why these kernels are not there, by name. Raises EngineCannot where one is damaged."""
        missing: dict[str, str] = {}
        for name in {*names} - {DEFAULT_KERNEL}:
            try:
                recipe = uml.recipe_of(self._kernel(name))
            except uml.KernelMissing as error:
                missing[name] = str(error)
                continue
            except (OSError, LookupError) as error:
                raise EngineCannot(f"the kernel {name} is damaged: build it again (./install.sh"
                                   f" --kernel {name} …)") from error
            if recipe:
                self.facts.setdefault("kernels", {})[name] = recipe
        return missing

    def _missing_systems(self, names: Collection[str]) -> dict[str, str]:
        """Why these systems are not there, by name. Raises EngineCannot where one is damaged."""
        missing: dict[str, str] = {}
        for name in {*names} - self.roots.keys():
            try:
                versions = system.check(system.folder())
            except system.Missing:
                missing[name] = system.MISSING
                continue
            except system.Damaged as damaged:
                raise EngineCannot(f"{damaged}; ./install.sh --with-pq builds it again"
                                   ) from damaged
            self.facts.setdefault("systems", {})[name] = system.shown_versions(versions)
            system.compile_programs(system.folder(), PROGRAMS)
            self.roots[name] = system.folder()
        return missing

    def _check(self, guest: WorkerProcess, error: EngineError, restarts: int) -> None:
        """Raise an error that ends the run, if another guest would end as this one did."""
        if why := why_not(guest.printed()):
            raise EngineCannot(why) from error
        if (isinstance(error, EngineCannot) or restarts > MAX_RESTARTS
                or not (guest.ready or isinstance(error, WorkerLost))):
            raise error

    def _free(self, guests: list[WorkerProcess]) -> int:
        """The processor with the fewest guests."""
        taken = Counter(self.bound[guest] for guest in guests)
        return min(processors(self.first), key=taken.__getitem__)

    def _start(self, folder: Path, processor: int, trials: list[Job],
               purpose: GuestFor) -> WorkerProcess:
        """Boot a guest, whose own folder is in `folder`. Raises EngineCannot."""
        place = purpose.place
        kernel = self.kernels[place.kernel]
        if not kernel.exists():
            raise EngineCannot(f"the kernel {place.kernel} was removed while trials wait for it:"
                               " build it again, and the same command resumes the run")

        boot = guest_command(kernel, self.roots[place.system], purpose.readable,
                             memory_mb=purpose.memory_mb, more=place.module_parameters,
                             places=self.readable_paths)
        command = ["taskset", "--cpu-list", str(processor), *boot]
        is_kept = self.keeps_guests and not any(trial.get("alone") for trial in trials)
        files = fork_server.libraries() if purpose.forks else {}
        for site in purpose.sites:
            files[site_store.file_name(site)] = site_store.place_of(site)

        job = JobFolder(folder / f"guest{self.started}", trials, dict(purpose.sysctls),
                        align_s=ALIGN_S, waits=is_kept, libraries=files)
        self.started += 1
        guest = WorkerProcess(job, trials, command, cwd=job.path, start_deadline_s=BOOT_DEADLINE_S,
                              trial_deadline_s=purpose.deadline_s)
        self.bound[guest], self.named[guest] = processor, place.kernel
        self.purposes[guest] = purpose if is_kept else None
        return guest


def guests_worth_starting(trials: Sequence[Job], most: int) -> int:
    """How many guests share trials, at most `most`: each computes for longer than it starts.

    A trial without an estimate of its time counts as long enough for a guest of its own.
    """
    seconds = sum(trial.get("guest_s", START_S) for trial in trials)
    return min(most, max(1, int(seconds / START_S)))


class Waiting:
    """Observations that wait to be judged, the oldest first."""

    def __init__(self) -> None:
        self.queue: deque[ObservedTrial] = deque()
        self.bytes = 0  # of their packets and files

    def __len__(self) -> int:
        return len(self.queue)

    def append(self, observation: ObservedTrial) -> None:
        self.queue.append(observation)
        self.bytes += bytes_of(observation)

    def popleft(self) -> ObservedTrial:
        observation = self.queue.popleft()
        self.bytes -= bytes_of(observation)
        return observation

    @property
    def are_too_many(self) -> bool:
        """Whether these are more than may wait, in number or in bytes."""
        return len(self.queue) > MOST_HELD or self.bytes > MOST_WAITING_BYTES


def bytes_of(observation: ObservedTrial) -> int:
    """What an observation holds in memory: its packets and files."""
    packets = len(observation.client_pcap) + len(observation.server_pcap)
    return packets + sum(map(len, observation.files.values()))


class GuestFor(NamedTuple):
    """What a guest is started with; trials that need the same may be given to it."""

    place: Place
    kind: str  # of its bench
    # Whether it has the libraries of testbed.fork_server, with which curl forks, and all that
    # speaks TLS draws from the kernel.
    forks: bool
    readable: tuple[str, ...]  # paths that its servers and its browser may read
    sysctls: tuple[tuple[str, str], ...]
    sites: tuple[str, ...] = ()  # digests of the recordings that it has

    @property
    def memory_mb(self) -> int:
        return BROWSER_MEMORY_MB if self.kind == BROWSED_PAGE else memory.MEMORY_MB

    @property
    def deadline_s(self) -> float:
        """For one trial, by the clock of this machine."""
        return BROWSED_DEADLINE_S if self.kind == BROWSED_PAGE else TRIAL_DEADLINE_S


def guest_for(trials: Sequence[Job], sysctls: Mapping[str, str]) -> GuestFor:
    """What the guest of a batch is started with. Raises EngineCannot as readable_by does."""
    forks = any(trial.get("client") in ("curl", CHROMIUM) or "tls" in trial for trial in trials)
    sites = {trial["site"] for trial in trials if "site" in trial}
    return GuestFor(place_of(trials[0]), trials[0]["kind"], forks,
                    readable=tuple(readable_by(trials)), sysctls=tuple(sysctls.items()),
                    sites=tuple(sorted(sites)))


def readable_by(trials: Sequence[Job]) -> list[str]:
    """Paths that the user's own servers may read, besides those that every guest may.

    Raises EngineCannot for a path with secrets: a scenario may come from a stranger.
    """
    requested: set[str] = set()
    for trial in trials:
        if "own" in trial:
            requested.update(trial["own"]["folders"], (trial["own"]["ca"],))
    paths = sorted(requested - {""})

    for path in paths:
        real = os.path.realpath(path)
        why = readable.secrets_in(Path(real))
        if why and (os.path.isdir(real)
                    or not readable.everybody_reads(real, readable.homes())):
            raise EngineCannot(f"the server's {real} {why}, and the server would read all of it:"
                               " put what it needs into a folder of its own")

    if any(trial.get("client") == CHROMIUM for trial in trials):
        paths += [path for path in BROWSER_READS if os.path.isdir(path)]
    return paths
