"""Progress on standard error: a bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from lab.core.command_line import say

if TYPE_CHECKING:
    from tqdm import tqdm

# Off a terminal: often enough to see that it lives, seldom enough for a log.
PLAIN_INTERVAL_S = 15.0


class Progress:
    """Counts trials. Use as a context manager."""

    def __init__(self, total: int, done: int, what: str) -> None:
        self.total, self.done, self.what = total, done, what
        self.bar: tqdm[None] | None = None
        self.last = time.monotonic()

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from tqdm import tqdm  # its import is only worth it where it is seen
            self.bar = tqdm(total=self.total, initial=self.done, desc=self.what, unit="trial",
                            leave=False, dynamic_ncols=True)
        elif self.total:
            say(f"{self.what}: {self.total - self.done} of {self.total} trials to measure")
        return self

    def step(self) -> None:
        self.done += 1
        if self.bar is not None:
            self.bar.update()
        elif time.monotonic() - self.last > PLAIN_INTERVAL_S:
            self.last = time.monotonic()
            say(f"{self.what}: {self.done} of {self.total} trials")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if self.bar is not None:
            self.bar.close()
