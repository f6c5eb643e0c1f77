"""Checks of a server's socket: what its kernel reports before anything is acknowledged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from firstflight.base.comparison import Comparison
from firstflight.judge.shared_evidence import SharedEvidence
from firstflight.judge.syns import mss_of
from firstflight.net.buffers import buffer_per_segment
from firstflight.setting.setting import LinkSetting
from firstflight.setting.tcp import SEND, buffer_sizes, fixed_send_buffer
from firstflight.testbed.messages import Response
from firstflight.wire.exchange import Exchange, first_mss, server_rtt_us
from firstflight.wire.offers import sysctl

BBR = "bbr"
_BBR_GAIN = 256 * 2885 // 1000 + 1  # in 256ths (bbr_high_gain)
_BBR_US = 990_000  # µs of a second that BBR uses: it leaves a margin of 1 %
_BBR_BUFFERS = 3  # windows for which BBR's send buffer has room (bbr_sndbuf_expand)
LEAST_BUFFERED_SEGMENTS = 10  # (TCP_INIT_CWND)


def compare_sockets(evidence: SharedEvidence) -> Iterator[Comparison]:
    """Compare each report of a server's socket with the setting."""
    for connection in evidence.connections:
        for report in connection.reports:
            yield from _compare_socket(evidence, report, connection.exchange)


def compare_initial_windows(evidence: SharedEvidence) -> Iterator[Comparison]:
    """Compare the initial window of each connection whose TCP begins with it (has_window)."""
    for connection in evidence.connections:
        window = connection.initial_window
        if window is not None and has_window(evidence.setting, connection.exchange):
            yield Comparison(window == evidence.setting.server_window, f"{window} segments",
                             f"{evidence.setting.server_window}",
                             name=f"initial window{connection.where}")


def _compare_socket(evidence: SharedEvidence, report: Response, wire: Exchange
                    ) -> Iterator[Comparison]:
    """Compare what the server's kernel reports of one socket. Servers but server.py report less."""
    setting, sysctls = evidence.setting, evidence.server_sysctls
    if "congestion_control" in report:
        control = report["congestion_control"]
        yield Comparison(control == setting.congestion_control, f"congestion control {control}",
                         setting.congestion_control)

    yield from _compare_send_buffer(evidence, report, wire)

    if "reordering" in report:
        expected = int(sysctl(sysctls, "reordering"))
        yield Comparison(report["reordering"] == expected, f"reordering {report['reordering']}",
                         f"{expected}")

    if "has_nagle" in report:
        observed = "on" if report["has_nagle"] else "off"
        yield Comparison(observed == evidence.nagle, f"Nagle's algorithm {observed}",
                         evidence.nagle)

    if mss := report.get("mss"):
        expected = first_mss(wire, mss_of(setting, evidence.client_sysctls, sysctls))
        yield Comparison(mss == expected, f"an MSS of {mss} bytes", f"{expected}")

    if "is_pacing_limited" in report:
        yield Comparison(not report["is_pacing_limited"], "a limit of the pacing rate", "none")

    rtts_us = server_rtt_us(wire)
    if (evidence.is_exact and "pacing_bytes_per_s" in report and rtts_us
            and has_window(setting, wire)):
        rate = report["pacing_bytes_per_s"]
        least, most = _pacing_rates(setting, report, sysctls, rtts_us)
        yield Comparison(least <= rate <= most, f"a pacing rate of {rate} bytes/s",
                         f"{least} to {most}")


def has_window(setting: LinkSetting, wire: Exchange) -> bool:
    """Whether TCP begins with the initial window.

    After lost or reordered SYN-ACKs it rightly begins with one segment (RFC 6928 section 2,
    tcp_init_transfer).
    """
    return len(wire.syn_acks) <= 2 or not (wire.handshake_was_lost or setting.disorder)


def _compare_send_buffer(evidence: SharedEvidence, report: Response, wire: Exchange
                         ) -> Iterator[Comparison]:
    """Compare the size of the send buffer, and whether SO_SNDBUF has fixed it."""
    setting = evidence.setting
    if "fixed_send_buffer" in report:
        observed = "fixed" if report["fixed_send_buffer"] else "growing"
        is_fixed = setting.send_buffer_bytes > 0 or evidence.fixes_buffer
        requested = "fixed" if is_fixed else "growing"
        yield Comparison(observed == requested, f"a {observed} send buffer", f"a {requested} one")

    if setting.send_buffer_bytes and "send_buffer_bytes" in report:
        size, fixed = report["send_buffer_bytes"], fixed_send_buffer(setting.send_buffer_bytes)[0]
        yield Comparison(size == fixed, f"a send buffer of {size} bytes", f"{fixed}")

    if "first_buffer_bytes" in report and evidence.is_exact and has_window(setting, wire):
        size, first = report["first_buffer_bytes"], _first_buffer(setting, evidence.server_sysctls)
        yield Comparison(size == first, f"a send buffer of {size} bytes at first", f"{first}")


def _first_buffer(setting: LinkSetting, sysctls: Mapping[str, str]) -> int:
    """The size of the server's send buffer at accept (tcp_init_buffer_space, tcp_sndbuf_expand)."""
    first, most = buffer_sizes(setting.with_buffers(sysctls), SEND)
    segments = max(LEAST_BUFFERED_SEGMENTS, setting.server_window,
                   int(sysctl(sysctls, "reordering")) + 1)
    windows = _BBR_BUFFERS if setting.congestion_control == BBR else 2
    expanded = buffer_per_segment(setting.mss) // 2 * windows * segments
    return max(first, min(expanded, most))


def _pacing_rates(setting: LinkSetting, report: Response, sysctls: Mapping[str, str],
                  rtts_us: tuple[int, int]) -> tuple[int, int]:
    """The smallest and the largest pacing rate that TCP may compute at accept, in bytes/s.

    It is one window in each RTT of the handshake, times tcp_pacing_ss_ratio
    (tcp_update_pacing_rate). BBR has its own rule (bbr_init_pacing_rate_from_rtt). rtts_us: the
    smallest and the largest RTT that the server may have measured.
    """
    mss, window = report["mss"] or setting.mss, setting.server_window
    if setting.congestion_control == BBR:
        # As the kernel computes: 24 bits after the point for rates (BW_SCALE), and 8 for gains.
        rates = [((window << 24) // us * mss * _BBR_GAIN >> 8) * _BBR_US >> 24 for us in rtts_us]
    else:
        ratio = int(sysctls.get("net.ipv4.tcp_pacing_ss_ratio", 200))
        rates = [mss * ratio * window * 10_000 // us for us in rtts_us]
    return min(rates), max(rates)
