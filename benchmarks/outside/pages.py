"""Judges random pages, and the same pages with one packet of a capture changed.

    /usr/bin/python3 -m benchmarks.outside.pages --pages 2000 --seed 1 --jobs 2
    /usr/bin/python3 -m benchmarks.outside.pages --seed 1 --only 17,93

Draws pages by seed: up to 120 objects of 1 byte to 300 kB on up to four hosts, named at any place
of each other, with parse and think times, over 1 to 8 connections of HTTP/1.1, in clear text or
over TLS, or over HTTP/2, with chains of 900 bytes to 60 kB, records of 512 bytes and more, and
resumed sessions, from server.py or nginx, at RTTs of 1 to 900 ms and 100 kbit/s to 1 Gbit/s, with
slower uplinks, queues of 2 to 1000 packets, fq_codel, cake and fq, random loss also in bursts,
jitter, segments of 88 to 1448 bytes, IW 1 to 100, receive windows of 4 segments and more, CUBIC,
Reno and BBR. Each page is measured and judged, and none may be refused. Then one packet of a
capture is lost, forged, or moved by 11 µs or more, and the page is judged again: none may pass.
Only packets whose departure is judged are moved: data, unless the server paces. Prints what was
refused and what passed. Memory does not grow with the number of pages.
"""

from __future__ import annotations

import random
import re
import struct
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import command
from benchmarks.outside.transfers import between
from firstflight.base.argument_types import positive_number, whole_numbers
from firstflight.base.errors import FAILED, OK
from firstflight.base.parser import Parser
from firstflight.base.progress import Progress
from firstflight.net import pcap
from firstflight.net.headers import headers
from firstflight.net.pcap import RECORD
from firstflight.net.segments import SERVER_PORTS
from firstflight.runs.results.records import PASS
from firstflight.setting.seeds import netem_seed
from firstflight.setting.server import BUILTIN, NGINX
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.hosts.tls_records import LEAST_BYTES
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.page.objects import PageObject
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.page.trial import PageTrial
from firstflight.workloads.page.verify import judge_page
from vtime.uml import built_kernel

BATCH = 100  # pages that are measured with one start of the guests
MOST_BYTES = 3_000_000  # of a page
# Linux gives up about 135 s after the first of its SYNs (tcp_syn_retries, tcp_syn_linear_timeouts).
# It happens with a queue of two packets, where 23 connections retransmit their SYNs at one tick.
GAVE_UP = re.compile(r"Failed to connect to \S+ port \d+ after 13[4-9]\d{3} ms")


def page_of(draw: random.Random) -> tuple[PageObject, ...]:
    """Draw objects that name each other; the document names most of them."""
    count = int(between(draw, 1, 120))
    hosts = draw.choice((1, 1, 1, 2, 4))
    thinks, parses = draw.random() < 0.2, draw.random() < 0.3
    found: list[PageObject] = []
    for number in range(count):
        left = MOST_BYTES - sum(each.size_bytes for each in found)
        size = min(int(between(draw, 1, 300_000)), max(1, left))
        by = 0 if not number else 1 if draw.random() < 0.7 else draw.randint(1, number)
        at_byte = draw.randint(0, found[by - 1].size_bytes) if by else 0
        found.append(PageObject(
            size, by, at_byte,
            round(draw.uniform(0, 200), 3) if parses and by and draw.random() < 0.3 else 0.0,
            round(draw.uniform(0, 300), 3) if thinks and draw.random() < 0.3 else 0.0,
            draw.randrange(hosts) if number else 0, draw.random() < 0.3))
    return tuple(found)


def drawn(seed: int, number: int) -> PageTrial:
    """The trial of a seed and a number; always the same."""
    draw = random.Random(f"page {seed} {number}")
    http = draw.choice(("1.1", "1.1", "1.1", "2"))
    server = NGINX if http == "2" else draw.choice((BUILTIN, BUILTIN, NGINX))
    content = page_of(draw)
    if server == NGINX:
        content = tuple(replace(each, think_ms=0.0) for each in content)
    rtt_ms, bandwidth_kbps = between(draw, 1, 900), between(draw, 100, 1_000_000)
    loss_percent = draw.choice((0.0, 0.0, 0.0, 0.5, 3.0))
    jitter_ms = draw.choice((0.0, 0.0, 0.0, round(rtt_ms / 50, 3), round(rtt_ms / 8, 3)))
    secure = tls(draw) if http == "2" or draw.random() < 0.6 else {}
    return PageTrial(
        scenario="pages", part="random", page=f"n{number}", rtt_ms=rtt_ms,
        bandwidth_kbps=bandwidth_kbps,
        uplink_kbps=bandwidth_kbps if draw.random() < 0.6 else
        max(28.0, round(bandwidth_kbps / between(draw, 1, 30), 3)),
        queue_packets=draw.choice((2, 5, 20, 100, 1000)), http=http,
        qdisc=draw.choice(("fifo", "fifo", "fifo", "fq_codel", "cake", "fq")),
        loss_percent=loss_percent,
        loss_burst=draw.choice((1.0, 1.0, 4.0)) if loss_percent else 1.0, jitter_ms=jitter_ms,
        mss=draw.choice((1448, 1448, 1448, 1220, 536, 88)),
        connections=1 if http == "2" else draw.choice((1, 2, 6, 6, 8)), server=server,
        initcwnd=int(between(draw, 1, 100)),
        initrwnd=draw.choice((1000, 1000, 1000, 100, 44, 4)),
        congestion_control=draw.choice(("cubic", "cubic", "reno", "bbr")), repeat=1,
        seed=netem_seed(seed, number) if loss_percent or jitter_ms else 0,
        objects=content, **secure)


def tls(draw: random.Random) -> dict[str, Any]:
    """The fields of a trial over TLS."""
    intermediates = draw.choice((0, 0, 1))
    signature = draw.choice(("ed25519", "ed25519", "ecdsa", "rsa2048"))
    least = LEAST_BYTES[signature] * (1 + intermediates)
    return {
        "chain_bytes": max(least, int(between(draw, 900, 60_000))),
        "signature": signature, "intermediates": intermediates,
        "tickets": draw.choice((2, 2, 1, 4)), "resumed": draw.choice((0, 0, 0, 1)),
        "record_bytes": draw.choice((16_384, 16_384, 4096, 1400, 512))}


# One packet changed -------------------------------------------------------------------

def tampered(observed: ObservedTrial, draw: random.Random, paces: bool
             ) -> tuple[str, ObservedTrial]:
    """Lose, forge or move one packet of one capture; return what was done, and the new trial.

    paces: whether a timer spreads what the server sends.
    """
    side = draw.choice(("client", "server"))
    frames = list(pcap.frames(getattr(observed, f"{side}_pcap")))
    number = draw.randrange(len(frames))
    what = draw.choice(("lost", "forged", "moved"))
    time_ns, head, size = frames[number]
    parsed = headers(head, size)
    if what == "moved" and (parsed is None or not parsed.payload_bytes
                            or paces and parsed.from_port in SERVER_PORTS):
        what = "lost"  # its departure is not judged, and it may have to wait for the link anyway
    if what == "lost":
        del frames[number]
    elif what == "forged":
        identification = struct.pack(">H", (int.from_bytes(head[18:20], "big") + 30_000) % 65_536)
        frames.insert(number + 1, (time_ns + 3_500, head[:18] + identification + head[20:], size))
    else:
        by_ns = draw.choice((-1, 1)) * round(between(draw, 11_400, 10_000_000)) // 1000 * 1000 + 450
        frames[number] = time_ns + by_ns, head, size
    frames.sort(key=lambda frame: frame[0])
    capture = b"".join(RECORD.pack(*divmod(at_ns, 10**9), len(kept), wire_bytes) + kept
                       for at_ns, kept, wire_bytes in frames)
    return (f"packet {number + 1} of the {side}'s capture {what}",
            replace(observed, **{f"{side}_pcap": capture}))


class Tally:
    """Counts of the pages, and the lines to print."""

    def __init__(self) -> None:
        self.verdicts: Counter[str] = Counter()
        self.modelled = self.objects = self.changed = 0
        self.worst_ms = 0.0
        self.refused: list[str] = []
        self.gave_up: list[str] = []
        self.passed: list[str] = []

    def add(self, trial: PageTrial, observed: ObservedTrial) -> None:
        record, _ = judge_page(trial, observed, exact=True)
        self.verdicts[record.outcome] += 1
        self.objects += len(trial.requested)
        if not record.counts:
            kind = self.gave_up if GAVE_UP.search(record.error) else self.refused
            kind.append(f"{trial.page.removeprefix('n')}: {record.why_not[:300]}")
            return
        self._note(record)
        what, changed = tampered(observed, random.Random(f"tamper {trial.id}"), trial.paces)
        self.changed += 1
        if judge_page(trial, changed, exact=True)[0].verdict == PASS:
            self.passed.append(f"{trial.page.removeprefix('n')}: {what}")

    def _note(self, record: PageRecord) -> None:
        self.modelled += record.model_objects or 0
        self.worst_ms = max(self.worst_ms, record.model_deviation_ms or 0.0)


def main(words: Sequence[str]) -> int:
    parser = Parser({}, prog="pages",
                    description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=positive_number, default=200, metavar="N",
                        help="how many (default %(default)s)")
    parser.add_argument("--seed", type=positive_number, default=1, metavar="N",
                        help="seed of the settings (default %(default)s)")
    parser.add_argument("--jobs", type=positive_number, default=2, metavar="N",
                        help="guests side by side (default %(default)s)")
    parser.add_argument("--only", type=whole_numbers, metavar="N,…",
                        help="the pages of these numbers (default: all)")
    arguments = parser.parse_args(words)
    numbers = arguments.only or list(range(arguments.pages))
    kernel, tally = built_kernel(), Tally()
    with Progress(len(numbers), 0, "pages") as progress:
        for first in range(0, len(numbers), BATCH):
            trials = [drawn(arguments.seed, number) for number in numbers[first:first + BATCH]]
            by_id = {trial.id: trial for trial in trials}
            with tempfile.TemporaryDirectory(prefix="first-flight-") as folder:
                engine = UmlEngine(kernel, arguments.jobs)
                for observed in engine.run([trial.job() for trial in trials], {},
                                           Path(folder) / "run"):
                    tally.add(by_id[observed.trial_id], observed)
                    progress.step()
    print(f"{len(numbers)} pages of {tally.objects} objects, seed {arguments.seed}: "
          + ", ".join(f"{count} {word}" for word, count in tally.verdicts.items()))
    print(f"the model predicts {tally.modelled} objects, the worst to {tally.worst_ms:.4f} ms")
    print(f"{tally.changed} captures with one packet changed: {len(tally.passed)} passed")
    for line in (*tally.refused, *tally.passed):
        print(f"  {line}")
    print(f"{len(tally.gave_up)} pages with a connection for which TCP gave up"
          + (f": {', '.join(line.partition(':')[0] for line in tally.gave_up)}"
             if tally.gave_up else ""))
    return FAILED if tally.refused or tally.passed else OK


if __name__ == "__main__":
    command.run("pages", main)
