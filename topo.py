#!/usr/bin/python3
"""The networks on which First Flight measures, for Mininet's own command.

    client ── switch ── server                     star: of every fetch and page

    client 1 ─┐                                   ┌─ server 1
        …     switch ── router ── switch       …      dumbbell: of every load
    client N ─┘                                   └─ server M

    ./topo.py --show                              where delay, rate, queue and routes are set
    ./run.sh --rtt 200 --bw 2M --iw 3,10 --dry-run    the same for a trial of your own
    ./run.sh -- mn --custom topo.py --topo star --test pingall
    ./run.sh -- mn --custom topo.py --topo dumbbell --test pingall

Mininet gets the bare networks. Each trial then sets its delay, rate and queue on the ports of a
switch or router, and its windows on the hosts' routes. star() and dumbbell() below show how, with
the functions that the measurement itself uses.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

# mn executes this file without a __file__, and with its own folder in the path of modules.
sys.path.insert(0, os.path.dirname(os.path.abspath(sys._getframe().f_code.co_filename)))

from firstflight.net.link import Path
from firstflight.testbed.network.links import CLIENT_SIDE, SERVER_SIDE, dumbbell_routes, star_routes
from firstflight.testbed.network.shaping import ClientLink, DumbbellLinks, star_ports

try:
    from firstflight.testbed.network.topology import DumbbellTopo, StarTopo
except ModuleNotFoundError as error:
    sys.exit(f"topo.py: {error}: ./install.sh installs it")

# The values of the example that --show prints.
RTT_MS, KBPS, QUEUE_PACKETS = 100.0, 2000.0, 50
IW, RECEIVE_WINDOW, CONGESTION_CONTROL = 10, 44, "cubic"


class RoutedDumbbell(DumbbellTopo):
    """The dumbbell with default routes. A measurement sets routes itself, with its windows."""

    def build(self, clients: int = 1, servers: int = 1) -> None:
        super().build(clients, servers)
        for side, name, count in ((CLIENT_SIDE, "client", clients),
                                  (SERVER_SIDE, "server", servers)):
            router = f"{side}.254"
            for number in range(1, count + 1):
                host = f"{name}{number}"
                self.setNodeInfo(host, {**self.nodeInfo(host), "defaultRoute": f"via {router}"})


topos = {"star": StarTopo, "dumbbell": RoutedDumbbell}  # Mininet looks for this name


def star() -> Iterator[str]:
    """Lines on where a fetch's network is set, with the commands that do the same."""
    path = Path.between(RTT_MS, KBPS, KBPS, QUEUE_PACKETS)
    port_to_client, port_to_server = star_ports(path)
    route_to_client, route_to_server = star_routes(IW, RECEIVE_WINDOW, CONGESTION_CONTROL)

    yield "star: client ── switch ── server"
    yield "  on the switch's port to the client: half of the RTT, then the rate and its queue"
    yield from (f"    {command}" for command in port_to_client.commands)
    yield "  on its port to the server: the same for requests and acknowledgements"
    yield from (f"    {command}" for command in port_to_server.commands)
    yield "  on the server's route: the initial window and the congestion control"
    yield f"    {route_to_client.command}"
    yield "  on the client's route: the receive window that it offers first"
    yield f"    {route_to_server.command}"


def dumbbell() -> Iterator[str]:
    """Lines on where a load's network is set, with one client."""
    links = DumbbellLinks(
        bandwidth_kbps=KBPS, queue_packets=QUEUE_PACKETS, qdisc="fifo",
        clients=(ClientLink(RTT_MS),), access_queue_packets=QUEUE_PACKETS, seed=1)
    bottleneck, way_back = links.router_ports()

    yield "dumbbell: clients ── switch ── router ── switch ── servers"
    yield "  on the router's port to the clients, the bottleneck: the rate and its queue"
    yield from (f"    {command}" for command in bottleneck.commands)
    yield "  on the switch's port to each client: half of the client's RTT"
    yield from (f"    {command}" for port in links.client_ports() for command in port.commands)
    yield "  on the router's port to the servers: the other half"
    yield from (f"    {command}" for command in way_back.commands)
    yield "  on each server's route to each client: the initial window"
    yield from (f"    {route.command}"
                for route in dumbbell_routes("server1", [IW], CONGESTION_CONTROL))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="topo.py", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    parser.add_argument("--show", action="store_true", required=True,
                        help="print where delay, rate, queue and routes are set")
    parser.parse_args()
    print(f"An example: RTT {RTT_MS:g} ms, {KBPS:g} kbit/s, a queue of {QUEUE_PACKETS} packets, an"
          f" initial window of {IW} segments.\n")
    print(*star(), "", *dumbbell(), sep="\n")
    print("\nfirstflight/testbed/network/shaping.py makes the ports, links.py the routes, and"
          " topology.py\ninstalls both and reads them back. tc and ip do the same; the measurement"
          " speaks netlink.\nYour own values: ./run.sh --rtt 200 --bw 2M --iw 3,10 --dry-run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
