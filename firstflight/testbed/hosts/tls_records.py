"""The lengths of TLS 1.3's records, and the writes in which OpenSSL's servers send them.

The server's first messages go through a buffer of 4096 bytes (BIO_f_buffer, ssl_init_wbio_buffer);
each write ends in a segment that may not be full. The model uses these lengths for handshakes that
were not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

RECORD_HEADER_BYTES = 5
# Added by encryption: header, type of the content, authentication tag (RFC 8446, 5.2).
RECORD_OVERHEAD_BYTES = RECORD_HEADER_BYTES + 1 + 16
MOST_RECORD_BYTES = 16_384
MESSAGE_BYTES = 4  # type and length before each message (RFC 8446, 4)
# The first two records in the clear, of X25519: ServerHello and ChangeCipherSpec.
SERVER_HELLO_BYTES, CHANGE_BYTES = 127, 6
DIGEST_BYTES = 48  # of SHA-384, in Finished
# OpenSSL's names of the key exchanges that a client may offer.
KEY_SHARES = {"x25519": "X25519", "x25519mlkem768": "X25519MLKEM768"}
# A server's key share of X25519MLKEM768 also has the ciphertext of ML-KEM-768 (FIPS 203).
MLKEM_BYTES = 1088
# supported_groups, which OpenSSL 3.5 sends to a client that did not offer its first choice.
GROUPS_BYTES = 22
# Signatures in CertificateVerify; ECDSA's have 70 to 72. With SLH-DSA the server's key is Ed25519.
SIGNATURE_BYTES = {"ed25519": 64, "ecdsa": 71, "rsa2048": 256, "mldsa44": 2420, "mldsa65": 3309,
                   "mldsa87": 4627, "slhdsa128s": 64}
# The least size of a certificate with each algorithm, with room for the padding extension.
LEAST_BYTES = {"ed25519": 400, "ecdsa": 500, "rsa2048": 1000, "mldsa44": 3980, "mldsa65": 5510,
               "mldsa87": 7468, "slhdsa128s": 8150}


def newer_openssl() -> bool:
    """Whether this Python's OpenSSL offers ML-KEM by default (3.5), and sends its groups."""
    import ssl  # loads OpenSSL, which a dry run without TLS does not need
    return ssl.OPENSSL_VERSION_INFO >= (3, 5)


def records(message: bytes) -> Iterator[int]:
    """The length of every TLS record in these bytes, header included."""
    start = 0
    while start < len(message):
        size = RECORD_HEADER_BYTES + int.from_bytes(message[start + 3:start + 5], "big")
        yield size
        start += size


def writes_of(sizes: Iterable[int], buffer_bytes: int) -> tuple[int, ...]:
    """The writes in which records leave through a buffer that is flushed at the end.

    buffer_write (OpenSSL, crypto/bio/bf_buff.c) fills the buffer with a record that does not fit,
    and writes the buffer. If the rest is as long as the buffer, it is written at once.
    buffer_bytes: 0 for one write of everything.
    """
    writes, held = [], 0
    for size in sizes:
        if not buffer_bytes or size <= buffer_bytes - held:
            held += size
            continue
        if held:  # the record fills the buffer up
            size -= buffer_bytes - held
            writes.append(buffer_bytes)
            held = 0
        if size >= buffer_bytes:
            writes.append(size)
        else:
            held = size
    return (*writes, held) if held else tuple(writes)


def flight_of(chain_bytes: int, certificates: int, signature: str, with_mlkem: bool = False,
              sends_groups: bool = False) -> Iterator[int]:
    """The length of each record of a server's first messages, up to Finished.

    They are OpenSSL's without further extensions: SHA-384, no ALPN. with_mlkem: whether the key
    share is X25519MLKEM768. sends_groups: whether the server has OpenSSL 3.5, and the client no
    ML-KEM.
    """
    # ServerHello and ChangeCipherSpec, unencrypted.
    yield SERVER_HELLO_BYTES + (MLKEM_BYTES if with_mlkem else 0)
    yield CHANGE_BYTES

    # EncryptedExtensions: the length of the list, and the list (RFC 8446, 4.3.1).
    yield MESSAGE_BYTES + 2 + (GROUPS_BYTES if sends_groups else 0) + RECORD_OVERHEAD_BYTES

    # Certificate: the lengths of an empty context and of the list, then for each certificate its
    # length, itself, and the length of its extensions (4.4.2). It may take several records.
    left = MESSAGE_BYTES + 1 + 3 + certificates * (3 + 2) + chain_bytes
    while left > 0:
        yield min(left, MOST_RECORD_BYTES) + RECORD_OVERHEAD_BYTES
        left -= MOST_RECORD_BYTES

    # CertificateVerify: algorithm, length, signature (4.4.3). Then Finished.
    yield MESSAGE_BYTES + 2 + 2 + SIGNATURE_BYTES[signature] + RECORD_OVERHEAD_BYTES
    yield MESSAGE_BYTES + DIGEST_BYTES + RECORD_OVERHEAD_BYTES


def sealed_sizes(text_bytes: int, record_bytes: int = MOST_RECORD_BYTES) -> tuple[int, ...]:
    """The sizes of the encrypted records that carry a plaintext."""
    whole, rest = divmod(text_bytes, record_bytes)
    texts = [record_bytes] * whole
    if rest:
        texts.append(rest)
    return tuple(size + RECORD_OVERHEAD_BYTES for size in texts)


# nginx takes lines of up to 8 kB in a request (large_client_header_buffers).
MOST_IN_A_LINE, _PAD = 7000, "P: "
# From this size on a request is padded; curl's own headers may be longer than a smaller one.
LEAST_PADDED_BYTES = 128


def flags(url: str, size: int) -> list[str]:
    """curl's flags for a request of a size over HTTP/1.1 as early data.

    size: below LEAST_PADDED_BYTES the request is not padded.
    """
    early = ["--tls-earlydata"]
    if size < LEAST_PADDED_BYTES:
        return early
    parts = urlsplit(url)
    rest = size - len(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: \r\n"
                      "Accept: */*\r\nConnection: close\r\n\r\n")
    while rest > MOST_IN_A_LINE:
        line = _PAD + "x" * (MOST_IN_A_LINE - len(_PAD) - len("\r\n"))
        early += ["--header", line]
        rest -= len(line) + len("\r\n")
    return [*early, "--user-agent", "x" * max(rest, 1)]
