"""Shares work out among processes that begin as copies of this one.

concurrent.futures is not used: its pools take only tasks that can be pickled, and if this process
is killed, the processes of a pool wait for ever. multiprocessing.Process would take as many lines.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def results(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """What each task returns, in the order of the tasks. Each processor runs a share of them.

    What a task raises is raised here, too: a share whose process ended without a result is
    repeated in this process. No child outlives the call; if this process dies, a child ends once
    it has done its share.
    """
    count = max(1, min(len(tasks), len(os.sched_getaffinity(0))))
    shares = [tasks[number::count] for number in range(count)]
    children = [_begin(share) for share in shares[1:]]
    try:
        finished = [_do(shares[0])]
        for share, (_, pipe) in zip(shares[1:], children):
            received: list[T] | None = _receive(pipe)
            finished.append(_do(share) if received is None else received)
    finally:
        for pid, pipe in children:
            os.kill(pid, signal.SIGKILL)  # nobody has waited for it yet, so the number is its own
            os.close(pipe)
            os.waitpid(pid, 0)
    # The task at index i was number i // count of share i % count.
    return [finished[place % count][place // count] for place in range(len(tasks))]


def _do(share: Sequence[Callable[[], T]]) -> list[T]:
    return [task() for task in share]


def _begin(share: Sequence[Callable[[], T]]) -> tuple[int, int]:
    """Fork a process that does a share; return its id, and a pipe that gives its results."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:  # the child: whatever happens, it prints nothing and runs no clean-up of its parent
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(_do(share), pipe)
    finally:
        os._exit(0)


def _receive(pipe: int) -> list[T] | None:
    """The results of a share; None if they are incomplete."""
    try:
        with os.fdopen(os.dup(pipe), "rb") as reading:
            received: list[T] = pickle.load(reading)
            return received
    except (EOFError, pickle.UnpicklingError):
        return None
