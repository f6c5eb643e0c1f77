"""Two hosts behind a switch: pings for a minute, or iperf3 with as many flows as requested.

    python3 flows.py MBPS DELAY_MS SECONDS FLOWS [PINGS [QUEUE_PACKETS]]
"""

from __future__ import annotations

import sys

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge

numbers = [int(word) for word in sys.argv[1:]]
mbps, delay_ms, seconds, flows, pings, packets = [*numbers, *(0, 1000)[len(numbers) - 4:]]
net = Mininet(switch=LinuxBridge, link=TCLink, controller=None)
hosts = [net.addHost(f"h{number}") for number in (1, 2)]
switch = net.addSwitch("s1")
for host in hosts:
    net.addLink(host, switch, bw=mbps, delay=f"{delay_ms}ms", max_queue_size=packets)
net.start()
if pings:
    print(hosts[0].cmd(f"ping -c {pings} 10.0.0.2"))
hosts[1].cmd("iperf3 -s -D")
print(hosts[0].cmd(f"iperf3 -c 10.0.0.2 -t {seconds} -P {flows} -i 0"))
net.stop()
