"""Certificate chains of an exact size, made for one run and trusted by its client only.

The size is that of the certificates that a server sends, in DER: a leaf and
intermediates, not the root. What a certificate is too short, an extension of
our own fills with zeros, in the place of what real ones hold: names, SCTs,
policies, or the larger keys and signatures of another algorithm.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

SIGNATURES = ("ed25519", "ecdsa", "rsa2048")
# What a certificate of each takes at least, with room for the extension that fills it.
LEAST_BYTES = {"ed25519": 400, "ecdsa": 500, "rsa2048": 1000}
VALID = timedelta(days=365)  # virtual time may run for long
_FILLER = "1.3.6.1.4.1.99999.1"  # of no registered enterprise
_ATTEMPTS = 400  # an ECDSA signature has one of three lengths, by chance


class CertificateError(Exception):
    """A chain cannot be made as it is asked for."""


@dataclass(frozen=True)
class Asked:
    """What a chain shall be: signature is one of SIGNATURES, of all its certificates."""

    chain_bytes: int
    signature: str
    intermediates: int
    address: str


@dataclass(frozen=True)
class Files:
    """Where a chain is: the server's chain and key, and the root that its client trusts."""

    chain: Path
    key: Path
    root: Path


@dataclass(frozen=True)
class _Issued:
    """A certificate with its key."""

    certificate: Any
    key: Any


def make(folder: Path, asked: Asked) -> Files:
    """Make a chain in a folder of its own, which nobody else may read. Raises CertificateError."""
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        raise CertificateError("python3-cryptography is missing: run ./install.sh") from error
    least = LEAST_BYTES[asked.signature] * (1 + asked.intermediates)
    if asked.chain_bytes < least:
        raise CertificateError(f"a chain of {asked.chain_bytes} bytes is too small for"
                               f" {1 + asked.intermediates} certificates with"
                               f" {asked.signature}: at least {least}")
    root, chain = _chain(asked)
    folder.mkdir(mode=0o700, parents=True)
    pem = serialization.Encoding.PEM
    contents = {
        "chain.pem": b"".join(each.certificate.public_bytes(pem) for each in chain),
        "key.pem": chain[0].key.private_bytes(pem, serialization.PrivateFormat.PKCS8,
                                              serialization.NoEncryption()),
        "root.pem": root.certificate.public_bytes(pem)}
    for name, content in contents.items():
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    return Files(*(folder / name for name in contents))


def _chain(asked: Asked) -> tuple[_Issued, list[_Issued]]:
    """The root, and what is sent: the leaf first."""
    root = _issue(asked, 0, None, None)
    issuer, above = root, []
    share = asked.chain_bytes // (1 + asked.intermediates)
    for number in range(1, 1 + asked.intermediates):
        issuer = _issue(asked, number, issuer, share)
        above.append(issuer)
    left = asked.chain_bytes - sum(_size(each) for each in above)
    leaf = _issue(asked, 1 + asked.intermediates, issuer, left)
    return root, [leaf, *reversed(above)]


def _size(issued: _Issued) -> int:
    from cryptography.hazmat.primitives import serialization
    return len(issued.certificate.public_bytes(serialization.Encoding.DER))


def _issue(asked: Asked, number: int, issuer: _Issued | None, size: int | None) -> _Issued:
    """A certificate of `size` bytes, None for whatever it takes. Raises CertificateError.

    Where a length in DER takes a byte more, one size is skipped: a longer name
    then makes up for it.
    """
    key = _new_key(asked.signature)
    is_leaf = number == 1 + asked.intermediates
    filler, name = 0, 1
    for attempt in range(_ATTEMPTS):
        issued = _Issued(_sign(asked, number, is_leaf, key, issuer, filler, name), key)
        missing = 0 if size is None else size - _size(issued)
        if not missing:
            return issued
        if attempt % 8 == 7:
            name += 1
        filler = max(1, filler + missing)
    raise CertificateError(f"no certificate of {size} bytes with {asked.signature} came about")


def _new_key(signature: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    makers: dict[str, Callable[[], Any]] = {
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
        "rsa2048": lambda: rsa.generate_private_key(65537, 2048)}
    return makers[signature]()


def _sign(asked: Asked, number: int, is_leaf: bool, key: Any, issuer: _Issued | None,
          filler: int, name: int) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME,
                                            f"First Flight {number} {'x' * name}")])
    now = datetime.now(timezone.utc)
    builder = (x509.CertificateBuilder().subject_name(subject)
               .issuer_name(issuer.certificate.subject if issuer else subject)
               .public_key(key.public_key()).serial_number((1 << 120) + number)
               .not_valid_before(now - timedelta(days=1)).not_valid_after(now + VALID))
    for extension, critical in _extensions(asked, is_leaf, filler):
        builder = builder.add_extension(extension, critical)
    return builder.sign(issuer.key if issuer else key,
                        None if asked.signature == "ed25519" else hashes.SHA256())


def _extensions(asked: Asked, is_leaf: bool, filler: int) -> Iterator[tuple[Any, bool]]:
    """Each with whether it is critical."""
    from cryptography import x509
    yield x509.BasicConstraints(ca=not is_leaf, path_length=None), True
    if is_leaf:
        yield x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(asked.address))]), False
    if filler:
        yield x509.UnrecognizedExtension(x509.ObjectIdentifier(_FILLER), bytes(filler)), False
