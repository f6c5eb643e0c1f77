"""Which values of a setting go together, and which system can do them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.parameters import PARAMETERS
from firstflight.setting.server import BUILTIN, HERE, NEWER
from firstflight.testbed.hosts.tls_records import LEAST_BYTES

Lists = Mapping[str, Any]  # of a sweep, the values by name


def needing_newer(lists: Lists) -> list[str]:
    """What of a sweep's lists only Debian 13's programs can do, in words."""
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
    """Raises UsageError where this machine's programs cannot do what they are requested for."""
    if HERE in lists["system"] and (needing := needing_newer(lists)):
        raise UsageError(f"{where}: {needing[0]} needs Debian 13's programs (system = {NEWER!r},"
                         f" --system {NEWER})")


def check_builtin(lists: Lists, where: str) -> None:
    """Raises UsageError where another server is to do what only server.py can."""
    others = [name for name in lists["server"] if name != BUILTIN]
    for name, row in PARAMETERS.items():
        if others and row.builtin and {*lists.get(name, (row.default,))} != {row.default}:
            raise UsageError(f"{where}: {row.builtin} needs the server {BUILTIN}, not {others[0]}")


def check_resumed(lists: Lists, where: str) -> None:
    """Raises UsageError where a session is resumed without a ticket."""
    if any(lists["resumed"]) and not all(lists["tickets"]):
        raise UsageError(f"{where}: without a ticket (tickets, --tickets) no session can be resumed"
                         " (resumed, --resumed)")


def check_chains(chains: Iterable[tuple[Any, ...]], where: str) -> None:
    """Raises UsageError where a chain is too small for its certificates.

    chains: of (signature, intermediates, chain_bytes); 0 bytes for none.
    """
    for signature, intermediates, chain_bytes in chains:
        count, least = 1 + intermediates, LEAST_BYTES[signature] * (1 + intermediates)
        if 0 < chain_bytes < least:
            raise UsageError(f"{where}: a chain of {chain_bytes} bytes is too small for {count}"
                             f" certificate{'s' if count > 1 else ''} with {signature}: at least"
                             f" {least}")
