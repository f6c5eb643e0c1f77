#!/usr/bin/env python3
"""Timed fetches with curl, curl's library or wget: a JSON request a line in, an answer a line out.

    ./server.py --port 8080 >/dev/null &
    ./client.py <<<'{"program": "curl", "urls": ["http://127.0.0.1:8080/9000"], "deadline_s": 9}'
    {"fetches": [{"connect_ms": 0.2, …, "first_byte_ms": 0.6, "total_ms": 0.7, …, "ok": true, …}]}

What an answer has, for each URL in order:

    connect_ms       to the end of TCP's handshake
    first_byte_ms    to the first byte of the response
    total_ms         to its last byte: curl's time_total, by which Figure 5 is repeated
    port             the client's, so that the packets of this connection are found in the capture
    size, sha256     of the body, which has to be the one that the server reports

All URLs of a request use one connection, so that later responses find the window that earlier ones
have grown. The program knows nothing of the network: it runs on the client's host, whose packets
the switch delays (./topo.py --show). firstflight/testbed/hosts/http_client.py has further keys of
requests, for TLS, HTTP/2 and pauses.
"""

from __future__ import annotations

import sys

from firstflight.testbed.hosts.http_client import main

if __name__ == "__main__":
    sys.exit(main())
