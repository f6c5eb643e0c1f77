"""Pages in Chromium in the guest load as the stored ones did, and do not change later pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import brotli
import pytest

from firstflight.runs.results.records import PASS, SKIPPED
from firstflight.testbed import site_store
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.hosts.browser.client import MISSING, PROGRAM
from firstflight.testbed.hosts.replay.recording import Answer, Recording, read
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
PAGE, OTHER = 1, 2  # numbers of the stored site's origins, of which each other page has two
BODIES = {
    "endless": b"<p>x</p><img src=/never>",
    "dialogs": b"<script>alert(1); confirm(2); onbeforeunload = e => 'stay'</script><p>x</p>",
    "parts": (b"<p>x</p><iframe src=https://cdn.example.net/></iframe>"
              b"<script>new Worker('/worker.js');"
              b"navigator.serviceWorker.register('/service.js'); open('/')</script>"),
    "asks": (b"<img src=/broken><script src=/coded.js></script><script>for (const words of"
             b" ['b', 'a']) fetch('/api', {method: 'POST', body: words})</script>"),
    "again": b"<p>x</p><script>location.reload()</script>",
    "away": b"<p>x</p><img src=http://192.0.2.1/><iframe src=file:///etc/passwd></iframe>",
    "reads": (b"<p>x</p><script>for (let i = 0; i < %d; i++) performance.now()</script>"
              % CLOCK_READS),
    "waits": (b"<p>x</p><script>const end = performance.now() + %d;"
              b"while (performance.now() < end);</script>" % WAITS_MS)}
# A browser is started anew after a page that does not end to load. Its start takes more time than
# all other pages together.
ORDER = ("http2", "dialogs", "parts", "asks", "reads", "waits", "away", "endless",
         "http1", "again", "http2 again", "http1 again")


@pytest.fixture(scope="module", autouse=True)
def _sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A store of sites that has the stored ones."""
    sites = tmp_path_factory.mktemp("store") / "sites"
    shutil.copytree(stored_browsed.SITES, sites)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_store, "folder", lambda: sites)
        yield


def measured(kernel: Path, folder: Path, trials: dict[str, PageTrial]) -> dict[str, PageRecord]:
    """The records of trials by name, all measured in one guest."""
    names = {trial.id: name for name, trial in trials.items()}
    found = {}
    for seen in UmlEngine(kernel, 1).run([trial.job() for trial in trials.values()], {}, folder):
        name = names[seen.trial_id]
        found[name] = judge_browsed(trials[name], seen, exact=True)[0]
    return found


def site_with(body: bytes) -> str:
    """Put a site into the store whose page has this body, and return its digest.

    It has the origins of the stored site, for which the same browser is used.
    """
    (stored,) = stored_browsed.SITES.iterdir()
    return site_store.put(Recording("https://www.example.org/", read(stored).origins, (
        Answer(PAGE, "GET", "/", 200, HTML, body),
        Answer(OTHER, "GET", "/", 200, HTML, b"<p>y</p><script>fetch('/of-frame')</script>"),
        Answer(OTHER, "GET", "/of-frame", 200, HTML, b"z"),
        Answer(PAGE, "GET", "/worker.js", 200, SCRIPT, b"fetch('/of-worker')"),
        Answer(PAGE, "GET", "/of-worker", 200, HTML, b"z"),
        Answer(PAGE, "GET", "/service.js", 200, SCRIPT, b"onfetch = e => {}"),
        Answer(PAGE, "GET", "/broken", 200, (("content-type", "image/png"),), b"x" * 100),
        Answer(PAGE, "GET", "/coded.js", 200, (*SCRIPT, ("content-encoding", "br")),
               brotli.compress(b"var x = 1;" * 99)),
        *(Answer(PAGE, "POST", "/api", 200, HTML, words.encode() * 9, request_text=words)
          for words in ("a", "b")),
        Answer(PAGE, "GET", "/never", 200, (), b"", wait_ms=NEVER_MS))))


@pytest.fixture(scope="module")
def found(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, PageRecord]:
    """The records of all pages by name. Between the stored pages come those of BODIES."""
    trials = {}
    for name in stored_browsed.NAMES:
        stored = stored_browsed.load(name).trial
        trials[name] = stored
        trials[f"{name} again"] = replace(stored, repeat=2, phase_ms=OTHER_PHASE_MS)
    for name, body in BODIES.items():
        trials[name] = replace(trials["http2"], page=name, site=site_with(body))
    return measured(kernel, tmp_path_factory.mktemp("guest") / "run",
                    {name: trials[name] for name in ORDER})


@needs_browser
def test_a_browser_loads_a_page_alike_after_any_other_page(found: dict[str, PageRecord]) -> None:
    """Between the stored pages come others that could leave something behind.

    The picture of one never comes. Others open dialogs, leave for another site, or load
    themselves again. One page has a frame of another site, a worker, a service worker and windows.
    Another one has a broken picture, a script in brotli, and requests with bodies.
    """
    assert not found["endless"].ok
    assert "the page did not end to load within" in found["endless"].error
    assert "again and again, more than 20 times" in found["again"].error
    # Whether the page that waits passes is in the test of the clock.
    others = {*ORDER} - {"endless", "again", "waits"}
    assert {name: found[name].why_not for name in others} == dict.fromkeys(others, "")
    assert {found[name].verdict for name in others} == {PASS}
    assert (found["parts"].requests, found["parts"].not_recorded) == (6, 0)
    assert (found["asks"].requests, found["asks"].not_recorded) == (5, 0)
    for name in stored_browsed.NAMES:
        first = stored_browsed.load(name).judge()
        for record in (found[name], found[f"{name} again"]):
            assert record.requests == first.requests
            for column in ("first_byte_ms", "document_ms", "content_loaded_ms", "page_ms"):
                expected = getattr(first, column)
                assert getattr(record, column) == pytest.approx(expected, abs=NEAR_MS), column


@needs_browser
def test_reading_the_clock_takes_no_time_unless_a_page_waits_for_it(
        found: dict[str, PageRecord]) -> None:
    """The script that waits moves the clock by several microseconds at a read: it may not pass."""
    assert found["reads"].why_not == "" and found["waits"].ok
    computed_ms = {name: (found[name].page_ms or 0) - (found[name].document_ms or 0)
                   for name in ("reads", "waits")}
    assert abs(computed_ms["reads"]) < NEAR_MS
    assert computed_ms["waits"] == pytest.approx(WAITS_MS, abs=WAITS_MS / 10)


def test_a_trial_whose_site_or_browser_is_missing_is_skipped(
        kernel: Path, tmp_path: Path) -> None:
    trial = stored_browsed.load("http2").trial
    missing = measured(kernel, tmp_path / "run", {"a": replace(trial, site="1" * 64)})["a"]
    assert missing.verdict == SKIPPED and "is not on this machine" in missing.verdict_reason
    if not PROGRAM.exists():
        lacking = measured(kernel, tmp_path / "other", {"a": trial})["a"]
        assert (lacking.verdict, lacking.verdict_reason) == (SKIPPED, MISSING)
