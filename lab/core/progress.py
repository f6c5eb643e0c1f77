"""Progress on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from lab.core.command_line import say
from lab.core.words import duration

if TYPE_CHECKING:
    from tqdm import tqdm

# Off a terminal: often enough to see that it lives, seldom enough for a log.
PLAIN_INTERVAL_S = 30.0


class Progress:
    """Counts trials. Use as a context manager; quiet: says nothing at all."""

    def __init__(self, total: int, done: int, what: str, quiet: bool = False) -> None:
        self.total, self.done, self.before, self.what = total, done, done, what
        self.quiet, self.doing = quiet, ""
        self.bar: tqdm[None] | None = None
        self.started = time.monotonic()
        self.ended = threading.Event()
        # A trial of thousands of connections takes longer than a log may be silent.
        self.teller = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Progress:
        if self.quiet:
            return self
        if sys.stderr.isatty():
            from tqdm import tqdm  # its import is only worth it where it is seen
            self.bar = tqdm(total=self.total, initial=self.done, desc=self.what, unit="trial",
                            leave=False, dynamic_ncols=True)
        elif self.total:
            say(f"{self.what}: {self.total - self.done} of {self.total} trials to measure")
            self.teller.start()
        return self

    def step(self, doing: str = "") -> None:
        """One more; doing: who measures, where that is worth a word."""
        self.done, self.doing = self.done + 1, doing
        if self.bar is not None:
            self.bar.set_postfix_str(doing, refresh=False)
            self.bar.update()

    def line(self, elapsed_s: float) -> str:
        """What a log is told; elapsed_s: since the first trial of this process began."""
        measured, rest = self.done - self.before, self.total - self.done
        left = (f", about {duration(elapsed_s * rest / measured)} left" if measured and rest else
                "")
        doing = f", {self.doing}" if self.doing else ""
        return f"{self.what}: {self.done} of {self.total} trials{doing}{left}"

    def _tell(self) -> None:
        while not self.ended.wait(PLAIN_INTERVAL_S):
            say(self.line(time.monotonic() - self.started))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.ended.set()
        if self.teller.is_alive():
            self.teller.join()
        if self.bar is not None:
            self.bar.close()
