"""Sysctls are written to their files, whatever they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.network.kernel import NetworkError, write_sysctls


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "sys" / "net" / "ipv4"
    folder.mkdir(parents=True)
    for name in ("tcp_sack", "tcp_rmem"):
        (folder / name).write_text("")
    return tmp_path / "sys"


def test_they_are_written_and_read_back(root: Path) -> None:
    requested = {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_rmem": "1 2 3", "net.ipv4.tcp_none": "1"}
    assert write_sysctls(requested, "here", root) == {"net.ipv4.tcp_sack": "0",
                                                  "net.ipv4.tcp_rmem": "1 2 3"}
    assert (root / "net/ipv4/tcp_rmem").read_text() == "1 2 3"
    assert not (root / "net/ipv4/tcp_none").exists()


def test_no_shell_reads_them(root: Path, tmp_path: Path) -> None:
    hostile = f"0'; touch {tmp_path}/made; '$(touch {tmp_path}/made)"
    write_sysctls({"net.ipv4.tcp_sack": hostile}, "here", root)
    assert (root / "net/ipv4/tcp_sack").read_text() == hostile
    assert not (tmp_path / "made").exists()


def test_a_value_that_the_kernel_keeps_otherwise_is_an_error(root: Path) -> None:
    (root / "net/ipv4/tcp_sack").write_text("1 2")  # longer than what is written: a rest stays
    with pytest.raises(NetworkError, match="here are not as requested: .*tcp_sack': '0 2'"):
        write_sysctls({"net.ipv4.tcp_sack": "0"}, "here", root)


def test_what_the_real_kernel_refuses_is_told() -> None:
    """What a sysctl only tells; a user without root may write none at all."""
    with pytest.raises(NetworkError, match="here cannot have kernel.ostype = 'x': "):
        write_sysctls({"kernel.ostype": "x"}, "here")
