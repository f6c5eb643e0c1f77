"""Netlink is sent what tc would send for the same words, and what a kernel tells is read."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from firstflight.net import netlink, qdiscs
from firstflight.net.link import Netem, numbers_of
from firstflight.net.netlink import attribute, attributes
from firstflight.net.tc import normal_distribution
from firstflight.testbed.network import links
from firstflight.testbed.network.links import Route
from firstflight.testbed.network.netlink import Netlink, RequestRefused
from firstflight.testbed.network.ports import Queue
from firstflight.testbed.network.shaping import bottleneck_queue


# What strace shows that tc (iproute2 6.1) sends for the words of Port.commands on
# interface 1, from the family on (but for the seed, which newer ones send).
NETEM = "0a0001006e6574656d000000"
INNER = "0000000001000000 00000200 01000100 00000000"
ROOT = "0000000001000000 00000100 ffffffff 00000000"
SENT: list[tuple[Netem | Queue, int, str]] = [
    (Netem(rate_kbps=56, limit_packets=20), 2, f"{INNER} {NETEM} 30000200"
     " 000000001400000000000000000000000000000000000000"
     " 14000600581b0000000000000000000000000000"),
    (Netem(rate_kbps=100_000_000, limit_packets=20), 2, f"{INNER} {NETEM} 3c000200"
     " 000000001400000000000000000000000000000000000000"
     " 0c00080000dd0ee902000000 14000600ffffffff000000000000000000000000"),
    (Netem(delay_ms=50, burst_begins_percent=0.2, burst_ends_percent=20, seed=5), 1,
     f"{ROOT} {NETEM} 40000200 c2eb0b0040420f0000000000000000000000000000000000"
     " 18000580 14000200 6f128300 33333333 0000000000000000 0c000e00 0500000000000000"),
    (bottleneck_queue("cake", 2000, 50)[0], 1, f"{ROOT} 0900010063616b6500000000 40000200"
     " 0c00020090d0030000000000 0800040000000000 0800050004000000 0800060000000000"
     " 08000c0000000000 0800090000000000 08000a00b4270100"),
    (bottleneck_queue("fq_codel", 2000, 50)[1], 2, f"{INNER} 0d00010066715f636f64656c00000000"
     " 14000200 0800020032000000 0800040000000000"),
    (Queue("fq", ""), 1, f"{ROOT} 0700010066710000 04000200")]


@pytest.mark.parametrize(("qdisc", "number", "sent"), SENT)
def test_a_kernel_is_sent_what_tc_would(qdisc: Netem | Queue, number: int, sent: str) -> None:
    assert qdiscs.request(1, number, qdisc.kind, qdisc.options).hex() == sent.replace(" ", "")


def test_jitter_brings_the_table_of_tc() -> None:
    delayed = Netem(delay_ms=50, jitter_ms=2.5, loss_percent=1.5, seed=3)
    head = bytes.fromhex("c2eb0b0040420f003d0ad7030000000000000000" "96980000")
    assert delayed.options.startswith(head + bytes.fromhex("0420020000806d910997919a"))
    found = attributes(delayed.options[len(head):])
    assert sorted(found) == [2, 14] and len(found[2]) == 8192


def test_the_token_bucket_needs_no_table_of_rates() -> None:
    """tc sends one, which kernels have not read since they know the link layer (Linux 3.8)."""
    bucket, _ = bottleneck_queue("fq_codel", 2000, 50)
    assert bucket.options.hex() == (
        "28000100" "0001000000000000" "90d00300" + "00" * 12 + "00ca9a3b" + "00" * 8
        + "08000600ea050000")
    fast, _ = bottleneck_queue("fq_codel", 100_000_000, 50)
    assert attributes(fast.options)[4] == struct.pack("=Q", 12_500_000_000)


@pytest.mark.parametrize("delay_ms", [0.001, 9.5555, 123.4567, 1500.0, 12345.678, 50_000.0])
def test_a_delay_is_read_back_as_it_was_sent(delay_ms: float) -> None:
    delayed = Netem(delay_ms=delay_ms)
    assert list(delayed.differences(delayed.options)) == []
    told = numbers_of(delayed.options)["delay_ms"] * 64e-6
    assert abs(told - delay_ms) < 0.0005 + 64e-6


def test_what_a_kernel_tells_is_read() -> None:
    counters = (attribute(1, struct.pack("=QII", 1 << 40, 12, 0))
                + attribute(3, struct.pack("=5I", 3, 4000, 5, 6, 7)))
    answer = (struct.pack("=BxxxiIII", 0, 9, 2 << 16, 0x10001, 0) + attribute(1, b"netem\0")
              + attribute(2, bytes(24)) + attribute(7, counters))
    assert qdiscs.read_qdisc(answer) == qdiscs.InstalledQdisc(
        9, 2 << 16, 0x10001, "netem", bytes(24), 1 << 40, 12, 5, 3)
    root = struct.pack("=BxxxiIII", 0, 9, 0, 0xFFFFFFFF, 0) + attribute(1, b"noqueue\0")
    assert qdiscs.read_qdisc(root) == qdiscs.InstalledQdisc(
        9, 0, qdiscs.ROOT, "noqueue", b"")
    with pytest.raises(ValueError, match="cut"):
        qdiscs.read_qdisc(answer[:15])
    with pytest.raises(ValueError, match="3 bytes"):
        numbers_of(bytes(3))


# The real kernel of this machine is asked --------------------------------------------

@pytest.fixture(name="kernel")
def fixture_kernel() -> Iterator[Netlink]:
    """Of this process's own namespace, which takes no root."""
    kernel = Netlink.__new__(Netlink)
    kernel.indices, kernel.pid = {"lo": socket.if_nametoindex("lo")}, os.getpid()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as opened:
        kernel.socket = opened
        for option in (10, 11):
            opened.setsockopt(270, option, 1)
        yield kernel


def test_attributes_come_back_as_they_were_packed() -> None:
    packed = attribute(1, b"netem\0") + attribute(2 | 0x8000, b"") + netlink.u32(3, 7)
    assert len(packed) == 12 + 4 + 8
    assert attributes(packed) == {1: b"netem\0", 2: b"", 3: struct.pack("=I", 7)}
    for cut in (packed[:6], bytes(12)):
        with pytest.raises(ValueError, match="attribute that is cut"):
            attributes(cut)


def test_a_question_is_answered(kernel: Netlink) -> None:
    answers = kernel.ask([], links.RTM_GETROUTE, Route.question())
    assert answers and all(answer[0] == socket.AF_INET for answer in answers)
    assert kernel.ask([], qdiscs.GETQDISC, qdiscs.question()) is not None


def test_what_is_refused_is_named_and_nothing_is_left_behind(kernel: Netlink) -> None:
    """Messages that are too short to be routes: a kernel refuses them, whoever sends them."""
    short = (links.RTM_NEWROUTE, b"\2\0\0\0")
    for requests in ([short], [short, short]):
        with pytest.raises(RequestRefused, match="Invalid argument|not permitted") as refused:
            kernel.ask(requests, links.RTM_GETROUTE, Route.question())
        assert refused.value.number == 0
    answers = kernel.ask([], links.RTM_GETROUTE, Route.question())
    assert answers == kernel.ask([], links.RTM_GETROUTE, Route.question())


def test_a_question_that_is_refused_is_the_last(kernel: Netlink) -> None:
    with pytest.raises(RequestRefused) as refused:
        kernel.ask([], 0x3FF0, b"")
    assert refused.value.number == 0


# netem's table of the normal distribution --------------------------------------------

def test_the_table_is_looked_for_where_distributions_keep_it(tmp_path: Path) -> None:
    below = tmp_path / "some-machine" / "tc"
    below.mkdir(parents=True)
    (below / "normal.dist").write_text("# a comment\n -32768 7\n 32767\n")
    assert normal_distribution.__wrapped__(tmp_path) == (-32768, 7, 32767)
    with pytest.raises(OSError, match="normal.dist"):
        normal_distribution.__wrapped__(below)
