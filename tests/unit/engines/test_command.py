"""Commands in a guest: what they get, write and print, programs in place of others, packetdrill."""

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
def test_bytes_that_are_no_frame_are_refused(hostile: bytes) -> None:
    with pytest.raises(ValueError, match="not a frame"):
        list(Reader().read(hostile))


def test_a_command_gets_listed_variables_and_those_of_the_request(tmp_path: Path) -> None:
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


def test_names_of_namespaces_are_limited_in_number_and_length() -> None:
    """Root in the guest may send any number of frames, each with thousands of names."""
    outcome = guest.CommandOutcome()
    outcome.keep_namespaces(b"1 2 h1\n3 4 h2\n")
    assert outcome.namespaces == ["1 2 h1", "3 4 h2"] and not outcome.troubles
    for _ in range(3):
        outcome.keep_namespaces(b"\n".join([b"5 6 " + b"x" * 9000] * 900))
    assert len(outcome.namespaces) == guest.MOST_NAMESPACES and len(outcome.troubles) == 1
    assert max(map(len, outcome.namespaces)) < 400


# Files that a command wrote ----------------------------------------------------------

def send_written(folder: Path, most_bytes: int = 1000, most_files: int = 100
                 ) -> tuple[dict[bytes, tuple[Entry, bytes]], list[str]]:
    """What the guest sends of a folder: entries by name with their content, and its messages."""
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
    entries, lines = send_written(tmp_path)
    assert list(entries) == [b"a", b"b", b"link", b"z", b"b/deep", b"b/deep/file"]
    assert entries[b"z"][1] == b"first"  # a file of its own
    assert entries[b"a"][0].modified_ns == 123_456_789_012
    assert entries[b"link"][0].target == b"b/deep"
    assert lines == ["pipe: neither a file nor a folder"]


def test_files_beyond_the_limits_are_announced_without_their_content(tmp_path: Path) -> None:
    for name, size in (("a", 600), ("b", 600), ("c", 10)):
        (tmp_path / name).write_bytes(b"x" * size)
    entries, _ = send_written(tmp_path)
    assert [len(content) for _, content in entries.values()] == [600, 0, 10]
    entries, _ = send_written(tmp_path, most_files=1)
    assert [len(content) for _, content in entries.values()] == [600, 0, 0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes the overlay's mark")
def test_a_removed_file_is_reported(tmp_path: Path) -> None:
    os.mknod(tmp_path / "gone", 0o20000, 0)
    assert send_written(tmp_path) == ({}, ["gone: removed"])


def test_names_of_any_bytes_and_folders_of_any_depth_are_sent(tmp_path: Path) -> None:
    """os.walk would recurse once for each level, and fail at a depth of 1,500."""
    name = os.fsencode(tmp_path) + b"/\xff\n\x1b"
    os.close(os.open(name, os.O_CREAT))
    os.mkfifo(name + b"pipe")
    deep = tmp_path / "/".join(["d"] * 1500)
    subprocess.run(["mkdir", "-p", str(deep)], check=True)
    (deep / "file").write_text("deep")
    entries, lines = send_written(tmp_path, most_files=2000)
    assert entries[b"/".join([b"d"] * 1500) + b"/file"][1] == b"deep"
    assert b"\xff\n\x1b" in entries and lines == [r"\xff\n\x1bpipe: neither a file nor a folder"]
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_a_folder_too_deep_to_be_named_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "z").write_text("last")
    subprocess.run(["sh", "-c", "for n in $(seq 300); do mkdir a$0 && cd -P a$0; done", "d" * 20],
                   cwd=tmp_path, check=True)
    entries, lines = send_written(tmp_path, most_files=1000)
    assert entries[b"z"][1] == b"last" and len(entries) > 100
    assert "File name too long" in lines[-1] and all(len(line) < 300 for line in lines)
    subprocess.run(["rm", "-rf", str(tmp_path / f"a{'d' * 20}")], check=True)


# Pipes, files, terminals -------------------------------------------------------------

@pytest.mark.usefixtures("impatient")  # a write that waits for the reader would never end
def test_data_that_a_full_pipe_does_not_take_is_kept() -> None:
    read_end, write_end = os.pipe()
    outlet, content = Outlet(write_end), bytes(range(256)) * 1024  # four times what a pipe holds
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


def test_data_waiting_for_a_pipe_is_not_copied_for_each_write(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MB of input in pieces of a pipe's 64 kB would be copied a thousand times."""
    read_end, write_end = os.pipe()
    outlet, command = Outlet(write_end), inside.Command.__new__(inside.Command)
    command.input, command.taken_bytes, command.closing = write_end, 0, False
    command.waiting, command.request = bytearray(), {"input": "whole"}
    write, written = os.write, list[object]()

    def note_and_write(number: int, content: bytes) -> int:
        written.append(content)
        return write(number, content)

    monkeypatch.setattr(os, "write", note_and_write)
    for sender, send_some in ((outlet, outlet.flush), (command, command._give)):
        sender.waiting += bytes(1 << 20)
        written.clear()
        while sender.waiting:
            send_some()
            os.read(read_end, 1 << 20)
        assert len(written) > 10
        assert {id(content) for content in written} == {id(sender.waiting)}
    os.close(read_end)
    os.close(write_end)


def test_a_process_in_the_background_does_not_read_its_terminal() -> None:
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


def test_a_file_counts_as_a_terminal_in_the_foreground(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert in_foreground(file.fileno())


def test_a_new_folder_in_place_of_a_dead_guests_is_not_removed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, lock = tmp_path / ".guest", fcntl.flock
    place.mkdir()

    def lock_late(file: int, operation: int) -> None:
        """Lock when the dead guest's folder is gone, and another run has made its own."""
        place.rmdir()
        place.mkdir()
        (place / "file").touch()
        lock(file, operation)
    monkeypatch.setattr("fcntl.flock", lock_late)
    shared_folder.remove_dead(place)
    assert (place / "file").exists()


@pytest.mark.parametrize("is_listed", [True, False])  # whether the kernel lists children in /proc
def test_all_processes_of_a_session_are_found_and_no_others(
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


def test_calls_of_mininet_are_read_from_the_file_that_they_are_written_to() -> None:
    assert first_flight_calls.FILE == in_place.CALLS_FILE


# Programs that stand in for others ---------------------------------------------------

@pytest.fixture(name="call")
def call_of_stand_ins(tmp_path: Path) -> Callable[..., str]:
    """Calls a program that stands in for another; returns its output and its status.

    Its cgroups and its notes are in the test's folder.
    """
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


def test_limits_of_the_processor_are_stored_and_have_no_effect(call: Callable[..., str],
                                                               tmp_path: Path) -> None:
    assert call("cgcreate", "-g", "cpu,cpuacct,cpuset:/h1") == "0"
    assert call("cgget", "-r", "cpu.cfs_quota_us", "/h1") == (
        "/h1:\ncpu.cfs_quota_us: -1\n0")
    assert call("cgset", "-r", "cpu.cfs_quota_us=-1", "/h1") == "0"
    assert not (tmp_path / "notes").exists()  # no limit
    assert call("cgset", "-r", "cpu.cfs_quota_us=5000", "/h1") == "0"
    assert "computing costs no time" in (tmp_path / "notes").read_text()
    assert call("cgget", "-n", "-r", "cpu.cfs_quota_us", "/h1") == "cpu.cfs_quota_us: 5000\n0"
    assert call("cgclassify", "-g", "cpuset:/h1", "77") == "0"
    assert call("cgdelete", "-r", "cpu,cpuacct,cpuset:/h1") == "0"
    assert not list(tmp_path.glob("cgroup/*/h1"))
    assert call("cgget", "-r", "cpu.cfs_quota_us", "/h1").endswith("1")


def test_modprobe_succeeds_for_built_in_modules_and_fails_for_others(
        call: Callable[..., str], tmp_path: Path) -> None:
    assert call("modprobe", "openvswitch") == call("modprobe", "-r", "tcp_probe") == "0"
    assert call("modprobe", "sch_netem", "tcp_cubic") == "0"
    assert call("modprobe", "tcp_nosuch").endswith("1") and not (tmp_path / "notes").exists()
    assert "tcp_probe not found" in call("modprobe", "tcp_probe", "port=5001", "full=1")
    assert "ss -tin" in (tmp_path / "notes").read_text()


def test_a_guest_keeps_its_folder_while_another_run_clears_up(tmp_path: Path) -> None:
    """The other run may remove the folder before it is locked; then it is made again."""
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


def test_little_is_held_of_output_without_an_end_of_line(tmp_path: Path) -> None:
    """All that is held is copied for each frame. If it grew, the time would grow with its square.
    """
    with OutputFile(tmp_path / "output.txt", CommandOutcome()) as output:
        for number in range(200):
            output.store(OUTPUT, number, bytes(MOST_BYTES))
            held = sum(sys.getsizeof(line) for kind in output.lines
                       for line in vars(output.lines[kind]).values())
            assert held < 3 * LONGEST, f"{held} bytes after {number + 1} frames"
    assert (tmp_path / "output.txt").stat().st_size > 200 * MOST_BYTES


@pytest.mark.parametrize(("room", "lines"), [(100, 4), (99, 3), (0, 0)])
def test_output_beyond_the_limit_is_replaced_by_one_line(room: int, lines: int, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "KEPT_BYTES", room)
    *kept, last, end = stored(tmp_path / "output.txt", *[(OUTPUT, 1, b"12345\n12345\n")] * 9)
    assert kept == [b"      1.000000 out 12345"] * lines
    assert last + b"\n" == session.NOT_KEPT and not end


@pytest.mark.parametrize(("cut", "line"), [(0, None), (
    1, "run.sh: 1 line of output longer than 64 kB: output.txt has it in pieces, those after the"
    " first marked with +"), (
    2, "run.sh: 2 lines of output longer than 64 kB: output.txt has them in pieces, those after the"
    " first marked with +")])
def test_the_number_of_cut_lines_is_reported(cut: int, line: str | None, tmp_path: Path,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    result = Result(0, tmp_path / "output.txt", files=tmp_path, file_count=0, capture=None,
                    clock_s=1.0, wall_s=1.0, troubles=(), omitted_count=0, is_whole=True,
                    spinning=(), cut_lines=cut)
    show_end(tmp_path, result, quiet=True)
    assert capsys.readouterr().err.splitlines() == ([line] if line else [])


# The clock ----------------------------------------------------------------------------

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

    def begins(*places: Path, without: Path | None = None) -> str:
        return datetime.fromtimestamp(beginning_s(places, without), timezone.utc).isoformat()
    assert begins(folder, without=results) == "2027-03-05T00:00:00+00:00"
    assert begins(folder) == "2028-01-02T00:00:00+00:00"  # midnight itself is not after it
    assert begins(folder, tmp_path / "other") == "2029-05-07T00:00:00+00:00"
    assert begins(folder / "old") == begins(tmp_path / "none") == "2026-01-01T00:00:00+00:00"


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
def test_a_script_runs_with_the_ip_version_that_it_sets(wrapper: ModuleType, tmp_path: Path,
                                                        name: str, text: str, given: list[str],
                                                        expected: str) -> None:
    script = tmp_path / name
    script.write_text(text)
    options = wrapper.options_for(str(script), given)
    assert options[0] == f"--ip_version={expected}"
    lacking = [word for word in wrapper.OPTIONS[expected] if word not in options]
    assert all(word.partition("=")[0] in text for word in lacking)


def test_options_in_a_script_are_kept_and_given_ones_come_last(wrapper: ModuleType,
                                                               tmp_path: Path) -> None:
    script = tmp_path / "one.pkt"
    script.write_text("--local_ip=10.0.0.1\n--mtu=900 --tolerance_usecs=7\n")
    options = wrapper.options_for(str(script), ["-D", "A=1", "--tolerance_usecs=9"])
    assert options[0] == "--ip_version=ipv4" and options[-3:] == ["-D", "A=1",
                                                                  "--tolerance_usecs=9"]
    assert not any(word.startswith("--local_ip") for word in options)
    assert "--remote_ip=192.0.2.1" in options


def test_the_first_executable_packetdrill_other_than_the_wrapper_is_run(
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
