"""netem's table of the normal distribution is found where distributions keep it."""

from __future__ import annotations

from pathlib import Path

import pytest

from net.tc import normal_distribution


def test_the_table_is_looked_for_where_distributions_keep_it(tmp_path: Path) -> None:
    below = tmp_path / "some-machine" / "tc"
    below.mkdir(parents=True)
    (below / "normal.dist").write_text("# a comment\n -32768 7\n 32767\n")
    assert normal_distribution.__wrapped__(tmp_path) == (-32768, 7, 32767)
    with pytest.raises(OSError, match="normal.dist"):
        normal_distribution.__wrapped__(below)
