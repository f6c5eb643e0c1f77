"""Batches to the machines of a Dask cluster, their results back in order.

The scheduler and its workers are the user's, started by Dask's own commands
(docs/CLUSTER.md), and Dask gives the batch of a worker that died to another one. This
process sends a few more batches than there are guests and takes their results in
order: what it holds does not grow with the run. Dask is optional: it is imported here, and
only where it is requested.
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
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from engines.cluster import node, walls
from engines import PROJECT
from engines.console import EngineCannot, EngineError
from hosts.untrusted import by_name, quoted, text, whole

# What a machine needs of the project to measure a batch.
SENT = ("*.py", "install.sh", "commands/*.py", "hosts/**/*.py", "engines/**/*.py", "lab/**/*.py",
        "net/**/*.py")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
REACH_S, CONNECT_S, CLOSE_S = 10.0, 30.0, 5.0
ANSWER_S = 300.0  # for an answer to come, once the scheduler reports it
LOOK_S = 5.0  # between two looks at the workers
ALONE_S = 60.0  # for which a cluster may have no worker: a nanny starts another one
AHEAD = 3  # batches for each guest, measured or waiting, before the first of them is taken
ATTEMPTS = 3  # of one batch, each on another worker where there is one
DIED = "the workers that measured it died (of too little memory?)"
PYTHON_VERSION = ".".join(map(str, sys.version_info[:2]))
THREADS = by_name(whole(1, 1024), 10_000, text(300))  # of workers, by their addresses

Result = TypeVar("Result", covariant=True)


class Batch(Protocol[Result]):
    """What one guest measures. read raises ValueError where an answer is no result of it."""

    def payload(self) -> bytes: ...
    def read(self, answer: bytes) -> Result: ...
    def failed(self, why: str) -> Result: ...


@dataclass
class Sent(Generic[Result]):
    """A batch on its way. worker: who is to measure it; avoid: on whom it failed."""

    batch: Batch[Result]
    future: Any = None
    worker: str = ""
    attempts: int = 0
    avoid: list[str] = field(default_factory=list)


class Cluster:
    """A Dask cluster (lab.core.run.batches.ManyMachines).

    workers: how many batches each measures at a time, by its address. refused: why a worker is
    given nothing. machines: the hosts whose results were taken.
    """

    def __init__(self, address: str, kernel: Path, tools: dict[str, str],
                 notify: Callable[[str], None]) -> None:
        """Connect, and bring the project to every worker, also to those that come later.

        tools: the versions that workers have to have. notify: is given a line to be read by the
        user. Raises EngineCannot.
        """
        self.address, self.build, self.notify = checked(address), kernel.parent.name, notify
        self.name = f"first-flight-{uuid.uuid4().hex}"
        self.workers: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        self.machines: set[str] = set()
        self.open = ExitStack()
        try:
            self.dask = dask_library()
            self.open.enter_context(walls.closed())
            self.client = self._connected()
            self.look()
            try:
                self.client.register_worker_plugin(node.Node(packed(kernel), tools), self.name)
            except Exception as error:  # noqa: BLE001  of one worker: its answers report it
                notify("a worker could not take the project:"
                       f" {quoted(f'{type(error).__name__}: {error}')}")
        except BaseException:
            self.close()
            raise

    def _connected(self) -> Any:
        """Dask's client, once its scheduler is known to answer: Dask says later, and less, why."""
        at, security = urlsplit(self.address), self.dask.Security(
            require_encryption=self.address.startswith("tls"))
        advice = "start one with dask-scheduler"
        try:
            with socket.create_connection((at.hostname, at.port or 0), REACH_S) as way:
                if at.scheme == "tls":
                    advice = "both ends need a certificate of one authority"
                    certified = security.get_connection_args("client")["ssl_context"]
                    if certified is None:
                        raise OSError("no certificate is given to Dask")
                    way = certified.wrap_socket(way)
                if not way.recv(1):
                    raise OSError("what answers is no Dask scheduler")
            client = self.dask.Client(self.address, timeout=CONNECT_S, set_as_default=False,
                                      deserializers=["msgpack"], security=security)
        except (OSError, asyncio.TimeoutError, ValueError, TypeError, RuntimeError) as error:
            raise EngineCannot(f"no scheduler answers at {self.address} ({quoted(str(error))}):"
                               f" {advice} (docs/CLUSTER.md)") from error
        self.open.callback(client.close, CLOSE_S)
        return client

    @property
    def guests(self) -> int:
        """How many batches are measured at a time, 1 while no worker is there."""
        return max(1, sum(threads for worker, threads in self.workers.items()
                          if worker not in self.refused))

    @property
    def facts(self) -> dict[str, Any]:
        return {"address": self.address, "dask": str(self.dask.__version__),
                "refused": dict(sorted(self.refused.items()))}

    @property
    def doing(self) -> str:
        return f"{self.guests} guests on {len(self.machines)} machines"

    def close(self) -> None:
        """End what is still measured for this run, and leave."""
        with suppress(Exception):  # of Dask's client without a scheduler
            if self.client.status == "running":
                self.client.unregister_worker_plugin(self.name)
        with suppress(Exception):
            self.open.close()

    def results(self, batches: Iterable[Batch[Result]]) -> Iterator[tuple[str, Result]]:
        """Of each batch the host that measured it and its result, in order.

        What a worker answers wrongly is measured by another one; after ATTEMPTS the batch has
        failed. Raises EngineCannot where no worker can, EngineError where the cluster is lost.
        """
        rest, sent = iter(batches), deque[Sent[Result]]()
        try:
            while True:
                for batch in islice(rest, max(0, AHEAD * self.guests - len(sent))):
                    sent.append(Sent(batch))
                    self._submit(sent[-1])
                if not sent:
                    return
                result = self._result(sent[0])
                sent.popleft()
                yield result
        except (CancelledError, OSError) as error:  # of a question to the scheduler
            raise EngineError(f"{self.address}: the scheduler is lost") from error

    def _submit(self, sent: Sent[Result]) -> None:
        """To any worker that can, and once it has failed to one after another."""
        able = [worker for worker in self.workers if worker not in self.refused]
        if sent.attempts:
            others = [worker for worker in able if worker not in sent.avoid] or able
            able = [others[sent.attempts % len(others)]]
        sent.worker = able[0] if sent.attempts else "a worker"
        sent.future = self.client.submit(node.measure, self.name, sent.batch.payload(), pure=False,
                                         workers=able, allow_other_workers=True,
                                         priority=sent.attempts)

    def _result(self, sent: Sent[Result]) -> tuple[str, Result]:
        while True:
            worker, status = sent.worker, b""
            try:
                self._wait(sent.future)
                for holder in self.client.who_has([sent.future]).get(sent.future.key, ()):
                    worker = quoted(str(holder), 100)
                status, _, content = self._answer(sent.future).partition(b"\n")
                if status == node.OK:
                    result = sent.batch.read(content)
                    self.machines.add(host_of(worker))
                    return host_of(worker), result
                why = quoted(content) if status in (node.REFUSED, node.FAILED) else walls.NO_DATA
            except ValueError as error:
                why = quoted(str(error))
            sent.future = None  # and with it the answer
            if status == node.REFUSED:
                self.refuse(worker, why)
            else:
                sent.attempts += 1
                sent.avoid.append(worker)
                if sent.attempts == ATTEMPTS:
                    return "", sent.batch.failed(f"{ATTEMPTS} workers failed: {why}")
                self.notify(f"{worker}: {why}; its batch is measured by another worker")
            self._submit(sent)

    def _wait(self, future: Any) -> None:
        """Until a batch is done. Raises EngineError where the cluster is lost."""
        while True:
            listening = getattr(self.client, "_handle_report_task", None)
            if listening is not None and listening.done():  # of a message that it could not read
                self.client._handle_report_task = None  # or closing it would raise that, or hang
                raise EngineError(f"{self.address}: the scheduler sent what cannot be read")
            with suppress(asyncio.TimeoutError, TimeoutError), self.client.as_current():
                self.dask.wait([future], timeout=LOOK_S)
                return
            self.look()

    def _answer(self, future: Any) -> bytes:
        """What a worker answered. Raises ValueError where that is nothing to read."""
        try:
            answer = future.result(timeout=ANSWER_S)
        except asyncio.TimeoutError as error:
            raise ValueError(f"its answer did not come in {ANSWER_S:.0f} s") from error
        except (CancelledError, OSError, ValueError):
            raise
        except Exception as error:  # noqa: BLE001  Dask hands on whatever a worker raised
            # From another process it comes as a pickle, which is not read (engines.cluster.walls).
            pickled = b"".join(word for word in error.args if isinstance(word, bytes))
            raise ValueError(DIED if b"KilledWorker" in pickled else walls.NO_DATA) from error
        if not isinstance(answer, bytes):
            raise ValueError(walls.NO_DATA)
        return answer

    def look(self) -> None:
        """See which workers have come and gone. Raises EngineCannot, EngineError without any."""
        before = self.workers
        self.workers = self._threads()
        if not self.workers:
            if before:
                self.notify("no worker is left: another one is waited for, for"
                            f" {ALONE_S:.0f} s at most")
                with suppress(asyncio.TimeoutError, TimeoutError):
                    self.client.wait_for_workers(1, timeout=ALONE_S)
                self.workers = self._threads()
            if not self.workers:
                raise (EngineError(f"{self.address}: the scheduler has no worker any more")
                       if before else
                       EngineCannot(f"{self.address}: the scheduler has no worker; start one with"
                                    " dask-worker (docs/CLUSTER.md)"))
        for worker in before.keys() - self.workers.keys():
            self.notify(f"{worker} is gone; what it was given is measured by another worker")
        if self.workers.keys() - before.keys():
            self._compare_versions()

    def _threads(self) -> dict[str, int]:
        try:
            threads: dict[str, int] = THREADS(self.client.nthreads(), "workers")
        except ValueError as error:
            raise EngineError(f"{self.address}: the scheduler sent no list of workers: {error}"
                              ) from error
        return threads

    def _compare_versions(self) -> None:
        """Refuse those that would not understand what they are sent. Raises EngineCannot."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reported = self.client.get_versions()["workers"]
        for worker in self.workers:
            try:
                version = ".".join(reported[worker]["host"]["python"].split(".")[:2])
            except (LookupError, TypeError, AttributeError):
                continue  # it has just gone
            if version != PYTHON_VERSION:
                self.refuse(worker, f"its Dask runs on Python {quoted(version, 20)}, this one's on"
                                    f" {PYTHON_VERSION}")

    def refuse(self, worker: str, why: str) -> None:
        """Give a worker nothing more. Raises EngineCannot where it was the last."""
        new = self.refused.setdefault(worker, why) is why
        if self.workers.keys() <= self.refused.keys():
            raise EngineCannot(f"no machine of the cluster can measure; {worker}: {why}")
        if new:
            self.notify(f"{worker} does not measure: {why}")


def checked(address: str) -> str:
    """An address as it is used. Raises EngineCannot where it is open to everybody."""
    parts = urlsplit(address)
    if parts.scheme == "tcp" and parts.hostname not in LOOPBACK:
        raise EngineCannot(f"{address}: whoever reaches its port may run anything on your"
                           " machines: use tls:// (docs/CLUSTER.md)")
    return address


def dask_library() -> Any:
    """Dask's library of clusters, which sends node.py by value. Raises EngineCannot."""
    try:
        cloudpickle, config, dask = (
            import_module(name) for name in ("cloudpickle", "dask.config", "distributed"))
    except ImportError as error:
        raise EngineCannot("--cluster needs Dask: run ./install.sh --with-cluster") from error
    for name in ("distributed", "distributed.client", "asyncio", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # what matters is reported by us
    warnings.filterwarnings("ignore", module=r"distributed\b")
    # Else any worker could write to the user's terminal: Worker.print, Worker.warn.
    getattr(dask.Client, "_default_event_handlers", {}).clear()
    config.set({"distributed.comm.compression": None})
    cloudpickle.register_pickle_by_value(node)  # workers have nothing of ours
    return dask


def packed(kernel: Path) -> bytes:
    """The project's programs and the guest kernel, as a zip file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted({path for pattern in SENT for path in PROJECT.glob(pattern)
                            if path.is_file() and "__pycache__" not in path.parts}):
            archive.write(path, f"{node.CODE}/{path.relative_to(PROJECT)}")
        archive.write(kernel, node.KERNEL)
    return stream.getvalue()


def host_of(worker: str) -> str:
    return urlsplit(worker).hostname or worker
