"""What commands that set up a network did not do: they failed, or acted in another place.

Scripts throw away how such programs end and what they write; the kernel for commands keeps it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from firstflight.base.untrusted import quoted
from firstflight.wire.capture.connections import ObservedConnection
from firstflight.wire.capture.pcapng import Capture, Command, Complaint
from firstflight.wire.capture.spaces import Spaces, nodes

MOST_LINES = 6
_MOST_WORDS = 110  # characters of a command
_ROOT = "the root namespace"
# Who clears up does not mind what is not there, and who looks does not either.
_HARMLESS = re.compile(r"\b(del(ete|br|if)?(-\w+)?|flush|show|list|ls|get|dump\S*|monitor|down)\b"
                       r"|--if-exists|^\S*ethtool\b|^\S*ip(6)?tables\S* .*-[CDFXL]\b"
                       r"|^\S*sysctl -n\b|^\S+$")
_COMPLAINTS = re.compile(r"not found|outside supported range|[Ii]llegal|[Ii]nvalid|Cannot find dev")
_SYSCTL = re.compile(r"\bnet[./]ipv[46][./][^\s=]+")
_OF_HOSTS = re.compile(r"disable_ipv6")  # what people set everywhere, to keep packets few
_LOOPBACK = re.compile(r"\btc\b.* (add|replace|change) dev lo\b")
_INITCWND = re.compile(r"\broute\b.*\binitcwnd\s+(\d+)")


def said_of_commands(capture: Capture, spaces: Spaces, connections: Sequence[ObservedConnection],
                     most: int = MOST_LINES) -> list[str]:
    """A line for each, at most so many and one that counts the others."""
    names = _space_names(capture, spaces)
    refused = " ".join(why for device in capture.devices for why in device.refused)
    lines = Counter[str]()
    lines.update(_failed(capture, names, refused))
    lines.update(_complaints(capture, names))
    lines.update(_sysctls(capture))
    lines.update(_loopbacks(capture, names))
    lines.update(_initial_windows(capture, names, connections))
    said = [f"{line} ({count} times)" if count > 1 else line for line, count in lines.items()]
    if len(said) > most:
        said[most:] = [f"… and {len(said) - most} more lines about commands"]
    return said


def _space_names(capture: Capture, spaces: Spaces) -> Mapping[int, str]:
    """The host of each network namespace but the root's."""
    names = nodes(capture.devices, spaces)
    return {state.namespace: names[device.number] for device in capture.devices
            for state in device.states if not state.is_root}


def _where(what: Command | Complaint, names: Mapping[int, str]) -> str:
    """The host in which it ran."""
    return _ROOT if what.is_root else names.get(what.namespace, "a namespace without links")


def _failed(capture: Capture, names: Mapping[int, str], refused: str) -> Iterator[str]:
    """Commands that failed, and what they wrote. refused: what is reported already."""
    for command in capture.commands:
        if not command.status or _HARMLESS.search(command.words) or command.words in refused:
            continue
        wrote = " ".join(complaint.text for complaint in capture.complaints
                         if complaint.process == command.process)
        why = quoted(wrote.replace("Error: ", ""), 120) or f"status {command.status}"
        yield f"failed in {_where(command, names)}: {_short(command.words)}: {why}"


def _short(words: str) -> str:
    return quoted(words, _MOST_WORDS)


def _complaints(capture: Capture, names: Mapping[int, str]) -> Iterator[str]:
    """What shells miss and what Mininet ignores."""
    ended = {command.process for command in capture.commands}
    for complaint in capture.complaints:
        if complaint.process not in ended:
            for line in complaint.text.splitlines():
                if _COMPLAINTS.search(line):
                    yield f"{quoted(complaint.program, 20)} in {_where(complaint, names)}:" \
                          f" {quoted(line.replace('*** Error: ', ''), 150)}"


def _sysctls(capture: Capture) -> Iterator[str]:
    """Settings of the root namespace's, where hosts have their own."""
    since_ns = min((state.time_ns for device in capture.devices for state in device.states
                    if not state.is_root), default=None)
    in_hosts = {_key(command) for command in capture.commands if not command.is_root}
    for command in capture.commands:
        key = _key(command)
        if key and command.is_root and not command.status and key not in in_hosts \
                and since_ns is not None and command.time_ns > since_ns \
                and not _OF_HOSTS.search(key):
            yield f"{_short(command.words)} ran in {_ROOT}, and the hosts have values of their" \
                  " own: run it in the host (h1.cmd)"


def _loopbacks(capture: Capture, names: Mapping[int, str]) -> Iterator[str]:
    """Queues on lo, which packets between hosts never pass."""
    for command in capture.commands:
        if _LOOPBACK.search(command.words) and not command.status:
            yield f"{_short(command.words)}: the loopback device of {_where(command, names)} has" \
                  " what a host sends to itself: name the device that leads to the others"


def _key(command: Command) -> str:
    """The name of IP's setting that a sysctl writes, "" for none."""
    match = _SYSCTL.search(command.words)
    program = command.words.split(" ", 1)[0].rpartition("/")[2]
    # It ends its own words where it has found a "=".
    is_writing = match and re.match(r"\s*=?\s*\S", command.words[match.end():])
    return match[0].replace("/", ".") if match and is_writing and program == "sysctl" else ""


def _initial_windows(capture: Capture, names: Mapping[int, str],
                     connections: Iterable[ObservedConnection]) -> Iterator[str]:
    """Initial windows of routes, compared with first flights."""
    for command in capture.commands:
        match = _INITCWND.search(command.words)
        if not match or command.status:
            continue
        node, segments = _where(command, names), int(match[1])
        if command.is_root and any(not state.is_root for device in capture.devices
                                   for state in device.states):
            yield f"{_short(command.words)} ran in {_ROOT}, and the hosts have routes of their" \
                  " own: run it in the host that sends (h1.cmd)"
            continue
        flights = [flight.segments for later in connections if later.begun_ns > command.time_ns
                   for sender, flight in ((later.ends.client_node, later.to_server.first_flight),
                                          (later.ends.server_node, later.to_client.first_flight))
                   if sender == node and flight and flight.at_once]
        if flights and segments not in flights:
            found = str(min(flights)) if len({*flights}) == 1 else \
                f"{min(flights)} to {max(flights)}"
            yield f"{_short(command.words)} set an initial window of {segments} in {node}, and" \
                  f" its first flights have {found} segments: they took another route, or the" \
                  " receive window is smaller"
