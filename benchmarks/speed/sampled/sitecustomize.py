"""Samples a Python process of run.sh by its own processor time; loaded before its program.

benchmarks/speed/parts.py puts this folder on PYTHONPATH. ITIMER_PROF interrupts the
process after each SAMPLE_S of its processor time. All the time since the last
sample goes to the part of the stack that is met: a long call in C, which a
signal has to wait for, counts in full. What is forked is sampled like its parent.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType

PROJECT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3))
SAMPLE_S = 0.002
FILE, CONTROL = "FIRST_FLIGHT_SAMPLES", "FIRST_FLIGHT_COUNTER"
# The first line that fits any frame of the stack names the part: the beginning of the file's path
# in the project, and the function if not all of it is meant.
PLACES = (("start", "<frozen importlib", ""),
          ("draw", "drawing/", ""), ("draw", "experiment.py", "draw"),
          ("tell", "lab/render/", ""), ("tell", "lab/", "report"),
          ("judge", "lab/", "judge"), ("judge", "lab/tcp/", ""),
          ("engine", "engines/", ""), ("record", "lab/core/run/measuring.py", ""))
REST = "start"


def part_of(stack: list[tuple[str, str]]) -> str:
    """The part that a stack of frames (file, function) belongs to."""
    frames = [(file.removeprefix(f"{PROJECT}/"), function) for file, function in stack]
    return next((part for part, begins, named in PLACES for file, function in frames
                 if file.startswith(begins) and named in ("", function)), REST)


def stack_of(frame: FrameType | None) -> list[tuple[str, str]]:
    def inwards() -> Iterator[tuple[str, str]]:
        at = frame
        while at is not None:
            yield at.f_code.co_filename, at.f_code.co_name
            at = at.f_back
    return list(inwards())


class Sampler:
    """What this process has taken, appended to a file: a part and its seconds, a line each."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND)
        self.counted_s = 0.0
        signal.signal(signal.SIGPROF, lambda _, frame: self.sample(part_of(stack_of(frame))))
        os.register_at_fork(after_in_child=self.start)
        atexit.register(self.stop)

    def start(self) -> None:
        self.counted_s = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)

    def stop(self) -> None:
        """Before the interpreter gives up its handlers: the next signal would kill it."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.sample(REST)

    def sample(self, part: str) -> None:
        now_s = time.process_time()
        os.write(self.file, f"{part} {now_s - self.counted_s:.6f}\n".encode())
        self.counted_s = now_s


def begin(path: str) -> None:
    """Sample this process; where it is the one that starts guests, have them name theirs."""
    sampler = Sampler(path)
    if any(word.endswith("experiment.py") for word in sys.orig_argv):
        with open(os.environ[CONTROL], encoding="ascii") as counter:
            os.write(sampler.file, f"counter {counter.read()}".replace("\n", " ").encode() + b"\n")
        sys.path.insert(0, PROJECT)
        from engines import uml
        uml.INIT = type(uml.INIT)(PROJECT, "benchmarks", "speed", "sampled", "init.py")
        sys.path.remove(PROJECT)
    sampler.start()
    sampler.counted_s = 0.0  # the interpreter's own start is this process's, too


if FILE in os.environ:
    begin(os.environ[FILE])
