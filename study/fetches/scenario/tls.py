"""TLS of a trial: its certificates and handshake, and the server's writes under it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from study.fetches.scenario.parameter import swept


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
    signature: str = swept("signature", tls=True)
    intermediates: int = swept("intermediates", tls=True)
    tickets: int = swept("tickets", tls=True)
    resumed: int = swept("resumed", tls=True)
    early_data_bytes: int = swept("early_data_bytes", tls=True)
    record_bytes: int = swept("record_bytes", tls=True)
    buffer_bytes: int = swept("buffer_bytes", tls=True)
    key_share: str = swept("key_share", tls=True)

    @property
    def tls_settings(self) -> dict[str, Any]:
        """As the worker reads them."""
        return {column.name: getattr(self, column.name) for column in fields(TlsParameters)}


TLS = tuple(column for column in fields(TlsParameters) if "tls" in column.metadata)
