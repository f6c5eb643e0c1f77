"""./run.sh -- COMMAND keeps packets apart by their cost, and sockets hold as much as on Debian."""

from __future__ import annotations

import re
from pathlib import Path

from tests.live.commands import Ended, needs_commands

pytestmark = needs_commands
# 400 datagrams of 1250 bytes come to a limit of 10 Mbit/s at one moment. The limit keeps packets 1
# ms apart, except while its bucket is full. A packet costs 0.5 ms.
PLACES = r"""
limit() { d=$1; shift; case $kind in
    tbf) tc -n a qdisc add dev $d "$@" tbf rate 10mbit burst $bucket limit 5000000 ;;
    htb) tc -n a qdisc add dev $d "$@" handle 2: htb default 1
        tc -n a class add dev $d parent 2: classid 2:1 htb rate 10mbit burst $bucket cburst $bucket ;;
    cake) tc -n a qdisc add dev $d "$@" cake bandwidth 10mbit ;;
    fq) tc -n a qdisc add dev $d "$@" fq maxrate 10mbit flow_limit 1000 ;;
    esac; }
delay() { d=$1; shift; tc -n a qdisc add dev $d "$@" netem delay 20ms limit 1000; }
cat >receive.py <<'PYTHON'
import socket, time
receiver = socket.socket(type=socket.SOCK_DGRAM)
receiver.bind(("", 7000))
open("ready", "w").close()
times = []
receiver.settimeout(4)
try:
    while len(times) < 400:
        receiver.recv(2000)
        times.append(time.monotonic())
except TimeoutError:
    pass
print(len(times), round((times[300] - times[100]) * 1000 / 200, 3))
PYTHON
cat >send.py <<'PYTHON'
import socket
sender = socket.socket(type=socket.SOCK_DGRAM)
for number in range(400):
    sender.sendto(bytes(1208), ("10.0.0.2", 7000))
PYTHON
while read -r kind place bucket; do
    ip netns add a; ip netns add b
    ip link add name e0 netns a type veth peer name e0 netns b
    ip -n a addr add 10.0.0.1/24 dev e0; ip -n b addr add 10.0.0.2/24 dev e0
    ip -n a link set dev e0 up; ip -n b link set dev e0 up
    case $kind-$place in
    none-*) delay e0 root ;;
    *-under) delay e0 root handle 1:; limit e0 parent 1: ;;
    tbf-over) limit e0 root handle 2:; delay e0 parent 2: ;;
    htb-over) limit e0 root; delay e0 parent 2:1 ;;
    esac
    ip netns exec a ping -q -c 2 -i 0.1 10.0.0.2 >/dev/null
    ip netns exec b python3 receive.py >got & until [ -e ready ]; do sleep 0.01; done
    ip netns exec a python3 send.py; wait
    echo "$kind $place $bucket $(cat got)"
    ip netns del a; ip netns del b; rm ready
done
"""
CELLS = """\
none - 0
tbf under 2000
tbf over 2000
htb under 2000
htb over 2000
fq under 0
cake under 0
tbf under 1000000
tbf over 1000000
htb under 1000000
htb over 1000000
"""


def test_packets_of_a_full_bucket_are_kept_apart_by_their_cost(tmp_path: Path) -> None:
    """A full bucket lets packets through at once, so only their cost keeps them apart."""
    (tmp_path / "places.sh").write_text(PLACES)
    ended = Ended(tmp_path, "bash", "places.sh", flags=("--packet-cost", "500us"),
                  given=CELLS.encode())
    assert ended.status == 0, ended.err
    found = [line.split() for line in ended.out.splitlines()]
    assert len(found) == CELLS.count("\n")
    for kind, _, bucket, count, apart_ms in found:
        expected_ms = 0.5 if kind == "none" or int(bucket) > 100_000 else 1.0
        assert int(count) > 380 and abs(float(apart_ms) - expected_ms) < 0.05, ended.out


# Two bridges with a link between them that has a netem, and a bucket below it, as in public labs.
LAB = r"""
for each in a b s1 s2; do ip netns add $each; done
ip link add va netns a type veth peer name p1 netns s1
ip link add vb netns b type veth peer name p2 netns s2
ip link add m1 netns s1 type veth peer name m2 netns s2
ip -n a addr add 10.7.0.1/24 dev va; ip -n b addr add 10.7.0.2/24 dev vb
for each in 1 2; do
    ip -n s$each link add name bridge0 type bridge
    ip -n s$each link set dev p$each master bridge0; ip -n s$each link set dev m$each master bridge0
    for device in bridge0 p$each m$each; do ip -n s$each link set dev $device up; done
done
ip -n a link set dev va up; ip -n b link set dev vb up
tc -n s1 qdisc add dev m1 root handle 1: netem delay 20ms
tc -n s1 qdisc add dev m1 parent 1: handle 2: tbf rate 10gbit burst 5000000 limit 15000000
ip netns exec b iperf3 -s -D >/dev/null; sleep 1
for middle in 80000 87380 100000; do
    for each in a b; do
        ip netns exec $each sysctl -qw net.ipv4.tcp_rmem="10240 $middle 16777216" \
            net.ipv4.tcp_wmem="10240 87380 16777216"
    done
    ip netns exec a iperf3 -c 10.7.0.2 -t 1 -J | grep -o '"bits_per_second":.*' | tail -n 1
done
"""


def test_a_full_bucket_under_a_delay_does_not_slow_tcp(tmp_path: Path) -> None:
    """A stock kernel has 3584 Mbit/s in the first second with each of three receive buffers.

    Without a cost of packets a window of 64 kB never grows in one of three flows: 52 Mbit/s.
    """
    (tmp_path / "lab.sh").write_text(LAB)
    ended = Ended(tmp_path, "bash", "lab.sh")
    assert ended.status == 0, ended.err
    found = [float(number) / 1e6 for number in re.findall(r":\s*([\d.e+]+)", ended.out)]
    assert len(found) == 3 and 3200 < min(found) <= max(found) < 4300, found


SLOW = r"""
ip netns add a; ip netns add b
ip link add name e0 netns a type veth peer name e0 netns b
ip -n a addr add 10.0.0.1/24 dev e0; ip -n b addr add 10.0.0.2/24 dev e0
for each in a b; do
    ip -n $each link set dev e0 up
    tc -n $each qdisc add dev e0 root netem delay 20ms rate 10mbit limit 1000
done
cat >reader.py <<'PYTHON'
import socket, time
connection, _ = socket.create_server(("", 7000)).accept()
while connection.recv(20000): time.sleep(0.05)
PYTHON
cat >writer.py <<'PYTHON'
import socket, time
connection = socket.create_connection(("10.0.0.2", 7000))
began = time.monotonic()
connection.sendall(bytes(3_000_000))
print(time.monotonic() - began)
PYTHON
ip netns exec b python3 reader.py &
until ip netns exec b ss -Hltn | grep -q :7000; do sleep 0.1; done
ip netns exec a python3 writer.py
"""


def test_a_socket_holds_as_much_as_on_a_distributions_kernel(tmp_path: Path) -> None:
    """On a stock kernel the sender of 3 MB to a slow reader ends after 5.89 s.

    It ends after 6.54 s on a kernel with room for fewer headers, where a socket holds half as much.
    """
    (tmp_path / "slow.sh").write_text(SLOW)
    ended = Ended(tmp_path, "bash", "slow.sh")
    assert ended.status == 0 and 5.6 < float(ended.out) < 6.1, ended.out + ended.err


SPIN = """\
import os, select, sys, time
readable, writable = os.pipe()
for _ in range(int(sys.argv[1])):
    if not os.fork():
        rounds, end = 0, time.monotonic() + 0.5
        while time.monotonic() < end:
            select.select([], [], [], 0)
            rounds += 1
        os.write(writable, b"%d " % rounds)
        os._exit(0)
for _ in range(int(sys.argv[1])):
    os.wait()
print(sum(map(int, os.read(readable, 10_000).split())))
"""


def test_many_processes_that_spin_in_turns_take_few_rounds(tmp_path: Path) -> None:
    """Each gets 1000 rounds for nothing, and 20,000 more are allowed for all together.

    When the kernel knew only 8 spinning processes, 20 of them took 200,000 rounds and 64 a million.
    """
    (tmp_path / "spin.py").write_text(SPIN)
    for count in (20, 64):
        ended = Ended(tmp_path, "python3", "spin.py", str(count))
        assert ended.status == 0 and int(ended.out) < 1200 * count + 20_000, ended.out


JITTER = r"""
ip netns add a; ip netns add b
ip link add name e0 netns a type veth peer name e0 netns b
ip -n a addr add 10.0.0.1/24 dev e0; ip -n b addr add 10.0.0.2/24 dev e0
ip -n a link set dev e0 up; ip -n b link set dev e0 up
tc -n a qdisc add dev e0 root netem delay 20ms 5ms limit 10000
ip netns exec b iperf3 -s -D >/dev/null; sleep 1
ip netns exec a iperf3 -c 10.0.0.2 -t 2 -J |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["end"]["sum_sent"]["bits_per_second"])'
ip netns exec a nstat -sz TcpRetransSegs | awk '/^Tcp/ { print $2 }'
"""


def test_tcp_retransmits_no_packet_that_netem_still_holds(tmp_path: Path) -> None:
    """A stock kernel has 3 to 5 Mbit/s, and retransmits no segment.

    If netem forgot whose packets it holds, TCP would retransmit hundreds of packets that are late.
    From the duplicates it would learn that they were only late, and be much faster.
    """
    (tmp_path / "jitter.sh").write_text(JITTER)
    ended = Ended(tmp_path, "bash", "jitter.sh")
    assert ended.status == 0, ended.err

    bits_per_second, sent_again = ended.out.split()
    assert 2e6 < float(bits_per_second) < 8e6 and sent_again == "0", ended.out
