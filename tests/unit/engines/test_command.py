"""Commands in a guest: their output, their end, packetdrill."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from firstflight.base import PROJECT
from firstflight.commands.virtual.command import show_end
from tests.running import run_program
from vtime import Result, session, shared_folder
from vtime.command import first_flight_calls, guest, in_place, inside
from vtime.command.beginning import beginning_s
from vtime.command.frames import (CONTENT, ENTRY, ERROR, MOST_BYTES, OUTPUT, Entry, Frame, Outlet,
                                  Reader, Room)
from vtime.command.guest import CommandOutcome, environment_of
from vtime.command.processes import session_processes
from vtime.command.terminal import in_foreground
from vtime.request import CommandRequest
from vtime.session import OutputFile


FRAMES = [Frame(OUTPUT, 5, b"one\n"), Frame(ERROR, 7, b""), Frame(OUTPUT, 9, bytes(range(256)))]


@pytest.mark.parametrize("size", [1, 3, 12, 13, 14, 1000])
def test_frames_are_whole_in_pieces_of_any_size(size: int) -> None:
    sent, reader = b"".join(frame.packed() for frame in FRAMES), Reader()
    pieces = [sent[place:place + size] for place in range(0, len(sent), size)]
    assert [frame for piece in pieces for frame in reader.read(piece)] == FRAMES


@pytest.mark.parametrize("hostile", [
    b"?" + bytes(12), Frame(OUTPUT, 1, bytes(MOST_BYTES + 1)).packed(), bytes(20)])
def test_what_is_no_frame_is_refused(hostile: bytes) -> None:
    with pytest.raises(ValueError, match="not a frame"):
        list(Reader().read(hostile))


def test_a_command_has_a_list_of_the_environment_and_what_was_named(tmp_path: Path) -> None:
    request = CommandRequest(["true"], tmp_path, environment={"MODE": "fast"}, seed=7)
    had = {"LANG": "C.UTF-8", "LC_TIME": "C", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": "/root",
           "SSH_AUTH_SOCK": "/tmp/agent", "PATH": "/opt/bin:/usr/bin"}
    made = environment_of(request, had)
    assert (made["LANG"], made["LC_TIME"], made["MODE"]) == ("C.UTF-8", "C", "fast")
    assert made["HOME"] == inside.HOME and made["PYTHONHASHSEED"] == "7"
    assert made["PYTHONDONTWRITEBYTECODE"] == "1"  # no .pyc among the files that it wrote
    assert "secret" not in made.values() and "SSH_AUTH_SOCK" not in made
    # The distribution's programs first, since Mininet lives with its Python.
    assert made["PATH"].split(":")[-1] == "/opt/bin" and made["PATH"].count("/usr/bin") == 1


def test_namespaces_that_a_guest_names_are_counted_here() -> None:
    """Root in the guest can send as many frames as it likes, each with thousands of names."""
    outcome = guest.CommandOutcome()
    outcome.keep_namespaces(b"1 2 h1\n3 4 h2\n")
    assert outcome.namespaces == ["1 2 h1", "3 4 h2"] and not outcome.troubles
    for _ in range(3):
        outcome.keep_namespaces(b"\n".join([b"5 6 " + b"x" * 9000] * 900))
    assert len(outcome.namespaces) == guest.MOST_NAMESPACES and len(outcome.troubles) == 1
    assert max(map(len, outcome.namespaces)) < 400


# What it wrote -----------------------------------------------------------------------

def sent_of(folder: Path, most_bytes: int = 1000, most_files: int = 100
            ) -> tuple[dict[bytes, tuple[Entry, bytes]], list[str]]:
    """Entries by name with their content, and lines."""
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    entries: dict[bytes, tuple[Entry, bytes]] = {}
    lines: list[str] = []

    def send(kind: bytes, content: bytes) -> None:
        if kind == ENTRY:
            entry = Entry.read(content)
            entries[entry.name] = (entry, b"")
        elif kind == CONTENT:
            name, (entry, before) = next(reversed(entries.items()))
            entries[name] = (entry, before + content)
        else:
            lines.append(content.decode())
    try:
        inside.send_written(above, Room(most_bytes, most_files), send)
    finally:
        os.close(above)
    return entries, lines


def test_files_and_links_are_sent_each_folder_before_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / "b" / "deep" / "file").write_text("content")
    (tmp_path / "a").write_text("first")
    os.utime(tmp_path / "a", ns=(0, 123_456_789_012))
    os.link(tmp_path / "a", tmp_path / "z")
    (tmp_path / "link").symlink_to("b/deep")
    os.mkfifo(tmp_path / "pipe")
    entries, lines = sent_of(tmp_path)
    assert list(entries) == [b"a", b"b", b"link", b"z", b"b/deep", b"b/deep/file"]
    assert entries[b"z"][1] == b"first"  # a file of its own
    assert entries[b"a"][0].modified_ns == 123_456_789_012
    assert entries[b"link"][0].target == b"b/deep"
    assert lines == ["pipe: neither a file nor a folder"]


def test_what_is_beyond_the_limits_is_announced_without_its_content(tmp_path: Path) -> None:
    for name, size in (("a", 600), ("b", 600), ("c", 10)):
        (tmp_path / name).write_bytes(b"x" * size)
    entries, _ = sent_of(tmp_path)
    assert [len(content) for _, content in entries.values()] == [600, 0, 10]
    entries, _ = sent_of(tmp_path, most_files=1)
    assert [len(content) for _, content in entries.values()] == [600, 0, 0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes the overlay's mark")
def test_what_was_removed_is_told(tmp_path: Path) -> None:
    os.mknod(tmp_path / "gone", 0o20000, 0)
    assert sent_of(tmp_path) == ({}, ["gone: removed"])


def test_names_of_any_bytes_and_folders_of_any_depth_are_sent(tmp_path: Path) -> None:
    """Python's os.walk calls itself for each folder in a folder: 1,500 were an internal error."""
    name = os.fsencode(tmp_path) + b"/\xff\n\x1b"
    os.close(os.open(name, os.O_CREAT))
    os.mkfifo(name + b"pipe")
    deep = tmp_path / "/".join(["d"] * 1500)
    subprocess.run(["mkdir", "-p", str(deep)], check=True)
    (deep / "file").write_text("deep")
    entries, lines = sent_of(tmp_path, most_files=2000)
    assert entries[b"/".join([b"d"] * 1500) + b"/file"][1] == b"deep"
    assert b"\xff\n\x1b" in entries and lines == [r"\xff\n\x1bpipe: neither a file nor a folder"]
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_a_folder_too_deep_to_be_named_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "z").write_text("last")
    subprocess.run(["sh", "-c", "for n in $(seq 300); do mkdir a$0 && cd -P a$0; done", "d" * 20],
                   cwd=tmp_path, check=True)
    entries, lines = sent_of(tmp_path, most_files=1000)
    assert entries[b"z"][1] == b"last" and len(entries) > 100
    assert "File name too long" in lines[-1] and all(len(line) < 300 for line in lines)
    subprocess.run(["rm", "-rf", str(tmp_path / f"a{'d' * 20}")], check=True)


# Pipes, files, terminals -------------------------------------------------------------

@pytest.mark.usefixtures("impatient")  # who waits for the reader waits for ever
def test_what_a_full_pipe_does_not_take_is_kept() -> None:
    read_end, write_end = os.pipe()
    outlet, content = Outlet(write_end), bytes(range(256)) * 1024  # four times a pipe's
    outlet.waiting += content
    outlet.flush()
    read = b""
    while outlet.waiting or len(read) < len(content):
        read += os.read(read_end, 1 << 16)
        outlet.flush()
    assert read == content
    os.close(read_end)
    outlet.waiting += b"nobody reads this"
    outlet.flush()
    assert not outlet.waiting
    os.close(write_end)


def test_what_waits_for_a_pipe_is_not_copied_for_each_write(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MB of input in pieces of a pipe's 64 kB would be copied a thousand times."""
    read_end, write_end = os.pipe()
    outlet, command = Outlet(write_end), inside.Command.__new__(inside.Command)
    command.input, command.taken_bytes, command.closing = write_end, 0, False
    command.waiting, command.request = bytearray(), {"input": "whole"}
    write, written = os.write, list[object]()

    def noted(number: int, content: bytes) -> int:
        written.append(content)
        return write(number, content)

    monkeypatch.setattr(os, "write", noted)
    for waits, give in ((outlet, outlet.flush), (command, command._give)):
        waits.waiting += bytes(1 << 20)
        written.clear()
        while waits.waiting:
            give()
            os.read(read_end, 1 << 20)
        assert len(written) > 10 and {id(content) for content in written} == {id(waits.waiting)}
    os.close(read_end)
    os.close(write_end)


def test_a_terminal_in_background_is_not_read() -> None:
    child, terminal = pty.fork()
    if child == 0:
        # A session's leader is in the foreground, what it starts in a group of its own is not.
        in_front = in_foreground(0)
        behind = os.fork()
        if behind == 0:
            os.setpgid(0, 0)
            os._exit(in_foreground(0))
        os._exit(0 if in_front and os.waitpid(behind, 0)[1] == 0 else 1)
    try:
        assert os.waitpid(child, 0)[1] == 0
    finally:
        os.close(terminal)


def test_no_terminal_is_in_the_foreground(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert in_foreground(file.fileno())


def test_no_other_folder_is_removed_in_the_place_of_a_dead_ones(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, lock = tmp_path / ".guest", fcntl.flock
    place.mkdir()

    def lock_late(file: int, operation: int) -> None:
        """Once the dead one's is gone, and another run has made its own."""
        place.rmdir()
        place.mkdir()
        (place / "file").touch()
        lock(file, operation)
    monkeypatch.setattr("fcntl.flock", lock_late)
    shared_folder.remove_dead(place)
    assert (place / "file").exists()


@pytest.mark.parametrize("is_listed", [True, False])
def test_all_of_a_session_and_no_other_process_is_found(
        is_listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.exists", lambda path: is_listed)
    with subprocess.Popen(["sh", "-c", "sh -c 'sleep 60 & echo; wait' & wait"],
                          stdout=subprocess.PIPE, start_new_session=True) as leader:
        try:
            assert leader.stdout is not None and leader.stdout.readline() == b"\n"
            found = [*session_processes(leader.pid)]
            own = [pid for pid, _, _ in found]
            assert len(own) == 3 and all(os.getsid(pid) == leader.pid for pid in own)
            assert {state for _, state, _ in found} <= set("RSD") and leader.pid in own
        finally:
            os.killpg(leader.pid, signal.SIGKILL)


def test_calls_of_mininet_are_read_where_they_are_written() -> None:
    assert first_flight_calls.FILE == in_place.CALLS_FILE


# Programs in the place of others -----------------------------------------------------

@pytest.fixture(name="called")
def called_in_memory(tmp_path: Path) -> Callable[..., str]:
    """Calls one of them, on a tree of cgroups and with notes in a folder of the test's."""
    tree = tmp_path / "cgroup"
    for controller, values in in_place.CGROUPS.items():
        (tree / controller).mkdir(parents=True)
        for name, value in values.items():
            (tree / controller / f"{controller}.{name}").write_text(f"{value}\n")

    def call(name: str, *words: str) -> str:
        program = tmp_path / name
        source = Path(inside.__file__).parent / ("cgroups" if name.startswith("cg") else name)
        program.write_text(source.read_text().replace("/sys/fs/cgroup", str(tree))
                           .replace(in_place.NOTES, str(tmp_path / "notes")))
        done = run_program(["sh", str(program), *words])
        return f"{done.stdout}{done.stderr}{done.returncode}"
    return call


def test_limits_of_the_processor_are_kept_and_limit_nothing(called: Callable[..., str],
                                                            tmp_path: Path) -> None:
    assert called("cgcreate", "-g", "cpu,cpuacct,cpuset:/h1") == "0"
    assert called("cgget", "-r", "cpu.cfs_quota_us", "/h1") == (
        "/h1:\ncpu.cfs_quota_us: -1\n0")
    assert called("cgset", "-r", "cpu.cfs_quota_us=-1", "/h1") == "0"
    assert not (tmp_path / "notes").exists()  # no limit
    assert called("cgset", "-r", "cpu.cfs_quota_us=5000", "/h1") == "0"
    assert "computing costs no time" in (tmp_path / "notes").read_text()
    assert called("cgget", "-n", "-r", "cpu.cfs_quota_us", "/h1") == "cpu.cfs_quota_us: 5000\n0"
    assert called("cgclassify", "-g", "cpuset:/h1", "77") == "0"
    assert called("cgdelete", "-r", "cpu,cpuacct,cpuset:/h1") == "0"
    assert not list(tmp_path.glob("cgroup/*/h1"))
    assert called("cgget", "-r", "cpu.cfs_quota_us", "/h1").endswith("1")


def test_no_module_is_loaded_and_what_is_built_in_is_there(called: Callable[..., str],
                                                           tmp_path: Path) -> None:
    assert called("modprobe", "openvswitch") == called("modprobe", "-r", "tcp_probe") == "0"
    assert called("modprobe", "sch_netem", "tcp_cubic") == "0"
    assert called("modprobe", "tcp_nosuch").endswith("1") and not (tmp_path / "notes").exists()
    assert "tcp_probe not found" in called("modprobe", "tcp_probe", "port=5001", "full=1")
    assert "ss -tin" in (tmp_path / "notes").read_text()


def test_a_new_folder_of_a_guest_is_not_taken_for_a_dead_ones(tmp_path: Path) -> None:
    """Another run that clears up may see it before its lock: then it is made anew."""
    place, stop = tmp_path / ".guest", threading.Event()

    def clear_up() -> None:
        while not stop.is_set():
            shared_folder.remove_dead(place)
    other = threading.Thread(target=clear_up)
    other.start()
    try:
        for _ in range(50):
            with shared_folder.locked_folder(place):
                (place / "file").touch()
            assert not place.exists()
    finally:
        stop.set()
        other.join()


# Output -------------------------------------------------------------------------------

LONGEST = 1 << 16


def stored(path: Path, *frames: tuple[bytes, float, bytes]) -> list[bytes]:
    with OutputFile(path, CommandOutcome()) as output:
        for frame in frames:
            output.store(*frame)
    assert not output.outcome.troubles
    return path.read_bytes().split(b"\n")


def test_each_line_has_its_stream_and_the_time_of_its_first_byte(tmp_path: Path) -> None:
    assert stored(tmp_path / "output.txt", (OUTPUT, 1, b"one\ntw"), (ERROR, 2, b"oh"),
                  (OUTPUT, 3, b"o\n\nend")) == [
        b"      1.000000 out one", b"      1.000000 out two", b"      3.000000 out ",
        b"      3.000000 out end", b"      2.000000 err oh", b""]


def test_a_long_line_is_stored_in_pieces(tmp_path: Path) -> None:
    line = bytes(range(32, 127)) * 2000
    frames = [(OUTPUT, float(number), line[place:place + 1000])
              for number, place in enumerate(range(0, len(line), 1000))]
    *pieces, after, end = stored(tmp_path / "output.txt", *frames, (OUTPUT, 999, b"\nshort\n"))
    assert [piece[15:].partition(b" ")[0] for piece in pieces] == [b"out", b"out+", b"out+"]
    assert b"".join(piece[15:].partition(b" ")[2] for piece in pieces) == line
    assert [float(piece[:15]) for piece in pieces] == [0, LONGEST // 1000, 2 * LONGEST // 1000]
    assert (after, end) == (b"    999.000000 out short", b"")


def test_a_line_as_long_as_one_may_be_is_whole(tmp_path: Path) -> None:
    assert len(stored(tmp_path / "output.txt", (OUTPUT, 0, b"x" * LONGEST), (OUTPUT, 1, b"\n"),
                      (OUTPUT, 1, b"y" * LONGEST + b"\n"))) == 3


def test_of_output_without_an_end_of_line_little_is_held(tmp_path: Path) -> None:
    """Whatever is held is copied for each frame: more with each would take the square of it."""
    with OutputFile(tmp_path / "output.txt", CommandOutcome()) as output:
        for number in range(200):
            output.store(OUTPUT, number, bytes(MOST_BYTES))
            held = sum(sys.getsizeof(line) for kind in output.lines
                       for line in vars(output.lines[kind]).values())
            assert held < 3 * LONGEST, f"{held} bytes after {number + 1} frames"
    assert (tmp_path / "output.txt").stat().st_size > 200 * MOST_BYTES


@pytest.mark.parametrize(("room", "lines"), [(100, 4), (99, 3), (0, 0)])
def test_more_than_is_kept_ends_with_a_line(
        room: int, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "KEPT_BYTES", room)
    *kept, last, end = stored(tmp_path / "output.txt", *[(OUTPUT, 1, b"12345\n12345\n")] * 9)
    assert kept == [b"      1.000000 out 12345"] * lines
    assert last + b"\n" == session.NOT_KEPT and not end


@pytest.mark.parametrize(("cut", "line"), [(0, None), (
    1, "run.sh: 1 line of output longer than 64 kB: output.txt has it in pieces, those after the"
    " first marked with +"), (
    2, "run.sh: 2 lines of output longer than 64 kB: output.txt has them in pieces, those after the"
    " first marked with +")])
def test_cut_lines_are_told(cut: int, line: str | None, tmp_path: Path,
                            capsys: pytest.CaptureFixture[str]) -> None:
    show_end(tmp_path, Result(0, tmp_path / "output.txt", tmp_path, 0, None, 1.0, 1.0, (), 0, True,
                              (), cut), quiet=True)
    assert capsys.readouterr().err.splitlines() == ([line] if line else [])


# packetdrill --------------------------------------------------------------------------

PATH = PROJECT / "vtime" / "command" / "packetdrill"


@pytest.fixture(name="wrapper", scope="module")
def _wrapper() -> ModuleType:
    loader = SourceFileLoader("packetdrill_wrapper", str(PATH))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "text", "given", "expected"), [
    ("a.pkt", "0 socket()", [], "ipv4"),
    ("a.pkt", "0 socket()", ["--ip_version=ipv4-mapped-ipv6"], "ipv4-mapped-ipv6"),
    ("a.pkt", "--ip_version=ipv6\n", [], "ipv6"),
    ("a.pkt", "--ip_version=ipv6\n", ["--ip_version=ipv4"], "ipv4"),
    ("a-v6.pkt", "", [], "ipv6"),
    ("a.pkt", "--remote_ip=fd00::1 --mtu=1500\n", [], "ipv6"),
    ("a-v4.pkt", "", [], "ipv4")])
def test_a_script_runs_under_what_it_says(wrapper: ModuleType, tmp_path: Path, name: str, text: str,
                                          given: list[str], expected: str) -> None:
    script = tmp_path / name
    script.write_text(text)
    options = wrapper.options_for(str(script), given)
    assert options[0] == f"--ip_version={expected}"
    lacking = [word for word in wrapper.OPTIONS[expected] if word not in options]
    assert all(word.partition("=")[0] in text for word in lacking)


def test_what_a_script_sets_is_left_to_it_and_what_is_given_comes_last(
        wrapper: ModuleType, tmp_path: Path) -> None:
    script = tmp_path / "one.pkt"
    script.write_text("--local_ip=10.0.0.1\n--mtu=900 --tolerance_usecs=7\n")
    options = wrapper.options_for(str(script), ["-D", "A=1", "--tolerance_usecs=9"])
    assert options[0] == "--ip_version=ipv4" and options[-3:] == ["-D", "A=1",
                                                                  "--tolerance_usecs=9"]
    assert not any(word.startswith("--local_ip") for word in options)
    assert "--remote_ip=192.0.2.1" in options


def test_the_program_is_the_first_that_is_not_this_one(
        wrapper: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "this").touch(mode=0o755)
    monkeypatch.setattr(wrapper, "__file__", str(tmp_path / "this"))
    folders = [tmp_path / name for name in ("none", "ours", "plain", "theirs", "later")]
    for folder in folders[1:]:
        folder.mkdir()
    (folders[1] / "packetdrill").symlink_to(tmp_path / "this")
    (folders[2] / "packetdrill").touch(mode=0o644)
    for folder in folders[3:]:
        (folder / "packetdrill").touch(mode=0o755)
    found = wrapper.find_program([str(folder) for folder in folders])
    assert found == str(folders[3] / "packetdrill")
    assert wrapper.find_program([str(folder) for folder in folders[:3]]) is None


def test_a_clock_begins_at_the_midnight_after_the_newest_file(tmp_path: Path) -> None:
    folder, results = tmp_path / "folder", tmp_path / "folder" / "results"
    results.mkdir(parents=True)
    for name, date in (("folder/old", "2025-06-01T10:00"), ("folder/new", "2027-03-04T23:59"),
                       ("folder/results/newer", "2028-01-01T00:00"),
                       ("folder/broken", "2300-01-01T00:00"), ("other", "2029-05-06T00:00")):
        (tmp_path / name).touch()
        written_s = datetime.fromisoformat(f"{date}:00+00:00").timestamp()
        os.utime(tmp_path / name, (written_s, written_s))
    (folder / "gone").symlink_to("nowhere")
    os.utime(folder / "gone", (0, 0), follow_symlinks=False)

    def begins(*places: Path, left_out: Path | None = None) -> str:
        return datetime.fromtimestamp(beginning_s(places, left_out), timezone.utc).isoformat()
    assert begins(folder, left_out=results) == "2027-03-05T00:00:00+00:00"
    assert begins(folder) == "2028-01-02T00:00:00+00:00"  # midnight itself is not after it
    assert begins(folder, tmp_path / "other") == "2029-05-07T00:00:00+00:00"
    assert begins(folder / "old") == begins(tmp_path / "none") == "2026-01-01T00:00:00+00:00"
