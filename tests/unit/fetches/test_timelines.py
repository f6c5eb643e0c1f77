"""Timelines of kept captures: which two transfers they show, and how these are named."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from firstflight.base import files
from firstflight.net.pcap import HEADER as PCAP_HEADER
from firstflight.workloads.fetch.figures.timelines import by_effect, timelines
from firstflight.workloads.fetch.record.record import Record
from tests.golden import stored


def kept(folder: Path, record: Record, **captures: bytes) -> None:
    """The captures of one side or of both in the run's folder, with their file headers."""
    for side, packets in captures.items():
        files.save(folder, f"captures/{record.trial.id}-{side}.pcap", PCAP_HEADER + packets)


def test_kept_captures_are_drawn_with_the_windows_side_by_side(tmp_path: Path) -> None:
    """What stands on them is a golden: rendered/bars.parts."""
    lost = stored.load("random_loss")
    other = lost.requested(rtt_ms=99.0)  # has no counterpart
    records = [each.judge() for each in (lost, lost.requested(initcwnd=3), other)]
    for record in records:
        kept(tmp_path, record, client=lost.client, server=lost.server)
    drawn = timelines([*records, records[0]], tmp_path)  # nor is the same again, as in a comparison
    assert [line.title.partition(":")[0] for line in drawn] == ["IW3", f"IW{lost.trial.initcwnd}"]
    assert {mark.kind for mark in drawn[0].marks} == {"data", "lost", "retransmitted"}
    assert (drawn[0].to_ms, drawn[0].to_bytes) == (drawn[1].to_ms, drawn[1].to_bytes)


def test_two_disciplines_are_drawn_side_by_side_by_name(tmp_path: Path) -> None:
    """With one window, and with two: each timeline names its own."""
    one = stored.load("iw10")
    records = [one.requested(qdisc=qdisc).judge() for qdisc in ("fifo", "fq_codel")]
    again = replace(records[0], trial=replace(records[0].trial, repeat=2))
    for record in (*records, again):
        kept(tmp_path, record, client=one.client, server=one.server)
    drawn = timelines([records[0], again, records[1]], tmp_path)
    assert [line.title.partition(":")[0] for line in drawn] == ["qdisc fifo", "qdisc fq_codel"]
    assert all(line.title.endswith("IW10") for line in drawn)
    assert len(timelines([records[0], again], tmp_path)) == 1  # a repeat is nothing else

    smaller = [replace(record, trial=replace(record.trial, initcwnd=3)) for record in records]
    for record in smaller:
        kept(tmp_path, record, client=one.client, server=one.server)
    drawn = timelines([*records, *smaller], tmp_path)
    assert [line.title.partition(":")[0] for line in drawn] == ["IW3", "IW10"]
    assert len({line.title.rpartition("qdisc ")[2] for line in drawn}) == 1


def test_captures_that_show_no_transfer_are_left_out(tmp_path: Path) -> None:
    """Cut, empty, without data, of one side alone, or no files."""
    of = stored.load("iw3")
    records = [of.requested(repeat=repeat).judge() for repeat in range(1, 7)]
    empty = of.captured(*([packet for packet in stored.read(side)
                           if not (packet.to_client and packet.payload_bytes)]
                          for side in (of.client, of.server)))
    for record, client, server in zip(records, (of.client[:-3], b"", empty.client),
                                      (of.server[:-3], b"", empty.server)):
        kept(tmp_path, record, client=client, server=server)

    kept(tmp_path, records[3], client=of.client)
    for side in ("client", "server"):
        os.mkfifo(tmp_path / "captures" / f"{records[4].trial.id}-{side}.pcap")
    assert timelines(records, tmp_path) == () == timelines(records, tmp_path / "none")
    kept(tmp_path, records[3], server=of.server)
    assert len(timelines(records, tmp_path)) == 1


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
