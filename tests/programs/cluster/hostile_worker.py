"""What a Dask worker is given by --preload to answer every batch with a program of its own.

WAY says how: each is a place where Dask reads by pickle what a worker has sent. Whoever
unpickles it makes the file TOUCHED.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

from distributed import worker as dask_worker
from distributed.protocol import to_serialize


class Program:
    """Unpickled, it runs a program."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {os.environ['TOUCHED']}; exit 0",)


ERRED = {"op": "task-erred", "status": "error", "actual-exception": ValueError(),
         "traceback": None, "exception_text": "",
         "traceback_text": ""}


def answer(way: str, made: Any) -> Any:
    """What a task ends with, in place of `made`, the answer of the project's own program."""
    if way == "result":
        return {**made, "result": Program()}
    if way == "large":  # which Dask reads in another thread
        return {**made, "result": [Program(), os.urandom(20_000_000)]}
    if way == "exception":
        return {**made, **ERRED, "exception": to_serialize(pickle.dumps(Program()))}
    if way == "message":
        return {**made, **ERRED, "exception": to_serialize(Program())}
    if way == "log":
        at = dask_worker.get_worker()
        at.loop.add_callback(at.log_event, "warn", {"message": pickle.dumps(Program())})
        at.loop.add_callback(at.log_event, "print", {"args": (f"\x1b[2J {way} printed",)})
    return made


def dask_setup(worker: Any) -> None:
    """Called by Dask before the worker's first task."""
    def instead(*words: Any, **more: Any) -> Any:
        way = Path(os.environ["WAY"]).read_text()
        made = simple(*words, **more)
        return answer(way, made)

    simple, dask_worker.apply_function_simple = dask_worker.apply_function_simple, instead
