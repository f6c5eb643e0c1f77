"""The way to a Dask cluster: its scheduler connected, its workers given what they need.

Dask is optional: whatever is of it is imported here, and only where it is requested.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import io
import json
import logging
import os
import re
import sys
import tempfile
import uuid
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from engines import uml
from engines.cluster import node
from engines.cluster.node import CODE, KERNEL, Node
from engines.job import PROJECT, EngineCannot, EngineError
from engines.shared_folder import remove_folder
from hosts.untrusted import quoted

# What a machine needs of the project to measure a batch.
SENT = ("*.py", "install.sh", "commands/*.py", "hosts/**/*.py", "engines/**/*.py",
        "lab/**/*.py")
CONNECT_S = 30.0
ANSWER_S = 300.0  # for an answer to come, once the scheduler reports it
WHY_CHARACTERS = 600  # of a worker's reason
ADDRESS = re.compile(r"[a-z]+://[\w.:/%-]{1,200}|[a-z]+://\[[0-9a-f:]{2,40}\]:[0-9]{1,5}", re.ASCII)
MOST_THREADS = 1024  # that one worker is believed to have
SILENT = logging.CRITICAL + 1
CLOSE_S = 2.0
PAGE_S, PAGE_BYTES, PAGE = 2.0, 1 << 16, b"<title>Dask"
READ = ["msgpack"]  # how workers are to send what they answer: as data, not by pickle
FILE = ".json"  # how an address ends
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PYTHON_VERSION = ".".join(map(str, sys.version_info[:2]))
# Dask starts a web server for each part of it, which cannot be switched off; these have no
# pages, and are for this machine only.
NO_PAGES = "127.0.0.1:0"
QUIET: dict[str, list[str]] = {"distributed.scheduler.http.routes": [],
                               "distributed.worker.http.routes": []}


class SchedulerLink:
    """A connection to a scheduler, and this run's plugin on all workers.

    guests: how many batches its workers measure at a time. refused: why a
    worker is given nothing, by its address.
    """

    def __init__(self, address: str, kernel: Path, tools: dict[str, str], insecure: bool,
                 notify: Callable[[str], None]) -> None:
        """Connect, and make every worker ready. Raises EngineCannot.

        address: "tls://host:8786" or "tcp://…", "local:N" for N workers of this
        process's, or a scheduler file of Dask's, "….json". tools: the versions
        that workers have to have. insecure: tcp:// to another machine is meant.
        notify: is given a line to be read by the user.
        """
        self.address, self.notify = checked(address, insecure), notify
        self.build = kernel.parent.name
        archive = packed(kernel)
        digest = hashlib.sha256(archive).hexdigest()[:16]
        self.name = f"first-flight-{digest}-{uuid.uuid4().hex[:8]}"
        self.node = Node(self.name, digest, archive, tools)
        self.refused: dict[str, str] = {}
        self.guests = 0
        self.client: Any = None
        self.local: Any = None
        self.guard = ExitStack()
        if not self.address.startswith(LOCAL):  # whose workers are this very process
            self.guard.enter_context(unpickling_forbidden())
        try:
            self.connect()
        except BaseException:
            self.close()
            raise
        if page := self.page():
            notify(f"Dask's own page about the cluster: {page}")

    def page(self) -> str:
        """The address of the scheduler's web page, "" where it has none that answers here.

        The scheduler's word is not enough: it names a port also where it has no pages.
        """
        with suppress(OSError, ValueError, LookupError, HTTPException):
            address = str(self.client.dashboard_link)
            direct = build_opener(ProxyHandler({}))
            with direct.open(address, timeout=PAGE_S) as answer:
                if PAGE in answer.read(PAGE_BYTES):
                    return address
        return ""

    @property
    def version(self) -> str:
        """Of Dask."""
        return str(import_module("distributed").__version__)

    def connect(self) -> None:
        """Find the scheduler and bring the project to its workers. Raises EngineCannot."""
        dask = quiet_dask()
        at: dict[str, Any] = {"address": self.address, "security": dask.Security()}
        if self.address.startswith(LOCAL):
            self.local = self.local or dask.LocalCluster(
                n_workers=local_workers(self.address), threads_per_worker=1, processes=False,
                dashboard_address=NO_PAGES, worker_dashboard_address=NO_PAGES,
                local_directory=self.guard.enter_context(local_folder()))
            at = {"address": self.local}
        elif self.address.endswith(FILE):
            at = {"scheduler_file": self.address, "security": dask.Security()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions: such workers are refused
            try:
                self.client = dask.Client(**at, timeout=CONNECT_S, set_as_default=False,
                                          deserializers=READ)
            except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
                raise EngineCannot(f"no scheduler answers at {self.address} ({error}): start one"
                                   " with dask-scheduler (docs/CLUSTER.md)") from error
            self._prepare()
        self.count(self.workers())

    def _prepare(self) -> None:
        """Bring the project and the kernel to every worker, also to those that come later."""
        for worker, versions in self._versions().items():
            try:
                version = ".".join(versions["host"]["python"].split(".")[:2])
            except (LookupError, TypeError, AttributeError):
                version = "of no version"
            if version != PYTHON_VERSION:  # it would not understand what it is sent
                self.refuse(worker, worker, f"its Dask runs on Python {version}, this one's on"
                                            f" {PYTHON_VERSION}")
        try:
            self.client.register_worker_plugin(self.node, name=self.name)
        except OSError:
            self.notify("a worker died while it was sent the project (of too little memory?)")
        except Exception as error:  # noqa: BLE001  of one worker: its answers report it
            self.notify("a worker could not take the project:"
                        f" {quoted(f'{type(error).__name__}: {error}')}")

    def _versions(self) -> dict[str, Any]:
        """What each worker reports of its software, by its address. Raises EngineCannot."""
        try:
            reported: dict[str, Any] = dict(self.client.get_versions()["workers"])
        except (LookupError, TypeError, ValueError) as error:
            raise EngineCannot(f"{self.address}: its scheduler does not tell its workers'"
                               f" versions: {quoted(str(error))}") from error
        return {str(worker): versions for worker, versions in reported.items()}

    def workers(self) -> dict[str, Any]:
        """What the scheduler reports of each worker, by its address: "nthreads" and "status"."""
        workers: dict[str, Any] = {}
        try:
            for address, facts in self.client.scheduler_info()["workers"].items():
                if ADDRESS.fullmatch(address):
                    threads = min(max(int(facts["nthreads"]), 1), MOST_THREADS)
                    workers[address] = {"nthreads": threads, "status": facts.get("status")}
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise OSError(f"the scheduler's list of workers is none: {error!r}") from error
        return workers

    def count(self, workers: dict[str, Any]) -> frozenset[str]:
        """Those of the workers that can measure, whose threads are its guests."""
        able = frozenset(workers) - self.refused.keys()
        self.guests = sum(workers[worker]["nthreads"] for worker in able)
        return able

    def refuse(self, worker: str, machine: str, why: str) -> None:
        """Give a worker nothing more. Raises EngineCannot where it was the last."""
        new = worker not in self.refused
        machine, why = quoted(machine), quoted(why, WHY_CHARACTERS)
        self.refused.setdefault(worker, why)
        if all(other in self.refused for other in self.workers()):
            raise EngineCannot(f"no machine of the cluster can measure; {machine}: {why}")
        if new:
            self.notify(f"{machine} does not measure: {why}")

    def submit(self, batch: bytes, avoid: Sequence[str], urgent: bool,
               attempts: int) -> tuple[Any, frozenset[str]]:
        """A future of the answer to a batch (node.measure), by another worker than these.

        attempts: how many workers may begin it. With the future come the workers that may
        have it, none where all may.
        """
        workers: list[str] = []
        if avoid or self.refused:
            able = [worker for worker in self.workers() if worker not in self.refused]
            workers = [worker for worker in able if worker not in avoid] or able
        return self.client.submit(node.measure, self.name, batch, attempts, pure=False,
                                  workers=workers or None, priority=int(urgent)
                                  ), frozenset(workers)

    def wait(self, future: Any, seconds: float) -> bool:
        """Whether a future is done, waited for.

        Raises CancelledError where it was lost, OSError where Dask does not listen any more.
        """
        listening = getattr(self.client, "_handle_report_task", None)
        if listening is not None and listening.done():  # of a message that it could not read
            self.client._handle_report_task = None  # or closing it would raise that, or hang
            raise OSError("the scheduler sent what cannot be read")
        try:
            with self.client.as_current():
                import_module("distributed").wait(future, timeout=seconds)
        except TimeoutError:
            return False
        return True

    def received(self, future: Any) -> bytes:
        """What a worker answered. Raises Unreadable where it is no bytes, and what Dask raises."""
        try:
            answer = future.result(timeout=ANSWER_S)
        except asyncio.TimeoutError as error:
            raise Unreadable(f"its answer did not come in {ANSWER_S:.0f} s") from error
        except TypeError as error:  # Dask's error for other formats than READ
            raise Unreadable(NO_DATA) from error
        if not isinstance(answer, bytes):
            raise Unreadable(NO_DATA)
        return answer

    def holders(self, future: Any) -> list[str]:
        """The workers that have the answer, by the scheduler's word; [] where it has none."""
        workers = self.client.who_has([future]).get(future.key, ())
        return [worker for worker in workers if isinstance(worker, str)]

    def begun(self, future: Any) -> int:
        """How often a worker began to measure a batch."""
        workers = self.client.get_metadata([self.name, future.key], {})
        return len(workers) if isinstance(workers, dict) else 0

    def held(self) -> set[str]:
        """The keys of the futures that are with workers which get nothing more."""
        workers = [worker for worker in self.workers() if worker in self.refused]
        return ({str(key) for keys in self.client.processing(workers).values() for key in keys}
                if workers else set())

    def withdraw(self, future: Any) -> None:
        """Have a task not done; what a scheduler had that is gone is gone with it."""
        with suppress(Exception):  # AttributeError, of Dask's client without a scheduler
            future.cancel()

    def drop(self) -> None:
        """Leave a scheduler that is gone."""
        with suppress(Exception):  # the last of it may be what could not be read
            self.client.close(timeout=CLOSE_S)

    def close(self) -> None:
        """End what is still measured for this run, and leave."""
        with suppress(Exception):  # the cluster may be gone: then nothing is left to end
            self.client.unregister_worker_plugin(self.name)
            self.client.set_metadata([self.name], None)
        for part in (self.client, self.local, self.guard):
            with suppress(Exception):  # also where it is None, or was stopped while it began
                part.close()


def quiet_dask() -> Any:
    """Dask's library of clusters, which sends node.py by value. Raises EngineCannot."""
    try:
        cloudpickle, config, dask = (
            import_module(name) for name in ("cloudpickle", "dask.config", "distributed"))
    except ImportError as error:
        raise EngineCannot("--cluster needs Dask: run ./install.sh --with-cluster") from error
    for name in ("distributed", "distributed.client", "asyncio", "tornado"):
        logging.getLogger(name).setLevel(SILENT)  # what matters of it is reported by us
    warnings.filterwarnings("ignore", module=r"distributed\b")
    # Else any worker could write to the user's terminal: Worker.print, Worker.warn.
    getattr(dask.Client, "_default_event_handlers", {}).clear()
    config.set(QUIET)
    cloudpickle.register_pickle_by_value(node)  # workers have nothing of ours
    return dask


def checked(address: str, insecure: bool) -> str:
    """An address as it is used. Raises EngineCannot where it is none, or open to everybody."""
    if address.startswith(LOCAL):
        local_workers(address)
        return address
    url = address
    if address.endswith(FILE):
        try:
            url = str(json.loads(Path(address).read_text(encoding="utf-8"))["address"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise EngineCannot(f"{address}: is no scheduler file of Dask's: {error}") from error
    parts = urlsplit(url)
    if parts.scheme not in ("tcp", "tls") or not parts.hostname:
        raise EngineCannot(f"{address}: takes tls://host:port, tcp://host:port, local:N or a"
                           " scheduler file, FILE.json")
    if parts.scheme == "tcp" and parts.hostname not in LOOPBACK and not insecure:
        raise EngineCannot(f"{address}: whoever reaches its port may run anything on your machines:"
                           " use tls:// (docs/CLUSTER.md), or say --cluster-insecure")
    return address


def packed(kernel: Path) -> bytes:
    """The project's programs and the guest kernel, as a zip file; the same ones, the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        def put(name: str, path: Path) -> None:
            info = zipfile.ZipInfo(name)  # of no time: only the content counts
            info.external_attr = (path.stat().st_mode & 0o755) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())

        for path in sorted({path for pattern in SENT for path in PROJECT.glob(pattern)
                            if path.is_file() and "__pycache__" not in path.parts}):
            put(f"{CODE}/{path.relative_to(PROJECT)}", path)
        put(KERNEL, kernel)
    return stream.getvalue()


# local:N: a cluster within this process ---------------------------------------------

LOCAL = "local:"
MOST_WORKERS = 64  # Dask runs all of them in one process: more of them wait for each other
PREFIX = "first-flight-cluster-"


def local_workers(address: str) -> int:
    """N of local:N. Raises EngineCannot where it is no number, or too large for this machine."""
    number = address.removeprefix(LOCAL)
    if not (number.isascii() and number.isdecimal()) or not int(number[:9]):
        raise EngineCannot(f"{address[:80]}: local:N takes a number of workers, like local:2")
    if len(number) > 9 or int(number) > MOST_WORKERS:
        raise EngineCannot(f"{address[:80]}: Dask runs its local workers in one process, which is"
                           f" too slow for more than {MOST_WORKERS}: at most local:{MOST_WORKERS},"
                           " or --jobs N without --cluster")
    return uml.guests(int(number), flag=f"--cluster {LOCAL}")


@contextmanager
def local_folder() -> Iterator[str]:
    """A folder for Dask's workers; those that killed processes have left go before."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError), _held(left):
            remove_folder(left)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with _held(folder):
            yield str(folder)
    finally:
        remove_folder(folder)


@contextmanager
def _held(place: Path) -> Iterator[None]:
    """A folder of ours, as long as no other process holds it. Raises OSError where one does."""
    opened = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(opened).st_uid != os.geteuid():
            raise PermissionError(place)
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


# Nothing that a cluster sends is run -------------------------------------------------

NO_DATA = "it sent what is no data, which was not run"
_forbidden_by = 0  # how many connections are open
_hooked = False


class Unreadable(EngineError, ValueError):
    """The cluster sent what is no data."""


@contextmanager
def unpickling_forbidden() -> Iterator[None]:
    """Meanwhile, in all threads of this process, unpickling a class or function is Unreadable.

    Dask reads by pickle what its scheduler and its workers send, in many places: results,
    exceptions, log events, whole messages. A pickle can call any function, but it has to look it
    up before, and the interpreter reports each look-up (PEP 578: pickle.find_class). So refusing
    those refuses every such call, in whatever part and version of Dask it is. Numbers, texts,
    bytes, lists and dicts need no look-up: they are read as before.
    """
    global _forbidden_by, _hooked
    if not _hooked:
        sys.addaudithook(_look)  # which cannot be taken away again
        _hooked = True
    _forbidden_by += 1
    try:
        yield
    finally:
        _forbidden_by -= 1


def _look(event: str, arguments: tuple[object, ...]) -> None:
    if _forbidden_by and event == "pickle.find_class":
        raise Unreadable(NO_DATA)
