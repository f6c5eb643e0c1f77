"""What is requested of a network, in tc's words, and when its packets arrive, in digits.

The testbed, the judge and the model take the same path of a trial. So a mistake in that path is
made three times, and no comparison of the three would see it. Here the words and the times are
written by hand. A packet takes 25 ms each way. At 10 Mbit/s the 74 bytes of a SYN take 59.2 µs, and
a full frame of 1514 bytes takes 1.2112 ms. Each timer fires a nanosecond late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from firstflight.net.link import Link, Path
from firstflight.net.tc import normal_distribution
from firstflight.setting.path import PathParameters
from firstflight.testbed.network.commands import commands_of
from firstflight.wire.delivery.qdiscs import arrival_times, shaper
from firstflight.workloads.fetch.trial import Trial

REQUESTED: dict[str, Any] = {
    "scenario": "digits", "repeat": 1, "rtt_ms": 50.0, "bandwidth_kbps": 10_000.0,
    "uplink_kbps": 1000.0, "queue_packets": 20, "loss_percent": 0.0, "initcwnd": 10,
    "initrwnd": 30, "congestion_control": "cubic", "client": "curl", "response_bytes": 9000}
# Frames to the client, and frames to the server: when each leaves, in ns, and its bytes.
DOWN = [(0, 74), *[(60_000_000, 1514)] * 3, (60_000_000, 614)]
UP = [(0, 74), (30_000_000, 66), (30_000_000, 160)]

DELAY = "root 1: netem delay 25000us limit 1000000"
RATE_DOWN = "2: netem rate 10000000bit limit 20"
RATE_UP = "2: netem rate 1000000bit limit 20"
TO_SERVER = [DELAY, RATE_UP]
DOWN_AT = [25_059_202, 86_211_202, 87_422_402, 88_633_602, 89_124_802]
UP_AT = [25_592_002, 55_528_002, 56_808_002]

# For each trial: what differs from REQUESTED; the qdiscs to the client, and those to the server;
# when the frames of DOWN arrive, and those of UP, in ns.
TRIALS: dict[str, tuple[dict[str, Any], list[str], list[str], list[int], list[int]]] = {
    "plain": ({}, [DELAY, RATE_DOWN], TO_SERVER, DOWN_AT, UP_AT),
    "an RTT of odd microseconds": (
        {"rtt_ms": 33.333}, [DELAY.replace("25000", "16666"), RATE_DOWN],
        [DELAY.replace("25000", "16666"), RATE_UP],
        [16_725_186, 77_877_186, 79_088_386, 80_299_586, 80_790_786],
        [17_257_986, 47_193_986, 48_473_986]),
    "a slow uplink": (
        {"uplink_kbps": 56.0}, [DELAY, RATE_DOWN], [DELAY, "2: netem rate 56000bit limit 20"],
        DOWN_AT, [35_571_430, 64_428_573, 87_285_715]),
    "both ways alike, a long queue": (
        {"uplink_kbps": 10_000.0, "queue_packets": 1000},
        [DELAY, "2: netem rate 10000000bit limit 1000"],
        [DELAY, "2: netem rate 10000000bit limit 1000"],
        DOWN_AT, [25_059_202, 55_052_802, 55_180_802]),
    "random loss": (
        {"loss_percent": 20.0, "seed": 7}, [f"{DELAY} loss random 20% seed 7", RATE_DOWN],
        TO_SERVER, DOWN_AT[:2], UP_AT),
    "losses in bursts": (
        {"loss_percent": 10.0, "loss_burst": 4.0, "seed": 3},
        [f"{DELAY} loss gemodel 2.77778% 25% seed 3", RATE_DOWN], TO_SERVER, DOWN_AT, UP_AT),
    "jitter": (
        {"jitter_ms": 2.0, "seed": 5},
        ["root 1: netem delay 25000us 2000us distribution normal limit 1000000 seed 5", RATE_DOWN],
        TO_SERVER, [20_633_665, 82_955_587, 83_446_787, 84_657_987, 85_869_187], UP_AT),
    "fq_codel": (
        {"qdisc": "fq_codel"},
        [DELAY, "2: tbf rate 10000000bit burst 1514 limit 1000000000",
         "3: fq_codel limit 20 noecn"], TO_SERVER,
        [25_000_001, 85_000_001, 86_211_202, 87_422_403, 87_913_604], UP_AT),
    "cake": (
        {"qdisc": "cake"}, [DELAY, "2: cake bandwidth 10000000bit raw flows memlimit 30280"],
        TO_SERVER, [25_000_001, 85_000_001, 86_211_202, 87_422_402, 88_633_602], UP_AT),
    "fq": ({"qdisc": "fq"}, [DELAY, RATE_DOWN], TO_SERVER, DOWN_AT, UP_AT),
    # cburst, 1600 bytes, is the smaller bucket: the first full frame leaves 86 bytes in it, and the
    # second one may overdraw it. The third waits until the bucket is no longer overdrawn.
    "HTB, which lets two packets pass": (
        {"htb_burst_bytes": 15_360, "bandwidth_kbps": 1000.0},
        ["root 1: htb default 1", "1: 1:1 htb rate 1000000bit burst 15360b cburst 1600b",
         "2: netem delay 25000us limit 20"],
        ["root 1: htb default 1", "1: 1:1 htb rate 1000000bit burst 15360b cburst 1600b",
         "2: netem delay 25000us limit 20"],
        [25_000_001, 85_000_001, 85_000_001, 96_424_002, 108_536_002],
        [25_000_001, 55_000_001, 55_000_001]),
    # Integers turn 512 kbit/s into 0 Mbit/s. Such a link has the rate of integer_kbps instead.
    "a rate that integers lose": (
        {"bandwidth_kbps": 512.0, "integer_kbps": 500_000.0},
        [DELAY, "2: netem rate 500000000bit limit 20"], TO_SERVER,
        [25_001_186, 85_024_226, 85_048_450, 85_072_674, 85_082_498], UP_AT),
}


def in_words(trial: Trial, port: str) -> list[str]:
    """The qdiscs and classes of a port, each with its place, handle, kind and arguments for tc."""
    lines = [command.split() for command in commands_of(trial.job()) if command.startswith("tc")]
    found = []
    for line in lines:
        if port in line:
            place = ["root"] if "root" in line else []
            place += ["1:"] if "classid" in line else []
            handle = line.index("classid" if "classid" in line else "handle") + 1
            found.append(" ".join([*place, *line[handle:]]))
    return found


def arrivals(link: Link, frames: list[tuple[int, int]]) -> list[int]:
    """When frames arrive, in ns, as the judge computes it of the link."""
    came = arrival_times(link, [left for left, _ in frames], normal_distribution())
    bottleneck, times = shaper(link), []
    reaching = [(at, size) for at, (_, size) in zip(came, frames) if at is not None]
    for at, size in sorted(reaching, key=lambda packet: packet[0]):
        times.append(bottleneck.due(at, size))
        bottleneck.take(at, size, times[-1])
    return times


def differences(name: str) -> set[str]:
    """Which of "words" and "times" of a trial differ from those that are written here."""
    more, to_client, to_server, down_at, up_at = TRIALS[name]
    trial = Trial(**{**REQUESTED, **more})
    words = [in_words(trial, port) for port in ("s1-eth1", "s1-eth2")]
    times = [arrivals(trial.path.down, DOWN), arrivals(trial.path.up, UP)]
    differing = {"words": words != [to_client, to_server], "times": times != [down_at, up_at]}
    return {name for name, differs in differing.items() if differs}


@pytest.mark.parametrize("name", TRIALS)
def test_a_path_has_the_words_and_times_that_are_written_by_hand(name: str) -> None:
    assert not differences(name)


def swapped(path: Path) -> Path:
    return Path(path.up, path.down)


def whole_rtt_each_way(path: Path) -> Path:
    return Path(replace(path.down, delay_ms=path.rtt_ms), replace(path.up, delay_ms=path.rtt_ms))


def whole_rtt_one_way(path: Path) -> Path:
    return Path(replace(path.down, delay_ms=path.rtt_ms), replace(path.up, delay_ms=0.0))


def without_htb(path: Path) -> Path:
    return Path(replace(path.down, htb_burst_bytes=0), replace(path.up, htb_burst_bytes=0))


def other_queue(path: Path) -> Path:
    return Path(replace(path.down, queue_packets=path.down.queue_packets + 1), path.up)


def loss_on_the_way_back(path: Path) -> Path:
    down, up = path.down, path.up
    return Path(replace(down, loss_percent=0.0), replace(up, loss_percent=down.loss_percent))


def without_seed(path: Path) -> Path:
    return Path(replace(path.down, seed=0), path.up)


@pytest.mark.parametrize(("wrong", "name", "seen"), [
    (swapped, "plain", {"words", "times"}), (swapped, "random loss", {"words", "times"}),
    (whole_rtt_each_way, "plain", {"words", "times"}),
    (whole_rtt_one_way, "plain", {"words", "times"}),
    (without_htb, "HTB, which lets two packets pass", {"words", "times"}),
    (other_queue, "HTB, which lets two packets pass", {"words"}),
    (other_queue, "fq_codel", {"words"}), (loss_on_the_way_back, "random loss", {"words", "times"}),
    (without_seed, "jitter", {"words", "times"})])
def test_a_wrong_path_differs_in_its_words_or_times(wrong: Callable[[Path], Path], name: str,
                                                    seen: set[str],
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    right = PathParameters.path
    assert isinstance(right, property) and right.fget is not None
    make = right.fget
    monkeypatch.setattr(PathParameters, "path", property(lambda trial: wrong(make(trial))))
    assert differences(name) == seen
