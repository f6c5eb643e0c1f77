"""Lets a guest begin each trial alike: at the same date, and with the same random numbers."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firstflight.testbed.messages import Job

# A kernel for trials has it (vtime/kernel/trial_random.c), and no machine: its date is never set.
SEED_FILE = Path("/proc/sys/kernel/trial_seed")
BEGINS_S = 1_767_225_600  # 2026-01-01 00:00 UTC
HOUR_S = 3600


@contextmanager
def drawn_alike(seed_file: Path = SEED_FILE) -> Iterator[None]:
    """Within it date and random numbers are the same in every guest, whatever trial it prepares.

    Keys and certificates serve many trials: the length of an ECDSA signature, and so the size of a
    handshake, would follow from the trial that happened to be the first in its guest. Afterwards
    what is random follows from the trial's seed again. Raises OSError.
    """
    if not seed_file.exists():
        yield
        return
    seed = seed_file.read_text(encoding="ascii")
    time.clock_settime_ns(time.CLOCK_REALTIME, BEGINS_S * 10**9)
    seed_file.write_text("0", encoding="ascii")
    try:
        yield
    finally:
        seed_file.write_text(seed, encoding="ascii")


class Restart:
    """Restarts date and random numbers of the guest that it runs in; elsewhere it does nothing.

    Headers have a date, over HTTP/2 in a code whose length depends on its digits. The kernel draws
    what cake drops, which flows share a queue, and BBR's phase; servers draw their signatures.
    """

    def __init__(self, seed_file: Path = SEED_FILE) -> None:
        # Open already: at a trial's start a call that fails, as file objects make, takes time.
        self.seed_file = os.open(seed_file, os.O_WRONLY) if seed_file.exists() else None
        # The next full hour, when a certificate that was just made is valid as well.
        self.today_s = math.ceil(time.time() / HOUR_S) * HOUR_S

    def begin(self, trial: Job) -> None:
        """Set the date, and let all that is random follow from the trial's seed. Raises OSError."""
        if self.seed_file is None:
            return
        has_own_certificate = bool("own" in trial and trial["own"]["ca"])
        begins_s = self.today_s if has_own_certificate else BEGINS_S
        time.clock_settime_ns(time.CLOCK_REALTIME, begins_s * 10**9)
        os.pwrite(self.seed_file, str(trial.get("seed", 0)).encode(), 0)
