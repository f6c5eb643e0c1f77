"""What a command that configures has written is in force for the packets that follow its end."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.live.test_commands import Ended
from vtime.uml import find_kernel

pytestmark = pytest.mark.skipif(find_kernel("--mininet") is None,
                                reason="./install.sh --with-mininet")
# Two hosts at a switch. A ping of a Python program that is there already: no program has to start
# first, in whose time the rule might come into force. It prints how many of three come back.
NETWORK = """\
set -e
{switch}
for i in 1 2; do
    ip netns add h$i
    ip link add s1-eth$i type veth peer name h$i-eth0 netns h$i
    ip -n h$i addr add 10.0.0.$i/24 dev h$i-eth0
    ip -n h$i link set h$i-eth0 up
    ip link set s1-eth$i up
    {port}
done
cat >pings.py <<'END'
import select, socket, subprocess, sys, time

def answers():
    pings = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    pings.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    count = 0
    for number in range(3):
        packet = bytes([8, 0, 0, 0, 0, 7, 0, number])
        total = sum(int.from_bytes(packet[at:at + 2], "big") for at in range(0, 8, 2))
        pings.sendto(packet[:2] + (0xFFFF - total).to_bytes(2, "big") + packet[4:],
                     ("10.0.0.2", 0))
        while select.select([pings], [], [], 0.0001)[0]:
            count += pings.recv(2000)[20] == 0
    return count

for line in sys.stdin:
    seconds, *words = line.split()
    for _ in range(3):
        answers()
    time.sleep(float(seconds))
    done = subprocess.run(["nsenter", "--net=/proc/1/ns/net", *words])
    print(done.returncode, answers(), line.strip())
END
ip netns exec h1 ping -c 2 -i 0.2 10.0.0.2 >/dev/null
ip netns exec h1 python3 -u pings.py <<'END'
{commands}
END
"""
OVS = ("ovs-vsctl add-br s1", "ovs-vsctl add-port s1 s1-eth$i")
BRIDGE = ("ip link add s1 type bridge; ip link set s1 up", "ip link set s1-eth$i master s1")
# The seconds to wait first, what takes the network away, and what gives it back.
OVS_PAIRS = [
    *(pair for wait in ("0", "0.001", "0.003", "0.6")
      for pair in ((f"{wait} ovs-ofctl add-flow s1 in_port=2,actions=drop",
                    f"{wait} ovs-ofctl --strict del-flows s1 in_port=2"),
                   (f"{wait} ovs-vsctl set port s1-eth2 tag=7",
                    f"{wait} ovs-vsctl clear port s1-eth2 tag")))]
KERNEL_PAIRS = [
    ("0 tc qdisc add dev s1-eth2 root netem loss 100%", "0 tc qdisc del dev s1-eth2 root"),
    ("0 ip link set s1-eth2 down", "0.1 ip link set s1-eth2 up"),
    ("0 ip -n h2 route add blackhole 10.0.0.1/32", "0 ip -n h2 route del blackhole 10.0.0.1/32"),
    ("0 ip netns exec h2 iptables -A INPUT -p icmp -j DROP",
     "0 ip netns exec h2 iptables -D INPUT -p icmp -j DROP"),
    ("0 ip netns exec h2 iptables-legacy -A OUTPUT -p icmp -j DROP",
     "0 ip netns exec h2 iptables-legacy -D OUTPUT -p icmp -j DROP"),
    ("0 ip netns exec h2 nft add table ip t {chain c {type filter hook input priority 0; policy"
     " drop;};}", "0 ip netns exec h2 nft delete table ip t")]


def answered(folder: Path, network: tuple[str, str], pairs: list[tuple[str, str]]) -> list[str]:
    """A line for each command: its status, how many of three pings were answered, its words."""
    switch, port = network
    (folder / "network.sh").write_text(NETWORK.format(
        switch=switch, port=port, commands="\n".join(line for pair in pairs for line in pair)))
    ended = Ended(folder, "sh", "network.sh")
    assert ended.status == 0, ended.err
    return ended.out.splitlines()


def expected(pairs: list[tuple[str, str]]) -> list[str]:
    return [line for took, gave in pairs for line in (f"0 0 {took}", f"0 3 {gave}")]


@pytest.mark.skipif(shutil.which("ovs-vsctl") is None, reason="Open vSwitch is not installed")
def test_what_open_vswitch_was_told(tmp_path: Path) -> None:
    """Its datapath keeps flows for up to 5 ms after a change (udpif_revalidator)."""
    assert answered(tmp_path, OVS, OVS_PAIRS) == expected(OVS_PAIRS)


def test_what_the_kernel_was_told(tmp_path: Path) -> None:
    pairs = [pair for pair in KERNEL_PAIRS
             if all(shutil.which(name) for name in ("iptables", "nft") if f" {name}" in pair[0])]
    assert answered(tmp_path, BRIDGE, pairs) == expected(pairs)


@pytest.mark.skipif(shutil.which("ovs-vsctl") is None, reason="Open vSwitch is not installed")
def test_three_pings_at_once_after_a_rule(tmp_path: Path) -> None:
    """As a published experiment does it, whose result an old flow reverses."""
    (tmp_path / "network.sh").write_text(NETWORK.partition("cat >pings.py")[0].format(
        switch=OVS[0], port=OVS[1]) + """
        ip netns exec h1 ping -c 1 10.0.0.2 | grep loss
        ovs-ofctl add-flow s1 in_port=2,actions=drop
        for each in 1 2 3; do ip netns exec h1 ping -c 1 -W 1 10.0.0.2 | grep loss; done""")
    ended = Ended(tmp_path, "sh", "network.sh")
    assert [line.split(", ")[2] for line in ended.out.splitlines()] == [
        "0% packet loss", *3 * ["100% packet loss"]], ended.out + ended.err
