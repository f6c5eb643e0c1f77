#!/usr/bin/env python3
"""The HTTP server of every fetch: `server.py [--address A] [--port 80]`.

    ./server.py --port 8080 & curl -s 127.0.0.1:8080/15000 | wc -c

firstflight/testbed/hosts/http_server.py has the paths that it answers, and what it reports of each
response.
"""

from __future__ import annotations

import sys

from firstflight.testbed.hosts.http_server import main

if __name__ == "__main__":
    sys.exit(main())
