"""Shaping: commands of tc, the bytes that the kernel gets, and how its answers are compared."""

from __future__ import annotations

import os
import pathlib
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from firstflight.net import netlink, qdiscs
from firstflight.net.link import Link, Netem, Path
from firstflight.net.netem import read_options
from firstflight.net.netlink import attribute, attributes
from firstflight.net.qdiscs import InstalledQdisc
from firstflight.net.tc import normal_distribution
from firstflight.testbed.network import links, shaping
from firstflight.testbed.network.links import Route
from firstflight.testbed.network.netlink import Netlink, RequestRefused
from firstflight.testbed.network.ports import HtbShaper, Port, Queue
from firstflight.testbed.network.shaping import (CLIENT_PORT, SERVER_PORT, ClientLink,
                                                 DumbbellLinks,
                                                 bottleneck_queue, dropped, dropped_between,
                                                 server_interface, star_ports)
from tests.conftest import PROJECT
from tests.running import HANGS_S


def numbers_of(options: bytes) -> dict[str, int]:
    """The value of each parameter of netem in the kernel's unit, by field."""
    read = read_options(options)
    return {parameter.name: getattr(read, parameter.option) for parameter in Netem().parameters}


# For every parameter of netem: a value, tc's words for it, its number in the kernel's unit, and
# another value, which has to be found as a difference.
PARAMETERS: dict[str, tuple[float, str, int, float]] = {
    "delay_ms": (10.2, "delay 10200us", 159375, 10.21),
    "jitter_ms": (2.5, "2500us distribution normal", 39062, 2.6),
    "rate_kbps": (56.0, "rate 56000bit", 7000, 57.0),
    "limit_packets": (12, "limit 12", 12, 13),
    "loss_percent": (1.5, "loss random 1.5%", 64424509, 1.6),
    "burst_begins_percent": (0.2, "loss gemodel 0.2%", 8589935, 0.3),
    "burst_ends_percent": (20.0, "20%", 858993459, 21.0),
}
STAR = Path(Link(delay_ms=50, rate_kbps=1000, queue_packets=20, loss_percent=2, seed=7),
            Link(delay_ms=50, rate_kbps=500, queue_packets=20))
DUMBBELL = DumbbellLinks(
    bandwidth_kbps=2000, queue_packets=50, qdisc="fifo", access_queue_packets=30, seed=3,
    clients=(ClientLink(40.0), ClientLink(300.0, 64.0, 1.0)))


def installed(port: Port, *others: Netem | Queue) -> list[InstalledQdisc]:
    """A kernel's report of a port's qdiscs. others: what is installed in their place."""
    return [InstalledQdisc(3, number << 16, 0, qdisc.kind, qdisc.options)
            for number, qdisc in enumerate(others or port.qdiscs, start=1)]


def test_every_field_of_netem_is_a_parameter_and_has_a_row_of_this_test() -> None:
    names = [parameter.name for parameter in Netem().parameters]
    assert names == [field.name for field in fields(Netem) if field.name != "seed"]
    assert names == list(PARAMETERS), "PARAMETERS, in this file, needs a line for each"


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_parameter_of_netem_is_requested_and_compared(name: str) -> None:
    value, words, counted, wrong = PARAMETERS[name]
    requested = replace(Netem(), **{name: value})
    assert words in requested.arguments
    assert numbers_of(requested.options)[name] == counted
    assert list(requested.differences(requested.options)) == []
    (difference,) = replace(requested, **{name: wrong}).differences(requested.options)
    assert name in difference and f"{value:.3g}" in difference and f"{wrong:g}" in difference
    # A parameter that was not requested must not be installed.
    (unrequested,) = replace(requested, **{name: 0}).differences(requested.options)
    assert name in unrequested


def test_only_a_random_netem_has_a_seed() -> None:
    lossy = Netem(loss_percent=2, seed=7)
    assert lossy.arguments == "limit 1000000 loss random 2% seed 7"
    assert lossy.options.endswith(attribute(14, (7).to_bytes(8, "little")))
    assert "seed" not in Netem(delay_ms=5, seed=7).arguments
    assert Netem(delay_ms=5, seed=7).options == Netem(delay_ms=5).options


def test_a_port_that_is_not_as_requested_names_the_differences() -> None:
    port, _ = star_ports(STAR)
    outer, inner = port.qdiscs
    assert isinstance(inner, Netem)
    assert port.differences(installed(port)) == []
    assert port.differences(installed(port, outer, replace(inner, limit_packets=21))) == [
        "limit_packets 21, requested 20"]
    assert port.differences(installed(port, Netem(), inner)) == [
        "delay_ms 0, requested 50", "loss_percent 0, requested 2"]
    assert port.differences(installed(port, outer)) == ["qdisc 2: none, requested netem"]
    assert len(port.differences([])) == 2


def test_the_dumbbell_queues_at_the_router_and_delays_at_each_client() -> None:
    to_clients, to_servers = DUMBBELL.router_ports()
    assert to_clients.commands == [
        "tc qdisc replace dev router-eth0 root handle 1: netem rate 2000000bit limit 50"]
    assert to_servers.commands == [
        "tc qdisc replace dev router-eth1 root handle 1: netem delay 20000us limit 1000000"]
    near, far = DUMBBELL.client_ports()
    assert near.commands == [
        "tc qdisc replace dev s1-eth2 root handle 1: netem delay 20000us limit 1000000"]
    assert far.commands == [
        "tc qdisc replace dev s1-eth3 root handle 1: netem delay 280000us limit 1000000"
        " loss random 1% seed 4",
        "tc qdisc replace dev s1-eth3 parent 1:1 handle 2: netem rate 64000bit limit 30"]
    assert [qdisc.seed for port in (near, far) for qdisc in port.qdiscs
            if isinstance(qdisc, Netem) and not qdisc.rate_kbps] == [3, 4]


@pytest.mark.parametrize(("queue", "kinds", "words"), [
    ("cake", ["cake"], "cake bandwidth 2000000bit raw flows memlimit 75700"),
    ("fq_codel", ["tbf", "fq_codel"], "fq_codel limit 50 noecn")])
def test_each_queue_of_the_bottleneck_is_installed_and_compared(queue: str, kinds: list[str],
                                                                words: str) -> None:
    port, _ = replace(DUMBBELL, qdisc=queue).router_ports()
    assert [qdisc.kind for qdisc in port.qdiscs] == kinds
    assert port.commands[-1].endswith(words)
    assert port.differences(reported(port)) == []
    assert port.differences(installed(port, Netem(rate_kbps=2000)))


# What Linux 7.2 reports of the bottleneck of DUMBBELL and of the server's fq: by the number of an
# attribute, its name in firstflight/net/queues.py, its value, and the bytes of the value.
TBF = struct.pack("=BBHhHI12xIII", 0, 1, 0, 0, 0, 250_000, 1_000_000_000, 94_625, 0)
REPORTED: dict[str, dict[int, tuple[str, int, int]]] = {
    "fq_codel": {1: ("target_us", 4999, 4), 2: ("limit", 50, 4), 3: ("interval_us", 99_999, 4),
                 4: ("ecn", 0, 4), 6: ("quantum_bytes", 1514, 4), 8: ("drop_batch", 64, 4),
                 9: ("memory_bytes", 1 << 25, 4), 5: ("flows", 1024, 4)},
    "cake": {2: ("rate", 250_000, 8), 5: ("flow_mode", 4, 4), 7: ("interval_us", 100_000, 4),
             8: ("target_us", 5000, 4), 10: ("memory_bytes", 75_700, 4), 9: ("autorate", 0, 4),
             15: ("ingress", 0, 4), 16: ("ack_filter", 0, 4), 11: ("nat", 0, 4),
             3: ("diffserv", 0, 4), 13: ("wash", 0, 4), 6: ("overhead", 0, 4), 12: ("raw", 0, 4),
             4: ("atm", 0, 4), 14: ("mpu", 0, 4), 17: ("split_gso", 1, 4), 18: ("fwmark", 0, 4)},
    "fq": {1: ("limit", 10_000, 4), 2: ("flow_limit", 100, 4), 3: ("quantum_bytes", 3028, 4),
           4: ("initial_quantum_bytes", 15_140, 4), 5: ("pacing", 1, 4),
           7: ("most_rate", 0xFFFFFFFF, 4), 9: ("refill_us", 40_000, 4),
           10: ("orphan_mask", 1023, 4), 11: ("low_rate_threshold", 68_750, 4),
           12: ("ce_threshold_us", 0xFFFFFFFF, 4), 8: ("buckets_log", 10, 4),
           13: ("timer_slack_ns", 10_000, 4), 14: ("horizon_us", 10_000_000, 4),
           15: ("horizon_drop", 1, 1)}}
PACED = Port(CLIENT_PORT, (Queue("fq", ""),))


def reported(port: Port, changed: str = "", to: int | None = 7) -> list[InstalledQdisc]:
    """A kernel's report of a port's qdiscs.

    changed: an option that has the value `to`, or is not reported where `to` is None.
    """
    rows = installed(port)
    for place, row in enumerate(rows):
        if row.kind == "tbf":
            rows[place] = replace(row, options=attribute(1, TBF))
        elif row.kind in REPORTED:
            options = {number: (to if name == changed else value, size)
                       for number, (name, value, size) in REPORTED[row.kind].items()}
            rows[place] = replace(row, options=b"".join(
                attribute(number, value.to_bytes(size, "little"))
                for number, (value, size) in options.items() if value is not None))
    return rows


OPTIONS = [(kind, name) for kind, attributes_of in REPORTED.items()
           for name, _, _ in attributes_of.values()]


@pytest.mark.parametrize(("kind", "name"), OPTIONS, ids=map("-".join, OPTIONS))
def test_each_option_of_another_queue_is_compared(kind: str, name: str) -> None:
    port = PACED if kind == "fq" else replace(DUMBBELL, qdisc=kind).router_ports()[0]
    assert port.differences(reported(port)) == []
    (wrong,) = port.differences(reported(port, name))
    assert wrong.startswith(f"{kind} {name} 7, requested ")
    is_requested = name in dict(port.qdiscs[-1].requested)  # type: ignore[union-attr]
    lacking = port.differences(reported(port, name, to=None))
    assert bool(lacking) == is_requested, "an older kernel does not report options at defaults"


# at: the offset of the value in struct tc_tbf_qopt.
@pytest.mark.parametrize(("at", "value", "name"), [
    (8, 125_000, "rate"), (24, 1000, "limit_bytes"), (28, 94_623, "burst_ticks"), (32, 1600, "mtu"),
    (20, 1000, "peak_rate")])
def test_each_option_of_a_token_bucket_is_compared(at: int, value: int, name: str) -> None:
    port, _ = replace(DUMBBELL, qdisc="fq_codel").router_ports()
    bucket, queue = reported(port)
    other = TBF[:at] + value.to_bytes(4, "little") + TBF[at + 4:]
    (wrong,) = port.differences([replace(bucket, options=attribute(1, other)), queue])
    assert wrong.startswith(f"tbf {name} {value}, requested ")


def test_a_threshold_that_nobody_requested_is_a_difference() -> None:
    port, _ = replace(DUMBBELL, qdisc="fq_codel").router_ports()
    bucket, queue = reported(port)
    marked = replace(queue, options=queue.options + attribute(7, bytes([9, 0, 0, 0])))
    assert port.differences([bucket, marked]) == ["fq_codel ce_threshold_us 9, requested none"]


# at: the offset of the value in netem's options, None for an attribute that is appended.
@pytest.mark.parametrize(("at", "value", "name"), [
    (16, 5, "duplicate"), (None, attribute(3, struct.pack("=II", 9, 0)), "reorder"),
    (None, attribute(4, struct.pack("=II", 9, 0)), "corrupt"),
    (None, attribute(7, b"\1\0\0\0"), "has_ecn"),
    (None, attribute(6, struct.pack("=IiIi", 0, 24, 0, 0)), "overhead"),
    (None, attribute(1, struct.pack("=III", 9, 0, 0)), "is_correlated"),
    (None, attribute(12, b"\1" * 40), "has_slots")])
def test_an_option_of_netem_that_nobody_requested_is_a_difference(at: int | None, value: Any,
                                                                  name: str) -> None:
    delayed = Netem(delay_ms=50.0)
    options = delayed.options
    changed = (options + value if at is None else
               options[:at] + value.to_bytes(4, "little") + options[at + 4:])
    assert list(delayed.differences(options)) == []
    assert any(name in wrong for wrong in delayed.differences(changed))


def test_another_seed_than_the_requested_one_is_a_difference() -> None:
    lossy = Netem(loss_percent=1.0, seed=4)
    assert list(lossy.differences(replace(lossy, seed=5).options)) == ["seed 5, requested 4"]
    without_seed = replace(lossy, seed=0).options  # kernels before 6.6 report none
    assert list(lossy.differences(without_seed)) == []


def test_drops_are_counted_separately_for_the_queue_and_random_loss() -> None:
    """The outer qdisc, which loses packets at random, counts the drops of the inner queue, too."""
    outer, inner = installed(star_ports(STAR)[0])
    assert dropped([replace(outer, drops=14), replace(inner, drops=9)]) == {
        "queue": 9, "random": 5}
    assert dropped([replace(outer, drops=4)]) == {"queue": 0, "random": 4}


def test_drops_of_a_trial_are_the_counters_after_it_less_those_before() -> None:
    before = {CLIENT_PORT: {"queue": 9, "random": 5}, SERVER_PORT: {"queue": 1, "random": 0}}
    after = {CLIENT_PORT: {"queue": 12, "random": 5}, SERVER_PORT: {"queue": 1, "random": 0}}
    assert dropped_between(before, after) == {"to_client": {"queue": 3, "random": 0},
                                              "to_server": {"queue": 0, "random": 0}}


def test_htb_shapes_instead_of_netem_and_is_read_back() -> None:
    to_client, to_server = star_ports(Path(
        replace(STAR.down, htb_burst_bytes=15360), replace(STAR.up, htb_burst_bytes=15360)))
    assert to_client.commands == [
        "tc qdisc replace dev s1-eth1 root handle 1: htb default 1",
        "tc class replace dev s1-eth1 parent 1: classid 1:1 htb rate 1000000bit burst 15360b"
        " cburst 1600b",
        "tc qdisc replace dev s1-eth1 parent 1:1 handle 2: netem delay 50000us limit 20"
        " loss random 2% seed 7"]
    assert "rate 500000bit" in to_server.commands[1]
    assert len(to_client.requests(3)) == len(to_client.commands)
    bucket, _ = to_client.qdiscs
    assert isinstance(bucket, HtbShaper)
    assert list(bucket.differences(bucket.class_options)) == []
    assert list(bucket.differences(HtbShaper(999, 15360).class_options)) == [
        "htb rate 124875, requested 125000", "htb ceiling 124875, requested 125000",
        "htb burst 1921921, requested 1920000",
        "htb cburst 200187, requested 200000"]
    assert list(bucket.differences(HtbShaper(1000, 15000).class_options)) == [
        "htb burst 1875000, requested 1920000"]
    assert list(bucket.differences(b"")) == ["htb has no class, requested one"]
    # The options of the qdisc come before those of its class: here its default is class 2.
    default_2 = attribute(2, struct.pack("=5I", 0x30011, 10, 2, 0, 0))
    assert list(bucket.differences(default_2 + bucket.class_options)) == [
        "htb default 2, requested 1"]
    assert list(bucket.differences(default_2)) == ["htb has no class, requested one"]
    # Bytes 16 to 28 of a class's options are its ceiling.
    ceiling = struct.pack("=BBHhHI", 0, 1, 0, 0, 0, 100_000)
    slower = bucket.class_options[:16] + ceiling + bucket.class_options[28:]
    assert list(bucket.differences(slower)) == ["htb ceiling 100000, requested 125000"]


def test_a_rate_of_htb_of_more_than_32_bits_is_read() -> None:
    assert qdiscs.read_htb_class(HtbShaper(100_000_000, 15360).class_options).rate == 12_500_000_000
    with pytest.raises(ValueError, match="not options of a class"):
        qdiscs.read_htb_class(attribute(1, b"1234"))


@pytest.mark.parametrize(("changes", "remembers"), [
    ({"loss_percent": 0.0}, False), ({}, True), ({"loss_percent": 0.0, "jitter_ms": 1.0}, True),
    *(({"loss_percent": 0.0, "qdisc": qdisc}, True) for qdisc in ("fq", "fq_codel", "cake")),
    ({"loss_percent": 0.0, "htb_burst_bytes": 1600}, True)])
def test_qdiscs_that_remember_packets_are_replaced_before_each_trial(
        changes: dict[str, float | str], remembers: bool) -> None:
    """A queue that remembers its drops, or a pacer its flows, would affect the next trial."""
    path = replace(STAR, down=replace(STAR.down, **changes))  # type: ignore[arg-type]
    assert shaping.remembers(path) == remembers
    assert all(qdisc.is_renewed for port in (*star_ports(path), server_interface(path))
               for qdisc in port.qdiscs if not isinstance(qdisc, Netem))


# Bytes of netlink for queueing disciplines --------------------------------------------

# The bytes that tc (iproute2 6.1) sends for Port.commands on interface 1, by strace, from the
# address family on. The seed is what newer versions of tc send.
NETEM = "0a0001006e6574656d000000"
INNER = "0000000001000000 00000200 01000100 00000000"
ROOT = "0000000001000000 00000100 ffffffff 00000000"
# A qdisc, its number in its port, and the bytes.
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
def test_qdiscs_are_sent_over_netlink_as_tc_sends_them(qdisc: Netem | Queue, number: int,
                                                       sent: str) -> None:
    assert qdiscs.request(1, number, qdisc.kind, qdisc.options).hex() == sent.replace(" ", "")


def test_a_request_with_jitter_has_the_table_of_the_normal_distribution() -> None:
    delayed = Netem(delay_ms=50, jitter_ms=2.5, loss_percent=1.5, seed=3)
    head = bytes.fromhex("c2eb0b0040420f003d0ad7030000000000000000" "96980000")
    assert delayed.options.startswith(head + bytes.fromhex("0420020000806d910997919a"))
    found = attributes(delayed.options[len(head):])
    assert sorted(found) == [2, 14] and len(found[2]) == 8192


def test_the_token_bucket_needs_no_table_of_rates() -> None:
    """tc sends a table, which kernels ignore since Linux 3.8, as they know the link layer."""
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
    sent_ms = numbers_of(delayed.options)["delay_ms"] * 64e-6  # the kernel's unit is 64 ns
    assert abs(sent_ms - delay_ms) < 0.0005 + 64e-6


def test_a_qdisc_is_read_with_its_counters() -> None:
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


# Netlink on this machine's kernel ----------------------------------------------------

@pytest.fixture(name="kernel")
def fixture_kernel() -> Iterator[Netlink]:
    """Netlink in this process's own network namespace, for which it needs no root."""
    kernel = Netlink.__new__(Netlink)
    kernel.indices, kernel.pid = {"lo": socket.if_nametoindex("lo")}, os.getpid()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as opened:
        kernel.socket = opened
        for option in (10, 11):  # SOL_NETLINK's NETLINK_CAP_ACK and NETLINK_EXT_ACK
            opened.setsockopt(270, option, 1)
        yield kernel


def test_attributes_come_back_as_they_were_packed() -> None:
    packed = attribute(1, b"netem\0") + attribute(2 | 0x8000, b"") + netlink.u32(3, 7)
    assert len(packed) == 12 + 4 + 8
    assert attributes(packed) == {1: b"netem\0", 2: b"", 3: struct.pack("=I", 7)}
    for cut in (packed[:6], bytes(12)):
        with pytest.raises(ValueError, match="attribute that is cut"):
            attributes(cut)


def test_netlink_answers_questions_about_routes_and_qdiscs(kernel: Netlink) -> None:
    answers = kernel.ask([], links.RTM_GETROUTE, Route.question())
    assert answers and all(answer[0] == socket.AF_INET for answer in answers)
    assert kernel.ask([], qdiscs.GETQDISC, qdiscs.question()) is not None


def test_a_refused_request_is_named_and_leaves_no_answers_behind(kernel: Netlink) -> None:
    """A kernel refuses messages that are too short for a route, from root as well."""
    short = (links.RTM_NEWROUTE, b"\2\0\0\0")
    for requests in ([short], [short, short]):
        with pytest.raises(RequestRefused, match="Invalid argument|not permitted") as refused:
            kernel.ask(requests, links.RTM_GETROUTE, Route.question())
        assert refused.value.number == 0
    answers = kernel.ask([], links.RTM_GETROUTE, Route.question())
    assert answers == kernel.ask([], links.RTM_GETROUTE, Route.question())


def test_a_refused_question_has_the_number_after_the_last_request(kernel: Netlink) -> None:
    with pytest.raises(RequestRefused) as refused:
        kernel.ask([], 0x3FF0, b"")
    assert refused.value.number == 0


# netem's table of the normal distribution --------------------------------------------

def test_the_table_of_jitter_is_found_in_tcs_folder_of_any_machine(
        tmp_path: pathlib.Path) -> None:
    below = tmp_path / "some-machine" / "tc"
    below.mkdir(parents=True)
    (below / "normal.dist").write_text("# a comment\n -32768 7\n 32767\n")
    assert normal_distribution.__wrapped__(tmp_path) == (-32768, 7, 32767)
    with pytest.raises(OSError, match="normal.dist"):
        normal_distribution.__wrapped__(below)


# topo.py ------------------------------------------------------------------------------

def test_mn_reads_the_topologies_without_their_folder_in_its_path(tmp_path: pathlib.Path) -> None:
    """mn executes a file of --custom without __file__, and in any folder."""
    reads = ("import sys; name = sys.argv[1]; found = {}\n"
             "exec(compile(open(name).read(), name, 'exec'), found, found)\n"
             "print(*found['topos'])")
    done = subprocess.run([sys.executable, "-c", reads, str(PROJECT / "topo.py")], cwd=tmp_path,
                          capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert done.stdout == "star dumbbell\n", done.stderr
