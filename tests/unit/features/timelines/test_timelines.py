"""Kept captures as timelines: what was sent, acknowledged, lost and sent again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import dpkt

from firstflight.net.pcap import HEADER as PCAP_HEADER
from firstflight.study.fetches.figures.timelines import by_effect, timelines
from firstflight.study.fetches.verify.record import Record


def packet(time_ms: float, *, to_client: bool, seq: int, ack: int, flags: int,
           payload: int = 0, number: int = 0) -> bytes:
    """One captured frame, Ethernet to TCP, with as much of it as the tap keeps."""
    ports = (80, 4000) if to_client else (4000, 80)
    tcp = dpkt.tcp.TCP(sport=ports[0], dport=ports[1], seq=seq, ack=ack, flags=flags,
                       data=b"x" * payload)
    ip = dpkt.ip.IP(src=bytes(4), dst=bytes(4), p=6, id=number, data=tcp)
    ip.len = len(ip)
    frame = bytes(dpkt.ethernet.Ethernet(type=0x0800, data=ip))
    kept = frame[:96]
    nanoseconds = round(time_ms * 1_000_000)
    return b"".join(part.to_bytes(4, "little") for part in
                    (1, nanoseconds, len(kept), len(frame))) + kept


def captures() -> tuple[bytes, bytes]:
    """A handshake, two segments of which the first is lost and retransmitted, their ACKs."""
    sent = [packet(20, to_client=True, seq=500, ack=101, flags=0x12, number=1),
            packet(60, to_client=True, seq=501, ack=102, flags=0x10, payload=1000, number=2),
            packet(61, to_client=True, seq=1501, ack=102, flags=0x10, payload=1000, number=3),
            packet(320, to_client=True, seq=501, ack=102, flags=0x10, payload=1000, number=4)]
    requested = [packet(0, to_client=False, seq=100, ack=0, flags=0x02, number=5),
             packet(40, to_client=False, seq=101, ack=501, flags=0x10, payload=1, number=6),
             packet(360, to_client=False, seq=102, ack=2501, flags=0x10, number=7)]
    server = [requested[0], sent[0], requested[1], *sent[1:], requested[2]]
    client = [packets for packets in server if packets is not sent[1]]
    return PCAP_HEADER + b"".join(client), PCAP_HEADER + b"".join(server)


def test_a_kept_capture_is_drawn(stored: list[Record], tmp_path: Path) -> None:
    pair = [replace(record, header_bytes=None) for record in stored[:2]]
    other = replace(pair[0], trial=replace(pair[0].trial, rtt_ms=99.0))  # no counterpart
    pair[1:1] = [other, pair[0]]  # nor is the same again, as in a comparison with two windows
    for record, side in ((record, side) for record in pair for side in ("client", "server")):
        (tmp_path / f"{record.trial.id}-{side}.pcap").write_bytes(captures()[side == "server"])
    three, ten = timelines(pair, tmp_path)
    assert (three.title, ten.title) == (  # the windows side by side
        "IW3: RTT 20 ms, 56 kbit/s, 9000 bytes", "IW10: RTT 20 ms, 56 kbit/s, 9000 bytes")
    large_first = [record for record in pair[::-1] if record is not other]
    assert [line.title for line in timelines(large_first, tmp_path)] == [three.title, ten.title]
    assert [mark.kind for mark in three.marks] == ["lost", "data", "again"]
    assert [(mark.time_ms, mark.from_bytes, mark.to_bytes) for mark in three.marks] == [
        (60, 1, 1001), (61, 1001, 2001), (320, 1, 1001)]
    assert three.acknowledged == ((40, 1), (360, 2001))
    assert "3 data segments" in three.text and "1 retransmitted" in three.text
    assert three.to_ms > 360 and (three.to_ms, three.to_bytes) == (ten.to_ms, ten.to_bytes)


def test_captures_that_are_cut_are_left_out(stored: list[Record], tmp_path: Path) -> None:
    for place, packets in enumerate((captures()[1][:-3], PCAP_HEADER, b"")):
        for side in ("client", "server"):
            (tmp_path / f"{stored[place].trial.id}-{side}.pcap").write_bytes(packets)
    (tmp_path / f"{stored[3].trial.id}-client.pcap").write_bytes(captures()[0])
    assert timelines(stored[:4], tmp_path) == ()
    assert timelines(stored[:4], tmp_path / "none") == ()
    (tmp_path / f"{stored[3].trial.id}-server.pcap").write_bytes(captures()[1])
    assert len(timelines(stored[:4], tmp_path)) == 1


def test_a_capture_that_is_no_file_is_not_waited_for(stored: list[Record],
                                                     tmp_path: Path) -> None:
    for side in ("client", "server"):
        os.mkfifo(tmp_path / f"{stored[0].trial.id}-{side}.pcap")
    assert timelines(stored[:1], tmp_path) == ()


def test_the_trials_that_the_window_changes_most_come_first(stored: list[Record]) -> None:
    def took(record: Record, window: int, total_ms: float | None, rtt_ms: float = 20.0) -> Record:
        return replace(record, total_ms=total_ms, trial=replace(
            record.trial, initcwnd=window, rtt_ms=rtt_ms))

    one = stored[0]
    small, large, alone = ([took(one, 3, 500.0), took(one, 10, 510.0)],
                           [took(one, 3, 900.0, 50.0), took(one, 10, 400.0, 50.0)],
                           took(one, 3, 5000.0, 99.0))
    equal = took(one, 16, 400.0, 50.0)  # of two that are as fast the smaller window
    assert by_effect([alone, *small, equal, *large]) == [*large, *small, alone, equal]
    assert by_effect([took(one, 3, None), took(one, 10, None)])[0].trial.initcwnd == 3
