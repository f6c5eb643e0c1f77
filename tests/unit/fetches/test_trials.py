"""Trials: what a scenario expands to, how many there are, and the buffers that they have."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from firstflight.base import files
from firstflight.base.errors import UsageError
from firstflight.model.predict import predict
from firstflight.net import link
from firstflight.parameters import PARAMETERS, SWEPT
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.runs.measuring import capture_path, trial_file_path
from firstflight.setting import tcp
from firstflight.setting.seeds import netem_seed
from firstflight.study import registry
from firstflight.study.fetches import KIND, apply, expand
from firstflight.wire.exchange import read_exchange
from firstflight.workloads.fetch.scenario import reading
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.scenario.sweep import Sweep, bucket_value, cell_key
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.record.observed import EXACT
from firstflight.workloads.fetch.record.transfers import transfer_of
from tests.golden import stored
from tests.parameters import another
from tests.running import run_program
from tests.transfers import transfer
from tests.unit.core.example import whole
from tests.unit.fetches.small import NAMES, WITHOUT_FIGURES, scenario_of, small


def lists(**values: Sequence[float]) -> Overrides:
    return Overrides(values)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dukkipati2010"])
def test_every_scenario_expands(name: str) -> None:
    """What each of them asks for is a golden: rendered/requested.words."""
    made = whole(name)
    trials = made.trials
    assert trials and len(set(trials)) == len(trials) == len({trial.id for trial in trials})
    assert made.head.claim.endswith(".")


def test_trials_of_one_network_are_adjacent_and_windows_alternate(tmp_path: Path) -> None:
    trials = expand(small(tmp_path), Overrides({}, repeat=3))
    shapes = [(trial.rtt_ms, trial.bandwidth_kbps) for trial in trials]
    changes = sum(before != after for before, after in zip(shapes, shapes[1:]))
    assert changes == len(set(shapes)) - 1
    assert [(trial.repeat, trial.initcwnd) for trial in trials[:6]] == [
        (1, 3), (1, 10), (2, 3), (2, 10), (3, 3), (3, 10)]


def test_sweeps_are_united_without_duplicates(tmp_path: Path) -> None:
    scenario = small(tmp_path, ("[[axis]]\nby = \"rtt_ms\"", """[[sweep]]
name = "again"
rtt_ms = [20]
bandwidth_kbps = [56, 999]
[[sweep]]
name = "lossy"
pairs = [[20, 56], [70, 1200]]
loss_percent = 2
uplink = 128
initcwnd = [4]
[[axis]]
by = "rtt_ms\""""))
    trials = expand(scenario)
    assert len(trials) == 8 + 2 + 2
    assert [trial.uplink_kbps for trial in trials if trial.loss_percent == 2] == [128, 128]
    # The same RTT and bandwidth with loss is another network shape.
    assert [trial.initcwnd for trial in trials if trial.loss_percent == 2] == [4, 4]


def test_overrides_replace_lists_and_may_leave_the_scenario(tmp_path: Path) -> None:
    scenario = small(tmp_path)
    trials = expand(scenario, Overrides(
        {"rtt_ms": (77,), "bandwidth_kbps": [1234.5], "initcwnd": [4], "response_bytes": [20000]},
        client="wget", repeat=2))
    assert [(trial.rtt_ms, trial.bandwidth_kbps, trial.uplink_kbps, trial.initcwnd,
             trial.response_bytes, trial.client, trial.repeat)
            for trial in trials] == [
        (77, 1234.5, 1234.5, 4, 20000, "wget", repeat) for repeat in (1, 2)]
    assert len(expand(scenario, lists(rtt_ms=[20, 20.0]))) == 4


def test_a_flag_replaces_its_value_in_each_pair_of_a_sweep(tmp_path: Path) -> None:
    scenario = small(tmp_path, ("rtt_ms = [20, 50]\nbandwidth_kbps = [56, 256]",
                                "pairs = [[20, 56], [20, 256], [50, 56], [50, 256]]"))
    trials = expand(scenario, lists(rtt_ms=[5]))
    assert {(trial.rtt_ms, trial.bandwidth_kbps) for trial in trials} == {(5, 56), (5, 256)}


def test_a_trial_with_every_parameter_names_its_captures_and_files(tmp_path: Path) -> None:
    """An id of more than 255 bytes is no name of a file, and the one at the end decides."""
    values = {row.field: another(row, row.default) for row in PARAMETERS.values()
              if row.tag is not None}
    trial = replace(stored.load("iw10").trial, **values)
    trials = [replace(trial, repeat=repeat) for repeat in (1, 2)]
    assert len(trials[0].id) > 255
    paths = [path for trial in trials for path in (
        *(capture_path(tmp_path, trial.id, side) for side in ("client", "server")),
        trial_file_path(tmp_path, trial.id, "window.csv"))]
    for path in paths:
        files.save(tmp_path, str(path.relative_to(tmp_path)), path.name)
    assert [path.read_text() for path in paths] == [path.name for path in paths]
    assert len(set(paths)) == len(paths)


def test_trials_cover_a_scenario_only_with_all_of_its_cells(tmp_path: Path) -> None:
    scenario = small(tmp_path)
    assert KIND.has_all_cells(expand(scenario), expand(scenario, Overrides({}, repeat=5)))
    assert KIND.has_all_cells(expand(scenario), expand(scenario, lists(initcwnd=[3, 10])))
    assert not KIND.has_all_cells(expand(scenario), expand(scenario, lists(rtt_ms=[20])))


@pytest.mark.parametrize(("overrides", "words"), [
    (lists(rtt_ms=[]), "--rtt: no value"),
    (lists(bandwidth_kbps=[1e300]), "--bw: a bandwidth of 1e\\+300 kbit/s"),
    (lists(rtt_ms=range(1, 1001), bandwidth_kbps=range(1, 1001)), "2000000 trials"),
    (lists(rtt_ms=range(1, 60001), bandwidth_kbps=range(1, 60001)), "7200000000 trials"),
    (Overrides({}, client="wgt"), "--client: unknown 'wgt' \\(did you mean 'wget'\\?\\)")])
def test_overrides_that_nobody_can_type_are_refused(scenario: Scenario, overrides: Overrides,
                                                    words: str) -> None:
    """What can be typed: tests/refusals/parameters.py."""
    with pytest.raises(UsageError, match=words):
        expand(scenario, overrides)


def test_what_sweeps_have_lists_of_reaches_trials_cells_and_the_network(
        scenario: Scenario) -> None:
    assert {"rtt_ms", "bandwidth_kbps", "loss_percent", "response_bytes"} <= {*SWEPT}
    (trial, *_), (cell, *_) = expand(scenario), scenario.sweeps[0].cells
    assert cell_key(trial) == cell
    assert [getattr(cell, name) for name in SWEPT] == [getattr(trial, name) for name in SWEPT]
    assert link.Path.from_json(trial.job()["network"]) == trial.path


def test_both_windows_meet_the_same_loss_and_repeats_differ(tmp_path: Path) -> None:
    scenario = small(tmp_path, WITHOUT_FIGURES, ("loss_percent = 0", "loss_percent = [0, 2]"),
                     ("repeat = 1", "repeat = 100"))
    lossy = [trial for trial in expand(scenario) if trial.loss_percent]
    by_repeat: dict[int, set[int]] = {}
    for trial in lossy:
        by_repeat.setdefault(trial.repeat, set()).add(trial.seed)
    assert all(len(seeds) == 1 for seeds in by_repeat.values())
    assert len({trial.seed for trial in lossy}) == len(by_repeat) == 100
    assert all(0 <= trial.seed < 2**32 for trial in lossy)
    assert {trial.seed for trial in expand(scenario) if not trial.loss_percent} == {0}
    other = {trial.seed for trial in expand(scenario, seed=2) if trial.loss_percent}
    assert not other & {trial.seed for trial in lossy}


def test_seeds_start_netem_at_unlike_places() -> None:
    """The kernel's generator (taus113, no warm-up) as netem is seeded: first numbers are even."""
    def first(seed: int) -> int:
        start = (seed >> 32 ^ seed << 10 ^ seed) & 0xFFFFFFFF
        number = 0
        for shift_left, shift_right, mask, shift, least in (
                (6, 13, 0xFFFFFFFE, 18, 2), (2, 27, 0xFFFFFFF8, 2, 8),
                (13, 21, 0xFFFFFFF0, 7, 16), (3, 12, 0xFFFFFF80, 13, 128)):
            state = start + least if start < least else start
            number ^= ((state & mask) << shift & 0xFFFFFFFF) ^ (
                ((state << shift_left & 0xFFFFFFFF) ^ state) >> shift_right)
        return number

    numbers = [first(netem_seed(1, repeat)) for repeat in range(1, 1001)]
    quarters = [sum(number >> 30 == quarter for number in numbers) for quarter in range(4)]
    assert all(200 < count < 300 for count in quarters), quarters


def test_trials_are_counted_before_they_are_made(tmp_path: Path) -> None:
    many = Overrides({"rtt_ms": [1 + each / 100 for each in range(500)]}, repeat=100)
    with pytest.raises(UsageError, match="200000 trials are requested, .*allow them with --yes"):
        expand(small(tmp_path), many)
    with pytest.raises(UsageError, match="^1840000 trials are requested, at most 1000000"):
        expand(scenario_of("dukkipati2010"), Overrides({"initcwnd": range(1, 201)}, many=True))


def test_a_lossless_network_is_not_repeated_like_a_lossy_one(tmp_path: Path) -> None:
    scenario = small(tmp_path, WITHOUT_FIGURES, ("loss_percent = 0", "loss_percent = [0, 2]"),
                     ("repeat = 1", "repeat = 2\nrepeat_with_loss = 30"))
    trials = expand(scenario)
    assert sum(not trial.loss_percent for trial in trials) == 4 * 2 * 2
    assert sum(trial.loss_percent == 2 for trial in trials) == 4 * 2 * 30
    assert len(expand(scenario, Overrides({}, repeat=3))) == 4 * 2 * 3 * 2
    assert KIND.has_all_cells(expand(scenario), expand(scenario, Overrides({}, repeat=1)))


# How many cells and trials a file asks for is multiplied ------------------------------

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
LISTS = {"loss_percent": (0.0, 1.0, 2.0), "jitter_ms": (0.0, 3.0), "queue": ("10", "50", "1bdp"),
         "uplink_kbps": (None, 500.0, 64.0), "response_bytes": (1, 2, 3), "mss": (536, 1448)}
HEAD = '# Too much.\ntitle = "t"\nsource = "s"\n'
SWEEP = """
[[sweep]]
name = "own"
client = "libcurl"
congestion_control = "cubic"
uplink = "same"
queue = 100
loss_percent = 0
initcwnd = [3, 10]
repeat = 1
"""
FIGURE = """
[[figure]]
name = "{}"
title = "t"
kind = "{}"
sweep = "own"
by = "{}"
windows = [3, 10]
metric = "total_ms"
"""


def drawn(random: Random) -> Sweep:
    """A sweep of a few values each."""
    several = random.sample(sorted(LISTS), 3)
    lists = {
        name: tuple(random.sample(known, random.randint(2, len(known)) if name in several else 1))
             for name, known in LISTS.items()}
    rtts_ms = (1.0, 20.0, 30.0)[:random.randint(1, 3)]
    pairs = tuple((rtt_ms, 64.0 * rtt_ms) for rtt_ms in rtts_ms) if random.random() < 0.3 else ()
    chains = (("ed25519", 1, 900), ("rsa2048", 0, 1100), ("ed25519", 0, 900)) \
        if random.random() < 0.5 else ()
    return Sweep(name="s", pairs=pairs, chains=chains, initcwnd=(3, 10)[:random.randint(1, 2)],
                 client="curl", repeat=random.randint(1, 2),
                 repeat_with_loss=random.choice((None, 3)), lists={
                     **lists, "congestion_control": ("cubic",),
                     **({} if pairs else {"rtt_ms": rtts_ms, "bandwidth_kbps": (64.0, 500.0)})})


@pytest.mark.parametrize("seed", range(8))
def test_a_sweep_counts_the_cells_and_trials_that_it_makes(seed: int) -> None:
    random = Random(seed)
    sweep = drawn(random)
    cells = sweep.cells
    assert sweep.combination_count() == len(cells)
    assert sweep.count == len(list(sweep.trials("s", 1)))
    for names in [(name,) for name in (*SWEPT, "bdp_bytes")] + [
            tuple(random.sample(SWEPT, 2)) for _ in range(10)]:
        assert sweep.counted(*names) == Counter(
            tuple(bucket_value(name, cell) for name in names) for cell in cells), names


def check(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """What --check says of a file, with memory for what it reads and no more."""
    file = tmp_path / "own.toml"
    file.write_text(text)
    return run_program(["prlimit", "--as=700000000", "--cpu=60", sys.executable,
                        PROJECT / "experiment.py", "--check", str(file)])


def test_a_small_file_that_asks_for_billions_of_cells_is_refused(tmp_path: Path) -> None:
    """Before any is made: not for its trials, nor to see which bars its figures have."""
    many = {"response_bytes": list(range(1, 3000)), "send_buffer_bytes": list(range(5000, 7999)),
            "bandwidth_kbps": list(range(100, 299)), "rtt_ms": [20]}
    lists = "".join(f"{name} = {json.dumps(values)}\n" for name, values in many.items())
    figures = "".join(FIGURE.format(f"f{place}", kind, by) for place, (kind, by) in enumerate(
        (("improvement", "bandwidth_kbps"), ("map", "rtt_ms"), ("steps", "response_bytes"))))
    done = check(tmp_path, HEAD + SWEEP + lists + figures)
    assert done.returncode == 2, done.stderr
    assert done.stderr.endswith("3579612398 trials of "
                                f"{tmp_path}/own.toml are requested, at most 1000000 fit in one"
                                " run\n")


def test_lists_that_users_share_count_as_often_as_there_are_users() -> None:
    file = scenario_file.parse("own", HEAD + f"""
[defaults]
client = "libcurl"
congestion_control = "cubic"
loss_percent = 0
repeat = 1
queue = {json.dumps(list(range(1, 3000)))}
[users]
initcwnd = [10, 20]
baseline_initcwnd = 10
groups = [""]
group = {[0] * 1000}
times = {[1] * 1000}
rtt_ms = {list(range(1, 1001))}
bandwidth_kbps = {[100] * 1000}
response_bytes = {[100] * 1000}
""")
    with pytest.raises(UsageError, match="^5998000 trials are requested, at most 1000000"):
        registry.study_of(file)


def test_trials_of_one_schedule_share_its_words() -> None:
    """100,000 trials of a schedule of thousands of writes are no 100,000 copies of it."""
    study = registry.study_of(scenario_file.find("handley1999_warm"))
    trials = [trial for trial in study.trials if trial.trace == study.trials[0].trace]
    assert len(trials) > 2 and len({id(trial.writes) for trial in trials}) == 1
    assert len({id(trial.requests) for trial in trials}) == len({
        trial.requests for trial in trials})


# Receive window and buffers are the trial's own, whatever else is asked for -----------

RMEM, WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"


@pytest.mark.parametrize(("file_windows", "line", "requested", "initrwnd"), [
    ("[3, 10]", "initrwnd = 27", None, 27),
    ("[3, 10]", "initrwnd = 27", (10, 64), 27),
    ("[3, 64]", "initrwnd = 27", None, 27),
    ("[3, 64]", "", None, tcp.AMPLE_WINDOW),
    ("[3, 10]", "", (3, 2000), tcp.AMPLE_WINDOW),
])
def test_the_receive_window_follows_no_list(tmp_path: Path, file_windows: str, line: str,
                                            requested: tuple[int, ...] | None,
                                            initrwnd: int) -> None:
    scenario = small(tmp_path, WITHOUT_FIGURES, ("initrwnd = 27", line),
                     ("initcwnd = [3, 10]", f"initcwnd = {file_windows}"))
    trials = expand(scenario, Overrides({"initcwnd": requested} if requested else {}))
    assert {trial.initrwnd for trial in trials} == {initrwnd}


@pytest.mark.parametrize(("line", "requested", "initrwnd"), [
    ("initrwnd = 64", None, 64), ("initrwnd = 64", (10, 100), 64),
    ("", None, tcp.AMPLE_WINDOW), ("", (10, 100), tcp.AMPLE_WINDOW)])
def test_a_population_has_the_files_receive_window_or_else_the_ample_one(
        line: str, requested: tuple[int, ...] | None, initrwnd: int) -> None:
    text = scenario_file.find("dukkipati2010").text.replace("initrwnd = 64 ", line)
    scenario = apply(reading.read_scenario(scenario_file.parse("dukkipati2010", text)),
                     Overrides({"initcwnd": requested} if requested else {}))
    assert scenario.drawn.template.lists["initrwnd"] == (initrwnd,)


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
