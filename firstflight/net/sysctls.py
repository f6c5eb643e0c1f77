"""The sysctls that may be set, the form of their values, and several of them as one parameter.

A sysctl may be set if each network namespace has its own value. Any other belongs to the whole
kernel, so two hosts of a network could not differ in it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from types import MappingProxyType

from firstflight.base.quantity import Word
from firstflight.base.words import nearest

# The sysctls of Linux 7.2 that can be written: ipv4_net_table in net/ipv4/sysctl_net_ipv4.c, and
# netns_core_table in net/core/sysctl_net_core.c. An older kernel refuses those that it lacks.
_TCP = """
    abort_on_overflow adv_win_scale app_win autocorking backlog_ack_defer base_mss
    challenge_ack_limit child_ehash_entries comp_sack_delay_ns comp_sack_nr
    comp_sack_rtt_percent comp_sack_slack_ns congestion_control dsack early_demux early_retrans
    ecn ecn_fallback ecn_option ecn_option_beacon fack fastopen fastopen_blackhole_timeout_sec
    fastopen_key fin_timeout frto fwmark_accept invalid_ratelimit keepalive_intvl
    keepalive_probes keepalive_time l3mdev_accept limit_output_bytes max_reordering
    max_syn_backlog max_tw_buckets migrate_req min_rtt_wlen min_snd_mss min_tso_segs
    moderate_rcvbuf mtu_probe_floor mtu_probing no_metrics_save no_ssthresh_metrics_save
    notsent_lowat orphan_retries pacing_ca_ratio pacing_ss_ratio pingpong_thresh plb_cong_thresh
    plb_enabled plb_idle_rehash_rounds plb_rehash_rounds plb_suspend_rto_sec probe_interval
    probe_threshold rcvbuf_low_rtt recovery reflect_tos reordering retrans_collapse retries1
    retries2 rfc1337 rmem rto_max_ms rto_min_us sack shrink_window slow_start_after_idle stdurg
    syn_linear_timeouts syn_retries synack_retries syncookies thin_linear_timeouts timestamps
    tso_rtt_log tso_win_divisor tw_reuse tw_reuse_delay window_scaling wmem
    workaround_signed_windows
"""
_CORE = "bypass_prot_mem optmem_max somaxconn tstamp_allow_data txq_reselection_ms txrehash"
KNOWN = frozenset({*(f"net.ipv4.tcp_{name}" for name in _TCP.split()),
                   *(f"net.core.{name}" for name in _CORE.split())})
# Numbers, names and keys, as the files in /proc/sys take them.
_VALUE = re.compile(r"[\w,.:-]{1,64}( [\w,.:-]{1,64}){0,3}", re.ASCII)
BUFFERS = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")  # least, first and largest size in bytes
_SIZES = re.compile(r"[1-9]\d{0,9}( [1-9]\d{0,9}){2}", re.ASCII)
_NAMED = re.compile(r"net\.\w+\.\w+=", re.ASCII)  # how a value begins that has a name of its own
NONE = "none"  # a value of Sysctls: no sysctl differs from the rest of the run
MOST_TOGETHER = 20  # sysctls in one value of Sysctls


def check(name: str, value: object) -> None:
    """Check one sysctl. Raises ValueError with what is wrong."""
    if name not in KNOWN:
        raise ValueError(f"unknown {name!r}{nearest(name, KNOWN)}; known are"
                         " net.ipv4.tcp_… and net.core.… that a network namespace has of its"
                         " own, like net.ipv4.tcp_sack")
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        raise ValueError(f"{name} = {value!r} is not numbers or words, like"
                         ' "0"')
    if name in BUFFERS and not _SIZES.fullmatch(value):
        raise ValueError(f"{name} = {value!r} is not the least, the first and the largest"
                         ' size in bytes, like "4096 131072 6291456"')


@dataclass(frozen=True)
class Sysctls(Word):
    """Sysctls of both hosts, as "net.ipv4.tcp_sack=0+net.ipv4.tcp_ecn=1", or NONE."""

    def accept(self, value: object) -> str:
        if value == NONE:
            return NONE
        pairs = []
        if isinstance(value, str):
            pairs = [pair.partition("=") for pair in value.split("+")]
        if not 0 < len(pairs) <= MOST_TOGETHER or not all(equals for _, equals, _ in pairs):
            raise ValueError(f"{value!r} is not NAME=VALUE, like net.ipv4.tcp_sack=0; +"
                             " stands between several that go together")
        for name, _, setting in pairs:
            check(name, setting)
        if len({name for name, _, _ in pairs}) < len(pairs):
            raise ValueError(f"{value!r} has one sysctl twice")
        return str(value)

    def listed(self, words: str) -> list[str]:
        """NAME=VALUE for each of the values behind one name. Raises ValueError.

        Quotes, as NAME="a,b", hold a value with a comma together. Each value may begin with a name
        of its own.
        """
        if words.strip() == NONE:
            return [NONE]
        name, equals, values = (part.strip() for part in words.partition("="))
        if not equals or not values or not words.isprintable():
            raise ValueError(f"{words!r} is not NAME=VALUE, like net.ipv4.tcp_sack=0")
        try:
            (parts,) = csv.reader([values], skipinitialspace=True, strict=True)
        except csv.Error:
            raise ValueError(f"{words!r}: a quote has no end") from None

        settings = [" ".join(part.split()) for part in parts]
        return [setting if _NAMED.match(setting) else f"{name}={setting}" for setting in settings]

    def together(self, values: Sequence[str]) -> tuple[str, ...]:
        """Every combination of values with different names.

        Where a value has several names already, or is NONE, all values stay as they are.
        """
        if any(value == NONE or "+" in value for value in values):
            return tuple(values)

        by_name: dict[str, list[str]] = {}
        for value in values:
            by_name.setdefault(value.partition("=")[0], []).append(value)
        return tuple("+".join(pairs) for pairs in product(*by_name.values()))

    def bucket_names(self, values: Sequence[str | float]) -> tuple[list[str], str]:
        """A name for the bucket of each value, and the name of their axis.

        If all values set the same one sysctl, the axis has its name; else each bucket has the name.
        """
        settings = [settings_of(str(value)) for value in values]
        names = set[str]().union(*settings)
        if len(names) == 1 and all(settings):
            name = names.pop()
            return [setting[name] for setting in settings], name

        buckets = [str(value).replace("net.ipv4.", "").replace("+", " + ") for value in values]
        return buckets, self.axis

    @property
    def metavar(self) -> str:
        return "NAME=VALUE,…"

    @property
    def range(self) -> str:
        return "NAME=VALUE, as net.ipv4.tcp_slow_start_after_idle=0"


@lru_cache(maxsize=1024)
def settings_of(words: str) -> Mapping[str, str]:
    """The sysctls of a value of Sysctls, by name."""
    pairs = () if words == NONE else words.split("+")
    return MappingProxyType(dict(pair.split("=", 1) for pair in pairs))


def words_of(settings: Mapping[str, str]) -> str:
    """The reverse of settings_of."""
    return "+".join(f"{name}={value}" for name, value in settings.items()) or NONE


def shared_and_varied(values: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The sysctls that are alike in all values of Sysctls, and the values without these sysctls."""
    first, *others = map(settings_of, values)
    shared = dict(first)
    for settings in others:
        shared = {name: value for name, value in shared.items() if settings.get(name) == value}

    varied = []
    for settings in (first, *others):
        not_shared = {name: value for name, value in settings.items() if name not in shared}
        varied.append(words_of(not_shared))
    return shared, tuple(varied)
