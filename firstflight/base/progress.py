"""Shows the progress of a measurement: as a bar on a terminal, elsewhere by a line now and then."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from firstflight.base.terminal import say
from firstflight.base.words import format_duration

if TYPE_CHECKING:
    from tqdm import tqdm

# The time between two lines without a terminal.
PLAIN_INTERVAL_S = 30.0
# The remaining time is shown once this part is measured, since the first trials may be far slower.
LEAST_PART_MEASURED = 0.05


class Progress:
    """Counts trials, and shows how many are measured. Use as a context manager.

    total: the number of all trials. done: how many of these an earlier process has measured. what:
    the name that begins a line, such as a scenario's. quiet: whether nothing is printed at all.
    """

    def __init__(self, total: int, done: int, what: str, quiet: bool = False) -> None:
        self.total = total
        self.done = done
        self.done_before = done
        self.what = what
        self.doing = ""  # what measured the last trial, in words
        self.quiet = quiet
        self.bar: tqdm[None] | None = None

        self.started = time.monotonic()
        self.ended = threading.Event()
        # Reports by the clock and not by trials: a trial of thousands of connections takes minutes.
        self.reporter = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> Progress:
        if self.quiet:
            return self
        if sys.stderr.isatty():
            from tqdm import tqdm  # slow to import, and only needed on a terminal
            self.bar = tqdm(total=self.total, initial=self.done, desc=self.what, unit="trial",
                            leave=False, dynamic_ncols=True)
        elif self.total:
            say(f"{self.what}: {self.total - self.done} of {self.total} trials to measure")
            self.reporter.start()
        return self

    def step(self, doing: str = "") -> None:
        """Count one more trial. doing: what measured it, in words; "" if that is clear."""
        self.done += 1
        self.doing = doing
        if self.bar is not None:
            self.bar.set_postfix_str(doing, refresh=False)
            self.bar.update()

    def note(self, message: str) -> None:
        """Print a line that stays, above the progress; "" prints none."""
        if message and not self.quiet:
            if self.bar is not None:
                self.bar.clear()
            say(message)

    def line(self, elapsed_s: float) -> str:
        """A line for a log. elapsed_s: since the first trial of this process began."""
        measured = self.done - self.done_before
        rest = self.total - self.done
        line = f"{self.what}: {self.done} of {self.total} trials"
        if self.doing:
            line += f", {self.doing}"

        if rest and measured >= LEAST_PART_MEASURED * (measured + rest):
            line += f", about {format_duration(elapsed_s * rest / measured)} left"
        return line

    def _report(self) -> None:
        """Print a line every PLAIN_INTERVAL_S, until the measurement ends."""
        while not self.ended.wait(PLAIN_INTERVAL_S):
            say(self.line(time.monotonic() - self.started))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.ended.set()
        if self.reporter.is_alive():
            self.reporter.join()
        if self.bar is not None:
            self.bar.close()
