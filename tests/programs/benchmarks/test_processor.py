"""A control group counts the processes that nobody waits for, too."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from benchmarks import processor
from benchmarks.timer import watched
from firstflight.base.errors import FirstFlightError

# A child that is left behind works for a tenth of a second; its parent ends at once.
LEFT_BEHIND = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    sys.stdout.close()
"""


def test_work_of_a_process_that_nobody_waits_for_is_counted() -> None:
    with processor.group() as group:
        if group is None:
            pytest.skip("no control group can be made here: it takes root")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        command = group.command([sys.executable, "-c", LEFT_BEHIND])
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read()  # its end: the child has closed it, too
        assert process.wait() == 0
        assert group.used_s >= 0.1
        waited_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        assert waited_s < 0.1, "what wait tells would do"
    assert not group.folder.exists()


# The same, but its command ends when the work is done, of which it is told by the end of a pipe.
UNWAITED = """
import os, time
told, tell = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
    os._exit(0)
os.wait()
os.close(tell)
os.read(told, 1)
"""


def test_a_benchmarks_command_is_counted_with_it() -> None:
    timing, _ = watched([sys.executable, "-c", UNWAITED])
    if timing.processor_s is None:
        pytest.skip("no control group can be made here: it takes root")
    assert timing.processor_s >= 0.1
    with pytest.raises(FirstFlightError, match="ended with status 3: no room"):
        watched(["sh", "-c", "echo no room >&2; exit 3"])
