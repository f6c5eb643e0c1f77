"""Runs a case and writes what its TCP did, in the same way in virtual time and on a stock kernel.

    python3 observe.py CASE.sh OUTPUT.json

It needs only the standard library, since it runs in both. The kernel's tracepoints report TCP's
state (tcp_probe: at each segment that a sender receives), retransmissions, and drops of queues. The
times of the processor come from /proc/stat, twice a second.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

TRACING = Path("/sys/kernel/tracing")
BUFFER_KB = 32_768
# An acknowledgement at the sender: ports, first unacknowledged and next byte, and windows.
PROBE = re.compile(
    r" (?P<at>[\d.]+): tcp_probe: .*?src=\S+?:(?P<port>\d+) dest=\S+?:(?P<to>\d+) .*?"
    r"data_len=(?P<length>\d+) snd_nxt=0x(?P<next>[0-9a-f]+) snd_una=0x(?P<una>[0-9a-f]+)"
    r" snd_cwnd=(?P<cwnd>\d+) ssthresh=\d+ snd_wnd=(?P<window>\d+) srtt=(?P<srtt>\d+)")
EVENTS = {"tcp/tcp_probe": "data_len == 0", "tcp/tcp_retransmit_skb": "", "skb/kfree_skb": ""}
# A packet that a queue drops, by the reason: a name, a number of qdiscs' own (subsystem 3), or
# 0xbe, which TBF has.
DROPPED = re.compile(r" kfree_skb: .*reason: (?:QDISC_\w+|TC_\w+|0xbe|0x3[0-9a-f]{4})\b")
SAMPLE_S = 0.5


def start_tracing() -> None:
    """Turn the tracepoints on. Raises OSError."""
    if not (TRACING / "events").exists():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", str(TRACING)], check=True)
    (TRACING / "tracing_on").write_text("0")
    (TRACING / "trace").write_text("")
    (TRACING / "buffer_size_kb").write_text(str(BUFFER_KB))
    for event, kept in EVENTS.items():
        if kept:
            (TRACING / "events" / event / "filter").write_text(kept)
        (TRACING / "events" / event / "enable").write_text("1")
    (TRACING / "tracing_on").write_text("1")


def stop_tracing() -> str:
    """Turn the tracepoints off; return what they reported."""
    (TRACING / "tracing_on").write_text("0")
    text = (TRACING / "trace").read_text(errors="replace")
    for event in EVENTS:
        (TRACING / "events" / event / "enable").write_text("0")
    return text


class Processor(threading.Thread):
    """Samples how busy the processor is."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.samples: list[tuple[float, int, int]] = []  # seconds since the boot; ticks busy, idle

    def run(self) -> None:
        while not self.ended.wait(SAMPLE_S):
            numbers = [int(word) for word in
                       Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
            idle = numbers[3] + numbers[4]
            self.samples.append((time.clock_gettime(time.CLOCK_BOOTTIME), sum(numbers[:8]) - idle,
                                 idle))

    def busy_percent(self, begin_s: float, end_s: float) -> float | None:
        """How busy the processor was between two times; None without two samples between them."""
        within = [sample for sample in self.samples if begin_s <= sample[0] <= end_s]
        if len(within) < 2:
            return None
        busy, idle = (within[-1][place] - within[0][place] for place in (1, 2))
        return 100.0 * busy / (busy + idle) if busy + idle else None


def connections(text: str) -> list[dict[str, object]]:
    """The windows of each connection that sent data, by round trip.

    A round trip ends with the acknowledgement of the byte that was the next one to send at its
    begin.
    """
    rows: dict[tuple[str, str], list[tuple[float, int, int, int, int]]] = {}
    for match in PROBE.finditer(text):
        rows.setdefault((match["port"], match["to"]), []).append(
            (float(match["at"]), int(match["next"], 16), int(match["una"], 16),
             int(match["cwnd"]), int(match["window"])))
    made = []
    for (port, to), samples in rows.items():
        sent = (samples[-1][2] - samples[0][2]) % (1 << 32)
        rounds, goal = [], samples[0][1]
        for at, next_byte, una, cwnd, window in samples:
            if (una - goal) % (1 << 32) < 1 << 31:
                rounds.append([round(at - samples[0][0], 4), cwnd, window])
                goal = next_byte
        cwnds = [sample[3] for sample in samples]
        made.append({"port": int(port), "to": int(to), "bytes": sent, "rounds": rounds,
                     "mean_cwnd": sum(cwnds) / len(cwnds),
                     "begin_s": samples[0][0], "end_s": samples[-1][0]})
    return made


def observe(script: str) -> dict[str, object]:
    """Run a case; return what was observed, as JSON has it."""
    start_tracing()
    processor = Processor()
    processor.start()
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    done = subprocess.run([script], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=6000, check=False)
    ended = time.clock_gettime(time.CLOCK_BOOTTIME)
    text = stop_tracing()
    processor.ended.set()
    found = connections(text)
    retransmitted = re.findall(r" ([\d.]+): tcp_retransmit_skb: .*?sport=(\d+) dport=(\d+)", text)
    for connection in found:
        times = [float(at) for at, sport, dport in retransmitted
                 if (int(sport), int(dport)) == (connection["port"], connection["to"])]
        connection["retransmissions"] = len(times)
        connection["first_loss_s"] = (round(times[0] - float(str(connection["begin_s"])), 4)
                                      if times else None)
    data = [connection for connection in found if int(str(connection["bytes"])) > 50_000]
    begin_s = min((float(str(each["begin_s"])) for each in data), default=began)
    end_s = max((float(str(each["end_s"])) for each in data), default=ended)
    return {"status": done.returncode, "output": done.stdout, "error": done.stderr[-3000:],
            "connections": data, "retransmissions": len(retransmitted),
            "queue_drops": len(DROPPED.findall(text)),
            "busy_percent": processor.busy_percent(begin_s, end_s), "took_s": ended - began,
            "lost_events": int(sum(map(int, re.findall(r"LOST (\d+) EVENTS", text)))),
            "kernel": Path("/proc/sys/kernel/osrelease").read_text().strip()}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(observe(str(Path(sys.argv[1]).resolve()))))
