"""--mine: only a HAR's objects from the user's own hosts are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.commands import flags
from firstflight.commands.page import host_names
from firstflight.workloads.page import har, page_files
from firstflight.workloads.page.objects import PageObject
from tests.unit.page import saved

# The objects of saved.PAGE that come from a.example: the document, style.css, and late.png, which
# app.js of cdn.example names. late.png began at 500 ms, 300 ms after the document had come.
MINE = (PageObject(20_000, is_early=True), PageObject(8_000, 1, 10_000, is_early=True),
        PageObject(15_000, 1, 20_000, parse_ms=300.0))


def test_only_objects_of_these_hosts_are_measured_and_the_others_counted() -> None:
    page = har.read(saved.har(), "here", ["a.example"])
    assert page.objects == MINE
    assert "2 of other hosts than --mine" in page.source and "3 objects, 43 kB" in page.source
    assert "Only 3 of 5 objects are measured" in page.note


@pytest.mark.parametrize("mine", [["a.example", "cdn.example"], ["example"],
                                  ["A.Example", "cdn.example."]])
def test_naming_all_hosts_as_ones_own_leaves_the_page_unchanged(mine: list[str]) -> None:
    page = har.read(saved.har(), "here", mine)
    assert page.objects == har.read(saved.har(), "here").objects
    assert "--mine" not in page.source and "other hosts" not in page.note


def test_an_object_that_a_foreign_object_names_waits_for_the_nearest_own_object_above() -> None:
    """Here style.css names font.woff of cdn.example, which names late.png.

    late.png began 250 ms after style.css had come, at 250 ms.
    """
    def change(log: dict[str, Any]) -> None:
        log["entries"][4].update(saved.initiated("font.woff", "cdn.example"))

    objects = har.read(saved.har(change), "here", ["a.example"]).objects
    assert objects[2] == PageObject(15_000, 2, 8_000, parse_ms=250.0)


def test_a_wait_for_foreign_objects_is_at_most_a_minute() -> None:
    def change(log: dict[str, Any]) -> None:
        log["entries"][4]["startedDateTime"] = "2026-01-02T04:04:05.000Z"

    assert har.read(saved.har(change), "here", ["a.example"]).objects[2].parse_ms == 60_000


@pytest.mark.parametrize(("mine", "words"), [
    (["b.example"], "no object came from b.example; its hosts: a.example and cdn.example"),
    (["ample"], "no object came from ample"),
    (["cdn.example"], "the document came from a.example: name it too")])
def test_hosts_that_the_page_lacks_or_that_exclude_its_document_are_refused(mine: list[str],
                                                                            words: str) -> None:
    with pytest.raises(UsageError, match=f"here: --mine: {words}"):
        har.read(saved.har(), "here", mine)


def test_a_port_is_not_a_part_of_a_hosts_name() -> None:
    content = saved.har().replace(b"https://a.example/", b"https://a.example:8443/")
    assert har.read(content, "here", ["a.example"]).objects == MINE


def test_a_page_of_one_site_has_no_note_of_other_hosts() -> None:
    content = saved.har().replace(b"cdn.example", b"static.a.example")
    assert "other hosts" not in har.read(content, "here").note


def test_mine_with_a_list_of_objects_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "page.toml"
    path.write_text("[[object]]\nbytes = 1000\n", encoding="utf-8")
    with pytest.raises(UsageError, match="a list has no names of hosts"):
        page_files.read(path, ["a.example"])


@pytest.mark.parametrize("words", ["", "a.example,", "https://a.example/", "a b"])
def test_a_malformed_host_name_is_refused(words: str) -> None:
    with pytest.raises(ValueError, match="no name of a host"):
        host_names(words)
    with pytest.raises(SystemExit):
        flags.parse(["--page", "x.har", f"--mine={words}"])
