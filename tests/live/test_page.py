"""Pages in the guest: their connections and streams, and the driver on them."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.runs.results.records import PASS, columns_of, value_of
from firstflight.study.page import objects
from firstflight.study.page.record import PageRecord, read_file
from firstflight.study.page.trial import PageTrial
from firstflight.study.page.verify import judge_page
from firstflight.testbed.guests import UmlEngine
from tests.live.conftest import Driver, rows
from tests.unit.page import saved

MADE = PageTrial(
    scenario="live", part="own", page="made", rtt_ms=50.0, bandwidth_kbps=10_000.0,
    uplink_kbps=10_000.0, queue_packets=100, loss_percent=0.0, http="1.1", connections=6,
    server="builtin", initcwnd=10, initrwnd=1000, congestion_control="cubic", repeat=1, seed=0,
    objects=objects.text_of(objects.made(20, 15_000, 30_000)))
FEW_MICROSECONDS_MS = 0.005
# Two hosts; a back-end that thinks, a script that is parsed, an object that names another one.
WAITS = "30000 15000<1@100~25 15000<1@200#1 15000<1@300+5#1 20000<2@15000+50.25"
LOSSY = replace(MADE, loss_percent=3.0, seed=77)
TRIALS = {
    "lossy": LOSSY, "six": MADE, "again": replace(MADE, repeat=2), "large": replace(MADE, initcwnd=32),
    "http2": replace(MADE, http="2", server="nginx"),
    "hosts": replace(MADE, page="waits", http="2", server="nginx",
                     objects=WAITS.replace("~25", "")),
    "waits": replace(MADE, page="waits", objects=WAITS),
    "short": replace(MADE, page="short", queue_packets=10, initcwnd=32),
    "lossy again": replace(LOSSY, repeat=2),
    "many": replace(MADE, page="many", objects=objects.text_of(objects.made(300, 400, 9000)))}


@pytest.fixture(scope="module")
def measured(kernel: Path, tmp_path_factory: pytest.TempPathFactory
             ) -> dict[str, tuple[PageRecord, bytes]]:
    """Each trial's record and the file of its objects, by two guests side by side."""
    names = {trial.id: name for name, trial in TRIALS.items()}
    found = {}
    for seen in UmlEngine(kernel, 2).run([trial.job() for trial in TRIALS.values()], {},
                                         tmp_path_factory.mktemp("guest") / "run"):
        name = names[seen.trial_id]
        record, files = judge_page(TRIALS[name], seen, exact=True)
        found[name] = record, files.get("objects.csv", b"")
    return found


def test_pages_of_all_kinds_pass(measured: dict[str, tuple[PageRecord, bytes]]) -> None:
    verdicts = {name: (record.verdict, record.why_not) for name, (record, _) in measured.items()}
    assert verdicts == dict.fromkeys(TRIALS, (PASS, ""))
    opened = {name: record.opened_connections for name, (record, _) in measured.items()}
    assert opened == {"six": 6, "again": 6, "large": 6, "http2": 1, "hosts": 2, "waits": 4,
                      "short": 6, "lossy": 6, "lossy again": 6, "many": 6}


def test_the_same_page_is_the_same_to_microseconds(
        measured: dict[str, tuple[PageRecord, bytes]]) -> None:
    """A system call that fails takes a guest's clock one of them, and few fail now and then."""
    (first, objects_of_first), (again, objects_of_again) = measured["six"], measured["again"]
    for column in columns_of(PageRecord):
        if column not in ("repeat", "measured_at"):
            assert value_of(again, column) == near(value_of(first, column)), column
    for one, other in zip(read_file(objects_of_first, ""), read_file(objects_of_again, "")):
        assert one[:4] == other[:4] and one[4:] == near(other[4:])


def test_with_losses_the_first_page_of_a_guest_is_like_a_later_one(
        measured: dict[str, tuple[PageRecord, bytes]]) -> None:
    """Timers of TCP fire at ticks of a clock: both have to start as long after one."""
    first, again = measured["lossy"][0], measured["lossy again"][0]
    assert first.retransmissions and first.page_ms == pytest.approx(again.page_ms, abs=0.001_01)


def near(value: Any) -> Any:
    """The same, or a time within some microseconds."""
    is_time = isinstance(value, float) or isinstance(value, tuple)
    return pytest.approx(value, abs=FEW_MICROSECONDS_MS) if is_time else value


def test_a_larger_window_is_faster_until_six_connections_overfill_the_queue(
        measured: dict[str, tuple[PageRecord, bytes]]) -> None:
    six, large, short = (measured[name][0] for name in ("six", "large", "short"))
    assert (large.page_ms or 0) < (six.page_ms or 0) < (short.page_ms or 0)
    assert (six.queue_drops, large.queue_drops) == (0, 0) and (short.queue_drops or 0) > 50


def test_an_object_waits_as_long_as_was_asked(measured: dict[str, tuple[PageRecord, bytes]]
                                              ) -> None:
    times = read_file(measured["waits"][1], "")
    assert times[3].start_ms - times[3].named_ms == pytest.approx(5, abs=0.02)
    assert times[4].start_ms - times[1].end_ms == pytest.approx(50.25, abs=0.02)


def test_the_driver_measures_a_har_and_resumes(
        drive: Driver, results: Path, tmp_path: Path) -> None:
    har = tmp_path / "page.har"
    har.write_bytes(saved.har())
    flags = ("--page", str(har), "--iw", "3,10", "--bw", "5M", "--no-figures", "--seed", "3")
    done = drive(*flags)
    assert done.returncode == 0, done.stderr
    assert "With 10 instead of 3 segments, the page is there" in done.stdout
    alone = rows(results, "own")
    folder = (results / "own" / "latest").resolve()
    assert saved.SECRET not in (folder / "run.json").read_text() + (folder / "trials.csv").read_text()
    # Interrupted after one of two: what is there stays, the other one is measured again.
    with (folder / "trials.csv").open(newline="") as file:
        kept = list(csv.reader(file))[:2]
    with (folder / "trials.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(kept)
    facts = json.loads((folder / "run.json").read_text())
    facts = {**{name: value for name, value in facts.items() if name != "trials"},
             "state": "running"}
    (folder / "run.json").write_text(json.dumps(facts))
    resumed = drive(*flags)
    assert resumed.returncode == 0, resumed.stderr
    found = rows(results, "own")
    for one, other in zip(found, alone, strict=True):
        for name in one.keys() - {"measured_at"}:
            assert one[name] == other[name] or float(one[name]) == near(float(other[name])), name
    assert found[0]["measured_at"] == alone[0]["measured_at"]
