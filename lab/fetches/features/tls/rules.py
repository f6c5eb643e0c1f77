"""What of TLS goes together in a sweep."""

from __future__ import annotations

from itertools import product

from hosts.tls_records import LEAST_BYTES, LEAST_PADDED_BYTES
from lab.core.errors import UsageError
from lab.fetches.scenario.server import NGINX
from lab.fetches.scenario.sweep import Sweep

EARLY_DATA = "early data (early_data_bytes, --early-data)"


def check_tls(requested: Sweep, where: str) -> None:
    """Raises UsageError where a chain cannot be, or the rest does not go with TLS."""
    chains = [chain for chain in requested.chain_bytes if chain]
    if not chains and not requested.has_own_chain:
        if any(requested.resumed) or any(requested.early_data_bytes):
            raise UsageError(f"{where}: a session is resumed (resumed, --resumed), and early data"
                             " sent, only with TLS: say a chain (chain_bytes, --chain)")
        return
    if requested.client != "curl":
        raise UsageError(f"{where}: TLS (chain_bytes, --chain) needs the client curl, not"
                         f" {requested.client}: say --client curl")
    if any(requested.kept):
        raise UsageError(f"{where}: earlier responses (kept, --kept) go with plain HTTP only")
    if any(requested.resumed) and not all(requested.tickets):
        raise UsageError(f"{where}: without a ticket (tickets, --tickets) no session can be resumed"
                         " (resumed, --resumed)")
    if any(requested.early_data_bytes):
        _check_early_data(requested, where)
    for signature, intermediates, chain_bytes in requested.chains or tuple(product(
            requested.signature, requested.intermediates, chains)):
        count, least = 1 + intermediates, LEAST_BYTES[signature] * (1 + intermediates)
        if chain_bytes < least:
            raise UsageError(f"{where}: a chain of {chain_bytes} bytes is too small for {count}"
                             f" certificate{'s' if count > 1 else ''} with {signature}: at least"
                             f" {least}")


def _check_early_data(requested: Sweep, where: str) -> None:
    """Raises UsageError where a request cannot leave with the client's hello."""
    if not all(requested.resumed):
        raise UsageError(f"{where}: {EARLY_DATA} goes with a session that is resumed (resumed,"
                         " --resumed 1): its ticket allows it")
    if any(server != NGINX for server in requested.server):
        raise UsageError(f"{where}: {EARLY_DATA} is of the server {NGINX} (server, --server"
                         f" {NGINX}): the others here do not take it")
    for size in requested.early_data_bytes:
        if 1 < size < LEAST_PADDED_BYTES:
            raise UsageError(f"{where}: {EARLY_DATA}: {size} bytes are less than curl's request"
                             f" may have: say 1 for that, or {LEAST_PADDED_BYTES} and more")
