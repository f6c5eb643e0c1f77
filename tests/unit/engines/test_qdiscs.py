"""Netlink is sent what tc would send for the same words, and what a kernel tells is read."""

from __future__ import annotations

import struct

import pytest

from net import qdiscs
from net.netem import Netem, numbers_of
from net.netlink import attribute, attributes
from testbed.network.ports import Queue
from testbed.network.shaping import bottleneck_queue

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
