"""./run.sh -- COMMAND runs scripts in virtual time, keeps their files, and has what they need."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.live.commands import Ended, begun, kept_of, needs_commands, typed
from tests.live.conftest import PROJECT
from tests.running import HANGS_S, mounts_a_disk, run_program, small_disk

pytestmark = needs_commands
PLAIN = """\
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
net = Mininet(switch=LinuxBridge, link=TCLink, controller=None)
hosts = [net.addHost(f"h{number}") for number in (1, 2)]
switch = net.addSwitch("s1")
for host in hosts:
    net.addLink(host, switch, bw=10, delay="25ms", max_queue_size=100)
net.start()
print(hosts[0].cmd("ping -c 5 10.0.0.2"))
hosts[1].cmd("iperf3 -s -D")
print(hosts[0].cmd("iperf3 -c 10.0.0.2 -t 2"))
net.stop()
"""


def test_a_plain_script_runs_and_prints_the_same_bytes_twice(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    first, second = (Ended(tmp_path, "python3", "plain.py") for _ in range(2))
    assert first.status == 0, first.err
    # There and back are four delays of 25 ms. The first ping also waits for ARP.
    assert "rtt min/avg/max/mdev = 100.000/120.000/200.000/40.000 ms" in first.out
    assert "0.00-2.00" in first.out and first.out == second.out
    assert (first.kept / "output.txt").read_bytes() == (second.kept / "output.txt").read_bytes()
    assert first.facts()["virtual_s"] == second.facts()["virtual_s"] and not first.facts()["files"]


def test_iperf_over_a_link_without_a_rate_ends_and_says_what_its_number_is(tmp_path: Path) -> None:
    ended = Ended(tmp_path, "mn", "--switch", "lxbr", "--controller", "none", "--test",
                  "iperf,seconds=1")
    assert ended.status == 0 and "Results: ['" in ended.err, ended.err
    assert "packets passed without a rate limit" in ended.err
    assert 1.0 < float(str(ended.facts()["virtual_s"])) < 4.0


def test_starting_a_program_costs_a_millisecond(tmp_path: Path) -> None:
    ended = Ended(tmp_path, "bash", "-c",
                  "echo $EPOCHREALTIME; env -u A env -u A true; echo $EPOCHREALTIME")
    began, end = (float(word) for word in ended.out.split())
    assert 3.0 <= (end - began) * 1000 < 3.1  # three programs, and system calls that fail


def test_a_nearly_full_memory_of_the_guest_is_reported(tmp_path: Path) -> None:
    ended = Ended(tmp_path, "python3", "-c", "import time; a = b'x' * 130_000_000; time.sleep(3)",
                  flags=("--memory", "164M"))
    assert ended.status == 0 and "nearly all of the guest's memory was in use" in ended.err


def test_another_seed_draws_other_numbers(tmp_path: Path) -> None:
    draws = ("python3", "-c", "import os, random; print(os.urandom(8).hex(), random.random())")
    first, other = (Ended(tmp_path, *draws, flags=("--seed", seed)).out for seed in ("1", "2"))
    assert first != other


@pytest.mark.skipif(shutil.which("ovs-vsctl") is None, reason="./install.sh --with-mininet")
def test_mininets_default_switch_and_controller_connect_all_hosts(tmp_path: Path) -> None:
    ended = Ended(tmp_path, "mn", "--topo", "single,3", "--link", "tc,bw=10,delay=10ms",
                  "--test", "pingall")
    assert ended.status == 0 and "0% dropped (6/6 received)" in ended.out + ended.err, ended.err


def test_a_commands_files_are_kept_and_written_back_only_by_a_flag(tmp_path: Path) -> None:
    (tmp_path / "before").write_text("before\n")
    began_s = time.time()
    ended = Ended(tmp_path, "sh", "-c", "cat before; sleep 100; echo new > before; mkdir d;"
                  " echo x > d/made; chmod 750 d/made; ln -s /etc/passwd out; ln -s d/made in;"
                  " echo hidden > /tmp/elsewhere")
    assert (ended.status, ended.out) == (0, "before\n"), ended.err
    files = ended.kept / "files"
    assert (files / "before").read_text() == "new\n" and (files / "in").read_text() == "x\n"
    assert (files / "d/made").stat().st_mode & 0o777 == 0o750
    assert not (files / "out").is_symlink() and "out: a link that leads elsewhere" in ended.err
    assert (tmp_path / "before").read_text() == "before\n"  # the host's file is unchanged
    assert began_s - 1 < (files / "before").stat().st_mtime - 100 < time.time() + 1
    back = Ended(tmp_path, "sh", "-c", "echo new > before", flags=("--write-back",))
    assert (tmp_path / "before").read_text() == "new\n" and "writes back before" in back.err


@pytest.mark.parametrize(("words", "flags", "status", "said"), [
    (("sh", "-c", "exit 7"), (), 7, ""), (("sh", "-c", "kill -9 $$"), (), 137, ""),
    (("no-such-program",), (), 127, "no-such-program: command not found"),
    (("./data",), (), 126, "Permission denied"),
    (("sleep", "100"), ("--timeout", "5"), 124, ""),
    (("sh", "-c", "echo o > /proc/sysrq-trigger; poweroff -f; reboot -f;"
      " python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)'"), (), 1, "guest")])
def test_the_status_of_run_sh_is_the_commands(words: tuple[str, ...], flags: tuple[str, ...],
                                              status: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    (tmp_path / "results" / "commands" / "0").mkdir(parents=True)
    ended = Ended(tmp_path, *words, flags=flags)
    assert ended.status == status and said in ended.err, ended.err
    assert "Traceback" not in ended.err
    assert not list(tmp_path.rglob(".guest"))


def test_a_commands_input_may_be_a_file_a_pipe_or_a_slow_writer(tmp_path: Path) -> None:
    assert Ended(tmp_path, "cat", given=b"one\ntwo\n").out == "one\ntwo\n"
    (tmp_path / "input").write_text("a file\n")
    with (tmp_path / "input").open() as file:
        done = run_program(typed(tmp_path / "r", "cat"), cwd=tmp_path, stdin=file, text=False)
    assert done.stdout == b"a file\n"
    with begun(tmp_path, "cat", stdin=subprocess.PIPE) as slow:
        for line in (b"one\n", b"two\n"):  # the second is written when the first has come back
            slow.stdin.write(line)
            slow.stdin.flush()
            assert slow.stdout.readline() == line
        slow.stdin.close()
        assert slow.wait(HANGS_S) == 0


def test_a_spinning_command_ends_and_is_named(tmp_path: Path) -> None:
    spinning = ("import os, select, threading, time; r, w = os.pipe();"
                "threading.Timer(1, os.write, (w, b'x')).start(); began = time.time()\n"
                "while not select.select([r], [], [], 0)[0]: pass\n"
                "print(round(time.time() - began, 1))\n"
                "while time.time() < began + 4: pass\n")
    ended = Ended(tmp_path, "python3", "-c", spinning)
    assert (ended.status, ended.out) == (0, "1.0\n"), ended.err
    assert "python3 spins" in ended.err and ended.facts()["spinning"] == ["python3"]


def test_a_wait_for_a_thread_without_system_calls_makes_no_timer_late(tmp_path: Path) -> None:
    spinning = ("import threading, time; beats = []; began = time.time()\n"
                "def beat():\n"
                "    for _ in range(5): time.sleep(0.07); beats.append(time.time() - began)\n"
                "threading.Thread(target=beat).start()\n"
                "while len(beats) < 5: pass\n"
                "print(*(round(beat, 6) for beat in beats))\n")
    patient = ("import sys, experiment; from vtime.command import guest; guest.SPINS_S = 1.0\n"
               "sys.exit(experiment.main(sys.argv[1:]))")
    done = run_program(
        ["/usr/bin/python3", "-c", patient, "--results", str(tmp_path / "r"), "--", "python3", "-c",
         spinning], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.DEVNULL)
    # Python gives up its lock after 5 ms, on a real machine too. On a busy machine a beat sometimes
    # comes up to a millisecond later.
    assert done.returncode == 0, done.stderr
    beats = [0.0, *map(float, done.stdout.split())]
    assert len(beats) == 6, done.stdout
    assert all(0.075 <= later - beat < 0.0765 for beat, later in pairwise(beats)), beats
    assert "python3 spins" in done.stderr


def test_a_spinning_program_is_preempted_after_many_calls_of_sched_yield(tmp_path: Path) -> None:
    """UML's clock for the scheduler stands still for 1 ms at each of those calls."""
    spinning = ("import os, subprocess, time; began = time.monotonic()\n"
                "other = subprocess.Popen(['python3', '-c', 'import time\\n"
                "for _ in range(3): time.sleep(1); print(time.monotonic(), flush=True)'],"
                " stdout=subprocess.PIPE)\n"
                "for _ in range(20000): os.sched_yield()\n"
                "while time.monotonic() < began + 4: pass\n"
                "print(*(round(float(at) - began, 1) for at in other.communicate()[0].split()))\n")
    ended = Ended(tmp_path, "python3", "-c", spinning)
    assert (ended.status, ended.out) == (0, "1.0 2.0 3.0\n"), ended.err


def test_a_program_known_to_spin_waits_with_few_calls(tmp_path: Path) -> None:
    asking = ("import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.setblocking(0)\n"
              "def wait(ms):\n"
              "    began, calls = time.monotonic_ns(), 0\n"
              "    while time.monotonic_ns() < began + ms * 1_000_000:\n"
              "        try: s.recv(1)\n"
              "        except BlockingIOError: calls += 1\n"
              "    print(calls, (time.monotonic_ns() - began) // 10_000)\n"
              "    time.sleep(1)\n"
              "for ms in 1, 3, 1, 1: wait(ms)\n")
    ended = Ended(tmp_path, "python3", "-c", asking)
    assert ended.status == 0, ended.err
    calls, tens_of_us = zip(*((int(word) for word in line.split())
                              for line in ended.out.splitlines()))
    assert tens_of_us == (100, 300, 100, 100)
    assert calls[0] > 900 and calls[2] == calls[3] < 250


def test_a_sender_that_paces_by_the_clock_sends_few_datagrams_at_one_moment(tmp_path: Path) -> None:
    sending = ("import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); sent = 0\n"
               "began = time.monotonic()\n"
               "while time.monotonic() < began + 0.001: sent += s.sendto(b'x', ('127.0.0.1', 9))\n"
               "print(sent)\n")
    ended = Ended(tmp_path, "python3", "-c", sending)
    assert ended.status == 0 and 900 < int(ended.out) <= 1000, ended.out


CATCHING = """\
import signal, time
signal.signal(signal.SIGINT, lambda *_: print("caught", flush=True))
open("so_far", "w").write("1 2 3")
print("up", flush=True)
while True: time.sleep(0.1)
"""


@pytest.mark.parametrize("signals, status, why", [
    ((signal.SIGINT, signal.SIGINT), 130, "interrupted"), ((signal.SIGTERM,), 143, "Terminated")])
def test_a_stopped_commands_files_are_kept(signals: tuple[int, ...], status: int, why: str,
                                           tmp_path: Path) -> None:
    """The command gets the first Ctrl-C, and may go on."""
    with begun(tmp_path, "python3", "-c", CATCHING) as process:
        assert process.stdout.readline() == b"up\n"
        for number in signals[:-1]:
            process.send_signal(number)
            assert process.stdout.readline() == b"caught\n"
        process.send_signal(signals[-1])
        assert process.wait(HANGS_S) == status
        assert f"run.sh: {why}\n" in process.stderr.read().decode()
    kept = kept_of(tmp_path)
    assert (kept / "files" / "so_far").read_text() == "1 2 3"
    assert json.loads((kept / "command.json").read_text())["status"] == status


def test_the_files_of_an_endless_computation_are_kept_at_its_wall_timeout(tmp_path: Path) -> None:
    for wall_s in (3, 9, 30):  # longer if the guest of a busy machine had not begun by then
        ended = Ended(tmp_path, "sh", "-c", "echo 1 > so_far; while :; do :; done",
                      flags=("--timeout", f"1h,{wall_s}"))
        if (ended.kept / "files" / "so_far").exists():
            break
    assert "timeout" in ended.err
    assert ended.status == 124 and (ended.kept / "files" / "so_far").read_text() == "1\n"


def test_a_command_at_a_terminal_has_one_and_its_clock_waits_for_typing(tmp_path: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execv(str(PROJECT / "run.sh"), ["run.sh", "--results", str(tmp_path), "--", "sh", "-i"])

    seen = ""

    def upto(pattern: str) -> re.Match[str]:
        """The next output that matches a pattern; all output before it is dropped."""
        nonlocal seen
        until = time.monotonic() + HANGS_S
        while not (found := re.search(pattern, seen)) and time.monotonic() < until:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 4096).decode(errors="replace")
        assert found, seen
        seen = seen[found.end():]
        return found

    def typed(line: str, pattern: str) -> re.Match[str]:
        os.write(terminal, f"{line}\r".encode())
        return upto(pattern)

    try:
        upto("# ")
        before = int(typed("tty -s && date +%s", r"\n(\d{10})\r")[1])
        time.sleep(1)  # in which nobody types
        assert int(typed("date +%s", r"\n(\d{10})\r")[1]) - before < 60
        typed("echo begun; sleep 1000000", r"\nbegun")
        typed("\x03", "# ")
        typed("exit 5", "of virtual time")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    finally:
        os.close(terminal)


def test_a_killed_commands_output_is_kept_and_its_guest_folder_removed_later(
        tmp_path: Path) -> None:
    with begun(tmp_path, "sh", "-c", "while :; do echo line; sleep 1; done") as process:
        for _ in range(3):
            assert process.stdout.readline() == b"line\n"
        process.kill()
    killed = kept_of(tmp_path)
    assert (killed / ".guest").exists() and b"out line" in (killed / "output.txt").read_bytes()
    assert Ended(tmp_path, "true").status == 0
    assert not list(tmp_path.rglob(".guest")) and (killed / "output.txt").exists()


@mounts_a_disk
def test_a_full_disk_of_results_is_reported(tmp_path: Path) -> None:
    with small_disk(tmp_path / "results", "size=2m"):
        done = run_program(typed(tmp_path / "results", "seq", "1000000"), cwd=tmp_path,
                           stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


# Each feature of the kernel for commands that a public experiment needs -----------------

A = "iptables -t filter -A INPUT -p tcp"
DEVICE = "ip link add d{} type"
# Lines for a shell, each of which has to end with status 0.
CALLS = [
    # A network namespace has no such device before one is made, as if they were modules.
    "! ls /sys/class/net | grep -E 'tunl|sit|gre|erspan|bond[0-9]'",
    *(f"{A} {words}" for words in (
        "-m limit --limit 5/s -j ACCEPT", "-m hashlimit --hashlimit-name a --hashlimit 5/s -j DROP",
        "-m statistic --mode random --probability 0.1 -j DROP", "-m multiport --dports 1,2 -j DROP",
        "-m comment --comment words -j ACCEPT", "-m mac --mac-source 00:00:00:00:00:01 -j DROP",
        "-m length --length 1:2 -j DROP", "-m recent --set", "-m addrtype --dst-type LOCAL -j DROP",
        "-m connlimit --connlimit-above 9 -j DROP", "-m u32 --u32 0=1 -j DROP",
        "-m string --string x --algo bm -j DROP", "-j REJECT --reject-with tcp-reset", "-j LOG",
        "-m tcpmss --mss 1:2 -j DROP", "-m conntrack --ctstate NEW -j ACCEPT")),
    "iptables -A OUTPUT -m owner --uid-owner 0 -j ACCEPT",
    "iptables -A FORWARD -m physdev --physdev-in x -j ACCEPT",
    *(f"iptables -t mangle -A POSTROUTING {words}" for words in (
        "-j MARK --set-mark 1", "-j CONNMARK --save-mark", "-j DSCP --set-dscp 10",
        "-j TTL --ttl-set 9", "-j CLASSIFY --set-class 1:1",
        "-p tcp --tcp-flags SYN SYN -j TCPMSS --set-mss 1000")),
    "iptables -t nat -A PREROUTING -p tcp --dport 80 -j REDIRECT --to-ports 8080",
    "iptables-legacy -t nat -A POSTROUTING -j MASQUERADE", "iptables-legacy -t mangle -L",
    "ip6tables -A INPUT -m limit -j ACCEPT",
    "cd /proc/sys/net/bridge; grep 0 *-iptables && modprobe br_netfilter && grep 1 *-iptables",
    *(f"{DEVICE.format(number)} {words}" for number, words in enumerate((
        "vxlan id 1 dstport 4789", "gre local 10.0.0.1 remote 10.0.0.2",
        "geneve id 1 remote 10.0.0.2",
        "ipip local 10.0.0.1 remote 10.0.0.2", "sit local 10.0.0.1 remote 10.0.0.2", "wireguard",
        "vrf table 10", "bond",
        "xfrm dev dummy0 if_id 1", "ip6gre local ::1 remote ::2"))),
    "ip link add link dummy0 name v type ipvlan",
    "ip link add dummy1 type dummy && ip link add link dummy1 name m type macvtap",
    "sysctl net.mpls.platform_labels=1000", "ip -f mpls route add 100 dev dummy0",
    "ip route add 10.9.0.0/24 encap mpls 100 dev dummy0",
    "ip -6 route add fc00::/64 encap seg6 mode encap segs fc00::1 dev dummy0",
    *(f"tc qdisc replace dev dummy0 root {words}" for words in (
        "choke limit 100 bandwidth 10mbit", "sfb", "fq_pie", "drr", "qfq", "ets bands 3", "hhf",
        "gred setup DPs 3 default 1", "plug",
        "cbs locredit -1 hicredit 1 sendslope -1 idleslope 1")),
    "tc qdisc replace dev dummy0 clsact",
    *(f"tc filter add dev dummy0 egress protocol ip {words}" for words in (
        "u32 match u32 0 0 action skbedit mark 1", "u32 match u32 0 0 action csum ip",
        "u32 match u32 0 0 action pedit munge ip ttl set 9",
        "u32 match u32 0 0 action vlan push id 5",
        "u32 match u32 0 0 action gact drop random determ ok 10", "u32 match u32 0 0 action ct",
        "u32 match u32 0 0 action nat egress 10.0.0.1 10.0.0.2",
        "bpf bytecode '1,6 0 0 1,'")),
    "ip mptcp limits set subflows 2", "python3 -c 'import socket; socket.socket(2, 1, 262)'",
    "python3 -c 'import socket; socket.socket(2, 1, 132)'", "unshare --time true",
    "echo 1 > /sys/kernel/tracing/events/tcp/tcp_probe/enable",
    "modprobe nf_conntrack xt_statistic sch_netem vxlan ip6table_mangle", "lsmod | grep -q ^sctp",
    "python -c 'print()'"]


@pytest.mark.skipif(shutil.which("iptables") is None, reason="iptables is not installed")
def test_each_call_of_public_experiments_is_accepted(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "calls.sh").write_text("".join(
        f"({call}) >said 2>&1 || echo \"{number}: $(head -n 1 said)\"\n"
        for number, call in enumerate(CALLS)))
    ended = Ended(folder, "sh", "-c", "ip link add dummy0 type dummy;"
                  " ip link set dummy0 up; . ./calls.sh")
    refused = [f"{CALLS[int(line.partition(':')[0])]} → {line.partition(':')[2]}"
               for line in ended.out.splitlines()]
    assert not refused and ended.status == 0, "\n".join(refused) + ended.err


def test_packets_are_traced_with_tcp_probe(tmp_path: Path) -> None:
    """The event has the window at each arriving packet, as tcp_probe did before Linux 4.16."""
    (tmp_path / "work").mkdir()
    ended = Ended(tmp_path / "work", "sh", "-c", """
        ip link set lo up
        echo 1 > /sys/kernel/tracing/events/tcp/tcp_probe/enable
        python3 -m http.server 8000 >/dev/null 2>&1 & sleep 1
        curl -s -o /dev/null 127.0.0.1:8000/
        grep -c 'tcp_probe: .*snd_cwnd=10' /sys/kernel/tracing/trace""")
    assert ended.status == 0 and int(ended.out) > 1, ended.out + ended.err
