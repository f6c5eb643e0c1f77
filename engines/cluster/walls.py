"""What a cluster sends to this process: of bounded size while it is read, and never run.

Who has a certificate may run programs on the scheduler and the workers: that is Dask's way of
working. Dask also reads by Python's pickle much of what comes back, which can call any function,
in messages of any size; this process does neither while it is connected.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

MESSAGE_BYTES = 1 << 28  # of one message, as Dask reads it: an answer comes in one
NO_DATA = "it sent what is no data, which was not run"
_closed = False
_hooked = False


class Unreadable(ValueError):
    """The cluster sent what is no data, or too much of it."""


@contextmanager
def closed() -> Iterator[None]:
    """Meanwhile nothing that Dask reads in this process is unpickled, inflated or too large.

    A pickle has to look up whatever it calls, and the interpreter reports each look-up (PEP 578:
    pickle.find_class): refusing those refuses every call, in whatever part and version of Dask.
    Numbers, texts, bytes, lists and dicts need none.
    """
    global _closed, _hooked
    tcp: Any = import_module("distributed.comm.tcp")
    serialize: Any = import_module("distributed.protocol.serialize")
    buffer, families = tcp.host_array, dict(serialize.families)

    def counted(size: int) -> Any:
        if size > MESSAGE_BYTES:
            raise Unreadable(f"it sent {size} bytes at once, and may send {MESSAGE_BYTES}")
        return buffer(size)

    tcp.host_array = counted
    for name, (dumps, _, *more) in families.items():
        loads = _bytes_only if name == "msgpack" else _nothing
        serialize.families[name] = (dumps, loads, *more)
    # What is inflated has no size before: workers' answers are compressed by themselves.
    inflating = import_module("distributed.protocol.compression").compressions
    taken = {name: inflating.pop(name) for name in list(inflating) if name}
    if not _hooked:
        sys.addaudithook(_look)  # which cannot be taken away again
        _hooked = True
    _closed = True
    try:
        yield
    finally:
        _closed = False
        inflating.update(taken)
        serialize.families.update(families)
        tcp.host_array = buffer


def _look(event: str, arguments: tuple[object, ...]) -> None:
    if _closed and event == "pickle.find_class":
        raise Unreadable(NO_DATA)


def _bytes_only(header: object, frames: list[Any]) -> bytes:
    """A worker's answer: as lists in lists a few bytes would become a hundred times as many."""
    frame = b"".join(frames)
    length = {0xc4: 1, 0xc5: 2, 0xc6: 4}.get(frame[0] if frame else 0)  # msgpack's bin 8, 16, 32
    if length is None:
        raise Unreadable(NO_DATA)
    return frame[1 + length:]


def _nothing(header: object, frames: object) -> str:
    """In place of what is not read: raising would end Dask's listening to the scheduler."""
    return NO_DATA
