"""When a fetch is over for the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.fetch_bench import open_connections

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"


def row(state: str) -> str:
    return f"   0: 0200000A:0050 0100000A:C53A {state} 00000000:00000000 01:00000018 00000001\n"


@pytest.mark.parametrize("state, count", [
    ("01", 1), ("04", 1), ("05", 1), ("09", 1), ("06", 0), ("0A", 0)])
def test_what_may_still_send(state: str, count: int, tmp_path: Path) -> None:
    """Established, FIN_WAIT_1, FIN_WAIT_2, LAST_ACK; not TIME_WAIT, not the listener."""
    table = tmp_path / "tcp"
    table.write_text(HEAD + row("0A") + row("06") * 500 + row(state))
    with table.open("rb") as opened:
        for _ in range(2):  # each time from its beginning
            assert open_connections(opened.fileno()) == count
