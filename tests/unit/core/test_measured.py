"""A measured run: its facts, the captures that it keeps, and trials taken from earlier runs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.base.progress import Progress
from firstflight.net.segments import capture_file
from firstflight.runs import captured, measuring, reporting, runs, scenario_file
from firstflight.runs.captured import CAPTURES_KEPT, MOST_CELLS, choose_captured
from firstflight.runs.kinds import Overrides
from firstflight.runs.measuring import (CAPTURES, FILES, MeasureOptions, OneMachine, Refining,
                                        capture_path, measure, read_trial_file, trial_file_path)
from firstflight.runs.results import records
from firstflight.study import compared_runs, registry
from tests.unit.core import example, example_run
from tests.unit.core.example import Record, Trial, whole


def judge(trial: Trial, seen: example_run.Seen, exact: bool, sysctls: Mapping[str, str],
          known_kernel: bool = True) -> tuple[Record, dict[str, bytes]]:
    record, _ = example.judge(trial, seen, exact, sysctls)
    return record, {"log": seen.trial_id.encode()}


# A kind that keeps a sample of the captures, and a file of each trial.
KIND = example.changed(example.KIND, judge=judge, all_captures=False)


@dataclass
class Engine(example_run.Engine):
    """An engine that may die, and that notes what it sees while it runs."""

    capture_bytes: int = 10
    dies_before: int = 1000  # the number, from 0, of the trial before which it dies
    timeless: str = ""  # the id of a trial without a duration, as if its network had failed
    seen: list[dict[str, Any]] = field(default_factory=list)  # run.json as each trial ended
    ran: list[str] = field(default_factory=list)  # ids

    def run(self, trials: list[dict[str, Any]], sysctls: dict[str, str],
            folder: Path) -> Iterator[Any]:
        for number, seen in enumerate(super().run(trials, sysctls, folder)):
            if number == self.dies_before:
                raise FirstFlightError("the guest died")
            self.seen.append(runs.read_facts(folder.parent))
            self.ran.append(seen.trial_id)
            content = {} if seen.trial_id == self.timeless else seen.content
            yield example_run.Seen(seen.trial_id, seen.client_pcap, content, b"server")


def study(count: int = 4, whole: bool = True, **more: Any) -> Any:
    """A study with RTTs of 1, 2, … ms."""
    return example.study(*map(float, range(1, count + 1)), kind=KIND, whole=whole, **more)


def requested(results: Path, version: str = "1", keep: bool = False, arguments: Sequence[str] = (),
              seed: int = 7, fresh: bool = False, **more: bool) -> MeasureOptions:
    """Options of a run. version: of the project and of curl. keep: all captures."""
    return MeasureOptions(results, seed, fresh, keep, {
        "project": {"version": version}, "tools": {"curl": version},
        "arguments": list(arguments)}, **more)


def test_the_facts_of_a_resumed_run_name_both_versions_and_add_up_its_times(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(study(), OneMachine(Engine(dies_before=3, timeless="rtt1-1")), requested(tmp_path))
    (folder,) = runs.newest_first(tmp_path / "small")
    stopped = runs.read_facts(folder)
    assert (stopped["state"], stopped["emulated_s"], stopped["trials"]["rows"]) == (
        runs.RUNNING, 2.0, 3)
    assert stopped.items() >= {
        "scenario": "small", "scenario_file": "# A claim.", "seed": 7, "jobs": 1,
        "virtual_time": True, "partial": False, "project": {"version": "1"},
        "tools": {"curl": "1"}}.items() and "resumed" not in stopped
    capsys.readouterr()
    run = measure(study(), OneMachine(Engine()), requested(tmp_path, "2"))
    assert capsys.readouterr().err.startswith(f"resuming {folder}: 3 of 4 trials are there\n")
    (resumed,) = run.facts["resumed"]
    assert resumed.pop("at") >= stopped["started_at"]
    assert resumed == {"project": {"version": "2"}, "tools": {"curl": "2"}}
    assert run.facts["project"] == {"version": "1"} and run.facts["kernel"] == "7.2"
    assert (run.facts["state"], run.facts["emulated_s"]) == (runs.COMPLETE, 3.0)
    assert run.facts["wall_s"] >= stopped["wall_s"] > 0
    first_s = run.facts["first_record_after_s"]
    assert first_s == stopped["first_record_after_s"] <= stopped["wall_s"]
    for name in ("wall_s", "first_record_after_s"):
        assert round(run.facts[name], 3) == run.facts[name]


def test_a_run_stores_trials_in_the_requested_order_not_in_that_of_the_engine(tmp_path: Path
                                                                              ) -> None:
    class Backwards(Engine):
        def run(self, trials: list[dict[str, Any]], sysctls: dict[str, str],
                folder: Path) -> Iterator[Any]:
            yield from super().run(trials[::-1], sysctls, folder)
    usual = measure(study(), OneMachine(Engine()), requested(tmp_path / "usual"))
    other = measure(study(), OneMachine(Backwards()), requested(tmp_path / "other"))
    assert [record.trial for record in other.records] == list(study().trials)
    assert (other.folder / runs.TRIALS_CSV).read_bytes() == (
        usual.folder / runs.TRIALS_CSV).read_bytes()
    assert other.facts["trials"] == usual.facts["trials"]
    assert other.facts["trials"]["rows"] == 4


def with_reasons(*rtts_ms: float) -> Any:
    """A study with one what-if trial, whose RTT is a thousand times that of the first trial."""
    def what_if_trials(study: Any, records: Sequence[Record], what_ifs: Sequence[Record]
                       ) -> list[Trial]:
        return [] if what_ifs else [Trial("small", 1000 * records[0].trial.rtt_ms, 1)]

    return example.study(*rtts_ms, kind=example.changed(KIND, what_if_trials=what_if_trials))


def test_what_if_trials_are_stored_in_a_file_of_their_own(tmp_path: Path) -> None:
    run = measure(with_reasons(1.0, 2.0), OneMachine(Engine()), requested(tmp_path))
    found = {name: [record.trial.rtt_ms for record in records.read_records(
        run.folder / name, Record)] for name in (runs.TRIALS_CSV, runs.WHAT_IF_CSV)}
    assert found == {runs.TRIALS_CSV: [1.0, 2.0], runs.WHAT_IF_CSV: [1000.0]}
    assert (len(run.records), len(run.what_ifs)) == (2, 1)
    assert runs.load_run(run.folder, with_reasons(1.0, 2.0)) == run


@pytest.mark.parametrize(("damage", "how"), [
    (lambda path: path.write_text(path.read_text().replace(",3000,", ",4000,")), "were edited"),
    (lambda path: path.unlink(), "what_if.csv is missing"),
    (lambda path: path.write_text(path.read_text() * 2), "line 3: ")])
def test_changed_what_if_trials_are_reported(tmp_path: Path, damage: Callable[[Path], None],
                                             how: str) -> None:
    folder = measure(with_reasons(1.0), OneMachine(Engine()), requested(tmp_path)).folder
    damage(folder / runs.WHAT_IF_CSV)
    try:
        assert how in runs.load_run(folder, with_reasons(1.0)).changed
    except FirstFlightError as error:
        assert how in str(error) and "what_if.csv" in str(error)


def test_measuring_leaves_no_descriptor_open(tmp_path: Path) -> None:
    """One process measures many scenarios, each with a lock and a file of records."""
    before = os.listdir("/proc/self/fd")
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(study(), OneMachine(Engine(dies_before=1)), requested(tmp_path))
    assert os.listdir("/proc/self/fd") == before
    measure(study(), OneMachine(Engine()), requested(tmp_path))
    assert os.listdir("/proc/self/fd") == before


def test_compared_runs_do_not_differ_by_being_stopped_or_resumed_or_by_their_arguments(
        tmp_path: Path) -> None:
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(study(), OneMachine(Engine(dies_before=3)), requested(tmp_path, arguments=["a"]))
    (folder,) = runs.newest_first(tmp_path / "small")
    stopped = runs.load_run(folder, study())
    resumed = measure(study(), OneMachine(Engine()), requested(tmp_path, arguments=["b"]))
    assert stopped.facts.keys() < resumed.facts.keys()
    report = compared_runs.report([("stopped", stopped), ("resumed", resumed)])
    assert report.findings[0].tables[1].column("cells") == [3]
    assert report.findings[0].tables[0].rows == (("cells", "3", "4"),)
    other = measure(study(text="# Another claim."), OneMachine(Engine(jobs=2)),
                    requested(tmp_path, "2", arguments=["c"]))
    report = compared_runs.report([("resumed", resumed), ("other", other)])
    assert report.findings[0].tables[0].rows == (
        ("jobs", "1", "2"), ("project.version", "1", "2"), ("tools.curl", "1", "2"))


@pytest.mark.parametrize(("build", "how", "why"), [
    ("7.3", {}, "another kernel"), ("7.2", {"seed": 8}, "another seed"),
    ("7.2", {"fresh": True}, "")])
def test_a_run_of_another_kernel_or_seed_is_not_resumed(tmp_path: Path, build: str,
                                                        how: dict[str, Any], why: str,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(study(), OneMachine(Engine(dies_before=3)), requested(tmp_path))
    (begun,) = runs.newest_first(tmp_path / "small")
    capsys.readouterr()
    run = measure(study(), OneMachine(Engine(build=build)), requested(tmp_path, quiet=True, **how))
    assert run.folder != begun and len(run.records) == 4 and "resumed" not in run.facts
    assert capsys.readouterr().err == (f"{begun}: not resumed: {why}\n" if why else "")
    assert runs.read_facts(begun)["state"] == runs.RUNNING


def test_a_quiet_run_does_not_mention_that_it_resumed(tmp_path: Path,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(study(), OneMachine(Engine(dies_before=1)), requested(tmp_path, quiet=True))
    run = measure(study(), OneMachine(Engine()), requested(tmp_path, quiet=True))
    assert len(run.records) == 4 and capsys.readouterr().err == ""


def test_the_progress_of_a_resumed_run_counts_its_earlier_trials(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []

    class NotedProgress(Progress):
        def step(self, doing: str = "") -> None:
            super().step(doing)
            lines.append(self.line(0.0))

    monkeypatch.setattr(measuring, "Progress", NotedProgress)
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(study(), OneMachine(Engine(dies_before=1)), requested(tmp_path))
    measure(study(), OneMachine(Engine()), requested(tmp_path))
    left = ", about 0.0 s left"
    assert lines == [f"small: 1 of 4 trials{left}", f"small: 2 of 4 trials{left}",
                     f"small: 3 of 4 trials{left}", "small: 4 of 4 trials"]


def test_a_partial_run_is_linked_as_the_latest_one_once_it_has_a_trial(tmp_path: Path) -> None:
    home = tmp_path / "small"
    latest, partial = (home / name for name in (runs.LATEST, runs.LATEST_PARTIAL))
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(study(whole=False), OneMachine(Engine(dies_before=0)), requested(tmp_path))
    assert not partial.is_symlink()
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(study(whole=False), OneMachine(Engine(dies_before=1)), requested(tmp_path))
    (folder,) = runs.newest_first(home)
    assert partial.resolve() == folder.resolve()
    part = measure(study(whole=False), OneMachine(Engine()), requested(tmp_path))
    assert part.facts["partial"] is True and not latest.is_symlink()
    whole = measure(study(), OneMachine(Engine()), requested(tmp_path))
    assert latest.resolve() == whole.folder.resolve() != partial.resolve() == part.folder.resolve()


@pytest.mark.parametrize(("interval_s", "rows"), [(-1.0, [None, 1, 2, 3]), (1e3, [None] * 4)])
def test_run_json_is_updated_at_intervals_with_the_number_of_stored_rows(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval_s: float,
        rows: list[int | None]) -> None:
    monkeypatch.setattr(measuring, "SEAL_INTERVAL_S", interval_s)
    engine = Engine()
    run = measure(study(), OneMachine(engine), requested(tmp_path))
    assert [facts.get("trials", {}).get("rows") for facts in engine.seen] == rows
    assert run.facts["trials"]["rows"] == 4
    assert engine.seen[0].items() >= {"scenario": "small", "seed": 7, "jobs": 1}.items()


@pytest.mark.parametrize("keep", [False, True])
def test_a_run_keeps_captures_of_a_sample_or_of_all_trials_and_files_of_each(tmp_path: Path,
                                                                             keep: bool) -> None:
    """A resumed run keeps the captures that an uninterrupted one keeps."""
    many = study(40)
    ids = {trial.id for trial in many.trials} if keep else choose_captured(many.trials)
    assert len(ids) == (40 if keep else CAPTURES_KEPT)
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(many, OneMachine(Engine(dies_before=20)), requested(tmp_path, keep=keep))
    run = measure(many, OneMachine(Engine()), requested(tmp_path, keep=keep))
    assert {path.name for path in (run.folder / CAPTURES).iterdir()} == {
        f"{trial_id}-{side}.pcap" for trial_id in ids for side in ("client", "server")}
    for side, packets in (("client", b"p" * 10), ("server", b"server")):
        assert read_trial_file(capture_path(run.folder, min(ids), side)) == capture_file(packets)
    assert {path.name for path in (run.folder / FILES).iterdir()} == {
        f"{trial.id}-log" for trial in many.trials}
    assert read_trial_file(trial_file_path(run.folder, "rtt7-1", "log")) == b"rtt7-1"
    with pytest.raises(FirstFlightError, match="none: cannot be read: No such file"):
        read_trial_file(trial_file_path(run.folder, "rtt7-1", "none"))


# Trials of earlier runs are taken where their content is the same ---------------------

SYSCTLS = '# A claim.\nkind = "fetches"\ntitle = "t"\nsource = "s"\n'


def content(trial: Trial) -> tuple[float, int]:
    """What an earlier trial has to share with a requested one."""
    return trial.rtt_ms, trial.repeat


def nothing(records: Sequence[Any]) -> str:
    return ""


def refining(results: Path, version: str = "1", fresh: bool = False,
              answer: Callable[[Sequence[Any]], str] = nothing, **more: Any) -> MeasureOptions:
    """Options of a run that takes earlier trials, and measures the largest RTT first.

    answer: the early answer from the records so far.
    """
    return MeasureOptions(results, 7, fresh, True, {"project": {"version": version}}, **{
        "refining": Refining(content, lambda record: content(record.trial),
                             lambda trial: -trial.rtt_ms, answer), **more})


def longer(count: int, first: int = 1, claim: str = "", sysctls: str = "") -> Any:
    """A study with RTTs from first to count ms. claim and sysctls change its scenario file."""
    made = example.study(*map(float, range(first, count + 1)), kind=KIND,
                         text=f"{SYSCTLS}note = {claim!r}\n{sysctls}")
    if sysctls:
        head = replace(made.scenario.head, sysctls={"net.ipv4.tcp_sack": "0"})
        return replace(made, scenario=replace(made.scenario, head=head))
    return made


def test_a_study_with_more_trials_measures_only_the_new_ones(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure(longer(4), OneMachine(Engine()), refining(tmp_path / "grown"))
    engine = Engine()
    capsys.readouterr()
    grown = measure(longer(6, claim="more"), OneMachine(engine), refining(tmp_path / "grown"))
    assert engine.ran == ["rtt6-1", "rtt5-1"]
    assert "4 of 6 trials are measured already" in capsys.readouterr().err
    whole = measure(longer(6, claim="more"), OneMachine(Engine()), refining(tmp_path / "whole"))
    assert grown.facts["trials"]["numbers_sha256"] == whole.facts["trials"]["numbers_sha256"]
    assert [record.trial for record in grown.records] == list(longer(6).trials)
    for folder in (grown.folder, whole.folder):
        assert len(list((folder / CAPTURES).iterdir())) == 2 * 6
    fewer = Engine()
    measure(longer(5, first=3, claim="fewer"), OneMachine(fewer), refining(tmp_path / "grown"))
    assert fewer.ran == []


class Reporting(Engine):
    """An engine that knows its kernel once a trial has run, as guests do."""

    @property
    def facts(self) -> dict[str, Any]:
        return {"kernel": "7.2", "sysctls": {"server": {"a": "1"}}} if self.ran else {}


def test_a_run_of_earlier_trials_has_the_facts_of_the_run_that_measured_them(tmp_path: Path
                                                                             ) -> None:
    first = measure(longer(4), OneMachine(Reporting()), refining(tmp_path))
    taken = measure(longer(3, claim="fewer"), OneMachine(Reporting()), refining(tmp_path))
    assert taken.facts["kernel"] == first.facts["kernel"] == "7.2"
    assert taken.facts["sysctls"] == first.facts["sysctls"]
    assert taken.facts["earlier_runs"] == {first.folder.name: 3}
    reported = {fact.name: fact.value for fact in reporting.provenance(
        {**taken.facts, "machine": {"kernel": "6.18"}}, "small", "", "")}
    assert reported["kernel under test"] == "7.2"
    assert reported["taken from earlier runs"] == f"3 trials of {first.folder.name}"


def test_a_run_that_ends_early_has_its_kernel_in_its_facts(tmp_path: Path) -> None:
    """A later run that takes all trials from it has no engine that reports the kernel."""
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(longer(4), OneMachine(Reporting(dies_before=3)), refining(tmp_path))
    taken = measure(longer(4, first=2, claim="fewer"), OneMachine(Reporting()),
                    refining(tmp_path))
    assert taken.facts["kernel"] == "7.2"


def test_a_longer_list_keeps_the_trials_of_an_interrupted_run(tmp_path: Path) -> None:
    with pytest.raises(FirstFlightError, match="the guest died"):
        measure(longer(4), OneMachine(Engine(dies_before=2)), refining(tmp_path))
    engine = Engine()
    measure(longer(6, claim="more"), OneMachine(engine), refining(tmp_path))
    assert engine.ran == ["rtt6-1", "rtt5-1", "rtt2-1", "rtt1-1"]


@pytest.mark.parametrize("other", [
    {"version": "2"}, {"fresh": True}, {"refining": None}, {"kernel": "7.3"}, {"edited": True},
    {"sysctls": "[sysctls]\n\"net.ipv4.tcp_sack\" = 0\n"}, {"failed": True}, {"no capture": True}])
def test_an_earlier_runs_trial_is_measured_again_where_anything_differs(
        tmp_path: Path, other: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = refining(tmp_path)
    if "no capture" in other:
        earlier = replace(earlier, keep_captures=False)
        monkeypatch.setattr(captured, "CAPTURES_KEPT", 0)
    begun = longer(2)
    if "failed" in other:
        begun = replace(begun, kind=example.changed(KIND, judge=lambda trial, *_: (
            example.record(trial.rtt_ms, ok=False, error="x"), {})))
    first = measure(begun, OneMachine(Engine()), earlier)
    if "edited" in other:
        path = first.folder / runs.TRIALS_CSV
        path.write_text(path.read_text().replace(",3,", ",4,"))
        assert "4" in path.read_text()
    engine = Engine()
    engine.build = other.get("kernel", engine.build)
    measure(longer(2, claim="more", sysctls=other.get("sysctls", "")), OneMachine(engine),
            refining(tmp_path, **{name: value for name, value in other.items()
                                   if name in ("version", "fresh", "refining")}))
    assert len(engine.ran) == 2


def test_early_answers_come_soon_and_then_less_often(tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    ticks = iter(range(10_000))
    monkeypatch.setattr(measuring.time, "monotonic", lambda: float(next(ticks)))
    counts: list[int] = []

    def answer(records: Sequence[Any]) -> str:
        counts.append(len(records))
        return f"{len(records)} so far"

    measure(longer(40), OneMachine(Engine()), refining(tmp_path, answer=answer))
    assert 1 < len(counts) < 6 and counts == sorted(counts) and counts[0] < 8
    assert f"{counts[0]} so far" in capsys.readouterr().err


# Which captures are kept: the ends of every quantity, both windows of a cell ----------

@pytest.mark.parametrize("name", ["zhao2019", "marrama2012", "ietf78_completion", "ietf78_load"])
def test_the_early_sample_has_both_ends_of_every_quantity(name: str) -> None:
    trials = whole(name).trials
    ids = choose_captured(trials)
    kept = [trial for trial in trials if trial.id in ids]
    assert CAPTURES_KEPT <= len(kept) == len(ids) <= CAPTURES_KEPT + 1
    for quantity in ("rtt_ms", "bandwidth_kbps", "response_bytes", "load", "queue_packets"):
        requested = {getattr(trial, quantity, None) for trial in trials}
        assert {min(requested), max(requested)} <= {
            getattr(trial, quantity, None) for trial in kept}


@pytest.mark.parametrize("name", ["page2026", "handley1999_nagle", "ietf78_background"])
def test_cells_that_lists_distinguish_are_chosen_as_others_are(name: str) -> None:
    """A page's objects, a trace's requests and a load's hosts are lists, without a smallest one."""
    trials = whole(name).trials
    chosen = choose_captured(trials)
    assert chosen and chosen <= {trial.id for trial in trials}


def test_captures_are_kept_of_the_first_and_the_last_window_of_a_cell() -> None:
    for windows in ((3, 10), (3, 10, 16), (3, 4, 10, 16)):
        requested = Overrides({"initcwnd": windows}, repeat=3)
        trials = registry.study_of(scenario_file.find("zhao2019"), requested).trials
        ids = choose_captured(trials)
        kept = [trial for trial in trials if trial.id in ids]
        cells = {(trial.rtt_ms, trial.bandwidth_kbps, trial.repeat) for trial in kept}
        assert len(cells) == CAPTURES_KEPT // 2
        for (rtt_ms, bandwidth_kbps, repeat), window in itertools.product(
                cells, (windows[0], windows[-1])):
            assert any((trial.rtt_ms, trial.bandwidth_kbps, trial.repeat, trial.initcwnd)
                       == (rtt_ms, bandwidth_kbps, repeat, window) for trial in kept)


def test_the_captures_of_few_trials_are_all_kept_and_those_of_one_window_up_to_the_limit() -> None:
    few = registry.study_of(scenario_file.find("zhao2019"), Overrides(
        {"rtt_ms": (20, 50), "bandwidth_kbps": (1000,), "initcwnd": (3, 10)})).trials
    assert choose_captured(few) == {trial.id for trial in few} and len(few) == 4
    single = registry.study_of(scenario_file.find("zhao2019"), Overrides({"initcwnd": (10,)}))
    assert len(choose_captured(single.trials)) == CAPTURES_KEPT
    assert choose_captured([]) == set()


def test_the_next_chosen_cell_is_the_farthest_from_the_chosen_ones() -> None:
    """Two opposite corners of a grid have all four ends, and the other two are not chosen."""
    grid = registry.study_of(scenario_file.find("zhao2019"), Overrides(
        {"rtt_ms": (20, 40, 60, 80, 100), "bandwidth_kbps": (56, 256, 512, 1000, 2000),
         "initcwnd": (10,)})).trials
    ids = choose_captured(grid)
    kept = {(trial.rtt_ms, trial.bandwidth_kbps) for trial in grid if trial.id in ids}
    corners = {(20, 56), (20, 2000), (100, 56), (100, 2000)}
    assert kept & corners == {(20, 56), (100, 2000)} and (60, 512) in kept and len(kept) == 8
    assert len({rtt_ms for rtt_ms, _ in kept}) == len({kbps for _, kbps in kept}) == 5


# Captures of trials that differ in one quantity, and in two ---------------------------

@dataclass(frozen=True)
class Placed:
    """A trial that has nothing but its place in the sample."""

    rtt_ms: float | None
    loss_percent: float = 0.0
    initcwnd: int = 10
    congestion_control: str = "cubic"
    sample: int = 0

    @property
    def id(self) -> str:
        return f"{self.rtt_ms}/{self.loss_percent}/{self.congestion_control}/{self.initcwnd}"


def kept_ids(trials: list[Placed]) -> list[str]:
    """The ids of the trials whose captures are kept, sorted."""
    ids = choose_captured(trials)
    return sorted(trial.id for trial in trials if trial.id in ids)


@pytest.mark.parametrize("values", [list(range(1, 10)), [1, 2, 3, 4, 5, 6, 7, 8, 1000],
                                    [10 ** power for power in range(9)]])
def test_cells_on_a_line_begin_with_the_ends_and_halve_the_largest_gap(values: list[float]) -> None:
    """Gaps count by rank, whatever the values: first 1 and 9 of 9, then 5, then 3 and 7.

    Of the even ranks 2, 4 and 6 are chosen, as eight cells are kept.
    """
    chosen_values = [float(kept.partition("/")[0])
                     for kept in kept_ids([Placed(value) for value in values])]
    ranks = [values.index(value) + 1 for value in chosen_values]
    assert sorted(ranks) == [1, 2, 3, 4, 5, 6, 7, 9]


def test_a_cell_with_more_ends_comes_before_one_that_is_farther() -> None:
    """Both windows of a cell are kept, so four cells are chosen. Two corners have all four ends."""
    trials = [Placed(rtt_ms, loss_percent, window) for rtt_ms in (1.0, 2.0, 3.0)
              for loss_percent in (0.0, 1.0, 2.0) for window in (3, 10)]
    cells = {kept.rpartition("/")[0] for kept in kept_ids(trials)}
    assert {"1.0/0.0/cubic", "3.0/2.0/cubic"} <= cells
    assert cells <= {"1.0/0.0/cubic", "3.0/2.0/cubic", "1.0/2.0/cubic", "2.0/1.0/cubic",
                     "3.0/0.0/cubic"} and len(cells) == 4


def test_cells_are_chosen_by_text_and_unset_values_as_by_numbers() -> None:
    trials = [Placed(rtt_ms, 0.0, 10, control) for rtt_ms in (None, 1.0, 2.0)
              for control in ("bbr", "cubic", "reno")]
    chosen = kept_ids(trials)
    assert len(chosen) == 8 and {"1.0/0.0/bbr/10", "None/0.0/reno/10"} <= set(chosen)
    assert len(kept_ids(trials[:3])) == 3 and kept_ids([Placed(None), Placed(1.0)]) == [
        "1.0/0.0/cubic/10", "None/0.0/cubic/10"]


def test_the_number_of_a_client_is_no_quantity_of_the_choice() -> None:
    """If it were, most chosen clients would have the lowest or the highest numbers."""
    trials = [Placed(float(1 + number % 3), sample=number) for number in range(30)]
    assert sorted({kept.partition("/")[0] for kept in kept_ids(trials)}) == ["1.0", "2.0", "3.0"]


def test_an_even_share_of_many_cells_is_considered_for_the_sample() -> None:
    values = [float(number) for number in range(2 * MOST_CELLS + 1)]
    considered = values[::3]  # one in three: one in two would be a cell too many
    chosen = {float(kept.partition("/")[0])
              for kept in kept_ids([Placed(value) for value in values])}
    assert chosen <= set(considered) and {0.0, considered[-1]} <= chosen
