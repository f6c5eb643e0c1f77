"""What is said for a shape, and that what a kernel tells back otherwise is noticed."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from net import qdiscs
from net.netem import Netem, numbers_of
from net.netlink import attribute
from net.qdiscs import InstalledQdisc
from testbed.network.ports import HtbShaper, Port, Queue
from testbed.network.shaping import (CLIENT_PORT, SERVER_PORT, DumbbellShape, Shape, dropped,
                                     dropped_between)

# For every parameter of netem: a value, tc's words for it, what a kernel counts for it,
# and a value that is wrong.
PARAMETERS: dict[str, tuple[float, str, int, float]] = {
    "delay_ms": (10.2, "delay 10200us", 159375, 10.21),
    "jitter_ms": (2.5, "2500us distribution normal", 39062, 2.6),
    "rate_kbps": (56.0, "rate 56000bit", 7000, 57.0),
    "limit_packets": (12, "limit 12", 12, 13),
    "loss_percent": (1.5, "loss random 1.5%", 64424509, 1.6),
    "burst_begins_percent": (0.2, "loss gemodel 0.2%", 8589935, 0.3),
    "burst_ends_percent": (20.0, "20%", 858993459, 21.0),
}
STAR = Shape(rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=500, queue_packets=20, loss_percent=2,
             seed=7)
DUMBBELL = DumbbellShape(
    bandwidth_kbps=2000, queue_packets=50, queue="droptail", client_rtt_ms=(40.0, 300.0),
    client_kbps=(0.0, 64.0), access_queue_packets=30, client_loss_percent=(0.0, 1.0), seed=3)


def installed(port: Port, *others: Netem | Queue) -> list[InstalledQdisc]:
    """As a kernel tells a port's qdiscs, if it took `others` instead."""
    return [InstalledQdisc(3, number << 16, 0, qdisc.kind, qdisc.options)
            for number, qdisc in enumerate(others or port.qdiscs, start=1)]


def test_every_parameter_of_netem_is_read_back_and_tested() -> None:
    names = [parameter.name for parameter in Netem().parameters]
    assert names == [each.name for each in fields(Netem) if each.name != "seed"]
    assert names == list(PARAMETERS), "PARAMETERS, in this file, needs a line for each"


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_is_asked_and_compared(name: str) -> None:
    value, words, counted, wrong = PARAMETERS[name]
    requested = replace(Netem(), **{name: value})
    assert words in requested.arguments
    assert numbers_of(requested.options)[name] == counted
    assert list(requested.differences(requested.options)) == []
    (difference,) = replace(requested, **{name: wrong}).differences(requested.options)
    assert name in difference and f"{value:.3g}" in difference and f"{wrong:g}" in difference
    # Asked for nothing, it is not to be there either.
    (unasked,) = replace(requested, **{name: 0}).differences(requested.options)
    assert name in unasked


def test_what_is_random_is_seeded_and_says_so() -> None:
    lossy = Netem(loss_percent=2, seed=7)
    assert lossy.arguments == "limit 1000000 loss random 2% seed 7"
    assert lossy.options.endswith(attribute(14, (7).to_bytes(8, "little")))
    assert "seed" not in Netem(delay_ms=5, seed=7).arguments
    assert Netem(delay_ms=5, seed=7).options == Netem(delay_ms=5).options


def test_the_star_delays_and_loses_first_and_queues_then() -> None:
    to_client, to_server = STAR.ports()
    assert to_client.commands == [
        "tc qdisc replace dev s1-eth1 root handle 1: netem delay 50000us limit 1000000"
        " loss random 2% seed 7",
        "tc qdisc replace dev s1-eth1 parent 1:1 handle 2: netem rate 1000000bit limit 20"]
    assert to_server.commands == [
        "tc qdisc replace dev s1-eth2 root handle 1: netem delay 50000us limit 1000000",
        "tc qdisc replace dev s1-eth2 parent 1:1 handle 2: netem rate 500000bit limit 20"]
    assert [qdisc.random for qdisc in to_client.qdiscs] == [True, False]


def test_a_port_that_is_not_as_asked_names_what_differs() -> None:
    port, _ = STAR.ports()
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


@pytest.mark.parametrize(("queue", "kinds", "said"), [
    ("cake", ["cake"], "cake bandwidth 2000000bit raw flows memlimit 75700"),
    ("fq_codel", ["tbf", "fq_codel"], "fq_codel limit 50 noecn")])
def test_another_queue_at_the_bottleneck(queue: str, kinds: list[str], said: str) -> None:
    port, _ = replace(DUMBBELL, queue=queue).router_ports()
    assert [qdisc.kind for qdisc in port.qdiscs] == kinds
    assert port.commands[-1].endswith(said)
    assert port.differences(installed(port)) == []
    assert port.differences(installed(port, Netem(rate_kbps=2000)))


def test_only_the_kind_of_another_queue_is_compared() -> None:
    port = Port(CLIENT_PORT, (Queue("fq", ""),))
    assert port.commands == ["tc qdisc replace dev s1-eth1 root handle 1: fq"]
    assert port.differences(installed(port)) == []
    assert port.differences(installed(port, Queue("pfifo", ""))) == ["qdisc 1: pfifo, requested fq"]


def test_drops_of_the_queue_stand_apart_from_random_ones() -> None:
    """The outer qdisc counts both."""
    outer, inner = installed(STAR.ports()[0])
    assert dropped([replace(outer, drops=14), replace(inner, drops=9)]) == {
        "queue": 9, "random": 5}
    assert dropped([replace(outer, drops=4)]) == {"queue": 0, "random": 4}


def test_the_counters_of_a_port_go_on_from_trial_to_trial() -> None:
    before = {CLIENT_PORT: {"queue": 9, "random": 5}, SERVER_PORT: {"queue": 1, "random": 0}}
    after = {CLIENT_PORT: {"queue": 12, "random": 5}, SERVER_PORT: {"queue": 1, "random": 0}}
    assert dropped_between(before, after) == {"to_client": {"queue": 3, "random": 0},
                                              "to_server": {"queue": 0, "random": 0}}


def test_htb_shapes_in_the_place_of_netem_and_is_read_back() -> None:
    to_client, to_server = replace(STAR, htb_burst_bytes=15360).ports()
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
        "htb rate 124875, requested 125000", "htb burst 1921921, requested 1920000",
        "htb cburst 200187, requested 200000"]
    assert list(bucket.differences(HtbShaper(1000, 15000).class_options)) == [
        "htb burst 1875000, requested 1920000"]
    assert list(bucket.differences(b"")) == ["htb has no class, requested one"]


def test_a_fast_htb_is_told_as_it_is() -> None:
    assert qdiscs.read_htb_class(HtbShaper(100_000_000, 15360).class_options).rate == 12_500_000_000
    with pytest.raises(ValueError, match="not options of a class"):
        qdiscs.read_htb_class(attribute(1, b"1234"))


@pytest.mark.parametrize(("changes", "remembers"), [
    ({"loss_percent": 0.0}, False), ({}, True), ({"loss_percent": 0.0, "jitter_ms": 1.0}, True),
    *(({"loss_percent": 0.0, "qdisc": qdisc}, True) for qdisc in ("fq", "fq_codel", "cake")),
    ({"loss_percent": 0.0, "htb_burst_bytes": 1600}, True)])
def test_what_has_a_memory_is_made_for_each_trial(changes: dict[str, float | str],
                                                  remembers: bool) -> None:
    """A queue that counts its drops, or a pacer's flows, would tell a trial of the one before."""
    shape = replace(STAR, **changes)  # type: ignore[arg-type]
    assert shape.remembers == remembers
    assert all(qdisc.anew for port in (*shape.ports(), shape.server_interface)
               for qdisc in port.qdiscs if not isinstance(qdisc, Netem))
