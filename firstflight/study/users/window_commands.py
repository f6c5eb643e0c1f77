"""The commands that set an initial window on Linux at once (ip-route(8)).

docs/QUESTIONS.md has the commands that keep it, show it and undo it.
tests/live/test_window_commands.py runs the commands of this file and of that page.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping

from firstflight.findings.findings import Column, Table

# The default route as it is, so that its protocol, metric and source stay. `ip` prints for how long
# an IPv6 route is valid, but does not read that again, so sed removes it.
DEFAULT = "$(ip route show default | head -1)"
DEFAULT_IPV6 = "$(ip -6 route show default | head -1 | sed 's/ expires [^ ]*//g')"
_IPV6 = "set it now, IPv6"
NOTES = ("The window applies to new connections only. docs/QUESTIONS.md has the commands that keep"
         " it, show it and undo it, and what to look at where nothing changes.",)


def set_now(initcwnd: int) -> str:
    """The command that sets the window of the default route, IPv4."""
    return f"ip route change {DEFAULT} initcwnd {initcwnd}"


def commands(windows: Mapping[str, int | None], baseline: int) -> list[str]:
    """The commands that set a window for all users, and for groups that are prefixes.

    windows: the window for all users, and then for each group by its name; None where no window is
    recommended. A group that is a prefix has a route of its own where its window differs from that
    of all users.
    """
    return [command for what, command in _rows(windows, baseline) if what != _IPV6]


def table(windows: Mapping[str, int | None], baseline: int) -> Table:
    """The same commands and the one for IPv6, with what each does."""
    return Table("Commands", (Column("what", is_text=True), Column("command", is_text=True)),
                 tuple(_rows(windows, baseline)), NOTES)


def _rows(windows: Mapping[str, int | None], baseline: int) -> list[tuple[str, str]]:
    """What each command does, and the command."""
    (_, default), *groups = windows.items()
    rows = []
    if default is not None and default != baseline:
        rows = [("set it now", set_now(default)),
                (_IPV6, f"ip -6 route change {DEFAULT_IPV6} initcwnd {default}")]
    for name, window in groups:
        if window is not None and window != (default or baseline) and is_prefix(name):
            rows.append((f"set it now for {name}", _add_route(name, window)))
    return rows


def _add_route(prefix: str, initcwnd: int) -> str:
    """The command that adds a route for a prefix, by the default route's gateway and device."""
    ip, default = "ip", DEFAULT
    if ipaddress.ip_network(prefix).version == 6:
        ip, default = "ip -6", DEFAULT_IPV6
    # Words 2 to 5 of "default via GATEWAY dev DEVICE …".
    gateway_and_device = f"{default.removesuffix(')')} | cut -d' ' -f2-5)"
    return f"{ip} route add {prefix} {gateway_and_device} initcwnd {initcwnd}"


def is_prefix(name: str) -> bool:
    """Whether a group is named by an address prefix, such as 192.0.2.0/24.

    Only digits, dots and colons: the name becomes a part of a command that is typed.
    """
    try:
        ipaddress.ip_network(name)
    except ValueError:
        return False
    return re.fullmatch(r"[0-9A-Fa-f.:]+/\d+", name) is not None
