"""Makes certificate chains of an exact size for one run, whose client alone trusts them.

The size is that of the certificates that a server sends, in DER: the leaf and the intermediates,
not the root. A private extension pads each certificate with zeros. The zeros stand for what real
certificates hold: names, SCTs, policies, or larger keys and signatures.

python3-cryptography signs. For algorithms that it does not know, the openssl command does.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from firstflight.testbed.hosts.tls_records import LEAST_BYTES

VALID = timedelta(days=365)  # virtual time may run for long
_FILLER = "1.3.6.1.4.1.99999.1"  # object identifier of a number that no enterprise has
_ATTEMPTS = 400  # an ECDSA signature has one of three lengths, by chance


class CertificateError(Exception):
    """The requested chain cannot be made."""


@dataclass(frozen=True)
class ChainSpec:
    """A requested chain."""

    chain_bytes: int
    signature: str  # the algorithm of all certificates, a key of LEAST_BYTES
    intermediates: int  # certificates between the server's own and the root
    address: str  # IPv4 address that the server's own certificate is for, "" for none
    names: tuple[str, ...] = ()  # names of hosts that it is for


@dataclass(frozen=True)
class ChainFiles:
    """The files of a chain, as PEM."""

    chain: Path  # what the server sends, its own certificate first
    key: Path  # of the server's own certificate
    root: Path  # the certificate that the client trusts


@dataclass(frozen=True)
class HostChain:
    """A chain that a server has for hosts of these names, () for the address alone."""

    names: tuple[str, ...]
    files: ChainFiles


def make_chain(folder: Path, requested: ChainSpec) -> ChainFiles:
    """Make a chain in a new folder that nobody else may read. Raises CertificateError."""
    least = LEAST_BYTES[requested.signature] * (1 + requested.intermediates)
    if requested.chain_bytes < least:
        raise CertificateError(f"a chain of {requested.chain_bytes} bytes is too small for"
                               f" {1 + requested.intermediates} certificates with"
                               f" {requested.signature}: at least {least}")

    try:
        root, chain = _chain(requested)
    except ImportError as error:
        raise CertificateError("python3-cryptography is missing: run ./install.sh") from error
    except IssuingError as error:
        raise CertificateError(str(error)) from error

    folder.mkdir(mode=0o700, parents=True)
    contents = {"chain.pem": b"".join(pem.certificate for pem in chain),
                "key.pem": chain[0].key, "root.pem": root.certificate}
    for name, content in contents.items():
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    return ChainFiles(*(folder / name for name in contents))


def _chain(requested: ChainSpec) -> tuple[Pem, list[Pem]]:
    """The root, and the certificates that are sent, the leaf first."""
    root = _issue(requested, 0, None, None)
    issuer, intermediates = root, []
    share = requested.chain_bytes // (1 + requested.intermediates)
    for number in range(1, 1 + requested.intermediates):
        issuer = _issue(requested, number, issuer, share)
        intermediates.append(issuer)

    left = requested.chain_bytes - sum(pem.size for pem in intermediates)
    leaf = _issue(requested, 1 + requested.intermediates, issuer, left)
    return root, [leaf, *reversed(intermediates)]


def _issue(requested: ChainSpec, number: int, issuer: Pem | None, size: int | None) -> Pem:
    """A certificate of `size` bytes; None for any size. Raises CertificateError.

    Padding alone cannot reach a size where a length in DER then takes a byte more. A longer name
    makes up for that.
    """
    is_leaf = number == 1 + requested.intermediates
    if requested.signature in ALGORITHMS:
        key, sign = openssl_key(requested.signature, is_leaf), _sign_by_openssl
    else:
        key, sign = _new_key(requested.signature), _sign

    filler_bytes, name_length = 0, 1
    for attempt in range(_ATTEMPTS):
        name = f"First Flight {number} {'x' * name_length}"
        subject = Subject(name, (1 << 120) + number, is_leaf, key)
        issued = sign(requested, subject, issuer, filler_bytes)
        missing_bytes = 0 if size is None else size - issued.size
        if not missing_bytes:
            return issued
        if attempt % 8 == 7:
            name_length += 1
        filler_bytes = max(1, filler_bytes + missing_bytes)
    raise CertificateError(f"no certificate of {size} bytes with {requested.signature} came about")


@dataclass(frozen=True)
class Subject:
    """Whom a certificate is for."""

    name: str
    serial: int
    is_leaf: bool  # whether it is the server's own certificate
    key: bytes  # as PEM


def _validity() -> tuple[datetime, datetime]:
    """When a certificate begins and ends to be valid."""
    now = datetime.now(timezone.utc)
    return now - timedelta(days=1), now + VALID


# By OpenSSL --------------------------------------------------------------------------

def _sign_by_openssl(requested: ChainSpec, subject: Subject, issuer: Pem | None,
                     filler_bytes: int) -> Pem:
    extensions = [f"basicConstraints = critical, CA:{'FALSE' if subject.is_leaf else 'TRUE'}"]
    if subject.is_leaf:
        alternatives = [f"DNS:{name}" for name in requested.names]
        if requested.address:
            alternatives.insert(0, f"IP:{requested.address}")
        extensions.append(f"subjectAltName = {','.join(alternatives)}")
    extensions += padding_lines(_FILLER, filler_bytes)
    return openssl_signed(subject, extensions, issuer)


# By python3-cryptography -------------------------------------------------------------

def _new_key(signature: str) -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    makers: dict[str, Callable[[], Any]] = {
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
        "rsa2048": lambda: rsa.generate_private_key(65537, 2048)}
    key: bytes = makers[signature]().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption())
    return key


def _sign(requested: ChainSpec, subject: Subject, issuer: Pem | None, filler_bytes: int) -> Pem:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
    own_key: Any = load_pem_private_key(subject.key, None)
    own_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject.name)])
    signing_key, issuer_name = own_key, own_name
    if issuer is not None:
        signing_key = load_pem_private_key(issuer.key, None)
        issuer_name = x509.load_pem_x509_certificate(issuer.certificate).subject

    begins, ends = _validity()
    builder = (x509.CertificateBuilder()
               .subject_name(own_name).issuer_name(issuer_name)
               .public_key(own_key.public_key()).serial_number(subject.serial)
               .not_valid_before(begins).not_valid_after(ends))
    for extension, is_critical in _extensions(requested, subject.is_leaf, filler_bytes):
        builder = builder.add_extension(extension, is_critical)

    digest = None if requested.signature == "ed25519" else hashes.SHA256()
    signed = builder.sign(signing_key, digest)
    return Pem(subject.key, signed.public_bytes(Encoding.PEM),
               size=len(signed.public_bytes(Encoding.DER)))


def _extensions(requested: ChainSpec, is_leaf: bool, filler_bytes: int
                ) -> Iterator[tuple[Any, bool]]:
    """The extensions, each with whether it is critical."""
    from cryptography import x509
    yield x509.BasicConstraints(ca=not is_leaf, path_length=None), True
    if is_leaf:
        alternatives: list[Any] = list(map(x509.DNSName, requested.names))
        if requested.address:
            alternatives.insert(0, x509.IPAddress(IPv4Address(requested.address)))
        yield x509.SubjectAlternativeName(alternatives), False
    if filler_bytes:
        filler = x509.UnrecognizedExtension(x509.ObjectIdentifier(_FILLER), bytes(filler_bytes))
        yield filler, False


# By the openssl command --------------------------------------------------------------

# ML-DSA (FIPS 204) and SLH-DSA (FIPS 205) need OpenSSL 3.5, whose TLS 1.3 does not sign with
# SLH-DSA: such a chain is signed with it, and the server's own key is Ed25519.
# By our names, OpenSSL's names of the algorithms that sign certificates.
ALGORITHMS = {"mldsa44": "ML-DSA-44", "mldsa65": "ML-DSA-65", "mldsa87": "ML-DSA-87",
              "slhdsa128s": "SLH-DSA-SHA2-128s"}
# The algorithm of the server's own key, if it is another one.
LEAF_ALGORITHMS = {"slhdsa128s": "ED25519"}
_MOST_IN_EXTENSION = 30_000  # OpenSSL takes 65,536 characters for a value
_DEADLINE_S = 60


class IssuingError(Exception):
    """OpenSSL made no key or certificate; the message has its words."""


@dataclass(frozen=True)
class Pem:
    """A certificate with its key, both as PEM."""

    key: bytes
    certificate: bytes
    size: int  # of the certificate in DER, bytes


def openssl_key(signature: str, is_leaf: bool) -> bytes:
    """A new key as PEM. Raises IssuingError."""
    algorithm = LEAF_ALGORITHMS.get(signature, "") if is_leaf else ""
    return _openssl("genpkey", "-algorithm", algorithm or ALGORITHMS[signature])


def openssl_signed(subject: Subject, extensions: Iterable[str], issuer: Pem | None) -> Pem:
    """The certificate of a subject, signed by its issuer, or by itself without an issuer.

    extensions: lines of OpenSSL's configuration (x509v3_config(5)). Raises IssuingError, OSError.
    """
    lines = ["[req]", "distinguished_name = name", "prompt = no", "[name]", f"CN = {subject.name}",
             "[extensions]", "subjectKeyIdentifier = none", "authorityKeyIdentifier = none",
             *extensions, ""]
    begins, ends = _validity()
    with tempfile.TemporaryDirectory() as folder:  # in a guest it is in memory
        place = Path(folder)
        (place / "key").write_bytes(subject.key)
        (place / "configuration").write_text("\n".join(lines))
        command = ["req", "-x509", "-new", "-key", f"{place}/key"]
        if issuer is not None:
            (place / "issuer").write_bytes(issuer.certificate)
            (place / "issuer_key").write_bytes(issuer.key)
            command += ["-CA", f"{place}/issuer", "-CAkey", f"{place}/issuer_key"]

        command += ["-config", f"{place}/configuration", "-extensions", "extensions"]
        command += ["-set_serial", f"{subject.serial}"]
        command += ["-not_before", f"{begins:%Y%m%d%H%M%SZ}", "-not_after", f"{ends:%Y%m%d%H%M%SZ}"]
        pem = _openssl(*command)
    return Pem(subject.key, pem, _size(pem))


def padding_lines(oid: str, filler_bytes: int) -> Iterable[str]:
    """Lines for extensions that hold so many zeros in all, each with its own object identifier."""
    for number, start in enumerate(range(0, filler_bytes, _MOST_IN_EXTENSION), start=1):
        zeros = min(_MOST_IN_EXTENSION, filler_bytes - start)
        yield f"{oid}.{number} = DER:{'00' * zeros}"


def _size(pem: bytes) -> int:
    """The size of what a PEM contains, bytes (RFC 7468)."""
    base64 = b"".join(pem.split(b"-----")[2].split())
    return len(base64) * 3 // 4 - base64.count(b"=")


def _openssl(*words: str) -> bytes:
    try:
        done = subprocess.run(["openssl", *words], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=_DEADLINE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise IssuingError(f"openssl: {error}") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise IssuingError(f"openssl {words[0]} ended with status {done.returncode}:"
                           f" {lines[0] if lines else 'no reason was given'}")
    return done.stdout
