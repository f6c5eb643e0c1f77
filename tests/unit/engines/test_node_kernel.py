"""A host's kernel over netlink and /proc: links, routes, qdiscs, sysctls and offloads.

Tests that change a network do it in a process with a network namespace of its own.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import socket
import struct
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from firstflight.base import PROJECT
from firstflight.net.link import Netem
from firstflight.net.netlink import attribute, attributes
from firstflight.testbed import engine
from firstflight.testbed.network import kernel, links
from firstflight.testbed.network.commands import sysctls_of
from firstflight.testbed.network.kernel import KernelLacks, NetworkError, NodeKernel, write_sysctls
from firstflight.testbed.network.links import (
    Neighbour, Route, dumbbell_routes, parsed_metrics,
)
from firstflight.testbed.network.ports import Port, Queue
from firstflight.testbed.network.tcp_sysctls import TCP_SYSCTLS


CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


class Node:
    """A host with the part of Mininet's interface that is used here."""

    def __init__(self) -> None:
        self.name, self.pid = "host", os.getpid()

    def intfNames(self) -> list[str]:  # noqa: N802
        return ["lo", "one", "two"]


def apart(task: Callable[[], Any]) -> Any:
    """What a task returns in a process with a network of its own.

    Skips the test where the machine does not allow such a process.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            libc = ctypes.CDLL(None)
            flags = CLONE_NEWNET | (0 if os.geteuid() == 0 else CLONE_NEWUSER)
            answer = None if libc.unshare(flags) else ("returned", task())
        except BaseException as error:
            answer = ("failed", f"{type(error).__name__}: {error}")
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pickle.load(pipe)
    os.waitpid(child, 0)
    if answer is None:
        pytest.skip("this machine lets a process have no network of its own")
    outcome, value = answer
    assert outcome == "returned", value
    return value


def linked() -> tuple[Node, NodeKernel]:
    """A host with a veth pair: interfaces "one" and "two", up, with an address each."""
    node = Node()
    node_kernel = NodeKernel(node)
    node_kernel.change(links.pair("one", MACS[0], "two", MACS[1], node.pid))
    for number, name in enumerate(("one", "two"), start=1):
        index = node_kernel.index(name)
        node_kernel.change(links.address(name, index, f"10.0.{number}.1/24"),
                           links.up(name, index))
    node_kernel.change(links.up("lo", node_kernel.index("lo")))
    return node, node_kernel


def refused(task: Callable[[], Any]) -> tuple[str, str]:
    """The class and the message of the task's NetworkError, "" for none."""
    try:
        task()
    except NetworkError as error:
        return type(error).__name__, str(error)
    return "", ""


# Links -------------------------------------------------------------------------------

def change_links() -> dict[str, Any]:
    """Creates links, joins one to a bridge, removes them, and returns what was seen meanwhile."""
    _, node_kernel = linked()
    before = sorted(name for _, name in socket.if_nameindex())
    are_indices_right = [node_kernel.index(name) == socket.if_nametoindex(name)
                         for name in ("one", "two", "lo")]

    node_kernel.change(links.bridge("switch"))
    switch = node_kernel.index("switch")
    node_kernel.change(links.into_bridge("two", node_kernel.index("two"), switch),
                       links.up("switch", switch))
    with_bridge = sorted(name for _, name in socket.if_nameindex())
    with socket.create_server(("10.0.1.1", 80)) as server, \
            socket.create_connection(server.getsockname()) as client:
        connected_to = client.getpeername()

    node_kernel.change(links.removal("one", node_kernel.index("one")),
                       links.removal("switch", switch))
    after = [name for _, name in socket.if_nameindex()]
    removed_twice = refused(lambda: node_kernel.change(links.removal("one", 12345)))
    node_kernel.close()
    closed = refused(lambda: node_kernel.change(links.bridge("late")))
    return {"before": before, "are_indices_right": are_indices_right, "with_bridge": with_bridge,
            "connected_to": connected_to, "after": after, "removed_twice": removed_twice,
            "closed": closed}


def test_links_are_created_joined_to_a_bridge_and_removed() -> None:
    seen = apart(change_links)
    assert seen["before"] == ["lo", "one", "two"] and seen["are_indices_right"] == [True] * 3
    assert seen["with_bridge"] == ["lo", "one", "switch", "two"]
    assert seen["connected_to"] == ("10.0.1.1", 80)
    assert seen["after"] == ["lo"], "both ends of a veth pair are removed together"
    assert seen["removed_twice"] == (
        "NetworkError", "host: the kernel refused 'ip link del one': No such device")
    assert seen["closed"] == ("NetworkError", "host: [Errno 9] Bad file descriptor")


# Routes and neighbours ---------------------------------------------------------------

METRICS = {"initcwnd": 10, "initrwnd": 64, "advmss": 1400, "rto_min": 300, "quickack": 1,
           "congctl": "reno"}


def install_routes() -> dict[str, Any]:
    """Installs routes and a neighbour, and returns what /proc and refusals say."""
    _, node_kernel = linked()
    node_kernel.install_routes(Route("10.0.1.7", "one", METRICS),
                               Route("default", "two", {"initcwnd": 3}, via="10.0.2.254"))
    # This one replaces the first.
    node_kernel.install_routes(Route("10.0.1.7", "one", {**METRICS, "initcwnd": 20}))
    with open("/proc/self/net/route", encoding="ascii") as file:
        routes = [line.split()[:3] for line in file][1:]
    node_kernel.install_neighbours(Neighbour("10.0.1.7", "02:00:00:00:00:09", "one"))
    with open("/proc/self/net/arp", encoding="ascii") as file:
        neighbours = [line.split() for line in file][1:]
    return {"routes": sorted(map(tuple, routes)), "neighbours": neighbours,
            "unreachable": refused(lambda: node_kernel.install_routes(
                Route("default", "one", {"initcwnd": 3}, via="192.0.2.1"))),
            "unknown congctl": refused(lambda: node_kernel.install_routes(
                Route("10.0.1.7", "one", {"congctl": "nosuch"})))}


def test_routes_are_installed_and_read_back() -> None:
    seen = apart(install_routes)
    # Interface, destination and gateway, with addresses in hexadecimal, the last byte first.
    assert ("two", "00000000", "FE02000A") in seen["routes"]
    assert [destination for _, destination, _ in seen["routes"]].count("0701000A") == 1
    assert seen["neighbours"] == [["10.0.1.7", "0x1", "0x6", "02:00:00:00:00:09", "*", "one"]]
    kind, words = seen["unreachable"]
    assert kind == "NetworkError" and words.startswith(
        "host: the kernel refused 'ip route replace default via 192.0.2.1 dev one initcwnd 3':")
    assert seen["unknown congctl"][0] == "NetworkError"


def test_a_route_or_port_that_reads_back_differently_is_an_error(
        monkeypatch: pytest.MonkeyPatch) -> None:
    node_kernel = NodeKernel.__new__(NodeKernel)
    node_kernel.name, node_kernel.kinds = "host", {}
    monkeypatch.setattr(node_kernel, "index", lambda name: 7)
    monkeypatch.setattr(node_kernel, "_ask", lambda said, question, body: [])  # nothing is there
    with pytest.raises(NetworkError, match="^the route to 10.0.1.7 has "):
        node_kernel.install_routes(Route("10.0.1.7", "one", {"initcwnd": 10}))
    with pytest.raises(NetworkError, match="^one is not as requested: "):
        node_kernel.install_ports(Port("one", (Netem(delay_ms=5.0),)))


# Qdiscs ------------------------------------------------------------------------------

FIFO, OTHER = Queue("pfifo", "limit 7", b"\7\0\0\0"), Queue("bfifo", "limit 7", b"\7\0\0\0")


def install_qdiscs() -> dict[str, Any]:
    """Installs qdiscs one after the other, and returns the kinds that are there after each."""
    _, node_kernel = linked()

    def kinds(name: str) -> list[str]:
        return [qdisc.kind for qdisc in node_kernel.qdiscs(name)[name]]

    seen = {"at first": kinds("one")}
    node_kernel.install_ports(Port("one", (FIFO,)), Port("two", ()))
    seen |= {"fifo": kinds("one"), "other port": kinds("two")}
    node_kernel.install_ports(Port("one", (FIFO,)))  # nothing changes
    # A kernel cannot change the kind of a qdisc, so one is removed and another one installed.
    node_kernel.install_ports(Port("one", (OTHER,)))
    seen["other"] = kinds("one")
    node_kernel.install_ports(Port("one", ()))
    seen |= {"removed": kinds("one"), "noted": node_kernel.kinds["one"],
             "unknown": refused(lambda: node_kernel.install_ports(
                 Port("one", (Queue("nosuch", "limit 7"),))))}
    return seen


def test_qdiscs_are_installed_changed_and_removed() -> None:
    seen = apart(install_qdiscs)
    assert seen["at first"] == seen["removed"] == seen["other port"]
    assert "pfifo" not in seen["at first"]
    assert (seen["fifo"], seen["other"], seen["noted"]) == (["pfifo"], ["bfifo"], ())
    kind, words = seen["unknown"]
    assert kind == "KernelLacks" and words.startswith(
        "this kernel has no such qdisc: tc qdisc replace dev one root")


# Settings ----------------------------------------------------------------------------

def set_sysctls_and_offloads() -> dict[str, Any]:
    """Sets sysctls, switches offloads off, and returns what the kernel has after that."""
    node, _ = linked()
    pinned, requested = "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_sack"
    seen: dict[str, Any] = {
        "pinned": kernel.pin_sysctls(node, {pinned: "0", "net.ipv4.tcp_nosuch": "1"},
                                     {requested: "0"}),
        "unknown": refused(lambda: kernel.pin_sysctls(node, {}, {"net.ipv4.tcp_nosuch": "1"}))}
    kernel.set_sysctls(node, {requested: "1"})
    with open("/proc/sys/net/ipv4/tcp_sack", encoding="ascii") as file:
        seen["set"] = file.read().strip()

    kernel.switch_offloads_off(node)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        # The command that reads an offload is the one before the command that sets it.
        seen["offloads"] = [kernel.ethtool(any_socket, interface, command - 1)
                            for interface in ("one", "two")
                            for command in kernel.OFFLOADS.values()]
        set_receive = kernel.OFFLOADS["generic-receive-offload"]
        kernel.ethtool(any_socket, "one", set_receive, 1)
        seen["switched on"] = kernel.ethtool(any_socket, "one", set_receive - 1)
    return seen


def test_sysctls_and_offloads_are_set_and_read_back() -> None:
    seen = apart(set_sysctls_and_offloads)
    assert seen["pinned"] == {"net.ipv4.tcp_slow_start_after_idle": "0", "net.ipv4.tcp_sack": "0"}
    assert seen["unknown"] == (KernelLacks.__name__,
                               "this kernel has no sysctl net.ipv4.tcp_nosuch")
    assert seen["set"] == "1"
    assert seen["offloads"] == [0] * 6 and seen["switched on"] == 1


def test_an_offload_that_stays_on_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """METHOD says what is read back. Other tests here have its qdiscs, routes and sysctls."""
    text = " ".join((PROJECT / "docs" / "METHOD.md").read_text(encoding="utf-8").split())
    assert ("The qdiscs with each of their options, the routes, the sysctls and the offloads are"
            " read back from the kernel and compared. Addresses and neighbours are not") in text
    monkeypatch.setattr(kernel, "network_of", lambda pid: nullcontext())
    monkeypatch.setattr(kernel, "ethtool", lambda socket, name, command, value=0: int(
        command == kernel.OFFLOADS["generic-receive-offload"] - 1))
    node = Node()
    monkeypatch.setattr(node, "intfNames", lambda: ["lo", "one"], raising=False)
    with pytest.raises(NetworkError, match="^one keeps generic-receive-offload on$"):
        kernel.switch_offloads_off(node)


# Without the congestion control: the machine decides which ones a network of its own may have.
PINNED = {name: value for name, value in TCP_SYSCTLS.items()
          if name != kernel.CONGESTION_CONTROL}


def pinned() -> dict[str, str]:
    return kernel.pin_sysctls(Node(), PINNED)


def test_every_pinned_sysctl_exists_and_takes_its_value() -> None:
    """Sysctls that an older kernel lacks are left out."""
    here = {name: value for name, value in PINNED.items()
            if kernel.SYSCTLS.joinpath(*name.split(".")).exists()}
    assert len(here) > 40 and apart(pinned) == here


@pytest.mark.parametrize("system, advice", [
    ('NAME="Ubuntu"', "install linux-modules-extra-6.1.0, or use --engine uml"),
    ("NAME=Debian", "install the linux-image package whose modules match 6.1.0 (it holds"),
    (None, "install the linux-image package whose modules match 6.1.0 (it holds")])
def test_advice_on_a_kernel_without_netem_fits_the_distribution(monkeypatch: pytest.MonkeyPatch,
                                                                system: str | None,
                                                                advice: str) -> None:
    def read(path: Path) -> str:
        if system is None:
            raise FileNotFoundError
        return system
    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr("platform.release", lambda: "6.1.0")
    assert engine.netem_advice().startswith(advice)


# Sysctls are written to files, and their values are no commands ----------------------

@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder in the place of /proc/sys, with two sysctls."""
    folder = tmp_path / "sys" / "net" / "ipv4"
    folder.mkdir(parents=True)
    for name in ("tcp_sack", "tcp_rmem"):
        (folder / name).write_text("")
    return tmp_path / "sys"


def test_sysctls_are_written_and_read_back(root: Path) -> None:
    requested = {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_rmem": "1 2 3", "net.ipv4.tcp_none": "1"}
    assert write_sysctls(requested, "here", root) == {"net.ipv4.tcp_sack": "0",
                                                  "net.ipv4.tcp_rmem": "1 2 3"}
    assert (root / "net/ipv4/tcp_rmem").read_text() == "1 2 3"
    assert not (root / "net/ipv4/tcp_none").exists()


def test_a_sysctls_value_reaches_no_shell(root: Path, tmp_path: Path) -> None:
    hostile = f"0'; touch {tmp_path}/made; '$(touch {tmp_path}/made)"
    write_sysctls({"net.ipv4.tcp_sack": hostile}, "here", root)
    assert (root / "net/ipv4/tcp_sack").read_text() == hostile
    assert not (tmp_path / "made").exists()


def test_a_sysctl_that_reads_back_differently_is_an_error(root: Path) -> None:
    (root / "net/ipv4/tcp_sack").write_text("1 2")  # "0" overwrites its first character only
    with pytest.raises(NetworkError, match="here are not as requested: .*tcp_sack': '0 2'"):
        write_sysctls({"net.ipv4.tcp_sack": "0"}, "here", root)


def test_a_sysctl_that_the_kernel_refuses_is_an_error_with_its_value() -> None:
    """kernel.ostype can only be read. A user who is not root may write no sysctl at all."""
    with pytest.raises(NetworkError, match="here cannot have kernel.ostype = 'x': "):
        write_sysctls({"kernel.ostype": "x"}, "here")


# Bytes of netlink for links ----------------------------------------------------------

IFINFOMSG_BYTES = 16


def test_the_request_for_an_address_has_the_length_of_its_network() -> None:
    words, _, body = links.address("h1-eth0", 5, "10.0.1.254/24")
    assert words == "ip address add 10.0.1.254/24 dev h1-eth0"
    assert struct.unpack_from("=BBBBI", body) == (2, 24, 0, 0, 5)
    assert attributes(body[8:])[2] == bytes([10, 0, 1, 254])


def test_the_request_for_a_bridge_has_no_forward_delay() -> None:
    _, _, body = links.bridge("s1")
    data = attributes(attributes(attributes(body[IFINFOMSG_BYTES:])[18])[2])
    assert data == {1: bytes(4), 23: b"\0"}


# Bytes of netlink for routes and neighbours ------------------------------------------

def test_every_client_of_the_dumbbell_has_its_window() -> None:
    assert [route.command for route in dumbbell_routes("server2", [3, 10], "cubic")] == [
        f"ip route replace 10.0.1.{number} via 10.0.2.254 dev server2-eth0"
        f" initcwnd {window} congctl cubic" for number, window in ((1, 3), (2, 10))]


def answer(route: Route, interface: int = 7) -> bytes:
    """A kernel's report of a route: the request, with the number of a table, which is ignored."""
    return route.request(interface) + attribute(15, struct.pack("=I", 254))


def test_a_route_with_other_metrics_than_requested_is_a_difference() -> None:
    route = Route("10.0.0.1", "server-eth0", {"initcwnd": 10, "congctl": "cubic"})
    others = [answer(Route("10.0.0.2", "server-eth0", {"initcwnd": 4})),
              answer(Route("default", "server-eth0", {}, via="10.0.0.9"))]
    assert route.differences([*others, answer(route)]) == []
    for metrics in ({"initcwnd": 4, "congctl": "cubic"}, {"initcwnd": 10, "congctl": "reno"},
                    {"initcwnd": 10}, {**route.metrics, "quickack": 1}, {}):
        reported = Route(route.to, route.interface, metrics)
        assert route.differences([*others, answer(reported)]) == [
            f"{metrics}, requested {route.metrics}"]
    (missing,) = route.differences(others)
    assert missing.startswith("nothing, requested")


def test_an_unknown_metric_is_named_by_its_number() -> None:
    assert parsed_metrics(attribute(9, struct.pack("=I", 5))) == {"9": 5}


# Routes, and the bytes that ip (iproute2 6.1) sends for their commands on interface 1, by strace.
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
def test_routes_are_sent_over_netlink_as_ip_sends_them(route: Route, sent: str) -> None:
    assert route.request(1).hex() == sent.replace(" ", "")


def test_a_neighbour_is_sent_over_netlink_as_ip_sends_it() -> None:
    known = Neighbour("10.0.0.7", "00:11:22:33:44:55", "lo")
    assert known.command == "ip neigh replace 10.0.0.7 lladdr 00:11:22:33:44:55 dev lo"
    assert known.request(1).hex() == ("0200000001000000800000000800" "01000a0000070a000200"
                                      "0011223344550000")


def test_a_trial_sets_the_clients_receive_and_the_servers_send_buffer() -> None:
    """A buffer that the scenario sets is kept."""
    rmem, wmem = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
    job = {"buffers": {rmem: "1 2 3", wmem: "4 5 6"}, "sysctls": {"net.ipv4.tcp_frto": "0"}}
    assert sysctls_of({}, ()) == {"client": {}, "server": {}}
    assert sysctls_of(job, ()) == {
        "client": {rmem: "1 2 3"}, "server": {"net.ipv4.tcp_frto": "0", wmem: "4 5 6"}}
    assert sysctls_of(job, {rmem: "7 8 9"})["client"] == {}
    sack = {"net.ipv4.tcp_sack": "0"}
    assert sysctls_of({**job, "host_sysctls": sack}, ()) == {
        "client": {**sack, rmem: "1 2 3"},
        "server": {**sack, "net.ipv4.tcp_frto": "0", wmem: "4 5 6"}}
    assert sysctls_of(job, (rmem, wmem))["server"] == job["sysctls"]
