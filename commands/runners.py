"""Who measures what a command line requests: this machine's engine, or a cluster."""

from __future__ import annotations

import argparse
import itertools
import platform
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from engines import engine, uml
from engines.engine import Engine, HostEngine, NoEngine, choose_engine
from engines.console import EngineCannot, EngineError
from engines.guests import UmlEngine
from engines.uml import built_kernel, made_from
from lab.core import files
from lab.core.command_line import say
from lab.core.errors import CannotError, FirstFlightError, kept
from lab.core.results import provenance
from lab.core.run.kinds import Study
from lab.core.run.measuring import Measurer, OneMachine

# What measures on other machines, by its flag: a package that has add_flags() and connected().
# A package without a line is not missed.
ELSEWHERE = {
    "cluster": "engines.cluster",
}


def congestion_controls() -> list[str]:
    """Those of the guest's kernel, by its configuration and the sources that are added to it."""
    guest = files.PROJECT / "engines" / "guest"
    config = (guest / "kernel.config").read_text(encoding="utf-8")
    added = "".join(path.read_text(encoding="utf-8") for path in sorted(guest.glob("tcp_*.c")))
    return ["reno", *(name.lower() for name in
                      re.findall(r"^CONFIG_TCP_CONG_(?!ADVANCED)(\w+)=y", config, re.MULTILINE)),
            *re.findall(r'\.name\s*=\s*"(\w+)"', added)]


def elsewhere(arguments: argparse.Namespace) -> str:
    """Of which flag of ELSEWHERE the machines measure, "" for this one."""
    return next((flag for flag in ELSEWHERE if getattr(arguments, flag)), "")


@contextmanager
def engine_errors() -> Iterator[None]:
    """What an engine raises as the errors that users read."""
    try:
        yield
    except EngineCannot as error:
        raise CannotError(str(error)) from error
    except EngineError as error:
        raise FirstFlightError(f"{error}{kept(error)}") from error


def check_rights(arguments: argparse.Namespace) -> None:
    """Raises CannotError where its engine is one that this user may not run."""
    with engine_errors():
        if not arguments.dry_run:
            engine.check_rights(arguments.engine)


def engine_for(study: Study, arguments: argparse.Namespace) -> Engine:
    """What runs its trials on this machine. Raises EngineCannot."""
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
    """This machine, or the cluster that is requested. Raises EngineCannot, EngineError."""
    flag = elsewhere(arguments)
    if not flag or not study.trials:
        this_machine = engine_for(study, arguments)
        say_once(this_machine.warning)
        yield OneMachine(this_machine)
        return
    from lab.core.run.batches import ManyMachines
    kernel = built_kernel()
    machines = import_module(ELSEWHERE[flag]).connected(
        arguments, kernel, tools_of(study), lambda line: say(f"run.sh: {line}"))
    try:
        yield ManyMachines(machines, made_from(kernel))
    finally:
        machines.close()


@contextmanager
def rounds(study: Study, arguments: argparse.Namespace
           ) -> Iterator[Callable[[Study, Sequence[Any]], list[Any]]]:
    """A function that measures trials of a study and gives their records, round after round.

    Nothing is stored. Raises CannotError, FirstFlightError.
    """
    numbers = itertools.count(1)
    with tempfile.TemporaryDirectory(prefix="rounds-", dir=files.make_folder(arguments.results)
                                     ) as folder, \
            engine_errors(), measurer_for(study, arguments) as measurer:

        def records(study: Study, trials: Sequence[Any]) -> list[Any]:
            work = Path(folder) / f"round{next(numbers)}"
            return [judged.record for judged in measurer.judged(study, trials, set(), work)]

        yield records


def tools_of(study: Study) -> dict[str, str]:
    """Versions of the tools that its trials depend on: of a server only if one uses it."""
    servers = {getattr(trial, "server", "") for trial in study.trials}
    return {name: version for name, version in provenance.tools().items()
            if name != "nginx" or name in servers}


@cache
def say_once(warning: str) -> None:
    if warning:
        say(f"run.sh: {warning}")
