"""Checks a TLS session by the report of the server's OpenSSL, and by the length of its messages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.setting.server import NEWER, OWN
from firstflight.setting.setting import Setting
from firstflight.testbed.hosts.tls_records import KEY_SHARES, SIGNATURE_BYTES, flight_of
from firstflight.testbed.messages import TlsReport

# In the first messages of a user's own server, the most bytes besides the certificates: hellos,
# Finished, headers.
AROUND_CHAIN_BYTES = 4096
# The bytes of our servers' first messages follow from tls_records.flight_of. They may be fewer or
# more by so many: extensions (ALPN, the server's groups), the length of ECDSA's signatures, and a
# shorter digest in Finished.
LESS_BYTES, MORE_BYTES = 20, 48
# A shorter buffer never fills before the first long record, which then leaves by itself.
FIRST_RECORDS_BYTES = 2048
# The most bytes of a resumed session's first messages: ServerHello, extensions and Finished, and no
# certificates.
MOST_RESUMED_BYTES = 400
NEWER_LIBRARY = (3, 5)  # the version of Debian 13's OpenSSL


def flight_bytes(setting: Setting) -> tuple[int, int]:
    """The least and the most bytes of a server's messages up to its Finished."""
    with_mlkem = setting.key_share != "x25519"
    if setting.resumed:
        most = AROUND_CHAIN_BYTES if setting.server == OWN else MOST_RESUMED_BYTES
        if with_mlkem:
            most += sum(flight_of(0, 0, setting.signature, with_mlkem))
        return 1, most

    if setting.server == OWN:
        least = setting.chain_bytes
        return least + 1, least + AROUND_CHAIN_BYTES + SIGNATURE_BYTES[setting.signature]

    certificates = 1 + setting.intermediates
    whole = sum(flight_of(setting.chain_bytes, certificates, setting.signature, with_mlkem))
    return whole - LESS_BYTES, whole + MORE_BYTES


def compare_session(setting: Setting, tls: TlsReport | None) -> Iterator[Comparison]:
    """Compare a session with the requested one.

    tls: what server.py reports of the session; None for plain HTTP. Other servers report none:
    there curl has checked the version, and the flight shows the session.
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
    yield _compare_flight_bytes(setting, sum(tls["flight"]))
    if not setting.resumed and setting.buffer_bytes >= FIRST_RECORDS_BYTES:
        first = min(sum(tls["flight"]), setting.buffer_bytes)
        yield Comparison(tls["flight"][0] == first, f"a first write of {tls['flight'][0]} bytes",
                         f"{first}")
    elif not setting.buffer_bytes:
        yield Comparison(len(tls["flight"]) == 1, f"a flight of {len(tls['flight'])} writes", "one")

    tickets, expected = len(tls["tickets"]), tickets_of(setting)
    yield Comparison(tickets == expected, f"{tickets} tickets", f"{expected}")


def tickets_of(setting: Setting) -> int:
    """How many tickets a server sends after a handshake: after one that resumes, one at most."""
    return min(1, setting.tickets) if setting.resumed else setting.tickets


def _compare_flight_bytes(setting: Setting, observed: int) -> Comparison:
    """Compare the bytes of a server's first messages with the least and the most."""
    least, most = flight_bytes(setting)
    return Comparison(least <= observed <= most, f"a flight of {observed} bytes",
                      f"{least} to {most}")


def compare_flight(setting: Setting, observed: int, tls: TlsReport | None) -> Iterator[Comparison]:
    """Compare the bytes of the server's first messages with what its OpenSSL reports.

    Another server than server.py reports nothing: its bytes follow from the requested chain.
    observed: the bytes on the wire. tls: what server.py reports, else None.
    """
    if tls is not None:
        reported = sum(tls["flight"])
        yield Comparison(observed == reported, f"{observed} bytes on the wire", f"{reported}")
    elif setting.chain_bytes:  # else a chain of the server's own
        yield _compare_flight_bytes(setting, observed)


def _version(library: str) -> tuple[int, ...]:
    """The version of an OpenSSL: (3, 5) for "OpenSSL 3.5.7 9 Jun 2026"; () for another library."""
    match = re.match(r"OpenSSL (\d+)\.(\d+)", library)
    return tuple(map(int, match.groups())) if match else ()
