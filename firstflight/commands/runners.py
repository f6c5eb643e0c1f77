"""Chooses what measures the trials of a command line: this machine's engine, or a cluster."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from firstflight.base import files
from firstflight.base.terminal import say
from firstflight.testbed.engine_errors import engine_errors
from firstflight.commands.request import Measuring
from firstflight.parameters import default
from firstflight.runs.kinds import AnyStudy, Overrides, R, S, Study, T, memory_mb_of, site_of
from firstflight.runs.measuring import Measurer, OneMachine, kernel_of
from firstflight.runs.results import provenance
from firstflight.testbed import engine, site_store
from firstflight.testbed.engine import choose_engine
from vtime.uml import KernelMissing, built_kernel, made_from, named_kernel, recipe_of


def check_rights(engine_name: str) -> None:
    """Refuse an engine that this user may not run. Raises CannotError."""
    with engine_errors():
        engine.check_rights(engine_name)


def check_kernels(overrides: Overrides) -> None:
    """Refuse a flag that names a kernel which is not there. Raises CannotError.

    A scenario file may name such a kernel: its trials are skipped, and the reason says how to
    build it.
    """
    with engine_errors():
        for name in {*overrides.lists.get("kernel", ())} - {default("kernel")}:
            named_kernel(name)


@contextmanager
def measurer_for(study: AnyStudy, measuring: Measuring) -> Iterator[Measurer]:
    """What measures: this machine, or the cluster that is requested.

    Guests stay booted until the context ends. Raises EngineCannot, EngineError.
    """
    if not measuring.cluster:
        this_machine = choose_engine(measuring.engine, measuring.jobs,
                                     memory_mb_of(study.trials))
        say_once(this_machine.warning)
        with this_machine.keeping_guests():
            yield OneMachine(this_machine)
        return
    from firstflight.runs.cluster import cluster
    kernel = built_kernel()
    named = named_kernels(study)
    with cluster.connect(measuring.cluster, kernel, tools_of(study), named, sites_of(study),
                         memory_mb_of(study.trials)) as machines:
        yield cluster.ManyMachines(machines, made_from(kernel),
                                   {name: recipe_of(path) for name, path in named.items()})


def named_kernels(study: AnyStudy) -> dict[str, Path]:
    """The files of the named kernels that the study's trials use, by name, without missing ones."""
    found: dict[str, Path] = {}
    for name in {kernel_of(trial) for trial in study.trials} - {default("kernel")}:
        with suppress(KernelMissing):
            found[name] = named_kernel(name)
    return found


def sites_of(study: AnyStudy) -> list[Path]:
    """The files of the recorded sites that the study's trials load, without missing ones."""
    found = []
    for digest in sorted({site_of(trial) for trial in study.trials} - {""}):
        with suppress(site_store.SiteMissing):
            site_store.get(digest)  # raises for a damaged file, too: no worker shall get it
            found.append(site_store.place_of(digest))
    return found


@contextmanager
def rounds(study: Study[S, T, R], measuring: Measuring
           ) -> Iterator[Callable[[Sequence[T]], list[R]]]:
    """A function that measures trials of a study and returns their records; it may be called often.

    Nothing is stored. Raises CannotError, FirstFlightError.
    """
    numbers = itertools.count(1)
    results = files.make_folder(measuring.results)
    with tempfile.TemporaryDirectory(prefix="rounds-", dir=results) as folder, \
            engine_errors(), measurer_for(study, measuring) as measurer:

        def measure_records(trials: Sequence[T]) -> list[R]:
            work = Path(folder) / f"round{next(numbers)}"
            return [judged.record for judged in measurer.judged(study, trials, set(), work)]

        yield measure_records


def tools_of(study: AnyStudy) -> dict[str, str]:
    """The versions of the tools that the study's trials depend on.

    nginx and the browser are left out where no trial uses them.
    """
    versions = dict(provenance.tools())
    if all(getattr(trial, "server", "") != "nginx" for trial in study.trials):
        versions.pop("nginx", None)
    if any(map(site_of, study.trials)):
        versions.update(provenance.browser())
    return versions


@cache
def say_once(warning: str) -> None:
    """Print a warning, unless this process has printed the same one; "" prints nothing."""
    if warning:
        say(f"run.sh: {warning}")
