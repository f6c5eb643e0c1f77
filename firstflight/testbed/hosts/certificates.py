"""Makes certificate chains of an exact size for one run; only its client trusts them.

The size is that of the certificates that a server sends, in DER: the leaf and the intermediates,
not the root. A private extension pads each certificate with zeros. They stand for what real ones
hold: names, SCTs, policies, or larger keys and signatures.

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
    """A requested chain. signature: the algorithm of all certificates, a key of LEAST_BYTES.

    address, names: what the server's own certificate is for; "" for no address.
    """

    chain_bytes: int
    signature: str
    intermediates: int
    address: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChainFiles:
    """The files of a chain: the server's chain and key, and the root that its client trusts."""

    chain: Path
    key: Path
    root: Path


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
    contents = {"chain.pem": b"".join(certificate.certificate for certificate in chain),
                "key.pem": chain[0].key, "root.pem": root.certificate}
    for name, content in contents.items():
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    return ChainFiles(*(folder / name for name in contents))


def _chain(requested: ChainSpec) -> tuple[Pem, list[Pem]]:
    """The root, and the certificates that are sent, the leaf first."""
    root = _issue(requested, 0, None, None)
    issuer, above = root, []
    share = requested.chain_bytes // (1 + requested.intermediates)
    for number in range(1, 1 + requested.intermediates):
        issuer = _issue(requested, number, issuer, share)
        above.append(issuer)
    left = requested.chain_bytes - sum(certificate.size for certificate in above)
    leaf = _issue(requested, 1 + requested.intermediates, issuer, left)
    return root, [leaf, *reversed(above)]


def _issue(requested: ChainSpec, number: int, issuer: Pem | None, size: int | None) -> Pem:
    """A certificate of `size` bytes; None for any size. Raises CertificateError.

    A size cannot be reached by padding if a length in DER then takes a byte more. A longer name
    makes up for that.
    """
    is_leaf = number == 1 + requested.intermediates
    by_openssl = requested.signature in ALGORITHMS
    key = (openssl_key(requested.signature, is_leaf) if by_openssl
           else _new_key(requested.signature))
    sign = _sign_by_openssl if by_openssl else _sign
    filler, name = 0, 1
    for attempt in range(_ATTEMPTS):
        issued = sign(requested, number, is_leaf, key, issuer, filler, name)
        missing = 0 if size is None else size - issued.size
        if not missing:
            return issued
        if attempt % 8 == 7:
            name += 1
        filler = max(1, filler + missing)
    raise CertificateError(f"no certificate of {size} bytes with {requested.signature} came about")


def _name(number: int, name: int) -> str:
    return f"First Flight {number} {'x' * name}"


def _valid() -> tuple[datetime, datetime]:
    now = datetime.now(timezone.utc)
    return now - timedelta(days=1), now + VALID


def _serial(number: int) -> int:
    return (1 << 120) + number


# By OpenSSL --------------------------------------------------------------------------

def _sign_by_openssl(requested: ChainSpec, number: int, is_leaf: bool, key: bytes,
                     issuer: Pem | None,
                     filler: int, name: int) -> Pem:
    addresses = (f"IP:{requested.address}",) if requested.address else ()
    alternatives = (*addresses, *(f"DNS:{name}" for name in requested.names))
    extensions = (f"basicConstraints = critical, CA:{'FALSE' if is_leaf else 'TRUE'}",
                  *((f"subjectAltName = {','.join(alternatives)}",) if is_leaf else ()),
                  *padding_lines(_FILLER, filler))
    return openssl_signed(CertificateSpec(_name(number, name), _serial(number), *_valid(),
                                          extensions), key, issuer)


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


def _sign(requested: ChainSpec, number: int, is_leaf: bool, key: bytes, issuer: Pem | None,
          filler: int, name: int) -> Pem:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
    own: Any = load_pem_private_key(key, None)
    by: Any = load_pem_private_key(issuer.key, None) if issuer else own
    subject = _named(_name(number, name))
    begins, ends = _valid()
    builder = (x509.CertificateBuilder().subject_name(subject)
               .issuer_name(x509.load_pem_x509_certificate(issuer.certificate).subject
                            if issuer else subject)
               .public_key(own.public_key()).serial_number(_serial(number))
               .not_valid_before(begins).not_valid_after(ends))
    for extension, critical in _extensions(requested, is_leaf, filler):
        builder = builder.add_extension(extension, critical)
    signed = builder.sign(by, None if requested.signature == "ed25519" else hashes.SHA256())
    return Pem(key, signed.public_bytes(Encoding.PEM), len(signed.public_bytes(Encoding.DER)))


def _named(name: str) -> Any:
    from cryptography import x509
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _extensions(requested: ChainSpec, is_leaf: bool, filler: int) -> Iterator[tuple[Any, bool]]:
    """The extensions, each with whether it is critical."""
    from cryptography import x509
    yield x509.BasicConstraints(ca=not is_leaf, path_length=None), True
    if is_leaf:
        addresses = ([x509.IPAddress(IPv4Address(requested.address))] if requested.address
                     else [])
        yield x509.SubjectAlternativeName([*addresses, *map(x509.DNSName, requested.names)]), False
    if filler:
        yield x509.UnrecognizedExtension(x509.ObjectIdentifier(_FILLER), bytes(filler)), False


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
    """A certificate with its key, both as PEM. size: of the certificate in DER, bytes."""

    key: bytes
    certificate: bytes = b""
    size: int = 0


@dataclass(frozen=True)
class CertificateSpec:
    """A certificate to make. extensions: lines of OpenSSL's configuration (x509v3_config(5))."""

    name: str
    serial: int
    begins: datetime
    ends: datetime
    extensions: tuple[str, ...]


def openssl_key(signature: str, is_leaf: bool) -> bytes:
    """A new key as PEM. Raises IssuingError."""
    algorithm = LEAF_ALGORITHMS.get(signature, "") if is_leaf else ""
    return _openssl("genpkey", "-algorithm", algorithm or ALGORITHMS[signature])


def openssl_signed(spec: CertificateSpec, key: bytes, issuer: Pem | None) -> Pem:
    """The certificate of a key, signed by its issuer, or by itself without an issuer.

    Raises IssuingError, OSError.
    """
    with tempfile.TemporaryDirectory() as folder:  # in a guest it is in memory
        place = Path(folder)
        (place / "key").write_bytes(key)
        (place / "configuration").write_text("\n".join((
            "[req]", "distinguished_name = name", "prompt = no", "[name]",
            f"CN = {spec.name}", "[extensions]", "subjectKeyIdentifier = none",
            "authorityKeyIdentifier = none", *spec.extensions, "")))
        by: tuple[str, ...] = ()
        if issuer is not None:
            (place / "issuer").write_bytes(issuer.certificate)
            (place / "issuer_key").write_bytes(issuer.key)
            by = ("-CA", f"{place}/issuer", "-CAkey", f"{place}/issuer_key")
        pem = _openssl("req", "-x509", "-new", "-key", f"{place}/key", *by, "-config",
                       f"{place}/configuration", "-extensions", "extensions", "-set_serial",
                       f"{spec.serial}", "-not_before", f"{spec.begins:%Y%m%d%H%M%SZ}",
                       "-not_after", f"{spec.ends:%Y%m%d%H%M%SZ}")
    return Pem(key, pem, _size(pem))


def padding_lines(oid: str, filler: int) -> Iterable[str]:
    """Lines for extensions that hold so many zeros in all, each with its own object identifier."""
    for number, start in enumerate(range(0, filler, _MOST_IN_EXTENSION), start=1):
        zeros = min(_MOST_IN_EXTENSION, filler - start)
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
