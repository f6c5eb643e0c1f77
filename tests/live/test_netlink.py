"""What a network is told over netlink is what tc and ip show, and what they would have done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.live.test_engines import in_guest
from vtime.kernel.init import RESULTS

# Runs in the guest: on one interface netlink does it, on another, of the same name in a
# namespace of its own, tc and ip do; both are asked what there is.
BOTH = """
import json, os, re, subprocess, sys
from types import SimpleNamespace
from firstflight.testbed.network.kernel import NodeKernel
from firstflight.testbed.network.links import Neighbour, Route, RouteOptions, star_routes
from firstflight.testbed.network.ports import Port
from firstflight.net.link import Link, Path
from firstflight.testbed.network.shaping import bottleneck_queue, server_port, star_ports

def run(words):
    return subprocess.run(words.split(), capture_output=True, text=True, check=True).stdout

def shown(words):
    # From iproute2 6.7 on tc knows the seed, and shows it where it is the kernel's own choice, too.
    return [re.sub(" seed (?!9$)[0-9]+$", "", line.rstrip()) for line in run(words).splitlines()]

PORTS = [*star_ports(Path(Link(50.5005, 56, 20, loss_percent=1.7, jitter_ms=2.3, seed=9),
                          Link(50.5005, 10_000_000, 20))),
         *star_ports(Path(Link(10, 1e6, 5, loss_percent=2, loss_burst=4, qdisc="cake", seed=9),
                          Link(10, 56, 5)))[:1],
         *(Port("any", bottleneck_queue(kind, 20000, 500)) for kind in ("cake", "fq_codel")),
         server_port("any", True)]
ROUTES = [*star_routes(10, 27, "cubic", RouteOptions(300, True, 536)),
          Route("10.0.1.7", "any", {"initcwnd": 3, "congctl": "reno"}, via="10.0.0.9"),
          Route("default", "any", {"initrwnd": 64}, via="10.0.0.9"),
          Route("default", "any", {}, via="10.0.0.8")]
KNOWN = Neighbour("10.0.0.7", "00:11:22:33:44:55", "any")
found = []

def compare(each, does, words):
    told = []
    for by_netlink in (True, False):
        os.unshare(os.CLONE_NEWNET) if hasattr(os, "unshare") else libc.unshare(0x40000000)
        run(f"ip link add {each.where} type veth peer name other")
        run("ip link set other up")
        run(f"ip link set {each.where} up")
        run(f"ip addr add 10.0.0.3/24 dev {each.where}")
        if by_netlink:
            kernel = NodeKernel(SimpleNamespace(name="here", pid=os.getpid()))
            does(kernel)
            kernel.close()
        else:
            for command in each.commands:
                run(command if " seed " in str(told) else command.partition(" seed ")[0])
        told.append(shown(words))
    found.append({"said": each.commands, "netlink": told[0], "tool": told[1]})

import ctypes
libc = ctypes.CDLL(None)
for port in PORTS:
    compare(SimpleNamespace(where=port.name, commands=port.commands),
            lambda kernel: kernel.install_ports(port), f"tc qdisc show dev {port.name}")
for wanted in (*ROUTES, KNOWN):
    install = NodeKernel.install_neighbours if wanted is KNOWN else NodeKernel.install_routes
    compare(SimpleNamespace(where=wanted.interface, commands=[wanted.command]),
            lambda kernel: install(kernel, wanted),
            "ip neigh show" if wanted is KNOWN else "ip route show")
json.dump(found, open(sys.argv[1], "w"))
"""


def test_tc_and_ip_show_the_same_as_if_they_had_done_it(kernel: Path, tmp_path: Path) -> None:
    status = in_guest(kernel, tmp_path / "guest",
                      ["/usr/bin/python3", "-c", BOTH, f"{RESULTS}/found.json"])
    said = (tmp_path / "guest" / "console.log").read_text()
    assert status == 0, said
    found: list[dict[str, Any]] = json.loads((tmp_path / "guest" / "found.json").read_text())
    assert len(found) == 6 + 5 + 1
    for each in found:
        assert each["netlink"] == each["tool"], each["said"]
    shown = "\n".join(line for each in found for line in each["netlink"])
    for words in ("netem 1: root refcnt 2 limit 1000000 delay 50.5ms  2.3ms loss 1.7%",
                  "netem 2: parent 1:1 limit 20 rate 56Kbit", "loss gemodel", "cake 1: root",
                  "tbf 1: root", "fq_codel 2: parent 1:1 limit 500p", "fq 1: root",
                  "initcwnd 10", "rto_min lock 300ms congctl cubic", "default via 10.0.0.8",
                  "10.0.0.7 dev any lladdr 00:11:22:33:44:55 PERMANENT"):
        assert words in shown, shown
