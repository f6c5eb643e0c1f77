"""Our programs on the hosts of a network: copies of the worker, each in the network of its host.

So Python starts once, and what the worker and its programs import is read once. In a guest that
would take each program a tenth of a second of a processor.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, NoReturn, Protocol

from firstflight.testbed.namespaces import enter

_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Running(Protocol):
    """A program that is running, and what it reads and writes; subprocess.Popen is one."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""

    def kill(self) -> None:
        """End it."""


class ForkedProgram:
    """A running program of the project, such as testbed.hosts.http_server."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def __init__(self, host_pid: int, project: Path, module: str, arguments: Sequence[str]) -> None:
        """Run main() of a module in the namespaces of process host_pid, in the project's folder."""
        requests, to_program = os.pipe()
        from_program, answers = os.pipe()
        self.status: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _become(host_pid, project, module, arguments, requests, answers)
        os.close(requests)
        os.close(answers)
        self.stdin = open(to_program, "wb")
        self.stdout = open(from_program, "rb", buffering=0)

    def poll(self) -> int | None:
        if self.status is None:
            self._wait(os.WNOHANG)
        return self.status

    def kill(self) -> None:
        if self.poll() is None:  # so the number is still its own
            os.kill(self.pid, signal.SIGKILL)
            self._wait()

    def _wait(self, options: int = 0) -> None:
        ended, status = os.waitpid(self.pid, options)
        if ended:
            self.status = os.waitstatus_to_exitcode(status)


def _become(host_pid: int, project: Path, module: str, arguments: Sequence[str], stdin: int,
            stdout: int) -> NoReturn:
    """Go on as a program, in a process that has just been forked, until it ends."""
    status = 1
    try:
        # What the worker left to the collector may close files whose numbers are others' by then.
        gc.freeze()
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(stdin, _STDIN)
        os.dup2(stdout, _STDOUT)
        os.closerange(_STDERR + 1, os.sysconf("SC_OPEN_MAX"))
        _enter(host_pid)
        os.chdir(project)
        sys.stdin, sys.stdout = open(_STDIN, closefd=False), open(_STDOUT, "w", closefd=False)
        sys.argv = [module, *arguments]
        status = import_module(module).main() or 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)  # without what the worker does at its end


def _enter(host_pid: int) -> None:
    """Go over to the network of process host_pid, and to what is mounted there. Raises OSError."""
    for kind in ("net", "mnt"):
        namespace = os.open(f"/proc/{host_pid}/ns/{kind}", os.O_RDONLY)
        enter(namespace)
        os.close(namespace)
