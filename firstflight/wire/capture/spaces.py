"""The names of hosts and switches in a capture, from network namespaces and interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterable

from firstflight.wire.capture.pcapng import Device, DeviceState


class NamespaceNames:
    """The names that `ip netns` gave to network namespaces; a number may be used again."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        """lines: each with the time in ns of the naming, the number, and the name."""
        self.names: dict[int, list[tuple[int, str]]] = {}
        for line in lines:
            since_ns, number, name = (line + "  ").split(" ", 2)
            if since_ns.isdigit() and number.isdigit():
                self.names.setdefault(int(number), []).append((int(since_ns), name.strip()))

    def name(self, state: DeviceState) -> str:
        """The name of a device's namespace, "" without one."""
        given = self.names.get(state.namespace, [])
        return max([(since_ns, name) for since_ns, name in given if since_ns <= state.time_ns]
                   or given[:1] or [(0, "")])[1]


def node_names(devices: Iterable[Device], spaces: NamespaceNames) -> dict[int, str]:
    """The host or switch of each device, by its number.

    It is the name of its namespace, or what Mininet's interface names begin with.
    """
    names, by_space = dict[int, str](), dict[int, str]()
    states = {device.number: device.state for device in devices}
    for number, state in states.items():
        if state and not state.is_root and (name := spaces.name(state)):
            names[number] = name
        elif state and (match := re.fullmatch(r"(.+?)-eth\d+", state.name)):
            names[number] = match[1]
            if not state.is_root:
                by_space.setdefault(state.namespace, match[1])
    for number, state in states.items():
        if state and number not in names:
            names[number] = by_space.get(state.namespace, "" if state.is_root else
                                         f"ns{state.namespace % 10000}") or state.name
    return names
