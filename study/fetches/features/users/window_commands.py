"""The commands that set an initial window on Linux, keep it, show it, and undo it.

ip-route(8); systemd.network(5), [Route] and [DHCPv4]; netplan(5), routes; nm-settings(5),
ipv4.routes; interfaces(5). tests/live/test_window_commands.py runs what stands here.
GATEWAY, DEVICE, CONNECTION: as `ip route show default` and `nmcli connection` print them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from findings.findings import Column, Table

# The route as it is, so that its protocol, metric and source stay. Of an IPv6 route `ip` prints
# for how long it is valid in words that it does not read.
DEFAULT = "$(ip route show default | head -1)"
DEFAULT6 = "$(ip -6 route show default | head -1 | sed 's/ expires [^ ]*//g')"
WINDOW = "initcwnd"
METRIC = 50  # less than any that these programs give a default route: it is preferred
KEEP_NETWORKD = "keep it: systemd-networkd with DHCP, in DEVICE.network"
KEEP_DHCPV4 = "keep it: the same since systemd 255"
KEEP_NETPLAN = "keep it: netplan (Ubuntu), under the device"
KEEP_NETWORKMANAGER = "keep it: NetworkManager"
KEEP_IFUPDOWN = "keep it: ifupdown, under the device in /etc/network/interfaces"
NOTES = (
    "Do not set initrwnd: it is what this machine offers to others, and does not change what a"
    " server sends. 32 segments would be less than the 44 that Linux offers by itself.",
    "GATEWAY, DEVICE: as `ip route show default` prints them. CONNECTION: as `nmcli connection`"
    " prints it. A permanent setting takes effect after `networkctl reload` and `networkctl"
    " reconfigure DEVICE`, `netplan apply`, `nmcli connection up CONNECTION` or a restart.",
    "The window applies to new connections only. Where nothing changes, see docs/USERS.md, \"I set"
    " it and nothing happens\".")


def set_now(initcwnd: int) -> str:
    """The command that sets the window of the default route, IPv4."""
    return f"ip route change {DEFAULT} initcwnd {initcwnd}"


def table(initcwnd: int, groups: Iterable[tuple[str, int]] = ()) -> Table:
    """The commands for a window, and for groups that are prefixes with one of their own."""
    rows = [
        ("set it now", set_now(initcwnd)),
        ("set it now, IPv6", f"ip -6 route change {DEFAULT6} initcwnd {initcwnd}"),
        *((f"set it now for {name}", _of_prefix(name, window))
          for name, window in groups if is_prefix(name)),
        ("undo it", f"ip route change {_less(DEFAULT, WINDOW)}"),
        ("undo it, IPv6", f"ip -6 route change {_less(DEFAULT6, WINDOW)}"),
        ("see the route", "ip route get CLIENT"),
        ("see it in use", "./run.sh --probe http://SERVER/ on a client; on the server ss -tin state"
                          " established (cwnd of a new connection)"),
        (KEEP_NETWORKD, f"[Route] Gateway=_dhcp4 Metric={METRIC} InitialCongestionWindow={initcwnd}"
                        " (IPv6: Gateway=_ipv6ra)"),
        (KEEP_DHCPV4, f"[DHCPv4] InitialCongestionWindow={initcwnd}"),
        (KEEP_NETPLAN, f"routes: [{{to: default, via: GATEWAY, metric: {METRIC},"
                       f" congestion-window: {initcwnd}}}]"),
        (KEEP_NETWORKMANAGER, 'nmcli connection modify CONNECTION +ipv4.routes "0.0.0.0/0 GATEWAY'
                              f' {METRIC} initcwnd={initcwnd}"'),
        (KEEP_IFUPDOWN, f"post-up {set_now(initcwnd)}"),
    ]
    return Table("Commands", (Column("what", is_text=True), Column("command", is_text=True)),
                 tuple(rows), NOTES)


def _less(route: str, option: str) -> str:
    """A route as it is, without an option."""
    return f"{route[:-1]} | sed 's/ {option} [^ ]*//g')"


def _of_prefix(prefix: str, initcwnd: int) -> str:
    """A route for a prefix by the default route's gateway and device."""
    ip, default = (("ip -6", DEFAULT6) if ipaddress.ip_network(prefix).version == 6 else
                   ("ip", DEFAULT))
    return f"{ip} route add {prefix} {default[:-1]} | cut -d' ' -f2-5) initcwnd {initcwnd}"


def is_prefix(name: str) -> bool:
    """Whether a group is named by an address prefix, such as 192.0.2.0/24.

    Only digits, dots and colons: the name becomes a part of a command that is typed.
    """
    try:
        ipaddress.ip_network(name)
    except ValueError:
        return False
    return re.fullmatch(r"[0-9A-Fa-f.:]+/\d+", name) is not None
