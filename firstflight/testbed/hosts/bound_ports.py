"""Chooses the ports of a client's connections, one after another.

The kernel chooses them by what it opened before. Chosen here they are the same in every run and
wherever a trial stands, and so is what hashes them: fair queues, samples of packets.
"""

from __future__ import annotations

import errno
import itertools
import socket
from collections.abc import Iterator

FIRST_PORT, END_OF_PORTS = 1024, 1 << 16


def all_ports() -> Iterator[int]:
    """The ports, again from the first one after the last."""
    return itertools.cycle(range(FIRST_PORT, END_OF_PORTS))


def bind_next(opened: socket.socket, ports: Iterator[int]) -> None:
    """Give a socket the next port that is not still in use. Raises OSError."""
    for port in itertools.islice(ports, END_OF_PORTS - FIRST_PORT):
        try:
            opened.bind(("0.0.0.0", port))
            return
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    raise OSError(errno.EADDRNOTAVAIL, "every port is in use")
