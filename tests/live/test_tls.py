"""TLS in the guest: every cell within the model's tolerance, and the cliff to the byte."""

from __future__ import annotations

from pathlib import Path

from firstflight.testbed.hosts.tls_records import newer_openssl
from tests.live.conftest import Driver, rows


def test_tls_is_measured_as_the_model_says(drive: Driver, results: Path) -> None:
    """IW 10 holds a chain of so many bytes in OpenSSL's writes, and not one of a byte more."""
    fits = 12_566 if newer_openssl() else 12_588  # Debian 13, Debian 12
    chains = ("4000", str(fits), str(fits + 1))
    done = drive("--rtt", "100", "--bw", "100000", "--iw", "3,10", "--size", "10000", "--client",
                 "curl", "--chain", ",".join(chains), "--resumed", "0,1", "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {(row["initcwnd"], row["chain_bytes"], row["resumed"]): row
             for row in rows(results, "own")}
    assert all(row["verdict"] == "pass" for row in found.values()) and len(found) == 12
    assert [found["10", chain, "0"]["handshake_round_trips"]
            for chain in chains] == ["1", "1", "2"]
    assert {row["handshake_round_trips"] for (_, _, resumed), row in found.items()
            if resumed == "1"} == {"1"}


def test_repeats_are_identical(drive: Driver, results: Path) -> None:
    """But for those of ECDSA, whose signatures differ in length."""
    done = drive("--rtt", "50", "--bw", "10000", "--iw", "10", "--client", "curl", "--chain",
                 "16000", "--signature", "ed25519,rsa2048", "--repeat", "3", "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    times = {(row["signature"], row["appconnect_ms"], row["first_byte_ms"], row["total_ms"])
             for row in rows(results, "own")}
    assert len(times) == 2
