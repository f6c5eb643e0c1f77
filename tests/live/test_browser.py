"""Pages in Chromium in the guest load as the stored ones did, and do not change later pages."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import brotli
import pytest

from firstflight.runs.results.records import PASS, SKIPPED
from firstflight.testbed import site_store
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.hosts.browser.client import MISSING, PROGRAM
from firstflight.testbed.hosts.replay.recording import Answer, Origin, Recording
from firstflight.workloads.page.browsed import judge_browsed
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.page.trial import PageTrial
from tests.golden import stored_browsed

needs_browser = pytest.mark.skipif(not PROGRAM.exists(), reason="./install.sh --with-browser")
NEAR_MS = 0.1  # by which two loads of a page may differ
OTHER_PHASE_MS = 6.5  # after which a load begins within a frame; stored loads have 3 and 10
NEVER_MS = 1e9  # the wait of an answer that never comes
CLOCK_READS, WAITS_MS = 20_000, 100  # of two scripts: reads of the clock, and time to wait for
HTML, SCRIPT = (("content-type", "text/html"),), (("content-type", "text/javascript"),)


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of sites that has the stored ones."""
    shutil.copytree(stored_browsed.SITES, tmp_path / "sites")
    monkeypatch.setattr(site_store, "folder", lambda: tmp_path / "sites")


def measured(kernel: Path, folder: Path, trials: dict[str, PageTrial]) -> dict[str, PageRecord]:
    """The records of trials by name, all measured in one guest."""
    names = {trial.id: name for name, trial in trials.items()}
    found = {}
    for seen in UmlEngine(kernel, 1).run([trial.job() for trial in trials.values()], {}, folder):
        name = names[seen.trial_id]
        found[name] = judge_browsed(trials[name], seen, exact=True)[0]
    return found


@needs_browser
def test_a_browser_loads_a_page_alike_after_any_other_page(kernel: Path, tmp_path: Path,
                                                           sites: None) -> None:
    """Between the stored pages come others that could leave something behind.

    The picture of one never comes. Others open dialogs, leave for another site, or load
    themselves again. One page has a frame of another site, a worker, a service worker and windows.
    Another one has a broken picture, a script in brotli, and requests with bodies.
    """
    stored = {name: stored_browsed.load(name) for name in stored_browsed.NAMES}
    bodies = {
        "endless": b"<p>x</p><img src=/never>",
        "dialogs": b"<script>alert(1); confirm(2); onbeforeunload = e => 'stay'</script><p>x</p>",
        "parts": (b"<p>x</p><iframe src=https://b.test/></iframe><script>new Worker('/worker.js');"
                  b"navigator.serviceWorker.register('/service.js'); open('/')</script>"),
        "asks": (b"<img src=/broken><script src=/coded.js></script><script>for (const words of"
                 b" ['b', 'a']) fetch('/api', {method: 'POST', body: words})</script>"),
        "again": b"<p>x</p><script>location.reload()</script>",
        "away": b"<p>x</p><img src=http://192.0.2.1/><iframe src=file:///etc/passwd></iframe>"}
    trials = {}
    for name, page in stored.items():
        trials[name] = page.trial
        trials[f"{name} again"] = replace(page.trial, repeat=2, phase_ms=OTHER_PHASE_MS)
    for name, body in bodies.items():
        site = Recording("https://a.test/", (Origin("https://a.test", 0),
                                             Origin("https://b.test", 1)), (
            Answer(0, "GET", "/", 200, HTML, body),
            Answer(1, "GET", "/", 200, HTML, b"<p>y</p><script>fetch('/of-frame')</script>"),
            Answer(1, "GET", "/of-frame", 200, HTML, b"z"),
            Answer(0, "GET", "/worker.js", 200, SCRIPT, b"fetch('/of-worker')"),
            Answer(0, "GET", "/of-worker", 200, HTML, b"z"),
            Answer(0, "GET", "/service.js", 200, SCRIPT, b"onfetch = e => {}"),
            Answer(0, "GET", "/broken", 200, (("content-type", "image/png"),), b"x" * 100),
            Answer(0, "GET", "/coded.js", 200, (*SCRIPT, ("content-encoding", "br")),
                   brotli.compress(b"var x = 1;" * 99)),
            *(Answer(0, "POST", "/api", 200, HTML, words.encode() * 9, request_text=words)
              for words in ("a", "b")),
            Answer(0, "GET", "/never", 200, (), b"", wait_ms=NEVER_MS)))
        trials[name] = replace(stored["http2"].trial, page=name, site=site_store.put(site))
    order = ("http2", "endless", "http1", "dialogs", "parts", "asks", "again", "away",
             "http2 again", "http1 again")
    found = measured(kernel, tmp_path / "run", {name: trials[name] for name in order})

    assert not found["endless"].ok
    assert "the page did not end to load within" in found["endless"].error
    assert "again and again, more than 20 times" in found["again"].error
    endless = {"endless", "again"}
    assert {name: record.why_not for name, record in found.items() if name not in endless} == (
        dict.fromkeys({*order} - endless, ""))
    assert {record.verdict for record in found.values() if record.ok} == {PASS}
    assert (found["parts"].requests, found["parts"].not_recorded) == (6, 0)
    assert (found["asks"].requests, found["asks"].not_recorded) == (5, 0)
    for name, page in stored.items():
        first = page.judge()
        for record in (found[name], found[f"{name} again"]):
            assert record.requests == first.requests
            for column in ("first_byte_ms", "document_ms", "content_loaded_ms", "page_ms"):
                expected = getattr(first, column)
                assert getattr(record, column) == pytest.approx(expected, abs=NEAR_MS), column


@needs_browser
def test_reading_the_clock_takes_no_time_unless_a_page_waits_for_it(
        kernel: Path, tmp_path: Path, sites: None) -> None:
    trial = stored_browsed.load("http2").trial
    scripts = {"reads": f"for (let i = 0; i < {CLOCK_READS}; i++) performance.now()",
               "waits": f"const end = performance.now() + {WAITS_MS};"
                        "while (performance.now() < end);"}
    trials = {}
    for name, script in scripts.items():
        page = f"<p>x</p><script>{script}</script>".encode()
        site = Recording("https://a.test/", (Origin("https://a.test", 0),),
                         (Answer(0, "GET", "/", 200, HTML, page),))
        trials[name] = replace(trial, page=name, site=site_store.put(site))
    found = measured(kernel, tmp_path / "run", trials)
    # The script that waits moves the clock by several microseconds at a read, so it may not pass.
    assert found["reads"].why_not == ""
    computed_ms = {name: (record.page_ms or 0) - (record.document_ms or 0)
                   for name, record in found.items()}
    assert abs(computed_ms["reads"]) < NEAR_MS
    assert computed_ms["waits"] == pytest.approx(WAITS_MS, abs=WAITS_MS / 10)


def test_a_trial_whose_site_or_browser_is_missing_is_skipped(
        kernel: Path, tmp_path: Path, sites: None) -> None:
    trial = stored_browsed.load("http2").trial
    missing = measured(kernel, tmp_path / "run", {"a": replace(trial, site="1" * 64)})["a"]
    assert missing.verdict == SKIPPED and "is not on this machine" in missing.verdict_reason
    if not PROGRAM.exists():
        lacking = measured(kernel, tmp_path / "other", {"a": trial})["a"]
        assert (lacking.verdict, lacking.verdict_reason) == (SKIPPED, MISSING)
