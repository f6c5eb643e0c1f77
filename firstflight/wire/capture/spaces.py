"""The names of hosts and switches in a capture, from network namespaces and interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterable

from firstflight.wire.capture.pcapng import Device, DeviceState


class NamespaceNames:
    """The names that `ip netns` gave to network namespaces.

    The kernel reuses the number of a removed namespace, so one number may have several names, one
    after the other.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        """lines: one for each naming: its time in ns, the namespace's number, and the name."""
        # For each number, its names in the order of the lines, each with its time in ns.
        self.names: dict[int, list[tuple[int, str]]] = {}
        for line in lines:
            # The two spaces stand for the parts that a damaged line lacks.
            since_ns, number, name = f"{line}  ".split(" ", 2)
            if since_ns.isdigit() and number.isdigit():
                self.names.setdefault(int(number), []).append((int(since_ns), name.strip()))

    def name(self, state: DeviceState) -> str:
        """The name that a device's namespace had in this state; "" for a namespace without one.

        A state from before the first naming has the first name.
        """
        named = self.names.get(state.namespace, [])
        named_until_then = [naming for naming in named if naming[0] <= state.time_ns]
        if named_until_then:
            return max(named_until_then)[1]
        return named[0][1] if named else ""


def name_nodes(devices: Iterable[Device], spaces: NamespaceNames) -> dict[int, str]:
    """The name of the host or switch to which each device belongs, by the device's number.

    It is the name of the device's namespace. If nobody named the namespace, it is the part of an
    interface's name before "-eth", as Mininet builds these names: h1 for h1-eth0. If the namespace
    has no such interface either, it is ns and the last four digits of the namespace's number; in
    the root namespace it is then the device's own name.
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
            unnamed = state.name if state.is_root else f"ns{state.namespace % 10000}"
            names[number] = by_space.get(state.namespace, unnamed)
    return names
