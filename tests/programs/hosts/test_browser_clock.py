"""The library of Chromium's clock leaves a machine of real time its clock.

tests/live tests it in a guest.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from firstflight.testbed import fork_server
from firstflight.testbed.messages import BROWSER_CLOCK

READING = """
import time
names = (time.CLOCK_MONOTONIC, time.CLOCK_REALTIME, time.CLOCK_BOOTTIME,
         time.CLOCK_THREAD_CPUTIME_ID)
before = [time.clock_gettime_ns(name) for name in names]
time.sleep(0.002)
after = [time.clock_gettime_ns(name) for name in names]
for first, then in zip(before[:3], after):
    assert then - first >= 2_000_000
assert after[3] > before[3]
try:
    time.clock_gettime(12345)
except OSError as error:
    print(time.time_ns(), error.errno)
"""


def test_on_a_machine_of_real_time_the_browsers_clock_is_the_machines() -> None:
    library = fork_server.libraries().get(BROWSER_CLOCK)
    if library is None:
        pytest.skip("no compiler")
    words = {}
    for preloaded in ("", str(library)):
        done = subprocess.run(
            [sys.executable, "-S", "-E", "-c", READING], capture_output=True, text=True,
            check=True, env={**os.environ, "LD_PRELOAD": preloaded})
        words[preloaded] = list(map(int, done.stdout.split()))
    without, by_library = words.values()
    assert by_library[0] > without[0] and by_library[1] == without[1]
