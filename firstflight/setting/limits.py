"""What can limit a transfer, and how a trial is measured without such a limit.

A limit may hide the effect of a window, or turn it into harm: the receive window, the bandwidth,
the queue, losses. Whether it does is measured: limits are lifted, alone or together, and the trial
is measured again, with the same seed (figures.reasons). This module has the limits of network, TCP
and TLS. A workload adds limits of its own.
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

WHAT_IF = r"[a-z0-9-]*(_[a-z0-9-]+)*"  # the text of the column what_if: tags of limits
RESTART = "net.ipv4.tcp_slow_start_after_idle"
# The sysctls that decide how large a receive window becomes. Without scaling it is at most 64 kB.
RECEIVES = (RECEIVE, "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_moderate_rcvbuf")
# Sysctls that a limit of the receive window, the send buffer or the restart lifts already.
_OF_LIMITS = {*RECEIVES, SEND, RESTART}
_PACING_QDISC = "fq"
_PACING_CONTROLS = ("bbr",)  # congestion controls that pace by themselves

T = TypeVar("T")
N = TypeVar("N", bound=NetworkSetting)
S = TypeVar("S", bound=Setting)


@dataclass(frozen=True)
class Limit(Generic[T]):
    """One thing that can limit a transfer."""

    tag: str  # stands in the column what_if and in a trial's id
    name: str  # in a sentence, without an article
    without: str  # stands in a sentence for a network without the limit
    lift: Callable[[T], T]  # returns the trial without the limit; an equal one if it has none
    may_harm: bool = False  # whether the limit can turn a saving into harm


def limits_of(trial: T, limits: Sequence[Limit[T]]) -> tuple[Limit[T], ...]:
    """Those of the limits that a trial has."""
    return tuple(limit for limit in limits if limit.lift(trial) != trial)


def without(trial: T, limits: Collection[Limit[T]]) -> T:
    """The what-if trial: the trial without these limits, with the same seed.

    limits: always in the same order, in which their tags make the trial's id.
    """
    lifted = trial
    for limit in limits:
        lifted = limit.lift(lifted)
    return cast(T, replace(cast(Any, lifted), what_if="_".join(limit.tag for limit in limits)))


def with_defaults(trial: T, names: tuple[str, ...]) -> T:
    """The trial with the default values of these parameters."""
    return cast(T, replace(cast(Any, trial), **{name: default(name) for name in names}))


# Of network and TCP ----------------------------------------------------------------------

def network_limits(sysctls: Mapping[str, str], size_of: Callable[[N], int],
                   fastest_kbps: float = QUANTITIES["bandwidth_kbps"].highest
                   ) -> tuple[Limit[N], ...]:
    """The limits of network and TCP.

    sysctls: those that a scenario sets for all of its trials. size_of: returns how many bytes a
    trial's server sends. fastest_kbps: the bandwidth of a trial whose bandwidth is lifted.
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
    """A limit for each sysctl of TCP that the scenario or a trial sets, if no other limit has it.

    sysctls: those that the scenario sets for all of its trials.
    """
    names = dict.fromkeys(sysctls)
    for trial in trials:
        names.update(dict.fromkeys(settings_of(trial.sysctl)))

    limits: list[Limit[N]] = []
    for name in names:
        if name in TCP_SYSCTLS and name not in _OF_LIMITS:
            short = name.rpartition(".")[2]
            limits.append(Limit(
                f"sysctl-{short.replace('_', '-')}", short, f"{short} at its default",
                partial(_default_sysctls, names=(name,), sysctls=sysctls)))
    return tuple(limits)


def restart_limit(sysctls: Mapping[str, str], pauses: Callable[[N], bool]) -> Limit[N]:
    """The slow start after a pause, as a limit. pauses: whether a trial's connection pauses."""
    return Limit("restart", "slow start after the pause", "a window that stays through the pause",
                 partial(_no_restart, sysctls=sysctls, pauses=pauses))


def _default_sysctls(trial: N, names: Collection[str], sysctls: Mapping[str, str]) -> N:
    """The trial in which the named sysctls have their defaults.

    It then sets a default only where the scenario sets another value. sysctls: the scenario's.
    """
    kept = {name: value for name, value in settings_of(trial.sysctl).items() if name not in names}
    defaults = {name: TCP_SYSCTLS[name] for name in names
                if sysctls.get(name, TCP_SYSCTLS[name]) != TCP_SYSCTLS[name]}
    return replace(trial, sysctl=words_of({**kept, **defaults}))


def _ample_receive_window(trial: N, sysctls: Mapping[str, str], size_of: Callable[[N], int]) -> N:
    """The trial with a receive window of twice what is sent, which never closes.

    The window may grow further (tcp_rcv_space_adjust).
    """
    segments = math.ceil(size_of(trial) / trial.mss)
    ample = max(AMPLE_WINDOW, trial.initrwnd, 2 * segments)
    ample = min(ample, int(QUANTITIES["initrwnd"].highest))
    free = replace(_default_sysctls(trial, RECEIVES, sysctls), initrwnd=ample,
                   receive_rules="today", rwnd_growth=default("rwnd_growth"))
    if RECEIVE not in settings_of(free.sysctl):
        return free
    # The scenario sets another buffer than the default: the trial sets what the window needs.
    buffers = replace(free, sysctl=default("sysctl")).with_buffers({})
    needed = buffers.get(RECEIVE, TCP_SYSCTLS[RECEIVE])
    return replace(free, sysctl=words_of({**settings_of(free.sysctl), RECEIVE: needed}))


def _ample_send_buffer(trial: N, sysctls: Mapping[str, str]) -> N:
    """The trial whose server sets no send buffer, and whose hosts have the usual tcp_wmem."""
    free = replace(_default_sysctls(trial, (SEND,), sysctls),
                   send_buffer_bytes=default("send_buffer_bytes"))
    if SEND not in settings_of(free.sysctl):
        return free
    buffers = replace(free, sysctl=default("sysctl")).with_buffers({})
    needed = buffers.get(SEND, TCP_SYSCTLS[SEND])
    return replace(free, sysctl=words_of({**settings_of(free.sysctl), SEND: needed}))


def _fastest(trial: N, fastest_kbps: float) -> N:
    """The trial at a bandwidth with which only round trips are left.

    An uplink that was as fast as the downlink stays as fast. A slower uplink stays as it is, since
    it is a limit of its own. A queue that was requested in ms or BDP grows with the bandwidth.
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

    drawn_packets = trial.drawn_queue_packets
    if drawn_packets is not None:
        drawn_packets = max(1, round(drawn_packets * packets / trial.queue_packets))
    return replace(fast, queue_packets=packets, drawn_queue_packets=drawn_packets)


def _fast_uplink(trial: N) -> N:
    """The trial with an uplink at least as fast as the downlink."""
    return replace(trial, uplink_kbps=max(trial.uplink_kbps, trial.bandwidth_kbps))


def _no_restart(trial: N, sysctls: Mapping[str, str], pauses: Callable[[N], bool]) -> N:
    """The trial whose window stays through a pause (tcp_slow_start_after_idle_check)."""
    settings = settings_of(trial.sysctl)
    if not pauses(trial) or {**sysctls, **settings}.get(RESTART) == "0":
        return trial
    return replace(trial, sysctl=words_of({**settings, RESTART: "0"}))


def _endless_queue(trial: N) -> N:
    """The trial with a queue that never drops.

    fq_codel and cake drop before they are full, so a fifo stands for them.
    """
    qdisc = "fifo" if trial.qdisc in MANAGED else trial.qdisc
    return replace(trial, queue_packets=int(QUANTITIES["queue_packets"].highest), queue_from="",
                   drawn_queue_packets=None, qdisc=qdisc)


def _no_pacing(trial: N) -> N:
    """The trial without fq, and with CUBIC instead of a congestion control that paces by itself."""
    qdisc = "fifo" if trial.qdisc == _PACING_QDISC else trial.qdisc
    control = trial.congestion_control
    if control in _PACING_CONTROLS:
        control = "cubic"
    return replace(trial, qdisc=qdisc, congestion_control=control)


# Of TLS ------------------------------------------------------------------------------------

def chain_limit() -> Limit[S]:
    """A certificate chain that is longer than the shortest possible certificate, as a limit."""
    return Limit("chain", "certificate chain", "a short certificate chain", _short_chain)


def _short_chain(trial: S) -> S:
    """The trial with the shortest possible certificate, where it has a longer chain."""
    if not trial.chain_bytes or trial.resumed:
        return trial
    return replace(trial, intermediates=0,
                   chain_bytes=min(trial.chain_bytes, LEAST_BYTES[trial.signature]))
