"""Requests for links: the words and what lies in the bytes."""

from __future__ import annotations

import struct

from net.netlink import attributes
from testbed.network import links

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
