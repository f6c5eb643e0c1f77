"""The commands that set an initial window on Linux, keep it, show it, and take it back.

ip-route(8); systemd.network(5), [Route]; nm-settings(5), ipv4.routes;
interfaces(5). GATEWAY and DEVICE stand for what `ip route show default` says.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from lab.core.findings.findings import Column, Table

NOTE = ("GATEWAY and DEVICE: as `ip route show default` prints them. IPv6 has routes of its own:"
        " ip -6 route.")


def table(initcwnd: int, groups: Iterable[tuple[str, int]] = ()) -> Table:
    """The commands for a window, and for groups that are prefixes with one of their own."""
    route = "via GATEWAY dev DEVICE"
    metrics = f"initcwnd {initcwnd} initrwnd {initcwnd}"
    rows = [
        ("set it now", f"ip route change default {route} {metrics}"),
        *((f"set it now for {name}", f"ip route add {name} {route} initcwnd {window}")
          for name, window in groups if is_prefix(name)),
        ("keep it: systemd-networkd, DEVICE.network",
         f"[Route] Gateway=GATEWAY InitialCongestionWindow={initcwnd}"
         f" InitialAdvertisedReceiveWindow={initcwnd}"),
        ("keep it: NetworkManager",
         f'nmcli connection modify DEVICE +ipv4.routes "0.0.0.0/0 GATEWAY initcwnd={initcwnd}'
         f' initrwnd={initcwnd}"'),
        ("keep it: ifupdown, /etc/network/interfaces",
         f"post-up ip route change default {route} {metrics}"),
        ("see it", "ip route show default"),
        ("see it used", "ss -tin state established (cwnd of a new connection)"),
        ("take it back", f"ip route change default {route}"),
    ]
    return Table("Commands", (Column("what", is_text=True), Column("command", is_text=True)),
                 tuple(rows), (NOTE,))


def is_prefix(name: str) -> bool:
    """Whether a group is named by an address prefix, such as 192.0.2.0/24."""
    try:
        ipaddress.ip_network(name)
    except ValueError:
        return False
    return "/" in name
