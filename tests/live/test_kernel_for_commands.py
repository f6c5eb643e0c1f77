"""What public experiments ask of the kernel for commands, each once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.live.test_commands import Ended
from vtime.uml import find_kernel

pytestmark = pytest.mark.skipif(find_kernel("--mininet") is None,
                                reason="./install.sh --with-mininet")
A = "iptables -t filter -A INPUT -p tcp"
DEVICE = "ip link add d{} type"
# By what they need: a program, and its words that have to end with status 0.
CALLS = [
    # As where they are modules: a network has no device before one is made.
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
        "vxlan id 1 dstport 4789", "gre local 10.0.0.1 remote 10.0.0.2", "geneve id 1 remote 10.0.0.2",
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
        "gred setup DPs 3 default 1", "plug", "cbs locredit -1 hicredit 1 sendslope -1 idleslope 1")),
    "tc qdisc replace dev dummy0 clsact",
    *(f"tc filter add dev dummy0 egress protocol ip {words}" for words in (
        "u32 match u32 0 0 action skbedit mark 1", "u32 match u32 0 0 action csum ip",
        "u32 match u32 0 0 action pedit munge ip ttl set 9", "u32 match u32 0 0 action vlan push id 5",
        "u32 match u32 0 0 action gact drop random determ ok 10", "u32 match u32 0 0 action ct",
        "u32 match u32 0 0 action nat egress 10.0.0.1 10.0.0.2",
        "bpf bytecode '1,6 0 0 1,'")),
    "ip mptcp limits set subflows 2", "python3 -c 'import socket; socket.socket(2, 1, 262)'",
    "python3 -c 'import socket; socket.socket(2, 1, 132)'", "unshare --time true",
    "echo 1 > /sys/kernel/tracing/events/tcp/tcp_probe/enable",
    "modprobe nf_conntrack xt_statistic sch_netem vxlan ip6table_mangle", "lsmod | grep -q ^sctp",
    "python -c 'print()'"]


@pytest.mark.skipif(shutil.which("iptables") is None, reason="iptables is not installed")
def test_each_is_taken(tmp_path: Path) -> None:
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


def test_a_packet_of_tcp_is_traced(tmp_path: Path) -> None:
    """As tcp_probe did it before Linux 4.16: the window with each packet that comes."""
    (tmp_path / "work").mkdir()
    ended = Ended(tmp_path / "work", "sh", "-c", """
        ip link set lo up
        echo 1 > /sys/kernel/tracing/events/tcp/tcp_probe/enable
        python3 -m http.server 8000 >/dev/null 2>&1 & sleep 1
        curl -s -o /dev/null 127.0.0.1:8000/
        grep -c 'tcp_probe: .*snd_cwnd=10' /sys/kernel/tracing/trace""")
    assert ended.status == 0 and int(ended.out) > 1, ended.out + ended.err
