"""Runs the same scripts in virtual time and on Debian's stock kernel, and compares them.

    benchmarks/outside/stock_kernel.sh side_by_side --keep FOLDER [--repeats N] [CASE ...]

stock_kernel.sh brings the kernel and what it boots with. QEMU emulates a machine with one processor
(TCG, no KVM), and boots once for each clock and repeat. With one clock it runs in real time. With
the other (-icount) an instruction takes a nanosecond and idle time is skipped, so that its numbers
do not depend on other load on this machine. A difference in real time alone comes from the emulated
processor.

A case is judged by the medians in virtual time and with counted instructions. TOLERANCES
(side_by_side_table.py) were fixed before the first run. Two medians do not differ where the runs of
one side overlap those of the other. Throughput is judged where a rate is set and the emulated
processor is less than half busy.

FOLDER keeps what was observed, and a run in it is not observed again; --again virtual removes the
runs in virtual time. All runs in FOLDER count, so a case may have more than --repeats. The table is
printed as Markdown (vtime/SIDE_BY_SIDE.md). Exit status: 0 if each difference has a cause in
cases.toml, else 1.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import vtime
from benchmarks import command
from benchmarks.outside.side_by_side_table import (
    MOST_BUSY_PERCENT,
    TOLERANCES,
    Case,
    Observed,
    document,
    judged,
)
from firstflight.base.argument_types import positive_number
from firstflight.base.errors import FAILED, OK
from firstflight.base.parser import Parser
from firstflight.base.terminal import say
from firstflight.runs.scenario_file import parse
from vtime import CommandRequest, LinkTimes
from vtime.uml import built_kernel_for_commands

CASES = Path(__file__).parent / "side_by_side_cases"
SHARED = ("common.sh", "common.py", "observe.py")
MEMORY_MB = 1024
DEADLINE_S = 7200.0  # of wall time, for a boot and all cases
# What the stock machine runs. Each case has its own processes and network namespace, which end with
# it. Mininet sets TCP's buffers, which only the initial namespace allows; other namespaces start
# with its values. Mininet's CPULimitedHost needs cgroups of version 1, for which Linux 7.2 has no
# cpuset.
START = """\
umount /sys/fs/cgroup
mount -t tmpfs cgroup /sys/fs/cgroup
mkdir /sys/fs/cgroup/cpu,cpuacct
mount -t cgroup -o cpu,cpuacct cgroup /sys/fs/cgroup/cpu,cpuacct
ln -s cpu,cpuacct /sys/fs/cgroup/cpu
ln -s cpu,cpuacct /sys/fs/cgroup/cpuacct
for name in cgcreate cgdelete; do
    cp /usr/bin/$name /run/$name
    printf '#!/bin/sh\\nexec /run/%s $(echo "$@" | sed s/,cpuset//)\\n' $name >/usr/bin/$name
done
mount -t tracefs tracefs /sys/kernel/tracing
export HOME=/root
cd /proc/sys/net/ipv4
rmem=$(cat tcp_rmem)
wmem=$(cat tcp_wmem)
while read -r name; do
    echo "begins $name at $(cut -d ' ' -f 1 /proc/uptime)"
    echo "$rmem" >tcp_rmem
    echo "$wmem" >tcp_wmem
    if grep -q mininet "/run/first-flight/scripts/$name.sh"; then
        python3 -c 'from mininet.util import fixLimits; fixLimits()'
    fi
    unshare --net --pid --fork --kill-child --mount-proc sh /run/first-flight/one.sh "$name"
    umount -l /run/netns 2>/dev/null
    rm -rf /run/netns /run/openvswitch /tmp/case
    sync
done </run/first-flight/cases
"""
# What runs one case there, in its namespaces.
ONE = """\
ip link set lo up
cp -r /run/first-flight/scripts /tmp/case
cd /tmp/case
if grep -qi ovs "$1.sh"; then
    mkdir -p /run/openvswitch /var/log/openvswitch
    rm -f /run/conf.db
    ovsdb-tool create /run/conf.db /usr/share/openvswitch/vswitch.ovsschema
    ovsdb-server /run/conf.db --remote=punix:/run/openvswitch/db.sock --pidfile --detach --no-chdir
    ovs-vsctl --no-wait init
    ovs-vswitchd unix:/run/openvswitch/db.sock --pidfile --detach --no-chdir
fi 2>/dev/null
python3 observe.py "$1.sh" "$1.json"
cp "$1.json" "/run/first-flight/$1.json"
"""
# Delays that move a result as a machine's noise does. The first run has none.
NOISE = LinkTimes().with_noise()
HEAD = """\
# Scripts in virtual time and on a stock kernel, side by side

The same scripts ran in virtual time, on Linux {guest}, and on Debian's own kernel, {stock}, in
QEMU without KVM. They are in `benchmarks/outside/side_by_side_cases/cases.toml`.
`benchmarks/outside/stock_kernel.sh side_by_side` printed this page on {date}, but for
[its last part](#netem-and-a-rate).

A cell is *virtual / stock (real)*, each a median. *Stock*: QEMU's clock counts instructions, a
nanosecond each, so its numbers do not depend on what else the computer does. *Real*: QEMU's clock
is the computer's. The emulation is then late by some milliseconds, which RTTs show. Runs of each
case: {virtual} in virtual time (the first without noise, the others with that of `--repeat`),
{counted} stock, {real} real.

**Bold**: virtual and stock differ by more than the tolerance, and no run of one is among those of
the other. For windows real time counts, too. *Italic*, with the cause *spread*: they differ by as
much, but runs of one are among those of the other, so chance decides in both. The tolerances were
fixed before the first run: {percents}. Throughput and time count where a rate is set and the
stock kernel's processor is busy for less than {busy} %.

Windows are those of the connection to the lowest port, and of several the one that begins first.
They are compared in each of its first round trips, until anybody loses a packet. The one that
differs most is shown (*at* the number of its round trip).
"""
HEADS = {"sh": "#!/bin/sh\n. ./common.sh\n", "python": "#!/usr/bin/python3\n"}
CLOCKS = {"real": (), "counted": ("-icount", "shift=0,sleep=off")}  # the flags of QEMU for each


def cases(text: str) -> tuple[list[Case], dict[str, str]]:
    """The cases, and the causes by their names. Raises TypeError for an unknown key."""
    raw = parse("cases", text).raw
    return [Case(**case) for case in raw["case"]], raw.get("causes", {})


def write_scripts(chosen: Sequence[Case], folder: Path) -> None:
    """Write each case as NAME.sh, and the files that the cases read."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SHARED:
        shutil.copyfile(CASES / name, folder / name)
    for case in chosen:
        language = "sh" if case.sh else "python"
        path = folder / f"{case.name}.sh"
        path.write_text(HEADS[language] + (case.sh or case.python))
        path.chmod(0o755)


# In virtual time -----------------------------------------------------------------------

def run_virtual(case: Case, number: int, scripts: Path, keep: Path, kernel: Path) -> None:
    """Run a case in a guest, and keep what was observed; draw number 0 has no noise."""
    into = keep / "guests" / f"{case.name}-{number}"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    request = CommandRequest(
        ["python3", "observe.py", f"{case.name}.sh", f"{case.name}.json"], scripts,
        seed=1 + number, link_times=NOISE if number else LinkTimes(), clock_limit_s=900,
        wall_limit_s=900)
    result = vtime.run(request, into, kernel=kernel)
    observed = result.files / f"{case.name}.json"
    place = place_of(keep, "virtual", number, case)
    place.parent.mkdir(parents=True, exist_ok=True)
    if observed.is_file() and not observed.is_symlink():
        shutil.copyfile(observed, place)
    else:
        say(f"side by side: {case.name}, virtual, {number}: nothing was observed, status"
            f" {result.status}; {into} has its output")


def place_of(keep: Path, world: str, number: int, case: Case) -> Path:
    """The file in which FOLDER keeps what was observed in one run of a case."""
    return keep / f"{world}-{number}" / f"{case.name}.json"


# On the stock kernel -------------------------------------------------------------------

def qemu_command(arguments: argparse.Namespace, exchange: Path, clock: str) -> list[str]:
    """The command that boots the stock kernel on this machine's files and `exchange`."""
    def shared(tag: str, path: str, more: str) -> list[str]:
        return ["-virtfs", f"local,path={path.replace(',', ',,')},mount_tag={tag},"
                           f"security_model=none,multidevs=remap{more}"]
    return ["qemu-system-x86_64", "-accel", "tcg", *CLOCKS[clock], "-cpu", "qemu64,+rdrand",
            "-m", str(MEMORY_MB), "-nodefaults", "-no-reboot", "-display", "none",
            "-serial", "stdio", "-kernel", str(arguments.kernel), "-initrd", str(arguments.initrd),
            "-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check",
            *shared("machine", "/", ",readonly=on"), *shared("exchange", str(exchange), "")]


def run_stock(arguments: argparse.Namespace, wanted: Sequence[Case], clock: str, number: int
              ) -> None:
    """Boot the stock kernel once, run the cases, and keep what was observed."""
    exchange = arguments.keep / f"{clock}-{number}"
    exchange.mkdir(parents=True, exist_ok=True)
    write_scripts(wanted, exchange / "scripts")
    (exchange / "start").write_text(START)
    (exchange / "one.sh").write_text(ONE)
    (exchange / "cases").write_text("".join(f"{case.name}\n" for case in wanted))
    say(f"side by side: {len(wanted)} cases on the stock kernel, clock {clock}, {number}")
    with (exchange / "console.log").open("wb") as console:
        subprocess.run([*arguments.nice, *qemu_command(arguments, exchange, clock)],
                       stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                       timeout=DEADLINE_S, check=False)


# Both ----------------------------------------------------------------------------------

def observed_of(keep: Path, world: str, case: Case) -> list[dict[str, Any]]:
    """The kept observations of a case in a world: "virtual", "real" or "counted"."""
    places = sorted(keep.glob(f"{world}-*/{case.name}.json"))
    return [json.loads(place.read_text()) for place in places]


def observe_missing(arguments: argparse.Namespace, chosen: Sequence[Case]) -> None:
    """Run the cases that FOLDER lacks."""
    keep: Path = arguments.keep
    for number in range(arguments.repeats):
        for clock in arguments.worlds:
            wanted = [case for case in chosen
                      if not place_of(keep, clock, number, case).is_file()]
            if clock in CLOCKS and wanted:
                run_stock(arguments, wanted, clock, number)
    if "virtual" in arguments.worlds:
        kernel = built_kernel_for_commands()
        write_scripts(chosen, keep / "scripts")
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(run_virtual, case, number, keep / "scripts", keep, kernel)
                         for case in chosen for number in range(arguments.repeats)
                         if not place_of(keep, "virtual", number, case).is_file()]:
                done.result()


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="side_by_side", description="Scripts in virtual time and on a stock"
                                                     " kernel in real time.")
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--repeats", type=positive_number, default=3, metavar="N")
    parser.add_argument("--worlds", type=lambda word: word.split(","),
                        default=["real", "counted", "virtual"], metavar="real,counted,virtual")
    parser.add_argument("--again", choices=("real", "counted", "virtual"),
                        help="forget what was observed there")
    parser.add_argument("--nice", default="", type=str.split, metavar="COMMAND",
                        help="what starts QEMU, such as 'nice -n -15'")
    parser.add_argument("--kernel", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--initrd", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="CASE")
    arguments = parser.parse_args(words)
    if arguments.kernel is None or arguments.initrd is None:
        parser.error("start benchmarks/outside/stock_kernel.sh side_by_side, which brings the stock"
                     " kernel")
    table, causes = cases((CASES / "cases.toml").read_text(encoding="utf-8"))
    if unknown := sorted(set(arguments.names) - {case.name for case in table}):
        parser.error(f"no case {', '.join(unknown)}: {', '.join(case.name for case in table)}")
    chosen = [case for case in table if not arguments.names or case.name in arguments.names]
    if arguments.again:
        for case in chosen:
            for number in range(arguments.repeats):
                place_of(arguments.keep, arguments.again, number, case).unlink(missing_ok=True)
    observe_missing(arguments, chosen)
    observed = {world: [observed_of(arguments.keep, world, case)
                        for case in chosen] for world in ("virtual", "counted", "real")}
    rows = [judged(case, *sides) for case, *sides in zip(chosen, *observed.values())]
    print(document(rows, causes, head_of(observed)))
    unexplained = [f"{row.case.name} ({measure})" for row in rows
                   for measure in row.unexplained()]
    missing = [row.case.name for row in rows if not row.compared]
    say(f"side by side: {len(rows)} cases,"
        f" {sum(len(row.differences()) for row in rows)} differences above their tolerance,"
        f" without a cause: {', '.join(unexplained) or 'none'};"
        f" not observed: {', '.join(missing) or 'none'}")
    return FAILED if unexplained or missing else OK


def head_of(observed: Mapping[str, Sequence[Sequence[Observed]]]) -> str:
    """The text above the table: date, kernels, and how often each case ran."""
    def runs_of(world: str) -> str:
        counts = [len(runs) for runs in observed[world]]
        least, most = min(counts), max(counts)
        return str(least) if least == most else f"{least} to {most}"

    def kernels_of(world: str) -> str:
        return ", ".join(sorted({run["kernel"] for runs in observed[world] for run in runs}))

    percents = ", ".join(f"{name.split(',')[0]} {percent:g} %"
                         for name, percent in TOLERANCES.items())
    return HEAD.format(date=time.strftime("%Y-%m-%d"), guest=kernels_of("virtual"),
                       stock=kernels_of("counted"), virtual=runs_of("virtual"),
                       counted=runs_of("counted"), real=runs_of("real"), percents=percents,
                       busy=f"{MOST_BUSY_PERCENT:g}")


if __name__ == "__main__":
    command.run("side_by_side", main)
