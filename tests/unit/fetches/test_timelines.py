"""Timelines of kept captures: which two transfers they show, and how the two are named."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from firstflight.base import files
from firstflight.net.pcap import HEADER as PCAP_HEADER
from firstflight.workloads.fetch.figures.timelines import by_effect, timelines
from firstflight.workloads.fetch.record.record import Record
from tests.golden import stored


def keep(folder: Path, record: Record, **captures: bytes) -> None:
    """Writes captures of a record into the run's folder, by the name of their side."""
    for side, packets in captures.items():
        files.save(folder, f"captures/{record.trial.id}-{side}.pcap", PCAP_HEADER + packets)


def test_kept_captures_are_drawn_with_the_windows_side_by_side(tmp_path: Path) -> None:
    """The texts on timelines are in a golden, rendered/bars.parts."""
    lost = stored.load("random_loss")
    alone = lost.requested(rtt_ms=99.0)  # without a counterpart, so it is not drawn
    records = [trial.judge() for trial in (lost, lost.requested(initcwnd=3), alone)]
    for record in records:
        keep(tmp_path, record, client=lost.client, server=lost.server)
    # A record that comes twice, as in a comparison of runs, is drawn once.
    drawn = timelines([*records, records[0]], tmp_path)
    assert [line.title.partition(":")[0] for line in drawn] == ["IW3", f"IW{lost.trial.initcwnd}"]
    assert {mark.kind for mark in drawn[0].marks} == {"data", "lost", "retransmitted"}
    assert (drawn[0].to_ms, drawn[0].to_bytes) == (drawn[1].to_ms, drawn[1].to_bytes)


def test_timelines_of_one_window_are_named_by_the_queueing_discipline_and_of_two_by_the_window(
        tmp_path: Path) -> None:
    one = stored.load("iw10")
    records = [one.requested(qdisc=qdisc).judge() for qdisc in ("fifo", "fq_codel")]
    again = replace(records[0], trial=replace(records[0].trial, repeat=2))
    for record in (*records, again):
        keep(tmp_path, record, client=one.client, server=one.server)
    drawn = timelines([records[0], again, records[1]], tmp_path)
    assert [line.title.partition(":")[0] for line in drawn] == ["qdisc fifo", "qdisc fq_codel"]
    assert all(line.title.endswith("IW10") for line in drawn)
    assert len(timelines([records[0], again], tmp_path)) == 1  # a repeat has the same parameters

    smaller = [replace(record, trial=replace(record.trial, initcwnd=3)) for record in records]
    for record in smaller:
        keep(tmp_path, record, client=one.client, server=one.server)
    drawn = timelines([*records, *smaller], tmp_path)
    assert [line.title.partition(":")[0] for line in drawn] == ["IW3", "IW10"]
    assert len({line.title.rpartition("qdisc ")[2] for line in drawn}) == 1


def test_captures_that_show_no_transfer_are_excluded(tmp_path: Path) -> None:
    """They are cut, empty, without data, of one side only, no regular files, or missing."""
    good = stored.load("iw3")
    records = [good.requested(repeat=repeat).judge() for repeat in range(1, 7)]
    without_data = good.captured(*([packet for packet in stored.read(side)
                                    if not (packet.to_client and packet.payload_bytes)]
                                   for side in (good.client, good.server)))
    keep(tmp_path, records[0], client=good.client[:-3], server=good.server[:-3])
    keep(tmp_path, records[1], client=b"", server=b"")
    keep(tmp_path, records[2], client=without_data.client, server=without_data.server)
    keep(tmp_path, records[3], client=good.client)
    for side in ("client", "server"):
        os.mkfifo(tmp_path / "captures" / f"{records[4].trial.id}-{side}.pcap")
    assert timelines(records, tmp_path) == () == timelines(records, tmp_path / "none")
    keep(tmp_path, records[3], server=good.server)
    assert len(timelines(records, tmp_path)) == 1


def test_the_trials_that_the_window_changes_most_come_first(stored: list[Record]) -> None:
    def took(window: int, total_ms: float | None, rtt_ms: float = 20.0) -> Record:
        return replace(stored[0], total_ms=total_ms, trial=replace(
            stored[0].trial, initcwnd=window, rtt_ms=rtt_ms))

    small_effect = [took(3, 500.0), took(10, 510.0)]
    large_effect = [took(3, 900.0, rtt_ms=50.0), took(10, 400.0, rtt_ms=50.0)]
    alone = took(3, 5000.0, rtt_ms=99.0)
    # Windows of 10 and 16 are equally fast: the smaller one is compared with the baseline.
    equal = took(16, 400.0, rtt_ms=50.0)
    assert by_effect([alone, *small_effect, equal, *large_effect]) == [
        *large_effect, *small_effect, alone, equal]
    assert by_effect([took(3, None), took(10, None)])[0].trial.initcwnd == 3
