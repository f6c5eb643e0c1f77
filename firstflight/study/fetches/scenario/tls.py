"""TLS of a trial: its certificates and handshake, and the server's writes under it."""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.parameters import default
from firstflight.testbed.messages import Tls


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

    chain_bytes: int = default("chain_bytes")
    signature: str = default("signature")
    intermediates: int = default("intermediates")
    tickets: int = default("tickets")
    resumed: int = default("resumed")
    early_data_bytes: int = default("early_data_bytes")
    record_bytes: int = default("record_bytes")
    buffer_bytes: int = default("buffer_bytes")
    key_share: str = default("key_share")

    def tls_settings(self, apart_s: int) -> Tls:
        """TLS as the worker reads it. apart_s: from one connection to the next, 0 for one alone."""
        return {"chain_bytes": self.chain_bytes, "signature": self.signature,
                "intermediates": self.intermediates, "tickets": self.tickets,
                "resumed": self.resumed, "early_data_bytes": self.early_data_bytes,
                "record_bytes": self.record_bytes, "buffer_bytes": self.buffer_bytes,
                "key_share": self.key_share, "apart_s": apart_s}
