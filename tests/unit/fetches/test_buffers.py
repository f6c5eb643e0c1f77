"""Receive window and buffers follow the largest initial window, unless a scenario says otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.core import scenario_file
from lab.core.kinds import Overrides
from lab.fetches import buffers, reading
from lab.fetches.evidence import Evidence
from lab.fetches.study import apply, expand, study
from lab.fetches.tolerances import EXACT
from lab.tcp.exchange import read_exchange
from lab.tcp.predict import predict
from lab.tcp.transfer import Transfer
from tests.golden import stored
from tests.unit.fetches.small import SMALL, WITHOUT_FIGURES, small

RMEM, WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"


@pytest.mark.parametrize(("file_windows", "line", "asked", "initrwnd"), [
    ("[3, 10]", "initrwnd = 27", None, 27),
    ("[3, 10]", "initrwnd = 27", (3, 27), 27),
    ("[3, 10]", "initrwnd = 27", (10, 64), 64),
    ("[3, 10]", "initrwnd = 8", (10, 64), 8),  # below the file's own window: on purpose
    ("[3, 64]", "initrwnd = 27", None, 27),
    ("[3, 64]", "", None, 64),  # left out, it follows
    ("[3, 10]", "", (3, 100), 100),
])
def test_the_receive_window_follows(tmp_path: Path, file_windows: str, line: str,
                                    asked: tuple[int, ...] | None, initrwnd: int) -> None:
    scenario = small(tmp_path, WITHOUT_FIGURES, ("initrwnd = 27", line),
                     ("initcwnd = [3, 10]", f"initcwnd = {file_windows}"))
    trials = expand(scenario, Overrides({"initcwnd": asked} if asked else {}))
    assert {trial.initrwnd for trial in trials} == {initrwnd}


@pytest.mark.parametrize(("line", "asked", "initrwnd"), [
    ("initrwnd = 64", None, 64), ("initrwnd = 64", (10, 100), 100),
    ("", None, 42), ("", (10, 100), 100), ("initrwnd = 20", (10, 100), 20)])
def test_a_population_follows_too(line: str, asked: tuple[int, ...] | None,
                                  initrwnd: int) -> None:
    """Its own largest window is 42."""
    text = scenario_file.find("dukkipati2010").text.replace("initrwnd = 64 ", line)
    scenario = apply(reading.read(scenario_file.parsed("dukkipati2010", text)),
                     Overrides({"initcwnd": asked} if asked else {}))
    assert scenario.like is not None and scenario.like.initrwnd == initrwnd


def study_of(iw: int, initrwnd: str = "", sysctls: str = "") -> dict[str, str]:
    """The sysctls of SMALL with one window."""
    text = SMALL.replace(*WITHOUT_FIGURES).replace("[3, 10]", f"[{iw}]")
    text = text.replace("initrwnd = 27", initrwnd).replace("[defaults]", f"{sysctls}[defaults]")
    return dict(study(scenario_file.parsed("small", text)).head.sysctls)


def test_buffers_grow_where_the_pinned_ones_are_too_small() -> None:
    assert study_of(10) == study_of(44) == {}
    assert study_of(45) == {RMEM: f"4096 {2 * 1460 * 46} 6291456"}
    assert study_of(64, "initrwnd = 27") == {}  # the small window is meant
    assert study_of(910)[RMEM].endswith(" 6291456") and WMEM not in study_of(910)
    assert study_of(911)[WMEM] == f"4096 16384 {911 * 4608}"
    assert study_of(3000)[RMEM] == f"4096 {2 * 1460 * 3001} {2 * 1460 * 3001}"


def test_a_scenario_may_say_otherwise() -> None:
    told = study_of(64, sysctls=f'[sysctls]\n"{RMEM}" = "4096 65536 65536"\n')
    assert told == {RMEM: "4096 65536 65536"}
    assert buffers.of(told, RMEM) == (65536, 65536)
    assert buffers.of(told, WMEM) == (16384, 4194304)


@pytest.mark.parametrize("name", ["marrama2012", "marrama2012_loss", "tselentis2013", "zhao2019"])
def test_the_published_scenarios_need_no_other_buffers(name: str) -> None:
    made = study(scenario_file.find(name))
    assert buffers.grown(made.trials) == {} and made.head == made.scenario.head
    assert all(trial.initcwnd <= trial.initrwnd for trial in made.trials)


def test_a_buffer_that_the_server_asked_for_is_doubled_and_never_grows() -> None:
    assert buffers.locked(14480) == (28960, 28960)
    assert buffers.locked(1000) == (4608, 4608)  # SOCK_MIN_SNDBUF


def test_the_model_knows_the_servers_own_buffer() -> None:
    """IW 32 in a buffer of 10 segments: as measured, 24 leave at first."""
    base: dict[str, Any] = {
        "rtt_ms": 100.0, "bandwidth_kbps": 50000.0, "uplink_kbps": 50000.0, "initcwnd": 32,
        "initrwnd": 100, "response_bytes": 60061, "request_bytes": 96}
    assert predict(Transfer(**base)).first_flight == 32
    assert predict(Transfer(**base, send_buffers=buffers.locked(14480))).first_flight == 24
    # It asks only when a packet of the queue begins: 16 segments pass even through three.
    assert predict(Transfer(**{**base, "initcwnd": 16},
                            send_buffers=buffers.locked(4344))).first_flight == 16


def test_the_syn_says_what_its_kernel_counts_windows_in() -> None:
    """Where tcp_rmem is small that follows net.core.rmem_max, which grew in Linux 6.18."""
    of = stored.load("receive_window")
    exchange = read_exchange(of.client, of.server)
    small = Evidence(of.trial, of.observation["fetch"], of.observation["server"], exchange, EXACT,
                     {RMEM: "4096 30000 200000"})
    assert small.transfer.window_unit == 128
    older = replace(exchange, syns=(exchange.syns[0]._replace(scale=2),))
    assert replace(small, exchange=older).transfer.window_unit == 4
