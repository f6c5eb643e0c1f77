"""In the guest: runs packetdrill scripts one after the other; a line of JSON as each ends.

Each has a network namespace of its own, and begins at a multiple of ALIGN_S of the guest's clock,
so that what it meets of the kernel's ticks and timers is the same whichever ran before. What a
script started is killed with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

ALIGN_S = 4.096  # a slot of the timer wheel's fifth level, as in vtime/uml.py
USAGE = b"--tolerance_usecs"  # what packetdrill prints of itself when it is given no script
MOST_PRINTED = 3000  # bytes of what it prints; its last lines name what failed
MOST_FILE = 64 << 20  # bytes of a file, in the guest's memory


def limited() -> None:
    """Before a program starts: no file of its grows until the guest's memory is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE, MOST_FILE))


def run(words: list[str], folder: str, environment: dict[str, str],
        limit_s: float) -> tuple[int | None, str]:
    """A program's status, negative for a signal, None where it did not end; its last words."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=limited)
        ends = os.pidfd_open(process.pid)
        ended = select.select([ends], [], [], limit_s)[0]
        os.close(ends)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        output.seek(max(0, os.fstat(output.fileno()).st_size - MOST_PRINTED))
        return status if ended else None, output.read().decode(errors="replace")


def report(**result: object) -> None:
    print(json.dumps(result), flush=True)


def main(batch: dict[str, Any]) -> None:
    """batch: what vtime/command/packetdrill.py gives."""
    environment = {**os.environ, "LD_PRELOAD": batch["preload"]}
    try:
        _, printed = run([batch["program"]], "/", dict(os.environ), batch["limit_s"])
    except OSError as error:
        printed = error.strerror
    if USAGE.decode() not in printed:
        report(no_program=printed[-MOST_PRINTED:])
        return
    for number, (folder, words) in enumerate(batch["scripts"]):
        time.sleep(ALIGN_S - time.monotonic() % ALIGN_S)
        began_ns = time.monotonic_ns()
        try:
            status, printed = run(["unshare", "--net", batch["program"], *words], folder,
                                  environment, batch["limit_s"])
        except OSError as error:  # the folder has gone
            status, printed = 1, f"{folder}: {error.strerror}"
        report(number=number, status=status, virtual_s=(time.monotonic_ns() - began_ns) / 1e9,
               printed=printed)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
