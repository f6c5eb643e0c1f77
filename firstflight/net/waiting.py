"""Waits exactly while sockets are watched: other timers of a guest do not shorten the wait."""

from __future__ import annotations

import ctypes
import os
import time

# Each timer of a guest is late by so much, netem's included (qdisc_watchdog, itimer_next_event).
LATE_NS = 1
LONG_WAIT_NS = 5_000_000  # of a longer wait 99 % come first
MOST_SLACK_NS = 100_000_000  # the most by which the kernel lets select() wait longer
_TFD_TIMER_ABSTIME = 1
_libc = ctypes.CDLL(None, use_errno=True)


class _Itimerspec(ctypes.Structure):
    """struct itimerspec; an interval of 0 lets the timer fire once."""

    _fields_ = [(name, ctypes.c_long) for name in ("interval_s", "interval_ns", "s", "ns")]


class Timer:
    """A kernel timer that can be watched like a socket (timerfd_create(2)).

    Its fd is readable from the time to which the timer is set until it is set again. Timeouts of
    select(), poll() and epoll are not exact: the kernel may end them up to a thousandth late, as
    soon as any other timer fires in that span, such as one that an earlier trial left.
    """

    def __init__(self) -> None:
        self.fd = _check_result(_libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC))
        self.set_to_ns = 0  # when it fires; 0 for never

    def set(self, monotonic_ns: int) -> None:
        """Set when the timer fires, by the monotonic clock; 0 for never."""
        if monotonic_ns == self.set_to_ns:
            return

        self.set_to_ns = monotonic_ns
        seconds, ns = divmod(monotonic_ns, 10**9)
        value = _Itimerspec(interval_s=0, interval_ns=0, s=seconds, ns=ns)
        _check_result(_libc.timerfd_settime(self.fd, _TFD_TIMER_ABSTIME, ctypes.byref(value), None))

    def close(self) -> None:
        os.close(self.fd)


def _check_result(result: int) -> int:
    """Return the result of a system call. Raises OSError if the call failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "timerfd")
    return result


def waited_ns(wait_ns: int) -> int:
    """How long server.py really waits, in ns, if it has to wait for wait_ns.

    server.py imitates select() on a machine that nothing else wakes: whole microseconds, and a
    thousandth longer (select_estimate_accuracy in fs/select.c). It waits for 99 % of a long time
    first, then for the rest. The server once waited with select(), and all published numbers
    include these microseconds.
    """
    waited = 0
    while waited < wait_ns:
        step = wait_ns - waited
        if step > LONG_WAIT_NS:
            step = step * 99 // 100
        step = -(-step // 1000) * 1000
        waited += step + min(step // 1000, MOST_SLACK_NS) + LATE_NS
    return waited
