"""How fast a server's clock ticks; what a probe says: tests/golden/probed.py."""

from __future__ import annotations

import pytest

from firstflight.probe import verdict
from tests.golden.probed import data


@pytest.mark.parametrize(("stamps", "per_ms"), [
    ([(0, 5000), (300, 9000), (1000, 5100)], 0.1),  # 100 Hz; what lies between does not count
    ([(0, (1 << 32) - 10), (50, 40)], 1.0),  # past its end, over the least time
    ([(0, 5000), (1000, 5001)], 0.001), ([(0, 5000), (49.9, 5050)], None),
    ([(0, 5000), (1000, 5000)], None), ([(0, 5000), (1000, 4999)], None), ([], None)])
def test_how_fast_a_servers_clock_ticks(stamps: list[tuple[float, int]], per_ms: float | None
                                        ) -> None:
    packets = [data(ms, 0)._replace(stamp=stamp) for ms, stamp in stamps]
    ours = data(5000, 0)._replace(to_client=False, stamp=99)
    found = verdict._stamps_per_ms([ours, *packets, data(6000, 0, stamp=False), ours])
    assert found == (per_ms if per_ms is None else pytest.approx(per_ms, rel=1e-9))
