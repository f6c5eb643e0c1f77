"""Maps of windows, figures of steps and levels with their claims, and timelines."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import dpkt
import pytest

from firstflight.commands import flags
from firstflight.findings import drawing
from firstflight.findings.charts import LineChart, SquareChart
from firstflight.findings.claims import DIRECTION, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED
from firstflight.findings.findings import Finding
from firstflight.net.pcap import HEADER as PCAP_HEADER
from firstflight.runs import scenario_file
from firstflight.runs.kinds import RunData, Study
from firstflight.runs.results.records import FAIL, PASS, SKIPPED
from firstflight.study import registry
from firstflight.study.fetches.figures import kinds, steps
from firstflight.study.fetches.figures.steps import _steep
from firstflight.study.fetches.figures.timelines import by_effect, timelines
from firstflight.study.fetches.findings import analyse
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario.scenario import Claim
from firstflight.study.fetches.study import KIND
from tests.golden import stored, stored_questions
from tests.unit.core.example import whole
from tests.unit.drawing import samples
from tests.unit.fetches.small import MAP_OF_WINDOWS, SMALL, small

WINDOWS = (3, 10, 20, 40)


def scenario(folder: Path, *changes: tuple[str, str]) -> Any:
    return small(folder, (SMALL, MAP_OF_WINDOWS),
                 ("response_bytes = [9000]", "response_bytes = [9000, 60000]"), *changes)


def run(study: Study, times_ms: Any) -> RunData:
    """Records whose time is a function of their trial, None for one that does not count."""
    records = []
    for trial in study.trials:
        time_ms = times_ms(trial)
        verdict = FAIL if time_ms is None else PASS
        records.append(Record(trial, True, verdict=verdict, total_ms=time_ms or 1.0))
    return RunData(Path("run"), {"kernel": "7.2", "virtual_time": True}, records)


def found(folder: Path, times_ms: Any) -> Any:
    requested = scenario(folder)
    study = Study(KIND, requested, tuple(trial for sweep in requested.sweeps
                                 for trial in sweep.trials(requested.name, 1)), True)
    ((_, made),) = kinds.figures(analyse(requested, run(study, times_ms), True))
    return made[0]


def windows(finding: Any) -> list[list[list[int]]]:
    return [[[square.value for square in row] for row in each.rows]
            for each in finding.chart.maps]


@pytest.mark.parametrize(("times_ms", "window"), [
    ({3: 400, 10: 300, 20: 200, 40: 200}, 20),  # the smaller of two that are as fast
    ({3: 102, 10: 101, 20: 100, 40: 100}, 3),  # two percent are not worth a larger one
    ({3: 102.1, 10: 102.0, 20: 100, 40: 100}, 10),
    ({3: 400, 10: 100, 20: 150, 40: 180}, 10),  # larger ones are slower
    ({3: None, 10: 300, 20: 200, 40: None}, 20)])
def test_the_smallest_within_two_percent_of_the_fastest(times_ms: dict[int, float | None],
                                                        window: int, tmp_path: Path) -> None:
    told = found(tmp_path, lambda trial: times_ms[trial.initcwnd])
    assert windows(told) == [[[window] * 2] * 2] * 2
    enough = "8 of 8 cells (100 %)" if window <= 10 else "0 of 8 cells (0 %)"
    assert f"10 segments is enough in {enough}; " in told.sentence
    excluded = sum(each is None for each in times_ms.values())
    assert {square.excluded for each in told.chart.maps for row in each.rows
            for square in row} == {excluded}


def test_a_map_for_each_size_and_a_row_for_each_cell(tmp_path: Path) -> None:
    """Long responses over the faster link need 40 segments, at the longer RTT."""
    def time_ms(trial: Any) -> float:
        needs = (40 if trial.response_bytes == 60000 and trial.bandwidth_kbps == 256
                 and trial.rtt_ms == 50 else 3)
        return 100.0 if trial.initcwnd >= needs else 125.0

    told = found(tmp_path, time_ms)
    chart = told.chart
    assert isinstance(chart, SquareChart) and chart.windows == WINDOWS
    assert [each.title for each in chart.maps] == ["size 9 kB", "size 60 kB"]
    assert (chart.maps[0].columns, chart.rows) == (("20", "50"), ("56 kbit/s", "256 kbit/s"))
    assert windows(told) == [[[3, 3], [3, 3]], [[3, 3], [3, 40]]]
    small_map, large_map, every = told.tables
    assert large_map.rows == (("56", "3", "3"), ("256", "3", "40"))
    assert len(every.rows) == 8
    assert every.rows[-1] == ("60000", "50", "256", 40, 100.0, 125.0, 20.0)
    assert told.sentence == ("A window of 10 segments is enough in 7 of 8 cells (88 %); 1 needs the"
                             " largest, 40.")


def test_where_nothing_counts_it_says_so(tmp_path: Path) -> None:
    told = found(tmp_path, lambda trial: None)
    assert told.sentence == "Nothing that was measured counts."
    assert told.chart.maps[0].rows == ((None, None), (None, None))
    assert told.tables[0].rows[0] == ("56", None, None)
    samples.check_fits(drawing.figure_of(told.chart))


def test_a_cell_that_was_not_measured_is_named(tmp_path: Path) -> None:
    requested = scenario(tmp_path)
    study = Study(KIND, requested, tuple(requested.sweeps[0].trials(requested.name, 1))[:-1], True)
    ((_, told),) = kinds.figures(analyse(requested, run(study, lambda trial: 1.0), True))
    assert "1 of 8 cells (RTT 50 ms at 256 kbit/s)" in told[0].missing


def test_squares_say_their_window_in_a_colour_of_its_own(tmp_path: Path) -> None:
    told = found(tmp_path, lambda trial: 100.0 if trial.initcwnd >= (
        40 if trial.rtt_ms == 50 else 3) else 200.0)
    few = replace(told.chart, maps=told.chart.maps[:1])
    drawn = drawing.figure_of(few)
    samples.check_fits(drawn)
    (axes,) = drawn.axes
    assert [text.get_text() for text in axes.texts] == ["3", "40", "3", "40"]
    light, dark = (sum(patch.get_facecolor()[:3]) for patch in axes.patches[:2])
    assert light > dark
    assert [text.get_color() for text in axes.texts[:2]][1] == "#FFFFFF"
    many = replace(few, rows=tuple(map(str, range(14))))
    rows = tuple((few.maps[0].rows[0] * 7) for _ in range(14))
    many = replace(many, maps=tuple(replace(each, columns=tuple(map(str, range(14))), rows=rows)
                                   for each in many.maps))
    samples.check_fits(drawing.figure_of(many))


# A part of a grid --------------------------------------------------------------------

@pytest.mark.parametrize(("part", "rtts_ms", "bandwidths"), [
    (16, 4, 4), (4, 7, 7), (1, 14, 14), (196, 2, 2)])
def test_a_coarse_grid_has_the_ends_and_values_between(part: int, rtts_ms: int,
                                                       bandwidths: int) -> None:
    study = (registry.study_of(scenario_file.find("map_of_windows").sampled(part)) if part > 1
             else whole("map_of_windows"))
    (sweep,) = study.scenario.sweeps  # type: ignore[attr-defined]
    rtt_ms, bandwidth_kbps = sweep.lists["rtt_ms"], sweep.lists["bandwidth_kbps"]
    assert (len(rtt_ms), len(bandwidth_kbps)) == (rtts_ms, bandwidths)
    assert (rtt_ms[0], rtt_ms[-1]) == (5, 2000)
    assert (bandwidth_kbps[0], bandwidth_kbps[-1]) == (250, 1e6)
    assert study.whole and len(study.trials) == rtts_ms * bandwidths * 8 * 8
    assert study.head.name == ("map_of_windows" if part == 1 else f"map_of_windows_1in{part}")


def test_a_part_is_read_again_from_the_text_that_its_run_keeps() -> None:
    part = registry.study_of(scenario_file.find("map_of_windows").sampled(16))
    again = registry.study_of(scenario_file.of_run(part.head.name, part.head.text))
    assert again.trials == part.trials and again.head == part.head


@pytest.mark.parametrize(("word", "read"), [("full", "full"), ("1/16", 16), ("1/2", 2)])
def test_a_part_is_said_as_one_in_so_many(word: str, read: str | int) -> None:
    assert flags.sample(word) == read


# Figures of steps and levels ----------------------------------------------------------

TEXT = (stored_questions.FOLDER / "steps.toml").read_text(encoding="utf-8")


def made(folder: Path, *changes: tuple[str, str]) -> Study:
    text = TEXT
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return KIND.study(scenario_file.read(path))


def records(of: Study) -> list[Record]:
    return stored_questions.as_modelled(of.trials)


def numbers(chart: SquareChart) -> list[list[float | None]]:
    (only,) = chart.maps
    return [[square and square.value for square in row] for row in only.rows]


def findings(of: Study, some: list[Record], folder: Path) -> dict[str, Finding]:
    """With their figures made, which are not painted."""
    report = of.report(RunData(folder, {"virtual_time": True}, some))
    assert all(figure.axes for _, figure in drawing.figures(report))
    return {finding.name: finding for finding in report.findings}


def test_lines_of_windows_have_the_model_drawn_through(tmp_path: Path) -> None:
    of = made(tmp_path)
    chart = findings(of, records(of), tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    points, curves = chart.columns[0][0].lines[:2], chart.columns[0][0].lines[2:]
    assert [line.name for line in points] == ["IW3", "IW10"]
    assert [len(line.x) for line in points] == [2,
                                                2] and {each.style for each in curves} == {"curve"}
    for measured, curve in zip(points, curves):
        assert len(curve.x) > 100 and curve.look == measured.look
        model = dict(zip(curve.x, curve.y))
        assert [model[x] for x in measured.x] == list(measured.y)


def test_where_the_model_knows_not_all_there_is_no_curve(tmp_path: Path) -> None:
    of = made(tmp_path)
    some = records(of)
    some[0] = replace(some[0], model_ms=None)
    chart = findings(of, some, tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    assert [line.style for line in chart.columns[0][0].lines] == ["steps", "steps"]


def test_squares_and_the_smallest_window_of_each_chain(tmp_path: Path) -> None:
    of = made(tmp_path)
    some = records(of)
    found = findings(of, some, tmp_path)["rounds"]
    assert isinstance(found.chart, SquareChart)
    assert found.chart.rows == ("large", "small") and found.chart.maps[0].columns == ("3", "10")
    assert numbers(found.chart) == [[3.0, 2.0], [1.0, 1.0]]  # the largest at the bottom
    assert found.sentence == ("The smallest window measured that needs one round trip: small bytes:"
                              " 3; large bytes: more than 10.")
    some[0] = replace(some[0], verdict=FAIL)  # counts no more
    found = findings(of, some, tmp_path)["rounds"]
    assert isinstance(found.chart, SquareChart) and numbers(found.chart)[1] == [None, 1.0]


def test_where_all_was_skipped_a_line_says_why_in_the_place_of_empty_tables(
        tmp_path: Path) -> None:
    of = made(tmp_path)
    some = [replace(record, verdict=SKIPPED, verdict_reason="needs Debian 13's programs")
            for record in records(of)]
    found = findings(of, some, tmp_path)["rounds"]
    assert found.missing == "its 4 trials were skipped: needs Debian 13's programs"
    assert not found.tables and found.chart is None
    some[3] = records(of)[3]
    assert findings(of, some, tmp_path)["rounds"].tables[0].rows[1][2] is not None


def test_of_what_does_not_count_no_window_is_said(tmp_path: Path) -> None:
    of = made(tmp_path)
    large = [replace(record, verdict=FAIL) if record.trial.chain_bytes == 16_000 else record
             for record in records(of)]
    assert findings(of, large, tmp_path)["rounds"].sentence.endswith(
        "small bytes: 3; large bytes: nothing counts.")
    part = [replace(record, verdict=FAIL) if record.trial.initcwnd == 10 else record
            for record in records(of)]
    found = findings(of, part, tmp_path)
    assert found["rounds"].sentence.endswith("small bytes: 3; large bytes: more than 3.")
    assert found["steps"].sentence.startswith("Time to the first byte (ms): IW3: ")
    assert "IW10" not in found["steps"].sentence
    none = findings(of, [replace(record, verdict=FAIL) for record in records(of)], tmp_path)
    assert none["steps"].sentence == (
        "Time to the first byte (ms): nothing that was measured counts.")


def test_lines_of_another_quantity_are_under_one_window(tmp_path: Path) -> None:
    of = made(tmp_path, ("chain_bytes = [2000, 16000]", "chain_bytes = [2000, 16000]\n"
                         "record_bytes = [4096, 16384]"),
              ('by = "chain_bytes"\nbaseline', 'by = "chain_bytes"\ndown = "record_bytes"\n'
               "baseline"))
    chart = findings(of, records(of), tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    assert [line.name for line in chart.columns[0][0].lines[:2]] == ["record 4096 bytes",
                                                                     "record 16384 bytes"]


def test_a_larger_window_has_a_darker_line_whatever_its_place_in_the_file(tmp_path: Path) -> None:
    of = made(tmp_path, ("initcwnd = [3, 10]", "initcwnd = [10, 3]"))
    chart = findings(of, records(of), tmp_path)["steps"].chart
    assert isinstance(chart, LineChart)
    looks = {line.name: line.look for line in chart.columns[0][0].lines[:2]}
    assert looks == {"IW3": 1, "IW10": 2}


def test_a_line_of_a_value_with_a_name_has_that_name(tmp_path: Path) -> None:
    of = made(tmp_path, ("chain_bytes = [2000, 16000]", "chain_bytes = [2000, 16000]\n"
                         "record_bytes = [4096, 16384]"),
              ('by = "chain_bytes"\nbaseline', 'by = "record_bytes"\ndown = "chain_bytes"\n'
               "baseline"))
    found = findings(of, records(of), tmp_path)["steps"]
    assert [column.name for column in found.tables[0].columns[1:]] == ["chain small",
                                                                       "chain large"]


def test_a_curve_steps_at_the_byte() -> None:
    """Not at the next of the points that are drawn; a slope has no more points than asked."""
    known = _steep(range(0, 10_001, 100), lambda x: 100.0 if x < 4321 else 200.0)
    assert known[4320] == 100.0 and known[4321] == 200.0 and len(known) < 120
    assert list(known) == sorted(known)
    assert len(_steep(range(0, 1001, 100), float)) == 11
    above = _steep(range(0, 10_001, 100), lambda x: 1000.0 if x < 4321 else 1100.0)
    assert above[4320] == 1000.0 and above[4321] == 1100.0  # however high the whole curve is
    assert set(_steep([1, 50, 100], lambda x: 7.0).values()) == {7.0}


# What is said of steps in words -------------------------------------------------------

CLIFFS = KIND.study(scenario_file.find("chou2026_cliffs"))
GOOD = stored.load("https").judge()


def sent_records(of: Study) -> list[Record]:
    """As the server sends: as much as the window allows, and the rest a round trip later."""
    found = []
    for trial in of.trials:
        segments = 1 + trial.chain_bytes // trial.mss
        found.append(replace(GOOD, trial=trial, flight_segments=segments,
                             handshake_round_trips=1 + (segments > trial.initcwnd)))
    return found


CLAIM = Claim("rounds", "s", more_where=("flight_segments", "initcwnd"))


def changed(some: list[Record], chain_bytes: int, **changes: Any) -> list[Record]:
    """As if the trial with this chain under ten segments had measured otherwise."""
    place = next(place for place, record in enumerate(some)
                 if (record.trial.initcwnd, record.trial.chain_bytes) == (10, chain_bytes))
    return [*some[:place], replace(some[place], **changes), *some[place + 1:]]


def test_what_is_said_is_tested_on_every_trial(tmp_path: Path) -> None:
    some = sent_records(CLIFFS)
    statement = steps.test_claim(CLAIM, "handshake_round_trips", some)
    assert statement.outcome == REPRODUCED and statement.measured == (
        "in 16 of 45 trials the number of segments of a server's handshake is larger than an"
        " initial window: 16 of these have more round trips than 1, and 0 of the others.")
    report = CLIFFS.report(RunData(tmp_path, {"virtual_time": True}, some))
    (told,) = (each for finding in report.findings if finding.name == "rounds"
               for each in finding.statements)
    assert told.measured.startswith(
        statement.measured) and told.outcome == DIRECTION  # its abstract alone was read


@pytest.mark.parametrize(("chain_bytes", "changes", "word", "words"), [
    (30000, {"handshake_round_trips": 1}, DIRECTION, "15 of these"),
    (2000, {"handshake_round_trips": 2}, DIRECTION, "1 of the others"),
    (2000, {"flight_segments": 11}, DIRECTION, "in 17 of 45"),
    (2000, {"verdict": FAIL}, NOT_MEASURED, "1 of 45 trials do not count"),
    (2000, {"flight_segments": None}, NOT_MEASURED, "1 of 45 trials do not count")])
def test_a_tampered_trial_changes_the_word(chain_bytes: int, changes: Any, word: str,
                                           words: str) -> None:
    statement = steps.test_claim(CLAIM, "handshake_round_trips",
                             changed(sent_records(CLIFFS), chain_bytes, **changes))
    assert statement.outcome == word and words in statement.measured


@pytest.mark.parametrize(("flights", "word", "words"), [
    ((9, 10), REPRODUCED, "in 2 of 2 trials"), ((9, 11), NOT_REPRODUCED, "in 1 of 2 trials"),
    ((9, None), NOT_MEASURED, "1 of 2 trials do not count")])
def test_no_trial_may_pass_a_column_of_its_own(flights: tuple[int | None, ...], word: str,
                                               words: str) -> None:
    claim = Claim("flights", "s", at_most="initcwnd")
    some = [replace(GOOD, trial=replace(GOOD.trial, initcwnd=10), flight_segments=flight)
            for flight in flights]
    statement = steps.test_claim(claim, "flight_segments", some)
    assert statement.outcome == word and words in statement.measured


def test_more_where_nothing_is_more_cannot_be_told() -> None:
    like = replace(GOOD, trial=replace(GOOD.trial, initcwnd=10))
    backwards = [replace(like, flight_segments=flight, handshake_round_trips=trips)
                 for flight, trips in ((1, 2), (90, 1))]
    assert steps.test_claim(CLAIM, "handshake_round_trips", backwards).outcome == NOT_REPRODUCED
    alone = steps.test_claim(CLAIM, "handshake_round_trips", [replace(like, flight_segments=90)])
    assert alone.outcome == NOT_MEASURED and alone.measured.startswith("undetermined: ")
    assert alone.measured.endswith("is larger than an initial window in 1 of 1 trials.")


# Kept captures as timelines -----------------------------------------------------------

def packet(time_ms: float, *, to_client: bool, seq: int, ack: int, flags: int,
           payload: int = 0, number: int = 0) -> bytes:
    """One captured frame, Ethernet to TCP, with as much of it as the tap keeps."""
    ports = (80, 4000) if to_client else (4000, 80)
    tcp = dpkt.tcp.TCP(sport=ports[0], dport=ports[1], seq=seq, ack=ack, flags=flags,
                       data=b"x" * payload)
    ip = dpkt.ip.IP(src=bytes(4), dst=bytes(4), p=6, id=number, data=tcp)
    ip.len = len(ip)
    frame = bytes(dpkt.ethernet.Ethernet(type=0x0800, data=ip))
    kept = frame[:96]
    nanoseconds = round(time_ms * 1_000_000)
    return b"".join(part.to_bytes(4, "little") for part in
                    (1, nanoseconds, len(kept), len(frame))) + kept


def captures() -> tuple[bytes, bytes]:
    """A handshake, two segments of which the first is lost and retransmitted, their ACKs."""
    sent = [packet(20, to_client=True, seq=500, ack=101, flags=0x12, number=1),
            packet(60, to_client=True, seq=501, ack=102, flags=0x10, payload=1000, number=2),
            packet(61, to_client=True, seq=1501, ack=102, flags=0x10, payload=1000, number=3),
            packet(320, to_client=True, seq=501, ack=102, flags=0x10, payload=1000, number=4)]
    requested = [packet(0, to_client=False, seq=100, ack=0, flags=0x02, number=5),
             packet(40, to_client=False, seq=101, ack=501, flags=0x10, payload=1, number=6),
             packet(360, to_client=False, seq=102, ack=2501, flags=0x10, number=7)]
    server = [requested[0], sent[0], requested[1], *sent[1:], requested[2]]
    client = [packets for packets in server if packets is not sent[1]]
    return PCAP_HEADER + b"".join(client), PCAP_HEADER + b"".join(server)


def test_a_kept_capture_is_drawn(stored: list[Record], tmp_path: Path) -> None:
    pair = [replace(record, header_bytes=None) for record in stored[:2]]
    other = replace(pair[0], trial=replace(pair[0].trial, rtt_ms=99.0))  # no counterpart
    pair[1:1] = [other, pair[0]]  # nor is the same again, as in a comparison with two windows
    for record, side in ((record, side) for record in pair for side in ("client", "server")):
        (tmp_path / f"{record.trial.id}-{side}.pcap").write_bytes(captures()[side == "server"])
    three, ten = timelines(pair, tmp_path)
    assert (three.title, ten.title) == (  # the windows side by side
        "IW3: RTT 20 ms, 56 kbit/s, 9000 bytes", "IW10: RTT 20 ms, 56 kbit/s, 9000 bytes")
    large_first = [record for record in pair[::-1] if record is not other]
    assert [line.title for line in timelines(large_first, tmp_path)] == [three.title, ten.title]
    assert [mark.kind for mark in three.marks] == ["lost", "data", "retransmitted"]
    assert [(mark.time_ms, mark.from_bytes, mark.to_bytes) for mark in three.marks] == [
        (60, 1, 1001), (61, 1001, 2001), (320, 1, 1001)]
    assert three.acknowledged == ((40, 1), (360, 2001))
    assert "3 data segments" in three.text and "1 retransmitted" in three.text
    assert three.to_ms > 360 and (three.to_ms, three.to_bytes) == (ten.to_ms, ten.to_bytes)


def test_captures_that_are_cut_are_left_out(stored: list[Record], tmp_path: Path) -> None:
    for place, packets in enumerate((captures()[1][:-3], PCAP_HEADER, b"")):
        for side in ("client", "server"):
            (tmp_path / f"{stored[place].trial.id}-{side}.pcap").write_bytes(packets)
    (tmp_path / f"{stored[3].trial.id}-client.pcap").write_bytes(captures()[0])
    assert timelines(stored[:4], tmp_path) == ()
    assert timelines(stored[:4], tmp_path / "none") == ()
    (tmp_path / f"{stored[3].trial.id}-server.pcap").write_bytes(captures()[1])
    assert len(timelines(stored[:4], tmp_path)) == 1


def test_a_capture_that_is_no_file_is_not_waited_for(stored: list[Record],
                                                     tmp_path: Path) -> None:
    for side in ("client", "server"):
        os.mkfifo(tmp_path / f"{stored[0].trial.id}-{side}.pcap")
    assert timelines(stored[:1], tmp_path) == ()


def test_the_trials_that_the_window_changes_most_come_first(stored: list[Record]) -> None:
    def took(record: Record, window: int, total_ms: float | None, rtt_ms: float = 20.0) -> Record:
        return replace(record, total_ms=total_ms, trial=replace(
            record.trial, initcwnd=window, rtt_ms=rtt_ms))

    one = stored[0]
    small, large, alone = ([took(one, 3, 500.0), took(one, 10, 510.0)],
                           [took(one, 3, 900.0, 50.0), took(one, 10, 400.0, 50.0)],
                           took(one, 3, 5000.0, 99.0))
    equal = took(one, 16, 400.0, 50.0)  # of two that are as fast the smaller window
    assert by_effect([alone, *small, equal, *large]) == [*large, *small, alone, equal]
    assert by_effect([took(one, 3, None), took(one, 10, None)])[0].trial.initcwnd == 3
