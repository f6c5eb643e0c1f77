"""The networks on which First Flight measures, for Mininet's own command.

    client ── switch ── server        star: of every fetch

    client 1 ─┐                                   ┌─ server 1
        …     switch ── router ── switch       …      dumbbell: of every load
    client N ─┘                                   └─ server M

    ./run.sh -- env PYTHONPATH=. mn --custom topo.py --topo star --test pingall

They come bare: rates, delays and queues are what an experiment installs on them
(firstflight/testbed/network/topology.py).
"""

from firstflight.testbed.network.topology import DumbbellTopo, StarTopo

topos = {"star": StarTopo, "dumbbell": DumbbellTopo}  # Mininet looks for this name
