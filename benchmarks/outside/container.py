"""Runs First Flight in a container, as the engine of an unprivileged user does (docs/INSTALL.md).

    /usr/bin/python3 -m benchmarks.outside.container [--base IMAGE | --image IMAGE]
                                                     [--program PATH] [--keep]

Builds the image of Containerfile from nothing, on a Debian 12 that mmdebstrap makes from Debian's
mirror. In it run the commands that people use: a single bucket, a scenario, a Mininet script with
Open vSwitch, packetdrill (PATH is its program, see vtime/MININET.md), and a test,
tests/live/test_escape.py. A container has no root, no capability, no network, Docker's list of
system calls and Docker's /dev/shm (64 MB, noexec). Prints a table. Exit status: 1 where one of the
commands fails, 4 where this machine lacks a program.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import command
from firstflight.base import PROJECT
from firstflight.base.argument_types import file_path
from firstflight.base.errors import FAILED, OK, CannotError
from firstflight.base.parser import Parser

IMAGE, BASE = "localhost/first-flight:tried", "localhost/debian:12-tried"
MOST_MB, MOST_FIRST_FIGURE_S = 1200, 10.0  # of the image; until there is a figure
SCENARIO = "128 of 128 trials verified"
# Podman's list of system calls, and the calls in it that Docker allows only with CAP_SYS_ADMIN.
PROFILE = Path("/usr/share/containers/seccomp.json")
FOR_ADMINISTRATORS = (
    "add_key", "bpf", "clone3", "fanotify_init", "fsconfig", "fsmount", "fsopen", "fspick",
    "keyctl", "mount", "mount_setattr", "move_mount", "open_tree", "perf_event_open",
    "pivot_root", "quotactl", "request_key", "setdomainname", "sethostname", "setns",
    "umount", "umount2", "unshare")
NAMESPACES = 0x7E020000  # all flags CLONE_NEW…, by which clone() makes namespaces
SCRIPT = """
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import SingleSwitchTopo
net = Mininet(SingleSwitchTopo(3), switch=lambda name, **more: OVSSwitch(
    name, failMode="standalone", **more), controller=None)
net.start()
print("lost", net.pingAll(), "%")
net.stop()
"""
HANDSHAKE = """\
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 32792 <mss 1000,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <...>
"""
# The Python packages that pytest needs.
PYTEST = ("_pytest", "attr", "exceptiongroup", "iniconfig", "packaging", "pluggy", "py",
          "pytest")


@dataclass(frozen=True)
class Outcome:
    """Whether a command did what it has to, its wall time, and a line of its output (said)."""

    name: str
    is_good: bool
    wall_s: float
    said: str


class Containers:
    """Containers of one image, which share the folder `work` of an unprivileged user.

    owner is the number of that user, and `confined` the flags of podman that take rights away.
    """

    def __init__(self, image: str, folder: Path) -> None:
        self.image, self.work = image, folder / "work"
        self.work.mkdir()
        profile = folder / "docker.json"
        profile.write_text(json.dumps(docker_profile(json.loads(PROFILE.read_text()))))
        if os.geteuid() == 0:
            self.owner, user = 1000, "--user=1000:1000"
            os.chown(self.work, self.owner, self.owner)
            folder.chmod(0o755)
        else:
            self.owner, user = os.geteuid(), "--userns=keep-id"
        self.confined = (user, "--cap-drop", "all", "--network", "none",
                         "--security-opt", "no-new-privileges",
                         "--security-opt", f"seccomp={profile}", "--volume", f"{self.work}:/work")

    def run(self, name: str, *words: str, expected: str, more: Sequence[str] = ()) -> Outcome:
        """Run a command in a container; it has to succeed and to print the expected text.

        more are further flags of podman.
        """
        began = time.monotonic()
        done = podman("run", "--rm", *limits(), *self.confined, *more, self.image, *words)
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()] or [""]
        said = next((line for line in lines if expected in line), "")
        return Outcome(name, done.returncode == 0 and bool(said), time.monotonic() - began,
                       (said or lines[-1])[:60])


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="container.py", description=__doc__)
    images = parser.add_mutually_exclusive_group()
    images.add_argument("--base", metavar="IMAGE", help="of Debian 12 (default: one is made)")
    images.add_argument("--image", help="of Containerfile (default: one is built)")
    parser.add_argument("--program", type=file_path, metavar="PATH", help="packetdrill")
    parser.add_argument("--keep", action="store_true", help="do not remove what was built")
    arguments = parser.parse_args(words)
    command.need("podman")
    if not (arguments.base or arguments.image):
        command.need("mmdebstrap")
    if not PROFILE.exists():
        raise CannotError(f"no {PROFILE}: apt-get install golang-github-containers-common")
    with tempfile.TemporaryDirectory(prefix="first-flight-container-") as name:
        folder = Path(name)
        try:
            outcomes = [] if arguments.image else [build(folder, arguments.base)]
            if all(outcome.is_good for outcome in outcomes):
                containers = Containers(arguments.image or IMAGE, folder)
                outcomes += try_out(containers, arguments.program)
        finally:
            if not (arguments.keep or arguments.image):
                podman("rmi", "--force", IMAGE, *([] if arguments.base else [BASE]))
    for outcome in outcomes:
        print(f"{outcome.name:38} {'good' if outcome.is_good else 'FAILS':6}"
              f" {outcome.wall_s:7.1f} s  {outcome.said}")
    return OK if all(outcome.is_good for outcome in outcomes) else FAILED


def podman(*words: str) -> subprocess.CompletedProcess[str]:
    """Run podman to its end."""
    return subprocess.run(["podman", *words], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", check=False)


def limits() -> list[str]:
    """Flags for podman with this machine's own limits, which podman's defaults may exceed."""
    return [f"--ulimit={name}={soft}:{hard}" for name, number in (
        ("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC))
            for soft, hard in [resource.getrlimit(number)]]


def docker_profile(profile: dict[str, list[dict[str, object]]]) -> dict[str, object]:
    """Podman's list of system calls without those that Docker refuses an unprivileged container."""
    rules = profile["syscalls"]
    for rule in rules:
        names = rule["names"] if not rule.get("includes") else []
        assert isinstance(names, list)
        names[:] = [name for name in names if name not in (*FOR_ADMINISTRATORS, "clone")]
    # Docker's list does not know clone3, so it fails with ENOSYS; the others fail with EPERM.
    refused = [name for name in FOR_ADMINISTRATORS if name != "clone3"]
    return {**profile, "syscalls": [
        *rules, {"names": refused, "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [
            {"index": 0, "value": NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]}]}


def of_this_apt() -> list[str]:
    """Flags for mmdebstrap with this machine's setting of apt that a mirror may be old."""
    option = "Acquire::Check-Valid-Until"
    said = subprocess.run(["apt-config", "dump", "--format", "%v", option], text=True,
                          capture_output=True, check=False).stdout.strip()
    return [f'--aptopt={option} "{said}"'] if said else []


def build(folder: Path, base: str | None) -> Outcome:
    """Build the image from the files of the last commit, on an image of Debian 12 (base)."""
    began = time.monotonic()
    if base is None:
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", *of_this_apt(), "bookworm",
                        str(folder / "base.tar")], check=True)
        podman("import", str(folder / "base.tar"), BASE)
        (folder / "base.tar").unlink()
    tree = folder / "tree"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{PROJECT}", str(tree)],
                   check=True)
    done = podman("build", *limits(), "--build-arg", f"BASE={base or BASE}", "--tag", IMAGE,
                  str(tree))
    wall_s = time.monotonic() - began
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines()
                if line.startswith(("install: ", "guest kernel: "))]
        return Outcome("the image is built", False, wall_s, " ".join(said[-3:]) or done.stderr)
    size_mb = int(podman("image", "inspect", "--format", "{{.Size}}", IMAGE).stdout) // 1_000_000
    return Outcome("the image is built", size_mb <= MOST_MB, wall_s, f"{size_mb} MB")


def try_out(containers: Containers, packetdrill: Path | None) -> list[Outcome]:
    """Run the commands that people use, and look at the owners of the files that they leave."""
    run, work = containers.run, containers.work
    (work / "script.py").write_text(SCRIPT)
    (work / "handshake.pkt").write_text(HANDSHAKE)
    outcomes = [run("one bucket", "zhao2019", "--rtt", "200", expected="16 of 16 trials verified")]
    first = next(work.glob("results/zhao2019/*/*.png"), None)
    outcomes += [
        Outcome("the first figure",
                first is not None and outcomes[0].wall_s <= MOST_FIRST_FIGURE_S,
                outcomes[0].wall_s, first.name if first else ""),
        run("zhao2019", "zhao2019", "--quiet", expected=SCENARIO),
        run("a Mininet script with Open vSwitch", "--", "python3", "script.py",
            expected="lost 0.0 %"),
        try_to_escape(containers)]
    if packetdrill:
        shutil.copy(packetdrill, work / "packetdrill")
        outcomes.append(run("packetdrill", "--", "sh", "-c",
                            "packetdrill handshake.pkt && echo it passed", expected="it passed"))
    owners = {path.lstat().st_uid for path in (*work.glob("results/**/*"), *work.glob("figures/*"))}
    figures = len(list(work.glob("figures/*.png")))
    return [*outcomes, Outcome("the files are the caller's", owners == {containers.owner}
                               and figures >= 3, 0.0, f"{figures} figures, of {owners}")]


def try_to_escape(containers: Containers) -> Outcome:
    """Run the test that tries ways out of a guest, with this machine's pytest."""
    outside = containers.work.parent / "pytest"
    outside.mkdir()
    for name in PYTEST:
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations:
            shutil.copytree(spec.submodule_search_locations[0], outside / name)
        elif spec and spec.origin:
            shutil.copy(spec.origin, outside)
    if not (outside / "pytest").exists():
        raise CannotError("no pytest: apt-get install python3-pytest")
    return containers.run(
        "ways out of a guest", "--chdir=/opt/first-flight", "/usr/bin/python3", "-m", "pytest",
        "-p", "no:cacheprovider", "tests/live/test_escape.py", expected=" passed",
        more=("--volume", f"{outside}:/opt/pytest:ro", "--env", "PYTHONPATH=/opt/pytest",
              "--volume", f"{PROJECT / 'tests'}:/opt/first-flight/tests:ro",
              "--entrypoint", "/usr/bin/env"))


if __name__ == "__main__":
    command.run("container", main)
