"""The options that fq_codel, cake, fq and tbf report, by name, and their defaults in Linux.

Attributes are from include/uapi/linux/pkt_sched.h, defaults from the kernel's net/sched/sch_*.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from firstflight.net import qdiscs
from firstflight.net.netlink import attributes
from firstflight.net.tc import FULL_FRAME_BYTES, MOST_U32

# By kind, the name of each attribute in a kernel's answer.
_NAMES: dict[str, dict[int, str]] = {
    "fq_codel": {1: "target_us", 2: "limit", 3: "interval_us", 4: "ecn", 5: "flows",
                 6: "quantum_bytes", 7: "ce_threshold_us", 8: "drop_batch", 9: "memory_bytes"},
    "cake": {2: "rate", 3: "diffserv", 4: "atm", 5: "flow_mode", 6: "overhead", 7: "interval_us",
             8: "target_us", 9: "autorate", 10: "memory_bytes", 11: "nat", 12: "raw", 13: "wash",
             14: "mpu", 15: "ingress", 16: "ack_filter", 17: "split_gso", 18: "fwmark"},
    "fq": {1: "limit", 2: "flow_limit", 3: "quantum_bytes", 4: "initial_quantum_bytes",
           5: "pacing", 7: "most_rate", 8: "buckets_log", 9: "refill_us", 10: "orphan_mask",
           11: "low_rate_threshold", 12: "ce_threshold_us", 13: "timer_slack_ns", 14: "horizon_us",
           15: "horizon_drop"},
}
# The value that a kernel sets if tc requests none; None if it then reports no value.
_DEFAULTS: dict[str, dict[str, int | None]] = {
    # 5 and 100 ms, in units of 1024 ns (codel_time_t).
    "fq_codel": {"target_us": 4999, "interval_us": 99_999, "ecn": 1, "flows": 1024,
                 "quantum_bytes": FULL_FRAME_BYTES, "ce_threshold_us": None, "drop_batch": 64,
                 "memory_bytes": 32 << 20, "limit": 10_240},
    "cake": {"diffserv": 0, "atm": 0, "overhead": 0, "interval_us": 100_000, "target_us": 5000,
             "autorate": 0, "nat": 0, "wash": 0, "mpu": 0, "ingress": 0, "ack_filter": 0,
             "split_gso": 1, "fwmark": 0},
    "fq": {"limit": 10_000, "flow_limit": 100, "quantum_bytes": 2 * FULL_FRAME_BYTES,
           "initial_quantum_bytes": 10 * FULL_FRAME_BYTES, "pacing": 1, "most_rate": MOST_U32,
           "buckets_log": 10, "refill_us": 40_000, "orphan_mask": 1023,
           "low_rate_threshold": 68_750, "ce_threshold_us": MOST_U32, "timer_slack_ns": 10_000,
           "horizon_us": 10_000_000, "horizon_drop": 1},
    "tbf": {"peak_rate": 0, "mtu": 0},
}
_TICK = 1  # allowed difference of a burst, which is rounded to ticks twice


def reported_options(kind: str, options: bytes) -> dict[str, int]:
    """The numbers of a qdisc's options by name. Raises ValueError if they are cut."""
    if kind == "tbf":
        bucket = qdiscs.read_tbf(options)
        return {"rate": bucket.rate, "limit_bytes": bucket.limit_bytes,
                "burst_ticks": bucket.burst, "peak_rate": bucket.peak_rate, "mtu": bucket.mtu}
    if kind not in _NAMES:
        return {}

    names = _NAMES[kind]
    return {names[number]: int.from_bytes(value, "little")
            for number, value in attributes(options).items() if number in names}


def option_differences(kind: str, requested: Mapping[str, int], options: bytes) -> Iterator[str]:
    """Options, in words, that a kernel reports with another value than requested or the default.

    requested: values by name. The kernel has to report each of them; an older kernel may not report
    the others.
    """
    reported = reported_options(kind, options)
    for name, value in {**_DEFAULTS.get(kind, {}), **requested}.items():
        found = reported.get(name)
        if found is None and name not in requested:
            continue

        allowed = _TICK if name == "burst_ticks" else 0
        if found is None or value is None or abs(found - value) > allowed:
            reported_value = "none" if found is None else found
            requested_value = "none" if value is None else value
            yield f"{kind} {name} {reported_value}, requested {requested_value}"
