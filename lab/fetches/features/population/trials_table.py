"""The table of a population's trials: a row for each bucket of the paper's Figure 5."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from lab.core.findings.findings import Column, Table
from lab.core.run.reporting import MOST_ROWS
from lab.core.scenario import published
from lab.fetches.figures.cell_tables import Group, rows_table
from lab.fetches.figures.cells import mean
from lab.fetches.verify.record import Record

_FILED = (Column("part", is_text=True, is_filter=True),
          Column("RTT", "ms", "filed under", is_filter=True),
          Column("BW", "kbit/s", "filed under", is_filter=True),
          Column("IW", "", "requested", is_filter=True), Column("RTT", "ms", "requested"),
          Column("BW", "kbit/s", "requested"), Column("size", "bytes", "requested"))


def trials_table(records: Sequence[Record]) -> Table:
    """Responses drawn from a population, by the buckets of the paper's Figure 5.

    By RTT and bandwidth, or by RTT alone where that makes too many rows.
    """
    groups = _by_bucket(records, by_bandwidth=True)
    if len(groups) > MOST_ROWS:
        groups = _by_bucket(records, by_bandwidth=False)
    return rows_table("Every cell", _FILED, groups, notes_before=(
        "Filed under: the bucket of the paper's Figure 5 that the client belongs to. Asked: the"
        " mean over the networks that were emulated for it. All means carry the shares that the"
        " responses stand for.",))


def _by_bucket(records: Iterable[Record], by_bandwidth: bool) -> list[Group]:
    """The records by part, bucket of RTT, bucket of bandwidth if requested, and window."""
    rtts, bandwidths = (list(published.shares(by)) for by in ("rtt_ms", "bandwidth_kbps"))
    cells: dict[tuple[str, int, int, int], list[Record]] = {}
    for record in records:
        trial = record.trial
        rtt_ms = trial.rtt_ms if trial.key_rtt_ms is None else trial.key_rtt_ms
        bandwidth_kbps = (trial.bandwidth_kbps if trial.key_bandwidth_kbps is None
                          else trial.key_bandwidth_kbps)
        key = (trial.part, _place(rtt_ms, rtts),
               _place(bandwidth_kbps, bandwidths) if by_bandwidth else 0, trial.initcwnd)
        cells.setdefault(key, []).append(record)
    return [((part, _upper(rtts[rtt]), _upper(bandwidths[bandwidth]) if by_bandwidth else "",
              initcwnd, *(mean(group, column) for column in
                          ("rtt_ms", "bandwidth_kbps", "response_bytes"))), group)
            for (part, rtt, bandwidth, initcwnd), group in sorted(
                cells.items(), key=lambda item: item[0])]


def _place(value: float, labels: Sequence[str]) -> int:
    """Which bucket a value falls into. Labels are upper ends, the last one's is ">…"."""
    return bisect_left([float(label) for label in labels[:-1]], value)


def _upper(label: str) -> str:
    return label if label.startswith(">") else f"≤ {label}"
