"""Every quantity, once: its column, unit, range, its words for people, and its flag.

A quantity's name is its column in records, its key in scenario files and its
attribute in trials; it ends in the unit. Reading, checking, messages, --help,
heads of tables and axes of figures all follow from its line here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lab.core.errors import UsageError
from lab.core.words import plain


@dataclass(frozen=True)
class Quantity:
    """One quantity.

    what: in a sentence, with its article. unit: "" for a plain number.
    lowest, highest: the range of what may be asked, both ends included.
    head: of a table's column. label: on an axis, and where there is room.
    flag, flag_help: of the command line, "" for none. why: behind the range
    in the message that refuses a value. more_is_better: an improvement is a
    gain of it, not a saving.
    """

    name: str
    what: str
    unit: str = ""
    lowest: float = -math.inf
    highest: float = math.inf
    whole: bool = False
    head: str = ""
    label: str = ""
    flag: str = ""
    flag_help: str = ""
    why: str = ""
    more_is_better: bool = False

    def check(self, value: Any, where: str) -> float:
        """The value as a number; raises UsageError beginning with `where`."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"{where}: {value!r} is not a number")
        if isinstance(value, int) and value.bit_length() > 64:
            raise UsageError(f"{where}: a number of {len(f'{value:x}')} hexadecimal digits is"
                             " out of range")
        if not math.isfinite(value):
            raise UsageError(f"{where}: {value} is not a finite number")
        if self.whole and value != int(value):
            raise UsageError(f"{where}: {value:g} is not a whole number")
        if not self.lowest <= value <= self.highest:
            unit = f" {self.unit}" if self.unit else ""
            raise UsageError(f"{where}: {self.what} of {plain(value)}{unit} is out of range; it"
                             f" can be {plain(self.lowest)} to {plain(self.highest)}{unit}"
                             f"{self.why}")
        return int(value) if self.whole else float(value)

    @property
    def metavar(self) -> str:
        """What --help writes behind the flag: "MS,…"."""
        unit = {"kbit/s": "KBPS", "segments": "N", "%": "PERCENT", "": "PART"}.get(
            self.unit, self.unit.upper())
        return f"{unit},…"

    @property
    def help(self) -> str:
        """The flag's line of --help."""
        unit = f", {self.unit}" if self.unit and self.unit.upper() not in self.metavar else ""
        return f"only these {self.flag_help}{unit} (default the scenario's)"

    @property
    def axis(self) -> str:
        """On a figure's axis: "RTT (ms)"."""
        name = self.label or self.head or self.name.replace("_", " ")
        name = name[0].upper() + name[1:]
        return f"{name} ({self.unit})" if self.unit else name


_ALL = (
    # The network. Below 0.1 ms the guest's own processing outweighs the link.
    Quantity("rtt_ms", "an RTT", "ms", 0.1, 100_000, head="RTT", flag="--rtt",
             flag_help="RTTs", why="; over longer ones Linux's timers give the connection up"
             " (measured: from 101 s on)"),
    Quantity("bandwidth_kbps", "a bandwidth", "kbit/s", 1, 10_000_000, head="BW",
             label="bandwidth", flag="--bw", flag_help="bandwidths"),
    Quantity("uplink_kbps", "an uplink", "kbit/s", 1, 10_000_000, head="uplink"),
    Quantity("queue_packets", "a queue", "packets", 1, 1_000_000, whole=True, head="queue"),
    Quantity("queue_bdp", "a queue", "bandwidth-delay products", 0.001, 100, head="buffer",
             why=" (a bottleneck without a buffer passes nothing on)"),
    Quantity("access_queue_packets", "a queue", "packets", 1, 1_000_000, whole=True,
             head="access queue"),
    Quantity("loss_percent", "a loss rate", "%", 0, 99, head="loss",
             label="random loss towards the client"),
    Quantity("jitter_ms", "a jitter", "ms", 0, 60_000, head="jitter",
             label="jitter of the delay towards the client", flag="--jitter",
             flag_help="jitters of the delay, normal distribution"),
    Quantity("bdp_bytes", "a bandwidth-delay product", "bytes", 0.01, 1e12, head="BDP",
             label="bandwidth-delay product"),
    Quantity("outage_ms", "a time", "ms", 0, 86_400_000),
    # TCP.
    Quantity("initcwnd", "an initial window", "segments", 1, 65_535, whole=True, head="IW",
             label="initial window", flag="--iw", flag_help="initial windows"),
    Quantity("initrwnd", "an initial receive window", "segments", 1, 65_535, whole=True,
             head="initial receive window"),
    Quantity("mss", "a segment", "bytes", 88, 1448, whole=True, head="segment"),
    Quantity("receive_window", "a receive window", "segments", 0, 1000, whole=True),
    Quantity("rto_min_ms", "a least timeout", "ms", 0, 60_000, whole=True),
    # The responses.
    Quantity("response_bytes", "a response", "bytes", 1, 50_000_000, whole=True, head="size",
             label="response", flag="--size", flag_help="response sizes",
             why=" (body and packets of more do not fit in a guest's memory, 512 MB; measured:"
                 " 70 MB do, 100 do not)"),
    Quantity("response_segments", "a response", "segments", head="size",
             label="response at 1430 bytes a segment, up to"),
    Quantity("write_bytes", "a size", "bytes", 1, 50_000_000, whole=True),
    Quantity("write_segments", "a size", "segments", 1, 100_000, whole=True),
    Quantity("gap_ms", "a pause", "ms", 0, 60_000, head="gap"),
    Quantity("percentile", "a percentile", head="percentile", label="percentile of the latency"),
    # The traffic of a shared link.
    Quantity("load", "an offered load", "", 0.001, 1, head="offered load", flag="--load",
             flag_help="offered loads, parts of the bottleneck like 0.5,0.95",
             why=" (over 1 the queue only grows, and no run is long enough)"),
    Quantity("connections", "a number of connections at once", "", 1, 1000, whole=True,
             head="connections at once"),
    Quantity("clients", "a number of client hosts", "", 1, 250, whole=True),
    Quantity("servers", "a number of server hosts", "", 1, 250, whole=True),
    Quantity("duration_s", "a run", "s", 0.1, 86_400),
    Quantity("warmup_s", "a warm-up", "s", 0, 86_400),
    Quantity("cooldown_s", "a cool-down", "s", 0, 86_400),
    Quantity("share", "a share", "", 0.0001, 1),
    # Times and counts of what is asked.
    Quantity("repeat", "a number of repeats", "", 1, 10_000, whole=True, head="repeat"),
    Quantity("seed", "a seed", "", 0, 2**32 - 1, whole=True),
    Quantity("shares_percent", "a share", "%", 0, 100, head="share"),
    Quantity("time_s", "a time", "s", 0, 86_400, head="time"),
    Quantity("every_s", "an interval", "s", 0.0001, 86_400),
    Quantity("sample_ms", "an interval", "ms", 0.05, 60_000),
    Quantity("published", "a published number", "", -1e9, 1e9),
    Quantity("within", "a tolerance", "", 0, 1e9),
    # What is measured.
    Quantity("total_ms", "the client's total time, handshake included", "ms", head="total",
             label="total time"),
    Quantity("latency_ms", "the server's T_ACK − T_Res1", "ms", head="latency",
             label="latency"),
    Quantity("goodput_kbps", "the goodput of the transfer", "kbit/s", head="goodput",
             label="goodput", more_is_better=True),
    Quantity("mean_ms", "the mean completion time", "ms", head="mean"),
    Quantity("p50_ms", "the median completion time", "ms", head="p50"),
    Quantity("p99_ms", "the 99th percentile", "ms", head="p99"),
    Quantity("hit_mean_ms", "the mean of transfers with a retransmission", "ms"),
    Quantity("retransmission_percent", "the retransmission rate", "%", head="retransmitted"),
    # What runs and queues are told apart by.
    Quantity("variant", "a sender and queue", head="sender and queue"),
    Quantity("window", "an initial window", head="initial window"),
)

QUANTITIES = {quantity.name: quantity for quantity in _ALL}
FLAGS = {quantity.name: quantity for quantity in _ALL if quantity.flag}


def quantity(name: str) -> Quantity:
    """A quantity by its name; one that has no line here has only its name."""
    return QUANTITIES.get(name) or Quantity(name, name.replace("_", " "),
                                            head=name.replace("_", " "))
