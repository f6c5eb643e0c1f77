"""A cluster within this process, local:N: how many workers, and the folder that is theirs."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engines import uml
from engines.job import EngineCannot
from engines.untrusted_files import remove_folder

LOCAL = "local:"
MOST_WORKERS = 64  # Dask runs all of them in one process: more of them wait for each other
PREFIX = "first-flight-cluster-"


def workers(address: str) -> int:
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
def folder() -> Iterator[str]:
    """A folder for Dask's workers; those that killed processes have left go before."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError), _held(left):
            remove_folder(left)
    made = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with _held(made):
            yield str(made)
    finally:
        remove_folder(made)


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
