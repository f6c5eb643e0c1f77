"""Batches to the machines of a Dask cluster, their results back in order.

The scheduler and its workers are the user's, started by Dask's own commands
(docs/CLUSTER.md). This process submits batches as to concurrent.futures, a few
more than there are workers, and takes their results in the order of the
batches: what it holds does not grow with the run.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from engines.cluster.link import Link
from engines.cluster.node import FAILED, OK, REFUSED
from engines.job import EngineCannot, EngineError

AHEAD = 3  # batches for each worker, measured or waiting, before the first of them is taken
ATTEMPTS = 3  # of one batch, each on another worker where there is one
LOST_S = 300.0  # for which a scheduler may be away
RETRY_S = 2.0

T = TypeVar("T")
U = TypeVar("U")


@dataclass
class Sent(Generic[T]):
    """A task on its way. avoid: workers on which it failed."""

    task: T
    future: Any = None
    attempts: int = 0
    avoid: list[str] = field(default_factory=list)


class Cluster:
    """A Dask cluster (lab.core.batches.Cluster)."""

    def __init__(self, link: Link) -> None:
        """Raises EngineCannot where the scheduler has no worker."""
        self.link, self.build = link, link.build
        self.machines: set[str] = set()  # whose results were taken, by their names
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
        rest, sent = iter(tasks), deque[Sent[T]]()
        try:
            while True:
                for task in islice(rest, max(0, AHEAD * self.guests - len(sent))):
                    sent.append(Sent(task))
                    self._submit(sent[-1], payload)
                if not sent:
                    return
                found: tuple[str, U] | None = None
                try:
                    found = self._read(sent[0], read)
                except Again as why:
                    if sent[0].attempts < ATTEMPTS:
                        self._submit(sent[0], payload)
                    else:
                        found = "", failed(sent[0].task, f"{ATTEMPTS} workers failed: {why}")
                except Lost:
                    self._find()
                    for each in sent:
                        self._submit(each, payload)
                if found is not None:
                    sent.popleft()
                    yield found
        finally:
            for each in sent:
                each.future.cancel()

    def _submit(self, sent: Sent[T], payload: Callable[[T], bytes]) -> None:
        """What was submitted before is wanted first."""
        sent.future = self.link.submit(payload(sent.task), sent.avoid,
                                       urgent=sent.future is not None)

    def _read(self, sent: Sent[T], read: Callable[[T, bytes], U]) -> tuple[str, U]:
        """The machine and the result of a task, waited for.

        Raises Again where it has to be done once more, Lost where the scheduler is gone.
        """
        try:
            head, content = opened(sent.future.result())
        except (CancelledError, OSError, TimeoutError) as error:
            raise Lost from error
        except Exception as error:  # noqa: BLE001  Dask hands on whatever a worker raised
            sent.attempts += 1
            raise Again(f"{type(error).__name__}: {error}") from error
        why = content.decode(errors="replace") if head["status"] in (FAILED, REFUSED) else ""
        if head["status"] == REFUSED:
            self.link.refuse(head["worker"], head["machine"], why)
            raise Again(why)
        if head["status"] == OK:
            try:
                found = read(sent.task, content)
            except ValueError as error:
                why = str(error)
            else:
                self.machines.add(head["machine"])
                return head["machine"], found
        sent.attempts += 1
        sent.avoid.append(head["worker"])
        raise Again(f"{head['machine']}: {why}")

    def _find(self) -> None:
        """Find the scheduler again. Raises EngineError where it stays away."""
        self.link.tell(f"the scheduler at {self.link.address} is lost; it is looked for, for"
                  f" {LOST_S:.0f} s at most")
        deadline = time.monotonic() + LOST_S
        why = "the scheduler has no worker any more"
        while time.monotonic() < deadline:
            self.link.drop()
            try:
                self.link.connect()
                if self.guests:
                    return
            except EngineCannot as error:
                why = str(error)
            time.sleep(RETRY_S)
        raise EngineError(f"{self.link.address}: {why}")


class Again(Exception):
    """A task has to be measured once more; its text says why."""


class Lost(Exception):
    """The scheduler is gone, and what was on its way with it."""


def opened(answer: bytes) -> tuple[dict[str, str], bytes]:
    """A node's answer: its head, and what follows. Raises ValueError."""
    line, _, content = answer.partition(b"\n")
    head = json.loads(line)
    if not isinstance(head, dict) or not {"status", "worker", "machine"} <= head.keys():
        raise ValueError("a worker's answer has no head")
    return head, content
