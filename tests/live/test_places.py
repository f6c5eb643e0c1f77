"""The same scripts in other places print the same bytes, at the same moments, and send the same.

A place: the folder's path, the scripts' names, the environment, whether packets are captured, and
whether the machine is busy. Ten scripts of what courses do run one after the other in one guest.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.test_commands import Ended
from vtime.uml import find_kernel

pytestmark = pytest.mark.skipif(find_kernel("--mininet") is None,
                                reason="./install.sh --with-mininet")
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
    """How all scripts ended in a folder, under names with this prefix."""
    folder.mkdir(parents=True)
    (folder / "network").write_text(NETWORK)
    for name, content in SCRIPTS.items():
        (folder / f"{prefix}{name}").write_text(content)
    (folder / "all.sh").write_text(ALL.format(names=" ".join(prefix + name for name in SCRIPTS)))
    return Ended(folder, "sh", "all.sh", flags=flags, results=folder.parent / f"kept-{prefix}")


@contextmanager
def busy(count: int) -> Iterator[None]:
    """The machine's processors are busy meanwhile."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def times(ended: Ended) -> bytes:
    """What was printed with its times, on the guest's clock; and when all had ended."""
    return (ended.kept / "output.txt").read_bytes() + str(ended.facts()["virtual_s"]).encode()


def test_ten_scripts_in_three_places(tmp_path: Path) -> None:
    first = ended_in(tmp_path / "a")
    assert first.status == 0 and first.out.count('"bits_per_second"') > 20, first.err
    long = tmp_path / "a folder" / "with a much longer name" / "and some more of them" / "b"
    second = ended_in(long, "script_of_a_longer_name_",
                      ("--capture", "--env", f"LONG={'x' * 3000}", "--env", "MORE=1"))
    with busy(2):
        third = ended_in(tmp_path / "c", "c", ("--capture", "--env", "SHORT=x"))
    assert second.out == first.out and third.out == first.out
    assert times(second) == times(first) and times(third) == times(first)
    packets = [(ended.kept / "capture.pcapng").read_bytes() for ended in (second, third)]
    assert len(packets[0]) > 1_000_000 and packets[0] == packets[1]
    assert shutil.which("ovs-vsctl") is None or "actions=NORMAL" in first.out
