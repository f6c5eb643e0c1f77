"""The engine that runs trials on this machine's kernel, and the choice between engines."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType

from firstflight.base import PROJECT
from firstflight.testbed import site_store
from firstflight.testbed.guests import DEFAULT_KERNEL, UmlEngine, place_of
from firstflight.testbed.job import WORKER, JobFolder, WorkerProcess
from firstflight.testbed.messages import HOST, UML, Job, ObservedTrial
from vtime import memory, system
from vtime.console import EngineCannot, EngineError
from vtime.uml import built_kernel, check_machine, find_kernel

START_DEADLINE_S = 60.0
# In addition to the longest trial's own deadline. So the worker's deadlines come first, whose
# messages have a reason.
SILENCE_DEADLINE_S = 400.0
POLL_S = 0.02
KERNELS_IN_GUESTS = ("a kernel under a name, or a parameter of its modules, is for guests only:"
                     " the host engine runs this machine's kernel as it is")
NEEDS_ROOT = "the host engine needs root: sudo ./run.sh --engine host …"
NEEDS_NAMESPACES = ("the host engine needs new namespaces, which this machine or container refuses"
                    " to root: allow them, or use --engine uml")
NO_NAMESPACES = re.compile(r"unshare: (unshare failed|cannot change).*")
# sysfs shows the network devices of the namespace that mounted it, and Mininet reads it. With IPv6
# the switch would send router solicitations through the bottleneck: 70 bytes, 10 ms at 56 kbit/s.
_SETUP = ('mount -t sysfs sysfs /sys && { sysctl -q -w net.ipv6.conf.all.disable_ipv6=1'
          ' 2>/dev/null; exec "$@"; }')


class HostEngine:
    """Runs trials one after another on this machine's kernel, in real time; needs root.

    The worker is the first process of new network, mount and PID namespaces. So its networks never
    meet the host's, and however it ends, the kernel removes everything with it.
    """

    name = HOST
    exact = False
    known_kernel = False  # this machine's kernel may be built by anybody
    jobs = 1
    warning = ""

    def __init__(self, sites: Mapping[str, Path] = MappingProxyType({})) -> None:
        """sites: recordings that a browser may load here, by the names of their files.

        Users' own pages are loaded in guests only.
        """
        self.build = platform.release()
        self.facts: dict[str, object] = {}
        self.sites = sites

    def recipes(self, names: Collection[str]) -> dict[str, dict[str, object]]:
        return {}

    def is_known(self, kernel: str) -> bool:
        return self.known_kernel

    def keeping_guests(self) -> AbstractContextManager[None]:
        """Nothing: it has no guests."""
        return nullcontext()

    def run(self, trials: list[Job], sysctls: dict[str, str],
            folder: Path) -> Iterator[ObservedTrial]:
        """Yield one observation per trial, in order. Raises EngineCannot, EngineError."""
        possible: list[Job] = []
        for trial in trials:
            place = place_of(trial)
            if place.system != system.HERE:
                yield ObservedTrial(trial["id"], {"skipped": system.ONLY_IN_GUESTS})
            elif place.kernel != DEFAULT_KERNEL or place.module_parameters:
                yield ObservedTrial(trial["id"], {"skipped": KERNELS_IN_GUESTS})
            elif "site" in trial and not self.sites:
                yield ObservedTrial(trial["id"], {"skipped": site_store.ONLY_IN_GUESTS})
            else:
                possible.append(trial)
        if possible:
            yield from self._measure(possible, sysctls, folder)

    def _measure(self, trials: list[Job], sysctls: dict[str, str],
                 folder: Path) -> Iterator[ObservedTrial]:
        """Have a worker run trials; their observations. Raises EngineCannot, EngineError."""
        if os.geteuid() != 0:
            raise EngineCannot(NEEDS_ROOT)

        job = JobFolder(folder / "host", trials, sysctls, warm_up=True, libraries=self.sites)
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
                   "--mount-proc", "sh", "-c", _SETUP, "sh",
                   sys.executable, "-m", WORKER, str(job.path), str(PROJECT)]
        longest_s = max(trial["deadline_s"] for trial in trials)
        worker = WorkerProcess(
            job, trials, command, cwd=PROJECT, start_deadline_s=START_DEADLINE_S,
            trial_deadline_s=2 * longest_s + SILENCE_DEADLINE_S)
        try:
            while worker.waiting:
                yield from worker.poll()
                self.facts = self.facts or worker.ready
                time.sleep(POLL_S)
        except EngineCannot as error:
            if "netem" not in str(error):
                raise
            raise EngineCannot(f"{error}; {netem_advice()}") from error
        except EngineError as error:
            if refusal := NO_NAMESPACES.search(worker.printed()):
                raise EngineCannot(f"{refusal[0]}: {NEEDS_NAMESPACES}") from error
            raise
        finally:
            worker.stop()


def netem_advice() -> str:
    """How to get netem on this machine, or to do without it."""
    release = platform.release()
    try:
        distribution = Path("/etc/os-release").read_text()
    except OSError:
        distribution = ""
    if "ubuntu" in distribution.lower():
        return f"install linux-modules-extra-{release}, or use --engine uml"
    return (f"install the linux-image package whose modules match {release} (it holds"
            " sch_netem), or use --engine uml")


Engine = HostEngine | UmlEngine  # runs.measuring.Engine is their protocol


def check_rights(name: str) -> None:
    """Raises EngineCannot if this user may not run the engine of that name."""
    if name == HostEngine.name and os.geteuid() != 0:
        raise EngineCannot(NEEDS_ROOT)


def choose_engine(name: str, jobs: int | None, memory_mb: int = memory.MEMORY_MB) -> Engine:
    """The engine named "uml" or "host"; for "auto" uml if its kernel is built, else host.

    jobs: guests side by side, None for as many as this machine has cores and memory for.
    memory_mb: the most that each may take. Raises EngineCannot if the engine is not available.
    """
    if name == UML:
        check_machine()  # before a kernel is built that could not run here
    kernel = None
    if name == UML:
        kernel = built_kernel()
    elif name == "auto":
        kernel = find_kernel()
    if kernel is None:
        return HostEngine()
    return UmlEngine(kernel, memory.guests(jobs, memory_mb=memory_mb))
