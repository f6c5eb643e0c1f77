"""Each command that --users prints, and each in the table of docs/QUESTIONS.md, sets the window.

The commands are typed as they stand, on default routes as DHCP and router advertisements make them.
The window is read back from the kernel, and --probe observes it on the wire.

The two hosts are namespaces of this machine's kernel, since the guest's kernel has no IPv6.
Programs that keep a window come from Debian's packages, unpacked in a folder of the test's own:
nothing is installed here.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from firstflight.study.users import window_commands as commands
from tests.conftest import PROJECT
from tests.running import run_program, wait_until

GATEWAY, SERVER, CLIENT = "192.0.2.1", "192.0.2.5", "203.0.113.1"
GATEWAY6, SERVER6, CLIENT6 = "fe80::1", "2001:db8::5", "2001:db8:1::1"
WINDOW = 32
NETWORKD = Path("/lib/systemd/systemd-networkd")
PACKAGES = ("ifupdown", "netplan.io", "libnetplan0", "network-manager", "libnm0", "libndp0",
            "libteamdctl0", "libjansson4", "libmm-glib0", "libpsl5", "libcurl3-gnutls",
            "libbluetooth3")
BUS = """<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/>
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/></policy></busconfig>"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces with routes need root")


class Host:
    """Namespaces for network, mounts and processes; all processes in them end with the test."""

    def __init__(self, stack: ExitStack) -> None:
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child",
             "bash", "-c", "mount -t tmpfs none /run && mount -t sysfs -o ro none /sys"
             # No program asks for a name: it would wait for an answer that nobody gives.
             " && mount --bind /dev/null /etc/resolv.conf"
             " && echo ready && sleep infinity"], stdout=subprocess.PIPE, text=True)
        stack.callback(self._end)
        assert self.holder.stdout is not None and self.holder.stdout.readline() == "ready\n"
        children = Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children")
        self.pid = children.read_text().split()[0]
        self.sh("ip link set lo up")

    def _end(self) -> None:
        self.holder.kill()
        self.holder.wait()

    def entering(self, script: str) -> list[str]:
        return ["nsenter", "--target", self.pid, "--net", "--mount", "--pid", "bash", "-c", script]

    def sh(self, script: str) -> str:
        done = run_program(self.entering(f"set -e\n{script}"))
        assert done.returncode == 0, f"{script}: {done.stderr}"
        return done.stdout

    def start(self, script: str) -> None:
        subprocess.Popen(self.entering(f"exec {script} >> /run/log 2>&1"), cwd=PROJECT)

    def until(self, script: str, holds: Callable[[str], object]) -> None:
        """Wait until the output of a command fulfils a condition."""
        try:
            wait_until(lambda: holds(self.sh(script)), script)
        except AssertionError:
            raise AssertionError(f"{script}: {self.sh(script)}\n{self.sh('cat /run/log')}")


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    """A server on eth0, and a router with the client's addresses behind it."""
    with ExitStack() as stack:
        server, router = Host(stack), Host(stack)
        subprocess.run(["nsenter", "--target", router.pid, "--net", "ip", "link", "add", "lan0",
                        "type", "veth", "peer", "name", "eth0", "netns", server.pid], check=True)
        router.sh("ip link set lan0 up\n"
                  f"ip addr add {GATEWAY}/24 dev lan0; ip addr add {CLIENT}/32 dev lo\n"
                  f"ip -6 addr add {GATEWAY6}/64 dev lan0 nodad\n"
                  f"ip -6 addr add {CLIENT6}/128 dev lo nodad\n"
                  f"ip route add {SERVER} dev lan0 src {CLIENT}\n"
                  f"ip -6 route add {SERVER6} dev lan0 src {CLIENT6}")
        yield server, router


@pytest.fixture
def dhcp_like(hosts: tuple[Host, Host]) -> tuple[Host, Host]:
    """The hosts, with default routes as DHCP and a router's advertisement make them."""
    server, _ = hosts
    server.sh(f"ip link set eth0 up; ip addr add {SERVER}/24 dev eth0\n"
              f"ip -6 addr add {SERVER6}/64 dev eth0 nodad\n"
              f"ip route add default via {GATEWAY} dev eth0 proto dhcp src {SERVER} metric 100\n"
              f"ip -6 route add default via {GATEWAY6} dev eth0 proto ra metric 1024 expires 1800"
              " hoplimit 64 pref medium")
    return hosts


def filled_in(command: str) -> str:
    """A command in which the network's names and addresses stand for the placeholders."""
    return (command.replace("GATEWAY", GATEWAY).replace("DEVICE", "eth0")
            .replace("CONNECTION", "site").replace("CLIENT", CLIENT))


def printed(what: str, groups: tuple[tuple[str, int], ...] = ()) -> str:
    """The command that --users prints for a purpose, as "set it now".

    groups holds the windows of single prefixes; all others have WINDOW.
    """
    table = commands.table({"all": WINDOW, **dict(groups)}, 10)
    (found,) = [row[1] for row in table.rows if row[0] == what]
    return filled_in(str(found))


def on_page() -> dict[str, str]:
    """The commands in the table of docs/QUESTIONS.md, by their purpose."""
    text = (PROJECT / "docs" / "QUESTIONS.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|`]+) \| (`.*) \|$", text.partition("## How to set the window")[2],
                      re.MULTILINE)
    return {what: "\n".join(re.findall(r"`([^`]+)`", cell.replace(r"\|", "|")))
            for what, cell in rows}


def of_page(what: str, window: int = WINDOW) -> str:
    """The command on the page for a purpose, with a window in place of the page's 20 segments."""
    return filled_in(re.sub(r"(?<=[ =])20\b", str(window), on_page()[what]))


def check_on_the_wire(server: Host, router: Host, address: str, window: int = WINDOW) -> None:
    """Check that a client observes a first flight of this window.

    On a busy machine the server may write the head of its answer long before the page, and the
    first flight is then short: it is asked up to five times.
    """
    server.sh("mkdir -p /run/www && head -c 300000 /dev/zero > /run/www/page")
    server.start(f"/usr/bin/python3 -m http.server --bind {address} --directory /run/www 80")
    server.until("ss -Hltn", lambda out: ":80" in out)
    url = f"http://{f'[{address}]' if ':' in address else address}/page"
    for _ in range(5):
        told = router.sh(f"/usr/bin/python3 {PROJECT}/experiment.py --probe {url}")
        if f"first flight: {window} segments" in told:
            return
    pytest.fail(told)


def routes(host: Host, ip: str = "ip") -> list[str]:
    """The default routes of a host, without the seconds for which they are valid."""
    return [re.sub(r" expires \S+", "", line).strip()
            for line in host.sh(f"{ip} route show default").splitlines()]


@pytest.mark.parametrize(("version", "address", "stays"), [
    ("", SERVER, f"proto dhcp src {SERVER} metric 100"),
    (", IPv6", SERVER6, "proto ra metric 1024")])
def test_the_printed_command_sets_the_window_and_another_undoes_it(
        dhcp_like: tuple[Host, Host], version: str, address: str, stays: str) -> None:
    server, router = dhcp_like
    ip = "ip -6" if version else "ip"
    before = routes(server, ip)
    server.sh(of_page(f"now{version}", window=20))
    server.sh(printed(f"set it now{version}"))  # in place of 20 segments
    (now,) = routes(server, ip)
    assert f"initcwnd {WINDOW}" in now and stays in now
    assert f"initcwnd {WINDOW}" in server.sh(of_page("see it")) or version
    check_on_the_wire(server, router, address)
    server.sh(of_page(f"undo{version}"))
    assert routes(server, ip) == before


@pytest.mark.parametrize(("prefix", "address"), [("203.0.113.0/24", SERVER),
                                                 ("2001:db8:1::/48", SERVER6)])
def test_the_printed_command_for_a_prefix_sets_its_window_alone(dhcp_like: tuple[Host, Host],
                                                                prefix: str, address: str) -> None:
    server, router = dhcp_like
    before = routes(server), routes(server, "ip -6")
    server.sh(printed(f"set it now for {prefix}", ((prefix, 24),)))
    assert (routes(server), routes(server, "ip -6")) == before
    check_on_the_wire(server, router, address, window=24)


def test_the_documented_command_for_one_network_sets_its_window(
        dhcp_like: tuple[Host, Host]) -> None:
    server, router = dhcp_like
    server.sh(of_page("for one network").replace("192.0.2.0/24", "203.0.113.0/24"))
    assert f"initcwnd {WINDOW}" in server.sh(of_page("see it"))
    check_on_the_wire(server, router, SERVER)


def test_the_documented_command_for_a_pod_sets_its_window_from_the_node(
        dhcp_like: tuple[Host, Host]) -> None:
    """The node enters the pod by the number that one of its processes has on the node."""
    server, router = dhcp_like
    subprocess.run(["bash", "-ec", of_page("in a pod or container").replace("PID", server.pid)],
                   check=True)
    assert f"initcwnd {WINDOW}" in routes(server)[0]
    check_on_the_wire(server, router, SERVER)


# What keeps it -------------------------------------------------------------------------

def networkd(host: Host, config: str) -> None:
    """Start systemd-networkd on a host, with this text as its only configuration."""
    host.sh("mkdir -p /run/systemd/network /run/systemd/netif/{links,leases,lldp}\n"
            "chown -R systemd-network: /run/systemd/netif\n"
            "mount -t tmpfs none /etc/systemd/network\n"
            f"cat > /run/systemd/network/10-a.network <<'END'\n{config}\nEND")
    host.start(str(NETWORKD))


def advertising(router: Host) -> None:
    """Let the router give out addresses by DHCP and by its advertisements.

    networkd has to set the router's own address itself. Where the address was there before,
    networkd 252 may set it again and again (65,534 times, then "Numerical result out of range"),
    and it serves nobody.
    """
    router.sh(f"ip addr del {GATEWAY}/24 dev lan0")
    networkd(router,
             f"[Match]\nName=lan0\n[Network]\nAddress={GATEWAY}/24\nAddress=2001:db8::1/64\n"
             "DHCPServer=yes\nIPv6SendRA=yes\nIPv6AcceptRA=no\nKeepConfiguration=yes\n"
             "[DHCPServer]\nEmitRouter=yes\n[IPv6Prefix]\nPrefix=2001:db8::/64")


def lines_of(section: str) -> str:
    """The lines of a configuration on the page, without those for IPv6."""
    return section.split("\nGateway=_ipv6ra")[0]


def version() -> int:
    """The version of systemd; 0 where it is not known."""
    found = re.search(r"systemd (\d+)", run_program(["networkctl", "--version"]).stdout)
    return int(found[1]) if found else 0


@pytest.mark.skipif(not NETWORKD.exists(), reason="no systemd-networkd here")
@pytest.mark.parametrize("what", ["systemd-networkd with DHCP", "the same since systemd 255"])
def test_systemd_networkd_keeps_the_window_as_documented(hosts: tuple[Host, Host],
                                                         what: str) -> None:
    if what == "the same since systemd 255" and version() < 255:
        pytest.skip("systemd 255 or newer only")
    server, router = hosts
    advertising(router)
    section = lines_of(of_page(what))
    six = section.replace("_dhcp4", "_ipv6ra") if "Route" in section else ""
    networkd(server, "[Match]\nName=eth0\n[Network]\nDHCP=ipv4\nIPv6AcceptRA=yes\n"
             f"{section}\n{six}")
    server.until("ip route show default", lambda out: f"initcwnd {WINDOW}" in out)
    assert f"initcwnd {WINDOW}" in server.sh(of_page("see it"))
    if six:
        server.until("ip -6 route show default", lambda out: f"initcwnd {WINDOW}" in out)
        assert f"initcwnd {WINDOW}" in server.sh(f"ip -6 route get {CLIENT6}")
    address = re.findall(r"inet ([\d.]+)/", server.sh("ip -4 addr show eth0"))[0]
    router.sh(f"ip route replace {address} dev lan0 src {CLIENT}")
    check_on_the_wire(server, router, address)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Debian's packages of the programs that keep a window, in a folder."""
    folder = tmp_path_factory.mktemp("packages")
    folder.chmod(0o755)
    done = run_program(
        ["apt-get", "download", *PACKAGES], cwd=folder) if shutil.which("apt-get") else None
    if done is None or done.returncode != 0:
        pytest.skip("the packages of these programs cannot be fetched here")
    for package in sorted(folder.glob("*.deb")):
        subprocess.run(["dpkg", "--extract", str(package), str(folder)], check=True)
    return folder


def libraries(unpacked: Path) -> str:
    """The prefix of a command whose libraries are in the unpacked packages."""
    machine = f"{platform.machine()}-linux-gnu"
    return f"env LD_LIBRARY_PATH={unpacked}/usr/lib/{machine}:{unpacked}/lib/{machine}"


@pytest.mark.skipif(not NETWORKD.exists(), reason="no systemd-networkd here")
def test_netplan_keeps_the_window_as_documented(hosts: tuple[Host, Host], unpacked: Path,
                                                tmp_path: Path) -> None:
    server, router = hosts
    advertising(router)
    (tmp_path / "etc" / "netplan").mkdir(parents=True)
    config = tmp_path / "etc" / "netplan" / "10-a.yaml"
    config.write_text("network:\n  version: 2\n  ethernets:\n    eth0:\n      dhcp4: true\n"
                      f"      {of_page('netplan (Ubuntu)')}\n")
    config.chmod(0o600)
    server.sh(
        f"{libraries(unpacked)} {unpacked}/usr/libexec/netplan/generate --root-dir {tmp_path}")
    (made,) = (tmp_path / "run" / "systemd" / "network").glob("*.network")
    networkd(server, made.read_text())
    server.until("ip route show default", lambda out: f"initcwnd {WINDOW}" in out)
    server.until("ip route show default", lambda out: "proto dhcp" in out)
    assert f"initcwnd {WINDOW}" in server.sh(of_page("see it"))


@pytest.mark.skipif(not shutil.which("dbus-daemon"), reason="no dbus-daemon here")
def test_networkmanager_keeps_the_window_as_documented(hosts: tuple[Host, Host],
                                                       unpacked: Path) -> None:
    server, router = hosts
    server.sh("mkdir -p /run/dbus /run/nm /etc/NetworkManager /var/lib/NetworkManager\n"
              "mount -t tmpfs none /etc/NetworkManager\n"
              "mount -t tmpfs none /var/lib/NetworkManager\n"
              "mkdir /etc/NetworkManager/system-connections\n"
              "printf '[main]\\nplugins=keyfile\\nauth-polkit=false\\ndns=none\\n'"
              " > /etc/NetworkManager/NetworkManager.conf\n"
              f"cat > /run/bus.conf <<'END'\n{BUS}\nEND\n"
              "dbus-daemon --config-file=/run/bus.conf --fork > /dev/null 2>&1")
    with_libraries = (f"{libraries(unpacked)}"
                      " DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/dbus/system_bus_socket")
    server.start(f"{with_libraries} {unpacked}/usr/sbin/NetworkManager -n")
    nmcli = f"{with_libraries} {unpacked}/usr/bin/nmcli"
    server.until(f"{nmcli} general status || true", lambda out: "STATE" in out)
    typed = of_page("NetworkManager").replace("nmcli", nmcli)
    server.sh(f"{nmcli} connection add type ethernet ifname eth0 con-name site ipv4.method manual"
              f" ipv4.addresses {SERVER}/24 ipv4.gateway {GATEWAY}\n"
              f"{typed}\n{nmcli} connection up site")
    server.until("ip route show default", lambda out: f"initcwnd {WINDOW}" in out)
    assert len(routes(server)) == 2  # the one of the connection stays, behind it
    assert f"initcwnd {WINDOW}" in server.sh(of_page("see it"))
    check_on_the_wire(server, router, SERVER)


def test_ifupdown_keeps_the_window_as_documented(hosts: tuple[Host, Host], unpacked: Path) -> None:
    server, router = hosts
    server.sh("mkdir -p /run/network\n"
              "cat > /run/interfaces <<'END'\niface eth0 inet static\n"
              f"    address {SERVER}/24\n    gateway {GATEWAY}\n"
              f"    {of_page('ifupdown')}\nEND\n"
              f"{unpacked}/sbin/ifup --no-scripts --interfaces /run/interfaces eth0")
    assert f"initcwnd {WINDOW}" in routes(server)[0]
    check_on_the_wire(server, router, SERVER)


def test_each_documented_way_to_set_the_window_has_a_test() -> None:
    """The purposes are looked up in the text of this file, since each test may run alone."""
    text = Path(__file__).read_text(encoding="utf-8")
    tried = {f"{what}{version}" for what in ("now", "undo") for version in ("", ", IPv6")}
    assert len(on_page()) == 12
    assert all(what in tried or f'"{what}"' in text or f"'{what}'" in text for what in on_page())
