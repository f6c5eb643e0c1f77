"""Checks of a trace's TCP: the options of the SYNs, its segments, and the server's socket."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.model.receiver import first_window, window_unit
from firstflight.net.headers import TIMESTAMP_BYTES
from firstflight.setting.tcp import ETHERNET_MSS, MOST_IN_A_SYN_BYTES, RECEIVE, buffer_sizes
from firstflight.wire.exchange import first_mss
from firstflight.wire.offers import Offer, expected_offer, has_timestamps, offers_of, sysctl
from firstflight.workloads.trace.record import TraceEvidence


def compare_syns(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare the SYNs and SYN-ACKs that left with what both hosts' settings make of them.

    A server offers what the client offered. On other kernels the window's scale follows from
    net.core.rmem_max, too, and is not compared.
    """
    wire = evidence.view.exchange
    asks = sysctl(evidence.client_sysctls, "ecn") == "1"
    takes = asks and sysctl(evidence.server_sysctls, "ecn") in ("1", "2")
    was_repeated = len(wire.syns) + len(wire.syn_acks) > 2
    client = expected_offer(evidence.client_sysctls, evidence.trial.syn_mss,
                            _client_unit(evidence), asks)
    of_server = window_unit(buffer_sizes(evidence.server_sysctls, RECEIVE))
    able = expected_offer(evidence.server_sysctls, ETHERNET_MSS, of_server, takes)
    server = able._replace(sack=able.sack and client.sack,
                           timestamps=able.timestamps and client.timestamps,
                           scale=None if client.scale is None else able.scale)

    for offered in offers_of(wire.syns, True, asks, was_repeated):
        yield from _judged(evidence, offered).compared("client", _judged(evidence, client))
    for offered in offers_of(wire.syn_acks, False, takes, was_repeated):
        yield from _judged(evidence, offered).compared("server", _judged(evidence, server))
    window = _first_window(evidence)
    for value in dict.fromkeys(segment.window for segment in wire.syns):
        yield Comparison(value == window, f"client's first window {value}", f"{window}")


def _judged(evidence: TraceEvidence, offer: Offer) -> Offer:
    return offer if evidence.exact and evidence.known_kernel else offer._replace(scale=None)


def _client_unit(evidence: TraceEvidence) -> int:
    """Bytes that the client's packets count the window in; a window that is limited needs less."""
    return window_unit(_client_buffers(evidence),
                       evidence.trial.receive_window * evidence.trial.mss)


def _first_window(evidence: TraceEvidence) -> int:
    """The window of the client's SYN, bytes, which is never scaled."""
    trial = evidence.trial
    window = first_window(trial.client_window, _client_buffers(evidence), trial.syn_mss)
    if trial.receive_window:
        most = trial.receive_window * trial.mss
        window = min(window, most // trial.syn_mss * trial.syn_mss or most)
    return min(window, MOST_IN_A_SYN_BYTES)


def _client_buffers(evidence: TraceEvidence) -> tuple[int, int]:
    return buffer_sizes(evidence.trial.with_buffers(evidence.client_sysctls), RECEIVE)


def full_mss(evidence: TraceEvidence) -> int:
    """The data in a full segment; without time stamps there is room for more."""
    stamped = (has_timestamps(evidence.client_sysctls)
               and has_timestamps(evidence.server_sysctls))
    return evidence.trial.mss + (0 if stamped else TIMESTAMP_BYTES)


def compare_segment_size(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare the MSS of the server's socket, and the longest segment that left."""
    mss, expected = evidence.view.samples[0].mss, first_mss(evidence.view.exchange,
                                                            full_mss(evidence))
    yield Comparison(mss == expected, f"{mss} bytes", f"{expected}")
    longest, most = max(s.payload_bytes for s in evidence.view.sends), full_mss(evidence)
    yield Comparison(longest <= most, f"a segment of {longest} bytes", f"at most {most}")


def compare_socket(evidence: TraceEvidence) -> Iterator[Comparison]:
    """Compare what the server's kernel reports of its socket."""
    trial = evidence.trial
    for response in evidence.observation["responses"]:
        if "congestion_control" in response:
            control = response["congestion_control"]
            yield Comparison(control == trial.congestion_control,
                             f"congestion control {control}", trial.congestion_control)
        if "has_nagle" in response:
            is_on = response["has_nagle"]
            yield Comparison(is_on == trial.nagle, f"Nagle's algorithm {'on' if is_on else 'off'}",
                             "on" if trial.nagle else "off")
        if "reordering" in response:
            expected = int(sysctl(evidence.server_sysctls, "reordering"))
            yield Comparison(response["reordering"] == expected,
                             f"reordering {response['reordering']}", f"{expected}")
        if "is_pacing_limited" in response:
            yield Comparison(not response["is_pacing_limited"], "a limit of the pacing rate",
                             "none")
