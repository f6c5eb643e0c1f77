"""Scenarios of kind "trace": what stands in them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab import registry
from lab.core import scenario_file
from lab.core.errors import UsageError
from lab.core.kinds import NOTHING, Overrides
from lab.trace.scenario import TraceScenario, overridden, read

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
    return read(scenario_file.read(folder / "mine.toml"))


@pytest.mark.parametrize("name", TRACES)
def test_every_trace_scenario_loads_and_expands(name: str) -> None:
    study = registry.study_of(scenario_file.find(name))
    scenario, ids = read(scenario_file.find(name)), [trial.id for trial in study.trials]
    assert ids and len(set(ids)) == len(ids) and study.whole
    assert list(study.trials) == scenario.trials()
    assert study.head.claim.endswith(".") and "\n" not in study.head.claim
    # What a figure names is measured.
    assert scenario.figures
    for curve in [curve for figure in scenario.figures for curve in figure.curves]:
        assert any(curve.is_of(trial) for trial in study.trials)


def test_a_good_file_is_read(tmp_path: Path) -> None:
    (trial,) = load(tmp_path, GOOD).trials()
    assert trial.id == "first-linux-iw10" and trial.uplink_kbps == 1000
    assert trial.paths == "/14980?at=0:14480;1000:500" and trial.schedule_s == 1.0
    job = trial.job()
    assert job["paths"] == ["/14980?at=0:14480;1000:500&trace_ms=1"]
    assert job["sysctls"] == {"net.ipv4.tcp_slow_start_after_idle": "1"}


def test_a_write_in_segments_is_as_long_as_its_trace_has_them(tmp_path: Path) -> None:
    (trial,) = load(tmp_path, GOOD.replace("sample_ms = 1", "sample_ms = 1\nmss = 512")).trials()
    assert trial.paths == "/5620?at=0:5120;1000:500"


WRITES = "writes = [{ at_s = 0.0, segments = 10 }, { at_s = 1.0, bytes = 500 }]"


@pytest.mark.parametrize(("old", "new", "said"), [
    (WRITES, "writes = [{ at_s = 1.0, bytes = 5 }, { at_s = 0.5, bytes = 5 }]",
     '[[schedule]] "one": writes 2: at_s: 0.5 s is before 1 s'),
    (WRITES, "writes = [{ at_s = 1.0, until_s = 0.5, every_s = 0.1, bytes = 5 }]",
     "time goes backwards"),
    (WRITES, "writes = [{ at_s = 0, until_s = 2, every_s = 0.5, bytes = 5 },"
     " { at_s = 1, bytes = 5 }]", "time goes backwards"),
    (WRITES, "writes = [{ at_s = -1, bytes = 5 }]", "a time of -1 s is out of range"),
    (WRITES, "writes = [{ at_s = 0, bytes = 5 }, { at_s = 1, bits = 5 }]", "writes 2: "),
    ("rtt_ms = 20\n", 'rtt_ms = 20\nschedule = "one"\n', "[defaults]"),
    (WRITES, "writes = [{ at_s = nan, bytes = 5 }]", "nan is not a finite number"),
    (WRITES, "writes = [{ at_s = inf, bytes = 5 }]", "inf is not a finite number"),
    (WRITES, "writes = [{ at_s = 0, bytes = -5 }]", "a size of -5 bytes is out of range"),
    (WRITES, "writes = [{ at_s = 0, bytes = 0 }]", "a size of 0 bytes is out of range"),
    (WRITES, "writes = [{ at_s = 0, bytes = 1.5 }]", "1.5 is not a whole number"),
    (WRITES, 'writes = [{ at_s = "now", bytes = 5 }]', "'now' is not a number"),
    (WRITES, "writes = [{ at_s = 0, bytes = 5, segments = 1 }]", "either bytes or segments"),
    (WRITES, "writes = [{ at_s = 0, until_s = 1, bytes = 5 }]", "go together"),
    (WRITES, "writes = [{ at_s = 0, until_s = 1, every_s = 0, bytes = 5 }]", "out of range"),
    (WRITES, "writes = [{ at_s = 0, until_s = 8000, every_s = 0.001, bytes = 5 }]",
     "more than 50000 writes"),
    (WRITES, "writes = []", "has to be a list of tables"),
    (WRITES, "writes = 5", "has to be a list of tables"),
    (WRITES, "", "either writes or requests"),
    (WRITES, 'requests = [{ bytes = 5, think_s = "each" }]', "think_s goes with"),
    (WRITES, "requests = [{ bytes = 5, think_s = -1 }]", "out of range"),
    ('schedule = "one"', 'schedule = "won"', "did you mean 'one'?"),
    ('tcp = ["linux"]', 'tcp = ["lynux"]', "did you mean 'linux'?"),
    ('tcp = ["linux"]', "tcp = []", "has to be a list of strings"),
    ("initcwnd = 10", "initcwnd = [3, 3]", "has a value twice"),
    ("sample_ms = 1", "sample_ms = 0", "out of range"),
    ("sample_ms = 1", "sample_ms = 1\nmss = 5000", "a segment of 5000 bytes is out of range"),
    ("sample_ms = 1", "sample_ms = 1\noutage_ms = [5, 5]", "the first before the second"),
    ("sample_ms = 1", "sample_ms = 1\nnagle = 1", "true or false"),
    ("sample_ms = 1", "sample_ms = 1\nsapmle = 1", "unknown key 'sapmle'"),
    ('congestion_control = "reno"', 'congestion_control = "Re no"', "no name of an algorithm"),
    ('curves = ["first/linux"]', 'curves = ["first/other"]', "no trace is 'first/other'"),
    ('curves = ["first/linux"]', 'curves = ["first/linux/iw77"]',
     "no trace is 'first/linux/iw77'"),
    ('curves = ["first/linux"]', 'curves = ["first"]', "is not of the form"),
    ("# A claim in a sentence.", "", "the claim in one sentence"),
    ('title = "A title"', "title = 5", "has to be a string"),
    (TRACE_TABLE + FIGURE, "", "nothing to measure"),
    ("validation = true", 'validation = true\nsysctls = { "net.ipv4.tcp_sack" = "a b" }',
     "is not a number or a word"),
    ("validation = true", 'validation = true\nsysctls = { "net.ipv4.tcp_sak" = "0" }',
     '[[tcp]] "linux": [sysctls]: unknown \'net.ipv4.tcp_sak\' (did you mean'),
])
def test_a_bad_file_is_one_line_that_names_it(tmp_path: Path, old: str, new: str,
                                              said: str) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as error:
        load(tmp_path, GOOD.replace(old, new))
    message = str(error.value)
    assert message.startswith("scenarios/mine.toml: ") and said in message
    assert "\n" not in message


@pytest.mark.parametrize(("claim", "said"), [
    ('relation = "is"', "published goes with"),
    ('relation = "larger"', "second goes with"),
    ('relation = "is"\npublished = 1\nsecond = "first/linux"', "second goes with"),
    ('relation = "bigger"\npublished = 1', "unknown 'bigger'"),
    ('relation = "larger"\nsecond = "first/other"',
     '^scenarios/mine.toml: \\[\\[claim\\]\\] "so": second: no trace is'),
])
def test_a_bad_claim_is_refused(tmp_path: Path, claim: str, said: str) -> None:
    table = (f'[[claim]]\nfigure = "fig"\nsays = "so"\nmetric = "window"\nfirst = "first/linux"\n'
             f"{claim}\n")
    with pytest.raises(UsageError, match=said):
        load(tmp_path, GOOD + table)


def test_a_claim_about_what_is_not_measured_is_refused(tmp_path: Path) -> None:
    table = ('[[claim]]\nfigure = "fig"\nsays = "so"\nmetric = "windows"\nfirst = "first/linux"\n'
             'relation = "is"\npublished = 1\n')
    with pytest.raises(UsageError, match="did you mean 'window'"):
        load(tmp_path, GOOD + table)


def test_the_command_line_in_place_of_the_scenario(tmp_path: Path) -> None:
    scenario = load(tmp_path, GOOD)
    other = overridden(scenario, Overrides({"rtt_ms": [50.0], "initcwnd": [3, 4]}))
    assert [(trial.rtt_ms, trial.initcwnd) for trial in other.trials()] == [(50.0, 3), (50.0, 4)]
    wider = overridden(scenario, Overrides({"bandwidth_kbps": [2000]}))
    assert [trial.uplink_kbps for trial in wider.trials()] == [2000]
    assert overridden(scenario, NOTHING) == scenario


@pytest.mark.parametrize(("asked", "said"), [
    ({"client": "curl", "lists": {}}, "--client does not go with"),
    ({"repeat": 2, "lists": {}}, "--repeat does not go with"),
    ({"lists": {"load": [0.5]}}, "--load does not go with"),
    ({"lists": {"response_bytes": [5]}}, "--size does not go with"),
    ({"lists": {"rtt_ms": [1.0, 2.0]}}, "--rtt: a scenario of kind \"trace\" takes one value"),
    ({"lists": {"bandwidth_kbps": [0.5]}}, "--bw: a bandwidth of 0.5 kbit/s is out of range"),
    ({"lists": {"initcwnd": [0]}}, "--iw: an initial window of 0 segments is out of range")])
def test_another_flag_is_refused_by_its_name(tmp_path: Path, asked: dict[str, Any],
                                             said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        overridden(load(tmp_path, GOOD), Overrides(**asked))
    assert "\n" not in str(error.value)


def test_a_schedule_fits_in_a_guest(tmp_path: Path) -> None:
    large = GOOD.replace("bytes = 500", "bytes = 49999999")
    with pytest.raises(UsageError, match='"first": schedule: all its bytes together: a response of'
                       " 50014479 bytes is out of range"):
        load(tmp_path, large)


def test_traces_are_counted_before_they_are_made(tmp_path: Path) -> None:
    windows = ", ".join(map(str, range(1, 60_000)))
    text = GOOD.replace('tcp = ["linux"]', f'tcp = ["linux"]\ninitcwnd = [{windows}]')
    assert load(tmp_path, GOOD).count == len(load(tmp_path, GOOD).trials())
    with pytest.raises(UsageError, match="119998 traces are asked for"):
        registry.study_of(scenario_file.parsed("mine", text + text[text.index("[[trace]]"):text.index(
            "[[figure]]")].replace("first", "second")), Overrides({}))
