"""What is compared of a handshake over TLS: with what was requested, and with the model of TCP."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hosts.tls_records import KEY_SHARES
from lab.core.results.checks import Check, Compared
from lab.fetches.scenario.server import BUILTIN, NEWER
from lab.fetches.verify.evidence import Evidence
from lab.fetches.verify.integrity import around_chain, is_fetched
from lab.fetches.verify.verify import is_modelled

NEWER_LIBRARY = (3, 5)


def _version(library: str) -> tuple[int, ...]:
    """Of "OpenSSL 3.5.7 9 Jun 2026" (3, 5); () for other words."""
    match = re.match(r"OpenSSL (\d+)\.(\d+)", library)
    return tuple(map(int, match.groups())) if match else ()


def _session(evidence: Evidence) -> Iterable[Compared]:
    """What the server's OpenSSL reports of the session that carried the response.

    Of another server curl has checked the version, and the flight shows the session.
    """
    trial, tls = evidence.trial, evidence.report.get("tls")
    if not evidence.has_report:
        return
    if tls is None or not trial.chain_bytes:
        yield Compared((tls is None) == (not trial.chain_bytes),
                       "plain HTTP" if tls is None else "TLS",
                       f"a chain of {trial.chain_bytes} bytes")
        return
    yield Compared(tls["version"] == "TLSv1.3", f"{tls['version']}", "TLSv1.3")
    yield Compared(tls["group"] == KEY_SHARES[trial.key_share], tls["group"] or "no key exchange",
                   KEY_SHARES[trial.key_share])
    if trial.system == NEWER:
        yield Compared(_version(tls["library"]) >= NEWER_LIBRARY, tls["library"],
                       "OpenSSL 3.5 or newer")
    yield Compared(tls["resumed"] == bool(trial.resumed),
                   "resumed" if tls["resumed"] else "a new session",
                   "resumed" if trial.resumed else "a new session")
    if not trial.resumed:
        flight, least = sum(tls["flight"]), trial.chain_bytes
        more = around_chain(trial)
        yield Compared(least < flight <= least + more, f"a flight of {flight} bytes",
                       f"a chain of {least} and at most {more} more")


def _modelled(evidence: Evidence) -> Iterable[Compared]:
    """The end of TLS's handshake, the first byte, the server's window."""
    if "tls" not in evidence.report or not evidence.is_comparable:
        return
    prediction, fetch = evidence.prediction, evidence.fetch
    window, trips = evidence.report["tls"]["window"], len(evidence.flights)
    yield evidence.near(fetch.get("appconnect_ms"), prediction.appconnect_ms)
    yield evidence.near(fetch.get("first_byte_ms"), prediction.first_byte_ms)
    yield Compared(window == prediction.window_after_handshake,
                   f"a window of {window} segments", f"{prediction.window_after_handshake}")
    yield Compared(trips == prediction.handshake_round_trips, f"{trips} round trips",
                   f"{prediction.handshake_round_trips}")


SESSION = Check(
    "TLS", "version 1.3, its chain, and a session resumed or not, as requested", _session,
    lambda record: (is_fetched(record) and bool(record.trial.chain_bytes)
                    and record.trial.server == BUILTIN), seldom=True)
MODEL = Check(
    "model handshake", "TLS's handshake, the first byte, the window then, computed", _modelled,
    lambda record: is_modelled(record) and bool(record.flight_bytes), exact_only=True, seldom=True)
