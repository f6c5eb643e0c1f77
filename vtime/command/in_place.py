"""Runs in the guest, as its root is made: what stands in the place of the machine's own files.

Programs of this folder replace some of the machine's. Files like those of cgroup v1 are there, and
the distribution's Python writes down what is asked of Mininet (first_flight_calls.py).
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from pathlib import Path

from vtime.mounts import bind, mount

# Programs that a file of this folder replaces in the guest. The replaced program is in OWN, where
# the file may call it. NOTES: lines that these programs have for the user.
OURS = "/run/first-flight"
OWN, NOTES = f"{OURS}/own", f"{OURS}/notes"
STARTED = f"{OURS}/started"  # a link to the folder in which the command was started
IN_PLACE = {
    "/usr/bin/ovs-vsctl": "ovs-vsctl", "/usr/bin/ovs-ofctl": "ovs-ofctl",
    "/usr/bin/telnet": "telnet", "/usr/bin/controller": "controller", "/usr/bin/sudo": "sudo",
    "/usr/bin/packetdrill": "packetdrill",
    "/usr/sbin/modprobe": "modprobe", "/usr/sbin/lsmod": "modprobe",
    "/usr/bin/cgcreate": "cgroups", "/usr/bin/cgset": "cgroups", "/usr/bin/cgget": "cgroups",
    "/usr/bin/cgclassify": "cgroups", "/usr/bin/cgdelete": "cgroups"}
# Programs that have to be installed before a file takes their place.
NEEDED = {"controller": "/usr/bin/ovs-testcontroller", "telnet": "/usr/bin/telnet",
          "ovs-vsctl": "/usr/bin/ovs-vsctl", "ovs-ofctl": "/usr/bin/ovs-ofctl"}
MOST_NOTES, MOST_CALLS_BYTES = 10_000, 1 << 20  # bytes
# The part of cgroup v1 that Mininet looks for: the files of a group, and their content.
CGROUPS = {"cpu": {"cfs_period_us": "100000", "cfs_quota_us": "-1", "shares": "1024",
                   "rt_period_us": "1000000", "rt_runtime_us": "950000"},
           "cpuacct": {"usage": "0"}, "cpuset": {"cpus": "0", "mems": "0"}}
PACKAGES = "/usr/lib/python3/dist-packages"  # of the distribution's Python
CALLS, CALLS_FILE = "first_flight_calls", f"{OURS}/calls"  # a module, and what it writes


def put_all(root: str) -> None:
    """Put everything into the tree of a root that is not in force yet. Raises OSError."""
    for place, name in IN_PLACE.items():
        if os.path.exists(NEEDED.get(name, "/")):
            _put_program(root, place, name)

    here = Path(__file__).parent
    for source in here.glob("times.*"):  # for packetdrill
        Path(f"{root}{OURS}/{source.name}").write_bytes(source.read_bytes())
    if not os.path.lexists(f"{root}/usr/bin/python"):  # many experiments call it so
        os.symlink("python3", f"{root}/usr/bin/python")

    if os.path.isdir(root + PACKAGES):
        _put_module(root + PACKAGES)

    _make_cgroups(f"{root}/sys/fs/cgroup")


def _put_program(root: str, place: str, name: str) -> None:
    """Put this folder's program in place of the machine's, and that one into OWN."""
    own = f"{root}{OWN}/{os.path.basename(place)}"
    os.makedirs(root + OWN, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        program = os.path.realpath(place, strict=True)
        Path(own).touch(mode=0o755)
        bind(program, own)
        os.remove(root + place)
    ours = Path(root + place)
    ours.write_bytes((Path(__file__).parent / name).read_bytes())
    ours.chmod(0o755)


def _put_module(packages: str) -> None:
    """Have the distribution's Python import CALLS as it starts, with the bytecode that there is.

    A command's first Python would need 700 kB to compile it.
    """
    source = Path(__file__).with_name(f"{CALLS}.py")
    module = Path(f"{packages}/{CALLS}.py")
    module.write_bytes(source.read_bytes())
    os.utime(module, ns=(source.stat().st_mtime_ns,) * 2)  # of which the bytecode knows
    bytecode = Path(importlib.util.cache_from_source(str(source)))
    with contextlib.suppress(OSError):
        os.makedirs(f"{packages}/__pycache__", exist_ok=True)
        Path(f"{packages}/__pycache__/{bytecode.name}").write_bytes(bytecode.read_bytes())
    # Python runs such a line as it starts (its module site).
    Path(f"{packages}/{CALLS}.pth").write_text(f"import {CALLS}; {CALLS}.begin()\n")


def _make_cgroups(tree: str) -> None:
    """Make files like those of cgroup v1, which limit nothing: Mininet 2.3.0 needs them."""
    mount("cgroup", tree, "tmpfs", options="mode=755")
    for controller, values in CGROUPS.items():
        os.makedirs(f"{tree}/{controller}")
        for name, value in values.items():
            Path(f"{tree}/{controller}/{controller}.{name}").write_text(f"{value}\n")


def notes() -> list[str]:
    """The notes that replaced programs left for the user, without duplicates."""
    with contextlib.suppress(OSError), open(NOTES, "rb") as file:
        return list(dict.fromkeys(file.read(MOST_NOTES).decode(errors="replace").splitlines()))
    return []


def calls() -> bytes:
    """The lines about what was asked of Mininet; b"" for none."""
    with contextlib.suppress(OSError), open(CALLS_FILE, "rb") as file:
        return file.read(MOST_CALLS_BYTES)
    return b""
