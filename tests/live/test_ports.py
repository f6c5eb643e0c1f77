"""A trial's connections have the same ports at any place in a run, since fair queues hash them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firstflight.net.segments import frames_of
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.messages import Job
from firstflight.wire.exchange import read_exchanges
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.page import objects
from firstflight.workloads.page.trial import PageTrial

FETCH = Trial(scenario="live", rtt_ms=50, bandwidth_kbps=3000, uplink_kbps=3000,
              queue_packets=20, loss_percent=0, initcwnd=10, initrwnd=1000,
              congestion_control="cubic", client="curl", response_bytes=20_000, repeat=1)
PAGE = PageTrial(
    scenario="live", part="own", page="made", rtt_ms=50.0, bandwidth_kbps=10_000.0,
    uplink_kbps=10_000.0, queue_packets=100, loss_percent=0.0, http="1.1", connections=6,
    server="builtin", initcwnd=10, initrwnd=1000, congestion_control="cubic", repeat=1, seed=0,
    objects=objects.equal_objects(20, 15_000, 30_000))
FETCHES = {
    "curl": FETCH, "wget": replace(FETCH, client="wget"),
    "libcurl": replace(FETCH, client="libcurl"),
    "kept": replace(FETCH, client="libcurl", earlier_bytes=3000),
    "nginx": replace(FETCH, server="nginx"),
    "TLS": replace(FETCH, chain_bytes=2000, http="2", server="nginx")}


def ports(kernel: Path, folder: Path, jobs: list[Job]) -> list[list[int]]:
    """The client's ports in each trial, in the order of first packets; all are in one guest."""
    found = []
    for seen in UmlEngine(kernel, 1).run(jobs, {}, folder):
        exchanges = read_exchanges(*frames_of(seen.client_pcap, seen.server_pcap))
        found.append([port for (_, port) in exchanges])
    return found


@pytest.mark.parametrize("name", FETCHES)
def test_a_fetch_has_the_same_ports_as_first_and_as_later_trial(kernel: Path, tmp_path: Path,
                                                                name: str) -> None:
    jobs = [replace(FETCHES[name], repeat=repeat).job() for repeat in range(1, 6)]
    first, *later = ports(kernel, tmp_path, jobs)
    assert first and later == [first] * 4


def test_a_page_has_the_same_ports_as_first_and_as_later_trial(kernel: Path,
                                                               tmp_path: Path) -> None:
    other = replace(PAGE, objects=objects.equal_objects(7, 5_000, 9_000))
    jobs = [(replace(trial, repeat=repeat)).job() for repeat, trial in
            enumerate((PAGE, other, PAGE, other, PAGE), start=1)]
    found = ports(kernel, tmp_path, jobs)
    assert len(found[0]) == 6 and found[0] == found[2] == found[4]
