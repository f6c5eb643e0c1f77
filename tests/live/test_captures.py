"""./run.sh --capture reports what networks did, and a command's change holds at once.

Forty networks are in one guest. The network `<name>` has two network namespaces, `<name>a` and
`<name>b`, and a link between `<name>a-eth0` and `<name>b-eth0`. Mininet's networks are others.
"""

from __future__ import annotations

import csv
import re
import shutil
import struct
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from firstflight.base import errors
from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.commands.virtual import captured
from firstflight.commands.virtual.captured import stored_facts
from firstflight.net.headers import IPV4
from firstflight.wire.capture import pcapng
from firstflight.wire.capture.connections import observe_connections
from firstflight.wire.capture.conversations import find_conversations
from firstflight.wire.capture.direction import LinkDirection
from firstflight.wire.capture.fields import read_headers
from firstflight.wire.capture.links import observe_links
from firstflight.wire.capture.spaces import NamespaceNames
from tests.live.conftest import PROJECT
from tests.live.commands import Ended, needs_commands

pytestmark = needs_commands
SMALL = PROJECT / "tests" / "golden" / "capture" / "small.py"


def read(folder: Path) -> list[LinkDirection]:
    """The links of a kept capture."""
    capture = pcapng.read(folder / pcapng.NAME)
    return observe_links(capture, read_headers(capture), NamespaceNames())


def test_a_capture_reports_each_link_and_the_setting_that_was_not_applied(tmp_path: Path) -> None:
    shutil.copy(SMALL, tmp_path)
    plain = Ended(tmp_path, "python3", "small.py")
    first = Ended(tmp_path, "python3", "small.py", flags=("--capture",))
    assert first.status == 0, first.err
    # Nothing in the guest sees that it is captured.
    assert plain.out == first.out and plain.facts()["virtual_s"] == first.facts()["virtual_s"]
    assert "1 of 6 directions of links did not do what was set" in first.err
    assert "netem delay 50 ms limit 1000 packets: never used" in first.err
    found = {link.sender: link for link in read(first.kept)}
    assert [name for name, link in found.items() if link.wrong] == ["h3-eth0"]
    assert all(link.judged for link in found.values() if not link.wrong)
    with (first.kept / "connections.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["initial_window_segments_to_client"] for row in rows] == ["10", "10", ""]
    page = (first.kept / "report.html").read_text()
    assert '<ul class="alert">' in page and "data:image" not in page
    assert captured.run(["--report", str(first.kept)]) == errors.OK
    assert (first.kept / "report.html").read_text() == page
    (first.kept / pcapng.NAME).write_bytes(b"something else")
    with pytest.raises(FirstFlightError, match="not written by"):
        captured.run(["--report", str(first.kept)])
    with pytest.raises(UsageError, match="--capture"):
        captured.run(["--report", str(tmp_path)])


def test_a_capture_has_tcpdumps_packets_at_the_same_nanosecond(tmp_path: Path) -> None:
    (tmp_path / "two.sh").write_text(
        "ip link add a-eth0 type veth peer name b-eth0; ip netns add b\n"
        "ip link set b-eth0 netns b; ip addr add 10.0.0.1/24 dev a-eth0; ip link set a-eth0 up\n"
        "ip -n b addr add 10.0.0.2/24 dev b-eth0; ip -n b link set b-eth0 up\n"
        "tc qdisc add dev a-eth0 root netem delay 7ms rate 1mbit\n"
        "tc class add dev a-eth0 parent 1: classid 1:1 htb rate 1mbit 2>/dev/null\n"
        "tcpdump -Z root -U -Q out --time-stamp-precision nano -i a-eth0 -s 128 -w seen.pcap"
        " 2>/dev/null &\n"
        "sleep 1; ping -c 5 -i 0.2 -s 1000 10.0.0.2; sleep 1; kill %1; wait\n")
    ended = Ended(tmp_path, "bash", "two.sh", flags=("--capture",))
    assert "5 received" in ended.out, ended.err
    assert "the kernel refused htb: No such file or directory" in ended.err
    capture = pcapng.read(ended.kept / pcapng.NAME)
    chosen = capture.packets.at(
        (capture.packets.device == 0) & (read_headers(capture).kind == IPV4))
    ours = Counter(zip(chosen.time_ns.tolist(), chosen.frame_bytes.tolist()))
    dumped = (ended.kept / "files" / "seen.pcap").read_bytes()
    theirs, place = Counter[tuple[int, int]](), 24
    while place < len(dumped):
        seconds, nanoseconds, kept, size = struct.unpack_from("<4I", dumped, place)
        if dumped[place + 28:place + 30] == b"\x08\x00":
            theirs[seconds * 1_000_000_000 + nanoseconds, size] += 1
        place += 16 + kept
    assert ours == theirs and sum(ours.values()) == 5


def test_a_replaced_setting_is_judged_and_a_full_capture_is_reported(tmp_path: Path) -> None:
    (tmp_path / "changes.sh").write_text(
        "ip link add a-eth0 type veth peer name b-eth0; ip netns add b\n"
        "ip link set b-eth0 netns b; ip addr add 10.0.0.1/24 dev a-eth0; ip link set a-eth0 up\n"
        "ip -n b addr add 10.0.0.2/24 dev b-eth0; ip -n b link set b-eth0 up\n"
        "tc qdisc add dev a-eth0 root netem delay 7ms rate 1mbit\n"
        "tc -n b qdisc add dev b-eth0 root handle 1: htb\n"
        "tc -n b class add dev b-eth0 parent 1: classid 1:1 htb rate 1mbit\n"
        "sleep 1; ping -c 5 -i 0.2 10.0.0.2\n"
        "tc qdisc replace dev a-eth0 root netem delay 30ms; tc -n b qdisc del dev b-eth0 root\n"
        "sleep 1; ping -c 5 -i 0.2 10.0.0.2\n")
    full = Ended(tmp_path, "bash", "changes.sh", flags=("--capture", "2k"))
    assert "the capture was full" in full.err
    ended = Ended(tmp_path, "bash", "changes.sh", flags=("--capture",))
    assert "time=7" in ended.out and "time=30" in ended.out, ended.err
    found = {link.sender: link for link in read(ended.kept)}
    assert found["a-eth0"].wrong == [] and len(found["a-eth0"].settings) > 1
    (wrong,) = found["b-eth0"].wrong
    assert wrong.startswith("htb 1 Mbit/s") and "never used" in wrong


def test_a_spinning_program_delays_no_packet(tmp_path: Path) -> None:
    (tmp_path / "spins.py").write_text(
        "import select, time\nend = time.monotonic() + 0.6\n"
        "while time.monotonic() < end:\n    select.select([], [], [], 0)\n")
    (tmp_path / "two.sh").write_text(
        "ip netns add b; ip link add a-eth0 type veth peer name b-eth0 netns b\n"
        "ip addr add 10.0.0.1/24 dev a-eth0; ip link set a-eth0 up\n"
        "ip -n b addr add 10.0.0.2/24 dev b-eth0; ip -n b link set b-eth0 up\n"
        "tc qdisc add dev a-eth0 root netem delay 7ms rate 1mbit; sleep 3\n"
        "python3 spins.py & ping -c 10 -i 0.04 -s 600 10.0.0.2; wait\n")
    ended = Ended(tmp_path, "bash", "two.sh", flags=("--capture",))
    assert "10 received" in ended.out and "python3 spins" in ended.err
    assert "All 2 directions of links did what was set" in ended.err, ended.err


# The report of a capture on forty networks, each set up and misused in another way ---

# net NAME NUMBER makes the two namespaces of a network. q sets a queue of the first device; pings
# and sends go from the first namespace to the second one.
FUNCTIONS = r"""
net() { n=$1; N=$2; D=${n}a-eth0; a="ip netns exec ${n}a"; b="ip netns exec ${n}b"
  ip netns add ${n}a; ip netns add ${n}b
  ip link add $D netns ${n}a type veth peer name ${n}b-eth0 netns ${n}b
  for s in a b; do ip -n ${n}$s link set ${n}$s-eth0 up; done
  ip -n ${n}a addr add 10.0.$N.1/24 dev $D; ip -n ${n}b addr add 10.0.$N.2/24 dev ${n}b-eth0; }
q() { tc -n ${n}a qdisc $1 dev $D "${@:2}"; }
class() { tc -n ${n}a class add dev $D "$@"; }
pings() { $a ping -q -c ${1:-20} -i ${2:-0.01} -s ${3:-56} ${4:-10.0.$N.2} >/dev/null; }
sends() { $b nc -l -p 9 >/dev/null & sleep 0.05
  head -c ${1:-300000} /dev/zero | $a nc -q 1 ${2:-10.0.$N.2} 9; }
"""


class Script(NamedTuple):
    """A network, what bash does with it, and what the report has to say."""

    name: str
    lines: str  # in bash
    # Devices that are reported as wrong, "a" or "b" for the network's, each with a pattern of why.
    wrong: tuple[tuple[str, str], ...] = ()
    words: str = ""  # a pattern of the first device's setting
    remarks: str = ""  # a pattern of another remark on the first device


NEVER = "never used, none of"
SCRIPTS = (
    # Every kind of queue, as configured.
    Script("netem", "q add root netem delay 10ms rate 1mbit; pings 50 0.001 1000",
           words=r"^netem 1 Mbit/s delay 10 ms limit 1000 packets$"),
    Script("loss", "q add root netem loss 20%; pings 200"),
    Script("reorder", "q add root netem delay 10ms reorder 25% 50% rate 10mbit; pings 99; sends"),
    Script("twice", "q add root netem delay 1ms duplicate 20%; pings 50; sends"),
    Script("corrupt", "q add root netem delay 5ms rate 10mbit corrupt 3%; sends"),
    Script("jitter", "q add root netem delay 10ms 2ms; pings"),
    Script("bursts", "q add root netem loss gemodel 10% 50%; pings 100"),
    Script("slot", "q add root netem delay 1ms slot 5ms 10ms; pings"),
    Script("tbf", "q add root tbf rate 1mbit burst 3000 limit 10000; pings 100 0.001 1000; sends",
           words="^tbf 1 Mbit/s limit 10000 bytes$"),
    Script("htb", "q add root handle 1: htb default 1; class parent 1: classid 1:1 htb rate 2mbit;"
           " pings 100 0.001 1000; sends", words="^htb 2 Mbit/s$"),
    Script("hfsc", "q add root handle 5: hfsc default 1; class parent 5:0 classid 5:1 hfsc sc rate"
           " 2mbit ul rate 2mbit; q add parent 5:1 netem delay 10ms; pings 100 0.001 1000",
           words=r"^hfsc 2 Mbit/s → netem delay 10 ms limit 1000 packets$"),
    Script("prio", "q add root handle 1: prio; q add parent 1:2 netem delay 50ms; pings",
           words="netem delay 50 ms"),
    Script("codel", "q add root handle 1: tbf rate 1mbit burst 3000 limit 100000;"
           " q add parent 1:1 codel; sends 50000"),
    Script("fqcodel", "q add root handle 1: htb default 1; class parent 1: classid 1:1 htb rate"
           " 10mbit; q add parent 1:1 fq_codel limit 20; sends 1000000"),
    Script("cake", "q add root cake bandwidth 2mbit; pings 100 0.001 1000; sends",
           words="^cake 2 Mbit/s$"),
    Script("fq", "q add root fq maxrate 1mbit; pings 100 0.001 1000", words="1 Mbit/s for each"),
    Script("sfq", "q add root sfq; pings; sends"),
    Script("red", "q add root red limit 60000 min 15000 max 45000 avpkt 1000 burst 20 bandwidth"
           " 1mbit probability 0.1; pings"),
    Script("pie", "q add root pie; pings"),
    Script("ifb", "ip -n ${n}b link add ifb0 type ifb; ip -n ${n}b link set ifb0 up;"
           " T='tc -n ifbb';"
           " $T qdisc add dev ifbb-eth0 ingress; $T filter add dev ifbb-eth0 parent ffff: protocol"
           " all u32 match u32 0 0 action mirred egress redirect dev ifb0;"
           " $T qdisc add dev ifb0 root netem delay 10ms; pings"),
    # Networks.
    Script("vlan", "for s in a b; do ip -n $n$s link add link $n$s-eth0 name v$s.7 type vlan id 7;"
           " ip -n $n$s link set v$s.7 up; done; ip -n vlana addr add 10.9.1.1/24 dev va.7;"
           " ip -n vlanb addr add 10.9.1.2/24 dev vb.7; q add root handle 5: htb default 1;"
           " class parent 5: classid 5:1 htb rate 2mbit burst 15k;"
           " q add parent 5:1 netem delay 3ms;"
           " pings 100 0.001 1000 10.9.1.2; sends 300000 10.9.1.2"),
    Script("six", "q add root netem delay 5ms rate 1mbit; for s in a b; do ip -n six$s addr add"
           " fd00::$s/64 dev six$s-eth0 nodad; done; pings 50 0.001 1000 fd00::b",
           words="^netem 1 Mbit/s delay 5 ms"),
    Script("nat", "command -v iptables >/dev/null || return 0; ip netns add nats;"
           " ip link add natb-eth1 netns natb type veth peer name nats-eth0"
           " netns nats; for i in b:natb-eth1:1 s:nats-eth0:2; do IFS=: read s d l <<< $i;"
           " ip -n nat$s link set $d up; ip -n nat$s addr add 10.9.2.$l/24 dev $d; done;"
           " $b sysctl -qw net.ipv4.ip_forward=1; $b iptables -t nat -A POSTROUTING -o natb-eth1 -j"
           " MASQUERADE; ip -n nata route add default via 10.0.$N.2; b='ip netns exec nats';"
           " tc -n natb qdisc add dev natb-eth1 root netem delay 5ms rate 2mbit limit 10;"
           " sends 300000 10.9.2.2"),
    Script("refused", "for i in 1 2 3; do $a nc -q 0 10.0.$N.2 99 </dev/null; done; pings"),
    # Changed, removed, taken down.
    Script("changed", "q add root netem delay 10ms; pings; q change root netem delay 30ms; pings",
           words="delay 30 ms"),
    Script("removed", "q add root netem delay 10ms; pings 2; q del root; pings 99",
           (("a", r"^netem delay 10 ms .*: removed 0\.\d+ s after it was set \(tc .*\);"
                  r" [1-9] packets"),)),
    Script("down", "q add root netem delay 100ms; pings 30 & sleep 0.25; ip -n downa link set $D"
           " down; sleep 0.1; ip -n downa link set $D up; wait $!; pings"),
    Script("gone", "q add root netem rate 64kbit; pings 20 0.001 1000 & sleep 0.5;"
           " ip netns del gonea; ip netns del goneb; kill $!; wait $!"),
    # Set and never used, set in the wrong place or unit, or against another queue.
    Script("band", "q add root handle 1: prio; q add parent 1:3 netem delay 50ms; pings; sends",
           (("a", rf"^netem delay 50 ms .*: ({NEVER}|only [1-9] of)"),)),
    Script("class", "q add root handle 1: htb default 30; class parent 1: classid 1:10 htb rate"
           " 1mbit; pings", (("a", f"^htb 1 Mbit/s: {NEVER}"),)),
    Script("two", "q add root handle 1: htb default 10; for c in 10 20; do class parent 1: classid"
           " 1:$c htb rate ${c}mbit; q add parent 1:$c netem delay ${c}ms; done; pings",
           remarks=f"^htb 20 Mbit/s: {NEVER}.*no filter leads to class 1:20"),
    Script("unused", "q add root netem delay 10ms"),
    Script("bridge", "ip -n ${n}a link add br9 type bridge; ip -n ${n}a link set br9 up;"
           " tc -n ${n}a"
           " qdisc add dev br9 root netem delay 10ms; ip -n ${n}a link set $D master br9; ip -n"
           " ${n}a addr flush dev $D; ip -n ${n}a addr add 10.0.$N.1/24 dev br9; pings",
           (("br9", "^netem delay 10 ms .* the switch's own device"),)),
    Script("dummy", "ip -n ${n}a link add dum9 type dummy; ip -n ${n}a link set dum9 up;"
           " tc -n ${n}a"
           " qdisc add dev dum9 root tbf rate 1mbit burst 3000 limit 10000; pings",
           (("dum9", "^tbf 1 Mbit/s .*: never used, no packet"),)),
    Script("nounit", "q add root netem delay 5; pings", words="delay (4.99|0.005) µs"),
    Script("mtu", "ip -n ${n}a link set $D mtu 9000; pings", (("a", "^MTU 9000, and 1500 at"),)),
    Script("txq", "ip -n ${n}a link set $D txqueuelen 10; q add root netem delay 1ms rate 1mbit;"
           " pings 50 0.001 1000", (("a", "^txqueuelen 10: it limits nothing; .* 1000 packets"),)),
    Script("leaf", "q add root handle 1: netem delay 1ms rate 1mbit; "
           " q add parent 1: pfifo limit 10;"
           " pings 50 0.001 1000", (("a", "^pfifo limit 10 packets: it never fills"),)),
    Script("wrong", "class parent 7: classid 7:1 htb rate 1mbit 2>/dev/null; pings",
           (("a", "^the kernel refused htb"),)),
)


def test_forty_networks_are_reported_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "all.sh").write_text(FUNCTIONS + "\n".join(
        f"net {script.name} {number}; s_{script.name}() {{ {script.lines}; }}; s_{script.name}"
        for number, script in enumerate(SCRIPTS, start=1)))
    ended = Ended(tmp_path, "bash", "all.sh", flags=("--capture",))
    assert ended.status == 0, ended.err
    capture = pcapng.read(ended.kept / pcapng.NAME)
    fields = read_headers(capture)
    found = observe_links(capture, fields, NamespaceNames(stored_facts(ended.kept)["namespaces"]))
    by_node: dict[str, list[LinkDirection]] = {}
    for link in found:
        by_node.setdefault(link.from_node[:-1], []).append(link)
    differ = {script.name: said for script in SCRIPTS
              if (said := _differs(script, by_node[script.name]))}
    assert not differ
    # Removed namespaces have names, too, and a link without packets is not called right.
    assert [link.sender for link in found if link.is_untested and not link.wrong] == [
        "unuseda-eth0"]
    assert "and on 1 nothing shows what was set" in " ".join(ended.err.split())
    assert re.search("did you mean 5 ms[?] Without a unit tc takes (micro|nano)seconds",
                     " ".join(ended.err.split()))
    printed = " ".join(ended.err.split())
    count = 15 if shutil.which("iptables") else 14  # the network "nat" needs iptables
    assert re.search(f"{count} TCP connections, 3 refused; [0-9]+ segments were retransmitted",
                     printed)
    assert re.search("[0-9]+ of [0-9]+ pings were not answered", printed)
    # Both sides of a NAT are one connection, and no queue is blamed for more than it dropped.
    conversations = find_conversations(capture, fields, found)
    assert conversations.tcp is not None
    seen = observe_connections(conversations.connections, conversations.tcp, found, capture.data)
    for behind in (each for each in seen if each and each.ends.client_node == "nata"):
        assert behind.ends.server[0] == "10.9.2.2" and behind.ends.nat_ends[0][0] == "10.9.2.1"
        assert any(cause.startswith("dropped by the queue, natb → nats")
                   for cause in behind.retransmitted), behind.retransmitted
    causes = {cause for each in seen if each for cause in each.retransmitted}
    assert not any("elsewhere" in cause for cause in causes), causes


def _differs(script: Script, found: list[LinkDirection]) -> str:
    """The first difference between the report on a script's links and the expected one, or ""."""
    expected = {device if len(device) > 1 else f"{script.name}{device}-eth0": text
                for device, text in script.wrong}
    for link in found:
        text = expected.pop(link.sender, "")
        if len(link.wrong) != bool(text) or text and not re.search(text, link.wrong[0]):
            return f"{link.sender}: {link.wrong or 'nothing'}, not {text or 'nothing'}"
    first = next(link for link in found if link.sender == f"{script.name}a-eth0")
    if not re.search(script.words, first.setting.words):
        return first.setting.words
    said = [*first.remarks, *first.advice]
    if script.remarks and not any(re.search(script.remarks, words) for words in said):
        return f"{said}, not {script.remarks}"
    return f"no {expected}" if expected else ""


MININET = """
import time
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
from mininet.node import OVSBridge
net = Mininet(link=TCLink, switch=LinuxBridge, controller=None)
s1, s2 = net.addSwitch("s1"), net.addSwitch("s2", cls=OVSBridge)
h = [net.addHost(f"h{n}") for n in range(1, 6)]
net.addLink(h[0], s1, bw=10, delay="5ms", max_queue_size=20)
net.addLink(s1, h[1], bw=0.064, delay="5ms")
net.addLink(s2, h[2], loss=2)
net.addLink(h[3], s2, bw=10, use_hfsc=True, delay="10ms")
net.addLink(h[4], s2, bw=10, use_tbf=True)
net.addLink(s1, s2)
net.start()
for n in 2, 3, 4:
    h[0].cmd("ping -c 100 -i 0.01 10.0.0.%d" % (n + 1))
h[0].cmd("ping -i 0.002 -c 500 -s 1400 10.0.0.2 &")
time.sleep(1)
net.stop()
"""


def test_mininets_links_are_reported_as_they_were_set(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(MININET)
    ended = Ended(tmp_path, "python3", "net.py", flags=("--capture",))
    assert ended.status == 0 and "All 12 directions of links did what was set" in ended.err
    page = (ended.kept / "report.html").read_text()
    assert "s1-eth2" in page and "packets were still in its queue" not in page


# A change holds for every packet after the end of the command that makes it ---

# Two hosts at a switch. After each command a Python program sends three pings and prints how many
# come back. It runs already, so no program has to start first, while a rule might come into force.
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
# A command that stops all packets, and one that lets them pass again, each after some seconds.
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
    """A line for each command: its status, how many of three pings were answered, and the command.
    """
    switch, port = network
    (folder / "network.sh").write_text(NETWORK.format(
        switch=switch, port=port, commands="\n".join(line for pair in pairs for line in pair)))
    ended = Ended(folder, "sh", "network.sh")
    assert ended.status == 0, ended.err
    return ended.out.splitlines()


def expected(pairs: list[tuple[str, str]]) -> list[str]:
    """The lines if no ping passes after the first command of a pair, and three after the second."""
    return [line for stopping, passing in pairs for line in (f"0 0 {stopping}", f"0 3 {passing}")]


@pytest.mark.skipif(shutil.which("ovs-vsctl") is None, reason="Open vSwitch is not installed")
def test_a_change_of_open_vswitch_holds_for_the_next_packet(tmp_path: Path) -> None:
    """Open vSwitch's datapath keeps flows for up to 5 ms after a change (udpif_revalidator)."""
    assert answered(tmp_path, OVS, OVS_PAIRS) == expected(OVS_PAIRS)


def test_a_change_of_the_kernel_holds_for_the_next_packet(tmp_path: Path) -> None:
    pairs = [pair for pair in KERNEL_PAIRS
             if all(shutil.which(name) for name in ("iptables", "nft") if f" {name}" in pair[0])]
    assert answered(tmp_path, BRIDGE, pairs) == expected(pairs)


@pytest.mark.skipif(shutil.which("ovs-vsctl") is None, reason="Open vSwitch is not installed")
def test_three_pings_right_after_a_drop_rule_are_all_lost(tmp_path: Path) -> None:
    """A published experiment does this, and with an old flow it has the opposite result."""
    (tmp_path / "network.sh").write_text(NETWORK.partition("cat >pings.py")[0].format(
        switch=OVS[0], port=OVS[1]) + """
        ip netns exec h1 ping -c 1 10.0.0.2 | grep loss
        ovs-ofctl add-flow s1 in_port=2,actions=drop
        for each in 1 2 3; do ip netns exec h1 ping -c 1 -W 1 10.0.0.2 | grep loss; done""")
    ended = Ended(tmp_path, "sh", "network.sh")
    assert [line.split(", ")[2] for line in ended.out.splitlines()] == [
        "0% packet loss", *3 * ["100% packet loss"]], ended.out + ended.err
