"""PID 1 of the guest: mounts what programs need, runs the one that it is told, powers off.

The file PROGRAM of its folder names a module of the project, whose main(folder, project)
runs. Where there is a command.json (a list of words), that command runs instead in the
project's folder, and its exit status goes to the file status.

It is Python instead of a shell script, since each process that the guest forks costs ten
milliseconds, and Python is needed anyway. The kernel starts it as `/usr/bin/python3 -S init.py`:
so it does not import what packages of the machine would have every Python import at its start
(.pth files). With the file of setuptools it took four times as long to import Mininet.
"""

from __future__ import annotations

import ctypes
import json
import os
import site
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path

_LINUX_REBOOT_CMD_POWER_OFF = 0x4321FEDC
_MS_NOSUID_NODEV = 2 | 4
_PR_SET_TIMERSLACK = 29
_MCL_FUTURE = 2
# The one place that reaches the host. Not where a project may lie: what is
# mounted there would hide it.
RESULTS = "/run/first-flight"
# On the host: the folder in which the guest's kernel was started, whatever its name.
FOLDER = "/proc/self/cwd"
PROGRAM = "program"
PROJECT = Path(__file__).resolve().parent.parent.parent
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # of its programs

_libc = ctypes.CDLL(None)


def prepare() -> None:
    """Mount the file systems that Mininet and its tools expect; the root stays read-only."""
    from vtime.mounts import mount
    for kind, target in (("proc", "/proc"), ("sysfs", "/sys"), ("cgroup2", "/sys/fs/cgroup")):
        mount(kind, target, kind)
    os.makedirs("/dev/pts", exist_ok=True)  # devtmpfs is mounted by the kernel
    mount("devpts", "/dev/pts", "devpts")
    mount("tmpfs", "/run", "tmpfs", _MS_NOSUID_NODEV)
    os.makedirs(RESULTS)
    mount("hostfs", RESULTS, "hostfs", _MS_NOSUID_NODEV, FOLDER)


def exact_timers() -> None:
    """Let no timer of a process be late: by default the kernel may delay them by 50 µs."""
    _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


def power_off() -> None:
    _libc.sync()
    _libc.reboot(_LINUX_REBOOT_CMD_POWER_OFF)


def run(folder: Path, project: Path) -> None:
    """Run the command or the program that the folder names."""
    command = folder / "command.json"
    if command.exists():
        done = subprocess.run(json.loads(command.read_text()), cwd=project, check=False)
        (folder / "status").write_text(f"{done.returncode}\n")
        return
    sys.path += site.getsitepackages()
    # Memory that is taken from here on is mapped at once. Else each page takes a fault, and imports
    # cause thousands. The program ends it (munlockall) once it has imported what it needs.
    _libc.mlockall(_MCL_FUTURE)
    import_module((folder / PROGRAM).read_text()).main(folder, project)


def main() -> None:
    os.environ["TMPDIR"] = "/run"  # /tmp is the host's, and read-only
    os.environ["PATH"] = PATH
    # Without this file's folder, and with ours last: else each module of the standard library would
    # be looked for there first, which in a guest takes many system calls.
    sys.path[:] = [*sys.path[1:], str(PROJECT)]
    try:
        prepare()
        exact_timers()
        run(Path(RESULTS), PROJECT)
    except BaseException:  # an init that ends takes the kernel down with a panic
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        power_off()


if __name__ == "__main__":
    main()
