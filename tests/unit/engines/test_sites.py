"""The store of recorded sites, and guests that have them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import experiment
from firstflight.commands.engines import plan_engine
from firstflight.commands.request import Measuring
from firstflight.runs.kinds import memory_mb_of
from firstflight.testbed import guests, site_store
from firstflight.testbed.guests import guest_for
from firstflight.testbed.hosts.replay.recording import Answer, Origin, Recording
from firstflight.testbed.messages import BROWSED_PAGE, BROWSER_MEMORY_MB, CHROMIUM
from tests.golden import stored_browsed
from vtime.console import EngineCannot
from vtime.memory import MEMINFO, MEMORY_MB, available

SITE = Recording("https://a.test/", (Origin("https://a.test", 0),),
                 (Answer(0, "GET", "/", 200, (), b"x"),))


@pytest.fixture(autouse=True)
def own_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def job(site: str) -> Any:
    return {"kind": BROWSED_PAGE, "id": "a", "client": CHROMIUM, "site": site, "network": {}}


def test_a_stored_site_is_found_by_its_digest() -> None:
    digest = site_store.put(SITE)
    assert site_store.put(SITE) == digest and site_store.get(digest) == SITE
    assert [path.name for path in site_store.folder().iterdir()] == [f"{digest}.site"]
    assert not site_store.missing([job(digest)])


def test_a_site_that_is_missing_or_was_changed_is_named() -> None:
    digest = site_store.put(SITE)
    place = site_store.place_of(digest)
    place.write_bytes(place.read_bytes() + b"y")
    with pytest.raises(site_store.SiteMissing, match=f"{digest[:12]} is not on this machine"):
        site_store.get(digest)
    place.unlink()
    assert "measure it again from its file" in site_store.missing([job(digest)])["a"]


def test_the_store_drops_the_site_used_least_recently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_store, "MOST_SITES", 2)
    sites = [replace(SITE, url=f"https://a.test/{number}") for number in range(3)]
    first, second = map(site_store.put, sites[:2])
    os.utime(site_store.place_of(first), (1, 1))
    site_store.put(sites[0])  # it is used again
    os.utime(site_store.place_of(second), (2, 2))
    third = site_store.put(sites[2])
    assert {path.stem for path in site_store.folder().iterdir()} == {first, third}


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_a_name_that_is_no_digest_is_refused(digest: str) -> None:
    with pytest.raises(ValueError, match="is no SHA-256"):
        site_store.place_of(digest)


def test_a_browsers_guest_has_its_site_fonts_and_more_memory() -> None:
    digest = site_store.put(SITE)
    purpose = guest_for([job(digest)], {})
    assert purpose.sites == (digest,) and purpose.memory_mb == BROWSER_MEMORY_MB
    assert set(purpose.readable) <= set(guests.BROWSER_READS) and purpose.forks
    other: Any = {"kind": "page", "id": "b", "client": "libcurl", "network": {}}
    assert guest_for([other], {}).memory_mb == 512 and not guest_for([other], {}).sites


def test_a_browsers_guests_need_more_memory_than_others() -> None:
    """By memory_mb_of, and in the number of guests that a dry run plans."""
    browsed = stored_browsed.load("http2").trial
    listed = replace(browsed, site="", site_bytes=0)
    assert memory_mb_of([listed, listed]) == MEMORY_MB
    assert memory_mb_of([listed, browsed]) == BROWSER_MEMORY_MB
    room = (available(MEMINFO) or 0) // BROWSER_MEMORY_MB + 1
    with pytest.raises(EngineCannot, match=f"--jobs {room}: .* {room * BROWSER_MEMORY_MB} MB"):
        plan_engine(Measuring(jobs=room), memory_mb_of([browsed]))
    assert plan_engine(Measuring(jobs=room), memory_mb_of([listed])) == ("uml", room)


def test_within_another_machines_store_only_its_sites_are_found(tmp_path: Path) -> None:
    here = site_store.put(SITE)
    with site_store.within(tmp_path / "sent"):
        assert site_store.missing([job(here)])
        there = site_store.put(replace(SITE, url="https://a.test/x"))
    assert not site_store.missing([job(here)])
    assert site_store.missing([job(there)])


def test_pages_of_both_clients_in_one_run_go_to_guests_of_their_own() -> None:
    """A guest's bench loads its pages in a browser, or fetches their objects."""
    digest = site_store.put(SITE)
    fetched: Any = {"kind": "page", "client": "libcurl", "network": {}}
    trials: list[Any] = [{**(job(digest) if number % 2 else fetched), "id": str(number),
                          "deadline_s": 9.0} for number in range(8)]
    batches, skipped = guests.UmlEngine(Path("none"), 2)._place(trials)
    assert not skipped and sum(map(len, batches)) == 8
    assert all(len({trial["kind"] for trial in batch}) == 1 for batch in batches)


def test_a_page_that_is_only_planned_is_not_stored(tmp_path: Path,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text("<p>x</p>")
    words = ["--page", str(folder), "--client", "chromium", "--bw", "5M", "--dry-run"]
    assert experiment.main(words) == 0
    assert "own-chromium-" in capsys.readouterr().out
    assert not site_store.folder().exists()
