"""Random questions over networks with known limits, and the same questions without a limit.

benchmarks.outside.reasons asks them. A question is what a user types: flags with their values. The
question may read a file, a page's list of objects or a trace's scenario; the file is then written
into the folder where the question is typed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

RESTART, SHARED, LATE = "slow start after the pause", "shared connection", "late names"
# These stand among the flags, and their values are texts of files: a list of objects, a scenario.
PAGE, TRACE = "page.toml", "asked.toml"
OF_TRACE = "trace"
SUBJECTS = ("fetch", "upload", "page", "kernel", OF_TRACE)
# Subjects whose questions have no connection that was used before, or no chain.
_WITHOUT_KEPT, _WITHOUT_CHAIN = {"page", "upload", OF_TRACE}, {"upload", OF_TRACE}
# The bandwidth of a page without a limit: at 10 Gbit/s a microsecond of the processor would show.
FASTEST_PAGE = "1G"
_NO_TLS = {"--kept"}  # flags that go with plain HTTP only
FEW = 12  # repeats of a question with random loss or jitter
# By a limit's name in answers: the flag that requests the limit, and the value that lifts it. No
# value: the question goes without the flag.
FREE = {"receive window": ("--rwnd", "1000"), "uplink": ("--uplink", ""),
        "queue": ("--queue", "100000"), "random loss": ("--loss", "0"), "jitter": ("--jitter", "0"),
        "pacing": ("--qdisc", "fifo"), "used connection": ("--kept", "0"),
        "certificate chain": ("--chain", "400"), "bandwidth": ("--bw", "10G"),
        "number of connections": ("--connections", "60"),
        "tcp_sack": ("--sysctl", "net.ipv4.tcp_sack=1"),
        RESTART: ("--sysctl", "net.ipv4.tcp_slow_start_after_idle=0"),
        SHARED: ("--http", "1.1"), LATE: (PAGE, "")}


@dataclass(frozen=True)
class Question:
    """One question: what it is about, and its flags with their values."""

    subject: str
    flags: Mapping[str, str]  # as typed_words takes them
    limits: tuple[str, ...]  # the bandwidth, and those that the flags request

    def without(self, *limits: str) -> dict[str, str]:
        """The flags of the same question without some limits."""
        flags = dict(self.flags)
        for name in limits:
            flag, value = FREE[name]
            if name == RESTART and TRACE in flags:
                flags[TRACE] = flags[TRACE].replace("validation = true", "validation = false")
            elif name == LATE:
                flags = _named_at_once(flags)
            elif name == RESTART:
                flags[flag] = "+".join(filter(None, (flags.get(flag), value)))
            elif value:
                flags[flag] = value
            else:
                flags.pop(flag, None)
        if "bandwidth" in limits and self.subject == "page":
            flags["--bw"] = FASTEST_PAGE
        if "queue" in limits and flags.get("--qdisc") == "fq_codel":
            flags.pop("--qdisc")
        if "random loss" in limits:
            flags.pop("--burst-loss", None)
        if "used connection" in limits:
            flags.pop("--idle", None)
        if SHARED in limits:
            flags["--connections"] = "6"
        return flags


def typed_words(flags: Mapping[str, str], folder: Path) -> list[str]:
    """What a user types for these flags; writes the files among them into a folder."""
    words: list[str] = []
    for flag, value in flags.items():
        if flag in (PAGE, TRACE):
            (folder / flag).write_text(value, encoding="utf-8")
        words += {PAGE: ["--page", str(folder / PAGE)], TRACE: [str(folder / TRACE)]}.get(
            flag, [flag, value])
    return words


def _named_at_once(flags: Mapping[str, str]) -> dict[str, str]:
    """The flags of the same page, except that the document names all objects in its first byte."""
    size, document, count = (flags[flag].replace("kB", "000")
                             for flag in ("--size", "--document", "--objects"))
    others = {flag: value for flag, value in flags.items()
              if flag not in ("--size", "--document", "--objects")}
    return {**others, PAGE: f"[[object]]\nbytes = {document}\n" + int(count) * (
        f"[[object]]\nbytes = {size}\nat_byte = 0\n")}


def drawn(seed: int, number: int) -> Question:
    """The question of a seed and a number; always the same."""
    draw = random.Random(f"reasons {seed} {number}")
    subject = draw.choices(SUBJECTS, (6, 1, 3, 1, 3))[0]
    windows = draw.choice(("10,30", "3,10", "10,20", "10,40", "4,10", "2,25", "10,64"))
    bandwidth = draw.choice(("1M", "3M", "10M", "30M", "60M", "150M", "1G"))
    flags = {"--rtt": str(draw.choice((5, 12, 25, 40, 66, 90, 150, 300, 600))), "--bw": bandwidth,
             "--iw": windows}
    limits = ["bandwidth"]
    if subject == "page":
        flags |= {"--objects": str(draw.choice((3, 8, 18, 30))),
                  "--size": draw.choice(("2kB", "9kB", "22kB", "60kB")),
                  "--document": draw.choice(("8kB", "35kB", "90kB"))}
        if draw.random() < 0.4:
            flags["--http"] = "2"
            limits.append(SHARED)
        else:
            flags["--connections"] = draw.choice(("1", "2", "6"))
            limits.append("number of connections")
    elif subject == OF_TRACE:
        flags[TRACE] = _trace(draw)
        if "validation = true" in flags[TRACE]:
            limits.append(RESTART)
    elif subject == "upload":
        flags["--request"] = draw.choice(("14kB", "30kB", "90kB", "250kB"))
        flags["--client-iw"] = flags.pop("--iw")
    else:
        flags["--size"] = draw.choice(("8kB", "14kB", "22kB", "30kB", "60kB", "140kB", "600kB"))
    if subject == "kernel":
        flags["--module-parameter"] = draw.choice(("tcp_cubic.hystart=0", "tcp_cubic.beta=512"))
    for name in draw.sample(list(_REQUESTED), draw.choice((0, 1, 1, 2, 3))):
        added = _REQUESTED[name](draw, subject)
        if added and not added.keys() & flags.keys() and name not in limits and not (
                _NO_TLS & {*flags, *added} and "--chain" in {*flags, *added}):
            flags |= added
            limits.append(name)
    if "--idle" in flags:
        limits.append(RESTART)
    return Question(subject, flags, tuple(limits))


def _trace(draw: random.Random) -> str:
    """The scenario of a connection with two requests and a pause between them."""
    first, last = draw.choice((14_000, 60_000, 250_000)), draw.choice((9_000, 30_000, 140_000))
    validation = "true" if draw.random() < 0.7 else "false"
    return f'''# The last of two responses.
kind = "trace"
title = "two responses"
source = "benchmarks.outside.reasons"
[defaults]
rtt_ms = 50
bandwidth_kbps = 10000
queue = 1000
initcwnd = 10
sample_ms = 5
[[tcp]]
name = "tcp"
title = "Linux"
congestion_control = "cubic"
validation = {validation}
[[schedule]]
name = "two"
requests = [{{ bytes = {first} }}, {{ bytes = {last}, think_s = "each" }}]
[[trace]]
name = "two"
schedule = "two"
tcp = ["tcp"]
think_s = [{draw.choice((0.1, 1, 3, 10))}]
'''


def _rwnd(draw: random.Random, subject: str) -> dict[str, str]:
    return {"--rwnd": draw.choice(("4", "10", "14", "20", "45"))}


def _uplink(draw: random.Random, subject: str) -> dict[str, str]:
    return {"--uplink": draw.choice(("32k", "128k", "512k"))} if subject != "upload" else {}


def _queue(draw: random.Random, subject: str) -> dict[str, str]:
    flags = {"--queue": draw.choice(("8", "15", "20", "30", "60"))}
    return flags | ({"--qdisc": "fq_codel"} if draw.random() < 0.25 else {})


def _loss(draw: random.Random, subject: str) -> dict[str, str]:
    return {"--loss": draw.choice(("0.5", "2")), "--repeat": str(FEW)} | (
        {"--burst-loss": "4"} if draw.random() < 0.3 else {})


def _jitter(draw: random.Random, subject: str) -> dict[str, str]:
    return {"--jitter": draw.choice(("1", "2")), "--repeat": str(FEW)}


def _pacing(draw: random.Random, subject: str) -> dict[str, str]:
    return {"--qdisc": "fq"}


def _used(draw: random.Random, subject: str) -> dict[str, str]:
    return {} if subject in _WITHOUT_KEPT else {"--kept": draw.choice(("1", "2"))} | (
        {"--idle": draw.choice(("100", "3000"))} if draw.random() < 0.6 else {})


def _chain(draw: random.Random, subject: str) -> dict[str, str]:
    return {} if subject in _WITHOUT_CHAIN else {
        "--chain": draw.choice(("2500", "4000", "9000", "17000"))}


def _sack(draw: random.Random, subject: str) -> dict[str, str]:
    return {"--sysctl": "net.ipv4.tcp_sack=0"}


_REQUESTED = {"receive window": _rwnd, "uplink": _uplink, "queue": _queue, "random loss": _loss,
              "jitter": _jitter, "pacing": _pacing, "used connection": _used,
              "certificate chain": _chain, "tcp_sack": _sack}
