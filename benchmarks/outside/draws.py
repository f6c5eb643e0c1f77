"""Random settings of pages and traces, drawn by seed and number: always the same."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from benchmarks.outside.transfers import between
from firstflight.setting.seeds import netem_seed
from firstflight.setting.server import BUILTIN, NGINX
from firstflight.testbed.hosts.tls_records import LEAST_BYTES
from firstflight.workloads.page.objects import PageObject
from firstflight.workloads.page.trial import PageTrial
from firstflight.workloads.trace.schedule import Request, Write
from firstflight.workloads.trace.trial import TraceTrial

SHARE_COVERED = 1 / 3  # the share of settings that the model, or the rules of a TCP, cover
MOST_BYTES = 3_000_000  # of a page, or of a trace
MOST_SAMPLES = 20_000  # of a trace's window

# Sysctls of both hosts. tcp_slow_start_after_idle is not among them: traces set it (validation).
SYSCTLS = tuple(f"net.ipv4.tcp_{setting}" for setting in (
    "sack=0", "timestamps=0", "window_scaling=0", "dsack=0", "early_retrans=0", "frto=0",
    "recovery=0", "reordering=10", "rto_min_us=400000", "ecn=1", "notsent_lowat=16384",
    "wmem=4096 16384 65536", "autocorking=0", "adv_win_scale=2"))


def network(draw: random.Random, is_covered: bool) -> dict[str, Any]:
    """Draw the fields of a network and the initial window.

    is_covered says whether the network has to be one that the models cover.
    """
    rtt_ms = between(draw, 1, 300 if is_covered else 900)
    bandwidth_kbps = between(draw, 1000 if is_covered else 100, 1_000_000)
    uplink_kbps = bandwidth_kbps if draw.random() < 0.6 else max(
        28.0, round(bandwidth_kbps / between(draw, 1, 30), 3))
    fields = {"rtt_ms": rtt_ms, "bandwidth_kbps": bandwidth_kbps, "uplink_kbps": uplink_kbps,
              "initcwnd": int(between(draw, 1, 100)), "queue_packets": 1000, "loss_percent": 0.0}
    if is_covered:
        return fields
    loss_percent = draw.choice((0.0, 0.0, 0.0, 0.5, 3.0))
    return {
        **fields, "loss_percent": loss_percent,
        "queue_packets": draw.choice((2, 5, 20, 100, 1000)),
        "qdisc": draw.choice(("fifo", "fifo", "fifo", "fq_codel", "cake", "fq")),
        "loss_burst": draw.choice((1.0, 1.0, 4.0)) if loss_percent else 1.0,
        "jitter_ms": draw.choice((0.0, 0.0, 0.0, round(rtt_ms / 50, 3), round(rtt_ms / 8, 3))),
        "sysctl": draw.choice(SYSCTLS) if draw.random() < 0.3 else "none"}


def tls(draw: random.Random) -> dict[str, Any]:
    """Draw the fields of TLS."""
    intermediates = draw.choice((0, 0, 1))
    signature = draw.choice(("ed25519", "ed25519", "ecdsa", "rsa2048"))
    least = LEAST_BYTES[signature] * (1 + intermediates)
    return {
        "chain_bytes": max(least, int(between(draw, 900, 60_000))),
        "signature": signature, "intermediates": intermediates,
        "tickets": draw.choice((2, 2, 1, 4)), "resumed": draw.choice((0, 0, 0, 1)),
        "record_bytes": draw.choice((16_384, 16_384, 4096, 1400, 512))}


# Pages --------------------------------------------------------------------------------

def objects_of(draw: random.Random) -> tuple[PageObject, ...]:
    """Draw objects that name each other; the document names most of them."""
    count = int(between(draw, 1, 120))
    hosts = draw.choice((1, 1, 1, 2, 4))
    thinks, parses = draw.random() < 0.2, draw.random() < 0.3
    found: list[PageObject] = []
    for number in range(count):
        left = MOST_BYTES - sum(each.size_bytes for each in found)
        size = min(int(between(draw, 1, 300_000)), max(1, left))
        by = 0  # the document is named by nothing
        if number:
            by = 1 if draw.random() < 0.7 else draw.randint(1, number)
        at_byte = draw.randint(0, found[by - 1].size_bytes) if by else 0
        # The draws stay in this order: a seed and a number always give the same page.
        found.append(PageObject(
            size, by, at_byte,
            parse_ms=(round(draw.uniform(0, 200), 3)
                      if parses and by and draw.random() < 0.3 else 0.0),
            think_ms=round(draw.uniform(0, 300), 3) if thinks and draw.random() < 0.3 else 0.0,
            host=draw.randrange(hosts) if number else 0, is_early=draw.random() < 0.3))
    return tuple(found)


def covered_objects(draw: random.Random) -> tuple[PageObject, ...]:
    """Draw objects of one size; the model predicts at least the first on each connection."""
    size = int(between(draw, 200, 100_000))
    count = int(between(draw, 1, 40))
    at_end = draw.random() < 0.5
    return tuple(PageObject(size, named_by=min(number, 1),
                            at_byte=size if at_end and number else 0) for number in range(count))


def page(seed: int, number: int) -> PageTrial:
    """The page of a seed and a number."""
    draw = random.Random(f"page {seed} {number}")
    is_covered = draw.random() < SHARE_COVERED
    http = "1.1" if is_covered else draw.choice(("1.1", "1.1", "1.1", "2"))
    if is_covered:
        server = BUILTIN
    elif http == "2":
        server = NGINX
    else:
        server = draw.choice((BUILTIN, BUILTIN, NGINX))
    content = covered_objects(draw) if is_covered else objects_of(draw)
    if server == NGINX:
        content = tuple(replace(each, think_ms=0.0) for each in content)
    setting = network(draw, is_covered)
    secure = tls(draw) if http == "2" or draw.random() < (0.4 if is_covered else 0.6) else {}
    trial = PageTrial(
        scenario="pages", part="random", page=f"n{number}", http=http, server=server, repeat=1,
        connections=1 if http == "2" else draw.choice((1, 2, 6, 6, 8)),
        mss=draw.choice((1448, 1448, 1448, 1220, 536, 88)),
        initrwnd=draw.choice((1000, 1000, 1000, 100, 44, 4)),
        congestion_control=draw.choice(("cubic", "cubic", "reno") if is_covered else
                                       ("cubic", "cubic", "reno", "bbr")),
        objects=content, **setting, **secure)
    return replace(trial, seed=netem_seed(seed, number)) if trial.is_random else trial


# Traces -------------------------------------------------------------------------------

TCPS = ("cubic", "reno", "reno", "bbr", "cwv", "cwv_exact", "restart", "unvalidated")
# The TCPs whose windows workloads.trace.rules judges.
RULED = ("reno", "cwv", "cwv_exact", "restart", "unvalidated")


def writes_of(draw: random.Random) -> tuple[Write, ...]:
    """Draw the writes of one response: single ones, and trains of short ones."""
    found: list[Write] = []
    at_s, left = 0.0, int(between(draw, 2000, MOST_BYTES))
    while left and len(found) < 12:
        size = min(left, int(between(draw, 1, 600_000)))
        count = draw.choice((1, 1, 1, 5, 40))
        every_s = round(between(draw, 0.001, 0.2), 6)
        size = max(1, size // count)
        found.append(Write(at_s=at_s, size_bytes=size) if count == 1 else Write(
            at_s=at_s, size_bytes=size, until_s=round(at_s + (count - 0.5) * every_s, 6),
            every_s=every_s))
        left = max(0, left - size * found[-1].count)
        at_s = round(found[-1].last_s + between(draw, 0.001, 5.0), 6)
    return tuple(found)


def requests_of(draw: random.Random) -> tuple[Request, ...]:
    """Draw requests one after another, with and without pauses."""
    return tuple(Request(int(between(draw, 1, 300_000)),
                         draw.choice((0.0, 0.0, round(between(draw, 0.001, 8.0), 6))))
                 for _ in range(int(between(draw, 1, 20))))


def trace(seed: int, number: int) -> TraceTrial:
    """The trace of a seed and a number."""
    draw = random.Random(f"trace {seed} {number}")
    is_covered = draw.random() < SHARE_COVERED
    setting = network(draw, is_covered)
    has_writes = draw.random() < 0.6
    writes = writes_of(draw) if has_writes else ()
    requests = (Request(sum(write.bytes_each() * write.count for write in writes)),
                ) if has_writes else requests_of(draw)
    control = draw.choice(RULED if is_covered else TCPS)
    lasts_ms = (sum(request.size_bytes for request in requests) * 16 / setting["bandwidth_kbps"]
                + 1000 * max((write.last_s for write in writes), default=0.0)
                + 20 * setting["rtt_ms"])
    outage_ms = (0.0, 0.0)
    may_have_outage = not (is_covered or setting["loss_percent"] or setting["jitter_ms"])
    if may_have_outage and draw.random() < 0.15:
        begins_ms = round(draw.uniform(2, 6) * setting["rtt_ms"], 3)
        outage_ms = begins_ms, round(begins_ms + between(draw, 5, 3000), 3)
    mss = draw.choice((1448, 1448, 1220, 536, 88))
    trial = TraceTrial(
        scenario="traces", trace=f"n{number}", tcp=control, congestion_control=control,
        validation=draw.random() < 0.5, mss=mss,
        initrwnd=draw.choice((1000, 100, 44, 10, 4)),
        receive_window=draw.choice((0, 0, 0, 8 if mss > 88 else 14, 25, 60)),
        rto_min_ms=draw.choice((0, 0, 200, 50, 1000)), quickack=draw.random() < 0.3,
        nagle=draw.random() < 0.2, sample_ms=max(1.0, round(lasts_ms / MOST_SAMPLES, 3)),
        outage_from_ms=outage_ms[0], outage_to_ms=outage_ms[1], requests=requests, writes=writes,
        think_s=None, may_lose=True, **setting)
    return replace(trial, seed=netem_seed(seed, number)) if trial.is_random else trial
