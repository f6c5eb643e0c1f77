"""What other people's scripts call, each once, and how their input and output pass through."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.live.conftest import PROJECT
from tests.live.test_commands import Ended
from vtime.uml import find_kernel

pytestmark = pytest.mark.skipif(find_kernel("--mininet") is None,
                                reason="./install.sh --with-mininet")
PROGRAMS = ("iperf", "iperf3", "ping", "wget", "curl", "nc", "nginx", "tcpdump", "killall", "brctl")
# What a host types, and what has to come back.
TYPED = {
    "ping -i 0.1 -c 3 10.0.0.2": "time=20.0 ms", "wget -qO- 10.0.0.2:8000/page": "a page",
    "curl -s 10.0.0.2:8080/page": "a page", "echo by nc | nc -N 10.0.0.2 7000; sleep 1; cat got": "by nc",
    "iperf -c 10.0.0.2 -t 1 -w 1m | tail -1": "Mbits/sec",
    "iperf3 -c 10.0.0.2 -t 1 -P 10 | tail -4": "[SUM]", "ip -o link show h1-eth0": "mtu 1500",
    "tc -s qdisc show dev h1-eth0": "limit 100", "ss -tin dst 10.0.0.2": "State",
    "ifconfig h1-eth0 txqueuelen 77; ip link show h1-eth0": "qlen 77",
    "ps auxww | grep [h]ttp.server": "-m http.server 8000", "top -bn1 | head -1": "load average",
    "ovs-vsctl add-br x; ovs-vsctl show": "Bridge x",
    "sudo -E A=1 sh -c 'echo $A of $(id -un) on $(hostname)'": "1 of root on localhost",
    "sudo -n -u nobody -- id -un": "nobody"}
SCRIPT = f"""\
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.node import CPULimitedHost
from mininet.nodelib import LinuxBridge
net = Mininet(switch=LinuxBridge, link=TCLink, host=CPULimitedHost, controller=None)
one, two = (net.addHost(f"h{{number}}", cpu=.25) for number in (1, 2))
switch = net.addSwitch("s1")
for host in (one, two):
    net.addLink(host, switch, bw=10, delay="5ms", max_queue_size=100)
net.start()
two.cmd("tcpdump -i h2-eth0 -w dump.pcap 2> /dev/null &")
two.cmd("python3 -m http.server 8000 > /dev/null 2>&1 &")
two.cmd("nginx -p $PWD -c nginx.conf; nc -l -p 7000 > got &")
two.cmd("iperf -s > /dev/null & iperf3 -s -D")
one.cmd("modprobe tcp_probe; sleep 1")
for command in {list(TYPED)}:
    print(one.cmd(command), end="#")
two.cmd("kill %tcpdump; killall nginx iperf; sleep 1")
net.iperf((one, two), seconds=1)
net.stop()
"""
NGINX = """\
user root;
worker_processes 1;
events {}
http { access_log off; server { listen 8080; root .; } }
"""


@pytest.mark.skipif(any(shutil.which(name) is None for name in PROGRAMS),
                    reason="./install.sh --with-mininet --with-nginx")
def test_each_program_once_and_the_same_bytes_beside_another_guest(tmp_path: Path) -> None:
    def ran(name: str) -> Ended:
        folder = tmp_path / name / "work"
        folder.mkdir(parents=True)
        (folder / "script.py").write_text(SCRIPT)
        (folder / "nginx.conf").write_text(NGINX)
        (folder / "page").write_text("a page\n")
        for path in folder.iterdir():
            os.utime(path, (1e9, 1e9))  # which both servers tell
        return Ended(folder, "python3", "script.py")
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(ran, ("this", "that"))  # as long: what ps tells of memory depends on it
    assert one.status == 0, one.err
    assert [(typed, came) for (typed, words), came in zip(TYPED.items(), one.out.split("#"))
            if words not in came] == []
    assert "computing costs no time" in one.err and "tcp_probe is in no kernel" in one.err
    assert "Results: ['" in one.out + one.err  # which waits for ever on a real Debian 12
    assert other.out == one.out
    for name in ("output.txt", "files/dump.pcap"):
        assert (other.kept / name).read_bytes() == (one.kept / name).read_bytes()
    assert (one.kept / "files/dump.pcap").stat().st_size > 1_000_000


def test_what_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        done = subprocess.run([str(PROJECT / "run.sh"), "--results", str(tmp_path), "--", "sh", "-c",
                               "sleep 5; head -c 4; sleep 5; echo ends"], cwd=tmp_path,
                              stdin=endless.stdout, capture_output=True, timeout=120, check=False)
        endless.kill()
    assert (done.returncode, done.stdout) == (0, b"y\ny\nends\n"), done.stderr


def test_output_is_on_the_disk_once(tmp_path: Path) -> None:
    with subprocess.Popen([str(PROJECT / "run.sh"), "--results", str(tmp_path), "--", "sh", "-c",
                           "seq 500000; sleep 1; cat"], cwd=tmp_path, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        time.sleep(1)  # input that is not whole yet
        while process.stdout.readline() != b"500000\n":
            pass
        (frames,) = tmp_path.glob("commands/*/.guest/frames")
        found = frames.stat()
        process.stdin.close()
        assert process.wait(120) == 0
    assert found.st_size > 3_000_000 and found.st_blocks * 512 < found.st_size / 2


def test_in_background_a_terminal_is_none(tmp_path: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execv("/bin/bash", ["bash", "--norc", "-i"])
    try:
        os.write(terminal, f"{PROJECT}/run.sh --results {tmp_path} -- sh -c 'tty; cat; echo ended'"
                           " > out 2>&1 < /dev/tty & wait; echo jobs: $(jobs -s | wc -l); exit\n"
                 .encode())
        until = time.monotonic() + 120
        while os.waitpid(child, os.WNOHANG) == (0, 0) and time.monotonic() < until:
            time.sleep(0.1)
        assert "not a tty\nended\n" in (tmp_path / "out").read_text()
    finally:
        os.kill(child, signal.SIGKILL) if time.monotonic() >= until else None
        os.close(terminal)


def test_mininet_s_own_command_builds_the_networks_of_topo(tmp_path: Path) -> None:
    """As the docstring of topo.py has it."""
    (line,) = re.findall(r"^    \./run\.sh -- (.*)$", (PROJECT / "topo.py").read_text(), re.MULTILINE)
    done = subprocess.run([str(PROJECT / "run.sh"), "--results", str(tmp_path), "--", *line.split()],
                          cwd=PROJECT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0 and "0% dropped (2/2 received)" in done.stderr, done.stderr
