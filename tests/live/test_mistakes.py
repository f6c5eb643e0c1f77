"""A capture's report names mistakes with tc, ip and Mininet that stand in public scripts.

Mistakes with tc, ip and sysctl are in one guest, each with two network namespaces. Mistakes in
Mininet's scripts are in a second guest. The last tests are on links without a limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from firstflight.commands.virtual.captured import stored_facts
from firstflight.wire.capture import pcapng
from firstflight.wire.capture.calls import read_calls
from firstflight.wire.capture.commands import lines_about_commands
from firstflight.wire.capture.connections import observe_connections
from firstflight.wire.capture.conversations import find_conversations
from firstflight.wire.capture.drops import drop_statements
from firstflight.wire.capture.fields import read_headers
from firstflight.wire.capture.ignored import lines_about_links
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
    """A mistake in a script, and what the report has to say about it."""

    name: str  # with which the names of its namespaces or hosts begin
    lines: str  # in bash, or in Python for Mininet
    said: str  # a regular expression


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
            r" its connections began with 10"),
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
            r"a-eth0 dropped \d+ packets that its own host sent\. Its program does not notice"),
    Mistake("loop", "tc -n ${n}a qdisc add dev lo root netem delay 50ms; pings",
            r"qdisc add dev lo root netem delay 50ms: .*loopback"),
    Mistake("mtusize", "ip -n ${n}b link set ${n}b-eth0 mtu 1000; pings 3 0.01 1400",
            r"mtusizea-eth0\): MTU 1500, and 1000 at mtusizeb-eth0"),
    Mistake("closed", "$a nc -q 0 10.0.$N.2 99 </dev/null", r"refused"),
    # A class, a device or a band that packets do not come to.
    Mistake("port", "q add root handle 1: htb default 1; class parent 1: classid 1:1 htb rate"
            " 9mbit;"
            " class parent 1: classid 1:2 htb rate 1mbit; tc -n ${n}a filter add dev $D parent 1:"
            " u32"
            " match ip dport 5001 0xffff flowid 1:2; sends",
            r"porta-eth0\): htb 1 Mbit/s: never used.*: the filter that leads to class 1:2"
            r" matched"),
    Mistake("nofilt", "q add root handle 1: htb default 1; for c in 1 2; do class parent 1: classid"
            " 1:$c htb rate ${c}mbit; done; q add parent 1:2 netem delay 9ms; pings",
            r"nofilta-eth0\): htb 2 Mbit/s: never used.*: no filter leads to class 1:2"),
    Mistake("noroot", "q add root handle 1: htb default 9; class parent 1: classid 1:1 htb rate"
            " 1mbit;"
            " pings", r"noroota-eth0\): htb 1 Mbit/s: never used"),
    Mistake("band", "q add root handle 1: prio; q add parent 1:1 netem delay 50ms; pings",
            r"banda-eth0\): netem delay 50 ms .*: (never used|only \d+ of)"),
    Mistake("noredir", "ip -n ${n}b link add ifbn type ifb; ip -n ${n}b link set ifbn up; tc -n"
            " ${n}b"
            " qdisc add dev ifbn root netem delay 10ms; tc -n ${n}b qdisc add dev ${n}b-eth0"
            " ingress;"
            " pings", r"\(ifbn\): netem delay 10 ms .*: never used, no packet came to ifbn"),
    Mistake("arp", "ip -n ${n}b link add brx type bridge; ip -n ${n}b link set brx up; ip -n"
            " ${n}b link"
            " set ${n}b-eth0 master brx; ip -n ${n}b addr flush dev ${n}b-eth0; ip -n ${n}b addr"
            " add"
            " 10.0.$N.2/24 dev brx; ip link add arpb-eth1 netns ${n}b type veth peer name"
            " arpc-eth0;"
            " ip -n ${n}b link set arpb-eth1 up master brx; ip link set arpc-eth0 up; tc -n ${n}b"
            " qdisc"
            " add dev arpb-eth1 root netem delay 30ms; pings",
            r"on \d+ nothing shows what was set, since no packet of a program came"),
    # A queue that another command took away.
    Mistake("moved", "ip link add mova type veth peer name movb netns ${n}b; tc qdisc add dev mova"
            " root netem delay 40ms; ip link set mova netns ${n}a; ip -n ${n}a link set mova up;"
            " ip -n ${n}b link set movb up; ip -n ${n}a addr add 10.9.$N.1/24 dev mova; ip -n ${n}b"
            " addr add 10.9.$N.2/24 dev movb; pings 9 0.01 56 10.9.$N.2",
            r"\(mova\): netem delay 40 ms .*: removed"),
    Mistake("cleaned", "q add root netem delay 10ms; q del root; pings",
            r"cleaneda-eth0\): netem delay 10 ms .*: removed .*\(tc .* qdisc del dev"
            r" cleaneda-eth0"),
    Mistake("swapped", "q add root netem delay 50ms; sleep 1; q add root tbf rate 5mbit burst 15k"
            " latency 50ms; pings 3 0.3",
            r"swappeda-eth0\): netem delay 50 ms .*: replaced by tbf 5 Mbit/s .*; 0 packets came"),
    Mistake("fqnow", "q add root tbf rate 2mbit burst 15k latency 50ms; q replace root fq; sends",
            r"fqnowa-eth0\): tbf 2 Mbit/s .*: removed .*qdisc replace dev fqnowa-eth0 root fq\)"),
    # A unit.
    Mistake("jitunit", "q add root netem delay 10ms 2; pings",
            r"jitunita-eth0\): delay 2 (µs|ns); did you mean 2 ms|jitunita-eth0\): .*without a"
            r" unit"),
    Mistake("kbps", "q add root tbf rate 100kbps burst 15k latency 50ms; pings",
            r"kbpsa-eth0\): rate 100kbps: bps are bytes a second for tc, which set 800 kbit/s"),
    Mistake("bits", "q add root netem rate 9000; pings 2 0.01",
            r"bitsa-eth0\): rate 9000: without a unit tc takes bits a second, and set 9 kbit/s"),
    # Refused, or failed.
    Mistake("exists", "q add root handle 1: netem delay 9ms; q add parent 1: handle 1: pfifo"
            " limit 9"
            " 2>/dev/null; pings", r"(failed in existsa|existsa-eth0\): the kernel refused)"),
    Mistake("mtuhuge", "ip -n ${n}a link set ${n}a-eth0 mtu 99999 2>/dev/null; pings",
            r"failed in mtuhugea: ip .*mtu 99999: .*mtu greater than device maximum"),
    Mistake("badmem", "$a sysctl -qw net.ipv4.tcp_wmem=abc 2>/dev/null; sends",
            r"failed in badmema: sysctl -qw net.ipv4.tcp_wmem.abc"),
    Mistake("addr", "ip -n ${n}a addr add 10.0.300.1/24 dev $D 2>/dev/null; pings",
            r"failed in .*: ip -n addra addr add 10.0.300.1/24 .*10.0.300.1/24"),
    # Elsewhere.
    Mistake("onlink", "$a ip route add default via 10.0.$N.2 initcwnd 40; q add root netem delay"
            " 20ms; sends", r"initcwnd 40 set an initial window of 40 in onlinka, and its"
            r" connections"
            r" began with 10 segments: they took another route"),
    Mistake("idlewin", "$a ip route add 10.66.0.0/16 dev $D initcwnd 30; pings",
            r"initcwnd 30 set an initial window of 30 in idlewina, and no TCP connection began"),
    Mistake("down", "ip -n ${n}b link set ${n}b-eth0 down; pings 3 0.01",
            r"downa-eth0\): \d packets were dropped while downb-eth0 was down"),
)


def told(ended: Ended) -> str:
    """Everything that a report says about a capture, of which its page has only the first lines."""
    facts = stored_facts(ended.kept)
    capture, spaces = pcapng.read(ended.kept / pcapng.NAME), NamespaceNames(facts["namespaces"])
    capture.calls = read_calls(facts["calls"], facts["command"])
    fields = read_headers(capture)
    found = observe_links(capture, fields, spaces)
    conversations = find_conversations(capture, fields, found)
    seen = []
    if conversations.tcp:
        observed = observe_connections(
            conversations.connections, conversations.tcp, found, capture.data)
        seen = [connection for connection in observed if connection]
    lines = [f"{link.name} ({link.sender}): {said}" for link in found
             for said in (*link.wrong, *link.advice, *link.remarks, link.setting.words)]
    lines += [f"{link.name} ({link.sender}): delay {number} {unit}; did you mean {number} ms"
              for link in found for number, unit in link.short_delays]
    lines += [*lines_about_links(capture.calls), *lines_about_commands(capture, spaces, 1000),
              report_capture(capture, facts, "", 0).report.answer.sentence]
    lines += [f"{statement.text} {statement.measured}"
              for statement in drop_statements(capture, found, spaces)]
    lines += {cause for connection in seen for cause in connection.retransmitted}
    return "\n".join(lines)


def test_mistakes_with_tc_and_ip_are_reported(tmp_path: Path) -> None:
    (tmp_path / "all.sh").write_text(FUNCTIONS + MORE + "\n".join(
        f"net {mistake.name} {number}; m_{mistake.name}() {{ {mistake.lines}; }}; m_{mistake.name}"
        for number, mistake in enumerate(MISTAKES, start=1)) + "\ntrue\n")
    ended = Ended(tmp_path, "bash", "all.sh", flags=("--capture",))
    assert ended.status == 0, ended.err
    whole = told(ended)
    silent = [mistake.name for mistake in MISTAKES if not re.search(mistake.said, whole)]
    assert not silent, whole
    assert not re.search(r"lossfula-eth0\): .* lost at random, and 2 % are set", whole)
    # Packets that were still queued when a script ended had filled the queue until then.
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
    r"line 12, addLink: Link ignores bw: write cls=TCLink",
    r"h4-eth0\): this link cannot carry its rate: 10 packets at 50 ms are 200 packets a second",
    r"failed in the root namespace: tc qdisc add dev h2-eth0 root netem delay 10ms \(line 19\):"
    " Can",
    r"sysctl -qw net.ipv4.tcp_sack.0 \(line 20\) ran in the root namespace",
    r"netem delay 20 ms .*: set on the switch's own device",
    r"bash in h1: bash: .*notthere: command not found",
    r"dropped on arrival at s2-eth1 \(TC_INGRESS\)", r"no host answered ARP",
    r"no flow of Open vSwitch sends it on", r"s2-eth2\): .*htb 100 Mbit/s")


def test_mistakes_in_mininets_scripts_are_reported(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MININET.lstrip())
    ended = Ended(tmp_path, "python3", "net.py", flags=("--capture",))
    assert ended.status == 0, ended.err
    whole = told(ended)
    assert not [said for said in OF_MININET if not re.search(said, whole)], whole
    assert "did you mean 100 ms" not in whole  # the unit was written


# The beginning of a script in which each mistake has another network: a switch, and hosts a and b,
# and c where it is used.
HEAD = """
import os, time
from functools import partial
from mininet.link import Link, TCIntf, TCLink
from mininet.net import Mininet
from mininet.node import Host, Node, OVSBridge
from mininet.nodelib import LinuxBridge
from mininet.topo import Topo
from mininet.util import custom

nets = iter(range(1, 99))

def begun(name, hosts):
    net = Mininet(link=TCLink, switch=LinuxBridge, controller=None,
                  ipBase="10.%d.0.0/16" % next(nets))
    s = net.addSwitch(name + "s", dpid="1")
    return [net, s, *(net.addHost(name + end) for end in hosts)]

def pings(net, a, b, count=20):
    net.start()
    a.cmd("ping -q -c %d -i 0.02 %s" % (count, b.IP()))

def sends(a, b, port=5201):
    b.cmd("iperf3 -s -D -p %d; sleep 0.1" % port)
    a.cmd("iperf3 -c %s -n 1M -p %d" % (b.IP(), port))
"""


def script_of(table: Sequence[Mistake]) -> str:
    """A script with all mistakes of a table, one after the other."""
    lines = [HEAD]
    for mistake in table:
        body = mistake.lines.strip().splitlines()
        hosts = "abc" if re.search(r"\bc\b", mistake.lines) else "ab"
        lines += [f"def {mistake.name}(net, s, {', '.join(hosts)}):",
                  *(f"    {line}" for line in body), "    net.stop()",
                  f"{mistake.name}(*begun('{mistake.name}', '{hosts}'))"]
    return "\n".join(lines) + "\n"


WITH_MININET = (
    Mistake("mtbf", "net.addLink(a, s, use_tbf=True); net.addLink(b, s); pings(net, a, b)",
            r"addLink: use_tbf: without bw Mininet ignores it"),
    Mistake("mjit", "net.addLink(a, s, jitter='5ms'); net.addLink(b, s); pings(net, a, b)",
            r"addLink: jitter: without delay Mininet ignores it"),
    Mistake("mloss", "net.addLink(a, s, loss=150, delay='7ms'); net.addLink(b, s); pings(net, a,"
            " b)",
            r"addLink: loss=150: Mininet takes 0 to 100 percent"),
    Mistake("mends", "net.addLink(a, s, params1={'bandwith': 10}); net.addLink(b, s); pings(net,"
            " a, b)",
            r"addLink: Mininet does not know bandwith, and ignores it: write bw"),
    Mistake("mcustom", "net.addLink(a, s, cls=custom(TCLink, max_queue=10)); net.addLink(b, s)\n"
            "pings(net, a, b)", r"Mininet does not know max_queue, and ignores it: write"
            r" max_queue"),
    Mistake("mbits", "net.addLink(a, s, bw=10e6); net.addLink(b, s); pings(net, a, b)",
            r"addLink: bw=10000000.0: Mininet takes at most 1000 Mbit/s"),
    Mistake("munit", "net.addLink(a, s, delay=5); net.addLink(b, s); pings(net, a, b)",
            r"munita-eth0\): delay 5 (µs|ns); did you mean 5 ms"),
    Mistake("magain", "net.addLink(a, s, delay='30ms'); net.addLink(b, s); net.start()\n"
            "a.intf().config(bw=10); a.cmd('ping -q -c 20 -i 0.02 ' + b.IP())",
            r"magaina-eth0\): netem delay 30 ms .*: replaced by htb 10 Mbit/s"),
    Mistake("mtopo", "class Tree(Topo):\n    def build(self, **opts):\n"
            "        self.addSwitch('mtopos', dpid='1'); self.addHost('mtopoa');"
            " self.addHost('mtopob')\n"
            "        self.addLink('mtopoa', 'mtopos', **opts); self.addLink('mtopos', 'mtopob')\n"
            "net = Mininet(Tree(rate=10), link=TCLink, switch=LinuxBridge, controller=None)\n"
            "pings(net, net['mtopoa'], net['mtopob'])",
            r"Mininet does not know rate, and ignores it: write bw"),
    Mistake("mlink", "net.addLink(a, s, cls=Link, loss=3); net.addLink(b, s); pings(net, a, b)",
            r"addLink: Link ignores loss: write cls=TCLink"),
    Mistake("mproc", "net.addLink(a, s); net.addLink(b, s); net.start()\n"
            "os.system('echo reno > /proc/sys/net/ipv4/tcp_congestion_control'); sends(a, b)",
            r"echo reno > /proc/sys/net/ipv4/tcp_congestion_control ran in the root namespace"),
    Mistake("mpopen", "net.addLink(a, s); net.addLink(b, s); net.start()\n"
            "a.popen('iperf9 -s').wait(); a.cmd('ping -q -c 3 -i 0.02 ' + b.IP())",
            r"popen: iperf9: no such program"),
    Mistake("mport", "net.addLink(a, s); net.addLink(b, s); net.start()\n"
            "a.cmd('tc qdisc add dev mporta-eth1 root netem delay 5ms'); sends(a, b)",
            r"failed in mporta: tc qdisc add dev mporta-eth1 root netem delay 5ms \(line \d+\):"),
    Mistake("mfar", "net.addLink(a, s); net.addLink(b, s); net.addLink(c, s, delay='20ms')\n"
            "pings(net, a, b)", r"nothing shows what was set"))


def test_more_mistakes_with_mininet_are_reported(tmp_path: Path) -> None:
    """They are those of WITH_MININET."""
    (tmp_path / "net.py").write_text(script_of(WITH_MININET))
    ended = Ended(tmp_path, "python3", "net.py", flags=("--capture",))
    assert ended.status == 0, ended.err
    whole = told(ended)
    silent = [mistake.name for mistake in WITH_MININET if not re.search(mistake.said, whole)]
    assert not silent, whole


# Links that nobody limited ------------------------------------------------------------

# Two namespaces. Both ends delay what they send; or only the client does, if `second` is "# ".
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


def test_repeated_transfers_over_a_delay_have_nearly_equal_rates(tmp_path: Path) -> None:
    """A window of 64 kB would carry 13 Mbit/s.

    A stock kernel carries 654 Mbit/s in two seconds, in QEMU with a clock that counts instructions.
    In the real time of QEMU, which is slow, it carries 386 to 477.
    """
    (tmp_path / "two.sh").write_text(TWO.format(delay="20ms", second="", times=3, flags=""))
    ended = Ended(tmp_path, "sh", "two.sh")
    assert ended.status == 0, ended.err
    assert ended.out.count("time=40.0 ms") == 2  # the first of three pings also waits for ARP
    assert min(rates(ended)) > 300 and max(rates(ended)) < 1.05 * min(rates(ended)), rates(ended)


@pytest.mark.parametrize("flags", ["", "-R"])
def test_a_delay_of_one_direction_does_not_limit_the_rate(tmp_path: Path, flags: str) -> None:
    (tmp_path / "two.sh").write_text(TWO.format(delay="40ms", second="# ", times=2, flags=flags))
    ended = Ended(tmp_path, "sh", "two.sh")
    assert ended.status == 0 and min(rates(ended)) > 300, rates(ended)


def test_without_a_cost_the_packets_of_a_round_trip_arrive_at_one_moment(tmp_path: Path) -> None:
    """The receive window does not grow then, which is why packets have a cost."""
    (tmp_path / "two.sh").write_text(TWO.format(delay="20ms", second="", times=2, flags=""))
    ended = Ended(tmp_path, "sh", "two.sh", flags=("--packet-cost", "0"))
    assert ended.status == 0 and min(rates(ended)) < 30, rates(ended)
