"""A command reads only public files of the machine, and is root in its guest.

The tests run as root and as another user.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.live.commands import needs_commands
from tests.live.conftest import PROJECT
from tests.running import run_program
from vtime import readable
from vtime.uml import find_kernel

pytestmark = needs_commands
ROOT, OTHER = 0, 54321  # a user whom passwd need not know
TOKEN = "a hidden thing"
NAME = "first-flight-test"

# Tries each file in each way, as root of the guest, and prints by which ways it was read. Then
# prints what else worked: writing to a file, the caller's environment, a server and a process of
# the machine.
ATTACK = r'''
import ctypes, json, os, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
ways, read = [], []

def owner(path):
    try:
        return os.stat(path).st_uid
    except OSError:
        return 1

def mount(kind, options, flags=0, source=b"none"):
    """A new mount; its folder, where nothing is mounted if that is refused."""
    mount.count += 1
    target = f"/m/{mount.count}"
    os.makedirs(target)
    libc.mount(source, target.encode(), kind, flags, options)
    return target
mount.count = 0

libc.mount(b"none", b"/", None, 32, None)
again = mount(b"hostfs", b"/")
self_root = mount(b"hostfs", b"/proc/self/root")
init_root = mount(b"hostfs", b"/proc/1/root")
from_cwd = mount(b"hostfs", b"/proc/self/cwd" + b"/.." * 30)
bound = mount(None, None, 4096 | 1 << 14, b"/")
bound_again = mount(None, None, 4096, again.encode())
over = mount(b"overlay", b"lowerdir=" + again.encode() + b":/usr/share")
os.symlink(again, "link-again")
os.symlink("/", "link")

def attempt(way, path):
    try:
        with open(path, "rb") as file:
            note(way, file.read())
    except OSError:
        note(way, b"")

def spawned(way, *words):
    note(way, subprocess.run(words, capture_output=True).stdout)

def note(way, content):
    ways.append(way)
    if content:
        read.append(way)

for number, path in enumerate(sys.argv[1:]):
    folder, name = os.path.split(path)
    roots = ("", again, self_root, init_root, from_cwd, bound, bound_again, over, "link-again",
             "link", "/proc/1/root", "/proc/self/root", f"/proc/{os.getppid()}/root",
             "/proc/1/cwd/../../..", "." + "/.." * 20, "/run/first-flight/../..",
             "/usr/local/../..", "/etc/../", "/mnt", "/usr")
    for root in roots:
        attempt(f"path {root}", root + path)
    for options in (folder, path, f"{folder}/.", f"/usr/..{folder}", f"/proc/self/root{folder}",
                    "/proc/self/cwd" + "/.." * 10 + folder, f"/proc/1/root{folder}"):
        attempt("hostfs " + options, f"{mount(b'hostfs', os.fsencode(options))}/{name}")
    attempt("bind", f"{mount(None, None, 4096, os.fsencode(again + folder))}/{name}")
    lower = os.fsencode("lowerdir=" + again + folder + ":/usr/share")
    attempt("overlay", f"{mount(b'overlay', lower)}/{name}")
    os.symlink(again + path, f"link{number}")
    attempt("link", f"link{number}")
    try:
        os.link(again + path, f"{again}{os.getcwd()}/hard")
    except OSError:
        pass
    attempt("hard link", f"{again}{os.getcwd()}/hard")
    spawned("chroot", "chroot", again, "/bin/cat", path)
    spawned("namespace", "unshare", "-Ur", "cat", again + path)
    spawned("nobody", "setpriv", "--reuid=65534", "cat", again + path)
    spawned("owner", "setpriv", f"--reuid={owner(again + path)}", "cat", again + path)
    print(json.dumps([path, len(ways), read]))
    ways.clear(), read.clear()

outside, port, process = (os.environ[name] for name in ("OUTSIDE", "PORT", "PROCESS"))
for way, act in (
        *((f"write {root}", lambda root=root: open(root + outside, "a").write("x"))
          for root in (again, self_root, init_root, from_cwd, bound_again, over)),
        ("environment", lambda: os.environ["SECRET_KEY"]),
        ("network", lambda: socket.create_connection(("127.0.0.1", int(port)), 2)),
        ("process", lambda: os.kill(int(process), 0))):
    try:
        act()
        read.append(way)
    except (OSError, KeyError):
        pass
print(json.dumps(["others", 0, read]))
'''


class Place:
    """A folder that every user can reach, with a home, and with the project for a user to run."""

    def __init__(self, uid: int) -> None:
        self.uid, self.path = uid, Path(tempfile.mkdtemp())
        self.path.chmod(0o755)
        self.home = self.path / "home"
        self.work = self.home / "work"
        self.work.mkdir(parents=True)
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh" / "id").write_text(TOKEN)
        self.project, cache = PROJECT, Path(os.environ.get("XDG_CACHE_HOME", "~/.cache"))
        if uid != os.geteuid():
            self.project = self.path / "project"
            self.project.mkdir()
            subprocess.run(["sh", "-c", 'tar -c --exclude="./.*" --exclude=./results'
                            ' --exclude=./figures . | tar -x -C "$0"', str(self.project)],
                           cwd=PROJECT, check=True)
            kernel = find_kernel("--mininet")
            assert kernel is not None
            cache = self.path / "cache"
            kernels = cache / "first-flight" / "kernel"
            shutil.copytree(kernel.parent, kernels / kernel.parent.name)
            (kernels / kernel.parent.name.partition("-")[0]).symlink_to(kernel.parent.name)
            (self.path / "bytecode").mkdir()
            subprocess.run(["chown", "-R", f"{uid}:{uid}", str(self.path)], check=True)
        self.environment = {**os.environ, "HOME": str(self.home),
                            "XDG_CACHE_HOME": str(cache.expanduser())}
        if uid != os.geteuid():  # the user cannot write to the usual cache of byte code
            self.environment["PYTHONPYCACHEPREFIX"] = str(self.path / "bytecode")

    def ran(self, *words: str, folder: Path | None = None, flags: tuple[str, ...] = (),
            **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ./run.sh -- words as the user, in a folder."""
        user = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups",
                "--"] if self.uid != os.geteuid() else []
        return run_program(
            [*user, str(self.project / "run.sh"), "--results", str(self.path / "results"), *flags,
             "--", *words], cwd=folder or self.work, env={**self.environment, **environment},
            stdin=subprocess.DEVNULL)


USERS = [ROOT, OTHER] if os.geteuid() == 0 else [os.geteuid()]


@pytest.fixture(scope="module", params=USERS, ids=[f"uid {uid}" for uid in USERS])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    made = Place(request.param)
    yield made
    shutil.rmtree(made.path)


@pytest.fixture
def hidden(place: Place) -> Iterator[list[str]]:
    """Files of the machine that no command may read. Root adds some of each kind."""
    with ExitStack() as stack:
        found = [str(place.home / ".ssh" / "id"), str(PROJECT / "results" / "README.md"), *(
            str(path) for path in sorted(Path("/etc").rglob("*"))
            if path.is_file() and not path.is_symlink() and not path.stat().st_mode & 0o004)]
        assert os.geteuid() != 0 or "/etc/shadow" in found
        if os.geteuid() == 0:
            for above in ("/usr/local", "/opt", "/srv", "/etc"):
                folder = Path(above, NAME)
                (folder / "closed").mkdir(parents=True)
                stack.callback(shutil.rmtree, folder)
                for name, mode in (("private", 0o600), ("closed/open", 0o644), ("open", 0o644)):
                    (folder / name).write_text(TOKEN)
                    (folder / name).chmod(mode)
                (folder / "closed").chmod(0o700)
                (folder / "link").symlink_to("closed/open")
                found += [f"{folder}/{name}" for name in ("private", "closed/open", "link")]
            link = Path("/etc", f"{NAME}-link")
            link.symlink_to(f"/opt/{NAME}/closed/open")
            stack.callback(link.unlink)
            found.append(str(link))
            for user in pwd.getpwall():  # a file in another user's home
                home = Path(user.pw_dir)
                if home in readable.homes() and user.pw_uid not in (0, place.uid):
                    file = home / NAME
                    file.write_text(TOKEN)
                    stack.callback(file.unlink)
                    found.append(str(file))
        yield found


def test_nothing_hidden_is_read_and_nothing_outside_is_reached(place: Place,
                                                               hidden: list[str]) -> None:
    """Root of the guest tries every way. The same ways do reach a file that everybody may read."""
    outside = place.path / "outside"
    outside.write_text("untouched")
    outside.chmod(0o666)
    with socket.create_server(("127.0.0.1", 0)) as server:
        told = {"OUTSIDE": outside, "PORT": server.getsockname()[1], "PROCESS": os.getpid()}
        done = place.ran("python3", "-c", ATTACK, *hidden, "/etc/passwd", SECRET_KEY="secret",
                         flags=tuple(word for name, value in told.items()
                                     for word in ("--env", f"{name}={value}")))
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert done.returncode == 0, done.stdout + done.stderr
    *closed, (_, count, ways), (_, _, others) = map(json.loads, done.stdout.splitlines())
    assert others == [] and outside.read_text() == "untouched"
    assert {path: read for path, _, read in closed if read} == {}
    assert [path for path, _, _ in closed] == hidden and count * len(hidden) > 100
    assert len(ways) > 25, ways
    if os.geteuid() == 0:
        done = place.ran("cat", *(f"{above}/{NAME}/open" for above in (
            "/usr/local", "/opt", "/srv", "/etc")))
        assert done.stdout == TOKEN * 4, done.stderr


def test_a_place_with_secrets_is_readable_only_if_it_is_named(place: Place) -> None:
    for folder in (place.home, place.home / ".ssh", Path("/etc"), Path("/etc/ssl")):
        done = place.ran("sh", "-c", "cat .ssh/id id shadow", folder=folder)
        assert (done.returncode, done.stdout) == (4, ""), done.stderr
        assert f"--readable {folder}" in done.stderr and done.stderr.count("\n") == 1
    done = place.ran("cat", "id", folder=place.home / ".ssh", flags=("--readable", "."))
    assert (done.returncode, done.stdout) == (0, TOKEN), done.stderr
    done = place.ran("cat", f"{place.home}/.ssh/id", flags=("--readable", f"{place.home}/.ssh"))
    assert (done.returncode, done.stdout) == (0, TOKEN), done.stderr
    (place.work / "notes").symlink_to("../.ssh")
    done = place.ran("cat", "notes/id", flags=("--readable", "notes"))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert f"leads to {place.home}/.ssh" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root comes to all homes")
def test_root_and_sudo_show_no_other_users_home(place: Place) -> None:
    homes = [user for user in pwd.getpwall() if Path(user.pw_dir) in readable.homes()
             and user.pw_uid != 0 and os.access(user.pw_dir, os.R_OK)]
    if not homes or place.uid != ROOT:
        pytest.skip("passwd names no home of another user" if not homes else "root does it")
    for user in homes:
        for more in ({}, {"SUDO_UID": str(user.pw_uid), "HOME": "/root"}):
            done = place.ran("ls", folder=Path(user.pw_dir), **more)
            assert (done.returncode, done.stdout) == (4, "") and "--readable" in done.stderr


SCRIPT = """\
from mininet.net import Mininet
net = Mininet(controller=None)
one, two = (net.addHost(name, privateDirs=["/var/log"]) for name in ("h1", "h2"))
one.cmd("echo private > /var/log/own")
print(one.cmd("cat /var/log/own"))
print(two.cmd("cat /var/log/own; mount -t tmpfs none /mnt && echo yes"))
net.stop()
"""


def test_set_id_programs_and_private_folders_work_as_for_root(place: Place) -> None:
    """In a user namespace the files of the machine's root would belong to nobody."""
    (place.work / "script.py").write_text(SCRIPT)
    done = place.ran("sh", "-c", """
        mount -t tmpfs none /mnt && touch /mnt/file && umount /mnt && echo mounted
        stat -c '%U %G %n' /etc/passwd /usr/bin/mount /bin/su /
        su nobody -s /bin/sh -c 'id -un; su root -c true </dev/null 2>&1 | grep -c assword'
        setpriv --reuid=65534 --regid=65534 --clear-groups chsh --help | head -1
        chown nobody /usr/bin/env && stat -c %U /usr/bin/env
        python3 script.py""")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:5] == [
        "mounted", "root root /etc/passwd", "root root /usr/bin/mount", "root root /bin/su",
        "root root /"], done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[5] == "nobody", done.stdout + done.stderr
    assert "nobody" in lines[6:]  # the owner of env after chown
    assert [line.strip() for line in lines if "private" in line] == ["private"], done.stdout
    assert "No such file" in done.stdout and "yes" in done.stdout
