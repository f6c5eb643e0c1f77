"""The sysctls that a scenario may set, and the form of their values.

Only those that each network namespace has for itself: the others belong to the whole kernel, so
that two hosts of a network cannot differ in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from firstflight.base.errors import UsageError
from firstflight.base.words import nearest
from firstflight.runs import schema

# Of Linux 7.2: ipv4_net_table in net/ipv4/sysctl_net_ipv4.c, and netns_core_table in
# net/core/sysctl_net_core.c, without read-only ones. Older kernels refuse those that they lack.
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


def sysctls_of(raw: Mapping[str, object], where: str, one_word: bool = False) -> dict[str, str]:
    """The [sysctls] of a table, checked; one_word: values without a space. Raises UsageError."""
    sysctls = schema.table(raw, "sysctls", where)
    for key, value in sysctls.items():
        if key not in KNOWN:
            raise UsageError(f"{where}: [sysctls]: unknown {key!r}{nearest(key, KNOWN)}; known are"
                             " net.ipv4.tcp_… and net.core.… that a network namespace has of its"
                             ' own, like "net.ipv4.tcp_sack" = "0"')
        if not isinstance(value, str) or not _VALUE.fullmatch(value) or one_word and " " in value:
            raise UsageError(f"{where}: [sysctls]: {key} = {value!r} is not"
                             f" {'a number or a word' if one_word else 'numbers or words'}"
                             ' in quotes, like "0"')
    return sysctls


def of_flags(given: Iterable[str], where: str, one_word: bool = False) -> dict[str, str]:
    """The sysctls of --sysctl NAME=VALUE. one_word: as in sysctls_of. Raises UsageError."""
    sysctls = {}
    for words in given:
        name, equals, value = words.partition("=")
        if not equals or '"' in words or "\\" in words or "\n" in words:
            raise UsageError(f"--sysctl: {words!r} is not NAME=VALUE, like net.ipv4.tcp_sack=0")
        sysctls[name.strip()] = value.strip()
    return sysctls_of({"sysctls": sysctls}, where, one_word)
