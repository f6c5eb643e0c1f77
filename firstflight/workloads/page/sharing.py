"""Which hosts of a recorded page shared connections.

Over HTTP/2 and 3 a browser requests the objects of several hosts over one connection, where its
certificate is for all of them and they have the same address (RFC 9113, 9.1.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def groups_of(hosts: Sequence[str], came: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The number of each host's group, from 0 on in the order of the hosts.

    Hosts whose objects came over one connection are in one group, directly or through others.
    hosts: their names, each once. came: connection and host of each object.
    """
    leader = {name: name for name in hosts}  # a host of the same group; itself for the first one

    def first(name: str) -> str:
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
