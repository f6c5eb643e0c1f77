"""The connections that the page of a capture shows, and those that it only counts."""

from __future__ import annotations

import pytest

from firstflight.wire.capture.report import MOST_ROWS
from tests.builders.captures import HANDSHAKE, build_capture, burst, make_report


@pytest.mark.parametrize(("count", "shown"), [(2, 2), (MOST_ROWS, MOST_ROWS), (MOST_ROWS + 1, 1)])
def test_small_connections_are_only_counted_where_there_are_many(count: int, shown: int) -> None:
    """A fetch of 100 bytes next to one large transfer has a row, as its user wants to see it."""
    small_ones = [packet._replace(ends=(5000 + number, 80))
                  for number in range(count - 1) for packet in (*HANDSHAKE, *burst(1, size=100))]
    findings = make_report(build_capture([*HANDSHAKE, *burst(60), *small_ones])).report.findings
    (connections,) = [finding for finding in findings if finding.name == "connections"]
    (table,) = connections.tables
    assert (len(table.rows), table.hidden_rows) == (shown, count - shown)
