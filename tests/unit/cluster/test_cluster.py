"""Addresses of clusters, and what their machines are sent; the rest is in tests/programs/cluster."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from engines.cluster.cluster import PROJECT, checked, packed
from engines.cluster.node import CODE, KERNEL
from engines.job import EngineCannot


@pytest.mark.parametrize("address", [
    "tls://10.0.0.1:8786", "tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:8786"])
def test_addresses(address: str) -> None:
    assert checked(address) == address


@pytest.mark.parametrize(("address", "why"), [
    ("tcp://10.0.0.1:8786", "use tls://"), ("tcp://127.0.0.1.example.org:1", "use tls://"),
    ("http://10.0.0.1:1", "takes the address"), ("10.0.0.1:8786", "takes the address"),
    ("tls://10.0.0.1", "takes the address"), ("tls://h:99999999", "takes the address"),
    ("tls://[::1", "takes the address"), ("", "takes the address"), ("tls://", "takes the address")])
def test_what_is_no_address_or_open_to_everybody_is_refused(address: str, why: str) -> None:
    with pytest.raises(EngineCannot, match=why):
        checked(address)


def test_programs_are_sent_as_they_may_be_run(tmp_path: Path) -> None:
    (tmp_path / "linux").write_bytes(b"kernel")
    with zipfile.ZipFile(io.BytesIO(packed(tmp_path / "linux"))) as files:
        assert files.read(KERNEL) == b"kernel"
        for name in ("install.sh", "commands/batch.py", "engines/worker/worker.py"):
            mode = files.getinfo(f"{CODE}/{name}").external_attr >> 16 & 0o755
            assert mode == (PROJECT / name).stat().st_mode & 0o755, name
