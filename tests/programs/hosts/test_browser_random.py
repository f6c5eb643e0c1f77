"""Random numbers and ports of Chromium's network process, in programs with the same argument."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from firstflight.testbed import fork_server
from firstflight.testbed.messages import BROWSER_RANDOM

NETWORK = "--utility-sub-type=network.mojom.NetworkService"
# Prints random numbers: 48 bytes, as many as a seed has, by the library and by the system call;
# then other sizes, of which no seed is.
DRAWING = """
import ctypes, os, threading
libc = ctypes.CDLL(None)
def by_call(size):
    into = ctypes.create_string_buffer(size)
    assert libc.syscall(318, into, ctypes.c_long(size), 0) == size
    return into.raw.hex()
print(os.getrandom(48).hex(), by_call(48), os.getrandom(16).hex(), by_call(32))
assert libc.syscall(39) == os.getpid()
assert libc.syscall(3, 12345) == -1 and ctypes.get_errno() in (0, 9)
"""


# Prints the local ports of six TCP connections and of a datagram socket, and an errno.
CONNECTING = """
import socket
ends = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
opened = [socket.socket() for _ in range(6)]
for number, client in enumerate(opened):
    client.connect(ends[number % 2].getsockname())
datagram = socket.socket(type=socket.SOCK_DGRAM)
datagram.connect(("127.0.0.1", 9))
bound = socket.socket()
bound.bind(("127.0.0.1", 0))
kept = bound.getsockname()
bound.connect(ends[0].getsockname())
assert bound.getsockname() == kept
print(*(client.getsockname()[1] for client in (*opened, datagram)))
try:
    opened[0].connect(("127.0.0.1", 9))
except OSError as error:
    print(error.errno)
"""


def drawn(*words: str, program: str = DRAWING) -> list[str]:
    """What a program prints that is started with these arguments and the library."""
    library = fork_server.libraries().get(BROWSER_RANDOM)
    if library is None:
        pytest.skip("no compiler")
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", program, *words], capture_output=True, text=True,
        check=True, env={**os.environ, "LD_PRELOAD": str(library)})
    return done.stdout.split()


def test_the_seeds_of_the_network_process_are_the_same_each_time() -> None:
    one, other = drawn(NETWORK), drawn(NETWORK)
    assert one[:2] == other[:2] and one[0] != one[1]
    assert one[2] != other[2] and one[3] != other[3], "numbers of other sizes are no seeds"


def test_other_processes_of_the_browser_draw_from_the_kernel() -> None:
    one, other = drawn("--type=renderer"), drawn()
    assert not {*one} & {*other}


def test_connections_of_the_network_process_have_ports_from_1024_on() -> None:
    *ports, datagram, error = map(int, drawn(NETWORK, program=CONNECTING))
    assert ports == sorted(set(ports)) and 1024 <= ports[0] and ports[-1] < 2048, ports
    assert datagram > 2048 and error == errno.EISCONN
    *others, _, _ = map(int, drawn("--type=renderer", program=CONNECTING))
    assert min(others) > 2048, "the kernel gives other processes their ports"
