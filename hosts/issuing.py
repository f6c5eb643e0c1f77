"""Certificates by the openssl command, for signatures that python3-cryptography does not make.

ML-DSA (FIPS 204) and SLH-DSA (FIPS 205) need OpenSSL 3.5. TLS 1.3 has no signature with SLH-DSA
there: of such a chain the certificates are signed with it, and the server's own key is Ed25519.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

# By our names OpenSSL's, of what signs certificates.
ALGORITHMS = {"mldsa44": "ML-DSA-44", "mldsa65": "ML-DSA-65", "mldsa87": "ML-DSA-87",
              "slhdsa128s": "SLH-DSA-SHA2-128s"}
# Of a server's own key, where that is another one.
OF_LEAF = {"slhdsa128s": "ED25519"}
_MOST_IN_EXTENSION = 30_000  # OpenSSL takes 65,536 characters for a value
_DEADLINE_S = 60


class IssuingError(Exception):
    """OpenSSL made no key or certificate; its text has OpenSSL's words."""


@dataclass(frozen=True)
class Pem:
    """A certificate, or what is to become one, with its key, both as PEM. size: DER, bytes."""

    key: bytes
    certificate: bytes = b""
    size: int = 0


@dataclass(frozen=True)
class Wanted:
    """A certificate: extensions are lines of OpenSSL's configuration (x509v3_config(5))."""

    name: str
    serial: int
    begins: datetime
    ends: datetime
    extensions: tuple[str, ...]


def new_key(signature: str, is_leaf: bool) -> bytes:
    """Raises IssuingError."""
    algorithm = OF_LEAF.get(signature, "") if is_leaf else ""
    return _openssl("genpkey", "-algorithm", algorithm or ALGORITHMS[signature])


def signed(wanted: Wanted, key: bytes, issuer: Pem | None) -> Pem:
    """The certificate of a key, signed by its issuer, by itself where there is none.

    Raises IssuingError, OSError.
    """
    with tempfile.TemporaryDirectory() as folder:  # in memory, where this is a guest
        place = Path(folder)
        (place / "key").write_bytes(key)
        (place / "configuration").write_text("\n".join((
            "[req]", "distinguished_name = name", "prompt = no", "[name]",
            f"CN = {wanted.name}", "[extensions]", "subjectKeyIdentifier = none",
            "authorityKeyIdentifier = none", *wanted.extensions, "")))
        by: tuple[str, ...] = ()
        if issuer is not None:
            (place / "issuer").write_bytes(issuer.certificate)
            (place / "issuer_key").write_bytes(issuer.key)
            by = ("-CA", f"{place}/issuer", "-CAkey", f"{place}/issuer_key")
        pem = _openssl("req", "-x509", "-new", "-key", f"{place}/key", *by, "-config",
                       f"{place}/configuration", "-extensions", "extensions", "-set_serial",
                       f"{wanted.serial}", "-not_before", f"{wanted.begins:%Y%m%d%H%M%SZ}",
                       "-not_after", f"{wanted.ends:%Y%m%d%H%M%SZ}")
    return Pem(key, pem, _size(pem))


def fillers(oid: str, filler: int) -> Iterable[str]:
    """Lines of extensions that hold so many zeros, each of an object identifier of its own."""
    for number, start in enumerate(range(0, filler, _MOST_IN_EXTENSION), start=1):
        zeros = min(_MOST_IN_EXTENSION, filler - start)
        yield f"{oid}.{number} = DER:{'00' * zeros}"


def _size(pem: bytes) -> int:
    """Of what is in a PEM, bytes (RFC 7468)."""
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
