"""Scenarios of kind "trace": what stands in them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING, Overrides
from firstflight.study import registry
from firstflight.study.trace.scenario import TraceCurve, TraceScenario, apply, expand, read_scenario
from firstflight.study.trace.trial import TraceTrial

TRACES = [name for name in scenario_file.names()
          if scenario_file.find(name).raw.get("kind") == "trace"]

HEAD = """# A claim in a sentence.
kind = "trace"
title = "A title"
source = "A source"
[defaults]
rtt_ms = 20
bandwidth_kbps = 1000
queue_packets = 100
initcwnd = 10
sample_ms = 1
[[tcp]]
name = "linux"
title = "Linux"
congestion_control = "reno"
validation = true
"""
SCHEDULE = """[[schedule]]
name = "one"
writes = [{ at_s = 0.0, segments = 10 }, { at_s = 1.0, bytes = 500 }]
"""
TRACE_TABLE = """[[trace]]
name = "first"
schedule = "one"
tcp = ["linux"]
"""
FIGURE = """[[figure]]
name = "fig"
title = "A figure"
kind = "window"
curves = ["first/linux"]
"""
GOOD = HEAD + SCHEDULE + TRACE_TABLE + FIGURE


def load(folder: Path, text: str) -> TraceScenario:
    (folder / "mine.toml").write_text(text)
    return read_scenario(scenario_file.read(folder / "mine.toml"))


@pytest.mark.parametrize("name", TRACES)
def test_every_trace_scenario_loads_and_expands(name: str) -> None:
    study = registry.study_of(scenario_file.find(name))
    scenario, ids = read_scenario(scenario_file.find(name)), [trial.id for trial in study.trials]
    assert ids and len(set(ids)) == len(ids) and study.whole
    assert list(study.trials) == expand(scenario)
    assert study.head.claim.endswith(".") and "\n" not in study.head.claim
    # What a figure names is measured.
    assert scenario.figures
    for curve in [curve for figure in scenario.figures for curve in figure.curves]:
        assert any(curve.is_of(trial) for trial in study.trials)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    (trial,) = expand(load(tmp_path, GOOD))
    assert trial.id == "first-linux-iw10" and trial.uplink_kbps == 1000
    assert trial.paths == "/14980?at=0:14480;1000:500" and trial.schedule_s == 1.0
    job = trial.job()
    assert job["paths"] == ["/14980?at=0:14480;1000:500&trace_ms=1"]
    assert job["sysctls"] == {"net.ipv4.tcp_slow_start_after_idle": "1"}


def test_a_write_in_segments_is_as_long_as_its_trace_has_them(tmp_path: Path) -> None:
    (trial,) = expand(load(tmp_path, GOOD.replace("sample_ms = 1", "sample_ms = 1\nmss = 512")))
    assert trial.paths == "/5620?at=0:5120;1000:500"


THINKING = """[[schedule]]
name = "asking"
requests = [{ bytes = 5000 }, { bytes = 600, think_s = "each" }]
[[trace]]
name = "second"
title = "A trace of its own"
schedule = "asking"
tcp = ["linux", "other"]
initcwnd = [4, 2]
think_s = [0.5, 3]
rtt_ms = 30
uplink = 500
mss = 1000
receive_window = 40
rto_min_ms = 300
quickack = true
nagle = true
outage_ms = [150, 500]
may_lose = true
[[tcp]]
name = "other"
title = "Another"
congestion_control = "cubic"
validation = false
sysctls = { "net.ipv4.tcp_sack" = "0", "net.ipv4.tcp_frto" = "2" }
"""


def test_every_key_of_a_trace_and_its_tcp_is_in_its_trials(tmp_path: Path) -> None:
    scenario = load(tmp_path, GOOD + THINKING)
    first, *trials = expand(scenario)
    assert scenario.count == 1 + len(trials) == 9
    assert [trial.id for trial in trials] == [
        f"second-{tcp}-iw{window}-think{think}" for window in (4, 2) for think in ("0.5", "3")
        for tcp in ("linux", "other")]
    assert trials[1] == TraceTrial(
        scenario="mine", trace="second", tcp="other", congestion_control="cubic",
        validation=False, rtt_ms=30, bandwidth_kbps=1000, uplink_kbps=500, queue_packets=100,
        initcwnd=4, mss=1000, receive_window=40, rto_min_ms=300, quickack=True, nagle=True,
        sample_ms=1, outage_from_ms=150, outage_to_ms=500, paths="/5000? /600?",
        think_times="0 0.5", think_s=0.5, may_lose=True,
        sysctls="net.ipv4.tcp_sack=0 net.ipv4.tcp_frto=2")
    job = trials[1].job()
    assert job["paths"] == ["/5000?&trace_ms=1&nagle=1", "/600?&trace_ms=1&nagle=1"]
    assert job["think_s"] == [0.0, 0.5] and trials[1].path.down.outage_ms == (150, 500)
    assert job["sysctls"] == {"net.ipv4.tcp_slow_start_after_idle": "0",
                              "net.ipv4.tcp_sack": "0", "net.ipv4.tcp_frto": "2"}
    assert (job["initrwnd"], job["window_bytes"]) == (40, 40_000)
    assert (job["options"]["rto_min_ms"], job["options"]["quickack"]) == (300, True)
    # What the first says nothing of.
    assert (first.receive_window, first.rto_min_ms, first.quickack, first.nagle,
            first.may_lose, first.sysctls) == (0, 0, False, False, False, "")
    assert first.job()["initrwnd"] == 1000 and "outage_ms" not in first.job()["network"]["down"]


def test_a_trace_without_an_outage_or_with_as_much_up_as_down_may_say_so(tmp_path: Path) -> None:
    (trial,) = expand(load(tmp_path, GOOD.replace(
        "sample_ms = 1", 'sample_ms = 1\nuplink = "same"\noutage_ms = []')))
    assert (trial.uplink_kbps, trial.outage_from_ms, trial.outage_to_ms) == (1000, 0.0, 0.0)


def test_a_curve_names_one_window_or_the_first_of_all(tmp_path: Path) -> None:
    trials = expand(load(tmp_path, GOOD + THINKING))
    for text, first, count in (("second/other", "second-other-iw4-think0.5", 4),
                               ("second/other/iw2", "second-other-iw2-think0.5", 2),
                               ("first/other", "", 0)):
        curve = TraceCurve.parse(text, "")
        ids = [trial.id for trial in trials if curve.is_of(trial)]
        assert (curve.text, ids[:1], len(ids)) == (text, [first][:count], count)


WRITES = "writes = [{ at_s = 0.0, segments = 10 }, { at_s = 1.0, bytes = 500 }]"


def test_the_command_line_in_place_of_the_scenario(tmp_path: Path) -> None:
    scenario = load(tmp_path, GOOD)
    other = apply(scenario, Overrides({"rtt_ms": [50.0], "initcwnd": [3, 4]}))
    assert [(trial.rtt_ms, trial.initcwnd) for trial in expand(other)] == [(50.0, 3), (50.0, 4)]
    wider = apply(scenario, Overrides({"bandwidth_kbps": [2000]}))
    assert [trial.uplink_kbps for trial in expand(wider)] == [2000]
    assert apply(scenario, NOTHING) == scenario
