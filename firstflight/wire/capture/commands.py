"""Commands that were to set up a network and did not: they failed, or acted in the wrong place.

Scripts often discard the exit status and the messages of such commands; the kernel for commands
records both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from firstflight.base.untrusted import quoted
from firstflight.wire.capture.pcapng import Capture, Command, Complaint
from firstflight.wire.capture.spaces import NamespaceNames, name_nodes

MOST_LINES = 6  # about commands; a last line counts the rest
_MOST_WORDS = 110  # characters of a command
_ROOT = "the root namespace"
# Commands that clean up or only show something: nobody minds if they fail.
_HARMLESS = re.compile(r"\b(del(ete|br|if)?(-\w+)?|flush|show|list|ls|get|dump\S*|monitor|down)\b"
                       r"|--if-exists|^\S*ethtool\b|^\S*ip(6)?tables\S* .*-[CDFXL]\b"
                       r"|^\S*sysctl -n\b|^\S+$")
# Words of a message that says what went wrong.
_COMPLAINTS = re.compile(r"not found|outside supported range|[Ii]llegal|[Ii]nvalid|Cannot find dev")
_SYSCTL = re.compile(r"\bnet[./]ipv[46][./][^\s=]+")  # the name of a setting in sysctl's arguments
_WRITTEN = re.compile(r">\s*/proc/sys/net/ipv[46]/(\S+)")  # a setting that a shell writes
_WANTED_IN_ROOT = re.compile(r"disable_ipv6")  # people set it everywhere, to have fewer packets
_LOOPBACK = re.compile(r"\btc\b.* (add|replace|change) dev lo\b")
# Mininet's links with traffic control call ethtool to turn GRO off, and do without it.
_ETHTOOL_MISSING = re.compile(r"\bethtool: command not found")
_INITCWND = re.compile(r"\broute\b.*\binitcwnd\s+(\d+)")


def lines_about_commands(capture: Capture, spaces: NamespaceNames,
                         most: int = MOST_LINES) -> list[str]:
    """A line for each command that failed or acted in the wrong place.

    There are at most `most` lines, and then one that counts the rest.
    """
    names = _space_names(capture, spaces)
    # The report of links has these commands already.
    refused = " ".join(why for device in capture.devices for why in device.refused)
    lines = Counter[str]()
    lines.update(_failed(capture, names, refused))
    lines.update(_complaints(capture, names))
    lines.update(_sysctls(capture))
    lines.update(_loopbacks(capture, names))
    lines.update(_calls(capture))
    lines.update(_initial_windows(capture, names))

    texts = [f"{line} ({count} times)" if count > 1 else line for line, count in lines.items()]
    if len(texts) > most:
        texts[most:] = [f"… and {len(texts) - most} more lines about commands"]
    return texts


# By a namespace's number: the hosts that had it one after another, as (since when in ns, host).
Names = Mapping[int, Sequence[tuple[int, str]]]


def _space_names(capture: Capture, spaces: NamespaceNames) -> Names:
    """The hosts of each network namespace but the root's.

    A number may have several hosts, since the kernel gives the number of a namespace that is gone
    to a new one.
    """
    names = name_nodes(capture.devices, spaces)
    found: dict[int, list[tuple[int, str]]] = {}
    for device in capture.devices:
        for state in device.states:
            if not state.is_root:
                found.setdefault(state.namespace, []).append((state.time_ns, names[device.number]))
    return {space: sorted(times) for space, times in found.items()}


def _where(event: Command | Complaint, names: Names) -> str:
    """The host in which a command ran, or in which a program wrote its message."""
    if event.is_root:
        return _ROOT
    known = names.get(event.namespace)
    if not known:
        return "a namespace without links"
    # A command may come before the namespace's first device is up.
    return max((name for name in known if name[0] <= event.time_ns), default=known[0])[1]


def _failed(capture: Capture, names: Names, refused: str) -> Iterator[str]:
    """Lines about commands that failed, with their messages.

    refused: the words of commands that another line reports already.
    """
    for command in capture.commands:
        if not command.status or _HARMLESS.search(command.words) or command.words in refused:
            continue
        wrote = " ".join(complaint.text for complaint in capture.complaints
                         if complaint.process == command.process)
        why = quoted(wrote.replace("Error: ", ""), 120) or f"status {command.status}"
        yield f"failed in {_where(command, names)}: {_shown(command, capture)}: {why}"


def _shown(command: Command, capture: Capture) -> str:
    """A command's words, with the script's line in brackets where that is known."""
    place = capture.calls.place_of(command.words)
    return quoted(command.words, _MOST_WORDS) + (f" ({place})" if place else "")


def _complaints(capture: Capture, names: Names) -> Iterator[str]:
    """Lines about messages of programs that go on after an error.

    A shell writes such a message about a program that it does not find, Mininet about a value that
    it ignores.
    """
    ended = {command.process for command in capture.commands}
    # A script of Mininet that does not call ethtool itself does not miss it.
    is_ethtool_wanted = not capture.calls.links or any(
        "ethtool" in call.words for call in capture.calls.commands)
    for complaint in capture.complaints:
        if complaint.process in ended:  # a line about the command has its messages
            continue
        for line in complaint.text.splitlines():
            is_unwanted = _ETHTOOL_MISSING.search(line) and not is_ethtool_wanted
            if _COMPLAINTS.search(line) and not is_unwanted:
                yield f"{quoted(complaint.program, 20)} in {_where(complaint, names)}:" \
                      f" {quoted(line.replace('*** Error: ', ''), 150)}"


def _sysctls(capture: Capture) -> Iterator[str]:
    """Lines about sysctls that were set in the root namespace only, after a host was there.

    Each host has values of its own.
    """
    first_host_ns = min((state.time_ns for device in capture.devices for state in device.states
                         if not state.is_root), default=None)
    if first_host_ns is None:
        return
    succeeded = [command for command in capture.commands if not command.status]
    in_hosts = {_key(command) for command in succeeded if not command.is_root}

    for command in succeeded:
        key = _key(command)
        if not key or not command.is_root or command.time_ns <= first_host_ns:
            continue
        if key not in in_hosts and not _WANTED_IN_ROOT.search(key):
            yield f"{_shown(command, capture)} ran in {_ROOT}, and the hosts have values of" \
                  " their own: run it in the host (h1.cmd)"


def _calls(capture: Capture) -> Iterator[str]:
    """Lines about commands that a script gave to a host, or started itself.

    These are programs that Mininet's popen did not find, and settings that were written in the root
    namespace although each host has values of its own.
    """
    calls = capture.calls.commands
    in_hosts = {written[1] for call in calls if not call.is_outside_hosts
                for written in _WRITTEN.finditer(call.words)}
    for call in calls:
        place = f"{call.place}: " if call.place else ""
        if call.is_missing:
            yield f"{place}popen: {quoted(call.words.split(' ')[0], 40)}: no such program"
        if not call.is_outside_hosts:
            continue
        for written in _WRITTEN.finditer(call.words):
            if written[1] not in in_hosts and not _WANTED_IN_ROOT.search(written[1]):
                yield f"{place}{quoted(call.words, _MOST_WORDS)} ran in {_ROOT}, and the hosts" \
                      " have values of their own: run it in the host (h1.cmd)"


def _loopbacks(capture: Capture, names: Names) -> Iterator[str]:
    """Lines about queues on lo, which packets between hosts never pass."""
    for command in capture.commands:
        if _LOOPBACK.search(command.words) and not command.status:
            yield f"{_shown(command, capture)}: the loopback device of" \
                  f" {_where(command, names)} has only packets of the host to itself: name the" \
                  " device that leads to other hosts"


def _key(command: Command) -> str:
    """The name of the setting that a sysctl command writes; "" if it writes none."""
    program = command.words.split(" ", 1)[0].rpartition("/")[2]
    match = _SYSCTL.search(command.words)
    if not match or program != "sysctl":
        return ""
    # sysctl replaces the "=" in its own arguments, which the kernel shows, by a zero byte. So any
    # word after the name is a value.
    is_writing = re.match(r"\s*=?\s*\S", command.words[match.end():])
    return match[0].replace("/", ".") if is_writing else ""


def _initial_windows(capture: Capture, names: Names) -> Iterator[str]:
    """Lines about initial windows that were set on a route and with which no connection began."""
    has_hosts = any(not state.is_root for device in capture.devices for state in device.states)
    for command in capture.commands:
        match = _INITCWND.search(command.words)
        if not match or command.status:
            continue

        node, segments = _where(command, names), int(match[1])
        if command.is_root and has_hosts:
            yield f"{_shown(command, capture)} ran in {_ROOT}, and the hosts have routes of" \
                  " their own: run it in the host that sends (h1.cmd)"
            continue

        windows = {opened.window for opened in capture.opened
                   if opened.namespace == command.namespace and opened.time_ns > command.time_ns}
        if not windows:
            yield f"{_shown(command, capture)} set an initial window of {segments} in {node}, and" \
                  " no TCP connection began there afterwards"
        elif segments not in windows:
            found = str(min(windows)) if len(windows) == 1 else f"{min(windows)} to {max(windows)}"
            yield f"{_shown(command, capture)} set an initial window of {segments} in {node}," \
                  f" and its connections began with {found} segments: they took another route" \
                  " (ip route get ADDRESS shows which)"
