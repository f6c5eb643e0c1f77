"""Who measures what a command line asks for: this machine's engine, or a cluster."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from engines import engine, uml
from engines.engine import Engine, NoEngine, choose_engine
from engines.host import HostEngine
from engines.job import EngineCannot, EngineError
from engines.uml import UmlEngine, built_kernel, made_from
from lab.core.command_line import say
from lab.core.errors import CannotError, FirstFlightError
from lab.core.results import provenance
from lab.core.run.kinds import Study
from lab.core.run.measuring import Measurer, OneMachine


@contextmanager
def engine_errors(kept: str = "") -> Iterator[None]:
    """What an engine raises, as the user is told of it. kept: what is said of what is measured."""
    try:
        yield
    except EngineCannot as error:
        raise CannotError(str(error)) from error
    except EngineError as error:
        raise FirstFlightError(f"{error}{kept}") from error


def check_rights(arguments: argparse.Namespace) -> None:
    """Raises CannotError where its engine is one that this user may not run."""
    with engine_errors():
        if not arguments.dry_run:
            engine.check_rights(arguments.engine)


def engine_for(study: Study, arguments: argparse.Namespace) -> Engine:
    """What runs its trials here. Raises EngineCannot."""
    return choose_engine(arguments.engine, arguments.jobs) if study.trials else NoEngine()


def planned(study: Study, arguments: argparse.Namespace) -> tuple[str, int]:
    """The engine that would run its trials and its guests, also where run.sh has to build its
    kernel first. Raises EngineCannot."""
    if not study.trials:
        return NoEngine.name, NoEngine.jobs
    if arguments.engine == HostEngine.name or platform.machine() != "x86_64":
        return HostEngine.name, HostEngine.jobs
    return UmlEngine.name, uml.guests(arguments.jobs)


@contextmanager
def measurer_for(study: Study, arguments: argparse.Namespace) -> Iterator[Measurer]:
    """This machine, or the cluster that is asked for. Raises EngineCannot, EngineError."""
    if not arguments.cluster or not study.trials:
        here = engine_for(study, arguments)
        say_once(here.warning)
        yield OneMachine(here)
        return
    from engines.cluster.cluster import Cluster  # and with it Dask: only where it is asked
    from engines.cluster.link import Link
    from lab.core.run.batches import ManyMachines
    kernel = built_kernel()
    cluster = Cluster(Link(arguments.cluster, kernel, tools_of(study),
                           arguments.cluster_insecure, lambda line: say(f"run.sh: {line}")))
    try:
        yield ManyMachines(cluster, made_from(kernel))
    finally:
        cluster.close()


def tools_of(study: Study) -> dict[str, str]:
    """The tools whose versions decide on its trials: a server only where one asks for it."""
    servers = {getattr(trial, "server", "") for trial in study.trials}
    return {name: version for name, version in provenance.tools().items()
            if name != "nginx" or name in servers}


@cache
def say_once(warning: str) -> None:
    if warning:
        say(f"run.sh: {warning}")
