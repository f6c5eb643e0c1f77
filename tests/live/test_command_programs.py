"""Programs that scripts use work in the guest, with the same output in any place, and repeated.

A place is the folder's path, the scripts' names, the environment, and whether the machine is busy.
Ten scripts as university courses have them run one after the other in one guest.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.commands import Ended, begun, kept_of, needs_commands, typed
from tests.live.conftest import PROJECT
from tests.running import HANGS_S, run_program, wait_until

pytestmark = needs_commands
PROGRAMS = ("iperf", "iperf3", "ping", "wget", "curl", "nc", "nginx", "tcpdump", "killall", "brctl")
# What is typed on a host, and a part of the output.
TYPED = {
    "ping -i 0.1 -c 3 10.0.0.2": "time=20.0 ms", "wget -qO- 10.0.0.2:8000/page": "a page",
    "curl -s 10.0.0.2:8080/page": "a page",
    "echo by nc | nc -N 10.0.0.2 7000; sleep 1; cat got": "by nc",
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
def test_every_common_program_prints_the_same_bytes_in_two_concurrent_guests(
        tmp_path: Path) -> None:
    def ran(name: str) -> Ended:
        folder = tmp_path / name / "work"
        folder.mkdir(parents=True)
        (folder / "script.py").write_text(SCRIPT)
        (folder / "nginx.conf").write_text(NGINX)
        (folder / "page").write_text("a page\n")
        for path in folder.iterdir():
            os.utime(path, (1e9, 1e9))  # since both servers send the time of a file
        return Ended(folder, "python3", "script.py")

    with ThreadPoolExecutor(2) as pool:
        # The names have the same length, on which the memory that ps shows depends.
        one, other = pool.map(ran, ("this", "that"))
    assert one.status == 0, one.err
    assert [(typed, came) for (typed, words), came in zip(TYPED.items(), one.out.split("#"))
            if words not in came] == []
    assert "computing costs no time" in one.err and "tcp_probe is in no kernel" in one.err
    # The result of net.iperf, which waits for ever on a real Debian 12.
    assert "Results: ['" in one.out + one.err
    assert other.out == one.out
    for name in ("output.txt", "files/dump.pcap"):
        assert (other.kept / name).read_bytes() == (one.kept / name).read_bytes()
    assert (one.kept / "files/dump.pcap").stat().st_size > 1_000_000


def test_a_command_that_stops_reading_an_endless_input_ends(tmp_path: Path) -> None:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        done = run_program(typed(tmp_path, "sh", "-c", "sleep 5; head -c 4; sleep 5; echo ends"),
                           cwd=tmp_path, stdin=endless.stdout, text=False)
        endless.kill()
    assert (done.returncode, done.stdout) == (0, b"y\ny\nends\n"), done.stderr


def test_a_commands_output_takes_room_on_the_disk_only_once(tmp_path: Path) -> None:
    with begun(tmp_path, "sh", "-c", "seq 500000; sleep 1; cat",
               stdin=subprocess.PIPE) as process:
        while process.stdout.readline() != b"500000\n":
            pass
        (frames,) = tmp_path.glob("results/commands/*/.guest/frames")
        found = frames.stat()
        process.stdin.close()
        assert process.wait(HANGS_S) == 0
    assert found.st_size > 3_000_000 and found.st_blocks * 512 < found.st_size / 2


def test_a_command_in_the_background_has_no_terminal(tmp_path: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execv("/bin/bash", ["bash", "--norc", "-i"])
    try:
        os.write(terminal, f"{PROJECT}/run.sh --results {tmp_path} -- sh -c 'tty; cat; echo ended'"
                           " > out 2>&1 < /dev/tty & wait; echo jobs: $(jobs -s | wc -l); exit\n"
                 .encode())
        wait_until(lambda: os.waitpid(child, os.WNOHANG) != (0, 0), "the shell's end")
        assert "not a tty\nended\n" in (tmp_path / "out").read_text()
    finally:
        os.close(terminal)  # ends the shell if it still runs


def test_mininets_own_command_builds_the_networks_of_topo(tmp_path: Path) -> None:
    """The networks are those of topo.py's docstring. Every host reaches every other one."""
    lines = re.findall(r"^    \./run\.sh -- (.*)$", (PROJECT / "topo.py").read_text(),
                       re.MULTILINE)
    for line, pings in zip(lines, (2, 6), strict=True):  # the dumbbell has a router, too
        done = run_program(typed(tmp_path, *line.split()))
        assert done.returncode == 0, done.stderr
        assert f"0% dropped ({pings}/{pings} received)" in done.stderr, done.stderr


# Scripts in another place print the same bytes at the same times, and send the same packets ---

NETWORK = """\
two() {
    ip netns add a; ip netns add b
    ip link add va netns a type veth peer name vb netns b
    ip -n a addr add 10.0.0.1/24 dev va; ip -n b addr add 10.0.0.2/24 dev vb
    for place in a b; do
        ip -n $place link set v$place up; ip -n $place link set lo up
        ip netns exec $place tc qdisc add dev v$place root $1
    done
}
none() { pkill iperf3; ip -all netns del; }
"""
IPERF = """\
ip netns exec b iperf3 -s -D >/dev/null; sleep 1
ip netns exec a iperf3 {flags} -t 1 -c 10.0.0.2 -J; none
"""
MININET = """\
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
net = Mininet(switch=LinuxBridge, link=TCLink, controller=None)
hosts = [net.addHost(f"h{number}") for number in (1, 2)]
switch = net.addSwitch("s1")
for host in hosts:
    net.addLink(host, switch, bw=10, delay="5ms", max_queue_size=50)
net.start()
net.pingAll()
hosts[1].cmd("iperf3 -s -D")
print(hosts[0].cmd("iperf3 -J -c 10.0.0.2 -t 1"))
net.stop()
"""
OPEN_VSWITCH = """\
ovs-vsctl add-br s1
for i in 1 2; do
    ip netns add h$i
    ip link add s1-eth$i type veth peer name h$i-eth0 netns h$i
    ip -n h$i addr add 10.0.0.$i/24 dev h$i-eth0
    ip -n h$i link set h$i-eth0 up; ip link set s1-eth$i up; ovs-vsctl add-port s1 s1-eth$i
done
ip netns exec h1 ping -c 4 -i 0.2 10.0.0.2
ovs-ofctl dump-flows s1; ovs-vsctl show; ovs-ofctl dump-ports s1
ovs-vsctl del-br s1; ip -all netns del
"""
CURL = """\
. ./network; two "netem delay 30ms rate 5mbit"
mkdir served; head -c 200000 /dev/zero >served/file
ip netns exec b python3 -m http.server -d served 8000 >/dev/null 2>&1 & sleep 1
for each in 1 2 3; do
    ip netns exec a curl -s -o /dev/null -w '%{time_connect} %{time_total} %{local_port}\\n' \\
        10.0.0.2:8000/file
done
kill $!; none; rm -r served
"""
SOCKETS = """\
. ./network; two "netem delay 15ms"
ip netns exec b python3 -c '
import socket, time
connection, _ = socket.create_server(("10.0.0.2", 9)).accept()
count, begun_ns = 0, time.monotonic_ns()
while piece := connection.recv(65536):
    count += len(piece)
print(count, time.monotonic_ns() - begun_ns)' &
sleep 0.5
ip netns exec a python3 -c '
import socket, subprocess
connection = socket.create_connection(("10.0.0.2", 9))
connection.sendall(bytes(3000000))
print(subprocess.run(["ss", "-tin"], capture_output=True, text=True).stdout)'
wait; none
"""
RANDOM = """\
import os, random, subprocess, tempfile, threading, time
print(time.time_ns(), os.getpid(), random.random(), hash("a"), os.urandom(8).hex())
print(tempfile.mktemp(), {str(number) for number in range(10)})
def wait(number):
    time.sleep(number / 1000)
    print(number, time.monotonic_ns())
threads = [threading.Thread(target=wait, args=(number,)) for number in range(5)]
for thread in threads: thread.start()
for thread in threads: thread.join()
for _ in range(5):
    subprocess.run(["mktemp", "-u"])
    print(time.monotonic_ns())
"""
TASKS = """\
import asyncio, random, time
async def answer(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(random.random() / 100)
        writer.write(line)
async def ask(client):
    reader, writer = await asyncio.open_connection("127.0.0.1", 7777)
    for number in range(5):
        writer.write(b"%d %d\\n" % (client, number))
        print((await reader.readline()).strip(), time.monotonic_ns())
    writer.close()
async def main():
    await asyncio.start_server(answer, "127.0.0.1", 7777)
    await asyncio.gather(*map(ask, range(4)))
asyncio.run(main())
"""
SCRIPTS = {
    "1.sh": '. ./network; two "netem delay 20ms limit 100000"\n' + IPERF.format(flags=""),
    "2.sh": '. ./network; two "tbf rate 20mbit burst 20k limit 60k"\n' + IPERF.format(flags="-P 2"),
    "3.sh": '. ./network; two "netem delay 5ms loss 1% rate 20mbit"\n'
            + IPERF.format(flags="-u -b 5M"),
    "4.sh": '. ./network; two "netem delay 10ms 3ms loss 2%"\n'
            "ip netns exec a ping -c 100 -i 0.01 10.0.0.2; none\n",
    "5.py": MININET, "6.sh": OPEN_VSWITCH, "7.sh": CURL, "8.sh": SOCKETS, "9.py": RANDOM,
    "10.py": TASKS}
ALL = """\
ip link set lo up
for script in {names}; do
    case $script in *.py) python3 "$script" ;; *) sh "$script" ;; esac
done
"""


def ended_in(folder: Path, prefix: str = "", flags: tuple[str, ...] = ()) -> Ended:
    """Run all scripts in a folder, under names with a prefix."""
    folder.mkdir(parents=True)
    (folder / "network").write_text(NETWORK)
    for name, content in SCRIPTS.items():
        (folder / f"{prefix}{name}").write_text(content)
    (folder / "all.sh").write_text(ALL.format(names=" ".join(prefix + name for name in SCRIPTS)))
    return Ended(folder, "sh", "all.sh", flags=flags, results=folder.parent / f"kept-{prefix}")


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes keep the machine's processors busy until the block ends."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def times(ended: Ended) -> bytes:
    """The output with the guest's time of each piece, and the time at which all had ended."""
    return (ended.kept / "output.txt").read_bytes() + str(ended.facts()["virtual_s"]).encode()


def test_ten_scripts_do_the_same_in_two_places(tmp_path: Path) -> None:
    """The machine is busy in one of them. test_captures.py tests that captures change nothing."""
    first = ended_in(tmp_path / "a", flags=("--capture",))
    assert first.status == 0 and first.out.count('"bits_per_second"') > 20, first.err
    long = tmp_path / "a folder" / "with a much longer name" / "and some more of them" / "b"
    with busy(2):
        second = ended_in(long, "script_of_a_longer_name_",
                          ("--capture", "--env", f"LONG={'x' * 3000}", "--env", "MORE=1"))
    assert second.out == first.out and times(second) == times(first)
    packets = [(ended.kept / "capture.pcapng").read_bytes() for ended in (first, second)]
    assert len(packets[0]) > 1_000_000 and packets[0] == packets[1]
    assert shutil.which("ovs-vsctl") is None or "actions=NORMAL" in first.out


# ./run.sh --repeat N -- COMMAND -------------------------------------------------------

# A transfer with random losses, and a number that Python draws by the seed.
LOSSY_SCRIPT = """\
ip netns add a; ip netns add b
ip link add name va netns a type veth peer name vb netns b
ip -n a addr add 10.0.0.1/24 dev va; ip -n b addr add 10.0.0.2/24 dev vb
ip -n a link set dev va up; ip -n b link set dev vb up
ip netns exec a tc qdisc add dev va root netem delay 10ms rate 10mbit loss 3%
ip netns exec b iperf3 -s -D >/dev/null
until ip netns exec b ss -Hltn | grep -q :5201; do sleep 0.1; done
ip netns exec a iperf3 -c 10.0.0.2 -n 500K -f k | grep receiver
date +%N >written
python3 -c 'print("drawn", hash("a word") % 1000, "of 1000")'
exit $STATUS
"""


def test_repeated_runs_differ_by_seed_and_their_table_has_lines_and_connections(
        tmp_path: Path) -> None:
    (tmp_path / "lossy.sh").write_text(LOSSY_SCRIPT)
    ended = Ended(tmp_path, "sh", "lossy.sh", flags=(
        "--repeat", "4", "--jobs", "2", "--seed", "7", "--env", "STATUS=3"))
    assert ended.status == 3 and "run 1 (seed 7) ended with status 3; 4 of 4" in ended.err
    assert ended.out.startswith("4 runs, seeds 7 to 10\n")
    assert "drawn _ of 1000\n    median " in ended.out
    assert "a 10.0.0.1 → b 10.0.0.2:5201 (2): retransmitted segments\n" in ended.out
    stored = json.loads((ended.kept / "spread.json").read_text())
    assert stored["seeds"] == [7, 8, 9, 10] and stored["status"] == [3] * 4
    (drawn,) = (row for row in stored["lines"] if row["name"] == "drawn _ of 1000")
    assert len(set(drawn["each"])) > 1
    (goodput,) = (row for row in stored["connections"] if row["name"].endswith("goodput"))
    assert goodput["unit"] == "Mbit/s" and all(0.5 < rate < 10 for rate in goodput["each"])
    runs = sorted(ended.kept.glob("run_*"))
    assert [run.name for run in runs] == ["run_1", "run_2", "run_3", "run_4"]
    for run, number in zip(runs, drawn["each"]):
        assert f"out drawn {number:.0f} of 1000" in (run / "output.txt").read_text()
        assert (run / "files" / "written").exists() and not (run / "capture.pcapng").exists()
        assert json.loads((run / "command.json").read_text())["seed"] == 7 + runs.index(run)


def test_ctrl_c_keeps_the_runs_that_have_ended(tmp_path: Path) -> None:
    """Ctrl-C comes as soon as two of 500 runs have ended."""
    with begun(tmp_path, "sh", "-c", "sleep 1; echo number $(date +%N)",
               flags=("--repeat", "500", "--jobs", "2")) as running:
        ended = 0
        while ended < 2:
            line = running.stderr.readline()
            assert line, "the command ended before"
            ended += b" of 500: seed " in line
        running.send_signal(signal.SIGINT)
        out, err = (text.decode() for text in running.communicate())
    assert running.returncode == 130 and "of 500 runs had ended" in err
    kept = kept_of(tmp_path)
    stored = json.loads((kept / "spread.json").read_text())
    assert 2 <= stored["runs"] < 500 and stored["requested"] == 500
    assert out.startswith(f"{stored['runs']} runs, seeds {stored['seeds'][0]} to ")
    assert not [*kept.glob("run_*/.guest")]
