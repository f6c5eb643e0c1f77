"""TLS in a trial: what goes together, and what a handshake is in the model's words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, Protocol

from hosts.tls_records import LEAST_BYTES, LEAST_PADDED_BYTES
from lab.core.errors import UsageError
from lab.fetches.scenario import own_server
from lab.fetches.scenario.trial import BUILTIN, HERE, HTTP_1, HTTP_3, NEWER, OWN
from lab.tcp.model.transfer import Secure

# What OpenSSL has from 3.5 on, and with it Debian 13.
NEWER_SIGNATURES = ("mldsa44", "mldsa65", "mldsa87", "slhdsa128s")
NEWER_KEY_SHARES = ("x25519mlkem768",)
NEWER_HTTP = (HTTP_3,)
NGINX = "nginx"
EARLY_DATA = "early data (early_data_bytes, --early-data)"  # of Debian 13's curl


class Lists(Protocol):
    """The lists of a sweep that say how TLS is spoken, and with what."""

    @property
    def chain_bytes(self) -> tuple[int, ...]: ...
    @property
    def signature(self) -> tuple[str, ...]: ...
    @property
    def intermediates(self) -> tuple[int, ...]: ...
    @property
    def chains(self) -> tuple[tuple[Any, ...], ...]: ...
    @property
    def resumed(self) -> tuple[int, ...]: ...
    @property
    def early_data_bytes(self) -> tuple[int, ...]: ...
    @property
    def tickets(self) -> tuple[int, ...]: ...
    @property
    def kept(self) -> tuple[int, ...]: ...
    @property
    def buffer_bytes(self) -> tuple[int, ...]: ...
    @property
    def gap_ms(self) -> tuple[float, ...]: ...
    @property
    def head(self) -> tuple[str, ...]: ...
    @property
    def nagle(self) -> tuple[str, ...]: ...
    @property
    def framing(self) -> tuple[str, ...]: ...
    @property
    def send_buffer_bytes(self) -> tuple[int, ...]: ...
    @property
    def server(self) -> tuple[str, ...]: ...
    @property
    def http(self) -> tuple[str, ...]: ...
    @property
    def key_share(self) -> tuple[str, ...]: ...
    @property
    def system(self) -> tuple[str, ...]: ...
    @property
    def own_server(self) -> str: ...
    @property
    def client(self) -> str: ...


def newer(asked: Lists) -> list[str]:
    """What of it only Debian 13's programs have, in words."""
    early = [EARLY_DATA] if any(asked.early_data_bytes) else []
    return early + [each for lists, known in ((asked.signature, NEWER_SIGNATURES),
                                              (asked.key_share, NEWER_KEY_SHARES),
                                              (asked.http, NEWER_HTTP))
                    for each in lists if each in known]


def system_for(asked: Lists) -> str:
    """The system that can do all of it."""
    return NEWER if newer(asked) else HERE


def check_tls(asked: Lists, where: str) -> None:
    """Raises UsageError where a chain cannot be, or the rest does not go with TLS."""
    chains = [each for each in asked.chain_bytes if each]
    if HERE in asked.system and (needing := newer(asked)):
        raise UsageError(f"{where}: {needing[0]} needs Debian 13's programs (system ="
                         f" {NEWER!r}, --system {NEWER})")
    if not chains and not _has_own_chain(asked):
        if any(asked.resumed) or any(asked.early_data_bytes):
            raise UsageError(f"{where}: a session is resumed (resumed, --resumed), and early data"
                             " sent, only with TLS: say a chain (chain_bytes, --chain)")
        return
    if asked.client != "curl":
        raise UsageError(f"{where}: TLS (chain_bytes, --chain) needs the client curl, not"
                         f" {asked.client}: say --client curl")
    if any(asked.kept):
        raise UsageError(f"{where}: earlier responses (kept, --kept) go with plain HTTP only")
    if any(asked.resumed) and not all(asked.tickets):
        raise UsageError(f"{where}: without a ticket (tickets, --tickets) no session can be resumed"
                         " (resumed, --resumed)")
    if any(asked.early_data_bytes):
        _check_early_data(asked, where)
    for signature, intermediates, chain_bytes in asked.chains or tuple(product(
            asked.signature, asked.intermediates, chains)):
        count, least = 1 + intermediates, LEAST_BYTES[signature] * (1 + intermediates)
        if chain_bytes < least:
            raise UsageError(f"{where}: a chain of {chain_bytes} bytes is too small for {count}"
                             f" certificate{'s' if count > 1 else ''} with {signature}: at least"
                             f" {least}")


def _check_early_data(asked: Lists, where: str) -> None:
    """Raises UsageError where a request cannot leave with the client's hello."""
    if not all(asked.resumed):
        raise UsageError(f"{where}: {EARLY_DATA} goes with a session that is resumed (resumed,"
                         " --resumed 1): its ticket allows it")
    if any(each != NGINX for each in asked.server):
        raise UsageError(f"{where}: {EARLY_DATA} is of the server {NGINX} (server, --server"
                         f" {NGINX}): the others here do not take it")
    for size in asked.early_data_bytes:
        if 1 < size < LEAST_PADDED_BYTES:
            raise UsageError(f"{where}: {EARLY_DATA}: {size} bytes are less than curl's request"
                             f" may have: say 1 for that, or {LEAST_PADDED_BYTES} and more")


# What only server.py does: its name, the value that leaves it be, and its words.
_OURS = (("buffer_bytes", 4096, "a buffer of its own (buffer_bytes, --tls-buffer)"),
         ("gap_ms", 0.0, "a back-end (gap_ms, --think)"), ("head", "", "writes of headers (head)"),
         ("nagle", "off", "Nagle's algorithm (nagle)"),
         ("framing", "length", "a body without a length (framing)"),
         ("send_buffer_bytes", 0, "a send buffer of its own (send_buffer_bytes)"))


def check_server(asked: Lists, where: str) -> None:
    """Raises UsageError where a server cannot do what else is asked of it."""
    if (OWN in asked.server) != bool(asked.own_server):
        raise UsageError(f"{where}: " + (
            "a server of your own is its command: say --server-command, or [own_server] in a file"
            if not asked.own_server else
            f"--server-command is of the server {OWN}: say --server {OWN}, or none"))
    if _has_own_chain(asked) and any(asked.chain_bytes):
        raise UsageError(f"{where}: a server has its own certificate (ca, --ca), or is given a"
                         " chain (chain_bytes, --chain): not both")
    others = [each for each in asked.server if each != BUILTIN]
    for name, usual, words in _OURS:
        if others and any(value != usual for value in getattr(asked, name)):
            raise UsageError(f"{where}: {words} is of the server {BUILTIN}, not of {others[0]}")
    if asked.http == (HTTP_1,):
        return
    if BUILTIN in asked.server:
        raise UsageError(f"{where}: the server {BUILTIN} speaks HTTP/1.1 only: say another one"
                         " (server, --server nginx)")
    if not all(asked.chain_bytes) and not _has_own_chain(asked):
        raise UsageError(f"{where}: HTTP/2 goes over TLS: say a chain (chain_bytes, --chain)")
    if any(asked.resumed):
        raise UsageError(f"{where}: sessions are resumed (resumed, --resumed) with HTTP/1.1 only:"
                         " over HTTP/2 curl goes on with the connection that it has")


def _has_own_chain(asked: Lists) -> bool:
    """Whether the server brings its certificate."""
    return bool(asked.own_server and own_server.of(asked.own_server).ca)


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
