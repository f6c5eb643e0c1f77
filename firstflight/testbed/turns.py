"""Lets the programs of a guest get its processor in the order in which they were woken.

By default Linux shares a processor fairly: who runs next follows from how much each thread ran
before. A browser has some two hundred threads, and in a clock that skips computing that history is
noise: of two requests that are due at one moment now the one leaves first, now the other. Threads
of one real-time priority (sched(7), SCHED_RR) queue instead: who is woken first runs first, until
it waits.
"""

from __future__ import annotations

import os
from pathlib import Path

from firstflight.testbed.restart import SEED_FILE

PROCESSES, SETTINGS = Path("/proc"), Path("/proc/sys/kernel")
PRIORITY, PACKETS_PRIORITY = 1, 2
PACKETS = "ksoftirqd"  # a thread of the kernel; packets that it handles must not wait for programs
# Real-time threads may use the whole processor. One that computes while the clock moves, as a
# script that reads the clock until it has moved, is followed by the next one after 1 ms.
RULES = {"sched_rt_runtime_us": "-1", "sched_rr_timeslice_ms": "1"}


def take_turns(processes: Path = PROCESSES, settings: Path = SETTINGS) -> None:
    """Let this process, and what it starts from now on, take turns. Raises OSError.

    Only in a guest: there is nobody else on its processor. processes, settings: of the kernel.
    """
    if not SEED_FILE.exists():
        return
    for name, value in RULES.items():
        (settings / name).write_text(value, encoding="ascii")
    for process in processes.glob("[0-9]*"):
        if (process / "comm").read_text(encoding="utf-8").startswith(PACKETS):
            os.sched_setscheduler(int(process.name), os.SCHED_FIFO,
                                  os.sched_param(PACKETS_PRIORITY))
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
