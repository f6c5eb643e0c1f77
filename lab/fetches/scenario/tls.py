"""TLS of a trial: its certificates and handshake, and the server's writes under it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from lab.fetches.scenario.parameter import ANY, swept, tls


@dataclass(frozen=True, kw_only=True)
class TlsParameters:
    """How TLS 1.3 is spoken.

    chain_bytes: TLS 1.3 with certificates of so many bytes, DER, 0 for plain HTTP.
    signature: of those certificates: ed25519, ecdsa (P-256), rsa2048, or one of
        OpenSSL 3.5: mldsa44, mldsa65, mldsa87, slhdsa128s.
    key_share: what the client offers for the key exchange, x25519 or x25519mlkem768.
    intermediates: certificates between the server's own and the root.
    tickets: session tickets after the handshake, a write each.
    resumed: 1 for the session of an earlier connection.
    early_data_bytes: of a request that leaves with the client's hello, 0 for none; curl's own,
        or padded to so many.
    record_bytes: most plain text in a record of the response, a write each.
    buffer_bytes: through which the server's first messages leave, in writes; 0
        for one write.
    """

    chain_bytes: int = swept("chain_bytes")
    signature: str = tls("signature", "mldsa44", "mldsa65", "mldsa87", "slhdsa128s")
    intermediates: int = tls("intermediates")
    tickets: int = tls("tickets")
    resumed: int = tls("resumed")
    early_data_bytes: int = tls("early_data_bytes", *ANY)
    record_bytes: int = tls("record_bytes")
    buffer_bytes: int = tls("buffer_bytes")
    key_share: str = tls("key_share", "x25519mlkem768")

    @property
    def tls_settings(self) -> dict[str, Any]:
        """As the worker reads them."""
        return {column.name: getattr(self, column.name) for column in fields(TlsParameters)}


TLS = tuple(column for column in fields(TlsParameters) if "tls" in column.metadata)
