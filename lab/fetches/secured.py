"""TLS in a trial: what goes together, and what a handshake is in the model's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hosts.records import RECORD_OVERHEAD_BYTES
from lab.core.errors import UsageError
from lab.tcp.transfer import Secure


# What a certificate of each signature takes at least (hosts.certificates has the same).
LEAST_BYTES = {"ed25519": 400, "ecdsa": 500, "rsa2048": 1000}


class Lists(Protocol):
    """The lists of a sweep that say how TLS is spoken, and with what."""

    @property
    def chain_bytes(self) -> tuple[int, ...]: ...
    @property
    def signature(self) -> tuple[str, ...]: ...
    @property
    def intermediates(self) -> tuple[int, ...]: ...
    @property
    def resumed(self) -> tuple[int, ...]: ...
    @property
    def tickets(self) -> tuple[int, ...]: ...
    @property
    def kept(self) -> tuple[int, ...]: ...
    @property
    def client(self) -> str: ...


def check_tls(asked: Lists, where: str) -> None:
    """Raises UsageError where a chain cannot be, or the rest does not go with TLS."""
    chains = [each for each in asked.chain_bytes if each]
    if not chains:
        if any(asked.resumed):
            raise UsageError(f"{where}: a session is resumed (resumed, --resumed) only with TLS:"
                             " say a chain (chain_bytes, --chain)")
        return
    if asked.client != "curl":
        raise UsageError(f"{where}: TLS (chain_bytes, --chain) needs the client curl, not"
                         f" {asked.client}: say --client curl")
    if any(asked.kept):
        raise UsageError(f"{where}: earlier responses (kept, --kept) go with plain HTTP only")
    if any(asked.resumed) and not all(asked.tickets):
        raise UsageError(f"{where}: without a ticket (tickets, --tickets) no session can be resumed"
                         " (resumed, --resumed)")
    for signature in asked.signature:
        least = LEAST_BYTES[signature] * (1 + max(asked.intermediates))
        if min(chains) < least:
            count = 1 + max(asked.intermediates)
            raise UsageError(f"{where}: a chain of {min(chains)} bytes is too small for {count}"
                             f" certificate{'s' if count > 1 else ''} with {signature}: at least"
                             f" {least}")


def secure_of(said: Mapping[str, Any]) -> Secure | None:
    """The handshake that a server told of (hosts.tls.Tls.told), None for plain HTTP."""
    tls = said.get("tls")
    if tls is None:
        return None
    return Secure(tls["hello_bytes"], tuple(tls["flight"]), tls["finished_bytes"],
                  tuple(tls["tickets"]), tls["response"][0])


def wire_bytes(said: Mapping[str, Any]) -> int:
    """Of the response, as it went over the network; 0 where nothing was told."""
    if "tls" in said:
        return sum(said["tls"]["response"])
    return int(said.get("header_bytes", 0) + said.get("body_bytes", 0))


def asked_bytes(said: Mapping[str, Any]) -> int:
    """What a client sent over TLS, its request included; 0 for plain HTTP."""
    tls = said.get("tls")
    if tls is None:
        return 0
    return int(tls["hello_bytes"] + tls["finished_bytes"] + said["request_bytes"]
               + RECORD_OVERHEAD_BYTES)
