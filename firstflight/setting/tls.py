"""TLS of a trial: its certificates and handshake, and the server's writes under it."""

from __future__ import annotations

from dataclasses import dataclass

from firstflight.parameters import default
from firstflight.testbed.messages import Tls


@dataclass(frozen=True, kw_only=True)
class TlsParameters:
    """TLS 1.3 of a trial.

    chain_bytes: size of the certificate chain in DER, 0 for plain HTTP.
    signature: of the certificates: ed25519, ecdsa (P-256), rsa2048, or with OpenSSL 3.5 mldsa44,
        mldsa65, mldsa87, slhdsa128s.
    key_share: the client's key exchange, x25519 or x25519mlkem768.
    intermediates: certificates between the server's own and the root.
    tickets: session tickets after the handshake, a write each.
    resumed: 1 to resume the session of an earlier connection.
    early_data_bytes: 0 for no early data, 1 for curl's own request as early data, else the size to
        which it is padded.
    record_bytes: most plain text in a record of the response; each record is a write.
    buffer_bytes: size of the buffer through which the server writes its first messages; 0 for one
        write.
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
        """TLS as the worker reads it. apart_s: from one connection to the next; 0 for a single one.
        """
        return {"chain_bytes": self.chain_bytes, "signature": self.signature,
                "intermediates": self.intermediates, "tickets": self.tickets,
                "resumed": self.resumed, "early_data_bytes": self.early_data_bytes,
                "record_bytes": self.record_bytes, "buffer_bytes": self.buffer_bytes,
                "key_share": self.key_share, "apart_s": apart_s}
