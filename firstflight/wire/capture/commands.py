"""Commands that were to set up a network and did not: they failed, or acted in the wrong place.

Scripts often discard the exit status and the messages of such commands; the kernel for commands
records both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from firstflight.base.untrusted import quoted
from firstflight.wire.capture.connections import ObservedConnection
from firstflight.wire.capture.pcapng import Capture, Command, Complaint
from firstflight.wire.capture.spaces import NamespaceNames, node_names

MOST_LINES = 6
_MOST_WORDS = 110  # characters of a command
_ROOT = "the root namespace"
# Commands that clean up, or that only look: nobody minds if they fail.
_HARMLESS = re.compile(r"\b(del(ete|br|if)?(-\w+)?|flush|show|list|ls|get|dump\S*|monitor|down)\b"
                       r"|--if-exists|^\S*ethtool\b|^\S*ip(6)?tables\S* .*-[CDFXL]\b"
                       r"|^\S*sysctl -n\b|^\S+$")
_COMPLAINTS = re.compile(r"not found|outside supported range|[Ii]llegal|[Ii]nvalid|Cannot find dev")
_SYSCTL = re.compile(r"\bnet[./]ipv[46][./][^\s=]+")
_OF_HOSTS = re.compile(r"disable_ipv6")  # people set it everywhere, to have fewer packets
_LOOPBACK = re.compile(r"\btc\b.* (add|replace|change) dev lo\b")
_INITCWND = re.compile(r"\broute\b.*\binitcwnd\s+(\d+)")


def lines_about_commands(capture: Capture, spaces: NamespaceNames,
                         connections: Sequence[ObservedConnection],
                         most: int = MOST_LINES) -> list[str]:
    """A line for each such command: at most `most`, then one that counts the others."""
    names = _space_names(capture, spaces)
    refused = " ".join(why for device in capture.devices for why in device.refused)
    lines = Counter[str]()
    lines.update(_failed(capture, names, refused))
    lines.update(_complaints(capture, names))
    lines.update(_sysctls(capture))
    lines.update(_loopbacks(capture, names))
    lines.update(_initial_windows(capture, names, connections))
    texts = [f"{line} ({count} times)" if count > 1 else line for line, count in lines.items()]
    if len(texts) > most:
        texts[most:] = [f"… and {len(texts) - most} more lines about commands"]
    return texts


def _space_names(capture: Capture, spaces: NamespaceNames) -> Mapping[int, str]:
    """The host of each network namespace except the root's, by the namespace's number."""
    names = node_names(capture.devices, spaces)
    return {state.namespace: names[device.number] for device in capture.devices
            for state in device.states if not state.is_root}


def _where(what: Command | Complaint, names: Mapping[int, str]) -> str:
    """The host in which a command or a program ran."""
    return _ROOT if what.is_root else names.get(what.namespace, "a namespace without links")


def _failed(capture: Capture, names: Mapping[int, str], refused: str) -> Iterator[str]:
    """Commands that failed, with their messages. refused: words of commands reported already."""
    for command in capture.commands:
        if not command.status or _HARMLESS.search(command.words) or command.words in refused:
            continue
        wrote = " ".join(complaint.text for complaint in capture.complaints
                         if complaint.process == command.process)
        why = quoted(wrote.replace("Error: ", ""), 120) or f"status {command.status}"
        yield f"failed in {_where(command, names)}: {_shortened(command.words)}: {why}"


def _shortened(words: str) -> str:
    return quoted(words, _MOST_WORDS)


def _complaints(capture: Capture, names: Mapping[int, str]) -> Iterator[str]:
    """Messages of programs that go on: commands that a shell misses, values Mininet ignores."""
    ended = {command.process for command in capture.commands}
    for complaint in capture.complaints:
        if complaint.process not in ended:
            for line in complaint.text.splitlines():
                if _COMPLAINTS.search(line):
                    yield f"{quoted(complaint.program, 20)} in {_where(complaint, names)}:" \
                          f" {quoted(line.replace('*** Error: ', ''), 150)}"


def _sysctls(capture: Capture) -> Iterator[str]:
    """Sysctls that were set in the root namespace only, although each host has its own."""
    since_ns = min((state.time_ns for device in capture.devices for state in device.states
                    if not state.is_root), default=None)
    in_hosts = {_key(command) for command in capture.commands if not command.is_root}
    for command in capture.commands:
        key = _key(command)
        if key and command.is_root and not command.status and key not in in_hosts \
                and since_ns is not None and command.time_ns > since_ns \
                and not _OF_HOSTS.search(key):
            yield f"{_shortened(command.words)} ran in {_ROOT}, and the hosts have values of" \
                  " their own: run it in the host (h1.cmd)"


def _loopbacks(capture: Capture, names: Mapping[int, str]) -> Iterator[str]:
    """Queues on lo, which packets between hosts never pass."""
    for command in capture.commands:
        if _LOOPBACK.search(command.words) and not command.status:
            yield f"{_shortened(command.words)}: the loopback device of" \
                  f" {_where(command, names)} has only packets of the host to itself: name the" \
                  " device that leads to other hosts"


def _key(command: Command) -> str:
    """The name of the setting that a sysctl command writes; "" if it writes none."""
    match = _SYSCTL.search(command.words)
    program = command.words.split(" ", 1)[0].rpartition("/")[2]
    # sysctl replaces the "=" in its own arguments, which the kernel shows, by a zero byte.
    is_writing = match and re.match(r"\s*=?\s*\S", command.words[match.end():])
    return match[0].replace("/", ".") if match and is_writing and program == "sysctl" else ""


def _initial_windows(capture: Capture, names: Mapping[int, str],
                     connections: Iterable[ObservedConnection]) -> Iterator[str]:
    """Initial windows that were set on a route and that no first flight shows."""
    for command in capture.commands:
        match = _INITCWND.search(command.words)
        if not match or command.status:
            continue
        node, segments = _where(command, names), int(match[1])
        if command.is_root and any(not state.is_root for device in capture.devices
                                   for state in device.states):
            yield f"{_shortened(command.words)} ran in {_ROOT}, and the hosts have routes of" \
                  " their own: run it in the host that sends (h1.cmd)"
            continue
        flights = [flight.segments for later in connections if later.begun_ns > command.time_ns
                   for sender, flight in ((later.ends.client_node, later.to_server.first_flight),
                                          (later.ends.server_node, later.to_client.first_flight))
                   if sender == node and flight and flight.at_once]
        if flights and segments not in flights:
            found = str(min(flights)) if len({*flights}) == 1 else \
                f"{min(flights)} to {max(flights)}"
            yield f"{_shortened(command.words)} set an initial window of {segments} in {node}," \
                  f" and its first flights have {found} segments: they took another route, or" \
                  " the receive window is smaller"
