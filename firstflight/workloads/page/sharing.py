"""Which hosts of a recorded page shared connections.

Over HTTP/2 and 3 a browser requests the objects of several hosts over one connection, where its
certificate is for all of them and they have the same address (RFC 9113, 9.1.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def groups_of(hosts: Sequence[str], came: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The number of each host's group. Groups are numbered from 0 on in the order of the hosts.

    Two hosts are in one group if objects of both came over one connection, or if each is in one
    group with a third host. hosts: their names, each once. came: connection and host of each
    object.
    """
    # By host, another host of its group; the host itself where it leads the group.
    leader = {name: name for name in hosts}

    def first(name: str) -> str:
        """The leader of a host's group."""
        while leader[name] != name:
            name = leader[name]
        return name

    by_connection: dict[str, str] = {}
    for connection, host in came:
        other = by_connection.setdefault(connection, host)
        leader[first(host)] = first(other)

    firsts = dict.fromkeys(map(first, hosts))
    numbers = {name: number for number, name in enumerate(firsts)}
    return {name: numbers[first(name)] for name in hosts}
