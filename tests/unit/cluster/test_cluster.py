"""Addresses of clusters, what their machines are sent; the rest: tests/programs/test_cluster.py."""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path

import pytest

from firstflight.base.errors import CannotError
from firstflight.commands.engines import engine_errors
from firstflight.runs import cluster
from firstflight.runs.cluster import cluster as cluster_module
from firstflight.runs.cluster.cluster import PROJECT, connect, pack
from firstflight.runs.cluster.node import CODE, KERNEL


@pytest.mark.parametrize("address", [
    "tls://10.0.0.1:8786", "tcp://127.0.0.1:8786", "tcp://localhost:1", "tcp://[::1]:8786"])
def test_addresses(address: str) -> None:
    assert cluster.address(address) == address


@pytest.mark.parametrize("address", [
    "tcp://10.0.0.1:8786", "tcp://scheduler:8786", "tcp://0.0.0.0:1", "tcp://[2001:db8::1]:8786",
    "tcp://127.0.0.1.example.org:1"])
def test_without_tls_no_other_machine_is_reached(address: str,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with status 4, before Dask is imported or a connection is made."""
    monkeypatch.setattr(cluster_module, "import_module", None)
    with pytest.raises(CannotError, match="use tls://") as refused, engine_errors(), \
            connect(cluster.address(address), Path("7.2/linux"), {}):
        pass
    assert refused.value.exit_status == 4 and "\n" not in str(refused.value)


@pytest.mark.parametrize("address", [
    "http://10.0.0.1:1", "10.0.0.1:8786", "tls://10.0.0.1", "tls://h:99999999", "tls://[::1", "",
    "tls://", "tls://h:0", "somewhere"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="not an address of a scheduler"):
        cluster.address(address)


def test_programs_are_sent_as_they_may_be_run(tmp_path: Path) -> None:
    (tmp_path / "linux").write_bytes(b"kernel")
    with zipfile.ZipFile(io.BytesIO(pack(tmp_path / "linux"))) as files:
        assert files.read(KERNEL) == b"kernel"
        for name in ("install.sh", "firstflight/commands/batch.py",
                     "firstflight/testbed/worker/worker.py"):
            mode = files.getinfo(f"{CODE}/{name}").external_attr >> 16 & 0o755
            assert mode == (PROJECT / name).stat().st_mode & 0o755, name
