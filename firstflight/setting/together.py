"""Checks that the values of a setting go together, and that a system can do them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.parameters import PARAMETERS
from firstflight.setting.server import BUILTIN, HERE, NEWER
from firstflight.testbed.hosts.tls_records import LEAST_BYTES

Lists = Mapping[str, Any]  # the lists of a sweep: the values of each parameter, by its name


def needing_newer(lists: Lists) -> list[str]:
    """The values and parameters in a sweep that only Debian 13's programs can do, in words."""
    needing = []
    for name, row in PARAMETERS.items():
        values = lists.get(name, ())
        needing += [value for value in values if value in row.newer_values]
        if row.newer and any(value != row.default for value in values):
            needing.append(row.newer)
    return needing


def system_for(lists: Lists) -> str:
    """The system that can do all of a sweep's lists."""
    return NEWER if needing_newer(lists) else HERE


def check_system(lists: Lists, where: str) -> None:
    """Refuse values that this machine's programs cannot do, where these run. Raises UsageError."""
    if HERE in lists["system"] and (needing := needing_newer(lists)):
        raise UsageError(f"{where}: {needing[0]} needs Debian 13's programs (system = {NEWER!r},"
                         f" --system {NEWER})")


def check_builtin(lists: Lists, where: str) -> None:
    """Refuse values that only server.py can do, where another server runs. Raises UsageError."""
    other_servers = [name for name in lists["server"] if name != BUILTIN]
    if not other_servers:
        return
    for name, row in PARAMETERS.items():
        if row.builtin and any(value != row.default for value in lists.get(name, ())):
            raise UsageError(f"{where}: {row.builtin} needs the server {BUILTIN}, not"
                             f" {other_servers[0]}")


def check_resumed(lists: Lists, where: str) -> None:
    """Refuse to resume sessions without tickets. Raises UsageError."""
    if any(lists["resumed"]) and not all(lists["tickets"]):
        raise UsageError(f"{where}: without a ticket (tickets, --tickets) no session can be resumed"
                         " (resumed, --resumed)")


def check_chains(chains: Iterable[tuple[Any, ...]], where: str) -> None:
    """Refuse a chain that is too small for its certificates. Raises UsageError.

    chains: each as (signature, intermediates, chain_bytes), of 0 bytes for no chain.
    """
    for signature, intermediates, chain_bytes in chains:
        count = 1 + intermediates
        least = count * LEAST_BYTES[signature]
        if 0 < chain_bytes < least:
            raise UsageError(f"{where}: a chain of {chain_bytes} bytes is too small for {count}"
                             f" certificate{'s' if count > 1 else ''} with {signature}: at least"
                             f" {least}")
