"""Compares one flow through netem and a rate, in virtual time and on Debian's stock kernel.

    benchmarks/outside/stock_kernel.sh held_back --keep FOLDER [--seeds N] [CELL ...]

Packets are kept apart by an empty bucket, by pacing, or else by what a packet costs. The cells
are: each queue above and below netem, with a large or a small bucket, at three rates; a large
bucket with five sizes of the first receive buffer; and a delay alone. Each cell is a run of
side_by_side_cases/held_back.sh.

In virtual time a cell runs once for each seed from 1 on: the first without noise, the others with
that of --repeat. On the stock kernel it runs once in QEMU, whose clock counts instructions. FOLDER
keeps each line that was printed, and a cell in it does not run again. The section of
vtime/SIDE_BY_SIDE.md is printed as Markdown. Exit status: 0 if each draw is within
TOLERANCE_PERCENT of the stock kernel or its cell has a cause, else 1.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import vtime
from benchmarks import command
from benchmarks.outside.side_by_side import CASES, DEADLINE_S, NOISE, qemu_command
from benchmarks.outside.side_by_side_table import digits
from firstflight.base.argument_types import positive_number
from firstflight.base.errors import FAILED, OK
from firstflight.base.parser import Parser
from firstflight.base.terminal import say
from vtime import CommandRequest, LinkTimes
from vtime.uml import built_kernel_for_commands

SCRIPT = "held_back.sh"
LARGE_BYTES, SMALL_BYTES = 5_000_000, 15_000  # of public labs, and of Mininet
RATES_MBIT = (100, 1000, 10_000)
RMEM = (65_536, 80_000, 87_380, 100_000, 120_000)  # Mininet's fixLimits sets the third
TOLERANCE_PERCENT = 10.0
NOT_KNOWN = "**not known**"
# Why the two differ in cells, by a pattern of their names: where the stock kernel has less, and
# where virtual time has less.
LESS_THERE: Mapping[str, str] = {"(tbf|cake)-(under|over)-10{3,4}-(0|15000)-87380": "its processor"}
LESS_HERE: Mapping[str, str] = {"fq-under-10000-0-87380": "the end of slow start"}
SECTION = """\
## Netem and a rate

One flow of iperf3 for 2 s through two bridges, between which are netem with 20 ms and a rate, as
in public labs (`benchmarks/outside/side_by_side_cases/held_back.sh`). *Under* netem, the rate is
netem's child. *Over* it, netem is the child of the rate, or of CAKE and fq on the next device. A
bucket has 5 MB, as in public labs, or 15 kB, as in Mininet. `benchmarks/outside/stock_kernel.sh
held_back` printed this part on {date}.

A cell is *the least and the most of {seeds} draws in virtual time / the stock kernel*, with
QEMU's clock that counts instructions. The first draw has no noise, the others have that of
`--repeat`. *Farthest draw*: in either second. *Busy*: QEMU's processor, in the busiest 0.2 s of
the flow. **Bold**: more than {percent:g} % from the stock kernel.

{table}

- **its processor**: without netem QEMU's processor carries 1,353 Mbit/s through the TBF of 15 kB
  and 10 Gbit/s, and 1,241 through CAKE of 10 Gbit/s, both at 100 %: they hand on each segment by
  itself. While a window doubles, more segments come at one moment than it takes. Where 1000 wait
  for it (`net.core.netdev_max_backlog`), the next are lost: 761 of the TBF's were, by
  `softnet_stat`, and none in a queue. With 100,000 there none is lost, and the last second has
  1,204 Mbit/s through the TBF and 1,164 through CAKE under netem, whose packets then wait 11.5 ms
  for it. With ten times the delay a flow needs a tenth of the packets: CAKE over netem then has
  401 Mbit/s in both.
- **the end of slow start**: fq has TCP stamp packets for later than they leave. So on this path of
  20 ms a packet's RTT is measured as 10 to 20 ms, and HyStart, which takes the first eight of a
  round, finds them late sooner or later. Measured, with `maxrate` at 4 Gbit/s: slow start ends at
  58 segments on the stock kernel and at 56 here, and each half second is within 3 %. At 8 to 20
  Gbit/s, more than QEMU's processor carries, it ends at 330 to 2,162 segments in nine runs there,
  and the second half second has 894 to 4,010 Mbit/s. Here it ends at 56, also with timers that are
  200 µs late.

**A packet's owner.** On one machine Linux still knows whose packets a netem holds, also behind a
bridge. fq then paces as the sender's TCP says (`sk_pacing_rate`, and the times that it stamps), not
by `maxrate` alone. A router in place of the bridge forgets it: the first second of fq under netem
then has 87.8 / 87.8, 814 / 811 and 3,699 / 3,639 Mbit/s, the last one 95.7 / 95.7, 950 / 944 and
4,552 / 4,547, and at 1 Gbit/s both send 334 segments again. Nor does TCP send again what waits in a
queue of its own machine (`skb_still_in_host_queue`). So at an RTT of 3 s it sends a SYN twice and
not three times, and every counter of that transfer is the same in both.

It shows most in a **jitter without a rate** (`netem delay 20ms 5ms`) on the sender's side of a
cable or of a bridge. Packets pass one another, and TCP takes late ones for lost. It does not send
them again, since it finds them in the queue: 25 recoveries here, 24 there, and not one segment is
sent again. So no duplicate tells it of its mistake, and its window stays at 3 to 10 segments. In 3
s a flow has 3.3 to 4.5 Mbit/s here and 3.3 to 4.4 there, with 10 ms of jitter 1.7 to 1.9 and 1.9
to 2.1. With 3 ms it crawls as well, once it recovers for the first time: most flows at once, one of
six here and two of seven there after hundreds of Mbit/s. With 1 ms it has 1,489 and 1,452. Behind a
router with that netem it learns from duplicates: of eight flows here six have 1,259 Mbit/s and two
less, of five there three and two, where slow start ended early.

Of 25 other networks, two or three draws each, every second of a flow is within 5 % of the stock
kernel: TBF with a peak rate, under netem and over it; HTB with two classes that lend to each other,
with bursts of 1 and 3 MB, and over SFQ, CoDel, PIE and RED; HFSC; fq_codel and a FIFO under TBF;
CAKE with `overhead 44`, `atm` and `ingress`; fq at the sender, with `maxrate` and with BBR;
policing to 20 and to 50 Mbit/s; netem with slots, with and without a rate, and with a jitter and a
rate; netem, with a rate and over TBF, on an ifb device.

A delay both ways and Linux's own buffers, for 5 s: 1464 / 1479 Mbit/s at 10 ms, 723 / 725 at 20
ms, 340 / 331 at 40 ms. `sendall` of 3 MB through 10 Mbit/s and 20 ms to a reader that takes 20 kB
each 50 ms: 5.93 / 5.85 s.
"""
# The first cell runs twice, and its first run does not count: programs are then read from this
# machine's disk, and while QEMU waits for that, the clock in it runs on.
START = """\
cp -r /run/first-flight/scripts /tmp/case
cd /tmp/case
while read -r name words; do
    unshare --net --mount --pid --fork --kill-child --mount-proc sh -c '
        mount -t sysfs sysfs /sys
        mkdir -p /run/netns
        bash held_back.sh "$@" 2>/dev/null | sed "s/^/$0 /"' "$name" $words </dev/null
    umount -l /run/netns 2>/dev/null
    rm -rf /run/netns
done </run/first-flight/cells
"""
LINE = re.compile(r"^([\w-]+) = ([\d.]+) ([\d.]+) (\d+) (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """One flow through netem and a queue with a rate."""

    qdisc: str
    place: str  # whether the queue is "over" or "under" netem
    rate_mbit: int
    bucket_bytes: int
    rmem_bytes: int = 87_380  # the first size in tcp_rmem

    @property
    def name(self) -> str:
        return "-".join(self.words)

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of held_back.sh."""
        return (self.qdisc, self.place, str(self.rate_mbit), str(self.bucket_bytes),
                str(self.rmem_bytes))


@dataclass(frozen=True)
class Seen:
    """What a run of a cell printed."""

    first_mbit: float  # Mbit/s in its first second
    last_mbit: float  # Mbit/s in its last second
    sent_again: int  # segments
    busy_percent: int  # of the processor, in its busiest 0.2 s


def cells() -> Iterator[Cell]:
    """All cells."""
    yield Cell("none", "under", 0, 0)
    for rmem_bytes in RMEM:
        yield Cell("tbf", "under", 10_000, LARGE_BYTES, rmem_bytes)
    for rate_mbit in RATES_MBIT:
        for place in ("under", "over"):
            for qdisc in ("tbf", "htb"):
                for bucket_bytes in (LARGE_BYTES, SMALL_BYTES):
                    cell = Cell(qdisc, place, rate_mbit, bucket_bytes)
                    # This one is among those with five sizes of the receive buffer.
                    if cell.name != "tbf-under-10000-5000000-87380":
                        yield cell
            for qdisc in ("cake", "fq"):
                yield Cell(qdisc, place, rate_mbit, 0)


def run_virtual(cell: Cell, seed: int, keep: Path, kernel: Path) -> str:
    """Run a cell in a guest; return the line that it printed, "" if it failed."""
    into = keep / "guests" / f"{cell.name}-{seed}"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    scripts = keep / "scripts"
    request = CommandRequest(["bash", SCRIPT, *cell.words], scripts, seed=seed,
                             link_times=LinkTimes() if seed == 1 else NOISE, clock_limit_s=60,
                             wall_limit_s=900)
    result = vtime.run(request, into, kernel=kernel)
    if result.status:
        return ""
    return f"{cell.name} {result.output.read_text().partition('out ')[2]}"


def run_stock(arguments: argparse.Namespace, wanted: Sequence[Cell]) -> str:
    """Boot the stock kernel once and run cells; return what it printed."""
    exchange: Path = arguments.keep / "stock"
    (exchange / "scripts").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CASES / SCRIPT, exchange / "scripts" / SCRIPT)
    (exchange / "start").write_text(START)
    lines = [f"{cell.name} {' '.join(cell.words)}\n" for cell in wanted]
    (exchange / "cells").write_text(f"first-{lines[0]}{''.join(lines)}")
    say(f"held back: {len(wanted)} cells on the stock kernel")
    done = subprocess.run(qemu_command(arguments, exchange, "counted"), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=DEADLINE_S,
                          check=False)
    return done.stdout.replace("\r", "")


def kept(place: Path) -> dict[str, Seen]:
    """What a file in FOLDER has of each cell, by the cell's name."""
    text = place.read_text() if place.is_file() else ""
    return {name: Seen(float(first), float(last), int(again), int(busy))
            for name, first, last, again, busy in LINE.findall(text)}


def observe_missing(arguments: argparse.Namespace, chosen: Sequence[Cell]) -> None:
    """Run the cells that FOLDER lacks."""
    keep: Path = arguments.keep
    (keep / "scripts").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(CASES / SCRIPT, keep / "scripts" / SCRIPT)
    kernel = built_kernel_for_commands()
    for seed in range(1, arguments.seeds + 1):
        place = keep / f"virtual-{seed}.txt"
        for cell in chosen:
            if cell.name not in kept(place):
                with place.open("a") as file:
                    file.write(run_virtual(cell, seed, keep, kernel))
    wanted = [cell for cell in chosen if cell.name not in kept(keep / "stock.txt")]
    if wanted:
        with (keep / "stock.txt").open("a") as file:
            file.write(run_stock(arguments, wanted))


# The table -----------------------------------------------------------------------------

@dataclass(frozen=True)
class Row:
    """A cell's draws in virtual time, and what the stock kernel had."""

    cell: Cell
    draws: tuple[Seen, ...]
    stock: Seen

    def worst_percent(self) -> float:
        """How far the draw that is farthest lies from the stock kernel, in either second."""
        ratios = [draw.first_mbit / self.stock.first_mbit for draw in self.draws]
        ratios += [draw.last_mbit / self.stock.last_mbit for draw in self.draws]
        return max((ratio - 1 for ratio in ratios), key=abs) * 100

    def cause(self) -> str:
        """Why the draws differ from the stock kernel, "" if they do not.

    No known cause explains draws that differ much from each other.
    """
        if abs(self.worst_percent()) <= TOLERANCE_PERCENT:
            return ""

        least = 1 - TOLERANCE_PERCENT / 100
        slowest_mbit = min(draw.last_mbit for draw in self.draws)
        if slowest_mbit < least * max(draw.last_mbit for draw in self.draws):
            return NOT_KNOWN

        causes = LESS_HERE if slowest_mbit < least * self.stock.last_mbit else LESS_THERE
        return next((why for pattern, why in causes.items()
                     if re.fullmatch(pattern, self.cell.name)), NOT_KNOWN)


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown; a cell has the range of all draws / what the stock kernel had."""
    lines = ["| cell | first second, Mbit/s | last second, Mbit/s | farthest draw | sent again |"
             " busy | cause |", "|---|---|---|--:|---|--:|---|"]
    for row in rows:
        cell, stock = row.cell, row.stock
        rate = f"{cell.qdisc} {cell.place} netem, {cell.rate_mbit} Mbit/s" if cell.rate_mbit else (
            "a delay alone")
        bucket = f", {cell.bucket_bytes // 1000} kB" if cell.bucket_bytes else ""
        rmem = f", tcp_rmem {cell.rmem_bytes}" if cell.rmem_bytes != Cell.rmem_bytes else ""
        worst = f"{row.worst_percent():+.1f} %"
        lines.append(f"| {rate}{bucket}{rmem} | "
                     + " | ".join((
                         f"{span([draw.first_mbit for draw in row.draws])} /"
                         f" {digits(stock.first_mbit)}",
                         f"{span([draw.last_mbit for draw in row.draws])} /"
                         f" {digits(stock.last_mbit)}",
                         f"**{worst}**" if row.cause() else worst,
                         f"{span([float(draw.sent_again) for draw in row.draws])} /"
                         f" {stock.sent_again}",
                         f"{stock.busy_percent} %", row.cause())) + " |")
    return "\n".join(lines)


def span(numbers: Sequence[float]) -> str:
    """The range of numbers; one number where both ends look the same."""
    ends = digits(min(numbers)), digits(max(numbers))
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="held_back", description="One flow through netem and a rate, in virtual"
                                                  " time and on a stock kernel.")
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seeds", type=positive_number, default=5, metavar="N")
    parser.add_argument("--kernel", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--initrd", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="CELL")
    arguments = parser.parse_args(words)
    known = list(cells())
    if unknown := sorted(set(arguments.names) - {cell.name for cell in known}):
        parser.error(f"no cell {', '.join(unknown)}: {', '.join(cell.name for cell in known)}")
    chosen = [cell for cell in known if not arguments.names or cell.name in arguments.names]
    observe_missing(arguments, chosen)
    stock = kept(arguments.keep / "stock.txt")
    draws = [kept(arguments.keep / f"virtual-{seed}.txt")
             for seed in range(1, arguments.seeds + 1)]
    missing = [cell.name for cell in chosen
               if not all(cell.name in seen for seen in (stock, *draws))]
    rows = [Row(cell, tuple(seen[cell.name] for seen in draws), stock[cell.name])
            for cell in chosen if cell.name not in missing]
    print(SECTION.format(date=time.strftime("%Y-%m-%d"), seeds=arguments.seeds, table=table(rows),
                         percent=TOLERANCE_PERCENT))
    unexplained = [row.cell.name for row in rows if row.cause() == NOT_KNOWN]
    say(f"held back: {len(rows)} cells, without a cause: {', '.join(unexplained) or 'none'};"
        f" not observed: {', '.join(missing) or 'none'}")
    return FAILED if unexplained or missing else OK


if __name__ == "__main__":
    command.run("held_back", main)
