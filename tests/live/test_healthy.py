"""The report of a capture has no remark on scripts that do what they mean.

Each script in bash has two namespaces, and each of Mininet's a network. All are in one guest.
"""

from __future__ import annotations

from pathlib import Path

from firstflight.commands.virtual.captured import stored_facts
from firstflight.wire.capture import pcapng
from firstflight.wire.capture.report import report_capture
from tests.live.commands import Ended, needs_commands
from tests.live.test_captures import FUNCTIONS
from tests.live.test_mistakes import Mistake, script_of

pytestmark = needs_commands
# With less than 20 ms between its packets, ping spins for seconds while it waits for an answer that
# was lost.
HEALTHY = {
    "delay": "q add root netem delay 10ms; tc -n ${n}b qdisc add dev ${n}b-eth0 root netem delay"
             " 10ms; pings; sends",
    "rate": "q add root netem delay 5ms rate 10mbit limit 500; pings; sends",
    "leaf": "q add root handle 1: htb default 1; class parent 1: classid 1:1 htb rate 5mbit burst"
    " 15k;"
            " q add parent 1:1 handle 2: netem delay 5ms limit 300; sends; pings",
    "classes": "q add root handle 1: htb default 3; for c in 1 2 3; do class parent 1: classid 1:$c"
               " htb rate ${c}mbit; done; for c in 1 2; do tc -n ${n}a filter add dev $D parent"
               " 1: u32"
               " match ip tos 0x${c}0 0xff flowid 1:$c; $a ping -q -c 9 -i 0.02 -Q 0x${c}0"
               " 10.0.$N.2"
               " >/dev/null; done",
    "spare": "q add root handle 1: htb default 3; for c in 1 3; do class parent 1: classid 1:$c"
             " htb rate 5mbit; done; tc -n ${n}a filter add dev $D parent 1: protocol ip u32"
             " match u32"
             " 0 0 flowid 1:1; tc -n ${n}a filter add dev $D parent 1: protocol arp u32 match u32"
             " 0 0"
             " flowid 1:1; pings 50",
    "child": "q add root handle 1: netem delay 10ms limit 5000; q add parent 1: tbf rate 10mbit"
    " burst"
             " 15k latency 100ms; sends; pings",
    "prio": "q add root handle 1: prio; q add parent 1:2 netem delay 20ms; pings",
    "codel": "q add root handle 1: tbf rate 5mbit burst 15k limit 100000; q add parent 1:1"
    " fq_codel;"
             " sends",
    "cake": "q add root cake bandwidth 5mbit; sends; pings",
    "steps": "q add root netem delay 10ms; for ms in 20 30 40; do pings 9; q change root netem"
    " delay"
             " ${ms}ms; done; pings 9",
    "rates": "q add root tbf rate 8mbit burst 15k latency 50ms; for mbit in 4 2; do sends 100000; q"
             " replace root tbf rate ${mbit}mbit burst 15k latency 50ms; done; sends 100000",
    "ended": "q add root netem delay 10ms; pings 50; q del root",
    "failing": "q add root netem delay 5ms; pings 20 0.05 & sleep 0.5; ip -n ${n}b link set"
    " ${n}b-eth0"
               " down; sleep 0.1; ip -n ${n}b link set ${n}b-eth0 up; wait $!; pings",
    "shortd": "q add root netem delay 100us; pings",
    "small": "q add root netem delay 0.25ms; pings; sends",
    "lossy": "q add root netem delay 2ms loss 2%; pings 300 0.02",
    "bursty": "q add root netem delay 2ms loss gemodel 2% 30%; pings 200 0.02",
    "jitter": "q add root netem delay 20ms 2ms rate 10mbit; pings; sends",
    "jumbo": "for s in a b; do ip -n $n$s link set $n$s-eth0 mtu 9000; done; q add root netem delay"
             " 5ms; pings 9 0.02 8000; sends",
    "window": "$a ip route change 10.0.$N.0/24 dev $D initcwnd 20; q add root netem delay 20ms;"
    " sends",
    "inhost": "$a sysctl -qw net.ipv4.tcp_congestion_control=reno; $b sysctl -qw"
              " net.ipv4.tcp_congestion_control=reno; q add root netem delay 5ms; sends",
    "vlan": "for s in a b; do ip -n $n$s link add link $n$s-eth0 name v$s.7 type vlan id 7; ip -n"
    " $n$s"
            " link set v$s.7 up; done; ip -n ${n}a addr add 10.8.1.1/24 dev va.7; ip -n ${n}b"
            " addr add"
            " 10.8.1.2/24 dev vb.7; q add root netem delay 3ms; pings 20 0.02 56 10.8.1.2",
    "tunnel": "for s in a:1:2 b:2:1; do IFS=: read e l r <<< $s; ip -n $n$e link add vx type"
    " vxlan id 9"
              " local 10.0.$N.$l remote 10.0.$N.$r dstport 4789; ip -n $n$e link set vx up; ip -n"
              " $n$e"
              " addr add 10.8.2.$l/24 dev vx; done; q add root netem delay 4ms; pings 20 0.02 56"
              " 10.8.2.2",
    "six": "for s in a b; do ip -n $n$s addr add fd00:$N::$s/64 dev $n$s-eth0 nodad; done; q add"
    " root"
           " netem delay 5ms; pings 20 0.02 56 fd00:$N::b",
    "batch": "echo \"qdisc add dev $D root netem delay 15ms\" >tc.batch; tc -n ${n}a -b tc.batch;"
    " pings",
}
OF_MININET_IN_ORDER = (
    Mistake("hplain", "net.addLink(a, s, bw=10, delay='5ms'); net.addLink(b, s); pings(net, a, b)\n"
            "sends(a, b)", ""),
    Mistake("hbranch", "if len(s.name) > 99:\n    net.addLink(a, s, cls=Link, bw=10, bandwidth=7)\n"
            "net.addLink(a, s, bw=10); net.addLink(b, s); pings(net, a, b)", ""),
    Mistake("hopts", "o = dict(bw=10, delay='5ms', loss=0, max_queue_size=200, use_htb=True)\n"
            "net.addLink(a, s, **o); net.addLink(b, s, **o); pings(net, a, b); sends(a, b)", ""),
    Mistake("hcustom", "slow = custom(TCLink, bw=5)\n"
            "net.addLink(a, s, cls=slow); net.addLink(b, s); pings(net, a, b); sends(a, b)", ""),
    Mistake("hown", "class Rated(TCIntf):\n"
            "    def config(self, rate=None, **more):\n        return TCIntf.config(self,"
            " bw=rate, **more)\n"
            "net.addLink(a, s, intf=Rated, cls=Link, rate=10); net.addLink(b, s); pings(net, a,"
            " b)", ""),
    Mistake("hkinds", "net.addLink(a, s, bw=9, use_hfsc=True, delay='3ms')\n"
            "net.addLink(b, s, bw=9, use_tbf=True, latency_ms=100); net.addLink(c, s, bw=9,"
            " delay='2ms')\n"
            "pings(net, a, b); sends(a, c); sends(b, c, 5202)", ""),
    Mistake("hends", "net.addLink(a, s, params1={'delay': '5ms'}, params2={'bw': 20})\n"
            "net.addLink(b, s); pings(net, a, b); sends(b, a)", ""),
    Mistake("hlater", "net.addLink(a, s, bw=10); net.addLink(b, s); pings(net, a, b, 50)\n"
            "a.intf().config(bw=5); sends(a, b)", ""),
    Mistake("hfail", "net.addLink(a, s, delay='5ms'); net.addLink(b, s); pings(net, a, b)\n"
            "net.configLinkStatus('hfaila', 'hfails', 'down'); a.cmd('ping -c 1 -W 1 ' + b.IP())\n"
            "net.configLinkStatus('hfaila', 'hfails', 'up'); a.cmd('ping -c 9 -i 0.02 ' +"
            " b.IP())", ""),
    Mistake("hpopen", "net.addLink(a, s, delay='5ms'); net.addLink(b, s); net.start()\n"
            "a.popen('ping -q -c 9 -i 0.02 ' + b.IP()).wait(); a.popen(['ip', 'addr']).wait()", ""),
    Mistake("hfast", "fast = type('Fast', (TCIntf,), {'bwParamMax': 10000})\n"
            "net.addLink(a, s, intf=fast, cls=Link, bw=2000); net.addLink(b, s); pings(net, a,"
            " b)", ""),
    Mistake("hqueue", "net = Mininet(switch=OVSBridge, controller=None); s = net.addSwitch('hq',"
            " dpid='1')\n"
            "a, b = net.addHost('hqa'), net.addHost('hqb'); net.addLink(a, s); net.addLink(b, s)\n"
            "net.start(); os.system('ovs-vsctl -- set port hq-eth2 qos=@q -- --id=@q create qos"
            " type=linux-htb other-config:max-rate=50000000 queues=0=@a,1=@b -- --id=@a create"
            " queue"
            " other-config:max-rate=50000000 -- --id=@b create queue other-config:max-rate=5000000"
            " >/dev/null')\n"
            "os.system('ovs-ofctl add-flow hq priority=9,tcp,actions=set_queue:1,normal');"
            " sends(a, b)",
            ""),
    Mistake("hovs", "net = Mininet(link=TCLink, switch=OVSBridge, controller=None)\n"
            "s = net.addSwitch('ho', dpid='1'); a, b = net.addHost('hoa'), net.addHost('hob')\n"
            "net.addLink(a, s, bw=10); net.addLink(b, s, bw=5, delay='2ms'); pings(net, a, b)\n"
            "sends(a, b)", ""),
    Mistake("hrouter", "r = net.addHost('hrouterr', ip='10.1.0.1/24'); net.addLink(a, r,"
            " delay='2ms')\n"
            "net.addLink(b, r, bw=10); net.build(); a.setIP('10.1.0.2/24');"
            " b.setIP('10.2.0.2/24')\n"
            "r.cmd('ifconfig hrouterr-eth1 10.2.0.1/24; sysctl -w net.ipv4.ip_forward=1')\n"
            "a.cmd('ip route add default via 10.1.0.1'); b.cmd('ip route add default via"
            " 10.2.0.1')\n"
            "a.cmd('ping -c 9 -i 0.02 10.2.0.2')", ""),
    Mistake("hsysctl", "net.addLink(a, s); net.addLink(b, s, delay='3ms'); net.start()\n"
            "[h.cmd('sysctl -w net.ipv4.tcp_congestion_control=reno') for h in (a, b)]; sends(a,"
            " b)", ""))


def test_the_report_has_no_remark_on_sound_scripts(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(script_of(OF_MININET_IN_ORDER))
    (tmp_path / "all.sh").write_text(FUNCTIONS + "\n".join(
        f"net {name} {number}; h_{name}() {{ {lines}; }}; h_{name}"
        for number, (name, lines) in enumerate(HEALTHY.items(), start=1))
        + "\npython3 net.py || exit; mn --switch lxbr --controller none --link tc,bw=10,delay=1ms"
            " --test"
        " pingall\n")
    ended = Ended(tmp_path, "bash", "all.sh", flags=("--capture",))
    assert ended.status == 0, ended.err
    facts = stored_facts(ended.kept)
    capture = pcapng.read(ended.kept / pcapng.NAME)
    report = report_capture(capture, facts, "", 0).report
    assert not report.alarms, report.alarms
    assert report.answer.sentence.startswith("All "), report.answer.sentence
    assert len(HEALTHY) + len(OF_MININET_IN_ORDER) >= 30
