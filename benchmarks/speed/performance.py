"""Where the time goes, and whether the bars are met: one table.

    /usr/bin/python3 -m benchmarks.speed.performance [--only ROW …] [--runs 5] [--before FOLDER]

Rows: what the project's speed is held to (benchmarks/speed/bars.py), each with its bar, the
aim beyond it, and the least, median and most of the runs; growth with the number of
trials (benchmarks/speed/growth.py); processor time by part of one run (benchmarks/speed/parts.py).
Processor time is of all processes, by a control group: it takes root.
--before FOLDER, another version's working tree, runs its commands in turns with ours.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import command
from benchmarks.speed import growth, parts
from benchmarks.speed.bars import QUICK, ROWS, Setting, measured, table
from lab.core.command_line import Parser, positive, say
from lab.core.errors import OK, CannotError

PARTS = "parts"
# Of which the processor time is divided: fetches by curl, by its library, and load.
DIVIDED: dict[str, list[str]] = {
    "zhao2019": ["--scenario", "zhao2019"],
    "1000 responses by libcurl": [],
    "ietf78_completion, IW 10, once": ["--scenario", "ietf78_completion", "--iw", "10",
                                       "--repeat", "1"]}
QUICK_DIVIDED = {"one bucket": ["--scenario", "zhao2019", "--rtt", "20", "--bw", "1000",
                                "--repeat", "100"]}  # long enough to be met by samples


def divided(of_runs: Mapping[str, list[str]]) -> list[str]:
    """Processor seconds by part, a column for each run. Raises CannotError."""
    with tempfile.TemporaryDirectory() as folder:
        one_sort = [str(growth.scenario_of(1000, Path(folder)))]
        columns = {name: parts.measure(flags or one_sort) for name, flags in of_runs.items()}
    lines = [f"processor time by part, s{'':<8} " + " ".join(f"{name:>32}" for name in columns)]
    for part in parts.PARTS:
        cells = [(column.get(part, 0.0), sum(column.values())) for column in columns.values()]
        if any(seconds for seconds, _ in cells):
            lines.append(f"  {part:<30} " + " ".join(f"{seconds:23.2f} {seconds / whole_s:6.1%} "
                                                     for seconds, whole_s in cells))
    return [*lines, f"  {'all':<30} " + " ".join(f"{sum(column.values()):23.2f} {'':7}"
                                                 for column in columns.values())]


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="performance", description="Time by row and by part, beside the bars.")
    add = parser.add_argument
    add("--only", nargs="+", choices=[*ROWS, PARTS], metavar="ROW",
        help=f"these rows: {', '.join([*ROWS, PARTS])} (default all)")
    add("--runs", type=positive, default=5, help="of each row (default 5)")
    add("--before", type=Path, metavar="FOLDER", help="another version, run in turns with this one")
    add("--large", action="store_true",
        help="also 100,000 trials measured and a million stored: some half an hour")
    add("--quick", action="store_true", help="small sizes, one run: shows that all of it works")
    requested = parser.parse_args(words)
    setting = Setting(1 if requested.quick else requested.runs, requested.quick, requested.large,
                      requested.before)
    rows = requested.only or [*(QUICK if requested.quick else ROWS), PARTS]
    found = [each for row in rows if row != PARTS for each in measured(row, setting)]
    if PARTS in rows:
        try:
            say(f"performance: {PARTS}")
            print("\n".join(divided(QUICK_DIVIDED if requested.quick else DIVIDED)))
        except CannotError as error:
            print(f"{PARTS}: not measured: {error}")
    if found:
        print("\n".join(table(found, judged=not requested.quick)))
    return OK


if __name__ == "__main__":
    command.run("performance", main)
