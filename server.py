#!/usr/bin/env python3
"""The HTTP server of every fetch: bodies of any size, and a line of JSON for each response.

    ./server.py --port 8080 & curl -s 127.0.0.1:8080/15000 | wc -c
    15000
    {"event": "response", …, "path": "/15000", …, "initial_window": 10, …, "latency_ms": 0.024, …}

What the line has, and how the server knows it:

    initial_window     in segments, by TCP_INFO as soon as the connection is accepted
    latency_ms         the paper's measure: from the first byte sent to the last byte acknowledged,
                       by the kernel's time stamps (SOF_TIMESTAMPING_TX_ACK)
    retransmissions    segments that TCP retransmitted until then
    mss, congestion_control, …    what the kernel used, to be compared with what was requested

One loop waits for all connections: Server.serve of firstflight/testbed/hosts/http_server.py. A
response leaves in one write, headers included, with TCP_NODELAY, so that no second write meets
Nagle's algorithm. The URL asks for other ways to write, such as after a back-end's time:

    curl -s '127.0.0.1:8080/15000?burst=4000&gap_ms=200'

The docstring of http_server.py has all such keys. The server sets no window: the route does
(./topo.py --show).
"""

from __future__ import annotations

import sys

from firstflight.testbed.hosts.http_server import main

if __name__ == "__main__":
    sys.exit(main())
