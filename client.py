#!/usr/bin/env python3
"""Timed fetches with curl, libcurl or wget, one JSON request a line on standard input.

    ./client.py <<<'{"program": "curl", "urls": ["http://127.0.0.1:8080/9000"], "deadline_s": 9}'

firstflight/testbed/hosts/http_client.py has the requests and the answers.
"""

from __future__ import annotations

import sys

from firstflight.testbed.hosts.http_client import main

if __name__ == "__main__":
    sys.exit(main())
