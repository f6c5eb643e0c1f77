"""What Dask workers are given by --preload so that they answer each batch wrongly.

WAY says how. Whoever unpickles an answer makes the file TOUCHED.
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
RESULTS = {  # in place of the result
    "program": Program(),
    "too much": os.urandom(3_000_000),
}
WAYS = (*RESULTS, "exception")


def answer(way: str, made: Any) -> Any:
    """What a task ends with, in place of `made`, the answer of the project's own program."""
    if way in RESULTS:
        return {**made, "result": RESULTS[way]}
    if way == "exception":
        return {**made, **ERRED, "exception": to_serialize(pickle.dumps(Program()))}
    return made


def dask_setup(worker: Any) -> None:
    """Called by Dask before the worker's first task."""
    def instead(*words: Any, **more: Any) -> Any:
        made = simple(*words, **more)
        return answer(Path(os.environ["WAY"]).read_text(), made)

    # How Debian 12's Dask calls it, and Debian 13's.
    name = ("apply_function_simple" if hasattr(dask_worker, "apply_function_simple")
            else "_run_task_simple")
    simple = getattr(dask_worker, name)
    setattr(dask_worker, name, instead)
