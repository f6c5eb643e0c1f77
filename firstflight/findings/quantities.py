"""Every quantity by its name: the parameters, other keys of scenario files, the metrics of a load.

The metrics of a fetch are columns of its record (workloads.fetch.record.record).

A column of records, a key of a scenario file and a field of a trial have the quantity's name, which
ends in the unit. From the quantity's row follow: how its values are read and checked, messages,
--help, heads of tables, and labels of axes.
"""

from __future__ import annotations

from firstflight.base.quantity import Quantity
from firstflight.net.queue_length import BDP, MS, PACKETS
from firstflight.parameters import PARAMETERS

# All that are neither in PARAMETERS nor a length of a queue (net/queue_length.py).
_OTHERS: tuple[Quantity, ...] = (
    # The network.
    Quantity("access_queue_packets", "a queue", "packets", 1, 1_000_000, whole=True,
             head="access queue"),
    Quantity("bdp_bytes", "a bandwidth-delay product", "bytes", 0.01, 1e12, head="BDP",
             label="bandwidth-delay product"),
    Quantity("outage_ms", "a time", "ms", 0, 86_400_000),
    # TCP.
    Quantity("receive_window", "a receive window", "segments", 0, 1000, whole=True),
    Quantity("rto_min_ms", "a least timeout", "ms", 0, 60_000, whole=True),
    # Responses, and the server's writes.
    Quantity("response_segments", "a response", "segments", head="size",
             label="response at 1430 bytes a segment, up to"),
    Quantity("write_bytes", "a size", "bytes", 1, 50_000_000, whole=True),
    Quantity("write_segments", "a size", "segments", 1, 100_000, whole=True),
    Quantity("process_ms", "a process", "ms", 0, 60_000),
    Quantity("failed_ms", "a time", "ms", 0, 600_000),
    Quantity("percentile", "a percentile", head="percentile", label="percentile of the latency"),
    # The traffic of a shared link.
    Quantity("load", "an offered load", "", 0.001, 1, head="offered load", flag="--load",
             flag_help="offered loads, of scenarios of kind load: parts of the bottleneck like"
             " 0.5,0.95",
             why=" (over 1 the queue only grows, and no run is long enough)"),
    Quantity("connections", "a number of connections at once", "", 1, 1000, whole=True,
             head="connections at once"),
    # The objects of a page.
    Quantity("objects", "a number of objects", "", 1, 999, whole=True, head="objects"),
    Quantity("document_bytes", "a document", "bytes", 1, 50_000_000, whole=True, head="document",
             label="document of a page"),
    Quantity("site_bytes", "a recorded site", "bytes", 0, 1 << 30, whole=True),
    Quantity("named_by", "the number of an object", "", 0, 1000, whole=True),
    Quantity("at_byte", "a place in an object", "bytes", 0, 50_000_000, whole=True),
    Quantity("host", "the number of a host", "", 0, 255, whole=True),
    Quantity("clients", "a number of client hosts", "", 1, 250, whole=True),
    Quantity("servers", "a number of server hosts", "", 1, 250, whole=True),
    Quantity("duration_s", "a run", "s", 0.1, 86_400),
    Quantity("warmup_s", "a warm-up", "s", 0, 86_400),
    Quantity("cooldown_s", "a cool-down", "s", 0, 86_400),
    Quantity("share", "a share", "", 0.0001, 1),
    Quantity("host_share", "a share", "", 1e-8, 1),  # a product of two shares
    # Times and counts of what is requested.
    Quantity("repeat", "a number of repeats", "", 1, 10_000, whole=True, head="repeat"),
    Quantity("one_in", "a part of a grid", "", 1, 10_000, whole=True),
    Quantity("seed", "a seed", "", 0, 2**32 - 1, whole=True),
    Quantity("shares_percent", "a share", "%", 0, 100, head="share"),
    Quantity("time_s", "a time", "s", 0, 86_400, head="time"),
    Quantity("every_s", "an interval", "s", 0.0001, 86_400),
    Quantity("sample_ms", "an interval", "ms", 0.05, 60_000),
    Quantity("published", "a published number", "", -1e9, 1e9),
    Quantity("within", "a tolerance", "", 0, 1e9),
    Quantity("extra_rtts", "a number of round trips"),
    # The metrics of a load.
    Quantity("mean_ms", "the mean completion time", "ms", head="mean"),
    Quantity("p10_ms", "the 10th percentile", "ms", head="p10"),
    Quantity("p25_ms", "the 25th percentile", "ms", head="p25"),
    Quantity("p50_ms", "the median completion time", "ms", head="p50"),
    Quantity("p75_ms", "the 75th percentile", "ms", head="p75"),
    Quantity("p90_ms", "the 90th percentile", "ms", head="p90"),
    Quantity("p95_ms", "the 95th percentile", "ms", head="p95"),
    Quantity("p99_ms", "the 99th percentile", "ms", head="p99"),
    Quantity("p999_ms", "the 99.9th percentile", "ms", head="p99.9"),
    Quantity("hit_mean_ms", "the mean of transfers with a retransmission", "ms"),
    Quantity("retransmission_percent", "the retransmission rate", "%", head="retransmitted"),
    # Other columns of records: what distinguishes trials.
    Quantity("client", "a client", head="client"),
    Quantity("burst_bytes", "a first write", head="burst bytes"),
    Quantity("earlier_bytes", "an earlier response", head="earlier bytes"),
    Quantity("queue_from", "what a queue's length follows from", head="queue from"),
    Quantity("part", "a population", head="part"),
    Quantity("sample", "a member of a population", head="sample"),
    Quantity("what_if", "limits that are lifted", head="what if"),
    Quantity("drawn_rtt_ms", "an RTT near the one requested", "ms", head="drawn RTT"),
    Quantity("drawn_queue_packets", "a queue near the one requested", "packets",
             head="drawn queue"),
    Quantity("phase_ms", "a load's begin after a frame of its browser", "ms", head="phase"),
    Quantity("variant", "a sender and queue", head="sender and queue"),
    Quantity("window", "an initial window", head="initial window"),
)

_OF_PARAMETERS = [row.quantity for row in PARAMETERS.values()]
QUANTITIES = {quantity.name: quantity
              for quantity in (*_OF_PARAMETERS, PACKETS, MS, BDP, *_OTHERS)}
FLAGS = {name: quantity for name, quantity in QUANTITIES.items() if quantity.flag}


def quantity(name: str) -> Quantity:
    """The quantity of that name. Raises KeyError where there is none."""
    return QUANTITIES[name]


def of_column(name: str) -> Quantity:
    """The quantity of a record's column. One without a row is described by the column's name."""
    words = name.replace("_", " ")
    return QUANTITIES.get(name) or Quantity(name, words, head=words)
