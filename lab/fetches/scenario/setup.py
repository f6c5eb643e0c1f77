"""What published set-ups did otherwise, as rules on numbers; a trial asks for it.

Each rule is one that stood in somebody's code or in a kernel of that time; which
set-up it was of is said by a scenario's [[cause]] tables.
"""

from __future__ import annotations

ARP_PROBES = 3  # mcast_probes: after as many answers that do not come a connection fails
# TCP_DEFAULT_INIT_RCVWND, in segments; the window of a SYN has 16 bits, its scale comes later.
DEFAULT_RECEIVE_WINDOW, MOST_IN_A_SYN_BYTES = 10, 65535
ETHERNET_MSS = 1460  # without time stamps: as tcp_select_initial_window counts


def limited_kbps(asked_kbps: float, integer_kbps: float) -> float:
    """The rate of a link where whole Mbit/s are made of kbit/s; 0 Mbit/s limit nothing.

    integer_kbps: what a link has then, 0 where no such division is made.
    """
    if not integer_kbps:
        return asked_kbps
    return asked_kbps // 1000 * 1000 or integer_kbps


def acting(acts_as: str, initcwnd: int) -> int:
    """The window that acts in the place of one, by a list such as "10=7,16=8"."""
    pairs = (each.split("=") for each in acts_as.split(",") if each)
    return {int(requested): int(acts) for requested, acts in pairs}.get(initcwnd, initcwnd)


def receive_window(rules: str, initrwnd: int) -> int:
    """The initial receive window that a route's initrwnd gives, in segments.

    From Linux 2.6.39 on, one that does not fit in a SYN was not cut to what fits, but
    fell back to the default (tcp_select_initial_window).
    """
    falls_back = rules == "linux3" and initrwnd * ETHERNET_MSS > MOST_IN_A_SYN_BYTES
    return DEFAULT_RECEIVE_WINDOW if falls_back else initrwnd


def segments_at_once(writes: tuple[int, ...], total_bytes: int, mss: int, nagle: bool,
                     receive_bytes: int) -> int:
    """Segments that a response in several writes is at first, as far as the client has room.

    With Nagle's algorithm the first partial segment leaves, and what is written
    behind it waits until it fills segments (tcp_minshall_check); the last one goes
    with the FIN. Without it each write of the headers is a segment.
    """
    alone = writes[:1] if nagle else writes
    rest = total_bytes - sum(alone)
    ends: list[int] = []
    for size in (*alone, *([mss] * (rest // mss)), *([rest % mss] if rest % mss else [])):
        ends.append((ends[-1] if ends else 0) + size)
    return sum(end <= receive_bytes for end in ends)
