"""Checks of a TLS session: what the server's OpenSSL says of it, and how long its messages are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.setting.server import NEWER
from firstflight.setting.setting import Setting
from firstflight.testbed.hosts.tls_records import KEY_SHARES, SIGNATURE_BYTES
from firstflight.testbed.messages import TlsReport

# The most bytes besides the certificates in a server's first messages: hellos, Finished, headers.
AROUND_CHAIN_BYTES = 4096
NEWER_LIBRARY = (3, 5)


def around_chain(setting: Setting) -> int:
    """AROUND_CHAIN_BYTES and the signature, which can be large."""
    return AROUND_CHAIN_BYTES + SIGNATURE_BYTES[setting.signature]


def compare_session(setting: Setting, tls: TlsReport | None) -> Iterator[Comparison]:
    """Compare a session with the requested one. tls: by server.py, None where it was plain HTTP.

    Other servers report none: there curl has checked the version, and the flight shows the session.
    """
    if tls is None or not setting.chain_bytes:
        yield Comparison((tls is None) == (not setting.chain_bytes),
                         "plain HTTP" if tls is None else "TLS",
                         f"a chain of {setting.chain_bytes} bytes")
        return
    yield Comparison(tls["version"] == "TLSv1.3", f"{tls['version']}", "TLSv1.3")
    yield Comparison(tls["group"] == KEY_SHARES[setting.key_share],
                     tls["group"] or "no key exchange", KEY_SHARES[setting.key_share])
    if setting.system == NEWER:
        yield Comparison(_version(tls["library"]) >= NEWER_LIBRARY, tls["library"],
                         "OpenSSL 3.5 or newer")
    yield Comparison(tls["resumed"] == bool(setting.resumed),
                     "resumed" if tls["resumed"] else "a new session",
                     "resumed" if setting.resumed else "a new session")
    if not setting.resumed:
        flight, least = sum(tls["flight"]), setting.chain_bytes
        more = around_chain(setting)
        yield Comparison(least < flight <= least + more, f"a flight of {flight} bytes",
                         f"a chain of {least} and at most {more} more")


def compare_flight(setting: Setting, observed: int, tls: TlsReport | None) -> Iterator[Comparison]:
    """Compare the bytes of the server's first messages with its OpenSSL's report, or its chain.

    observed: on the wire. tls: by server.py, None of another server.
    """
    if tls is not None:
        reported = sum(tls["flight"])
        yield Comparison(observed == reported, f"{observed} bytes on the wire", f"{reported}")
    elif setting.chain_bytes:  # else a chain of the server's own
        least = 0 if setting.resumed else setting.chain_bytes
        most = least + around_chain(setting)
        yield Comparison(least < observed <= most, f"{observed} bytes on the wire",
                         f"more than {least} and at most {most}")


def _version(library: str) -> tuple[int, ...]:
    """(3, 5) of "OpenSSL 3.5.7 9 Jun 2026"; () of another library."""
    match = re.match(r"OpenSSL (\d+)\.(\d+)", library)
    return tuple(map(int, match.groups())) if match else ()
