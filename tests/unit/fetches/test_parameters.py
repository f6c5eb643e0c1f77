"""Every parameter of a network, a sender, a client or a kernel reaches trials and jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.commands.flags import parse
from firstflight.findings.charts import LineChart
from firstflight.findings.quantities import FLAGS, QUANTITIES
from firstflight.parameters import NETWORK, OVERTAKEN, PARAMETERS, PUBLISHED, Parameter, of_subject
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides, RunData
from firstflight.runs.measuring import build_of
from firstflight.runs.results import checks
from firstflight.runs.results.checks import failed_checks
from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from firstflight.runs.scenario_file import ScenarioFile, find
from firstflight.net.sysctls import settings_of
from firstflight.setting.limits import without
from firstflight.study import registry
from firstflight.study.fetch_findings import analyse
from firstflight.scenario.setting_sweep import queue_of
from firstflight.study.fetches import KIND
from firstflight.testbed import engine
from firstflight.testbed.guests import Place, UmlEngine, place_of
from firstflight.testbed.network.commands import commands_of
from firstflight.testbed.network.kernel import KernelLacks
from firstflight.testbed.worker.worker import check_modules
from firstflight.wire.delivery.packet_path import PATH
from firstflight.workloads.fetch.figures import kinds, steps
from firstflight.workloads.fetch.figures.cells import settings
from firstflight.workloads.fetch.figures.kernels import kernel_answer, kernel_changes, kernels_table
from firstflight.workloads.fetch.figures.reasons import WhatIfs
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.response import segments_at_once
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.notes import run_notes
from firstflight.workloads.fetch.record.transfers import transfer_of
from firstflight.workloads.fetch.verify.verify import CHECKS
from tests.golden import stored
from tests.parameters import another
from vtime import uml

GOOD = stored.load("iw10")
ONE = {"rtt_ms": [40], "bandwidth_kbps": [2000], "initcwnd": [10], "response_bytes": [60000]}


@cache
def zhao2019() -> ScenarioFile:
    """The scenario zhao2019 without its axes and figures, which no test here looks at."""
    return scenario_file.parse("zhao2019", find("zhao2019").text.partition("[[axis]]")[0])


def trials(client: str = "libcurl", **lists: list[Any]) -> list[Trial]:
    """The trials of zhao2019 with the lists of ONE, and with these, in place of its own."""
    return list(KIND.study(zhao2019(), Overrides({**ONE, **lists}, client=client)).trials)


def test_a_parameter_is_a_field_of_a_trial_with_its_default() -> None:
    """The default differs only where a field is required, or follows from other parameters."""
    of_trial = {column.name: column.default for column in fields(Trial)}
    for row in PARAMETERS.values():
        assert row.field in of_trial, f"{row.name} is no field of its subject's class"
        if of_trial[row.field] is not MISSING and not row.follows:
            assert of_trial[row.field] == row.default, row.name
    needed = {name for name, default in of_trial.items() if default is MISSING}
    given = {"uplink_kbps", "queue_packets", "loss_percent", "congestion_control", "initrwnd"}
    assert needed - {"scenario", "repeat", "client"} == {
        row.field for row in PARAMETERS.values() if row.required} | given


def test_every_parameter_but_those_of_published_set_ups_has_a_flag() -> None:
    without = {name for name in PARAMETERS if name not in FLAGS}
    # --iw default sets window_by.
    assert without == {"htb_burst_bytes", "window_by", *(row.name for row in of_subject(PUBLISHED))}


def test_earlier_responses_and_a_pause_reach_the_client() -> None:
    (trial,) = trials(kept=[2], idle_ms=[1500])
    assert trial.job()["paths"] == ["/60000"] * 3
    assert trial.job()["think_s"] == [0.0, 0.0, 1.5]



@pytest.mark.parametrize(("lists", "more_s"), [
    ({}, 0), ({"rtt_ms": [5000]}, 20 * 4.96 + 42 * 2 * 4.96),
    ({"response_bytes": [120_000]}, 0.72 + 41 * 0.48),
    ({"bandwidth_kbps": [20]}, 71.28), ({"kept": [2]}, 2 * 0.8 + 2 * 0.72 + 83 * 0.48),
    ({"kept": [1], "idle_ms": [1500]}, 0.8 + 0.72 + 1.5 + 41 * 0.48), ({"gap_ms": [700]}, 0.7),
    ({"loss_percent": [1]}, 0), ({"mss": [536]}, 70 * 0.48),
    ({"loss_percent": [1], "loss_burst": [2]}, 0)])
def test_a_client_gives_up_when_no_transfer_could_still_end(lists: dict[str, Any],
                                                            more_s: float) -> None:
    """The deadline is a sum of five times.

    A minute; 20 RTTs of 40 ms for each response; three times what the bytes take at 2 Mbit/s,
    0.72 s; the 930 s after which TCP gives up; and a retransmission timer of 0.48 s for each of
    42 segments.
    """
    assert trials(**lists)[0].deadline_s == pytest.approx(
        60 + 0.8 + 0.72 + 930 + 42 * 0.48 + more_s)


@pytest.mark.parametrize(("length", "packets"), [("1", 1), ("0.01ms", 1), ("0.001bdp", 1),
                                                 ("60ms", 50), ("60.1ms", 51)])
def test_a_queue_in_time_holds_whole_packets(length: str, packets: int) -> None:
    """At 10.092 Mbit/s a full packet, 1514 bytes, takes 1.2 ms."""
    assert queue_of(length, 100.0, 12112 / 1.2)["queue_packets"] == packets


def test_a_shaper_with_a_bucket_lets_the_first_packet_through() -> None:
    """CAKE has no bucket, so the SYN-ACK takes its time at the rate, and the RTT has it."""
    assert GOOD.judge().seen_rtt_ms == pytest.approx(GOOD.trial.rtt_ms, abs=0.002)
    in_a_bucket = GOOD.requested(qdisc="cake").judge().seen_rtt_ms
    assert in_a_bucket == pytest.approx(GOOD.trial.rtt_ms + 0.592, abs=0.002)  # 74 bytes, 1 Mbit/s


def switched(**switches: Any) -> Trial:
    """The trial of ONE with these parameters of a published set-up."""
    (trial,) = trials()
    return replace(trial, **switches)


@pytest.mark.parametrize(("switches", "words"), [
    ({"htb_burst_bytes": 15360}, "htb rate 2000000bit burst 15360b"),
    ({"integer_kbps": 5e5, "bandwidth_kbps": 512.0}, "rate 500000000bit"),
    ({"arp_ms": 940}, "sysctl -w net.ipv4.neigh.client-eth0.retrans_time_ms=940"),
    ({"head": "17+38+2"}, "?head=17,38,2"), ({"nagle": "on"}, "?nagle=1"),
    ({"framing": "close"}, "?until_close=1"),
    ({"loss_probes": "off"}, "sysctl -w net.ipv4.tcp_early_retrans='0'"),
    ({"receive_rules": "linux3", "initrwnd": 45}, "initrwnd 10"),
    ({"acts_as": "3=2,10=7"}, "initcwnd 7"), ({"send_buffer_bytes": 4344}, "?sndbuf=4344")])
def test_each_parameter_of_a_published_set_up_reaches_the_commands_of_its_trial(
        switches: dict[str, Any], words: str) -> None:
    (plain,), trial = trials(), switched(**switches)
    commands, usual_commands = commands_of(trial.job()), commands_of(plain.job())
    assert any(words in command for command in commands)
    assert not any(words in command for command in usual_commands)
    assert trial.id != plain.id


def test_a_rate_is_rounded_down_to_whole_megabits_where_that_is_requested() -> None:
    assert switched(integer_kbps=5e5, bandwidth_kbps=3000.0).down_kbps == 3000
    assert switched(integer_kbps=5e5, bandwidth_kbps=1999.0).down_kbps == 1000
    assert switched(uplink_kbps=999.0).up_kbps == 999


def test_a_receive_window_that_fits_in_a_syn_is_the_clients_under_the_rules_of_linux_3() -> None:
    assert switched(receive_rules="linux3", initrwnd=44).client_window == 44
    assert switched(initrwnd=45).client_window == 45


@pytest.mark.parametrize(("writes", "total", "nagle", "room", "segments"), [
    ((17, 38, 2), 9057, True, 60000, 8), ((17, 38, 2), 9057, False, 60000, 10),
    ((17,), 17 + 1448, True, 60000, 2), ((17, 170), 42179, True, 14600, 11),
    # A segment leaves only where the client has room for all of it.
    ((100,), 5000, False, 1548, 2), ((100,), 5000, False, 1547, 1), ((100,), 5000, False, 99, 0)])
def test_segments_at_once_counts_the_segments_that_leave_before_an_acknowledgement(
        writes: tuple[int, ...], total: int, nagle: bool, room: int, segments: int) -> None:
    assert segments_at_once(writes, total, 1448, nagle, room) == segments


def test_a_list_of_writes_that_ends_with_a_plus_is_refused() -> None:
    """Other refused values of these parameters are in golden/rendered/quantities.words."""
    with pytest.raises(UsageError, match=r"^here: '17\+' is not a list of write sizes"):
        QUANTITIES["head"].check("17+", "here")


AS_PUBLISHED = stored.load("as_published")


def unconnected(client: bytes = b"", exit_status: int = 7) -> Record:
    """A fetch that cannot connect: the published set-up gives up before an RTT of 3 s ends.

    client: its capture. exit_status: of curl, which has 7 where it could not connect.
    """
    trial = AS_PUBLISHED.requested(rtt_ms=3000.0).said("fetch", ok=False, exit_status=exit_status,
                                                   error=f"curl {exit_status}: failed")
    return replace(trial, client=client, server=b"").judge()


def test_a_fetch_that_has_to_fail_passes_only_without_a_packet() -> None:
    record = unconnected()
    assert (record.ok, record.verdict, record.total_ms) == (False, PASS, None)
    assert record.failed_as_expected and not record.counts
    assert record.outcome == "failed as expected" and record.error == "curl 7: failed"
    for wrong, words in ((unconnected(AS_PUBLISHED.client), "packets of IP, expected none"),
                         (unconnected(exit_status=28), "expected that curl cannot connect")):
        assert wrong.verdict == FAIL and words in wrong.verdict_reason
    assert AS_PUBLISHED.requested(rtt_ms=2820.0).trial.cannot_connect is False
    counts = {row[0]: row[2:] for row in checks.table(CHECKS, [
        unconnected(), unconnected(exit_status=28), AS_PUBLISHED.judge()]).rows}
    assert counts["no connection"] == (1, 1, 1)  # passed, failed, not judged
    assert "no connection" not in {row[0] for row in checks.table(
        CHECKS, [AS_PUBLISHED.judge()]).rows}


# Jitter is a parameter of the network like any other, and some checks cannot judge it -

def test_in_real_time_an_rtt_may_deviate_by_four_standard_deviations_of_jitter() -> None:
    """A trial with jitter then has no prediction, and no bandwidth: jitter spreads the flight."""
    record = GOOD.requested(jitter_ms=1.0, rtt_ms=GOOD.trial.rtt_ms + 6.9).judge(exact=False)
    assert record.verdict == PASS
    assert (record.model_ms, record.model_latency_ms, record.seen_bandwidth_kbps) == (None,) * 3
    assert GOOD.requested(rtt_ms=GOOD.trial.rtt_ms + 6.9).judge(exact=False).verdict == FAIL
    far = GOOD.requested(jitter_ms=1.0, rtt_ms=GOOD.trial.rtt_ms + 7.3).judge(exact=False)
    assert far.verdict == FAIL and far.verdict_reason.startswith("RTT: ")


def test_in_virtual_time_each_packets_delay_follows_from_the_seed() -> None:
    record = GOOD.requested(jitter_ms=1.0, seed=1006759911).judge()
    assert record.verdict == FAIL and record.verdict_reason.startswith("path: ")


def test_packets_may_overtake_each_other() -> None:
    again = stored.sent_again(GOOD, 1, later_ms=30)
    assert again.judge(exact=False).verdict == FAIL
    record = again.requested(jitter_ms=1.0).judge(exact=False)
    assert (record.verdict, record.retransmission_cause) == (PASS, OVERTAKEN)


# Every parameter of the network ---------------------------------------------------------

@pytest.mark.parametrize("row", of_subject(NETWORK), ids=lambda row: row.name)
def test_every_parameter_of_the_network_is_part_of_the_path(row: Parameter) -> None:
    """A parameter that is no part of it would not be installed."""
    row = replace(row, quantity=QUANTITIES[row.field])  # a queue's length in packets
    changed = replace(GOOD.trial, **{row.field: another(row, getattr(GOOD.trial, row.field))})
    assert changed.path != GOOD.trial.path, "PathParameters.path has to hand it to Link"


def test_a_trial_whose_path_cannot_be_computed_is_not_judged_by_path_rtt_or_bandwidth(
        monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = GOOD.requested(rtt_ms=GOOD.trial.rtt_ms + 10)
    assert PATH in GOOD.judge().judged_by.split()
    assert {"path", "model"} <= set(failed_checks(wrong.judge()))
    monkeypatch.setattr(Trial, "is_computed", False)
    assert PATH not in GOOD.judge().judged_by.split()
    assert not {"path", "RTT", "bandwidth"} & set(failed_checks(wrong.judge()))


# Guest kernels with names, and parameters of their modules ----------------------------

def kernel_trials(**lists: list[Any]) -> list[Trial]:
    """The trials of a question about these lists, with one RTT and one window."""
    one = {"rtt_ms": [100], "initcwnd": [10]}
    return list(registry.own_question("own", Overrides({**one, **lists}, repeat=1)).trials)


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "../x", "a b", "-a", "a..b", "a;b", "a$b",
                                  "a\n", "x" * 41, 7])
def test_an_invalid_name_of_a_kernel_is_refused(name: Any) -> None:
    with pytest.raises(UsageError, match="is no name of a kernel"):
        PARAMETERS["kernel"].quantity.check(name, "kernel")
    if isinstance(name, str):
        with pytest.raises(uml.KernelMissing, match="is no name"):
            uml.named_kernel(name)


@pytest.mark.parametrize("value", ["tcp_cubic.hystart", "hystart=0", "tcp_cubic.hystart=0 init=/x",
                                   "a.b=1,c.d=2", "a.b=../x", "a.b=1+a.b=2", "hostfs=/", ""])
def test_an_invalid_parameter_of_a_module_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="no parameter of a module|twice"):
        PARAMETERS["module_parameter"].quantity.check(value, "module_parameter")


def test_trials_that_differ_in_the_kernel_alone_have_one_seed_and_two_guests() -> None:
    made = kernel_trials(kernel=["default", "mine"], loss_percent=[1],
                         module_parameter=["none", "tcp_cubic.beta=512"])
    assert len({trial.seed for trial in made}) == 1
    assert len({trial.id for trial in made}) == len(made)
    assert {place_of(trial.job()) for trial in made} == {
        Place("here", kernel, parameters) for kernel in ("default", "mine")
        for parameters in ((), ("tcp_cubic.beta=512",))}
    assert not {"kernel", "module_parameters"} & made[0].job().keys(), "the default is not named"


def test_the_trials_of_a_missing_kernel_are_skipped_with_the_command_that_builds_it(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent(name: str) -> Path:
        raise uml.KernelMissing(f"there is no kernel {name}: ./install.sh --kernel {name} …")

    monkeypatch.setattr(UmlEngine, "_start", lambda *_: pytest.fail("a guest was started"))
    (tmp_path / "x").mkdir()
    (skipped,) = UmlEngine(tmp_path / "x" / "linux", 1, named_kernel=absent).run(
        [kernel_trials(kernel=["mine"])[0].job()], {}, tmp_path)
    assert skipped.content["skipped"].startswith("there is no kernel mine: ./install.sh")
    host = next(engine.HostEngine().run([kernel_trials(kernel=["mine"])[0].job()], {}, tmp_path))
    assert "guests only" in host.content["skipped"]


class Measurer:
    """A measurer with named kernels. digests: of each kernel's file, by name."""

    build = "592093dca475af24"

    def __init__(self, **digests: str) -> None:
        self.digests = digests

    def recipes(self, names: set[str]) -> dict[str, dict[str, str]]:
        return {name: {"linux": self.digests[name]} for name in names if name in self.digests}


def test_a_run_has_another_build_where_a_kernel_of_the_same_name_is_another_one() -> None:
    """A run is resumed only with the build that it began with."""
    class Study:
        trials = ()

    study: Any = Study()
    assert build_of(study, Measurer(mine="ab" * 32)) == Measurer.build  # type: ignore[arg-type]
    study.trials = kernel_trials(kernel=["default", "mine"])
    builds = [build_of(study, measurer) for measurer in (  # type: ignore[arg-type]
        Measurer(mine="ab" * 32), Measurer(mine="cd" * 32), Measurer())]
    assert len({*builds, Measurer.build}) == 4 and all(Measurer.build in build for build in builds)


@pytest.mark.parametrize("recipe, known", [
    ("digest ab\nsource cd\n", True), ("digest ab\nsource cd\npatch ef a.patch\n", False),
    ("digest ab\nsource cd\noption CONFIG_X=y\n", False)])
def test_the_model_knows_a_kernel_whose_source_nobody_changed(recipe: str, known: bool,
                                                              tmp_path: Path) -> None:
    for name, text in (("recipe", recipe), ("source", "linux-source-7.2 7.2.11-1\n"),
                       ("version", "7.2.11\n"), ("inputs", f"source cd\nlinux {'12' * 32}\n")):
        (tmp_path / name).write_text(text)
    assert uml.recipe_of(tmp_path / "linux")["known"] is known


def test_the_model_predicts_nothing_for_an_unknown_kernel_and_a_note_says_so() -> None:
    other = replace(GOOD, trial=replace(GOOD.trial, kernel="mine"))
    assert GOOD.judge().model_ms is not None
    assert other.judge(known_kernel=True).model_ms is not None, "its source is unchanged"
    unpredicted = other.judge(known_kernel=False)
    assert unpredicted.model_ms is None
    assert any("predicts nothing for the kernel mine in 1 of 1 trials" in note
               for note in run_notes([unpredicted]))
    tuned = replace(GOOD, trial=replace(GOOD.trial, module_parameter="tcp_cubic.hystart=0")).judge()
    assert tuned.model_ms is None and "tcp_cubic.hystart=0 in 1" in " ".join(run_notes([tuned]))


def test_a_module_parameter_that_the_kernel_lacks_or_did_not_take_is_refused(tmp_path: Path
                                                                             ) -> None:
    """Linux boots with a parameter that it does not know, and reports nothing."""
    (tmp_path / "tcp_cubic/parameters").mkdir(parents=True)
    (tmp_path / "tcp_cubic/parameters/hystart").write_text("0\n")
    (tmp_path / "tcp_cubic/parameters/fast").write_text("Y\n")
    check_modules(["tcp_cubic.hystart=0", "tcp_cubic.fast=1"], tmp_path)
    for wrong, why in (("tcp_cubic.hystar=0", "has no parameter"),
                       ("tcp_cubic.hystart=1", "is 0 in")):
        with pytest.raises(KernelLacks, match=why):
            check_modules([wrong], tmp_path)


def test_the_answer_is_the_difference_of_the_kernels() -> None:
    records = [replace(record, trial=replace(record.trial, kernel=kernel),
                       total_ms=(record.total_ms or 0) - saved_ms)
               for record in (GOOD.judge(),) for kernel, saved_ms in (
                   ("default", 0.0), ("same", 0.0), ("mine", 10.0))]
    changes = kernel_changes(settings(records))
    assert [(change.base.requested.kernel, change.experiment.requested.kernel,
             round(change.saved_ms, 6)) for change in changes] == [
        ("default", "same", 0.0), ("default", "mine", 10.0)]
    answer = kernel_answer(changes)
    assert "Kernel default → same: no difference" in answer
    assert "Kernel default → mine saves 10.0 ms" in answer
    table = kernels_table(changes, 20)
    place = [column.name for column in table.columns].index("kernel")
    assert [row[place] for row in table.rows] == ["default → same", "default → mine"]


# Rows of kernels in one sweep, and their figure with what was published ---------------

SCENARIO = Path(scenario_file.find("slow_start_exit").where)
ROWS = [("default", "tcp_cubic.hystart=0"), ("default", "none"),
        ("rfc9406", "tcp_cubic.hystart=2"), ("suss", "tcp_cubic.suss=1"), ("search", "none")]


def study(**lists: list[Any]) -> Any:
    return registry.study_of(scenario_file.find("slow_start_exit"), Overrides(lists), 1)


def changed(folder: Path, old: str, new: str) -> Any:
    text = SCENARIO.read_text(encoding="utf-8")
    assert text.count(old) == 1
    (folder / "changed.toml").write_text(text.replace(old, new), encoding="utf-8")
    return registry.study_of(scenario_file.find(str(folder / "changed.toml")), Overrides({}), 1)


def figure(study: Any) -> Any:
    """The figure of a run whose kernels suss and search are missing.

    The kernel in row n of ROWS, from 0, takes 1000 + n ms and loses 10 n segments.
    """
    records = []
    for trial in study.trials:
        row = ROWS.index((trial.kernel, trial.module_parameter))
        if trial.kernel in ("suss", "search"):
            records.append(Record(trial, True, verdict=SKIPPED, verdict_reason="no kernel"))
        else:
            records.append(Record(trial, True, verdict=PASS, latency_ms=1000.0 + row,
                                  lost_segments=10 * row))

    run = RunData(Path("run"), {"kernel": "7.2", "virtual_time": True}, records)
    ((_, (found,)),) = kinds.figures(analyse(study.scenario, run, True))
    return found


def test_a_sweep_measures_only_its_rows_of_kernel_and_module_parameter() -> None:
    """Other combinations may not exist: HyStart++ is in one of the kernels only."""
    kernels = [(trial.kernel, trial.module_parameter) for trial in study().trials]
    assert list(dict.fromkeys(kernels)) == ROWS and len(kernels) == 2 * len(ROWS)
    (sweep,) = study().scenario.sweeps
    assert sweep.count == len(kernels)
    assert set(sweep.counted("kernel", "module_parameter").items()) == {(row, 2) for row in ROWS}


def test_a_kernel_of_the_command_line_replaces_the_kernel_of_each_row() -> None:
    trials = study(kernel=["mine"]).trials
    assert {trial.kernel for trial in trials} == {"mine"}
    assert len({trial.module_parameter for trial in trials}) == 4


@pytest.mark.parametrize(("old", "new", "why"), [
    ('["default", "none"]', '["default"]', r"list of \[kernel, module_parameter\]"),
    ('["default", "none"]', '["../x", "none"]', "no name of a kernel"),
    ('["default", "none"]', '["default", "hystart=0"]', "parameter of a module"),
    ('["default", "none"]', '["other", "none"]', "unknown 'default'.*published: bucket|bucket"),
    ('by = "response_bytes"', 'by = "kernel"', "another quantity than kernel"),
    ('metric = "latency_ms"', 'metric = "total_ms"', "published: panel"),
    ("rtt_ms = 100", "rtt_ms = [100, 200]", "several cells")])
def test_rows_and_figures_that_do_not_fit_are_refused(tmp_path: Path, old: str, new: str,
                                                      why: str) -> None:
    with pytest.raises(UsageError, match=why):
        changed(tmp_path, old, new)


def test_each_kernel_has_a_bar_next_to_what_was_published() -> None:
    found = figure(study())
    assert isinstance(found.chart, LineChart)
    times, lost, times_of_20_mb, lost_of_20_mb = found.chart.columns[0]
    bars, published = times.lines
    assert (bars.x, bars.y) == ((0, 1, 2), (1000, 1001, 1002))
    assert (published.x, published.y) == ((0, 1, 2, 3), (1600, 1390, 1600, 1210))
    assert [label for _, label in times.ticks] == [
        "default, hystart=0", "default", "rfc9406, hystart=2", "suss, suss=1, skipped",
        "search, skipped"]
    assert len(lost.lines) == len(times_of_20_mb.lines) == 1, "nothing is published here"
    assert lost_of_20_mb.lines[1].y == (1105, 40, 704, 35)
    (table,) = found.tables
    assert table.rows[0][:4] == (5_000_000, "default with tcp_cubic.hystart=0", 1000, 1600)
    assert table.rows[3][1:4] == ("suss with tcp_cubic.suss=1", None, 1210)
    assert "default 1001 ms (published 1390), 10 lost" in found.sentence


def test_a_figure_of_kernels_without_published_values_has_no_line_or_column_for_them(
        tmp_path: Path) -> None:
    found = figure(changed(tmp_path, 'published = "suss2024_exit.csv"\n', ""))
    assert [len(plot.lines) for plot in found.chart.columns[0]] == [1, 1, 1, 1]
    assert [column.name for column in found.tables[0].columns] == [
        "size", "kernel", "latency", "lost segments"]


# Figures of steps ----------------------------------------------------------------------

def figures_of_steps(name: str, metric: str, model: str = "") -> list[Any]:
    """The figures of a scenario in which a response takes 1 ms for each 1000 bytes.

    metric, model: the columns of a record that have this time.
    """
    study = registry.study_of(scenario_file.find(name), Overrides({}), 1)
    columns = [column for column in (metric, model) if column]
    records = [Record(trial, True, verdict=PASS,
                      **dict.fromkeys(columns, trial.response_bytes / 1000))
               for trial in study.trials]
    run = RunData(Path("run"), {"kernel": "7.2", "virtual_time": True}, records)
    return [found for _, (found,) in kinds.figures(analyse(study.scenario, run, True))]


def test_a_figure_of_steps_has_what_was_published_over_the_curve_of_the_model(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """The model follows 16 MB for each point of its curve: a few of them are enough here."""
    monkeypatch.setattr(steps, "CURVE_POINTS", 1)
    monkeypatch.setattr(steps, "STEP_PART", 1.0)
    (found,) = figures_of_steps("suss2024_log", "latency_ms", "model_ms")
    (plot,), = found.chart.columns
    assert [line.style for line in plot.lines] == ["points", "curve", "published"]
    assert plot.lines[2].x == (1e6, 2e6, 5e6, 16e6) and plot.lines[2].y[0] == 391.7
    assert plot.x_scale == "linear" and [row[-1].value for row in found.tables[0].rows] == [
        391.7, 559.0, 1061.2, 2901.1]


def test_sizes_over_two_decades_are_named_on_a_logarithmic_axis() -> None:
    """Points without a curve of the model are joined by lines, as a time grows with the size."""
    for found in figures_of_steps("kernels2026", "total_ms"):
        (plot,), = found.chart.columns
        assert plot.x_scale == "log" and "step" not in found.chart.foot
        assert [label for _, label in plot.ticks] == [
            "14 kB", "30 kB", "100 kB", "300 kB", "1 MB", "5 MB"]
        assert {line.style for line in plot.lines} == {"line"}


def test_published_values_of_a_window_or_size_that_is_not_measured_are_refused(tmp_path: Path
                                                                               ) -> None:
    text = Path(scenario_file.find("suss2024_log").where).read_text(encoding="utf-8")
    of_window_20 = text.replace("initcwnd = 10\n", "initcwnd = 20\n", 1).replace(
        "windows = [10]", "windows = [20]")
    without_1_mb = text.replace("1000000, 2000000,", "2000000,", 1)
    for changed_text, why in ((of_window_20, "published: panel"),
                              (without_1_mb, "published: bucket")):
        (tmp_path / "log.toml").write_text(changed_text, encoding="utf-8")
        with pytest.raises(UsageError, match=why):
            registry.study_of(scenario_file.find(str(tmp_path / "log.toml")), Overrides({}), 1)


# Sysctls of both hosts ------------------------------------------------------------------

SACK, RESTART = "net.ipv4.tcp_sack", "net.ipv4.tcp_slow_start_after_idle"
ECN = "net.ipv4.tcp_ecn"
RMEM, WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"


@pytest.mark.parametrize(("flags", "measured"), [
    ([f"{SACK}=0,1"], [f"{SACK}=0", f"{SACK}=1"]),
    ([f"{SACK}=0", f"{SACK}=1"], [f"{SACK}=0", f"{SACK}=1"]),
    ([f"{SACK}=0,1", f"{RESTART}=0,1"],
     [f"{SACK}={sack}+{RESTART}={restart}" for sack in (0, 1) for restart in (0, 1)]),
    ([f"{SACK}=0+{RESTART}=1,{SACK}=1+{RESTART}=0"],
     [f"{SACK}=0+{RESTART}=1", f"{SACK}=1+{RESTART}=0"]),
    ([f"{RMEM}=4096 131072  6291456,4096 65536 65536"],
     [f"{RMEM}=4096 131072 6291456", f"{RMEM}=4096 65536 65536"]),
    (['net.ipv4.tcp_fastopen_key="1-2-3-4,5-6-7-8",9-9-9-9'],
     ["net.ipv4.tcp_fastopen_key=1-2-3-4,5-6-7-8", "net.ipv4.tcp_fastopen_key=9-9-9-9"]),
    (["none"], ["none"])])
def test_values_of_one_sysctl_flag_are_listed_and_those_of_several_sysctls_combined(
        flags: list[str], measured: list[str]) -> None:
    values = [value for words in flags for value in FLAGS["sysctl"].listed(words)]
    assert Overrides({"sysctl": values}).checked()["sysctl"] == tuple(measured)


def test_a_sysctl_with_one_value_is_the_files_and_one_with_several_is_the_trials() -> None:
    requested = registry.own_question("own", Overrides({
        "rtt_ms": [100], "initcwnd": [10],
        "sysctl": [f"{SACK}=0", f"{RESTART}=0", f"{RESTART}=1"]}))
    assert requested.head.sysctls == {SACK: "0"}
    assert [trial.sysctl for trial in requested.trials] == [f"{RESTART}=0", f"{RESTART}=1"]
    assert [figure.by for figure in requested.scenario.figures][0] == "sysctl"
    assert all(f"-{trial.sysctl}-" in trial.id for trial in requested.trials)
    jobs = [json.loads(json.dumps(trial.job())) for trial in requested.trials]
    assert [job["host_sysctls"] for job in jobs] == [
        {RESTART: "0"}, {RESTART: "1"}]
    again = registry.study_of(scenario_file.of_run("own", requested.head.text))
    assert again.trials == requested.trials and again.head == requested.head


def test_a_scenario_takes_sysctls_in_place_of_its_own() -> None:
    both = Overrides({"sysctl": (f"{SACK}=0", f"{SACK}=1")})
    made = registry.study_of(find("zhao2019"), both).trials
    assert {trial.sysctl for trial in made} == {f"{SACK}=0", f"{SACK}=1"}
    assert len(made) == 2 * len(registry.study_of(find("zhao2019")).trials)
    assert made[0].host_settings({SACK: "2", RESTART: "0"}) == {SACK: "0", RESTART: "0"}


def test_dctcp_has_the_ecn_that_it_needs_unless_the_trial_says_otherwise() -> None:
    trial = replace(GOOD.trial, congestion_control="dctcp")
    assert trial.job()["host_sysctls"] == {ECN: "1"}
    assert trial.host_settings({ECN: "0"})[ECN] == "1"
    assert replace(trial, sysctl=f"{ECN}=0").host_settings({})[ECN] == "0"
    assert "host_sysctls" not in GOOD.trial.job()


def test_a_buffer_that_a_trial_sets_replaces_the_one_that_its_windows_need() -> None:
    """The model has the buffer of the trial as well, and a job names each buffer once."""
    trial = replace(GOOD.trial, initrwnd=1000, initcwnd=2000)
    assert {*trial.job()["buffers"]} == {RMEM, WMEM}
    own = replace(trial, sysctl=f"{RMEM}=4096 20000 20000")
    assert {*own.job()["buffers"]} == {WMEM}
    assert transfer_of(own, {}, 0, 0).receive_buffers == (20_000, 20_000)
    assert transfer_of(own, {RMEM: "4096 9000 9000"}, 0, 0).receive_buffers == (20_000, 20_000)
    assert transfer_of(replace(trial, sysctl=f"{RESTART}=0"), {}, 0, 0).restart_after_idle is False


@pytest.mark.parametrize(("sysctl", "verdict", "check"), [
    (f"{SACK}=1", PASS, ""), (f"{SACK}=0", FAIL, "TCP options"),
    ("net.ipv4.tcp_ecn=1", FAIL, "TCP options"), ("net.ipv4.tcp_timestamps=0", FAIL, "TCP options"),
    (f"{RMEM}=4096 20000 20000", FAIL, "TCP options")])
def test_a_requested_sysctl_that_the_packets_do_not_show_fails_the_trial(
        sysctl: str, verdict: str, check: str) -> None:
    """The capture was made with the project's usual sysctls."""
    record = GOOD.requested(sysctl=sysctl).judge()
    assert record.verdict == verdict and check in record.verdict_reason


def lifted(tag: str, trial: Trial, sysctls: Mapping[str, str] = {}) -> Trial:
    """The trial without the limit of this tag. sysctls: of the scenario."""
    what_ifs = WhatIfs(sysctls=sysctls)
    return without(trial, [limit for limit in what_ifs.limits(trial) if limit.tag == tag])


@pytest.mark.parametrize(("name", "value", "tag", "free"), [
    (RMEM, "4096 20000 20000", "receive-window", "4096 2922920 6291456"),
    ("net.ipv4.tcp_window_scaling", "0", "receive-window", "1"),
    ("net.ipv4.tcp_wmem", "4096 9000 9000", "send-buffer", "4096 16384 4194304"),
    (SACK, "0", "sysctl-tcp-sack", "1")])
def test_a_sysctl_that_all_trials_share_is_a_limit_that_is_lifted(
        name: str, value: str, tag: str, free: str) -> None:
    """Such a sysctl stands in the scenario, and a what-if trial has another value of its own."""
    trial = replace(GOOD.trial, initrwnd=1000)
    assert settings_of(lifted(tag, trial, {name: value}).sysctl)[name] == free
    assert tag in {limit.tag for limit in WhatIfs(sysctls={name: value}).limits(trial)}
    assert tag not in {limit.tag for limit in WhatIfs().limits(trial)}


def test_slow_start_after_a_pause_is_lifted_where_it_is_on() -> None:
    trial = replace(GOOD.trial, kept=1, idle_ms=900.0)
    name = "net.ipv4.tcp_slow_start_after_idle"
    assert settings_of(lifted("restart", trial).sysctl) == {name: "0"}
    assert "restart" not in {limit.tag for limit in WhatIfs(sysctls={name: "0"}).limits(trial)}


def test_an_ample_window_is_not_held_back_by_a_sysctl_of_its_trial() -> None:
    trial = replace(GOOD.trial, sysctl=f"{RMEM}=4096 20000 20000+{SACK}=0")
    assert lifted("receive-window", trial).sysctl == f"{SACK}=0"


# A receive window that does not grow ---------------------------------------------------

def test_a_fixed_receive_window_is_in_the_job_with_a_buffer_that_holds_it() -> None:
    """Half of the usual buffer, 131,072 bytes, holds 44 segments of 1460 bytes.

    A fixed window of 44 segments needs room for one more.
    """
    trials = {window: replace(GOOD.trial, client="libcurl", initrwnd=window, rwnd_growth="fixed")
              for window in (43, 44, 45)}
    assert {window: trial.job()["window_bytes"] for window, trial in trials.items()} == {
        window: 1460 * window for window in trials}
    assert [window for window, trial in trials.items() if "buffers" in trial.job()] == [44, 45]
    assert "buffers" not in replace(trials[44], rwnd_growth="grows").job()
    assert "window_bytes" not in GOOD.trial.job()
    assert transfer_of(trials[44], {}, 0, 0).most_window_bytes == 1460 * 44


@pytest.mark.parametrize(("typed", "windows"), [
    ("45", [45]), ("27,45", [27, 45]), ("45,fixed", [45, "fixed"]), ("27, 45, FIXED", [
        27, 45, "fixed"])])
def test_the_word_fixed_is_read_after_the_windows(typed: str, windows: list[Any]) -> None:
    assert FLAGS["initrwnd"].listed(typed) == windows


def test_fixed_windows_are_compared_with_those_that_grow() -> None:
    request = parse(["--rtt", "100", "--rwnd", "27,45,fixed", "--rwnd-growth", "grows"])
    assert request.overrides.lists["initrwnd"] == [27, 45]
    assert request.overrides.lists["rwnd_growth"] == ["grows", "fixed"]
    trials = registry.own_question("own", request.overrides).trials
    assert len({(trial.initrwnd, trial.rwnd_growth) for trial in trials}) == 4
    assert sum("-rwndfixed" in trial.id for trial in trials) == len(trials) / 2


@pytest.mark.parametrize(("windows", "modelled"), [(42, True), (43, False), (44, False),
                                                   (45, True)])
def test_a_window_at_the_end_of_16_bits_is_not_modelled(windows: int, modelled: bool) -> None:
    """The client offers two segments more until it has read: 65,535 bytes are 44.9 segments."""
    trial = stored.load("fixed_window").requested(initrwnd=windows)
    assert ("model" in failed_checks(trial.judge())) == modelled


def test_a_what_if_trial_without_the_limit_of_its_receive_window_has_one_that_grows() -> None:
    trial = replace(GOOD.trial, rwnd_growth="fixed")
    assert lifted("receive-window", trial).rwnd_growth == "grows"
