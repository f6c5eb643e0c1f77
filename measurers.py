"""Who measures what a command line asks for: this machine's engine, or a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from engines.engine import Engine, NoEngine, choose_engine
from engines.uml import built_kernel
from lab.core import provenance
from lab.core.command_line import say
from lab.core.kinds import Study
from lab.core.measuring import Measurer, OneMachine


def engine_for(study: Study, arguments: argparse.Namespace) -> Engine:
    """What runs its trials here. Raises EngineCannot."""
    return choose_engine(arguments.engine, arguments.jobs) if study.trials else NoEngine()


@contextmanager
def measurer_for(study: Study, arguments: argparse.Namespace) -> Iterator[Measurer]:
    """This machine, or the cluster that is asked for. Raises EngineCannot, EngineError."""
    if not arguments.cluster or not study.trials:
        engine = engine_for(study, arguments)
        say_once(engine.warning)
        yield OneMachine(engine)
        return
    from engines.cluster.cluster import Cluster  # and with it Dask: only where it is asked
    from engines.cluster.link import Link
    from lab.core.batches import ManyMachines
    cluster = Cluster(Link(arguments.cluster, built_kernel(), provenance.tools(),
                           arguments.cluster_insecure, lambda line: say(f"run.sh: {line}")))
    try:
        yield ManyMachines(cluster)
    finally:
        cluster.close()


@cache
def say_once(warning: str) -> None:
    if warning:
        say(f"run.sh: {warning}")
