"""The page of a run: it stands alone, escapes what it is given, and hides nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import report as report_command
from lab import errors, report, runs, time_sequence
from lab.records import FAIL, PASS, SKIPPED, Record, RecordFile
from lab.report import ReportError, Run
from lab.scenario import Scenario, expand, load
from lab.tcp.packets import PCAP_HEADER

PROJECT = Path(__file__).resolve().parent.parent.parent
PIXEL = b"\x89PNG not looked into"
HOSTILE = '<script>alert("1")</script><img src=x onerror=alert(1)>'
VOID = {"meta", "img", "br", "input", "link", "hr"}


class Outline(HTMLParser):
    """The elements of a page; raises where they are not nested as they should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load("zhao2019")


@pytest.fixture(scope="module")
def records(scenario: Scenario) -> list[Record]:
    return [passed(trial) for trial in expand(scenario)]


def passed(trial: Any) -> Record:
    """A record as a whole run leaves it; a round trip of time for each flight."""
    flights = 2 if trial.initcwnd >= 7 else 3
    total_ms = trial.rtt_ms * flights + trial.response_bytes * 8 / trial.bandwidth_kbps
    return Record(trial=trial, ok=True, total_ms=total_ms, latency_ms=total_ms - trial.rtt_ms,
                  seen_initcwnd=trial.initcwnd, seen_first_flight=min(trial.initcwnd, 7),
                  seen_rtt_ms=trial.rtt_ms, seen_bandwidth_kbps=trial.bandwidth_kbps,
                  retransmissions=0, handshake_retransmissions=0, lost_segments=0,
                  header_bytes=60, request_bytes=95, model_ms=total_ms, verdict=PASS)


def a_run(scenario: Scenario, records: list[Record], folder: Path = Path("run-1"),
          **facts: Any) -> Run:
    return Run(folder, scenario, tuple(records), {
        "scenario": scenario.name, "state": runs.COMPLETE, "virtual_time": True,
        "engine": "uml", "kernel": "7.2.11", "emulated_s": 600.0, "wall_s": 5.0,
        "arguments": ["--seed", "7", "--results", "/elsewhere"],
        "sysctls": {"client": {"net.ipv4.tcp_sack": "1"}, "server": {"net.ipv4.tcp_sack": "1"}},
        **facts})


def page(run: Run) -> Outline:
    drawings = {figure.name: PIXEL for figure in run.scenario.figures}
    return Outline(report.page(run, drawings))


def save(run: Run, folder: Path) -> Path:
    """The run as files."""
    folder.mkdir(parents=True)
    (folder / runs.RUN_JSON).write_text(json.dumps(dict(run.facts)))
    file = RecordFile(folder / runs.TRIALS_CSV)
    for record in run.records:
        file.append(record)
    file.close()
    return folder


# Structure -----------------------------------------------------------------------

def test_findings_come_first_and_provenance_last(scenario: Scenario,
                                                 records: list[Record]) -> None:
    shown = page(a_run(scenario, records))
    ids = [attributes["id"] for attributes in shown.of("h2")]
    assert ids == ["findings", "figures", "trials", "verdicts", "provenance"]
    assert shown.text.index("All 128 transfers were verified") < shown.text.index("RTT ms")
    assert "10 min in 5.0 s" in shown.text.replace("\u00a0", " ")
    assert len(shown.of("h1")) == 1 and shown.of("html")[0]["lang"] == "en-GB"


def test_every_figure_stands_there_with_its_numbers(scenario: Scenario,
                                                    records: list[Record]) -> None:
    shown = page(a_run(scenario, records))
    images = shown.of("img")
    assert len(images) == len(scenario.figures) >= 2
    for figure, image in zip(scenario.figures, images):
        assert figure.title in shown.text
        assert image["src"].startswith("data:image/png;base64,")
        assert f"{figure.experiment_initcwnd} segments" in image["alt"]
    by_rtt = images[[figure.name for figure in scenario.figures].index("fig5_rtt")]["alt"]
    assert "100 ms: 100 ms, " in by_rtt and "published 21.8 ms, 5.2 %" in by_rtt
    rows = report.bucket_table(a_run(scenario, records).covered[0]["fig5_rtt"],
                               deterministic=True).rows
    assert [row[0] for row in rows] == ["20", "50", "100", "200", "500", "1000", "3000", ">3000"]
    assert "100.0" in rows[2]


def test_a_drawing_that_no_figure_names_is_shown_too(scenario: Scenario,
                                                     records: list[Record]) -> None:
    shown = Outline(report.page(a_run(scenario, records), {"all_panels": PIXEL}))
    assert [image["alt"] for image in shown.of("img")] == ["all panels"]
    assert shown.text.count("Not drawn") == len(scenario.figures)


def test_tables_have_headers_and_names(scenario: Scenario, records: list[Record]) -> None:
    shown = page(a_run(scenario, records))
    assert len(shown.of("caption")) == len(shown.of("table")) >= 5
    assert all(attributes.get("scope") in ("col", "colgroup", "row")
               for attributes in shown.of("th"))
    assert all(image.get("alt") for image in shown.of("img"))


def test_nothing_is_loaded_from_outside(scenario: Scenario, records: list[Record]) -> None:
    run = a_run(scenario, records)
    text = report.page(run, {"fig5_rtt": PIXEL})
    shown = Outline(text)
    for tag, attributes in shown.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            if name in attributes:
                assert attributes[name].startswith(("#", "data:image/png;base64,")) \
                    or attributes[name] in ("trials.csv", "run.json"), attributes
        if tag == "script":
            assert "src" not in attributes
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|https?:", text)
    policy = next(each for each in shown.of("meta") if "http-equiv" in each)
    assert "default-src 'none'" in policy["content"]


def test_the_same_records_give_the_same_bytes(scenario: Scenario, records: list[Record]) -> None:
    once = report.page(a_run(scenario, records), {"fig5_rtt": PIXEL})
    assert once == report.page(a_run(scenario, records[::-1]), {"fig5_rtt": PIXEL})


# Findings ------------------------------------------------------------------------

def test_findings_say_what_is_reproduced_and_the_farthest_from_the_published(
        scenario: Scenario, records: list[Record]) -> None:
    run = a_run(scenario, records)
    found = report.findings(run, run.covered[0])
    assert any("Of the published bars, " in text and " reproduced, " in text for text in found)
    assert ("save 20.0 ms (at 20 ms) to 5000 ms (at >3000 ms)" in page(run).text.replace(
        "\u00a0", " "))
    assert any("Farthest above the published value" in text and "times as much" in text
               for text in found)
    assert any("the 128 without a retransmission" in text for text in found)


def test_an_unfinished_run_says_so(scenario: Scenario, records: list[Record]) -> None:
    assert "was interrupted" in page(a_run(scenario, records[:4], state=runs.RUNNING)).text
    assert "was interrupted" not in page(a_run(scenario, records)).text


def test_a_partial_run_shows_its_changes_and_what_is_missing(scenario: Scenario,
                                                             records: list[Record]) -> None:
    pair = [record for record in records
            if (record.trial.rtt_ms, record.trial.bandwidth_kbps) == (100, 1000)]
    run = a_run(scenario, pair)
    shown = Outline(report.page(run, {}))
    assert "10 instead of 3 segments took" in shown.text and "3 → 10" in shown.text
    assert "Not in this run" in shown.text and "./run.sh --scenario zhao2019" in shown.text
    assert not shown.of("img")


# What failed ---------------------------------------------------------------------

def test_every_failed_trial_is_listed_with_its_reason(scenario: Scenario,
                                                      records: list[Record]) -> None:
    changed = list(records)
    changed[5] = replace(records[5], ok=False, verdict=SKIPPED, error="curl 28: timed out")
    changed[40] = replace(records[40], verdict=FAIL,
                          verdict_reason="RTT: seen 90.000 ms, asked 100 ms; model: seen 1.000"
                                         " ms, asked 2.000 ms")
    changed[77] = replace(records[77], verdict=FAIL, verdict_reason="new check: seen 1, asked 2")
    run = a_run(scenario, changed)
    text = page(run).text
    for place in (5, 40, 77):
        assert changed[place].trial.id in text
    assert "curl 28: timed out" in text and "RTT: seen 90.000 ms, asked 100 ms" in text
    assert "125 of 128 transfers were verified" in text
    rows = {row[0]: row[2:] for row in report.checks(run).rows}
    assert rows["RTT"] == ("126", "1", "1") and rows["model"] == ("126", "1", "1")
    assert rows["size"] == ("127", "0", "1") and rows["new check"] == ("–", "1", "–")


def test_causes_are_counted(scenario: Scenario, records: list[Record]) -> None:
    changed = [replace(record, retransmissions=1, retransmission_cause="tail loss probe"
                       if place < 2 else "", lost_segments=0 if place < 2 else 1)
               if place < 3 else record for place, record in enumerate(records)]
    found = report.causes(a_run(scenario, changed))
    assert found is not None
    assert found.rows == (("tail loss probe", "2"), ("packets were lost", "1"))
    assert report.causes(a_run(scenario, records)) is None


def test_what_comes_from_files_is_escaped(scenario: Scenario, records: list[Record],
                                          tmp_path: Path) -> None:
    changed = [replace(records[0], ok=False, verdict=SKIPPED, error=HOSTILE),
               replace(records[1], retransmissions=1, retransmission_cause=HOSTILE),
               *records[2:]]
    run = a_run(replace(scenario, title=HOSTILE, claim=HOSTILE, source=HOSTILE), changed,
                kernel=HOSTILE, machine={"system": HOSTILE}, tools={HOSTILE: HOSTILE},
                project={"commit": HOSTILE}, arguments=[HOSTILE], state=HOSTILE,
                sysctls={HOSTILE: {HOSTILE: HOSTILE}})
    clean, hostile = page(a_run(scenario, changed)), page(run)
    assert len(hostile.of("script")) == 1 == len(clean.of("script"))
    assert len(hostile.of("img")) == len(scenario.figures)
    assert not any("onerror" in attributes for _, attributes in hostile.elements)
    assert hostile.text.count(HOSTILE) >= 8


# Many trials ---------------------------------------------------------------------

def test_many_trials_are_shown_by_cell_with_their_count(scenario: Scenario,
                                                        records: list[Record]) -> None:
    many = [replace(record, trial=replace(record.trial, repeat=repeat, seed=repeat))
            for record in records for repeat in range(1, 6)]
    shown = report.trials(a_run(scenario, many))
    assert shown.caption == "Every cell" and len(shown.rows) == 128 and shown.left_out == 0
    assert [column.name for column in shown.columns].count("n") == 1
    assert shown.rows[0][-1] == "5/5 pass"


def test_more_rows_than_a_page_holds_are_named(scenario: Scenario,
                                               records: list[Record]) -> None:
    cells = [replace(records[0], trial=replace(records[0].trial, response_bytes=size))
             for size in range(1, 1200)]
    run = a_run(scenario, cells)
    shown = report.trials(run)
    assert (len(shown.rows), shown.left_out) == (500, 699)
    text = Outline(report.page(run, {})).text
    assert "The first 500 of 1199 rows" in text and "zhao2019/run-1/trials.csv" in text


def test_a_population_is_shown_by_the_papers_buckets(scenario: Scenario,
                                                     records: list[Record]) -> None:
    drawn = [replace(record, trial=replace(
        record.trial, part="web", sample=sample, key_rtt_ms=40.0 + sample / 10,
        key_bandwidth_kbps=900.0, weight=1.0 + sample))
        for sample in range(300) for record in records[:2]]
    shown = report.trials(a_run(scenario, drawn))
    assert [column.group for column in shown.columns[:4]] == ["", "filed under", "filed under",
                                                              "asked"]
    assert {row[:4] for row in shown.rows} == {("web", limit, "≤ 1000", window) for limit in
                                               ("≤ 50", "≤ 100") for window in ("3", "10")}
    n = [column.name for column in shown.columns].index("n")
    assert sum(int(row[n]) for row in shown.rows) == 600


# Captures ------------------------------------------------------------------------

def packet(time_ms: float, *, to_client: bool, seq: int, ack: int, flags: int,
           payload: int = 0, number: int = 0) -> bytes:
    """One captured frame, Ethernet to TCP, with as much of it as the tap keeps."""
    dpkt = pytest.importorskip("dpkt")
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
    """A handshake, two segments of which the first is lost and sent again, their ACKs."""
    sent = [packet(20, to_client=True, seq=500, ack=101, flags=0x12, number=1),
            packet(60, to_client=True, seq=501, ack=102, flags=0x10, payload=1000, number=2),
            packet(61, to_client=True, seq=1501, ack=102, flags=0x10, payload=1000, number=3),
            packet(320, to_client=True, seq=501, ack=102, flags=0x10, payload=1000, number=4)]
    asked = [packet(0, to_client=False, seq=100, ack=0, flags=0x02, number=5),
             packet(40, to_client=False, seq=101, ack=501, flags=0x10, payload=1, number=6),
             packet(360, to_client=False, seq=102, ack=2501, flags=0x10, number=7)]
    server = [asked[0], sent[0], asked[1], *sent[1:], asked[2]]
    client = [packets for packets in server if packets is not sent[1]]
    return PCAP_HEADER + b"".join(client), PCAP_HEADER + b"".join(server)


def test_a_kept_capture_is_drawn(scenario: Scenario, records: list[Record],
                                 tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    pair = [replace(record, header_bytes=None) for record in records[:2]]
    for record, side in ((record, side) for record in pair for side in ("client", "server")):
        (folder / f"{record.trial.id}-{side}.pcap").write_bytes(
            captures()[side == "server"])
    run = a_run(scenario, pair, tmp_path)
    charts = time_sequence.charts(run.records, run.folder / "captures")
    assert [chart.title[:4] for chart in charts] == ["IW3:", "IW10"]  # the windows side by side
    assert [mark.kind for mark in charts[0].marks] == ["lost", "data", "again"]
    assert "3 data segments" in charts[0].text and "1 sent again" in charts[0].text
    shown = page(run)
    assert len(shown.of("svg")) == 2 and shown.text.count(" R ") >= 2
    assert shown.of("svg")[0]["aria-label"].startswith("IW3: RTT")


def test_captures_that_are_cut_are_left_out(scenario: Scenario, records: list[Record],
                                            tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    for place, packets in enumerate((captures()[1][:-3], PCAP_HEADER, b"")):
        for side in ("client", "server"):
            (tmp_path / "captures" / f"{place}-{side}.pcap").write_bytes(packets)
    (tmp_path / "captures" / "alone-client.pcap").write_bytes(captures()[0])
    run = a_run(scenario, records[:2], tmp_path)
    assert time_sequence.charts(run.records, run.folder / "captures") == [] and not page(run).of("svg")


# Provenance ----------------------------------------------------------------------

def test_provenance_names_kernel_and_command(scenario: Scenario, records: list[Record]) -> None:
    text = page(a_run(scenario, records)).text
    assert "./run.sh --scenario zhao2019 --seed 7" in text and "/elsewhere" not in text
    assert "7.2.11" in text and "net.ipv4.tcp_sack" in text and "600 s" in text


@pytest.mark.parametrize("facts", [
    {"machine": "odd", "tools": [], "project": None, "sysctls": 5, "arguments": None,
     "emulated_s": "soon"}, {"arguments": ["--figures=/elsewhere", 5]}])
def test_odd_facts_are_left_out(scenario: Scenario, records: list[Record],
                                facts: dict[str, Any]) -> None:
    assert "/elsewhere" not in page(a_run(scenario, records, **facts)).text


# The command ---------------------------------------------------------------------

def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(PROJECT / "report.py"), *map(str, arguments)],
                          capture_output=True, text=True, check=False)


def test_the_command_writes_the_page_beside_the_records(scenario: Scenario,
                                                        records: list[Record],
                                                        tmp_path: Path) -> None:
    folder = save(a_run(scenario, records), tmp_path / "zhao2019" / "20260101-uml")
    (folder.parent / "latest").symlink_to(folder.name)
    figures = tmp_path / "figures"
    figures.mkdir()
    (figures / "zhao2019_fig5_rtt.png").write_bytes(PIXEL)
    done = command("--results", tmp_path, "--scenario", "zhao2019", "--figures", figures)
    assert (done.returncode, done.stderr) == (errors.OK, "")
    assert done.stdout.strip() == str(tmp_path / "zhao2019" / "latest" / "report.html")
    first = (folder / "report.html").read_bytes()
    assert len(Outline(first.decode()).of("img")) == 1
    assert command("--run", folder, "--figures", figures).returncode == errors.OK
    assert (folder / "report.html").read_bytes() == first
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "run.json",
                                                              "trials.csv"]


def test_a_run_is_drawn_from_its_own_records(scenario: Scenario, records: list[Record],
                                             tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    older = save(a_run(scenario, records), tmp_path / "zhao2019" / "20260101-uml")
    (tmp_path / "scratch").mkdir()
    drawings = report_command.drawn("zhao2019", older, tmp_path / "scratch")
    assert sorted(drawings) == sorted(figure.name for figure in scenario.figures)
    assert all(drawing.startswith(b"\x89PNG\r\n") for drawing in drawings.values())


@pytest.mark.parametrize("damage, status, said", [
    ("no run", errors.FAILED, "there is no such run"),
    ("no run.json", errors.FAILED, "run.json: cannot be read"),
    ("torn run.json", errors.FAILED, "run.json: is damaged"),
    ("list in run.json", errors.FAILED, "is not the description of a run"),
    ("no scenario", errors.FAILED, "names no scenario"),
    ("unknown scenario", errors.USAGE, "unknown scenario"),
    ("no trials", errors.FAILED, "trials.csv: cannot be read"),
    ("only a header", errors.FAILED, "holds no trial yet"),
    ("other columns", errors.FAILED, "not this version's"),
    ("damaged row", errors.FAILED, "line 2"),
    ("foreign trials", errors.FAILED, "but run.json says"),
    ("folder in the way", errors.FAILED, "cannot be written"),
])
def test_bad_results_are_one_line_and_a_status(
        scenario: Scenario, records: list[Record], tmp_path: Path, damage: str, status: int,
        said: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    if damage != "no run":
        kept = records[:2]
        if damage == "foreign trials":
            kept = [replace(record, trial=replace(record.trial, scenario="other"))
                    for record in kept]
        save(a_run(scenario, kept), folder)
    facts, rows = folder / runs.RUN_JSON, folder / runs.TRIALS_CSV
    whole = rows.read_text() if rows.exists() else ""
    {"no run.json": lambda: facts.unlink(),
     "torn run.json": lambda: facts.write_text(facts.read_text()[:-5]),
     "list in run.json": lambda: facts.write_text("[]"),
     "no scenario": lambda: facts.write_text("{}"),
     "unknown scenario": lambda: facts.write_text('{"scenario": "../zhao2019"}'),
     "no trials": lambda: rows.unlink(),
     "only a header": lambda: rows.write_text(whole.split("\n")[0] + "\n"),
     "other columns": lambda: rows.write_text("a,b\n1,2\n"),
     "damaged row": lambda: rows.write_text(whole.replace(",3,", ",three,", 1)),
     "folder in the way": lambda: (folder / "report.html").mkdir(),
     }.get(damage, lambda: None)()
    assert report_command.main(["--run", str(folder), "--figures", str(tmp_path)]) == status
    line, = capsys.readouterr().err.splitlines()
    assert line.startswith("report.py: ") and said in line


def test_a_torn_last_row_is_dropped(scenario: Scenario, records: list[Record],
                                    tmp_path: Path) -> None:
    folder = save(a_run(scenario, records[:3]), tmp_path / "run")
    rows = folder / runs.TRIALS_CSV
    rows.write_bytes(rows.read_bytes()[:-10])
    assert len(report.read_run(folder).records) == 2


def test_nothing_to_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_command.main(["--results", str(tmp_path)]) == errors.FAILED
    assert report_command.main(["--scenario", "zhao2091"]) == errors.USAGE
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "no results" in lines[0] and "did you mean" in lines[1]
    with pytest.raises(ReportError):
        report_command.build(tmp_path / "absent", None)
