"""What a build may do and use behind its wall (vtime/kernel/wall.py), by processes that try it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.programs.engines.test_confine import TRY, called
from tests.running import HANGS_S, run_program, wait_until
from vtime.kernel import behind, wall

NOBODY = 65534
PYTHON = "/usr/bin/python3"
WALL = [PYTHON, "-I", str(PROJECT / "vtime" / "kernel" / "wall.py")]
AROUND, LACKING = wall.around()
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"not confined here: {LACKING}")


class Walled:
    """A build's folder `own`, with two files outside: `beside` is secret, `read` may be read.

    All belong to the same user, who runs the build.
    """

    def __init__(self, place: Path, user: int) -> None:
        self.own, self.beside, self.read = place / "own", place / "beside", place / "read"
        self.own.mkdir()
        for path in (self.beside, self.read):
            path.write_text("a secret")
            path.chmod(0o600)
        for path in (place, *place.iterdir()):
            os.chown(path, user, user)
        self.user = [] if user == os.geteuid() else [
            "setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"]
        self.before = seen(place, self.own)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command behind the wall."""
        return run_program([*self.user, *WALL, AROUND, "--write", self.own, "--read", self.read,
                            "--", *command], cwd=self.own)

    def attempts(self, *words: str) -> dict[str, list[str]]:
        """Evaluate Python expressions behind the wall, as test_confine.attempts does."""
        # Into a file, since the wall cuts what a build prints.
        done = self.run("sh", "-c", 'exec "$@" >told', "sh", PYTHON, "-I", "-S", "-c", TRY,
                        json.dumps(words))
        assert done.returncode == 0, done.stdout + done.stderr
        told: dict[str, list[str]] = json.loads((self.own / "told").read_text())
        return told

    def is_untouched(self) -> bool:
        """Whether nothing outside the build's folder has changed."""
        return seen(self.own.parent, self.own) == self.before


def seen(folder: Path, but: Path) -> dict[str, object]:
    """The state of each file in a folder, without those in the folder `but` and Python's caches."""
    states: dict[str, object] = {}
    for path in folder.rglob("*"):
        if path.is_relative_to(but) or "__pycache__" in str(path):
            continue
        state = path.lstat()
        if path.is_dir():
            states[str(path)] = (state.st_mode, state.st_uid)
        else:
            # Mode, inode, device, links and owner; and when it was changed to what.
            content = path.read_bytes() if path.is_file() else b""
            states[str(path)] = (*state[:6], state.st_mtime_ns, content)
    return states


@pytest.fixture(params=[os.geteuid(), *([NOBODY] if os.geteuid() == 0 else [])])
def walled(request: pytest.FixtureRequest) -> Iterator[Walled]:
    """The user is the one who runs the test; for root also another one."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    try:
        yield Walled(place, request.param)
    finally:
        shutil.rmtree(place)


def test_a_build_behind_the_wall_may_do_what_it_needs(walled: Walled) -> None:
    program = "int main(void) { return 0; }"
    told = walled.attempts(
        "open('mine', 'w').write('x')", "os.mkdir('within')", "os.symlink('mine', 'link')",
        "os.mkfifo('pipe')", "os.link('mine', 'within/hard')", "os.rename('mine', 'within/mine')",
        "os.chmod('within/mine', 0o755)", "os.utime('within/mine', (1, 1))",
        "os.truncate('within/mine', 0)", f"open({str(walled.read)!r}).read()",
        "open('/dev/null', 'w').write('x')", "open('/dev/urandom', 'rb').read(8)",
        "__import__('tempfile').mkdtemp()",
        "__import__('fcntl').lockf(os.open('locked', os.O_CREAT | os.O_RDWR), 2)",
        f"len(open({str(PROJECT / 'vtime' / 'kernel' / 'cc.sh')!r}).read())")
    assert {words: said for words, said in told.items() if said[0] != "done"} == {}
    compiled = walled.run("sh", "-c", f"echo '{program}' | gcc -x c - -o it && ./it && echo a |"
                          " cat /dev/stdin; exit 7")
    assert (compiled.returncode, compiled.stdout) == (7, "a\n")
    assert walled.is_untouched()


def test_a_build_behind_the_wall_is_refused_all_else(walled: Walled) -> None:
    beside, read, above = str(walled.beside), str(walled.read), str(walled.own.parent)
    with socket.create_server(("127.0.0.1", 0)) as server, \
            tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as service:
        os.chmod(folder, 0o755)
        service.bind(f"{folder}/socket")
        os.chmod(f"{folder}/socket", 0o777)
        service.listen()
        told = walled.attempts(
            f"open({beside!r}).read()", f"open({beside!r}, 'a')", f"open({read!r}, 'a')",
            f"os.open({read!r}, os.O_RDONLY | os.O_TRUNC)", f"os.truncate({read!r}, 0)",
            *(f"{act}({path!r}{more})" for path in (beside, read, above) for act, more in (
                ("os.chmod", ", 0o777"), ("os.utime", ", (1, 1)"), ("os.unlink", ""),
                ("os.rename", ", 'mine'"), ("os.chown", f", {walled.own.stat().st_uid}, -1"),
                ("os.setxattr", ", 'user.mine', b'1'"))),
            f"os.link({read!r}, 'mine')", f"open({above!r} + '/new', 'w')",
            f"os.mkdir({above!r} + '/new')", f"os.symlink('mine', {above!r} + '/new')",
            f"os.symlink({above!r}, 'up') or open('up/new', 'w')",
            "os.chmod('up/beside', 0o777)", "os.listdir('up')",
            "open('/tmp/mine', 'w')", "open('/dev/shm/mine', 'w')", "open('/var/tmp/mine', 'w')",
            "open('/etc/shadow').read()", "os.listdir('/root')", "os.listdir('/home')",
            "os.listdir('/')", f"os.listdir({above!r})", "os.listdir('/proc')",
            "open('/proc/self/environ').read()", f"open('/proc/{os.getpid()}/environ').read()",
            f"open('/proc/self/root{beside}').read()", f"open('/proc/{os.getpid()}/cwd/x', 'w')",
            "open('/proc/sysrq-trigger', 'w')", "open('/proc/sys/kernel/hostname', 'w')",
            "open('/dev/tty', 'w')", "open('/dev/kmsg', 'w')", "open('/dev/mem', 'rb')",
            *(f"open('/dev/{name}', 'rb').read(1)" for name in os.listdir("/sys/block")),
            "os.mknod('mine', 0o20666, os.makedev(1, 1))",
            "os.mknod('mine', 0o60666, os.makedev(254, 0))", "os.mknod('mine', 0o140600)",
            "os.mknod('mine', 0o104755)", "os.chmod('.', 0o4755)", "os.chmod('.', 0o2755)",
            "os.close(os.open('setuid', os.O_CREAT | os.O_WRONLY, 0o6777))",
            "os.fchmod(os.open('.', os.O_RDONLY), 0o6777)", "os.fchmod(1, 0o4777)",
            f"os.kill({os.getpid()}, 0)", "os.kill(1, 0) or os.kill(2, 0)",
            f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))",
            "socket.socket()", "socket.socket(socket.AF_UNIX)", "socket.socket(socket.AF_NETLINK)",
            f"socket.socket(socket.AF_UNIX).connect('{folder}/socket')", "os.setuid(1)",
            "os.chroot('.')", "os.sched_setaffinity(1, [0]) or os.nice(-5)",
            # Memory that counts as nobody's, and locks that others would wait for.
            "socket.socketpair()", "__import__('fcntl').fcntl(os.open('.', os.O_RDONLY), 1026, 4)",
            f"__import__('fcntl').fcntl(os.open({read!r}, os.O_RDONLY), 1024, 0)",
            f"[os.open('/dev/null', os.O_RDONLY) for _ in range({behind.MOST_OPEN})]")
    assert {words: said for words, said in told.items() if said[0] != "refused"} == {}
    assert walled.is_untouched()


# The numbers of mount, umount2, pivot_root, unshare, setns, open_tree, fsopen, mount_setattr;
# ptrace, process_vm_readv, process_vm_writev, pidfd_getfd; io_uring_setup, bpf, perf_event_open,
# userfaultfd; add_key, keyctl; init_module, kexec_load, reboot, syslog, settimeofday, swapon,
# sethostname; name_to_handle_at, open_by_handle_at, mq_open; shmget, semget, msgget.
NUMBERS = (165, 166, 155, 272, 308, 428, 430, 442, 101, 310, 311, 438, 425, 321, 298, 323, 248, 250,
           175, 246, 169, 103, 164, 167, 170, 303, 304, 240, 29, 64, 68)


def test_no_system_call_reaches_around_the_wall(walled: Walled) -> None:
    """Neither does a call by its x32 number, nor clone (56) with a new namespace."""
    x32 = 1 << 30
    words = {called(number + more, -1, 0, 0, 0): number for number in NUMBERS
             for more in (0, x32)} | {
        called(56, flag | 17, 0, 0, 0, 0): flag for flag in (
            0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)}
    told = walled.attempts(*words)
    assert {words[tried]: said for tried, said in told.items() if said[1] != "(-1, 1)"} == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to lose")
def test_root_keeps_no_capability_behind_the_wall(walled: Walled) -> None:
    told = walled.attempts(*(f"ctypes.CDLL(None).prctl(23, {number}, 0, 0, 0) or"
                             f" ctypes.CDLL(None).prctl(47, 1, {number}, 0, 0)"
                             for number in range(41)))
    assert {said[1] for said in told.values()} == {"0"}


def test_a_build_inherits_neither_environment_nor_open_files(
        walled: Walled, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LD_PRELOAD", "CC", "MAKEFLAGS", "BASH_ENV", "PYTHONPATH", "A_SECRET"):
        monkeypatch.setenv(name, "")
    told = walled.attempts("sorted({*os.environ} - {'LC_CTYPE', 'PWD'})", "os.getcwd()",
                           *(f"os.fstat({number})" for number in range(3, 20)))
    environment, place, *files = told.values()
    assert environment[1] == "['HOME', 'LC_ALL', 'PATH', 'TMPDIR']"
    assert place[1] == repr(str(walled.own)) and {said[0] for said in files} == {"refused"}


def test_every_process_of_a_build_ends_with_it(walled: Walled) -> None:
    """It ends even if it has left its process group, and if the wall itself is killed."""
    daemon = "exec 5>alive; trap '' TERM; touch begun; sleep 1000"
    for end in ("exit 3", "sleep 1000"):
        pipe = walled.own / "alive"
        os.mkfifo(pipe)
        pipe.chmod(0o666)
        alive = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        process = subprocess.Popen(
            [*walled.user, *WALL, AROUND, "--write", walled.own, "--", "sh", "-c",
             f'setsid sh -c "{daemon}" >/dev/null 2>&1 &'
             f" while [ ! -e begun ]; do sleep 0.01; done; {end}"])
        if end == "exit 3":
            assert process.wait(HANGS_S) == 3
        else:
            wait_until((walled.own / "begun").exists, "its start")
            process.kill()
            process.wait(HANGS_S)
        os.set_blocking(alive, True)
        assert os.read(alive, 1) == b"", "a process is left that has the pipe open"
        os.close(alive)
        for name in ("alive", "begun"):
            (walled.own / name).unlink()


@pytest.mark.parametrize("words", [["--print"], [AROUND]])
def test_ctrl_c_ends_the_wall_without_a_word(words: list[str]) -> None:
    with subprocess.Popen([*WALL, *words, "--", "sh", "-c", "echo begun; exec sleep 1000"],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(HANGS_S) == -signal.SIGINT and process.stderr.read() == ""


FORKS = ("import os, time\nfor _ in range({}): os.fork() or time.sleep(1000)\n"
         "time.sleep(1000)")
HOLDS = "held = b'x' * ({} << 20); import time; time.sleep(1000)"
SHARES = ("import mmap, time\nheld = mmap.mmap(-1, {0} << 20)\n"
          "for page in range(0, {0} << 20, 4096): held[page] = 1\ntime.sleep(1000)")
PIPES = "import os, time\nheld = [os.pipe() for _ in range(1000)]\ntime.sleep(1000)"
WRITES = ("import os, time\nos.mkdir('far')\nopen('far/large', 'wb').write(bytes({} << 20))\n"
          "os.chmod('far', {})\ntime.sleep(1000)")
THREADS = ("import threading, time\nfor _ in range(50):\n"
           "    threading.Thread(target=time.sleep, args=(1000,)).start()")
MAKES = "import time\nfor name in range({}): open(str(name), 'w').close()\ntime.sleep(1000)"


@pytest.mark.parametrize("name, least, command, told", [
    ("behind.MOST_PROCESSES", 8 - 32 * (os.cpu_count() or 1), FORKS.format(20),
     "processes, and needs 8"),
    ("behind.MOST_PROCESSES", 40 - 32 * (os.cpu_count() or 1), THREADS,
     "processes, and needs 40"),
    ("MOST_MB", 100 - 1024 * (os.cpu_count() or 1), HOLDS.format(200), "MB of memory, and"),
    ("MOST_MB", 100 - 1024 * (os.cpu_count() or 1), SHARES.format(200), "MB of memory, and"),
    ("watch.MORE_PIPES", 100 - 8 * (256 + 32 * (os.cpu_count() or 1)), PIPES, "pipes, and needs"),
    ("MOST_DISK_MB", 50, WRITES.format(100, 0o755), "MB in"),
    ("MOST_DISK_MB", 50, WRITES.format(100, 0), "MB in"),
    ("MOST_FILES", 1000, MAKES.format(2000), "files, and needs"),
    ("LEAST_FILES", 1 << 60, HOLDS.format(1), "No space left on device"),
    ("LEAST_DISK_MB", 1 << 40, HOLDS.format(1), "No space left on device")])
def test_a_build_that_takes_too_much_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                              capfdbinary: pytest.CaptureFixture[bytes], name: str,
                                              least: int, command: str, told: str) -> None:
    monkeypatch.setattr(f"vtime.kernel.wall.{name}", least)
    status = wall.run(AROUND, [str(tmp_path)], [], [PYTHON, "-c", command])
    assert status == 128 + signal.SIGKILL and told in capfdbinary.readouterr().out.decode()


def test_a_build_has_a_limit_of_processes(walled: Walled) -> None:
    """The limit holds between two looks of the watcher. Linux does not apply it to root."""
    if not walled.user and os.geteuid() == 0:
        pytest.skip("root is spared")
    done = walled.run(PYTHON, "-c", "import resource; print(*resource.getrlimit(6))")
    assert done.stdout == f"{2 * behind.most_processes()} {2 * behind.most_processes()}\n"


@pytest.mark.parametrize("printed, shown", [
    (r"\033[31mred\033[0m\ttab", "�[31mred�[0m    tab\n"), (r"no end", "no end\n"),
    (r"\302\233 \342\200\256x \377", "� �x �\n"), (r"a\rb\nc\0d", "a�b\nc�d\n")])
def test_a_builds_output_becomes_printable_lines(printed: str, shown: str) -> None:
    done = run_program([*WALL, "--print", "--", "printf", printed])
    assert done.stdout == shown


def test_a_builds_long_lines_and_long_output_are_cut() -> None:
    """So the log of a build does not fill the disk."""
    long = b"".join(wall.printable(iter([b"x" * 50_000, b"y" * 50_000, b"\nshort\n"])))
    assert long.decode() == "x" * wall.MOST_LINE + "…\nshort\n"
    line = b"x" * 999 + b"\n"
    many = [len(lines) for lines in wall.printable(iter([line * 100] * 400))]
    assert wall.MOST_OUTPUT <= sum(many) < wall.MOST_OUTPUT + 100


def test_a_machine_without_a_wall_is_reported_with_what_it_lacks(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall, "_works", lambda name, folder: False)
    place, lacking = wall.around()
    assert place == behind.NONE and "modes, times" in lacking and "namespaces" in lacking
    monkeypatch.setattr(wall.confine, "lacking", lambda: "Landlock")
    assert "what it reads and writes" in wall.around()[1]
