"""Nothing that a cluster sends is run: Python's pickle may not look anything up here.

Dask reads by pickle what its scheduler and its workers send, in many places: results,
exceptions, log events, whole messages. A pickle can call any function, but it has to look it
up before, and the interpreter reports each look-up (PEP 578: pickle.find_class). So refusing
those refuses every such call, in whatever part and version of Dask it is. Numbers, texts,
bytes, lists and dicts need no look-up: they are read as before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from engines.job import EngineError

NO_DATA = "it sent what is no data, which was not run"
_forbidden_by = 0  # how many connections are open
_hooked = False


class Unreadable(EngineError, ValueError):
    """The cluster sent what is no data."""


@contextmanager
def forbidden() -> Iterator[None]:
    """Meanwhile, in all threads of this process, unpickling a class or function is Unreadable."""
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
