"""Sends batches to the machines of a Dask cluster, and takes their results back in order.

The user starts the scheduler and its workers with Dask's own commands (docs/INSTALL.md). Dask deals
the batches out, and gives the batches of a dead worker to another worker. Only somebody who holds a
certificate is trusted, since the two sides of Dask unpickle what they send each other. Dask is
optional, and is imported only where a cluster is requested.
"""

from __future__ import annotations

import asyncio
import io
import logging
import socket
import sys
import uuid
import warnings
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from firstflight.base import PROJECT
from firstflight.base.errors import FirstFlightError
from firstflight.base.untrusted import quoted
from firstflight.runs import batches
from firstflight.runs.cluster import node
from firstflight.runs.kinds import R, S, Study, T
from firstflight.runs.measuring import JudgedTrial
from firstflight.runs.results.facts import Recipe
from vtime.console import EngineCannot, EngineError
from vtime.memory import MEMORY_MB, rooms

# The files of the project that a machine needs to measure a batch.
SENT = ("*.py", "install.sh", "firstflight/**/*.py", "firstflight/testbed/hosts/*.c",
        "vtime/**/*.py")
KERNEL_FILES = ("linux", "inputs", "recipe", "source", "version")  # of a named kernel
LOOPBACK = ("127.0.0.1", "localhost", "::1")
DASK_PORT = 8786  # of a scheduler whose address has no port
# The longest waits for Dask: for the scheduler, for the first worker, and for the client's end.
CONNECT_S, WORKERS_S, CLOSE_S = 10.0, 10.0, 5.0
RESULT_S = 900.0  # the longest wait for the next result; a batch is some 25 s of work
RETRIES = 2  # of a batch that failed
PYTHON_VERSION = ".".join(map(str, sys.version_info[:2]))
DIED = "the workers that measured it died (of too little memory?)"


@contextmanager
def connect(address: str, kernel: Path, tools: dict[str, str],
            named: Mapping[str, Path] = {}, sites: Sequence[Path] = (),
            memory_mb: int = MEMORY_MB) -> Iterator[Cluster]:
    """Connect to a Dask cluster. Every worker gets the project, even one that joins later.

    kernel: the file of the guest kernel. tools: the versions that workers have to have. named: the
    files of named kernels, by name. sites: the files of recorded sites (testbed.site_store).
    memory_mb: the most memory that each guest may take. Raises EngineCannot.
    """
    parts = urlsplit(address)
    if parts.scheme == "tcp" and parts.hostname not in LOOPBACK:
        raise EngineCannot(f"{address}: whoever reaches its port may run anything on your"
                           " machines: use tls:// (docs/INSTALL.md)")
    try:
        dask, config, cloudpickle = map(import_module, ("distributed", "dask.config",
                                                        "cloudpickle"))
    except ImportError as error:
        raise EngineCannot("--cluster needs Dask: run ./install.sh --with-cluster") from error
    for name in ("distributed", "distributed.client", "asyncio", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # this module reports what matters
    warnings.filterwarnings("ignore", module=r"distributed\b")
    # Otherwise any worker could write to the user's terminal: Worker.print, Worker.warn.
    getattr(dask.Client, "_default_event_handlers", {}).clear()
    config.set({"distributed.comm.compression": None})
    cloudpickle.register_pickle_by_value(node)  # workers have nothing of ours
    security = dask.Security(require_encryption=parts.scheme == "tls")
    try:
        # Dask would try again until CONNECT_S are over, and might then give no reason.
        socket.create_connection((parts.hostname or "", parts.port or DASK_PORT),
                                 CONNECT_S).close()
        if parts.scheme == "tls" and not security.get_connection_args("client")["ssl_context"]:
            raise ValueError("no certificate is given to Dask")
        client = dask.Client(address, timeout=CONNECT_S, set_as_default=False,
                             security=security)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        # Dask's errors of a timeout have no text.
        why = str(error.__cause__ or error) or f"not in {CONNECT_S:g} s"
        raise EngineCannot(f"no scheduler answers at {address} ({quoted(why)}): start one with"
                           " dask-scheduler, and give both ends a certificate of one"
                           " authority (docs/INSTALL.md)") from error
    cluster = Cluster(client, address, kernel.parent.name,
                      {"address": address, "dask": str(dask.__version__)})
    try:
        cluster.prepare(node.Node(pack(kernel, named, sites), tools), memory_mb)
        yield cluster
    finally:
        with suppress(Exception):  # Dask's client raises many kinds when its scheduler has gone
            if client.status == "running":
                client.unregister_worker_plugin(cluster.name)  # which ends batches under way
        with suppress(Exception):
            client.close(CLOSE_S)


class Cluster:
    """A Dask cluster."""

    def __init__(self, client: Any, address: str, build: str, facts: dict[str, str]) -> None:
        """client: a distributed.Client, whose types are not annotated. address: the scheduler's.
        build: of the guest kernel. facts: of the cluster, for run.json.
        """
        self.client, self.address, self.build, self.facts = client, address, build, facts
        self.name = f"first-flight-{uuid.uuid4().hex}"  # of the plugin on the workers

    def prepare(self, plugin: node.Node, memory_mb: int = MEMORY_MB) -> None:
        """Send the project to every worker. Raises EngineCannot where a worker cannot measure.

        memory_mb: the most memory that each guest may take.
        """
        try:
            self.client.wait_for_workers(1, timeout=WORKERS_S)
        except asyncio.TimeoutError as error:
            raise EngineCannot(f"{self.address}: the scheduler has no worker; start one with"
                               " dask-worker (docs/INSTALL.md)") from error
        try:
            for worker, versions in self.client.get_versions()["workers"].items():
                version = versions["host"]["python"]
                if version.split(".")[:2] != PYTHON_VERSION.split("."):
                    raise EngineCannot(f"{quoted(worker)} cannot measure: its Dask runs on Python"
                                       f" {quoted(version)}, this one's on {PYTHON_VERSION}")
            self.client.register_worker_plugin(plugin, self.name)
            refused = self.client.run(node.why_refused, self.name)
            available_mb = self.client.run(node.available_mb, self.name)
        except EngineCannot:
            raise
        except Exception as error:  # noqa: BLE001  whatever a worker raises comes through Dask
            raise EngineCannot(f"{self.address}: a worker could not take the project:"
                               f" {quoted(str(error))}") from error
        for worker, why in refused.items():
            if why:
                raise EngineCannot(f"{quoted(worker)} cannot measure: {quoted(str(why))}")
        self._check_memory(available_mb, memory_mb)

    def _check_memory(self, available_mb: Mapping[str, int | None], memory_mb: int) -> None:
        """Raises EngineCannot where a machine's memory is too small for the guests of its threads.

        available_mb: by worker; a machine may have several workers. A single guest fits anywhere.
        """
        threads: Counter[str] = Counter()
        least_mb: dict[str, int] = {}
        for worker, count in self.client.nthreads().items():
            host = urlsplit(worker).hostname or worker
            threads[host] += count
            if (there_mb := available_mb.get(worker)) is not None:
                least_mb[host] = min(there_mb, least_mb.get(host, there_mb))
        for host, there_mb in least_mb.items():
            room = rooms(there_mb, memory_mb)
            if room is not None and threads[host] > room:
                raise EngineCannot(
                    f"{quoted(host)} cannot measure: the guests of its {threads[host]} threads may"
                    f" take {threads[host] * memory_mb} MB, and {there_mb} MB are available: start"
                    f" its workers with at most {room} thread{'s' if room > 1 else ''} in all"
                    " (dask-worker --nthreads)")

    @property
    def guests(self) -> int:
        """How many batches are measured at once."""
        threads: dict[str, int] = self.client.nthreads()
        return max(1, sum(threads.values()))

    def results(self, payloads: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
        """Yield the host that measured each batch, and its result, in the order of the batches.

        Raises EngineError if a batch fails 1 + RETRIES times, or the cluster is lost.
        """
        measure = node.measure

        def task(name: str, payload: bytes) -> tuple[str, bytes]:
            """Measure a batch on a worker.

            The function is nested, since newer versions of Dask send other functions by name.
            """
            return measure(name, payload)

        # The last batch comes first, so that pop() takes the next one and frees its result.
        futures = self.client.map(task, [self.name] * len(payloads), payloads, pure=False,
                                  retries=RETRIES)[::-1]
        try:
            while futures:
                worker, result = futures.pop().result(timeout=RESULT_S)
                yield urlsplit(worker).hostname or worker, result
        except asyncio.TimeoutError as error:
            raise EngineError(f"{self.address}: no result came in {RESULT_S:.0f} s: has it a"
                              " worker?") from error
        except (CancelledError, OSError) as error:
            raise EngineError(f"{self.address}: the scheduler is lost") from error
        except Exception as error:  # noqa: BLE001  Dask hands on whatever a worker raised
            reason = DIED if "KilledWorker" in repr(error) else quoted(str(error))
            raise EngineError(f"{self.address}: {reason}") from error


class ManyMachines:
    """Measures on a cluster (a runs.measuring.Measurer).

    It has the name of the engine that each machine runs. So a run that began on one machine is
    resumed on many, and the other way round.
    """

    name, exact = "uml", True

    def __init__(self, cluster: Cluster, kernel: Mapping[str, object],
                 named: Mapping[str, Recipe] = {}) -> None:
        """kernel: facts on the source of the kernel, as run.json has them (vtime.uml.made_from).
        named: the recipes of named kernels, by name (vtime.uml.recipe_of).
        """
        self.cluster, self.build, self.jobs = cluster, cluster.build, cluster.guests
        self.kernel, self.named = kernel, named
        self.reported: dict[str, object] = {}  # facts that any machine reported of its engine
        self.machines: dict[str, dict[str, object]] = {}  # facts on each machine, by its host
        self.measured: Counter[str] = Counter()  # trials, by host

    @property
    def facts(self) -> dict[str, object]:
        cluster: dict[str, object] = {**self.cluster.facts, "machines": self.machines}
        facts: dict[str, object] = {**self.reported, **self.kernel, "cluster": cluster}
        if self.named:
            facts["kernels"] = dict(self.named)
        return facts

    @property
    def doing(self) -> str:
        return f"{self.jobs} guests on {len(self.machines)} machines"

    def recipes(self, names: Collection[str]) -> Mapping[str, Recipe]:
        return {name: recipe for name, recipe in self.named.items() if name in names}

    def judged(self, study: Study[S, T, R], trials: Sequence[T], captured: set[str],
               folder: Path) -> Iterator[JudgedTrial[R]]:
        """Yield the judged trials, in the order in which one guest would measure them all.

        Raises FirstFlightError if a machine sends no proper result.
        """
        sent = list(batches.deal_batches(study, trials, captured, self.jobs,
                                         bool(self.kernel["kernel_known"])))
        results = self.cluster.results([batch.payload() for batch in sent])
        for batch, (host, result) in zip(sent, results):
            try:
                judged, facts = batch.read(result)
            except ValueError as error:
                raise FirstFlightError(f"{host} sent a wrong result of its batch: {error}"
                                       ) from error

            machine = self.machines.setdefault(host, {})
            self.measured[host] += len(judged)
            machine["trials"] = self.measured[host]
            for name, value in facts.items():
                # Once a machine was not confined, the run was not.
                is_final = name == "confined" and self.reported.get(name) is False
                if name == "machine" and isinstance(value, dict):
                    machine.update(value)
                elif not is_final:
                    self.reported[name] = value
            yield from judged


def pack(kernel: Path, named: Mapping[str, Path] = {}, sites: Sequence[Path] = ()) -> bytes:
    """A zip file of the project's programs, the guest kernel, named kernels and recorded sites.

    The parameters are those of `connect`.
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        found = {path for pattern in SENT for path in PROJECT.glob(pattern)}
        for path in sorted(found):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, f"{node.CODE}/{path.relative_to(PROJECT)}")
        archive.write(kernel, node.KERNEL)
        for name, path in named.items():
            for file in KERNEL_FILES:
                archive.write(path.parent / file, f"{node.KERNELS}/{name}/{file}")
        for path in sites:
            archive.write(path, f"{node.SITES}/{path.name}")
    return stream.getvalue()
