"""Batches to the machines of a Dask cluster, their results back in order.

The scheduler and its workers are the user's, started by Dask's own commands
(docs/CLUSTER.md). This process submits batches as to concurrent.futures, a few
more than there are workers, and takes their results in the order of the
batches: what it holds does not grow with the run.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from engines.cluster.link import NO_DATA, SchedulerLink, Unreadable
from engines.cluster.node import FAILED, OK, REFUSED, SPENT
from engines.job import EngineCannot, EngineError
from hosts import untrusted
from hosts.untrusted import quoted

LOST_S = 300.0  # for which a scheduler, or the last worker, may be away
MOST_DEATHS = 3  # of each worker, on average, between two results
PAUSED_S = 30.0  # for which Dask may hold a worker back before it gets nothing more
DYING = "workers die before they measure; start them with more memory (--memory-limit)"


class Members:
    """able: the workers that can measure, by their addresses, when they were last looked at."""

    def __init__(self, link: SchedulerLink) -> None:
        self.link = link
        self.notified: set[str] = set()
        self.begin()

    def begin(self) -> None:
        """Those that there are now; nobody is missed."""
        self.able = frozenset(self.link.workers()) - self.link.refused.keys()
        self.most_deaths = MOST_DEATHS * max(1, len(self.able))
        self.measured()
        self.paused: dict[str, float] = {}  # since when
        self.none_since: float | None = None

    def measured(self) -> None:
        """A worker has sent a result."""
        self.deaths, self.last_result = 0, time.monotonic()

    def call(self) -> None:
        """Look at them. Raises EngineCannot, EngineError where none is left, or comes."""
        now, workers = time.monotonic(), self.link.workers()
        for worker, facts in workers.items():
            if facts.get("status") != "paused":
                self.paused.pop(worker, None)
            elif (worker not in self.link.refused
                  and now - self.paused.setdefault(worker, now) >= PAUSED_S):
                self.link.refuse(worker, host(worker), "Dask holds it back, its memory has reached"
                                 " 80 % of --memory-limit: start it with more")
        able, gone = self.link.count(workers), self.able - set(workers)
        self.able, self.deaths = able, self.deaths + len(gone)
        if able:
            self.none_since = None
        if gone:
            where = ", ".join(sorted(set(map(host, gone))))
            self.notify_once(f"no answer from the worker at {where}; " + (
                "what it was given is measured by another one" if able else
                f"it was the last one: another one is waited for, for {LOST_S:.0f} s at most"))
        if self.deaths > self.most_deaths and now - self.last_result > LOST_S:
            raise EngineError(f"{self.link.address}: {DYING}")
        if not able:
            self.none_since = now if self.none_since is None else self.none_since
            if now - self.none_since > LOST_S:
                raise EngineError(f"{self.link.address}: the scheduler has no worker any more")

    def notify_once(self, line: str) -> None:
        """A line to the user, once: a worker may die again and again."""
        if line not in self.notified:
            self.notified.add(line)
            self.link.notify(line)


def host(worker: str) -> str:
    return urlsplit(worker).hostname or worker


AHEAD = 3  # batches for each worker, measured or waiting, before the first of them is taken
ATTEMPTS = 3  # of one batch, whatever ends them, each on another worker where there is one
MOST_LOST = 3  # times, between two results, that a scheduler may be
DIED = "the workers that measured it died (of too little memory?)"
RETRY_S = 2.0
LOOK_S = 5.0  # between two looks at the workers

HEAD = untrusted.table({name: untrusted.text(200) for name in ("status", "worker", "machine")})
HEAD_BYTES = 2048

T = TypeVar("T")
U = TypeVar("U")


@dataclass
class SentTask(Generic[T]):
    """A task on its way.

    only: workers that may have it, where not all may. avoid: those on which it failed.
    blamed: how often Dask gave it up for the deaths of workers that had not begun it.
    """

    task: T
    future: Any = None
    only: frozenset[str] = frozenset()
    attempts: int = 0
    blamed: int = 0
    avoid: list[str] = field(default_factory=list)


class Cluster:
    """A Dask cluster (lab.core.run.batches.MachinePool)."""

    def __init__(self, link: SchedulerLink) -> None:
        """Raises EngineCannot where the scheduler has no worker."""
        self.link, self.build = link, link.build
        self.machines: set[str] = set()  # whose results were taken, by their names
        self.members, self.looked = Members(link), time.monotonic()
        self.lost = 0  # how often the scheduler was, since the last result
        if not self.guests:
            link.close()
            raise EngineCannot(f"{link.address}: the scheduler has no worker; start one with"
                               " dask-worker (docs/CLUSTER.md)")

    @property
    def guests(self) -> int:
        return self.link.guests

    @property
    def facts(self) -> dict[str, Any]:
        return {"address": self.link.address, "dask": self.link.version,
                "refused": dict(sorted(self.link.refused.items()))}

    @property
    def doing(self) -> str:
        return f"{self.guests} guests on {len(self.machines)} machines"

    def close(self) -> None:
        self.link.close()

    def results(self, tasks: Iterable[T], payload: Callable[[T], bytes],
                read: Callable[[T, bytes], U],
                failed: Callable[[T, str], U]) -> Iterator[tuple[str, U]]:
        """Of each task the machine that did it and what `read` makes of its result, in order.

        A task whose worker fails, or whose result `read` refuses by a ValueError,
        goes to another worker; after ATTEMPTS `failed` stands for it. Raises
        EngineCannot where no worker can, EngineError where the scheduler is lost.
        """
        rest, sent = iter(tasks), deque[SentTask[T]]()
        try:
            while True:
                result: tuple[str, U] | None = None
                try:
                    for task in islice(rest, max(0, AHEAD * self.guests - len(sent))):
                        sent.append(SentTask(task))
                        self._submit(sent[-1], payload)
                    if not sent:
                        return
                    self._look(sent, payload)
                    result = self._read(sent[0], read)
                except RetryTask as why:
                    if sent[0].attempts < ATTEMPTS:
                        self._submit(sent[0], payload)
                    else:
                        result = "", failed(sent[0].task,
                                            f"{sent[0].attempts} workers failed: {why}")
                except (Lost, OSError, Unreadable):  # the last two: of a question to the scheduler
                    self.lost += 1
                    if self.lost > MOST_LOST:
                        raise EngineError(f"{self.link.address}: the scheduler was lost"
                                          f" {self.lost} times, or sent what cannot be read, and no"
                                          " result came between") from None
                    self._find(sent, payload)
                if result is not None:
                    sent.popleft()
                    yield result
        finally:
            for pending in sent:
                self.link.withdraw(pending.future)

    def _submit(self, sent: SentTask[T], payload: Callable[[T], bytes]) -> None:
        """What was submitted before is wanted first."""
        sent.future, sent.only = self.link.submit(payload(sent.task), sent.avoid,
                                                  urgent=sent.future is not None,
                                                  attempts=ATTEMPTS - sent.attempts)

    def _look(self, sent: Iterable[SentTask[T]], payload: Callable[[T], bytes]) -> None:
        """From time to time, see that each task is with a worker that can do it.

        Raises EngineCannot, EngineError where there is none.
        """
        if time.monotonic() - self.looked < LOOK_S:
            return
        self.looked = time.monotonic()
        self.members.call()
        held = self.link.held()
        for task in sent:
            nobody = task.only and not task.only & self.members.able
            if (nobody or task.future.key in held) and not task.future.done():
                self.link.withdraw(task.future)
                task.attempts += self.link.begun(task.future)
                if task.attempts < ATTEMPTS:
                    self._submit(task, payload)

    def _read(self, sent: SentTask[T], read: Callable[[T, bytes], U]) -> tuple[str, U] | None:
        """The machine and the result of a task, waited for a while; None where it is not done.

        Raises Again where it has to be done once more, Lost where the scheduler is gone.
        """
        if sent.attempts >= ATTEMPTS:
            raise RetryTask(DIED)
        try:
            if not self.link.wait(sent.future, LOOK_S):
                return None
            head, content = opened(self.link.received(sent.future))
        except Exception as error:  # noqa: BLE001  Dask hands on whatever a worker raised
            if sent.future.status != "error" and not isinstance(error, ValueError):
                raise Lost from error
            raise self._raised(sent, error) from error
        why = quoted(content) if head["status"] in (FAILED, REFUSED) else "its answer is none"
        if head["status"] == SPENT:
            sent.attempts = ATTEMPTS
            raise RetryTask(DIED)
        if head["status"] == REFUSED:
            self.link.refuse(self._author(sent, head), head["machine"], why)
            raise RetryTask(why)
        if head["status"] == OK:
            try:
                result = read(sent.task, content)
            except ValueError as error:
                why = str(error)
            else:
                self.machines.add(head["machine"])
                self.members.measured()
                self.lost = 0
                return head["machine"], result
        sent.attempts += max(1, self.link.begun(sent.future))  # others that died before it, too
        sent.avoid.append(self._author(sent, head))
        raise RetryTask(f"{head['machine']}: {why}")

    def _author(self, sent: SentTask[T], head: dict[str, str]) -> str:
        """The worker that an answer is of: it may give another one's address as its own."""
        holders = self.link.holders(sent.future)
        return holders[0] if holders and head["worker"] not in holders else head["worker"]

    def _raised(self, sent: SentTask[T], error: Exception) -> RetryTask:
        """What an error of Dask's means for a task. Raises EngineError where no worker lives."""
        if not is_death(error):
            sent.attempts += 1
            sent.avoid += self.link.holders(sent.future)
            pickled = any(isinstance(argument, bytes) for argument in error.args)
            return RetryTask(NO_DATA if pickled else
                             str(error) if isinstance(error, Unreadable) else
                             quoted(f"{type(error).__name__}: {error}"))
        # Dask blames all that was waiting on a worker for its death.
        begun = self.link.begun(sent.future)
        sent.attempts += begun
        sent.blamed += not begun
        if sent.blamed >= ATTEMPTS:
            raise EngineError(f"{self.link.address}: {DYING}")
        return RetryTask(DIED)

    def _find(self, sent: Iterable[SentTask[T]], payload: Callable[[T], bytes]) -> None:
        """Find the scheduler again, and give it all. Raises EngineError where it stays away."""
        self.link.notify(f"the scheduler at {self.link.address} is lost; it is looked for, for"
                  f" {LOST_S:.0f} s at most")
        deadline = time.monotonic() + LOST_S
        why = "the scheduler has no worker any more"
        while time.monotonic() < deadline:
            self.link.drop()
            try:
                self.link.connect()
                if self.guests:
                    self.members.begin()
                    for task in sent:
                        self._submit(task, payload)
                    return
            except EngineCannot as error:
                why = str(error)
            except (OSError, Unreadable):  # it was lost once more during a request
                pass
            time.sleep(RETRY_S)
        raise EngineError(f"{self.link.address}: {why}")


def is_death(error: Exception) -> bool:
    """Whether Dask gave a task up for the deaths of workers; of such an error the name suffices.

    From another process it comes as a pickle, which is not read (link.unpickling_forbidden).
    """
    pickled = next((argument for argument in error.args if isinstance(argument, bytes)), b"")
    return "KilledWorker" in type(error).__name__ or b"KilledWorker" in pickled


class RetryTask(Exception):
    """A task has to be measured once more; its text is the reason."""


class Lost(Exception):
    """The scheduler is gone, and what was on its way with it."""


def opened(answer: bytes) -> tuple[dict[str, str], bytes]:
    """A node's answer: its head, and what follows. Raises ValueError."""
    line, _, content = answer.partition(b"\n")
    return untrusted.read(line, HEAD, HEAD_BYTES), content
