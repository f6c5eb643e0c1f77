"""How long packets wait where queues are long: 10 Mbit/s, 20 ms, TCP for a minute, pings and UDP.

    python3 bufferbloat.py --queues 10,100,1000 --flows 1,10

One line for each run: the longest and the mean round trip of pings that are sent all the time, and
what a full queue has to add to it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re

from mininet.link import TCLink
from mininet.net import Mininet

MBPS, RTT_MS, FRAME_BYTES = 10, 20, 1514
SECONDS = 60


def full_queue_ms(packets: int) -> float:
    """The longest round trip: what the queue holds is sent, but for the delay on the way back.

    netem's limit counts packets that are on their way (its delay), too. A queue that is not longer
    than the delay adds more where packets come in bursts: they are sent only after it.
    """
    return max(RTT_MS / 2, packets * FRAME_BYTES * 8 / MBPS / 1000) + RTT_MS / 2


def run(packets: int, flows: int) -> str:
    # With ARP the first ping would take twice the round trip.
    net = Mininet(link=TCLink, autoStaticArp=True)
    net.addController("c0")
    one, two = net.addHost("h1"), net.addHost("h2")
    switch = net.addSwitch("s1")
    net.addLink(one, switch)
    net.addLink(two, switch, bw=MBPS, delay=f"{RTT_MS / 2}ms", max_queue_size=packets)
    net.start()
    try:
        # Else TCP's packets are of several segments, and a queue of packets holds more bytes.
        one.cmd("ip link set h1-eth0 gso_max_segs 1")
        two.cmd("iperf3 -s -D -p 5201; iperf3 -s -D -p 5202")
        pings = one.popen(f"ping -D -i 0.1 -c {SECONDS * 10} {two.IP()}")
        udp = one.popen(f"iperf3 -J -u -b 500K -p 5202 -t {SECONDS} -c {two.IP()}")
        report = json.loads(one.cmd(f"iperf3 -J -P {flows} -t {SECONDS} -c {two.IP()}"))
        rtts_ms = [float(word) for word in
                   re.findall(r"time=([\d.]+)", pings.communicate()[0].decode())]
        udp_lost_percent = json.loads(udp.communicate()[0])["end"]["sum"]["lost_percent"]
    finally:
        net.stop()
    return (f"{packets:7}{flows:7}{report['end']['sum_received']['bits_per_second'] / 1e6:9.2f}"
            f"{sum(rtts_ms) / len(rtts_ms):11.1f}{max(rtts_ms):11.1f}{full_queue_ms(packets):13.1f}"
            f"{udp_lost_percent:11.2f}")


def main() -> None:
    def numbers(words: str) -> list[int]:
        return [int(word) for word in words.split(",")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queues", type=numbers, default=[10, 100, 1000], help="in packets")
    parser.add_argument("--flows", type=numbers, default=[1, 10])
    given = parser.parse_args()
    print("packets  flows   Mbit/s    mean RTT  longest, ms  a full queue  UDP lost %")
    for packets, flows in itertools.product(given.queues, given.flows):
        print(run(packets, flows), flush=True)


if __name__ == "__main__":
    main()
