"""What a node's kernel is told and answers: settings, routes."""

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
    """As Mininet's: a name, a process in its network, and its interfaces."""

    def __init__(self) -> None:
        self.name, self.pid = "host", os.getpid()

    def intfNames(self) -> list[str]:  # noqa: N802
        return ["lo", "one", "two"]


def apart(task: Callable[[], Any]) -> Any:
    """What a task returns in a process with a network of its own; None where there is none."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            libc = ctypes.CDLL(None)
            flags = CLONE_NEWNET | (0 if os.geteuid() == 0 else CLONE_NEWUSER)
            told = None if libc.unshare(flags) else ("told", task())
        except BaseException as error:
            told = ("failed", f"{type(error).__name__}: {error}")
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(told, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pickle.load(pipe)
    os.waitpid(child, 0)
    if told is None:
        pytest.skip("this machine lets a process have no network of its own")
    assert told[0] == "told", told[1]
    return told[1]


def linked() -> tuple[Node, NodeKernel]:
    """Two interfaces that are each other's end, up, with an address each."""
    node = Node()
    of = NodeKernel(node)
    of.change(links.pair("one", MACS[0], "two", MACS[1], node.pid))
    for place, name in enumerate(("one", "two"), start=1):
        of.change(links.address(name, of.index(name), f"10.0.{place}.1/24"),
                  links.up(name, of.index(name)))
    of.change(links.up("lo", of.index("lo")))
    return node, of


def refused(task: Callable[[], Any]) -> tuple[str, str]:
    try:
        task()
    except NetworkError as error:
        return type(error).__name__, str(error)
    return "", ""


# Links -------------------------------------------------------------------------------

def build() -> dict[str, Any]:
    node, of = linked()
    before = sorted(name for _, name in socket.if_nameindex())
    numbers = [of.index(name) == socket.if_nametoindex(name) for name in ("one", "two", "lo")]
    of.change(links.bridge("switch"))
    switch = of.index("switch")
    of.change(links.into_bridge("two", of.index("two"), switch), links.up("switch", switch))
    with_bridge = sorted(name for _, name in socket.if_nameindex())
    with socket.create_server(("10.0.1.1", 80)) as server, \
            socket.create_connection(server.getsockname()) as client:
        talked = client.getpeername()
    of.change(links.removal("one", of.index("one")), links.removal("switch", switch))
    after = [name for _, name in socket.if_nameindex()]
    again = refused(lambda: of.change(links.removal("one", 12345)))
    of.close()
    closed = refused(lambda: of.change(links.bridge("late")))
    return {"before": before, "numbers": numbers, "with_bridge": with_bridge, "talked": talked,
            "after": after, "again": again, "closed": closed}


def test_links_are_made_joined_and_removed() -> None:
    told = apart(build)
    assert told["before"] == ["lo", "one", "two"] and told["numbers"] == [True] * 3
    assert told["with_bridge"] == ["lo", "one", "switch", "two"]
    assert told["talked"] == ("10.0.1.1", 80)
    assert told["after"] == ["lo"], "the far end goes with it"
    assert told["again"] == ("NetworkError", "host: the kernel refused 'ip link del one':"
                             " No such device")
    assert told["closed"] == ("NetworkError", "host: [Errno 9] Bad file descriptor")


# Routes and neighbours ---------------------------------------------------------------

METRICS = {"initcwnd": 10, "initrwnd": 64, "advmss": 1400, "rto_min": 300, "quickack": 1,
           "congctl": "reno"}


def route() -> dict[str, Any]:
    _, of = linked()
    requested = Route("10.0.1.7", "one", METRICS)
    of.install_routes(requested, Route("default", "two", {"initcwnd": 3}, via="10.0.2.254"))
    of.install_routes(Route("10.0.1.7", "one", {**METRICS, "initcwnd": 20}))  # in its place
    with open("/proc/self/net/route", encoding="ascii") as file:
        lines = [line.split()[:3] for line in file][1:]
    of.install_neighbours(Neighbour("10.0.1.7", "02:00:00:00:00:09", "one"))
    with open("/proc/self/net/arp", encoding="ascii") as file:
        known = [line.split() for line in file][1:]
    return {"lines": sorted(map(tuple, lines)), "known": known,
            "nowhere": refused(lambda: of.install_routes(
                Route("default", "one", {"initcwnd": 3}, via="192.0.2.1"))),
            "congctl": refused(lambda: of.install_routes(
                Route("10.0.1.7", "one", {"congctl": "nosuch"})))}


def test_routes_are_installed_and_read_back() -> None:
    told = apart(route)
    assert ("two", "00000000", "FE02000A") in told["lines"]
    assert [line[1] for line in told["lines"]].count("0701000A") == 1
    assert told["known"] == [["10.0.1.7", "0x1", "0x6", "02:00:00:00:00:09", "*", "one"]]
    kind, words = told["nowhere"]
    assert kind == "NetworkError" and words.startswith(
        "host: the kernel refused 'ip route replace default via 192.0.2.1 dev one initcwnd 3':")
    assert told["congctl"][0] == "NetworkError"


def test_a_route_or_port_that_reads_back_differently_is_an_error(
        monkeypatch: pytest.MonkeyPatch) -> None:
    of = NodeKernel.__new__(NodeKernel)
    of.name, of.kinds = "host", {}
    monkeypatch.setattr(of, "index", lambda name: 7)
    monkeypatch.setattr(of, "_ask", lambda said, question, body: [])
    with pytest.raises(NetworkError, match="^the route to 10.0.1.7 has "):
        of.install_routes(Route("10.0.1.7", "one", {"initcwnd": 10}))
    with pytest.raises(NetworkError, match="^one is not as requested: "):
        of.install_ports(Port("one", (Netem(delay_ms=5.0),)))


# Qdiscs ------------------------------------------------------------------------------

FIFO, OTHER = Queue("pfifo", "limit 7", b"\7\0\0\0"), Queue("bfifo", "limit 7", b"\7\0\0\0")


def qdisc() -> dict[str, Any]:
    _, of = linked()

    def kinds(name: str) -> list[str]:
        return [each.kind for each in of.qdiscs(name)[name]]
    found = {"none": kinds("one")}
    of.install_ports(Port("one", (FIFO,)), Port("two", ()))
    found |= {"fifo": kinds("one"), "beside": kinds("two")}
    of.install_ports(Port("one", (FIFO,)))  # the same again
    of.install_ports(Port("one", (OTHER,)))  # a kernel changes no kind: removed, then new
    found["other"] = kinds("one")
    of.install_ports(Port("one", ()))
    found |= {"removed": kinds("one"), "forgotten": of.kinds["one"],
              "lacks": refused(lambda: of.install_ports(
                  Port("one", (Queue("nosuch", "limit 7"),))))}
    return found


def test_qdiscs_are_installed_changed_and_removed() -> None:
    told = apart(qdisc)
    assert told["none"] == told["removed"] == told["beside"] and "pfifo" not in told["none"]
    assert (told["fifo"], told["other"], told["forgotten"]) == (["pfifo"], ["bfifo"], ())
    kind, words = told["lacks"]
    assert kind == "KernelLacks" and words.startswith(
        "this kernel has no such qdisc: tc qdisc replace dev one root")


# Settings ----------------------------------------------------------------------------

def settings() -> dict[str, Any]:
    node, _ = linked()
    name, wanted = "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_sack"
    found = {"pinned": kernel.pin_sysctls(node, {name: "0", "net.ipv4.tcp_nosuch": "1"},
                                          {wanted: "0"}),
             "lacks": refused(lambda: kernel.pin_sysctls(node, {}, {"net.ipv4.tcp_nosuch": "1"})),
             "ipv6": "1"}
    kernel.set_sysctls(node, {wanted: "1"})
    with open("/proc/sys/net/ipv4/tcp_sack", encoding="ascii") as file:
        found["set"] = file.read().strip()
    kernel.switch_offloads_off(node)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        found["on"] = [kernel.ethtool(any_socket, interface, command - 1)
                       for interface in ("one", "two") for command in kernel.OFFLOADS.values()]
        kernel.ethtool(any_socket, "one", kernel.OFFLOADS["generic-receive-offload"], 1)
        found["again"] = kernel.ethtool(any_socket, "one",
                                        kernel.OFFLOADS["generic-receive-offload"] - 1)
    return found


def test_sysctls_and_offloads_are_set_and_read_back() -> None:
    told = apart(settings)
    assert told["pinned"] == {"net.ipv4.tcp_slow_start_after_idle": "0", "net.ipv4.tcp_sack": "0"}
    assert told["lacks"] == (KernelLacks.__name__, "this kernel has no sysctl net.ipv4.tcp_nosuch")
    assert told["set"] == "1" and told["on"] == [0] * 6 and told["again"] == 1


def test_an_offload_that_stays_on_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What METHOD says is read back: qdiscs, routes (above), sysctls (below) and these."""
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


# All but the congestion control: which ones another network may have, the machine decides.
PINNED = {name: value for name, value in TCP_SYSCTLS.items()
          if name != kernel.CONGESTION_CONTROL}


def pinned() -> dict[str, str]:
    return kernel.pin_sysctls(Node(), PINNED)


def test_every_pinned_sysctl_exists_and_takes_its_value() -> None:
    """An older kernel lacks some, which are left out."""
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


# Sysctls are written to their files, whatever they say -------------------------------

@pytest.fixture
def root(tmp_path: Path) -> Path:
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
    (root / "net/ipv4/tcp_sack").write_text("1 2")  # longer than what is written: a rest stays
    with pytest.raises(NetworkError, match="here are not as requested: .*tcp_sack': '0 2'"):
        write_sysctls({"net.ipv4.tcp_sack": "0"}, "here", root)


def test_a_sysctl_that_the_kernel_refuses_is_an_error_with_its_value() -> None:
    """What a sysctl only tells; a user without root may write none at all."""
    with pytest.raises(NetworkError, match="here cannot have kernel.ostype = 'x': "):
        write_sysctls({"kernel.ostype": "x"}, "here")


# Routes -------------------------------------------------------------------------------

# Links -------------------------------------------------------------------------------

IFINFOMSG_BYTES = 16


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


def test_every_client_of_the_dumbbell_has_its_window() -> None:
    assert [route.command for route in dumbbell_routes("server2", [3, 10], "cubic")] == [
        f"ip route replace 10.0.1.{number} via 10.0.2.254 dev server2-eth0"
        f" initcwnd {window} congctl cubic" for number, window in ((1, 3), (2, 10))]


def answer(route: Route, interface: int = 7) -> bytes:
    """As a kernel tells a route: what it was sent, and a table's number that is passed over."""
    return route.request(interface) + attribute(15, struct.pack("=I", 254))


def test_a_route_with_other_metrics_than_requested_is_a_difference() -> None:
    route = Route("10.0.0.1", "server-eth0", {"initcwnd": 10, "congctl": "cubic"})
    others = [answer(Route("10.0.0.2", "server-eth0", {"initcwnd": 4})),
              answer(Route("default", "server-eth0", {}, via="10.0.0.9"))]
    assert route.differences([*others, answer(route)]) == []
    for metrics in ({"initcwnd": 4, "congctl": "cubic"}, {"initcwnd": 10, "congctl": "reno"},
                    {"initcwnd": 10}, {**route.metrics, "quickack": 1}, {}):
        told = Route(route.to, route.interface, metrics)
        assert route.differences([*others,
                                  answer(told)]) == [f"{metrics}, requested {route.metrics}"]
    (missing,) = route.differences(others)
    assert missing.startswith("nothing, requested")


def test_an_unknown_metric_is_named_by_its_number() -> None:
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
def test_routes_are_sent_over_netlink_as_ip_sends_them(route: Route, sent: str) -> None:
    assert route.request(1).hex() == sent.replace(" ", "")


def test_a_neighbour_is_sent_as_ip_would() -> None:
    known = Neighbour("10.0.0.7", "00:11:22:33:44:55", "lo")
    assert known.command == "ip neigh replace 10.0.0.7 lladdr 00:11:22:33:44:55 dev lo"
    assert known.request(1).hex() == ("0200000001000000800000000800" "01000a0000070a000200"
                                      "0011223344550000")


def test_a_trial_sets_the_clients_receive_and_the_servers_send_buffer() -> None:
    """What the scenario says of one stands."""
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
