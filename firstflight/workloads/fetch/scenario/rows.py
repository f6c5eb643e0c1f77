"""Reads and writes the table of a population: a row for each response, with its network.

scenarios/populations/<scenario>.csv.xz has the rows that a scenario measures. Rows of another seed,
or of the large sample, are drawn by hand (paper/draw.py).
"""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from firstflight.base import files, reading
from firstflight.base.errors import UsageError
from firstflight.findings.quantities import QUANTITIES
from firstflight.runs.scenario_file import SCENARIOS

ENDING = ".csv.xz"
FOLDER = SCENARIOS / "populations"
MOST_BYTES = 256 << 20  # of a table when it is unpacked: enough for a million rows


class Row(NamedTuple):
    """A response. Most columns are parameters of its trials (workloads.fetch.trial.Trial)."""

    part: str  # the population
    # These two decide on the paper's bucket of the client.
    key_rtt_ms: float
    key_bandwidth_kbps: float
    # Shares of the population's responses: in the week of the experiment's window, in the week of
    # the baseline's window, and in the steps of causes. In these steps, far clients do not tend to
    # have slow links. A step's weight is 0 where the steps do not measure the response.
    weight: float
    baseline_weight: float
    step_weight: float
    rtt_ms: float
    bandwidth_kbps: float  # in each direction
    queue_packets: int
    loss_percent: float  # 0 without random loss
    seed: int  # 0 without random loss
    response_bytes: int
    earlier_bytes: int
    burst_bytes: int
    gap_ms: float

    @property
    def client(self) -> tuple[float, float]:
        """The two values that decide on the client's bucket. No two clients have the same ones."""
        return self.key_rtt_ms, self.key_bandwidth_kbps


COLUMNS = Row._fields
_WHOLE = ("queue_packets", "seed", "response_bytes", "earlier_bytes", "burst_bytes")
# Columns whose values have to lie within the bounds of their quantities.
_CHECKED = ("rtt_ms", "bandwidth_kbps", "gap_ms", "loss_percent", "response_bytes")


def path_of(name: str, full: bool = False, seed: int = 1) -> Path:
    """The path of a scenario's table. full: that of the large sample."""
    size = "_full" if full else ""
    of_seed = f"_seed{seed}" if seed != 1 else ""
    return FOLDER / f"{name}{size}{of_seed}{ENDING}"


def joint_path_of(name: str, datacenter: str) -> Path:
    """The path of the joint distribution from which a data centre's clients were drawn."""
    return FOLDER / f"{name}_joint_{datacenter}{ENDING}"


@lru_cache(maxsize=2)  # rows are counted first, then read again to make trials
def read(path: Path) -> tuple[Row, ...]:
    """The rows of a table. Raises UsageError."""
    lines = table(path)
    if tuple(lines[0]) != COLUMNS:
        raise UsageError(f"{where_of(path)}: its columns have to be {', '.join(COLUMNS)}")
    return tuple(_row(line, f"{where_of(path)}: row {number}")
                 for number, line in enumerate(lines[1:], start=1))


def _row(line: Sequence[str], where: str) -> Row:
    """A row of the table, from the cells of a line. Raises UsageError that begins with `where`."""
    part, *cells = line
    try:
        numbers = [int(cell) if name in _WHOLE else float(cell)
                   for name, cell in zip(COLUMNS[1:], cells)]
        row = Row(part, *numbers)  # type: ignore[arg-type]
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error
    for name in _CHECKED:
        QUANTITIES[name].check(getattr(row, name), where)
    return row


def of_every_nth_client(drawn: Sequence[Row], n: int) -> list[Row]:
    """All rows of the first client and of every n-th client after it, in their order."""
    clients = list(dict.fromkeys(row.client for row in drawn))
    kept = {*clients[::n]}
    return [row for row in drawn if row.client in kept]


def table(path: Path) -> list[list[str]]:
    """The lines of a compressed CSV, each with the same number of cells.

    Raises UsageError where the file is damaged.
    """
    try:
        with reading.opened(path) as file:
            decompressor = lzma.LZMADecompressor()
            content = decompressor.decompress(file.read(), MOST_BYTES)
        if not decompressor.eof:
            raise EOFError(f"it is cut off, or has more than {MOST_BYTES >> 20} MB")
        lines = list(csv.reader(io.StringIO(content.decode("utf-8"))))
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{where_of(path)}: cannot be read: {error}") from error
    if len(set(map(len, lines))) != 1:
        raise UsageError(f"{where_of(path)}: its lines have different numbers of cells")
    return lines


def where_of(path: Path) -> str:
    """The file's name in messages."""
    return f"scenarios/populations/{path.name}"


def write(path: Path, header: Sequence[str], lines: Iterable[Iterable[object]]) -> None:
    """Write a compressed CSV; numbers keep all their digits. Raises WriteError."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    files.write(path, lzma.compress(text.getvalue().encode("utf-8"),
                                    preset=9 | lzma.PRESET_EXTREME))
