"""What can limit a transfer, and how a trial is measured without it.

Something else may hide the effect of a window or turn it into harm: the receive window, the
bandwidth, the queue, losses. The network shows whether it does: each of these limits can be lifted,
alone or with others, and the trial is measured again, with the same seed (figures.reasons). Here
are the limits of network, TCP and TLS; a workload adds its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar, cast

from firstflight.base.errors import UsageError
from firstflight.base.quantity import in_words
from firstflight.findings.quantities import QUANTITIES
from firstflight.net.link import MANAGED
from firstflight.net.queue_length import packets_of
from firstflight.net.sysctls import settings_of, words_of
from firstflight.parameters import default
from firstflight.setting.setting import NetworkSetting, Setting
from firstflight.setting.tcp import AMPLE_WINDOW, RECEIVE, SEND
from firstflight.testbed.hosts.tls_records import LEAST_BYTES
from firstflight.testbed.network.tcp_sysctls import TCP_SYSCTLS

WHAT_IF = r"[a-z0-9-]*(_[a-z0-9-]+)*"  # the column what_if: tags of limits
RESTART = "net.ipv4.tcp_slow_start_after_idle"
# The sysctls of the receive window: without scaling it is never more than 64 kB.
RECEIVES = (RECEIVE, "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_moderate_rcvbuf")
_OF_LIMITS = {*RECEIVES, SEND, RESTART}  # those that belong to another limit
_PACED_BY_QDISC, _PACING_CONTROLS = "fq", ("bbr",)

T = TypeVar("T")
N = TypeVar("N", bound=NetworkSetting)
S = TypeVar("S", bound=Setting)


@dataclass(frozen=True)
class Limit(Generic[T]):
    """One thing that can limit a transfer.

    tag: in the column what_if and in a trial's id. name: in a sentence, without an article.
    without: what a sentence names instead of the limit. lift: returns the trial without the limit;
    an equal one where it does not have the limit. may_harm: whether it can turn a saving into harm.
    """

    tag: str
    name: str
    without: str
    lift: Callable[[T], T]
    may_harm: bool = False


def limits_of(trial: T, limits: Sequence[Limit[T]]) -> tuple[Limit[T], ...]:
    """The limits that a trial has, in their order."""
    return tuple(limit for limit in limits if limit.lift(trial) != trial)


def without(trial: T, limits: Collection[Limit[T]]) -> T:
    """The trial without these limits, with the same seed: a what-if trial. limits: in their order.
    """
    lifted = trial
    for limit in limits:
        lifted = limit.lift(lifted)
    return cast(T, replace(cast(Any, lifted), what_if="_".join(limit.tag for limit in limits)))


def with_defaults(trial: T, names: tuple[str, ...]) -> T:
    """The trial with the default of these parameters."""
    return cast(T, replace(cast(Any, trial), **{name: default(name) for name in names}))


# Of network and TCP ----------------------------------------------------------------------

def network_limits(sysctls: Mapping[str, str], size_of: Callable[[N], int],
                   fastest_kbps: float = QUANTITIES["bandwidth_kbps"].highest
                   ) -> tuple[Limit[N], ...]:
    """The limits of network and TCP. sysctls: those that a scenario sets for all of its trials.

    size_of: the bytes that a trial's server sends. fastest_kbps: without the bandwidth.
    """
    return (
        Limit("receive-window", "receive window", "an ample receive window",
              partial(_ample_receive_window, sysctls=sysctls, size_of=size_of)),
        Limit("bandwidth", "bandwidth", in_words(fastest_kbps, "kbit/s"),
              partial(_fastest, fastest_kbps=fastest_kbps)),
        Limit("uplink", "uplink", "an uplink as fast as the downlink", _fast_uplink),
        Limit("queue", "queue", "an endless queue", _endless_queue, may_harm=True),
        Limit("loss", "random loss", "no random loss",
              lambda trial: with_defaults(trial, ("loss_percent", "loss_burst")), may_harm=True),
        Limit("jitter", "jitter", "no jitter",
              lambda trial: with_defaults(trial, ("jitter_ms",)), may_harm=True),
        Limit("pacing", "pacing", "no pacing", _no_pacing, may_harm=True),
        Limit("send-buffer", "send buffer", "an ample send buffer",
              partial(_ample_send_buffer, sysctls=sysctls)))


def sysctl_limits(trials: Collection[N], sysctls: Mapping[str, str]) -> tuple[Limit[N], ...]:
    """A limit for each further sysctl that the scenario or one of these trials sets."""
    names = {**sysctls, **{name: value for trial in trials
                           for name, value in settings_of(trial.sysctl).items()}}
    return tuple(
        Limit(f"sysctl-{short.replace('_', '-')}", short, f"{short} at its default",
              partial(_default_sysctls, names=(name,), sysctls=sysctls))
        for name in names if name not in _OF_LIMITS and name in TCP_SYSCTLS
        for short in [name.rpartition(".")[2]])


def restart_limit(sysctls: Mapping[str, str], pauses: Callable[[N], bool]) -> Limit[N]:
    """Slow start after a pause. pauses: whether a trial's connection has one."""
    return Limit("restart", "slow start after the pause", "a window that stays through the pause",
                 partial(_no_restart, sysctls=sysctls, pauses=pauses))


def _default_sysctls(trial: N, names: Collection[str], sysctls: Mapping[str, str]) -> N:
    """The trial in which some sysctls have their defaults. sysctls: the scenario's."""
    own = {name: value for name, value in settings_of(trial.sysctl).items() if name not in names}
    shared = {name: TCP_SYSCTLS[name] for name in names
              if sysctls.get(name, TCP_SYSCTLS[name]) != TCP_SYSCTLS[name]}
    return replace(trial, sysctl=words_of({**own, **shared}))


def _ample_receive_window(trial: N, sysctls: Mapping[str, str], size_of: Callable[[N], int]) -> N:
    """The trial with a receive window of twice what is sent, which never closes.

    (tcp_rcv_space_adjust lets it grow further.)
    """
    segments = math.ceil(size_of(trial) / trial.mss)
    ample = min(max(AMPLE_WINDOW, trial.initrwnd, 2 * segments),
                int(QUANTITIES["initrwnd"].highest))
    free = replace(_default_sysctls(trial, RECEIVES, sysctls), initrwnd=ample,
                   receive_rules="today", rwnd_growth=default("rwnd_growth"))
    if RECEIVE not in settings_of(free.sysctl):
        return free
    # What the window needs, in place of the scenario's.
    needed = replace(free, sysctl=default("sysctl")).with_buffers({}).get(
        RECEIVE, TCP_SYSCTLS[RECEIVE])
    return replace(free, sysctl=words_of({**settings_of(free.sysctl), RECEIVE: needed}))


def _ample_send_buffer(trial: N, sysctls: Mapping[str, str]) -> N:
    """The trial whose server sets no buffer, and whose hosts have the usual tcp_wmem."""
    free = replace(_default_sysctls(trial, (SEND,), sysctls),
                   send_buffer_bytes=default("send_buffer_bytes"))
    if SEND not in settings_of(free.sysctl):
        return free
    needed = replace(free, sysctl=default("sysctl")).with_buffers({}).get(SEND, TCP_SYSCTLS[SEND])
    return replace(free, sysctl=words_of({**settings_of(free.sysctl), SEND: needed}))


def _fastest(trial: N, fastest_kbps: float) -> N:
    """The trial at a bandwidth with which only round trips are left.

    An uplink as fast as the downlink stays so; another one is a limit of its own. A queue that was
    requested in ms or BDP grows with the bandwidth.
    """
    most = max(fastest_kbps, trial.bandwidth_kbps)
    uplink_kbps = most if trial.uplink_kbps == trial.bandwidth_kbps else trial.uplink_kbps
    fast = replace(trial, bandwidth_kbps=most, uplink_kbps=uplink_kbps)
    if not trial.queue_from:
        return fast
    try:
        packets = packets_of(trial.queue_from, trial.rtt_ms, most)
    except UsageError:  # too long for netem
        packets = int(QUANTITIES["queue_packets"].highest)
    drawn = trial.drawn_queue_packets
    return replace(fast, queue_packets=packets, drawn_queue_packets=None if drawn is None else max(
        1, round(drawn * packets / trial.queue_packets)))


def _fast_uplink(trial: N) -> N:
    return replace(trial, uplink_kbps=max(trial.uplink_kbps, trial.bandwidth_kbps))


def _no_restart(trial: N, sysctls: Mapping[str, str], pauses: Callable[[N], bool]) -> N:
    """The trial whose window stays through a pause (tcp_slow_start_after_idle_check)."""
    settings = settings_of(trial.sysctl)
    if not pauses(trial) or {**sysctls, **settings}.get(RESTART) == "0":
        return trial
    return replace(trial, sysctl=words_of({**settings, RESTART: "0"}))


def _endless_queue(trial: N) -> N:
    """The trial with a fifo that never drops; fq_codel and cake drop before they are full."""
    return replace(trial, queue_packets=int(QUANTITIES["queue_packets"].highest), queue_from="",
                   drawn_queue_packets=None,
                   qdisc="fifo" if trial.qdisc in MANAGED else trial.qdisc)


def _no_pacing(trial: N) -> N:
    """The trial without fq, and with CUBIC for a congestion control that paces by itself."""
    return replace(
        trial, qdisc="fifo" if trial.qdisc == _PACED_BY_QDISC else trial.qdisc,
        congestion_control="cubic" if trial.congestion_control in _PACING_CONTROLS
        else trial.congestion_control)


# Of TLS ------------------------------------------------------------------------------------

def chain_limit() -> Limit[S]:
    """A certificate chain that is longer than the shortest possible certificate alone."""
    return Limit("chain", "certificate chain", "a short certificate chain", _short_chain)


def _short_chain(trial: S) -> S:
    if not trial.chain_bytes or trial.resumed:
        return trial
    return replace(trial, intermediates=0,
                   chain_bytes=min(trial.chain_bytes, LEAST_BYTES[trial.signature]))
