"""TCP's settings in a network namespace: those that are pinned, and why each other one is not.

Together they are all that a namespace has of its own (net.sysctls.KNOWN). What belongs to the
whole kernel (net.core's queues and budgets, tcp_mem) is a guest kernel's own, the same in each
guest.
"""

from __future__ import annotations

# Every setting that changes a transfer, with the value of current distributions and kernels. Only
# the cache of metrics is off: with it a connection would inherit RTT and ssthresh of the one
# before.
TCP_SYSCTLS: dict[str, str] = {
    "net.core.txrehash": "1",
    "net.ipv4.tcp_adv_win_scale": "1",
    "net.ipv4.tcp_app_win": "31",
    "net.ipv4.tcp_autocorking": "1",
    "net.ipv4.tcp_backlog_ack_defer": "1",
    "net.ipv4.tcp_comp_sack_delay_ns": "1000000",
    "net.ipv4.tcp_comp_sack_nr": "44",
    "net.ipv4.tcp_congestion_control": "cubic",
    "net.ipv4.tcp_dsack": "1",
    "net.ipv4.tcp_early_retrans": "3",
    "net.ipv4.tcp_ecn": "2",
    "net.ipv4.tcp_ecn_fallback": "1",
    "net.ipv4.tcp_fastopen": "1",
    "net.ipv4.tcp_frto": "2",
    "net.ipv4.tcp_invalid_ratelimit": "500",
    "net.ipv4.tcp_max_reordering": "300",
    "net.ipv4.tcp_min_rtt_wlen": "300",
    "net.ipv4.tcp_min_tso_segs": "2",
    "net.ipv4.tcp_moderate_rcvbuf": "1",
    "net.ipv4.tcp_mtu_probing": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_no_ssthresh_metrics_save": "1",
    "net.ipv4.tcp_notsent_lowat": "4294967295",
    "net.ipv4.tcp_orphan_retries": "0",
    "net.ipv4.tcp_pacing_ca_ratio": "120",
    "net.ipv4.tcp_pacing_ss_ratio": "200",
    "net.ipv4.tcp_pingpong_thresh": "1",
    "net.ipv4.tcp_plb_enabled": "0",
    "net.ipv4.tcp_recovery": "1",
    "net.ipv4.tcp_reordering": "3",
    "net.ipv4.tcp_retrans_collapse": "1",
    "net.ipv4.tcp_retries1": "3",
    "net.ipv4.tcp_retries2": "15",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_rto_max_ms": "120000",
    "net.ipv4.tcp_rto_min_us": "200000",
    "net.ipv4.tcp_sack": "1",
    "net.ipv4.tcp_shrink_window": "0",
    "net.ipv4.tcp_slow_start_after_idle": "1",
    "net.ipv4.tcp_syn_linear_timeouts": "4",
    "net.ipv4.tcp_syn_retries": "6",
    "net.ipv4.tcp_synack_retries": "5",
    "net.ipv4.tcp_syncookies": "1",
    "net.ipv4.tcp_thin_linear_timeouts": "0",
    "net.ipv4.tcp_timestamps": "1",
    "net.ipv4.tcp_tso_rtt_log": "9",
    "net.ipv4.tcp_tso_win_divisor": "3",
    "net.ipv4.tcp_window_scaling": "1",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "net.ipv4.tcp_workaround_signed_windows": "0",
}
_KERNELS_OWN = "its default differs between kernels, and is a part of what they are"
_OFF = "it needs a setting that is off here"
_LATE = "it matters after a transfer, or on a connection that is idle for minutes"
_NONE = "no transfer here meets it"
_REASONS: dict[str, str] = {
    **dict.fromkeys(("comp_sack_rtt_percent", "comp_sack_slack_ns", "ecn_option",
                     "ecn_option_beacon", "limit_output_bytes", "rcvbuf_low_rtt"), _KERNELS_OWN),
    **dict.fromkeys(("base_mss", "mtu_probe_floor", "probe_interval", "probe_threshold",
                     "plb_cong_thresh", "plb_idle_rehash_rounds", "plb_rehash_rounds",
                     "plb_suspend_rto_sec"), _OFF),
    **dict.fromkeys(("fin_timeout", "keepalive_intvl", "keepalive_probes", "keepalive_time",
                     "max_tw_buckets", "rfc1337", "tw_reuse", "tw_reuse_delay"), _LATE),
    **dict.fromkeys(("abort_on_overflow", "challenge_ack_limit", "child_ehash_entries",
                     "early_demux", "fack", "fastopen_blackhole_timeout_sec", "fastopen_key",
                     "fwmark_accept", "l3mdev_accept", "max_syn_backlog", "migrate_req",
                     "min_snd_mss", "reflect_tos", "stdurg"), _NONE)}
_OF_CORE = ("bypass_prot_mem", "optmem_max", "somaxconn", "tstamp_allow_data", "txq_reselection_ms")
# Why each other setting is not pinned, by its name.
UNPINNED: dict[str, str] = {f"net.ipv4.tcp_{name}": why for name, why in _REASONS.items()}
UNPINNED.update({f"net.core.{name}": _NONE for name in _OF_CORE})
