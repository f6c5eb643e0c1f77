"""A server of the user's own as the server of a trial: its command, and when it is ready."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engines.network.kernel import Host
from engines.network.links import SERVER_IP
from engines.network.netlink import network_of
from hosts.certificates import Files

NAME = "the server"  # in messages
LAUNCH = str(Path(__file__).resolve().with_name("launch.py"))
PROBE_S = 1.0  # for an answer to one question whether it is ready


def command(own: Mapping[str, Any], port: int, files: Files | None) -> list[str]:
    """What starts it (engines/servers/launch.py), the words in braces filled in."""
    known = {"{p}": str(port), "{address}": SERVER_IP}
    if files is not None:
        known.update({"{chain}": str(files.chain), "{key}": str(files.key)})
    words = []
    for word in own["command"]:
        for mark, value in known.items():
            word = word.replace(mark, value)
        words.append(word)
    requested = {"command": words, "folders": own["folders"], "in_memory": is_read_only("/")}
    return [sys.executable, "-S", "-E", LAUNCH, json.dumps(requested)]


def is_read_only(path: str) -> bool:
    """As a guest's root is."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def answers(host: Host, port: int, path: str, is_secure: bool) -> bool:
    """Whether it answers a path with status 200, asked from its own host, with HTTP/1.1."""
    import http.client  # slow, and of few runs
    import ssl
    with network_of(host.pid):
        probe = socket.socket()
    try:
        probe.settimeout(PROBE_S)
        probe.connect((SERVER_IP, port))
        connection = http.client.HTTPConnection(SERVER_IP, port)
        # Only whether somebody is there: the client that is measured looks at certificates.
        connection.sock = (ssl._create_unverified_context().wrap_socket(probe) if is_secure
                           else probe)
        connection.request("GET", path, headers={"Connection": "close"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        probe.close()
