"""What a capture's report says of public mistakes with Mininet and tc; links without a limit.

Those of tc, ip and sysctl are in one guest, each between two network namespaces of its own; those
of Mininet's scripts in a second one.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from firstflight.commands.virtual.captured import stored_facts
from firstflight.wire.capture import pcapng
from firstflight.wire.capture.commands import lines_about_commands
from firstflight.wire.capture.connections import observe_connections
from firstflight.wire.capture.conversations import find_conversations
from firstflight.wire.capture.drops import drop_statements
from firstflight.wire.capture.fields import read_headers
from firstflight.wire.capture.links import observe_links
from firstflight.wire.capture.report import report_capture
from firstflight.wire.capture.spaces import NamespaceNames
from tests.live.test_captures import FUNCTIONS
from tests.live.commands import Ended, needs_commands

pytestmark = needs_commands
MORE = r"""
udp() { $a python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(int(sys.argv[2])):
    s.sendto(b"x" * int(sys.argv[4]), (sys.argv[1], 7)); time.sleep(float(sys.argv[3]))' \
    10.0.$N.2 $1 $2 ${3:-1000}; }
"""


class Mistake(NamedTuple):
    """name: of the namespaces; lines: in bash; said: in the report, a regular expression."""

    name: str
    lines: str
    said: str


MISTAKES = (
    Mistake("nodev", "tc -n ${n}a qdisc add dev ${n}a-eth9 root netem delay 5ms 2>/dev/null; pings",
            r"failed in .*: tc -n nodeva qdisc add dev nodeva-eth9 .*: Cannot find device"),
    Mistake("inroot", "tc qdisc add dev $D root netem delay 5ms 2>/dev/null; pings",
            r"failed in the root namespace: tc qdisc add dev inroota-eth0 .*: Cannot find device"),
    Mistake("nochg", "q change root netem delay 5ms 2>/dev/null; pings",
            r"(the kernel refused netem|failed in .*dev nochga-eth0)"),
    Mistake("mbps",
            "q add root handle 1: htb default 1; class parent 1: classid 1:1 htb rate 1mbps;"
            " pings 50 0.001 1000",
            r"mbpsa-eth0\): rate 1mbps: bps are bytes a second for tc, which set 8 Mbit/s"),
    Mistake("minutes", "q add root netem delay 10m 2>/dev/null; pings",
            r"failed in .*dev minutesa-eth0 root netem delay 10m: .*llegal"),
    Mistake("jitonly", "q add root netem jitter 5ms 2>/dev/null; pings",
            r"failed in .*dev jitonlya-eth0 root netem jitter 5ms: What is \"jitter\""),
    Mistake("second",
            "q add root netem delay 10ms; q add root tbf rate 1mbit burst 15k latency 50ms"
            " 2>/dev/null; pings",
            r"seconda-eth0\): netem delay 10 ms .*: replaced by tbf 1 Mbit/s .*burst 15k latency"),
    Mistake("pfifo", "q add root handle 1: htb default 1; class parent 1: classid 1:1 htb rate"
            " 1mbit; q replace root handle 2: pfifo limit 1000; pings 100",
            r"pfifoa-eth0\): htb 1 Mbit/s: removed .*pfifo limit 1000\); \d packets came under"),
    Mistake("over", "q add root netem delay 10ms; q replace root handle 9: tbf rate 5mbit burst 15k"
            " latency 50ms; pings 100",
            r"overa-eth0\): netem delay 10 ms .*: replaced by tbf 5 Mbit/s .*\(tc .*tbf rate"
            r" 5mbit"),
    Mistake("limit", "q add root netem delay 50ms limit 25 rate 10mbit; udp 300 0.0012",
            r"limita-eth0\): this link cannot carry its rate: 25 packets at 50 ms are 500 packets"),
    Mistake("second1", "pings 1; q add root netem delay 1s limit 100; udp 300 0.001",
            r"second1a-eth0\): its delay and its limit carry no more: 100 packets at 1000 ms are"),
    Mistake("lossful", "q add root netem delay 50ms loss 2% limit 25 rate 10mbit; udp 2000 0.0012",
            r"lossfula-eth0\): this link cannot carry its rate"),
    Mistake("tiny", "q add root tbf rate 10mbit burst 1000 limit 100000; udp 20 0.01 1400; pings",
            r"tinya-eth0\): tbf 10 Mbit/s .* its burst of 1000 bytes is below one packet"),
    Mistake("bigb", "q add root tbf rate 1mbit burst 1mb limit 1000000; udp 300 0.0001",
            r"bigba-eth0\): .* bytes pass at once \(burst\), and \d+ were sent"),
    Mistake("order", "q add root netem delay 10ms 8ms; udp 200 0.0005",
            r"ordera-eth0\): \d+ of \d+ packets left out of order, since a delay of 10 ± 8 ms"),
    Mistake("forward", "$a ip route add 10.77.0.0/16 via 10.0.$N.2; pings 5 0.01 56 10.77.0.1",
            r"\d+ of \d+ pings were not answered"),
    Mistake("rsysctl", "sysctl -qw net.ipv4.tcp_congestion_control=reno; sends",
            r"sysctl -qw net.ipv4.tcp_congestion_control.reno ran in the root namespace"),
    Mistake("window",
            "$a ip route add 10.88.0.0/16 dev $D initcwnd 20; q add root netem delay 20ms;"
            " sends 200000",
            r"10.88.0.0/16 dev windowa-eth0 initcwnd 20 set an initial window of 20 in windowa, and"
            r" its first flights have 10"),
    Mistake("rwindow", "ip link add dumr type dummy; ip link set dumr up; ip route add"
            " 10.99.0.0/16 dev dumr initcwnd 30; sends",
            r"initcwnd 30 ran in the root namespace"),
    Mistake("gateway", "$a ip route add default via 10.55.0.1 2>/dev/null; pings",
            r"failed in gatewaya: ip route add default via 10.55.0.1: .*Nexthop"),
    Mistake("program", "$a bash -c 'notthere -A INPUT -j DROP' 2>/dev/null; pings",
            r"bash in programa: bash: .*notthere: command not found"),
    Mistake("subnet", "ip -n ${n}b addr flush dev ${n}b-eth0; ip -n ${n}b addr add 10.0.$N.9/24 dev"
            " ${n}b-eth0; pings 3 0.01", r"no host answered ARP"),
    Mistake("police", "tc -n ${n}b qdisc add dev ${n}b-eth0 ingress; tc -n ${n}b filter add dev"
            " ${n}b-eth0 parent ffff: protocol ip u32 match u32 0 0 police rate 1mbit burst 20k"
            " drop; q add root netem delay 5ms; sends 400000",
            r"dropped on arrival at policeb-eth0 \(TC_INGRESS\)"),
    Mistake("redecn", "q add root red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 bandwidth"
            " 1mbit probability 1 ecn; pings", r"red min 5000 max 15000 bytes ecn"),
    Mistake("ownudp", "q add root netem rate 1mbit limit 10; udp 200 0.001",
            r"a-eth0 dropped \d+ packets of its own host, whose program does not notice"),
    Mistake("loop", "tc -n ${n}a qdisc add dev lo root netem delay 50ms; pings",
            r"qdisc add dev lo root netem delay 50ms: .*loopback"),
    Mistake("mtusize", "ip -n ${n}b link set ${n}b-eth0 mtu 1000; pings 3 0.01 1400",
            r"mtusizea-eth0\): MTU 1500, and 1000 at mtusizeb-eth0"),
    Mistake("closed", "$a nc -q 0 10.0.$N.2 99 </dev/null", r"refused"),
    Mistake("down", "ip -n ${n}b link set ${n}b-eth0 down; pings 3 0.01",
            r"downa-eth0\): \d packets were dropped while downb-eth0 was down"),
)


def told(ended: Ended) -> str:
    """All that a report says of a capture: a page has the first lines."""
    facts = stored_facts(ended.kept)
    capture, spaces = pcapng.read(ended.kept / pcapng.NAME), NamespaceNames(facts["namespaces"])
    fields = read_headers(capture)
    found = observe_links(capture, fields, spaces)
    conversations = find_conversations(capture, fields, found)
    seen = [each for each in observe_connections(
        conversations.connections, conversations.tcp, found, capture.data)
        if each] if conversations.tcp else []
    lines = [f"{link.name} ({link.sender}): {said}" for link in found
             for said in (*link.wrong, *link.advice, *link.remarks, link.setting.words)]
    lines += [*facts["hints"], *lines_about_commands(capture, spaces, seen, 1000),
              report_capture(capture, facts, "", 0).report.answer.sentence]
    lines += [f"{each.text} {each.measured}" for each in drop_statements(capture, found, spaces)]
    lines += {cause for each in seen for cause in each.retransmitted}
    return "\n".join(lines)


def test_mistakes_with_tc_and_ip_are_told(tmp_path: Path) -> None:
    (tmp_path / "all.sh").write_text(FUNCTIONS + MORE + "\n".join(
        f"net {mistake.name} {number}; m_{mistake.name}() {{ {mistake.lines}; }}; m_{mistake.name}"
        for number, mistake in enumerate(MISTAKES, start=1)) + "\ntrue\n")
    ended = Ended(tmp_path, "bash", "all.sh", flags=("--capture",))
    assert ended.status == 0, ended.err
    whole = told(ended)
    silent = [mistake.name for mistake in MISTAKES if not re.search(mistake.said, whole)]
    assert not silent, whole
    assert not re.search(r"lossfula-eth0\): .* lost at random, and 2 % are set", whole)
    # What was still queued when a script ended has filled the queue until then.
    assert not re.search(r"(limit|second1|lossful)a-eth0\): .*differ from what its queue", whole)


MININET = """
import os
from mininet.link import Link, TCLink
from mininet.net import Mininet
from mininet.node import OVSBridge, OVSSwitch
from mininet.nodelib import LinuxBridge
net = Mininet(link=TCLink, switch=LinuxBridge, controller=None)
s1, s2 = net.addSwitch("s1"), net.addSwitch("s2", cls=OVSBridge)
s3 = net.addSwitch("s3", cls=OVSSwitch, failMode="secure")
h = [net.addHost(f"h{n}") for n in range(1, 9)]
net.addLink(h[0], s1, bw=2000)
net.addLink(h[1], s1, bandwidth=10)
net.addLink(h[2], s1, cls=Link, bw=10)
net.addLink(h[3], s1, bw=100, delay="50ms", max_queue_size=10)
net.addLink(h[4], s2)
net.addLink(h[5], s2)
net.addLink(h[6], s3, delay="0.1ms")
net.addLink(h[7], s3)
net.start()
os.system("tc qdisc add dev h2-eth0 root netem delay 10ms 2>/dev/null")
os.system("sysctl -qw net.ipv4.tcp_sack=0")
os.system("tc qdisc add dev s2 root netem delay 20ms")
os.system("ovs-vsctl set interface s2-eth1 ingress_policing_rate=1000 ingress_policing_burst=100")
os.system("ovs-vsctl -- set port s2-eth2 qos=@q -- --id=@q create qos type=linux-htb"
          " other-config:max-rate=100000000 >/dev/null")
h[0].cmd("notthere -A INPUT -j DROP")
h[0].cmd("ping -c 2 -i 0.1 10.0.0.2")
h[6].cmd("ping -c 3 -i 0.1 10.0.0.8")
h[0].cmd("iperf3 -s -D; sleep 0.1")
h[3].cmd("iperf3 -c 10.0.0.1 -t 1")
h[5].cmd("iperf3 -s -D; sleep 0.1")
h[4].cmd("iperf3 -c 10.0.0.6 -t 1")
net.stop()
"""
OF_MININET = (
    r"line 10, addLink: bw=2000: Mininet takes at most 1000 Mbit/s",
    r"Bandwidth limit 2000\S* is outside supported range 0..1000",
    r"line 11, addLink: Mininet does not know bandwidth, and ignores it: write bw",
    r"line 12, addLink: cls=Link ignores bw",
    r"h4-eth0\): this link cannot carry its rate: 10 packets at 50 ms are 200 packets a second",
    r"failed in the root namespace: tc qdisc add dev h2-eth0 root netem delay 10ms: Cannot find",
    r"sysctl -qw net.ipv4.tcp_sack.0 ran in the root namespace",
    r"netem delay 20 ms .*: set on the switch's own device",
    r"bash in h1: bash: .*notthere: command not found",
    r"dropped on arrival at s2-eth1 \(TC_INGRESS\)", r"no host answered ARP",
    r"no flow of Open vSwitch sends it on", r"s2-eth2\): .*htb 100 Mbit/s")


def test_mistakes_in_mininets_scripts_are_told(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MININET.lstrip())
    ended = Ended(tmp_path, "python3", "net.py", flags=("--capture",))
    assert ended.status == 0, ended.err
    whole = told(ended)
    assert not [said for said in OF_MININET if not re.search(said, whole)], whole
    assert "did you mean 100 ms" not in whole  # the unit was written


# Links that nobody limited ------------------------------------------------------------

# Two namespaces; each end delays what it sends, or only the client does.
TWO = """\
ip netns add a; ip netns add b
ip link add va netns a type veth peer name vb netns b
ip -n a addr add 10.0.0.1/24 dev va; ip -n b addr add 10.0.0.2/24 dev vb
ip -n a link set va up; ip -n b link set vb up
ip netns exec a tc qdisc add dev va root netem delay {delay} limit 100000
{second}ip netns exec b tc qdisc add dev vb root netem delay {delay} limit 100000
ip netns exec b iperf3 -s -D >/dev/null
sleep 1
ip netns exec a ping -c 3 -i 0.2 10.0.0.2 | grep 'time='
for each in $(seq {times}); do
    ip netns exec a iperf3 -t 2 -c 10.0.0.2 -J {flags} >report; cat report; echo ,
done
"""


def rates(ended: Ended) -> list[float]:
    """Mbit/s of each transfer that the script printed."""
    reports = json.loads("[" + ended.out[ended.out.index("{"):].rstrip().rstrip(",") + "]")
    return [round(report["end"]["sum_received"]["bits_per_second"] / 1e6, 1)
            for report in reports]


def test_transfers_over_a_delay_are_alike(tmp_path: Path) -> None:
    """A stock kernel in real time has 386 to 477 Mbit/s; a window of 64 kB would carry 13."""
    (tmp_path / "two.sh").write_text(TWO.format(delay="20ms", second="", times=3, flags=""))
    ended = Ended(tmp_path, "sh", "two.sh")
    assert ended.status == 0, ended.err
    assert ended.out.count("time=40.0 ms") == 2  # the first also waits for the address
    assert min(rates(ended)) > 300 and max(rates(ended)) < 1.05 * min(rates(ended)), rates(ended)


@pytest.mark.parametrize("flags", ["", "-R"])
def test_a_delay_of_one_direction_carries_as_much(tmp_path: Path, flags: str) -> None:
    (tmp_path / "two.sh").write_text(TWO.format(delay="40ms", second="# ", times=2, flags=flags))
    ended = Ended(tmp_path, "sh", "two.sh")
    assert ended.status == 0 and min(rates(ended)) > 300, rates(ended)


def test_without_a_cost_the_packets_of_a_round_trip_arrive_at_one_moment(tmp_path: Path) -> None:
    """Why a packet costs something: the receive window does not grow."""
    (tmp_path / "two.sh").write_text(TWO.format(delay="20ms", second="", times=2, flags=""))
    ended = Ended(tmp_path, "sh", "two.sh", flags=("--packet-cost", "0"))
    assert ended.status == 0 and min(rates(ended)) < 30, rates(ended)
