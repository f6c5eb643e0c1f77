"""Checks of TCP's settings: the options of the SYNs, segment sizes, and the server's socket.

Requested settings are compared, and so are those left at Linux's default (wire.offers).
"""

from __future__ import annotations

from collections.abc import Iterable

from firstflight.base.comparison import Comparison
from firstflight.base.quantity import FIXED
from firstflight.judge import syns
from firstflight.judge.syns import mss_of
from firstflight.net.buffers import buffer_per_segment
from firstflight.runs.results.checks import Check
from firstflight.setting.server import OWN
from firstflight.setting.tcp import MOST_BEYOND_FIXED, SEND, buffer_sizes, fixed_send_buffer
from firstflight.wire.exchange import first_mss, server_rtt_us
from firstflight.wire.offers import sysctl
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.verify.integrity import is_on_wire
from firstflight.workloads.fetch.record.limits import offered_to

BBR = "bbr"
_BBR_GAIN, _BBR_US = 256 * 2885 // 1000 + 1, 990_000  # bbr_high_gain; a second less its margin
_BBR_BUFFERS = 3  # bbr_sndbuf_expand
LEAST_BUFFERED_SEGMENTS = 10  # TCP_INIT_CWND
_LEAST_BUFFER_BYTES = 20_000
_LEAST_JUDGED_SEGMENTS = 12


def _compare_syns(evidence: Evidence) -> Iterable[Comparison]:
    return syns.compare_syns(
        evidence.trial, evidence.sysctls, evidence.sysctls, evidence.wire,
        has_scale=evidence.tolerances.model_ms is not None,
        judges_server=evidence.trial.server != OWN)


def _compare_socket(evidence: Evidence) -> Iterable[Comparison]:
    """Compare what the server's kernel reports of its socket; other servers report less."""
    trial, report = evidence.trial, evidence.report
    # In real time RTTs are not exact, and other kernels have other headers and pacing.
    is_exact = evidence.tolerances.model_ms is not None
    if "congestion_control" in report:
        control = report["congestion_control"]
        yield Comparison(control == trial.congestion_control, f"congestion control {control}",
                         trial.congestion_control)
    if "fixed_send_buffer" in report:
        observed, requested = ("fixed" if is_fixed else "growing" for is_fixed in (
            report["fixed_send_buffer"], trial.send_buffer_bytes > 0))
        yield Comparison(observed == requested, f"a {observed} send buffer", f"a {requested} one")
    if "reordering" in report:
        expected = int(sysctl(evidence.sysctls, "reordering"))
        yield Comparison(report["reordering"] == expected, f"reordering {report['reordering']}",
                         f"{expected}")
    if trial.send_buffer_bytes and "send_buffer_bytes" in report:
        size, fixed = report["send_buffer_bytes"], fixed_send_buffer(trial.send_buffer_bytes)[0]
        yield Comparison(size == fixed, f"a send buffer of {size} bytes", f"{fixed}")
    if "first_buffer_bytes" in report and is_exact and has_window(evidence):
        size, first = report["first_buffer_bytes"], _first_buffer(evidence)
        yield Comparison(size == first, f"a send buffer of {size} bytes at first", f"{first}")
    if "has_nagle" in report:
        nagle = "on" if report["has_nagle"] else "off"
        yield Comparison(nagle == trial.nagle, f"Nagle's algorithm {nagle}", trial.nagle)
    if mss := report.get("mss"):
        expected = first_mss(evidence.wire, mss_of(evidence.trial, evidence.sysctls))
        yield Comparison(mss == expected, f"an MSS of {mss} bytes", f"{expected}")
    if "is_pacing_limited" in report:
        yield Comparison(not report["is_pacing_limited"], "a limit of the pacing rate", "none")
    rtts_us = server_rtt_us(evidence.wire)
    if is_exact and "pacing_bytes_per_s" in report and rtts_us and has_window(evidence):
        rate, (least, most) = report["pacing_bytes_per_s"], _pacing_rates(evidence, rtts_us)
        yield Comparison(least <= rate <= most, f"a pacing rate of {rate} bytes/s",
                         f"{least} to {most}")


def _compare_segments(evidence: Evidence) -> Iterable[Comparison]:
    """Compare segments with the MSS; path MTU probing (RFC 4821) would send shorter ones.

    Ends of writes are shorter, and segments that fill a window or a buffer up. In 700 random
    transfers these were at most one segment in six.
    """
    trial, mss = evidence.trial, mss_of(evidence.trial, evidence.sysctls)
    sizes = [segment.payload_bytes for segment in evidence.wire.at_server
             if segment.to_client and segment.payload_bytes]
    if not sizes:
        return
    yield Comparison(max(sizes) <= mss, f"a segment of {max(sizes)} bytes", f"at most {mss}")
    # A window of two segments halves them (tcp_bound_to_half_wnd), a small buffer cuts them.
    has_room = trial.client_window > 3 and not 0 < trial.send_buffer_bytes < _LEAST_BUFFER_BYTES
    write = max(trial.burst_bytes, trial.response_bytes - trial.burst_bytes)
    if has_room and write >= _LEAST_JUDGED_SEGMENTS * mss and not trial.is_secure:
        full = sizes.count(mss)
        yield Comparison(full >= len(sizes) / 2,
                         f"{full} of {len(sizes)} segments with {mss} bytes",
                       "half of them at least")


def has_window(evidence: Evidence) -> bool:
    """Whether TCP begins with the initial window.

    After lost or reordered SYN-ACKs it rightly begins with one segment (RFC 6928 section 2,
    tcp_init_transfer).
    """
    return len(evidence.wire.syn_acks) <= 2 or not (
        evidence.wire.handshake_was_lost or evidence.trial.disorder)


def _first_buffer(evidence: Evidence) -> int:
    """Size of the server's send buffer at accept (tcp_init_buffer_space, tcp_sndbuf_expand)."""
    trial = evidence.trial
    first, most = buffer_sizes(trial.with_buffers(evidence.sysctls), SEND)
    segments = max(LEAST_BUFFERED_SEGMENTS, trial.server_window,
                   int(sysctl(evidence.sysctls, "reordering")) + 1)
    share = _BBR_BUFFERS if trial.congestion_control == BBR else 2
    return max(first, min(buffer_per_segment(trial.mss) // 2 * share * segments, most))


def _pacing_rates(evidence: Evidence, rtts_us: tuple[int, int]) -> tuple[int, int]:
    """The smallest and the largest pacing rate that TCP may compute at accept, in bytes/s.

    One window in each RTT of the handshake, times tcp_pacing_ss_ratio (tcp_update_pacing_rate); BBR
    has its own rule (bbr_init_pacing_rate_from_rtt).
    """
    trial = evidence.trial
    mss, window = evidence.report["mss"] or trial.mss, trial.server_window
    if trial.congestion_control == BBR:
        rates = [((window << 24) // us * mss * _BBR_GAIN >> 8) * _BBR_US >> 24 for us in rtts_us]
    else:
        ratio = int(evidence.sysctls.get("net.ipv4.tcp_pacing_ss_ratio", 200))
        rates = [mss * ratio * window * 10_000 // us for us in rtts_us]
    return min(rates), max(rates)


def _compare_receive_window(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the largest window that was offered with the one that stays."""
    trial, offered = evidence.trial, offered_to(evidence)
    if trial.most_window_bytes and offered is not None:
        unit = evidence.transfer.window_unit
        most = trial.most_window_bytes + MOST_BEYOND_FIXED * trial.mss + unit
        yield Comparison(offered.most_bytes < most, f"{offered.most_bytes} bytes offered",
                         f"less than {most}")


SYNS: Check[Evidence, Record] = Check(
    syns.NAME, syns.WHY, _compare_syns, is_on_wire)
SEGMENTS: Check[Evidence, Record] = Check(
    "segment size", "full segments are as long as the MSS lets them", _compare_segments,
    lambda record: is_on_wire(record) and record.trial.server != OWN)
RECEIVE_WINDOW: Check[Evidence, Record] = Check(
    "receive window", "a window that stays is the most that is offered", _compare_receive_window,
    lambda record: is_on_wire(record) and record.trial.rwnd_growth == FIXED, seldom=True)
SOCKET: Check[Evidence, Record] = Check(
    "server's socket", "congestion control, send buffer, reordering and pacing by its kernel",
    _compare_socket, lambda record: is_on_wire(record) and record.trial.server != OWN)
