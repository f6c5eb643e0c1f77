"""./run.sh -- COMMAND refuses forged files and messages; waits without sleep are exact.

A command can forge the frames of the guest's first process through /proc/1/fd. The machine counts
what is allowed, and a wrong entry loses only itself.
A wait without sleep has the same number of rounds in every run. A round takes some 10 µs of real
time, so a second of virtual time with 200,000 rounds would take two.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.commands import Ended, begun, kept_of, needs_commands, typed
from tests.live.conftest import PROJECT
from tests.running import HANGS_S, mounts_a_disk, run_program, small_disk
from vtime.command import frames

pytestmark = needs_commands
# This runs in the guest. It opens the file of frames, and `send` appends frames for the machine.
FORGE = f"""
import os, struct, sys, time
HEAD, ENTRY = struct.Struct({frames._HEAD.format!r}), struct.Struct({frames._ENTRY.format!r})
at = {{os.readlink(f"/proc/1/fd/{{n}}"): f"/proc/1/fd/{{n}}" for n in os.listdir("/proc/1/fd")
      if os.path.exists(f"/proc/1/fd/{{n}}")}}
out = os.open(at["/frames"], os.O_WRONLY | os.O_APPEND)
def frame(kind, content=b""):
    return HEAD.pack(kind, 1, len(content)) + content
def file(name, content=b"forged", size=None, mode=0o644, time_ns=0):
    size = len(content) if size is None else size
    return frame(b"f", ENTRY.pack(b"r", mode, time_ns, size) + name + b"\\0") + frame(b"d", content)
def link(name, target):
    return frame(b"f", ENTRY.pack(b"l", 0, 0, 0) + name + b"\\0" + target)
def send(*frames):
    data = b"".join(frames)
    while data:
        data = data[os.write(out, data):]
send(frame(b"x", b"0"))
"""


@pytest.fixture(name="work")
def home_with_links(tmp_path: Path) -> Iterator[Path]:
    """A folder in a home, with links to files of the home, which have to stay as they are."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".bashrc").write_text("mine")
    (home / ".ssh" / "authorized_keys").write_text("mine")
    work = home / "work"
    work.mkdir()
    (work / "keys").symlink_to("../.ssh")
    (work / "bashrc").symlink_to("../.bashrc")
    yield work
    assert (home / ".bashrc").read_text() == "mine", "the home was written to"
    assert (home / ".ssh" / "authorized_keys").read_text() == "mine"
    assert sorted(os.listdir(home)) == [".bashrc", ".ssh", "work"]
    assert os.listdir(home / ".ssh") == ["authorized_keys"]


def test_write_back_replaces_links_and_follows_none(work: Path) -> None:
    ended = Ended(work, "sh", "-c", "rm keys; mkdir keys; echo KEY > keys/authorized_keys;"
                  " rm bashrc; echo x > bashrc; ln -s . self; touch -d @9223372036854775807 late;"
                  " printf 'x' > \"$(printf 'a\\nb')\"; echo last > z", flags=("--write-back",))
    assert (work / "keys/authorized_keys").read_text() == "KEY\n"
    assert (work / "bashrc").read_text() == "x\n" and os.readlink(work / "self") == "."
    assert (work / "late").exists() and (work / "z").read_text() == "last\n"
    assert "control character" in ended.err and ended.status == 0, ended.err


@pytest.mark.parametrize(("forged", "flags", "said", "status"), [
    ("send(*[frame(b'!', b'm' * 100)] * 50000, *[frame(b'x', b'0')] * 100000)", (),
     "more such lines",
     0),
    ("send(*(file(name) for name in (b'../up', b'/etc/passwd', b'keys/k', b'a\\x1bb')),"
     " link(b'l', b'../../.ssh'), link(b'm', b'/etc/passwd'))", (), "leads elsewhere", 1),
    ("for _ in range(200): send(*[frame(b'n', b'1 2 name\\n' * 500)] * 20)", (),
     "more than 1000 network namespaces", 0),
    ("send(b'no frame at all.')", (), "the message is not a frame", 1),
    ("send(frame(b'f', b'no head'))", (), "not the head of a file", 1),
    ("file = open(at['/'] + '/evil', 'wb')\nwhile True: file.write(bytes(1 << 20))",
     ("--limit", "1M"), "more into its folder than --limit", 1)])
def test_forged_frames_of_a_command_are_refused_or_limited(
        work: Path, forged: str, flags: tuple[str, ...], said: str, status: int) -> None:
    """tests/unit/commands/test_received.py has other frames that are refused."""
    (work / "forge.py").write_text(FORGE + forged)
    ended = Ended(work, "python3", "forge.py", flags=("--write-back", *flags))
    assert said in ended.err and ended.status == status, ended.err
    assert "Traceback" not in ended.err and "internal error" not in ended.err
    assert json.loads((ended.kept / "command.json").read_text())["status"] in (0, 1)
    assert not list(ended.kept.rglob(".guest"))


def test_a_forged_capture_is_cut_to_its_limit(work: Path) -> None:
    (work / "forge.py").write_text(
        FORGE + "with open(at['/'] + '/capture.pcapng', 'wb') as f: f.truncate(200_000_000)")
    ended = Ended(work, "python3", "forge.py", flags=("--capture", "1M"))
    assert (ended.kept / "capture.pcapng").stat().st_size < 1_100_000
    assert "the guest wrote more than --capture allows" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("forged", ["os.mkdir(at['/'] + '/capture.pcapng')", ""])
def test_a_capture_that_the_guest_removed_is_reported(work: Path, forged: str) -> None:
    (work / "forge.py").write_text(FORGE + f"os.remove(at['/'] + '/capture.pcapng')\n{forged}")
    ended = Ended(work, "sh", "-c", "python3 forge.py; echo x > r.txt", flags=("--capture",))
    assert ended.status == 1 and "capture.pcapng: the guest removed it" in ended.err, ended.err
    assert len(ended.err.splitlines()) == 2 and "internal error" not in ended.err
    assert (ended.kept / "files" / "r.txt").exists() and (ended.kept / "command.json").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_receiving_of_an_endless_file(work: Path, number: int) -> None:
    (work / "forge.py").write_text(
        FORGE + "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('up', flush=True)\nsend(file(b'first'), file(b'big', b'', size=1 << 50))\n"
        "while True: send(frame(b'd', bytes(1000))); time.sleep(1e-4)")
    with begun(work, "python3", "forge.py") as process:
        assert process.stdout.readline() == b"up\n"
        until = time.monotonic() + HANGS_S  # signals that come at once count as one
        while process.poll() is None and time.monotonic() < until:
            process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
        process.kill()  # a process that heeds no signal would be waited for
        assert process.returncode in (130, 143)
        assert "Traceback" not in process.stderr.read().decode()
    assert not (kept_of(work) / "files" / "big").exists()


def test_a_timeout_ends_the_receiving_of_an_endless_file(work: Path) -> None:
    (work / "forge.py").write_text(
        FORGE + "send(file(b'first'), file(b'big', b'', size=1 << 50))\n"
        "while True: send(frame(b'd', bytes(1000))); time.sleep(1e-4)")
    for wall_s in (2, 8, 30):  # longer if the guest of a busy machine had not begun by then
        ended = Ended(work, "python3", "forge.py", flags=("--timeout", f"1h,{wall_s}"))
        if (ended.kept / "files" / "first").exists():
            break
    assert ended.status == 124 and (ended.kept / "files" / "first").read_text() == "forged"
    assert not (ended.kept / "files" / "big").exists(), ended.err


def test_a_commands_files_are_saved_where_its_output_cannot_be_printed(work: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(typed(work / "results", "sh", "-c", "echo hi; echo x > r.txt"),
                              cwd=work, stdout=full, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False, timeout=HANGS_S)
    assert done.returncode == 1 and b"cannot be passed on: No space left" in done.stderr
    kept = kept_of(work)
    assert (kept / "files" / "r.txt").read_text() == "x\n"
    assert b"out hi\n" in (kept / "output.txt").read_bytes()


@mounts_a_disk
def test_writing_back_to_a_full_disk_keeps_the_old_file_and_all_that_fits(work: Path) -> None:
    with small_disk(work, "size=1m"):
        (work / "old").write_text("as before")
        ended = Ended(work, "sh", "-c", "echo a > a; head -c 5M /dev/zero > old; echo z > z",
                      flags=("--write-back",), results=work.parent.parent / "r")
        assert ended.status == 1 and "old: No space left on device" in ended.err
        assert (work / "old").read_text() == "as before" and (work / "z").read_text() == "z\n"
        assert sorted(os.listdir(work)) == ["a", "old", "z"]


def test_four_concurrent_commands_write_back_into_one_folder(work: Path) -> None:
    """Each command needs other temporary names than the other ones."""
    running = [subprocess.Popen(typed(
        work.parent.parent / "r", "sh", "-c", f"for n in $(seq 50); do echo {number} > f$n; done;"
        f" echo {number} > g{number}", flags=("--write-back",)), cwd=work,
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for number in range(4)]
    assert [process.wait(HANGS_S) for process in running] == [0] * 4
    assert {(work / f"f{number}").read_text() for number in range(1, 51)} <= {
        f"{number}\n" for number in range(4)}
    assert all((work / f"g{number}").read_text() == f"{number}\n" for number in range(4))
    assert not list(work.glob(".first-flight*"))


@mounts_a_disk
def test_files_that_a_full_disk_of_results_loses_are_reported(work: Path) -> None:
    """The guest's folder is on the same disk, so the guest cannot even send all files.

    On a busy machine it has filled the disk before its first file is received.
    """
    with small_disk(results := work.parent.parent / "r", "size=3m"):
        ended = Ended(work, "sh", "-c", "echo a > a; head -c 9M /dev/urandom > big; echo z > z",
                      results=results)
        assert ended.status == 1 and "No space left on device" in ended.err, ended.err
        for name in ("a", "z"):  # there is room for z if all files before were received
            kept = ended.kept / "files" / name
            assert ("the guest did not hand over all" in ended.err
                    or f"{name}: No space" in ended.err or kept.read_text() == f"{name}\n")
        assert not (ended.kept / "files" / "big").exists()


# Programs that wait without sleeping --------------------------------------------------

SPINS = """\
import mmap, os, select, sys, time

def waited(kind, seconds):
    '''Rounds of a wait for a child that sleeps so long; seconds by which it was late.'''
    began, rounds = time.monotonic(), 0
    ended = mmap.mmap(-1, 4096)
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        os.close(readable)
        time.sleep(seconds)
        ended[0] = 1
        os._exit(0)
    os.close(writable)
    os.set_blocking(readable, False)
    null = os.open("/dev/null", os.O_RDWR)
    poller, of_null = select.poll(), select.poll()
    poller.register(readable, select.POLLIN)
    of_null.register(null, select.POLLIN)

    def again():
        try:
            return not os.read(readable, 1)
        except BlockingIOError:
            return False

    def like_mn():  # its command line whose input has ended
        of_null.poll()
        os.write(null, os.read(null, 1))
        return ended[0]
    is_over = {
        "select": lambda: select.select([readable], [], [], 0)[0],
        "poll": lambda: poller.poll(0),
        "again": again,
        "end of file": lambda: os.read(null, 1) or ended[0],
        "mn": like_mn,
        "yield": lambda: os.sched_yield() or ended[0],
        "wait": lambda: os.waitpid(child, os.WNOHANG)[0],
        "clock": lambda: time.monotonic() >= began + seconds,
        "file": lambda: os.path.exists("/none") or ended[0],
        "data": lambda: os.write(null, b"x") and ended[0]}[kind]
    while not is_over():
        rounds += 1
    late_s = time.monotonic() - began - seconds
    if kind != "wait":
        os.waitpid(child, 0)
    for descriptor in (readable, null):
        os.close(descriptor)
    return rounds, late_s

for kind in sys.argv[3:]:
    found = [waited(kind, float(sys.argv[2])) for _ in range(int(sys.argv[1]))]
    print(kind, sum(rounds for rounds, _ in found), max(late for _, late in found), sep=",")
"""
ASKS = ("select", "poll", "again", "end of file", "mn", "yield", "wait")  # calls that move no data


def spun(folder: Path, count: int, seconds: float, *kinds: str) -> dict[str, tuple[int, float]]:
    """By kind of wait: the rounds of `count` waits, and how late the latest was, in seconds."""
    (folder / "spins.py").write_text(SPINS)
    done = run_program(
        [PROJECT / "run.sh", "--results", folder.parent / "results", "--quiet", "--", "python3",
         "spins.py", str(count), str(seconds), *kinds], cwd=folder, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert "python3 spins: it waits without sleeping" in done.stderr
    lines = [line.split(",") for line in done.stdout.splitlines()]
    return {kind: (int(rounds), float(late)) for kind, rounds, late in lines}


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def test_a_long_wait_takes_few_rounds_and_is_not_late(folder: Path) -> None:
    found = spun(folder, 1, 3, *ASKS, "clock", "file", "data")
    for kind in ASKS:
        rounds, late_s = found[kind]
        assert rounds < 30_000 and 0 <= late_s < 0.0015, (kind, rounds, late_s)
    assert found["clock"][0] < 55_000 and 0 <= found["clock"][1] < 0.0015
    # Only 100,000 calls of these show that a program waits and does not work.
    for kind, most in (("file", 180_000), ("data", 450_000)):
        assert found[kind][0] < most and 0 <= found[kind][1] < 0.0015, (kind, found[kind])


def test_many_short_waits_take_few_rounds_and_are_not_late(folder: Path) -> None:
    found = spun(folder, 20, 0.1, "select", "mn", "clock")
    for kind in ("select", "mn"):
        rounds, late_s = found[kind]
        assert rounds < 120_000 and 0 <= late_s < 0.0015, (kind, rounds, late_s)
    assert found["clock"][0] < 300_000 and 0 <= found["clock"][1] < 0.0015


def test_mininet_whose_input_has_ended_waits_for_its_hosts(folder: Path) -> None:
    done = run_program(
        [PROJECT / "run.sh", "--results", folder.parent / "results", "--", "mn", "--topo",
         "single,2", "--switch", "lxbr", "--controller", "none"], cwd=folder,
        input="h1 sleep 10\nh2 date +%S.%3N\nexit\n")
    assert done.returncode == 0, done.stderr
    assert "completed in 10." in done.stderr + done.stdout and "mn spins" in done.stderr
