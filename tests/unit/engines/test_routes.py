"""Routes, links and neighbours: what ip is told, what lies in the bytes, and what is noticed."""

from __future__ import annotations

import struct

import pytest

from firstflight.net.netlink import attribute, attributes
from firstflight.testbed.network import links
from firstflight.testbed.network.commands import sysctls_of
from firstflight.testbed.network.links import (Neighbour, Route, RouteOptions, dumbbell_routes,
                                               parsed_metrics, star_routes)


# Links -------------------------------------------------------------------------------

IFINFOMSG_BYTES = 16


def test_a_pair_names_both_ends_and_the_network_of_the_far_one() -> None:
    words, _, body = links.pair("h1-eth0", "02:00:00:00:00:01", "s1-eth1", "02:00:00:00:00:02", 77)
    assert words == ("ip link add h1-eth0 address 02:00:00:00:00:01 type veth"
                     " peer name s1-eth1 address 02:00:00:00:00:02 netns 77")
    near = attributes(body[IFINFOMSG_BYTES:])
    assert (near[3], near[1]) == (b"h1-eth0\0", bytes([2, 0, 0, 0, 0, 1]))
    kind = attributes(near[18])
    assert kind[1] == b"veth\0"
    far = attributes(attributes(kind[2])[1][IFINFOMSG_BYTES:])
    assert (far[3], far[1]) == (b"s1-eth1\0", bytes([2, 0, 0, 0, 0, 2]))
    assert struct.unpack("=I", far[19]) == (77,)


def test_an_address_comes_with_its_network() -> None:
    words, _, body = links.address("h1-eth0", 5, "10.0.1.254/24")
    assert words == "ip address add 10.0.1.254/24 dev h1-eth0"
    assert struct.unpack_from("=BBBBI", body) == (2, 24, 0, 0, 5)
    assert attributes(body[8:])[2] == bytes([10, 0, 1, 254])


def test_a_bridge_forwards_from_the_first_packet_on() -> None:
    _, _, body = links.bridge("s1")
    data = attributes(attributes(attributes(body[IFINFOMSG_BYTES:])[18])[2])
    assert data == {1: bytes(4), 23: b"\0"}


# Routes and neighbours ---------------------------------------------------------------

def test_the_windows_stand_on_either_hosts_route() -> None:
    server, client = star_routes(10, 27, "cubic")
    assert server.command == "ip route replace 10.0.0.1 dev server-eth0 initcwnd 10 congctl cubic"
    assert client.command == "ip route replace 10.0.0.2 dev client-eth0 initrwnd 27"


def test_options_become_metrics() -> None:
    server, client = star_routes(1, 80, "reno", RouteOptions(200, True, 536))
    assert server.command.endswith("rto_min 200ms")
    assert client.command.endswith("quickack 1 advmss 536")


def test_every_client_of_the_dumbbell_has_its_window() -> None:
    assert [route.command for route in dumbbell_routes("server2", [3, 10], "cubic")] == [
        f"ip route replace 10.0.1.{number} via 10.0.2.254 dev server2-eth0"
        f" initcwnd {window} congctl cubic" for number, window in ((1, 3), (2, 10))]


def answer(route: Route, interface: int = 7) -> bytes:
    """As a kernel tells a route: what it was sent, and a table's number that is passed over."""
    return route.request(interface) + attribute(15, struct.pack("=I", 254))


def test_another_metric_than_was_asked_is_noticed() -> None:
    route = Route("10.0.0.1", "server-eth0", {"initcwnd": 10, "congctl": "cubic"})
    others = [answer(Route("10.0.0.2", "server-eth0", {"initcwnd": 4})),
              answer(Route("default", "server-eth0", {}, via="10.0.0.9"))]
    assert route.differences([*others, answer(route)]) == []
    for metrics in ({"initcwnd": 4, "congctl": "cubic"}, {"initcwnd": 10, "congctl": "reno"},
                    {"initcwnd": 10}, {**route.metrics, "quickack": 1}, {}):
        told = Route(route.to, route.interface, metrics)
        assert route.differences([*others, answer(told)]) == [f"{metrics}, requested {route.metrics}"]
    (missing,) = route.differences(others)
    assert missing.startswith("nothing, requested")


def test_a_metric_that_nobody_asked_for_is_told_by_its_number() -> None:
    assert parsed_metrics(attribute(9, struct.pack("=I", 5))) == {"9": 5}


# What strace shows that ip (iproute2 6.1) sends for the words of `command` on interface 1.
SENT = [
    (Route("10.0.0.1", "lo", {"initcwnd": 10, "congctl": "cubic", "rto_min": 300}),
     "02200000fe03fd0100000000 080001000a000001 0800040001000000 28000800 08000b000a000000"
     " 0900100063756269630000 00 08000d002c010000 0800010000200000"),
    (Route("10.0.0.2", "lo", {"initrwnd": 64, "quickack": 1, "advmss": 1000}),
     "02200000fe03fd0100000000 080001000a000002 0800040001000000 1c000800 08000e0040000000"
     " 08000f0001000000 08000800e8030000"),
    (Route("default", "lo", {"initrwnd": 64}, via="10.0.0.9"),
     "02000000fe03000100000000 080005000a000009 0800040001000000 0c000800 08000e0040000000")]


@pytest.mark.parametrize(("route", "sent"), SENT)
def test_netlink_is_sent_what_ip_would(route: Route, sent: str) -> None:
    assert route.request(1).hex() == sent.replace(" ", "")


def test_a_neighbour_is_sent_as_ip_would() -> None:
    known = Neighbour("10.0.0.7", "00:11:22:33:44:55", "lo")
    assert known.command == "ip neigh replace 10.0.0.7 lladdr 00:11:22:33:44:55 dev lo"
    assert known.request(1).hex() == ("0200000001000000800000000800" "01000a0000070a000200"
                                      "0011223344550000")


def test_a_trials_own_buffers_are_the_clients_and_the_servers() -> None:
    """What the scenario says of one stands."""
    rmem, wmem = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
    job = {"buffers": {rmem: "1 2 3", wmem: "4 5 6"}, "sysctls": {"net.ipv4.tcp_frto": "0"}}
    assert sysctls_of({}, ()) == {"client": {}, "server": {}}
    assert sysctls_of(job, ()) == {
        "client": {rmem: "1 2 3"}, "server": {"net.ipv4.tcp_frto": "0", wmem: "4 5 6"}}
    assert sysctls_of(job, {rmem: "7 8 9"})["client"] == {}
    assert sysctls_of(job, (rmem, wmem))["server"] == job["sysctls"]
