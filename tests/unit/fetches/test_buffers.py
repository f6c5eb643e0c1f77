"""Receive window and buffers are the trial's own, whatever else is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.model.predict import predict
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.study.fetches import reading
from firstflight.study.fetches.scenario import tcp
from firstflight.study.fetches.study import apply, expand
from firstflight.study.fetches.verify.evidence import Evidence
from firstflight.study.fetches.verify.observed import EXACT
from firstflight.study.fetches.verify.transfers import transfer_of
from firstflight.wire.exchange import read_exchange
from tests.golden import stored
from tests.transfers import transfer
from tests.unit.core.example import whole
from tests.unit.fetches.small import NAMES, WITHOUT_FIGURES, small

RMEM, WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"


@pytest.mark.parametrize(("file_windows", "line", "requested", "initrwnd"), [
    ("[3, 10]", "initrwnd = 27", None, 27),
    ("[3, 10]", "initrwnd = 27", (10, 64), 27),
    ("[3, 64]", "initrwnd = 27", None, 27),
    ("[3, 64]", "", None, tcp.AMPLE_WINDOW),
    ("[3, 10]", "", (3, 2000), tcp.AMPLE_WINDOW),
])
def test_the_receive_window_follows_no_list(tmp_path: Path, file_windows: str, line: str,
                                            requested: tuple[int, ...] | None, initrwnd: int) -> None:
    scenario = small(tmp_path, WITHOUT_FIGURES, ("initrwnd = 27", line),
                     ("initcwnd = [3, 10]", f"initcwnd = {file_windows}"))
    trials = expand(scenario, Overrides({"initcwnd": requested} if requested else {}))
    assert {trial.initrwnd for trial in trials} == {initrwnd}


@pytest.mark.parametrize(("line", "requested", "initrwnd"), [
    ("initrwnd = 64", None, 64), ("initrwnd = 64", (10, 100), 64),
    ("", None, tcp.AMPLE_WINDOW), ("", (10, 100), tcp.AMPLE_WINDOW)])
def test_a_population_has_one_too(line: str, requested: tuple[int, ...] | None,
                                  initrwnd: int) -> None:
    text = scenario_file.find("dukkipati2010").text.replace("initrwnd = 64 ", line)
    scenario = apply(reading.read_scenario(scenario_file.parsed("dukkipati2010", text)),
                     Overrides({"initcwnd": requested} if requested else {}))
    assert scenario.drawn.like.lists["initrwnd"] == (initrwnd,)


def job_of(iw: int, rwnd: int, **columns: Any) -> dict[str, str]:
    """The buffers that the worker is told for one trial."""
    trial = replace(stored.load("iw10").trial, initcwnd=iw, initrwnd=rwnd, **columns)
    told: dict[str, str] = trial.job().get("buffers", {})
    return told


def test_buffers_grow_where_the_pinned_ones_are_too_small() -> None:
    assert job_of(10, 44) == job_of(910, 27) == {}
    assert job_of(10, 45) == job_of(64, 45) == {RMEM: f"4096 {2 * 1460 * 46} 6291456"}
    assert job_of(911, 27) == {WMEM: f"4096 16384 {911 * 4608}"}
    assert job_of(10, 3000)[RMEM] == f"4096 {2 * 1460 * 3001} {2 * 1460 * 3001}"
    assert job_of(10, 100, mss=536) == {}  # fewer bytes
    assert job_of(10, 100, receive_rules="linux3") == {}  # the route then has ten
    assert job_of(10, tcp.AMPLE_WINDOW)[RMEM].endswith(" 6291456")  # window scale and all


def test_the_model_has_the_trials_own_buffers_or_the_scenarios() -> None:
    wide = replace(stored.load("iw10").trial, initrwnd=100, initcwnd=1000)
    of = transfer_of(wide, {}, 60, 90)
    assert of.receive_buffers == (2 * 1460 * 101, 6291456) and of.send_buffers[1] == 1000 * 4608
    told = {RMEM: "4096 65536 65536"}
    assert transfer_of(wide, told, 60, 90).receive_buffers == (65536, 65536)
    evidence = Evidence(replace(wide, head="17+38+2"), {}, {"header_bytes": 57}, None, EXACT, told)
    assert tcp.buffer_sizes(evidence.trial.with_buffers(evidence.sysctls), RMEM) == (65536, 65536)


@pytest.mark.parametrize("name", NAMES)
def test_the_published_scenarios_offer_what_they_say(name: str) -> None:
    """Where a file with windows that fit asks for more than they need, its tcp_rmem stands."""
    made = whole(name)
    stands = RMEM in made.head.sysctls and max(trial.initcwnd for trial in made.trials) <= 44
    for trial in made.trials:
        first, _ = tcp.buffer_sizes(trial.with_buffers(made.head.sysctls), RMEM)
        assert first == (131_072 if stands or trial.initrwnd <= 44
                         else 2 * 1460 * (trial.initrwnd + 1))
        assert trial.initcwnd <= trial.initrwnd


def test_a_buffer_that_the_server_asked_for_is_doubled_and_never_grows() -> None:
    assert tcp.fixed_send_buffer(14480) == (28960, 28960)
    assert tcp.fixed_send_buffer(1000) == (4608, 4608)  # SOCK_MIN_SNDBUF


def test_the_model_knows_the_servers_own_buffer() -> None:
    """IW 32 in a buffer of 10 segments: as measured, 24 leave at first."""
    base: dict[str, Any] = {
        "rtt_ms": 100.0, "bandwidth_kbps": 50000.0, "uplink_kbps": 50000.0, "initcwnd": 32,
        "initrwnd": 100, "response_bytes": 60061, "request_bytes": 96}
    assert predict(transfer(**base)).first_flight == 32
    assert predict(transfer(**base, send_buffers=tcp.fixed_send_buffer(14480))).first_flight == 24
    # It asks only when a packet of the queue begins: 16 segments pass even through three.
    assert predict(transfer(**{**base, "initcwnd": 16},
                            send_buffers=tcp.fixed_send_buffer(4344))).first_flight == 16


def test_the_syn_says_what_its_kernel_counts_windows_in() -> None:
    """Where tcp_rmem is small that follows net.core.rmem_max, which grew in Linux 6.18."""
    of = stored.load("receive_window")
    exchange = read_exchange(of.client, of.server)
    small = Evidence(of.trial, of.observation["fetch"], of.observation["server"], exchange, EXACT,
                     {RMEM: "4096 30000 200000"})
    assert small.transfer.window_unit == 128
    older = replace(exchange, syns=(exchange.syns[0]._replace(scale=2),))
    assert replace(small, exchange=older).transfer.window_unit == 4
