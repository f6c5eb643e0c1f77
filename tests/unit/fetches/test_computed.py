"""What is computed of a trial that nobody has measured is what the guest's kernel was given."""

from __future__ import annotations

import ssl

import pytest

from lab.fetches import secured
from lab.fetches.transfers import computed
from tests.golden import stored

PLAIN = ("fin_probe", "full_queue", "iw10", "long_rtt", "receive_window")
SECURED = {"https": (3, 0), "https_records": (3, 0), "mldsa": (3, 5)}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_transfer_has_the_bytes_that_were_sent(name: str) -> None:
    trial, record = stored.load(name), stored.load(name).judge()
    made = computed(trial.trial, {})
    assert made.request_bytes == record.request_bytes
    assert made.response_bytes == (record.header_bytes or 0) + trial.trial.response_bytes
    assert made.secure is None and made.writes == ()


@pytest.mark.parametrize("name", SECURED)
def test_a_session_has_the_writes_that_its_server_told(name: str,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """Hello, flight, tickets and records, to the byte, by either OpenSSL."""
    trial, record = stored.load(name), stored.load(name).judge()
    told = trial.observation["server"]
    monkeypatch.setattr(ssl, "OPENSSL_VERSION_INFO", (*SECURED[name], 0, 0, 0))
    made = computed(trial.trial, {})
    assert made.secure == secured.secure_of(told)
    assert made.writes == tuple(told["tls"]["response"])
    assert made.response_bytes == sum(made.writes) == secured.wire_bytes(told)
    # A record has 22 bytes around its text.
    assert made.request_bytes == (record.request_bytes or 0) + 22
