"""A control group counts the processes that nobody waits for, too."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from benchmarks import processor

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
