"""Compares what tshark finds in the captures of a run with what the project finds there.

    ./run.sh --scenario zhao2019 --fresh --keep-captures
    /usr/bin/python3 -m benchmarks.outside.first_flights [RUN]

For each transfer with a capture at the server, two numbers are compared with those that the run
recorded (seen_first_flight, retransmissions): the data segments that the server sent at once before
the first acknowledgement of data, and the data segments that it retransmitted. A tail loss probe,
which a timer sends some RTTs later without an acknowledgement, is recognised by its time.

RUN is the folder of a run, by default results/zhao2019/latest. Exit status: 0 if all agree, else 1.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import command
from firstflight.base.errors import FAILED, FirstFlightError
from firstflight.base.parser import Parser
from firstflight.runs.measuring import capture_path
from firstflight.runs.results.records import read_records
from firstflight.workloads.fetch.record.record import Record

FIELDS = ("frame.time_relative", "tcp.srcport", "tcp.len", "tcp.ack", "tcp.analysis.retransmission")
SERVER_PORT = 80
AT_ONCE_S = 0.001  # the longest pause within a flight; the kernel's timers wait at least 2 ms


@dataclass(frozen=True)
class Reading:
    """What tshark finds in a capture: numbers of data segments that the server sent."""

    first_flight: int  # at once, before the first acknowledgement of data
    probes: int  # later than those, and before that acknowledgement, too
    retransmissions: int


def by_tshark(capture: Path) -> Reading:
    """Read a capture by tshark. Raises FirstFlightError where it cannot be read."""
    done = subprocess.run(["tshark", "-r", str(capture), "-Y", "tcp", "-T", "fields", "-E",
                           "separator=,", *(word for name in FIELDS for word in ("-e", name))],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FirstFlightError(f"tshark: {done.stderr.strip().splitlines()[-1]}")
    flight: list[float] = []
    probes, repeated, acknowledged = 0, 0, False
    for line in done.stdout.splitlines():
        time_s, port, length, ack, retransmission = line.split(",")
        if int(port) != SERVER_PORT:
            # tshark counts from 0 at the SYN: the first byte of data is 1.
            acknowledged = acknowledged or int(ack) > 1
        elif int(length) > 0 and retransmission:
            repeated += 1
        elif int(length) > 0 and not acknowledged:
            if flight and float(time_s) - flight[-1] > AT_ONCE_S:
                probes += 1
            else:
                flight.append(float(time_s))
    return Reading(len(flight), probes, repeated)


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="first_flights", description="tshark's reading and the project's.")
    parser.add_argument("run", nargs="?", type=Path, default=Path("results/zhao2019/latest"))
    run = parser.parse_args(words).run
    command.need("tshark")
    read, probes, differing = 0, 0, 0
    for record in read_records(run / "trials.csv", Record):
        capture = capture_path(run, record.trial.id, "server")
        if not capture.exists():
            continue
        read += 1
        reading = by_tshark(capture)
        probes += reading.probes
        if (reading.first_flight, reading.retransmissions) != (record.seen_first_flight,
                                                               record.retransmissions):
            differing += 1
            print(f"{record.trial.id}: first flight {record.seen_first_flight}, tshark"
                  f" {reading.first_flight}; retransmitted {record.retransmissions}, tshark"
                  f" {reading.retransmissions}")
    if not read:
        raise FirstFlightError(f"{run} keeps no captures: run it with --keep-captures")
    print(f"{read - differing} of {read} transfers: tshark reads the same first flight and the"
          f" same number of segments retransmitted ({probes} tail loss probes)")
    return FAILED if differing else 0


if __name__ == "__main__":
    command.run("first_flights", main)
