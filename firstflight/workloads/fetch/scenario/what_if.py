"""What-if trials: a trial measured again without some of its limits, with the same seed.

Something else may hide the effect of a window or turn it into harm: the receive window, the
bandwidth, the queue, losses. The network shows whether it does: each of these limits can be lifted,
alone or with others, and the trial is measured again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial

from firstflight.findings.quantities import QUANTITIES
from firstflight.net.link import MANAGED
from firstflight.net.sysctls import settings_of, words_of
from firstflight.net.sysctls import without as without_sysctl
from firstflight.parameters import default
from firstflight.setting.tcp import AMPLE_WINDOW, RECEIVE
from firstflight.testbed.hosts.tls_records import LEAST_BYTES
from firstflight.workloads.fetch.trial import Trial

RESTART = "net.ipv4.tcp_slow_start_after_idle"
_PACED_BY_QDISC, _PACING_CONTROLS = "fq", ("bbr",)


@dataclass(frozen=True)
class Limit:
    """One thing that can limit a transfer.

    tag: in the column what_if and in a trial's id. name: in a sentence, without an article.
    without: what a sentence names instead of the limit. lift: returns the trial without the limit;
    an equal one where it does not have the limit.
    """

    tag: str
    name: str
    without: str
    lift: Callable[[Trial], Trial]


def _set_default(names: tuple[str, ...], trial: Trial) -> Trial:
    return replace(trial, **{name: default(name) for name in names})


def _ample_receive_window(trial: Trial) -> Trial:
    """The trial with a receive window of twice the response, which never closes.

    (tcp_rcv_space_adjust lets it grow further.)
    """
    segments = math.ceil((trial.response_bytes + sum(trial.before)) / trial.mss)
    ample = min(max(AMPLE_WINDOW, trial.initrwnd, 2 * segments),
                int(QUANTITIES["initrwnd"].highest))
    return replace(trial, initrwnd=ample, receive_rules="today",
                   rwnd_growth=default("rwnd_growth"),
                   sysctl=without_sysctl(trial.sysctl, RECEIVE))


def _fastest(trial: Trial) -> Trial:
    """The trial at the highest bandwidth, where only round trips are left.

    An uplink as fast as the downlink stays so; another one is a limit of its own.
    """
    most = QUANTITIES["bandwidth_kbps"].highest
    uplink_kbps = most if trial.uplink_kbps == trial.bandwidth_kbps else trial.uplink_kbps
    return replace(trial, bandwidth_kbps=most, uplink_kbps=uplink_kbps)


def _fast_uplink(trial: Trial) -> Trial:
    return replace(trial, uplink_kbps=max(trial.uplink_kbps, trial.bandwidth_kbps))


def _fresh_connection(trial: Trial) -> Trial:
    return replace(trial, kept=0, earlier_bytes=0, idle_ms=0.0)


def _no_restart(trial: Trial) -> Trial:
    """The trial whose window stays through a pause (tcp_slow_start_after_idle_check)."""
    settings = dict(settings_of(trial.sysctl))
    if not trial.idle_ms or settings.get(RESTART) == "0":
        return trial
    return replace(trial, sysctl=words_of({**settings, RESTART: "0"}))


def _endless_queue(trial: Trial) -> Trial:
    """The trial with a fifo that never drops; fq_codel and cake drop before they are full."""
    return replace(trial, queue_packets=int(QUANTITIES["queue_packets"].highest), queue_from="",
                   drawn_queue_packets=None,
                   qdisc="fifo" if trial.qdisc in MANAGED else trial.qdisc)


def _no_pacing(trial: Trial) -> Trial:
    """The trial without fq, and with CUBIC for a congestion control that paces by itself."""
    return replace(
        trial, qdisc="fifo" if trial.qdisc == _PACED_BY_QDISC else trial.qdisc,
        congestion_control="cubic" if trial.congestion_control in _PACING_CONTROLS
        else trial.congestion_control)


def _short_chain(trial: Trial) -> Trial:
    """The trial with the shortest possible certificate alone."""
    if not trial.chain_bytes or trial.resumed:
        return trial
    return replace(trial, intermediates=0,
                   chain_bytes=min(trial.chain_bytes, LEAST_BYTES[trial.signature]))


LIMITS = (
    Limit("receive-window", "receive window", "an ample receive window", _ample_receive_window),
    Limit("bandwidth", "bandwidth", "10 Gbit/s", _fastest),
    Limit("uplink", "uplink", "an uplink as fast as the downlink", _fast_uplink),
    Limit("queue", "queue", "an endless queue", _endless_queue),
    Limit("loss", "random loss", "no random loss",
          lambda trial: replace(trial, loss_percent=0.0, loss_burst=default("loss_burst"))),
    Limit("jitter", "jitter", "no jitter", partial(_set_default, ("jitter_ms",))),
    Limit("pacing", "pacing", "no pacing", _no_pacing),
    Limit("send-buffer", "send buffer", "an ample send buffer",
          partial(_set_default, ("send_buffer_bytes",))),
    Limit("nagle", "Nagle's algorithm", "TCP_NODELAY", partial(_set_default, ("nagle",))),
    Limit("restart", "slow start after the pause", "a window that stays through the pause",
          _no_restart),
    Limit("used", "used connection", "a fresh connection", _fresh_connection),
    Limit("chain", "certificate chain", "a short certificate chain", _short_chain),
)
BY_TAG = {limit.tag: limit for limit in LIMITS}


def limits_of(trial: Trial) -> tuple[Limit, ...]:
    """The limits that a trial has, in the order of LIMITS."""
    return tuple(limit for limit in LIMITS if limit.lift(trial) != trial)


def without(trial: Trial, limits: Collection[Limit]) -> Trial:
    """The trial without these limits, with the same seed: a what-if trial."""
    lifted = trial
    for limit in LIMITS:
        if limit in limits:
            lifted = limit.lift(lifted)
    return replace(lifted, what_if="_".join(limit.tag for limit in LIMITS if limit in limits))
