"""What goes together with a server besides server.py, in a sweep."""

from __future__ import annotations

from lab.core.errors import UsageError
from lab.core.scenario.quantities import QUANTITIES
from lab.fetches.scenario.server import BUILTIN, HTTP_1, OWN
from lab.fetches.scenario.sweep import Sweep

# What only server.py does otherwise than by default, and its words.
_OURS = {"buffer_bytes": "a buffer of its own (buffer_bytes, --tls-buffer)",
         "gap_ms": "a back-end (gap_ms, --think)", "head": "writes of headers (head)",
         "nagle": "Nagle's algorithm (nagle)", "framing": "a body without a length (framing)",
         "send_buffer_bytes": "a send buffer of its own (send_buffer_bytes)"}


def check_server(requested: Sweep, where: str) -> None:
    """Raises UsageError where a server cannot do what else is requested."""
    if (OWN in requested.server) != bool(requested.own_server):
        raise UsageError(f"{where}: " + (
            "a server of your own is its command: say --server-command, or [own_server] in a file"
            if not requested.own_server else
            f"--server-command is of the server {OWN}: say --server {OWN}, or none"))
    if requested.has_own_chain and any(requested.chain_bytes):
        raise UsageError(f"{where}: a server has its own certificate (ca, --ca), or is given a"
                         " chain (chain_bytes, --chain): not both")
    others = [name for name in requested.server if name != BUILTIN]
    for name, words in _OURS.items():
        if others and {*getattr(requested, name)} != {*QUANTITIES[name].defaults}:
            raise UsageError(f"{where}: {words} is of the server {BUILTIN}, not of {others[0]}")
    if requested.http == (HTTP_1,):
        return
    if BUILTIN in requested.server:
        raise UsageError(f"{where}: the server {BUILTIN} speaks HTTP/1.1 only: say another one"
                         " (server, --server nginx)")
    if not all(requested.chain_bytes) and not requested.has_own_chain:
        raise UsageError(f"{where}: HTTP/2 goes over TLS: say a chain (chain_bytes, --chain)")
    if any(requested.resumed):
        raise UsageError(f"{where}: sessions are resumed (resumed, --resumed) with HTTP/1.1 only:"
                         " over HTTP/2 curl goes on with the connection that it has")
