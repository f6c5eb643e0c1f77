"""Every figure is drawn from stored records; nothing is clipped, hidden or half written."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

import plot
from lab import analysis
from lab.analysis import MissingCells, Panel
from lab.errors import FirstFlightError
from lab.records import Record, RecordFile, read_records
from lab.scenario import Scenario, load

PROJECT = Path(__file__).resolve().parent.parent.parent
GOLDEN = PROJECT / "tests" / "golden" / "zhao2019_trials.csv"


def store(results: Path, stamp: str, records: list[Record], latest: bool = True) -> Path:
    """A finished run in the results folder."""
    folder = results / "zhao2019" / stamp
    folder.mkdir(parents=True)
    file = RecordFile(folder / "trials.csv")
    for record in records:
        file.append(record)
    file.close()
    (folder / "run.json").write_text(json.dumps({"engine": "uml", "kernel": "6.1.99"}))
    if latest:
        link = results / "zhao2019" / "latest"
        link.unlink(missing_ok=True)
        link.symlink_to(stamp)
    return folder


def slower_with_ten(records: list[Record], rtt_ms: float, more_ms: float) -> list[Record]:
    return [replace(record, total_ms=(record.total_ms or 0) + more_ms)
            if record.trial.rtt_ms == rtt_ms and record.trial.initcwnd == 10 else record
            for record in records]


def test_draw_gives_every_figure_in_every_format_and_the_same_bytes_again(
        tmp_path: Path, scenario: Scenario, stored: list[Record]) -> None:
    first = plot.draw(scenario, stored, tmp_path / "a", plot.FORMATS, "6.1.99")
    second = plot.draw(scenario, stored, tmp_path / "b", plot.FORMATS, "6.1.99")
    assert [path.name for path in first] == [f"zhao2019_{figure}.{form}"
                                             for figure in ("fig5_rtt", "fig5_bw", "fig5_bdp")
                                             for form in ("png", "svg", "pdf")]
    for one, other in zip(first, second):
        assert one.stat().st_size > 5000
        assert one.read_bytes() == other.read_bytes(), one.name
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(
        path.name for path in first)


def texts(panel: Panel, scenario: Scenario) -> list[str]:
    drawn = plot.improvement_figure(scenario, panel, "6.1.99")
    return [text.get_text() for part in (drawn, *drawn.axes) for text in part.texts]


def test_the_figure_tells_kernel_n_and_what_is_left_out(scenario: Scenario,
                                                        stored: list[Record]) -> None:
    records = [replace(stored[0], ok=False, error="x", verdict="skipped"), *stored[1:]]
    said = texts(analysis.panels(scenario, records)[0], scenario)
    assert "n = 14" in said and said.count("n = 16") == 7 and "2 left out" in said
    joined = "\n".join(said)
    assert "kernel 6.1.99" in joined and "126 trials verified on the wire" in joined
    assert "1 failed transfer, 1 record without its counterpart" in joined
    assert "48.36 %" in said and "21.8 %" in said


@pytest.mark.parametrize("more_ms", [0.0, 6.9, 500.0, 5.0])
def test_every_value_lies_within_both_axes(scenario: Scenario, stored: list[Record],
                                           more_ms: float) -> None:
    """Also improvements around and below zero, where a logarithm has no place for them."""
    records = slower_with_ten(stored, 20, more_ms)
    for panel in analysis.panels(scenario, records):
        drawn = plot.improvement_figure(scenario, panel, "")
        left, right = drawn.axes
        lowest, highest = left.get_ylim()
        for bucket in panel.buckets:
            assert lowest < bucket.absolute_ms < highest
            assert lowest < (bucket.published_absolute_ms or 0) < highest
            assert right.get_ylim()[0] < bucket.percent < right.get_ylim()[1] or (
                bucket.percent == right.get_ylim()[0] == 0)
        assert (lowest < 0) == any(bucket.absolute_ms < 0.1 for bucket in panel.buckets)


def test_both_zeros_stand_at_one_height(scenario: Scenario, stored: list[Record]) -> None:
    panel, *_ = analysis.panels(scenario, slower_with_ten(stored, 20, 500.0))
    drawn = plot.improvement_figure(scenario, panel, "")
    left, right = drawn.axes
    heights = [axes.transData.transform((0, 0))[1] for axes in (left, right)]
    assert heights[0] == pytest.approx(heights[1], abs=0.01)


def test_no_text_overlaps_another_or_leaves_the_figure(scenario: Scenario,
                                                       stored: list[Record]) -> None:
    records = slower_with_ten([fail if record is stored[3] else record for record in stored
                               for fail in [replace(record, ok=False, verdict="skipped")]],
                              50, 4000.0)
    for panel in analysis.panels(scenario, records):
        drawn = plot.improvement_figure(scenario, panel, "6.8.0-1021-generic")
        renderer = drawn.canvas.get_renderer()
        drawn.draw(renderer)
        boxes = [(text.get_text(), text.get_window_extent(renderer))
                 for part in (drawn, *drawn.axes) for text in part.texts]
        width, height = drawn.bbox.width, drawn.bbox.height
        for number, (text, box) in enumerate(boxes):
            assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text
            for other_text, other in boxes[number + 1:]:
                assert not box.overlaps(other), (text, other_text)


def test_a_small_run_after_the_whole_one_does_not_hide_it(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], scenario: Scenario,
        stored: list[Record]) -> None:
    whole = store(tmp_path, "20250101T000000.000Z-uml", stored)
    store(tmp_path, "20250102T000000.000Z-uml", stored[:2])
    folder, records = plot.find_run(scenario, tmp_path)
    assert folder == whole.resolve() and len(records) == 128
    assert "63 of 64 cells" in capsys.readouterr().err


def test_the_newest_of_several_whole_runs_is_drawn(tmp_path: Path, scenario: Scenario,
                                                   stored: list[Record]) -> None:
    store(tmp_path, "20250101T000000.000Z-uml", stored, latest=False)
    newest = store(tmp_path, "20250103T000000.000Z-uml", stored, latest=False)
    store(tmp_path, "20250102T000000.000Z-uml", stored, latest=False)
    assert plot.find_run(scenario, tmp_path)[0] == newest.resolve()


def test_without_a_whole_run_the_command_is_named(tmp_path: Path, scenario: Scenario,
                                                  stored: list[Record]) -> None:
    with pytest.raises(FirstFlightError, match="no run to draw; .*run.sh --scenario zhao2019$"):
        plot.find_run(scenario, tmp_path)
    store(tmp_path, "20250102T000000.000Z-uml", stored[:2])
    with pytest.raises(FirstFlightError, match="no run covers .*63 of 64.*--scenario zhao2019$"):
        plot.find_run(scenario, tmp_path)
    with pytest.raises(MissingCells):
        plot.draw(scenario, stored[:2], tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


def run(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(PROJECT / "plot.py"), *flags],
                          capture_output=True, text=True, timeout=120, check=False)


def test_command_line(tmp_path: Path, stored: list[Record]) -> None:
    store(tmp_path / "results", "20250101T000000.000Z-uml", stored)
    done = run("--results", str(tmp_path / "results"), "--figures", str(tmp_path / "figures"),
               "--format", "png,svg")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    paths = [Path(line) for line in done.stdout.splitlines()]
    assert len(paths) == 6 and all(path.is_file() for path in paths)


def test_errors_are_one_line_with_the_right_status(tmp_path: Path, stored: list[Record]) -> None:
    results = tmp_path / "results"
    store(results, "20250101T000000.000Z-uml", stored)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    damaged = tmp_path / "damaged"
    folder = store(damaged, "20250101T000000.000Z-uml", stored[:3])
    (folder / "trials.csv").write_text("not,these,columns\n1,2,3\n")
    for flags, status, words in (
            (("--results", str(tmp_path / "none")), 1, "no results to draw"),
            (("--scenario", "zhao2091", "--results", str(results)), 2, "did you mean"),
            (("--scenario", "zhao2019", "--results", str(tmp_path)), 1, "./run.sh --scenario"),
            (("--results", str(damaged)), 1, "trials.csv"),
            (("--results", str(results), "--figures", str(in_the_way)), 1, "cannot be written")):
        done = run(*flags)
        assert done.returncode == status, (flags, done.stderr)
        assert done.stderr.startswith("plot.py: ") and done.stderr.count("\n") == 1, done.stderr
        assert words in done.stderr and done.stdout == ""
    assert run("--format", "gif").returncode == 2


SMALL_SCENARIOS = ("marrama2012", "tselentis2013", "zhao2019")


def drawings(name: str) -> list[tuple[Panel, plot.Figure]]:
    """Every figure of a scenario, from stored records."""
    records = read_records(GOLDEN.with_name(f"{name}_trials.csv"))
    scenario = load(name)
    return [(panel, plot.figure_of(scenario, panel, "6.8.0-1021-generic"))
            for panel in analysis.panels(scenario, records)]


@pytest.mark.parametrize("name", SMALL_SCENARIOS)
def test_every_figure_of_every_scenario_fits(name: str) -> None:
    """All text inside the figure and apart, all bars and markers inside the axes."""
    for panel, drawn in drawings(name):
        renderer = drawn.canvas.get_renderer()
        drawn.draw(renderer)
        width, height = drawn.bbox.width, drawn.bbox.height
        boxes = [(text.get_text(), text.get_window_extent(renderer))
                 for part in (drawn, *drawn.axes) for text in part.texts]
        boxes.append(("legend", drawn.legends[0].get_window_extent(renderer)))
        for axes in drawn.axes:
            ticks = [label.get_window_extent(renderer) for label in axes.get_yticklabels()]
            assert 2 <= len(ticks) <= 12, (panel.figure.name, len(ticks))
            boxes += [("tick", box) for box in ticks]
        for number, (text, box) in enumerate(boxes):
            assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text
            for other_text, other in boxes[number + 1:]:
                assert not box.overlaps(other), (panel.figure.name, text, other_text)
        for axes in drawn.axes:
            low, high = axes.get_ylim()
            for line in axes.lines:
                assert all(low <= value <= high for value in line.get_ydata()), panel.figure.name


def test_a_window_sweep_shows_times_and_published_times() -> None:
    panel, drawn = drawings("marrama2012")[0]
    (axes,) = drawn.axes
    assert [bar.get_height() for bar in axes.patches] == [
        bucket.experiment_ms for bucket in panel.buckets]
    assert axes.get_ylim()[0] == 0
    assert list(axes.lines[0].get_ydata()) == [808, 681, 665, 641, 641, 642]
    said = [text.get_text() for text in axes.texts]
    assert sum(text.startswith("−") and text.endswith(" %") for text in said) == 5


def test_a_loss_figure_is_linear_and_says_whether_recovery_gains() -> None:
    panel, drawn = next(one for one in drawings("marrama2012") if one[0].figure.name == "loss")
    left = drawn.axes[0]
    assert left.get_yscale() == "linear" and left.get_ylim()[0] < 0 < left.get_ylim()[1]
    said = [text.get_text() for text in left.texts]
    assert sum(text.startswith("beyond lossless: ") for text in said) == 3
    assert sum(text.endswith((": helps", ": harms", ": undecided")) for text in said) == 3


def test_a_converted_percentage_is_named(scenario: Scenario, stored: list[Record]) -> None:
    for panel, drawn in (*drawings("marrama2012")[1:2],
                         (analysis.panels(scenario, stored)[0],
                          plot.figure_of(scenario, analysis.panels(scenario, stored)[0], ""))):
        legend = " ".join(text.get_text() for text in drawn.legends[0].get_texts())
        theirs = panel.figure.published == "marrama2012.csv"
        assert ("as a part of the baseline" in legend) == theirs
        assert ("by them" in legend) == theirs and ("in the paper" in legend) != theirs


def test_what_fails_is_left_out_and_the_rest_is_drawn(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], stored: list[Record]) -> None:
    """When a whole bar has only failed verdicts, its figure is told and the others are drawn."""
    spoiled = [replace(record, verdict="fail") if record.trial.rtt_ms == 20 else record
               for record in stored]
    store(tmp_path / "results", "20250101T000000.000Z-uml", spoiled)
    figures = tmp_path / "figures"
    assert plot.main(["--results", str(tmp_path / "results"), "--figures", str(figures)]) == 0
    said = capsys.readouterr()
    assert [Path(line).name for line in said.out.splitlines()] == [
        "zhao2019_fig5_bw.png", "zhao2019_fig5_bdp.png"]
    assert "not drawn: fig5_rtt: no record of bucket 20 counts (16 failed verdicts)" in said.err


@pytest.mark.parametrize(("span", "step"), [(9, 1), (9.1, 2), (0.03, 0.005), (163.0, 20),
                                            (8927.0, 1000)])
def test_tick_steps(span: float, step: float) -> None:
    assert plot.tick_step(span) == pytest.approx(step)
