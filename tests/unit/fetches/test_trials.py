"""The trials of a scenario of fetches: which and how many they are, their seeds and buffers."""

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
    """Flags with these lists of values, by parameter."""
    return Overrides(values)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dukkipati2010"])
def test_every_scenario_of_fetches_has_trials_with_ids_of_their_own(name: str) -> None:
    """The parameters of the trials are in a golden, rendered/requested.words."""
    made = whole(name)
    trials = made.trials
    assert trials and len(set(trials)) == len(trials) == len({trial.id for trial in trials})
    assert made.head.claim.endswith(".")


def test_trials_of_one_network_are_adjacent_and_windows_alternate(tmp_path: Path) -> None:
    trials = expand(small(tmp_path), Overrides({}, repeat=3))
    networks = [(trial.rtt_ms, trial.bandwidth_kbps) for trial in trials]
    changes = sum(before != after for before, after in zip(networks, networks[1:]))
    assert changes == len(set(networks)) - 1
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
    # Of the sweep "again" only 20 ms at 999 kbit/s is new, under two windows.
    assert len(trials) == 8 + 2 + 2
    assert [trial.uplink_kbps for trial in trials if trial.loss_percent == 2] == [128, 128]
    # With loss, the same RTT and bandwidth are another network.
    assert [trial.initcwnd for trial in trials if trial.loss_percent == 2] == [4, 4]


def test_flags_replace_lists_by_values_that_the_scenario_need_not_have(tmp_path: Path) -> None:
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
    """An id of more than 255 bytes is too long for a file's name. Here two differ at their end."""
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
def test_invalid_overrides_are_refused(scenario: Scenario, overrides: Overrides,
                                       words: str) -> None:
    """Refusals of what a user can type are in tests/refusals/parameters.py."""
    with pytest.raises(UsageError, match=words):
        expand(scenario, overrides)


def test_each_swept_parameter_is_in_trials_and_cells_and_the_path_in_the_job(
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


def test_the_first_random_numbers_of_netem_are_evenly_distributed_over_repeats() -> None:
    """A model of the kernel's generator, taus113 without warm-up, seeded as netem does it."""
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
    many = Overrides({"rtt_ms": [1 + number / 100 for number in range(500)]}, repeat=100)
    with pytest.raises(UsageError, match="200000 trials are requested, .*allow them with --yes"):
        expand(small(tmp_path), many)
    with pytest.raises(UsageError, match="^1840000 trials are requested, at most 1000000"):
        expand(scenario_of("dukkipati2010"), Overrides({"initcwnd": range(1, 201)}, many=True))


def test_repeat_with_loss_is_the_number_of_repeats_of_lossy_networks_only(tmp_path: Path) -> None:
    scenario = small(tmp_path, WITHOUT_FIGURES, ("loss_percent = 0", "loss_percent = [0, 2]"),
                     ("repeat = 1", "repeat = 2\nrepeat_with_loss = 30"))
    trials = expand(scenario)  # of four networks, two windows, and repeats
    assert sum(not trial.loss_percent for trial in trials) == 4 * 2 * 2
    assert sum(trial.loss_percent == 2 for trial in trials) == 4 * 2 * 30
    assert len(expand(scenario, Overrides({}, repeat=3))) == 4 * 2 * 3 * 2
    assert KIND.has_all_cells(expand(scenario), expand(scenario, Overrides({}, repeat=1)))


# Cells and trials of a file are counted by multiplying, before they are made ----------

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


def random_sweep(random: Random) -> Sweep:
    """A sweep with random lists of a few values each."""
    several = random.sample(sorted(LISTS), 3)
    lists = {}
    for name, known in LISTS.items():
        count = random.randint(2, len(known)) if name in several else 1
        lists[name] = tuple(random.sample(known, count))
    rtts_ms = (1.0, 20.0, 30.0)[:random.randint(1, 3)]
    pairs = tuple((rtt_ms, 64.0 * rtt_ms) for rtt_ms in rtts_ms) if random.random() < 0.3 else ()
    has_chains = random.random() < 0.5
    chains = (("ed25519", 1, 900), ("rsa2048", 0, 1100), ("ed25519", 0, 900)) if has_chains else ()
    return Sweep(name="s", pairs=pairs, chains=chains, initcwnd=(3, 10)[:random.randint(1, 2)],
                 client="curl", repeat=random.randint(1, 2),
                 repeat_with_loss=random.choice((None, 3)), lists={
                     **lists, "congestion_control": ("cubic",),
                     **({} if pairs else {"rtt_ms": rtts_ms, "bandwidth_kbps": (64.0, 500.0)})})


@pytest.mark.parametrize("seed", range(8))
def test_a_sweep_counts_the_cells_and_trials_that_it_makes(seed: int) -> None:
    random = Random(seed)
    sweep = random_sweep(random)
    cells = sweep.cells
    assert sweep.combination_count() == len(cells)
    assert sweep.count == len(list(sweep.trials("s", 1)))
    for names in [(name,) for name in (*SWEPT, "bdp_bytes")] + [
            tuple(random.sample(SWEPT, 2)) for _ in range(10)]:
        assert sweep.counted(*names) == Counter(
            tuple(bucket_value(name, cell) for name in names) for cell in cells), names


def check(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """The result of --check on a file with this text, within 700 MB of memory and a minute."""
    file = tmp_path / "own.toml"
    file.write_text(text)
    return run_program(["prlimit", "--as=700000000", "--cpu=60", sys.executable,
                        PROJECT / "experiment.py", "--check", str(file)])


def test_a_small_file_that_requests_billions_of_cells_is_refused(tmp_path: Path) -> None:
    """It is refused before cells are made, for its trials or for the bars of its figures."""
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


def test_trials_of_one_schedule_share_one_string_of_its_writes() -> None:
    """A copy for each of 100,000 trials would take gigabytes."""
    study = registry.study_of(scenario_file.find("handley1999_warm"))
    trials = [trial for trial in study.trials if trial.trace == study.trials[0].trace]
    assert len(trials) > 2 and len({id(trial.writes) for trial in trials}) == 1
    assert len({id(trial.requests) for trial in trials}) == len({
        trial.requests for trial in trials})


# Receive window and buffers of a trial ------------------------------------------------

RMEM, WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"


@pytest.mark.parametrize(("file_windows", "line", "requested", "initrwnd"), [
    ("[3, 10]", "initrwnd = 27", None, 27),
    ("[3, 10]", "initrwnd = 27", (10, 64), 27),
    ("[3, 64]", "initrwnd = 27", None, 27),
    ("[3, 64]", "", None, tcp.AMPLE_WINDOW),
    ("[3, 10]", "", (3, 2000), tcp.AMPLE_WINDOW),
])
def test_the_receive_window_does_not_depend_on_the_initial_windows(
        tmp_path: Path, file_windows: str, line: str, requested: tuple[int, ...] | None,
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


def buffers_of(iw: int, rwnd: int, **columns: Any) -> dict[str, str]:
    """The buffers in the job of a trial with these windows."""
    trial = replace(stored.load("iw10").trial, initcwnd=iw, initrwnd=rwnd, **columns)
    buffers: dict[str, str] = trial.job().get("buffers", {})
    return buffers


def test_a_job_has_larger_buffers_only_where_the_usual_ones_are_too_small_for_its_windows(
        ) -> None:
    """A receive buffer has two bytes for each byte of a window with one segment more.

    A send buffer has 4608 bytes for each segment.
    """
    assert buffers_of(10, 44) == buffers_of(910, 27) == {}
    assert buffers_of(10, 45) == buffers_of(64, 45) == {RMEM: f"4096 {2 * 1460 * 46} 6291456"}
    assert buffers_of(911, 27) == {WMEM: f"4096 16384 {911 * 4608}"}
    assert buffers_of(10, 3000)[RMEM] == f"4096 {2 * 1460 * 3001} {2 * 1460 * 3001}"
    assert buffers_of(10, 100, mss=536) == {}  # 100 segments have fewer bytes
    assert buffers_of(10, 100, receive_rules="linux3") == {}  # the route's window is ten then
    # The largest buffer stays, so the window scale is the usual one.
    assert buffers_of(10, tcp.AMPLE_WINDOW)[RMEM].endswith(" 6291456")


def test_the_model_has_the_trials_own_buffers_or_the_scenarios() -> None:
    wide = replace(stored.load("iw10").trial, initrwnd=100, initcwnd=1000)
    modelled = transfer_of(wide, {}, 60, 90)
    assert modelled.receive_buffers == (2 * 1460 * 101, 6291456)
    assert modelled.send_buffers[1] == 1000 * 4608
    sysctls = {RMEM: "4096 65536 65536"}
    assert transfer_of(wide, sysctls, 60, 90).receive_buffers == (65536, 65536)
    evidence = Evidence(replace(wide, head="17+38+2"), {}, {"header_bytes": 57}, None, EXACT,
                        sysctls)
    assert tcp.buffer_sizes(evidence.trial.with_buffers(evidence.sysctls), RMEM) == (65536, 65536)


@pytest.mark.parametrize("name", NAMES)
def test_the_receive_buffer_of_each_scenario_holds_the_windows_of_its_trials(name: str) -> None:
    """A file whose initial windows fit into the usual buffer may set tcp_rmem itself."""
    made = whole(name)
    sets_buffer = RMEM in made.head.sysctls and max(
        trial.initcwnd for trial in made.trials) <= 44
    for trial in made.trials:
        first, _ = tcp.buffer_sizes(trial.with_buffers(made.head.sysctls), RMEM)
        assert first == (131_072 if sets_buffer or trial.initrwnd <= 44
                         else 2 * 1460 * (trial.initrwnd + 1))
        assert trial.initcwnd <= trial.initrwnd


def test_a_send_buffer_that_the_server_requested_is_doubled_and_never_grows() -> None:
    assert tcp.fixed_send_buffer(14480) == (28960, 28960)
    assert tcp.fixed_send_buffer(1000) == (4608, 4608)  # SOCK_MIN_SNDBUF


def test_a_send_buffer_limits_the_predicted_first_flight() -> None:
    """With a window of 32 and a buffer of 10 segments, 24 segments leave first, as measured."""
    base: dict[str, Any] = {
        "rtt_ms": 100.0, "bandwidth_kbps": 50000.0, "uplink_kbps": 50000.0, "initcwnd": 32,
        "initrwnd": 100, "response_bytes": 60061, "request_bytes": 96}
    assert predict(transfer(**base)).first_flight == 32
    assert predict(transfer(**base, send_buffers=tcp.fixed_send_buffer(14480))).first_flight == 24
    # TCP checks the buffer only when an skb begins: 16 segments pass through a buffer of three.
    assert predict(transfer(**{**base, "initcwnd": 16},
                            send_buffers=tcp.fixed_send_buffer(4344))).first_flight == 16


def test_the_unit_of_windows_is_the_scale_in_the_captured_syn() -> None:
    """With a small tcp_rmem the scale follows from net.core.rmem_max, which Linux 6.18 changed."""
    measured = stored.load("receive_window")
    exchange = read_exchange(measured.client, measured.server)
    small = Evidence(measured.trial, measured.observation["fetch"], measured.observation["server"],
                     exchange, EXACT, {RMEM: "4096 30000 200000"})
    assert small.transfer.window_unit == 128
    older = replace(exchange, syns=(exchange.syns[0]._replace(scale=2),))
    assert replace(small, exchange=older).transfer.window_unit == 4
